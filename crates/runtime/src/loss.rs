//! Random losses of a wire: each packet with one probability, or in bursts.
//!
//! Bursts follow the Gilbert-Elliott model, see [`GilbertElliott`]. The state of the wire at the first
//! packet, good or bad, has its stationary probability. A packet passes or is lost by the state that it
//! finds, and then the state may change.
//!
//! Cost: one random number a packet, two with bursts.

use apportion_core::random::Stream;
use apportion_core::units::Ratio;
use apportion_scenario::model::{GilbertElliott, Loss};

/// Decides which packets are lost.
#[derive(Clone, Debug)]
pub struct RandomLoss {
    loss: Loss,
    is_bad: bool,
    stream: Stream,
}

impl RandomLoss {
    /// Losses drawn from `stream`.
    #[must_use]
    pub fn new(loss: Loss, mut stream: Stream) -> Self {
        let is_bad = match loss {
            Loss::Chance(_) => false,
            Loss::GilbertElliott(GilbertElliott { p, r, .. }) => stream.chance(p.get() / (p.get() + r.get())),
        };
        Self { loss, is_bad, stream }
    }

    /// The loss that was set.
    #[must_use]
    pub const fn get(&self) -> Loss {
        self.loss
    }

    /// Changes the loss, with the same random numbers.
    pub const fn set(&mut self, loss: Loss) {
        self.loss = loss;
    }

    /// Whether no packet is ever lost.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.loss == Loss::NONE
    }

    /// Whether the next packet is lost.
    pub fn hits(&mut self) -> bool {
        match self.loss {
            Loss::Chance(Ratio::ZERO) => false,
            Loss::Chance(chance) => self.stream.chance(chance.get()),
            Loss::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                let (passes, turns) = if self.is_bad { (h, r) } else { (k, p) };
                let is_lost = !self.stream.chance(passes.get());
                self.is_bad ^= self.stream.chance(turns.get());
                is_lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(value: f64) -> Ratio {
        Ratio::new(value).expect("a ratio")
    }

    fn losses(loss: Loss, packets: usize) -> Vec<bool> {
        let mut random = RandomLoss::new(loss, Stream::new(7, "loss"));
        (0..packets).map(|_| random.hits()).collect()
    }

    fn near(found: f64, expected: f64, within: f64) {
        assert!((found - expected).abs() <= within * expected, "{found}, not {expected}");
    }

    #[test]
    fn bursts_have_the_mean_and_the_length_of_the_model() {
        // A simple Gilbert wire, all lost while bad: p / (p + r) = 0.05, and bursts of 1 / r = 4 packets.
        let r = 0.25;
        let p = r * 0.05 / 0.95;
        let model = GilbertElliott { p: ratio(p), r: ratio(r), h: ratio(0.0), k: ratio(1.0) };
        let lost = losses(Loss::GilbertElliott(model), 1_000_000);
        let count = lost.iter().filter(|lost| **lost).count() as f64;
        let bursts = lost.split(|lost| !lost).filter(|burst| !burst.is_empty()).count() as f64;
        near(count / 1e6, 0.05, 0.03);
        near(count / bursts, 4.0, 0.03);
        near(count / 1e6, Loss::GilbertElliott(model).mean().get(), 0.03);
        // The same mean without bursts: runs of 1 / 0.95.
        let lost = losses(Loss::Chance(ratio(0.05)), 1_000_000);
        let bursts = lost.split(|lost| !lost).filter(|burst| !burst.is_empty()).count() as f64;
        near(lost.iter().filter(|lost| **lost).count() as f64 / bursts, 1.0 / 0.95, 0.03);
    }

    #[test]
    fn packets_pass_and_are_lost_in_both_states() {
        // Bad for 0.2 of the packets: 0.8 × 0.02 + 0.2 × 0.5 = 0.116.
        let model = GilbertElliott { p: ratio(0.01), r: ratio(0.04), h: ratio(0.5), k: ratio(0.98) };
        let lost = losses(Loss::GilbertElliott(model), 1_000_000);
        near(Loss::GilbertElliott(model).mean().get(), 0.116, 1e-9);
        near(lost.iter().filter(|lost| **lost).count() as f64 / 1e6, 0.116, 0.03);
    }

    #[test]
    fn the_first_packet_finds_the_wire_as_it_is_in_the_long_run() {
        let model = GilbertElliott { p: ratio(0.001), r: ratio(0.001), h: ratio(0.0), k: ratio(1.0) };
        let first = |seed| RandomLoss::new(Loss::GilbertElliott(model), Stream::new(seed, "loss")).hits();
        near((0..4_000).filter(|seed| first(*seed)).count() as f64 / 4_000.0, 0.5, 0.05);
    }
}
