//! What a marker is, and what it learns of its flow.

use crate::label::Label;
use crate::packet::Packet;
use crate::random::Stream;
use crate::units::{TicketRate, Time};

/// A marker of one flow.
pub trait Marker<P: Packet> {
    /// `packet` leaves.
    fn mark(&mut self, now: Time, packet: &mut P);

    /// An acknowledgement came back that says of `packets` packets that they arrived, with its own label.
    fn acknowledged(&mut self, _now: Time, _packets: f64, _label: Option<Label>) {}

    /// What the flow is issued from `now` on, for markers that mark tickets.
    fn issue(&mut self, _now: Time, _tickets: TicketRate) {}
}

/// The flow and the end of it that a marker is built for.
#[derive(Debug)]
pub struct MarkerSetup {
    /// What the flow is issued; none: as its acknowledgements say.
    pub tickets: Option<TicketRate>,
    /// Whether acknowledgements report what arrived.
    pub acknowledged: bool,
    /// When the flow starts.
    pub start: Time,
    /// For decisions by chance.
    pub random: Stream,
}
