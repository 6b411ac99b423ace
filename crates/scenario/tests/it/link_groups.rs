//! Groups of equal links: their expansion, the choices of connections, and entitlements.

use std::path::Path;

use apportion_core::units::Rate;
use apportion_scenario::model::{Flow, LinkId, Scenario, Setting};

fn try_load(text: &str) -> Result<Scenario, Vec<String>> {
    let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(suite.points[0].scenario.clone())
}

fn load(text: &str) -> Scenario {
    try_load(text).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

/// `members` links of 12 Mb/s between two routers, with other keys of the link, and these tables.
fn network(members: u32, link: &str, rest: &str) -> String {
    format!(
        "seed = 1\nstop = \"9s\"\n\
         link.in = {{ from = \"a\", to = \"r\", rate = \"1Gbit\", delay = \"1ms\" }}\n\
         link.core = {{ from = \"r\", to = \"s\", rate = \"12Mbit\", delay = \"1ms\", count = {members}{link} }}\n\
         link.out = {{ from = \"s\", to = \"b\", rate = \"1Gbit\", delay = \"1ms\" }}\n{rest}\n"
    )
}

fn flows(count: u32) -> String {
    format!("flow.f = {{ count = {count}, from = \"a\", to = \"b\", tcp = \"rfc\" }}")
}

/// The names of the links on a path.
fn names<'a>(scenario: &'a Scenario, way: &[LinkId]) -> Vec<&'a str> {
    way.iter().map(|id| scenario.links[id.index()].name.as_str()).collect()
}

/// The members that connection 0 of a flow takes there and back, counting from 0.
fn members(scenario: &Scenario, flow: &Flow, seed: u64) -> (usize, usize) {
    let number = |path, at: usize| {
        let way = scenario.way(flow, path, 0, seed);
        let name = &scenario.links[way[at].index()].name;
        let number = name.trim_start_matches("core.").trim_end_matches(".back");
        number.parse::<usize>().unwrap() - 1
    };
    (number(&flow.path, 1), number(&flow.back, 1))
}

/// Chi-square of counts that should be equal.
fn chi_square(counts: &[u64]) -> f64 {
    let mean = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
    counts.iter().map(|&count| (count as f64 - mean).powi(2) / mean).sum()
}

// The model.

#[test]
fn a_count_makes_equal_links_in_both_directions() {
    let text = network(3, ", queue = \"drr\", watch = true, loss = \"1%\"", &flows(1));
    let scenario = load(&text);
    let all: Vec<&str> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    let core = ["core.1", "core.1.back", "core.2", "core.2.back", "core.3", "core.3.back"];
    assert_eq!(all, [&core[..], &["in", "in.back", "out", "out.back"]].concat());
    for (k, pair) in scenario.links[..6].chunks(2).enumerate() {
        let [there, back] = pair else { panic!() };
        assert_eq!(
            (there.other_way, back.other_way),
            (Some(LinkId(2 * k as u32 + 1)), Some(LinkId(2 * k as u32)))
        );
        assert_eq!((there.from, there.to), (back.to, back.from));
        let [first, first_back] = &scenario.links[..2] else { panic!() };
        assert_eq!((&there.queue, there.watched, there.loss), (&first.queue, true, first.loss));
        assert_eq!((&back.queue, back.watched), (&first_back.queue, false));
        let groups = [there, back].map(|link| link.group.as_ref().unwrap().name.as_str());
        assert_eq!(groups, ["core", "core.back"]);
    }
    let members: Vec<u32> = scenario.links[0].group.as_ref().unwrap().members.iter().map(|id| id.0).collect();
    assert_eq!(members, [0, 2, 4]);
    assert_eq!(names(&scenario, &scenario.flows[0].path), ["in", "core.1", "out"]);
}

#[test]
fn a_group_of_one_is_the_link_itself() {
    let without = network(1, "", &flows(2)).replace(", count = 1", "");
    assert_eq!(load(&network(1, "", &flows(2))), load(&without));
}

#[test]
fn a_link_of_a_topology_becomes_a_group() {
    let scenario = load(
        "seed = 1\nstop = \"9s\"\n\
         topology = { kind = \"dumbbell\", pairs = 2, bottleneck = { rate = \"5Mbit\", delay = \"3ms\" } }\n\
         link.bottleneck.count = 2\nflow.f = { from = \"l1\", to = \"r1\" }\n",
    );
    assert_eq!(scenario.links.iter().filter(|link| link.name.starts_with("bottleneck.")).count(), 4);
    assert!(
        scenario
            .links
            .iter()
            .all(|link| link.watched == (link.group.as_ref().is_some_and(|of| of.name == "bottleneck")))
    );
}

#[test]
fn paths_name_a_group_or_one_of_its_members() {
    let rest = "flow.any = { from = \"a\", to = \"b\", path = [\"in\", \"core\", \"out\"], return_path = [\"core.back\"] }\n\
                flow.one = { from = \"a\", to = \"b\", path = [\"core.3\"], return_path = [\"core.1.back\"] }";
    let scenario = load(&network(3, "", rest));
    let [any, one] = &scenario.flows[..] else { panic!() };
    let taken: std::collections::BTreeSet<(usize, usize)> =
        (0..200).map(|seed| members(&scenario, any, seed)).collect();
    assert_eq!(taken.len(), 9);
    for seed in 0..200 {
        assert_eq!(names(&scenario, &scenario.way(one, &one.path, 0, seed)), ["in", "core.3", "out"]);
        assert_eq!(
            names(&scenario, &scenario.way(one, &one.back, 0, seed)),
            ["out.back", "core.1.back", "in.back"]
        );
    }
}

#[test]
fn changes_are_of_a_group_or_of_a_member() {
    let change = |set: &str, to: &str| {
        let change = format!("{}\nchange = [{{ at = \"1s\", set = \"{set}\", to = {to} }}]", flows(1));
        let scenario = load(&network(3, "", &change));
        let at = |change: &apportion_scenario::model::Change| match change.to {
            Setting::LinkRate(id, _) | Setting::LinkDelay(id, _) | Setting::LinkQueue(id, _) => id.0,
            _ => panic!("{change:?}"),
        };
        scenario.changes.iter().map(at).collect::<Vec<_>>()
    };
    assert_eq!(change("link.core.rate", "\"1Mbit\""), [0, 2, 4]);
    assert_eq!(change("link.core.back.delay", "\"2ms\""), [1, 3, 5]);
    assert_eq!(change("link.core.queue", "\"drr\""), [0, 2, 4]);
    assert_eq!(change("link.core.2.rate", "\"0Mbit\""), [2]);
    assert_eq!(change("link.core.2.back.delay", "\"2ms\""), [3]);
}

#[test]
fn what_a_group_cannot_do_is_refused_by_name() {
    let refused = |members: u32, link: &str, rest: &str, message: &str| {
        let problems = try_load(&network(members, link, rest)).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains(message), "{message} in {problems:#?}");
    };
    let one = flows(1);
    refused(0, "", &one, "x.toml:4: link.core.count: `0`: a whole number must be between 1 and 100000 here");
    let negative = network(7, "", &one).replace("count = 7", "count = -1");
    assert_eq!(
        try_load(&negative).unwrap_err(),
        ["x.toml:4: link.core.count: `-1` is not a whole number from 1 to 100000; write for example 10"]
    );
    refused(60_000, "", &one, "120004 one-way links; at most 100000 are possible");
    refused(
        2,
        ", ack_tickets = 5",
        &one,
        "link.core.ack_tickets: acknowledgements carry these tickets, and may take another",
    );
    refused(2, ", queue = \"sffc\"", &one, "x.toml:4: link.core.count: a queue `sffc` reports over one link");
    let change = |set: &str| format!("{one}\nchange = [{{ at = \"1s\", set = \"{set}\", to = \"drr\" }}]");
    refused(
        2,
        "",
        &change("link.core.2.queue"),
        "change[1].set: a group has one `queue`; write \"link.core.queue\"",
    );
    refused(2, "", &change("link.core.3.queue"), "there is no link `core.3`");
    let twice = format!(
        "{one}\nlink.\"core.2\" = {{ from = \"r\", to = \"s\", rate = \"1Mbit\", delay = \"9ms\", back = false }}"
    );
    refused(2, "", &twice, "x.toml:7: link.\"core.2\": there are two links of this name; rename one");
}

// The hash.

#[test]
fn members_have_equal_parts_of_many_flows() {
    // Chi-square: 16.27 with 3 degrees of freedom and 24.32 with 7 are exceeded with a probability of 0.001, for 4 and 8 links; for
    // 4 x 4 pairs of there and back 37.70 with 15.
    for (links, limit) in [(4, 16.27), (8, 24.32)] {
        let scenario = load(&network(links, "", &flows(8_000)));
        let mut counts = [vec![0_u64; links as usize], vec![0; links as usize]];
        let mut pairs = vec![0; (links * links) as usize];
        for flow in &scenario.flows {
            let (there, back) = members(&scenario, flow, scenario.seed);
            counts[0][there] += 1;
            counts[1][back] += 1;
            pairs[there * links as usize + back] += 1;
        }
        for counts in counts {
            assert!(chi_square(&counts) < limit, "{counts:?}");
        }
        assert!(links == 8 || chi_square(&pairs) < 37.70, "{pairs:?}");
    }
}

#[test]
fn seeds_choose_anew_and_so_do_connections() {
    let scenario = load(&network(4, "", &flows(1)));
    let flow = &scenario.flows[0];
    let mut counts = [[0_u64; 4]; 2];
    for n in 0..8_000 {
        counts[0][members(&scenario, flow, u64::from(n)).0] += 1;
        let way = scenario.way(flow, &flow.path, n, 1);
        counts[1][(way[1].0 / 2) as usize] += 1;
    }
    for counts in counts {
        assert!(chi_square(&counts) < 16.27, "{counts:?}");
    }
    // The choice is deterministic.
    assert_eq!(members(&scenario, flow, 7), members(&scenario, flow, 7));
}

/// The number of flows on the fullest link, for each of the k^n ways in which `flows` can choose among
/// `links`.
fn fullest(flows: u32, links: u32) -> Vec<u32> {
    let all = 0..links.pow(flows);
    all.map(|choices| {
        let mut load = vec![0; links as usize];
        (0..flows).for_each(|flow| load[(choices / links.pow(flow) % links) as usize] += 1);
        load.into_iter().max().unwrap()
    })
    .collect()
}

#[test]
fn flows_collide_and_are_due_what_the_birthday_problem_says() {
    const SEEDS: u64 = 4_000;
    for (count, links) in [(4_u32, 4_u32), (3, 8), (6, 4)] {
        let scenario = load(&network(links, ", queue = \"drr\"", &flows(count)));
        let known = fullest(count, links);
        let expected = |of: &dyn Fn(u32) -> f64| {
            let all: Vec<f64> = known.iter().map(|&most| of(most)).collect();
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / all.len() as f64;
            (mean, 4.0 * (variance / SEEDS as f64).sqrt())
        };
        let (mut apart, mut worst) = (0, 0.0);
        for seed in 0..SEEDS {
            let due = scenario.hashed(seed).unwrap().entitlements().unwrap();
            let least = due.iter().map(|rate| rate.as_mbit_f64()).fold(f64::INFINITY, f64::min);
            apart += u64::from((least - 12.0).abs() < 1e-3);
            worst += least;
        }
        // All on links of their own: k! / (k - n)! / k^n.
        let (apart, worst) = (apart as f64 / SEEDS as f64, worst / SEEDS as f64);
        let none: f64 =
            (0..count).map(|flow| f64::from(links.saturating_sub(flow)) / f64::from(links)).product();
        let (all_apart, band) = expected(&|most| f64::from(u8::from(most == 1)));
        assert!(
            (all_apart - none).abs() < 1e-12 && (apart - none).abs() <= band,
            "{apart} for {none} ± {band}"
        );
        // The flow on the fullest link gets its rate over the number of flows there.
        let (mean, band) = expected(&|most| 12.0 / f64::from(most));
        assert!((worst - mean).abs() < band, "{worst} for {mean} ± {band}");
    }
}

#[test]
fn without_a_run_nothing_says_what_flows_over_a_group_are_due() {
    let scenario = load(&network(2, "", &flows(2)));
    assert_eq!(scenario.entitlements(), None);
    assert!(scenario.hashed(1).unwrap().entitlements().is_some());
    // A flow of several connections, on several links.
    let many = load(&network(2, "", "flow.f = { from = \"a\", to = \"b\", connections = 2 }"));
    assert!(many.hashed(1).is_none());
    // Named members leave nothing to a hash.
    let named =
        load(&network(2, "", "flow.f = { from = \"a\", to = \"b\", connections = 2, path = [\"core.2\"] }"));
    assert_eq!(named.hashed(1).unwrap().entitlements(), Some(vec![Rate::from_mbit(12)]));
}
