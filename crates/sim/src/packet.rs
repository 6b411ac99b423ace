//! Packets of the simulator: a small handle that moves through queues and wires, and a body that stays where
//! it is.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU64;

use apportion_core::label::Label;
use apportion_core::packet::{Colour, Ecn, FlowId, LabelKind, Protocol};
use apportion_core::units::{Bytes, Time};

use crate::quic;
use crate::tcp::Segment;

/// The packet as disciplines, transmitters and wires handle it: 16 bytes in two words, so that an optional
/// packet fits two registers.
///
/// The handle has room for one label. TCP connections of the simulator send data one way, so a packet is
/// either data or an ACK and never needs two.
#[derive(Clone, Copy)]
pub struct Packet {
    /// Place of the body, 28 bits; flow, 28; colour, 2; kind of label, 3; protocol, 2; 1, so that it is
    /// never 0.
    body_flow: NonZeroU64,
    /// Hop, 28 bits; label, 17; size, 16; ECN, 2; direction, 1.
    rest: u64,
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the source of its flow to the sink.
    Forward,
    /// From the sink to the source, like acknowledgements.
    Reverse,
}

/// The largest packet of IPv4 (RFC 791 section 3.1).
pub const MAX_SIZE: Bytes = Bytes::new(u16::MAX as u64);
/// The bytes of an HTTP request. Chosen: a path, a host and a range.
pub(crate) const REQUEST_PAYLOAD: u16 = 360;
/// The largest place of a body, flow or hop: 28 bits each.
pub const MAX_PLACE: u32 = (1 << 28) - 2;

/// A field of a word: its lowest bit and its number of bits.
#[derive(Clone, Copy)]
struct Field(u32, u32);

impl Field {
    const fn mask(self) -> u64 {
        (1 << self.1) - 1
    }
    const fn get(self, word: u64) -> u64 {
        word >> self.0 & self.mask()
    }
    const fn put(self, word: u64, value: u64) -> u64 {
        word & !(self.mask() << self.0) | (value & self.mask()) << self.0
    }
}

const PROTOCOL: Field = Field(1, 2);
const LABELLED: Field = Field(3, 3);
const COLOUR: Field = Field(6, 2);
const FLOW: Field = Field(8, 28);
const BODY: Field = Field(36, 28);

const DIRECTION: Field = Field(0, 1);
const ECN: Field = Field(1, 2);
const SIZE: Field = Field(3, 16);
const LABEL: Field = Field(19, Label::BITS);
const HOP: Field = Field(36, 28);

impl Packet {
    /// A packet of `size`, at most [`MAX_SIZE`], about to enter the link at `hop` of the table of routes. Its
    /// body is at `body` in the [`Store`]; `flow` is the flow id for disciplines, in both directions. None of
    /// the three may exceed [`MAX_PLACE`].
    #[must_use]
    pub fn new(body: u32, flow: FlowId, hop: u32, size: Bytes, ecn: Ecn, direction: Direction) -> Self {
        debug_assert!(size <= MAX_SIZE && body.max(flow.0).max(hop) <= MAX_PLACE);
        let body_flow = NonZeroU64::MIN | u64::from(body) << BODY.0 | u64::from(flow.0) << FLOW.0;
        let ends = (ecn as u64) << ECN.0 | (direction as u64) << DIRECTION.0;
        Self { body_flow, rest: u64::from(hop) << HOP.0 | size.get() << SIZE.0 | ends }
    }

    /// Sets the protocol in the header to `protocol`; without it, the packet is a datagram.
    #[must_use]
    pub fn carrying(mut self, protocol: Protocol) -> Self {
        self.put(PROTOCOL, carried(protocol));
        self
    }

    /// A packet of the same flow and direction at the same hop, with its body at `body`. `self` has body 0,
    /// no size and no ECN.
    #[must_use]
    #[inline]
    pub fn with(self, body: u32, size: Bytes, ecn: Ecn) -> Self {
        debug_assert!(self.body() == 0 && size <= MAX_SIZE && body <= MAX_PLACE);
        let rest = self.rest | size.get() << SIZE.0 | (ecn as u64) << ECN.0;
        Self { body_flow: self.body_flow | u64::from(body) << BODY.0, rest }
    }

    /// The place of its body in the [`Store`].
    #[must_use]
    pub const fn body(self) -> u32 {
        BODY.get(self.body_flow.get()) as u32
    }

    /// The position in the table of routes: the present link.
    #[must_use]
    pub const fn hop(self) -> u32 {
        HOP.get(self.rest) as u32
    }

    /// Moves the packet to the next link of its route.
    #[must_use]
    pub const fn at_next_hop(self) -> Self {
        Self { rest: self.rest.wrapping_add(1 << HOP.0), ..self }
    }

    /// The direction of the packet.
    #[must_use]
    pub const fn direction(self) -> Direction {
        if DIRECTION.get(self.rest) == Direction::Forward as u64 {
            Direction::Forward
        } else {
            Direction::Reverse
        }
    }

    fn put(&mut self, field: Field, value: u64) {
        self.body_flow = NonZeroU64::MIN | field.put(self.body_flow.get(), value);
    }
}

/// The code of a protocol in [`PROTOCOL`]; 0 is a datagram.
const fn carried(protocol: Protocol) -> u64 {
    match protocol {
        Protocol::Udp => 0,
        Protocol::Tcp => 1,
        Protocol::Control => 2,
    }
}

/// The code of a label in [`LABELLED`]; 0 is none.
const fn labelled(kind: LabelKind) -> u64 {
    kind as u64 + 1
}

impl apportion_core::Packet for Packet {
    fn flow(&self) -> FlowId {
        FlowId(FLOW.get(self.body_flow.get()) as u32)
    }
    fn size(&self) -> Bytes {
        Bytes::new(SIZE.get(self.rest))
    }
    fn protocol(&self) -> Protocol {
        const ALL: [Protocol; 4] = [Protocol::Udp, Protocol::Tcp, Protocol::Control, Protocol::Control];
        ALL[PROTOCOL.get(self.body_flow.get()) as usize]
    }
    fn ecn(&self) -> Ecn {
        const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        ALL[ECN.get(self.rest) as usize]
    }
    fn set_ce(&mut self) {
        self.rest = ECN.put(self.rest, Ecn::Ce as u64);
    }
    fn colour(&self) -> Colour {
        const ALL: [Colour; 4] = [Colour::Unmarked, Colour::Green, Colour::Yellow, Colour::Red];
        ALL[COLOUR.get(self.body_flow.get()) as usize]
    }
    fn set_colour(&mut self, colour: Colour) {
        self.put(COLOUR, colour as u64);
    }
    fn label(&self, kind: LabelKind) -> Option<Label> {
        let here = LABELLED.get(self.body_flow.get()) == labelled(kind);
        here.then(|| Label::from_code(LABEL.get(self.rest) as u32))
    }
    fn set_label(&mut self, kind: LabelKind, label: Label) {
        self.put(LABELLED, labelled(kind));
        self.rest = LABEL.put(self.rest, u64::from(label.code()));
    }
    fn clear_label(&mut self, kind: LabelKind) {
        if LABELLED.get(self.body_flow.get()) == labelled(kind) {
            self.put(LABELLED, 0);
        }
    }
}

impl fmt::Debug for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use apportion_core::Packet as _;
        write!(
            f,
            "{:?} {:?} {} {:?} hop {}",
            self.flow(),
            self.direction(),
            self.size(),
            self.ecn(),
            self.hop()
        )
    }
}

/// The content of a packet: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Body {
    /// The time at which the sender sent it.
    pub sent: Time,
    /// The time at which it entered its latest queue, on watched links.
    pub queued: Time,
    /// The number of the connection.
    pub connection: u32,
    /// The transport header.
    pub header: Header,
}

/// A body fills its cache line.
const _: () = assert!(size_of::<Body>() == 64);

/// The transport header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    Tcp(Segment),
    /// UDP: QUIC. The [`Store`] keeps ranges of an ACK frame for which it has no room.
    Quic(quic::Packet),
    Udp,
    /// A request of a web user, which returns to the source of its flow.
    Request,
    /// UDP: the number of a packet of a call.
    Rtp(u32),
    /// UDP: the number of a report by a call's receiver.
    Rtcp(u32),
    /// TCP or QUIC: a viewer requests the segment of a video with this number.
    SegmentRequest(u32),
    /// A message between routers; the [`Store`] keeps its bytes.
    Message,
    /// A packet of a stack from outside; the [`Store`] keeps its payload.
    Stack,
}

/// The bodies of all packets in flight. Bodies are reused, so the size is the maximum number in flight.
#[derive(Debug, Default)]
pub struct Store {
    bodies: Vec<Body>,
    free: Vec<u32>,
    /// The bytes of messages and of stacks from outside, by place of the body. Those of a packet that is lost
    /// stay until others take the place.
    bytes: BTreeMap<u32, Vec<u8>>,
    /// Ranges of ACK frames, by place of the body; they stay in the same way.
    ranges: BTreeMap<u32, Box<[quic::packet::Range]>>,
}

impl Store {
    /// Stores `body` and returns its place.
    pub fn insert(&mut self, body: Body) -> u32 {
        if let Some(index) = self.free.pop() {
            self.bodies[index as usize] = body;
            return index;
        }
        self.bodies.push(body);
        (self.bodies.len() - 1) as u32
    }
    /// Stores `body` with its bytes, and returns its place.
    pub fn insert_with(&mut self, body: Body, bytes: Vec<u8>) -> u32 {
        let index = self.insert(body);
        self.bytes.insert(index, bytes);
        index
    }
    /// Removes the body at `index`, which must be in use, and returns its bytes.
    pub fn remove_with(&mut self, index: u32) -> Vec<u8> {
        self.remove(index);
        self.bytes.remove(&index).unwrap_or_default()
    }
    /// Stores `body` with ranges of an ACK frame for which it has no room, and returns its place.
    pub fn insert_ack(&mut self, body: Body, ranges: &[quic::packet::Range]) -> u32 {
        let index = self.insert(body);
        self.ranges.insert(index, ranges.into());
        index
    }
    /// Removes the body at `index`, which must be in use, and returns its ranges.
    pub fn remove_ack(&mut self, index: u32) -> Box<[quic::packet::Range]> {
        self.remove(index);
        self.ranges.remove(&index).unwrap_or_default()
    }
    /// The bytes of the message, or of the packet of a stack, at `index`.
    #[must_use]
    pub fn message(&self, index: u32) -> &[u8] {
        self.bytes.get(&index).map_or(&[], |bytes| bytes)
    }
    /// Stores `body` at `spare`, which has been in use until now, or else as [`insert`](Self::insert);
    /// returns its place.
    #[inline(always)]
    pub fn reuse(&mut self, spare: Option<u32>, body: Body) -> u32 {
        let Some(index) = spare else { return self.insert(body) };
        self.bodies[index as usize] = body;
        index
    }
    /// The body at `index`.
    #[must_use]
    pub fn get(&self, index: u32) -> &Body {
        &self.bodies[index as usize]
    }
    /// The body at `index`.
    pub fn get_mut(&mut self, index: u32) -> &mut Body {
        &mut self.bodies[index as usize]
    }
    /// Removes the body at `index`, which must be in use.
    pub fn remove(&mut self, index: u32) {
        self.free.push(index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::Packet as _;

    #[test]
    fn a_packet_is_two_words_and_keeps_its_fields() {
        assert_eq!(size_of::<Option<Packet>>(), 16);
        for (ecn, direction) in [
            (Ecn::NotEct, Direction::Forward),
            (Ecn::Ect0, Direction::Reverse),
            (Ecn::Ect1, Direction::Forward),
        ] {
            let flow = FlowId(MAX_PLACE);
            let mut packet = Packet::new(7, flow, 9, MAX_SIZE, ecn, direction).at_next_hop();
            assert_eq!((packet.body(), packet.flow(), packet.hop()), (7, flow, 10));
            assert_eq!((packet.size(), packet.ecn(), packet.direction()), (MAX_SIZE, ecn, direction));
            assert_eq!((packet.colour(), packet.label(LabelKind::Tickets)), (Colour::Unmarked, None));
            packet.set_ce();
            packet.set_colour(Colour::Red);
            packet.set_label(LabelKind::AckTickets, Label::from_code(u32::MAX));
            assert_eq!(packet.protocol(), Protocol::Udp);
            for protocol in [Protocol::Tcp, Protocol::Control, Protocol::Udp] {
                packet = packet.carrying(protocol);
                assert_eq!((packet.protocol(), packet.colour()), (protocol, Colour::Red));
            }
            assert_eq!((packet.size(), packet.ecn(), packet.hop()), (MAX_SIZE, Ecn::Ce, 10));
            assert_eq!((packet.body(), packet.flow(), packet.direction()), (7, flow, direction));
            assert_eq!((packet.colour(), packet.label(LabelKind::Tickets)), (Colour::Red, None));
            assert_eq!(packet.label(LabelKind::AckTickets).map(Label::code), Some((1 << 17) - 1));
            packet.set_label(LabelKind::Tickets, Label::ZERO);
            assert_eq!(
                (packet.label(LabelKind::Tickets), packet.label(LabelKind::AckTickets)),
                (Some(Label::ZERO), None)
            );
        }
    }
}
