//! Scenario files: their meaning, and refusals.

mod refusals;
mod sizes;

use std::io;
use std::path::Path;
use std::sync::Arc;

use apportion_core::packet::FlowClass;
use apportion_core::param::Role;
use apportion_core::system::Catalog;
use apportion_core::units::{Bytes, Rate, Ratio, Span, Time};
use apportion_scenario::model::{
    Frames, Jitter, JitterDistribution, Link, Scenario, Setting, Source, Start, Transport, Video,
};
use apportion_scenario::{Suite, load};

use crate::common::slashes;

fn no_files(path: &Path) -> io::Result<Vec<u8>> {
    match &*slashes(&path.display()) {
        "dir/net.gml" => Ok(GRAPH.into()),
        "dir/cdf.txt" => Ok("0 0\n400 0.5\n2000 1\n".into()),
        "dir/segments.txt" => Ok("100000 300000\n200000 400000\n".into()),
        "dir/packets.txt" => Ok("1 1 0.5\n2 1 1\n".into()),
        "dir/bad.txt" => Ok("400 0.5\n10 1\n".into()),
        "dir/frames.txt" => Ok("900\n100\n".into()),
        "dir/packed.pcap" => Ok(vec![0x1f, 0x8b, 8]),
        "dir/bare.pcap" => Ok(capture(&[28, 28])),
        "dir/short.pcap" => Ok(capture(&[1500, 1500, 20])),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

/// A capture of raw IP with packets of these sizes, all cut to no bytes.
fn capture(sizes: &[u32]) -> Vec<u8> {
    let head = [0xa1b2_c3d4, 2 | (4 << 16), 0, 0, 4, 101];
    let records = sizes.iter().flat_map(|&size| [1, 0, 0, size]);
    head.into_iter().chain(records).flat_map(u32::to_le_bytes).collect()
}

const GRAPH: &str = "graph [
  node [ id 1 label \"a\" ] node [ id 2 label \"b\" ] node [ id 3 label \"c\" ]
  edge [ source 1 target 2 rate \"10Mbit\" delay \"5ms\" ]
  edge [ source 2 target 3 delay \"1ms\" loss \"1%\" ]
]";

fn suite(text: &str) -> Suite {
    try_load(text, &[]).unwrap_or_else(|messages| panic!("{messages:#?}"))
}

fn try_load(text: &str, overrides: &[(&str, &str)]) -> Result<Suite, Vec<String>> {
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    load(text, Path::new("dir/x.toml"), &overrides, &no_files)
        .map_err(|problems| problems.iter().map(slashes).collect())
}

fn scenario(text: &str) -> Scenario {
    let mut suite = suite(text);
    assert_eq!(suite.points.len(), 1);
    suite.points.remove(0).scenario
}

fn errors(text: &str) -> Vec<String> {
    try_load(text, &[]).map(|suite| suite.canonical).unwrap_err()
}

fn link<'a>(scenario: &'a Scenario, name: &str) -> &'a Link {
    scenario.links.iter().find(|link| link.name == name).unwrap()
}

/// The names of the nodes that a flow's packets pass.
fn route(scenario: &Scenario, flow: &str) -> String {
    let flow = scenario.flows.iter().find(|candidate| candidate.name == flow).unwrap();
    let links = || flow.path.iter().map(|id| &scenario.links[id.0 as usize]);
    let node = |id: apportion_scenario::model::NodeId| scenario.nodes[id.0 as usize].name.as_str();
    let mut names: Vec<_> = links().map(|link| node(link.from)).collect();
    names.extend(links().next_back().map(|link| node(link.to)));
    names.join(" ")
}

const DUMBBELL: &str = r#"seed = 7
stop = "60s"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck = { rate = "10Mbit", delay = "10ms", queue = "drr" }
access = { delay = "2ms * i" }
[flow.udp]
from = "l1"
to = "r1"
source = { kind = "cbr", rate = "3Mbit" }
"#;

#[test]
fn a_dumbbell_has_hosts_routers_and_two_way_links() {
    let scenario = scenario(DUMBBELL);
    let nodes: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["l1", "l2", "l3", "left", "r1", "r2", "r3", "right"]);
    assert_eq!(scenario.links.len(), 14);
    let bottleneck = link(&scenario, "bottleneck");
    assert_eq!(bottleneck.rate, Rate::from_mbit(10));
    assert!(bottleneck.watched && !link(&scenario, "bottleneck.back").watched);
    assert_ne!(bottleneck.queue, link(&scenario, "bottleneck.back").queue);
    assert_eq!(link(&scenario, "l3-left").delay, Span::from_millis(6));
    assert_eq!(link(&scenario, "right-r2.back").delay, Span::from_millis(4));
    assert_eq!(route(&scenario, "udp"), "l1 left right r1");
    assert_eq!(scenario.sample, Span::from_millis(100));
    assert_eq!(scenario.title, "x");
}

#[test]
fn links_of_a_topology_are_changed_by_name_and_others_added() {
    let text = format!(
        "{DUMBBELL}[link.bottleneck]\nrate = \"5Mbit\"\nloss = \"2%\"\nback = {{ rate = \"1Mbit\" }}\n\
         [link.short]\nfrom = \"left\"\nto = \"right\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\nback = false\n"
    );
    let scenario = scenario(&text);
    let bottleneck = link(&scenario, "bottleneck");
    assert_eq!((bottleneck.rate, bottleneck.delay), (Rate::from_mbit(5), Span::from_millis(10)));
    assert_eq!(bottleneck.loss.mean(), Ratio::clamped(0.02));
    assert_eq!(link(&scenario, "bottleneck.back").rate, Rate::from_mbit(1));
    assert_eq!(link(&scenario, "bottleneck.back").loss.mean(), Ratio::ZERO);
    assert!(scenario.links.iter().all(|link| link.name != "short.back"));
    let path = &scenario.flows[0].path;
    assert_eq!(scenario.links[path[1].0 as usize].name, "short");
}

const GROUP: &str = r#"seed = 1
stop = "10s"
measure_from = "1s"
[link.l]
from = "a"
to = "b"
rate = "1Mbit"
delay = "1ms"
lost = [{ flow = "g.11", packets = [22, 20] }]
[flow.g]
count = 11
from = "a"
to = "b"
tcp = "rfc"
weight = "i"
guarantee = "1kbit * i"
start = { between = ["0s", "100ms * i"] }
stop = "9s"
[flow."g.20"]
from = "b"
to = "a"
source = { kind = "poisson", rate = "8kbit", packet = "100B" }
class = "real_rate"
"#;

#[test]
fn a_group_has_members_that_differ_by_formulas() {
    let scenario = scenario(GROUP);
    assert_eq!(scenario.flows.len(), 12);
    let names: Vec<_> = scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
    assert_eq!(names[..3], ["g.1", "g.2", "g.3"]);
    assert_eq!(names[9..], ["g.10", "g.11", "g.20"]);
    assert!(scenario.flows.iter().all(|flow| flow.group == "g"));
    let flow = &scenario.flows[10];
    assert_eq!((flow.weight.get(), flow.guarantee), (11.0, Rate::from_kbit(11)));
    assert_eq!(flow.start, Start::Between(Time::ZERO, Time::from_millis(1_100)));
    assert_eq!((flow.class, scenario.flows[11].class), (FlowClass::Greedy, FlowClass::RealRate));
    assert_eq!(flow.stop, Some(Time::from_secs(9)));
    assert!(matches!((&flow.source, &flow.transport), (Source::Greedy, Transport::Tcp(_))));
    let Transport::Udp { packet, header } = scenario.flows[11].transport else { panic!() };
    assert_eq!((packet, header), (Bytes::new(100), Bytes::new(28)));
    let lost = &link(&scenario, "l").lost;
    assert_eq!((lost[0].flow, &lost[0].packets[..]), (10, &[20, 22][..]));
}

#[test]
fn an_unreachable_destination_names_flow_and_ends() {
    let text = |source: &str| {
        format!(
            "seed = 1\nstop = \"1s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
             back = false\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n{source}\n"
        )
    };
    assert_eq!(
        errors(&text("tcp = \"rfc\"")),
        [
            "dir/x.toml:9: flow.f.return_path: flow `f`: no path leads from `b` to `a`; add a link between them"
        ]
    );
    // Datagrams need no return path.
    let udp = text("source = { kind = \"cbr\", rate = \"1Mbit\" }");
    assert!(scenario(&udp).flows[0].back.is_empty());
    assert_eq!(
        errors(&udp.replace("from = \"a\"\nto = \"b\"\nsource", "from = \"b\"\nto = \"a\"\nsource")),
        ["dir/x.toml:11: flow.f.to: flow `f`: no path leads from `b` to `a`; add a link between them"]
    );
}

#[test]
fn a_graph_of_a_file_becomes_links() {
    let text = |file: &str, link: &str| {
        format!(
            "seed = 1\nstop = \"1s\"\n[topology]\nkind = \"gml\"\nfile = \"{file}\"\n{link}\n\
             [flow.f]\nfrom = \"a\"\nto = \"c\"\ntcp = \"rfc\"\n"
        )
    };
    let scenario = scenario(&text("net.gml", "link = { rate = \"2Mbit\", watch = true }"));
    assert_eq!(route(&scenario, "f"), "a b c");
    let second = link(&scenario, "b-c");
    assert_eq!((second.rate, second.delay), (Rate::from_mbit(2), Span::from_millis(1)));
    assert!(second.watched && second.loss.mean() == Ratio::clamped(0.01));
    assert_eq!(link(&scenario, "a-b.back").rate, Rate::from_mbit(10));
    assert_eq!(
        errors(&text("net.gml", "")),
        [
            "dir/x.toml:5: topology.file: net.gml:4: the edge b-c has no `rate`; give it one, or set topology.link.rate"
        ]
    );
    assert_eq!(
        errors(&text("gone.gml", "")),
        [
            "dir/x.toml:5: topology.file: cannot read `dir/gone.gml`: entity not found; paths start at the folder of `dir/x.toml`"
        ]
    );
}

#[test]
fn changes_find_links_flows_and_groups() {
    let change =
        |set: &str, to: &str| format!("{GROUP}[[change]]\nat = \"5s\"\nset = \"{set}\"\nto = {to}\n");
    let settings = |set: &str, to: &str| -> Vec<_> {
        scenario(&change(set, to)).changes.into_iter().map(|change| change.to).collect()
    };
    assert!(
        matches!(settings("link.l.back.rate", "\"0bit\"")[..], [Setting::LinkRate(id, Rate::ZERO)] if id.0 == 1)
    );
    assert!(matches!(settings("link.l.delay", "\"2ms\"")[..], [Setting::LinkDelay(..)]));
    assert!(matches!(settings("link.l.loss", "0.5")[..], [Setting::LinkLoss(..)]));
    assert!(matches!(settings("link.l.queue", "\"drr\"")[..], [Setting::LinkQueue(..)]));
    assert!(
        matches!(settings("flow.g.20.rate", "\"9kbit\"")[..], [Setting::FlowRate(11, rate)] if rate == Rate::from_kbit(9))
    );
    let weights = settings("flow.g.weight", "\"2 * i\"");
    assert_eq!(weights.len(), 12);
    assert!(matches!(weights[10], Setting::FlowWeight(10, weight) if weight.get() == 22.0));
    let classes = settings("flow.g.class", "\"real_rate\"");
    assert!(matches!(classes[10], Setting::FlowClass(10, FlowClass::RealRate)) && classes.len() == 12);
    let guarantees = settings("flow.g.guarantee", "\"2kbit * i\"");
    assert!(matches!(guarantees[9..], [_, Setting::FlowGuarantee(10, to), Setting::FlowGuarantee(11, last)]
            if (to, last) == (Rate::from_kbit(22), Rate::from_kbit(40))));
    let error = |set: &str, to: &str| errors(&change(set, to))[0].clone();
    assert_eq!(
        error("flow.g.guarantee", "-1"),
        "dir/x.toml:27: change[1].to: `-1` is not a rate: it is negative; write for example \"10Mbit\""
    );
    assert_eq!(
        error("flow.g.class", "\"video\""),
        "dir/x.toml:27: change[1].to: not a class; write one of greedy, real_rate"
    );
    assert_eq!(
        error("link.m.rate", "\"1bit\""),
        "dir/x.toml:26: change[1].set: there is no link `m` (did you mean `l`?)"
    );
    assert_eq!(
        error("flow.g.1.rate", "\"1Mbit\""),
        "dir/x.toml:26: change[1].set: flow `g.1` has no rate: its source is none of cbr, poisson, on_off"
    );
    assert_eq!(
        error("link.l.rates", "1"),
        "dir/x.toml:26: change[1].set: `rates` of a link cannot change (did you mean `rate`?); what can: rate, delay, loss, queue, \
         tickets, ack_tickets"
    );
    assert_eq!(
        error("link.l.ticket", "1"),
        "dir/x.toml:26: change[1].set: `ticket` of a link cannot change (did you mean `tickets`?); what can: rate, delay, \
         loss, queue, tickets, ack_tickets"
    );
    assert_eq!(
        error("l", "1"),
        "dir/x.toml:26: change[1].set: `l` names nothing that can change; write for example \"link.bottleneck.rate\""
    );
    let twice = change("link.l.rate", "\"1Mbit\"")
        + "[[change]]\nat = \"5s\"\nset = \"link.l.rate\"\nto = \"2Mbit\"\n";
    assert_eq!(
        errors(&twice),
        ["dir/x.toml:28: change[2]: change[1] sets the same thing at 5s; remove one of them"]
    );
}

fn with_topology(topology: &str, flow: &str) -> Scenario {
    scenario(&format!(
        "seed = 1\nstop = \"1s\"\ntopology = {{ {topology} }}\n[flow.f]\ntcp = \"rfc\"\n{flow}\n"
    ))
}

#[test]
fn ready_topologies_are_wired_as_described() {
    let link_of_3 = "link = { rate = \"3Mbit\", delay = \"5ms\" }";
    let chain =
        with_topology(&format!("kind = \"chain\", hops = 2, {link_of_3}"), "from = \"h1\"\nto = \"h3\"");
    assert_eq!(route(&chain, "f"), "h1 n1 n2 n3 h3");
    let lot = with_topology(
        &format!("kind = \"parking_lot\", hops = 2, {link_of_3}"),
        "from = \"src\"\nto = \"out1\"",
    );
    assert_eq!(route(&lot, "f"), "src n1 n2 out1");
    assert_eq!(lot.links.iter().filter(|link| link.watched).count(), 2);
    let gfc = with_topology("kind = \"gfc\"", "from = \"long1\"\nto = \"short4\"");
    assert_eq!(route(&gfc, "f"), "long1 R1 R2 R3 R4 short4");
    let rate = |name| link(&gfc, name).rate;
    assert_eq!(
        [rate("R1-R2"), rate("R2-R3"), rate("R3-R4")],
        [Rate::from_kbit(15_600), Rate::from_kbit(36_000), Rate::from_kbit(22_800)]
    );
    assert_eq!(link(&gfc, "long1-R1").delay, Span::from_nanos(18_500_000));
    let up = "kind = \"satellite\", pairs = 2, satellite = { rate = \"9Mbit\", delay = \"250ms\", loss = \"1%\", \
              back = { rate = \"64kbit\" } }";
    let satellite = with_topology(up, "from = \"l2\"\nto = \"r2\"");
    assert_eq!(route(&satellite, "f"), "l2 gateway terminal r2");
    assert_eq!(link(&satellite, "satellite").loss.mean(), Ratio::clamped(0.01));
    assert_eq!(link(&satellite, "satellite.back").rate, Rate::from_kbit(64));
}

#[test]
fn paths_are_listed_by_nodes_or_by_links() {
    let ring = "seed = 1\nstop = \"1s\"\n[link.ab]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                [link.bc]\nfrom = \"b\"\nto = \"c\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                [link.ca]\nfrom = \"c\"\nto = \"a\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                [flow.f]\nfrom = \"a\"\nto = \"c\"\ntcp = \"rfc\"\n";
    assert_eq!(route(&scenario(ring), "f"), "a c");
    assert_eq!(route(&scenario(&format!("{ring}path = [\"b\"]")), "f"), "a b c");
    assert_eq!(route(&scenario(&format!("{ring}path = [\"ab\", \"bc\"]")), "f"), "a b c");
    let error = |path: &str| errors(&format!("{ring}path = {path}"))[0].clone();
    assert_eq!(
        error("[\"ab\", \"ca\"]"),
        "dir/x.toml:22: flow.f.path: link `ca` (`c` to `a`) does not start where link `ab` (`a` to `b`) ends"
    );
    assert_eq!(
        error("[\"ab\", \"ab.back\"]"),
        "dir/x.toml:22: flow.f.path: the path has a loop: it visits node `a` twice"
    );
    assert_eq!(
        error("\"b\""),
        "dir/x.toml:22: flow.f.path: `b` is not a list of names; write for example [\"a\", \"b\"]"
    );
}

#[test]
fn sources_read_their_files() {
    let text = |source: &str| {
        format!(
            "seed = 1\nstop = \"1s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
             [flow.f]\nfrom = \"a\"\nto = \"b\"\nsource = {{ {source} }}\n"
        )
    };
    let video = scenario(&text("kind = \"video\", file = \"frames.txt\", fps = 10"));
    let Source::Video(Video { frames: Frames::Trace(frames), .. }) = &video.flows[0].source else { panic!() };
    assert_eq!(&frames[..], [Bytes::new(900), Bytes::new(100)]);
    // 10 frames a second of 500 B on average are 40 kb/s.
    assert_eq!(video.entitlements(), Some(vec![Rate::from_kbit(40)]));
    assert_eq!(
        errors(&text("kind = \"replay\", file = \"gone.pcap\"")),
        [
            "dir/x.toml:11: flow.f.source.file: `gone.pcap`: cannot read `dir/gone.pcap`: entity not found; paths start at \
          the folder of `dir/x.toml`"
        ]
    );
    assert_eq!(errors(&text("kind = \"replay\", file = \"frames.txt\"")).len(), 1);
    // Datagrams without payload only.
    let bare = scenario(&text("kind = \"replay\", file = \"bare.pcap\""));
    let Source::Replay { packets } = &bare.flows[0].source else { panic!() };
    assert_eq!(packets.iter().map(|(_, size)| size.get()).collect::<Vec<_>>(), [28, 28]);
    let short = scenario(&text("kind = \"replay\", file = \"short.pcap\""));
    assert_eq!(
        short.notes,
        [
            "flow.f.source.file: `short.pcap`: 1 of 3 frames are skipped: 1 with less than the 28B of headers that a datagram \
          has (first frame 3)"
        ]
    );
    let Source::Replay { packets } = &short.flows[0].source else { panic!() };
    assert_eq!(packets.len(), 2);
    assert_eq!(
        errors(&text("kind = \"replay\", file = \"packed.pcap\"")),
        [
            "dir/x.toml:11: flow.f.source.file: `packed.pcap`: it is compressed; name what `gzip -dk dir/packed.pcap` writes"
        ]
    );
    assert_eq!(
        errors(&text("kind = \"video\"")),
        ["dir/x.toml:11: flow.f.source: write either `file` or `mean`, for example mean = \"1.5Mbit\""]
    );
}

#[test]
fn a_stream_belongs_to_one_flow() {
    let with = |lines: &str| DUMBBELL.to_owned() + lines;
    let streams = |text: &str| -> Vec<String> {
        scenario(text).flows.iter().map(|flow| flow.stream().to_owned()).collect()
    };
    let group = "[flow.tcp]\ncount = 2\nfrom = \"l2\"\nto = \"r2\"\ntcp = \"rfc\"\n";
    assert_eq!(streams(&with(group)), ["tcp.1", "tcp.2", "udp"]);
    assert_eq!(streams(&with(&format!("{group}stream = \"bulk\""))), ["bulk.1", "bulk.2", "udp"]);
    // A name that another flow no longer uses is free.
    assert_eq!(
        streams(&with(
            "stream = \"x\"\n[flow.y]\nfrom = \"l2\"\nto = \"r2\"\ntcp = \"rfc\"\nstream = \"udp\""
        )),
        ["x", "udp"]
    );
    assert_eq!(
        errors(&with("[flow.a]\nfrom = \"l2\"\nto = \"r2\"\ntcp = \"rfc\"\nstream = \"udp\"")),
        [
            "dir/x.toml:12: flow.a.stream: flow `a` would draw from the streams of flow `udp`; write a name that no flow has"
        ]
    );
}

#[test]
fn segments_of_a_video_have_the_sizes_of_a_file() {
    let text = |keys: &str| {
        DUMBBELL.to_owned()
            + "[flow.f]\nfrom = \"l1\"\nto = \"r1\"\ntcp = \"rfc\"\nsource = { kind = \"dash\", segment = \"2s\", "
            + keys
            + " }\n"
    };
    let dash = |keys: &str| match &scenario(&text(keys)).flows[0].source {
        Source::Dash(dash) => Arc::clone(dash),
        other => panic!("{other:?}"),
    };
    // 150 and 350 kB on average in 2 s.
    let means = dash("file = \"segments.txt\"");
    assert_eq!(&*means.ladder, [600, 1_400].map(Rate::from_kbit));
    let sizes = [(0, 0), (0, 1), (1, 0), (2, 1)].map(|(number, rate)| means.size(number, rate).get());
    assert_eq!(sizes, [100_000, 300_000, 200_000, 300_000]);
    let named = dash("file = \"segments.txt\", ladder = [\"500kbit\", \"1Mbit\"]");
    assert_eq!((&*named.ladder, &named.sizes), (&[500, 1_000].map(Rate::from_kbit)[..], &means.sizes));
    assert!(
        errors(&text("file = \"segments.txt\", ladder = [\"1Mbit\"]"))[0]
            .contains("source.ladder: the lines of `segments.txt` have 2 sizes")
    );
    assert!(
        errors(&text("file = \"frames.txt\", ladder = [\"1Mbit\", \"2Mbit\"]"))[0]
            .contains("source.ladder: the lines of `frames.txt` have 1")
    );
    assert!(errors(&text("file = \"none.txt\""))[0].contains("source.file: `none.txt`: cannot read"));
}

#[test]
fn a_rate_may_be_a_trace_and_a_loss_a_model_of_bursts() {
    let files = |path: &Path| match &*slashes(&path.display()) {
        "dir/lte.down" => Ok(b"1\n2\n2\n".to_vec()),
        "dir/bad" => Ok(b"3\n2\n".to_vec()),
        "dir/lte.csv" => Ok(b"time,Mb/s\n0,5\n0.5,0\n1.5,10\n".to_vec()),
        _ => Err(io::Error::from(io::ErrorKind::NotFound)),
    };
    let text = |rate: &str, loss: &str| {
        format!(
            "seed = 1\nstop = \"1s\"\n[link.x]\nfrom = \"a\"\nto = \"b\"\nrate = {rate}\ndelay = \"1ms\"\nloss = {loss}\n\
             [flow.f]\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    let load = |text: &str| load(text, Path::new("dir/x.toml"), &[], &files);
    let (trace, bursts) = ("{ trace = \"lte.down\" }", "{ p = \"1%\", r = \"25%\" }");
    let suite = load(&text(trace, bursts)).unwrap();
    let x = link(&suite.points[0].scenario, "x");
    // 3 x 1504 x 8 bits in 2 ms; 0.01 / 0.26 of the packets.
    assert_eq!((x.rate, x.trace.is_some()), (Rate::from_bit(18_048_000), true));
    assert!((x.loss.mean().get() - 0.01 / 0.26).abs() < 1e-12, "{:?}", x.loss);
    let back = link(&suite.points[0].scenario, "x.back");
    assert!(back.trace.is_some() && back.loss.mean() == Ratio::ZERO);
    assert_eq!(load(&suite.canonical).unwrap().canonical, suite.canonical);
    let refused = |text: &str, expected: &str| {
        let problems = load(text).unwrap_err();
        let found = problems.iter().map(slashes).collect::<Vec<_>>().join("\n");
        assert!(found.contains(expected), "{found}");
    };
    refused(
        &text("{ trace = \"bad\" }", "0"),
        "link.x.rate.trace: `bad`: line 2: 2 ms comes after a later time",
    );
    // 0.5 s of 5 Mb/s, 1 s of none and 1 s of 10, in packets of 12032 bits.
    let table = load(&text("{ trace = \"lte.csv\", columns = \"s Mbit\" }", "0")).unwrap();
    assert_eq!(link(&table.points[0].scenario, "x").rate, Rate::from_bit(1_038 * 12_032 * 2 / 5));
    assert_eq!(load(&table.canonical).unwrap().hash, table.hash);
    refused(
        &text("{ trace = \"lte.csv\" }", "0"),
        "link.x.rate.trace: `lte.csv`: line 1: `time,Mb/s` is not a time in milliseconds",
    );
    refused(
        &text("{ trace = \"lte.csv\", columns = \"s\" }", "0"),
        "link.x.rate.trace: `lte.csv`: line 1: `time,Mb/s` has 2 columns, and `s` 1",
    );
    refused(
        &text("{ trace = \"lte.csv\", columns = \"s Mbps\" }", "0"),
        "link.x.rate.columns: `s Mbps` has `Mbps`, which is no unit",
    );
    refused(&text("{ trace = \"none\" }", "0"), "link.x.rate.trace: cannot read `dir/none`");
    refused(&text("{ }", "0"), "link.x.rate.trace: missing");
    refused(&text(trace, "{ p = 0.1 }"), "link.x.loss.r: missing");
    refused(&text(trace, "{ p = 0.1, r = 0 }"), "link.x.loss.r");
    let change = "[[change]]\nat = \"0.5s\"\nset = \"link.x.rate\"\nto = \"1Mbit\"\n";
    refused(&(text(trace, "0") + change), "link `x` is recorded");
}

#[test]
fn a_delay_may_vary_by_chance() {
    let text = |jitter: &str, back: &str| {
        format!(
            "seed = 1\nstop = \"1s\"\n[defaults.link]\njitter = \"1ms\"\n[link.x]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\n\
             delay = \"1ms\"\n{jitter}\nback = {{ {back} }}\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n"
        )
    };
    let jitter = |text: &str, name: &str| link(&scenario(text), name).jitter;
    let (uniform, normal) = (JitterDistribution::Uniform, JitterDistribution::Normal);
    let expected =
        |ms, distribution, reorder| Some(Jitter { max: Span::from_millis(ms), distribution, reorder });
    assert_eq!(jitter(&text("", ""), "x"), expected(1, uniform, false));
    assert_eq!(jitter(&text("", ""), "x.back"), None);
    assert_eq!(jitter(&text("jitter = \"0s\"", ""), "x"), None);
    assert_eq!(jitter(&text("jitter = { max = \"0s\", reorder = true }", ""), "x"), None);
    let table = "jitter = { max = \"5ms\", distribution = \"normal\", reorder = true }";
    assert_eq!(jitter(&text(table, ""), "x"), expected(5, normal, true));
    assert_eq!(jitter(&text("", table), "x.back"), expected(5, normal, true));

    let refused = |jitter: &str, expected: &str| {
        let found = errors(&text(&format!("jitter = {jitter}"), "")).join("\n");
        assert!(found.contains(expected), "{found}");
    };
    refused("\"-1ms\"", "link.x.jitter: `-1ms` is not");
    refused("{ }", "link.x.jitter.max: missing");
    refused("{ max = 3 }", "link.x.jitter.max: `3` is not a time");
    refused("{ max = \"1ms\", distribution = \"gamma\" }", "link.x.jitter.distribution: `gamma`");
    refused("{ max = \"1ms\", reorders = true }", "unknown key (did you mean `reorder`?)");
}
