//! Low-pass filter: an exponential average of a signal, sample by sample.
//!
//! A block of SWiFT (Goel, Steere, Pu, Walpole, CSE-98-009, 1998), as described by Li, Walpole, McNamee, Pu,
//! Steere 2001, section 3.2: `x = L e + (1 - L) x'`.
//!
//! Cost: O(1) per sample, 16 bytes.

use crate::units::Ratio;

/// The filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowPass {
    /// L.
    weight: f64,
    /// x.
    value: f64,
}

impl LowPass {
    /// A filter that gives the newest sample the weight `weight` and starts at `initial`.
    #[must_use]
    pub const fn new(weight: Ratio, initial: f64) -> Self {
        Self { weight: weight.get(), value: initial }
    }

    /// Takes the next sample and returns the average.
    pub fn update(&mut self, sample: f64) -> f64 {
        self.value = self.weight * sample + (1.0 - self.weight) * self.value;
        self.value
    }

    /// The average.
    #[must_use]
    pub const fn get(&self) -> f64 {
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_approached_by_the_weight_of_what_is_missing() {
        // L = 0.25: 1 - 0.75^n.
        let mut filter = LowPass::new(Ratio::clamped(0.25), 0.0);
        assert_eq!([0; 3].map(|_| filter.update(1.0)), [0.25, 0.4375, 0.578_125]);
        assert_eq!(filter.get(), 0.578_125);
    }

    #[test]
    fn a_weight_of_one_is_no_filter() {
        let mut filter = LowPass::new(Ratio::ONE, 7.0);
        assert_eq!([3.0, -2.0].map(|sample| filter.update(sample)), [3.0, -2.0]);
    }
}
