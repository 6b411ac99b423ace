//! Rate labels: the edge estimates the rate of each flow and writes it, divided by the flow's weight, on each
//! packet.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, eq. (3), and its weighted form.
//! Labels are in bits of wire size a second.
//!
//! Readings, where the paper leaves room:
//! - Packets that arrive at one instant have no gap between them: they carry the rate as it stood and count
//!   with the next gap. An infinitely fast access link thus does not look infinitely fast.
//! - The first gap of a flow is the time since the start of the run, so its first packets carry little, as in
//!   the authors' code. Before any time has passed there is no estimate.
//! - A label is at least 1: 0 is reserved for packets that a guarantee covers.
//!
//! Not a marker of one flow at its source: a router labels whatever packet comes to it without a label.
//!
//! Cost: O(1) per packet, one exponential; 48 bytes per flow that has been labelled, and 8 per weight.

use alloc::vec::Vec;

use crate::estimate::RateEstimator;
use crate::estimate::exponential::{Exponential, First};
use crate::packet::FlowId;
use crate::units::{Bytes, Span, Time, Weight};

/// The rates of the flows that enter here.
#[derive(Clone, Debug)]
pub struct RateLabels {
    /// K.
    k: Span,
    /// w_i, by flow. Flows beyond have weight 1.
    weights: Vec<Weight>,
    /// r_i, by flow.
    rates: Vec<Exponential>,
}

impl RateLabels {
    /// No flow yet; rates are averaged over `k`.
    #[must_use]
    pub const fn new(k: Span) -> Self {
        Self { k, weights: Vec::new(), rates: Vec::new() }
    }

    /// The label of a packet of `flow`, in bits a second for a weight of 1. `None` if no time has passed in
    /// which anything could have arrived.
    pub fn label(&mut self, now: Time, flow: FlowId, size: Bytes) -> Option<f64> {
        if flow.slot() >= self.rates.len() {
            let fresh = Exponential::new(self.k, 0.0, Time::ZERO, First::SinceStart);
            self.rates.resize(flow.slot() + 1, fresh);
        }
        let rate = &mut self.rates[flow.slot()];
        rate.update(now, size.bits() as f64);
        let weight = self.weights.get(flow.slot()).map_or(1.0, |weight| weight.get());
        // Stoica98, weighted CSFQ: label = r_i / w_i.
        let rate = rate.rate(now);
        (rate > 0.0).then(|| (rate / weight).max(1.0))
    }

    /// The weight of `flow` from its next packet on.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        if flow.slot() >= self.weights.len() {
            self.weights.resize(flow.slot() + 1, Weight::ONE);
        }
        self.weights[flow.slot()] = weight;
    }

    /// The smallest weight; 1 if none is smaller.
    #[must_use]
    pub fn smallest_weight(&self) -> f64 {
        self.weights.iter().map(|weight| weight.get()).fold(1.0, f64::min)
    }

    /// Flows for which there is an estimate.
    #[must_use]
    pub const fn flows(&self) -> usize {
        self.rates.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(1_000);

    fn labels() -> RateLabels {
        RateLabels::new(Span::from_millis(100))
    }

    #[test]
    fn a_constant_rate_is_read_within_two_percent() {
        let mut labels = labels();
        for i in 1..=1_000 {
            let label = labels.label(Time::from_millis(4 * i), FlowId(3), SIZE).unwrap();
            // 8000 bit every 4 ms are 2 Mb/s. After 0.4 s the start weighs e^-4 = 1.8 %.
            assert!(i < 100 || (label / 2e6 - 1.0).abs() < 0.02, "{label} at packet {i}");
        }
        assert_eq!(labels.flows(), 4, "numbers are dense: one estimate for each up to the largest");
    }

    #[test]
    fn packets_at_one_instant_read_as_their_mean_rate() {
        let mut labels = labels();
        let mut read = Vec::new();
        for i in 1..=500 {
            for _ in 0..5 {
                read.extend(labels.label(Time::from_millis(20 * i), FlowId(0), SIZE));
            }
        }
        // Five packets of 8000 bit every 20 ms are 2 Mb/s, from a link that takes no time for them.
        for label in &read[500..] {
            assert!((label / 2e6 - 1.0).abs() < 0.05, "{label}");
        }
    }

    #[test]
    fn the_first_packet_has_a_small_label_and_none_at_the_very_start() {
        assert_eq!(labels().label(Time::ZERO, FlowId(0), SIZE), None);
        // (1 - e^-100) 8000 / 10 s = 800.
        let label = labels().label(Time::from_secs(10), FlowId(0), SIZE).unwrap();
        assert!((label - 800.0).abs() < 1e-9, "{label}");
        // 0.8 would be written as 0.
        assert_eq!(labels().label(Time::from_secs(10_000), FlowId(0), SIZE), Some(1.0));
    }

    #[test]
    fn a_label_is_the_rate_for_a_weight_of_one() {
        let mut labels = labels();
        labels.set_weight(FlowId(2), Weight::new(4.0).unwrap());
        labels.set_weight(FlowId(0), Weight::new(0.5).unwrap());
        let read = [0, 1, 2, 3].map(|flow| labels.label(Time::from_secs(1), FlowId(flow), SIZE).unwrap());
        let plain = read[1];
        assert_eq!(read, [plain * 2.0, plain, plain / 4.0, plain]);
        assert_eq!((labels.smallest_weight(), self::labels().smallest_weight()), (0.5, 1.0));
    }
}
