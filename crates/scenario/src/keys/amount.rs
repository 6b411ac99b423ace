//! Amounts in files: their units, the ranges that keys allow, and formulas in place of numbers.

use apportion_core::units::{Bytes, Rate, Ratio, Span, Time};

use crate::expression::Formula;
use crate::text::{Item, Value, quoted};

/// What an amount counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Time,
    Span,
    Rate,
    Bytes,
    Ratio,
    Number,
    Count,
}

/// Which amounts are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// From zero.
    FromZero,
    /// Above zero.
    AboveZero,
    /// From one to this.
    UpTo(u64),
    /// Numbers above one.
    AboveOne,
}

/// An amount of a [`Unit`]: whole numbers of base units, or a real number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    Whole(u64),
    Real(f64),
}

impl Unit {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Time | Self::Span => "a time",
            Self::Rate => "a rate",
            Self::Bytes => "a size",
            Self::Ratio => "a share",
            Self::Number => "a number",
            Self::Count => "a whole number",
        }
    }

    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Time | Self::Span => "\"20ms\"",
            Self::Rate => "\"10Mbit\"",
            Self::Bytes => "\"64kB\"",
            Self::Ratio => "0.01",
            Self::Number => "2.5",
            Self::Count => "10",
        }
    }

    /// Whether amounts are written as TOML numbers.
    pub(crate) const fn is_bare(self) -> bool {
        matches!(self, Self::Ratio | Self::Number | Self::Count)
    }

    /// Reads an amount; for what has units, in base units.
    pub(crate) fn parse(self, text: &str) -> Result<Quantity, String> {
        fn whole<T: std::str::FromStr<Err: ToString>>(
            text: &str,
            get: fn(T) -> u64,
        ) -> Result<Quantity, String> {
            text.parse().map(|value| Quantity::Whole(get(value))).map_err(|error: T::Err| error.to_string())
        }
        let refuse = || format!("`{text}` is not {}; write for example {}", self.name(), self.example());
        match self {
            Self::Time => whole(text, Time::as_nanos),
            Self::Span => whole(text, Span::as_nanos),
            Self::Rate => whole(text, Rate::as_bit),
            Self::Bytes => whole(text, Bytes::get),
            Self::Ratio => text
                .parse()
                .map(|ratio: Ratio| Quantity::Real(ratio.get()))
                .map_err(|error| error.to_string()),
            Self::Number => {
                let number = text.parse().ok().filter(|number: &f64| number.is_finite());
                number.map(Quantity::Real).ok_or_else(refuse)
            }
            Self::Count => text.parse().map(Quantity::Whole).map_err(|_| refuse()),
        }
    }

    /// Prints as TOML.
    pub(crate) fn print(self, quantity: Quantity) -> String {
        match (self, quantity) {
            (Self::Time, Quantity::Whole(n)) => quoted(&Time::from_nanos(n).to_string()),
            (Self::Span, Quantity::Whole(n)) => quoted(&Span::from_nanos(n).to_string()),
            (Self::Rate, Quantity::Whole(n)) => quoted(&Rate::from_bit(n).to_string()),
            (Self::Bytes, Quantity::Whole(n)) => quoted(&Bytes::new(n).to_string()),
            (_, Quantity::Whole(n)) => n.to_string(),
            (_, Quantity::Real(x)) => format!("{x:?}"),
        }
    }

    /// The value of a formula: base units are rounded to the nearest whole one.
    fn round(self, value: f64) -> Option<Quantity> {
        match self {
            Self::Ratio => Ratio::new(value).map(|ratio| Quantity::Real(ratio.get())),
            Self::Number => Some(Quantity::Real(value)),
            // 2^53: beyond it a formula cannot be exact.
            _ => {
                (0.0..9_007_199_254_740_992.0).contains(&value).then(|| Quantity::Whole(value.round() as u64))
            }
        }
    }
}

impl Range {
    /// Why `quantity`, which was written as `text`, is out of the range.
    fn refuse(self, unit: Unit, quantity: Quantity, text: &str) -> Result<(), String> {
        let value = match quantity {
            Quantity::Whole(n) => n as f64,
            Quantity::Real(x) => x,
        };
        let (holds, allowed) = match self {
            Self::FromZero => (value >= 0.0, "zero or more".to_owned()),
            Self::AboveZero => (value > 0.0, "above zero".to_owned()),
            Self::AboveOne => (value > 1.0, "above one".to_owned()),
            Self::UpTo(most) => ((1.0..=most as f64).contains(&value), format!("between 1 and {most}")),
        };
        if holds {
            return Ok(());
        }
        Err(format!("`{text}`: {} must be {allowed} here; write for example {}", unit.name(), unit.example()))
    }

    /// The least and the most of its whole numbers.
    const fn whole(self) -> (u64, u64) {
        match self {
            Self::FromZero => (0, u64::MAX),
            Self::AboveZero => (1, u64::MAX),
            Self::AboveOne => (2, u64::MAX),
            Self::UpTo(most) => (1, most),
        }
    }
}

/// An amount as written: fixed, or different for each member of a group.
#[derive(Clone, Debug)]
pub(crate) enum Amount {
    Fixed(Quantity),
    Formula(Unit, Range, Box<Formula>),
}

impl Amount {
    /// Reads an amount; `indexed` where there is an `i`.
    pub(crate) fn read(item: &Item, unit: Unit, range: Range, indexed: bool) -> Result<Self, String> {
        let text = match &item.value {
            Value::Text(text) => text.clone(),
            Value::Integer(_) | Value::Huge(_) | Value::Float(_) => item.to_string(),
            _ => {
                return Err(format!(
                    "`{}` is {}, not {}; write for example {}",
                    item.plain(),
                    item.what(),
                    unit.name(),
                    unit.example()
                ));
            }
        };
        if Formula::is_one(&text) {
            if !indexed {
                return Err(format!("`{text}` is a formula of `i`, but there is no `i` here"));
            }
            let base = |literal: &str| match unit.parse(literal)? {
                Quantity::Whole(n) => Ok(n),
                Quantity::Real(_) => Err(format!("`{literal}` has a unit, but {} has none", unit.name())),
            };
            let formula = Formula::parse(&text, (!unit.is_bare()).then_some(&base))?;
            return Ok(Self::Formula(unit, range, Box::new(formula)));
        }
        // A whole number is also a share or a number; anything else needs its unit.
        let of_range = |why| match unit {
            Unit::Count => {
                let (least, most) = range.whole();
                let (name, example) = (unit.name(), unit.example());
                format!("`{text}` is not {name} from {least} to {most}; write for example {example}")
            }
            _ => why,
        };
        let quantity = unit.parse(&text).map_err(of_range)?;
        range.refuse(unit, quantity, &text)?;
        Ok(Self::Fixed(quantity))
    }

    pub(crate) fn at(&self, i: u64) -> Result<Quantity, String> {
        match self {
            Self::Fixed(quantity) => Ok(*quantity),
            Self::Formula(unit, range, formula) => {
                let value = formula.at(i)?;
                let text = format!("{formula} = {value} for i = {i}");
                let refuse = || format!("`{text}` is not {} that can be used here", unit.name());
                let quantity = unit.round(value).ok_or_else(refuse)?;
                range.refuse(*unit, quantity, &text)?;
                Ok(quantity)
            }
        }
    }
}
