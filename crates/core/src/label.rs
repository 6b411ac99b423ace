//! Labels: information about a flow that its packets carry to routers, in the 17 bits that an IPv4 header has to spare.
//!
//! Stoica, Zhang, "Providing guaranteed services without per flow management", SIGCOMM 1999, section 5.2
//! (dynamic packet state): 13 bits of the fragment offset and 4 of the type of service, a floating form without
//! sign and with a hidden leading one. A value below 2^m is written as it is, with exponent 0; a larger one of b
//! bits as its m bits after the leading one, with exponent b - m.
//!
//! Reading: values are rounded to the nearest that can be written, with the carry going into the exponent.
//! Truncation, as the form is often coded, makes labels too small by half a step on average, and every scheme
//! here then drops too little. 0 stays exactly 0, for the schemes that reserve it.
//!
//! A [`Format`] is a narrower field. Writers round to their format first; what they round to can be written in
//! 17 bits, except integers above 2^13, which lose up to 1 in 2^13. Readers need not know the format.
//!
//! Cost: O(1), a few shifts.

use core::fmt;

/// Mantissa bits of a [`Label`].
const M: u32 = 12;
/// Exponent bits of a [`Label`].
const N: u32 = 5;

/// A label as encoded in a header: 17 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label(u32);

impl Label {
    /// Bits of a label.
    pub const BITS: u32 = M + N;
    /// Exactly zero.
    pub const ZERO: Self = Self(0);

    /// The label nearest to `value`. A value that is too large becomes the largest label; NaN becomes zero.
    #[must_use]
    #[inline]
    pub fn new(value: f64) -> Self {
        Self(encode(value, M, N))
    }

    /// The value.
    #[must_use]
    #[inline]
    pub const fn value(self) -> f64 {
        decode(self.0, M)
    }

    /// The bits; below 2^17.
    #[must_use]
    pub const fn code(self) -> u32 {
        self.0
    }

    /// The label with these bits; those above the 17th are ignored.
    #[must_use]
    pub const fn from_code(code: u32) -> Self {
        Self(code & ((1 << Self::BITS) - 1))
    }
}

/// A field that values are rounded to before they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Whole numbers of this many bits.
    Integer {
        /// Up to [`Label::BITS`].
        bits: u32,
    },
    /// The floating form with these many bits.
    Floating {
        /// m, up to 12.
        mantissa: u32,
        /// n, up to 5.
        exponent: u32,
    },
}

impl Format {
    /// The format of a whole label.
    pub const WIDEST: Self = Self::Floating { mantissa: M, exponent: N };

    /// The largest value of the format.
    #[must_use]
    pub const fn max(self) -> f64 {
        match self {
            Self::Integer { bits } => ((1_u64 << bits) - 1) as f64,
            Self::Floating { mantissa, exponent } => decode((1 << (mantissa + exponent)) - 1, mantissa),
        }
    }

    /// The value of the format that is nearest to `value`; 0 if `value` is negative or NaN.
    #[must_use]
    #[inline(always)]
    pub fn round(self, value: f64) -> f64 {
        match self {
            // Most labels have this format; the compiler folds its widths.
            Self::WIDEST => Label::new(value).value(),
            _ => self.round_narrow(value),
        }
    }
}

impl Format {
    #[inline(never)]
    fn round_narrow(self, value: f64) -> f64 {
        match self {
            Self::Integer { .. } => libm::round(value.clamp(0.0, self.max())).max(0.0),
            Self::Floating { mantissa, exponent } => decode(encode(value, mantissa, exponent), mantissa),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer { bits } => write!(f, "{bits} bits"),
            Self::Floating { mantissa, exponent } => write!(f, "{mantissa} + {exponent} bits"),
        }
    }
}

// An f64 of at least 2^m has the same form, with 52 bits of mantissa and another origin of its exponent.

/// Bits of an f64's mantissa.
const F64_MANTISSA: u32 = 52;

/// The difference between the exponent of an f64 and that of a format whose mantissas have m bits.
const fn origin(m: u32) -> u64 {
    (1_022 + m as u64) << m
}

#[inline]
fn encode(value: f64, m: u32, n: u32) -> u32 {
    let code = if value >= f64::from(1_u32 << m) {
        // Half up. A carry out of the mantissa makes it 0 and the exponent one larger; the addition does
        // both.
        let half = 1 << (F64_MANTISSA - m - 1);
        ((value.to_bits() + half) >> (F64_MANTISSA - m)) - origin(m)
    } else {
        // Half up; 2^m is the first code with an exponent. The cast turns negative values and NaN into 0.
        (value + 0.5) as u64
    };
    code.min((1 << (m + n)) - 1) as u32
}

#[inline]
const fn decode(code: u32, m: u32) -> f64 {
    if code < 1 << m { code as f64 } else { f64::from_bits((code as u64 + origin(m)) << (F64_MANTISSA - m)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_a_label_is_read_back_and_larger_codes_mean_more() {
        let mut last = -1.0;
        for code in 0..1 << Label::BITS {
            let value = Label::from_code(code).value();
            assert!(value > last, "{code}");
            assert_eq!(Label::new(value).code(), code, "{value}");
            last = value;
        }
        assert_eq!(Label::new(f64::INFINITY).code(), (1 << 17) - 1);
        // (4095 + 4096) << 30.
        assert_eq!(last, 8_191.0 * (1_u64 << 30) as f64);
    }

    #[test]
    fn zero_and_what_is_no_number_are_zero() {
        for value in [0.0, -0.0, -5.0, 0.4, f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(Label::new(value), Label::ZERO);
            assert_eq!(Format::Integer { bits: 8 }.round(value), 0.0);
        }
    }

    /// The rounding in whole numbers, as the paper describes the form.
    fn whole_numbers(value: f64, m: u32, n: u32) -> (u32, u64) {
        let read = |code: u32| match (code >> m, u64::from(code & ((1 << m) - 1))) {
            (0, mantissa) => mantissa,
            (exponent, mantissa) => (mantissa + (1 << m)) << (exponent - 1),
        };
        let max = (1 << (m + n)) - 1;
        let value = value.clamp(0.0, read(max) as f64);
        let whole = (value + 0.5) as u64;
        if whole < 1 << m {
            return (whole as u32, whole);
        }
        let shift = u64::BITS - whole.leading_zeros() - m - 1;
        let scaled = (value / (1_u64 << shift) as f64 + 0.5) as u64;
        let code = (((u64::from(shift) + 1) << m) + (scaled - (1 << m))).min(u64::from(max)) as u32;
        (code, read(code))
    }

    #[test]
    fn bits_of_a_float_are_rounded_as_whole_numbers_are() {
        for (m, n) in (3..=M).map(|m| (m, N)).chain([(8, 4), (3, 1)]) {
            // Each value of the format, the middle to the next one, and the neighbours of both; the last lies
            // above all.
            for code in 0..1 << (m + n) {
                let (at, next) = (decode(code, m), decode(code + 1, m));
                for value in [at, at.midpoint(next)] {
                    for value in [value.next_down(), value, value.next_up()] {
                        let (wanted, read) = whole_numbers(value, m, n);
                        let code = encode(value, m, n);
                        assert_eq!(
                            (code, decode(code, m)),
                            (wanted, read as f64),
                            "{value} with {m} + {n} bits"
                        );
                    }
                }
            }
            for value in [f64::MAX, f64::INFINITY, f64::MIN_POSITIVE, -1e300, f64::NEG_INFINITY, f64::NAN] {
                assert_eq!(encode(value, m, n), whole_numbers(value, m, n).0, "{value} with {m} + {n} bits");
            }
        }
    }

    #[test]
    fn the_error_is_at_most_half_a_step() {
        // A mantissa of m bits after a hidden one: half a step is 2^-(m+1) of the value.
        for (format, m) in [(Format::WIDEST, 12), (Format::Floating { mantissa: 3, exponent: 5 }, 3)] {
            let bound = 0.5_f64.powi(m + 1);
            let mut value = 1.0_f64;
            while value < format.max() {
                let wrong = (format.round(value.floor()) / value.floor() - 1.0).abs();
                assert!(wrong <= bound, "{value}: {wrong} above {bound}");
                value *= 1.000_37;
            }
        }
    }

    #[test]
    fn rounding_carries_into_the_exponent() {
        // m = 3: 15 is 1.111; 15.6 rounds to 16 = 1.000 with the next exponent, 15.4 to 15.
        let format = Format::Floating { mantissa: 3, exponent: 5 };
        assert_eq!((format.round(15.6), format.round(15.4)), (16.0, 15.0));
        // 31 lies between 30 and 32: halfway goes up.
        assert_eq!(
            (format.round(31.0), format.round(30.9), format.max()),
            (32.0, 30.0, 15.0 * 2e0_f64.powi(30))
        );
    }

    #[test]
    fn integers_keep_to_their_width() {
        let format = Format::Integer { bits: 8 };
        assert_eq!((format.round(39.5), format.round(39.4), format.round(300.0)), (40.0, 39.0, 255.0));
        // Every integer up to 13 bits is exact in a label.
        assert!((0..1 << 13).all(|n| Label::new(f64::from(n)).value() == f64::from(n)));
        assert_eq!(Format::Integer { bits: 17 }.max(), 131_071.0);
    }
}
