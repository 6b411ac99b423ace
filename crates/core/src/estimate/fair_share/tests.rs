//! Worked numbers for each equation and each reading.

use super::*;
use crate::aqm::csfq::{CSFQ, MCSFQ};
use crate::param::EntryArgs;
use crate::units::{Ratio, Span};

const C: f64 = 8e6;
const SIZE: Bytes = Bytes::new(1_000);

fn csfq() -> FairShareParams {
    FairShareParams::from_args(&EntryArgs::of_paper(&CSFQ)).unwrap()
}

fn mcsfq() -> FairShareParams {
    FairShareParams::from_args(&EntryArgs::of_paper(&MCSFQ)).unwrap()
}

/// An estimator with these averages and this share since time zero, on a link of 8 Mb/s.
fn standing(params: &FairShareParams, congested: bool, fs: FairShare, rates: [f64; 3]) -> FairShareEstimator {
    let rates = Exponentials::new(params.k_alpha, rates, Time::ZERO);
    let new = FairShareEstimator::new(params, Rate::from_mbit(8));
    FairShareEstimator { congested, fs, rates, ..new }
}

fn busy(label: f64, dropped: bool) -> Arrival {
    let label = if label > 0.0 { RateLabel::Excess(label) } else { RateLabel::Guaranteed };
    Arrival { size: SIZE, label, dropped, calm: false, part: 1.0 }
}

/// Updates with accepted packets at these microseconds.
fn arrive(estimator: &mut FairShareEstimator, arrivals: &[(u64, f64)]) -> FairShare {
    for &(us, label) in arrivals {
        estimator.update(Time::from_nanos(1_000 * us), busy(label, false));
    }
    estimator.fs
}

fn rate(share: FairShare) -> f64 {
    share.rate().unwrap()
}

#[test]
fn unknown_nothing_and_guaranteed_are_three_things() {
    use FairShare::{Nothing, Rate, Unknown};
    let excess = RateLabel::Excess(4e6);
    assert_eq!([Unknown, Nothing, Rate(1e6)].map(|share| share.drop_probability(excess)), [0.0, 1.0, 0.75]);
    let guaranteed = RateLabel::Guaranteed;
    assert_eq!([Unknown, Nothing, Rate(1e6)].map(|share| share.drop_probability(guaranteed)), [0.0; 3]);
    assert_eq!(Rate(1e6).drop_probability(RateLabel::Excess(0.5e6)), 0.0);
    assert_eq!(
        (FairShare::of(0.0), Unknown.scaled(0.5), Rate(2.0).scaled(0.5)),
        (Nothing, Unknown, Rate(1.0))
    );
}

#[test]
fn a_congested_link_scales_its_share_by_what_was_accepted() {
    // K_α = 100 ms, 8000 bit after 0.5 ms: w = 1 - e^-0.005 = 0.00498752. AR = 16e6 stays; accepted,
    // FR = 12e6 + w·4e6 = 12019950, so FS = 2e6·8e6/12019950 = 1331120.
    let params = FairShareParams { k_c: Span::from_micros(500), ..csfq() };
    let fresh = || standing(&params, true, FairShare::Rate(2e6), [16e6, 12e6, 0.0]);
    let mut estimator = fresh();
    let share = arrive(&mut estimator, &[(500, 1.5e6)]);
    assert!((rate(share) - 1_331_120.0).abs() < 1.0, "{share:?}");
    // K_c has not passed yet: the window starts at 0.5 ms.
    assert_eq!(arrive(&mut estimator, &[(900, 1.0)]), share);
    // Dropped: FR = (1 - w)·12e6 = 11940150, FS = 2e6·8e6/11940150 = 1340017; where FR averages accepted
    // packets only it stays at 12e6: 1333333.
    for (accepted, expected) in [(AcceptedRate::Arrivals, 1_340_017.0), (AcceptedRate::Accepted, 1_333_333.0)]
    {
        let mut estimator = fresh();
        if accepted == AcceptedRate::Accepted {
            let average = Exponentials::new(params.k_alpha, [12e6], Time::ZERO);
            estimator.accepted = Some(average);
        }
        estimator.update(Time::from_nanos(500_000), busy(9e6, true));
        assert!((rate(estimator.fs) - expected).abs() < 1.0, "{estimator:?}");
    }
}

#[test]
fn a_share_never_exceeds_the_link_for_the_smallest_weight() {
    for (weight, most) in [(1.0, C), (4.0, C), (0.5, 2.0 * C)] {
        // If hardly any packet is accepted, C / FR is large; FR is taken as at least C / 1000.
        let params = FairShareParams { k_c: Span::from_nanos(1), ..csfq() };
        let mut estimator = standing(&params, true, FairShare::Rate(7e6), [16e6, 1e3, 0.0]);
        estimator.note_weight(Weight::new(weight).unwrap());
        estimator.update(Time::from_nanos(1), busy(1.0, true));
        assert_eq!(estimator.fs, FairShare::Rate(most));
    }
}

#[test]
fn the_share_of_a_part_follows_the_part_and_is_bounded_by_the_link() {
    // FS = C, then the capacity is halved: FS = 4e6, and of the 6e6 that passed 3e6 would have.
    let held = |congested, fs| standing(&csfq(), congested, FairShare::Rate(fs), [99e6, 6e6, 0.0]);
    let mut estimator = held(true, C);
    estimator.set_part(C / 2.0, C);
    assert_eq!((estimator.fs, estimator.accepted_rate()), (FairShare::Rate(4e6), 3e6));
    assert_eq!(estimator.rates.last_rates()[0], 99e6, "what arrives is what it is");
    // K_c later: w = 1 - e^-1 = 0.632121, one packet of 8000 bits in 100 ms, F = w·80e3 + (1 - w)·3e6 =
    // 1154209 and FS = 4e6·4e6/1154209 = 13.9e6: bounded by the link, not by the part.
    assert_eq!(arrive(&mut estimator, &[(100_000, 1e6)]), FairShare::Rate(C));
    // A flow that is not limited keeps its share, and a part of zero leaves the share as it is.
    let mut calm = held(false, 2e6);
    calm.set_part(C / 2.0, C);
    assert_eq!((calm.fs, calm.accepted_rate()), (FairShare::Rate(2e6), 6e6));
    let mut stopped = held(true, 2e6);
    for c in [0.0, C] {
        stopped.set_part(c, C);
    }
    assert_eq!(stopped.fs, FairShare::Rate(2e6));
}

#[test]
fn csfq_takes_the_largest_label_of_a_window_and_mcsfq_never_less_than_it_had() {
    let windows = |params: FairShareParams| {
        let mut estimator = standing(&params, true, FairShare::Rate(3e6), [1e6, 1e6, 0.0]);
        // The end of congestion starts a window, of which the first packet is not part.
        arrive(&mut estimator, &[(1_000, 2.5e6)]);
        assert!(!estimator.congested);
        let before = arrive(&mut estimator, &[(31_000, 1e6), (61_000, 2e6), (91_000, 1.5e6)]);
        assert_eq!(before, FairShare::Rate(3e6), "until K_c has passed");
        // A lone packet in a window determines the share. A larger label raises both.
        [(101_000, 0.5e6), (201_000, 0.7e6), (301_000, 4e6)].map(|at| rate(arrive(&mut estimator, &[at])))
    };
    assert_eq!(windows(csfq()), [2e6, 0.7e6, 4e6]);
    assert_eq!(windows(mcsfq()), [3e6, 3e6, 4e6]);
    // Half of the share each window, as in the extension: 1.5 against 2; 1 against 0.7; 4.
    assert_eq!(windows(FairShareParams { decay: Ratio::clamped(0.5), ..mcsfq() }), [2e6, 1e6, 4e6]);
}

#[test]
fn a_window_that_saw_only_its_own_end_is_no_deadlock() {
    let lone = |own_label| {
        let params = FairShareParams { own_label, below_threshold: BelowThreshold::Uncongested, ..csfq() };
        let mut estimator = standing(&params, false, FairShare::Rate(3e6), [0.0; 3]);
        arrive(&mut estimator, &[(1_000_000, 0.7e6), (2_000_000, 0.7e6)])
    };
    assert_eq!((lone(true), lone(false)), (FairShare::Rate(0.7e6), FairShare::Nothing));
}

#[test]
fn a_label_is_noted_as_it_came_or_as_it_left() {
    let noted = |noted_label| {
        let params = FairShareParams { noted_label, below_threshold: BelowThreshold::Uncongested, ..csfq() };
        let mut estimator = standing(&params, false, FairShare::Rate(1e6), [0.0; 3]);
        arrive(&mut estimator, &[(1_000, 5e6), (200_000, 0.5e6)])
    };
    assert_eq!(
        (noted(NotedLabel::Original), noted(NotedLabel::Relabelled)),
        (FairShare::Rate(5e6), FairShare::Rate(1e6))
    );
    // A dropped packet keeps its label. Otherwise a share of 1 bit/s would never grow.
    let params = FairShareParams {
        noted_label: NotedLabel::Relabelled,
        below_threshold: BelowThreshold::Uncongested,
        ..csfq()
    };
    let mut estimator = standing(&params, false, FairShare::Rate(1.0), [0.0; 3]);
    estimator.update(Time::from_millis(1), busy(5e6, true));
    assert_eq!(arrive(&mut estimator, &[(200_000, 0.5e6)]), FairShare::Rate(5e6));
}

#[test]
fn guaranteed_traffic_alone_takes_the_share_only_from_csfq() {
    // CSFQ's window contains no excess label: no excess is allowed until one comes, and its own window ends.
    let after = |params: FairShareParams| {
        let params = FairShareParams { below_threshold: BelowThreshold::Uncongested, ..params };
        let mut estimator = standing(&params, false, FairShare::Rate(1e6), [0.0; 3]);
        let idle = arrive(&mut estimator, &[(1_000, 0.0), (200_000, 0.0)]);
        (idle, arrive(&mut estimator, &[(201_000, 2e6), (301_000, 0.0)]))
    };
    assert_eq!(after(csfq()), (FairShare::Nothing, FairShare::Rate(2e6)));
    assert_eq!(after(mcsfq()), (FairShare::Rate(1e6), FairShare::Rate(2e6)));
    // In the reading of 1998 an absent share is an unknown one.
    let mut estimator = standing(&csfq(), false, FairShare::Rate(1e6), [0.0; 3]);
    assert_eq!(arrive(&mut estimator, &[(1_000, 0.0), (200_000, 0.0)]), FairShare::Unknown);
}

#[test]
fn what_is_guaranteed_is_set_aside() {
    // G = 2e6: 6 Mb/s for excess packets. 5e6 of them are no congestion, 7e6 are.
    let overloaded = |aggregate_guarantee, ar| {
        let params = FairShareParams { aggregate_guarantee, ..mcsfq() };
        let estimator = standing(&params, false, FairShare::Rate(1e6), [ar, ar, 2e6]);
        (estimator.is_overloaded(false), estimator.available())
    };
    assert_eq!([5e6, 7e6].map(|ar| overloaded(true, ar)), [(false, 6e6), (true, 6e6)]);
    assert_eq!(overloaded(false, 7e6), (false, 8e6));
    // A guarantee above the link rate leaves a hundredth for excess.
    assert_eq!(standing(&mcsfq(), false, FairShare::Unknown, [0.0, 0.0, 9e6]).available(), 8e4);
    // A guaranteed packet counts in G, and as 0 in AR and FR: w = 1 - e^-0.1 = 0.0951626 after 10 ms.
    let mut estimator = standing(&mcsfq(), false, FairShare::Rate(1e6), [1e6, 1e6, 1e6]);
    estimator.update(Time::from_millis(10), busy(0.0, false));
    let [ar, fr, g] = estimator.rates.last_rates();
    assert!((ar - 904_837.4).abs() < 0.1 && fr == ar && (g - 980_967.5).abs() < 0.1, "{ar} {fr} {g}");
}

#[test]
fn a_short_queue_keeps_a_share_unknown_or_a_link_uncongested() {
    let calm = |label| Arrival { calm: true, ..busy(label, false) };
    // 1998: unknown until the queue grows, then the largest label so far, or half the link.
    let mut estimator = FairShareEstimator::new(&csfq(), Rate::from_mbit(8));
    for (us, label) in [(1, 3e6), (2, 5e6), (3, 1e6)] {
        estimator.update(Time::from_nanos(1_000 * us), calm(label));
        assert_eq!(estimator.fs, FairShare::Unknown);
    }
    assert_eq!(arrive(&mut estimator, &[(4, 2e6)]), FairShare::Rate(5e6));
    let mut estimator = FairShareEstimator::new(&csfq(), Rate::from_mbit(8));
    assert_eq!(arrive(&mut estimator, &[(1, 0.0)]), FairShare::Rate(C / 2.0));
    // 2002: no congestion begins, whatever arrives; congestion that has begun continues.
    for (congested, expected) in [(false, false), (true, true)] {
        let mut estimator = standing(&mcsfq(), congested, FairShare::Rate(1e6), [16e6, 16e6, 0.0]);
        estimator.update(Time::from_nanos(1_000), calm(2e6));
        assert_eq!(estimator.congested, expected);
    }
}

#[test]
fn an_overflow_takes_one_percent_thirty_times_in_a_period() {
    let mut estimator = standing(&csfq(), true, FairShare::Rate(4e6), [16e6, 8e6, 0.0]);
    for i in 1..=40 {
        estimator.overflow();
        let expected = 4e6 * 0.99_f64.powi(i.min(30));
        assert!((rate(estimator.fs) / expected - 1.0).abs() < 1e-12, "after {i}");
    }
    // A new period allows thirty again.
    estimator.congested = false;
    arrive(&mut estimator, &[(0, 1.0)]);
    assert_eq!((estimator.decreases, estimator.periods), (30, 1));
}

#[test]
fn the_onset_of_congestion_forgets_a_stale_share() {
    // An old share of 8e6; in the last window no flow sent more than 2e6, and 12e6 arrive on 8e6.
    let onset = |onset| {
        let params = FairShareParams { onset, ..mcsfq() };
        let mut estimator = standing(&params, false, FairShare::Rate(8e6), [12e6, 12e6, 0.0]);
        estimator.before = 2e6;
        arrive(&mut estimator, &[(0, 1e6)])
    };
    // 2e6·8/12.
    assert!((rate(onset(true)) - 2e6 / 1.5).abs() < 1.0);
    assert_eq!(onset(false), FairShare::Rate(8e6));
}

#[test]
fn the_onset_of_congestion_forgets_old_labels_of_an_unknown_share() {
    let onset = |onset| {
        let params = FairShareParams { onset, ..mcsfq() };
        let mut estimator = standing(&params, true, FairShare::Unknown, [12e6, 12e6, 0.0]);
        for (ms, label) in [(1, 8e6), (101, 2e6), (202, 1e6)] {
            estimator.update(Time::from_millis(ms), Arrival { calm: true, ..busy(label, false) });
        }
        // The averages have fallen: if the arrivals fit, nothing is scaled.
        arrive(&mut estimator, &[(203_000, 0.5e6)])
    };
    // The window before ended with the third packet, whose label is the last that counts.
    assert_eq!((onset(false), onset(true)), (FairShare::Rate(8e6), FairShare::Rate(1e6)));
}

#[test]
fn load_that_crosses_the_link_rate_faster_than_windows_is_counted() {
    // 50 packets at twice the link's rate, then an equal pause: AR crosses C each time, every crossing starts
    // a new window, and the share never changes. The counter shows the cause.
    let mut estimator = standing(&csfq(), false, FairShare::Rate(1e6), [C, C, 0.0]);
    let mut us = 0;
    for _ in 0..100 {
        for _ in 0..50 {
            us += 500;
            arrive(&mut estimator, &[(us, 2e6)]);
        }
        us += 25_000;
    }
    // 100 waves of 50 ms in 5 s, which are 50 windows.
    assert!((95..=100).contains(&estimator.periods), "{estimator:?}");
    assert_eq!(estimator.fs, FairShare::Rate(1e6));
}

#[test]
fn a_link_that_stood_still_is_not_left_without_a_share_by_the_onset_either() {
    let params = FairShareParams { onset: true, ..mcsfq() };
    let mut estimator = standing(&params, false, FairShare::Rate(1e6), [16e6, 16e6, 0.0]);
    estimator.set_link_rate(Rate::ZERO);
    assert_eq!(arrive(&mut estimator, &[(500, 1e6)]), FairShare::Unknown);
}

#[test]
fn a_link_that_stood_still_starts_again_with_an_unknown_share() {
    let params = FairShareParams { k_c: Span::from_nanos(1), ..csfq() };
    let mut estimator = standing(&params, true, FairShare::Rate(1e6), [16e6, 8e6, 0.0]);
    estimator.set_link_rate(Rate::ZERO);
    assert_eq!(arrive(&mut estimator, &[(500, 1e6)]), FairShare::Unknown);
}
