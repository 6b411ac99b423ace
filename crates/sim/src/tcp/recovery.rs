//! The sender's reaction to an ACK: growth, duplicate ACKs, fast retransmit and recovery, ECN.
//!
//! RFC 5681 section 3.2 (Reno), RFC 6582 (NewReno), RFC 6675 (SACK), RFC 3042 (limited transmit), RFC 3168
//! section 6.1.2 (ECN). Tahoe and the `pipe` recovery of ns-2's Sack1 as described by Fall and Floyd,
//! "Simulation-based comparisons of Tahoe, Reno, and SACK TCP", CCR 26(3), 1996, and as traces of ns-2.35
//! show (validation/forced-loss). Deviations: with a window of one segment an ECN echo does not make the
//! sender wait for its timer (RFC 3168 section 6.1.2). Cost: O(1) per ACK; O(ranges reported) in SACK
//! recovery.

use apportion_core::congestion::{Ack, CongestionControl, Phase, Response};
use apportion_core::units::Time;
use apportion_scenario::tcp::{Halving, Inflate, LossRecovery, RecoveryExit, SackRecovery};

use super::segment::{Flags, Segment, SegmentSink};
use super::sender::Sender;
use super::seq::unwrap;
use crate::congestion::control::{Control, Sign};
use crate::congestion::window::{hold, reduce};

/// The state of a sender between a loss and its repair.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// Duplicate ACKs in a row.
    pub dupacks: u32,
    /// Segments of limited transmit since the last new ACK.
    extra: u32,
    /// Segments that duplicate ACKs add to the window, separate from `cwnd`.
    pub inflation: f64,
    /// Whether fast recovery is active.
    active: bool,
    /// The end of the data sent when the last loss was noticed (RFC 6582 section 3.1).
    recover: u64,
    /// Whether no partial ACK has come in this recovery.
    first_partial: bool,
    /// ns-2 Sack1: segments in flight.
    pipe: f64,
    /// The offset below which everything missing has been sent again (RFC 6675 HighRxt).
    high_rxt: u64,
    /// Whether the rescue retransmission of this recovery is used up (RFC 6675 section 4, NextSeg rule 4).
    rescued: bool,
    last_cut: Option<Cut>,
    /// Whether no new data has been acknowledged since a timeout.
    silent: bool,
    /// The end of the data sent at the last reduction because of ECN.
    cwr_end: u64,
}

/// The reason of the last reduction of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Duplicate ACKs.
    FastRetransmit,
    /// The timer.
    Timeout,
    /// A mark.
    Ecn,
}

impl Recovery {
    /// Whether no loss is known, and no ACK was a duplicate.
    #[must_use]
    pub const fn is_at_rest(&self) -> bool {
        !self.active && !self.silent && self.dupacks == 0
    }
}

impl Sender {
    /// Handles an ACK on an open connection. `ack` is within the data sent.
    pub(super) fn on_ack<W: SegmentSink>(
        &mut self,
        now: Time,
        ack: u64,
        segment: &Segment,
        window_moved: bool,
        out: &mut W,
    ) {
        let news = self.note_sack(ack, segment);
        let was_active = self.recovery.active;
        let echo = self.ecn_agreed && segment.flags.has(Flags::ECE) && self.heeds_echo(now);
        if ack > self.snd_una {
            self.on_new_ack(now, ack, echo, out);
        } else if ack == self.snd_una && self.is_duplicate(segment, news, window_moved) {
            self.on_duplicate(now, out);
        }
        // ns-2's Sack1 and FullTcp send only the retransmission with the ACK that starts recovery.
        let starts = self.recovery.active && !was_active;
        let pipe = self.has_sack && self.params.sack_recovery == SackRecovery::Pipe;
        if !(starts && (pipe || self.params.inflate == Inflate::Cwnd)) {
            self.send_allowed(now, self.burst(), out);
        }
    }

    /// Sends the data that recovery or else the windows permit, at most `burst` segments of new data outside
    /// SACK recovery.
    #[inline(always)]
    pub(super) fn send_allowed<W: SegmentSink>(&mut self, now: Time, burst: u32, out: &mut W) {
        let sack = self.has_sack;
        if sack && self.recovery.active {
            self.send_in_recovery(now, out);
        } else if sack && self.params.sack_recovery == SackRecovery::Pipe && self.recovery.dupacks > 0 {
            // ns-2's Sack1 sends no new data while it waits for the third duplicate ACK.
        } else {
            self.send_available(now, burst, out);
        }
    }

    /// RFC 5681 section 2, RFC 6675 section 2 (with SACK, an ACK that reports news).
    fn is_duplicate(&self, segment: &Segment, news: bool, window_moved: bool) -> bool {
        let outstanding = self.snd_una < self.snd_max;
        let plain = segment.payload == 0 && !segment.flags.has(Flags::FIN);
        let reports = match self.params.sack_recovery {
            _ if !self.has_sack => !window_moved,
            SackRecovery::Rfc6675 | SackRecovery::Rack => news,
            // ns-2's Sack1 does not count between a timeout and the next new ACK.
            SackRecovery::Pipe => news && !self.recovery.silent,
        };
        outstanding && plain && reports
    }

    /// Records the SACK option. Returns whether it reports anything new.
    fn note_sack(&mut self, ack: u64, segment: &Segment) -> bool {
        let mut news = false;
        if self.has_sack {
            for &(from, to) in segment.sack.as_slice() {
                let near = self.snd_una;
                let (from, to) = (unwrap(self.isn(), from, near), unwrap(self.isn(), to, near));
                if let (Some(from), Some(to)) = (from, to)
                    && to <= self.snd_max
                {
                    news |= self.scoreboard.add(from.max(ack), to);
                }
            }
        }
        news
    }

    fn on_new_ack<W: SegmentSink>(&mut self, now: Time, ack: u64, echo: bool, out: &mut W) {
        let (bytes, flight, cwnd) = (ack - self.snd_una, self.flight(), self.window.cwnd);
        let was_active = self.recovery.active;
        if was_active && ack < self.recovery.recover && self.recovers_by_parts() {
            self.on_partial_ack(now, ack, self.segments(bytes), out);
            return;
        }
        self.advance(now, ack);
        if self.params.inflate == Inflate::Cwnd && self.recovery.dupacks >= self.params.dupack_threshold {
            // Whatever the duplicates stood for, the window is not above the threshold after them.
            self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        }
        self.recovery.dupacks = 0;
        self.recovery.extra = 0;
        self.recovery.inflation = 0.0;
        self.recovery.active = false;
        self.recovery.silent = false;
        if self.params.sack_recovery == SackRecovery::Pipe {
            // ns-2's Sack1 remembers reports only while nothing new is acknowledged.
            self.scoreboard.clear();
        }
        if was_active && (self.params.exit != RecoveryExit::Grow || self.has_sack) {
            self.leave_recovery();
        } else if !echo {
            self.grow_window(now, bytes, flight, cwnd);
        }
    }

    /// Grows the window with an ACK of `acked` bytes, before which `flight` bytes were outstanding and the
    /// window was `cwnd`.
    #[inline(always)]
    pub(super) fn grow_window(&mut self, now: Time, bytes: u64, flight: u64, cwnd: f64) {
        let abc_limit = self.params.abc_limit;
        let counted = if self.params.byte_counting { self.segments(bytes) } else { 1.0 };
        if let Control::Reno(reno) = &mut self.control {
            return reno.grow(&mut self.window, counted, abc_limit);
        }
        let acked = self.segments(bytes);
        let srtt = self.srtt().unwrap_or_default();
        let ack = Ack {
            now,
            phase: Phase::Open,
            acked,
            counted,
            abc_limit,
            delivered: acked.ceil() as u32,
            lost: 0,
            prior_in_flight: self.segments(flight).ceil() as u32,
            in_flight: self.flight_segments().ceil() as u32,
            number: self.snd_una,
            last_sent: self.snd_max,
            latest: None,
            rtt: None,
            srtt,
            min_rtt: srtt,
            slow_start: self.window.is_slow_start(),
            // RFC 9438 section 5.8: whether the window limited the sender.
            is_limited: self.segments(flight) + 1.0 > cwnd,
            may_grow: true,
        };
        self.control.on_ack(&mut self.window, &ack);
    }

    fn loss_recovery(&self) -> LossRecovery {
        self.params.algorithm.entry().recovery
    }

    /// Whether this sender stays in recovery until all losses of one window are repaired.
    fn recovers_by_parts(&self) -> bool {
        matches!(self.loss_recovery(), LossRecovery::NewReno | LossRecovery::Sack)
    }

    /// Sets the window when everything sent before the loss has arrived.
    fn leave_recovery(&mut self) {
        let ssthresh = self.window.ssthresh;
        self.window.cwnd = match self.params.exit {
            // RFC 6582 section 3.2 step 3: no burst if little is outstanding.
            // ns-2's Sack1 keeps the halved window, and this ACK does not make it grow.
            RecoveryExit::Grow => self.window.cwnd,
            RecoveryExit::Flight if !self.has_sack => ssthresh.min(self.flight_segments().max(1.0) + 1.0),
            _ => ssthresh,
        };
    }

    /// New data is acknowledged, but not all data sent before the loss: the next hole is lost too.
    fn on_partial_ack<W: SegmentSink>(&mut self, now: Time, ack: u64, acked: f64, out: &mut W) {
        let timer = self.next_timer();
        self.advance(now, ack);
        if self.has_sack {
            // Fall and Floyd 1996 section 5: the original and its retransmission have both left the pipe.
            self.recovery.pipe -= 2.0;
            return;
        }
        // RFC 6582 section 3.2 step 3: only the first partial ACK restarts the timer ("Impatient").
        if !self.recovery.first_partial {
            self.set_timer(timer);
        }
        self.recovery.first_partial = false;
        // RFC 6582 section 3.2 step 3: deflate by what was acknowledged, add back one segment.
        let deflated = self.recovery.inflation - acked;
        self.window.cwnd = (self.window.cwnd + deflated.min(0.0)).max(1.0);
        self.recovery.inflation = deflated.max(0.0) + 1.0;
        self.retransmit(now, ack, out);
    }

    /// The number of segments that one ACK may release: ns-2's NewReno smooths the output of duplicate ACKs.
    fn burst(&self) -> u32 {
        let smooth = self.recovery.dupacks >= self.params.dupack_threshold
            && self.loss_recovery() == LossRecovery::NewReno;
        self.params.recovery_burst.filter(|_| smooth).unwrap_or(u32::MAX)
    }

    fn on_duplicate<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.recovery.dupacks += 1;
        let (dupacks, threshold) = (self.recovery.dupacks, self.params.dupack_threshold);
        if self.recovery.active {
            self.recovery.pipe -= 1.0;
        } else if (dupacks == threshold || dupacks < threshold && self.first_hole_is_lost())
            && (self.is_fresh_loss() || !self.params.bug_fix)
        {
            self.fast_retransmit(now, out);
        }
        if dupacks >= threshold {
            self.inflate(dupacks);
        } else if self.params.limited_transmit && !self.recovery.active {
            // RFC 3042 section 2.
            let limit = self.limit(self.window.cwnd + f64::from(dupacks));
            self.recovery.extra += u32::from(self.send_next(now, limit, out));
        }
    }

    /// Whether the missing data was sent after the last loss was noticed (RFC 6582 section 3.2 step 1). The
    /// very first loss has nothing to be compared with.
    fn is_fresh_loss(&self) -> bool {
        // A SACK recovery ends when `recover` is reached: data missing from there on is a new loss (RFC 6675
        // section 5).
        let reached = self.has_sack && self.recovery.last_cut != Some(Cut::Timeout);
        let beyond = self.recovery.recover + u64::from(!reached);
        let again = self.params.fast_again && self.recovery.last_cut == Some(Cut::FastRetransmit);
        self.snd_una >= beyond || self.recovery.last_cut.is_none() || again
    }

    /// RFC 6675 section 5 step 2: enough data has been reported above the first hole.
    fn first_hole_is_lost(&self) -> bool {
        self.has_sack
            && self.params.sack_recovery == SackRecovery::Rfc6675
            && self.lost_below() > self.snd_una
    }

    /// RFC 5681 section 3.2 steps 3 and 4: segments that have left the network make room for others.
    fn inflate(&mut self, dupacks: u32) {
        if self.has_sack || self.loss_recovery() == LossRecovery::Tahoe {
            return;
        }
        let inflates = match self.params.inflate {
            Inflate::Recovery | Inflate::Cwnd => self.recovery.active,
            Inflate::Always => true,
        };
        if inflates && dupacks == self.params.dupack_threshold {
            self.recovery.inflation = f64::from(dupacks);
        } else if inflates {
            self.recovery.inflation += 1.0;
        } else if self.params.inflate == Inflate::Cwnd && dupacks > self.params.dupack_threshold {
            // `bug_fix` suppresses the retransmission, but not the growth after it.
            self.window.cwnd += 1.0;
        }
    }

    /// RFC 5681 section 3.2 step 2, RFC 6582 section 3.2 step 2, RFC 6675 section 5 step 4.
    fn fast_retransmit<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.stats.fast_retransmits += 1;
        // RFC 3168 section 6.1.2: one reduction for one window, marked or lost.
        if self.snd_una >= self.recovery.cwr_end {
            // RFC 5681 section 3.2 step 2: segments of limited transmit do not count.
            let flight = self.flight_segments() - f64::from(self.recovery.extra);
            if self.reduce_for(now, flight, CongestionControl::on_loss) == Response::Ignore {
                hold(&mut self.window);
            }
        }
        self.recovery.recover = self.snd_max;
        self.recovery.last_cut = Some(Cut::FastRetransmit);
        self.timed = None;
        if self.loss_recovery() == LossRecovery::Tahoe {
            self.window.cwnd = 1.0;
            self.snd_nxt = self.snd_una;
            self.restart_timer(now);
            return;
        }
        self.recovery.active = true;
        self.recovery.first_partial = true;
        self.recovery.rescued = false;
        self.recovery.pipe = self.flight_segments() - f64::from(self.recovery.dupacks);
        self.restart_timer(now);
        self.recovery.high_rxt = self.retransmit(now, self.snd_una, out);
    }

    /// Reduces the window for a congestion signal with `flight` segments outstanding.
    fn reduce_for(&mut self, now: Time, flight: f64, sign: Sign) -> Response {
        let event = self.congestion_event(now, flight);
        let response = sign(&mut *self.control, &mut self.window, &event);
        match response {
            Response::Reduce(left) => reduce(&self.params, &mut self.window, left),
            Response::Done => hold(&mut self.window),
            Response::Ignore => {}
        }
        response
    }

    /// Ends recovery without success.
    pub(super) fn abandon_recovery(&mut self, cut: Cut) {
        // Fall and Floyd's Tahoe goes on counting, so that data sent before does not look like a new loss.
        let counts_on = self.loss_recovery() == LossRecovery::Tahoe;
        self.recovery = Recovery {
            dupacks: if counts_on { self.recovery.dupacks } else { 0 },
            recover: self.snd_max,
            last_cut: Some(cut),
            silent: cut == Cut::Timeout,
            cwr_end: self.recovery.cwr_end,
            ..Recovery::default()
        };
        if self.params.sack_recovery == SackRecovery::Pipe {
            self.scoreboard.clear();
        }
    }

    /// Notes that the handshake took more than one SYN.
    pub(super) fn syn_lost(&mut self) {
        match self.params.halving {
            // RFC 6298 (5.7).
            Halving::Flight => self.rtt.syn_was_lost(&self.params),
            // ns-2 treats its SYN as any packet: the threshold falls too.
            Halving::Window if !self.uses_rack() => self.window.ssthresh = 2.0,
            Halving::Window => {}
        }
    }

    // -----------------------------------------------------------------------------------------
    // SACK

    fn lost_below(&self) -> u64 {
        self.scoreboard.lost_below(self.params.segment.get(), self.params.dupack_threshold)
    }

    /// Sends while the pipe is not full (RFC 6675 section 5 step C; Fall and Floyd 1996 section 5).
    fn send_in_recovery<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        let segment = self.params.segment.get();
        let lost_below = self.lost_below();
        let window = self.window.cwnd.min(self.window_segments());
        loop {
            let pipe = match self.params.sack_recovery {
                SackRecovery::Pipe => self.recovery.pipe,
                _ => {
                    let high_rxt = self.recovery.high_rxt;
                    let bytes = self.scoreboard.pipe(self.snd_una, self.snd_max, high_rxt, lost_below);
                    bytes as f64 / segment as f64
                }
            };
            if pipe + 1.0 > window.floor() || !self.send_one_in_recovery(now, lost_below, out) {
                return;
            }
            self.recovery.pipe += 1.0;
        }
    }

    /// RFC 6675 section 4, NextSeg. ns-2's Sack1 presumes every hole lost, and has no rescue.
    fn send_one_in_recovery<W: SegmentSink>(&mut self, now: Time, lost_below: u64, out: &mut W) -> bool {
        let hole = self.scoreboard.first_missing(self.recovery.high_rxt.max(self.snd_una));
        let is_hole = self.scoreboard.highest().is_some_and(|highest| hole < highest);
        let pipe = self.params.sack_recovery == SackRecovery::Pipe;
        // Rule 1.
        if is_hole && (pipe || hole < lost_below) {
            self.recovery.high_rxt = self.retransmit(now, hole, out);
            return true;
        }
        // Rule 2.
        let limit = self.snd_una + self.snd_wnd;
        if self.send_next(now, limit, out) {
            return true;
        }
        if pipe {
            return false;
        }
        // Rule 3.
        if is_hole {
            self.recovery.high_rxt = self.retransmit(now, hole, out);
            return true;
        }
        // Rule 4: the last segment once, so that its ACK gives more information.
        if !self.recovery.rescued && self.recovery.high_rxt < self.recovery.recover && hole < self.snd_max {
            self.recovery.rescued = true;
            let last = hole.max(self.snd_max.saturating_sub(self.params.segment.get()));
            self.retransmit(now, last, out);
            return true;
        }
        false
    }

    // -----------------------------------------------------------------------------------------
    // ECN

    /// RFC 3168 section 6.1.2: once per window, as for a loss. Returns whether the ACK that echoes a mark
    /// opens no window. This does not hold if the control ignores marks; the receiver is still informed,
    /// otherwise it would repeat the echo for ever.
    fn heeds_echo(&mut self, now: Time) -> bool {
        let once = self.snd_una >= self.recovery.cwr_end && self.snd_una >= self.recovery.recover;
        if self.recovery.active || !once || self.snd_una == self.snd_max {
            return true;
        }
        let flight = self.flight_segments();
        let response = self.reduce_for(now, flight, CongestionControl::on_mark);
        self.recovery.cwr_end = self.snd_max;
        self.say_cwr = true;
        if response == Response::Ignore {
            return false;
        }
        self.stats.ecn_reductions += 1;
        self.recovery.last_cut = Some(Cut::Ecn);
        true
    }
}
