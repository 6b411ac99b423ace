//! Controls that go by a model of the path, learned from samples of the delivery rate: BBR of either version.

use std::fmt;

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Phase, Response, Sent, Window};
use apportion_core::units::{Rate, Span, Time};

use super::delivery_rate::{DeliveryRate, RateSample, Transit};

/// What an ACK says with its sample. Counts are of segments.
#[derive(Clone, Copy, Debug)]
pub struct SampledAck {
    /// When it came.
    pub now: Time,
    /// Delivered in all.
    pub total: u64,
    /// Delivered by this ACK.
    pub delivered: u32,
    /// Found lost with it.
    pub lost: u32,
    /// Lost in all.
    pub total_lost: u64,
    /// In the network before it.
    pub prior_in_flight: u32,
    /// And after it.
    pub in_flight: u32,
    /// Its sample.
    pub sample: Option<RateSample>,
    /// What was in the network with the segment of the sample, and was lost since.
    pub transit: Transit,
    /// The window stopped the sender in the last round trip.
    pub is_cwnd_limited: bool,
}

impl SampledAck {
    /// RS.delivery_rate needs a sample; whether the application limited it.
    #[must_use]
    pub fn is_app_limited(&self) -> bool {
        self.sample.is_none_or(|sample| sample.is_app_limited)
    }
}

/// A model of the path, from which window and rate follow. Each function that returns a window takes the one before. `total` is what was
/// delivered so far.
pub trait PathModel: fmt::Debug + Send {
    /// An ACK.
    fn on_ack(&mut self, cwnd: f64, ack: SampledAck) -> f64;

    /// The rate at which segments leave.
    fn pacing_rate(&mut self, srtt: Option<Span>) -> Rate;

    /// Whether the pipe is deliberately left empty, so that samples say nothing of the path.
    fn probes_rtt(&self) -> bool;

    /// Data are sent while none are in the network.
    fn restart_from_idle(&mut self, now: Time, cwnd: f64, total: u64) -> f64;

    /// A loss is found.
    fn enter_recovery(&mut self, cwnd: f64, in_flight: u32, total: u64) -> f64;

    /// Everything outstanding is taken for lost.
    fn time_out(&mut self, cwnd: f64);

    /// What was outstanding at the loss has arrived.
    fn leave_recovery(&mut self, cwnd: f64) -> f64;

    /// A segment is lost that met this on its way. `begins`: the one before it is not lost.
    fn lose(&mut self, now: Time, cwnd: f64, total: u64, transit: Transit, begins: bool) {
        let _ = (now, cwnd, total, transit, begins);
    }

    /// The last recovery was needless, for what [`leave_recovery`](Self::leave_recovery) leaves.
    fn undo(&mut self, total: u64) {
        let _ = total;
    }
}

/// A model with the samples that it learns from. Marks mean nothing to it.
#[derive(Debug)]
pub struct ByModel<M> {
    model: M,
    rate: DeliveryRate,
}

impl<M> ByModel<M> {
    /// Nothing is sampled yet.
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
