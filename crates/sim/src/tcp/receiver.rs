//! The receiving end: puts bytes in order and acknowledges them.
//!
//! RFC 9293 section 3.10.7.4, RFC 5681 section 4.2 (times of acknowledgments), RFC 2018 (SACK), RFC 3168
//! section 6.1.3 and RFC 8257 section 3.2 (ECN echo), RFC 9768 ([`accurate`] ECN), RFC 7323 sections 2 and 4
//! (window scale, timestamps), RFC 2883 (reports of duplicates). Cost: O(1) per segment in order; O(gaps)
//! otherwise. Gaps are bounded by the window.

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::tcp::{DelayedAck, SackRecovery, TcpParams};

use super::accurate::{self, Marks};
use super::scoreboard::merge;
use super::segment::{Extra, Flags, SackBlocks, Segment, SegmentSink};
use super::seq::{unwrap, wrap};

/// The receiver's own initial sequence number; it sends no data.
const OWN_ISN: u32 = 0;
/// RFC 9768 section 3.2.2.5.1: the number of marks that are acknowledged at once.
const MARKS_AN_ACK: u32 = 2;
/// An offset above all others.
const NO_FIN: u64 = u64::MAX;

/// The receiving end of a connection.
#[derive(Clone, Debug)]
pub struct Receiver {
    params: Arc<TcpParams>,
    /// The sender's initial sequence number.
    isn: u32,
    /// The size of its buffer in bytes.
    buffer: u64,
    /// The offset below which everything has arrived (RCV.NXT).
    rcv_nxt: u64,
    /// Ranges that arrived early, disjoint and not adjacent: the most recently extended last if SACK reports
    /// them, else in order.
    early: Vec<(u64, u64)>,
    /// The end of the highest range; undefined if there is none.
    highest: u64,
    /// The offset of the FIN; [`NO_FIN`] until it arrives.
    fin: u64,
    /// Segments that have arrived since the last ACK.
    unacked: u32,
    /// The number of ACKs that are sent without delay, although the profile delays them.
    quick: u32,
    /// The arrival time of the last segment.
    heard: Time,
    /// The longest silence that does not count as a pause of the sender: a round trip, measured in the
    /// handshake, plus the minimum timeout.
    patience: Span,
    /// RFC 7323 section 4.3, TS.Recent: the timestamp that ACKs echo.
    ts_recent: u32,
    /// RFC 7323 section 4.3, Last.ACK.sent.
    last_ack: u64,
    /// The time at which a delayed ACK is due; [`Time::MAX`] if none is.
    ack_timer: Time,
    /// Whether congestion was experienced and the sender has not sent CWR yet; with Accurate ECN, whether the
    /// last packet was marked.
    echo: bool,
    /// Whether the first SYN requested ECN of any kind.
    asked: bool,
    /// Whether the two ends agreed on Accurate ECN.
    accurate: bool,
    /// Whether its ACKs report the one-way delay, which the sender's congestion control needs.
    says_delay: bool,
    /// The ECN field of ACKs.
    codepoint: Ecn,
    /// The marked packets that arrived, if they are counted.
    marks: Marks,
    /// The count in the last ACK.
    marks_said: Marks,
    scale: u8,
    syn_seen: bool,
    /// Bytes in order that the application has left in the buffer.
    unread: u64,
    reading: bool,
}

impl Receiver {
    /// A receiver for the sender that starts at `isn`.
    #[must_use]
    pub fn new(params: Arc<TcpParams>, isn: u32) -> Self {
        let scale = window_scale(&params);
        Self {
            isn,
            buffer: params.window_bytes(),
            rcv_nxt: 0,
            early: Vec::new(),
            highest: 0,
            fin: NO_FIN,
            unacked: 0,
            quick: 0,
            heard: Time::ZERO,
            patience: Span::ZERO,
            ts_recent: 0,
            last_ack: 0,
            ack_timer: Time::MAX,
            echo: false,
            asked: false,
            // Without a handshake both ends use their common parameters.
            accurate: params.algorithm.is_l4s() && !params.syn,
            says_delay: params.algorithm.entry().one_way_delay,
            codepoint: if params.algorithm.is_wholly_capable() && !params.syn {
                Ecn::Ect0
            } else {
                Ecn::NotEct
            },
            marks: Marks::default(),
            marks_said: Marks::default(),
            params,
            scale,
            syn_seen: false,
            unread: 0,
            reading: true,
        }
    }

    /// Payload bytes received in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.rcv_nxt - u64::from(self.is_finished()) - u64::from(self.syn_seen)
    }

    /// Whether the sender's FIN and everything before it has arrived.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.fin < self.rcv_nxt
    }

    /// The field ACE of segments to the sender, if both ends agreed on Accurate ECN.
    #[must_use]
    pub fn ace(&self) -> Option<Flags> {
        self.accurate.then(|| self.marks.field())
    }

    /// The time at which [`on_timer`](Self::on_timer) must be called.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        Some(self.ack_timer).filter(|&at| at < Time::MAX)
    }

    /// A segment arrives, with `ecn` in its IP header.
    pub fn on_segment<W: SegmentSink>(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut W) {
        if ecn == Ecn::Ce || self.echo {
            self.note_mark(segment, ecn, out);
        }
        if segment.flags.has(Flags::SYN) {
            self.on_syn(now, segment, ecn, out);
            return;
        }
        if self.is_predicted(segment) {
            self.take_next(now, segment);
            return match self.params.delayed_ack {
                Some(delayed) => self.delay(now, delayed, out),
                None => self.send_ack(SackBlocks::NONE, Bytes::ZERO, out),
            };
        }
        let Some(from) = unwrap(self.isn, segment.seq, self.rcv_nxt) else { return };
        let end = from + u64::from(segment.payload);
        // RFC 7323 section 5.3: R3 if the segment is the next, unless R2 refuses it because it has no new
        // data.
        if from <= self.last_ack && end + u64::from(segment.flags.has(Flags::FIN)) > self.last_ack {
            self.ts_recent = segment.timestamp;
        }
        self.note_pause(now);
        if segment.flags.has(Flags::FIN) {
            self.fin = end;
        }
        // Data that do not fit the buffer are not accepted (RFC 9293 section 3.10.7.4).
        let to = end.min(self.rcv_nxt + self.space());
        let end_of_segment = to + u64::from(self.fin == end && to == end);
        if end_of_segment <= self.rcv_nxt || from > to {
            match self.params.delayed_ack {
                Some(delayed) if self.is_repeat(end) => {
                    self.delay(now, delayed, out);
                }
                _ => self.acknowledge_repeat((from, end_of_segment), out),
            }
        } else if from > self.rcv_nxt {
            let again = self.held((from, end_of_segment));
            self.hold(from, end_of_segment);
            self.acknowledge_repeat(again, out);
        } else {
            self.take(now, end_of_segment, out);
        }
    }

    /// Handles a segment with a mark, or while marks are echoed.
    #[inline(never)]
    fn note_mark<W: SegmentSink>(&mut self, segment: &Segment, ecn: Ecn, out: &mut W) {
        if self.accurate {
            return self.count_mark(segment, ecn);
        }
        if self.params.algorithm.counts_marks() {
            return self.echo_each_mark(segment, ecn, out);
        }
        // RFC 3168 section 6.1.3: echo from the first mark until the sender says CWR.
        if segment.flags.has(Flags::CWR) && !segment.flags.has(Flags::SYN) {
            self.echo = false;
        }
        if self.params.ecn && ecn == Ecn::Ce {
            self.echo = true;
        }
    }

    /// RFC 9768 sections 3.2 and 3.2.2.5.1: the segment is counted, and acknowledged at once if it is marked
    /// and the one before was not, or if it is the second marked one since the last ACK.
    fn count_mark(&mut self, segment: &Segment, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        if segment.flags.has(Flags::SYN) {
            return;
        }
        if marked {
            self.marks.count();
            let is_change = !self.echo && segment.payload > 0;
            if is_change || self.marks.since(self.marks_said) >= MARKS_AN_ACK {
                self.quick = self.quick.max(1);
            }
        }
        self.echo = marked;
    }

    /// RFC 8257 section 3.2, with `echo` as DCTCP.CE: segments before a change of the state get an ACK of
    /// their own, and the segment that changes it is acknowledged at once, so that all segments of an ACK are
    /// marked or none is.
    fn echo_each_mark<W: SegmentSink>(&mut self, segment: &Segment, ecn: Ecn, out: &mut W) {
        let marked = ecn == Ecn::Ce;
        if segment.payload == 0 || marked == self.echo {
            return;
        }
        if self.unacked > 0 {
            self.acknowledge(out);
        }
        self.echo = marked;
        self.quick = self.quick.max(1);
    }

    /// Header prediction (Jacobson, "4BSD header prediction", CCR 20(2), 1990): the next segment in order,
    /// with data alone, while nothing is missing and the application reads. The general code has the same
    /// effect for these segments.
    #[inline(always)]
    fn is_predicted(&self, segment: &Segment) -> bool {
        segment.flags.without_ecn() == Flags::ACK
            && segment.seq == wrap(self.isn, self.rcv_nxt)
            && self.early.is_empty()
            && segment.payload > 0
            && self.reading
            && self.fin == NO_FIN
            && u64::from(segment.payload) <= self.buffer
    }

    /// Takes a [predicted](Self::is_predicted) segment.
    #[inline(always)]
    fn take_next(&mut self, now: Time, segment: &Segment) {
        // RFC 7323 section 5.3, as for other segments.
        if self.last_ack == self.rcv_nxt {
            self.ts_recent = segment.timestamp;
        }
        self.note_pause(now);
        self.rcv_nxt += u64::from(segment.payload);
    }

    /// Acts as [`on_segment`](Self::on_segment) does, if the only effect is one ACK without options: returns
    /// it, with its size on the wire and its ECN field. If not, does nothing.
    #[inline(always)]
    pub(crate) fn answer(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<(Segment, Bytes, Ecn)> {
        let is_marked = ecn == Ecn::Ce || self.echo;
        if is_marked || self.params.delayed_ack.is_some() || !self.is_predicted(segment) {
            return None;
        }
        self.take_next(now, segment);
        Some((self.ack(SackBlocks::NONE), self.params.ack, self.codepoint))
    }

    /// The time of [`next_timer`](Self::next_timer) has come; earlier calls do nothing.
    pub fn on_timer<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if self.ack_timer <= now {
            self.acknowledge(out);
        }
    }

    /// The application stops or resumes reading. While it does not read, the advertised window closes.
    pub fn set_reading<W: SegmentSink>(&mut self, reading: bool, out: &mut W) {
        self.reading = reading;
        if reading && self.unread > 0 {
            // RFC 9293 section 3.8.6.2.2: an update is worth a segment once the window has grown by a segment
            // or half the buffer.
            let grew = self.unread;
            self.unread = 0;
            if grew >= self.params.segment.get().min(self.buffer / 2) {
                self.acknowledge(out);
            }
        }
    }

    /// The first ACKs of a connection, and those after a pause, are not delayed: the window is small then.
    fn note_pause(&mut self, now: Time) {
        let silence = now.since(self.heard);
        if self.params.quick_acks > 0 {
            if self.patience == Span::ZERO {
                self.patience = silence + self.params.min_rto;
                self.quick = self.params.quick_acks;
            } else if silence > self.patience {
                self.quick = self.params.quick_acks;
            }
        }
        self.heard = now;
    }

    fn on_syn<W: SegmentSink>(&mut self, now: Time, segment: &Segment, ecn: Ecn, out: &mut W) {
        // A segment of an earlier connection over the same path that was abandoned.
        if segment.seq != self.isn {
            return;
        }
        self.heard = now;
        self.ts_recent = segment.timestamp;
        if !self.syn_seen {
            self.syn_seen = true;
            self.rcv_nxt = 1;
            // RFC 9768 section 3.1.5: the first SYN decides.
            self.asked = segment.flags.has(Flags::ECE | Flags::CWR);
            self.accurate = self.params.algorithm.is_l4s() && segment.flags.has(accurate::OFFER);
            if segment.extra.window_scale().is_none() {
                self.scale = 0;
            }
        }
        // RFC 7323 section 2.2: the window of a SYN is never scaled.
        let agreed = self.agree(segment, ecn);
        if self.params.algorithm.is_wholly_capable() && agreed.has(Flags::ECE) {
            self.codepoint = Ecn::Ect0;
        }
        let reply = Segment {
            seq: OWN_ISN,
            ack: wrap(self.isn, self.rcv_nxt),
            window: clamp_u16(self.space()),
            flags: Flags::SYN | Flags::ACK | agreed,
            extra: segment.extra.window_scale().map_or(Extra::None, |_| Extra::WindowScale(self.scale)),
            timestamp: self.ts_recent,
            ..Segment::default()
        };
        out.send(reply, self.params.ack, self.codepoint);
    }

    /// The flags of a SYN/ACK in answer to this SYN, which arrived with `ecn` in its IP header.
    fn agree(&self, syn: &Segment, ecn: Ecn) -> Flags {
        // RFC 9768 section 3.1.5: also in answer to a later SYN that requests nothing, whose sender has probably not
        // received the first answer; and nothing is granted to a later SYN if the first one requested nothing.
        if self.accurate {
            return accurate::grant(ecn);
        }
        // RFC 3168 section 6.1.1: ECE alone accepts ECN.
        let is_asked = self.asked && syn.flags.has(Flags::ECE | Flags::CWR);
        if self.params.offers_ecn() && is_asked { Flags::ECE } else { Flags::NONE }
    }

    /// The bytes of a segment beyond a hole if all of them have arrived before and are reported; else an empty
    /// range. What follows the highest of them, as in nearly all cases, has not.
    fn held(&self, (from, end): (u64, u64)) -> (u64, u64) {
        let is_reported = from < self.highest && self.params.sack_recovery == SackRecovery::Rack;
        let is_held = is_reported && self.early.iter().any(|&(start, to)| start <= from && end <= to);
        if is_held { (from, end) } else { (0, 0) }
    }

    /// Takes early ranges that `to` reaches. Returns the first bytes that arrived twice (RFC 2883 section 4.1);
    /// an empty range if there are none.
    #[inline(never)]
    fn absorb(&mut self, to: u64) -> (u64, u64) {
        let mut again = (u64::MAX, 0);
        // In most cases one range, which ends beyond `to`: others would have to lie within the segment.
        while let Some(at) = self.first_reached(to) {
            let (start, end) = self.early.remove(at);
            if start < to.min(again.0) {
                again = (start, end.min(to));
            }
            self.rcv_nxt = self.rcv_nxt.max(end);
        }
        again
    }

    /// Takes bytes in order, up to `to`, and early ranges that become contiguous.
    fn take<W: SegmentSink>(&mut self, now: Time, to: u64, out: &mut W) {
        let before = self.rcv_nxt;
        self.rcv_nxt = to;
        let gap = !self.early.is_empty();
        let again = if gap { self.absorb(to) } else { (0, 0) };
        if !self.reading {
            self.unread += self.rcv_nxt - before;
        }
        let jumped = self.rcv_nxt > to;
        let finished = self.is_finished();
        match self.params.delayed_ack {
            Some(delayed) if !(jumped || finished || gap && self.params.ack_gap_fill) => {
                self.delay(now, delayed, out);
            }
            _ => self.acknowledge_repeat(again, out),
        }
    }

    /// The index of a range that begins at or before `to`.
    #[inline]
    fn first_reached(&self, to: u64) -> Option<usize> {
        // In order, only the first range may.
        let some = if self.params.sack() { &self.early[..] } else { self.early.get(..1)? };
        some.iter().position(|&(start, _)| start <= to)
    }

    /// Whether a segment that ends at `end` repeats the last segment in order, whose ACK may be delayed as if
    /// it were new.
    fn is_repeat(&self, end: u64) -> bool {
        let gap = self.params.ack_gap_fill && !self.early.is_empty();
        self.params.delay_repeat && end == self.rcv_nxt && !gap
    }

    fn delay<W: SegmentSink>(&mut self, now: Time, delayed: DelayedAck, out: &mut W) {
        self.unacked += 1;
        if self.unacked >= delayed.every || self.quick > 0 {
            self.acknowledge(out);
        } else if self.ack_timer == Time::MAX {
            let wait = delayed.timeout;
            let into = if delayed.aligned { now.as_nanos() % wait.as_nanos() } else { 0 };
            self.ack_timer = now + wait.saturating_sub(Span::from_nanos(into));
        }
    }

    /// Stores data that came early; with SACK its range becomes the most recent one (RFC 2018 section 4).
    fn hold(&mut self, from: u64, to: u64) {
        let highest = if self.early.is_empty() { 0 } else { self.highest };
        self.highest = highest.max(to);
        // In nearly all cases it follows the highest range, or leaves a gap behind it.
        match self.early.last_mut() {
            _ if from > highest => {
                if self.early.capacity() == 0 {
                    // Most gaps are single, and with many flows each allocation lasts as long as its
                    // connection.
                    self.early.reserve_exact(1);
                }
                return self.early.push((from, to));
            }
            Some((_, end)) if *end == from && from == highest => {
                *end = to;
                return;
            }
            _ => {}
        }
        if !self.params.sack() {
            merge(&mut self.early, (from, to), usize::MAX);
            return;
        }
        let mut merged = (from, to);
        let mut rest = self.early.len();
        while let Some(at) = self.early[..rest].iter().rposition(|&(start, end)| start <= to && from <= end) {
            let (start, end) = self.early.remove(at);
            merged = (merged.0.min(start), merged.1.max(end));
            rest = at;
        }
        self.early.push(merged);
    }

    fn acknowledge<W: SegmentSink>(&mut self, out: &mut W) {
        if self.early.is_empty() || !self.params.sack() {
            self.send_ack(SackBlocks::NONE, Bytes::ZERO, out);
        } else {
            self.acknowledge_with_blocks(None, out);
        }
    }

    /// Acknowledges a repeated segment, and reports it if the sender can use that (RFC 2883 section 4).
    fn acknowledge_repeat<W: SegmentSink>(&mut self, again: (u64, u64), out: &mut W) {
        if self.params.sack_recovery == SackRecovery::Rack && again.0 < again.1 {
            self.acknowledge_with_blocks(Some(again), out);
        } else {
            self.acknowledge(out);
        }
    }

    fn acknowledge_with_blocks<W: SegmentSink>(&mut self, again: Option<(u64, u64)>, out: &mut W) {
        let blocks = again.iter().chain(self.early.iter().rev());
        let sack =
            SackBlocks::from_recent(blocks.map(|&(from, to)| (wrap(self.isn, from), wrap(self.isn, to))));
        let option = self.params.sack_option + Bytes::new(8 * sack.as_slice().len() as u64);
        self.send_ack(sack, option, out);
    }

    /// Sends an ACK with `options` bytes of options for `sack`.
    #[inline(always)]
    fn send_ack<W: SegmentSink>(&mut self, sack: SackBlocks, option: Bytes, out: &mut W) {
        out.send(self.ack(sack), self.params.ack + option, self.codepoint);
    }

    /// The ACK at present.
    #[inline(always)]
    fn ack(&mut self, sack: SackBlocks) -> Segment {
        self.unacked = 0;
        self.quick = self.quick.saturating_sub(1);
        self.ack_timer = Time::MAX;
        self.last_ack = self.rcv_nxt;
        Segment {
            seq: OWN_ISN.wrapping_add(u32::from(self.syn_seen)),
            ack: wrap(self.isn, self.rcv_nxt),
            // Rounded up.
            window: clamp_u16((self.space() + ((1 << self.scale) - 1)) >> self.scale),
            flags: Flags::ACK | self.feedback(),
            timestamp: self.ts_recent,
            extra: if self.says_delay { Extra::one_way(self.ts_recent, self.heard) } else { Extra::None },
            sack,
            ..Segment::default()
        }
    }

    /// The mark flags of an ACK.
    #[inline(always)]
    fn feedback(&mut self) -> Flags {
        if self.accurate {
            self.marks_said = self.marks;
            return self.marks.field();
        }
        if self.echo { Flags::ECE } else { Flags::NONE }
    }

    /// The space of the buffer above `rcv_nxt`, in bytes.
    fn space(&self) -> u64 {
        self.buffer.saturating_sub(self.unread)
    }
}

/// The smallest shift with which the field can express the window (RFC 7323 section 2.3).
#[must_use]
pub fn window_scale(params: &TcpParams) -> u8 {
    if !params.window_scale {
        return 0;
    }
    let fits = |shift: &u8| params.window_bytes().div_ceil(1 << shift) <= u64::from(u16::MAX);
    (0..=14).find(fits).unwrap_or(14)
}

fn clamp_u16(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}
