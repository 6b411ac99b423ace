//! The fair share of two queues on one link: L4S packets first (`L4sFirst`), and all others.
//!
//! RFC 9332 couples two queues by a probability, which knows no flows. Here the fair share α couples them: it bounds each flow, whatever
//! its queue, so that priority starves no one, and L4S flows are marked by their excess over α (`l4s.rs`). Strict priority with a bound
//! from shares is in VDQ-CSAQM: Nádas, Gombos, Fejes, Laki, "A congestion control independent L4S scheduler", ANRW 2020.
//!
//! C is the link, r_L the accepted rate of L4S packets. L4S packets wait for B_L, at the rate C. The others wait for B_C at the rest:
//!
//! ```text
//! C_C = max(C - r_L, C / 16),   d_L = B_L / C,   d_C = B_C / C_C
//! ```
//!
//! Each queue has a target, and asks for the fraction f of its rate that returns it to the target:
//!
//! ```text
//! f_L = 1 - (d_L - 1 ms) / 100 ms,   f_C = 1 - (d_C - target) / 500 ms,   f = f_L r_L / C + f_C C_C / C
//! ```
//!
//! - Packets of the others are dropped by f_C α: a burst of one classic flow in a slow queue costs no L4S flow its share.
//! - L4S packets are marked by min(f_L, f) α. With p_L = 2 sqrt(1 - f α / label) a flow at the share is marked with 0.2 at 1 ms above
//!   the target and 0.6 at 10 ms. A ramp by delay alone (RFC 9332 appendix A.1) would mark flows of all weights alike.
//! - α follows f: it falls only while a queue is above its target.
//! - While α is unknown, L4S packets are marked as at the share, for their own queue only.
//! - A customer of HCSFQ below its part has no share, and no marks.
//! - Behind another scheduler L4S packets wait among the others: f is that of one queue, and only p_L differs.
//!
//! Both targets are at least two full packets. Without L4S packets all this is the law of `by_delay.rs`.

use super::l4s::{self, Signal};
use crate::estimate::exponential::Exponentials;
use crate::estimate::fair_share::{FairShare, FairShareEstimator, Fill};
use crate::limit::Limit;
use crate::mark::rate_label::RateLabel;
use crate::queue::Backlog;
use crate::random::Stream;
use crate::schedule::l4s_first::LEAST;
use crate::units::{Bytes, Span, Time, float, larger};

/// The target of the L4S queue. RFC 9332 appendix A.1: the middle of the ramp.
const TARGET: f64 = 1e-3;
/// The time in which the L4S queue returns to its target. Chosen: the longest common round trip (RFC 9332 `RTT_max`).
const DRAIN: f64 = 0.1;
/// The minimum target in bytes.
const LEAST_TARGET: f64 = 2.0 * 1_500.0;
/// The time constant of r_L, as K_α.
const WINDOW: Span = Span::from_millis(100);

/// The L4S queue of a link, and the rate of its packets.
#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// B_L; none if L4S packets wait among others.
    backlog: Option<Backlog>,
    /// r_L.
    rate: Exponentials<1>,
}

/// The fractions of the link to divide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Parts {
    /// For the decision on this packet.
    pub own: f64,
    /// For the fair share.
    pub link: f64,
    /// f_L, for L4S packets while no share is known.
    pub first: f64,
}

impl Lane {
    pub fn new() -> Self {
        Self { backlog: None, rate: Exponentials::new(WINDOW, [0.0], Time::ZERO) }
    }

    /// Counts an arrival that was accepted or dropped.
    #[inline]
    pub fn arrived(&mut self, now: Time, size: Bytes, is_l4s: bool, accepted: bool) {
        let Some(backlog) = &mut self.backlog else { return };
        let counts = is_l4s && accepted;
        if counts {
            backlog.bytes += size;
        }
        if is_l4s || self.rate.last_rates()[0] > 1.0 {
            self.rate.update(now, [if counts { float(size.bits()) } else { 0.0 }]);
        }
    }

    /// Notes the L4S packets that the scheduler holds.
    #[inline]
    pub fn holds(&mut self, backlog: Option<Backlog>) {
        self.backlog = backlog;
    }

    /// The fractions for an arrival that finds `backlog` in both queues.
    #[inline]
    pub fn parts(&self, share: &FairShareEstimator, is_l4s: bool, backlog: Backlog, limit: Limit) -> Parts {
        let fill = Fill::of(backlog, limit);
        let [rate] = self.rate.last_rates();
        let l4s = self.backlog.map_or(0.0, |held| float(held.bytes.get()));
        if l4s == 0.0 && rate <= 1.0 || !share.is_by_delay() {
            let part = share.part_at(fill);
            return Parts { own: part, link: part, first: part };
        }
        self.of_two(share, is_l4s, fill, l4s)
    }

    #[inline(never)]
    fn of_two(&self, share: &FairShareEstimator, is_l4s: bool, fill: Fill, l4s: f64) -> Parts {
        let c = larger(share.link(), 1.0);
        let rest = larger(1.0 - self.rate.last_rates()[0] / c, 1.0 / LEAST as f64);
        let waiting = larger(float(fill.bytes.get()) - l4s, 0.0) / rest;
        let classic = share.part_at(Fill { bytes: Bytes::new(waiting as u64), ..fill });
        let target = larger(c * TARGET / 8.0, LEAST_TARGET);
        let first = (1.0 - larger(l4s - target, 0.0) * 8.0 / (c * DRAIN)).clamp(0.5, 1.0);
        let link = first * (1.0 - rest) + classic * rest;
        Parts { own: if is_l4s { first.min(link) } else { classic }, link, first }
    }
}

/// The decision on a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decision {
    /// What its sender learns.
    pub signal: Signal,
    /// Whether it leaves with its label, because its flow sends no less than that.
    pub keeps_label: bool,
}

/// The decision on a packet with `label`, by the `share` that applies, or for L4S packets by the fraction `part` while it is unknown.
#[inline]
pub(super) fn decide(
    share: FairShare,
    label: RateLabel,
    part: f64,
    is_l4s: bool,
    random: &mut Stream,
) -> Decision {
    let p = share.drop_probability(label);
    if !is_l4s {
        let signal = if random.chance(p) { Signal::Dropped } else { Signal::Spared };
        return Decision { signal, keeps_label: false };
    }
    let p = match (share, label) {
        (FairShare::Unknown, RateLabel::Excess(_)) => (1.0 - part).min(l4s::BELOW_OVERLOAD),
        _ => p,
    };
    Decision { signal: l4s::signal(p, random), keeps_label: !l4s::is_overload(p) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::csfq::{CSFQ, CsfqParams};
    use crate::param::EntryArgs;
    use crate::units::{Packets, Rate};

    /// A link of 8 Mb/s with targets of 1 ms, which is two packets, and 20 ms, and a buffer of 100 kB.
    fn share() -> FairShareEstimator {
        let params = CsfqParams::from_args(&EntryArgs::defaults(&CSFQ)).unwrap();
        FairShareEstimator::new(&params.fair_share, Rate::from_mbit(8))
    }

    fn held(bytes: u64) -> Backlog {
        Backlog { packets: Packets::new(bytes / 1_000), bytes: Bytes::new(bytes) }
    }

    /// The fractions for a packet, with `l4s` bytes of L4S packets among `all`, whose rate is `rate`.
    fn parts(is_l4s: bool, l4s: u64, all: u64, rate: f64) -> Parts {
        let rate = Exponentials::new(WINDOW, [rate], Time::ZERO);
        let lane = Lane { backlog: Some(held(l4s)), rate };
        lane.parts(&share(), is_l4s, held(all), Limit::Bytes(Bytes::new(100_000)))
    }

    fn near(found: Parts, own: f64, link: f64) {
        assert!(
            (found.own - own).abs() < 1e-9 && (found.link - link).abs() < 1e-9,
            "{found:?}: {own} {link}"
        );
    }

    #[test]
    fn without_l4s_packets_there_is_one_queue() {
        // 10 kB above 20 kB are 10 ms: 1 - 10/500.
        near(parts(false, 0, 30_000, 0.0), 0.98, 0.98);
        near(parts(false, 0, 20_000, 0.0), 1.0, 1.0);
    }

    #[test]
    fn l4s_packets_have_a_queue_and_a_target_of_their_own() {
        // 7 kB above two packets of 1500 B are 7 ms: 1 - 7/100. All traffic is L4S, and a sixteenth is left.
        near(parts(true, 10_000, 10_000, 8e6), 1.0 - 0.07, 1.0 - 0.07 * 15.0 / 16.0);
        near(parts(true, 3_000, 3_000, 8e6), 1.0, 1.0);
    }

    #[test]
    fn the_others_wait_at_the_rate_that_is_left() {
        // A quarter of 8 Mb/s is left: 10 kB wait for 40 ms, 20 ms above the target: 1 - 20/500 for the others, and a quarter of
        // that for the link and for L4S packets.
        near(parts(false, 0, 10_000, 6e6), 0.96, 0.99);
        near(parts(true, 0, 10_000, 6e6), 0.99, 0.99);
        // No more than 15/16 are taken: 2.5 kB then wait for 40 ms.
        near(parts(false, 0, 2_500, 1e9), 0.96, 1.0 - 0.04 / 16.0);
    }

    #[test]
    fn a_burst_of_l4s_costs_the_others_nothing() {
        assert_eq!(parts(false, 10_000, 10_000, 4e6).own, 1.0);
    }

    #[test]
    fn the_law_of_the_papers_has_no_parts() {
        let params = CsfqParams::from_args(&EntryArgs::of_paper(&CSFQ)).unwrap();
        let share = FairShareEstimator::new(&params.fair_share, Rate::from_mbit(8));
        let lane = Lane { backlog: Some(held(9_000)), ..Lane::new() };
        near(lane.parts(&share, true, held(90_000), Limit::Bytes(Bytes::new(100_000))), 1.0, 1.0);
    }

    #[test]
    fn the_rate_is_of_accepted_l4s_packets_and_falls_without_them() {
        let mut lane = Lane::new();
        let arrive = |lane: &mut Lane, ms, is_l4s, accepted| {
            lane.arrived(Time::from_millis(ms), Bytes::new(1_000), is_l4s, accepted);
        };
        arrive(&mut lane, 1, true, true);
        assert_eq!(lane.rate.last_rates(), [0.0], "no queue of its own");
        lane.holds(Some(Backlog::EMPTY));
        (0..1_000).for_each(|ms| arrive(&mut lane, ms, true, ms % 2 == 0));
        let [rate] = lane.rate.last_rates();
        assert!((rate / 4e6 - 1.0).abs() < 0.02, "{rate}");
        assert_eq!(lane.backlog.unwrap().bytes.get(), 500_000);
        (1_000..2_000).for_each(|ms| arrive(&mut lane, ms, false, true));
        assert!(lane.rate.last_rates()[0] < 1e4);
    }

    #[test]
    fn an_unknown_share_marks_l4s_packets_and_drops_none() {
        let decided = |part, is_l4s| {
            let mut random = Stream::new(1, "csfq");
            let label = RateLabel::Excess(1e6);
            let marked = (0..10_000).filter(|_| {
                let decision = decide(FairShare::Unknown, label, part, is_l4s, &mut random);
                assert_ne!(decision.signal, Signal::Dropped);
                decision.signal == Signal::Marked
            });
            marked.count()
        };
        assert_eq!((decided(1.0, true), decided(0.5, false)), (0, 0));
        // 2 sqrt(0.01) = 0.2; 4σ = 160.
        assert!(decided(0.99, true).abs_diff(2_000) < 160);
        assert!(decided(0.5, true) > 9_500);
    }
}
