//! The law by queueing delay: worked numbers.

use super::*;
use crate::aqm::csfq::CSFQ;
use crate::estimate::exponential::Exponentials;
use crate::estimate::fair_share::{Arrival, FairShareParams};
use crate::mark::rate_label::RateLabel;
use crate::param::EntryArgs;
use crate::units::Rate;

/// The rate of the link, in bits a second: 20 ms are 20 kB.
const C: f64 = 8e6;

/// An estimator on a link of 8 Mb/s since time zero, with this share and these rates of arrivals and of
/// accepted packets.
fn standing(fs: FairShare, rates: [f64; 2]) -> FairShareEstimator {
    let params = FairShareParams::from_args(&EntryArgs::defaults(&CSFQ)).unwrap();
    let rates = Exponentials::new(params.k_alpha, [rates[0], rates[1], 0.0], Time::ZERO);
    FairShareEstimator { fs, rates, ..FairShareEstimator::new(&params, Rate::from_mbit(8)) }
}

/// A backlog of `bytes` in a large buffer.
fn waiting(bytes: u64) -> Fill {
    Fill { bytes: Bytes::new(bytes), queued: bytes, limit: u64::MAX }
}

/// An empty packet at `ms` milliseconds, so that averages only decay, by e^-1 in 100 ms.
fn arrive(estimator: &mut FairShareEstimator, ms: u64, label: f64, queued: u64) -> f64 {
    let label = if label > 0.0 { RateLabel::Excess(label) } else { RateLabel::Guaranteed };
    let part = estimator.part_at(waiting(queued));
    let arrival = Arrival { size: Bytes::ZERO, label, dropped: false, calm: false, part };
    estimator.update(Time::from_millis(ms), arrival);
    estimator.fair_share().rate().unwrap_or(f64::NAN)
}

fn near(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

#[test]
fn the_share_falls_above_the_target_only() {
    // After 100 ms FR is 36e6 / e = 13.24e6. The queue of 45 kB is 25 ms above the target: f = 0.95.
    let decayed = 36e6 * libm::exp(-1.0);
    let above = |label| arrive(&mut standing(FairShare::Rate(2e6), [64e6, 36e6]), 100, label, 45_000);
    assert!(near(above(3e6), 2e6 * 0.95 * C / decayed));
    // From the largest label, if the share was above it.
    assert!(near(above(1e6), 1e6 * 0.95 * C / decayed));
    // No change while only guaranteed packets or debts arrive, and none before a window ends.
    assert_eq!([above(0.0), above(1.0)], [2e6; 2]);
    assert_eq!(arrive(&mut standing(FairShare::Rate(2e6), [64e6, 36e6]), 99, 3e6, 45_000), 2e6);
    // At the target delay, arrivals have not filled the link.
    assert_eq!(arrive(&mut standing(FairShare::Rate(2e6), [64e6, 36e6]), 100, 3e6, 20_000), 2e6);
}

#[test]
fn a_small_difference_moves_the_share_by_its_fourth_root() {
    // FR is 24e6 / e = 8.83e6, a tenth above X, or 20e6 / e, a twelfth below.
    let e = libm::exp(1.0);
    let after = |fr, queued| arrive(&mut standing(FairShare::Rate(2e6), [64e6, fr]), 100, 3e6, queued);
    assert!(near(after(24e6, 45_000), 2e6 * libm::pow(0.95 * C * e / 24e6, 0.25)));
    assert!(near(after(20e6, 0), 2e6 * libm::pow(C * e / 20e6, 0.25)));
}

#[test]
fn the_share_rises_to_twice_the_largest_label() {
    let after = |label, fr| arrive(&mut standing(FairShare::Rate(2e6), [64e6, fr]), 100, label, 0);
    let e = libm::exp(1.0);
    assert!(near(after(3e6, 5e6 * e), 3.2e6), "by C / FR");
    assert!(near(after(3e6, 0.0), 4e6), "at most doubled");
    assert!(near(after(1.5e6, 0.0), 3e6), "as no flow needs more");
    assert!(near(after(0.5e6, 0.0), 2e6), "and it does not fall for that");
    assert!(near(arrive(&mut standing(FairShare::Rate(6e6), [64e6, 0.0]), 100, 7e6, 0), C), "never beyond C");
}

#[test]
fn an_unknown_share_becomes_known_when_the_queue_is_above_its_target() {
    let after = |queued| arrive(&mut standing(FairShare::Unknown, [64e6, 64e6]), 100, 6e6, queued);
    assert!(after(20_000).is_nan());
    // The share is at most halved.
    assert!(near(after(21_000), 3e6));
}

#[test]
fn between_windows_the_largest_label_and_the_queue_say_what_applies() {
    let mut estimator = standing(FairShare::Rate(6e6), [16e6, 8e6]);
    arrive(&mut estimator, 10, 4e6, 25_000);
    let at = |estimator: &FairShareEstimator, queued| {
        estimator.share_at(estimator.part_at(waiting(queued))).rate().unwrap()
    };
    assert_eq!(at(&estimator, 20_000), 6e6, "up to the target the share");
    assert!(near(at(&estimator, 120_000), 4e6 * 0.8), "100 ms above it a fifth less than the largest label");
    assert!(near(at(&estimator, 10_000_000), 2e6), "at least half");
    // The queue may be full of earlier packets: the arrivals fit.
    let mut idle = standing(FairShare::Rate(6e6), [2e6, 2e6]);
    arrive(&mut idle, 10, 4e6, 120_000);
    assert_eq!(at(&idle, 120_000), 6e6);
}

#[test]
fn a_share_of_a_part_applies_while_more_arrives_than_that() {
    let applies = |arrives, c| {
        let mut part = standing(FairShare::Rate(1e6), [arrives, arrives]);
        part.set_part(c, C);
        part.share_at(0.9)
    };
    assert_eq!(
        [3.9e6, 4.1e6].map(|rate| applies(rate, C / 2.0)),
        [FairShare::Unknown, FairShare::Rate(0.45e6)]
    );
    // A link that is not a part depends on its queue alone.
    assert_eq!(standing(FairShare::Rate(1e6), [3.9e6; 2]).share_at(1.0), FairShare::Rate(1e6));
}

#[test]
fn a_slow_link_may_hold_two_full_packets() {
    let law = ByDelay::new(Span::from_millis(20)).unwrap();
    assert_eq!(law.part(waiting(3_000), 100e3), 1.0);
    assert!(law.part(waiting(3_100), 100e3) < 1.0);
}

#[test]
fn windows_in_front_of_a_slow_link_hold_forty_packets() {
    let params = FairShareParams::from_args(&EntryArgs::defaults(&CSFQ)).unwrap();
    let window = |rate| FairShareEstimator::new(&params, rate).k_c;
    assert_eq!(window(Rate::from_mbit(8)), Span::from_millis(100));
    assert_eq!(window(Rate::from_mbit(1)), Span::from_millis(480));
    assert_eq!(window(Rate::ZERO), Span::from_secs(1), "also of a link that stands still");
    let mut estimator = FairShareEstimator::new(&params, Rate::from_mbit(8));
    estimator.set_link_rate(Rate::from_mbit(2));
    assert_eq!(estimator.k_c, Span::from_millis(240));
    // The part of a customer, from the end of the window on.
    estimator.set_part(1e6, 8e6);
    arrive(&mut estimator, 240, 1e6, 0);
    assert_eq!(estimator.k_c, Span::from_millis(480));
}

#[test]
fn half_of_a_small_buffer_is_its_target() {
    let law = ByDelay::new(Span::from_millis(20)).unwrap();
    let part = |queued| law.part(Fill { bytes: Bytes::new(1_500), queued, limit: 4 }, C);
    assert_eq!([2, 3, 4].map(part), [1.0, 0.75, 0.5]);
}

#[test]
fn an_overflow_lowers_the_share_that_is_in_use() {
    let mut estimator = standing(FairShare::Rate(6e6), [16e6, 8e6]);
    arrive(&mut estimator, 10, 4e6, 0);
    estimator.overflow();
    assert!(near(estimator.fair_share().rate().unwrap(), 0.99 * 4e6));
    (0..100).for_each(|_| estimator.overflow());
    assert!(
        near(estimator.fair_share().rate().unwrap(), 4e6 * libm::pow(0.99, 30.0)),
        "30 times in a window"
    );
}

#[test]
fn target_and_windows_are_shorter_in_front_of_a_fast_link() {
    let params = FairShareParams::from_args(&EntryArgs::defaults(&CSFQ)).unwrap();
    // The target and K_c in microseconds, with a mean round-trip time of that many milliseconds and a fair share of 1 Mb/s.
    let of = |mbit, rtt| {
        let mut estimator = FairShareEstimator::new(&params, Rate::from_mbit(mbit));
        estimator.fs = FairShare::of(1e6);
        estimator.set_rtts(&[Span::from_millis(rtt), Span::ZERO, Span::from_millis(rtt)]);
        let target = estimator.by_delay.as_ref().unwrap().target;
        [libm::round(1e6 * target) as u64, estimator.k_c.as_nanos() / 1_000]
    };
    assert_eq!([of(96, 0), of(96, 2), of(1, 2)], [[20_000, 100_000], [20_000, 100_000], [20_000, 480_000]]);
    // 240 kB of 1 Gb/s are 1.92 ms.
    assert_eq!([of(1_000, 0), of(1_000, 2), of(10_000, 0)], [[1_920, 9_600], [1_920, 9_600], [192, 960]]);
    // Flows over 10 ms need some of it in queue, and those over 80 ms all.
    assert_eq!([of(1_000, 10), of(1_000, 80)], [[5_000, 25_000], [20_000, 100_000]]);
}

#[test]
fn few_flows_over_short_paths_have_a_short_target() {
    let params = FairShareParams::from_args(&EntryArgs::defaults(&CSFQ)).unwrap();
    // The target in microseconds on 100 Mb/s with round-trip times of 1.2 ms.
    let of = |change: &dyn Fn(&mut FairShareEstimator)| {
        let mut estimator = FairShareEstimator::new(&params, Rate::from_mbit(100));
        change(&mut estimator);
        estimator.set_rtts(&[Span::from_micros(1_200)]);
        libm::round(1e6 * estimator.by_delay.as_ref().unwrap().target) as u64
    };
    // 0.6 ms, and 48 kbit at 100, 50 and 5 Mb/s; at 1 Mb/s that is longer than 240 kB of the link take.
    assert_eq!(
        [of(&|_| ()), of(&|e| e.fs = FairShare::of(50e6)), of(&|e| e.fs = FairShare::of(5e6))],
        [1_080, 1_560, 10_200]
    );
    assert_eq!(of(&|e| e.fs = FairShare::of(1e6)), 19_200);
    assert_eq!(
        of(&|e| (e.fs, e.smallest_weight) = (FairShare::of(50e6), 0.5)),
        2_520,
        "a flow of weight 1/2 has half"
    );
    let customers = |e: &mut FairShareEstimator| {
        e.fs = FairShare::of(50e6);
        for rate in [20e6, 10e6, 40e6] {
            e.note_flows(rate);
        }
    };
    assert_eq!(of(&customers), 5_400, "flows of customers count");
}

#[test]
fn a_burst_may_pass_below_twice_the_target() {
    let estimator = standing(FairShare::Unknown, [C, C]);
    let room = [0, 10_000, 20_000, 40_000, 80_000].map(|bytes| estimator.room_at(Bytes::new(bytes)));
    assert_eq!(room, [1.0, 0.75, 0.5, 0.0, 0.0]);
}
