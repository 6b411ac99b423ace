//! Routers on wires in memory, in a row.

use apportion_core::units::{Bytes, Span};
use apportion_scenario::gateway::classifier::Headers;

use super::*;
use crate::frame;

/// The port by which flows enter.
const UP: u32 = 0;
/// The port by which flows leave.
const DOWN: u32 = 1;
/// The host that sends the flow.
const SOURCE: Hardware = [2, 0, 0, 0, 0, 99];

/// Flows that leave by `DOWN`: number 5 is `tuple`, if the router carries it.
struct Flows {
    tuple: FlowTuple,
    carried: bool,
    sender: Hardware,
    reports: Vec<(u32, FlowReport)>,
}

impl RouterContext for Flows {
    fn tuple(&self, port: u32, flow: FlowId) -> Option<FlowTuple> {
        (port == DOWN && flow == FlowId(5)).then_some(self.tuple)
    }
    fn flow(&self, port: u32, tuple: &FlowTuple) -> Option<FlowId> {
        (port == DOWN && *tuple == self.tuple).then_some(FlowId(5))
    }
    fn sender(&self, port: u32, flow: FlowId) -> Option<Hardware> {
        self.tuple(port, flow).map(|_| self.sender)
    }
    fn carries(&self, port: u32, flow: FlowId) -> bool {
        self.carried && port == DOWN && flow == FlowId(5)
    }
    fn on_report(&mut self, port: u32, report: FlowReport) {
        self.reports.push((port, report));
    }
}

/// A router and its context.
struct Node {
    router: Router,
    flows: Flows,
}

fn node(last: u8, version: u8, key: Option<&[u8]>) -> Node {
    let (address, source, destination): (IpAddr, IpAddr, IpAddr) = match version {
        4 => ([192, 0, 2, last].into(), [198, 51, 100, 7].into(), [203, 0, 113, 9].into()),
        _ => {
            let of = |last: u8| IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, u16::from(last)]);
            (of(last), of(0x77), of(0x99))
        }
    };
    let headers = Headers { protocol: 17, source, destination, ports: Some((5_004, 40_000)), dscp: 0 };
    let hardware = [UP, DOWN].map(|port| [2, 0, 0, 0, last, port as u8]);
    let params = ManagerParams::default();
    let router = Router::new(address, hardware, &params, key, Stream::new(last.into(), "router"));
    let tuple = FlowTuple::new(&headers).unwrap();
    Node { router, flows: Flows { tuple, carried: true, sender: SOURCE, reports: Vec::new() } }
}

/// 10 Mb/s arrived in 50 ms, and 1 Mb/s departed.
fn report() -> FlowReport {
    let (arrived, departed) = (Bytes::new(62_500), Bytes::new(6_250));
    FlowReport { flow: FlowId(5), arrived, departed, interval: Span::from_millis(50) }
}

impl Node {
    fn report(&mut self, now: Time) {
        self.router.report(now, DOWN, &[report()], &mut self.flows);
    }
    fn receive(&mut self, now: Time, port: u32, frame: &[u8]) -> Handled {
        let parsed = frame::parse(frame).unwrap();
        self.router.on_frame(now, port, frame, &parsed, false, &mut self.flows)
    }
    fn sent(&mut self) -> Vec<(u32, Vec<u8>)> {
        std::iter::from_fn(|| self.router.transmit()).collect()
    }
    fn count(&self, name: &str) -> f64 {
        let mut found = 0.0;
        self.router.statistics(&mut |shown, value| {
            if shown == name {
                found = value;
            }
        });
        found
    }
}

/// Carries frames along a row of routers, the first of which is next to the source, until all are silent.
/// Returns the frames that leave the row at its ends.
fn exchange(now: Time, row: &mut [Node]) -> [Vec<Vec<u8>>; 2] {
    let mut ends = [Vec::new(), Vec::new()];
    // For each frame: the router that it reaches, and by which port.
    let mut under_way: VecDeque<(usize, u32, Vec<u8>)> = VecDeque::new();
    for _ in 0..1_000 {
        for (at, node) in row.iter_mut().enumerate() {
            under_way.extend(node.sent().into_iter().map(|(port, frame)| (at, port, frame)));
        }
        let Some((at, port, frame)) = under_way.pop_front() else { return ends };
        let (next, comes_in) = match port {
            UP => (at.checked_sub(1), DOWN),
            _ => (Some(at + 1).filter(|at| *at < row.len()), UP),
        };
        match next {
            None => ends[port as usize].push(frame),
            Some(next) => {
                if row[next].receive(now, comes_in, &frame) == Handled::Pass {
                    under_way.push_back((next, 1 - comes_in, frame));
                }
            }
        }
    }
    panic!("they do not fall silent");
}

const fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn a_neighbour_is_found_and_receives_reports() {
    for version in [4, 6] {
        for key in [None, Some(&b"sixteen bytes at least"[..])] {
            let mut row = [node(1, version, key), node(2, version, key)];
            row[1].report(ms(0));
            let ends = exchange(ms(0), &mut row);
            assert_eq!(row[0].flows.reports, [(DOWN, report())]);
            // The request left by the other port too, and went no further than to neighbours.
            assert_eq!(ends.map(|end| end.len()), [0, 1]);
            // The next report goes there at once.
            row[1].report(ms(50));
            let sent = row[1].sent();
            assert_eq!(sent.len(), 1);
            assert_eq!((sent[0].0, &sent[0].1[..6]), (UP, &[2, 0, 0, 0, 1, 1][..]));
            assert_eq!(row[0].receive(ms(50), DOWN, &sent[0].1), Handled::Taken);
            assert_eq!(row[0].flows.reports.len(), 2);
        }
    }
}

#[test]
fn a_query_passes_a_router_that_does_not_carry_the_flow() {
    for version in [4, 6] {
        let mut row = [1, 2, 3].map(|last| node(last, version, None));
        row[1].flows.carried = false;
        row[2].report(ms(0));
        exchange(ms(0), &mut row);
        assert_eq!(row[0].flows.reports, [], "the question to neighbours ends at the one in between");
        row[2].router.on_timer(ms(100), &mut row[2].flows);
        exchange(ms(100), &mut row);
        row[2].report(ms(150));
        exchange(ms(150), &mut row);
        assert_eq!(row[0].flows.reports, [(DOWN, report())]);
        assert_eq!((row[1].flows.reports.len(), row[1].count("answers_sent")), (0, 0.0));
    }
}

#[test]
fn a_query_towards_the_source_is_addressed_to_it() {
    let mut alone = node(2, 4, None);
    alone.report(ms(0));
    let both: Vec<u32> = alone.sent().into_iter().map(|(port, _)| port).collect();
    assert_eq!(both, [UP, DOWN]);
    alone.router.on_timer(ms(100), &mut alone.flows);
    let sent = alone.sent();
    let (port, frame) = &sent[0];
    assert_eq!((sent.len(), *port, &frame[..6]), (1, UP, &SOURCE[..]));
    let headers = frame::parse(frame).unwrap().headers.unwrap();
    assert_eq!(headers.destination, alone.flows.tuple.source());
    assert_eq!(headers.source, IpAddr::from([192, 0, 2, 2]));
    // There is no route if the flow's sender is unknown, or the address is of the other version.
    let mut other = node(2, 4, None);
    other.flows.tuple = node(2, 6, None).flows.tuple;
    other.report(ms(0));
    other.router.on_timer(ms(100), &mut other.flows);
    assert_eq!((other.sent().len(), other.count("unsent_no_way")), (2, 1.0));
}

#[test]
fn forged_messages_are_refused_with_a_key() {
    let key = Some(&b"sixteen bytes at least"[..]);
    let mut row = [node(1, 4, key), node(2, 4, key)];
    row[1].report(ms(0));
    exchange(ms(0), &mut row);
    // An attacker without the key, who knows the address of the next hop, sends a request and a report.
    let mut forger = node(2, 4, None);
    forger.report(ms(50));
    for (_, frame) in forger.sent() {
        assert_eq!(row[0].receive(ms(50), DOWN, &frame), Handled::Taken);
    }
    assert_eq!((row[0].sent().len(), row[0].count("refused_unauthenticated")), (0, 2.0));
    // With another key, and from the other side: the places of routers stay known.
    let mut forger = node(2, 4, Some(b"another of sixteen bytes"));
    forger.report(ms(50));
    for (_, frame) in forger.sent() {
        row[0].receive(ms(50), UP, &frame);
    }
    assert_eq!((row[0].sent().len(), row[0].count("refused_forged")), (0, 2.0));
    assert_eq!(row[0].router.places[&id([192, 0, 2, 2].into())].1, DOWN);
    // A real report with changed bytes and a matching checksum.
    row[1].report(ms(50));
    let (_, frame) = row[1].sent().pop().unwrap();
    let parsed = frame::parse(&frame).unwrap();
    let mut message = frames::read(&frame, &parsed).unwrap().to_vec();
    let place = message.windows(8).position(|word| word == 6_250_u64.to_be_bytes()).unwrap();
    message[place + 7] ^= 1;
    let envelope = Envelope {
        from: [2, 0, 0, 0, 2, 0],
        to: [2, 0, 0, 0, 1, 1],
        source: [192, 0, 2, 2].into(),
        destination: [192, 0, 2, 1].into(),
    };
    row[0].receive(ms(50), DOWN, &frames::write(&envelope, &message).unwrap());
    assert_eq!((row[0].flows.reports.len(), row[0].count("refused_forged")), (1, 3.0));
    row[0].receive(ms(50), DOWN, &frame);
    assert_eq!(row[0].flows.reports.len(), 2, "and the real one counts");
}

#[test]
fn frames_of_others_pass_and_damaged_ones_are_not_read() {
    let mut row = [node(1, 4, None), node(2, 4, None)];
    row[1].report(ms(0));
    exchange(ms(0), &mut row);
    row[1].report(ms(50));
    let (_, report) = row[1].sent().pop().unwrap();
    let mut third = node(3, 4, None);
    assert_eq!(third.receive(ms(50), DOWN, &report), Handled::Pass, "to another router");
    // Flips each bit of the packet, but not of the Ethernet header: the message is damaged, or not for this
    // router.
    for bit in 14 * 8..report.len() * 8 {
        let mut frame = report.clone();
        frame[bit / 8] ^= 1 << (bit % 8);
        if let Ok(parsed) = frame::parse(&frame) {
            row[0].router.on_frame(ms(50), DOWN, &frame, &parsed, false, &mut row[0].flows);
        }
    }
    assert_eq!(row[0].flows.reports.len(), 1);
    assert!(row[0].count("refused_checksum") > 100.0);
    assert_eq!(row[0].receive(ms(50), DOWN, &report), Handled::Taken);
    assert_eq!(row[0].flows.reports.len(), 2);
}

#[test]
fn messages_from_beyond_the_link_or_with_another_source_are_not_read() {
    for version in [4, 6] {
        let mut row = [node(1, version, None), node(2, version, None)];
        row[1].report(ms(0));
        exchange(ms(0), &mut row);
        row[1].report(ms(50));
        let (_, report) = row[1].sent().pop().unwrap();
        let parsed = frame::parse(&report).unwrap();
        let headers = parsed.headers.unwrap();
        let mut distant = report.clone();
        let (hops, checksum) = if version == 4 { (22, Some(24)) } else { (21, None) };
        distant[hops] -= 1;
        if let Some(checksum) = checksum {
            distant[checksum] += 1;
        }
        let message = frames::read(&report, &parsed).unwrap();
        let (source, destination) = (node(3, version, None).router.address, headers.destination);
        let envelope = Envelope { from: [2, 0, 0, 0, 2, 0], to: [2, 0, 0, 0, 1, 1], source, destination };
        let disguised = frames::write(&envelope, message).unwrap();
        for (frame, reason) in [(distant, "refused_hop_limit"), (disguised, "refused_source")] {
            assert_eq!(row[0].receive(ms(50), DOWN, &frame), Handled::Taken);
            assert_eq!((row[0].flows.reports.len(), row[0].count(reason)), (1, 1.0), "{reason}");
        }
        assert_eq!(row[0].receive(ms(50), DOWN, &report), Handled::Taken);
        assert_eq!(row[0].flows.reports.len(), 2);
    }
}

#[test]
fn places_of_routers_are_bounded() {
    let mut one = node(1, 6, None);
    for last in 2..=255 {
        let mut other = node(last, 6, None);
        other.report(ms(0));
        let (_, frame) = other.sent().pop().unwrap();
        one.receive(ms(last.into()), DOWN, &frame);
    }
    assert_eq!(one.router.places.len(), MAX_ROUTERS);
    assert!(one.router.places.values().all(|(at, ..)| *at >= ms(128)));
}
