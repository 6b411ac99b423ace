//! Amounts in files: fixed ones, and formulas in place of numbers.

use apportion_core::param::{Kind, Range, Setting, Value, Written};
use apportion_core::units::{Bytes, Rate, Ratio, Span, Time, UnitError};

use crate::expression::Formula;
use crate::text::{self, Item, quoted};

/// Formats as TOML.
pub(crate) fn toml(value: Value) -> String {
    match value {
        Value::Limit(value) => quoted(&value.to_string()),
        Value::Bdp(times) => quoted(&format!("{times}bdp")),
        Value::Packets(value) => quoted(&value.to_string()),
        Value::Threshold(value) => quoted(&value.to_string()),
        Value::MeanPackets(value) => quoted(&value.to_string()),
        Value::Bytes(value) => quoted(&value.to_string()),
        Value::Span(value) => quoted(&value.to_string()),
        Value::Time(value) => quoted(&value.to_string()),
        Value::Rate(value) => quoted(&value.to_string()),
        Value::Ratio(value) => format!("{:?}", value.get()),
        Value::Number(value) => format!("{value:?}"),
        Value::Count(value) => value.to_string(),
        Value::Tvf(value) => quoted(&value.to_string()),
        Value::Switch(value) => value.to_string(),
        Value::Choice(value) => quoted(value),
    }
}

/// A literal of a formula in base units, where the kind has units.
fn base_units(kind: Kind, literal: &str) -> Result<u64, String> {
    match kind.read(Written::Text(literal))? {
        Value::Time(time) => Ok(time.as_nanos()),
        Value::Span(span) => Ok(span.as_nanos()),
        Value::Rate(rate) => Ok(rate.as_bit()),
        Value::Bytes(bytes) => Ok(bytes.get()),
        _ => Err(format!("`{literal}` has a unit, but a {} has none", kind.describe())),
    }
}

/// The value of a formula: base units are rounded to the nearest whole one.
fn rounded(kind: Kind, value: f64) -> Option<Value> {
    // 2^53: beyond it a formula cannot be exact.
    let whole = || (0.0..9_007_199_254_740_992.0).contains(&value).then(|| value.round() as u64);
    Some(match kind {
        Kind::Ratio => Value::Ratio(Ratio::new(value)?),
        Kind::Number => Value::Number(value),
        Kind::Time => Value::Time(Time::from_nanos(whole()?)),
        Kind::Span => Value::Span(Span::from_nanos(whole()?)),
        Kind::Rate => Value::Rate(Rate::from_bit(whole()?)),
        Kind::Bytes => Value::Bytes(Bytes::new(whole()?)),
        _ => Value::Count(whole()?),
    })
}

/// An amount as written: fixed, or different for each member of a group.
#[derive(Clone, Debug)]
pub(crate) enum Amount {
    Fixed(Value),
    Formula(Kind, Range, Box<Formula>),
}

impl Amount {
    /// Reads an amount; `indexed` where there is an `i`.
    pub(crate) fn read(item: &Item, kind: Kind, range: Range, indexed: bool) -> Result<Self, String> {
        let written = match item.written() {
            Some(written) if !matches!(item.value, text::Value::Flag(_)) => written,
            _ => {
                return Err(format!(
                    "`{}` is {}, not a {}; write for example {}",
                    item.plain(),
                    item.what(),
                    kind.describe(),
                    kind.example()
                ));
            }
        };
        let text = item.plain();
        if Formula::is_one(&text) {
            if !indexed {
                return Err(format!("`{text}` is a formula of `i`, but there is no `i` here"));
            }
            let base = |literal: &str| base_units(kind, literal);
            let is_bare = matches!(kind, Kind::Ratio | Kind::Number | Kind::Count);
            let formula = Formula::parse(&text, (!is_bare).then_some(&base))?;
            return Ok(Self::Formula(kind, range, Box::new(formula)));
        }
        // A whole number is also a share or a number; anything else needs its unit.
        let of_range = |why: UnitError| match kind {
            Kind::Count => {
                let (least, most) = match range {
                    Range::UpTo(most) => (1, most),
                    Range::AboveZero => (1, u64::MAX),
                    Range::AboveOne => (2, u64::MAX),
                    Range::Any | Range::FromZero => (0, u64::MAX),
                };
                let (what, example) = (kind.describe(), kind.example());
                format!("`{text}` is not a {what} from {least} to {most}; write for example {example}")
            }
            _ => why.into(),
        };
        let value = kind.read(written).map_err(of_range)?;
        range.check(kind, value, &text)?;
        Ok(Self::Fixed(value))
    }

    /// The amount of member `i`.
    pub(crate) fn at(&self, i: u64) -> Result<Value, String> {
        match self {
            Self::Fixed(value) => Ok(*value),
            Self::Formula(kind, range, formula) => {
                let value = formula.at(i)?;
                let text = format!("{formula} = {value} for i = {i}");
                let refuse = || format!("`{text}` is not a {} that can be used here", kind.describe());
                let value = rounded(*kind, value).ok_or_else(refuse)?;
                range.check(*kind, value, &text)?;
                Ok(value)
            }
        }
    }

    /// A single amount, for member `i`.
    pub(crate) fn one<T: Setting>(item: &Item, range: Range, i: u64) -> Result<T, String> {
        let value = Self::read(item, T::KIND, range, true)?.at(i)?;
        T::of(Some(value)).ok_or_else(|| format!("`{}` is not a {}", item.plain(), T::KIND.describe()))
    }
}
