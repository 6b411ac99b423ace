//! The result of a script.

use std::fmt;

/// Why a script, or the rest of one, is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The kind, for the table.
    pub kind: &'static str,
    /// What the script has.
    pub detail: String,
}

impl Reason {
    pub(crate) fn new(kind: &'static str, detail: &str) -> Self {
        Self { kind, detail: detail.to_owned() }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.detail)
    }
}

/// A difference between a script and the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The line of the event, from 1.
    pub line: usize,
    /// What the script expects.
    pub expected: String,
    /// What happened.
    pub got: String,
}

/// The result of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of it holds.
    Pass,
    /// Something does not hold.
    Fail(Difference),
    /// All before this line holds; the rest is not applied.
    Part(usize, Reason),
    /// Nothing that it checks beyond the handshake is in the model.
    NotApplicable(Reason),
    /// It is no script.
    Unreadable(String),
}

impl Verdict {
    /// One word for lists and tables.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Part(..) => "part",
            Self::NotApplicable(_) => "n/a",
            Self::Unreadable(_) => "unreadable",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pass => Ok(()),
            Self::Fail(Difference { line, expected, got }) => {
                write!(f, "line {line}: expected {expected}; got {got}")
            }
            Self::Part(line, reason) => write!(f, "up to line {line}; then {reason}"),
            Self::NotApplicable(reason) => write!(f, "{reason}"),
            Self::Unreadable(error) => write!(f, "{error}"),
        }
    }
}
