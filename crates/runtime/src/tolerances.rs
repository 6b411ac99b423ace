//! Tolerated differences between the lab and the simulator, and the lateness of packets in the lab that they
//! allow.
//!
//! `docs/parity.md` gives the reason for each tolerance, `docs/lab.md` derives the limits of lateness.

use apportion_core::units::Span;
use apportion_scenario::model::Scenario;

/// The tolerated differences between simulator and lab.
#[derive(Clone, Copy, Debug)]
pub struct Tolerances {
    /// Tolerance of a flow's throughput, as a fraction of the mean throughput per flow in the simulator; of
    /// its share, as a fraction of an equal share.
    pub throughput: f64,
    /// Tolerance of the median and the 95th percentile of one-way delay, as a fraction of the simulator's.
    pub delay: f64,
    /// Lower bound of the tolerance of delays, ms.
    pub delay_ms: f64,
    /// Tolerance of the share of packets dropped, in percentage points.
    pub drops: f64,
}

/// The tolerances of `docs/parity.md`.
pub const TOLERANCES: Tolerances = Tolerances { throughput: 0.15, delay: 0.25, delay_ms: 3.0, drops: 3.0 };

/// Limits of the lateness of packets, so that it changes no number by more than its tolerance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatenessLimits {
    /// Maximum of the 99th percentile.
    pub most: Span,
    /// Maximum of the mean; `None` without TCP.
    pub mean: Option<Span>,
}

/// Number of times that a packet and its acknowledgement cross between the kernel and the engine; each
/// crossing can be late.
const HANDOVERS: f64 = 4.0;

impl LatenessLimits {
    /// The limits of a scenario.
    #[must_use]
    pub fn new(scenario: &Scenario, tolerances: &Tolerances) -> Self {
        let flows = || scenario.flows.iter();
        // A packet that is read late waits for less time on its way: its delay changes by at most its
        // lateness.
        let delay = flows().filter_map(|flow| scenario.path_delay(flow)).min().unwrap_or_default();
        let most = (tolerances.delay * delay.as_secs_f64()).max(tolerances.delay_ms / 1e3);
        // TCP sends a window in each round trip, which lateness makes longer.
        let tcp = flows().filter(|flow| flow.transport.is_acknowledged());
        let rtt = tcp.filter_map(|flow| scenario.path_rtt(flow)).min();
        let mean = rtt.map(|rtt| tolerances.throughput * rtt.as_secs_f64() / HANDOVERS);
        Self { most: Span::from_secs_f64(most), mean: mean.map(Span::from_secs_f64) }
    }
}
