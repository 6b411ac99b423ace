//! BBR, version 3: paces at the rate of the bottleneck, and limits data in flight to an amount with losses
//! below 2 %.
//!
//! draft-ietf-ccwg-bbr-05 sections 5.3 (the states) to 5.6 (pacing and the window), over the rate samples of
//! [`delivery_rate`](super::delivery_rate). Probing sets the long-term model, the largest rate of two cycles
//! and `inflight_longterm`; losses reduce the short-term model until the next probe. It ignores marks,
//! because the draft has no response to them. It has no precautionary probes, which are later than version
//! 05. Chosen: the time in nanoseconds replaces the draft's random draws. Cost: O(1) per ACK and O(log
//! segments) per loss, times the losses that wait for repair; 0.5 kB per connection and 72 bytes for each
//! outstanding segment.
//!
//! | here | draft | default | section |
//! |---|---|---|---|
//! | `STARTUP_PACING_GAIN` | StartupPacingGain | 4 ln 2 | 2 |
//! | `DRAIN_PACING_GAIN` | DrainPacingGain | 0.5 | 2 |
//! | `PACING_MARGIN` | PacingMarginPercent | 1 % | 2 |
//! | `CWND_GAIN` | DefaultCwndGain | 2 | 2 |
//! | `LOSS_THRESH` | LossThresh | 2 % | 2 |
//! | `BETA` | Beta | 0.7 | 2 |
//! | `HEADROOM` | Headroom | 0.15 | 2 |
//! | `MIN_PIPE_CWND` | MinPipeCwnd | 4 segments | 2 |
//! | `EXTRA_ACKED_FILTER_LEN` | ExtraAckedFilterLen | 10 round trips | 2 |
//! | `MIN_RTT_FILTER_LEN` | MinRTTFilterLen | 10 s | 2 |
//! | `PROBE_RTT_CWND_GAIN` | ProbeRTTCwndGain | 0.5 | 2 |
//! | `PROBE_RTT_DURATION` | ProbeRTTDuration | 200 ms | 2 |
//! | `PROBE_RTT_INTERVAL` | ProbeRTTInterval | 5 s | 2 |
//! | `STARTUP_FULL_LOSS_COUNT` | BBRStartupFullLossCnt | 6 | 5.3.1.3 |

use apportion_core::units::{Bytes, Rate, Span, Time};

use super::delivery_rate::{RateSample, Transit};
use super::path_model::{PathModel, SampledAck};

mod model;
mod probe_bw;
#[cfg(test)]
mod tests;

const STARTUP_PACING_GAIN: f64 = 4.0 * std::f64::consts::LN_2;
const DRAIN_PACING_GAIN: f64 = 0.5;
const PACING_MARGIN: f64 = 0.01;
const CWND_GAIN: f64 = 2.0;
const LOSS_THRESH: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_CWND: f64 = 4.0;
const EXTRA_ACKED_FILTER_LEN: usize = 10;
const MIN_RTT_FILTER_LEN: Span = Span::from_secs(10);
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
const PROBE_RTT_DURATION: Span = Span::from_millis(200);
const PROBE_RTT_INTERVAL: Span = Span::from_secs(5);
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// Section 5.3.1.2: the pipe is full when three round trips each find less than a quarter more.
const FULL_BW_GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u32 = 3;
/// Section 5.3.2: the number of round trips after which Drain ends.
const DRAIN_ROUNDS: usize = 3;
/// Section 5.3.3.5.3: the maximum number of round trips, and the maximum time, between probes.
const RENO_ROUNDS: f64 = 63.0;
const PROBE_WAIT: Span = Span::from_secs(2);
/// Section 5.5.8: quanta in addition to the BDP.
const SPARE_QUANTA: u32 = 3;

/// Section 5.1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Section 5.6.1: the pacing gain, and the window gain.
    const fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (STARTUP_PACING_GAIN, CWND_GAIN),
            Self::Drain => (DRAIN_PACING_GAIN, CWND_GAIN),
            Self::Down => (0.9, CWND_GAIN),
            Self::Cruise | Self::Refill => (1.0, CWND_GAIN),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_CWND_GAIN),
        }
    }

    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// IsProbingBW.
    const fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// Section 2: the phase of a probe that ACKs belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AckPhase {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Section 5.5.11: the state that is restored when a recovery proves needless.
#[derive(Clone, Copy, Debug)]
struct Undo {
    state: Option<State>,
    bw_shortterm: Option<Rate>,
    inflight_shortterm: f64,
    inflight_longterm: f64,
}

/// The model of the path and its results. Names as in the draft; volumes are in segments.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    state: State,
    pacing_rate: Rate,
    /// The largest sample of this cycle and of the last.
    max_bw_filter: [Rate; 2],
    /// The short-term bandwidth; none is infinite.
    bw_shortterm: Option<Rate>,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    bw_latest: Rate,
    inflight_latest: f64,
    round_count: usize,
    round_start: bool,
    next_round_delivered: u64,
    loss_round_start: bool,
    loss_round_delivered: u64,
    is_loss_in_round: bool,
    loss_events_in_round: u32,
    full_bw: Rate,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    drain_start_round: usize,
    ack_phase: AckPhase,
    is_bw_probe_sample: bool,
    bw_probe_up_rounds: u32,
    bw_probe_up_acked: f64,
    probe_up_acked_per_inc: f64,
    rounds_since_probe_up: u32,
    bw_probe_wait: Span,
    cycle_stamp: Time,
    extra_acked_filter: [f64; EXTRA_ACKED_FILTER_LEN],
    extra_acked_interval_start: Time,
    extra_acked_delivered: f64,
    min_rtt: Option<Span>,
    min_rtt_stamp: Time,
    probe_rtt_min_delay: Option<Span>,
    probe_rtt_min_stamp: Time,
    probe_rtt_expired: bool,
    probe_rtt_done_stamp: Option<Time>,
    probe_rtt_round_done: bool,
    recovers: bool,
    prior_cwnd: f64,
    idle_restart: bool,
    undo: Undo,
    initial_cwnd: f64,
    /// The size of a full segment on the wire.
    wire: Bytes,
}

impl Bbr3 {
    /// A connection with an initial window of `initial_cwnd` segments of `wire` bytes.
    #[must_use]
    pub const fn new(initial_cwnd: f64, wire: Bytes) -> Self {
        let none = f64::INFINITY;
        Self {
            state: State::Startup,
            pacing_rate: Rate::ZERO,
            max_bw_filter: [Rate::ZERO; 2],
            bw_shortterm: None,
            inflight_shortterm: none,
            inflight_longterm: none,
            bw_latest: Rate::ZERO,
            inflight_latest: 0.0,
            round_count: 0,
            round_start: false,
            next_round_delivered: 0,
            loss_round_start: false,
            loss_round_delivered: 0,
            is_loss_in_round: false,
            loss_events_in_round: 0,
            full_bw: Rate::ZERO,
            full_bw_count: 0,
            full_bw_now: false,
            full_bw_reached: false,
            drain_start_round: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            bw_probe_up_rounds: 0,
            bw_probe_up_acked: 0.0,
            probe_up_acked_per_inc: none,
            rounds_since_probe_up: 0,
            bw_probe_wait: Span::ZERO,
            cycle_stamp: Time::ZERO,
            extra_acked_filter: [0.0; EXTRA_ACKED_FILTER_LEN],
            extra_acked_interval_start: Time::ZERO,
            extra_acked_delivered: 0.0,
            min_rtt: None,
            min_rtt_stamp: Time::ZERO,
            probe_rtt_min_delay: None,
            probe_rtt_min_stamp: Time::ZERO,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: None,
            probe_rtt_round_done: false,
            recovers: false,
            prior_cwnd: 0.0,
            idle_restart: false,
            undo: Undo { state: None, bw_shortterm: None, inflight_shortterm: none, inflight_longterm: none },
            initial_cwnd,
            wire,
        }
    }
}

impl PathModel for Bbr3 {
    fn pacing_rate(&mut self, srtt: Option<Span>) -> Rate {
        if self.pacing_rate == Rate::ZERO {
            // Section 5.6.2, InitPacingRate.
            let srtt = srtt.filter(|&srtt| srtt > Span::ZERO).unwrap_or(Span::from_millis(1));
            self.pacing_rate = self.rate(STARTUP_PACING_GAIN * self.initial_cwnd / srtt.as_secs_f64());
        }
        self.pacing_rate
    }

    fn probes_rtt(&self) -> bool {
        self.state == State::ProbeRtt
    }

    /// Section 5.4.1, HandleRestartFromIdle.
    fn restart_from_idle(&mut self, now: Time, cwnd: f64, total: u64) -> f64 {
        (self.idle_restart, self.extra_acked_interval_start) = (true, now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate(1.0);
        } else if self.state == State::ProbeRtt {
            return self.check_probe_rtt_done(cwnd, now, total);
        }
        cwnd
    }

    /// Section 5.6.4.4, OnEnterFastRecovery.
    fn enter_recovery(&mut self, cwnd: f64, _: u32, _: u64) -> f64 {
        self.time_out(cwnd);
        cwnd
    }

    /// Section 5.6.4.4, OnEnterRTO.
    fn time_out(&mut self, cwnd: f64) {
        self.save_cwnd(cwnd);
        self.save_state_upon_loss();
        self.recovers = true;
    }

    /// Section 5.6.4.4.
    fn leave_recovery(&mut self, cwnd: f64) -> f64 {
        self.recovers = false;
        cwnd.max(self.prior_cwnd)
    }

    /// Section 5.5.11.2, HandleSpuriousLossDetection, for what [`leave_recovery`](Self::leave_recovery) leaves.
    fn undo(&mut self, total: u64) {
        let undo = self.undo;
        self.is_loss_in_round = false;
        self.reset_full_bw();
        self.bw_shortterm = self.bw_shortterm.zip(undo.bw_shortterm).map(|(now, then)| now.max(then));
        self.inflight_shortterm = self.inflight_shortterm.max(undo.inflight_shortterm);
        self.inflight_longterm = self.inflight_longterm.max(undo.inflight_longterm);
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.state = State::Startup;
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_refill(total);
            }
            _ => {}
        }
        self.undo.state = None;
    }

    /// Section 5.5.10.2, HandleLostPacket.
    fn lose(&mut self, now: Time, cwnd: f64, total: u64, transit: Transit, begins: bool) {
        if !self.is_loss_in_round {
            self.loss_round_delivered = total;
            self.save_cwnd(cwnd);
            self.save_state_upon_loss();
        }
        self.is_loss_in_round = true;
        self.loss_events_in_round += u32::from(begins);
        if !self.is_bw_probe_sample || !is_inflight_too_high(transit) {
            return;
        }
        // InflightAtLoss.
        let (before, lost_before) = (f64::from(transit.in_flight) - 1.0, transit.lost as f64 - 1.0);
        let at_loss = before + (LOSS_THRESH * before - lost_before) / (1.0 - LOSS_THRESH);
        // HandleInflightTooHigh.
        self.is_bw_probe_sample = false;
        if !transit.is_app_limited {
            self.inflight_longterm = at_loss.max(BETA * self.target_inflight(cwnd));
        }
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_down(now, total);
        }
    }

    /// Section 5.2.3 for an ACK: the model, the state, and from them the window.
    fn on_ack(&mut self, mut cwnd: f64, ack: SampledAck) -> f64 {
        let rate = ack.sample.and_then(|sample| self.delivery_rate(sample));
        self.update_latest_delivery_signals(ack, rate);
        self.update_max_bw(ack, rate);
        if self.loss_round_start {
            self.adapt_lower_bounds(cwnd);
        }
        self.update_ack_aggregation(cwnd, ack);
        self.check_full_bw_reached(ack, rate);
        self.check_startup_done(ack);
        self.check_drain_done(ack);
        self.update_cycle_phase(cwnd, ack, rate);
        self.update_min_rtt(ack);
        cwnd = self.check_probe_rtt(cwnd, ack);
        if self.loss_round_start {
            // AdvanceLatestDeliverySignals; the end of a round resets the losses in it.
            self.bw_latest = rate.unwrap_or_default();
            self.inflight_latest = delivered(ack.sample);
            (self.is_loss_in_round, self.loss_events_in_round) = (false, 0);
        }
        self.set_pacing_rate(self.state.gains().0);
        self.window(cwnd, ack)
    }
}

impl Bbr3 {
    // -----------------------------------------------------------------------------------------
    // Pacing and the window

    /// Section 5.6.2, SetPacingRateWithGain.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = Rate::from_bit((gain * (1.0 - PACING_MARGIN) * self.bw().as_bit() as f64) as u64);
        if rate > Rate::ZERO && (self.full_bw_reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// Section 5.6.4.6, SetCwnd.
    fn window(&self, mut cwnd: f64, ack: SampledAck) -> f64 {
        let delivered = f64::from(ack.delivered);
        let bdp = self.bdp_multiple(self.bw(), self.state.gains().1);
        let most = self.quantization_budget(bdp + self.extra_acked());
        if self.full_bw_reached {
            cwnd = (cwnd + delivered).min(most);
        } else if cwnd < most || (ack.total as f64) < self.initial_cwnd {
            cwnd += delivered;
        }
        cwnd = cwnd.max(MIN_PIPE_CWND);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // Section 5.6.4.7, BoundCwndForModel.
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        cwnd.min(cap.min(self.inflight_shortterm).max(MIN_PIPE_CWND))
    }

    fn probe_rtt_cwnd(&self) -> f64 {
        self.bdp_multiple(self.bw(), PROBE_RTT_CWND_GAIN).max(MIN_PIPE_CWND)
    }

    /// Section 5.6.4.4, SaveCwnd.
    fn save_cwnd(&mut self, cwnd: f64) {
        let holds = self.recovers || self.state == State::ProbeRtt;
        self.prior_cwnd = if holds { self.prior_cwnd.max(cwnd) } else { cwnd };
    }

    fn save_state_upon_loss(&mut self) {
        self.undo = Undo {
            state: None,
            bw_shortterm: self.bw_shortterm,
            inflight_shortterm: self.inflight_shortterm,
            inflight_longterm: self.inflight_longterm,
        };
    }

    // -----------------------------------------------------------------------------------------
    // Startup and Drain

    fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (Rate::ZERO, 0, false);
    }

    /// Section 5.3.1.2, CheckFullBWReached.
    fn check_full_bw_reached(&mut self, ack: SampledAck, rate: Option<Rate>) {
        if self.full_bw_now || !self.round_start || ack.is_app_limited() {
            return;
        }
        let rate = rate.unwrap_or_default();
        if rate.as_bit() as f64 >= self.full_bw.as_bit() as f64 * FULL_BW_GROWTH {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Section 5.3.1.1, CheckStartupDone, and section 5.3.1.3, CheckStartupHighLoss.
    fn check_startup_done(&mut self, ack: SampledAck) {
        if self.state != State::Startup {
            return;
        }
        let is_lossy = self.loss_round_start
            && self.recovers
            && self.loss_events_in_round >= STARTUP_FULL_LOSS_COUNT
            && is_inflight_too_high(ack.transit);
        if !self.full_bw_reached && is_lossy {
            self.undo.state = Some(State::Startup);
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp_multiple(self.bw(), 1.0).max(self.inflight_latest);
        }
        if self.full_bw_reached {
            (self.state, self.drain_start_round) = (State::Drain, self.round_count);
        }
    }

    /// Section 5.3.2, CheckDrainDone.
    fn check_drain_done(&mut self, ack: SampledAck) {
        if self.state != State::Drain {
            return;
        }
        let path = self.quantization_budget(self.bdp_multiple(self.bw(), 1.0));
        if f64::from(ack.in_flight) <= path || self.round_count > self.drain_start_round + DRAIN_ROUNDS {
            self.start_down(ack.now, ack.total);
        }
    }

    // -----------------------------------------------------------------------------------------
    // ProbeRTT (section 5.3.4.3)

    /// CheckProbeRTT and HandleProbeRTT. Returns the window.
    fn check_probe_rtt(&mut self, cwnd: f64, ack: SampledAck) -> f64 {
        let (now, total) = (ack.now, ack.total);
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd(cwnd);
            (self.state, self.probe_rtt_done_stamp) = (State::ProbeRtt, None);
            (self.ack_phase, self.next_round_delivered) = (AckPhase::ProbeStopping, total);
        }
        if ack.delivered > 0 {
            self.idle_restart = false;
        }
        if self.state != State::ProbeRtt {
            return cwnd;
        }
        if self.probe_rtt_done_stamp.is_none() {
            if f64::from(ack.in_flight) <= self.probe_rtt_cwnd() {
                self.probe_rtt_done_stamp = Some(now + PROBE_RTT_DURATION);
                (self.probe_rtt_round_done, self.next_round_delivered) = (false, total);
            }
            return cwnd;
        }
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done { self.check_probe_rtt_done(cwnd, now, total) } else { cwnd }
    }

    /// CheckProbeRTTDone and ExitProbeRTT. Returns the window.
    fn check_probe_rtt_done(&mut self, cwnd: f64, now: Time, total: u64) -> f64 {
        if self.probe_rtt_done_stamp.is_none_or(|done| now <= done) {
            return cwnd;
        }
        self.probe_rtt_min_stamp = now;
        self.reset_short_term_model();
        if self.full_bw_reached {
            self.start_down(now, total);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
        cwnd.max(self.prior_cwnd)
    }
}

/// Section 5.5.10.2, IsInflightTooHigh.
fn is_inflight_too_high(transit: Transit) -> bool {
    transit.lost as f64 > f64::from(transit.in_flight) * LOSS_THRESH
}

fn delivered(sample: Option<RateSample>) -> f64 {
    sample.map_or(0.0, |sample| sample.delivered as f64)
}
