//! Classifies packets of the laboratory: the connection by its port, and its route.

use apportion_core::Packet as _;
use apportion_core::packet::{Ecn, Protocol};
use apportion_core::units::{Bytes, Time};
use apportion_runtime::connections::Numbers;
use apportion_runtime::marks::Marks;
use apportion_runtime::probe::FlowProbe;
use apportion_scenario::model::{Scenario, Transport};

use super::network::{ConnectionRoute, FIRST_PORT};
use super::routers::LabRouters;
use crate::engine::{Arrival, ControlFrame, Disposition, Hop, LinkStates, Outgoing, World};
use crate::frame::{self, Parsed, Segment};
use crate::packet::{Description, Packet};

/// Connections with their routes, their markers, and the measurements of their flows.
#[derive(Debug)]
pub struct LabWorld<'a> {
    connections: Vec<ConnectionRoute>,
    /// Kinds by flow of the scenario.
    kinds: Vec<Kind>,
    /// Marks by id; empty if no flow is marked.
    pub marks: Vec<Option<Box<Marks>>>,
    /// Probes by flow of the scenario.
    pub probes: Vec<FlowProbe>,
    /// The highest acknowledgement number that reached each connection's source, where the flow is marked.
    acknowledged: Vec<Option<u32>>,
    numbers: Numbers,
    /// Routers that exchange reports; none if no queue reports.
    pub routers: Option<LabRouters<'a>>,
    /// Frames that belong to no connection.
    pub strays: u64,
}

/// The properties of a flow's packets that disciplines see: those of the scenario, whatever Linux sends.
#[derive(Clone, Copy, Debug)]
struct Kind {
    protocol: Protocol,
    /// The ECN field of datagrams, which Linux sends without ECN.
    ecn: Ecn,
    /// TCP: sizes charged for the headers of data, and for a packet without data.
    tcp: Option<(Bytes, Bytes)>,
}

impl<'a> LabWorld<'a> {
    /// A world for the connections of a scenario.
    #[must_use]
    pub fn new(
        scenario: &Scenario,
        connections: Vec<ConnectionRoute>,
        numbers: Numbers,
        marks: Vec<Option<Box<Marks>>>,
        routers: Option<LabRouters<'a>>,
    ) -> Self {
        let kind = |flow: &apportion_scenario::model::Flow| Kind {
            protocol: flow.protocol,
            ecn: flow.ecn,
            tcp: match &flow.transport {
                Transport::Tcp(tcp) => Some((tcp.header, tcp.ack)),
                Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => None,
            },
        };
        Self {
            kinds: scenario.flows.iter().map(kind).collect(),
            probes: scenario.flows.iter().map(|_| FlowProbe::default()).collect(),
            acknowledged: if marks.is_empty() { Vec::new() } else { vec![None; connections.len()] },
            connections,
            marks,
            numbers,
            routers,
            strays: 0,
        }
    }

    /// The connection with this port at its source.
    fn connection(&self, port: u16) -> Option<usize> {
        let number = usize::from(port.checked_sub(FIRST_PORT)?);
        (number < self.connections.len()).then_some(number)
    }

    /// The connection of a frame that entered at `port`, and whether the frame goes forth.
    fn whose(&self, port: u32, parsed: &Parsed) -> Option<(usize, bool)> {
        let (from, to) = parsed.headers.as_ref()?.ports?;
        let forth = self.connection(from).filter(|at| self.connections[*at].source == port);
        let back = || self.connection(to).filter(|at| self.connections[*at].sink == port);
        forth.map(|at| (at, true)).or_else(|| back().map(|at| (at, false)))
    }
}

impl World for LabWorld<'_> {
    fn classify(&mut self, now: Time, arrival: Arrival<'_>) -> Disposition {
        let parsed = arrival.parsed;
        let Some((connection, forth)) = self.whose(arrival.port, parsed) else {
            self.strays += 1;
            return Disposition::Consume;
        };
        let route = &self.connections[connection];
        let kind = self.kinds[route.flow as usize];
        let description = Description {
            flow: route.id,
            size: kind.size(parsed),
            protocol: kind.protocol,
            ecn: if parsed.ecn == Ecn::NotEct { kind.ecn } else { parsed.ecn },
            label: None,
            account: route.id.0,
            counts: forth,
            ip: parsed.ip(),
            acknowledgement: parsed.acknowledgement(),
        };
        let hop = if forth { route.forth } else { route.back };
        let mut packet = arrival.packet(now, &description, hop);
        if let Some(Some(marks)) = self.marks.get_mut(route.id.index()) {
            if forth { marks.mark(now, &mut packet) } else { marks.mark_ack(now, &mut packet) }
        }
        Disposition::Forward(packet)
    }

    fn egress(&mut self, now: Time, _port: u32, packet: &Packet, frame: &mut [u8]) {
        if packet.counts() {
            let flow = self.numbers.flow_of(packet.flow());
            if let Some(probe) = flow.and_then(|flow| self.probes.get_mut(flow)) {
                probe.delay.record(now.since(packet.arrived));
            }
        } else if !self.marks.is_empty() {
            self.acknowledge(now, packet, frame);
        }
    }

    fn on_control(&mut self, now: Time, control: ControlFrame<'_>, links: &mut LinkStates<'_>) -> bool {
        self.routers.as_mut().is_some_and(|routers| routers.on_control(now, &control, links))
    }

    fn next_timer(&self) -> Time {
        self.routers.as_ref().map_or(Time::MAX, LabRouters::next_timer)
    }

    fn on_timer(&mut self, now: Time, links: &mut LinkStates<'_>) {
        if let Some(routers) = &mut self.routers {
            routers.on_timer(now, links);
        }
    }

    fn poll_transmit(&mut self, routes: &mut Vec<Hop>) -> Option<Outgoing> {
        self.routers.as_mut()?.poll_transmit(routes)
    }
}

impl LabWorld<'_> {
    /// Handles an acknowledgement that reaches the source of a marked flow.
    fn acknowledge(&mut self, now: Time, packet: &Packet, frame: &[u8]) {
        let Some((port, number)) = frame::acknowledgement(frame, packet.acknowledgement()) else { return };
        let Some(connection) = self.connection(port) else { return };
        // Sequence numbers wrap: one that is behind by less than half of their range is old (RFC 9293 section
        // 3.4).
        let before = self.acknowledged[connection].unwrap_or(number);
        let new = number.wrapping_sub(before);
        let new = if new < 1 << 31 { new } else { 0 };
        self.acknowledged[connection] = Some(before.wrapping_add(new));
        if let Some(Some(marks)) = self.marks.get_mut(packet.flow().index()) {
            marks.acknowledged(now, packet, u64::from(new));
        }
    }
}

impl Kind {
    /// The size that a packet is charged.
    fn size(self, parsed: &Parsed) -> Bytes {
        match (self.tcp, parsed.segment) {
            (Some((_, bare)), Some(Segment { payload: Bytes::ZERO, .. })) => bare,
            (Some((header, _)), Some(Segment { payload, .. })) => payload + header,
            _ => parsed.length,
        }
    }
}
