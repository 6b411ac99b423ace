//! The only unit types of the workspace: time, spans, rates, sizes and probabilities.
//!
//! Integers inside, private fields, constructors that name their unit. `Display` prints a unit and
//! `FromStr` reads one back; a number without a unit is refused, and so is a unit that could mean two
//! things (`kbps`: bits or bytes?).
//!
//! | type | holds | range |
//! |---|---|---|
//! | [`Time`] | nanoseconds since the start of the run | 584 years |
//! | [`Span`] | nanoseconds between two times | 584 years |
//! | [`Rate`] | bits per second | 18 Ebit/s |
//! | [`Bytes`], [`Packets`] | counts | 2^64 |
//! | [`MeanPackets`] | thousandths of a packet | 2^64 |
//! | [`Ratio`] | a probability or share in 0..=1 | f64 |
//! | [`Weight`] | a flow's weight | finite f64 above 0 |
//! | [`TicketRate`] | tickets per second of some currency | finite f64 from 0 |
//!
//! With the feature `serde`, times, spans, rates, bytes and packets serialise as the integers that they hold.

mod text;

use core::iter::Sum;
use core::ops::{Add, AddAssign, Mul, Sub, SubAssign};

pub use text::UnitError;

const NANOS_PER_SEC: u64 = 1_000_000_000;
/// The parts of a packet that [`MeanPackets`] counts. Chosen: three digits after the point.
const THOUSANDTHS: u64 = 1_000;

/// A point in time: nanoseconds since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Time(u64);

/// The distance between two [`Time`]s, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(u64);

/// A rate in bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Rate(u64);

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bytes(u64);

/// A number of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Packets(u64);

/// A mean number of packets, in thousandths of a packet, for thresholds of an average queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MeanPackets(u64);

/// A probability or a share, between 0 and 1 inclusive and never NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Ratio(f64);

/// The weight of a flow against other flows: above zero, finite, never NaN.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Weight(f64);

/// Tickets per second in the currency of their issuer: from zero, finite, never NaN.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct TicketRate(f64);

impl TicketRate {
    /// `value` tickets per second; `None` if it is negative or not finite.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (value >= 0.0 && value.is_finite()).then_some(Self(value))
    }
    /// Tickets per second.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Converts `n` to the nearest float, at most 2^63. A processor converts signed integers in one instruction,
/// unsigned ones in six.
#[inline]
pub(crate) fn float(n: u64) -> f64 {
    n.min(i64::MAX as u64) as f64
}

/// The larger of two numbers, neither of which may be NaN. `f64::max` allows NaN and takes six instructions.
#[inline]
pub(crate) fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

impl Time {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than any time of a run.
    pub const MAX: Self = Self(u64::MAX);

    /// `ns` nanoseconds after the start of the run.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// `ms` milliseconds after the start of the run.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// `s` seconds after the start of the run.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * NANOS_PER_SEC)
    }
    /// Nanoseconds since the start of the run.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start of the run, for estimators and reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// The span from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// An empty span.
    pub const ZERO: Self = Self(0);
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// A span of `ns` nanoseconds.
    #[must_use]
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }
    /// A span of `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// A span of `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// A span of `s` seconds.
    #[must_use]
    pub const fn from_secs(s: u64) -> Self {
        Self(s * NANOS_PER_SEC)
    }
    /// A span of `s` seconds, rounded to the nearest nanosecond; negative and NaN give zero.
    #[must_use]
    pub fn from_secs_f64(s: f64) -> Self {
        Self(libm::round(s * NANOS_PER_SEC as f64) as u64)
    }
    /// Nanoseconds.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds, for estimators and reports.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// `self - other`, or zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
    /// The span divided by `n`, rounded down. `n` must not be zero.
    #[must_use]
    pub const fn div(self, n: u64) -> Self {
        Self(self.0 / n)
    }
}

impl Rate {
    /// A rate of zero.
    pub const ZERO: Self = Self(0);

    /// `n` bits per second.
    #[must_use]
    pub const fn from_bit(n: u64) -> Self {
        Self(n)
    }
    /// `n` kilobits (1,000 bits) per second.
    #[must_use]
    pub const fn from_kbit(n: u64) -> Self {
        Self(n * 1_000)
    }
    /// `n` megabits (10^6 bits) per second.
    #[must_use]
    pub const fn from_mbit(n: u64) -> Self {
        Self(n * 1_000_000)
    }
    /// Bits per second.
    #[must_use]
    pub const fn as_bit(self) -> u64 {
        self.0
    }
    /// Megabits per second, for reports.
    #[must_use]
    pub fn as_mbit_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The time `size` takes at this rate, rounded up to a nanosecond; [`Span::MAX`] at rate zero.
    #[must_use]
    pub fn time_for(self, size: Bytes) -> Span {
        // size < 2^64, so bits × 10^9 < 2^97: u128 cannot overflow.
        let bit_nanos = u128::from(size.0) * 8 * u128::from(NANOS_PER_SEC);
        match bit_nanos
            .checked_add(u128::from(self.0).saturating_sub(1))
            .map(|n| n / u128::from(self.0.max(1)))
        {
            Some(ns) if self.0 > 0 => Span(u64::try_from(ns).unwrap_or(u64::MAX)),
            _ => Span::MAX,
        }
    }
    /// The bytes that pass in `span` at this rate, rounded down.
    #[must_use]
    pub fn bytes_in(self, span: Span) -> Bytes {
        // 2^64 × 2^64 fits u128.
        let bytes = u128::from(self.0) * u128::from(span.0) / (8 * u128::from(NANOS_PER_SEC));
        Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

impl Bytes {
    /// No bytes.
    pub const ZERO: Self = Self(0);

    /// `n` bytes.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The number of bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0 * 8
    }
    /// `self - other`, or zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Packets {
    /// No packets.
    pub const ZERO: Self = Self(0);

    /// `n` packets.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n)
    }
    /// The number of packets.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl MeanPackets {
    /// `n` packets on average, at most 2^64 / 1000.
    #[must_use]
    pub const fn new(n: u64) -> Self {
        Self(n.saturating_mul(THOUSANDTHS))
    }
    /// The number of packets.
    #[must_use]
    pub const fn get(self) -> f64 {
        // A quotient of whole numbers is the double nearest to the decimal: 2.5p is 2.5.
        self.0 as f64 / THOUSANDTHS as f64
    }
}

impl Ratio {
    /// Zero: never, or nothing.
    pub const ZERO: Self = Self(0.0);
    /// One: always, or all.
    pub const ONE: Self = Self(1.0);

    /// `value`, if it lies in 0..=1.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (0.0..=1.0).contains(&value).then_some(Self(value))
    }
    /// `value` clamped to 0..=1; NaN becomes 0.
    #[must_use]
    pub const fn clamped(value: f64) -> Self {
        // `max` returns the other operand for NaN.
        Self(value.max(0.0).min(1.0))
    }
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl Weight {
    /// The default weight of a flow.
    pub const ONE: Self = Self(1.0);

    /// `value`, if it is above zero and finite.
    #[must_use]
    pub fn new(value: f64) -> Option<Self> {
        (value > 0.0 && value.is_finite()).then_some(Self(value))
    }
    /// The number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
    /// The smaller of two weights.
    #[must_use]
    pub const fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

impl Default for Weight {
    fn default() -> Self {
        Self::ONE
    }
}

impl Add<Span> for Time {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}
impl Sub<Span> for Time {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Mul<u64> for Span {
    type Output = Self;
    fn mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

/// Counts add and subtract. A result below zero is a bug, which overflow checks catch.
macro_rules! additive {
    ($($unit:ident),*) => { $(
        impl Add for $unit {
            type Output = Self;
            fn add(self, other: Self) -> Self { Self(self.0 + other.0) }
        }
        impl Sub for $unit {
            type Output = Self;
            fn sub(self, other: Self) -> Self { Self(self.0 - other.0) }
        }
        impl AddAssign for $unit {
            fn add_assign(&mut self, other: Self) { self.0 += other.0; }
        }
        impl SubAssign for $unit {
            fn sub_assign(&mut self, other: Self) { self.0 -= other.0; }
        }
        impl Sum for $unit {
            fn sum<I: Iterator<Item = Self>>(all: I) -> Self { all.fold(Self(0), Add::add) }
        }
    )* };
}
additive!(Span, Rate, Bytes, Packets);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_for_rounds_up_and_knows_rate_zero() {
        // 1500 B = 12,000 bit; at 7 bit/s 1714.285714285714... s.
        assert_eq!(Rate::from_bit(7).time_for(Bytes::new(1500)), Span::from_nanos(1_714_285_714_286));
        assert_eq!(Rate::from_mbit(12).time_for(Bytes::new(1500)), Span::from_millis(1));
        assert_eq!(Rate::ZERO.time_for(Bytes::new(1)), Span::MAX);
        assert_eq!(Rate::from_mbit(8).bytes_in(Span::from_millis(1)), Bytes::new(1_000));
    }
}
