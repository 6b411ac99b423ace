//! Connections: what the simulator makes of the flows of a scenario.
//!
//! A flow is one connection, or as many as it has `connections`, or one per arrival of a source of short
//! flows. Connections are numbered in the scenario's order. What disciplines see is another number, the id:
//! all connections of a flow share one, since papers mean an aggregate where they give ten flows of 15
//! connections one label, guarantee and weight each (Pelsser 2002); only short flows have one each. Ids
//! follow the scenario's order too, without gaps, so that tables by id are as small as they can be. Without
//! flows of several connections both numbers are the same.
//!
//! TCP, sources and starts belong to connections; weights, guarantees, round-trip times, marks, counts of
//! packets and listed losses go by id. TCP state exists from the start of a connection to its end only.

use std::sync::Arc;

use apportion_core::packet::FlowId;
use apportion_core::units::{Bytes, Time};
use apportion_scenario::model::{Source, Transport};
use apportion_scenario::source::{Generator, Write};
use apportion_scenario::tcp::TcpParams;

use crate::packet::Direction;
use crate::tcp::{Receiver, Sender};

/// One connection.
#[derive(Debug)]
#[repr(align(32))]
pub struct Connection {
    /// The index of its flow in the scenario.
    pub flow: u32,
    /// What disciplines know it by, perhaps together with others.
    pub id: FlowId,
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

/// Where there are many flows, memory is what takes time: a connection is three half cache lines.
const _: () = assert!(size_of::<Connection>() == 96);

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
            &Transport::Udp { packet, .. } => Self::Udp { packet },
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
