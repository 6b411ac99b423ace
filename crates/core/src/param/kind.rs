//! The kinds of parameter values: their description, text form and reader.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::{Inside, Param};
use crate::limit::{BufferSize, Threshold};
use crate::mark::tvf::Tvf;
use crate::units::{Bytes, MeanPackets, Packets, Rate, Ratio, Span, Time, UnitError};

/// The kind of a parameter's values, which determines how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The size of a buffer in packets, bytes or time of its link: `"50p"`, `"64kB"`, `"100ms"`.
    Limit,
    /// `"50p"`.
    Packets,
    /// A level of an average queue in packets or bytes: `"2.5p"`, `"64kB"`.
    Threshold,
    /// `"2.5p"`.
    MeanPackets,
    /// `"1500B"`.
    Bytes,
    /// `"5ms"`.
    Span,
    /// A time since the start: `"5s"`.
    Time,
    /// `"10Mbit"`.
    Rate,
    /// `0.02` or `"2%"`.
    Ratio,
    /// A finite number.
    Number,
    /// A whole number, not negative.
    Count,
    /// A throughput-value function: `"1Mbit 1e9, 10Mbit 1e7"`.
    Tvf,
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// The name of a discipline that can stand inside another:
    /// [`Catalog::inside`](crate::system::Catalog::inside) lists them.
    Discipline(Inside),
    /// A string that is not empty.
    Text,
    /// A string or a whole number in a form that its reader knows; the text is an example.
    Form(&'static str),
    /// A form that only the type of the field reads; the text describes it.
    Own(&'static str),
    /// A list of strings.
    Texts,
    /// A list of lists of strings.
    TextLists,
    /// A list of whole numbers from 1.
    Ordinals,
    /// `true`, `false`, or a list of strings of a form that its reader knows.
    SwitchOrTexts,
    /// A table with these keys.
    Table(&'static [Param]),
    /// `false`, or a table with these keys.
    TableOrFalse(&'static [Param]),
    /// A value of this kind, or a table with these keys.
    OrTable(&'static Self, &'static [Param]),
    /// Tables with these keys, each under a name.
    Map(&'static [Param]),
    /// A list of tables with these keys.
    Tables(&'static [Param]),
    /// A table whose key `kind` names one of these variants, or the name alone as a string.
    Variants(&'static [Variant]),
    /// A value that is described elsewhere under the first name, such as `queue`; the second is an example.
    Defined(&'static str, &'static str),
    /// Any value of another key.
    Any,
}

/// One of several forms of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    /// The value of the key `kind`.
    pub name: &'static str,
    /// The description.
    pub doc: &'static str,
    /// The other keys.
    pub params: &'static [Param],
}

/// The values of its kind that a parameter allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// All values.
    Any,
    /// Zero or more.
    FromZero,
    /// Above zero.
    AboveZero,
    /// Above one.
    AboveOne,
    /// From one to this number.
    UpTo(u64),
}

impl Range {
    /// Checks that the range contains `value`, of `kind`, which was written as `text`.
    ///
    /// # Errors
    /// When it does not; the message states the range.
    pub fn check(self, kind: Kind, value: Value, text: &str) -> Result<(), UnitError> {
        let number = match value {
            Value::Bytes(bytes) => bytes.get() as f64,
            Value::Span(span) => span.as_nanos() as f64,
            Value::Time(time) => time.as_nanos() as f64,
            Value::Rate(rate) => rate.as_bit() as f64,
            Value::Ratio(ratio) => ratio.get(),
            Value::Number(number) => number,
            Value::Count(count) => count as f64,
            _ => return Ok(()),
        };
        let (holds, allowed) = match self {
            Self::Any => return Ok(()),
            Self::FromZero => (number >= 0.0, "zero or more".to_owned()),
            Self::AboveZero => (number > 0.0, "above zero".to_owned()),
            Self::AboveOne => (number > 1.0, "above one".to_owned()),
            Self::UpTo(most) => ((1.0..=most as f64).contains(&number), format!("between 1 and {most}")),
        };
        if holds {
            return Ok(());
        }
        let (what, example) = (kind.describe(), kind.example());
        Err(UnitError::new(format!("`{text}`: a {what} must be {allowed} here; write for example {example}")))
    }
}

impl Kind {
    /// The description of its values for users.
    #[must_use]
    pub fn describe(self) -> String {
        let description = match self {
            Self::Limit => "size in packets, bytes, time or bandwidth-delay products",
            Self::Packets => "packets",
            Self::Threshold => "mean packets or bytes",
            Self::MeanPackets => "mean packets",
            Self::Bytes => "size",
            Self::Span | Self::Time => "time",
            Self::Rate => "rate",
            Self::Ratio => "share",
            Self::Number => "number",
            Self::Count => "whole number",
            Self::Tvf => "rates and values",
            Self::Switch => "true or false",
            Self::Choice(words) => return words.join(", "),
            Self::Discipline(_) => "name of a discipline",
            Self::Own(description) => description,
            _ => "value",
        };
        description.to_owned()
    }

    /// An example value, as TOML.
    #[must_use]
    pub fn example(self) -> String {
        let example = match self {
            Self::Limit | Self::Packets => "\"50p\"",
            Self::Threshold | Self::MeanPackets => "\"2.5p\"",
            Self::Bytes => "\"64kB\"",
            Self::Span | Self::Time => "\"20ms\"",
            Self::Rate => "\"10Mbit\"",
            Self::Ratio => "0.01",
            Self::Number => "2.5",
            Self::Count => "10",
            Self::Tvf => "\"1Mbit 1e9, 10Mbit 1e7\"",
            Self::Switch | Self::SwitchOrTexts => "true",
            Self::Choice(words) => return format!("\"{}\"", words.first().unwrap_or(&"name")),
            Self::Text | Self::Any | Self::Discipline(_) => "\"name\"",
            Self::Form(example) | Self::Defined(_, example) => example,
            Self::Own(_) => "\"..\"",
            Self::Texts => "[\"a\", \"b\"]",
            Self::TextLists => "[[\"a\", \"b\"]]",
            Self::Ordinals => "[20, 22]",
            Self::Table(params) => {
                let required = params.iter().filter(|param| param.is_required());
                let required: Vec<_> =
                    required.map(|param| format!("{} = {}", param.name, param.kind.example())).collect();
                return if required.is_empty() {
                    "{ }".to_owned()
                } else {
                    format!("{{ {} }}", required.join(", "))
                };
            }
            Self::OrTable(kind, _) => return kind.example(),
            Self::TableOrFalse(_) | Self::Map(_) => "{ }",
            Self::Tables(_) => "[{ }]",
            Self::Variants(variants) => {
                return format!("\"{}\"", variants.first().map_or("name", |variant| variant.name));
            }
        };
        example.to_owned()
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// The size of a buffer.
    Limit(BufferSize),
    /// The size of a buffer in bandwidth-delay products, above 0. A caller that knows the flows
    /// [replaces](super::Args::size_by) it by a time.
    Bdp(f64),
    /// A number of packets.
    Packets(Packets),
    /// A level of an average queue in packets or bytes.
    Threshold(Threshold),
    /// A mean number of packets.
    MeanPackets(MeanPackets),
    /// A number of bytes.
    Bytes(Bytes),
    /// A time span, in nanoseconds.
    Span(Span),
    /// A time since the start, in nanoseconds.
    Time(Time),
    /// A rate in bits per second.
    Rate(Rate),
    /// A share, 0 to 1.
    Ratio(Ratio),
    /// A finite number without unit.
    Number(f64),
    /// A whole number, 0 or more.
    Count(u64),
    /// A throughput-value function.
    Tvf(Tvf),
    /// On or off.
    Switch(bool),
    /// A word of [`Kind::Choice`], or a name of [`Kind::Discipline`].
    Choice(&'static str),
}

/// A value as a file contains it, before a parameter interprets it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Written<'a> {
    /// A string, such as `"50p"`.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// `true` or `false`.
    Switch(bool),
}

impl<'a, T: AsRef<str> + ?Sized> From<&'a T> for Written<'a> {
    fn from(text: &'a T) -> Self {
        Self::Text(text.as_ref())
    }
}

/// Prints the value as written; strings have no quotes.
impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) => write!(f, "{float:?}"),
            Self::Switch(on) => write!(f, "{on}"),
        }
    }
}

impl Kind {
    /// Interprets `written` as a value of this kind.
    ///
    /// # Errors
    /// When it is not of this kind, or when the kind is a list or a table; the message says how to write one.
    pub fn read(self, written: Written<'_>) -> Result<Value, UnitError> {
        Ok(match (self, written) {
            (Self::Switch, Written::Switch(on)) => Value::Switch(on),
            (Self::Count, Written::Integer(count)) if count >= 0 => Value::Count(count.unsigned_abs()),
            (Self::Number, Written::Integer(number)) => Value::Number(number as f64),
            (Self::Number, Written::Float(number)) if number.is_finite() => Value::Number(number),
            (_, Written::Text(text)) => self.read_text(text).map_err(UnitError::new)?,
            (_, other) => self.read_text(&other.to_string()).map_err(UnitError::new)?,
        })
    }

    fn read_text(self, text: &str) -> Result<Value, String> {
        let finite = |number: &f64| number.is_finite();
        Ok(match self {
            Self::Limit => match text.strip_suffix("bdp") {
                Some(number) => bdp(number).ok_or_else(|| {
                    format!("`{text}` is no bandwidth-delay product; write for example \"0.5bdp\"")
                })?,
                None => Value::Limit(text.parse()?),
            },
            Self::Packets => Value::Packets(text.parse()?),
            Self::Threshold => Value::Threshold(text.parse()?),
            Self::MeanPackets => Value::MeanPackets(text.parse()?),
            Self::Bytes => Value::Bytes(text.parse()?),
            Self::Span => Value::Span(text.parse()?),
            Self::Time => Value::Time(text.parse()?),
            Self::Rate => Value::Rate(text.parse()?),
            Self::Ratio => Value::Ratio(text.parse()?),
            Self::Tvf => Value::Tvf(text.parse()?),
            Self::Number => text
                .parse()
                .ok()
                .filter(finite)
                .map(Value::Number)
                .ok_or_else(|| format!("`{text}` is not a number; write for example 2.5"))?,
            Self::Count => Value::Count(text.parse().map_err(|_| {
                format!("`{text}` is not a whole number from 0 to 2^64 - 1; write for example 64")
            })?),
            Self::Switch => {
                Value::Switch(text.parse().map_err(|_| format!("`{text}` is neither true nor false"))?)
            }
            Self::Choice(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| format!("`{text}` is not one of {}", words.join(", ")))?,
            Self::Discipline(_) => return Err(format!("`{text}` is a name of the catalogue")),
            _ => return Err(format!("`{text}` is not such a value; write for example {}", self.example())),
        })
    }
}

/// A number of bandwidth-delay products.
fn bdp(number: &str) -> Option<Value> {
    number.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0).map(Value::Bdp)
}
