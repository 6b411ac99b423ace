//! Units as text: `Display` prints a unit, `FromStr` reads one back.

use alloc::string::{String, ToString};
use core::fmt;
use core::str::FromStr;

use super::{
    Bytes, MeanPackets, NANOS_PER_SEC, Packets, Rate, Ratio, Span, THOUSANDTHS, TicketRate, Time, Weight,
};

/// The reason why a quantity, or another value of a parameter, cannot be read, and how to write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitError(String);

impl UnitError {
    /// An error of a reader of several units, with a message for all of them.
    pub(crate) const fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl core::error::Error for UnitError {}

/// Converts to text for messages that say more.
impl From<UnitError> for String {
    fn from(error: UnitError) -> Self {
        error.0
    }
}

/// A family of units: its name, an example, the text of zero, and each unit's name and size in base units.
struct Family {
    what: &'static str,
    example: &'static str,
    zero: &'static str,
    /// The units in lower case, with their factors; the first that divides a value evenly prints it.
    units: &'static [(&'static str, u64)],
}

const TIMES: Family = Family {
    what: "time",
    example: "\"20ms\"",
    zero: "0s",
    units: &[
        ("s", NANOS_PER_SEC),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
        ("min", 60 * NANOS_PER_SEC),
        ("h", 3_600 * NANOS_PER_SEC),
    ],
};
const RATES: Family = Family {
    what: "rate",
    example: "\"10Mbit\"",
    zero: "0bit",
    units: &[("Gbit", 1_000_000_000), ("Mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)],
};
const SIZES: Family = Family {
    what: "size",
    example: "\"64kB\"",
    zero: "0B",
    units: &[("MB", 1_000_000), ("kB", 1_000), ("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)],
};
const COUNTS: Family =
    Family { what: "number of packets", example: "\"50p\"", zero: "0p", units: &[("p", 1), ("packets", 1)] };
const MEANS: Family = Family {
    what: "mean number of packets",
    example: "\"2.5p\"",
    zero: "0p",
    units: &[("p", THOUSANDTHS), ("packets", THOUSANDTHS)],
};

impl Family {
    /// Reads `number unit` exactly: decimal digits are scaled in integers, and a fraction of the base unit is
    /// refused rather than rounded.
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let fail = |why: &str| {
            UnitError(alloc::format!(
                "`{text}` is not a {}: {why}; write for example {}",
                self.what,
                self.example
            ))
        };
        let trimmed = text.trim();
        let split =
            trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        let unit = unit.trim();
        if number.is_empty() {
            let negative = trimmed.starts_with('-');
            return Err(fail(if negative { "it is negative" } else { "it does not start with a number" }));
        }
        if unit.is_empty() {
            return Err(fail("the unit is missing"));
        }
        let plain = unit.strip_suffix("/s").unwrap_or(unit);
        let Some(&(_, factor)) = self.units.iter().find(|(name, _)| name.eq_ignore_ascii_case(plain)) else {
            if ["bps", "kbps", "mbps", "gbps"].iter().any(|b| b.eq_ignore_ascii_case(unit)) {
                return Err(fail("`bps` is ambiguous: bits or bytes?"));
            }
            let known: alloc::vec::Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
            return Err(fail(&alloc::format!("unknown unit `{unit}` (known: {})", known.join(", "))));
        };
        decimal(number, factor).map_err(fail)
    }

    /// Prints in the largest decimal unit that loses nothing.
    fn print(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let decimal = |&&(_, factor): &&(&str, u64)| {
            value.is_multiple_of(factor) && factor.to_string().trim_end_matches('0') == "1"
        };
        let &(name, factor) = self.units.iter().find(decimal).unwrap_or(&self.units[0]);
        if value == 0 {
            return f.write_str(self.zero);
        }
        write!(f, "{}{name}", value / factor)
    }
}

/// `digits × factor` for decimal digits with at most one point, exact or an error.
fn decimal(digits: &str, factor: u64) -> Result<u64, &'static str> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if fraction.contains('.') {
        return Err("the number has two points");
    }
    let mut value: u128 = 0;
    let mut scale: u128 = 1;
    for (in_fraction, part) in [(false, whole), (true, fraction)] {
        for c in part.bytes().filter(|&c| c != b'_') {
            // 10^20 × 10^13 still fits u128, so one more digit cannot overflow.
            if value > 100_000_000_000_000_000_000 || scale > 1_000_000_000_000_000_000 {
                return Err("it has too many digits");
            }
            value = value * 10 + u128::from(c - b'0');
            scale *= if in_fraction { 10 } else { 1 };
        }
    }
    let product = value * u128::from(factor);
    if !product.is_multiple_of(scale) {
        return Err("it is finer than the smallest unit");
    }
    u64::try_from(product / scale).map_err(|_| "it is too large")
}

macro_rules! text {
    ($($unit:ident: $family:ident),*) => { $(
        impl fmt::Display for $unit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { $family.print(self.0, f) }
        }
        impl FromStr for $unit {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> { $family.parse(text).map(Self) }
        }
    )* };
}
text!(Time: TIMES, Span: TIMES, Rate: RATES, Bytes: SIZES, Packets: COUNTS);

impl fmt::Display for MeanPackets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}p", self.get())
    }
}

impl FromStr for MeanPackets {
    type Err = UnitError;
    /// Reads `2.5p`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        MEANS.parse(text).map(Self)
    }
}

/// Units that print as plain numbers.
macro_rules! plain {
    ($($unit:ident),*) => { $(
        impl fmt::Display for $unit {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { self.0.fmt(f) }
        }
    )* };
}
plain!(Ratio, Weight, TicketRate);

impl FromStr for Ratio {
    type Err = UnitError;
    /// Reads `0.01` or `1%`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fail = || {
            UnitError(alloc::format!(
                "`{text}` is not a share between 0 and 1; write for example 0.01 or \"1%\""
            ))
        };
        let trimmed = text.trim();
        let value = match trimmed.strip_suffix('%') {
            Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
            None => trimmed.parse(),
        };
        value.ok().and_then(Self::new).ok_or_else(fail)
    }
}

impl FromStr for Weight {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.trim().parse().ok().and_then(Self::new).ok_or_else(|| {
            UnitError(alloc::format!("`{text}` is not a weight: write a number above 0, for example 2.5"))
        })
    }
}

impl FromStr for TicketRate {
    type Err = UnitError;
    /// Reads `1000`: tickets per second.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        text.trim().parse().ok().and_then(Self::new).ok_or_else(|| {
            UnitError(alloc::format!(
                "`{text}` is not a ticket rate: write tickets per second, for example 1000"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly() {
        assert_eq!("4.65Mbit".parse(), Ok(Rate::from_bit(4_650_000)));
        assert_eq!("4.65 mbit/s".parse(), Ok(Rate::from_bit(4_650_000)));
        assert_eq!("1.5ms".parse(), Ok(Span::from_micros(1_500)));
        assert_eq!("2min".parse(), Ok(Time::from_secs(120)));
        assert_eq!("64kB".parse(), Ok(Bytes::new(64_000)));
        assert_eq!("64KiB".parse(), Ok(Bytes::new(65_536)));
        assert_eq!("50p".parse(), Ok(Packets::new(50)));
        assert_eq!("2.5p".parse::<MeanPackets>().unwrap().get(), 2.5);
        assert_eq!("1%".parse(), Ok(Ratio::clamped(0.01)));
    }

    #[test]
    fn what_could_mean_two_things_is_refused_with_a_fix() {
        let message = |text: &str| text.parse::<Rate>().unwrap_err().to_string();
        assert!(message("10kbps").contains("bits or bytes?"));
        assert!(message("10").contains("the unit is missing"));
        assert!(message("-5Mbit").contains("negative"));
        assert!(message("5parsec").contains("known: Gbit, Mbit, kbit, bit"));
        assert!(message("1.5bit").contains("finer"));
        assert!("2.5p".parse::<Packets>().unwrap_err().to_string().contains("finer"));
        assert!("2.0005p".parse::<MeanPackets>().unwrap_err().to_string().contains("finer"));
        assert!(message("1.2.3Mbit").contains("two points"));
        assert!(message("99999999999999999999Gbit").contains("too large"));
        assert!("1.2".parse::<Ratio>().is_err());
        assert!("NaN".parse::<Ratio>().is_err());
        assert_eq!("2.5".parse(), Ok(Weight(2.5)));
        for text in ["0", "-1", "NaN", "inf", "heavy"] {
            let message = text.parse::<Weight>().unwrap_err().to_string();
            assert_eq!(
                message,
                std::format!("`{text}` is not a weight: write a number above 0, for example 2.5")
            );
        }
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in ["4650kbit", "10Mbit", "1Gbit", "7bit", "0bit"] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.to_string().parse(), Ok(rate));
        }
        assert_eq!(Span::from_micros(1_500).to_string(), "1500us");
        assert_eq!(Time::from_secs(90).to_string(), "90s");
        assert_eq!(Bytes::new(64_000).to_string(), "64kB");
        for text in ["2.5p", "0.125p", "7p", "0p"] {
            assert_eq!(text.parse::<MeanPackets>().unwrap().to_string(), text);
        }
        let zeros = [Rate::ZERO.to_string(), Bytes::ZERO.to_string(), Span::ZERO.to_string()];
        assert_eq!(zeros, ["0bit", "0B", "0s"]);
    }
}
