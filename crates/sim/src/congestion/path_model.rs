//! Controls with a model of the path, learned from samples of the delivery rate: both versions of BBR.

use std::fmt;

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Phase, Response, Sent, Window};
use apportion_core::units::{Rate, Span, Time};

use super::delivery_rate::{DeliveryRate, RateSample, Transit};

/// An ACK with its sample. Counts are in segments.
#[derive(Clone, Copy, Debug)]
pub struct SampledAck {
    /// The arrival time.
    pub now: Time,
    /// Segments delivered in all.
    pub total: u64,
    /// Segments delivered by this ACK.
    pub delivered: u32,
    /// Segments found lost with it.
    pub lost: u32,
    /// Segments lost in all.
    pub total_lost: u64,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments in flight after it.
    pub in_flight: u32,
    /// The sample.
    pub sample: Option<RateSample>,
    /// The conditions that the segment of the sample met.
    pub transit: Transit,
    /// Whether the window limited the sender in the last round trip.
    pub is_cwnd_limited: bool,
}

impl SampledAck {
    /// The delivery rate, if there is a sample, and whether it is application-limited.
    #[must_use]
    pub fn is_app_limited(&self) -> bool {
        self.sample.is_none_or(|sample| sample.is_app_limited)
    }
}

/// A model of the path, which determines window and rate. Each function that returns a window takes the
/// previous one. `total` is the number of segments delivered so far.
pub trait PathModel: fmt::Debug + Send {
    /// Takes an ACK.
    fn on_ack(&mut self, cwnd: f64, ack: SampledAck) -> f64;

    /// The pacing rate.
    fn pacing_rate(&mut self, srtt: Option<Span>) -> Rate;

    /// Whether the pipe is deliberately kept empty, so that samples do not describe the path.
    fn probes_rtt(&self) -> bool;

    /// Notes that data are sent while none are in flight.
    fn restart_from_idle(&mut self, now: Time, cwnd: f64, total: u64) -> f64;

    /// Notes that a loss is found.
    fn enter_recovery(&mut self, cwnd: f64, in_flight: u32, total: u64) -> f64;

    /// Notes that everything outstanding is presumed lost.
    fn time_out(&mut self, cwnd: f64);

    /// Notes that the data outstanding at the loss has arrived.
    fn leave_recovery(&mut self, cwnd: f64) -> f64;

    /// Notes that a segment is lost that met `transit`. `begins`: the one before it is not lost.
    fn lose(&mut self, now: Time, cwnd: f64, total: u64, transit: Transit, begins: bool) {
        let _ = (now, cwnd, total, transit, begins);
    }

    /// Notes that the last recovery was needless, for models whose [`leave_recovery`](Self::leave_recovery)
    /// does not restore all.
    fn undo(&mut self, total: u64) {
        let _ = total;
    }
}

/// A model with its rate samples. It ignores marks.
#[derive(Debug)]
pub struct ByModel<M> {
    model: M,
    rate: DeliveryRate,
}

impl<M> ByModel<M> {
    /// A model without samples.
    #[must_use]
    pub fn new(model: M) -> Self {
        Self { model, rate: DeliveryRate::default() }
    }
}

impl<M: PathModel> CongestionControl for ByModel<M> {
    fn on_sent(&mut self, window: &mut Window, sent: &Sent) {
        let &Sent { now, number, in_flight } = sent;
        if in_flight == 0 && self.rate.is_app_limited() {
            window.cwnd = self.model.restart_from_idle(now, window.cwnd, self.rate.delivered());
        }
        self.rate.send(now, number, in_flight);
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let sample = self.rate.deliver(ack.now, ack.delivered, ack.latest, ack.number);
        let sampled = SampledAck {
            now: ack.now,
            total: self.rate.delivered(),
            delivered: ack.delivered,
            lost: ack.lost,
            total_lost: self.rate.lost(),
            prior_in_flight: ack.prior_in_flight,
            in_flight: ack.in_flight,
            sample,
            transit: self.rate.transit(),
            is_cwnd_limited: ack.is_limited,
        };
        window.cwnd = self.model.on_ack(window.cwnd, sampled);
        if self.model.probes_rtt() {
            self.rate.limit(ack.in_flight);
        }
    }

    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        window.cwnd = self.model.enter_recovery(window.cwnd, event.in_flight, self.rate.delivered());
        Response::Done
    }

    fn on_repaired_loss(&mut self, _: &mut Window, _: &CongestionEvent) -> Response {
        Response::Ignore
    }

    fn on_mark(&mut self, _: &mut Window, _: &CongestionEvent) -> Response {
        Response::Ignore
    }

    fn on_timeout(&mut self, window: &Window, event: &CongestionEvent) -> f64 {
        self.model.time_out(window.cwnd);
        event.basis / 2.0
    }

    fn on_segment_lost(&mut self, window: &Window, now: Time, number: u64) {
        if let Some((transit, begins)) = self.rate.lose(number) {
            self.model.lose(now, window.cwnd, self.rate.delivered(), transit, begins);
        }
    }

    fn on_recovered(&mut self, window: &mut Window) {
        window.cwnd = self.model.leave_recovery(window.cwnd);
    }

    fn on_undone(&mut self) {
        self.model.undo(self.rate.delivered());
    }

    fn on_app_limited(&mut self, in_flight: u32) {
        self.rate.limit(in_flight);
    }

    fn pacing_rate(&mut self, srtt: Option<Span>) -> Option<Rate> {
        Some(self.model.pacing_rate(srtt))
    }

    fn moves_window(&self, _: Phase) -> bool {
        true
    }

    fn has_slow_start(&self) -> bool {
        false
    }
}
