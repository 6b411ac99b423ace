//! TCP.

use std::net::SocketAddr;

use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::namespace::set_sysctl;
use apportion_live::lab::driver::{Driver, DriverError};
use apportion_runtime::connections::Workload;
use apportion_scenario::direction::Direction;
use apportion_testing::skip;
use nix::errno::Errno;

use crate::setup::{cbr, end, engine, hosts, mbit, plan, play, play_with, tcp, writes};

/// The maximum of goodput on 10 Mbit/s: 1460 of 1500 bytes.
const MOST: f64 = 10.0 * 1_460.0 / 1_500.0;

fn fills_the_link(algorithm: &str) {
    let plan = plan(1, 1_000, 4_000);
    let outcome = play(vec![tcp(0, &[("algorithm", algorithm)], Workload::Greedy)], plan);
    assert_eq!(outcome.failures, []);
    let got = mbit(outcome.flows[0].goodput, plan);
    assert!(got > 0.95 * MOST && got < 1.01 * MOST, "{algorithm}: {got}");
    // The queue of 50 packets overflows.
    assert!(outcome.flows[0].retransmits > 0);
}

pub fn cubic_fills_the_link() {
    fills_the_link("cubic");
}

pub fn reno_fills_the_link() {
    // Without selective acknowledgements the losses at the end of slow start take seconds to repair.
    fills_the_link("sack");
}

pub fn bbr_fills_the_link_and_not_its_queue() {
    let (plan, hosts) = (plan(1, 2_000, 4_000), hosts());
    // 500 packets would be 600 ms.
    let mut engine = engine(&hosts, "500p");
    let connection = tcp(0, &[("algorithm", "bbr")], Workload::Greedy);
    let outcome = play_with(&mut engine, &hosts, vec![connection], plan, |_| ());
    assert_eq!(outcome.failures, []);
    let got = mbit(outcome.flows[0].goodput, plan);
    assert!(got > 0.85 * MOST, "{got}");
    let median = engine.world.delays(Direction::Up).distribution().quantile(0.5).unwrap();
    assert!(median < Span::from_millis(60), "{median}");
}

pub fn a_file_takes_as_long_as_computed_by_hand() {
    // 200 kB are 137 segments of 1460 B, each 1.2 ms on the wire. SYN and SYN-ACK take 20 ms. The first of ten
    // segments is acknowledged 1.2 + 20 ms later. From then on each acknowledgement lets two go, which keep the
    // link busy: 127 · 1.2 = 152.4 ms, and 10 ms for the last one. 20 + 21.2 + 152.4 + 10 = 203.6 ms.
    let (plan, hosts) = (plan(1, 0, 2_000), hosts());
    let connection = tcp(0, &[("algorithm", "sack")], Workload::File(Bytes::new(200_000)));
    let outcome = play_with(&mut engine(&hosts, "200p"), &hosts, vec![connection], plan, |_| ());
    let [done] = outcome.flows[0].completions[..] else { panic!("{outcome:?}") };
    assert_eq!((done.start, done.size), (Time::from_millis(100), Bytes::new(200_000)));
    assert!(done.took > Span::from_millis(203), "{}", done.took);
    if skip::unless_judged_by_the_clock() {
        assert!(done.took < Span::from_millis(250), "{}", done.took);
        assert_eq!(outcome.flows[0].retransmits, 0);
    }
    assert_eq!(outcome.flows[0].goodput, Bytes::new(200_000));
}

pub fn an_application_limited_source_gets_what_it_writes() {
    let plan = plan(1, 1_000, 3_000);
    let outcome = play(vec![tcp(0, &[("nagle", "false")], writes(&cbr(1_000, 1_000)))], plan);
    // 1 Mbit/s for 2 s are 250 writes of 1000 B, one more or less at either end.
    let got = outcome.flows[0].goodput.get();
    assert!(got.abs_diff(250_000) <= 2_000, "{got}");
    // 8 ms apart from 100 ms on: 363 writes.
    assert!(outcome.lateness.count().abs_diff(363) <= 1, "{}", outcome.lateness.count());
}

pub fn segments_of_the_scenario_are_on_the_wire() {
    on_the_wire("40B", 40);
}

pub fn timestamps_are_on_the_wire_if_headers_have_them() {
    on_the_wire("52B", 52);
}

/// Sends 100 segments of 1000 B; every packet except the SYN has only `header` besides.
fn on_the_wire(header: &str, bytes: u64) {
    let (plan, hosts) = (plan(1, 0, 1_000), hosts());
    let mut engine = engine(&hosts, "200p");
    let changes = [("segment", "1000B"), ("header", header), ("ack", header)];
    let connection = tcp(0, &changes, Workload::File(Bytes::new(100_000)));
    let outcome = play_with(&mut engine, &hosts, vec![connection], plan, |_| ());
    assert_eq!((outcome.flows[0].completions.len(), outcome.flows[0].retransmits), (1, 0));
    let (_, carried) = engine.port_counts(1).unwrap();
    // SYN, ACK, 100 segments, and an ACK for the FIN of the other end; our FIN may come with the last segment.
    let packets = carried.packets.get();
    assert!((103..=104).contains(&packets), "{packets}");
    // A SYN also has the segment size (4 B) and the window scale (3 B and padding).
    assert_eq!(carried.bytes.get(), 100_000 + packets * bytes + 8);
}

pub fn the_window_of_the_scenario_bounds_what_is_under_way() {
    let plan = plan(1, 1_000, 3_000);
    let outcome = play(vec![tcp(0, &[("window", "14600B")], Workload::Greedy)], plan);
    // Ten segments of 1460 B in a round trip of 20 + 1.2 ms, and one more segment while an ACK waits for it:
    // between 14600 · 8 / 22.5 ms = 5.2 and 14600 · 8 / 21.2 ms = 5.5 Mbit/s; on a busy machine it takes
    // longer.
    let got = mbit(outcome.flows[0].goodput, plan);
    assert!(got > 4.0 && got < 5.6, "{got}");
    assert_eq!(outcome.flows[0].retransmits, 0);
}

pub fn a_large_window_is_reached_and_not_exceeded() {
    let plan = plan(1, 2_000, 3_000);
    let hosts = hosts();
    // 200 kB are 137 segments: 17 on the wires, the others in the queue for 120 · 1.2 ms.
    let mut engine = engine(&hosts, "1000p");
    let connection = tcp(0, &[("window", "200kB"), ("algorithm", "sack")], Workload::Greedy);
    play_with(&mut engine, &hosts, vec![connection], plan, |_| ());
    let longest = engine.world.delays(Direction::Up).distribution().quantile(1.0).unwrap();
    assert!(longest > Span::from_millis(140) && longest < Span::from_millis(166), "{longest}");
}

pub fn samples_have_a_window_and_a_round_trip_time() {
    let outcome = play(vec![tcp(0, &[], Workload::Greedy)], plan(1, 0, 1_000));
    let samples = &outcome.flows[0].tcp;
    assert_eq!(samples.len(), 10);
    for sample in &samples[1..] {
        assert!(sample.window >= 10.0, "{samples:?}");
        assert!(sample.srtt.is_some_and(|srtt| srtt > Span::from_millis(20)), "{samples:?}");
    }
}

pub fn a_connection_without_an_answer_is_named() {
    let hosts = hosts();
    let connections = vec![tcp(0, &[], Workload::Greedy), tcp(1, &[], Workload::Greedy)];
    let driver = Driver::open(&hosts, connections, plan(2, 0, 6_000)).unwrap();
    let settings = [("tcp_syn_retries", "1"), ("tcp_syn_linear_timeouts", "0")];
    let give_up = || settings.map(|(name, value)| set_sysctl(&format!("net/ipv4/{name}"), value).unwrap());
    hosts[0].namespace.run(give_up).unwrap();
    // No engine runs: the kernel gives up 1 s and 2 s after its SYNs.
    let outcome = driver.start(apportion_linux::clock::Clock::start()).unwrap().finish().unwrap();
    let failures: Vec<_> = outcome.failures.iter().map(|f| (f.flow, f.what, f.error)).collect();
    assert_eq!(failures, [(0, "connect", Errno::ETIMEDOUT), (1, "connect", Errno::ETIMEDOUT)]);
}

pub fn what_cannot_be_opened_is_named() {
    let hosts = hosts();
    let mut elsewhere = tcp(3, &[], Workload::Greedy);
    elsewhere.source.address = SocketAddr::from(([10, 0, 0, 77], 1));
    let error = Driver::open(&hosts, vec![elsewhere], plan(4, 0, 1)).unwrap_err();
    let message = error.to_string();
    assert!(message.starts_with("flow 3: cannot bind 10.0.0.77:1: EADDRNOTAVAIL"), "{message}");
    let differ = vec![tcp(0, &[], Workload::Greedy), tcp(1, &[("algorithm", "sack")], Workload::Greedy)];
    let error = Driver::open(&hosts, differ, plan(2, 0, 1)).unwrap_err();
    assert!(matches!(error, DriverError::Conflict { host: 0, .. }), "{error}");
}

pub fn five_thousand_connections_are_opened_and_a_thousand_files_arrive() {
    let hosts = hosts();
    let file = |number: u16| {
        let mut connection = tcp(0, &[], Workload::File(Bytes::new(1_000)));
        connection.source = end(0, 20_000 + number);
        // One each 2 ms: 1200 B on the wire, half of the link's rate. The others would start later.
        let wait =
            if number < 1_000 { Span::from_millis(u64::from(number) * 2) } else { Span::from_secs(100) };
        connection.start = Time::from_millis(500) + wait;
        connection
    };
    let plan = plan(1, 0, 3_000);
    let driver = Driver::open(&hosts, (0..5_000).map(file).collect(), plan).unwrap();
    let mut engine = engine(&hosts, "200p");
    let running = driver.start(engine.clock()).unwrap();
    engine.run(plan.stop, None).unwrap();
    let outcome = running.finish().unwrap();
    assert_eq!(outcome.failures, []);
    assert_eq!(outcome.flows[0].completions.len(), 1_000);
    // Only flows of one connection have samples.
    assert!(outcome.flows[0].tcp.is_empty());
}
