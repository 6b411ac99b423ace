//! RAMP's loop as printed: one flow, in real numbers, without any bound.

#[path = "../../../../tests/it/reference/ramp.rs"]
mod reference;

use reference::Controller;

/// A queue that is fed and drained in fluid, sample by sample.
#[derive(Clone, Debug)]
pub struct Fluid {
    controller: Controller,
    /// Bytes.
    fill: f64,
    /// What the link carries in a sample, in bytes.
    capacity: f64,
}

impl Fluid {
    /// A flow that has sent `inflow` bytes a sample for long: L, P, I and D, the target in KB.
    #[must_use]
    pub fn running(l: f64, p: f64, i: f64, d: f64, target: f64, capacity: f64, inflow: f64) -> Self {
        let sum = 100.0 * inflow / capacity / i;
        let controller = Controller { l, p, i, d, target, x: 0.0, sum };
        Self { controller, fill: 1_024.0 * target, capacity }
    }

    /// The queue is sampled, and until the next sample `inflow` bytes come. Gives the bytes that may leave.
    pub fn sample(&mut self, inflow: f64) -> f64 {
        let outflow = self.controller.sample(self.fill / 1_024.0) / 100.0 * self.capacity;
        self.fill += inflow - outflow;
        outflow
    }
}
