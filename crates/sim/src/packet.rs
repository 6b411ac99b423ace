//! Packets of the simulator: a small handle that moves through queues and wires, and a body that stays where it is.

use apportion_core::packet::{Ecn, FlowId};
use apportion_core::units::{Bytes, Time};

use crate::tcp::Segment;

/// What disciplines, transmitters and wires handle: 16 bytes.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Its body in the [`Store`].
    pub body: u32,
    /// The connection it belongs to, in both directions.
    pub flow: FlowId,
    /// Its position in the table of routes: the link it is on.
    pub hop: u32,
    size: u16,
    ecn: Ecn,
    /// Which way it goes.
    pub direction: Direction,
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
    /// A packet of `size`, at most [`MAX_SIZE`], about to enter the link at `hop`.
    #[must_use]
    pub fn new(body: u32, flow: FlowId, hop: u32, size: Bytes, ecn: Ecn, direction: Direction) -> Self {
        debug_assert!(size <= MAX_SIZE);
        Self { body, flow, hop, size: size.get() as u16, ecn, direction }
    }
}

impl apportion_core::Packet for Packet {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
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

/// The bodies of all packets under way. Bodies are reused, so its size is that of the largest number under way.
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
