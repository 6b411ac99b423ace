//! Dead time: a delay line for the output of a controller, and a predictor that accounts for the orders in
//! it.
//!
//! The idea of Smith, "Closer control of loops with dead time", Chemical Engineering Progress 53, 1957: a
//! controller that predicts the effect of its orders need not wait for it. Smith's own predictor keeps an
//! error for ever if the plant integrates, as a queue does. Here the plant is known to integrate the inflow
//! minus the ordered outflow, so the prediction is the measurement plus the sum of the orders on their way,
//! and the error vanishes.
//!
//! Cost: O(1) per sample, O(delay) for a prediction; 8 bytes for each sample of delay.

use alloc::collections::VecDeque;

/// A delay of whole samples.
#[derive(Clone, Debug, PartialEq)]
pub struct DeadTime {
    /// The samples on their way, the oldest first.
    line: VecDeque<f64>,
}

impl DeadTime {
    /// A delay of `samples`, filled with `initial`.
    #[must_use]
    pub fn new(samples: usize, initial: f64) -> Self {
        Self { line: core::iter::repeat_n(initial, samples).collect() }
    }

    /// Appends the newest value and returns the oldest.
    pub fn push(&mut self, value: f64) -> f64 {
        self.line.push_back(value);
        self.line.pop_front().unwrap_or(value)
    }

    /// The level of a queue, now at `level`, when all orders on their way have been carried out, if `inflow`
    /// comes in each sample. Below zero: the queue will run empty.
    #[must_use]
    pub fn predict(&self, level: f64, inflow: f64) -> f64 {
        self.line.iter().fold(level, |level, outflow| level + inflow - outflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::pid::{Bounds, Gains, Pid};

    #[test]
    fn what_goes_in_comes_out_so_many_samples_later() {
        let mut line = DeadTime::new(2, 7.0);
        assert_eq!([1.0, 2.0, 3.0].map(|value| line.push(value)), [7.0, 7.0, 1.0]);
        assert_eq!(DeadTime::new(0, 7.0).push(1.0), 1.0);
    }

    #[test]
    fn a_prediction_counts_what_is_on_its_way() {
        let mut line = DeadTime::new(3, 10.0);
        line.push(40.0);
        // 100 + 3·20 minus 10, 10 and 40.
        assert_eq!(line.predict(100.0, 20.0), 100.0);
        assert_eq!(DeadTime::new(0, 0.0).predict(100.0, 20.0), 100.0);
    }

    /// A queue with an inflow of 1 a sample, and 2 from sample 100 on, that a controller holds at 0: the
    /// highest outflow and the final level.
    fn held(samples: usize, predict: bool) -> (f64, f64) {
        let mut line = DeadTime::new(samples, 1.0);
        let mut pid = Pid::new(Gains { p: 0.15, i: 0.002, d: 0.0 }, 1.0);
        let (mut queue, mut highest) = (0.0, 0.0_f64);
        for sample in 0..4_000 {
            let inflow = if sample < 100 { 1.0 } else { 2.0 };
            let level = if predict { line.predict(queue, pid.integral()) } else { queue };
            let outflow = line.push(pid.update(level, Bounds::NONE, Bounds::NONE, false));
            queue += inflow - outflow;
            highest = highest.max(outflow);
        }
        (highest, queue)
    }

    #[test]
    fn with_a_predictor_a_loop_with_dead_time_stays_calm_and_leaves_no_error() {
        // P of 0.15 against 15 samples: without a prediction the loop diverges, since P d = 2.25 is above
        // pi/2.
        assert!(held(15, false).0 > 1e3);
        let (highest, queue) = held(15, true);
        assert!(highest < 3.5, "{highest}");
        assert!(queue.abs() < 1e-3, "{queue}");
        // Without dead time the prediction is the measurement.
        assert_eq!(held(0, true), held(0, false));
    }
}
