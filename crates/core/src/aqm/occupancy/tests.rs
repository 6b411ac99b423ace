//! Victims, thresholds and memory, by worked numbers.

use alloc::vec;

use super::*;
use crate::testing::packet;
use crate::units::Packets;

/// A buffer of 10 packets in which flow `i` holds `q[i]`.
fn buffer(thresholds: Thresholds, choice: Choice, rtts: &[Span], q: &[u32]) -> Occupancy {
    let mut occupancy = Occupancy::new("10p".parse().unwrap(), thresholds, choice, rtts);
    for (flow, &q) in (0..).zip(q) {
        for _ in 0..q {
            occupancy.add(&packet(0, flow, 100));
        }
    }
    occupancy
}

fn chosen(occupancy: &mut Occupancy, uniform: f64) -> Option<u32> {
    occupancy.choose(|| uniform).map(|flow| flow.0)
}

#[test]
fn among_equals_chance_finds_a_victim_that_holds_a_packet() {
    for choice in [Choice::Ratio, Choice::Difference] {
        let first = |seed| {
            let occupancy = buffer(Thresholds::Equal, choice, &[], &[1, 3, 0, 3]);
            let mut occupancy = occupancy.with_ties(Ties::Random, Stream::new(seed, "ties"));
            let first = chosen(&mut occupancy, 0.0).unwrap();
            occupancy.remove(FlowId(first), &packet(0, first, 100));
            // The other flow is the only longest one.
            assert_eq!((chosen(&mut occupancy, 0.0), occupancy.active()), (Some(4 - first), 3));
            first
        };
        // Each draw gives 1 or 3: 50 ± 5 of 100 each.
        let is_first = (0..100).map(first).filter(|&flow| flow == 1).count();
        assert!((30..=70).contains(&is_first), "{is_first}");
    }
    // Flow 0 has a share of 8, flow 1, which holds nothing, one of 2.
    let rtts = [80, 20].map(Span::from_millis);
    let mut occupancy = buffer(Thresholds::Rtt, Choice::Difference, &rtts, &[0, 0]);
    assert_eq!(chosen(&mut occupancy, 0.0), None);
    occupancy.add(&packet(0, 0, 100));
    assert_eq!(chosen(&mut occupancy, 0.0), Some(0));
}

#[test]
fn a_changed_weight_moves_every_threshold() {
    let mut occupancy = buffer(Thresholds::Weights, Choice::Uniform, &[], &[2, 4, 4]);
    let above = |occupancy: &mut Occupancy| [0.0, 0.9].map(|u| chosen(occupancy, u));
    // b = 10/3: 4 and 4 are above.
    assert_eq!(above(&mut occupancy), [Some(1), Some(2)]);
    // Weights 1, 1 and 3: b = 2, 2 and 6.
    assert!(occupancy.set_weight(FlowId(2), Weight::new(3.0).unwrap()));
    assert_eq!(above(&mut occupancy), [Some(1), Some(1)]);
    // A fourth flow with a weight of 1: b = 10/6, 10/6, 5 and 10/6.
    occupancy.add(&packet(0, 3, 100));
    assert_eq!(above(&mut occupancy), [Some(0), Some(1)]);
    assert!(!buffer(Thresholds::Equal, Choice::Ratio, &[], &[]).set_weight(FlowId(0), Weight::ONE));
}

#[test]
fn a_new_flow_and_a_weight_cost_no_rebuild_where_the_ratio_decides() {
    // For each choice the number of times that the index was rebuilt for 1,000 first-seen flows with weights
    // of 1 to 4, each with a packet and a victim.
    let rebuilds = |choice| {
        let mut occupancy = buffer(Thresholds::Weights, choice, &[], &[]);
        for flow in 0..1_000 {
            let weight = Weight::new(f64::from(1 + flow % 4)).unwrap();
            assert!(occupancy.set_weight(FlowId(flow), weight));
            occupancy.add(&packet(0, flow, 100));
            let victim = occupancy.choose(|| 0.5);
            if let Some(victim) = victim.filter(|_| occupancy.held().packets.get() > 10) {
                occupancy.remove(victim, &packet(0, victim.0, 100));
            }
            occupancy.set_limit(Limit::Packets(Packets::new(u64::from(10 + flow % 2))));
        }
        occupancy.rebuilds
    };
    assert_eq!([Choice::Ratio, Choice::Proportional].map(rebuilds), [1, 1]);
    // 1/Σ s is part of the key.
    assert_eq!([Choice::Difference, Choice::Uniform].map(rebuilds), [1_000, 1_000]);
}

#[test]
fn a_weight_moves_one_key_where_the_ratio_decides() {
    // 2, 4 and 3 packets: 4/1 is the largest; with a weight of 4 for flow 1, 3/1 is; with 0.5 for flow 0,
    // 2/0.5.
    let mut occupancy = buffer(Thresholds::Weights, Choice::Ratio, &[], &[2, 4, 3]);
    let mut victims = vec![chosen(&mut occupancy, 0.0)];
    for (flow, weight) in [(1, 4.0), (0, 0.5)] {
        assert!(occupancy.set_weight(FlowId(flow), Weight::new(weight).unwrap()));
        victims.push(chosen(&mut occupancy, 0.0));
    }
    assert_eq!((victims, occupancy.rebuilds), (vec![Some(1), Some(2), Some(0)], 1));
    // The unit of every key changes.
    occupancy.set_limit("1kB".parse().unwrap());
    chosen(&mut occupancy, 0.0);
    assert_eq!(occupancy.rebuilds, 2);
}

#[test]
fn packets_that_do_not_count_leave_the_order_of_the_rest() {
    // 2, 4 and 3 packets and weights of 0.1, 2 and 0.5. All count: 2/0.1. Without two each: 2/2 and 1/0.5.
    let victims = |spared, held: &[u32]| {
        let mut occupancy = buffer(Thresholds::Weights, Choice::Ratio, &[], held).sparing(spared);
        // Keys of equal weights come first, so that weights change them.
        chosen(&mut occupancy, 0.0);
        for (flow, weight) in [(0, 0.1), (1, 2.0), (2, 0.5)] {
            assert!(occupancy.set_weight(FlowId(flow), Weight::new(weight).unwrap()));
        }
        chosen(&mut occupancy, 0.0)
    };
    assert_eq!([0, 2].map(|spared| victims(spared, &[2, 4, 3])), [Some(0), Some(2)]);
    // None holds more: q/b decides.
    assert_eq!([0, 2].map(|spared| victims(spared, &[1, 2, 2])), [Some(0), Some(0)]);
    assert_eq!([0, 2].map(|spared| victims(spared, &[0, 2, 1])), [Some(2), Some(2)]);
}

#[test]
fn a_flow_of_unknown_round_trip_time_has_the_mean_of_the_known_and_all_unknown_are_equal() {
    // 10 and 30 ms, and 20 ms for flows 1 and 3: b = 10/8, 20/8, 30/8 and 20/8, which holds 3.
    let rtts = [10, 0, 30].map(Span::from_millis);
    let mut occupancy = buffer(Thresholds::Rtt, Choice::Uniform, &rtts, &[1, 2, 3, 3]);
    assert_eq!([0.0, 0.9].map(|u| chosen(&mut occupancy, u)), [Some(3), Some(3)]);
    let mut occupancy = buffer(Thresholds::Rtt, Choice::Ratio, &[], &[1, 2, 4, 3]);
    assert_eq!(chosen(&mut occupancy, 0.0), Some(2));
}

#[test]
fn round_trip_times_that_become_known_later_count_and_what_is_unknown_follows_them() {
    for choice in [Choice::Ratio, Choice::Difference] {
        // No round-trip time is known: the flow with most of 2, 5 and 3 packets.
        let mut occupancy = buffer(Thresholds::Rtt, choice, &[], &[2, 5, 3]);
        assert_eq!(chosen(&mut occupancy, 0.0), Some(1));
        // 10 ms for flow 0, 100 for flow 1 and their mean, 55, for flow 2: b = 0.61, 6.1 and 3.3.
        let ms = Span::from_millis;
        occupancy.set_unknown_rtt(ms(55));
        assert!(occupancy.set_rtt(FlowId(0), ms(10)) && occupancy.set_rtt(FlowId(1), ms(100)));
        assert_eq!(chosen(&mut occupancy, 0.0), Some(0), "{choice:?}");
        // Less than twice the mean before: flow 2 keeps 55 ms, and 3/55 is less than 5/90.
        occupancy.set_unknown_rtt(ms(109));
        assert!(occupancy.set_rtt(FlowId(0), ms(1_000)) && occupancy.set_rtt(FlowId(1), ms(90)));
        assert_eq!(occupancy.measure.share(2), 55e6);
        // The round-trip time is forgotten again.
        occupancy.set_unknown_rtt(ms(111));
        assert!(occupancy.set_rtt(FlowId(0), Span::ZERO));
        assert_eq!([0, 2, 7].map(|flow| occupancy.measure.share(flow)), [111e6; 3]);
        assert_eq!(chosen(&mut occupancy, 0.0), Some(1));
    }
}

#[test]
fn flows_beyond_the_bound_share_what_they_hold() {
    let mut occupancy = buffer(Thresholds::Equal, Choice::Ratio, &[], &[1]);
    // The number after the last slot shares the state of flow 0, on arrival and departure.
    let beyond = FlowId::SLOTS as u32;
    occupancy.add(&packet(0, beyond, 100));
    assert_eq!((occupancy.active(), chosen(&mut occupancy, 0.0)), (1, Some(0)));
    occupancy.remove(FlowId(beyond), &packet(0, beyond, 100));
    occupancy.remove(FlowId(0), &packet(0, 0, 100));
    assert_eq!((occupancy.active(), occupancy.flows.len()), (0, 1));
}

#[test]
fn a_flow_takes_at_most_the_memory_that_the_headers_say() {
    // Twice 16 bytes for the backlog, twice 8 for a weight, and: 23 for the tournament; for the sums twice
    // 21, a leaf, an inner place, a mark and a note; twice 12 for the order or twice 8 for the set.
    for (choice, has_weight, most) in [
        (Choice::Ratio, false, 55),
        (Choice::Ratio, true, 71),
        (Choice::Proportional, false, 74),
        (Choice::Proportional, true, 90),
        (Choice::Uniform, false, 56),
        (Choice::Uniform, true, 64),
    ] {
        let limit = Limit::Packets(Packets::new(1_000_000));
        let mut occupancy = Occupancy::new(limit, Thresholds::Weights, choice, &[]);
        let mut worst = 0;
        for flow in 0..5_000 {
            if has_weight {
                occupancy.set_weight(FlowId(flow), Weight::new(f64::from(1 + flow % 2)).unwrap());
            }
            occupancy.add(&packet(0, flow, 100));
            chosen(&mut occupancy, 0.5);
            let each = occupancy.bytes().div_ceil(flow as usize + 1);
            worst = worst.max(if flow < 500 { 0 } else { each });
        }
        assert!(worst <= most, "{choice:?}, weights {has_weight}: {worst} bytes a flow, not {most}");
    }
}

#[test]
fn the_flows_above_a_threshold_are_at_hand_wherever_it_moves() {
    let limit = "10p".parse().unwrap();
    let mut ranked = Ranked::default();
    for (flow, q) in [(0, 3), (1, 1), (2, 5), (3, 2), (2, 4), (1, 0), (0, 1)] {
        let held = Backlog { packets: Packets::new(q), ..Backlog::EMPTY };
        ranked.set(flow, limit, held);
    }
    // Lengths 1, 0, 4 and 2. 10/n for n = 10, 5, 3 and 2: above 1, 2, 3 and 5.
    let above = |n| {
        let mut flows = ranked.longer_than(limit, n).to_vec();
        flows.sort_unstable();
        flows
    };
    assert_eq!([10, 5, 3, 2].map(above), [vec![2, 3], vec![2], vec![2], vec![]]);
    assert_eq!(ranked.longer_than("0p".parse().unwrap(), 3).len(), 3);
}
