//! The tests of traffic-control modules of ns-3 (nsnam/ns-3-dev-git, commit 140646449a33), under
//! `src/traffic-control/test` and `src/test/ns3tc`.
//!
//! A case is a registered test case or, where one contains numbered tests, each of these. Those that run in
//! packets and in bytes are cases twice if ns-3 registers them twice, and else once, in both units.

mod codel;
mod flows;
mod pie;
mod plain;
mod red;

use super::Case;

/// Why tests of the CE threshold of COBALT and PIE do not apply.
const NO_COBALT_THRESHOLD: &str = "`codel` and `fq_codel` have a CE threshold, and no other discipline here";

pub fn cases() -> Vec<Case> {
    [codel::cases(), flows::cases(), pie::cases(), red::cases(), plain::cases()]
        .into_iter()
        .flatten()
        .collect()
}
