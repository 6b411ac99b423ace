//! The receiving end: puts bytes in order and acknowledges packets.
//!
//! RFC 9000 sections 13.2.1 to 13.2.4 (times and ranges of acknowledgments) and 13.4.1 (counts of marks).
//! Cost: O(1) per packet in order; O(ranges) of the at most 32 otherwise, and O(gaps) of the stream.

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Time};
use apportion_scenario::quic::{MAX_RANGES, QuicParams};

use super::packet::{Ack, HANDSHAKE, ISN, Packet, PacketSink, Stream, ack_frame};
use crate::tcp::scoreboard::merge;
use crate::tcp::seq::{unwrap, wrap};

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: Arc<QuicParams>,
    /// Packets that have arrived, the highest range last.
    ranges: Vec<(u64, u64)>,
    /// One more than the highest number that has arrived.
    next: u64,
    /// The arrival time of the highest.
    highest_at: Time,
    /// Packets that have arrived since the last acknowledgment.
    unacked: u32,
    timer: Option<Time>,
    /// The number of the last packet sent.
    number: u32,
    /// An acknowledgment whose arrival at the sender is awaited, and its content: `next` at that time.
    awaited: Option<(u32, u64)>,
    /// The number of packets that arrived with ECT(0), and with CE.
    marks: (u64, u64),
    /// The stream offset below which everything has arrived.
    base: u64,
    /// Ranges of the stream that arrived early.
    early: Vec<(u64, u64)>,
}

impl Receiver {
    /// The receiver of a connection that has not begun.
    #[must_use]
    pub const fn new(params: Arc<QuicParams>) -> Self {
        Self {
            params,
            ranges: Vec::new(),
            next: 0,
            highest_at: Time::ZERO,
            unacked: 0,
            timer: None,
            number: 0,
            awaited: None,
            marks: (0, 0),
            base: 0,
            early: Vec::new(),
        }
    }

    /// Bytes of the stream received in order.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.base
    }

    /// The time at which [`on_timer`](Self::on_timer) must be called.
    #[must_use]
    pub const fn next_timer(&self) -> Option<Time> {
        self.timer
    }

    /// A packet arrives, with `ecn` in its IP header.
    pub fn on_packet<W: PacketSink>(&mut self, now: Time, packet: &Packet, ecn: Ecn, out: &mut W) {
        match packet {
            &Packet::Initial(number) => out.send(Packet::Accept(number), &[], HANDSHAKE, Ecn::NotEct),
            Packet::Stream(stream) => self.on_stream(now, stream, ecn, out),
            Packet::Accept(_) | Packet::Ack(_) => {}
        }
    }

    /// The time of [`next_timer`](Self::next_timer) has come; earlier calls do nothing.
    pub fn on_timer<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        if self.timer.is_some_and(|at| at <= now) {
            self.acknowledge(now, out);
        }
    }

    fn on_stream<W: PacketSink>(&mut self, now: Time, stream: &Stream, ecn: Ecn, out: &mut W) {
        let Some(number) = unwrap(ISN, stream.number, self.next) else { return };
        self.forget_acknowledged(stream.heard);
        // Section 13.2.1: not if it is lower than another, or others are missing before it.
        let is_in_order = number == self.next;
        self.note_number(now, number);
        match ecn {
            Ecn::Ect0 => self.marks.0 += 1,
            Ecn::Ce => self.marks.1 += 1,
            Ecn::NotEct | Ecn::Ect1 => {}
        }
        self.put((stream.offset(), stream.offset() + u64::from(stream.length)));
        self.unacked += 1;
        match self.params.delayed_ack {
            Some(delayed) if is_in_order && ecn != Ecn::Ce && self.unacked < delayed.every => {
                self.timer.get_or_insert(now + delayed.timeout);
            }
            _ => self.acknowledge(now, out),
        }
    }

    fn note_number(&mut self, now: Time, number: u64) {
        if number >= self.next {
            (self.next, self.highest_at) = (number + 1, now);
        }
        match self.ranges.last_mut() {
            Some((_, to)) if *to == number => *to += 1,
            _ => {
                merge(&mut self.ranges, (number, number + 1), usize::MAX);
                // Section 13.2.3: the oldest are no longer reported.
                if self.ranges.len() > MAX_RANGES {
                    self.ranges.remove(0);
                }
            }
        }
    }

    /// Takes bytes of the stream.
    fn put(&mut self, (from, to): (u64, u64)) {
        if from > self.base {
            merge(&mut self.early, (from, to), usize::MAX);
            return;
        }
        self.base = self.base.max(to);
        let gone = self.early.partition_point(|&(from, _)| from <= self.base);
        if let Some(&(_, to)) = self.early[..gone].last() {
            self.base = self.base.max(to);
            self.early.drain(..gone);
        }
    }

    /// Section 13.2.4: the sender has received an acknowledgment, and its ranges need not be repeated.
    fn forget_acknowledged(&mut self, heard: u32) {
        if let Some((_, next)) = self.awaited.take_if(|(number, _)| *number <= heard) {
            // The highest range stays.
            let gone = self.ranges.partition_point(|&(_, to)| to < next);
            self.ranges.drain(..gone);
        }
    }

    fn acknowledge<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        (self.unacked, self.timer) = (0, None);
        self.number += 1;
        if self.ranges.len() > 1 {
            self.awaited.get_or_insert((self.number, self.next));
        }
        let (mut whole, mut ranges) = ([(0, 0); MAX_RANGES], [(0, 0); MAX_RANGES]);
        let count = self.ranges.len().min(MAX_RANGES);
        for (at, &(from, to)) in self.ranges.iter().rev().take(count).enumerate() {
            (whole[at], ranges[at]) = ((from, to), (wrap(ISN, from), wrap(ISN, to)));
        }
        let delay = now.since(self.highest_at);
        let counts = self.params.ecn.then_some(self.marks);
        let size: Bytes = self.params.ack + ack_frame(delay, &whole[..count], counts);
        let (ack, more) = Ack::new(self.number, delay, self.marks.1 as u32, &ranges[..count]);
        out.send(Packet::Ack(ack), more, size, Ecn::NotEct);
    }
}
