//! Flows of several connections: one flow for queues, markers and listed losses, several for everything else.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use apportion_core::fairness::jain;
use apportion_core::units::Bytes;
use apportion_runtime::outcome::{FlowOutcome, Outcome};
use apportion_scenario::replication_seed;
use apportion_sim::capture::LinkCapture;
use apportion_sim::{Detail, Job, Simulation, replicate};
use apportion_testing::net::net;
use etherparse::{IpNumber, Ipv4HeaderSlice};
use pcap_file::pcap::PcapReader;

use crate::common::{self, flow, link, run, run_with, scenarios, throughput};

/// One link of 10 Mb/s, 10 ms each way, with `queue`; `flows` are added.
fn wire(queue: &str, flows: &str) -> String {
    net(&format!(
        "
            seed = 3, stop = 30s, measure_from = 5s
            link wire: a -> b, rate = 10Mbit, delay = 10ms, queue = {{ {queue} }}, watch = true
            [defaults.flow] start = {{ between = [0s, 1s] }}
            {flows}
        "
    ))
}

const FAIR: &str = r#"kind = "drr", drop = "lqd", limit = "100p""#;

/// Returns the throughput of flow `x` relative to that of flow or group `y`.
fn ratio(outcome: &Outcome, x: &str, y: &str) -> f64 {
    let of = |name: &str| -> f64 {
        let group = outcome.flows.iter().filter(|flow| flow.group == name);
        group.map(|flow| throughput(outcome, &flow.name)).sum()
    };
    of(x) / of(y)
}

#[test]
fn a_flow_of_fifteen_connections_gets_the_share_of_one_flow() {
    let text = |queue: &str, fifteen: &str| {
        let ends = "from = \"a\"\nto = \"b\"\ntcp = \"rfc\"";
        wire(queue, &format!("[flow.one]\n{ends}\n[flow.many]\n{ends}\n{fifteen} = 15"))
    };
    // A round takes one packet of each flow: of two flows, or of sixteen.
    let outcome = run(&text(FAIR, "connections"));
    assert_eq!(outcome.flows.len(), 2);
    let shares = [throughput(&outcome, "one"), throughput(&outcome, "many")];
    assert!(jain(&shares) > 0.9999, "{shares:?}");
    let outcome = run(&text(FAIR, "count"));
    assert_eq!(outcome.flows.len(), 16);
    let fifteen = ratio(&outcome, "many", "one");
    assert!((14.5..15.5).contains(&fifteen), "{fifteen}");
    // With a queue that ignores flows the number of connections matters.
    let fifo = run(&text("kind = \"fifo\", limit = \"100p\"", "connections"));
    assert!(ratio(&fifo, "many", "one") > 5.0, "{}", ratio(&fifo, "many", "one"));
}

#[test]
fn weights_are_those_of_flows_and_can_change() {
    // Other flows are before and after the flows with several connections, so that ids and connections
    // differ. All send more than their shares.
    let flows = r#"
        [defaults.flow.source]
        kind = "cbr"
        rate = "8Mbit"
        jitter = "5%"
        [flow.a]
        from = "a"
        to = "b"
        connections = 4
        [flow.b]
        from = "a"
        to = "b"
        weight = 3
        [flow.c]
        from = "a"
        to = "b"
        connections = 2
        weight = 2
    "#;
    let mbps = |text: &str| {
        let outcome = run(text);
        ["a", "b", "c"].map(|name| throughput(&outcome, name) / 1e6)
    };
    let near = |got: [f64; 3], due: [f64; 3]| {
        assert!(got.iter().zip(due).all(|(got, due)| (got / due - 1.0).abs() < 0.02), "{got:?} {due:?}");
    };
    // 10 Mb/s in six parts: 1.67 for each.
    let text = wire(FAIR, flows);
    near(mbps(&text), [10.0 / 6.0, 5.0, 20.0 / 6.0]);
    // In ten parts, before the measured part begins.
    let change = "[[change]]\nat = \"2s\"\nset = \"flow.c.weight\"\nto = 6\n";
    near(mbps(&format!("{text}\n{change}")), [1.0, 3.0, 6.0]);
}

#[test]
fn a_guarantee_is_one_of_the_flow() {
    // 10 Mb/s, of which x has a guarantee of 4, and all three divide the rest: 4 + 2, 2 and 2. If each of the
    // four connections had a guarantee of 4 Mb/s, nothing would be left to divide. CSFQ drops at random: four
    // deviations of some 6250 packets of 2 Mb/s in 25 s are 5 %.
    let flows = r#"
        [defaults.flow.source]
        kind = "cbr"
        rate = "2.5Mbit"
        jitter = "5%"
        [flow.a]
        from = "a"
        to = "b"
        connections = 2
        [flow.x]
        from = "a"
        to = "b"
        guarantee = "4Mbit"
        connections = 4
        [flow.z]
        from = "a"
        to = "b"
        connections = 3
    "#;
    let outcome = run(&wire("kind = \"mcsfq\", limit = \"64p\"", flows));
    let mbps = ["a", "x", "z"].map(|name| throughput(&outcome, name) / 1e6);
    let off = mbps.iter().zip([2.0, 6.0, 2.0]).map(|(got, due)| (got / due - 1.0).abs());
    assert!(off.fold(0.0, f64::max) < 0.05, "{mbps:?}");
}

#[test]
fn a_queue_blind_to_flows_takes_connections_for_flows() {
    // All start at once and nothing is drawn per flow. Only the number of flows differs.
    let text = |three: &str| {
        wire(
            "kind = \"red\", limit = \"50p\", min_th = \"5p\", max_th = \"15p\"",
            &format!(
                r#"
                [flow.x]
                from = "a"
                to = "b"
                tcp = "rfc"
                start = "0s"
                {three} = 3
                [flow.y]
                from = "a"
                to = "b"
                tcp = "rfc"
                start = "1s"
                source = {{ kind = "file", size = "2MB" }}
            "#
            ),
        )
    };
    let (one, three) = (run(&text("connections")), run(&text("count")));
    assert_eq!((one.flows.len(), three.flows.len()), (2, 4));
    let links = |outcome: &Outcome| format!("{:?}", outcome.links);
    assert_eq!(links(&one), links(&three));
    assert_eq!(format!("{:?}", flow(&one, "y")), format!("{:?}", flow(&three, "y")));
    // Every number of the flow is the sum over its connections.
    let x = flow(&one, "x");
    let all = || three.flows.iter().filter(|flow| flow.group == "x");
    assert!(x.retransmits > Some(0) && x.goodput > Some(Bytes::new(10_000_000)));
    let goodput = |flow: &FlowOutcome| flow.goodput.map(Bytes::get);
    assert_eq!(goodput(x), all().map(goodput).sum::<Option<u64>>());
    assert_eq!(x.sent.packets.get(), all().map(|flow| flow.sent.packets.get()).sum::<u64>());
    assert_eq!(x.delivered.bytes.get(), all().map(|flow| flow.delivered.bytes.get()).sum::<u64>());
    assert_eq!(common::dropped(&x.dropped), all().map(|flow| common::dropped(&flow.dropped)).sum::<u64>());
    assert_eq!(x.retransmits, all().map(|flow| flow.retransmits).sum::<Option<u64>>());
    assert_eq!(x.fast_retransmits, all().map(|flow| flow.fast_retransmits).sum::<Option<u64>>());
    assert_eq!(x.timeouts, all().map(|flow| flow.timeouts).sum::<Option<u64>>());
    assert_eq!(x.delay.count, all().map(|flow| flow.delay.count).sum::<u64>());
    let series = (0..x.series.len()).map(|at| all().map(|flow| flow.series[at].get()).sum::<u64>());
    assert!(series.eq(x.series.iter().map(|bytes| bytes.get())));
}

/// Flows of several connections, with a source of short flows and a single one, all of files.
const FILES: &str = r#"
    [flow.a]
    from = "a"
    to = "b"
    tcp = "rfc"
    connections = 3
    source = { kind = "file", size = "50kB" }
    [flow.short]
    from = "a"
    to = "b"
    tcp = "rfc"
    stop = "20s"
    source = { kind = "short_flows", per_second = 5, mean_size = "20kB", shape = "constant" }
    [flow.u]
    from = "a"
    to = "b"
    connections = "2 + i"
    stop = "9s"
    start = "1s"
    source = { kind = "cbr", rate = "1Mbit" }
    [flow.z]
    from = "a"
    to = "b"
    tcp = "rfc"
    source = { kind = "file", size = "70kB" }
"#;

#[test]
fn each_connection_has_a_start_and_a_source_of_its_own() {
    let text = wire(FAIR, FILES).replace("measure_from = \"5s\"", "");
    let outcome = run(&text);
    let a = flow(&outcome, "a");
    assert_eq!((a.goodput, a.completions.len()), (Some(Bytes::new(3 * 50_000)), 3));
    assert!(
        a.completions.iter().all(|done| done.size.get() == 50_000 && done.start.as_nanos() < 1_000_000_000)
    );
    let starts: BTreeSet<_> = a.completions.iter().map(|done| done.start).collect();
    assert_eq!(starts.len(), 3);
    // The first connection starts when the only one of a flow would.
    let single = run(&text.replace("connections = 3", "connections = 1"));
    assert!(starts.contains(&flow(&single, "a").completions[0].start));
    // No connection treats a packet of another one as its own.
    let short = flow(&outcome, "short");
    assert!(short.completions.len() > 50);
    assert_eq!(short.goodput, Some(Bytes::new(20_000 * short.completions.len() as u64)));
    assert_eq!(
        (flow(&outcome, "z").goodput, flow(&outcome, "z").completions.len()),
        (Some(Bytes::new(70_000)), 1)
    );
    // 125 datagrams a second for 8 s from each of three.
    assert_eq!(flow(&outcome, "u").sent.packets.get(), 3 * 1_000);
    assert_eq!(flow(&outcome, "u").goodput, Some(Bytes::new(3 * 1_000 * (1_000 - 28))));
    // The other flows, by name, behave as before.
    let text = |outcome: &Outcome, name| flow(outcome, name).completions[0].start;
    assert_eq!(text(&outcome, "short"), text(&single, "short"));
}

#[test]
fn connections_draw_from_streams_of_their_own() {
    let text = wire(
        FAIR,
        "[flow.u]\nfrom = \"a\"\nto = \"b\"\nconnections = 2\nstart = \"0s\"\n\
         source = { kind = \"poisson\", rate = \"1Mbit\" }\n",
    );
    let scenario = scenarios(&text).pop().unwrap();
    let sent: Vec<u64> =
        (0..20).map(|seed| flow(&run_with(&scenario, seed), "u").sent.packets.get()).collect();
    // Two Poisson numbers with a mean of 125 · 25 each, together of 6250 with a deviation of 79.
    assert!(sent.iter().all(|sent| sent.abs_diff(6_250) < 4 * 79), "{sent:?}");
    // If one stream were drawn twice, the number would always be even.
    assert!(sent.iter().any(|sent| sent % 2 == 1), "{sent:?}");
}

#[test]
fn a_change_of_rate_is_one_of_every_connection() {
    let change = "\n[[change]]\nat = \"5s\"\nset = \"flow.u.rate\"\nto = \"2Mbit\"\n";
    let outcome = run(&(wire(FAIR, FILES) + change));
    // 250 a second for 4 s from each of three; at 5 s one may be on its way.
    let sent = flow(&outcome, "u").sent.packets.get();
    assert!(sent.abs_diff(3 * 1_000) <= 6, "{sent}");
}

#[test]
fn connections_of_a_flow_share_its_tickets() {
    // Departures carry the tickets issued to the flow, however many connections it has.
    let arrived = |of: &str, change: &str| {
        let text = wire(
            "kind = \"fifo\"",
            &format!(
                "[flow.u]\nfrom = \"a\"\nto = \"b\"\ntickets = 40000\n{of}\n\
                 mark = {{ kind = \"tickets\", bits = 17 }}\n\
                 source = {{ kind = \"cbr\", rate = \"500kbit\", jitter = \"10%\" }}\n{change}"
            ),
        );
        let until = |stop: &str| {
            let text = text.replace("\"30s\"", stop).replace("watch = true", "tickets = 1000");
            let outcome = run(&text);
            let statistics = &link(&outcome, "wire").statistics;
            statistics.iter().find(|(name, _)| *name == "tickets_in").unwrap().1
        };
        // Measured after 40 s, since the first packets get many tickets before rates are known.
        (until("\"80s\"") - until("\"40s\"")) / 40.0
    };
    let near = |got: f64, due: f64| assert!((got / due - 1.0).abs() < 0.02, "{got} t/s, not {due}");
    near(arrived("connections = 1", ""), 40_000.0);
    near(arrived("connections = 4", ""), 40_000.0);
    near(arrived("count = 4", ""), 160_000.0);
    near(
        arrived("connections = 4\ntcp = { profile = \"rfc\", nagle = false, segment = \"1000B\" }", ""),
        40_000.0,
    );
    let change = "[[change]]\nat = \"10s\"\nset = \"flow.u.tickets\"\nto = 10000\n";
    near(arrived("connections = 4", change), 10_000.0);
}

#[test]
fn sinks_of_a_flow_share_the_tickets_of_its_receiver() {
    let arrived = |of: &str| {
        let flow = "[flow.x]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\nack_tickets = 40000\n\
                    mark = { kind = \"tickets\", bits = 17 }\n";
        let text = wire("kind = \"fifo\", limit = \"50p\"", &format!("{flow}{of} = 4\n"));
        let until = |stop: &str| {
            let text = text.replace("\"30s\"", stop).replace("watch = true", "ack_tickets = 1000");
            let outcome = run(&text);
            let statistics = &link(&outcome, "wire.back").statistics;
            statistics.iter().find(|(name, _)| *name == "ack_tickets_in").unwrap().1
        };
        (until("\"80s\"") - until("\"40s\"")) / 40.0
    };
    let near = |got: f64, due: f64| assert!((got / due - 1.0).abs() < 0.02, "{got} t/s, not {due}");
    near(arrived("connections"), 40_000.0);
    near(arrived("count"), 160_000.0);
}

#[test]
fn listed_losses_count_the_packets_of_all_connections() {
    let lost = |three: &str| {
        let text = wire("kind = \"fifo\"", &FILES.replace("\"2 + i\"", "3")).replace("connections", three);
        let group = if three == "count" { "u.1" } else { "u" };
        let text = text
            .replace("measure_from = \"5s\"", "")
            .replace("watch = true", &format!("lost = [{{ flow = \"{group}\", packets = [1, 2, 1000] }}]"));
        let outcome = run(&text);
        let u = flow(&outcome, group);
        (u.lost, u.delivered.packets.get())
    };
    // Three of the 3000 datagrams in total, not of each 1000.
    assert_eq!(lost("connections"), (3, 2_997));
    assert_eq!(lost("count"), (3, 997));
}

#[test]
fn a_flow_of_connections_is_the_same_beside_threads_and_flows() {
    let scenario = scenarios(&wire(FAIR, FILES)).pop().unwrap();
    let jobs: Vec<Job<'_>> = (0..4).map(|k| Job::new(&scenario, replication_seed(3, k))).collect();
    let texts = |threads| -> Vec<String> {
        let outcomes = replicate(&jobs, threads, &|_| {}, &AtomicBool::new(false)).unwrap();
        outcomes.iter().map(|outcome| format!("{:?}", outcome.as_ref().unwrap())).collect()
    };
    let one = texts(1);
    assert_eq!(one, texts(3));
    assert_ne!(one[0], one[1]);
    // A flow that comes before them by name, on a link of its own, moves connections and ids.
    let apart = "\n[link.apart]\nfrom = \"c\"\nto = \"d\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                 [flow.Apart]\nfrom = \"c\"\nto = \"d\"\ntcp = \"rfc\"\nconnections = 5\n";
    let (alone, together) = (run(&wire(FAIR, FILES)), run(&(wire(FAIR, FILES) + apart)));
    assert_eq!(together.flows[0].name, "Apart");
    for name in ["a", "short", "u", "z"] {
        assert_eq!(format!("{:?}", flow(&alone, name)), format!("{:?}", flow(&together, name)));
    }
}

/// A writer whose content the test can read.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn each_connection_has_addresses_of_its_own_in_captures() {
    let scenario = scenarios(&wire(FAIR, FILES).replace("measure_from = \"5s\"", "")).pop().unwrap();
    let written = Shared::default();
    let wire = scenario.links.iter().position(|link| link.name == "wire");
    let mut captures = |index| {
        let capture = || LinkCapture::new(Box::new(written.clone())).unwrap();
        (Some(index) == wire).then(|| Box::new(capture()))
    };
    let mut simulation = Simulation::new(&scenario, 3, Detail::Counts, &mut captures).unwrap();
    assert!(simulation.run(&AtomicBool::new(false)));
    simulation.finish_captures().unwrap();
    let bytes = written.0.lock().unwrap().clone();
    let mut reader = PcapReader::new(bytes.as_slice()).unwrap();
    let mut sources = BTreeSet::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let ip = Ipv4HeaderSlice::from_slice(&packet.data).unwrap();
        sources.insert((ip.protocol(), ip.source_addr().octets()));
    }
    let is_udp = |protocol| protocol == IpNumber::UDP;
    let datagrams = sources.iter().filter(|&&(protocol, _)| is_udp(protocol)).count();
    // Every file arrives, each over a connection of its own.
    let files = simulation.outcome().flows.iter().map(|flow| flow.completions.len()).sum::<usize>();
    assert_eq!((datagrams, sources.len() - datagrams), (3, files));
}
