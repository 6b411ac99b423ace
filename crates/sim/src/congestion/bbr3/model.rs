//! The model of the path: rates, round trip and bounds of data in flight. Section 5.5 of the draft.

use apportion_core::units::{Rate, Span};

use super::{
    BETA, Bbr3, EXTRA_ACKED_FILTER_LEN, HEADROOM, MIN_PIPE_CWND, MIN_RTT_FILTER_LEN, PROBE_RTT_INTERVAL,
    SPARE_QUANTA, State,
};
use crate::congestion::delivery_rate::RateSample;
use crate::congestion::pacing::quantum;
use crate::congestion::path_model::SampledAck;

impl Bbr3 {
    /// Section 4.1.2.3: an interval below the round-trip time is no rate.
    pub(super) fn delivery_rate(&self, sample: RateSample) -> Option<Rate> {
        let plausible =
            sample.interval > Span::ZERO && self.min_rtt.is_none_or(|least| sample.interval >= least);
        plausible.then(|| self.rate(sample.delivered as f64 / sample.interval.as_secs_f64()))
    }

    /// Section 5.5.10.3, UpdateLatestDeliverySignals.
    pub(super) fn update_latest_delivery_signals(&mut self, ack: SampledAck, rate: Option<Rate>) {
        self.loss_round_start = false;
        let Some(sample) = ack.sample else { return };
        self.bw_latest = self.bw_latest.max(rate.unwrap_or_default());
        self.inflight_latest = self.inflight_latest.max(sample.delivered as f64);
        if sample.prior_delivered >= self.loss_round_delivered {
            (self.loss_round_delivered, self.loss_round_start) = (ack.total, true);
        }
    }

    /// Section 5.5.5, UpdateMaxBw, and section 5.5.1, UpdateRound.
    pub(super) fn update_max_bw(&mut self, ack: SampledAck, rate: Option<Rate>) {
        self.round_start = false;
        let Some(sample) = ack.sample else { return };
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = ack.total;
            self.round_count += 1;
            self.rounds_since_probe_up = self.rounds_since_probe_up.saturating_add(1);
            self.round_start = true;
            self.extra_acked_filter[self.round_count % EXTRA_ACKED_FILTER_LEN] = 0.0;
        }
        if let Some(rate) = rate
            && (rate >= self.max_bw() || !sample.is_app_limited)
        {
            self.max_bw_filter[0] = self.max_bw_filter[0].max(rate);
        }
    }

    /// Section 5.5.10.3, AdaptLowerBoundsFromCongestion.
    pub(super) fn adapt_lower_bounds(&mut self, cwnd: f64) {
        if self.state.accelerates() || !self.is_loss_in_round {
            return;
        }
        let bw = self.bw_shortterm.unwrap_or_else(|| self.max_bw());
        self.bw_shortterm = Some(self.bw_latest.max(Rate::from_bit((BETA * bw.as_bit() as f64) as u64)));
        let inflight = if self.inflight_shortterm.is_finite() { self.inflight_shortterm } else { cwnd };
        self.inflight_shortterm = self.inflight_latest.max(BETA * inflight);
    }

    pub(super) fn reset_short_term_model(&mut self) {
        (self.bw_shortterm, self.inflight_shortterm) = (None, f64::INFINITY);
    }

    /// Section 5.5.9, UpdateACKAggregation.
    pub(super) fn update_ack_aggregation(&mut self, cwnd: f64, ack: SampledAck) {
        let interval = ack.now.since(self.extra_acked_interval_start);
        let mut expected = self.segments(self.bw(), interval);
        if self.extra_acked_delivered <= expected {
            (self.extra_acked_delivered, self.extra_acked_interval_start) = (0.0, ack.now);
            expected = 0.0;
        }
        self.extra_acked_delivered += f64::from(ack.delivered);
        let extra = (self.extra_acked_delivered - expected).min(cwnd);
        let slot = &mut self.extra_acked_filter[self.round_count % EXTRA_ACKED_FILTER_LEN];
        *slot = slot.max(extra);
    }

    pub(super) fn extra_acked(&self) -> f64 {
        let now = self.extra_acked_filter[self.round_count % EXTRA_ACKED_FILTER_LEN];
        if self.full_bw_reached { self.extra_acked_filter.iter().copied().fold(now, f64::max) } else { now }
    }

    /// Section 5.3.4.3, UpdateMinRTT.
    pub(super) fn update_min_rtt(&mut self, ack: SampledAck) {
        let now = ack.now;
        self.probe_rtt_expired = now > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = ack.sample.and_then(|sample| sample.rtt)
            && (self.probe_rtt_expired || self.probe_rtt_min_delay.is_none_or(|least| rtt < least))
        {
            (self.probe_rtt_min_delay, self.probe_rtt_min_stamp) = (Some(rtt), now);
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_FILTER_LEN;
        let is_less = match (self.probe_rtt_min_delay, self.min_rtt) {
            (Some(new), Some(old)) => new < old,
            (new, _) => new.is_some(),
        };
        if is_less || expired {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_rtt_min_delay, self.probe_rtt_min_stamp);
        }
    }

    pub(super) fn rate(&self, segments_per_second: f64) -> Rate {
        Rate::from_bit((segments_per_second * self.wire.bits() as f64) as u64)
    }

    pub(super) fn max_bw(&self) -> Rate {
        self.max_bw_filter[0].max(self.max_bw_filter[1])
    }

    /// Section 5.5.10.3, BoundBWForModel.
    pub(super) fn bw(&self) -> Rate {
        self.bw_shortterm.map_or(self.max_bw(), |bound| bound.min(self.max_bw()))
    }

    pub(super) fn segments(&self, rate: Rate, span: Span) -> f64 {
        rate.as_bit() as f64 * span.as_secs_f64() / self.wire.bits() as f64
    }

    /// Section 5.6.4.2, BDPMultiple.
    pub(super) fn bdp_multiple(&self, rate: Rate, gain: f64) -> f64 {
        self.min_rtt.map_or(self.initial_cwnd, |rtt| gain * self.segments(rate, rtt))
    }

    /// Section 5.6.4.2, QuantizationBudget.
    pub(super) fn quantization_budget(&self, inflight: f64) -> f64 {
        let spare = f64::from(SPARE_QUANTA * quantum(self.pacing_rate, self.wire).max(2));
        inflight.max(spare).max(MIN_PIPE_CWND) + if self.state == State::Up { 2.0 } else { 0.0 }
    }

    pub(super) fn target_inflight(&self, cwnd: f64) -> f64 {
        self.bdp_multiple(self.bw(), 1.0).min(cwnd)
    }

    /// Section 5.3.3.6, InflightWithHeadroom.
    pub(super) fn inflight_with_headroom(&self) -> f64 {
        if self.inflight_longterm.is_infinite() {
            return f64::INFINITY;
        }
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        (self.inflight_longterm - headroom).max(MIN_PIPE_CWND)
    }
}
