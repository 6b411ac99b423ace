//! Access to the files of papers, on disk or embedded in the program.

use std::io;
use std::path::{Component, Path};

/// Folder of embedded papers in messages and pages.
const FOLDER: &str = "papers";

/// Maximum length of a paper's text file in bytes. Chosen: the limit of a scenario.
const MAX_TEXT: u64 = 16 << 20;

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A set of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Files {
    Disk,
    /// Embedded in the program, below `papers/`.
    Embedded,
}

impl Files {
    /// Reads a whole file.
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    pub fn read(self, path: &Path) -> io::Result<Vec<u8>> {
        match self {
            Self::Disk => apportion_scenario::read_file(path),
            Self::Embedded => embedded(path).map(|text| text.as_bytes().to_vec()),
        }
    }

    /// Reads a whole text file.
    ///
    /// # Errors
    /// The file does not exist, cannot be read, or is not text.
    pub fn read_text(self, path: &Path) -> io::Result<String> {
        match self {
            Self::Disk => apportion_scenario::read_text_file(path, MAX_TEXT),
            Self::Embedded => embedded(path).map(str::to_owned),
        }
    }
}

/// Resolves a path: `papers/pfd-extensions/../pfd/mix.toml` is `papers/pfd/mix.toml`.
fn embedded(path: &Path) -> io::Result<&'static str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.extend(name.to_str()),
            Component::ParentDir => drop(parts.pop()),
            _ => (),
        }
    }
    match parts.split_first() {
        Some((&FOLDER, rest)) => text(&rest.join("/")),
        _ => None,
    }
    .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the program has no such file"))
}

/// The text of a file of [`FILES`].
fn text(path: &str) -> Option<&'static str> {
    FILES.binary_search_by(|(known, _)| (*known).cmp(path)).ok().map(|at| FILES[at].1)
}

/// The embedded `expect.toml` files.
pub(crate) fn papers() -> impl Iterator<Item = String> {
    let is_paper = |path: &&str| path.ends_with("/expect.toml");
    FILES.iter().map(|(path, _)| *path).filter(is_paper).map(|path| format!("{FOLDER}/{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paper_is_there_and_found() {
        assert!(text("pps/expect.toml").is_some_and(|text| text.contains("pps/fig4")));
        assert!(FILES.iter().all(|(path, found)| text(path) == Some(*found)));
        assert_eq!(text("Cargo.toml"), None);
    }
}
