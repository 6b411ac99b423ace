//! The course of a run: its end, its cleanup, and scenarios that are refused.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use apportion_core::units::{Bytes, Span, Time};
use apportion_live::lab;
use apportion_runtime::outcome::TcpSample;
use apportion_scenario::model::{Scenario, Transport};

use crate::common::{flow, is_about, link, run, scenario};
use apportion_testing::processes::enter;

/// Datagrams, an endless TCP with a small window, and a file over two links, with times from `head`.
fn three_flows(head: &str) -> String {
    format!(
        r#"
        seed = 1
        {head}
        link.first = {{ from = "src", to = "mid", rate = "10Mbit", delay = "2ms" }}
        link.second = {{ from = "mid", to = "dst", rate = "5Mbit", delay = "3ms", watch = true }}
        [flow.udp]
        from = "src"
        to = "dst"
        source = {{ kind = "cbr", rate = "1Mbit", packet = "1000B" }}
        [flow.tcp]
        count = 2
        from = "src"
        to = "dst"
        tcp = {{ profile = "rfc", algorithm = "cubic", window = "14600B" }}
        [flow.web]
        from = "src"
        to = "dst"
        start = "400ms"
        tcp = {{ profile = "rfc", algorithm = "cubic" }}
        source = {{ kind = "file", size = "20kB" }}
    "#
    )
}

#[expect(clippy::disallowed_methods, reason = "the test measures real time, in a thread beside the run")]
pub fn cancel_ends_a_run_early_and_the_next_one_is_whole() {
    enter();
    let (long, cancel) = (scenario(&three_flows(r#"stop = "80s""#)), AtomicBool::new(false));
    let begun = Instant::now();
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            cancel.store(true, Ordering::Relaxed);
        });
        lab::run(&long, 1, &cancel).unwrap()
    });
    assert!(outcome.is_none());
    // The run checks each 10 ms; the rest allows for a busy machine.
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(500) && took < Duration::from_secs(40), "{took:?}");
    assert!(lab::run(&long, 1, &cancel).unwrap().is_none(), "it is still set");
    let short = scenario(&three_flows(r#"stop = "1s""#));
    let whole = lab::run(&short, 1, &AtomicBool::new(false)).unwrap().unwrap();
    assert!(flow(&whole, "udp").delivered.packets.get() > 30, "{whole:?}");
}

pub fn results_are_of_all_flows_links_and_samples() {
    let text = three_flows("stop = \"3s\"\nmeasure_from = \"200ms\"\nsample = \"100ms\"");
    let (outcome, scenario) = (run(&text), scenario(&text));
    let flows: Vec<_> = outcome.flows.iter().map(|flow| (&*flow.name, &*flow.group)).collect();
    assert_eq!(flows, [("tcp.1", "tcp"), ("tcp.2", "tcp"), ("udp", "udp"), ("web", "web")]);
    let links: Vec<_> = outcome.links.iter().map(|link| &*link.name).collect();
    assert_eq!(links, ["first", "first.back", "second", "second.back"]);
    assert!(links.iter().eq(scenario.links.iter().map(|link| &link.name)));
    assert_eq!((outcome.seed, outcome.measured), (1, Span::from_millis(2_800)));

    // Samples cover the whole run, counts the measured part.
    let udp = flow(&outcome, "udp");
    assert_eq!((udp.series.len(), udp.tcp.len()), (30, 0));
    assert!(is_about(udp.sent.packets.get(), 125.0, 2.8, &outcome), "{:?}", udp.sent);
    let after_2 = |series: &[Bytes]| series[2..].iter().copied().sum::<Bytes>();
    assert_eq!(after_2(&udp.series), udp.delivered.bytes);
    assert_eq!(udp.delay.count, udp.delivered.packets.get());
    assert_eq!(outcome.packet_hops, outcome.links.iter().map(|link| link.sent.packets.get()).sum::<u64>());

    for tcp in ["tcp.1", "tcp.2"].map(|name| flow(&outcome, name)) {
        assert_eq!((tcp.series.len(), tcp.tcp.len()), (30, 30));
        assert_eq!(after_2(&tcp.series), tcp.delivered.bytes);
        let is_open = |sample: &TcpSample| sample.window >= 10.0 && sample.srtt > Some(Span::from_millis(10));
        assert!(tcp.tcp.iter().any(is_open), "{:?}", tcp.tcp);
    }
    // 14 segments: some round trips of 10 ms; a thread that stopped at the start of a connection retries
    // after seconds.
    let [done] = flow(&outcome, "web").completions[..] else { panic!("{outcome:?}") };
    assert_eq!((done.start, done.size), (Time::from_millis(400), Bytes::new(20_000)));
    assert!(done.took > Span::from_millis(20) && done.took < Span::from_millis(2_600), "{done:?}");
    let (first, second) = (link(&outcome, "first"), link(&outcome, "second"));
    assert_eq!((first.watched, first.series.len(), first.queue_delay.count), (false, 0, 0));
    assert_eq!((second.watched, second.series.len(), second.backlog.len()), (true, 30, 30));
    assert_eq!(second.queue_delay.count, second.sent.packets.get());
    assert_eq!(after_2(&second.series), second.sent.bytes);

    let kept = outcome.timekeeping.as_ref().unwrap();
    // Each frame that was sent in the measured part, forth or back; the wire back holds 62 acknowledgements.
    let delivered = outcome.flows.iter().map(|flow| flow.delivered.packets.get()).sum::<u64>();
    let frames = delivered + link(&outcome, "first.back").sent.packets.get();
    assert!(kept.lateness.count.abs_diff(frames) <= 62, "{frames}: {kept:?}");
    // Writes of the whole run.
    assert!(is_about(kept.writes.count, 125.0, 3.0, &outcome), "{kept:?}");
    assert_eq!((kept.missed, kept.refused, kept.unusable, kept.attempts), (0, 0, 0, 1));
    // One-way delays of 5 ms and more: a quarter of that is below the bound of 3 ms.
    assert_eq!(kept.limit, Span::from_millis(3));
    // The transmission of 1500 bytes takes 1.2 and 2.4 ms, of an acknowledgement 0.1.
    let mean = kept.mean_limit.unwrap();
    assert!(mean > Span::from_micros(500) && mean < Span::from_micros(540), "{mean}");
    let cpu = kept.cpu.unwrap();
    assert!(cpu.own > 0.0 && cpu.own + cpu.others + cpu.interrupts + cpu.stolen < 1.01, "{cpu:?}");
    assert_eq!(kept.failures, [""; 0]);
}

/// The message about a link and a flow with these keys, after `change`.
fn refused(link: &str, flow: &str, change: impl Fn(&mut Scenario)) -> String {
    let mut scenario = scenario(&format!(
        r#"
        seed = 1
        stop = "20s"
        link.wire = {{ from = "src", to = "dst", rate = "10Mbit", delay = "2ms", {link} }}
        [flow.x]
        count = 2
        from = "src"
        to = "dst"
        {flow}
        "#
    ));
    change(&mut scenario);
    // This process has no namespaces: the run must be refused before it needs one.
    let of_run = lab::run(&scenario, 1, &AtomicBool::new(false)).unwrap_err().to_string();
    assert_eq!(of_run, lab::check(&scenario).unwrap_err().to_string());
    of_run
}

pub fn what_only_a_simulator_can_do_is_refused_with_its_place() {
    let of_link = |link| refused(link, r#"tcp = "rfc""#, |_| ());
    assert_eq!(
        of_link(r#"lost = [{ flow = "x.1", packets = [3] }]"#),
        "link.wire.lost: losses by number are for `apportion run`, since Linux sends other packets; write `loss`"
    );
    let captures = "captures are for `apportion run`; leave `pcap` out";
    assert_eq!(of_link("pcap = true"), format!("link.wire.pcap: {captures}"));
    assert_eq!(of_link("back = { pcap = true }"), format!("link.wire.back.pcap: {captures}"));
    assert_eq!(
        refused("loss = 0.01", "source = \"web\"", |_| ()),
        "flow.x.source: web pages are for `apportion run`, since the lab sends no requests; write `short_flows`"
    );
    assert_eq!(
        refused("loss = 0.01", "quic = \"cubic\"", |_| ()),
        "flow.x.quic: QUIC is for `apportion run`, since Linux has none; write `tcp`, or run a program with QUIC in `apportion shell`"
    );
    let twin = r#"
        tcp = "rfc"
        connections = 2
        [link.twin]
        from = "src"
        to = "dst"
        rate = "10Mbit"
        delay = "2ms"
    "#;
    assert_eq!(
        refused("loss = 0.01", twin, |_| ()),
        "flow.x.connections: that connections of a flow take several paths of equal cost is for `apportion run`; write routing = \
         \"single\", or a `path`"
    );
}

pub fn packets_that_linux_does_not_have_are_refused_with_their_place() {
    let of_flow = |flow: &str| refused("loss = 0.01", flow, |_| ());
    let large = "packets of the lab have 65000 bytes at most";
    let datagrams = r#"source = { kind = "cbr", rate = "1Mbit", packet = "65001B" }"#;
    assert_eq!(of_flow(datagrams), format!("flow.x.source.packet: {large}"));
    // Scenario files have a minimum, but programs that build a scenario can go below it.
    let tiny = |scenario: &mut Scenario| {
        let headers = Bytes::new(28);
        scenario.flows[0].transport = Transport::Udp { packet: headers, header: headers };
    };
    assert_eq!(
        refused("loss = 0.01", r#"tcp = "rfc""#, tiny),
        "flow.x.source.packet: a datagram on the wire has headers of 28 bytes and a byte of data at least"
    );
    let segments = "flow.x.tcp.segment: TCP segments of Linux have between 88 and 32755 bytes";
    let tcp = |segment: u64, header: u64| {
        of_flow(&format!(r#"tcp = {{ profile = "rfc", segment = "{segment}B", header = "{header}B" }}"#))
    };
    assert_eq!(tcp(87, 40), segments);
    assert_eq!(tcp(32_756, 40), segments);
    assert_eq!(tcp(32_755, 32_246), format!("flow.x.tcp.segment: {large}"));
    let fits = scenario(&three_flows(r#"stop = "1s""#));
    assert!(lab::check(&fits).is_ok());
}
