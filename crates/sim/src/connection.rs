//! Connections: what the simulator makes of the flows of a scenario.
//!
//! A flow is one connection, except a source of short flows, which is one connection per arrival. Connections
//! are numbered in the scenario's order; the number is the flow id that disciplines see. TCP state exists
//! from the start of a connection to its end only.

use std::sync::Arc;

use apportion_core::units::{Bytes, Time};
use apportion_scenario::model::{Source, Transport};
use apportion_scenario::tcp::TcpParams;

use crate::packet::Direction;
use crate::source::{Generator, Write};
use crate::tcp::{Receiver, Sender};

/// One connection.
#[derive(Debug)]
#[repr(align(32))]
pub struct Connection {
    /// The index of its flow in the scenario.
    pub flow: u32,
    /// Where its data enter the table of routes.
    pub route: u32,
    /// Where its acknowledgements enter the table of routes.
    pub back: u32,
    /// When it starts.
    pub start: Time,
    /// When its source falls silent.
    pub stop: Time,
    /// What it sends.
    pub load: Load,
    /// What carries it.
    pub carrier: Carrier,
    /// The earliest pending timer event; `Time::MAX` if none.
    pub armed: Time,
    /// Whether its file has arrived in full.
    pub completed: bool,
}

/// What a connection sends.
#[derive(Debug)]
pub enum Load {
    /// Without end.
    Greedy,
    /// This many bytes, at the start.
    File(Bytes),
    /// What its source writes, with the write that comes next.
    Writes(Box<Generator>, Option<Write>),
}

/// What carries a connection.
#[derive(Debug)]
pub enum Carrier {
    /// TCP before its start.
    Closed(Arc<TcpParams>),
    /// TCP.
    Open(Box<Tcp>),
    /// TCP after its end.
    Ended,
    /// Datagrams.
    Udp {
        /// Wire size of the largest.
        packet: Bytes,
        /// Of which headers.
        header: Bytes,
    },
}

/// Both ends of a TCP connection, in whole cache lines.
#[derive(Debug)]
#[repr(align(64))]
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
            &Transport::Udp { packet, header } => Self::Udp { packet, header },
        }
    }
}

impl Load {
    /// For a flow of the scenario. A source that writes is asked for its first write.
    #[must_use]
    pub fn new(source: &Source, start: Time, stop: Time, stream: apportion_core::random::Stream) -> Self {
        match source {
            Source::File { size } => Self::File(*size),
            _ => match Generator::new(source, start, stop, stream) {
                Some(generator) => Self::Writes(Box::new(generator), None),
                None => Self::Greedy,
            },
        }
    }
}
