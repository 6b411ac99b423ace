//! Marks instead of drops, for senders that respond to each mark in proportion (L4S): the common part of
//! CSFQ, PFD and TRED, and [`Ramp`], which PFD and DualPI2 share.
//!
//! De Schepper, Briscoe, White, RFC 9332; De Schepper, Briscoe, RFC 9331 section 5 (behaviour of network
//! elements). A classic sender with a loss probability p_C has a window of some 1.7 / sqrt(p_C), a scalable
//! one with a mark probability p_L has 2 / p_L (RFC 9332 section 2.1). In one queue both get the same rate if
//! the scalable one is marked by the square root:
//!
//! ```text
//! p_L = k sqrt(p_C), k = 2                      (1)   RFC 9332 (1): p_C = (p_L / k)^2
//! ```
//!
//! with p_C as the discipline computes it without L4S: for the excess of the flow over the share, or for an
//! early drop. Packets that are ECT(1) or CE (RFC 9331 section 5.1) are marked by (1) and not dropped. All
//! others, ECT(0) too, are dropped with p_C.
//!
//! Where (1) reaches 1, at p_C = 1/k² = 1/4, marks carry no more information: the sender is unresponsive, or
//! its share is below two packets a round trip. Above that, L4S packets are dropped with p_C like all others,
//! and the rest is marked (RFC 9332 section 4.2.3, and overload in appendix A.2).
//!
//! (1) keeps shares, not delays: in one queue a scalable flow waits as long as the others. If the scheduler
//! gives each flow a queue of its own, [`Ramp`] marks by the sojourn time of an L4S packet (RFC 9332 appendix
//! A.1, `laqm`).
//!
//! Cost: a branch for classic packets; a root and a random number for an L4S packet.

use crate::param::Param;
use crate::random::Stream;
use crate::units::Span;

/// The switch, off as in the papers.
pub(crate) const L4S: Param = Param::of("false", "chosen: the papers drop").doc(
    "Whether ECT(1) packets are marked with twice the root of the probability by which they would be dropped, and dropped only \
     from where that is 1 on.",
);

/// RFC 9332 appendix A.1: k, recommended for the Internet.
const K: f64 = 2.0;
/// A drop probability at which nearly all packets are marked and none is dropped.
pub(super) const BELOW_OVERLOAD: f64 = 0.24;

/// The signal to an L4S packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    /// No signal.
    Spared,
    /// A mark.
    Marked,
    /// A drop.
    Dropped,
}

/// p_L, the mark probability.
pub(super) fn marking(p_c: f64) -> f64 {
    K * libm::sqrt(p_c)
}

/// Whether marks carry no more information at `p_c`, so that drops are needed.
pub(super) fn is_overload(p_c: f64) -> bool {
    p_c >= 1.0 / (K * K)
}

/// The signal to an L4S packet that would be dropped with probability `p_c` (RFC 9332 appendix A.2,
/// `dualpi2_dequeue`).
pub(super) fn signal(p_c: f64, random: &mut Stream) -> Signal {
    let drawn = random.uniform();
    if is_overload(p_c) {
        return if drawn < p_c { Signal::Dropped } else { Signal::Marked };
    }
    if drawn < marking(p_c) { Signal::Marked } else { Signal::Spared }
}

/// The mark probability by the packet's own delay: 0 up to a threshold, rising to 1 shortly above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ramp {
    /// minTh.
    pub min_th: Span,
    /// The span over which the probability rises to 1; zero is a step.
    pub range: Span,
}

impl Ramp {
    /// The parameters of RFC 9332 appendix A.1.
    pub(crate) const DEFAULT: Self = Self { min_th: Span::from_micros(800), range: Span::from_micros(400) };

    /// The mark probability after a wait of `sojourn` (RFC 9332 appendix A.1, `laqm`).
    pub(crate) fn at(self, sojourn: Span) -> f64 {
        if sojourn >= self.min_th + self.range {
            1.0
        } else if sojourn > self.min_th {
            sojourn.saturating_sub(self.min_th).as_secs_f64() / self.range.as_secs_f64()
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The marked and the dropped share of 20,000 packets that would be dropped with `p_c`.
    fn of(p_c: f64) -> (f64, f64) {
        let mut random = Stream::new(1, "l4s");
        let signals: [Signal; 20_000] = core::array::from_fn(|_| signal(p_c, &mut random));
        let share = |of| signals.iter().filter(|&&signal| signal == of).count() as f64 / 20_000.0;
        (share(Signal::Marked), share(Signal::Dropped))
    }

    fn check(share: f64, p: f64) {
        let band = 4.0 * (p * (1.0 - p) / 20_000.0).sqrt();
        assert!((share - p).abs() <= band, "{share} against {p} ± {band}");
    }

    #[test]
    fn marks_come_by_twice_the_root_and_drops_from_a_quarter_on() {
        for (p_c, marked) in [(0.0, 0.0), (0.0001, 0.02), (0.01, 0.2), (0.16, 0.8)] {
            let seen = of(p_c);
            check(seen.0, marked);
            assert_eq!(seen.1, 0.0, "nothing is dropped at {p_c}");
        }
        for p_c in [0.25, 0.5, 1.0] {
            let (marked, dropped) = of(p_c);
            check(dropped, p_c);
            assert!((marked + dropped - 1.0).abs() < 1e-9, "all that remains is marked");
        }
    }

    #[test]
    fn the_ramp_begins_at_its_threshold_and_ends_a_range_later() {
        let of = |us: u64| Ramp::DEFAULT.at(Span::from_micros(us));
        assert_eq!([0, 800, 1_000, 1_200, 9_000].map(of), [0.0, 0.0, 0.5, 1.0, 1.0]);
        let step = Ramp { range: Span::ZERO, ..Ramp::DEFAULT };
        assert_eq!([800, 801].map(|us| step.at(Span::from_micros(us))), [1.0, 1.0]);
    }
}
