//! Connections during a run. [`apportion_runtime::connections`] makes the list of them.
//!
//! Transports, sources and starts belong to connections; weights, guarantees, round-trip times, marks, counts of
//! packets and listed losses go by id. The state of TCP and QUIC exists from the start of a connection on; when it
//! has ended, another one takes its place.

use std::ops::AddAssign;
use std::sync::Arc;

use apportion_core::packet::{Ecn, FlowId};
use apportion_core::units::{Bytes, Time};
use apportion_runtime::connections::Workload;
use apportion_scenario::model::{Flow, Transport};
use apportion_scenario::quic::QuicParams;
use apportion_scenario::tcp::TcpParams;

use crate::packet::Direction;
use crate::quic;
use crate::tcp::{Receiver, Sender};

/// What TCP or QUIC did on one connection since its start; zeros for UDP.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// New payload in order at the receiver, in bytes.
    pub goodput: u64,
    /// Segments sent again; packets of QUIC with data that were sent before.
    pub retransmits: u64,
    /// Retransmission timeouts; probe timeouts of QUIC.
    pub timeouts: u64,
    /// Fast retransmits; recovery periods of QUIC that a loss began.
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
    /// The index of its flow in the scenario.
    pub flow: u32,
    /// Its flow id for disciplines, which other connections may share.
    pub id: FlowId,
    /// Where its data enter the table of routes.
    pub route: u32,
    /// Where its acknowledgements enter the table of routes.
    pub back: u32,
    pub start: Time,
    /// What it sends.
    pub workload: Workload,
    /// Its transport, before, during and after its life.
    pub transport: TransportState,
    /// The earliest pending timer event; `Time::MAX` if none.
    pub armed: Time,
}

/// With many flows, access to memory dominates: a connection takes one cache line.
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
    /// TCP or QUIC after its end, with what it did.
    Ended(Box<Totals>),
    /// Datagrams.
    Udp {
        /// Wire size of the largest.
        packet: Bytes,
        /// Their ECN field.
        ecn: Ecn,
    },
}

/// What the application of a connection asks of its sender.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Open the connection.
    Start,
    /// There are so many bytes more.
    Supply(u64),
    /// There are always more.
    SupplyUnlimited,
    /// There are no more.
    Close,
}

/// Both ends of a TCP connection.
// Not at the beginning of a cache line: a table of what asks for that is copied when it grows, and both copies are in memory then.
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

/// The TCP state of connections.
pub type Tcps = States<Tcp>;
/// The QUIC state of connections.
pub type Quics = States<Box<Quic>>;

/// The state of connections, in one table. That of TCP is in the table itself: without what an allocator adds to each, and given back
/// to the system as a whole. That of QUIC is behind a pointer.
#[derive(Debug)]
pub struct States<T> {
    states: Vec<T>,
    /// Places whose connections have ended. What is there stays until another connection takes the place, so that the table has what was
    /// open at one time.
    free: Vec<u32>,
}

impl<T> Default for States<T> {
    fn default() -> Self {
        Self { states: Vec::new(), free: Vec::new() }
    }
}

impl<T> States<T> {
    /// Keeps the state of a connection; returns its place.
    pub fn insert(&mut self, state: T) -> u32 {
        if let Some(place) = self.free.pop() {
            self.states[place as usize] = state;
            return place;
        }
        self.states.push(state);
        self.states.len() as u32 - 1
    }

    /// That in a place, which must not be [free](Self::remove); `None` if there never was one.
    #[must_use]
    #[inline]
    pub fn get(&self, place: u32) -> Option<&T> {
        self.states.get(place as usize)
    }

    /// As [`get`](Self::get).
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
    /// Where packets of one direction enter the table of routes.
    #[must_use]
    pub const fn first_hop(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Forward => self.route,
            Direction::Reverse => self.back,
        }
    }
}

impl TransportState {
    /// Of a flow of the scenario, before its start.
    #[must_use]
    pub fn new(flow: &Flow) -> Self {
        match &flow.transport {
            Transport::Tcp(params) => Self::Closed(Arc::clone(params)),
            Transport::Quic(params) => Self::ClosedQuic(Arc::clone(params)),
            &Transport::Udp { packet, .. } => Self::Udp { packet, ecn: flow.ecn },
        }
    }
}
