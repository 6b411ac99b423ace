//! A frame on its way through links, as disciplines see it.
//!
//! The frame stays in its buffer; this handle moves through queues. Marks and labels are noted here and written into the
//! frame when it leaves.

use apportion_core::label::Label;
use apportion_core::packet::{Colour, Ecn, FlowId, LabelKind, Protocol};
use apportion_core::units::{Bytes, Time};
use apportion_linux::pool::BufferId;

use crate::frame::IpHeader;

/// A frame with the properties that disciplines may use.
#[derive(Clone, Debug)]
pub struct Packet {
    /// The buffer that holds the frame.
    pub buffer: BufferId,
    /// Offset of the frame in the buffer.
    pub start: u8,
    /// Bytes of the frame.
    pub length: u16,
    /// The next hop: an index into the table of routes.
    pub hop: u32,
    /// Time at which the frame arrived.
    pub arrived: Time,
    /// Time at which the packet joined the queue that it is in, or was in last.
    pub queued: Time,
    flow: FlowId,
    size: u32,
    protocol: Protocol,
    dscp: u8,
    ecn: Ecn,
    colour: Colour,
    marked: bool,
    account: u32,
    counts: bool,
    label: Option<(LabelKind, Label)>,
    ip: Option<IpHeader>,
    acknowledgement: u16,
}

/// The classification of a frame.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    pub flow: FlowId,
    /// The size that it is charged.
    pub size: Bytes,
    /// The transport protocol.
    pub protocol: Protocol,
    /// The ECN field.
    pub ecn: Ecn,
    /// The label, if there is one that is trusted.
    pub label: Option<(LabelKind, Label)>,
    /// The account that counts it: most worlds keep one for each flow.
    pub account: u32,
    /// Whether the packet counts as sent by and delivered to its flow: acknowledgements of a flow's data do
    /// not.
    pub counts: bool,
    /// The IP header, for edits when the frame leaves; none if it has none.
    pub ip: Option<IpHeader>,
    /// Offset of the TCP header of a segment with an acknowledgement in the frame; 0 for other frames.
    pub acknowledgement: u16,
}

impl Packet {
    /// A packet for the frame of `length` bytes that begins at `start` of `buffer`.
    #[must_use]
    pub fn new(
        (buffer, start, length): (BufferId, u8, u16),
        described: &Description,
        hop: u32,
        now: Time,
    ) -> Self {
        let Description { flow, size, protocol, ecn, label, account, counts, ip, acknowledgement } =
            *described;
        Self {
            buffer,
            start,
            length,
            hop,
            arrived: now,
            queued: now,
            flow,
            // No frame is longer than 2^32.
            size: size.get() as u32,
            protocol,
            dscp: 0,
            ecn,
            colour: Colour::default(),
            marked: false,
            account,
            counts,
            label,
            ip,
            acknowledgement,
        }
    }

    /// Sets the codepoint that disciplines see; 0 by default.
    #[must_use]
    pub const fn with_dscp(mut self, dscp: u8) -> Self {
        self.dscp = dscp;
        self
    }

    /// Range of the frame in its buffer.
    #[must_use]
    pub fn range(&self) -> std::ops::Range<usize> {
        let start = usize::from(self.start);
        start..start + usize::from(self.length)
    }

    /// Whether a discipline set CE here.
    #[must_use]
    pub const fn was_marked(&self) -> bool {
        self.marked
    }

    /// Whether the packet counts as sent by and delivered to its flow.
    #[must_use]
    pub const fn counts(&self) -> bool {
        self.counts
    }

    /// The account that counts the packet.
    #[must_use]
    pub const fn account(&self) -> u32 {
        self.account
    }

    /// The IP header; none if the frame has none.
    #[must_use]
    pub const fn ip(&self) -> Option<IpHeader> {
        self.ip
    }

    /// Offset of the TCP header of a segment with an acknowledgement in the frame; 0 for other frames.
    #[must_use]
    pub const fn acknowledgement(&self) -> u16 {
        self.acknowledgement
    }

    /// The label, of any kind.
    #[must_use]
    pub const fn any_label(&self) -> Option<(LabelKind, Label)> {
        self.label
    }
}

impl apportion_core::Packet for Packet {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn protocol(&self) -> Protocol {
        self.protocol
    }
    fn dscp(&self) -> u8 {
        self.dscp
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
        self.marked = true;
    }
    fn colour(&self) -> Colour {
        self.colour
    }
    fn set_colour(&mut self, colour: Colour) {
        self.colour = colour;
    }
    fn label(&self, kind: LabelKind) -> Option<Label> {
        self.label.filter(|(of, _)| *of == kind).map(|(_, label)| label)
    }
    fn set_label(&mut self, kind: LabelKind, label: Label) {
        self.label = Some((kind, label));
    }
    fn clear_label(&mut self, kind: LabelKind) {
        self.label = self.label.filter(|(of, _)| *of != kind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_fits_a_cache_line() {
        assert!(size_of::<Packet>() <= 56, "{}", size_of::<Packet>());
    }
}
