//! The sending end: permission to send, the retransmission timer, and the application's side.
//!
//! RFC 9293 sections 3.5, 3.6, 3.7.4 and 3.8; RFC 6298 section 5 (times of the timer). ACKs are handled in
//! [`recovery`](super::recovery) and [`rack`](super::rack). Cost: state of a few hundred bytes; O(1) per
//! segment, no allocation while nothing is lost and no record per segment, except with `rack`.

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::congestion::{CongestionEvent, Window};
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::tcp::{Halving, Idle, Inflate, SackRecovery, TcpParams};

use super::accurate::Marks;
use super::rack::RackMemory;
use super::receiver::window_scale;
use super::recovery::{Cut, Recovery};
use super::rtt::Rtt;
use super::scoreboard::Scoreboard;
use super::segment::{Flags, Segment, SegmentSink};
use super::seq::{unwrap, wrap};
use crate::congestion::control::Control;
use crate::congestion::window::{self, basis, first_window};

mod handshake;
mod idle;
mod prediction;

/// The size of an unlimited supply: more than any run can send, and far from overflow.
const UNLIMITED: u64 = u64::MAX / 4;

/// The sending end of a connection. Names of state as in RFC 9293 section 3.3.1 and RFC 5681.
#[derive(Debug)]
pub struct Sender {
    pub(super) params: Arc<TcpParams>,
    isn: u32,
    phase: Phase,
    /// Oldest unacknowledged offset.
    pub(super) snd_una: u64,
    /// Next offset to send; goes back to `snd_una` on a timeout.
    pub(super) snd_nxt: u64,
    /// The end of all data ever sent.
    pub(super) snd_max: u64,
    /// The window the receiver advertised, in bytes; at most its buffer where the field rounds up.
    pub(super) snd_wnd: u64,
    scale: u8,
    /// The largest window in use, which is at most 2^30. Cached: each segment reads it.
    pub(super) largest_window: u32,
    /// The end of the application's data.
    data_end: u64,
    closed: bool,
    pub(super) window: Window,
    pub(super) control: Control,
    pub(super) recovery: Recovery,
    pub(super) scoreboard: Scoreboard,
    /// The state of [`SackRecovery::Rack`].
    pub(super) rack: RackMemory,
    pub(super) rtt: Rtt,
    /// The segment being timed: its end and its transmission time.
    pub(super) timed: Option<(u64, Time)>,
    timer: Option<Time>,
    last_send: Time,
    pub(super) ecn_agreed: bool,
    /// Whether ACKs count marks, as Prague requires.
    pub(super) accurate: bool,
    /// Whether the next new data segment carries CWR.
    pub(super) say_cwr: bool,
    /// Whether the receiver reports selective acknowledgments. Cached, like the next fields: each segment
    /// reads them.
    pub(super) has_sack: bool,
    /// Whether segments carry timestamps.
    stamps: bool,
    /// Whether the control [observes
    /// segments](apportion_core::congestion::CongestionControl::observes_segments).
    pub(super) observes_segments: bool,
    /// Whether the control [reads all](Control::reads_whole_acks) of an ACK.
    pub(super) whole_acks: bool,
    /// Whether a segment needs more than its transmission: a hook of the control, or pacing.
    pub(super) is_controlled: bool,
    pub(super) stats: SenderStats,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    /// The SYN has been sent, with this number of timeouts.
    SynSent {
        timeouts: u16,
    },
    Open,
}

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Segments sent, retransmissions, SYN and FIN included.
    pub segments: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// Expiries of the retransmission timer with data outstanding.
    pub timeouts: u64,
    /// Expiries of the timer with everything acknowledged ([`Idle::Timeout`]).
    pub idle_timeouts: u64,
    /// Losses found by duplicate ACKs, or by time.
    pub fast_retransmits: u64,
    /// Tail loss probes.
    pub tail_loss_probes: u64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Reductions because of ECN.
    pub ecn_reductions: u64,
    /// Probes of a closed window.
    pub window_probes: u64,
}

impl Sender {
    /// A connection that starts at the sequence number `isn`.
    #[must_use]
    pub fn new(params: Arc<TcpParams>, isn: u32) -> Self {
        let control = Control::new(&params);
        let whole_acks = control.reads_whole_acks();
        Self {
            isn,
            phase: Phase::Closed,
            snd_una: 0,
            snd_nxt: 0,
            snd_max: 0,
            snd_wnd: params.largest_window(),
            largest_window: u32::try_from(params.largest_window()).unwrap_or(u32::MAX),
            // Without a handshake both ends take the scale from their common parameters.
            scale: window_scale(&params),
            data_end: u64::from(params.syn),
            closed: false,
            window: first_window(&params),
            observes_segments: control.observes_segments(),
            whole_acks,
            is_controlled: whole_acks || params.pacing || params.algorithm.entry().paces(),
            has_sack: params.sack(),
            stamps: params.stamps(),
            control,
            recovery: Recovery::default(),
            scoreboard: Scoreboard::new(),
            rack: RackMemory::default(),
            rtt: Rtt::new(&params),
            timed: None,
            timer: None,
            last_send: Time::ZERO,
            ecn_agreed: params.offers_ecn() && !params.syn,
            accurate: params.algorithm.is_l4s() && !params.syn,
            say_cwr: false,
            stats: SenderStats::default(),
            params,
        }
    }

    /// Shifts the ticks of this host's clock: with a coarse `tick`, hosts with different phases measure
    /// differently.
    #[must_use]
    pub fn with_clock_phase(mut self, phase: Span) -> Self {
        self.rtt.set_phase(phase);
        self
    }

    /// Opens the connection: a SYN if the profile has one, else the available data.
    pub fn start<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if self.phase != Phase::Closed {
            return;
        }
        if self.uses_rack() {
            self.start_pacing();
        }
        if self.params.syn {
            self.phase = Phase::SynSent { timeouts: 0 };
            // One segment until the handshake is complete, and after it if its SYN was lost (RFC 5681 section
            // 3.1).
            self.window.cwnd = 1.0;
            self.send_syn(now, out);
        } else {
            self.phase = Phase::Open;
            self.send_available(now, u32::MAX, out);
        }
    }

    /// The application hands over `bytes`.
    pub fn supply<W: SegmentSink>(&mut self, now: Time, bytes: u64, out: &mut W) {
        if !self.closed {
            self.data_end = self.data_end.saturating_add(bytes).min(UNLIMITED);
            self.send_allowed(now, u32::MAX, out);
        }
    }

    /// The application always has data.
    pub fn supply_unlimited<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.supply(now, u64::MAX, out);
    }

    /// The bytes for which the send buffer has room.
    #[must_use]
    pub fn room(&self) -> u64 {
        let held = self.data_end.saturating_sub(self.snd_una);
        self.params.send_buffer.map_or(u64::MAX, |size| size.get().saturating_sub(held))
    }

    /// The application has no more data: a FIN follows the last byte, if the profile has one. An unlimited
    /// supply ends with the data already sent.
    pub fn close<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if self.closed {
            return;
        }
        self.closed = true;
        if self.data_end == UNLIMITED {
            self.data_end = self.snd_max.max(u64::from(self.params.syn));
        }
        if self.is_done() {
            self.timer = None;
        }
        self.send_allowed(now, u32::MAX, out);
    }

    /// Bytes that `segment` acknowledges for the first time.
    #[must_use]
    pub fn newly_acknowledged(&self, segment: &Segment) -> u64 {
        let ack = unwrap(self.isn, segment.ack, self.snd_una).filter(|&ack| ack <= self.snd_max);
        ack.map_or(0, |ack| ack.saturating_sub(self.snd_una))
    }

    /// A segment arrives.
    pub fn on_segment<W: SegmentSink>(&mut self, now: Time, segment: &Segment, out: &mut W) {
        if !segment.flags.has(Flags::ACK) || self.phase == Phase::Closed {
            return;
        }
        // RFC 9293 section 3.10.7.4: an ACK of data that were never sent is ignored.
        let Some(ack) = unwrap(self.isn, segment.ack, self.snd_una).filter(|&ack| ack <= self.snd_max) else {
            return;
        };
        match self.phase {
            Phase::SynSent { timeouts } if ack > 0 && segment.flags.has(Flags::SYN) => {
                self.establish(now, ack, segment, timeouts);
                self.send_available(now, u32::MAX, out);
            }
            Phase::Open if !segment.flags.has(Flags::SYN) => {
                let window_moved = self.note_window(segment);
                if self.is_predicted(ack, segment) {
                    self.on_predicted(now, ack, out);
                } else if self.uses_rack() {
                    self.on_rack_ack(now, ack, segment, out);
                } else {
                    self.on_ack(now, ack, segment, window_moved, out);
                }
            }
            _ => {}
        }
    }

    /// The time of [`next_timer`](Self::next_timer) has come; earlier calls do nothing.
    pub fn on_timer<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if self.phase == Phase::Open && self.uses_rack() {
            self.on_rack_timers(now, out);
        }
        if self.timer.is_none_or(|at| now < at) {
            return;
        }
        self.timer = None;
        match self.phase {
            Phase::Closed => {}
            Phase::SynSent { timeouts } => {
                self.phase = Phase::SynSent { timeouts: timeouts.saturating_add(1) };
                if u32::from(timeouts) >= self.params.linear_syns {
                    self.rtt.back_off(&self.params);
                }
                self.stats.timeouts += 1;
                self.send_syn(now, out);
            }
            Phase::Open if self.snd_una < self.data_end && self.window_is_shut() => self.probe(now, out),
            Phase::Open if self.snd_una == self.snd_max => self.idle_timeout(now),
            Phase::Open if self.uses_rack() => self.time_out_rack(now, out),
            Phase::Open => self.time_out(now, out),
        }
    }

    /// The time at which [`on_timer`](Self::on_timer) must be called.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        if !self.uses_rack() {
            return self.timer;
        }
        self.rack.next_timer(self.timer)
    }

    /// The counters so far.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// The congestion window in segments, without the segments that duplicate ACKs add.
    #[must_use]
    pub const fn cwnd(&self) -> f64 {
        self.window.cwnd
    }

    /// The slow start threshold in segments.
    #[must_use]
    pub const fn ssthresh(&self) -> f64 {
        self.window.ssthresh
    }

    /// The smoothed round-trip time, once measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt(&self.params)
    }

    /// The present retransmission timeout.
    #[must_use]
    pub fn rto(&self) -> Span {
        self.rtt.timeout()
    }

    /// Bytes outstanding.
    #[must_use]
    pub const fn flight(&self) -> u64 {
        self.snd_nxt - self.snd_una
    }

    /// Whether everything is acknowledged after [`close`](Self::close).
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.closed && self.snd_una == self.end()
    }

    // -----------------------------------------------------------------------------------------
    // Sending

    /// Sends the segments that the windows permit, at most `burst`.
    #[inline(always)]
    pub(super) fn send_available<W: SegmentSink>(&mut self, now: Time, mut burst: u32, out: &mut W) {
        if self.phase != Phase::Open {
            return;
        }
        if self.uses_rack() {
            self.send_rack(now, out);
            return;
        }
        self.restart_after_idle(now);
        let limit = self.limit(self.window.cwnd + self.recovery.inflation);
        while burst > 0 && self.send_next(now, limit, out) {
            burst -= 1;
        }
        self.watch_shut_window(now);
    }

    /// Sends the next segment if it ends at or below `limit`.
    #[inline(always)]
    pub(super) fn send_next<W: SegmentSink>(&mut self, now: Time, limit: u64, out: &mut W) -> bool {
        if self.skips_sacked() && self.snd_nxt < self.snd_max {
            self.snd_nxt = self.scoreboard.first_missing(self.snd_nxt).min(self.snd_max);
        }
        let from = self.snd_nxt;
        if from >= self.end() {
            return false;
        }
        let len = self.segment_at(from);
        if from + len > limit {
            return false;
        }
        let small = len < self.params.segment.get() && from >= self.snd_max;
        if small && self.params.nagle && !self.closed && self.delays_small() {
            return false;
        }
        if small && self.uses_rack() {
            self.rack.small_end = from + len;
        }
        self.transmit(now, from, len, out);
        true
    }

    /// Whether a small segment waits: while data are outstanding (RFC 9293 section 3.7.4), in Linux only while a
    /// small segment is (Minshall, draft-minshall-nagle-01).
    fn delays_small(&self) -> bool {
        self.snd_una < if self.uses_rack() { self.rack.small_end } else { self.snd_max }
    }

    /// Sends the segment at `snd_una` again.
    pub(super) fn retransmit<W: SegmentSink>(&mut self, now: Time, from: u64, out: &mut W) -> u64 {
        let len = self.segment_at(from).min(self.snd_max - from);
        self.transmit(now, from, len, out);
        from + len
    }

    /// The offset below which a window of `segments` and the receiver's window permit transmissions.
    pub(super) fn limit(&self, segments: f64) -> u64 {
        // Data that arrived above the cumulative ACK is no longer in flight.
        let arrived =
            if self.skips_sacked() { self.scoreboard.sacked_in(self.snd_una, self.snd_nxt) } else { 0 };
        self.limit_beyond(segments, arrived)
    }

    /// Returns the limit as [`limit`](Self::limit) does, with `arrived` bytes that arrived above the
    /// cumulative ACK.
    #[inline(always)]
    fn limit_beyond(&self, segments: f64, arrived: u64) -> u64 {
        // The receiver's window, which limits it below, is less than 2^32 segments (RFC 7323 section 2.3).
        let cwnd = u64::from(segments as u32).saturating_mul(self.params.segment.get());
        (self.snd_una + cwnd.saturating_add(arrived)).min(self.snd_una + self.snd_wnd)
    }

    /// Whether reported data is skipped after a timeout. ns-2's Sack1 goes back and sends everything again.
    fn skips_sacked(&self) -> bool {
        self.params.sack_recovery == SackRecovery::Rfc6675 && !self.scoreboard.is_empty()
    }

    /// Payload bytes of the segment that starts at `from`.
    fn segment_at(&self, from: u64) -> u64 {
        let len = self.params.segment.get().min(self.data_end.saturating_sub(from));
        match self.scoreboard.next_range(from) {
            Some(next) => len.min(next - from),
            None => len,
        }
    }

    #[inline(always)]
    pub(super) fn transmit<W: SegmentSink>(&mut self, now: Time, from: u64, len: u64, out: &mut W) {
        let is_new = from >= self.snd_max;
        // A record of segments keeps their borders: a FIN is sent again only if it was sent before.
        let may_end = is_new || !self.uses_rack() || self.snd_max > self.data_end;
        let fin = self.closed && self.params.fin && from + len == self.data_end && may_end;
        let mut flags = self.plain_flags();
        if fin {
            flags = flags | Flags::FIN;
        }
        let ecn = self.mark(&mut flags, is_new && len > 0);
        let to = from + len + u64::from(fin);
        self.account(now, from, to);
        if self.uses_rack() {
            self.record_transmission(now, to, len, is_new);
        }
        self.snd_nxt = self.snd_nxt.max(to);
        let (segment, size) = self.segment(now, from, len, flags);
        out.send(segment, size, ecn);
    }

    /// The flags of each segment. With Accurate ECN they count the packets from the receiver (RFC 9768 section 3.2), of
    /// which none can be marked.
    #[inline(always)]
    fn plain_flags(&self) -> Flags {
        if self.accurate { Flags::ACK | Marks::NONE.field() } else { Flags::ACK }
    }

    /// The ECN field of a segment; CWR joins the flags of the first new data after a reduction.
    #[inline(always)]
    fn mark(&mut self, flags: &mut Flags, is_new_data: bool) -> Ecn {
        if !self.ecn_agreed {
            return Ecn::NotEct;
        }
        if !is_new_data {
            // RFC 3168 section 6.1.5: retransmissions are not ECN-capable.
            return if self.params.algorithm.is_wholly_capable() { self.codepoint() } else { Ecn::NotEct };
        }
        if self.say_cwr {
            self.say_cwr = false;
            *flags = *flags | Flags::CWR;
        }
        self.codepoint()
    }

    /// The segment of `len` bytes from an offset on, and its size on the wire.
    #[inline(always)]
    fn segment(&self, now: Time, from: u64, len: u64, flags: Flags) -> (Segment, Bytes) {
        let segment = Segment {
            seq: wrap(self.isn, from),
            ack: u32::from(self.params.syn),
            window: u16::MAX,
            payload: u16::try_from(len).unwrap_or(u16::MAX),
            flags,
            timestamp: self.timestamp(now),
            ..Segment::default()
        };
        let size = if len > 0 { Bytes::new(len) + self.params.header } else { self.params.ack };
        (segment, size)
    }

    /// RFC 9331 section 4.1: ECT(1) requests L4S marks; section 4.2: only with accurate feedback.
    fn codepoint(&self) -> Ecn {
        if self.accurate { Ecn::Ect1 } else { Ecn::Ect0 }
    }

    /// Records the transmission of `from..to`: statistics, the timed segment, the timer.
    #[inline(always)]
    fn account(&mut self, now: Time, from: u64, to: u64) {
        self.stats.segments += 1;
        let idle = self.snd_una == self.snd_max;
        if from < self.snd_max {
            self.stats.retransmits += 1;
            // Karn: a retransmitted segment cannot be timed (RFC 6298 section 3).
            self.timed = self.timed.filter(|&(end, _)| end <= from || end > to);
        } else if self.timed.is_none() && (!self.uses_rack() || from == 0) {
            // The record of RACK times every segment but the SYN.
            self.timed = Some((to, now));
        }
        self.snd_max = self.snd_max.max(to);
        self.last_send = now;
        // RFC 6298 (5.1); a timer that ran while nothing was outstanding (Idle::Timeout) restarts.
        if self.timer.is_none() || idle {
            self.restart_timer(now);
        }
    }

    // -----------------------------------------------------------------------------------------
    // The timer

    pub(super) fn restart_timer(&mut self, now: Time) {
        self.timer = Some(now + self.rtt.timeout());
    }

    pub(super) fn set_timer(&mut self, timer: Option<Time>) {
        self.timer = timer;
    }

    pub(super) const fn retransmission_timer(&self) -> Option<Time> {
        self.timer
    }

    pub(super) const fn isn(&self) -> u32 {
        self.isn
    }

    pub(super) const fn data_end(&self) -> u64 {
        self.data_end
    }

    /// Whether losses are found by [`rack`](super::rack) rather than [`recovery`](super::recovery).
    pub(super) fn uses_rack(&self) -> bool {
        self.params.sack_recovery == SackRecovery::Rack
    }

    fn timestamp(&self, now: Time) -> u32 {
        if self.stamps { Segment::timestamp_at(now) } else { 0 }
    }

    /// The retransmission timer expired: everything outstanding is presumed lost.
    fn time_out<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.stats.timeouts += 1;
        let again = self.rtt.is_backed_off();
        if self.params.inflate == Inflate::Cwnd {
            self.window.cwnd += self.recovery.inflation;
        }
        // RFC 5681 section 3.1: a segment that the timer has sent again already leaves ssthresh as it is.
        let again = again && self.params.halving == Halving::Flight;
        let event = CongestionEvent { again, ..self.congestion_event(now, self.flight_segments()) };
        window::time_out(&self.params, &mut self.window, &mut *self.control, &event);
        self.rtt.back_off(&self.params);
        self.abandon_recovery(Cut::Timeout);
        self.timed = None;
        // Go back to the oldest missing byte (RFC 6298 (5.4), RFC 5681 section 3.1).
        self.snd_nxt = self.snd_una;
        self.restart_timer(now);
        self.send_available(now, u32::MAX, out);
    }

    // -----------------------------------------------------------------------------------------
    // Bookkeeping that ACKs share

    /// Everything below `ack` has arrived. Takes an RTT sample and restarts the timer.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: Time, ack: u64) {
        let payload_end = ack.min(self.data_end);
        self.stats.bytes_acked += payload_end.saturating_sub(self.snd_una.max(u64::from(self.params.syn)));
        // Whether the timer continues if all is acknowledged. In ns-2 with `timerfix_` false it stops after
        // an ACK of more than was sent again since a timeout.
        let times_idle = self.params.idle == Idle::Timeout && !(self.params.stale_rto && self.snd_nxt < ack);
        self.snd_una = ack;
        self.snd_nxt = self.snd_nxt.max(ack);
        self.scoreboard.acknowledge(ack);
        self.time_ack(now, ack);
        if self.is_done() || (ack == self.snd_max && !times_idle) {
            self.timer = None;
        }
    }

    /// Takes an RTT sample if `ack` covers the timed segment, and restarts the timer.
    #[inline(always)]
    fn time_ack(&mut self, now: Time, ack: u64) {
        let stale = self.params.stale_rto.then(|| self.rtt.timeout());
        if let Some((_, sent)) = self.timed.filter(|&(end, _)| ack >= end) {
            self.timed = None;
            self.rtt.sample(&self.params, sent, now);
        } else if self.params.ack_ends_backoff {
            self.rtt.end_backoff(&self.params);
        }
        // RFC 6298 (5.3).
        self.timer = Some(now + stale.unwrap_or_else(|| self.rtt.timeout()));
    }

    /// Takes the window of `segment`. Returns whether it differs from the last one.
    fn note_window(&mut self, segment: &Segment) -> bool {
        let before = self.snd_wnd;
        self.snd_wnd = (u64::from(segment.window) << self.scale).min(u64::from(self.largest_window));
        before != self.snd_wnd
    }

    /// `bytes` in segments.
    pub(super) fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.params.segment.get() as f64
    }

    /// The receiver's window in segments.
    pub(super) fn window_segments(&self) -> f64 {
        self.segments(self.snd_wnd)
    }

    /// The outstanding data in segments (RFC 5681 FlightSize).
    pub(super) fn flight_segments(&self) -> f64 {
        self.segments(self.snd_max - self.snd_una)
    }

    /// A congestion signal with `flight` segments outstanding.
    pub(super) fn congestion_event(&self, now: Time, flight: f64) -> CongestionEvent {
        let (cwnd, receive_window) = (self.window.cwnd, self.window_segments());
        let basis = basis(&self.params, cwnd, receive_window, flight);
        CongestionEvent { now, cwnd, basis, receive_window, in_flight: flight as u32, again: false }
    }

    /// The offset behind the last one that will be sent.
    pub(super) fn end(&self) -> u64 {
        self.data_end + u64::from(self.closed && self.params.fin)
    }
}
