//! Calls over RTP and UDP: voice at a constant rate, and video whose rate follows the receiver's reports.
//!
//! The sender produces a frame every interval, in as many packets of equal size as needed, and paces them
//! over the interval: the pacer of draft-ietf-rmcat-gcc-02, section 4, which sends at the target rate. The
//! receiver of an adaptive call estimates the rate of the path ([`DelayControl`]) and reports it every
//! `REPORTS`, with the share of lost packets (RFC 3550 section 6.4.1). It reports at once when the estimate
//! has fallen by more than 3 % since the last report (draft-alvestrand-rmcat-remb-03, section 3). The
//! sender's rate is the smaller one of that estimate and its [own](after_loss), within the bounds of the
//! call. At its start it [probes](Prober) for the rate of the path; the result is reported at once, and both
//! estimates go on from there. The padding of clusters is no part of the call's rate.
//!
//! The receiver plays voice out of a buffer of constant length: the 95th percentile of the network's delay
//! and a packet's 20 ms, because it holds whole packets. A packet that arrives later is lost. The
//! mouth-to-ear delay is this, the 20 ms that a packet collects, and the codec's look-ahead. An adaptive call
//! is rated as G.711 with the delays and losses of the call's packets, each of which may carry voice.
//!
//! | here | value | from |
//! |---|---|---|
//! | `REPORTS` | 1 s | draft-ietf-rmcat-gcc-02, section 3: the interval of RTCP and REMB |
//! | `REPORT_SIZE` | 80 B | IPv4 and UDP 28, a receiver report 32 (RFC 3550 section 6.4.2), REMB 20 |
//! | `FIRST_RTT` | 200 ms | chosen: until one is measured; it sets the step of the rate alone |
//!
//! Deviations: frames have the size that follows from the present rate, without larger ones in between; voice
//! has no pauses. A sender without reports keeps its rate. Packets that arrive out of order count, and are
//! not late for that reason.
//!
//! Cost: O(1) for each packet. Memory: 8 bytes for each packet in flight, and a histogram.

use std::collections::VecDeque;
use std::sync::Arc;

use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::media::{AdaptiveCall, Codec};

use super::Emission;
use super::e_model::{opinion, rating};
use super::probe::Prober;
use super::rate_control::{DelayControl, after_loss};
use crate::histogram::Histogram;
use crate::outcome::CallQuality;

const REPORTS: Span = Span::from_secs(1);
/// Size of a report on the wire.
pub const REPORT_SIZE: Bytes = Bytes::new(80);
const FIRST_RTT: Span = Span::from_millis(200);

/// Both ends of a call.
#[derive(Debug)]
pub struct Call {
    codec: Codec,
    stop: Time,
    /// The time between frames.
    interval: Span,
    /// Maximum size of a packet.
    packet: Bytes,
    rate: Rate,
    /// Unused bits of frames, times 10⁹.
    carry: u128,
    next_frame: Time,
    /// Packets of the last frame that were not sent, the next one last; the time of the next one, and the
    /// time between them.
    unsent: Vec<Bytes>,
    next_packet: Time,
    gap: Span,
    /// The number of the next packet.
    next: u32,
    adaptive: Option<Box<Adaptive>>,
    measured: Measured,
}

/// The adaptation of the rate.
#[derive(Debug)]
struct Adaptive {
    params: Arc<AdaptiveCall>,
    control: DelayControl,
    prober: Prober,
    /// The rate of a cluster that the receiver has measured and not reported.
    probed: Option<Rate>,
    /// The sender's own estimate, from losses.
    by_loss: Rate,
    rtt: Span,
    /// Time at which the receiver reports next.
    next_report: Time,
    /// Times at which the last packet that arrived was sent and arrived.
    last: Option<(Time, Time)>,
    /// One above the highest number that arrived; this number and the arrivals at the last report.
    highest: u32,
    arrived: u32,
    reported: (u32, u32),
    reported_rate: Rate,
    /// Reports in flight, and the number of the next one.
    reports: VecDeque<Report>,
    next: u32,
}

/// A report of the receiver.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Report {
    /// The estimated rate of the path.
    estimate: Rate,
    /// The result of a cluster since the last report.
    probed: Option<Rate>,
    /// The share of lost packets since the last report, in units of 1/256.
    lost: u8,
    /// The timestamp of the last packet that arrived.
    sent: Time,
    /// Time since its arrival.
    held: Span,
}

/// Statistics of the measured part.
#[derive(Debug)]
struct Measured {
    since: Time,
    bytes: Bytes,
    /// The number of the first packet that counts.
    first: u32,
    /// One above the highest number that arrived, and when the packets from there on were sent.
    front: u32,
    under_way: VecDeque<Time>,
    delays: Histogram,
}

impl Measured {
    fn new(since: Time, first: u32) -> Self {
        let (under_way, delays) = (VecDeque::new(), Histogram::default());
        Self { since, bytes: Bytes::ZERO, first, front: first, under_way, delays }
    }

    fn sent(&mut self, now: Time, size: Bytes) {
        self.bytes += size;
        self.under_way.push_back(now);
    }

    fn arrived(&mut self, number: u32, took: Span) {
        if number < self.first {
            return;
        }
        self.delays.record(took);
        while self.front <= number && self.under_way.pop_front().is_some() {
            self.front += 1;
        }
    }

    /// The share of packets that did not arrive `within` this time, of those that could have by the end.
    fn lost(&self, end: Time, within: Span) -> Option<f64> {
        let missing = self.under_way.iter().filter(|&&sent| sent + within < end).count() as u64;
        let due = u64::from(self.front - self.first) + missing;
        let in_time = self.delays.count() - self.delays.count_above(within);
        (due > 0).then(|| due.saturating_sub(in_time) as f64 / due as f64)
    }
}

impl Call {
    pub(super) fn voice(codec: Codec, start: Time, stop: Time) -> Self {
        let bits = u128::from(codec.packet().bits()) * 1_000_000_000 / u128::from(Codec::FRAME.as_nanos());
        let rate = Rate::from_bit(u64::try_from(bits).unwrap_or(u64::MAX));
        Self::new(codec, (start, stop), Codec::FRAME, codec.packet(), rate, None)
    }

    pub(super) fn adaptive(params: &Arc<AdaptiveCall>, start: Time, stop: Time) -> Self {
        let first = params.first;
        let adaptive = Adaptive {
            params: Arc::clone(params),
            control: DelayControl::new(first),
            prober: Prober::new(first, params.max, start),
            probed: None,
            by_loss: first,
            rtt: FIRST_RTT,
            next_report: start + REPORTS,
            last: None,
            highest: 0,
            arrived: 0,
            reported: (0, 0),
            reported_rate: first,
            reports: VecDeque::new(),
            next: 0,
        };
        Self::new(
            Codec::G711,
            (start, stop),
            params.interval(),
            params.packet,
            first,
            Some(Box::new(adaptive)),
        )
    }

    fn new(
        codec: Codec,
        (start, stop): (Time, Time),
        interval: Span,
        packet: Bytes,
        rate: Rate,
        adaptive: Option<Box<Adaptive>>,
    ) -> Self {
        let measured = Measured::new(start, 0);
        Self {
            codec,
            stop,
            interval,
            packet,
            rate,
            carry: 0,
            next_frame: start,
            unsent: Vec::new(),
            next_packet: start,
            gap: interval,
            next: 0,
            adaptive,
            measured,
        }
    }

    pub(super) fn next_timer(&self) -> Option<Time> {
        let report = self.adaptive.as_ref().map(|adaptive| adaptive.next_report);
        let packet = self.probe_at().or((!self.unsent.is_empty()).then_some(self.next_packet));
        [Some(self.next_frame), packet, report].into_iter().flatten().filter(|&at| at < self.stop).min()
    }

    pub(super) fn on_timer(&mut self, now: Time, out: &mut Vec<Emission>) {
        if self.next_frame <= now && self.next_frame < self.stop {
            self.next_frame = now + self.interval;
            self.make_frame(now);
        }
        let probe_at = self.probe_at();
        if let Some(adaptive) = &mut self.adaptive
            && probe_at.is_some_and(|at| at <= now)
        {
            // Media first, then padding.
            let media = self.unsent.pop();
            let size = media.unwrap_or(self.packet);
            adaptive.prober.on_sent(now, self.next, size);
            self.next_packet = now + self.gap;
            self.send(now, size, media.unwrap_or(Bytes::ZERO), out);
        } else if probe_at.is_none()
            && self.next_packet <= now
            && let Some(size) = self.unsent.pop()
        {
            self.next_packet = now + self.gap;
            self.send(now, size, size, out);
        }
        if let Some(adaptive) = &mut self.adaptive
            && adaptive.next_report <= now
        {
            adaptive.next_report = now + REPORTS;
            out.extend(adaptive.report(now).map(Emission::Report));
        }
    }

    fn probe_at(&self) -> Option<Time> {
        self.adaptive.as_ref().and_then(|adaptive| adaptive.prober.next_packet())
    }

    /// Sends a packet of this size; `media` is the part that belongs to the call's rate.
    fn send(&mut self, now: Time, size: Bytes, media: Bytes, out: &mut Vec<Emission>) {
        out.push(Emission::Datagram(self.next, size));
        self.next += 1;
        self.measured.sent(now, media);
    }

    fn make_frame(&mut self, now: Time) {
        const BYTE: u128 = 8 * 1_000_000_000;
        self.carry += u128::from(self.rate.as_bit()) * u128::from(self.interval.as_nanos());
        let size = (self.carry / BYTE) as u64;
        self.carry %= BYTE;
        let parts = size.div_ceil(self.packet.get()).max(1);
        // The larger ones come first.
        self.unsent
            .extend((0..parts).rev().map(|part| Bytes::new(size / parts + u64::from(part < size % parts))));
        // Packets that a cluster held up leave with this frame.
        (self.next_packet, self.gap) = (now, self.interval.div(self.unsent.len() as u64));
    }

    /// Handles a packet that arrives, with its number and its sending time.
    pub fn on_datagram(&mut self, now: Time, number: u32, sent: Time, size: Bytes) {
        self.measured.arrived(number, now.since(sent));
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.on_datagram(now, number, sent, size);
        }
    }

    /// Handles the report with this number at the sender.
    pub fn on_report(&mut self, now: Time, number: u32) {
        let Some(adaptive) = &mut self.adaptive else { return };
        let Some(report) = adaptive.take_report(number) else { return };
        let Adaptive { params, prober, by_loss, rtt, .. } = adaptive.as_mut();
        *rtt = now.since(report.sent).saturating_sub(report.held);
        let within = |rate: Rate| rate.clamp(params.min, params.max);
        *by_loss = within(match report.probed {
            Some(rate) => {
                prober.on_result(now, rate);
                rate
            }
            None => after_loss(*by_loss, f64::from(report.lost) / 256.0),
        });
        self.rate = within(report.estimate.min(*by_loss));
    }

    pub(super) fn begin_measuring(&mut self, now: Time) {
        self.measured = Measured::new(now.max(self.measured.since), self.next);
    }

    pub(super) fn outcome(&mut self, now: Time) -> CallQuality {
        let Self { codec, measured, .. } = self;
        // A frame is spread over an interval: a shorter time has no rate.
        let lasted = self.stop.min(now).since(measured.since).max(self.interval);
        let lasted = u128::from(lasted.as_nanos());
        let bits = (u128::from(measured.bytes.bits()) * 1_000_000_000).checked_div(lasted);
        let rate = Rate::from_bit(bits.and_then(|bits| u64::try_from(bits).ok()).unwrap_or(0));
        let delay = measured.delays.distribution().quantile(0.95);
        // If no packets arrive, those in flight for this long are lost.
        let played = delay.map_or(REPORTS, |delay| delay + Codec::FRAME);
        let lost = measured.lost(now, played);
        let mouth_to_ear = delay.map(|_| played + Codec::FRAME + codec.look_ahead());
        let r = lost.map(|lost| rating(*codec, mouth_to_ear.unwrap_or(Span::ZERO), lost));
        CallQuality { rate, mouth_to_ear, lost, r, mos: r.map(opinion) }
    }
}

impl Adaptive {
    fn on_datagram(&mut self, now: Time, number: u32, sent: Time, size: Bytes) {
        self.arrived += 1;
        self.highest = self.highest.max(number + 1);
        self.last = Some((sent, now));
        self.control.on_packet(now, sent, size, self.rtt);
        if let Some(rate) = self.prober.on_arrival(now, number, sent, size) {
            self.control.on_probe(rate);
            self.probed = Some(rate);
            self.next_report = now;
        }
        // 3 %, in whole bits.
        let (now_bit, then_bit) = (self.control.estimate().as_bit(), self.reported_rate.as_bit());
        if u128::from(now_bit) * 100 < u128::from(then_bit) * 97 {
            self.next_report = now;
        }
    }

    /// Makes a report, and returns its number. None if no packet has arrived since the last one.
    fn report(&mut self, now: Time) -> Option<u32> {
        let (sent, arrived) = self.last?;
        let due = self.highest - self.reported.0;
        let lost = due.saturating_sub(self.arrived - self.reported.1);
        let parts = (u64::from(lost) * 256).checked_div(u64::from(due))?;
        self.reported = (self.highest, self.arrived);
        self.reported_rate = self.control.estimate();
        let lost = u8::try_from(parts).unwrap_or(u8::MAX);
        self.reports.push_back(Report {
            estimate: self.reported_rate,
            probed: self.probed.take(),
            lost,
            sent,
            held: now.since(arrived),
        });
        self.next += 1;
        Some(self.next - 1)
    }

    /// Takes the report with this number; earlier ones are lost. None if a later one has arrived.
    fn take_report(&mut self, number: u32) -> Option<Report> {
        let first = self.next - self.reports.len() as u32;
        let place = number.checked_sub(first)?;
        self.reports.drain(..=place as usize).next_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn voice() -> Call {
        Call::voice(Codec::G711, Time::from_secs(1), Time::from_secs(101))
    }

    fn adaptive() -> Call {
        let params = AdaptiveCall {
            min: Rate::from_kbit(100),
            max: Rate::from_mbit(2),
            first: Rate::from_kbit(300),
            fps: 25.0,
            packet: Bytes::new(1_200),
        };
        Call::adaptive(&Arc::new(params), Time::ZERO, Time::from_secs(1_000))
    }

    /// Runs a call until `end` over a path with these delays of packets by number, none for lost ones;
    /// reports take 20 ms.
    fn play(call: &mut Call, end: Time, delay: impl Fn(u32, Time) -> Option<Span>) -> Vec<Emission> {
        let (mut all, mut packets, mut reports) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let next = [call.next_timer()]
                .into_iter()
                .chain([&packets].map(|all: &Vec<(Time, u32, Time, Bytes)>| all.iter().map(|p| p.0).min()))
                .chain([&reports].map(|all: &Vec<(Time, u32)>| all.iter().map(|r| r.0).min()))
                .flatten()
                .min();
            let Some(now) = next.filter(|&now| now < end) else { return all };
            for (_, number, sent, size) in packets.extract_if(.., |packet| packet.0 == now) {
                call.on_datagram(now, number, sent, size);
            }
            for (_, report) in reports.extract_if(.., |report| report.0 == now) {
                call.on_report(now, report);
            }
            let mut out = Vec::new();
            call.on_timer(now, &mut out);
            for emission in &out {
                match *emission {
                    Emission::Datagram(number, size) => {
                        packets.extend(delay(number, now).map(|delay| (now + delay, number, now, size)));
                    }
                    Emission::Report(report) => reports.push((now + Span::from_millis(20), report)),
                    Emission::Request(_) => panic!("a call asks for nothing"),
                }
            }
            all.extend(out);
        }
    }

    #[test]
    fn voice_sends_fifty_packets_a_second_and_a_quiet_path_is_as_good_as_can_be() {
        let mut call = voice();
        let sent = play(&mut call, Time::from_secs(200), |_, _| Some(Span::from_millis(30)));
        assert_eq!(sent.len(), 5_000);
        assert!(sent.iter().all(|one| matches!(one, Emission::Datagram(_, size) if size.get() == 200)));
        let got = call.outcome(Time::from_secs(200));
        // 30 ms and two packets of 20 ms.
        assert_eq!((got.mouth_to_ear, got.lost), (Some(Span::from_millis(70)), Some(0.0)));
        assert_eq!(got.rate, Rate::from_kbit(80));
        assert!((got.r.unwrap() - (93.2 - 0.024 * 70.0)).abs() < 1e-9);
    }

    #[test]
    fn what_is_lost_and_what_comes_too_late_counts_once_each() {
        let mut call = voice();
        // 2 of 100 packets are lost and 3 come 300 ms late: the buffer holds 30 and 20 ms.
        let delay = |number: u32, _| match number % 100 {
            0 | 1 => None,
            2..5 => Some(Span::from_millis(330)),
            _ => Some(Span::from_millis(30)),
        };
        play(&mut call, Time::from_secs(200), delay);
        let got = call.outcome(Time::from_secs(200));
        // Quantiles of a histogram are approximate.
        assert!((got.mouth_to_ear.unwrap().as_secs_f64() - 0.07).abs() < 0.0003);
        assert_eq!(got.lost, Some(0.05));
    }

    #[test]
    fn a_call_of_which_nothing_arrives_any_more_is_lost_from_then_on() {
        let dies = |_: u32, now: Time| (now < Time::from_secs(51)).then(|| Span::from_millis(30));
        let mut call = voice();
        play(&mut call, Time::from_secs(101), dies);
        assert!((call.outcome(Time::from_secs(101)).lost.unwrap() - 0.5).abs() < 0.001);
        let mut call = voice();
        play(&mut call, Time::from_secs(101), |_, _| None);
        let got = call.outcome(Time::from_secs(101));
        assert_eq!((got.mouth_to_ear, got.lost), (None, Some(1.0)));
        assert!(got.mos.unwrap() < 1.1);
    }

    #[test]
    fn packets_sent_before_the_measured_part_do_not_count() {
        let mut call = voice();
        play(&mut call, Time::from_secs(51), |number, _| {
            number.is_multiple_of(2).then(|| Span::from_millis(900))
        });
        call.begin_measuring(Time::from_secs(51));
        call.on_datagram(Time::from_secs(51), 0, Time::from_secs(1), Bytes::new(200));
        assert_eq!(call.outcome(Time::from_secs(51)).lost, None);
        play(&mut call, Time::from_secs(101), |_, _| Some(Span::from_millis(10)));
        assert_eq!(call.outcome(Time::from_secs(101)).lost, Some(0.0));
    }

    #[test]
    fn an_adaptive_call_has_its_highest_rate_at_once() {
        let mut call = adaptive();
        let quiet = |_: u32, _| Some(Span::from_millis(30));
        // Clusters of 0.9, 1.8 and 2 Mb/s, two of which begin when a result is back.
        play(&mut call, Time::from_millis(500), quiet);
        assert_eq!(call.outcome(Time::from_millis(500)).lost, Some(0.0));
        assert!(call.rate > Rate::from_kbit(1_950), "{}", call.rate);
        let sent = play(&mut call, Time::from_secs(60), quiet);
        assert_eq!(call.rate, Rate::from_mbit(2));
        assert_eq!(sent.iter().filter(|one| matches!(one, Emission::Report(_))).count(), 59);
        // 10 kB in nine packets whose sizes differ by at most a byte.
        let Some(Emission::Datagram(_, size)) = sent.last() else { panic!("{:?}", sent.last()) };
        assert!((1_111..=1_112).contains(&size.get()));
        assert_eq!(call.adaptive.unwrap().rtt, Span::from_millis(50));
    }

    #[test]
    fn without_results_of_probes_it_grows_by_five_percent_a_second() {
        let mut call = adaptive();
        // Too little of the clusters arrives.
        let after = |_: u32, now: Time| (now > Time::from_millis(500)).then(|| Span::from_millis(30));
        play(&mut call, Time::from_secs(20), after);
        assert!((Rate::from_kbit(500)..Rate::from_kbit(900)).contains(&call.rate), "{}", call.rate);
    }

    #[test]
    fn padding_is_no_part_of_the_rate() {
        let mut call = adaptive();
        let sent = play(&mut call, Time::from_millis(400), |_, _| None);
        let all: u64 =
            sent.iter().map(|one| if let Emission::Datagram(_, size) = one { size.get() } else { 0 }).sum();
        // 300 kb/s for 0.4 s are 15 kB; the clusters of ten packets carry 3 kB of them.
        assert!((20_000..24_000).contains(&all), "{all}");
        let rate = call.outcome(Time::from_millis(400)).rate;
        assert!((Rate::from_kbit(290)..=Rate::from_kbit(310)).contains(&rate), "{rate}");
    }

    #[test]
    fn losses_and_growing_delay_reduce_it_to_no_less_than_the_lowest_rate() {
        let mut call = adaptive();
        play(&mut call, Time::from_secs(60), |number, _| (number % 10 > 3).then(|| Span::from_millis(30)));
        assert_eq!(call.rate, Rate::from_kbit(100));
        let mut call = adaptive();
        let grows = |_: u32, now: Time| Some(Span::from_millis(30 + now.as_nanos() / 2_000_000));
        play(&mut call, Time::from_secs(20), grows);
        assert!(call.rate < Rate::from_kbit(300), "{}", call.rate);
    }
}
