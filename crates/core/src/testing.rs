//! What the tests of this crate share: a small packet and a sink that remembers.
//!
//! The integration tests include this file by its path, so it names what it needs by way of `super`.

use std::vec::Vec;

use super::units::{Bytes, Time};
use super::{DropReason, Ecn, FlowId, Packet, Sink};

/// A packet with an identity, so that tests can follow who left and who was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    pub id: u32,
    pub flow: FlowId,
    pub size: Bytes,
    pub ecn: Ecn,
}

/// A packet without ECN.
pub fn packet(id: u32, flow: u32, size: u64) -> TestPacket {
    TestPacket { id, flow: FlowId(flow), size: Bytes::new(size), ecn: Ecn::NotEct }
}

impl Packet for TestPacket {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        self.size
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// Keeps what a discipline reported.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    pub dropped: Vec<(Time, u32, DropReason)>,
    pub marked: Vec<(Time, u32)>,
}

impl Sink<TestPacket> for Log {
    fn dropped(&mut self, now: Time, packet: TestPacket, reason: DropReason) {
        self.dropped.push((now, packet.id, reason));
    }
    fn marked(&mut self, now: Time, packet: &TestPacket) {
        self.marked.push((now, packet.id));
    }
}
