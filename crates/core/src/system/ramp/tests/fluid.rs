//! RAMP's loop as printed: one flow, in real numbers, without any bound.

#[path = "../../../../tests/it/reference/ramp.rs"]
mod reference;

use reference::Controller;

/// A queue in the fluid model, sample by sample.
#[derive(Clone, Debug)]
pub struct Fluid {
    controller: Controller,
    /// The fill in bytes.
    fill: f64,
    /// The bytes that the link carries in a sample.
    capacity: f64,
}

impl Fluid {
    /// A flow that has sent `inflow` bytes a sample for long, with L, P, I and D, and the target in KB.
    #[must_use]
    pub fn running(l: f64, p: f64, i: f64, d: f64, target: f64, capacity: f64, inflow: f64) -> Self {
        let sum = 100.0 * inflow / capacity / i;
        let controller = Controller { l, p, i, d, target, x: 0.0, sum };
        Self { controller, fill: 1_024.0 * target, capacity }
    }

    /// Samples the queue; until the next sample `inflow` bytes arrive. Returns the bytes that may leave.
    pub fn sample(&mut self, inflow: f64) -> f64 {
        let outflow = self.controller.sample(self.fill / 1_024.0) / 100.0 * self.capacity;
        self.fill += inflow - outflow;
        outflow
    }
}
