//! Helpers that the tests of this crate share: a short way to make a packet, and a sink that records.
//!
//! The integration tests include this file by its path, so it names what it needs by way of `super`.

use std::vec::Vec;

use super::units::{Bytes, Time};
use super::{DropReason, FlowId, Overload, SimplePacket, Sink};

/// A datagram without ECN, colour or label.
pub fn packet(id: u32, flow: u32, size: u64) -> SimplePacket {
    SimplePacket::new(id, FlowId(flow), Bytes::new(size))
}

/// Records the reports of a discipline.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    pub dropped: Vec<(Time, u32, DropReason)>,
    pub marked: Vec<(Time, u32)>,
    pub overloads: Vec<(Time, Overload)>,
}

impl Sink<SimplePacket> for Log {
    fn dropped(&mut self, now: Time, packet: SimplePacket, reason: DropReason) {
        self.dropped.push((now, packet.id, reason));
    }
    fn marked(&mut self, now: Time, packet: &SimplePacket) {
        self.marked.push((now, packet.id));
    }
    fn overload(&mut self, now: Time, overload: Overload) {
        self.overloads.push((now, overload));
    }
}
