//! The interface of markers, and the flow properties from which one is built.

use crate::label::Label;
use crate::packet::Packet;
use crate::random::Stream;
use crate::units::{TicketRate, Time};

/// A marker of one flow.
pub trait Marker<P: Packet> {
    /// Marks `packet`, which leaves.
    fn mark(&mut self, now: Time, packet: &mut P);

    /// Reports an acknowledgement of `packets` packets, with its own label.
    fn acknowledged(&mut self, _now: Time, _packets: f64, _label: Option<Label>) {}

    /// Sets the tickets issued to the flow from `now` on, for markers that write tickets.
    fn issue(&mut self, _now: Time, _tickets: TicketRate) {}

    /// The number of packets so far with more tickets than their tag holds.
    fn full_tags(&self) -> u64 {
        0
    }
}

/// The flow and its end for which a marker is built.
#[derive(Debug)]
pub struct MarkerSetup {
    /// The tickets issued to the flow; none: acknowledgements bring them.
    pub tickets: Option<TicketRate>,
    /// Whether acknowledgements report arrivals.
    pub acknowledged: bool,
    /// The start of the flow.
    pub start: Time,
    /// The stream for random decisions.
    pub random: Stream,
}
