//! The sending end: permission to send, ACK frames, the timer, and the application's side.
//!
//! RFC 9002 appendices A and B, whose functions are named below. Cost: state of 1 kB and of each packet in
//! flight; O(log packets) for each packet that is sent, acknowledged or lost, and O(gaps of the stream) for
//! each acknowledged while data are missing.

use std::sync::Arc;

use apportion_core::Ecn;
use apportion_core::congestion::{CongestionControl, Feedback};
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::model::UDP_HEADER;
use apportion_scenario::quic::QuicParams;

use super::control::{AckSummary, Controller};
use super::packet::{Ack, HANDSHAKE, ISN, Packet, PacketSink, Range, Stream};
use super::rtt::Rtt;
use super::sent::{Numbered, Record, Sent};
use super::stream::Outgoing;
use crate::congestion::pacing::{Pacer, quantum};
use crate::tcp::seq::{unwrap, wrap};

/// Section 6.2.4: the number of packets sent when the probe timeout expires.
const PROBES: usize = 2;
/// Section 7.6.1, kPersistentCongestionThreshold.
const PERSISTENT_CONGESTION: u64 = 3;
/// The largest exponent of backoff: 2^16 seconds exceed any run.
const MAX_BACKOFF: u32 = 16;

/// The sending end of a connection.
#[derive(Debug)]
pub struct Sender {
    params: Arc<QuicParams>,
    phase: Phase,
    record: Record,
    stream: Outgoing,
    control: Controller,
    pacer: Pacer,
    rtt: Rtt,
    pto_count: u32,
    loss_detection_timer: Option<Time>,
    /// The number of the latest packet from the receiver.
    heard: u32,
    /// ecn_ce_counters.
    ce: u32,
    /// The highest packet acknowledged, and its transmission time.
    largest: Option<(u64, Time)>,
    /// Whether one packet may exceed the window: recovery begins.
    spare: bool,
    /// Section 7.8: whether the window was used up when packets were last sent.
    is_utilised: bool,
    stats: SenderStats,
    /// Buffers for packets that one ACK frame acknowledges, and for those that it shows to be lost.
    acked: Vec<Numbered>,
    lost: Vec<Numbered>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Closed,
    /// The transmission time of each datagram that opens the connection.
    Handshake(Vec<Time>),
    Open,
}

/// The counters of a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Packets sent, those of the handshake included.
    pub packets: u64,
    /// Packets of data that had been sent before.
    pub retransmits: u64,
    /// Expiries of the probe timeout.
    pub probe_timeouts: u64,
    /// Recovery periods that a loss began.
    pub recoveries: u64,
    /// Recovery periods that a mark began.
    pub ecn_reductions: u64,
    /// Packets presumed lost.
    pub lost: u64,
    /// Number of these packets that arrived after all.
    pub spurious: u64,
    /// The number of times that persistent congestion was found.
    pub persistent: u64,
}

impl Sender {
    /// A connection that has not begun.
    #[must_use]
    pub fn new(params: Arc<QuicParams>) -> Self {
        Self {
            phase: Phase::Closed,
            record: Record::default(),
            stream: Outgoing::default(),
            control: Controller::new(&params),
            pacer: Pacer::default(),
            rtt: Rtt::START,
            pto_count: 0,
            loss_detection_timer: None,
            heard: 0,
            ce: 0,
            largest: None,
            spare: false,
            is_utilised: false,
            stats: SenderStats::default(),
            acked: Vec::new(),
            lost: Vec::new(),
            params,
        }
    }

    /// Opens the connection.
    pub fn start<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        if self.phase == Phase::Closed {
            self.phase = Phase::Handshake(Vec::new());
            self.send_initial(now, out);
        }
    }

    /// The application hands over `bytes`.
    pub fn supply<W: PacketSink>(&mut self, now: Time, bytes: u64, out: &mut W) {
        self.stream.supply(bytes);
        self.send(now, out);
    }

    /// The application always has data.
    pub fn supply_unlimited<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        self.supply(now, u64::MAX, out);
    }

    /// The application has no more data. An unlimited supply ends with the data already sent.
    pub fn close(&mut self) {
        self.stream.close();
    }

    /// Whether everything is acknowledged after [`close`](Self::close).
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.stream.is_done()
    }

    /// Bytes in packets that the ACK frame acknowledges for the first time. Data sent twice as a probe counts
    /// twice, and data that arrives in a packet that was presumed lost does not count.
    #[must_use]
    pub fn newly_acknowledged(&self, ack: &Ack, more: &[Range]) -> u64 {
        let packets =
            ranges(self.record.next(), ack, more).flat_map(|range| self.record.unacknowledged(range));
        packets.map(|sent| sent.data.1 - sent.data.0).sum()
    }

    /// A packet arrives; `more` are ranges of an ACK frame for which it had no room.
    pub fn on_packet<W: PacketSink>(&mut self, now: Time, packet: &Packet, more: &[Range], out: &mut W) {
        match packet {
            &Packet::Accept(number) => self.on_accept(now, number, out),
            Packet::Ack(ack) if self.phase == Phase::Open => self.on_ack(now, ack, more, out),
            _ => {}
        }
    }

    /// The time of [`next_timer`](Self::next_timer) has come; earlier calls do nothing.
    pub fn on_timer<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        if self.loss_detection_timer.is_some_and(|at| at <= now) {
            self.on_loss_detection_timeout(now, out);
        }
        if self.pacer.due().is_some_and(|at| at <= now) {
            self.send(now, out);
        }
    }

    /// The time at which [`on_timer`](Self::on_timer) must be called.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        let times = [self.loss_detection_timer, self.pacer.due()];
        times.into_iter().flatten().min()
    }

    /// The counters so far.
    #[must_use]
    pub const fn stats(&self) -> &SenderStats {
        &self.stats
    }

    /// The congestion window, in full packets.
    #[must_use]
    pub const fn cwnd(&self) -> f64 {
        self.control.window().cwnd
    }

    /// The slow start threshold, in full packets.
    #[must_use]
    pub const fn ssthresh(&self) -> f64 {
        self.control.window().ssthresh
    }

    /// The smoothed round-trip time, once measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Span> {
        self.rtt.srtt()
    }

    /// Packets in flight.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.record.in_flight()
    }

    // -----------------------------------------------------------------------------------------
    // The handshake

    fn send_initial<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        let Phase::Handshake(sent) = &mut self.phase else { return };
        let number = sent.len() as u32;
        sent.push(now);
        self.stats.packets += 1;
        self.loss_detection_timer = Some(now + self.backed_off(self.rtt.pto(Span::ZERO)));
        out.send(Packet::Initial(number), &[], HANDSHAKE, Ecn::NotEct);
    }

    fn on_accept<W: PacketSink>(&mut self, now: Time, number: u32, out: &mut W) {
        let Phase::Handshake(sent) = &self.phase else { return };
        let Some(&at) = sent.get(number as usize) else { return };
        self.rtt.sample(now, now.since(at), Span::ZERO, Span::ZERO);
        self.phase = Phase::Open;
        // Section 6.4: packets of the handshake are forgotten, and with them the backoff.
        (self.pto_count, self.loss_detection_timer) = (0, None);
        self.send(now, out);
    }

    // -----------------------------------------------------------------------------------------
    // ACK frames

    /// OnAckReceived.
    fn on_ack<W: PacketSink>(&mut self, now: Time, ack: &Ack, more: &[Range], out: &mut W) {
        self.heard = self.heard.max(ack.number);
        let prior_in_flight = self.record.in_flight();
        let (mut acked, mut late) = (std::mem::take(&mut self.acked), Vec::new());
        acked.clear();
        let mut highest = None;
        for range in ranges(self.record.next(), ack, more) {
            highest = highest.max(Some(range.end - 1));
            self.record.acknowledge(range, &mut acked, &mut late);
        }
        for (_, sent) in &late {
            self.stats.spurious += 1;
            self.stream.deliver(sent.data);
        }
        if let Some(&(number, sent)) = acked.iter().max_by_key(|(number, _)| *number) {
            let is_sample = highest == Some(number);
            if is_sample {
                let latest = now.since(sent.at);
                self.rtt.sample(now, latest, ack.delay(), self.params.max_ack_delay());
            }
            let latest = self.largest.is_none_or(|(before, _)| before < number).then_some(number);
            if latest.is_some() {
                self.largest = Some((number, sent.at));
            }
            self.settle(now, ack.ce, &acked, prior_in_flight, (latest, is_sample));
            self.pto_count = 0;
            self.set_loss_detection_timer();
        }
        // A packet that is only late may open flow control.
        if !(acked.is_empty() && late.is_empty()) {
            self.send(now, out);
        }
        self.acked = acked;
    }

    /// Applies newly acknowledged packets to the stream, to losses and to the window. `latest` is the highest
    /// of them if none higher was acknowledged before, and whether it gave a sample.
    fn settle(
        &mut self,
        now: Time,
        ce: u32,
        acked: &[Numbered],
        prior_in_flight: u32,
        (latest, is_sample): (Option<u64>, bool),
    ) {
        for (_, sent) in acked {
            self.stream.deliver(sent.data);
            self.control.note_acknowledged(sent.at);
        }
        self.control.note_feedback(&Feedback {
            now,
            number: acked.iter().map(|(number, _)| number + 1).max().unwrap_or_default(),
            last_sent: self.record.next(),
            bytes: acked.iter().map(|(_, sent)| sent.size).sum(),
            segments: acked.len() as u32,
            marked: ce.wrapping_sub(self.ce).cast_signed().max(0).cast_unsigned(),
            counts_marks: true,
            one_way_delay: None,
        });
        self.note_marks(now, ce);
        let lost = self.detect_losses(now);
        let grows = |sent: &Sent| !self.control.is_in_recovery(sent.at);
        let grown: u64 = acked.iter().filter(|(_, sent)| grows(sent)).map(|(_, sent)| sent.size).sum();
        let summary = AckSummary {
            now,
            acked: acked.len() as u32,
            grown: grown as f64 / self.full_size() as f64,
            lost,
            prior_in_flight,
            in_flight: self.record.in_flight(),
            latest,
            first_outstanding: self.record.first_outstanding(),
            next: self.record.next(),
            is_sample,
            is_utilised: self.is_utilised,
        };
        self.control.acknowledge(&summary, &self.rtt);
    }

    /// ProcessECN.
    fn note_marks(&mut self, now: Time, ce: u32) {
        let grows = ce.wrapping_sub(self.ce).cast_signed() > 0;
        if !grows {
            return;
        }
        self.ce = ce;
        let in_flight = self.record.in_flight();
        if let Some((_, at)) = self.largest
            && self.control.congest(now, at, in_flight, CongestionControl::on_mark)
        {
            self.stats.ecn_reductions += 1;
            self.spare = true;
        }
    }

    /// DetectAndRemoveLostPackets and OnPacketsLost. Returns the number of lost packets.
    fn detect_losses(&mut self, now: Time) -> u32 {
        let mut lost = std::mem::take(&mut self.lost);
        lost.clear();
        self.record.detect(now, self.params.packet_threshold, self.rtt.loss_delay(), &mut lost);
        if let Some(&(_, last)) = lost.last() {
            self.on_packets_lost(now, &lost, last.at);
        }
        let count = lost.len() as u32;
        self.lost = lost;
        count
    }

    fn on_packets_lost(&mut self, now: Time, lost: &[Numbered], last: Time) {
        self.stats.lost += lost.len() as u64;
        for (_, sent) in lost {
            self.stream.lose(sent.data);
        }
        let in_flight = self.record.in_flight();
        if self.control.congest(now, last, in_flight, CongestionControl::on_loss) {
            self.stats.recoveries += 1;
            self.spare = true;
        }
        for &(number, _) in lost {
            self.control.lose(now, number);
        }
        let duration = self.rtt.pto(self.params.max_ack_delay()) * PERSISTENT_CONGESTION;
        if let Some(since) = self.rtt.first_sample()
            && self.record.is_persistent(lost, duration, since)
        {
            self.stats.persistent += 1;
            self.control.collapse(now, in_flight);
            self.rtt.forget_min();
        }
        // Chosen: the duration of persistent congestion. Data of packets that arrive later are sent again.
        let old = now.as_nanos().saturating_sub(duration.as_nanos());
        self.record.forget_lost(Time::from_nanos(old));
    }

    // -----------------------------------------------------------------------------------------
    // The timer

    fn backed_off(&self, period: Span) -> Span {
        period * (1 << self.pto_count.min(MAX_BACKOFF))
    }

    /// SetLossDetectionTimer.
    fn set_loss_detection_timer(&mut self) {
        let pto = self.backed_off(self.rtt.pto(self.params.max_ack_delay()));
        let waits = self.record.in_flight() > 0;
        let probe = self.record.last_sent().filter(|_| waits).map(|at| at + pto);
        self.loss_detection_timer = self.record.loss_time().or(probe);
    }

    /// OnLossDetectionTimeout.
    fn on_loss_detection_timeout<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        if matches!(self.phase, Phase::Handshake(_)) {
            self.stats.probe_timeouts += 1;
            self.pto_count += 1;
            self.send_initial(now, out);
            return;
        }
        if self.record.loss_time().is_some() {
            self.detect_losses(now);
            self.set_loss_detection_timer();
            self.send(now, out);
            return;
        }
        self.stats.probe_timeouts += 1;
        self.send_probes(now, out);
        self.pto_count += 1;
        self.set_loss_detection_timer();
    }

    /// Section 6.2.4: waiting data, else the oldest unacknowledged data, whatever the window.
    fn send_probes<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        let stream = &self.stream;
        let outstanding = self.record.outstanding().filter_map(|sent| stream.missing_of(sent.data));
        let old: Vec<_> = outstanding.take(PROBES).collect();
        let mut old = old.into_iter();
        for probe in 0..PROBES {
            let waiting = self.stream.take(self.params.segment.get(), self.params.window.get());
            match waiting.or_else(|| old.next().map(|data| (data, false))) {
                Some((data, is_new)) => self.transmit(now, data, is_new, out),
                // A PING: all data arrived in other packets.
                None if probe == 0 => self.transmit(now, (0, 0), true, out),
                None => break,
            }
        }
    }

    // -----------------------------------------------------------------------------------------
    // Sending

    /// The size of a full packet in flight, without the headers of IPv4 and UDP (RFC 9002 appendix B.2).
    fn full_size(&self) -> u64 {
        (self.params.packet() - UDP_HEADER).get()
    }

    /// Sends what the window and the pacer permit: lost data first, then new data.
    fn send<W: PacketSink>(&mut self, now: Time, out: &mut W) {
        if self.phase != Phase::Open {
            return;
        }
        let window = self.params.window.get();
        let rate = self.control.pacing_rate(self.rtt.srtt());
        let wire_size = self.params.packet();
        let mut quota = rate.map_or(u32::MAX, |rate| self.pacer.quota(now, quantum(rate, wire_size)));
        let mut sent = false;
        loop {
            // At least one packet, so that no window blocks a connection.
            let cwnd = (self.cwnd().max(1.0) * self.full_size() as f64) as u64;
            let in_flight = self.record.bytes_in_flight();
            let fits = in_flight + self.full_size() <= cwnd;
            if !fits && !self.spare {
                self.is_utilised = true;
                break;
            }
            let waiting = self.stream.waiting(window);
            if waiting == 0 {
                self.is_utilised = !fits;
                if fits {
                    self.control.note_idleness(self.record.in_flight());
                }
                break;
            }
            if quota == 0 && !self.spare {
                self.pacer.wait();
                // Section 7.8: whether the window would be used up without the pacer.
                self.is_utilised = in_flight.saturating_add(waiting) >= cwnd;
                break;
            }
            let Some((data, is_new)) = self.stream.take(self.params.segment.get(), window) else { break };
            (self.spare, quota, sent) = (false, quota.saturating_sub(1), true);
            self.transmit(now, data, is_new, out);
        }
        // The packet that recovery permits leaves at once or not at all.
        self.spare = false;
        if sent {
            self.set_loss_detection_timer();
        }
    }

    /// OnPacketSent.
    fn transmit<W: PacketSink>(&mut self, now: Time, data: (u64, u64), is_new: bool, out: &mut W) {
        let length = data.1 - data.0;
        let wire_size = Bytes::new(length) + self.params.header;
        let size = (wire_size - UDP_HEADER).get();
        let in_flight = self.record.in_flight();
        let number = self.record.send(Sent { at: now, size, data });
        self.control.send(now, number, in_flight);
        self.stats.packets += 1;
        self.stats.retransmits += u64::from(!is_new);
        if let Some(rate) = self.control.pacing_rate(self.rtt.srtt()) {
            self.pacer.send(now, wire_size, rate);
        }
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        let stream = Stream::new(wrap(ISN, number), self.heard, data.0, length);
        let ecn = if self.params.ecn { Ecn::Ect0 } else { Ecn::NotEct };
        out.send(Packet::Stream(stream), &[], wire_size, ecn);
    }
}

/// The packets that an ACK frame names, the highest range first, if `next` is the next to be sent; none if it
/// acknowledges packets that were never sent.
fn ranges<'a>(
    next: u64,
    ack: &'a Ack,
    more: &'a [Range],
) -> impl Iterator<Item = std::ops::Range<u64>> + use<'a> {
    let whole = move |&(from, to): &Range| Some(unwrap(ISN, from, next)?..unwrap(ISN, to, next)?);
    let is_valid = ack.ranges().first().and_then(whole).is_some_and(|range| range.end <= next);
    let all = ack.ranges().iter().chain(more).filter_map(whole);
    all.filter(move |range| is_valid && range.start < range.end && range.end <= next)
}
