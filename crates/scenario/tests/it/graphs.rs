//! Graphs in files: the names of nodes, attributes of edges and nodes as keys of links, and notes on the
//! rest.

use std::path::Path;

use apportion_core::units::{Rate, Span};
use apportion_scenario::load;
use apportion_scenario::model::{Link, Scenario};

use crate::common::link;

/// The scenario with this graph, a topology of this kind with these keys, and a flow between these nodes.
fn try_load(kind: &str, keys: &str, graph: &[u8], ends: [&str; 2]) -> Result<Scenario, Vec<String>> {
    let text = format!(
        "seed = 1\nstop = \"20s\"\ntopology = {{ kind = \"{kind}\", file = \"g\"{keys} }}\n\
         flow.f = {{ from = '{}', to = '{}' }}\n",
        ends[0], ends[1]
    );
    let suite = load(&text, Path::new("x.toml"), &[], &|_| Ok(graph.to_vec()));
    let suite = suite.map_err(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(suite.points[0].scenario.clone())
}

fn gml(keys: &str, nodes_and_edges: &str, ends: [&str; 2]) -> Scenario {
    let graph = format!("graph [\n{nodes_and_edges}\n]");
    try_load("gml", keys, graph.as_bytes(), ends).unwrap_or_else(|problems| panic!("{problems:#?}"))
}

const BOTH: &str = ", link = { rate = \"10Mbit\", delay = \"1ms\" }";
const AB: &str = "node [ id 0 label \"A\" ] node [ id 1 label \"B\" ]\n";

fn nodes(scenario: &Scenario) -> Vec<&str> {
    scenario.nodes.iter().map(|node| node.name.as_str()).collect()
}

fn kind(link: &Link) -> (Rate, Span, f64, Option<Span>) {
    (link.rate, link.delay, link.loss.mean().get(), link.jitter.map(|jitter| jitter.max))
}

#[test]
fn nodes_of_the_same_label_have_their_id_added() {
    let graph = "node [ id 0 label \"BBN\" ] node [ id 7 label \"BBN\" ] node [ id 8 label \"BBN\" ] node [ id 9 label \"BBN (8)\" ]\n\
                 node [ id 3 ] node [ id 4 label \"3\" ] node [ id 5 label \"\" ]\n\
                 edge [ source 0 target 7 ] edge [ source 7 target 8 ] edge [ source 8 target 9 ]";
    let scenario = gml(BOTH, graph, ["BBN", "BBN (7)"]);
    assert_eq!(nodes(&scenario), ["3", "3 (4)", "5", "BBN", "BBN (7)", "BBN (8)", "BBN (8) (8)"]);
    // The node with this written name keeps it, wherever it stands.
    let names: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    assert!(names.contains(&"BBN (8) (8)-BBN (8)") && names.contains(&"BBN-BBN (7).back"), "{names:?}");
    assert_eq!(
        scenario.warnings()[0],
        "`g` has nodes of the same label; all but the first have their id added: `BBN (7)`, `BBN (8) (8)`, `3 (4)`"
    );
    let twice = "graph [ node [ id 1 label \"a\" ]\n node [ id 1 label \"b\" ] ]";
    assert_eq!(
        try_load("gml", BOTH, twice.as_bytes(), ["a", "b"]).unwrap_err(),
        ["x.toml:3: topology.file: g:2: there are two nodes with the id 1; number one anew"]
    );
}

#[test]
fn characters_may_be_latin_1_or_entities() {
    let graph = b"graph [ node [ id 0 label \"S\xe3o\" ] node [ id 1 label \"A&amp;B &#233;\" ] edge [ source 0 target 1 ] ]";
    let scenario = try_load("gml", BOTH, graph, ["S\u{e3}o", "A&B \u{e9}"]).unwrap();
    assert_eq!(scenario.flows[0].path.len(), 1);
    let utf_8 = "\u{feff}graph [ node [ id 0 label \"S\u{e3}o\" ] node [ id 1 ] edge [ source 0 target 1 ] ]";
    assert!(try_load("gml", BOTH, utf_8.as_bytes(), ["S\u{e3}o", "1"]).is_ok());
}

#[test]
fn an_edge_from_a_node_to_itself_is_named_and_left_out() {
    let scenario =
        gml(BOTH, &format!("{AB} edge [ source 0 target 0 ] edge [ source 0 target 1 ]"), ["A", "B"]);
    assert_eq!(scenario.links.len(), 2);
    assert_eq!(scenario.warnings()[0], "edges of `g` that lead from a node to itself carry nothing: `A`");
}

#[test]
fn an_edge_says_more_than_the_scenario() {
    let of = |attributes: &str| {
        let graph = format!("{AB} edge [ source 0 target 1 {attributes} ]");
        let scenario = gml(BOTH, &graph, ["A", "B"]);
        let [there, back] = ["A-B", "A-B.back"].map(|name| kind(link(&scenario, name)));
        assert_eq!(there, back);
        there
    };
    let ms = Span::from_millis;
    assert_eq!(of(""), (Rate::from_mbit(10), ms(1), 0.0, None));
    // Attributes of Shadow.
    assert_eq!(
        of("bandwidth \"100 Mbit\" latency \"50 ms\" packet_loss 0.02 jitter \"3 ms\""),
        (Rate::from_mbit(100), ms(50), 0.02, Some(ms(3)))
    );
    // Our own names take precedence.
    assert_eq!(
        of("bandwidth \"1Mbit\" latency \"2ms\" packet_loss 0.5 rate \"3Mbit\" delay \"4ms\" loss \"5%\""),
        (Rate::from_mbit(3), ms(4), 0.05, None)
    );
    // Attributes of the Topology Zoo.
    let rate = |attributes: &str| of(attributes).0;
    assert_eq!(
        rate("LinkSpeed \"1\" LinkSpeedUnits \"G\" LinkSpeedRaw 1000000000.0"),
        Rate::from_mbit(1_000)
    );
    assert_eq!(rate("LinkSpeedRaw 2.5e9 LinkLabel \"1 Gbps\""), Rate::from_mbit(2_500));
    assert_eq!(rate("LinkSpeed \"2.5\" LinkSpeedUnits \"M\""), Rate::from_kbit(2_500));
    assert_eq!(rate("LinkLabel \"45 Mbps\""), Rate::from_mbit(45));
    assert_eq!(rate("LinkLabel \"155Mb/s\""), Rate::from_mbit(155));
    for unclear in ["< 2.5 Gbps", "2x10Gb/s", "1 GB/s", "1-20Gbps", "45 Mbps DS-3", "OC48/STM16", "bps"] {
        assert_eq!(rate(&format!("LinkLabel \"{unclear}\"")), Rate::from_mbit(10), "{unclear}");
    }
    assert_eq!(rate("LinkSpeed \"1\" LinkSpeedUnits \"GB\""), Rate::from_mbit(10));
}

#[test]
fn what_edges_cannot_mean_is_refused_with_its_line() {
    let error = |attributes: &str| {
        let graph = format!("graph [ {AB} edge [ source 0 target 1 {attributes} ] ]");
        let mut problems = try_load("gml", BOTH, graph.as_bytes(), ["A", "B"]).unwrap_err();
        problems.remove(0).split_off("x.toml:3: topology.file: ".len())
    };
    assert_eq!(
        error("latency \"fast\""),
        "g:2: the edge A-B: latency: `fast` is not a time: it does not start with a number; write for example \"20ms\""
    );
    assert!(error("delay 5").starts_with("g:2: the edge A-B: delay: `5`"));
    assert!(error("packet_loss 3").starts_with("g:2: the edge A-B: packet_loss: `3` is not a share"));
    assert!(error("LinkSpeedRaw -1").starts_with("g:2: the edge A-B: LinkSpeedRaw: `-1` is not a rate"));
    assert_eq!(error("LinkSpeedRaw 0"), "g:2: the edge A-B has rate zero; a rate must be above zero");
}

#[test]
fn nodes_give_what_neither_edges_nor_the_scenario_do() {
    // Paris and New York: 5837 km on a sphere of 6371 km, by the spherical law of cosines; light in fibre takes 29.21 ms.
    let graph = "node [ id 0 label \"A\" Latitude 48.8566 Longitude 2.3522 host_bandwidth_up \"20 Mbit\" host_bandwidth_down \"30 Mbit\" ]\n\
                 node [ id 1 label \"B\" Latitude 40.7128 Longitude -74.006 host_bandwidth_up \"5 Mbit\" host_bandwidth_down \"50 Mbit\" ]\n\
                 edge [ source 0 target 1 ]";
    let scenario = gml("", graph, ["A", "B"]);
    let [there, back] = ["A-B", "A-B.back"].map(|name| link(&scenario, name));
    let [a, b] =
        [(48.8566_f64, 2.3522_f64), (40.7128, -74.006)].map(|(x, y)| (x.to_radians(), y.to_radians()));
    let angle = (a.0.sin() * b.0.sin() + a.0.cos() * b.0.cos() * (a.1 - b.1).cos()).acos();
    let ms = 1e3 * angle * 6_371.008_8 / (299_792.458 * 2.0 / 3.0);
    assert!((ms - 29.21).abs() < 0.01 && (1e3 * there.delay.as_secs_f64() - ms).abs() < 1e-4, "{ms}");
    assert_eq!(there.delay, back.delay);
    // The smaller of one end's sending and the other's receiving rate.
    assert_eq!((there.rate, back.rate), (Rate::from_mbit(20), Rate::from_mbit(5)));
    assert_eq!(
        scenario.warnings()[..2],
        [
            "1 of 1 edges of `g` have the delay of light in fibre between the coordinates of their nodes, 29.21 to 29.21 ms; \
             `topology.link.delay` sets another",
            "1 of 1 edges of `g` have the rate that their nodes have as host_bandwidth_up and host_bandwidth_down; \
             `topology.link.rate` sets another"
        ]
    );
    let scenario = gml(BOTH, graph, ["A", "B"]);
    assert_eq!(kind(link(&scenario, "A-B")), (Rate::from_mbit(10), Span::from_millis(1), 0.0, None));
    let unused = "attributes in `g` that are not used: of nodes Latitude, Longitude, host_bandwidth_down, host_bandwidth_up";
    assert_eq!(scenario.warnings()[0], unused);
    // Only one of two nodes has coordinates.
    let nowhere = graph.replacen("Latitude 48.8566", "", 1);
    assert_eq!(
        try_load("gml", "", format!("graph [ {nowhere} ]").as_bytes(), ["A", "B"]).unwrap_err(),
        [
            "x.toml:3: topology.file: g:3: the edge A-B has no `delay`, and node 0 no coordinates; give it one, or set topology.link.delay"
        ]
    );
}

#[test]
fn attributes_that_do_nothing_are_named_once() {
    let graph = "node [ id 0 label \"A\" Country \"x\" graphics [ x 1 ] ] node [ id 1 label \"B\" Country \"y\" ]\n\
                 edge [ source 0 target 1 latency 5 LinkLabel \"Red\" ] edge [ source 1 target 0 LinkType \"Fibre\" LinkSpeedRaw 1e9 ]";
    let scenario = gml(BOTH, graph, ["A", "B"]);
    assert_eq!(
        scenario.warnings()[..2],
        [
            "1 of 2 edges of `g` have their rate from LinkSpeedRaw; `topology.link.rate` is for those without",
            "attributes in `g` that are not used: of edges LinkLabel, LinkType, latency (without a unit); of nodes Country, graphics"
        ]
    );
    let plain = gml(BOTH, &format!("{AB} edge [ id 5 source 0 target 1 rate \"1Mbit\" ]"), ["A", "B"]);
    assert_eq!(plain.warnings(), Vec::<String>::new());
}

#[test]
fn no_two_links_are_called_the_same() {
    let graph = "node [ id 0 label \"a\" ] node [ id 1 label \"b\" ] node [ id 2 label \"b-2\" ] node [ id 3 label \"b.back\" ]\n\
                 edge [ source 0 target 2 ] edge [ source 0 target 1 ] edge [ source 0 target 1 ] edge [ source 0 target 3 ]";
    let scenario = gml(BOTH, graph, ["a", "b"]);
    let names: Vec<_> = scenario.links.iter().map(|link| link.name.as_str()).collect();
    // `a-b-2` leads to b-2, and `a-b.back` would be the other direction of `a-b`.
    let all =
        ["a-b", "a-b-2", "a-b-2.back", "a-b-3", "a-b-3.back", "a-b.back", "a-b.back-2", "a-b.back-2.back"];
    assert_eq!(names, all);
}

#[test]
fn graphml_is_read_as_gml_is() {
    let graph =
        b"<graphml><key id='k' for='edge' attr.name='latency'/><key id='l' for='node' attr.name='label'/>\
                  <key id='c' for='node' attr.name='Country'/>\n\
                  <graph edgedefault='undirected'><node id='0'><data key='l'>S\xe3o</data></node>\
                  <node id='1'><data key='l'>S\xe3o</data><data key='c'>x</data></node>\n\
                  <edge source='0' target='1'><data key='k'>50 ms</data></edge></graph></graphml>";
    let scenario = try_load("graphml", BOTH, graph, ["S\u{e3}o", "S\u{e3}o (1)"]).unwrap();
    assert_eq!(scenario.links[0].delay, Span::from_millis(50));
    assert_eq!(scenario.warnings()[1], "attributes in `g` that are not used: of nodes Country");
    assert_eq!(
        try_load("graphml", "", graph, ["S\u{e3}o", "S\u{e3}o"]).unwrap_err()[0],
        "x.toml:3: topology.file: g:3: the edge S\u{e3}o-S\u{e3}o (1) has no `rate`; give it one, or set topology.link.rate"
    );
    let one_way = String::from_utf8_lossy(graph).replace("undirected", "directed");
    let problems =
        try_load("graphml", BOTH, one_way.as_bytes(), ["S\u{fffd}o (1)", "S\u{fffd}o"]).unwrap_err();
    assert!(problems[0].contains("no path leads from"), "{problems:?}");
}
