//! Packets of the simulator: a small handle that moves through queues and wires, and a body that stays where
//! it is.

use std::fmt;
use std::num::NonZeroU64;

use apportion_core::packet::{Ecn, FlowId};
use apportion_core::units::{Bytes, Time};

use crate::tcp::Segment;

/// What disciplines, transmitters and wires handle: 16 bytes in two words, so that a packet, and whether
/// there is one, moves in two registers.
#[derive(Clone, Copy)]
pub struct Packet {
    /// Place of the body plus one, 32 bits; flow, 32 bits.
    body_flow: NonZeroU64,
    /// Hop, 32 bits; size, 16; ECN, 8; direction, 8.
    rest: u64,
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the source of its flow to the sink.
    Forth,
    /// Back, as acknowledgements go.
    Back,
}

/// The largest packet, as IPv4 allows (RFC 791 section 3.1).
pub const MAX_SIZE: Bytes = Bytes::new(u16::MAX as u64);

impl Packet {
    /// A packet of `size`, at most [`MAX_SIZE`], about to enter the link at `hop` of the table of routes. Its
    /// body is at
    /// `body` in the [`Store`]; `flow` is its connection, in both directions.
    #[must_use]
    pub fn new(body: u32, flow: FlowId, hop: u32, size: Bytes, ecn: Ecn, direction: Direction) -> Self {
        debug_assert!(size <= MAX_SIZE);
        let body_flow = (u64::from(body) << 32 | u64::from(flow.0)).saturating_add(1 << 32);
        let rest = u64::from(hop) << 32 | (size.get() & 0xffff) << 16 | (ecn as u64) << 8 | direction as u64;
        Self { body_flow: NonZeroU64::new(body_flow).unwrap_or(NonZeroU64::MAX), rest }
    }

    /// The place of its body in the [`Store`].
    #[must_use]
    pub const fn body(self) -> u32 {
        (self.body_flow.get() >> 32) as u32 - 1
    }

    /// Its position in the table of routes: the link it is on.
    #[must_use]
    pub const fn hop(self) -> u32 {
        (self.rest >> 32) as u32
    }

    /// The same packet about to enter the next link of its route.
    #[must_use]
    pub const fn at_next_hop(self) -> Self {
        Self { rest: self.rest.wrapping_add(1 << 32), ..self }
    }

    /// Which way it goes.
    #[must_use]
    pub const fn direction(self) -> Direction {
        if self.rest & 0xff == Direction::Forth as u64 { Direction::Forth } else { Direction::Back }
    }
}

impl apportion_core::Packet for Packet {
    fn flow(&self) -> FlowId {
        FlowId(self.body_flow.get() as u32)
    }
    fn size(&self) -> Bytes {
        Bytes::new(self.rest >> 16 & 0xffff)
    }
    fn ecn(&self) -> Ecn {
        const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        ALL[(self.rest >> 8 & 3) as usize]
    }
    fn set_ce(&mut self) {
        self.rest = self.rest & !0xff00 | (Ecn::Ce as u64) << 8;
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

/// What a packet carries: one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub struct Body {
    /// When its sender sent it.
    pub sent: Time,
    /// When it entered the queue it was in last, on links that are watched.
    pub queued: Time,
    /// Its transport header.
    pub header: Header,
}

/// The transport header of a packet.
#[derive(Clone, Copy, Debug)]
pub enum Header {
    /// TCP.
    Tcp(Segment),
    /// UDP.
    Udp,
}

/// The bodies of all packets under way. Bodies are reused, so its size is that of the largest number under
/// way.
#[derive(Debug, Default)]
pub struct Store {
    bodies: Vec<Body>,
    free: Vec<u32>,
}

impl Store {
    /// Keeps `body` and returns where.
    pub fn insert(&mut self, body: Body) -> u32 {
        if let Some(index) = self.free.pop() {
            self.bodies[index as usize] = body;
            return index;
        }
        self.bodies.push(body);
        (self.bodies.len() - 1) as u32
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
    /// Forgets the body at `index`, which must be in use.
    pub fn remove(&mut self, index: u32) {
        self.free.push(index);
    }
    /// Packets under way.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.bodies.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::Packet as _;

    #[test]
    fn a_packet_is_two_words_and_keeps_its_fields() {
        assert_eq!(size_of::<Option<Packet>>(), 16);
        for (ecn, direction) in
            [(Ecn::NotEct, Direction::Forth), (Ecn::Ect0, Direction::Back), (Ecn::Ect1, Direction::Forth)]
        {
            let mut packet = Packet::new(7, FlowId(u32::MAX), 9, MAX_SIZE, ecn, direction).at_next_hop();
            assert_eq!((packet.body(), packet.flow(), packet.hop()), (7, FlowId(u32::MAX), 10));
            assert_eq!((packet.size(), packet.ecn(), packet.direction()), (MAX_SIZE, ecn, direction));
            packet.set_ce();
            assert_eq!((packet.size(), packet.ecn(), packet.hop()), (MAX_SIZE, Ecn::Ce, 10));
        }
    }
}
