//! Tickets on packets, through two gateways in a row, in both versions of IP.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use apportion_core::packet::LabelKind;
use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;

use crate::line::{Ip, Line, Outcome, counts, from_port, label, labelled, ports, run, turned};

const ENDS: [&str; 2] = ["inside = \"near\"\noutside = \"m1\"\n", "inside = \"m2\"\noutside = \"far\"\n"];
/// Windows of a part of a second, and tags of full precision, so that nothing is rounded.
const EXCHANGE: &str =
    "exchange = { window = \"0.5s\", policing_window = \"0.5s\", issue_window = \"0s\", bits = 17 }\n";
const PORTS: [u16; 2] = [1_001, 1_002];
const BOTH: &str = "labels = { reads = true, writes = true }\n";
const WRITES: &str = "labels = { writes = true }\n";
const READS: &str = "labels = { reads = true }\n";
const DELAY: &str = "delay = \"20ms\"\n";
const TRED: &str = "{ kind = \"tred\", window = \"0.5s\" }";

/// A configuration with these interfaces and these keys for the directions up and down.
fn config(end: usize, up: &str, down: &str, rules: &str) -> String {
    format!("{}[up]\nrate = \"100Mbit\"\n{up}[down]\nrate = \"100Mbit\"\n{down}{rules}", ENDS[end])
}

/// Rules that issue one and three thousand tickets a second to two flows.
fn issued() -> String {
    let mark = "mark = { kind = \"tickets\", window = \"0.5s\", policing_window = \"0.5s\", issue_window = \"0s\", bits = 17 }\n";
    let rule = |port, tickets| format!("[[rule]]\nfrom_port = {port}\ntickets = {tickets}\n{mark}");
    rule(1_001, 1_000) + &rule(1_002, 3_000)
}

/// One flow in each version of IP, with packets of this length.
fn flows(length: usize) -> Vec<Vec<u8>> {
    vec![Ip::V4.datagram((PORTS[0], 9), length), Ip::V6.datagram((PORTS[1], 9), length)]
}

/// Sends a hundred packets a second of both flows for 5 s. Returns the tickets per second on each that leave
/// the core.
fn tickets(edge: &str, core: &str) -> [f64; 2] {
    let outcome = run(edge, core, [flows(200), Vec::new()], Span::from_millis(10), 5_000);
    assert!(counts(&outcome.far, PORTS).into_iter().all(|count| count > 200), "{}", outcome.metrics[1]);
    outcome.labels(&outcome.far, LabelKind::Tickets, PORTS)
}

/// Within a twentieth: frames come in steps of milliseconds.
fn assert_close<const N: usize>(found: [f64; N], expected: [f64; N]) {
    for (found, expected) in found.into_iter().zip(expected) {
        assert!((found - expected).abs() <= 0.05 * expected, "{found}, not {expected}");
    }
}

pub fn what_flows_are_issued_comes_out_behind_two_gateways() {
    let edge = config(0, WRITES, "", &issued());
    assert_close(tickets(&edge, &config(1, BOTH, "", "")), [1_000.0, 3_000.0]);
}

pub fn who_is_issued_nothing_cannot_label_its_own_packets() {
    let edge = config(0, WRITES, "", &issued());
    for kind in [LabelKind::Tickets, LabelKind::Rate] {
        let liars = [(Ip::V4, 1_003), (Ip::V6, 1_004)]
            .map(|(ip, port)| labelled(ip.datagram((port, 9), 200), kind, 5_000.0));
        let frames = [flows(200), liars.to_vec()].concat();
        let outcome =
            run(&edge, &config(1, BOTH, "", ""), [frames, Vec::new()], Span::from_millis(10), 2_000);
        for port in [1_003, 1_004] {
            let labels: Vec<_> = from_port(&outcome.far, port).map(|frame| label(frame)).collect();
            assert!(labels.len() > 50 && labels.iter().all(Option::is_none), "{labels:?}");
        }
        assert!(from_port(&outcome.far, PORTS[0]).all(|frame| label(frame).is_some()));
    }
}

pub fn the_last_gateway_takes_them_off() {
    let edge = config(0, WRITES, "", &issued());
    let core = config(1, "queue = \"tred\"\nlabels = { reads = true }\n", "", "");
    assert_eq!(tickets(&edge, &core), [0.0, 0.0]);
}

pub fn an_edge_trades_them_for_what_the_core_issues() {
    let edge = config(0, &format!("{WRITES}tickets = 800\n{EXCHANGE}"), "", &issued());
    assert_close(tickets(&edge, &config(1, BOTH, "", "")), [200.0, 600.0]);
}

pub fn a_core_trades_them_once_more() {
    let edge = config(0, &format!("{WRITES}tickets = 800\n{EXCHANGE}"), "", &issued());
    let core = config(1, &format!("{BOTH}tickets = 5000\n{EXCHANGE}"), "", "");
    assert_close(tickets(&edge, &core), [1_250.0, 3_750.0]);
}

/// Connections to each port: the goodput of a single one over some seconds varies by half.
const CONNECTIONS: usize = 6;

/// Opens TCP connections of the kernel to two ports through these gateways. Returns the bytes of each port
/// that arrive between 3 s and 21 s.
fn goodput(edge: &str, core: &str) -> [u64; 2] {
    let line = Line::new(edge, core);
    let (clock, [from, end]) = (Clock::start(), [3, 21].map(Time::from_secs));
    let count = move |mut stream: TcpStream| {
        let (mut buffer, mut count) = (vec![0; 65_536], 0);
        while clock.until(end) > Span::ZERO {
            let read = stream.read(&mut buffer).unwrap() as u64;
            count += if clock.until(from) == Span::ZERO { read } else { 0 };
        }
        count
    };
    let (mut counts, mut sources) = ([const { Vec::new() }; 2], Vec::new());
    let listeners =
        PORTS.map(|port| line.far.namespace.run(|| TcpListener::bind(("10.0.0.12", port)).unwrap()).unwrap());
    // In turn, because an early connection gets more for a while.
    for (listener, port) in listeners.iter().zip(0_usize..).cycle().take(2 * CONNECTIONS) {
        let address = listener.local_addr().unwrap();
        let mut stream = line.near.namespace.run(|| TcpStream::connect(address).unwrap()).unwrap();
        // Until the sink goes away.
        sources.push(std::thread::spawn(move || while stream.write_all(&[0; 10_000]).is_ok() {}));
        let accepted = listener.accept().unwrap().0;
        counts[port].push(std::thread::spawn(move || count(accepted)));
    }
    let counts = counts.map(|sinks| sinks.into_iter().map(|sink| sink.join().unwrap()).sum());
    sources.into_iter().for_each(|source| source.join().unwrap());
    line.stop();
    counts
}

/// Goodput if the edge marks the flows' tickets, and a core of 12 Mb/s has these keys.
fn goodput_behind(core: &str) -> [u64; 2] {
    let edge = config(0, WRITES, DELAY, &issued().replace("from_port", "to_port"));
    goodput(&edge, &config(1, core, "", "").replacen("100Mbit", "12Mbit", 1))
}

/// The ratio is nearer to 1:3 than to 1:1 and 1:9.
fn assert_one_to_three([poor, rich]: [u64; 2]) {
    let ratio = rich as f64 / poor as f64;
    assert!((ratio / 3.0).ln().abs() < 3_f64.ln() / 2.0, "{poor} {rich}");
}

/// The ratio is nearer to 1:1 than to 1:3 and 3:1.
fn assert_even([one, other]: [u64; 2]) {
    let ratio = one as f64 / other as f64;
    assert!(ratio.ln().abs() < 3_f64.ln() / 2.0, "{one} {other}");
}

pub fn connections_share_a_core_by_their_tickets() {
    assert_one_to_three(goodput_behind(&format!("queue = {TRED}\n{READS}")));
}

pub fn connections_share_evenly_where_tickets_do_not_count() {
    assert_even(goodput_behind("queue = \"red\"\n"));
}

/// Receiver-based: the core marks the sinks' tickets on acknowledgements, from which the edge marks data.
fn goodput_of_sinks(down: &str, rules: &str) -> [u64; 2] {
    let mark = "[[rule]]\ndirection = \"up\"\nprotocol = \"tcp\"\nmark = { kind = \"tickets\", window = \"0.5s\", \
                policing_window = \"0.5s\", issue_window = \"0s\", bits = 17 }\n";
    let edge = config(0, WRITES, &(READS.to_owned() + DELAY), mark);
    goodput(
        &edge,
        &config(1, &format!("queue = {TRED}\n{READS}"), down, rules).replacen("100Mbit", "12Mbit", 1),
    )
}

/// Rules that issue one and three thousand tickets a second to sinks, for data that goes up.
fn issued_to_sinks() -> String {
    let rule = |rule: &str| format!("[[rule]]\ndirection = \"up\"\n{rule}");
    let rules = issued().replace("from_port", "to_port").replace("tickets = ", "ack_tickets = ");
    rules.split("[[rule]]\n").skip(1).map(rule).collect()
}

pub fn connections_share_a_core_as_their_sinks_decide() {
    assert_one_to_three(goodput_of_sinks(WRITES, &issued_to_sinks()));
}

pub fn connections_share_evenly_where_no_sink_decides() {
    assert_even(goodput_of_sinks("", ""));
}

pub fn what_a_sink_is_issued_is_on_its_acknowledgements() {
    let edge = config(0, "", BOTH, "");
    let core = config(1, "", WRITES, &issued_to_sinks());
    let both = [(Ip::V4, PORTS[0]), (Ip::V6, PORTS[1])];
    let up = both.map(|(ip, port)| ip.segment((port, 9), 1, 100)).to_vec();
    let down = both.map(|(ip, port)| turned(ip.segment((9, port), 1, 0))).to_vec();
    let rules = core.replace("to_port", "from_port");
    let outcome = run(&edge, &rules, [up, down], Span::from_millis(10), 5_000);
    // Acknowledgements go to the ports of the flows.
    let found = PORTS.map(|port| {
        let to_port = |frame: &&Vec<u8>| ports(frame).is_some_and(|(_, to)| to == port);
        let labels = outcome.near.iter().filter(to_port).filter_map(|frame| label(frame));
        labels.map(|(kind, value)| if kind == LabelKind::AckTickets { value } else { 0.0 }).sum::<f64>()
            / outcome.seconds
    });
    assert_close(found, [1_000.0, 3_000.0]);
    assert_eq!(outcome.labels(&outcome.far, LabelKind::Tickets, PORTS), [0.0, 0.0], "data is not marked");
}

/// Sends data up, in segments that an edge marks, and acknowledgements with a hundred thousand tickets a
/// second down.
fn with_acknowledgements(edge: &str, core: &str) -> Outcome {
    let segment = |ip: Ip, port| ip.segment((port, 9), 1, 100);
    let acknowledgement =
        |ip: Ip, port, tickets| labelled(ip.segment((9, port), 1, 0), LabelKind::AckTickets, tickets);
    let up = vec![segment(Ip::V4, PORTS[0]), segment(Ip::V6, PORTS[1])];
    let down = vec![acknowledgement(Ip::V4, PORTS[0], 400.0), acknowledgement(Ip::V6, PORTS[1], 600.0)];
    run(edge, core, [up, down], Span::from_millis(10), 6_000)
}

pub fn acknowledgements_bring_back_what_a_link_is_issued() {
    let up = |ack_tickets: u32| format!("{BOTH}ack_tickets = {ack_tickets}\n{EXCHANGE}");
    let down = format!("{BOTH}{EXCHANGE}");
    let edge = config(0, &up(30_000), &down, &issued());
    let core = config(1, &up(50_000), &down, "");
    let outcome = with_acknowledgements(&edge, &core);
    // The core gets 100,000 tickets from the far host, which its data carry in the end; it passes 50,000 to
    // the edge, which passes 30,000 to the near host.
    let data = outcome.labels(&outcome.far, LabelKind::Tickets, PORTS);
    assert_close([data[0] + data[1]], [100_000.0]);
    assert_close([data[1] / data[0]], [3.0]);
    assert_close(outcome.labels(&outcome.near, LabelKind::AckTickets, [9]), [30_000.0]);
}
