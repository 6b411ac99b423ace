use super::*;

use std::vec::Vec;

const SIZE: Bytes = Bytes::new(1_000);

fn marked(marking: Marking) -> RateLabels {
    RateLabels::new(&RateLabelParams { marking, ..labels_params() }, Stream::new(1, "marking"))
}

fn labels() -> RateLabels {
    marked(Marking::Probabilistic)
}

/// The rate of a label that is not covered by a guarantee.
fn excess(label: Option<RateLabel>) -> f64 {
    match label {
        Some(RateLabel::Excess(rate)) => rate,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_constant_rate_is_read_within_two_percent() {
    let mut labels = labels();
    for i in 1..=1_000 {
        let label = excess(labels.label(Time::from_millis(4 * i), FlowId(3), SIZE));
        // 8000 bit every 4 ms are 2 Mb/s. After 0.4 s the start weighs e^-4 = 1.8 %.
        assert!(i < 100 || (label / 2e6 - 1.0).abs() < 0.02, "{label} at packet {i}");
    }
    assert_eq!(labels.flows(), 4, "numbers are dense: one estimate for each up to the largest");
}

#[test]
fn packets_at_one_instant_read_as_their_mean_rate() {
    let mut labels = labels();
    let mut read = Vec::new();
    for i in 1..=500 {
        for _ in 0..5 {
            read.extend(labels.label(Time::from_millis(20 * i), FlowId(0), SIZE));
        }
    }
    // Five packets of 8000 bit every 20 ms are 2 Mb/s, from an infinitely fast link.
    for &label in &read[500..] {
        let label = excess(Some(label));
        assert!((label / 2e6 - 1.0).abs() < 0.05, "{label}");
    }
}

#[test]
fn the_first_packet_has_a_small_label_and_none_at_the_very_start() {
    assert_eq!(labels().label(Time::ZERO, FlowId(0), SIZE), None);
    // (1 - e^-100) 8000 / 10 s = 800.
    let label = excess(labels().label(Time::from_secs(10), FlowId(0), SIZE));
    assert!((label - 800.0).abs() < 1e-9, "{label}");
    // 0.8 would be written as 0, which means guaranteed.
    let label = labels().label(Time::from_secs(10_000), FlowId(0), SIZE);
    assert_eq!(label, Some(RateLabel::Excess(1.0)));
    assert_eq!((RateLabel::Excess(1.0).label().value(), RateLabel::Guaranteed.label()), (1.0, Label::ZERO));
}

#[test]
fn a_label_is_the_rate_for_a_weight_of_one() {
    let mut labels = labels();
    labels.set_weight(FlowId(2), Weight::new(4.0).unwrap());
    labels.set_weight(FlowId(0), Weight::new(0.5).unwrap());
    let read = [0, 1, 2, 3].map(|flow| excess(labels.label(Time::from_secs(1), FlowId(flow), SIZE)));
    // 8000 (1 - e^-10) = 7999.64, to half of 2^-12.
    for (label, rate) in read.into_iter().zip([15_999.27, 7_999.64, 1_999.91, 7_999.64]) {
        assert!((label / rate - 1.0).abs() < 1.3e-4, "{read:?}");
    }
}

#[test]
fn narrow_labels_are_off_by_a_sixteenth_at_most() {
    let params = RateLabelParams { bits: 8, ..labels_params() };
    let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
    for i in 1..=500 {
        let label = excess(labels.label(Time::from_millis(4 * i), FlowId(0), SIZE));
        assert!(i < 100 || (label / 2e6 - 1.0).abs() < 0.0625 + 0.02, "{label}");
    }
}

fn labels_params() -> RateLabelParams {
    RateLabelParams {
        k: Span::from_millis(100),
        credit: Span::ZERO,
        marking: Marking::Probabilistic,
        catch_up: 2.0,
        bucket: None,
        bits: 17,
    }
}

#[test]
fn either_marking_covers_the_guaranteed_rate_and_labels_the_excess() {
    for marking in [Marking::Probabilistic, Marking::Deterministic, Marking::Debt] {
        let mut labels = marked(marking);
        labels.set_guarantee(FlowId(0), Rate::from_kbit(500), Span::from_millis(100));
        let (mut covered, mut sum, mut beyond) = (0, 0.0, 0);
        for i in 1..=25_000 {
            match labels.label(Time::from_millis(4 * i), FlowId(0), SIZE) {
                Some(RateLabel::Guaranteed) => covered += 1,
                label if i > 1_000 => (sum, beyond) = (sum + excess(label), beyond + 1),
                _ => (),
            }
        }
        // 2 Mb/s, a quarter of it guaranteed: 6250 of 25000 packets, and with random marking 4 sigma = 4
        // sqrt(0.25·0.75·25000) = 274. The first packets, whose rate is still unknown, are covered.
        assert!(f64::from(covered - 6_250).abs() < 274.0 + 30.0, "{marking:?} covers {covered}");
        // The excess is 1.5 Mb/s; its gaps vary, and a mean over K of 25 packets has a bias of a few 1/25.
        let mean = sum / f64::from(beyond);
        assert!((mean / 1.5e6 - 1.0).abs() < 0.06, "{marking:?} labels {mean}");
    }
}

#[test]
fn a_flow_within_its_guarantee_is_covered_entirely() {
    for marking in [Marking::Probabilistic, Marking::Deterministic, Marking::Debt] {
        let mut labels = marked(marking);
        labels.set_guarantee(FlowId(0), Rate::from_kbit(2_040), Span::ZERO);
        let mut covered = |i: u64| labels.label(Time::from_millis(4 * i), FlowId(0), SIZE);
        assert!((1..=10_000).all(|i| covered(i) == Some(RateLabel::Guaranteed)), "{marking:?}");
    }
}

#[test]
fn a_bucket_covers_a_burst_as_deep_as_it_is() {
    let covered = |bucket, rtt| {
        let params = RateLabelParams { marking: Marking::Deterministic, bucket, ..labels_params() };
        let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
        labels.set_guarantee(FlowId(0), Rate::from_kbit(800), rtt);
        let label = |_| labels.label(Time::from_secs(1), FlowId(0), SIZE);
        (0..50).map(label).filter(|label| *label == Some(RateLabel::Guaranteed)).count()
    };
    // Two packets of 1500 B hold three of 1000 B; 100 ms at 800 kb/s bring 10000 B more.
    assert_eq!(covered(None, Span::ZERO), 3);
    assert_eq!(covered(None, Span::from_millis(100)), 13);
    assert_eq!(covered(Some(Bytes::new(7_000)), Span::from_millis(100)), 7);
}

/// The bits covered in each second, guaranteed and as debt, for a flow with 800 kb/s over 50 ms that sends a
/// packet, is silent for `idle` seconds and then sends 8 Mb/s.
fn covered_after(idle: u64, catch_up: f64) -> Vec<[f64; 2]> {
    let params = RateLabelParams { marking: Marking::Debt, catch_up, ..labels_params() };
    let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
    labels.set_guarantee(FlowId(0), Rate::from_kbit(800), Span::from_millis(50));
    labels.label(Time::ZERO, FlowId(0), SIZE);
    let mut second = |s: u64| {
        let mut covered = [0.0; 2];
        for i in 0..1_000 {
            match labels.label(Time::from_millis(1_000 * (idle + s) + i), FlowId(0), SIZE) {
                Some(RateLabel::Guaranteed) => covered[0] += SIZE.bits() as f64,
                Some(RateLabel::Excess(1.0)) => covered[1] += SIZE.bits() as f64,
                _ => (),
            }
        }
        covered
    };
    (0..20).map(&mut second).collect()
}

#[test]
fn what_a_flow_did_not_use_is_covered_later_at_no_more_than_the_peak() {
    // The bucket: 24 kbit and 50 ms of 800 kb/s, 40 kbit. With 250 ms of queueing W is 240 kbit, the deficit
    // 240000^2 / 108000 = 533 kbit.
    let near = |[now, debt]: [f64; 2], expected: [f64; 2]| {
        (now - expected[0]).abs() <= 16e3 && (debt - expected[1]).abs() <= 16e3
    };
    let covered = covered_after(100, 2.0);
    assert!(near(covered[0], [864e3, 533e3]), "{covered:?}");
    assert!(covered[1..].iter().all(|&bits| near(bits, [800e3, 0.0])), "{covered:?}");
    // At 1.25 times: 200 at once, for 250 ms, and 200 a second, until 533 are spent.
    let slow = covered_after(100, 1.25);
    assert!(near(slow[0], [864e3, 400e3]) && near(slow[1], [800e3, 133e3]), "{slow:?}");
    assert!(near(slow[19], [800e3, 0.0]), "{slow:?}");
    // The idle time does not matter, and no debt predates the start.
    assert!(near(covered_after(10_000, 2.0)[0], covered[0]));
    assert!(near(covered_after(0, 2.0)[0], [864e3, 0.0]));
}

#[test]
fn a_flood_gains_nothing_by_debt() {
    for catch_up in [1.0, 2.0, 10.0] {
        let covered: f64 = covered_after(0, catch_up).iter().flatten().sum();
        assert!(covered <= 20.0 * 0.8e6 + 64e3, "{catch_up} {covered}");
    }
}

#[test]
fn the_debt_is_bounded_in_time() {
    // 1 Gb/s over 10.25 s would give a deficit of 9.7e14 bits.
    assert_eq!(behind(Rate::from_mbit(1_000), Span::from_secs(10)), 30e9);
}

#[test]
fn a_guarantee_that_is_set_on_a_running_flow_owes_nothing_for_the_time_before() {
    // 1 Mb/s from 0 s on, 0.8 of it guaranteed from 100 s on: if the first 100 s counted, all would be
    // covered.
    let mut labels = marked(Marking::Debt);
    let covered: u32 = (0..12_500)
        .map(|i| {
            if i == 12_500 - 1_250 {
                labels.set_guarantee(FlowId(0), Rate::from_kbit(800), Span::from_millis(500));
            }
            let label = labels.label(Time::from_millis(8 * (i + 1)), FlowId(0), SIZE).unwrap();
            u32::from(matches!(label, RateLabel::Guaranteed | RateLabel::Excess(1.0)))
        })
        .sum();
    // 10 s of 0.8 Mb/s in packets of 8000 bits, and a bucket of 424,000 bits that starts full.
    assert!((1_000..=1_060).contains(&covered), "{covered}");
}

#[test]
fn a_guarantee_of_any_size_is_taken() {
    let mut labels = labels();
    labels.set_guarantee(FlowId(0), Rate::from_bit(u64::MAX), Span::MAX);
    assert_eq!(labels.label(Time::from_secs(1), FlowId(0), SIZE), Some(RateLabel::Guaranteed));
}

#[test]
fn a_guarantee_that_is_taken_back_covers_nothing() {
    let mut labels = labels();
    labels.set_guarantee(FlowId(0), Rate::from_mbit(1_000), Span::ZERO);
    let at = |labels: &mut RateLabels, s| labels.label(Time::from_secs(s), FlowId(0), SIZE);
    assert_eq!(at(&mut labels, 1), Some(RateLabel::Guaranteed));
    labels.set_guarantee(FlowId(0), Rate::ZERO, Span::ZERO);
    assert!(excess(at(&mut labels, 2)) > 0.0);
}

#[test]
fn a_guarantee_that_changes_forgets_nothing_of_the_excess() {
    for marking in [Marking::Probabilistic, Marking::Deterministic] {
        let mut labels = marked(marking);
        let mut clock = 0;
        // The mean excess that the labels show over ten seconds of 2 Mb/s, including the first label.
        let mut excesses = |labels: &mut RateLabels| {
            let mut read = Vec::new();
            for _ in 0..2_500 {
                clock += 4;
                let label = labels.label(Time::from_millis(clock), FlowId(0), SIZE);
                if let Some(RateLabel::Excess(rate)) = label {
                    read.push(rate);
                }
            }
            (read[0], read.iter().sum::<f64>() / read.len() as f64)
        };
        excesses(&mut labels);
        // Until now all of the 2 Mb/s was excess, then 1.5, then 1. A label that started from zero would be
        // some 8000 bits over the seconds since the start.
        labels.set_guarantee(FlowId(0), Rate::from_kbit(500), Span::ZERO);
        let (first, mean) = excesses(&mut labels);
        assert!(first > 1.5e6 && (mean / 1.5e6 - 1.0).abs() < 0.1, "{marking:?} {first} {mean}");
        labels.set_guarantee(FlowId(0), Rate::from_mbit(1), Span::ZERO);
        let (first, mean) = excesses(&mut labels);
        assert!(first > 0.8e6 && (mean / 1e6 - 1.0).abs() < 0.1, "{marking:?} {first} {mean}");
    }
}

#[test]
fn a_burst_is_labelled_with_the_mean_of_its_flow() {
    let params = RateLabelParams { credit: Span::from_secs(5), ..labels_params() };
    let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
    let mut clock = 0;
    // Sends packets of 8000 bits, one each `gap` µs, for `seconds`; returns the last label.
    let mut send = |labels: &mut RateLabels, gap: u64, seconds: u64| {
        let end = clock + 1_000_000 * seconds;
        let mut last = 0.0;
        while clock < end {
            clock += gap;
            last = excess(labels.label(Time::from_nanos(1_000 * clock), FlowId(0), SIZE));
        }
        last
    };
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.02;
    assert!(near(send(&mut labels, 8_000, 40), 1e6));
    // 1.25 Mb/s for a second do not exceed the mean, which moves by (1 - e^-0.2) of the difference.
    assert!(near(send(&mut labels, 6_400, 1), 1.045e6));
    // Ten times the rate is no burst of TCP: two thirds of it, until the mean has risen to that.
    let flood = send(&mut labels, 800, 1);
    assert!(near(flood, 10e6 / 1.5), "{flood}");
    assert!(near(send(&mut labels, 800, 30), 10e6));
    // A flow that sends less gets a smaller label at once.
    assert!(near(send(&mut labels, 8_000, 1), 1e6));
}

#[test]
fn a_burst_beyond_a_guarantee_is_labelled_with_its_mean() {
    let labels_with = |credit| {
        let params = RateLabelParams { credit, marking: Marking::Deterministic, ..labels_params() };
        let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
        labels.set_guarantee(FlowId(0), Rate::from_kbit(4_000), Span::ZERO);
        let mut now = Time::ZERO;
        // The last label after packets of 8000 bits at these rates, in kb/s, for so many seconds.
        let mut last = move |seconds: u64, rate: u64| {
            let sent = (0..seconds * rate / 8).filter_map(|_| {
                now += Span::from_micros(8_000_000 / rate);
                let label = labels.label(now, FlowId(0), SIZE);
                (label != Some(RateLabel::Guaranteed)).then(|| excess(label))
            });
            sent.last()
        };
        assert_eq!(last(10, 4_000), None);
        [last(1, 6_000).unwrap(), last(1, 12_000).unwrap()]
    };
    // 2 Mb/s beyond the guarantee for a second are 2 (1 - e^-0.2) = 0.36 on average over 5 s. Of 12 Mb/s, 12/1.5 - 4 are
    // no burst of a window.
    let [burst, flood] = labels_with(Span::from_secs(5));
    assert!((burst / 0.36e6 - 1.0).abs() < 0.1 && (flood / 4e6 - 1.0).abs() < 0.1, "{burst} {flood}");
    let [burst, flood] = labels_with(Span::ZERO);
    assert!((burst / 2e6 - 1.0).abs() < 0.1 && (flood / 8e6 - 1.0).abs() < 0.1, "{burst} {flood}");
}
