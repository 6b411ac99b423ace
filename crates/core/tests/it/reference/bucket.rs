//! A token bucket over real numbers: tokens are bytes, times are seconds.

/// The state.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Bytes per second.
    pub rate: f64,
    /// Bytes.
    pub burst: f64,
    tokens: f64,
    last: f64,
}

impl Bucket {
    /// Full at time 0.
    #[must_use]
    pub const fn new(rate: f64, burst: f64) -> Self {
        Self { rate, burst, tokens: burst, last: 0.0 }
    }

    /// When a packet of `size` that is ready at `now` leaves, one after the other.
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
