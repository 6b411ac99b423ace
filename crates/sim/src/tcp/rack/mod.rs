//! A sender that finds losses by time and lowers its window in proportion: RACK-TLP (RFC 8985) with
//! proportional rate reduction ([`prr`](super::prr)), as Linux has them.
//!
//! `record` holds the outstanding segments and finds the lost ones; this module decides about the window and
//! about transmissions. A reduction that proves needless is undone (`undo`). Deviations: only timestamps show
//! that, neither reports of duplicate arrivals (RFC 3708) nor the first transmissions after a timeout (RFC
//! 5682); and reneging of SACK is not expected. Cost: O(log segments) per ACK, and O(log losses) for each
//! loss; more while segments are late (see `record`).

pub mod info;
mod inform;
mod probe;
mod record;
mod undo;

use std::ops::{Deref, DerefMut};

use apportion_core::congestion::{CongestionControl, CongestionEvent, Phase, Response};
use apportion_core::units::{Span, Time};

use super::accurate::Marks;
use super::prr::Prr;
use super::segment::{Segment, SegmentSink};
use super::sender::Sender;
use super::seq::unwrap;
use crate::congestion::control::Sign;
use crate::congestion::hystart::{HyStart, Sample};
use crate::congestion::pacing::Pacer;
use crate::congestion::window::{self, basis, hold};
use probe::Probe;
use record::{Delivery, Losses, Prior, Record};
use undo::{Before, Resent};

/// The state of a sender with RFC 8985.
#[derive(Clone, Debug)]
pub struct Rack {
    pub(super) record: Record,
    state: Phase,
    /// The end of the data sent when `state` began; the state ends when it is acknowledged.
    high_seq: u64,
    prr: Prr,
    /// The window before a loss was found. Boxed: few connections are in recovery at a time.
    before: Option<Box<Before>>,
    resent: Option<Resent>,
    hystart: HyStart,
    /// The number of timeouts since new data were acknowledged.
    timeouts: u32,
    usage: Usage,
    probe: Option<Probe>,
    /// The time of the next tail loss probe.
    probe_at: Option<Time>,
    /// The time at which segments that are late by now are lost.
    reorder_at: Option<Time>,
    /// The state before the present ACK, for a control that reads all of it.
    prior: Prior,
    /// The marks reported by ACKs, if the receiver counts them.
    pub(super) marks: Marks,
    /// Boxed: most senders have none.
    pacer: Option<Box<Pacer>>,
    /// Whether there are tail loss probes.
    probes: bool,
    /// The end of the last segment smaller than full.
    pub(super) small_end: u64,
}

/// The use of the window (RFC 7661 section 4.1), over about a round trip.
#[derive(Clone, Copy, Debug)]
struct Usage {
    /// Whether the window, and not the application or the receiver, limited the sender.
    limited: bool,
    /// The maximum number of outstanding segments.
    most: u32,
    /// The round trip ends when this is acknowledged.
    end: u64,
}

impl Usage {
    const NONE: Self = Self { limited: false, most: 0, end: 0 };
}

/// The RACK state that senders with other rules read.
static NOTHING: Rack = Rack::START;

/// The state of a sender with RFC 8985. Boxed, and allocated when it is first needed: senders that find
/// losses by other rules have none, and read a state in which nothing was sent.
#[derive(Clone, Debug, Default)]
pub struct RackMemory(Option<Box<Rack>>);

impl Deref for RackMemory {
    type Target = Rack;
    fn deref(&self) -> &Rack {
        self.0.as_deref().unwrap_or(&NOTHING)
    }
}

impl DerefMut for RackMemory {
    fn deref_mut(&mut self) -> &mut Rack {
        self.0.get_or_insert_with(|| Box::new(Rack::START))
    }
}

/// The earlier of two times, or the only one.
fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        _ => one.or(other),
    }
}

impl Rack {
    const START: Self = Self {
        record: Record::EMPTY,
        state: Phase::Open,
        high_seq: 0,
        prr: Prr::new(0.0),
        before: None,
        resent: None,
        hystart: HyStart::START,
        timeouts: 0,
        usage: Usage::NONE,
        probe: None,
        probe_at: None,
        reorder_at: None,
        prior: Prior::NONE,
        marks: Marks::NONE,
        pacer: None,
        probes: true,
        small_end: 0,
    };

    /// The first of its timers and `other`.
    #[inline]
    pub(super) fn next_timer(&self, other: Option<Time>) -> Option<Time> {
        let paced = self.pacer.as_deref().and_then(Pacer::due);
        earlier(earlier(other, self.probe_at), earlier(self.reorder_at, paced))
    }

    /// Whether the window falls ACK by ACK.
    fn is_lowering(&self) -> bool {
        matches!(self.state, Phase::Cwr | Phase::Recovery)
    }

    fn recovers(&self) -> bool {
        matches!(self.state, Phase::Recovery | Phase::Loss)
    }
}

impl Sender {
    /// Handles an ACK on an open connection. `ack` is within the data sent.
    pub(super) fn on_rack_ack<W: SegmentSink>(
        &mut self,
        now: Time,
        ack: u64,
        segment: &Segment,
        out: &mut W,
    ) {
        let advanced = ack > self.snd_una;
        if self.whole_acks {
            self.rack.prior = self.rack.record.prior();
        }
        let mut delivery = self.rack.record.delivery();
        let reports = !segment.sack.is_empty();
        let duplicate = reports && self.note_reports(now, ack, segment, &mut delivery);
        if advanced {
            self.rack.record.acknowledge(now, self.snd_una, ack, &mut delivery);
        }
        self.take_sample(now, advanced, segment, &delivery);
        let marked = self.reads_marks(now, ack, segment, delivery.segments);
        if advanced {
            let una = self.snd_una;
            self.advance(now, ack);
            self.rack.timeouts = 0;
            self.undo_if_needless(segment, una, &delivery);
        } else if self.rack.record.reports_older(&delivery) {
            // Linux: the retransmission of the first segment is not late while older data arrive.
            self.restart_timer(now);
        }
        self.settle_probe(now, ack, advanced || delivery.segments > 0, duplicate);
        if self.state_ends() {
            self.leave_state();
        }
        if marked && self.rack.state == Phase::Open {
            self.on_rack_echo(now);
        }
        let losses = self.find_losses(now);
        self.open_or_lower_window(now, advanced, &delivery, losses);
        self.send_rack(now, out);
        if advanced {
            self.schedule_probe(now);
        }
    }

    /// Stores the window that is about to be reduced because of a loss.
    fn remember_window(&mut self) {
        let before = Before { cwnd: self.window.cwnd, ssthresh: self.window.ssthresh };
        self.rack.before = self.params.timestamps.then(|| Box::new(before));
    }

    /// Restores the window if an ACK of the segment at `una` and perhaps more shows that nothing was lost.
    fn undo_if_needless(&mut self, segment: &Segment, una: u64, delivery: &Delivery) {
        let Some(resent) = self.rack.resent else { return };
        if self.snd_una >= resent.end {
            self.rack.resent = None;
        }
        let Some(before) = self.rack.before.as_deref().copied() else { return };
        if !self.rack.recovers() || !resent.is_after(segment) {
            return;
        }
        self.rack.record.note_late(una, delivery);
        self.window.cwnd = self.window.cwnd.max(before.cwnd);
        self.window.ssthresh = self.window.ssthresh.max(before.ssthresh);
        self.rack.record.forget_losses();
        (self.rack.state, self.rack.before) = (Phase::Open, None);
        self.control.on_recovered(&mut self.window);
        self.control.on_undone();
    }

    /// Records the SACK option. Returns whether it reports a duplicate arrival (RFC 2883 section 4).
    fn note_reports(&mut self, now: Time, ack: u64, segment: &Segment, delivery: &mut Delivery) -> bool {
        let (una, isn, sent) = (self.snd_una, self.isn(), self.snd_max);
        let offsets = |&(from, to): &(u32, u32)| {
            Some((unwrap(isn, from, una)?, unwrap(isn, to, una).filter(|&to| to <= sent)?))
        };
        let blocks = segment.sack.as_slice();
        let first = blocks.first().and_then(offsets);
        let within = |(from, to): (u64, u64), (start, end): (u64, u64)| start <= from && to <= end;
        let duplicate = first.is_some_and(|first| {
            first.1 <= ack || blocks.get(1).and_then(offsets).is_some_and(|second| within(first, second))
        });
        for (from, to) in blocks.iter().filter_map(offsets) {
            let from = from.max(ack);
            let mut news = false;
            for (from, to) in self.scoreboard.missing_in(from, to) {
                self.rack.record.sack(now, una, from, to, delivery);
                news = true;
            }
            if news {
                // No limit is needed: each range of the scoreboard holds at least a segment, so there are no
                // more ranges than outstanding segments.
                self.scoreboard.add_within(from, to, usize::MAX);
            }
        }
        duplicate
    }

    /// Takes a sample of the round-trip time, from a segment that was sent once, else from the echoed
    /// timestamp (RFC 7323 section 4).
    fn take_sample(&mut self, now: Time, advanced: bool, segment: &Segment, delivery: &Delivery) {
        let echoed = (advanced && self.params.timestamps).then(|| segment.sent_at(now)).flatten();
        if let Some(sent) = delivery.timed().or(echoed) {
            self.rtt.sample(&self.params, sent, now);
        }
    }

    /// Whether everything outstanding at the congestion signal has arrived.
    fn state_ends(&self) -> bool {
        match self.rack.state {
            Phase::Open => false,
            // The segment at `high_seq` carries CWR: before its arrival, echoes repeat the same marks.
            Phase::Cwr => self.snd_una > self.rack.high_seq || self.snd_una == self.snd_max,
            Phase::Recovery | Phase::Loss => self.snd_una >= self.rack.high_seq,
        }
    }

    fn leave_state(&mut self) {
        if self.rack.is_lowering() && !self.control.moves_window(self.rack.state) {
            self.window.cwnd = self.window.ssthresh;
        }
        self.control.on_recovered(&mut self.window);
        (self.rack.state, self.rack.before) = (Phase::Open, None);
    }

    /// RFC 3168 section 6.1.2: once per window, as for a loss.
    fn on_rack_echo(&mut self, now: Time) {
        if self.snd_una == self.snd_max || self.reduce(now, CongestionControl::on_mark) == Response::Ignore {
            return;
        }
        self.stats.ecn_reductions += 1;
        // RFC 9768 section 3.1.5: no echo needs to be ended if marks are counted.
        self.say_cwr = !self.accurate;
        self.enter(Phase::Cwr);
    }

    fn enter(&mut self, state: Phase) {
        self.rack.state = state;
        self.rack.high_seq = self.snd_max;
        self.rack.probe_at = None;
    }

    /// A congestion signal: the threshold falls, and the window follows ACK by ACK, unless the control
    /// decides otherwise.
    fn reduce(&mut self, now: Time, sign: Sign) -> Response {
        // Linux counts whole segments: a fraction of a segment is dropped.
        let cwnd = self.window.cwnd.floor();
        let (receive_window, in_flight) = (self.window_segments(), self.rack.record.in_flight());
        let basis = basis(&self.params, cwnd, receive_window, self.flight_segments());
        let event = CongestionEvent { now, cwnd, basis, receive_window, in_flight, again: false };
        let response = sign(&mut *self.control, &mut self.window, &event);
        match response {
            Response::Reduce(left) => {
                window::reduce(&self.params, &mut self.window, left);
                self.window.cwnd = cwnd;
            }
            Response::Done if !self.control.moves_window(Phase::Recovery) => {
                hold(&mut self.window);
            }
            Response::Done | Response::Ignore => {}
        }
        self.rack.prr = Prr::new(cwnd);
        response
    }

    /// Looks for losses, and begins recovery if there are any.
    fn find_losses(&mut self, now: Time) -> Losses {
        let window = self.reordering_window();
        let losses = self.rack.record.detect(now, window);
        self.rack.reorder_at = losses.next;
        let begins = match self.rack.state {
            Phase::Open | Phase::Cwr => losses.segments > 0 || self.rack.record.has_lost(),
            // A segment that the timer had sent again is lost again: congestion continues.
            Phase::Loss => losses.again > 0,
            Phase::Recovery => false,
        };
        if begins {
            self.stats.fast_retransmits += 1;
            // A mark of a control that counts marks is less than a loss (RFC 8257 section 3.5).
            if self.rack.state != Phase::Cwr || self.params.algorithm.counts_marks() {
                self.remember_window();
                if self.reduce(now, CongestionControl::on_loss) == Response::Ignore {
                    hold(&mut self.window);
                }
            }
            self.enter(Phase::Recovery);
        }
        if losses.segments > 0 {
            self.inform_of_losses(now);
        }
        losses
    }

    fn reordering_window(&self) -> Span {
        let srtt = self.srtt().unwrap_or_default();
        self.rack.record.reordering_window(self.rack.recovers(), self.params.dupack_threshold, srtt)
    }

    fn open_or_lower_window(&mut self, now: Time, advanced: bool, delivery: &Delivery, losses: Losses) {
        match self.rack.state {
            state if self.whole_acks && self.control.moves_window(state) => {
                self.pass_whole_ack(now, delivery, losses, self.window.is_slow_start());
            }
            Phase::Cwr | Phase::Recovery if delivery.segments > 0 => {
                let in_flight = self.rack.record.in_flight();
                let (ssthresh, safe) = (self.window.ssthresh, advanced && losses.segments == 0);
                self.window.cwnd =
                    self.rack.prr.window(ssthresh, in_flight, delivery.segments, safe).max(1.0);
            }
            Phase::Open | Phase::Loss if advanced => self.open_window(now, delivery, losses),
            _ => {}
        }
    }

    fn open_window(&mut self, now: Time, delivery: &Delivery, losses: Losses) {
        let slow_start = self.window.is_slow_start();
        if self.params.hystart && slow_start {
            self.end_slow_start(now, delivery);
        }
        if self.whole_acks {
            return self.pass_whole_ack(now, delivery, losses, slow_start);
        }
        let ack = self.ack(now, delivery, losses, slow_start);
        self.control.on_plain_ack(&mut self.window, &ack);
    }

    /// Ends slow start if the ACK is a signal of HyStart.
    fn end_slow_start(&mut self, now: Time, delivery: &Delivery) {
        if let Some(sent) = delivery.last_sent
            && self.control.has_slow_start()
        {
            let (cwnd, paced) =
                (self.window.cwnd, self.params.pacing || self.params.algorithm.entry().paces());
            let (ack, sent, rtt) = (self.snd_una, self.snd_max, now.since(sent));
            let min_rtt = self.rack.record.min_rtt().unwrap_or_default();
            if self.rack.hystart.ends(Sample { now, ack, sent, cwnd, rtt, min_rtt, paced }) {
                self.window.ssthresh = cwnd;
            }
        }
    }

    // -----------------------------------------------------------------------------------------
    // Sending

    /// Sends what the window permits: lost data first, then new data.
    pub(super) fn send_rack<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if self.is_controlled {
            self.send_controlled(now, out);
        } else {
            self.send_with::<false, W>(now, out);
        }
    }

    #[inline(never)]
    fn send_controlled<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.send_with::<true, W>(now, out);
    }

    /// Sends as [`send_rack`](Self::send_rack) does, with a control or without.
    #[inline(always)]
    fn send_with<const CONTROLLED: bool, W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if !(CONTROLLED && self.control.moves_window(Phase::Open)) && self.restart_after_idle(now) {
            self.rack.usage = Usage::NONE;
        }
        let mut sent_new = false;
        let mut quota = if CONTROLLED { self.pacing_quota(now) } else { 0 };
        let limited = loop {
            if f64::from(self.rack.record.in_flight()) + 1.0 > self.window.cwnd.max(1.0) {
                break true;
            }
            if CONTROLLED {
                if quota == 0 {
                    self.wait_to_pace();
                    break false;
                }
                quota -= 1;
            }
            if let Some((from, to)) = self.rack.record.first_lost(self.snd_una) {
                self.resend(now, from, to, out);
            } else if self.send_next(now, self.snd_una + self.snd_wnd, out) {
                sent_new = true;
            } else {
                if CONTROLLED {
                    self.inform_of_idleness();
                }
                break false;
            }
        };
        self.note_usage(limited);
        if sent_new {
            self.schedule_probe(now);
        }
        self.watch_shut_window(now);
    }

    /// Sends an outstanding segment again.
    fn resend<W: SegmentSink>(&mut self, now: Time, from: u64, to: u64, out: &mut W) {
        self.transmit(now, from, to.min(self.data_end()) - from, out);
        self.rack.resent = Some(Resent::with(self.rack.resent, now, to));
        self.rack.record.send_again(now, to);
        if from == self.snd_una {
            self.restart_timer(now);
        }
    }

    /// Records `len` bytes of new data up to `end`, or a retransmission, at `now`.
    pub(super) fn record_transmission(&mut self, now: Time, end: u64, len: u64, is_new: bool) {
        if self.is_controlled {
            self.inform_of_transmission(now, end, len);
        }
        if is_new {
            self.rack.record.send_new(now, end);
        }
        self.rack.prr.send();
    }

    /// RFC 7661: notes whether the window is used, for about a round trip.
    fn note_usage(&mut self, limited: bool) {
        let most = self.rack.record.outstanding();
        let usage = &mut self.rack.usage;
        if self.snd_una >= usage.end
            || limited && !usage.limited
            || limited == usage.limited && most > usage.most
        {
            *usage = Usage { limited, most, end: self.snd_max };
        }
    }

    // -----------------------------------------------------------------------------------------
    // Timers

    /// The timers of this module that are due.
    pub(super) fn on_rack_timers<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        if self.rack.reorder_at.is_some_and(|at| at <= now) {
            let repaired = self.rack.state == Phase::Recovery;
            self.find_losses(now);
            // Nothing was delivered: the beginning of recovery lets out its first retransmission only.
            if !repaired && self.rack.state == Phase::Recovery && !self.control.moves_window(Phase::Recovery)
            {
                let in_flight = self.rack.record.in_flight();
                self.window.cwnd = self.rack.prr.window(self.window.ssthresh, in_flight, 1, false).max(1.0);
            }
            self.send_rack(now, out);
        }
        if self.rack.pacer.as_deref().and_then(Pacer::due).is_some_and(|at| at <= now) {
            self.send_rack(now, out);
        }
        if self.rack.probe_at.is_some_and(|at| at <= now) {
            self.rack.probe_at = None;
            self.send_probe(now, out);
        }
    }

    /// The retransmission timer expired.
    pub(super) fn time_out_rack<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        self.stats.timeouts += 1;
        // One reduction for one window, unless a segment arrived since the timer last expired.
        let again = match self.rack.state {
            Phase::Open => false,
            Phase::Cwr | Phase::Recovery => self.snd_una < self.rack.high_seq,
            Phase::Loss => self.snd_una < self.rack.high_seq && self.rack.timeouts > 0,
        };
        if !again {
            self.remember_window();
        }
        let event = CongestionEvent { again, ..self.congestion_event(now, self.flight_segments()) };
        window::time_out(&self.params, &mut self.window, &mut *self.control, &event);
        let reordering = self.reordering_window();
        self.rack.record.time_out(now, reordering);
        self.inform_of_losses(now);
        self.enter(Phase::Loss);
        self.rack.timeouts += 1;
        (self.rack.probe, self.rack.reorder_at) = (None, None);
        self.rtt.back_off(&self.params);
        self.restart_timer(now);
        self.window.cwnd = f64::from(self.rack.record.in_flight()) + 1.0;
        self.send_rack(now, out);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apportion_core::Ecn;
    use apportion_core::units::Bytes;
    use apportion_scenario::tcp::TcpParams;

    use super::*;
    use crate::tcp::segment::{Flags, SackBlocks};

    const SEGMENT: u32 = 1_448;

    /// Counts the segments sent.
    #[derive(Default)]
    struct Count(usize);

    impl SegmentSink for Count {
        fn send(&mut self, _: Segment, _: Bytes, _: Ecn) {
            self.0 += 1;
        }
    }

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    /// An ACK without new data in order that reports segment `number`.
    fn report(sender: &mut Sender, now: Time, number: u32, out: &mut Count) {
        let from = number * SEGMENT;
        let sack = SackBlocks::from_recent([(from, from + SEGMENT)].into_iter());
        let ack = Segment { flags: Flags::ACK, window: u16::MAX, sack, ..Segment::default() };
        sender.on_segment(now, &ack, out);
    }

    #[test]
    fn the_reordering_timer_lowers_the_window_only_when_recovery_begins() {
        let mut params = TcpParams::profile("linux").unwrap();
        params.set("syn", "false").unwrap();
        let (mut sender, mut out) = (Sender::new(Arc::new(params), 0), Count::default());
        sender.supply_unlimited(Time::ZERO, &mut out);
        sender.start(Time::ZERO, &mut out);
        assert_eq!(out.0, 10);
        // Segments 2 and then 1 arrive: there is reordering, and 0 has until 51 + 50/4 ms. 10 and 11 are new.
        report(&mut sender, at(50_000), 2, &mut out);
        report(&mut sender, at(51_000), 1, &mut out);
        assert_eq!((out.0, sender.next_timer()), (12, Some(at(63_500))));
        sender.on_timer(at(63_500), &mut out);
        assert_eq!((sender.rack.state, sender.rack.prr.delivered()), (Phase::Recovery, 1));
        // 11 arrives, which was sent at 51 ms: 3 to 9 are lost, and 10 has until 50 + 50 + 12.5 ms. The
        // arrival is older than the retransmission of 0, so the timer of the latter restarts.
        report(&mut sender, at(101_000), 11, &mut out);
        assert_eq!(sender.retransmission_timer(), Some(at(101_000) + sender.rto()));
        let window = sender.cwnd();
        assert_eq!((sender.rack.prr.delivered(), sender.rack.reorder_at), (2, Some(at(112_500))));
        sender.on_timer(at(112_500), &mut out);
        assert_eq!((sender.rack.prr.delivered(), sender.cwnd()), (2, window));
    }
}
