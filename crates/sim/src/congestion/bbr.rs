//! BBR, version 1: paces at the rate of the bottleneck, with a window of twice the BDP of the path.
//!
//! Cardwell et al., "BBR: congestion-based congestion control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00 sections 4.1 (the model) to 4.3 (the states), with the rate
//! samples of [`delivery_rate`](super::delivery_rate) and the timer of [`pacing`](super::pacing). It ignores
//! marks. The long-term rate that detects policers, in Linux but not in the draft, is in `policer.rs`.
//! Chosen: the time in nanoseconds, rather than a random generator, selects the phase in which a cycle
//! begins. Cost: O(1) per ACK; 0.5 kB per connection and 56 bytes for each outstanding segment.
//!
//! | here | draft | default | section |
//! |---|---|---|---|
//! | `BTL_BW_FILTER_LEN` | BtlBwFilterLen | 10 round trips | 4.1.1.3 |
//! | `RTPROP_FILTER_LEN` | RTpropFilterLen | 10 s | 4.1.2.3 |
//! | `HIGH_GAIN` | BBRHighGain | 2/ln 2 | 4.3.2.1 |
//! | `MIN_PIPE_CWND` | BBRMinPipeCwnd | 4 segments | 4.2.3.1 |
//! | `PROBE_RTT_DURATION` | ProbeRTTDuration | 200 ms | 4.3.5 |
//! | `PACING_MARGIN` | BBRPacingMarginPercent | 1 % | Linux; draft-cardwell-iccrg-bbr-congestion-control-02 section 2 |
//! | `PACING_GAINS` | | 5/4, 3/4, six times 1 | 4.3.4.1 |

mod policer;

use apportion_core::units::{Bytes, Rate, Span, Time};

use self::policer::{Policer, Progress};
use super::delivery_rate::RateSample;
use super::pacing::quantum;
use super::path_model::{PathModel, SampledAck};

const BTL_BW_FILTER_LEN: usize = 10;
const RTPROP_FILTER_LEN: Span = Span::from_secs(10);
const HIGH_GAIN: f64 = 2.0 * std::f64::consts::LOG2_E;
const MIN_PIPE_CWND: f64 = 4.0;
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
const PACING_GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// The margin below the rate of the bottleneck, without which a queue that no phase empties grows from cycle
/// to cycle.
const PACING_MARGIN: f64 = 0.01;
/// Section 4.3.4: the gain of the window while it probes for bandwidth.
const PROBE_BW_CWND_GAIN: f64 = 2.0;
/// Section 4.3.2.2: the pipe is full when three round trips each find less than a quarter more.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// Section 4.2.3.2: quanta in addition to the BDP.
const SPARE_QUANTA: u32 = 3;

/// Section 3.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The model of the path and its results. Names as in the draft.
#[derive(Clone, Debug)]
pub struct Bbr {
    state: State,
    pacing_gain: f64,
    cwnd_gain: f64,
    pacing_rate: Rate,
    /// The largest sample of each of the last rounds, as a ring that includes the present one.
    btl_bw_filter: [Rate; BTL_BW_FILTER_LEN],
    btl_bw: Rate,
    round_count: usize,
    round_start: bool,
    next_round_delivered: u64,
    rtprop: Option<Span>,
    rtprop_stamp: Time,
    rtprop_expired: bool,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    recovers: bool,
    packet_conservation: bool,
    prior_cwnd: f64,
    idle_restart: bool,
    filled_pipe: bool,
    full_bw: Rate,
    full_bw_count: u32,
    cycle_stamp: Time,
    cycle_index: usize,
    policer: Policer,
    initial_cwnd: f64,
    /// The size of a full segment on the wire.
    wire: Bytes,
}

impl Bbr {
    /// A connection with an initial window of `initial_cwnd` segments of `wire` bytes.
    #[must_use]
    pub fn new(initial_cwnd: f64, wire: Bytes) -> Self {
        Self {
            state: State::Startup,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: Rate::ZERO,
            btl_bw_filter: [Rate::ZERO; BTL_BW_FILTER_LEN],
            btl_bw: Rate::ZERO,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            rtprop: None,
            rtprop_stamp: Time::ZERO,
            rtprop_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            recovers: false,
            packet_conservation: false,
            prior_cwnd: 0.0,
            idle_restart: false,
            filled_pipe: false,
            full_bw: Rate::ZERO,
            full_bw_count: 0,
            cycle_stamp: Time::ZERO,
            cycle_index: 0,
            policer: Policer::default(),
            initial_cwnd,
            wire,
        }
    }
}

impl PathModel for Bbr {
    fn pacing_rate(&mut self, srtt: Option<Span>) -> Rate {
        if self.pacing_rate == Rate::ZERO {
            // Section 4.2.1, BBRInitPacingRate.
            let nominal = self.initial_cwnd / srtt.unwrap_or(Span::from_millis(1)).as_secs_f64();
            self.pacing_rate = self.rate(HIGH_GAIN * nominal);
        }
        self.pacing_rate
    }

    fn probes_rtt(&self) -> bool {
        self.state == State::ProbeRtt
    }

    /// Section 4.3.4.4, BBRHandleRestartFromIdle.
    fn restart_from_idle(&mut self, _: Time, cwnd: f64, _: u64) -> f64 {
        self.idle_restart = true;
        if self.state == State::ProbeBw {
            self.set_pacing_rate(1.0);
        }
        cwnd
    }

    /// Section 4.2.3.4, BBROnEnterFastRecovery.
    fn enter_recovery(&mut self, cwnd: f64, in_flight: u32, total: u64) -> f64 {
        self.save_cwnd(cwnd);
        (self.recovers, self.packet_conservation, self.next_round_delivered) = (true, true, total);
        f64::from(in_flight + 1)
    }

    /// Section 4.2.3.4, BBROnEnterRTO.
    fn time_out(&mut self, cwnd: f64) {
        self.save_cwnd(cwnd);
        (self.recovers, self.packet_conservation) = (true, false);
    }

    /// Section 4.2.3.4, BBROnExitFastRecovery.
    fn leave_recovery(&mut self, cwnd: f64) -> f64 {
        (self.recovers, self.packet_conservation) = (false, false);
        cwnd.max(self.prior_cwnd)
    }

    /// Section 4.1 and 4.2 for an ACK: the model, the state, and from them the window.
    fn on_ack(&mut self, cwnd: f64, ack: SampledAck) -> f64 {
        self.round_start = false;
        if let Some(sample) = ack.sample {
            self.update_btl_bw(ack.total, sample);
            self.check_policer(ack, sample);
        }
        self.check_cycle_phase(ack);
        self.check_full_pipe(ack.sample);
        self.check_drain(ack);
        self.update_rtprop(ack);
        let cwnd = self.check_probe_rtt(cwnd, ack);
        self.set_pacing_rate(self.pacing_gain);
        self.window(cwnd, ack)
    }
}

impl Bbr {
    // -----------------------------------------------------------------------------------------
    // The model

    /// Section 4.1.1.5, BBRUpdateBtlBw, and section 4.1.1.3, BBRUpdateRound.
    fn update_btl_bw(&mut self, total: u64, sample: RateSample) {
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = total;
            self.round_count += 1;
            self.round_start = true;
            self.btl_bw_filter[self.round_count % BTL_BW_FILTER_LEN] = Rate::ZERO;
            self.packet_conservation = false;
        }
        // draft-cheng section 3.3: an interval below the round-trip time is no rate.
        if sample.interval == Span::ZERO || self.rtprop.is_some_and(|least| sample.interval < least) {
            return;
        }
        let rate = self.rate(sample.delivered as f64 / sample.interval.as_secs_f64());
        if rate >= self.btl_bw || !sample.is_app_limited {
            let slot = &mut self.btl_bw_filter[self.round_count % BTL_BW_FILTER_LEN];
            *slot = rate.max(*slot);
            self.btl_bw = self.btl_bw_filter.iter().copied().max().unwrap_or(rate);
        }
    }

    /// Section 4.1.2.3, BBRUpdateRTprop.
    fn update_rtprop(&mut self, ack: SampledAck) {
        self.rtprop_expired = ack.now > self.rtprop_stamp + RTPROP_FILTER_LEN;
        if let Some(rtt) = ack.sample.and_then(|sample| sample.rtt)
            && (self.rtprop_expired || self.rtprop.is_none_or(|least| rtt <= least))
        {
            (self.rtprop, self.rtprop_stamp) = (Some(rtt), ack.now);
        }
    }

    /// The rate of a detected policer, else the largest sample.
    fn bw(&self) -> Rate {
        self.policer.rate().unwrap_or(self.btl_bw)
    }

    fn check_policer(&mut self, ack: SampledAck, sample: RateSample) {
        let progress = Progress {
            now: ack.now,
            delivered: ack.total,
            lost: ack.total_lost,
            round_start: self.round_start,
            is_app_limited: sample.is_app_limited,
        };
        if self.policer.on_ack(progress, self.wire) && self.state == State::ProbeBw {
            self.enter_probe_bw(ack.now);
        }
    }

    fn rate(&self, segments_per_second: f64) -> Rate {
        Rate::from_bit((segments_per_second * self.wire.bits() as f64) as u64)
    }

    /// Section 4.2.3.2, BBRInflight: `gain` times the BDP, plus quanta that wait at its ends.
    fn inflight(&self, gain: f64) -> f64 {
        let Some(rtprop) = self.rtprop else { return self.initial_cwnd };
        let bdp = self.bw().bytes_in(rtprop).get() as f64 / self.wire.get() as f64;
        gain * bdp + f64::from(SPARE_QUANTA * quantum(self.pacing_rate, self.wire))
    }

    // -----------------------------------------------------------------------------------------
    // Pacing and the window

    /// Section 4.2.1, BBRSetPacingRateWithGain.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = Rate::from_bit((gain * (1.0 - PACING_MARGIN) * self.bw().as_bit() as f64) as u64);
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Section 4.2.3.6, BBRSetCwnd.
    fn window(&self, mut cwnd: f64, ack: SampledAck) -> f64 {
        let (delivered, target) = (f64::from(ack.delivered), self.inflight(self.cwnd_gain));
        // Section 4.2.3.4, BBRModulateCwndForRecovery.
        if ack.lost > 0 {
            cwnd = (cwnd - f64::from(ack.lost)).max(1.0);
        }
        if self.packet_conservation {
            cwnd = cwnd.max(f64::from(ack.in_flight) + delivered);
        } else {
            if self.filled_pipe {
                cwnd = (cwnd + delivered).min(target);
            } else if cwnd < target || (ack.total as f64) < self.initial_cwnd {
                cwnd += delivered;
            }
            cwnd = cwnd.max(MIN_PIPE_CWND);
        }
        if self.state == State::ProbeRtt { cwnd.min(MIN_PIPE_CWND) } else { cwnd }
    }

    /// Section 4.2.3.4, BBRSaveCwnd.
    fn save_cwnd(&mut self, cwnd: f64) {
        let holds = self.recovers || self.state == State::ProbeRtt;
        self.prior_cwnd = if holds { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    // -----------------------------------------------------------------------------------------
    // The states

    /// Section 4.3.2.2, BBRCheckFullPipe.
    fn check_full_pipe(&mut self, sample: Option<RateSample>) {
        if self.filled_pipe || !self.round_start || sample.is_none_or(|sample| sample.is_app_limited) {
            return;
        }
        if self.btl_bw.as_bit() as f64 >= self.full_bw.as_bit() as f64 * FULL_BW_GROWTH {
            (self.full_bw, self.full_bw_count) = (self.btl_bw, 0);
            return;
        }
        self.full_bw_count += 1;
        self.filled_pipe = self.full_bw_count >= FULL_BW_ROUNDS;
    }

    /// Section 4.3.3, BBRCheckDrain.
    fn check_drain(&mut self, ack: SampledAck) {
        if self.state == State::Startup && self.filled_pipe {
            (self.state, self.pacing_gain, self.cwnd_gain) = (State::Drain, 1.0 / HIGH_GAIN, HIGH_GAIN);
        }
        if self.state == State::Drain && f64::from(ack.in_flight) <= self.inflight(1.0) {
            self.enter_probe_bw(ack.now);
        }
    }

    /// Section 4.3.4.3, BBREnterProbeBW: in any phase but the one that drains what nothing filled.
    fn enter_probe_bw(&mut self, now: Time) {
        (self.state, self.cwnd_gain) = (State::ProbeBw, PROBE_BW_CWND_GAIN);
        // Knuth's multiplicative hashing, TAOCP volume 3, section 6.4.
        let mixed = now.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.cycle_index = PACING_GAINS.len() - 1 - (mixed % 7) as usize;
        self.advance_cycle_phase(now);
    }

    /// Section 4.3.4.3, BBRCheckCyclePhase and BBRIsNextCyclePhase.
    fn check_cycle_phase(&mut self, ack: SampledAck) {
        if self.state != State::ProbeBw {
            return;
        }
        let is_full_length = ack.now.since(self.cycle_stamp) > self.rtprop.unwrap_or_default();
        let prior = f64::from(ack.prior_in_flight);
        let is_next = if self.pacing_gain > 1.0 {
            is_full_length && (ack.lost > 0 || prior >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            is_full_length || prior <= self.inflight(1.0)
        } else {
            is_full_length
        };
        if is_next {
            self.advance_cycle_phase(ack.now);
        }
        // Packets above a policer's rate are lost.
        if self.policer.rate().is_some() {
            self.pacing_gain = 1.0;
        }
    }

    fn advance_cycle_phase(&mut self, now: Time) {
        self.cycle_stamp = now;
        self.cycle_index = (self.cycle_index + 1) % PACING_GAINS.len();
        self.pacing_gain = PACING_GAINS[self.cycle_index];
    }

    /// Section 4.3.5, BBRCheckProbeRTT and BBRHandleProbeRTT. Returns the window.
    fn check_probe_rtt(&mut self, cwnd: f64, ack: SampledAck) -> f64 {
        if self.state != State::ProbeRtt && self.rtprop_expired && !self.idle_restart {
            self.save_cwnd(cwnd);
            (self.state, self.pacing_gain, self.cwnd_gain) = (State::ProbeRtt, 1.0, 1.0);
            self.probe_rtt_done_stamp = None;
        }
        self.idle_restart = false;
        if self.state != State::ProbeRtt {
            return cwnd;
        }
        let Some(done) = self.probe_rtt_done_stamp else {
            if f64::from(ack.in_flight) <= MIN_PIPE_CWND {
                self.probe_rtt_done_stamp = Some(ack.now + PROBE_RTT_DURATION);
                (self.probe_rtt_round_done, self.next_round_delivered) = (false, ack.total);
            }
            return cwnd;
        };
        self.probe_rtt_round_done |= self.round_start;
        if !self.probe_rtt_round_done || ack.now <= done {
            return cwnd;
        }
        self.rtprop_stamp = ack.now;
        if self.filled_pipe {
            self.enter_probe_bw(ack.now);
        } else {
            (self.state, self.pacing_gain, self.cwnd_gain) = (State::Startup, HIGH_GAIN, HIGH_GAIN);
        }
        cwnd.max(self.prior_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::delivery_rate::Transit;

    /// A path of 10 segments of 1250 bytes each 100 ms, 1 Mb/s, on which each ACK is for one segment. Without
    /// a queue.
    fn ack(n: u64, in_flight: u32) -> SampledAck {
        let sample = RateSample {
            prior_delivered: n.saturating_sub(10),
            delivered: 10,
            interval: Span::from_millis(100),
            is_app_limited: false,
            rtt: Some(Span::from_millis(if n < 900 { 100 } else { 101 })),
        };
        let now = Time::from_millis(10 * n);
        SampledAck {
            now,
            total: n,
            delivered: 1,
            lost: 0,
            total_lost: 0,
            prior_in_flight: in_flight,
            in_flight,
            sample: Some(sample),
            transit: Transit::default(),
            is_cwnd_limited: true,
        }
    }

    #[test]
    fn the_states_follow_each_other_and_the_gains_take_turns() {
        let mut bbr = Bbr::new(10.0, Bytes::new(1_250));
        let (mut cwnd, mut in_flight, mut seen) = (10.0, 20, Vec::new());
        for n in 1..2_400 {
            in_flight = match bbr.state {
                State::Startup => 20,
                State::Drain => in_flight - 1,
                State::ProbeBw => 10 + if bbr.pacing_gain > 1.0 { 10 } else { 0 },
                State::ProbeRtt => 4,
            };
            cwnd = bbr.on_ack(cwnd, ack(n, in_flight));
            let now = (bbr.state, bbr.pacing_gain);
            if seen.last().is_none_or(|&(state, gain, _)| (state, gain) != now) {
                seen.push((now.0, now.1, n));
            }
            match bbr.state {
                State::ProbeRtt => assert_eq!(cwnd, 4.0),
                // Twice the BDP and three quanta of one or two segments.
                State::ProbeBw if n > 100 => assert!((20.0..26.5).contains(&cwnd), "{n}: {cwnd}"),
                _ => {}
            }
        }
        assert_eq!((bbr.btl_bw, bbr.rtprop), (Rate::from_mbit(1), Some(Span::from_millis(101))));
        assert_eq!(seen[0], (State::Startup, HIGH_GAIN, 1));
        // The first round finds the rate and three more find no increase; then the queue of 4 beyond three
        // quanta drains.
        assert_eq!((seen[1].0, seen[1].1), (State::Drain, 1.0 / HIGH_GAIN));
        assert!((30..=45).contains(&seen[1].2), "{seen:?}");
        assert!(seen[2].0 == State::ProbeBw && seen[2].2 - seen[1].2 < 10, "{seen:?}");
        // 11 ACKs are more than a round trip. The phase of 3/4 ends at once, because the queue is empty; six
        // of 1 follow.
        let probes: Vec<u64> = seen.iter().filter(|phase| phase.1 == 1.25).map(|phase| phase.2).collect();
        let quiet = probes.windows(2).filter(|pair| pair[1] < 1_900);
        assert!(
            quiet.clone().count() > 15 && quiet.clone().all(|pair| pair[1] - pair[0] == 78),
            "{probes:?}"
        );
        // 10 s after the last 100 ms, which came with ACK 899, for 200 ms and at least a round trip.
        let probe = seen.iter().position(|phase| phase.0 == State::ProbeRtt).unwrap();
        assert_eq!(seen[probe].2, 1_900);
        assert!((20..=32).contains(&(seen[probe + 1].2 - 1_900)), "{seen:?}");
        assert_eq!(seen[probe + 1].0, State::ProbeBw);
    }

    #[test]
    fn recovery_conserves_packets_for_a_round_and_gives_the_window_back() {
        let mut bbr = Bbr::new(10.0, Bytes::new(1_250));
        let mut cwnd = 10.0;
        for n in 1..=500 {
            cwnd = bbr.on_ack(cwnd, ack(n, if bbr.filled_pipe { 10 } else { 20 }));
        }
        let before = cwnd;
        // 12 of 20 in flight are lost: arrivals permit as many transmissions, until a round trip is over.
        cwnd = bbr.enter_recovery(cwnd, 8, 500);
        assert_eq!(cwnd, 9.0);
        for n in 501..=509 {
            cwnd = bbr.on_ack(cwnd, SampledAck { lost: u32::from(n == 505), ..ack(n, 8) });
            assert_eq!(cwnd, 9.0, "{n}");
        }
        let open = bbr.on_ack(cwnd, ack(510, 8));
        assert_eq!(open, 10.0);
        assert_eq!(bbr.leave_recovery(open), before);
        // A timeout remembers the larger window, also when it comes within another recovery.
        bbr.time_out(before);
        bbr.time_out(1.0);
        assert_eq!(bbr.leave_recovery(2.0), before);
    }

    #[test]
    fn the_rate_is_the_largest_of_ten_rounds() {
        let mut bbr = Bbr::new(10.0, Bytes::new(1_250));
        let mut cwnd = 10.0;
        for n in 1..=200 {
            let mut ack = ack(n, 10);
            if let Some(sample) = &mut ack.sample
                && n == 100
            {
                sample.delivered = 20;
            }
            cwnd = bbr.on_ack(cwnd, ack);
            let rounds = if n < 100 { None } else { Some((n - 100) / 10) };
            let expected = if rounds.is_some_and(|rounds| rounds < 9) { 2 } else { 1 };
            if rounds != Some(9) {
                assert_eq!(bbr.btl_bw, Rate::from_mbit(expected), "{n}");
            }
        }
    }
}
