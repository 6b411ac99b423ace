//! Markers of flows that enter a gateway.
//!
//! A marker of tickets counts acknowledged packets of the other direction. Acknowledgements count bytes, so
//! one packet is the mean payload of the flow's recent packets. Where tickets are issued to the sink of a
//! flow, its acknowledgements are marked instead.
//!
//! Cost: O(1) per packet; 300 bytes per flow that is marked.

use apportion_core::mark::ticket::TicketMarker;
use apportion_core::mark::{AnyMarker, Marker, MarkerParams, MarkerSetup};
use apportion_core::packet::{FlowId, LabelKind};
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Time};
use apportion_scenario::gateway::{Direction, Treatment};

use crate::frame::protocol;
use crate::packet::Packet;

/// Weight of a new packet in the mean payload. Chosen: a mean over some ten packets.
const SHARE: f64 = 0.1;

/// Makes markers.
#[derive(Debug)]
pub struct Maker {
    seed: u64,
    direction: Direction,
    made: u64,
}

impl Maker {
    /// A maker for flows of one direction.
    #[must_use]
    pub const fn new(seed: u64, direction: Direction) -> Self {
        Self { seed, direction, made: 0 }
    }

    /// The marker of a flow that starts at `now`; none if its rule has none.
    pub fn make(
        &mut self,
        now: Time,
        flow: FlowId,
        treatment: &Treatment,
        protocol: u8,
    ) -> Option<Box<FlowMarks>> {
        let mark = treatment.mark.as_ref()?;
        self.made += 1;
        let name = format!("{}.mark.{}.{}", self.direction.name(), flow.0, self.made);
        let setup = MarkerSetup {
            tickets: treatment.tickets.or(treatment.ack_tickets),
            acknowledged: protocol == protocol::TCP,
            start: now,
            random: Stream::new(self.seed, &name),
        };
        let (marker, at_sink) = match &mark.params {
            MarkerParams::Tickets(params) if treatment.ack_tickets.is_some() => {
                (AnyMarker::Tickets(TicketMarker::at_sink(params, setup)), true)
            }
            params => (params.build(setup), false),
        };
        Some(Box::new(FlowMarks { marker, at_sink, payload: 0.0 }))
    }
}

/// The marker of a flow.
#[derive(Debug)]
pub struct FlowMarks {
    marker: AnyMarker,
    /// Whether it marks acknowledgements.
    at_sink: bool,
    /// Mean payload of packets that have one, in bytes; zero before the first.
    payload: f64,
}

impl FlowMarks {
    /// Marks a packet that carries `payload` of TCP.
    pub fn mark(&mut self, now: Time, packet: &mut Packet, payload: Bytes) {
        let bytes = payload.get() as f64;
        if self.payload == 0.0 {
            self.payload = bytes;
        } else if bytes > 0.0 {
            self.payload += SHARE * (bytes - self.payload);
        }
        if !self.at_sink {
            self.marker.mark(now, packet);
        }
    }

    /// Marks a packet that acknowledges others of the flow.
    pub fn mark_acknowledgement(&mut self, now: Time, packet: &mut Packet) {
        if self.at_sink {
            self.marker.mark(now, packet);
        }
    }

    /// Notes that a packet with this label acknowledged `bytes` new bytes.
    pub fn acknowledged(
        &mut self,
        now: Time,
        bytes: u32,
        label: Option<(LabelKind, apportion_core::label::Label)>,
    ) {
        let label = label.filter(|(kind, _)| *kind == LabelKind::AckTickets).map(|(_, label)| label);
        let packets = if self.payload > 0.0 { f64::from(bytes) / self.payload } else { 0.0 };
        if packets > 0.0 || label.is_some() {
            Marker::<Packet>::acknowledged(&mut self.marker, now, packets, label);
        }
    }
}
