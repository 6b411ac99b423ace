//! A token bucket over real numbers: tokens are bytes, times are seconds.

/// The state.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// The rate in bytes per second.
    pub rate: f64,
    /// The depth in bytes.
    pub burst: f64,
    tokens: f64,
    last: f64,
}

impl Bucket {
    /// A bucket that is full at time 0.
    #[must_use]
    pub const fn new(rate: f64, burst: f64) -> Self {
        Self { rate, burst, tokens: burst, last: 0.0 }
    }

    /// The departure time of a packet of `size` that is ready at `now`, after all earlier ones.
    pub fn leave(&mut self, now: f64, size: f64) -> f64 {
        let start = now.max(self.last);
        self.tokens = (self.tokens + self.rate * (start - self.last)).min(self.burst);
        let missing = (size.min(self.burst) - self.tokens).max(0.0);
        let leaves = start + missing / self.rate;
        self.tokens += missing - size;
        self.last = leaves;
        leaves
    }
}
