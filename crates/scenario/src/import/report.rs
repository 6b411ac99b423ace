//! Notes and problems, with their lines.

use std::collections::BTreeSet;

use super::file::Note;
use crate::problem::{Place, Problem, Problems};

/// Notes and problems of files while they are read.
pub(super) struct Report {
    /// Whether the result is the configuration of a gateway, not a scenario.
    pub is_gateway: bool,
    /// The file that is read, by the user's name.
    file: String,
    notes: Vec<Note>,
    problems: Problems,
    refused: Vec<Problem>,
}

impl Report {
    pub fn new(is_gateway: bool) -> Self {
        let (notes, refused) = (Vec::new(), Vec::new());
        Self { is_gateway, file: String::new(), notes, problems: Problems::default(), refused }
    }

    /// Sets the file that further notes are about.
    pub fn in_file(&mut self, name: &str) {
        let problems = std::mem::take(&mut self.problems).into_vec(&self.file);
        self.refused.extend(problems);
        name.clone_into(&mut self.file);
    }

    /// Notes a setting that is not taken, or changed, and why.
    pub fn note(&mut self, line: u32, message: impl Into<String>) {
        self.notes.push(Note { file: self.file.clone(), line, message: message.into() });
    }

    /// Refuses text that cannot be understood, with a remedy.
    pub fn refuse(&mut self, line: u32, message: impl Into<String>) {
        self.problems.add(Place::Line(line), "", message);
    }

    /// Whether anything was refused.
    pub fn has_refused(&self) -> bool {
        !self.refused.is_empty() || !self.problems.is_empty()
    }

    /// The value; or none, and the error is refused.
    pub fn or_refuse<T>(&mut self, line: u32, value: Result<T, String>) -> Option<T> {
        value.map_err(|message| self.refuse(line, message)).ok()
    }

    /// The place of a line in the present file, for example `shape.sh:3`.
    pub fn place(&self, line: u32) -> String {
        format!("{}:{line}", self.file)
    }

    /// All notes.
    ///
    /// # Errors
    /// Everything that was refused, if anything was.
    pub fn into_notes(mut self) -> Result<Vec<Note>, Vec<Problem>> {
        self.in_file("");
        // Options of a script and of its user often repeat each other.
        let mut seen = BTreeSet::new();
        self.notes.retain(|note| seen.insert(note.clone()));
        if self.refused.is_empty() { Ok(self.notes) } else { Err(self.refused) }
    }
}
