//! Senders and receivers whose packets a test delivers itself.

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::quic::QuicParams;
use apportion_sim::quic::packet::Range;
use apportion_sim::quic::{Ack, Packet, PacketSink, Receiver, Sender, Stream};

/// The round trip of the handshake.
pub const RTT: Span = Span::from_millis(100);

/// The packets that an end sent, with further ranges and sizes.
#[derive(Default)]
pub struct Outbox(pub Vec<(Packet, Vec<Range>, Bytes, Ecn)>);

impl PacketSink for Outbox {
    fn send(&mut self, packet: Packet, more: &[Range], size: Bytes, ecn: Ecn) {
        self.0.push((packet, more.to_vec(), size, ecn));
    }
}

impl Outbox {
    /// Returns the packets of data sent since the last call: number, offset and length of each.
    pub fn data(&mut self) -> Vec<(u32, u64, u16)> {
        let all = std::mem::take(&mut self.0);
        let data = all.into_iter().filter_map(|(packet, ..)| match packet {
            Packet::Stream(stream) => Some((stream.number, stream.offset(), stream.length)),
            _ => None,
        });
        data.collect()
    }

    /// Returns the ACKs sent since the last call, with all ranges.
    pub fn acks(&mut self) -> Vec<(Ack, Vec<Range>)> {
        let all = std::mem::take(&mut self.0);
        let acks = all.into_iter().filter_map(|(packet, more, ..)| match packet {
            Packet::Ack(ack) => Some((ack, ack.ranges().iter().copied().chain(more).collect())),
            _ => None,
        });
        acks.collect()
    }
}

pub fn params(changes: &[(&str, &str)]) -> Arc<QuicParams> {
    let mut params = QuicParams::with_algorithm("newreno").unwrap();
    changes.iter().for_each(|(name, value)| params.set(name, value).unwrap());
    Arc::new(params)
}

pub fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// A sender, whose connection is mostly open since [`RTT`], and a number for its acknowledgments.
pub struct Script {
    pub sender: Sender,
    pub out: Outbox,
    acks: u32,
}

impl Script {
    /// Creates a connection that has received no answer yet.
    pub fn start(changes: &[(&str, &str)]) -> Self {
        let mut script = Self { sender: Sender::new(params(changes)), out: Outbox::default(), acks: 0 };
        script.sender.start(Time::ZERO, &mut script.out);
        assert_eq!(script.out.0[0].0, Packet::Initial(0));
        script
    }

    /// Creates an open connection without data to send.
    pub fn open(changes: &[(&str, &str)]) -> Self {
        let mut script = Self::start(changes);
        script.sender.on_packet(Time::ZERO + RTT, &Packet::Accept(0), &[], &mut script.out);
        script.out.0.clear();
        script
    }

    /// Supplies this number of full packets of data.
    pub fn supply(&mut self, now: Time, packets: u64) -> Vec<(u32, u64, u16)> {
        self.sender.supply(now, 1_431 * packets, &mut self.out);
        self.out.data()
    }

    /// Acknowledges packets of these ranges, ends included, the highest first. Returns the packets sent then.
    pub fn ack(&mut self, now: Time, ranges: &[(u32, u32)]) -> Vec<(u32, u64, u16)> {
        self.ack_with(now, ranges, Span::ZERO, 0)
    }

    pub fn ack_with(
        &mut self,
        now: Time,
        ranges: &[(u32, u32)],
        delay: Span,
        ce: u32,
    ) -> Vec<(u32, u64, u16)> {
        self.acks += 1;
        let ranges: Vec<Range> = ranges.iter().map(|&(from, to)| (from, to + 1)).collect();
        let (ack, more) = Ack::new(self.acks, delay, ce, &ranges);
        self.sender.on_packet(now, &Packet::Ack(ack), more, &mut self.out);
        self.out.data()
    }

    /// Runs timers up to `until`. Returns the packets sent, with the times.
    pub fn wait(&mut self, until: Time) -> Vec<(Time, u32)> {
        let mut sent = Vec::new();
        while let Some(now) = self.sender.next_timer().filter(|&now| now <= until) {
            self.sender.on_timer(now, &mut self.out);
            sent.extend(self.out.data().into_iter().map(|(number, ..)| (now, number)));
        }
        sent
    }
}

/// A receiver whose acknowledgments a test sees.
pub struct Listener {
    pub receiver: Receiver,
    pub out: Outbox,
}

impl Listener {
    pub fn new(changes: &[(&str, &str)]) -> Self {
        Self { receiver: Receiver::new(params(changes)), out: Outbox::default() }
    }

    /// Delivers the packet with this number, with 100 bytes in the order of numbers. Returns the ranges
    /// acknowledged, if any.
    pub fn hear(&mut self, now: Time, number: u32) -> Option<Vec<Range>> {
        self.hear_with(now, number, 0, Ecn::NotEct).map(|(_, ranges)| ranges)
    }

    pub fn hear_with(&mut self, now: Time, number: u32, heard: u32, ecn: Ecn) -> Option<(Ack, Vec<Range>)> {
        let stream = Stream::new(number, heard, 100 * u64::from(number), 100);
        self.receiver.on_packet(now, &Packet::Stream(stream), ecn, &mut self.out);
        self.out.acks().pop()
    }
}
