//! One end of a connection: the simulator's [`Sender`] and [`Receiver`], driven by time and segments.
//!
//! The simulator's connections have one direction of data. Here a sender and a receiver stand at the same end: ACKs ride
//! on data, and a segment goes to the one or the other by its content. This module adds headers; what is sent, and when,
//! is the simulator's. A sender that did not open the connection gets the peer's ACK of the SYN/ACK as a SYN/ACK of its
//! own, so that it measures the same round trip.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::congestion::{Pacing, Phase};
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::tcp::TcpParams;
use apportion_sim::tcp::accurate;
use apportion_sim::tcp::segment::{Extra, Flags, SackBlocks, Segment, SegmentSink};
use apportion_sim::tcp::{Receiver, Sender};

use crate::code::Names;
use crate::script::{Packet, TcpFlags, TcpOption};

/// The maximum segment size that the endpoint announces, as a host on Ethernet does.
const OWN_MSS: u16 = 1_460;

/// A segment that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at: Time,
    /// The ECN field.
    pub ecn: Ecn,
    /// The flags.
    pub flags: TcpFlags,
    /// The sequence number.
    pub seq: u32,
    /// Payload bytes.
    pub len: u32,
    /// The acknowledgment, unless it is a SYN.
    pub ack: Option<u32>,
    /// The window field.
    pub window: u16,
    /// The options.
    pub options: Vec<TcpOption>,
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}:{}({})", self.flags, self.seq, self.seq.wrapping_add(self.len), self.len)?;
        self.ack.map_or(Ok(()), |ack| write!(f, " ack {ack}"))?;
        let options: Vec<String> = self.options.iter().map(ToString::to_string).collect();
        if options.is_empty() { Ok(()) } else { write!(f, " <{}>", options.join(",")) }
    }
}

/// What both ends agree on in the handshake.
#[derive(Clone, Copy, Debug, Default)]
pub struct Agreed {
    /// The peer's maximum segment size.
    pub mss: Option<u16>,
    /// Whether both have selective acknowledgments.
    pub sack: bool,
    /// Whether both have timestamps.
    pub timestamps: bool,
    /// The peer's window scale.
    pub scale: Option<u8>,
    /// Whether this end asks for selective acknowledgments, and for timestamps.
    pub asks: (bool, bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    SynSent,
    SynReceived,
    Open,
}

/// Segments of the sender or the receiver, before they get their headers.
#[derive(Default)]
struct Collected(Vec<(Segment, Ecn)>);

impl SegmentSink for Collected {
    fn send(&mut self, segment: Segment, _: Bytes, ecn: Ecn) {
        self.0.push((segment, ecn));
    }
}

/// One end of a connection.
pub struct Endpoint {
    sender: Sender,
    receiver: Receiver,
    agreed: Agreed,
    /// Whether this end asks for Accurate ECN.
    asks_accurate: bool,
    /// Whether segments are paced.
    paces: bool,
    state: State,
    /// The next sequence number.
    snd_nxt: u32,
    /// The flags that grant ECN in the SYN/ACK of this end.
    granted: Flags,
    /// Whether a SYN of the peer, or a SYN/ACK of this end, had none of the flags after Accurate ECN was granted.
    asked_none: bool,
    /// RFC 7323 section 4.3: TS.Recent and Last.ACK.sent.
    ts_recent: u32,
    last_ack: u32,
    /// The TSval sent for each that a script names.
    stamps: BTreeMap<u32, u32>,
    read: u64,
    /// Segments that have left and are not checked.
    pub queue: VecDeque<Sent>,
}

impl Endpoint {
    /// An end with these parameters.
    #[must_use]
    pub fn new(params: TcpParams, probes: bool, agreed: Agreed) -> Self {
        let paces = params.pacing || params.algorithm.entry().pacing == Pacing::AtRate;
        let asks_accurate = params.algorithm.is_l4s();
        let params = Arc::new(params);
        let sender = Sender::new(Arc::clone(&params), 0);
        Self {
            sender: if probes { sender } else { sender.without_probes() },
            receiver: Receiver::new(params, 0),
            agreed,
            asks_accurate,
            paces,
            state: State::Closed,
            snd_nxt: 0,
            granted: Flags::NONE,
            asked_none: false,
            ts_recent: 0,
            last_ack: 0,
            stamps: BTreeMap::new(),
            read: 0,
            queue: VecDeque::new(),
        }
    }

    // -----------------------------------------------------------------------------------------
    // The application

    /// Opens the connection.
    pub fn connect(&mut self, now: Time) {
        self.state = State::SynSent;
        let mut out = Collected::default();
        self.start(now, &mut out);
        self.push_all(now, out);
    }

    fn start(&mut self, now: Time, out: &mut Collected) {
        self.sender.start(now, out);
        if !self.paces {
            // Prague, which stands for other controls, always paces.
            self.sender.stop_pacing();
        }
    }

    /// Writes `bytes`.
    pub fn write(&mut self, now: Time, bytes: u64) {
        self.drive(now, |sender, out| sender.supply(now, bytes, out));
    }

    /// Sends no more.
    pub fn close(&mut self, now: Time) {
        self.drive(now, |sender, out| sender.close(now, out));
    }

    /// Reads up to `most` bytes, and returns how many there were.
    pub fn read(&mut self, most: u64) -> u64 {
        let bytes = self.unread().min(most);
        self.read += bytes;
        bytes
    }

    /// Whether both ends agreed on Accurate ECN.
    #[must_use]
    pub fn is_accurate(&self) -> bool {
        self.receiver.ace().is_some()
    }

    /// The next sequence number of this end.
    #[must_use]
    pub const fn snd_nxt(&self) -> u32 {
        self.snd_nxt
    }

    /// The number of segments that the sender has sent.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.sender.stats().segments
    }

    /// The bytes that the application has not read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.receiver.delivered() - self.read
    }

    /// Whether the peer has closed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.receiver.is_finished()
    }

    // -----------------------------------------------------------------------------------------
    // Time and segments

    /// The time of the next timer.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        let (one, other) = (self.sender.next_timer(), self.receiver.next_timer());
        one.into_iter().chain(other).min()
    }

    /// Handles the timers that are due.
    pub fn on_timer(&mut self, now: Time) {
        self.drive(now, |sender, out| sender.on_timer(now, out));
        let mut acks = Collected::default();
        self.receiver.on_timer(now, &mut acks);
        self.push_all(now, acks);
    }

    /// A segment of the peer arrives.
    pub fn inject(&mut self, now: Time, packet: &Packet, ecn: Ecn) {
        let (segment, echo) = self.segment_of(packet);
        match self.state {
            State::Closed if packet.flags.syn => {
                self.state = State::SynReceived;
                self.answer_syn(now, &segment, ecn);
                // The SYN of the sender stands for the SYN/ACK, which has left.
                self.start(now, &mut Collected::default());
                self.snd_nxt = 1;
            }
            State::SynReceived if packet.flags.syn => {
                self.asked_none |= packet.flags.ace == 0;
                self.answer_syn(now, &segment, ecn);
            }
            State::SynReceived if packet.flags.ack && segment.ack == 1 => {
                self.state = State::Open;
                let flags = Flags::SYN | Flags::ACK | self.granted;
                let answer = Segment { flags, extra: self.scale(), timestamp: echo, ..segment };
                self.drive(now, |sender, out| sender.on_segment(now, &answer, out));
                let is_pure = segment.payload == 0 && !packet.flags.fin && segment.sack.is_empty();
                self.sender.confirm(is_pure.then_some(segment.flags), self.asked_none);
                self.take(now, &segment, echo, ecn);
            }
            State::SynSent if packet.flags.syn && packet.flags.ack => {
                self.state = State::Open;
                let is_accurate = accurate::Feedback::granted(segment.flags) == accurate::Feedback::Accurate;
                let asked = if is_accurate && self.asks_accurate { accurate::OFFER } else { Flags::NONE };
                let syn = Segment { flags: Flags::SYN | asked, extra: self.scale(), ..segment };
                self.receiver.on_segment(now, &syn, ecn, &mut Collected::default());
                if ecn == Ecn::Ce && self.is_accurate() {
                    // RFC 9768 section 3.2.2.2: a marked SYN/ACK is counted.
                    let ack = Segment { seq: 1, flags: Flags::ACK, ..segment };
                    self.receiver.on_segment(now, &ack, ecn, &mut Collected::default());
                }
                let sent = self.queue.len();
                self.note_timestamp(&segment);
                let answer = Segment { extra: self.scale(), timestamp: echo, ..segment };
                self.drive(now, |sender, out| sender.on_segment(now, &answer, out));
                if self.queue.len() == sent {
                    self.acknowledge(now, ecn);
                }
            }
            State::Open if packet.flags.syn && packet.flags.ack => self.acknowledge(now, ecn),
            State::Open if !packet.flags.syn => self.take(now, &segment, echo, ecn),
            _ => {}
        }
    }

    /// The window scale that the peer names.
    fn scale(&self) -> Extra {
        self.agreed.scale.map_or(Extra::None, Extra::WindowScale)
    }

    fn answer_syn(&mut self, now: Time, syn: &Segment, ecn: Ecn) {
        let syn = Segment { extra: self.scale(), ..*syn };
        self.note_timestamp(&syn);
        let mut answer = Collected::default();
        self.receiver.on_segment(now, &syn, ecn, &mut answer);
        self.granted = answer.0.first().map_or(Flags::NONE, |(segment, _)| segment.flags);
        self.push_all(now, answer);
    }

    /// Handles a segment of an open connection: its payload first, so that what it lets out acknowledges that.
    fn take(&mut self, now: Time, segment: &Segment, echo: u32, ecn: Ecn) {
        self.note_timestamp(segment);
        let mut acks = Collected::default();
        if segment.payload > 0 || segment.flags.has(Flags::FIN) {
            self.receiver.on_segment(now, segment, ecn, &mut acks);
        } else if ecn == Ecn::Ce && self.is_accurate() {
            // RFC 9768 section 3.2.2.3: pure ACKs are counted too.
            self.receiver.on_segment(now, segment, ecn, &mut Collected::default());
        }
        let sent = self.queue.len();
        // A sender reads what is echoed.
        let echoed = Segment { timestamp: echo, ..*segment };
        self.drive(now, |sender, out| sender.on_segment(now, &echoed, out));
        if self.queue.len() == sent {
            self.push_all(now, acks);
        }
    }

    /// Lets the sender act, and gives its segments headers.
    fn drive(&mut self, now: Time, act: impl FnOnce(&mut Sender, &mut Collected)) {
        let mut out = Collected::default();
        act(&mut self.sender, &mut out);
        let carries_ack = !out.0.is_empty() && self.state == State::Open;
        for (segment, ecn) in out.0 {
            self.push(now, segment, segment.seq, ecn);
        }
        if carries_ack && let Some(due) = self.receiver.next_timer() {
            // The delayed ACK has left with data.
            self.receiver.on_timer(due, &mut Collected::default());
        }
    }

    /// Acknowledges a SYN/ACK, which arrived with `ecn` in its IP header (RFC 9768 section 3.2.2.1).
    fn acknowledge(&mut self, now: Time, ecn: Ecn) {
        let ack = Segment { flags: Flags::ACK, window: u16::MAX, ..Segment::default() };
        self.push(now, ack, self.snd_nxt, Ecn::NotEct);
        if let Some(sent) = self.queue.back_mut().filter(|_| self.receiver.ace().is_some()) {
            sent.flags.ace = accurate::grant(ecn).ace();
        }
    }

    /// Gives the segments of the receiver headers. Their sequence number is not its own.
    fn push_all(&mut self, now: Time, segments: Collected) {
        for (segment, ecn) in segments.0 {
            self.push(now, segment, self.snd_nxt, ecn);
        }
    }

    /// Gives a segment the header of this end, with `seq` unless it is a SYN.
    fn push(&mut self, now: Time, segment: Segment, seq: u32, ecn: Ecn) {
        let mut flags = TcpFlags::of(segment.flags);
        let seq = if flags.syn { 0 } else { seq };
        let mut ack = Some(self.rcv_nxt());
        if flags.syn {
            flags.ack = self.state == State::SynReceived;
            if flags.ack {
                // A SYN/ACK that is sent again grants what the first did, until a SYN would request nothing.
                let falls_back = self.is_accurate() && flags.ace == 0;
                self.asked_none |= falls_back;
                flags.ace = if falls_back { 0 } else { self.granted.ace() };
            }
            ack = ack.filter(|_| flags.ack);
        }
        if let Some(ace) = self.receiver.ace().filter(|_| !flags.syn) {
            flags.ace = ace.ace();
        }
        let len = u32::from(segment.payload);
        let end = seq.wrapping_add(len + u32::from(flags.fin) + u32::from(flags.syn));
        self.snd_nxt = self.snd_nxt.max(end);
        let options =
            if flags.syn { self.syn_options(now, segment.extra) } else { self.options(now, &segment) };
        self.last_ack = ack.unwrap_or(0);
        self.queue.push_back(Sent { at: now, ecn, flags, seq, len, ack, window: segment.window, options });
    }

    fn syn_options(&self, now: Time, extra: Extra) -> Vec<TcpOption> {
        let (sack, timestamps) = match self.state {
            State::SynSent => self.agreed.asks,
            _ => (self.agreed.sack, self.agreed.timestamps),
        };
        let mut options = vec![TcpOption::Mss(OWN_MSS)];
        options.extend(sack.then_some(TcpOption::SackOk));
        options.extend(timestamps.then(|| TcpOption::Timestamp(Segment::timestamp_at(now), self.ts_recent)));
        options.extend(extra.window_scale().map(TcpOption::WindowScale));
        options
    }

    fn options(&self, now: Time, segment: &Segment) -> Vec<TcpOption> {
        let mut options = Vec::new();
        if self.agreed.timestamps {
            options.push(TcpOption::Timestamp(Segment::timestamp_at(now), self.ts_recent));
        }
        if !segment.sack.is_empty() {
            options.push(TcpOption::Sack(segment.sack.as_slice().to_vec()));
        }
        options
    }

    /// The next sequence number that is expected of the peer.
    fn rcv_nxt(&self) -> u32 {
        if self.state == State::SynSent {
            return 0;
        }
        (self.receiver.delivered() as u32).wrapping_add(1 + u32::from(self.receiver.is_finished()))
    }

    /// RFC 7323 section 4.3 (2): TS.Recent follows segments that are not beyond the last acknowledged byte.
    fn note_timestamp(&mut self, segment: &Segment) {
        let is_next = segment.flags.has(Flags::SYN) || segment.seq <= self.last_ack;
        if segment.timestamp != 0 && is_next {
            self.ts_recent = segment.timestamp;
        }
    }

    /// Remembers that the script calls the TSval of `sent` `named`.
    pub fn name_timestamp(&mut self, named: u32, sent: &Sent) {
        let stamp = sent.options.iter().find_map(|option| match option {
            TcpOption::Timestamp(value, _) => Some(*value),
            _ => None,
        });
        if let Some(stamp) = stamp {
            self.stamps.insert(named, stamp);
        }
    }

    /// A segment of the simulator, whose timestamp is its TSval, and the TSval of this end that it echoes.
    fn segment_of(&self, packet: &Packet) -> (Segment, u32) {
        let (mut timestamp, mut echo, mut sack) = (0, 0, SackBlocks::NONE);
        for option in packet.options.iter().flatten() {
            match option {
                TcpOption::Timestamp(value, named) if self.agreed.timestamps => {
                    (timestamp, echo) = (*value, self.stamps.get(named).copied().unwrap_or(0));
                }
                TcpOption::Sack(blocks) => sack = SackBlocks::from_recent(blocks.iter().copied()),
                _ => {}
            }
        }
        let segment = Segment {
            seq: packet.seq,
            ack: packet.ack.unwrap_or(0),
            window: packet.window.unwrap_or(0),
            payload: packet.len,
            flags: packet.flags.bits(),
            timestamp,
            sack,
            ..Segment::default()
        };
        (segment, echo)
    }

    // -----------------------------------------------------------------------------------------
    // What `struct tcp_info` shows

    /// The fields of `struct tcp_info` that the simulator has, by the names of scripts.
    #[must_use]
    pub fn info(&self) -> Names {
        let info = self.sender.info();
        let state = match info.phase {
            Phase::Open => u8::from(info.sacked > 0),
            Phase::Cwr => 2,
            Phase::Recovery => 3,
            Phase::Loss => 4,
        };
        let ssthresh = self.sender.ssthresh();
        let micros = |span: Option<Span>| span.map_or(0.0, |span| (span.as_nanos() / 1_000) as f64);
        let fields = [
            ("snd_cwnd", self.sender.cwnd().floor()),
            ("snd_ssthresh", if ssthresh.is_finite() { ssthresh.floor() } else { f64::from(0x7fff_ffff) }),
            ("ca_state", f64::from(state)),
            ("unacked", f64::from(info.outstanding)),
            ("sacked", f64::from(info.sacked)),
            ("lost", f64::from(info.lost)),
            ("retrans", f64::from(info.retransmitted)),
            ("reordering", f64::from(info.reordering)),
            ("delivered_ce", f64::from(info.marked)),
            ("rtt", micros(self.sender.srtt())),
            ("min_rtt", micros(info.min_rtt)),
            ("rto", micros(Some(self.sender.rto()))),
            ("snd_mss", f64::from(self.agreed.mss.unwrap_or(0))),
            ("total_retrans", self.sender.stats().retransmits as f64),
            ("bytes_acked", self.sender.stats().bytes_acked as f64),
            ("bytes_received", self.receiver.delivered() as f64),
        ];
        fields.into_iter().map(|(name, value)| (format!("tcpi_{name}"), value)).collect()
    }
}
