//! The cycle that looks for more bandwidth: down, cruise, refill, up. Section 5.3.3 of the draft.

use apportion_core::units::{Rate, Span, Time};

use super::{AckPhase, Bbr3, PROBE_WAIT, RENO_ROUNDS, State, is_inflight_too_high};
use crate::congestion::path_model::SampledAck;

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: Time, total: u64) {
        // ResetCongestionSignals.
        (self.is_loss_in_round, self.bw_latest, self.inflight_latest) = (false, Rate::ZERO, 0.0);
        self.probe_up_acked_per_inc = f64::INFINITY;
        // PickProbeWait, by Knuth's multiplicative hashing, TAOCP volume 3, section 6.4.
        let mixed = now.as_nanos().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.rounds_since_probe_up = (mixed >> 63) as u32;
        self.bw_probe_wait = PROBE_WAIT + Span::from_nanos((mixed >> 32) % 1_000_000_000);
        self.cycle_stamp = now;
        (self.ack_phase, self.next_round_delivered, self.state) =
            (AckPhase::ProbeStopping, total, State::Down);
    }

    pub(super) fn start_refill(&mut self, total: u64) {
        self.reset_short_term_model();
        (self.bw_probe_up_rounds, self.bw_probe_up_acked) = (0, 0.0);
        (self.ack_phase, self.next_round_delivered, self.state) = (AckPhase::Refilling, total, State::Refill);
    }

    pub(super) fn start_up(&mut self, cwnd: f64, total: u64, rate: Option<Rate>) {
        self.reset_full_bw();
        self.full_bw = rate.unwrap_or_default();
        (self.ack_phase, self.next_round_delivered, self.state) = (AckPhase::ProbeStarting, total, State::Up);
        self.raise_inflight_slope(cwnd);
    }

    /// UpdateProbeBWCyclePhase.
    pub(super) fn update_cycle_phase(&mut self, cwnd: f64, ack: SampledAck, rate: Option<Rate>) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_long_term_model(cwnd, ack);
        let (now, total) = (ack.now, ack.total);
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(cwnd, now) => self.start_refill(total),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.round_start => {
                self.is_bw_probe_sample = true;
                self.start_up(cwnd, total, rate);
            }
            State::Up if self.is_time_to_go_down(cwnd, ack, rate) => self.start_down(now, total),
            _ => {}
        }
    }

    /// IsTimeToProbeBW.
    pub(super) fn is_time_to_probe(&self, cwnd: f64, now: Time) -> bool {
        now > self.cycle_stamp + self.bw_probe_wait
            || f64::from(self.rounds_since_probe_up) >= self.target_inflight(cwnd).min(RENO_ROUNDS)
    }

    pub(super) fn is_time_to_cruise(&self, ack: SampledAck) -> bool {
        let in_flight = f64::from(ack.in_flight);
        let path = self.quantization_budget(self.bdp_multiple(self.max_bw(), 1.0));
        in_flight <= self.inflight_with_headroom() && in_flight <= path
    }

    pub(super) fn is_time_to_go_down(&mut self, cwnd: f64, ack: SampledAck, rate: Option<Rate>) -> bool {
        if ack.is_cwnd_limited && cwnd >= self.inflight_longterm {
            self.reset_full_bw();
            self.full_bw = rate.unwrap_or_default();
            return false;
        }
        self.full_bw_now
    }

    /// RaiseInflightLongtermSlope.
    pub(super) fn raise_inflight_slope(&mut self, cwnd: f64) {
        let growth = f64::from(1_u32 << self.bw_probe_up_rounds);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (cwnd / growth).max(1.0);
    }

    /// AdaptLongTermModel.
    pub(super) fn adapt_long_term_model(&mut self, cwnd: f64, ack: SampledAck) {
        if self.round_start && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        } else if self.round_start && self.ack_phase == AckPhase::ProbeStopping {
            (self.is_bw_probe_sample, self.ack_phase) = (false, AckPhase::Init);
            if self.state.is_probe_bw() && !ack.is_app_limited() {
                // AdvanceMaxBwFilter.
                self.max_bw_filter = [Rate::ZERO, self.max_bw_filter[0]];
            }
        }
        if is_inflight_too_high(ack.transit) || self.inflight_longterm.is_infinite() {
            return;
        }
        self.inflight_longterm = self.inflight_longterm.max(f64::from(ack.transit.in_flight));
        // ProbeInflightLongtermUpward.
        if self.state != State::Up || !ack.is_cwnd_limited || cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += f64::from(ack.delivered);
        let steps = (self.bw_probe_up_acked / self.probe_up_acked_per_inc).floor();
        if steps >= 1.0 {
            self.bw_probe_up_acked -= steps * self.probe_up_acked_per_inc;
            self.inflight_longterm += steps;
        }
        if self.round_start {
            self.raise_inflight_slope(cwnd);
        }
    }
}
