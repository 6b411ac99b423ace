//! Connections during a run. [`apportion_runtime::connections`] makes the list of them.
//!
//! TCP, sources and starts belong to connections; weights, guarantees, round-trip times, marks, counts of
//! packets and listed losses go by id. TCP state exists from the start of a connection to its end only.

use std::sync::Arc;

use apportion_core::packet::FlowId;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::connections::Load;
use apportion_scenario::model::Transport;
use apportion_scenario::tcp::TcpParams;

use crate::measure::Totals;
use crate::packet::Direction;
use crate::tcp::{Receiver, Sender};

/// One connection.
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
    /// When it starts.
    pub start: Time,
    /// What it sends.
    pub load: Load,
    /// What carries it.
    pub carrier: Carrier,
    /// The earliest pending timer event; `Time::MAX` if none.
    pub armed: Time,
}

/// With many flows, access to memory dominates: a connection takes one cache line.
const _: () = assert!(size_of::<Connection>() == 64);

/// What carries a connection.
#[derive(Debug)]
pub enum Carrier {
    /// TCP before its start.
    Closed(Arc<TcpParams>),
    /// TCP.
    Open(Box<Tcp>),
    /// TCP after its end, with what it did.
    Ended(Box<Totals>),
    /// Datagrams.
    Udp {
        /// Wire size of the largest.
        packet: Bytes,
    },
}

/// Both ends of a TCP connection. Not aligned to cache lines: an allocator would leave a line unused between two of them.
#[derive(Debug)]
pub struct Tcp {
    /// The end that has data.
    pub sender: Sender,
    /// The end that acknowledges.
    pub receiver: Receiver,
}

impl Connection {
    /// Where packets of one direction enter the table of routes.
    #[must_use]
    pub const fn first_hop(&self, direction: Direction) -> u32 {
        match direction {
            Direction::Forth => self.route,
            Direction::Back => self.back,
        }
    }
}

impl Carrier {
    /// For a flow of the scenario, before its start.
    #[must_use]
    pub fn new(transport: &Transport) -> Self {
        match transport {
            Transport::Tcp(params) => Self::Closed(Arc::clone(params)),
            &Transport::Udp { packet, .. } => Self::Udp { packet },
        }
    }
}
