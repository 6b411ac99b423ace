//! The conversion of segments of TCP or QUIC to packets.

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Time};

use crate::packet::{Body, Header, Packet, Store};
use crate::quic::packet::Range;
use crate::{quic, tcp};

/// Takes segments from one end of a TCP connection, or packets from one end of a QUIC connection, which leave
/// as datagrams.
pub(crate) struct Outlet<'a> {
    pub(crate) now: Time,
    pub(crate) connection: u32,
    /// The common properties of all its packets.
    pub(crate) header: Packet,
    /// The place of an unused body, for the first of them.
    pub(crate) spare: Option<u32>,
    pub(crate) store: &'a mut Store,
    pub(crate) packets: &'a mut Vec<Packet>,
}

impl tcp::SegmentSink for Outlet<'_> {
    #[inline(always)]
    fn send(&mut self, segment: tcp::Segment, size: Bytes, ecn: Ecn) {
        let (sent, connection) = (self.now, self.connection);
        let body = Body { sent, queued: sent, connection, header: Header::Tcp(segment) };
        let body = self.store.reuse(self.spare.take(), body);
        self.packets.push(self.header.with(body, size, ecn));
    }
}

impl quic::PacketSink for Outlet<'_> {
    fn send(&mut self, packet: quic::Packet, more: &[Range], size: Bytes, ecn: Ecn) {
        let (sent, connection) = (self.now, self.connection);
        let body = Body { sent, queued: sent, connection, header: Header::Quic(packet) };
        let body = if more.is_empty() { self.store.insert(body) } else { self.store.insert_ack(body, more) };
        self.packets.push(self.header.with(body, size, ecn));
    }
}
