//! quinn in simulated time: it fills links, reacts to marks and losses, and repeats byte by byte.

use apportion_core::units::Time;

use crate::common::{captured, mbps, outcome, text};

#[test]
fn each_congestion_control_fills_a_link() {
    for congestion in ["cubic", "newreno", "bbr"] {
        let keys = format!("transport = {{ kind = \"quinn\", congestion = \"{congestion}\" }}");
        let outcome = outcome(&text("queue = { kind = \"fifo\", limit = \"50ms\" }", &[&keys]));
        let flow = &outcome.flows[0];
        // All but headers, and slow start.
        assert!(mbps(flow) > 18.0 && mbps(flow) < 19.2, "{congestion}: {}", mbps(flow));
        assert!(flow.retransmits.unwrap() > 0, "{congestion}");
        assert_eq!(flow.timeouts, None, "quinn does not count them");
    }
}

#[test]
fn files_arrive_whole_and_their_connections_end() {
    let file = "transport = \"quinn\"\nsource = { kind = \"file\", size = \"3MB\" }";
    let loss = "loss = \"2%\"";
    let outcome = outcome(&text(loss, &[file, &format!("{file}\nconnections = 10\nstart = \"1s\"")]));
    for (flow, files) in outcome.flows.iter().zip([1, 10]) {
        assert_eq!((flow.completions.len(), flow.goodput.unwrap().get()), (files, 3_000_000 * files as u64));
    }
}

#[test]
fn marks_reach_it() {
    let codel = |ecn: bool, host: bool| {
        let keys = format!("transport = {{ kind = \"quinn\", ecn = {host} }}");
        let outcome = outcome(&text(
            &format!("queue = {{ kind = \"codel\", limit = \"1000p\", ecn = {ecn} }}"),
            &[&keys],
        ));
        (outcome.flows[0].marked, outcome.flows[0].retransmits.unwrap(), mbps(&outcome.flows[0]))
    };
    let (marked, lost, rate) = codel(true, true);
    assert!(marked > 10 && lost == 0 && rate > 17.0, "{marked} {lost} {rate}");
    for (ecn, host) in [(false, true), (true, false)] {
        let (marked, lost, rate) = codel(ecn, host);
        assert!(marked == 0 && lost > 10 && rate > 17.0, "{marked} {lost} {rate}");
    }
}

#[test]
fn streams_and_requests_carry_the_same_data() {
    let file = "source = { kind = \"file\", size = \"2MB\" }";
    let took = |keys: &str| {
        let keys = format!("transport = {{ kind = \"quinn\", {keys} }}\n{file}");
        let outcome = outcome(&text("", &[&keys]));
        assert_eq!(outcome.flows[0].goodput.unwrap().get(), 2_000_000, "{keys}");
        outcome.flows[0].completions[0].took.as_secs_f64()
    };
    let [one, many, asked, both] = [
        took("streams = 1"),
        took("streams = 100"),
        took("request = \"300B\""),
        took("streams = 10, request = \"20kB\""),
    ];
    assert!((many / one - 1.0).abs() < 0.05, "{one} {many}");
    // The sink's handshake and its requests begin as the source's would; the data follow the requests.
    assert!(asked > one - 0.001 && asked < one + 0.05, "{one} {asked}");
    assert!(both > asked, "{asked} {both}");
}

#[test]
fn little_is_sent_after_the_stop() {
    for streams in [1, 10] {
        let keys = format!("transport = {{ kind = \"quinn\", streams = {streams} }}\nstop = \"5s\"");
        let outcome = outcome(&text("", &[&keys]));
        let bytes = outcome.flows[0].goodput.unwrap().get();
        // 12.5 MB in 5 s, and at most two windows of the path and its buffer.
        assert!(bytes > 11_000_000 && bytes < 12_500_000 + 2 * 350_000, "{streams}: {bytes}");
    }
}

#[test]
fn requests_longer_than_the_window_arrive() {
    let keys = "transport = { kind = \"quinn\", request = \"200kB\", window = \"20kB\" }\n\
                source = { kind = \"file\", size = \"50kB\" }";
    let outcome = outcome(&text("", &[keys]));
    let back = outcome.links.iter().find(|link| link.name == "wire.back").unwrap();
    assert!(back.sent.bytes.get() > 200_000, "{:?}", back.sent);
    assert_eq!(outcome.flows[0].goodput.unwrap().get(), 50_000);
}

#[test]
fn players_and_writers_use_it() {
    let flows = [
        "transport = \"quinn\"\nsource = { kind = \"dash\" }",
        "transport = \"quinn\"\nsource = { kind = \"cbr\", rate = \"2Mbit\", packet = \"1000B\" }",
        "transport = { kind = \"quinn\", window = \"20kB\" }",
    ];
    let outcome = outcome(&text("queue = \"fq_codel\"", &flows));
    let [player, writer, window] = &outcome.flows[..] else { panic!() };
    assert!(player.media.as_ref().is_some(), "{player:?}");
    assert!(mbps(player) > 2.0, "{}", mbps(player));
    assert!((mbps(writer) / 2.0 - 1.0).abs() < 0.02, "{}", mbps(writer));
    // 20 kB in a round trip of 40 ms and the backlog.
    assert!(mbps(window) > 2.0 && mbps(window) <= 4.0, "{}", mbps(window));
}

#[test]
fn a_connection_that_it_closes_is_recorded() {
    let of = |window: &str| {
        let keys = format!("transport = {{ kind = \"quinn\", window = \"{window}\" }}");
        let text = text("queue = { kind = \"fifo\", limit = \"20ms\" }", &[&keys]);
        let text = text.replace("20Mbit", "1Gbit").replace("\"20ms\"\nqueue", "\"5ms\"\nqueue");
        let outcome = outcome(&text.replace("20s", "300ms"));
        outcome.flows[0].clone()
    };
    // Slow start loses every other one of thousands of packets, more gaps than quinn keeps.
    let closed = of("20MB");
    let failures = closed.failures.unwrap();
    assert_eq!((failures.connections, failures.reason.contains("too many gaps in stream buffer")), (1, true));
    assert!(
        failures.first > Time::from_millis(50) && failures.first < Time::from_millis(250),
        "{failures:?}"
    );
    assert_eq!((of("2MB").failures, closed.completions.len()), (None, 0));
}

#[test]
fn a_seed_gives_the_same_packets() {
    let text = text("queue = \"fq_codel\"\nloss = \"0.5%\"", &["transport = \"quinn\"", "tcp = \"cubic\""]);
    let first = captured(&text, 1);
    assert!(first == captured(&text, 1));
    assert!(first.1 != captured(&text, 2).1);
}
