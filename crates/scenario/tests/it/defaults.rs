//! `[defaults.link]` and `[defaults.flow]`: which tables take them, sweeps of them, and the canonical text.

use apportion_core::mark::MarkerParams;
use apportion_core::param::ByName as _;
use apportion_core::units::{Rate, Ratio, Span, TicketRate, Time};
use apportion_scenario::model::{Link, Scenario, Source, Start, Transport};
use apportion_scenario::tcp::{ALGORITHMS, PROFILES};

use crate::common::{self, errors, link, scenario, suite, survives, try_load};

const TEXT: &str = r#"seed = 1
stop = "10s"
[defaults.link]
rate = "2Mbit"
delay = "3ms"
queue = "drr"
loss = "1%"
tickets = 70
exchange = { bits = 12 }
watch = true
pcap = true
back = { queue = "red", loss = "2%", tickets = 80, watch = true }
[defaults.flow]
tcp = "rfc"
source = { kind = "file", size = "10kB" }
weight = "2 * i"
guarantee = "1kbit"
tickets = "100 * i"
mark = { kind = "tickets", decay = false }
start = "1s"
stop = "9s"
[link.plain]
from = "a"
to = "b"
[link.own]
from = "b"
to = "c"
rate = "5Mbit"
delay = "1ms"
queue = { kind = "fifo", limit = "9p" }
loss = 0
tickets = 1
exchange = { window = "1s" }
watch = false
pcap = false
back = { queue = "fifo", loss = 0, tickets = 2, watch = false }
[flow.group]
count = 2
from = "a"
to = "b"
[flow.own]
from = "b"
to = "c"
tcp = { profile = "rfc", algorithm = "cubic" }
source = "greedy"
weight = 1
guarantee = "0bit"
tickets = 5
mark = "tickets"
start = { between = ["0s", "1s"] }
stop = "8s"
"#;

fn queue_of(kind: &str) -> apportion_core::system::DisciplineParams {
    let text = TEXT.replacen("queue = \"drr\"", &format!("queue = {kind}"), 1);
    link(&scenario(&text), "plain").queue.clone()
}

#[test]
fn links_take_what_they_do_not_set() {
    let scenario = scenario(TEXT);
    let [plain, own] = ["plain", "own"].map(|name| link(&scenario, name));
    let [plain_back, own_back] = ["plain.back", "own.back"].map(|name| link(&scenario, name));
    let (two, three) = (Rate::from_mbit(2), Span::from_millis(3));
    let issued = TicketRate::new;
    let figures =
        |link: &Link| (link.rate, link.delay, link.loss.mean().get(), link.tickets, link.watched, link.pcap);
    assert_eq!(figures(plain), (two, three, 0.01, issued(70.0), true, true));
    assert_eq!(figures(plain_back), (two, three, 0.02, issued(80.0), true, false));
    assert_eq!((&plain.queue, &plain_back.queue), (&queue_of("\"drr\""), &queue_of("\"red\"")));
    assert_eq!(plain.exchange, plain_back.exchange);
    assert_ne!(plain.exchange, own.exchange);
    let (five, one) = (Rate::from_mbit(5), Span::from_millis(1));
    assert_eq!(figures(own), (five, one, 0.0, issued(1.0), false, false));
    assert_eq!(figures(own_back), (five, one, 0.0, issued(2.0), false, false));
    assert_eq!(own.queue, queue_of("{ kind = \"fifo\", limit = \"9p\" }"));
    assert_eq!(own_back.queue, queue_of("\"fifo\""));
    // The table replaces the default as a whole, including its `bits`.
    assert_eq!((own.exchange.window, own_back.exchange.window), (Span::from_secs(1), Span::from_secs(1)));
    assert_ne!(own.exchange.writer.format(), plain.exchange.writer.format());
}

#[test]
fn the_other_direction_has_a_deep_fifo_also_where_links_have_a_default() {
    let text = TEXT.replace("back = { queue = \"red\", loss = \"2%\", tickets = 80, watch = true }\n", "");
    let scenario = scenario(&text);
    let back = link(&scenario, "plain.back");
    assert_eq!(back.queue, queue_of("{ kind = \"fifo\", limit = \"1000p\" }"));
    assert_eq!((back.loss.mean(), back.tickets, back.watched, back.pcap), (Ratio::ZERO, None, false, false));
    assert_eq!((back.rate, back.delay), (Rate::from_mbit(2), Span::from_millis(3)));
}

#[test]
fn flows_take_what_they_do_not_set() {
    let scenario = scenario(TEXT);
    let decays = |at: usize| {
        let Some(MarkerParams::Tickets(params)) = scenario.flows[at].mark.as_deref() else {
            panic!("tickets")
        };
        params.decay
    };
    let [_, second, own] = &scenario.flows[..] else { panic!() };
    assert_eq!((second.name.as_str(), own.name.as_str()), ("group.2", "own"));
    // Formulas count the members of the group that takes them.
    assert_eq!((second.weight.get(), second.tickets), (4.0, TicketRate::new(200.0)));
    assert_eq!((second.guarantee, second.start), (Rate::from_kbit(1), Start::At(Time::from_secs(1))));
    assert_eq!((second.stop, decays(1)), (Some(Time::from_secs(9)), false));
    assert!(matches!(second.source, Source::File { .. }));
    let algorithm = |transport: &Transport| match transport {
        Transport::Tcp(params) => params.get("algorithm"),
        Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => None,
    };
    assert_ne!(algorithm(&second.transport), algorithm(&own.transport));
    assert_eq!((own.weight.get(), own.tickets, own.guarantee), (1.0, TicketRate::new(5.0), Rate::ZERO));
    assert!(matches!(own.source, Source::Greedy));
    assert_eq!(
        (own.start, own.stop, decays(2)),
        (Start::Between(Time::ZERO, Time::from_secs(1)), Some(Time::from_secs(8)), true)
    );
}

/// A dumbbell or another network, with `link` as defaults for links.
fn network(topology: &str, link: &str) -> Scenario {
    let (from, to) = if topology.contains("gml") { ("a", "c") } else { ("l1", "r1") };
    let (from, to) = if topology.contains("gfc") { ("short1", "short2") } else { (from, to) };
    scenario(&format!(
        "seed = 1\nstop = \"1s\"\n[defaults.link]\n{link}\n[topology]\n{topology}\n\
         [flow.f]\nfrom = \"{from}\"\nto = \"{to}\"\ntcp = \"rfc\"\n"
    ))
}

const ALL: &str = "rate = \"7Mbit\"\ndelay = \"7ms\"\nqueue = \"drr\"\nloss = \"1%\"\ntickets = 9\n\
                   back = { queue = \"red\", tickets = 8 }";

#[test]
fn links_of_a_topology_take_what_their_tables_do_not_set() {
    let dumbbell = |bottleneck: &str, rest: &str| {
        let bottleneck = format!("bottleneck = {{ rate = \"1Mbit\", delay = \"1ms\"{bottleneck} }}");
        network(&format!("kind = \"dumbbell\"\npairs = 1\n{bottleneck}\n{rest}"), ALL)
    };
    let plain = dumbbell("", "");
    let queues = |scenario: &Scenario, name: &str| {
        let kinds =
            [("drr", queue_of("\"drr\"")), ("red", queue_of("\"red\"")), ("fifo", queue_of("\"fifo\""))];
        [name.to_owned(), format!("{name}.back")].map(|name| {
            let queue = &link(scenario, &name).queue;
            kinds.iter().find(|(_, kind)| kind == queue).map_or("other", |(name, _)| name)
        })
    };
    for name in ["bottleneck", "l1-left", "right-r1"] {
        assert_eq!(queues(&plain, name), ["drr", "red"], "{name}");
        let (there, back) = (link(&plain, name), link(&plain, &format!("{name}.back")));
        assert_eq!((there.loss.mean().get(), back.loss.mean().get()), (0.01, 0.0), "{name}");
        assert_eq!([there.tickets, back.tickets], [TicketRate::new(9.0), TicketRate::new(8.0)], "{name}");
    }
    // Rates and delays come from the topology, even if it only implies them.
    let (bottleneck, access) = (link(&plain, "bottleneck.back"), link(&plain, "l1-left.back"));
    assert_eq!((bottleneck.rate, bottleneck.delay), (Rate::from_mbit(1), Span::from_millis(1)));
    assert_eq!((access.rate, access.delay), (Rate::from_mbit(100), Span::from_millis(1)));
    assert!(link(&plain, "bottleneck").watched && !link(&plain, "l1-left").watched);

    let own =
        dumbbell(", queue = \"fifo\", loss = 0, back = { queue = \"fifo\" }", "access.queue = \"fifo\"");
    assert_eq!(queues(&own, "bottleneck"), ["fifo", "fifo"]);
    assert_eq!(link(&own, "bottleneck").loss.mean(), Ratio::ZERO);
    assert_eq!(queues(&own, "right-r1"), ["fifo", "fifo"]);
    assert_eq!(link(&own, "right-r1").loss.mean(), Ratio::clamped(0.01));

    let gfc = network("kind = \"gfc\"", ALL);
    assert_eq!(queues(&gfc, "R1-R2"), ["drr", "red"]);
    assert_eq!(queues(&gfc, "long4-R4"), ["drr", "red"]);
    assert_eq!(link(&gfc, "R3-R4.back").rate, Rate::from_kbit(22_800));
    let gfc = network("kind = \"gfc\"\nqueue = \"fifo\"", "queue = \"drr\"\nwatch = false");
    assert_eq!(queues(&gfc, "R1-R2"), ["fifo", "other"]);
    assert!(!link(&gfc, "R1-R2").watched);
}

#[test]
fn edges_of_a_graph_take_what_neither_they_nor_the_topology_set() {
    let graph = network("kind = \"gml\"\nfile = \"net.gml\"", ALL);
    let (said, unsaid) = (link(&graph, "a-b"), link(&graph, "b-c"));
    assert_eq!(
        (said.rate, said.delay, said.loss.mean().get()),
        (Rate::from_mbit(10), Span::from_millis(5), 0.03)
    );
    assert_eq!(
        (unsaid.rate, unsaid.delay, unsaid.loss.mean().get()),
        (Rate::from_mbit(7), Span::from_millis(1), 0.01)
    );
    // Both directions of an edge are equal, except for keys that only other directions take.
    let back = link(&graph, "b-c.back");
    assert_eq!(
        (back.rate, back.loss.mean().get(), back.tickets),
        (Rate::from_mbit(7), 0.01, TicketRate::new(8.0))
    );
    assert_eq!((&unsaid.queue, &back.queue), (&queue_of("\"drr\""), &queue_of("\"red\"")));
    let link_of =
        "kind = \"gml\"\nfile = \"net.gml\"\nlink = { rate = \"2Mbit\", queue = \"fifo\", loss = 0 }";
    let graph = network(link_of, ALL);
    let (there, back) = (link(&graph, "b-c"), link(&graph, "b-c.back"));
    assert_eq!(
        (there.rate, there.loss.mean(), &there.queue),
        (Rate::from_mbit(2), Ratio::ZERO, &queue_of("\"fifo\""))
    );
    assert_eq!(
        (back.rate, back.loss.mean(), &back.queue),
        (Rate::from_mbit(2), Ratio::ZERO, &queue_of("\"fifo\""))
    );
}

#[test]
fn overrides_reach_defaults_by_name_and_by_table() {
    let plain = |overrides: &[(&str, &str)]| {
        let mut suite = try_load(TEXT, overrides).unwrap_or_else(|messages| panic!("{messages:#?}"));
        link(&suite.points.remove(0).scenario, "plain").clone()
    };
    let (short, drr) = (plain(&[("defaults.link.queue.limit", "7p")]), plain(&[]));
    assert_eq!(short.queue, queue_of("{ kind = \"drr\", limit = \"7p\" }"));
    assert_ne!(short.queue, drr.queue);
    let tred = plain(&[("defaults.link.queue", "tred"), ("defaults.link.queue.factor", "false")]);
    assert_eq!(tred.queue, queue_of("{ kind = \"tred\", factor = false }"));
    assert_ne!(tred.queue, queue_of("\"tred\""));
    for before in ["mark = { kind = \"tickets\", decay = false }", "mark = \"tickets\"", ""] {
        let text = TEXT.replacen("mark = { kind = \"tickets\", decay = false }", before, 1);
        for (value, decay) in [("true", true), ("false", false)] {
            let suite = try_load(&text, &[("defaults.flow.mark.decay", value)]).unwrap();
            let mark = suite.points[0].scenario.flows[0].mark.as_deref();
            let Some(MarkerParams::Tickets(params)) = mark else { panic!("tickets") };
            assert_eq!(params.decay, decay, "{before}");
            survives(&suite);
        }
    }
    // Even if nothing had defaults.
    let none = "seed = 1\nstop = \"1s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\n[flow.f]\nfrom = \"a\"\n\
                to = \"b\"\ntcp = \"rfc\"\n";
    let made = try_load(none, &[("defaults.link.delay", "4ms"), ("defaults.flow.weight", "3")]).unwrap();
    assert_eq!(made.points[0].scenario.links[0].delay, Span::from_millis(4));
    assert_eq!(made.points[0].scenario.flows[0].weight.get(), 3.0);
    survives(&made);
}

#[test]
fn defaults_are_swept_and_survive_their_canonical_text() {
    let labels = |overrides: &[(&str, &str)]| -> Vec<String> {
        let suite = try_load(TEXT, overrides).unwrap_or_else(|messages| panic!("{messages:#?}"));
        survives(&suite);
        suite.points.into_iter().map(|point| point.label).collect()
    };
    assert_eq!(labels(&[]), [""]);
    assert_eq!(labels(&[("defaults.link.queue", "[\"tred\", \"red\"]")]), ["queue=tred", "queue=red"]);
    assert_eq!(labels(&[("defaults.flow.mark.decay", "[true, false]")]), ["decay=true", "decay=false"]);
    assert_eq!(
        labels(&[("defaults.link.back.tickets", "1..3 step 1")]),
        ["tickets=1", "tickets=2", "tickets=3"]
    );
    assert_eq!(
        labels(&[("defaults.flow.tcp", "[\"rfc\", \"ns2-2000\"]"), ("defaults.flow.weight", "[1, \"i\"]")])
            [3],
        "tcp=ns2-2000, weight=i"
    );
    // Whole tables of defaults are alternatives too: keys that one of them may set are not filled in.
    let flows = r#"[{ tcp = "rfc", weight = 3 }, { tcp = "rfc", guarantee = "2kbit", source = "greedy" }]"#;
    assert_eq!(labels(&[("defaults.flow", flows)]).len(), 2);
    let all = format!(
        "[{{ flow = {{ tcp = \"rfc\", weight = 3 }}, link = {LINK} }}, {{ link = {LINK}, flow = {{ tcp = \"rfc\" }} }}]"
    );
    assert_eq!(labels(&[("defaults", &all)]).len(), 2);
}

const LINK: &str = "{ rate = \"1Mbit\", delay = \"1ms\" }";

#[test]
fn the_canonical_text_fills_in_nothing_that_has_a_default() {
    let suite = suite(TEXT);
    let group = suite.canonical.split("[flow.group]\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(group, "count = 2\nfrom = \"a\"\nto = \"b\"\nclass = \"greedy\"");
    let without = suite_without("weight = \"2 * i\"\n");
    let group = without.split("[flow.group]\n").nth(1).unwrap().split("\n\n").next().unwrap();
    assert_eq!(group, "count = 2\nfrom = \"a\"\nto = \"b\"\nclass = \"greedy\"\nweight = 1.0");
    // Keys that defaults of links may set stay as the topology's defaults.
    for topology in ["gfc", "dumbbell"] {
        let bottleneck = if topology == "gfc" {
            ""
        } else {
            "pairs = 1\nbottleneck = { rate = \"1Mbit\", delay = \"1ms\" }"
        };
        let node = if topology == "gfc" { ("short1", "long3") } else { ("l1", "r1") };
        survives(&common::suite(&format!(
            "seed = 1\nstop = \"1s\"\n[topology]\nkind = \"{topology}\"\n{bottleneck}\n[defaults.link]\n{ALL}\n\
             [flow.f]\nfrom = \"{}\"\nto = \"{}\"\ntcp = \"rfc\"\n",
            node.0, node.1
        )));
    }
}

fn suite_without(line: &str) -> String {
    assert!(TEXT.contains(line));
    suite(&TEXT.replacen(line, "", 1)).canonical
}

#[test]
fn an_error_in_a_default_is_reported_once_at_its_line() {
    let error = |from: &str, to: &str| {
        assert!(TEXT.contains(from), "{from}");
        let errors = errors(&TEXT.replacen(from, to, 1));
        assert_eq!(errors.len(), 1, "{errors:#?}");
        errors[0].clone()
    };
    let queue = error("queue = \"drr\"", "queue = \"ddr\"");
    assert!(
        queue.starts_with(
            "dir/x.toml:6: defaults.link.queue: `ddr` is not known here (did you mean `drr`?) (known: fifo, "
        ),
        "{queue}"
    );
    let profiles = PROFILES.iter().map(|profile| profile.name);
    // All except Tahoe are controls of the profile `linux`.
    let controls = ALGORITHMS.iter().map(|entry| entry.name).filter(|name| *name != "tahoe");
    let known: Vec<_> = profiles.chain(controls).collect();
    assert_eq!(
        error("tcp = \"rfc\"", "tcp = \"rcf\""),
        format!(
            "dir/x.toml:14: defaults.flow.tcp: `rcf` is not a TCP profile or congestion control (did you mean `rfc`?); \
             known: {}",
            known.join(", ")
        )
    );
    assert_eq!(
        error("\"2 * i\"", "\"i - 2\""),
        "dir/x.toml:16: defaults.flow.weight: `i - 2 = -1 for i = 1`: a number must be above zero here; write for \
         example 2.5"
    );
    assert_eq!(
        error("decay = false", "decay = 0"),
        "dir/x.toml:19: defaults.flow.mark.decay: `0` is neither true nor false"
    );
    assert_eq!(
        error("stop = \"9s\"", "count = 3"),
        "dir/x.toml:21: defaults.flow.count: unknown key; known here: connections, tcp, quic, transport, protocol, ecn, source, class, weight, rtt, \
         guarantee, tickets, ack_tickets, mark, jitter, start, stop"
    );
    assert_eq!(
        error("loss = \"1%\"", "from = \"a\""),
        "dir/x.toml:7: defaults.link.from: unknown key; known here: back, rate, delay, jitter, aggregate, queue, loss, tickets, ack_tickets, \
         exchange, watch, pcap"
    );
    assert_eq!(
        error("loss = \"2%\"", "lost = []"),
        "dir/x.toml:12: defaults.link.back.lost: unknown key (did you mean `loss`?); known here: rate, delay, jitter, aggregate, queue, loss, \
         tickets, ack_tickets, exchange, watch, pcap"
    );
    assert_eq!(
        error("[defaults.flow]", "[defaults.flows]\n[defaults.flow]"),
        "dir/x.toml:13: defaults.flows: unknown key (did you mean `flow`?); known here: link, flow, preset"
    );
}

#[test]
fn a_default_that_nothing_takes_is_checked_all_the_same() {
    let lonely = "seed = 1\nstop = \"1s\"\n[defaults.link]\nback = { queue = \"x\" }\n[defaults.flow]\ntcp = \"y\"\n\
                  source = \"z\"\nmark = \"v\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                  back = false\n[flow.f]\nfrom = \"a\"\nto = \"b\"\nsource = { kind = \"cbr\", rate = \"1Mbit\" }\n";
    let paths: Vec<_> =
        errors(lonely).iter().map(|error| error.split(": ").nth(1).unwrap().to_owned()).collect();
    assert_eq!(
        paths,
        ["defaults.link.back.queue", "defaults.flow.tcp", "defaults.flow.source", "defaults.flow.mark"]
    );
}

#[test]
fn defaults_that_do_not_fit_a_link_are_reported_with_its_name() {
    let one_way = TEXT
        .replacen("tickets = 70\n", "ack_tickets = 70\n", 1)
        .replacen("to = \"b\"\n", "to = \"b\"\nback = false\n", 1)
        .replacen("tickets = 1\n", "", 1)
        + "[link.home]\nfrom = \"b\"\nto = \"a\"\n";
    assert_eq!(
        errors(&one_way),
        ["dir/x.toml:22: link.plain.ack_tickets: acknowledgements carry these tickets over the reverse \
          direction, which the link does not have; leave `back = false` out, or issue `tickets`"]
    );
    let directed = "seed = 1\nstop = \"1s\"\ntopology = { kind = \"gml\", file = \"directed.gml\" }\n\
                    [defaults.link]\nrate = \"1Mbit\"\nack_tickets = 3\n[flow.f]\nfrom = \"a\"\nto = \"c\"\n\
                    source = { kind = \"cbr\", rate = \"1kbit\" }\n";
    let paths: Vec<_> =
        errors(directed).iter().map(|error| error.split(": ").nth(1).unwrap().to_owned()).collect();
    assert_eq!(paths, ["link.a-b.ack_tickets", "link.b-c.ack_tickets"]);
    // A link of a directed graph that is changed by name gets no other direction.
    let changed = directed.replace("ack_tickets = 3\n", "[link.a-b]\nwatch = true\n");
    assert_eq!(scenario(&changed).links.len(), 2);
}
