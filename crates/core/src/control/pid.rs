//! PID: control by the error, its sum and its change, sample by sample.
//!
//! Franklin, Powell, "Feedback control of dynamic systems", 1994, in the discrete form of Li, Walpole,
//! McNamee, Pu, Steere 2001, section 3.2: `u = P x + I sum(x) + D (x - x')`, sums and differences per sample,
//! so a gain is made for one length of sample.
//!
//! - Beyond the papers: bounds for the output. An actuator that cannot follow makes the sum run away
//!   (windup), and the controller then answers late, by the time that the sum takes to return. So `I sum(x)`
//!   may be kept within the same bounds, and an error that cannot act does not move it further.
//!
//! Cost: O(1) per sample, 40 bytes.

/// Gains of the three parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gains {
    /// P, the gain of the error.
    pub p: f64,
    /// I, the gain of the sum of all errors.
    pub i: f64,
    /// D, the gain of the change of the error since the last sample.
    pub d: f64,
}

/// The range of the actuator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least output.
    pub low: f64,
    /// Greatest output; not below `low`.
    pub high: f64,
}

impl Bounds {
    /// No bounds.
    pub const NONE: Self = Self { low: f64::NEG_INFINITY, high: f64::INFINITY };

    /// `value` clamped to the bounds; NaN becomes `low`.
    #[must_use]
    pub const fn clamp(self, value: f64) -> f64 {
        value.max(self.low).min(self.high)
    }
}

/// The controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pid {
    gains: Gains,
    /// I sum(x).
    integral: f64,
    /// x'.
    previous: f64,
}

impl Pid {
    /// A controller whose output without an error is `integral`, and which has seen none.
    #[must_use]
    pub const fn new(gains: Gains, integral: f64) -> Self {
        Self { gains, integral, previous: 0.0 }
    }

    /// The output if there were no error.
    #[must_use]
    pub const fn integral(&self) -> f64 {
        self.integral
    }

    /// Sets the output without an error, in place of the learned one: a feed-forward.
    pub const fn set_integral(&mut self, integral: f64) {
        self.integral = integral;
    }

    /// Takes the next error and returns the output within `output`. `I sum(x)` stays within `integral`:
    /// [`Bounds::NONE`] for a plain PID. `saturated` means that the actuator did less than its input asked
    /// for, so an error above zero does not move the sum.
    pub fn update(&mut self, error: f64, output: Bounds, integral: Bounds, saturated: bool) -> f64 {
        let Gains { p, i, d } = self.gains;
        if !(saturated && error > 0.0) {
            self.integral = integral.clamp(self.integral + i * error);
        }
        let change = error - self.previous;
        self.previous = error;
        output.clamp(p * error + self.integral + d * change)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const GAINS: Gains = Gains { p: 2.0, i: 0.5, d: 0.25 };

    fn plain(pid: &mut Pid, errors: &[f64]) -> Vec<f64> {
        errors.iter().map(|&error| pid.update(error, Bounds::NONE, Bounds::NONE, false)).collect()
    }

    #[test]
    fn the_output_is_the_sum_of_the_three_parts() {
        // Errors 1, 3, -2: P 2, 6, -4; sums 1, 4, 2, I 0.5, 2, 1; changes 1, 2, -5, D 0.25, 0.5, -1.25.
        assert_eq!(plain(&mut Pid::new(GAINS, 0.0), &[1.0, 3.0, -2.0]), [2.75, 8.5, -4.25]);
    }

    #[test]
    fn without_an_error_it_holds_what_it_learned() {
        let mut pid = Pid::new(GAINS, 5.0);
        assert_eq!(plain(&mut pid, &[4.0, 0.0, 0.0]), [16.0, 6.0, 7.0]);
        assert_eq!(pid.integral(), 7.0);
    }

    #[test]
    fn a_bounded_sum_recovers_at_once_and_an_unbounded_one_takes_as_long_as_it_wound_up() {
        // A hundred errors of -1 and then +1. Bounded at 0: the first +1 gives 2 + 0.5 + 0.25·2. Free: the
        // sum stands at -50 and is back at 0 after a hundred.
        let bounds = Bounds { low: 0.0, high: 10.0 };
        let samples_until_it_acts = |integral: Bounds| {
            let mut pid = Pid::new(GAINS, 0.0);
            (0..100).for_each(|_| {
                pid.update(-1.0, bounds, integral, false);
            });
            (1..).find(|_| pid.update(1.0, bounds, integral, false) > 0.0).expect("it acts some day")
        };
        assert_eq!(samples_until_it_acts(bounds), 1);
        // -50 + 0.5 n + 2 > 0 first at n = 97.
        assert_eq!(samples_until_it_acts(Bounds::NONE), 97);
    }

    #[test]
    fn an_error_that_cannot_act_moves_the_sum_down_but_not_up() {
        let mut pid = Pid::new(GAINS, 5.0);
        pid.update(4.0, Bounds::NONE, Bounds::NONE, true);
        assert_eq!(pid.integral(), 5.0);
        pid.update(-4.0, Bounds::NONE, Bounds::NONE, true);
        assert_eq!(pid.integral(), 3.0);
    }

    #[test]
    fn an_output_that_is_no_number_becomes_the_least() {
        let bounds = Bounds { low: 1.0, high: 2.0 };
        assert_eq!(Pid::new(GAINS, 0.0).update(f64::NAN, bounds, bounds, false), 1.0);
    }
}
