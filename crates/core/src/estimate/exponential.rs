//! Exponential average: each arrival is averaged with weight 1 - e^(-T/K), where T is the gap before it.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, eq. (3): unlike a fixed weight, this
//! makes the estimate independent of how a flow is cut into packets.
//!
//! Readings, where the paper leaves room:
//! - Amounts that arrive at the same time have no gap; they are kept and counted with the next amount that
//!   has one.
//! - The first gap is the time since the estimate was started: a flow that starts late begins near 0.
//!
//! Cost: O(1) with one exponential, also for several averages of simultaneous arrivals; 32 bytes for one.

use super::RateEstimator;
use crate::units::{Span, Time, float};

/// K, as a rate of decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimeConstant {
    /// 1 / K, per nanosecond.
    per_nano: f64,
}

impl TimeConstant {
    /// Makes a time constant. Zero is taken as one nanosecond.
    #[must_use]
    pub fn new(k: Span) -> Self {
        Self { per_nano: 1.0 / k.as_nanos().max(1) as f64 }
    }
}

/// Averages of `N` amounts that arrive together, without their time constant, which many averages may share.
/// One average does not lie across two cache lines.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub struct Averages<const N: usize> {
    /// r at `last`.
    rates: [f64; N],
    /// l of arrivals at `last` itself, not in the rates yet.
    pending: [f64; N],
    /// Time of the last arrival that changed the rates.
    last: Time,
}

impl<const N: usize> Averages<N> {
    /// Averages with the values `initial` at `start`.
    #[must_use]
    pub const fn new(initial: [f64; N], start: Time) -> Self {
        Self { rates: initial, pending: [0.0; N], last: start }
    }

    /// Counts `amounts`, which arrived at `now`. `now` never decreases.
    #[inline(always)]
    pub fn update(&mut self, k: TimeConstant, now: Time, amounts: [f64; N]) {
        for (pending, amount) in self.pending.iter_mut().zip(amounts) {
            *pending += amount;
        }
        if now <= self.last {
            return;
        }
        self.rates = self.after(k, now.since(self.last));
        self.pending = [0.0; N];
        self.last = now;
    }

    /// The rates at `now`, which is not before the last update.
    #[must_use]
    pub fn rates(&self, k: TimeConstant, now: Time) -> [f64; N] {
        if now > self.last { self.after(k, now.since(self.last)) } else { self.rates }
    }

    /// The time since the last arrival that changed the rates.
    #[must_use]
    pub fn gap(&self, now: Time) -> Span {
        now.since(self.last)
    }

    /// The rates at the last update, as the equation gives them, without decay since then.
    #[must_use]
    pub const fn last_rates(&self) -> [f64; N] {
        self.rates
    }

    /// r after a gap of `t` (Stoica98 eq. (3)). As t goes to 0 the first term goes to l / K.
    #[inline(always)]
    fn after(&self, k: TimeConstant, t: Span) -> [f64; N] {
        let t = float(t.as_nanos());
        // e^(-t/K) - 1, exact also where t is much less than K.
        let less = expm1(-t * k.per_nano);
        let (share, keep) = (-less * 1e9 / t, 1.0 + less);
        core::array::from_fn(|i| share * self.pending[i] + keep * self.rates[i])
    }
}

/// `libm::expm1`, to the last bit. Without a reduction, for |x| up to ln(2)/2, it is short enough to be
/// inlined here: the call costs as much again, with the registers to be saved for it.
///
/// The formula is that of FreeBSD's s_expm1.c, as in libm: Copyright (C) 1993 by Sun Microsystems, Inc. All rights
/// reserved. Developed at SunPro, a Sun Microsystems, Inc. business. Permission to use, copy, modify, and distribute this
/// software is freely granted, provided that this notice is preserved.
#[inline(always)]
fn expm1(x: f64) -> f64 {
    const Q: [f64; 5] = [
        -3.333_333_333_333_313e-2,
        1.587_301_587_254_814_6e-3,
        -7.936_507_578_674_88e-5,
        4.008_217_827_329_362e-6,
        -2.010_992_181_836_243_7e-7,
    ];
    // The short form holds from 2^-54.
    if !(f64::EPSILON / 4.0..0.346_573_590_279_972_6).contains(&x.abs()) {
        return libm::expm1(x);
    }
    let half = 0.5 * x;
    let z = x * half;
    let r = 1.0 + z * (Q[0] + z * (Q[1] + z * (Q[2] + z * (Q[3] + z * Q[4]))));
    let t = 3.0 - r * half;
    let e = z * ((r - t) / (6.0 - x * t));
    x - (x * e - z)
}

/// Averages with their time constant.
#[derive(Clone, Debug)]
pub struct Exponentials<const N: usize> {
    k: TimeConstant,
    averages: Averages<N>,
}

impl<const N: usize> Exponentials<N> {
    /// Averages with the values `initial` at `start`.
    #[must_use]
    pub fn new(k: Span, initial: [f64; N], start: Time) -> Self {
        Self { k: TimeConstant::new(k), averages: Averages::new(initial, start) }
    }

    /// Counts `amounts`, which arrived at `now`. `now` never decreases.
    #[inline(always)]
    pub fn update(&mut self, now: Time, amounts: [f64; N]) {
        self.averages.update(self.k, now, amounts);
    }

    /// Sets K from the next update on.
    pub fn set_time_constant(&mut self, k: Span) {
        self.k = TimeConstant::new(k);
    }

    /// The rates at `now`, which is not before the last update.
    #[must_use]
    pub fn rates(&self, now: Time) -> [f64; N] {
        self.averages.rates(self.k, now)
    }

    /// Scales all counted amounts by `factors`.
    pub fn scale(&mut self, factors: [f64; N]) {
        for (i, factor) in factors.into_iter().enumerate() {
            self.averages.rates[i] *= factor;
            self.averages.pending[i] *= factor;
        }
    }

    /// Returns the rates, as [`Averages::last_rates`] does.
    #[must_use]
    pub const fn last_rates(&self) -> [f64; N] {
        self.averages.last_rates()
    }
}

impl RateEstimator for Exponentials<1> {
    fn update(&mut self, now: Time, amount: f64) {
        Self::update(self, now, [amount]);
    }

    fn rate(&self, now: Time) -> f64 {
        let [rate] = self.rates(now);
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average() -> impl RateEstimator {
        Exponentials::new(Span::from_millis(100), [0.0], Time::ZERO)
    }

    #[test]
    fn short_gaps_decay_as_in_libm_to_the_last_bit() {
        let mut random = crate::random::Stream::new(1, "expm1");
        let same = |x: f64| assert_eq!(expm1(x).to_bits(), libm::expm1(x).to_bits(), "{x:e}");
        for exponent in -60..4 {
            (0..20_000).for_each(|_| same(-(1.0 + random.uniform()) * libm::exp2(f64::from(exponent))));
        }
        // The ends of the range of the short form.
        for edge in [2f64.powi(-54), core::f64::consts::LN_2 / 2.0] {
            let mut x = edge * (1.0 - 1e-13);
            while x < edge * (1.0 + 1e-13) {
                [x, -x].into_iter().for_each(same);
                x = x.next_up();
            }
        }
        [0.0, -0.0, f64::MIN_POSITIVE, f64::MAX, f64::MIN, f64::INFINITY, f64::NEG_INFINITY]
            .into_iter()
            .for_each(same);
    }

    #[test]
    fn one_step_is_the_equation() {
        // K = 0.1 s, gap 0.1 s: (1 - 1/e)·1000/0.1 + (1/e)·0 = 6321.2; a second: 6321.2 + 6321.2/e = 8646.6.
        let mut average = average();
        average.update(Time::from_millis(100), 1_000.0);
        assert!((average.rate(Time::from_millis(100)) - 6_321.205_588).abs() < 1e-5);
        average.update(Time::from_millis(200), 1_000.0);
        assert!((average.rate(Time::from_millis(200)) - 8_646.647_168).abs() < 1e-5);
    }

    #[test]
    fn arrivals_at_one_instant_count_with_the_next_gap() {
        let (mut apart, mut together) = (average(), average());
        let ms = Time::from_millis;
        for t in [100, 200, 300] {
            for _ in 0..4 {
                apart.update(ms(t), 250.0);
            }
            together.update(ms(t), if t == 100 { 250.0 } else { 1_000.0 });
        }
        // Three quarters of each burst wait for the next gap: 250, then 1000 each; the last 750 still wait.
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
            let mut average = average();
            for i in 1..=packets {
                average.update(Time::from_nanos(i * gap), 1e6 / packets as f64);
            }
            let rate = average.rate(Time::from_secs(1));
            assert!((rate / 1e6 - (1.0 - (-10.0_f64).exp())).abs() < 1e-9, "{rate}");
        }
    }

    #[test]
    fn the_first_gap_is_the_time_since_the_start() {
        // (1 - e^-100)·1000/10 = 100, far below any flow's rate.
        let mut average = average();
        average.update(Time::from_secs(10), 1_000.0);
        assert!((average.rate(Time::from_secs(10)) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn averages_that_share_a_time_constant_take_half_a_line() {
        assert_eq!((size_of::<Averages<1>>(), align_of::<Averages<1>>()), (32, 32));
    }

    #[test]
    fn reading_decays_by_the_time_constant_and_changes_nothing() {
        let average = Exponentials::new(Span::from_millis(100), [1_000.0], Time::ZERO);
        for _ in 0..2 {
            // After K: 1000/e.
            assert!((average.rate(Time::from_millis(100)) - 367.879_441).abs() < 1e-5);
        }
        assert_eq!(average.rate(Time::ZERO), 1_000.0);
    }
}
