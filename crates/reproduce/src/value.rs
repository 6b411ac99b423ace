//! Values in papers' files: numbers, lengths of time, overrides; and the format of printed numbers.

use std::fmt;

use apportion_core::units::Span;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// One number or several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Numbers<T = f64> {
    /// A single number.
    One(T),
    /// A list of numbers.
    Many(Vec<T>),
}

impl<'de> Deserialize<'de> for Numbers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Numbers;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a list of numbers")
            }

            fn visit_i64<E>(self, one: i64) -> Result<Numbers, E> {
                Ok(Numbers::One(one as f64))
            }

            fn visit_f64<E>(self, one: f64) -> Result<Numbers, E> {
                Ok(Numbers::One(one))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Numbers, A::Error> {
                let mut many = Vec::new();
                while let Some(one) = list.next_element()? {
                    many.push(one);
                }
                Ok(Numbers::Many(many))
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

impl<T> Numbers<T> {
    /// The numbers as a slice.
    pub fn all(&self) -> &[T] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// A time or a length of time, written as `"30s"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub struct Length(pub Span);

impl TryFrom<String> for Length {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse().map(Self).map_err(|error| format!("{error}; write for example \"30s\""))
    }
}

/// Formats a value for `--set`.
pub(crate) fn text_of(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Threshold below which a value differs from zero by rounding only, in any unit used here.
pub(crate) const EPSILON: f64 = 1e-12;

/// Formats a number with all digits from a file, without floating-point noise.
pub(crate) fn plain(x: f64) -> String {
    if x != 0.0 && x.abs() < 1e-3 {
        return format!("{x:e}");
    }
    let text = format!("{x:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
