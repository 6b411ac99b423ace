//! What marks the packets of a connection at its two ends.

use apportion_core::Packet as _;
use apportion_core::mark::ticket::TicketMarker;
use apportion_core::mark::{AnyMarker, Marker, MarkerParams, MarkerSetup};
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_core::units::{TicketRate, Time};
use apportion_scenario::model::{Flow, Transport};

use crate::packet::{Direction, Packet};

/// The markers of one connection.
#[derive(Debug)]
pub struct Marks {
    source: AnyMarker,
    /// Marks acknowledgements where the receiver decides.
    sink: Option<TicketMarker>,
    /// Payload of a full segment where acknowledgements are delayed; none where each packet has one of its own,
    /// repeated ones included.
    delayed: Option<f64>,
}

impl Marks {
    /// For a connection of `flow` that starts at `start`; none if nothing marks it. `stream` makes the random
    /// streams, by purpose.
    #[must_use]
    pub fn new(flow: &Flow, start: Time, stream: &dyn Fn(&str) -> Stream) -> Option<Box<Self>> {
        let params = flow.mark.as_deref()?;
        let setup = |tickets, purpose: &str| MarkerSetup {
            tickets,
            acknowledged: matches!(flow.transport, Transport::Tcp(_)),
            start,
            random: stream(purpose),
        };
        let sink = match params {
            MarkerParams::Tickets(params) => flow
                .ack_tickets
                .map(|tickets| TicketMarker::at_sink(params, setup(Some(tickets), "ack_mark"))),
            _ => None,
        };
        let delayed = match &flow.transport {
            Transport::Tcp(tcp) => tcp.delayed_ack.map(|_| tcp.segment.get().max(1) as f64),
            Transport::Udp { .. } => None,
        };
        Some(Box::new(Self { source: params.build(setup(flow.tickets, "mark")), sink, delayed }))
    }

    /// `packet` leaves one end.
    pub fn mark(&mut self, now: Time, packet: &mut Packet) {
        match (packet.direction(), &mut self.sink) {
            (Direction::Forth, _) => self.source.mark(now, packet),
            (Direction::Back, Some(sink)) => sink.mark(now, packet),
            (Direction::Back, None) => {}
        }
    }

    /// `packet`, an acknowledgement of `bytes` new bytes, reached the source.
    pub fn acknowledged(&mut self, now: Time, packet: Packet, bytes: u64) {
        let packets = self.delayed.map_or(1.0, |segment| bytes as f64 / segment);
        Marker::<Packet>::acknowledged(&mut self.source, now, packets, packet.label(LabelKind::AckTickets));
    }

    /// What the source, or the sink for acknowledgements, is issued from now on.
    pub fn issue(&mut self, now: Time, kind: LabelKind, tickets: TicketRate) {
        match (kind, &mut self.sink) {
            (LabelKind::Tickets, _) => Marker::<Packet>::issue(&mut self.source, now, tickets),
            (LabelKind::AckTickets, Some(sink)) => Marker::<Packet>::issue(sink, now, tickets),
            (LabelKind::AckTickets, None) | (LabelKind::Rate, _) => {}
        }
    }
}
