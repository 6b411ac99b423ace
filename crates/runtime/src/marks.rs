//! The markers of the packets of a flow at its two ends.
//!
//! Connections of one flow share its markers, which are issued the flow's tickets or rate once and see the
//! packets and acknowledgements of all connections. Each short flow has markers of its own.

use apportion_core::Packet;
use apportion_core::mark::ticket::TicketMarker;
use apportion_core::mark::{AnyMarker, Marker, MarkerParams, MarkerSetup};
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_core::units::{TicketRate, Time};

use crate::connections::{Numbers, Planned};
use apportion_scenario::model::{Flow, Scenario, Transport};

/// The markers of one flow, as disciplines see it.
#[derive(Debug)]
pub struct Marks {
    source: AnyMarker,
    /// Marks acknowledgements, if the receiver decides.
    sink: Option<TicketMarker>,
    /// Payload of a full segment if acknowledgements are delayed; none if each packet is acknowledged,
    /// repeated ones included.
    delayed: Option<f64>,
}

/// The markers of a scenario with `seed`, by id; empty if no flow is marked.
#[must_use]
pub fn marks(
    scenario: &Scenario,
    planned: &[Planned],
    numbers: &Numbers,
    seed: u64,
) -> Vec<Option<Box<Marks>>> {
    if scenario.flows.iter().all(|flow| flow.mark.is_none()) {
        return Vec::new();
    }
    let of_id = |connections: &[Planned]| {
        let Planned { flow: number, id, .. } = connections[0];
        let flow = &scenario.flows[number as usize];
        let member = id.0 - numbers.ids(number as usize).start;
        let stream = |purpose: &str| Stream::new(seed, &format!("flow.{}.{purpose}.{member}", flow.stream()));
        let first = connections.iter().map(|connection| connection.start).min();
        Marks::new(flow, first.unwrap_or_default(), &stream)
    };
    planned.chunk_by(|one, next| one.id == next.id).map(of_id).collect()
}

impl Marks {
    /// The markers of `flow`, or of one short flow of it, that starts at `start`; none if nothing marks it.
    /// `stream` returns the random streams, by purpose.
    #[must_use]
    pub fn new(flow: &Flow, start: Time, stream: &dyn Fn(&str) -> Stream) -> Option<Box<Self>> {
        let params = flow.mark.as_deref()?;
        let setup = |tickets, purpose: &str| MarkerSetup {
            tickets,
            acknowledged: flow.transport.is_acknowledged(),
            start,
            random: stream(purpose),
        };
        let sink = match params {
            MarkerParams::Tickets(params) => flow
                .ack_tickets
                .map(|tickets| TicketMarker::at_sink(params, setup(Some(tickets), "ack_mark"))),
            _ => None,
        };
        let delays = match &flow.transport {
            Transport::Tcp(tcp) => tcp.delayed_ack.is_some(),
            Transport::Quic(quic) => quic.delayed_ack.is_some(),
            Transport::Stack(_) | Transport::Udp { .. } => false,
        };
        let delayed = delays.then(|| flow.transport.segment().get().max(1) as f64);
        Some(Box::new(Self { source: params.build(setup(flow.tickets, "mark")), sink, delayed }))
    }

    /// Marks `packet`, which leaves the source.
    pub fn mark(&mut self, now: Time, packet: &mut impl Packet) {
        self.source.mark(now, packet);
    }

    /// Marks `packet`, an acknowledgement that leaves the sink.
    pub fn mark_ack(&mut self, now: Time, packet: &mut impl Packet) {
        if let Some(sink) = &mut self.sink {
            sink.mark(now, packet);
        }
    }

    /// Notes that `packet`, an acknowledgement of `bytes` new bytes, reached the source.
    pub fn acknowledged<P: Packet>(&mut self, now: Time, packet: &P, bytes: u64) {
        let packets = self.delayed.map_or(1.0, |segment| bytes as f64 / segment);
        Marker::<P>::acknowledged(&mut self.source, now, packets, packet.label(LabelKind::AckTickets));
    }

    /// The number of packets and acknowledgements so far with more tickets than their tags hold.
    #[must_use]
    pub fn full_tags<P: Packet>(&self) -> u64 {
        let sink = self.sink.as_ref().map_or(0, Marker::<P>::full_tags);
        Marker::<P>::full_tags(&self.source) + sink
    }

    /// Changes the tickets that the source, or the sink for acknowledgements, is issued.
    pub fn issue<P: Packet>(&mut self, now: Time, kind: LabelKind, tickets: TicketRate) {
        match (kind, &mut self.sink) {
            (LabelKind::Tickets, _) => Marker::<P>::issue(&mut self.source, now, tickets),
            (LabelKind::AckTickets, Some(sink)) => Marker::<P>::issue(sink, now, tickets),
            (LabelKind::AckTickets, None) | (LabelKind::Rate | LabelKind::Value, _) => {}
        }
    }
}
