//! The properties of a packet that disciplines may read and write. Core sees nothing else.

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
    /// The maximum number of flows that a discipline keeps apart. Chosen: 200 MB of state at 200 bytes a
    /// flow.
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

/// The maximum number of customers of a link, besides [`CustomerId::OTHERS`]. Chosen: 26 MB of state.
pub const MAX_CUSTOMERS: usize = 65_535;

/// The customer that a flow belongs to: a small dense number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CustomerId(pub u32);

impl CustomerId {
    /// The customer of all flows without an assignment.
    pub const OTHERS: Self = Self(0);
}

/// The customer of each flow, and the weight of each customer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Customers<'a> {
    /// The customer by flow number. Flows beyond the end belong to [`CustomerId::OTHERS`].
    pub of_flows: &'a [CustomerId],
    /// The weight by customer number, [`CustomerId::OTHERS`] first; at most [`MAX_CUSTOMERS`] + 1 are used.
    /// Flows of customers beyond the end belong to [`CustomerId::OTHERS`].
    pub weights: &'a [Weight],
    /// The name by customer number, by which classes refer to customers; customers beyond the end have none.
    pub names: &'a [String],
}

/// The hosts at the ends of a flow: small dense numbers. Sources and destinations are numbered separately:
/// source 3 and destination 3 may be different hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostPair {
    /// The host that sends the packets.
    pub source: u32,
    /// The host that receives the packets.
    pub destination: u32,
}

choice! {
    /// How a flow uses bandwidth (Li, Walpole, McNamee, Pu, Steere 2001, section 2).
    #[derive(Default)]
    pub enum FlowClass {
        /// A rate set by the real world, and no use for more: video, sensors.
        RealRate = "real_rate",
        /// Uses all the throughput that it gets. The default.
        #[default]
        Greedy = "greedy",
    }
}

/// The target size of a real-rate flow's queue (Li, Walpole, McNamee, Pu, Steere 2001, sections 3.1 and 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FillTarget {
    /// A number of bytes.
    Size(Bytes),
    /// The bytes that the flow sends in this time at its own rate.
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

    /// Whether queues treat the packet as L4S: ECT(1), or CE (RFC 9331 section 5.1).
    #[must_use]
    pub const fn is_l4s(self) -> bool {
        matches!(self, Self::Ect1 | Self::Ce)
    }
}

/// The protocol field of the IP header (RFC 791 section 3.1), reduced to what disciplines distinguish. The
/// sender writes the field and may falsify it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, which lowers its rate when packets are lost.
    Tcp,
    /// UDP, and any other protocol that carries data without congestion control.
    #[default]
    Udp,
    /// Messages between routers.
    Control,
}

/// The drop precedence that a marker gave a packet (RFC 2697 section 1; RFC 2597 section 2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Colour {
    /// Not seen by a marker. Treated as out of profile.
    #[default]
    Unmarked,
    /// In profile.
    Green,
    /// Above the committed rate, within the peak rate.
    Yellow,
    /// Out of profile.
    Red,
}

/// The meaning of a label. Routers never read one kind as another. A packet may have room for one label only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelKind {
    /// Tickets of the packet itself.
    Tickets,
    /// Tickets on an acknowledgement, about the data that it acknowledges: the receiver-based scheme.
    AckTickets,
    /// The rate of the packet's flow in bits per second, for a weight of 1.
    Rate,
    /// The value of the packet: a router drops those of least value.
    Value,
}

impl LabelKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Tickets, Self::AckTickets, Self::Rate, Self::Value];
}

/// The properties of a packet that a discipline may read and write.
///
/// A backend whose packets have no ECN field, no colour and no room for labels implements only
/// [`flow`](Packet::flow) and [`size`](Packet::size). An implementation that stores one of the others
/// overrides its reader and its writers together: a discipline must be able to read back what it writes.
pub trait Packet: Send + 'static {
    /// The flow of the packet. Never changes.
    fn flow(&self) -> FlowId;
    /// The size on the wire in bytes, headers included. Does not change while the packet is in a queue.
    fn size(&self) -> Bytes;
    /// The protocol in the IP header. Default: [`Protocol::Udp`].
    fn protocol(&self) -> Protocol {
        Protocol::default()
    }
    /// The differentiated services codepoint of the IP header (RFC 2474 section 3), in the lower six bits.
    /// Default: 0, the default codepoint.
    fn dscp(&self) -> u8 {
        0
    }
    /// The ECN field. Default: [`Ecn::NotEct`], so that congestion is signalled by drops.
    fn ecn(&self) -> Ecn {
        Ecn::default()
    }
    /// Sets the ECN field to CE. Called only if [`Ecn::is_capable`]. Default: no effect.
    fn set_ce(&mut self) {}
    /// The drop precedence. Default: [`Colour::Unmarked`].
    fn colour(&self) -> Colour {
        Colour::default()
    }
    /// Sets the drop precedence. Default: no effect.
    fn set_colour(&mut self, _colour: Colour) {}
    /// The label of this kind; none if it has not been written. Default: none.
    fn label(&self, _kind: LabelKind) -> Option<Label> {
        None
    }
    /// Writes the label of this kind. A packet with room for one label loses any label of another kind.
    /// Default: no effect.
    fn set_label(&mut self, _kind: LabelKind, _label: Label) {}
    /// Removes the label of this kind, if there is one.
    fn clear_label(&mut self, _kind: LabelKind) {}
}

/// A packet that consists of its fields only: for tests, for examples, and for external disciplines, which
/// handle this type whatever the packets of the backend are.
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
    /// The identifier that the creator of the packet chose. A discipline does not change it.
    pub id: u32,
    /// The flow of the packet.
    pub flow: FlowId,
    /// The size on the wire in bytes, headers included.
    pub size: Bytes,
    /// The protocol in the IP header; UDP by default.
    pub protocol: Protocol,
    /// The differentiated services codepoint; 0 by default.
    pub dscp: u8,
    /// The ECN field; not ECN-capable by default.
    pub ecn: Ecn,
    /// The drop precedence; unmarked by default.
    pub colour: Colour,
    /// The labels, by [`LabelKind`]; none by default.
    pub labels: [Option<Label>; LabelKind::ALL.len()],
}

impl SimplePacket {
    /// A datagram without ECN, colour or label.
    #[must_use]
    pub const fn new(id: u32, flow: FlowId, size: Bytes) -> Self {
        let (protocol, ecn, colour) = (Protocol::Udp, Ecn::NotEct, Colour::Unmarked);
        Self { id, flow, size, protocol, dscp: 0, ecn, colour, labels: [None; LabelKind::ALL.len()] }
    }

    /// A copy of all properties of `packet` that disciplines may read, with the identifier `id`.
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

    /// Copies what a discipline changed here (mark, colour, labels) to the original `packet`.
    pub fn write_onto<P: Packet>(&self, packet: &mut P) {
        if self.ecn == Ecn::Ce && packet.ecn() != Ecn::Ce && packet.ecn().is_capable() {
            packet.set_ce();
        }
        if self.colour != packet.colour() {
            packet.set_colour(self.colour);
        }
        // Changed labels are found before the first is written: a packet with room for one label loses the
        // others.
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
