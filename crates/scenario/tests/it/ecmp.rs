//! Paths of equal cost: the paths, the choices of connections, and refusals.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use apportion_core::units::{Rate, Span};
use apportion_scenario::model::{LinkId, Scenario};
use apportion_testing::properties::cases;
use proptest::prelude::*;

fn try_load(text: &str) -> Result<Scenario, Vec<String>> {
    let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(suite.points[0].scenario.clone())
}

fn load(text: &str) -> Scenario {
    try_load(text).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// Links of 12 Mb/s and 1 ms from a to b, each given as `from to` and its other keys.
fn network(links: &[(&str, &str)], rest: &str) -> String {
    let link = |(ends, more): &(&str, &str)| {
        let (from, to) = ends.split_once(' ').unwrap();
        format!(
            "link.{from}-{to} = {{ from = \"{from}\", to = \"{to}\", rate = \"12Mbit\", delay = \"1ms\"{more} }}\n"
        )
    };
    let links: String = links.iter().map(link).collect();
    format!("seed = 1\nstop = \"9s\"\n{links}{rest}\n")
}

/// Two layers of two routers, fully connected: four paths, with a choice at r and at one of the next.
const LAYERS: [(&str, &str); 10] = [
    ("a r", ""),
    ("r x1", ""),
    ("r x2", ""),
    ("x1 y1", ""),
    ("x1 y2", ""),
    ("x2 y1", ""),
    ("x2 y2", ""),
    ("y1 s", ""),
    ("y2 s", ""),
    ("s b", ""),
];

fn flows(count: u32) -> String {
    format!("flow.f = {{ count = {count}, from = \"a\", to = \"b\", tcp = \"rfc\" }}")
}

/// The names of the nodes on a path.
fn nodes(scenario: &Scenario, way: &[LinkId]) -> String {
    let links = way.iter().map(|id| &scenario.links[id.index()]);
    let name = |node: apportion_scenario::model::NodeId| scenario.nodes[node.index()].name.as_str();
    let first = links.clone().take(1).map(|link| name(link.from));
    first.chain(links.map(|link| name(link.to))).collect::<Vec<_>>().join(" ")
}

/// Chi-square of counts that should be equal.
fn chi_square<'a>(counts: impl Iterator<Item = &'a u64> + Clone) -> f64 {
    let mean = counts.clone().sum::<u64>() as f64 / counts.clone().count() as f64;
    counts.map(|&count| (count as f64 - mean).powi(2) / mean).sum()
}

#[test]
fn successive_nodes_and_both_directions_choose_independently() {
    let scenario = load(&network(&LAYERS, &flows(8_000)));
    let mut pairs: BTreeMap<(String, String), u64> = BTreeMap::new();
    for flow in &scenario.flows {
        let [there, back] =
            [&flow.path, &flow.back].map(|path| nodes(&scenario, &scenario.way(flow, path, 0, 1)));
        *pairs.entry((there, back)).or_default() += 1;
    }
    // Four paths there and four back, all equally often: chi-square with 15 degrees of freedom is above 37.70
    // with a probability of 0.001.
    assert_eq!(pairs.len(), 16);
    assert!(
        pairs.keys().any(|(there, back)| there == "a r x1 y2 s b" && back == "b s y1 x2 r a"),
        "{pairs:?}"
    );
    assert!(chi_square(pairs.values()) < 37.70, "{pairs:?}");
}

#[test]
fn each_seed_and_each_connection_chooses_anew() {
    let scenario = load(&network(&LAYERS, "flow.f = { from = \"a\", to = \"b\", connections = 9 }"));
    let flow = &scenario.flows[0];
    let count = |ways: &mut dyn Iterator<Item = (u32, u64)>| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (member, seed) in ways {
            *counts.entry(nodes(&scenario, &scenario.way(flow, &flow.path, member, seed))).or_default() += 1;
        }
        counts
    };
    for counts in [count(&mut (0..8_000).map(|n| (0, n))), count(&mut (0..8_000).map(|n| (n, 7)))] {
        assert!(counts.len() == 4 && chi_square(counts.values()) < 16.27, "{counts:?}");
    }
    assert_eq!(scenario.way(flow, &flow.path, 3, 7), scenario.way(flow, &flow.path, 3, 7));
    // Several connections on several paths: the flow's entitlement is undefined.
    assert!(scenario.hashed(1).is_none());
}

#[test]
fn with_single_routing_all_take_the_first_names() {
    let text = format!("routing = \"single\"\n{}", network(&LAYERS, &flows(50)));
    let scenario = load(&text);
    for flow in &scenario.flows {
        assert_eq!(nodes(&scenario, &scenario.way(flow, &flow.path, 0, 1)), "a r x1 y1 s b");
        assert_eq!(nodes(&scenario, &scenario.way(flow, &flow.back, 0, 1)), "b s y1 x1 r a");
    }
    assert!(scenario.entitlements().is_some());
    assert_eq!(load(&text.replace("single", "ecmp")), load(&network(&LAYERS, &flows(50))));
    let wrong = try_load(&text.replace("single", "all")).unwrap_err();
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].starts_with("x.toml:1: routing: `all`"), "{wrong:?}");
}

#[test]
fn a_group_counts_as_often_as_it_has_members() {
    let links = [("a r", ""), ("r s", ", count = 3"), ("r m", ", delay = \"0.5ms\""), ("s b", "")];
    // The path over m has the same delay and one more link, so it is not of equal cost.
    let longer = network(&links, &flows(2)).replacen("delay = \"1ms\", delay", "delay", 1);
    let longer = longer + "link.m-s = { from = \"m\", to = \"s\", rate = \"12Mbit\", delay = \"0.5ms\" }";
    assert!(load(&longer).flows[0].path.equal.is_none());
    let parallel = "link.z = { from = \"r\", to = \"s\", rate = \"1Mbit\", delay = \"1ms\" }";
    let text = network(
        &[("a r", ""), ("r s", ", count = 3"), ("s b", "")],
        &format!("{}\n{parallel}", flows(8_000)),
    );
    let scenario = load(&text);
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for flow in &scenario.flows {
        let way = scenario.way(flow, &flow.path, 0, 1);
        *counts.entry(&scenario.links[way[1].index()].name).or_default() += 1;
    }
    assert_eq!(counts.keys().copied().collect::<Vec<_>>(), ["r-s.1", "r-s.2", "r-s.3", "z"]);
    // 3 degrees of freedom.
    assert!(chi_square(counts.values()) < 16.27, "{counts:?}");
}

#[test]
fn flows_are_due_what_the_paths_give_that_they_take() {
    let scenario = load(&network(&LAYERS, &flows(2)));
    assert_eq!(scenario.entitlements(), None);
    let mut apart = 0;
    for seed in 0..400 {
        let hashed = scenario.hashed(seed).unwrap();
        let share = |flow: usize| {
            let ways = [0, 1].map(|of| BTreeSet::from_iter(hashed.flows[of].path[1..4].iter().copied()));
            if ways[flow].is_disjoint(&ways[1 - flow]) { 12 } else { 6 }
        };
        // Their common links are the first and the last, which both cross in any case.
        let dues = hashed.entitlements().unwrap();
        assert_eq!(dues, [Rate::from_mbit(6); 2]);
        apart += u32::from(share(0) == 12);
    }
    // Two flows have no router in common with a probability of 1/4; the band is 4 sigma.
    assert!((f64::from(apart) - 100.0).abs() < 4.0 * (400.0_f64 * 0.25 * 0.75).sqrt(), "{apart}");
}

#[test]
fn what_could_be_on_any_path_must_fit_on_each() {
    let narrow: Vec<_> =
        LAYERS.iter().map(|(ends, _)| (*ends, if *ends == "x2 y2" { ", loss = 0" } else { "" })).collect();
    let text = network(&narrow, "flow.f = { count = 2, from = \"a\", to = \"b\", guarantee = \"5Mbit\" }");
    let text = text.replace("\"12Mbit\", delay = \"1ms\", loss = 0", "\"8Mbit\", delay = \"1ms\"");
    let problems = try_load(&text).unwrap_err();
    assert!(
        problems.len() == 1 && problems[0].contains("link `x2-y2` carries 8Mbit, but 10Mbit is guaranteed"),
        "{problems:?}"
    );
    assert!(try_load(&format!("routing = \"single\"\n{text}")).is_ok());
}

#[test]
fn reports_about_one_of_several_paths_are_refused() {
    let refused = |text: &str, message: &str| {
        let problems = try_load(text).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(message), "{problems:?}");
        assert!(try_load(&format!("routing = \"single\"\n{text}")).is_ok());
    };
    let links: Vec<_> = LAYERS.iter().map(|(ends, _)| (*ends, ", queue = \"sffc\"")).collect();
    refused(
        &network(&links, &flows(1)),
        "routing: a queue `sffc` reports over one link and is about flows on others: flow `f.1` has several paths of equal cost; \
         write routing = \"single\"",
    );
    let links: Vec<_> = LAYERS.iter().map(|(ends, _)| (*ends, ", ack_tickets = 5")).collect();
    let issued = flows(1).replace("tcp = \"rfc\"", "tcp = \"rfc\", ack_tickets = 3");
    refused(&network(&links, &issued), "routing: `ack_tickets` of links come back over one link");
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn each_way_has_least_cost_and_is_known_before(
        edges in proptest::collection::vec((0_u8..7, 0_u8..7, 0_u8..3, 1_u8..3), 1..20),
        seed in any::<u64>(),
    ) {
        let mut text = "seed = 1\nstop = \"9s\"\nflow.f = { from = \"n0\", to = \"n6\", connections = 9 }\n".to_owned();
        for (k, (from, to, ms, count)) in edges.iter().enumerate().filter(|(_, (from, to, ..))| from != to) {
            text += &format!(
                "link.l{k} = {{ from = \"n{from}\", to = \"n{to}\", rate = \"1Mbit\", delay = \"{ms}ms\", count = {count} }}\n"
            );
        }
        let Ok(scenario) = try_load(&text) else { return Ok(()) };
        let flow = &scenario.flows[0];
        for path in [&flow.path, &flow.back] {
            let cost = |way: &[LinkId]| {
                let delay = way.iter().fold(Span::ZERO, |sum, id| sum + scenario.links[id.index()].delay);
                (delay, way.len())
            };
            let known: BTreeSet<LinkId> = scenario.crossed(flow, path).collect();
            let mut seen = BTreeSet::new();
            for member in 0..50 {
                let way = scenario.way(flow, path, member, seed);
                prop_assert_eq!(cost(&way), cost(path));
                let joints = way.windows(2).map(|pair| [pair[0], pair[1]].map(|id| &scenario.links[id.index()]));
                let are_joined = joints.fold(true, |all, [a, b]| all && a.to == b.from);
                prop_assert!(are_joined);
                let [first, own] = [&path[0], &way[0]].map(|id| scenario.links[id.index()].from);
                prop_assert_eq!(first, own);
                seen.extend(way.iter().copied());
                for (at, id) in way.iter().enumerate() {
                    prop_assert!(scenario.may_cross(flow, path, *id));
                    let before = scenario.before(flow, path, *id).unwrap();
                    prop_assert_eq!(cost(&before), cost(&way[..at]));
                }
            }
            prop_assert!(known.is_superset(&seen));
            let all = (0..scenario.links.len() as u32).map(LinkId);
            prop_assert!(all.filter(|id| scenario.may_cross(flow, path, *id)).eq(known.iter().copied()));
            prop_assert_eq!(scenario.chooses(flow, path), known.len() > path.len());
        }
    }
}
