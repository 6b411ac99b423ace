//! Throughput-value functions (TVF): the value of the last bit of a flow that sends at a rate.
//!
//! Nádas, Turányi, Rácz, "Per packet value", GLOBECOM 2016. A TVF decreases. A congested node passes what is worth
//! more than its threshold, so a flow gets the rate at which its TVF has fallen to the threshold. [`Tvf::value`] of a
//! rate per weight thus states any policy, and [`FAIR`](Tvf::FAIR) that of weighted fair shares.
//!
//! Readings: as the published program, a function is a list of points that straight lines join if both axes are
//! logarithmic, constant below the first. Beyond the last point, which is an error there, it falls as 1/rate.

use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::str::FromStr;

use crate::units::{Rate, UnitError};

/// The most points of a function.
const MOST: usize = 6;
/// The value of 1 b/s in [`Tvf::FAIR`]. Chosen: labels hold values up to 8.8e12, the fair value of 114 b/s, and
/// keep three digits at 1 Tb/s.
const ONE_BIT: f64 = 1e15;

/// A throughput-value function of up to six points.
#[derive(Clone, Copy, PartialEq)]
pub struct Tvf {
    /// Rates in b/s and values. Those beyond `count` repeat the last.
    points: [(f64, f64); MOST],
    count: usize,
}

impl Tvf {
    /// 10^15 divided by the rate in b/s: every flow gets the same rate for a weight of 1.
    pub const FAIR: Self = Self { points: [(1.0, ONE_BIT); MOST], count: 1 };

    /// The value at `rate` b/s.
    #[must_use]
    #[inline]
    pub fn value(&self, rate: f64) -> f64 {
        let (first, last) = (self.points[0], self.points[MOST - 1]);
        if rate >= last.0 {
            last.1 * last.0 / rate
        } else if rate <= first.0 {
            first.1
        } else {
            self.between(rate)
        }
    }

    #[inline(never)]
    fn between(&self, rate: f64) -> f64 {
        let above = self.points.iter().position(|point| point.0 > rate).unwrap_or(1).max(1);
        let ((r0, v0), (r1, v1)) = (self.points[above - 1], self.points[above]);
        v0 * libm::pow(v1 / v0, libm::log(rate / r0) / libm::log(r1 / r0))
    }
}

impl fmt::Display for Tvf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (rate, value)) in self.points[..self.count].iter().enumerate() {
            let comma = if place > 0 { ", " } else { "" };
            write!(f, "{comma}{} {value}", Rate::from_bit(*rate as u64))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Tvf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tvf({self})")
    }
}

impl FromStr for Tvf {
    type Err = UnitError;

    /// Reads `"1Mbit 1e9, 10Mbit 1e7"`: rates that rise, with values that fall.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let wrong = |why: &str| {
            UnitError::new(format!("`{text}`: {why}; write for example \"1Mbit 1e9, 10Mbit 1e7\""))
        };
        let mut points = [(0.0, 0.0); MOST];
        let mut count = 0;
        for point in text.split(',') {
            let mut words = point.split_whitespace();
            let (Some(rate), Some(value), None) = (words.next(), words.next(), words.next()) else {
                return Err(wrong("a point is a rate and a value"));
            };
            let rate: Rate = rate.parse().map_err(|error: UnitError| wrong(&error.to_string()))?;
            let value = value.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0);
            let value = value.ok_or_else(|| wrong("a value is a number above 0"))?;
            if rate == Rate::ZERO {
                return Err(wrong("a rate must be above 0"));
            }
            let rate = rate.as_bit() as f64;
            if count == MOST {
                return Err(wrong("there are at most six points"));
            }
            if count > 0 && (points[count - 1].0 >= rate || points[count - 1].1 <= value) {
                return Err(wrong("rates must rise and values must fall"));
            }
            points[count..].fill((rate, value));
            count += 1;
        }
        Ok(Self { points, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 1e-9
    }

    #[test]
    fn lines_join_points_on_logarithmic_axes() {
        let tvf: Tvf = "1Mbit 1e9, 100Mbit 1e5, 200Mbit 10".parse().unwrap();
        for (rate, value) in [(1.0, 1e9), (1e6, 1e9), (1e7, 1e7), (1e8, 1e5), (2e8, 10.0), (4e8, 5.0)] {
            assert!(near(tvf.value(rate), value), "{rate}: {} against {value}", tvf.value(rate));
        }
        assert_eq!(tvf.to_string().parse::<Tvf>().unwrap(), tvf);
        assert!([0.5, 1.0, 1e3, 1e12].iter().all(|rate| near(Tvf::FAIR.value(*rate), 1e15 / rate.max(1.0))));
    }

    #[test]
    fn what_is_no_falling_function_is_refused() {
        for text in [
            "",
            "1Mbit",
            "1Mbit 2 3",
            "1Mbit 1, 1Mbit 0.5",
            "1Mbit 1, 2Mbit 1",
            "0bit 1",
            "1Mbit -1",
            "1Mbit inf",
        ] {
            assert!(text.parse::<Tvf>().is_err(), "{text}");
        }
        let seven: alloc::vec::Vec<_> = (1..8).map(|n| format!("{n}Mbit {}", 1.0 / f64::from(n))).collect();
        let error = seven.join(", ").parse::<Tvf>().unwrap_err();
        assert!(error.to_string().contains("at most six points"), "{error}");
    }
}
