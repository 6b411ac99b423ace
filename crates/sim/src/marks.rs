//! What marks the packets of a flow at its two ends.
//!
//! Connections of one flow share its markers, which are issued the flow's tickets or rate once and see the
//! packets and acknowledgements of all of them. Each short flow has markers of its own.

use apportion_core::Packet as _;
use apportion_core::mark::ticket::TicketMarker;
use apportion_core::mark::{AnyMarker, Marker, MarkerParams, MarkerSetup};
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_core::units::{TicketRate, Time};
use apportion_scenario::model::{Flow, Transport};

use crate::packet::{Direction, Packet};

/// The markers of what disciplines see as one flow.
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
    /// For `flow`, or one short flow of it, that starts at `start`; none if nothing marks it. `stream` makes
    /// the random streams, by purpose.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use apportion_core::packet::{Ecn, FlowId};
    use apportion_core::units::Bytes;

    use super::*;

    /// The tickets of a flow of 1000 t/s after 60 s in which half of the packets that it sends every 10 ms are
    /// acknowledged, each of them for two.
    fn tag(tcp: &str) -> f64 {
        let text = format!(
            "seed = 1\nstop = \"1s\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\" }}\n\
             flow.f = {{ from = \"a\", to = \"b\", tickets = 1000, tcp = {tcp} }}\n"
        );
        let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
        let scenario = &suite.expect("a valid scenario").points[0].scenario;
        let stream = |purpose: &str| Stream::new(1, purpose);
        let mut marks = Marks::new(&scenario.flows[0], Time::ZERO, &stream).expect("it is marked");
        let packet = |direction| Packet::new(0, FlowId(0), 0, Bytes::new(500), Ecn::NotEct, direction);
        let mut last = packet(Direction::Forth);
        for i in 1..6_000 {
            let now = Time::from_millis(10 * i);
            if i % 2 == 0 {
                marks.acknowledged(now, packet(Direction::Back), 2 * 500);
            }
            last = packet(Direction::Forth);
            marks.mark(now, &mut last);
        }
        last.label(LabelKind::Tickets).expect("a label").value()
    }

    #[test]
    fn a_delayed_acknowledgement_counts_for_all_that_it_acknowledges() {
        // 100 packets a second: 10 tickets each. An acknowledgement of each packet would count for one, and
        // AvgRate for half: 20, which policing brings to 14, because x = 2 T · T/x.
        let profile = |more: &str| format!("{{ profile = \"ns2-2000\", segment = \"500B\"{more} }}");
        assert!((tag(&profile(", delayed_ack = \"2 100ms\"")) - 10.0).abs() <= 1.0);
        assert!((tag(&profile("")) - 14.0).abs() <= 1.0);
    }
}
