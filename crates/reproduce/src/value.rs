//! Values as papers' files hold them: numbers, lengths of time, overrides; and how numbers are printed.

use apportion_core::units::Span;
use serde::{Deserialize, Serialize};

/// One number or several.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Numbers<T = f64> {
    /// One.
    One(T),
    /// Several.
    Many(Vec<T>),
}

impl<T> Numbers<T> {
    /// As a slice.
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

/// A value as `--set` takes it.
pub(crate) fn text_of(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What is below differs from zero by rounding only, in any unit used here.
pub(crate) const EPSILON: f64 = 1e-12;

/// A number that somebody wrote: all its digits, no noise of floating point.
pub(crate) fn plain(x: f64) -> String {
    if x != 0.0 && x.abs() < 1e-3 {
        return format!("{x:e}");
    }
    let text = format!("{x:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
