//! Exponential average: each arrival is averaged with weight 1 - e^(-T/K), where T is the gap before it.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, eq. (3): unlike a fixed weight, this
//! makes the estimate independent of how a flow is cut into packets.
//!
//! Readings, where the paper leaves room:
//! - Amounts that arrive at the same instant have no gap; they are kept and counted with the next that has
//!   one.
//! - The first arrival has no gap either. [`First`] says what it is taken to be.
//!
//! Cost: O(1) with one exponential, also for several averages of what arrives together; 40 bytes for one.

use super::RateEstimator;
use crate::units::{Span, Time};

/// What the gap before the first arrival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum First {
    /// The time since the estimator was started: a flow that starts late begins with an estimate near 0.
    SinceStart,
    /// Unknown: the first arrival starts the clock and is not counted.
    StartsClock,
}

/// Exponential averages of `N` amounts that arrive together, for one exponential.
#[derive(Clone, Debug)]
pub struct Exponentials<const N: usize> {
    /// 1 / K, per nanosecond.
    per_nano: f64,
    /// r at `last`.
    rates: [f64; N],
    /// Time of the last arrival that moved the rates; none before the first under [`First::StartsClock`].
    last: Option<Time>,
    /// l of arrivals at that same instant, not in the rates yet.
    pending: [f64; N],
}

impl<const N: usize> Exponentials<N> {
    /// Estimates of `initial` at `start`. A time constant of zero is taken as one nanosecond.
    #[must_use]
    pub fn new(k: Span, initial: [f64; N], start: Time, first: First) -> Self {
        let last = match first {
            First::SinceStart => Some(start),
            First::StartsClock => None,
        };
        let per_nano = 1.0 / k.as_nanos().max(1) as f64;
        Self { per_nano, rates: initial, last, pending: [0.0; N] }
    }

    /// `amounts` arrived at `now`, which never decreases.
    pub fn update(&mut self, now: Time, amounts: [f64; N]) {
        let Some(last) = self.last else {
            self.last = Some(now);
            return;
        };
        for (pending, amount) in self.pending.iter_mut().zip(amounts) {
            *pending += amount;
        }
        if now <= last {
            return;
        }
        self.rates = self.after(now.since(last));
        self.pending = [0.0; N];
        self.last = Some(now);
    }

    /// The rates as they stand at `now`, which is not before the last update.
    #[must_use]
    pub fn rates(&self, now: Time) -> [f64; N] {
        match self.last {
            Some(last) if now > last => self.after(now.since(last)),
            _ => self.rates,
        }
    }

    /// The rates of the last update, as the equation leaves them: without what time has taken since.
    #[must_use]
    pub const fn last_rates(&self) -> [f64; N] {
        self.rates
    }

    /// Multiplies what has been counted, as if all amounts had been that much larger.
    pub fn scale(&mut self, factors: [f64; N]) {
        for (i, factor) in factors.into_iter().enumerate() {
            self.rates[i] *= factor;
            self.pending[i] *= factor;
        }
    }

    /// r after a gap of `t`. As t goes to 0 the first term goes to l / K.
    // Stoica98 eq. (3)
    fn after(&self, t: Span) -> [f64; N] {
        let t = t.as_nanos() as f64;
        // e^(-t/K) - 1, exact also where t is much less than K.
        let less = libm::expm1(-t * self.per_nano);
        let (share, keep) = (-less * 1e9 / t, 1.0 + less);
        core::array::from_fn(|i| share * self.pending[i] + keep * self.rates[i])
    }
}

/// An exponential average.
#[derive(Clone, Debug)]
pub struct Exponential(Exponentials<1>);

impl Exponential {
    /// An estimate of `initial` at `start`. A time constant of zero is taken as one nanosecond.
    #[must_use]
    pub fn new(k: Span, initial: f64, start: Time, first: First) -> Self {
        Self(Exponentials::new(k, [initial], start, first))
    }
}

impl RateEstimator for Exponential {
    fn update(&mut self, now: Time, amount: f64) {
        self.0.update(now, [amount]);
    }

    fn rate(&self, now: Time) -> f64 {
        let [rate] = self.0.rates(now);
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(first: First) -> Exponential {
        Exponential::new(Span::from_millis(100), 0.0, Time::ZERO, first)
    }

    #[test]
    fn one_step_is_the_equation() {
        // K = 0.1 s, gap 0.1 s: (1 - 1/e)·1000/0.1 + (1/e)·0 = 6321.2; a second: 6321.2 + 6321.2/e = 8646.6.
        let mut average = average(First::SinceStart);
        average.update(Time::from_millis(100), 1_000.0);
        assert!((average.rate(Time::from_millis(100)) - 6_321.205_588).abs() < 1e-5);
        average.update(Time::from_millis(200), 1_000.0);
        assert!((average.rate(Time::from_millis(200)) - 8_646.647_168).abs() < 1e-5);
    }

    #[test]
    fn arrivals_at_one_instant_count_with_the_next_gap() {
        let (mut apart, mut together) = (average(First::SinceStart), average(First::SinceStart));
        let ms = Time::from_millis;
        for t in [100, 200, 300] {
            for _ in 0..4 {
                apart.update(ms(t), 250.0);
            }
            together.update(ms(t), if t == 100 { 250.0 } else { 1_000.0 });
        }
        // Three quarters of each burst wait for the next gap: 250, then 1000 each; the last 750 wait now.
        assert_eq!(apart.rate(ms(300)), together.rate(ms(300)));
        assert!(apart.rate(ms(400)) > together.rate(ms(400)));
        apart.update(ms(400), 250.0);
        together.update(ms(400), 1_000.0);
        assert_eq!(apart.rate(ms(400)), together.rate(ms(400)), "nothing is lost");
    }

    #[test]
    fn the_estimate_does_not_depend_on_packet_size() {
        // 1 Mbit/s for one second as 100 large or 1000 small packets: both settle within 1 - e^(-10).
        for (packets, gap) in [(100, 10_000_000), (1_000, 1_000_000)] {
            let mut average = average(First::SinceStart);
            for i in 1..=packets {
                average.update(Time::from_nanos(i * gap), 1e6 / packets as f64);
            }
            let rate = average.rate(Time::from_secs(1));
            assert!((rate / 1e6 - (1.0 - (-10.0_f64).exp())).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn the_first_arrival_is_what_was_asked_for() {
        let rates = [First::SinceStart, First::StartsClock].map(|first| {
            let mut average = average(first);
            average.update(Time::from_secs(10), 1_000.0);
            average.rate(Time::from_secs(10))
        });
        // Since the start: (1 - e^-100)·1000/10 = 100, far below any flow's rate; as a clock: the initial
        // value.
        assert!((rates[0] - 100.0).abs() < 1e-9);
        assert_eq!(rates[1], 0.0);
    }

    #[test]
    fn reading_decays_by_the_time_constant_and_changes_nothing() {
        let average = Exponential::new(Span::from_millis(100), 1_000.0, Time::ZERO, First::SinceStart);
        for _ in 0..2 {
            // After K: 1000/e.
            assert!((average.rate(Time::from_millis(100)) - 367.879_441).abs() < 1e-5);
        }
        assert_eq!(average.rate(Time::ZERO), 1_000.0);
    }
}
