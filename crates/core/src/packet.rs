//! What a discipline may know of a packet. Nothing else of it is visible to core.

use alloc::string::String;

use crate::choice;
use crate::label::Label;
use crate::units::{Bytes, Span, Weight};

/// The flow a packet belongs to: a small dense number that the backend assigns and reuses.
///
/// The simulator numbers its flows; a live classifier keeps a bounded table from addresses to numbers.
/// Disciplines can therefore index per-flow state and need no hashing per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

impl FlowId {
    /// Most flows that a discipline keeps apart. Chosen: 200 MB of state at 200 bytes a flow.
    pub const SLOTS: usize = 1 << 20;

    /// The position of this flow in the tables of the backend that numbers it.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// The position of this flow in the tables of a discipline, which grow with the first packet of a flow
    /// and have at most [`SLOTS`](Self::SLOTS) places: flows whose numbers differ by a multiple of it share
    /// their state. The slot of a flow is also the number of a flow with that slot.
    #[must_use]
    pub const fn slot(self) -> usize {
        self.0 as usize % Self::SLOTS
    }
}

/// Most customers of a link, in addition to the one of all other flows. Chosen: 26 MB of state.
pub const MAX_CUSTOMERS: usize = 65_535;

/// The customer that a flow belongs to: a small dense number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomerId(pub u32);

impl CustomerId {
    /// The customer of all flows that are given no other.
    pub const OTHERS: Self = Self(0);
}

/// The customer of each flow, and the weight of each customer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Customers<'a> {
    /// By flow number. Flows beyond belong to [`CustomerId::OTHERS`].
    pub of_flows: &'a [CustomerId],
    /// By number of the customer, that of the other flows first; at most one more than [`MAX_CUSTOMERS`]
    /// are used. Flows of customers beyond belong to [`CustomerId::OTHERS`].
    pub weights: &'a [Weight],
    /// Names by number, that of the other flows first, as classes are named; of customers beyond, nothing.
    pub names: &'a [String],
}

/// The hosts at the ends of a flow: small dense numbers. Those of sources and those of destinations are apart,
/// so one number may name a source and another host as a destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPair {
    /// Where its packets come from.
    pub source: u32,
    /// Where they go.
    pub destination: u32,
}

choice! {
    /// What a flow does with bandwidth (Li, Walpole, McNamee, Pu, Steere 2001, section 2).
    #[derive(Default)]
    pub enum FlowClass {
        /// Its rate is set by the real world, and it has no use for more: video, sensors.
        RealRate = "real_rate",
        /// It takes whatever it gets. So does a flow of which nothing is said.
        #[default]
        Greedy = "greedy",
    }
}

/// What the queue of a real-rate flow should hold (Li, Walpole, McNamee, Pu, Steere 2001, sections 3.1 and 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTarget {
    /// So much.
    Size(Bytes),
    /// What the flow sends in this time at its own rate.
    Delay(Span),
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: congestion is signalled by dropping.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint ECT(0).
    Ect0,
    /// ECN-capable transport, codepoint ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether congestion can be signalled by marking.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }

    /// Whether a queue treats it as of L4S: ECT(1), or marked already (RFC 9331 section 5.1).
    #[must_use]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

/// The protocol field of the IP header (RFC 791 section 3.1), as far as disciplines care. The sender writes it and may
/// write a false one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, which lowers its rate when packets are lost.
    Tcp,
    /// UDP and whatever else carries data without congestion control.
    #[default]
    Udp,
    /// Messages between routers.
    Control,
}

/// The drop precedence that a marker gave a packet (RFC 2697 section 1; RFC 2597 section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// No marker has seen it. Treated as out of profile.
    #[default]
    Unmarked,
    /// In profile.
    Green,
    /// Above the committed rate, within the peak rate.
    Yellow,
    /// Out of profile.
    Red,
}

/// The meaning of a label; no router reads one kind as another. A packet may have room for one label only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelKind {
    /// Tickets of the packet itself.
    Tickets,
    /// Tickets on an acknowledgement, about the data that it acknowledges: the receiver-based scheme.
    AckTickets,
    /// The rate of its flow in bits per second, for a weight of 1.
    Rate,
}

impl LabelKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Tickets, Self::AckTickets, Self::Rate];
}

/// What a discipline may read and write of a packet.
///
/// A backend whose packets have no ECN field, no colour or no room for labels implements [`flow`](Packet::flow) and
/// [`size`](Packet::size) alone. An implementation that stores one of the others overrides its reader and its
/// writers together: what a discipline writes, it must be able to read back.
pub trait Packet: Send + 'static {
    /// The flow it belongs to. The same as long as the packet exists.
    fn flow(&self) -> FlowId;
    /// Its size on the wire, headers included, in bytes. The same as long as the packet is in a queue.
    fn size(&self) -> Bytes;
    /// The protocol that its header names; [`Protocol::Udp`] unless overridden.
    fn protocol(&self) -> Protocol {
        Protocol::default()
    }
    /// The differentiated services codepoint of its header (RFC 2474 section 3), in the lower six bits; 0, the default codepoint, unless
    /// overridden.
    fn dscp(&self) -> u8 {
        0
    }
    /// Its ECN field; [`Ecn::NotEct`] unless overridden, and then congestion is signalled by dropping.
    fn ecn(&self) -> Ecn {
        Ecn::default()
    }
    /// Sets the ECN field to "congestion experienced". Called only when [`Ecn::is_capable`].
    fn set_ce(&mut self) {}
    /// Its drop precedence; [`Colour::Unmarked`] unless overridden.
    fn colour(&self) -> Colour {
        Colour::default()
    }
    /// Sets its drop precedence. Ignored unless overridden.
    fn set_colour(&mut self, _colour: Colour) {}
    /// Its label of this kind; none if it was never written, and none unless overridden.
    fn label(&self, _kind: LabelKind) -> Option<Label> {
        None
    }
    /// Writes its label of this kind. A packet that has room for one label only forgets another. Ignored unless
    /// overridden.
    fn set_label(&mut self, _kind: LabelKind, _label: Label) {}
    /// Takes its label of this kind off, if it has one.
    fn clear_label(&mut self, _kind: LabelKind) {}
}

/// A packet that is no more than its fields: for tests, for examples, and for external
/// disciplines, which handle these whatever the packets of the backend are.
///
/// ```
/// use apportion_core::packet::{Ecn, FlowId, Packet, SimplePacket};
/// use apportion_core::units::Bytes;
///
/// let mut packet = SimplePacket { ecn: Ecn::Ect0, ..SimplePacket::new(7, FlowId(1), Bytes::new(1_500)) };
/// packet.set_ce();
/// assert_eq!((packet.id, packet.flow(), packet.ecn()), (7, FlowId(1), Ecn::Ce));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimplePacket {
    /// Identifies the packet, by a number of its creator. A discipline does not change it.
    pub id: u32,
    /// The flow it belongs to.
    pub flow: FlowId,
    /// Its size on the wire, headers included, in bytes.
    pub size: Bytes,
    /// The protocol that its header names; UDP by default.
    pub protocol: Protocol,
    /// Its differentiated services codepoint; 0 by default.
    pub dscp: u8,
    /// Its ECN field; not ECN-capable by default.
    pub ecn: Ecn,
    /// Its drop precedence; unmarked by default.
    pub colour: Colour,
    /// Its labels, by [`LabelKind`]; none by default.
    pub labels: [Option<Label>; LabelKind::ALL.len()],
}

impl SimplePacket {
    /// A datagram without ECN, colour or label.
    #[must_use]
    pub const fn new(id: u32, flow: FlowId, size: Bytes) -> Self {
        let (protocol, ecn, colour) = (Protocol::Udp, Ecn::NotEct, Colour::Unmarked);
        Self { id, flow, size, protocol, dscp: 0, ecn, colour, labels: [None; LabelKind::ALL.len()] }
    }

    /// All that a discipline may know of `packet`, under the number `id`.
    #[must_use]
    pub fn standing_for<P: Packet>(packet: &P, id: u32) -> Self {
        Self {
            id,
            flow: packet.flow(),
            size: packet.size(),
            protocol: packet.protocol(),
            dscp: packet.dscp(),
            ecn: packet.ecn(),
            colour: packet.colour(),
            labels: LabelKind::ALL.map(|kind| packet.label(kind)),
        }
    }

    /// Writes what a discipline changed here, a mark, the colour and labels, onto the `packet` that this stands for.
    pub fn write_onto<P: Packet>(&self, packet: &mut P) {
        if self.ecn == Ecn::Ce && packet.ecn() != Ecn::Ce && packet.ecn().is_capable() {
            packet.set_ce();
        }
        if self.colour != packet.colour() {
            packet.set_colour(self.colour);
        }
        // Those that changed, found before the first is written: a packet with room for one forgets the others.
        let changed = LabelKind::ALL.map(|kind| packet.label(kind) != self.label(kind));
        for (kind, _) in LabelKind::ALL.into_iter().zip(changed).filter(|(_, changed)| *changed) {
            match self.label(kind) {
                Some(label) => packet.set_label(kind, label),
                None => packet.clear_label(kind),
            }
        }
    }
}

impl Packet for SimplePacket {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        self.size
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
    }
    fn colour(&self) -> Colour {
        self.colour
    }
    fn set_colour(&mut self, colour: Colour) {
        self.colour = colour;
    }
    fn label(&self, kind: LabelKind) -> Option<Label> {
        self.labels[kind as usize]
    }
    fn set_label(&mut self, kind: LabelKind, label: Label) {
        self.labels[kind as usize] = Some(label);
    }
    fn clear_label(&mut self, kind: LabelKind) {
        self.labels[kind as usize] = None;
    }
}
