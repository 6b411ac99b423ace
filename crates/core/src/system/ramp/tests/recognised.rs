//! The recogniser: flows without a class on 10 Mb/s, beside a flood of 20 Mb/s.

use super::*;

/// The rate of flow 0 in Mb/s, and the part of the samples from `from` on, in ms, in which it is real-rate. The
/// first `declared` flows are declared.
fn judged(pairs: &[&str], declared: u32, source: Source, from: u64, until: u64) -> (f64, f64) {
    let sources = alloc::vec![source, cbr(1, 1_400, &[(0, 20.0)])];
    let mut link = Link::new(pairs, declared, sources);
    link.run(until);
    let samples = &link.shares[(from / 10) as usize..];
    let real_rate = samples.iter().filter(|flows| flows.first().is_some_and(|flow| flow.0 > 0.0)).count();
    (link.sent[0] as f64 * 8e-3 / until as f64, real_rate as f64 / samples.len() as f64)
}

const ON: &[&str] = &["preset=default"];

#[test]
fn a_call_is_recognised_within_three_seconds() {
    for (size, mbit) in [(200, 0.08), (60, 0.024), (600, 1.0), (1_000, 3.0)] {
        let (rate, part) = judged(ON, 0, cbr(0, size, &[(0, mbit)]), 3_000, 10_000);
        assert!(part == 1.0 && is_near(rate, mbit, 0.1), "{size} B, {mbit} Mb/s: {rate}, {part}");
    }
    let off = judged(&["preset=default", "recognise=false"], 0, cbr(0, 200, &[(0, 0.08)]), 3_000, 10_000);
    assert_eq!(off.1, 0.0);
}

#[test]
fn bulk_and_floods_are_not_recognised() {
    for window in [2, 4, 20, 100] {
        assert_eq!(judged(ON, 0, windowed(0, 1_500, window), 0, 20_000).1, 0.0, "window {window}");
    }
    // Segments that fill the path's MTU, below the share: paced by acknowledgements as far as RAMP can see.
    assert_eq!(judged(ON, 0, cbr(0, 1_500, &[(0, 2.0)]), 0, 20_000).1, 0.0);
    // Above the share.
    assert_eq!(judged(ON, 0, cbr(0, 200, &[(0, 8.0)]), 0, 20_000).1, 0.0);
}

#[test]
fn a_declared_flow_that_leaves_a_standing_queue_is_greedy() {
    let (rate, part) = judged(ON, 1, windowed(0, 1_500, 20), 1_000, 20_000);
    assert!(part < 1.0 && rate < 5.5, "{rate} {part}");
    let (trusted, _) = judged(&["preset=default", "recognise=false"], 1, windowed(0, 1_500, 20), 0, 20_000);
    assert!(trusted > 9.0, "{trusted}");
    assert_eq!(judged(ON, 1, cbr(0, 1_000, &[(0, 3.0)]), 1_000, 10_000).1, 1.0);
}

#[test]
fn a_liar_gets_its_share_and_a_quarter_at_most() {
    // At its share of 5 Mb/s, a quarter above it, and twice its share after it was recognised.
    for (before, after) in [(4.9, 4.9), (4.0, 6.2), (4.0, 10.0), (0.5, 20.0)] {
        let liar = cbr(0, 1_000, &[(0, before), (5_000, after)]);
        let (rate, _) = judged(ON, 0, liar, 0, 30_000);
        assert!(rate < 5.0 * 1.25, "{before} then {after} Mb/s: {rate}");
    }
    let liar = cbr(0, 1_000, &[(0, 4.0), (5_000, 10.0)]);
    assert_eq!(judged(ON, 0, liar, 7_000, 30_000).1, 0.0);
    // Good for 5 s, greedy for 1 s, and so on: it is on probation for longer each time.
    let flips: Vec<_> = (0..20).flat_map(|i| [(i * 6_000, 4.0), (i * 6_000 + 5_000, 20.0)]).collect();
    let (rate, part) = judged(ON, 0, cbr(0, 1_000, &flips), 60_000, 120_000);
    assert!(part < 0.3 && rate < 5.0, "{rate} {part}");
}
