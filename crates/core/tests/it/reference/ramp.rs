//! RAMP's controller as printed: one flow, in real numbers, without any bound.

/// The monitor and the controller of figure 2, in KB and percent.
#[derive(Clone, Debug)]
pub struct Controller {
    /// Weight of the newest sample.
    pub l: f64,
    /// Gain of the filtered pressure.
    pub p: f64,
    /// Gain of the sum of pressures.
    pub i: f64,
    /// Gain of the change of pressure.
    pub d: f64,
    /// The target fill of the queue, in KB.
    pub target: f64,
    /// The filtered pressure.
    pub x: f64,
    /// The sum of all filtered pressures.
    pub sum: f64,
}

impl Controller {
    /// The percentage of the link for a queue of `fill` KB.
    pub fn sample(&mut self, fill: f64) -> f64 {
        let e = fill - self.target;
        let x = self.l * e + (1.0 - self.l) * self.x;
        let change = x - self.x;
        self.x = x;
        self.sum += x;
        self.p * x + self.i * self.sum + self.d * change
    }
}
