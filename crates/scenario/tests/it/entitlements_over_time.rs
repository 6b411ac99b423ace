//! Entitlements over time: pieces computed by hand, equality with a single allocation if nothing changes, and
//! bounds.

use apportion_core::fairness::{Claim, max_min};
use apportion_core::units::{Bytes, Rate, Time};
use apportion_scenario::entitlement::{Due, Phase, Wants};
use apportion_scenario::model::{Change, File, LinkId, Scenario, Setting, Source, Start};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::scenario;

/// Two greedy flows `a` and `b` over a link of 20 Mb/s for 40 s, with more lines.
fn two(more: &str) -> Scenario {
    let ends = "from = \"n\", to = \"m\", tcp = \"rfc\"";
    let more = more.replace("= { }", &format!("= {{ {ends} }}")).replace("= { w", &format!("= {{ {ends}, w"));
    let more = ["s", "g", "t"]
        .iter()
        .fold(more, |more, key| more.replace(&format!("= {{ {key}"), &format!("= {{ {ends}, {key}")));
    scenario(&format!(
        "seed = 3\nstop = \"40s\"\nlink.x = {{ from = \"n\", to = \"m\", rate = \"20Mbit\", delay = \"7ms\" }}\n{more}\n"
    ))
}

fn due(scenario: &Scenario) -> Due {
    scenario.due(&scenario.expected_activity(), Time::ZERO, scenario.stop).unwrap()
}

/// The rates of a flow in Mb/s, with their start times in seconds.
fn rates(due: &Due, flow: usize) -> Vec<(f64, f64)> {
    let all = due.rates(flow).into_iter();
    all.map(|(from, rate)| (from.as_secs_f64(), rate.as_mbit_f64())).collect()
}

fn megabits(due: &Due, flow: usize, from: u64, to: u64) -> f64 {
    due.amount(flow, Time::from_secs(from), Time::from_secs(to)).bits() / 1e6
}

#[test]
fn a_flow_that_joins_and_leaves_is_due_its_share_meanwhile() {
    let it = two("flow.a = { weight = 3 }\nflow.b = { start = \"11s\", stop = \"31s\" }");
    let due = due(&it);
    assert_eq!(rates(&due, 0), [(0.0, 20.0), (11.0, 15.0), (31.0, 20.0)]);
    assert_eq!(rates(&due, 1), [(11.0, 5.0), (31.0, 0.0)]);
    assert_eq!(due.pieces(), 3);
    // 1 s at 20 and 2 s at 15 Mb/s; exactly, even if a limit cuts a piece.
    assert_eq!(megabits(&due, 0, 10, 13), 50.0);
    assert_eq!((megabits(&due, 1, 0, 11), megabits(&due, 1, 0, 40)), (0.0, 100.0));
    let nanosecond = due.amount(1, Time::from_nanos(11_000_000_000), Time::from_nanos(11_000_000_001));
    assert_eq!(nanosecond.bits(), 0.005);
    // The amount outside is zero.
    assert!(due.amount(0, Time::from_secs(40), Time::from_secs(50)).is_zero());
    assert!(due.amount(7, Time::ZERO, Time::from_secs(50)).is_zero());
}

#[test]
fn a_link_that_slows_down_and_recovers() {
    let it = two("flow.a = { }\nflow.b = { }\n\
        change = [{ at = \"13s\", set = \"link.x.rate\", to = \"5Mbit\" }, { at = \"14s\", set = \"link.x.delay\", to = \"9ms\" }, \
        { at = \"23s\", set = \"link.x.rate\", to = \"20Mbit\" }]");
    let due = due(&it);
    assert_eq!(rates(&due, 0), [(0.0, 10.0), (13.0, 2.5), (23.0, 10.0)]);
    assert_eq!(due.pieces(), 3, "a delay changes nothing");
    // 30 s at 10 and 10 s at 2.5 Mb/s.
    assert_eq!(it.entitlements().unwrap(), [Rate::from_kbit(8_125); 2]);
    // During an outage the entitlement is zero.
    let it = two("flow.a = { }\nchange = [{ at = \"10s\", set = \"link.x.rate\", to = \"0bit\" }]");
    assert_eq!(rates(&self::due(&it), 0), [(0.0, 20.0), (10.0, 0.0)]);
}

#[test]
fn guarantees_that_no_longer_fit_are_reduced_in_proportion() {
    // 9 + 6 of 20 Mb/s leave 5, 2.5 each. They get 5 Mb/s by 3 : 2.
    let it = two("flow.a = { guarantee = \"9Mbit\" }\nflow.b = { guarantee = \"6Mbit\" }\nflow.c = { }\n\
        change = [{ at = \"10s\", set = \"link.x.rate\", to = \"5Mbit\" }, { at = \"20s\", set = \"flow.b.guarantee\", to = \"1Mbit\" }, \
        { at = \"20s\", set = \"link.x.rate\", to = \"10Mbit\" }]");
    let due = due(&it);
    let third = 5.0 / 3.0;
    let close = |flow: usize, expected: [f64; 3]| {
        let rates = rates(&due, flow);
        let held = |(rate, expected): (&(f64, f64), f64)| (rate.1 - expected).abs() < 2e-6;
        assert!(rates.iter().zip(expected).all(held), "{rates:?}");
    };
    close(0, [9.0 + third, 3.0, 9.0]);
    close(1, [6.0 + third, 2.0, 1.0]);
    assert_eq!(rates(&due, 2), [(0.0, 1.666667), (10.0, 0.0)]);
}

#[test]
fn tickets_and_weights_and_rates_of_sources_change() {
    let it = two(
        "flow.a = { tickets = 300, mark = \"tickets\" }\nflow.b = { tickets = 100, mark = \"tickets\" }\n\
        change = [{ at = \"10s\", set = \"flow.a.tickets\", to = 100 }]",
    );
    assert_eq!(rates(&due(&it), 0), [(0.0, 15.0), (10.0, 10.0)]);
    let it = two("flow.a = { }\nflow.b = { }\nchange = [{ at = \"10s\", set = \"flow.b.weight\", to = 4 }]");
    assert_eq!(rates(&due(&it), 1), [(0.0, 10.0), (10.0, 16.0)]);
    // The rest that a source leaves goes to the others.
    let it = scenario(
        "seed = 3\nstop = \"40s\"\nlink.x = { from = \"n\", to = \"m\", rate = \"20Mbit\", delay = \"7ms\" }\n\
        flow.a = { from = \"n\", to = \"m\", tcp = \"rfc\" }\n\
        flow.b = { from = \"n\", to = \"m\", source = { kind = \"cbr\", rate = \"4Mbit\" } }\n\
        change = [{ at = \"10s\", set = \"flow.b.rate\", to = \"14Mbit\" }]",
    );
    assert_eq!(rates(&due(&it), 0), [(0.0, 16.0), (10.0, 10.0)]);
    assert_eq!(rates(&due(&it), 1), [(0.0, 4.0), (10.0, 10.0)]);
}

#[test]
fn a_customer_over_two_bottlenecks() {
    // Customer p has a flow over both links, q one over each; the second link is 6 Mb/s, so the long flow has 3 and
    // leaves 17. From 10 s on it has 1 of 2.
    let it = scenario(
        "seed = 3\nstop = \"40s\"\n\
        link.x = { from = \"n\", to = \"m\", rate = \"20Mbit\", delay = \"7ms\" }\n\
        link.y = { from = \"m\", to = \"o\", rate = \"6Mbit\", delay = \"7ms\" }\n\
        defaults.flow = { tcp = \"rfc\" }\n\
        flow.long = { from = \"n\", to = \"o\", customer = \"p\" }\n\
        flow.first = { from = \"n\", to = \"m\", customer = \"q\", count = 2 }\n\
        flow.second = { from = \"m\", to = \"o\", customer = \"q\" }\n\
        change = [{ at = \"10s\", set = \"link.y.rate\", to = \"2Mbit\" }]",
    );
    let due = due(&it);
    let names: Vec<_> = it.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names, ["first.1", "first.2", "long", "second"]);
    assert_eq!(rates(&due, 0), [(0.0, 8.5), (10.0, 9.5)]);
    assert_eq!(rates(&due, 2), [(0.0, 3.0), (10.0, 1.0)]);
    assert_eq!(rates(&due, 3), [(0.0, 3.0), (10.0, 1.0)]);
}

#[test]
fn sources_that_come_and_go() {
    let it = scenario(
        "seed = 3\nstop = \"40s\"\nlink.x = { from = \"n\", to = \"m\", rate = \"20Mbit\", delay = \"7ms\" }\n\
        flow.a = { from = \"n\", to = \"m\", tcp = \"rfc\" }\n\
        flow.b = { from = \"n\", to = \"m\", source = { kind = \"on_off\", rate = \"16Mbit\", on = \"1s\", off = \"3s\" } }\n\
        flow.c = { from = \"n\", to = \"m\", tcp = \"rfc\", source = { kind = \"short_flows\", per_second = 1, mean_size = \"50kB\" } }",
    );
    // On average the second wants 4 Mb/s and the third 0.4.
    assert_eq!(it.entitlements().unwrap(), [15_600, 4_000, 400].map(Rate::from_kbit));
    let at = |second: u64, wants: Wants| Phase { at: Time::from_secs(second), wants };
    let activity = [
        vec![at(0, Wants::Mean)],
        vec![
            at(0, Wants::Bursts(1)),
            at(1, Wants::Bursts(0)),
            at(4, Wants::Bursts(1)),
            at(5, Wants::Bursts(0)),
        ],
        // Two transfers, the first of which ends at 3 s.
        vec![at(2, Wants::Everything(2)), at(3, Wants::Everything(1)), at(8, Wants::Nothing)],
    ];
    let due = it.due(&activity, Time::ZERO, it.stop).unwrap();
    let third = 20.0 / 3.0;
    let close = |flow: usize, expected: &[(f64, f64)]| {
        let rates = rates(&due, flow);
        let same = |(a, b): (&(f64, f64), &(f64, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 2e-6;
        assert!(rates.len() == expected.len() && rates.iter().zip(expected).all(same), "{rates:?}");
    };
    close(1, &[(0.0, 10.0), (1.0, 0.0), (4.0, third), (5.0, 0.0)]);
    close(2, &[(2.0, 2.0 * third), (3.0, 10.0), (4.0, third), (5.0, 10.0), (8.0, 0.0)]);
    close(0, &[(0.0, 10.0), (1.0, 20.0), (2.0, third), (3.0, 10.0), (4.0, third), (5.0, 10.0), (8.0, 20.0)]);
}

/// `count` transfers over one link between `hosts` pairs of hosts, each 3 s long, one every 2 ms.
fn transfers(count: usize, hosts: usize) -> (Scenario, Vec<Vec<Phase>>) {
    let it = scenario(&format!(
        "seed = 3\nstop = \"40s\"\n\
        topology = {{ kind = \"dumbbell\", pairs = {hosts}, bottleneck = {{ rate = \"20Mbit\", delay = \"1ms\" }} }}\n\
        flow.f = {{ count = {count}, from = \"l{{1 + i % {hosts}}}\", to = \"r{{1 + i % {hosts}}}\", tcp = \"rfc\", \
        source = {{ kind = \"file\", size = \"9kB\" }} }}"
    ));
    let phase = |ms: u64, wants| Phase { at: Time::from_millis(ms), wants };
    let of = |k: u64| vec![phase(2 * k, Wants::Everything(1)), phase(2 * k + 3_000, Wants::Nothing)];
    let activity = (0..count as u64).map(of).collect();
    (it, activity)
}

#[test]
fn ten_thousand_transfers_take_no_quadratic_time() {
    // Some 1,500 at a time, all equal: a piece for each arrival or departure, with one class. Together they
    // get the whole link.
    let (it, activity) = transfers(10_000, 10);
    let due = it.due(&activity, Time::ZERO, it.stop).unwrap();
    assert!(due.pieces() <= 20_001, "{}", due.pieces());
    let total: f64 = (0..it.flows.len()).map(|flow| due.amount(flow, Time::ZERO, it.stop).bits()).sum();
    assert!((total / 20e6 - 22.998).abs() < 1e-6, "{total}");
    // Every flow has links of its own, which limit none, so all flows are still equal.
    let (it, activity) = transfers(1_000, 1_000);
    assert!(it.due(&activity, Time::ZERO, it.stop).unwrap().pieces() <= 2_001);
    // All weights differ: 1,500 classes in each of 20,000 pieces are too many.
    let (mut it, activity) = transfers(10_000, 10);
    for (k, flow) in it.flows.iter_mut().enumerate() {
        flow.weight = apportion_core::units::Weight::new(1.0 + k as f64).unwrap();
    }
    assert!(it.due(&activity, Time::ZERO, it.stop).is_none());
}

/// Three links in a row of 10, 6 and 8 Mb/s, and flows over some: first link, number of links, weight, guarantee and
/// rate in kbit/s (none: greedy).
type Drawn = (usize, usize, u8, u64, Option<u64>);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let flow = (0usize..3, 1usize..4, 1u8..6, 0u64..200, prop::option::of(1u64..8_000));
    prop::collection::vec(flow, 1..12)
}

fn network(flows: &[Drawn]) -> Scenario {
    let mut text = "seed = 3\nstop = \"10s\"\n".to_owned();
    for (k, rate) in [10, 6, 8].iter().enumerate() {
        let to = k + 1;
        text += &format!(
            "link.x{k} = {{ from = \"n{k}\", to = \"n{to}\", rate = \"{rate}Mbit\", delay = \"1ms\" }}\n"
        );
    }
    for (k, (first, links, weight, guarantee, rate)) in flows.iter().enumerate() {
        let to = (first + links).min(3);
        let source = match rate {
            Some(rate) => format!("source = {{ kind = \"cbr\", rate = \"{rate}kbit\" }}"),
            None => "tcp = \"rfc\"".to_owned(),
        };
        text += &format!(
            "flow.f{k:02} = {{ from = \"n{first}\", to = \"n{to}\", weight = {weight}, guarantee = \"{guarantee}kbit\", {source} }}\n"
        );
    }
    scenario(&text)
}

/// One allocation with a claim for each flow, without a function of time.
fn constant(it: &Scenario) -> Vec<Rate> {
    let capacities: Vec<f64> = it.links.iter().map(|link| link.rate.as_bit() as f64).collect();
    let claims: Vec<Claim> = it
        .flows
        .iter()
        .map(|flow| Claim {
            links: flow.path.iter().map(|id| id.index()).collect(),
            weight: flow.weight.get(),
            guarantee: flow.guarantee.as_bit() as f64,
            demand: match &flow.source {
                Source::Cbr(cbr) => Some(cbr.rate.as_bit() as f64),
                _ => None,
            },
        })
        .collect();
    let shares = max_min(&capacities, &claims).unwrap();
    shares.into_iter().map(|share| Rate::from_bit(share.round() as u64)).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn where_nothing_changes_they_are_what_they_were(flows in drawn()) {
        let it = network(&flows);
        prop_assert_eq!(it.entitlements().unwrap(), constant(&it));
    }

    #[test]
    fn no_more_is_due_than_links_carry_and_integrals_add_up(
        flows in drawn(),
        times in prop::collection::vec((0u64..10_000, 0u64..10_000), 12),
        changes in prop::collection::vec((0u64..10_000, 0u32..3, 0u64..12_000), 0..8),
    ) {
        let mut it = network(&flows);
        for (flow, (start, stop)) in it.flows.iter_mut().zip(&times) {
            flow.start = Start::At(Time::from_millis(*start));
            flow.stop = Some(Time::from_millis(*stop));
        }
        it.changes = changes.iter().map(|&(at, link, kbit)| Change {
            at: Time::from_millis(at),
            to: Setting::LinkRate(LinkId(link), Rate::from_kbit(kbit)),
        }).collect();
        it.changes.sort_by_key(|change| change.at);
        let due = due(&it);
        let events = it.changes.len() + 2 * it.flows.len();
        prop_assert!(due.pieces() <= events + 1);
        for window in [(0, 10_000), (1_234, 5_678), (9_000, 9_001)] {
            let (from, to) = (Time::from_millis(window.0), Time::from_millis(window.1));
            for (link, at) in it.links.iter().zip(0u32..) {
                let crossing = (0..it.flows.len()).filter(|&flow| it.flows[flow].path.contains(&LinkId(at)));
                let total: f64 = crossing.map(|flow| due.amount(flow, from, to).bits()).sum();
                // The capacity of the link over this time.
                let mut steps = vec![(Time::ZERO, link.rate)];
                steps.extend(it.changes.iter().filter_map(|change| match change.to {
                    Setting::LinkRate(id, rate) if id == LinkId(at) => Some((change.at, rate)),
                    _ => None,
                }));
                let carried: f64 = (0..steps.len()).map(|k| {
                    let end = steps.get(k + 1).map_or(it.stop, |next| next.0).min(to);
                    end.since(steps[k].0.max(from)).as_secs_f64() * steps[k].1.as_bit() as f64
                }).sum();
                prop_assert!(total <= carried * (1.0 + 1e-9) + 1e-3, "{}: {total} of {carried}", link.name);
            }
            let middle = Time::from_millis((window.0 + window.1) / 2);
            for flow in 0..it.flows.len() {
                let parts = due.amount(flow, from, middle).plus(due.amount(flow, middle, to));
                prop_assert_eq!(parts, due.amount(flow, from, to));
            }
        }
    }
}

#[test]
fn bytes_of_a_file_do_not_matter_to_a_scenario_without_a_run() {
    let (mut it, _) = transfers(2, 1);
    it.flows[0].source = Source::File(File { size: Bytes::new(1) });
    assert_eq!(it.entitlements(), Some(vec![Rate::from_mbit(10); 2]));
}
