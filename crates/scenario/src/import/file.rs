//! Imported files, and notes on them.

use std::fmt;

/// A file to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// The name in messages.
    pub name: String,
    /// The content.
    pub text: String,
}

/// A note on a setting that was not taken, or changed. Prints as `shape.sh:3: what, and why`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The file by the user's name.
    pub file: String,
    /// The line, counting from 1.
    pub line: u32,
    /// The setting that is not taken, and why.
    pub message: String,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// Text of a file as part of one line of a comment.
pub(super) fn comment_text(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
