//! Files that are imported, and what is said of them.

use std::fmt;

/// A file to import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// What messages call it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// Something that was not taken, or not as it was. Prints as `shape.sh:3: what, and why`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The file as the user named it.
    pub file: String,
    /// Its line, counting from 1.
    pub line: u32,
    /// What is not taken, and why.
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
