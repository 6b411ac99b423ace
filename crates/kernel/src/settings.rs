//! Settings and counters of a CSFQ core in the kernel: maps of 64-bit words, as declared in `bpf/share.h`.
//!
//! The kernel has no floating point. Rates are in Q16 of bit/s, factors in Q32; `bpf/fixed.h` states the
//! errors of e^(-T/K), which stay below 3e-9. The bounds that 64-bit products impose are checked here; values
//! outside are refused by the name of their key.

use apportion_core::aqm::csfq::{CsfqParams, RouterRole};
use apportion_core::estimate::fair_share::{AcceptedRate, BelowThreshold, NotedLabel};
use apportion_core::label::Label;
use apportion_core::limit::{BufferSize, Limit, LinkLimit};
use apportion_core::mark::rate_label::Marking;
use apportion_core::units::{Bytes, Rate, Ratio, Span, Weight};

/// Number of words of one of the two sets of constants in the map `settings`.
pub const SETTINGS: usize = 16;
/// Number of words of the map `link`.
pub const STATE: usize = 19;
/// Number of words of the map `counts`: the fields of [`Counts`], then the runs that a processor began and
/// ended.
pub const COUNTS: usize = 10;

/// The range of time constants and windows: shorter ones do not fit into the products, longer ones not into a
/// gap.
const WINDOWS: (Span, Span) = (Span::from_millis(1), Span::from_secs(3_600));
/// The range of C: on a slower link a bit takes too long, a faster one does not fit into Q16.
const RATES: (Rate, Rate) = (Rate::from_kbit(8), Rate::from_mbit(1_000_000));
/// The minimum weight that fits into Q16.
const LEAST_WEIGHT: f64 = 1.0 / 32_768.0;

const EGRESS: u64 = 1;
const PASS_UNLABELLED: u64 = 2;
const AGGREGATE_GUARANTEE: u64 = 4;
const HOLDS: u64 = 8;

/// The reason why the kernel cannot implement a CSFQ queue: the key, and valid values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{key}` {hint}")]
pub struct Unsuitable {
    /// The key of the queue.
    pub key: &'static str,
    /// The valid values.
    pub hint: String,
}

/// The constants of a CSFQ or MCSFQ core.
#[derive(Clone, Debug, PartialEq)]
pub struct CoreSettings {
    /// The parameters of the queue.
    params: CsfqParams,
    /// C.
    pub rate: Rate,
    /// Bytes charged for each frame besides its length, which includes the Ethernet header but not the check
    /// sequence. Default: 0 B.
    pub overhead: Bytes,
    /// The minimum weight of any flow; alpha may exceed C for flows with weights below 1. Default: 1.
    pub smallest_weight: Weight,
    /// Whether IP packets without a rate label pass uncounted; the paper's core drops them. Default: false.
    pub pass_unlabelled: bool,
}

impl CoreSettings {
    /// Creates the constants for `params` for a link of `rate`.
    ///
    /// # Errors
    /// The key that the program does not support, or whose value does not fit.
    pub fn new(params: &CsfqParams, rate: Rate) -> Result<Self, Unsuitable> {
        let share = &params.fair_share;
        let refusals = [
            (
                params.role != RouterRole::Core,
                "role",
                "must be \"core\": the edge keeps state of each flow, in user space",
            ),
            (
                share.target_delay > Span::ZERO,
                "target_delay",
                "must be \"0s\", the law of the papers (preset = \"paper\")",
            ),
            (params.avoidance > Ratio::ZERO, "avoidance", "must be 0"),
            (share.onset, "onset", "must be false"),
            (share.accepted_rate != AcceptedRate::Arrivals, "accepted_rate", "must be \"arrivals\""),
            (share.noted_label != NotedLabel::Original, "noted_label", "must be \"original\""),
            (!share.own_label, "own_label", "must be true"),
            (params.edge.bits != Label::BITS, "bits", "must be 17, all bits of a label"),
            (!is_window(share.k_alpha), "k_alpha", "must lie between 1 ms and 1 h"),
            (!is_window(share.k_c), "k_c", "must lie between 1 ms and 1 h"),
        ];
        if let Some((_, key, hint)) = refusals.into_iter().find(|(refused, ..)| *refused) {
            return Err(Unsuitable { key, hint: hint.to_owned() });
        }
        if let Some(Limit::Packets(_)) = params.limit.and_then(BufferSize::fixed) {
            return Err(Unsuitable {
                key: "limit",
                hint: "must be in bytes: the virtual queue holds what the link sends in a time".to_owned(),
            });
        }
        if !is_rate(rate) {
            return Err(Unsuitable {
                key: "rate",
                hint: "must lie between 8 kbit/s and 1 Tbit/s".to_owned(),
            });
        }
        Ok(Self {
            params: params.clone(),
            rate,
            overhead: Bytes::ZERO,
            smallest_weight: Weight::ONE,
            pass_unlabelled: false,
        })
    }

    /// Returns the size of the virtual queue.
    #[must_use]
    pub fn limit(&self) -> Bytes {
        match LinkLimit::new(self.params.limit, self.rate).get() {
            Limit::Bytes(limit) => limit,
            // Refused above; the default is in bytes.
            Limit::Packets(_) => Bytes::ZERO,
        }
    }

    /// Returns the words that the program reads, in the order of `struct settings`.
    #[must_use]
    pub fn words(&self) -> [u64; SETTINGS] {
        let share = &self.params.fair_share;
        let (k_alpha, rate) = (share.k_alpha.as_nanos(), self.rate.as_bit() << 16);
        let limit = self.rate.time_for(self.limit()).as_nanos();
        let part = |part: f64| (limit as f64 * part) as u64;
        let reserve = self.params.reserve.get();
        let of_debts = if self.params.edge.marking == Marking::Debt { reserve / 2.0 } else { reserve };
        // A reserve of zero is never closed.
        let open = |kept: f64| if kept > 0.0 { part(1.0 - kept) } else { u64::MAX };
        [
            rate,
            k_alpha,
            inverse(64, k_alpha),
            per_time(k_alpha),
            share.k_c.as_nanos(),
            u64::from((u64::BITS - rate.leading_zeros()).saturating_sub(31)),
            q16(1.0 / self.smallest_weight.get().clamp(LEAST_WEIGHT, 1.0)),
            q32(1.0 - share.decay.get()),
            q32(1.0 - share.overflow_decrease.get()),
            part(self.params.threshold.get()),
            open(reserve),
            open(of_debts),
            limit,
            per_bit(self.rate),
            self.overhead.get(),
            self.flags(),
        ]
    }

    fn flags(&self) -> u64 {
        let share = &self.params.fair_share;
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        flag(self.params.egress, EGRESS)
            | flag(self.pass_unlabelled, PASS_UNLABELLED)
            | flag(share.aggregate_guarantee, AGGREGATE_GUARANTEE)
            | flag(share.below_threshold == BelowThreshold::Uncongested, HOLDS)
    }

    /// Returns the initial state of a link, in the order of `struct link`.
    #[must_use]
    pub fn initial_state(&self) -> [u64; STATE] {
        let mut state = [0; STATE];
        let alpha = self.params.fair_share.initial.map_or(0, |rate| rate.as_bit().min(1 << 43) << 16);
        // `known` follows the 32-bit `busy`; without a share the code of 1998 starts congested.
        state[0] = if alpha > 0 { known_word() } else { 0 };
        state[1] = alpha;
        state[16] = u64::from(alpha == 0);
        state[18] = 30;
        state
    }
}

/// The first word of the state with `known` = 1: `busy` takes the first four bytes in either byte order.
const fn known_word() -> u64 {
    let [a, b, c, d] = 1u32.to_ne_bytes();
    u64::from_ne_bytes([0, 0, 0, 0, a, b, c, d])
}

/// Whether a link of this rate is supported.
pub(crate) fn is_rate(rate: Rate) -> bool {
    let (slowest, fastest) = RATES;
    (slowest..=fastest).contains(&rate)
}

/// Returns the nanoseconds per bit, Q32.
pub(crate) fn per_bit(rate: Rate) -> u64 {
    quotient(1_000_000_000 << 32, rate.as_bit())
}

/// Whether a time constant is supported.
pub(crate) fn is_window(span: Span) -> bool {
    let (least, most) = WINDOWS;
    (least..=most).contains(&span)
}

/// Returns the factor that converts bits to a rate over `k` nanoseconds: 2^51 10^9 / `k`.
pub(crate) fn per_time(k: u64) -> u64 {
    quotient(1_000_000_000 << 51, k)
}

/// Converts a value to Q16, rounding down.
pub(crate) fn q16(value: f64) -> u64 {
    (value * 65_536.0) as u64
}

/// Returns 2^`bits` / `by`, rounded down.
pub(crate) fn inverse(bits: u32, by: u64) -> u64 {
    quotient(1 << bits, by)
}

/// Returns `of` / `by`, rounded down; the bounds of this module keep it below 2^64.
fn quotient(of: u128, by: u64) -> u64 {
    u64::try_from(of / u128::from(by.max(1))).unwrap_or(u64::MAX)
}

/// Converts a fraction of 1 to Q32.
fn q32(part: f64) -> u64 {
    (part.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64
}

/// The estimate of a core at the time of reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkState {
    /// The fair share in bits per second for a weight of 1; none if unknown.
    pub alpha: Option<f64>,
    /// A: arrival rate of excess traffic, bits per second.
    pub arrival_rate: f64,
    /// F: the rate of excess traffic that the share lets pass.
    pub accepted_rate: f64,
    /// G: rate of guaranteed packets.
    pub guaranteed_rate: f64,
    /// Whether more traffic arrives than there is capacity to divide.
    pub is_congested: bool,
    /// Number of times that the link became congested.
    pub congested_periods: u64,
}

impl LinkState {
    /// Decodes the words of the map `link`.
    #[must_use]
    pub fn of(words: &[u64; STATE]) -> Self {
        let rate = |q16: u64| q16 as f64 / 65_536.0;
        let [first, alpha, _, a, f, g, .., congested, periods, _] = *words;
        Self {
            alpha: (first & known_word() != 0).then(|| rate(alpha)),
            arrival_rate: rate(a),
            accepted_rate: rate(f),
            guaranteed_rate: rate(g),
            is_congested: congested != 0,
            congested_periods: periods,
        }
    }
}

/// Returns the first word of a state with `busy` set to 1 or 0.
#[must_use]
#[cfg_attr(not(feature = "bpf"), allow(dead_code, reason = "for programs"))]
pub(crate) fn with_busy(word: u64, is_busy: bool) -> u64 {
    let [.., a, b, c, d] = word.to_ne_bytes();
    let [w, x, y, z] = u32::from(is_busy).to_ne_bytes();
    u64::from_ne_bytes([w, x, y, z, a, b, c, d])
}

/// The counters of a core since it was loaded, summed over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// IP packets that arrived.
    pub packets: u64,
    /// Bytes of these packets, as charged.
    pub bytes: u64,
    /// Packets dropped by their label.
    pub early: u64,
    /// Packets dropped since the virtual queue was full.
    pub overflow: u64,
    /// Packets without a rate label; dropped unless such packets pass.
    pub unlabelled: u64,
    /// Frames without IP, and neighbour discovery of IPv6, which pass.
    pub no_ip: u64,
    /// Packets that left with a lower label.
    pub relabelled: u64,
    /// Packets decided while another processor held the estimate.
    pub meanwhile: u64,
}

impl Counts {
    /// Sums the counters of all processors.
    pub fn sum(processors: impl IntoIterator<Item = [u64; COUNTS]>) -> Self {
        processors.into_iter().fold(Self::default(), |sum, words| {
            let [packets, bytes, early, overflow, unlabelled, no_ip, relabelled, meanwhile, ..] = words;
            sum.plus(&Self { packets, bytes, early, overflow, unlabelled, no_ip, relabelled, meanwhile })
        })
    }

    /// Adds both counters.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            bytes: self.bytes + other.bytes,
            early: self.early + other.early,
            overflow: self.overflow + other.overflow,
            unlabelled: self.unlabelled + other.unlabelled,
            no_ip: self.no_ip + other.no_ip,
            relabelled: self.relabelled + other.relabelled,
            meanwhile: self.meanwhile + other.meanwhile,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::system::any::PolicyParams;
    use apportion_core::system::{BufferParams, Catalog, DisciplineKind, DisciplineParams};

    fn params(kind: &str, set: &[(&str, &str)]) -> CsfqParams {
        let mut selection = Catalog::default().select(kind, None, None).unwrap();
        for (key, value) in [("role", "core"), ("target_delay", "0s")].iter().chain(set) {
            selection.set(key, value).unwrap();
        }
        match DisciplineParams::from_args(&selection).unwrap().kind {
            DisciplineKind::Buffered(BufferParams { drop: PolicyParams::Csfq(params), .. }) => params,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn constants_are_in_fixed_point() {
        let set = [("limit", "64kB"), ("reserve", "10%"), ("marking", "debt")];
        let settings = CoreSettings::new(&params("csfq", &set), Rate::from_mbit(8)).unwrap();
        let words = settings.words();
        // C in Q16; K of 100 ms; 2^64 / 10^8; 2^51 10; K_c.
        assert_eq!(words[..5], [8_000_000 << 16, 100_000_000, 184_467_440_737, 10 << 51, 100_000_000]);
        // 8000000 2^16 has 39 bits, so 8 are cut; the smallest weight is 1; CSFQ keeps nothing; an overflow
        // keeps 99 %.
        assert_eq!(words[5..9], [8, 65_536, 0, 4_252_017_623]);
        // 64 kB take 64 ms: a quarter, all but 10 %, all but 5 %, all. A bit takes 125 ns.
        assert_eq!(words[9..14], [16_000_000, 57_600_000, 60_800_000, 64_000_000, 125 << 32]);
        assert_eq!(words[14..], [0, AGGREGATE_GUARANTEE]);
        let mcsfq = CoreSettings::new(&params("mcsfq", &[]), Rate::from_mbit(8)).unwrap().words();
        assert_eq!((mcsfq[7], mcsfq[15]), (1 << 32, AGGREGATE_GUARANTEE | HOLDS));
    }

    #[test]
    fn a_share_at_the_start_is_known() {
        let of =
            |set: &[_]| CoreSettings::new(&params("csfq", set), Rate::from_mbit(8)).unwrap().initial_state();
        let (unknown, known) = (LinkState::of(&of(&[])), LinkState::of(&of(&[("initial", "1Mbit")])));
        assert_eq!((unknown.alpha, unknown.is_congested), (None, true));
        assert_eq!((known.alpha, known.is_congested), (Some(1e6), false));
        let held = with_busy(known_word(), true);
        assert_eq!((held != known_word(), with_busy(held, false)), (true, known_word()));
    }

    #[test]
    fn a_rate_that_does_not_fit_is_refused() {
        for rate in [Rate::from_bit(7_999), Rate::from_mbit(1_000_001), Rate::ZERO] {
            let refusal = CoreSettings::new(&params("csfq", &[]), rate).unwrap_err();
            assert_eq!(refusal.key, "rate");
        }
        for rate in [Rate::from_kbit(8), Rate::from_mbit(1_000_000)] {
            assert!(CoreSettings::new(&params("csfq", &[]), rate).is_ok());
        }
    }
}
