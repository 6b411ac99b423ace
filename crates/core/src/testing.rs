//! What the tests of this crate share: a small packet and a sink that remembers.
//!
//! The integration tests include this file by its path, so it names what it needs by way of `super`.

use std::vec::Vec;

use super::label::Label;
use super::units::{Bytes, Time};
use super::{Colour, DropReason, Ecn, FlowId, LabelKind, Overload, Packet, Protocol, Sink};

/// A packet with an identity, so that tests can follow who left and who was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestPacket {
    pub id: u32,
    pub flow: FlowId,
    pub size: Bytes,
    pub protocol: Protocol,
    pub ecn: Ecn,
    pub colour: Colour,
    /// By kind.
    pub labels: [Option<Label>; 3],
}

/// A datagram without ECN, colour or label.
pub fn packet(id: u32, flow: u32, size: u64) -> TestPacket {
    let (flow, size) = (FlowId(flow), Bytes::new(size));
    let (protocol, ecn, colour) = (Protocol::Udp, Ecn::NotEct, Colour::Unmarked);
    TestPacket { id, flow, size, protocol, ecn, colour, labels: [None; 3] }
}

impl Packet for TestPacket {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        self.size
    }
    fn protocol(&self) -> Protocol {
        self.protocol
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn colour(&self) -> Colour {
        self.colour
    }
    fn set_colour(&mut self, colour: Colour) {
        self.colour = colour;
    }
    fn label(&self, kind: LabelKind) -> Option<Label> {
        self.labels[kind as usize]
    }
    fn set_label(&mut self, kind: LabelKind, label: Label) {
        self.labels[kind as usize] = Some(label);
    }
    fn clear_label(&mut self, kind: LabelKind) {
        self.labels[kind as usize] = None;
    }
}

/// Keeps what a discipline reported.
#[derive(Debug, Default, PartialEq)]
pub struct Log {
    pub dropped: Vec<(Time, u32, DropReason)>,
    pub marked: Vec<(Time, u32)>,
    pub exceptions: Vec<(Time, Overload)>,
}

impl Sink<TestPacket> for Log {
    fn dropped(&mut self, now: Time, packet: TestPacket, reason: DropReason) {
        self.dropped.push((now, packet.id, reason));
    }
    fn marked(&mut self, now: Time, packet: &TestPacket) {
        self.marked.push((now, packet.id));
    }
    fn overload(&mut self, now: Time, exception: Overload) {
        self.exceptions.push((now, exception));
    }
}
