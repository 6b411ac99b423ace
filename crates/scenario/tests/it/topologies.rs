//! Predefined networks of data centres, and changes of a topology's links.

use apportion_core::units::{Rate, Span};
use apportion_scenario::model::{Link, Scenario};

use crate::common::{errors, link, scenario};

const UDP: &str = "source = { kind = \"cbr\", rate = \"1kbit\" }";

fn network(topology: &str, ends: [&str; 2], rest: &str) -> String {
    format!(
        "seed = 1\nstop = \"20s\"\ntopology = {{ {topology} }}\n\
         flow.f = {{ from = \"{}\", to = \"{}\", {UDP} }}\n{rest}\n",
        ends[0], ends[1]
    )
}

/// The number of paths of flow f, by the next hops on its routes with many seeds.
fn paths(scenario: &Scenario) -> usize {
    let flow = &scenario.flows[0];
    let ways = (0..2_000).map(|seed| scenario.way(flow, &flow.path, 0, seed));
    ways.collect::<std::collections::BTreeSet<_>>().len()
}

const LINK: &str = "link = { rate = \"1Gbit\", delay = \"10us\" }";

#[test]
fn a_fat_tree_has_the_numbers_of_its_paper() {
    // k^3/4 hosts, k^2/2 edge and aggregation switches, k^2/4 cores; 3 k^3/4 links of two directions.
    for (k, hosts, switches, links) in [(2, 2, 5, 6), (4, 16, 20, 48), (8, 128, 80, 384)] {
        let topology = format!("kind = \"fat_tree\", k = {k}, {LINK}");
        let far = scenario(&network(&topology, ["h1", &format!("h{hosts}")], ""));
        assert_eq!((far.nodes.len(), far.links.len()), (hosts + switches, 2 * links));
        // Within an edge switch, a pod and between pods: 1, k/2 and k^2/4 paths of 2, 4 and 6 links.
        assert_eq!((far.flows[0].path.len(), paths(&far)), (6, k * k / 4));
        if k > 2 {
            let near = scenario(&network(&topology, ["h1", "h2"], ""));
            assert_eq!((near.flows[0].path.len(), paths(&near)), (2, 1));
            let pod = scenario(&network(&topology, ["h1", &format!("h{}", k * k / 4)], ""));
            assert_eq!((pod.flows[0].path.len(), paths(&pod)), (4, k / 2));
        }
        // All ports are used: k links in and out of each switch.
        for (at, node) in far.nodes.iter().enumerate() {
            let ports = far.links.iter().filter(|link| link.from.index() == at).count();
            assert_eq!(ports, if node.name.starts_with('h') { 1 } else { k }, "{}", node.name);
        }
    }
    let odd = network(&format!("kind = \"fat_tree\", k = 3, {LINK}"), ["h1", "h2"], "");
    assert_eq!(
        errors(&odd),
        ["dir/x.toml:3: topology.k: half of the ports lead up, so `3` must be even; write for example 4"]
    );
    assert!(errors(&odd.replace("k = 3", "k = 42"))[0].contains("between 1 and 40"));
}

#[test]
fn a_leaf_spine_has_a_link_from_each_leaf_to_each_spine() {
    let topology = format!(
        "kind = \"leaf_spine\", leaves = 3, spines = 4, hosts = 5, {LINK}, access = {{ rate = \"100Mbit\", delay = \"i * 1us\" }}"
    );
    let far = scenario(&network(&topology, ["h1", "h15"], ""));
    assert_eq!((far.nodes.len(), far.links.len()), (3 + 4 + 15, 2 * (3 * 4 + 15)));
    assert_eq!((far.flows[0].path.len(), paths(&far)), (4, 4));
    for (name, rate, delay) in [
        ("leaf2-spine3", 1_000, 10),
        ("leaf2-spine3.back", 1_000, 10),
        ("h6-leaf2", 100, 6),
        ("h6-leaf2.back", 100, 6),
    ] {
        let link = link(&far, name);
        assert_eq!((link.rate, link.delay), (Rate::from_mbit(rate), Span::from_micros(delay)), "{name}");
    }
    let plain = scenario(&network(
        &topology.replace(", access = { rate = \"100Mbit\", delay = \"i * 1us\" }", ""),
        ["h1", "h2"],
        "",
    ));
    assert_eq!(link(&plain, "h6-leaf2").rate, Rate::from_mbit(1_000));
    let large = topology.replace("leaves = 3, spines = 4", "leaves = 1000, spines = 100");
    assert_eq!(
        errors(&network(&large, ["h1", "h2"], "")),
        ["dir/x.toml:3: topology.leaves: 210000 one-way links; at most 100000 are possible"]
    );
}

#[test]
fn a_link_of_a_topology_is_changed_in_both_directions() {
    let of = |topology: &str, ends: [&str; 2], name: &str, change: &str| {
        let scenario = scenario(&network(topology, ends, &format!("link.{change}")));
        [name.to_owned(), format!("{name}.back")].map(|name| link(&scenario, &name).clone())
    };
    let both = |links: &[Link; 2]| {
        [0, 1].map(|at| (links[at].rate.as_bit() / 1_000, links[at].delay.as_nanos() / 1_000_000))
    };
    let graph = |change: &str| {
        let topology = "kind = \"gml\", file = \"net.gml\", link = { rate = \"20Mbit\", delay = \"2ms\" }";
        of(topology, ["a", "c"], "b-c", change)
    };
    let changed = graph("b-c = { rate = \"3Mbit\", queue = \"drr\" }");
    assert_eq!(both(&changed), [(3_000, 1); 2]);
    // Queues and losses belong to one direction.
    assert_ne!(changed[0].queue, changed[1].queue);
    let apart = graph("b-c = { rate = \"3Mbit\", delay = \"7ms\", back = { rate = \"1Mbit\" } }");
    assert_eq!(both(&apart), [(3_000, 7), (1_000, 7)]);
    // Under its own name only the other direction is changed.
    assert_eq!(both(&graph("\"b-c.back\" = { rate = \"1Mbit\" }")), [(20_000, 1), (1_000, 1)]);
    // Keys that the topology sets apart stay so.
    let satellite = "kind = \"satellite\", pairs = 1, \
                     satellite = { rate = \"8Mbit\", delay = \"250ms\", back = { rate = \"64kbit\" } }";
    let faster = "satellite = { rate = \"9Mbit\", delay = \"240ms\" }";
    assert_eq!(both(&of(satellite, ["l1", "r1"], "satellite", faster)), [(9_000, 240), (64, 240)]);
}
