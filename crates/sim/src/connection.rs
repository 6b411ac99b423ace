//! Connections during a run. [`apportion_runtime::connections`] lists them.
//!
//! Transports, sources and starts belong to connections; weights, guarantees, round-trip times, marks, packet
//! counts and listed losses belong to ids. The state of TCP and QUIC exists from the start of a connection to
//! its end; then another connection takes its place.

use std::ops::AddAssign;
use std::sync::Arc;

use apportion_core::packet::{Ecn, FlowId};
pub use apportion_core::stack::Command;
use apportion_core::stack::{Endpoint, StackParams};
use apportion_core::units::{Bytes, Time};
use apportion_runtime::connections::Workload;
use apportion_scenario::model::{Flow, Transport};
use apportion_scenario::quic::QuicParams;
use apportion_scenario::tcp::TcpParams;

use crate::packet::Direction;
use crate::quic;
use crate::tcp::{Receiver, Sender};

/// The totals of the transport of one connection since its start; zeros for UDP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// New payload in order at the receiver, in bytes.
    pub goodput: u64,
    /// Retransmitted segments; in QUIC, packets with data sent before; in stacks from outside, lost packets.
    pub retransmits: u64,
    /// Retransmission timeouts; in QUIC, probe timeouts.
    pub timeouts: u64,
    /// Fast retransmits; in QUIC, recovery periods that a loss began; in stacks from outside, signals of congestion.
    pub fast_retransmits: u64,
}

impl AddAssign for Totals {
    fn add_assign(&mut self, more: Self) {
        self.goodput += more.goodput;
        self.retransmits += more.retransmits;
        self.timeouts += more.timeouts;
        self.fast_retransmits += more.fast_retransmits;
    }
}

#[derive(Debug)]
#[repr(align(64))]
pub struct Connection {
    /// The index of the flow in the scenario.
    pub flow: u32,
    /// The flow id for disciplines, which other connections may share.
    pub id: FlowId,
    /// The place in the table of routes at which data begin.
    pub route: u32,
    /// The place in the table of routes at which acknowledgements begin.
    pub back: u32,
    pub start: Time,
    /// The workload.
    pub workload: Workload,
    /// The transport, before, during and after its life.
    pub transport: TransportState,
    /// The earliest pending timer event; `Time::MAX` if there is none.
    pub armed: Time,
}

/// With many flows, memory accesses dominate: a connection takes one cache line.
const _: () = assert!(size_of::<Connection>() == 64);

/// The transport of a connection.
#[derive(Debug)]
pub enum TransportState {
    /// TCP before its start.
    Closed(Arc<TcpParams>),
    /// TCP, by its place in [`Tcps`].
    Open(u32),
    /// QUIC before its start.
    ClosedQuic(Arc<QuicParams>),
    /// QUIC, by its place in [`Quics`].
    OpenQuic(u32),
    /// A stack from outside before its start.
    ClosedStack(Arc<StackParams>),
    /// A stack from outside, by its place in [`Stacks`].
    OpenStack(u32),
    /// A transport after its end, with its totals.
    Ended(Box<Totals>),
    /// Datagrams.
    Udp {
        /// Wire size of the largest datagram.
        packet: Bytes,
        /// The ECN field of datagrams.
        ecn: Ecn,
    },
}

/// Both ends of a TCP connection. Not aligned to a cache line: a table of aligned elements is copied when it
/// grows, with both copies in memory.
#[derive(Debug)]
pub struct Tcp {
    /// The end that has data.
    pub sender: Sender,
    /// The end that acknowledges.
    pub receiver: Receiver,
}

/// Both ends of a QUIC connection.
#[derive(Debug)]
pub struct Quic {
    /// The end that has data.
    pub sender: quic::Sender,
    /// The end that acknowledges.
    pub receiver: quic::Receiver,
}

/// Both ends of a connection of a stack from outside.
#[derive(Debug)]
pub struct Ends {
    /// The end that has data.
    pub source: Box<dyn Endpoint>,
    /// The end that they go to.
    pub sink: Box<dyn Endpoint>,
    /// Bytes of the application in a full packet, the unit of windows.
    pub payload: Bytes,
    /// Whether its failure has been recorded.
    pub has_failed: bool,
}

/// The TCP state of connections.
pub type Tcps = States<Tcp>;
/// The QUIC state of connections.
pub type Quics = States<Box<Quic>>;
/// The state of connections of stacks from outside.
pub type Stacks = States<Ends>;

/// The state of connections, in one table. TCP states are in the table itself, without the overhead of an
/// allocator, and their memory is returned to the system as a whole. QUIC states are behind a pointer.
#[derive(Debug)]
pub struct States<T> {
    states: Vec<T>,
    /// Places whose connections have ended. Their content stays until another connection takes the place, so
    /// that the table has the size of the maximum number of connections open at one time.
    free: Vec<u32>,
}

impl<T> Default for States<T> {
    fn default() -> Self {
        Self { states: Vec::new(), free: Vec::new() }
    }
}

impl<T> States<T> {
    /// Stores the state of a connection; returns its place.
    pub fn insert(&mut self, state: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.states[place as usize] = state;
            return place;
        }
        self.states.push(state);
        self.states.len() as u32 - 1
    }

    /// The state at a place, which must not be [free](Self::remove); `None` if there never was one.
    #[must_use]
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.states.get(place as usize)
    }

    /// Returns a value as [`get`](Self::get) does, for changes.
    #[inline]
    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.states.get_mut(place as usize)
    }

    /// Frees a place, once for each [`insert`](Self::insert).
    pub fn remove(&mut self, place: u32) {
        self.free.push(place);
    }
}

impl Connection {
    /// The place in the table of routes at which packets of one direction begin.
    #[must_use]
    pub const fn first_hop(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Forward => self.route,
            Direction::Reverse => self.back,
        }
    }
}

impl TransportState {
    /// A connection of a flow of the scenario, before its start.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        match &flow.transport {
            Transport::Tcp(params) => Self::Closed(Arc::clone(params)),
            Transport::Quic(params) => Self::ClosedQuic(Arc::clone(params)),
            Transport::Stack(params) => Self::ClosedStack(Arc::clone(params)),
            &Transport::Udp { packet, .. } => Self::Udp { packet, ecn: flow.ecn },
        }
    }
}
