//! TSW, time sliding window: each arrival is averaged with the window's content at the old rate.
//!
//! Clark, Fang, "Explicit allocation of best-effort packet delivery service", IEEE/ACM ToN 6(4), 1998, figure
//! 2; RFC 2859. With regular arrivals of s every `gap` it settles at s / gap exactly. With random ones it has
//! a positive bias when few fall into a window: the mean is over 1/(gap + W), which weighs short gaps more
//! (12 % at 1.25 packets per second and W = 5 s).
//!
//! The state changes only with arrivals, so a reading is what an arrival of zero would leave.
//!
//! Cost: O(1), 24 bytes.

use super::RateEstimator;
use crate::units::{Span, Time};

/// A time sliding window.
#[derive(Clone, Debug)]
pub struct Tsw {
    /// Win_length.
    window: f64,
    /// Avg_rate at `t_front`.
    rate: f64,
    /// T_front: time of the last arrival.
    t_front: Time,
}

impl Tsw {
    /// An estimator with the rate `initial` at `start`. RFC 2859 starts a meter at its target rate; a monitor
    /// may start at 0.
    ///
    /// A window of zero is taken as one nanosecond.
    #[must_use]
    pub fn new(window: Span, initial: f64, start: Time) -> Self {
        let window = window.as_secs_f64().max(Span::from_nanos(1).as_secs_f64());
        Self { window, rate: initial, t_front: start }
    }

    /// Replaces the window; the rate stays.
    pub const fn set_window(&mut self, seconds: f64) {
        self.window = seconds;
    }

    /// The rate as of the last arrival.
    #[must_use]
    pub const fn latest(&self) -> f64 {
        self.rate
    }
}

impl RateEstimator for Tsw {
    fn update(&mut self, now: Time, amount: f64) {
        // Clark98 figure 2: Avg_rate = (Avg_rate · Win_length + size) / (now - T_front + Win_length).
        let gap = now.since(self.t_front).as_secs_f64();
        self.rate = (self.rate * self.window + amount) / (gap + self.window);
        self.t_front = now;
    }

    fn rate(&self, now: Time) -> f64 {
        self.rate * self.window / (self.window + now.since(self.t_front).as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;

    fn tsw(initial: f64) -> Tsw {
        Tsw::new(Span::from_secs(5), initial, Time::ZERO)
    }

    #[test]
    fn regular_arrivals_settle_at_size_over_gap_from_any_start() {
        for initial in [0.0, 300_000.0] {
            let mut tsw = tsw(initial);
            for i in 1..=2_000 {
                tsw.update(Time::from_millis(100 * i), 12_000.0);
            }
            // 12,000 bit every 0.1 s; each step shrinks the error by 5/5.1, (5/5.1)^2000 = 6·10^-18.
            let rate = tsw.rate(Time::from_secs(200));
            assert!((rate - 120_000.0).abs() < 1e-6, "{rate} from {initial}");
        }
    }

    #[test]
    fn the_initial_value_counts_as_a_full_window_before_the_start() {
        // (100·5 + 50) / (1 + 5) = 91.67.
        let mut tsw = tsw(100.0);
        tsw.update(Time::from_secs(1), 50.0);
        assert!((tsw.rate(Time::from_secs(1)) - 550.0 / 6.0).abs() < 1e-12);
    }

    #[test]
    fn reading_decays_and_changes_nothing() {
        let mut tsw = tsw(100.0);
        // 100·5/(5 + 5) = 50, for any number of readings.
        assert_eq!(tsw.rate(Time::from_secs(5)), 50.0);
        assert_eq!(tsw.rate(Time::from_secs(5)), 50.0);
        assert_eq!(tsw.rate(Time::ZERO), 100.0);
        tsw.update(Time::from_secs(5), 0.0);
        assert_eq!(tsw.rate(Time::from_secs(5)), 50.0, "as an arrival of nothing leaves it");
    }

    #[test]
    fn random_arrivals_read_high_when_few_fall_into_a_window() {
        // Poisson, W = 5 s: measured bias 1.125 at 1.25 per second, 1.04 at 5, 1.00 at 37.5. Estimates are
        // correlated over about W, so the band is 4 standard errors of the means of 40 independent runs.
        for (per_second, bias) in [(1.25, 1.125), (5.0, 1.04), (37.5, 1.0)] {
            let runs: [f64; 40] =
                core::array::from_fn(|run| mean_estimate(per_second, run as u64) / per_second);
            let mean = runs.iter().sum::<f64>() / 40.0;
            let variance = runs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 39.0;
            let band = 4.0 * (variance / 40.0).sqrt() + 0.005; // the published digits are rounded
            assert!((mean - bias).abs() < band, "{per_second}/s: {mean} against {bias} ± {band}");
        }
    }

    /// The mean of the estimate after each of 2,000 arrivals, after it has settled.
    fn mean_estimate(per_second: f64, seed: u64) -> f64 {
        let mut random = Stream::new(seed, "poisson");
        let mut tsw = tsw(per_second);
        let mut now = Time::ZERO;
        let mut sum = 0.0;
        for i in 0..2_500 {
            now += Span::from_secs_f64(random.exponential(1.0 / per_second));
            tsw.update(now, 1.0);
            if i >= 500 {
                sum += tsw.rate(now);
            }
        }
        sum / 2_000.0
    }
}
