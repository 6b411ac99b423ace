//! What papers claim, and the scenarios that test it: the files `KEY/expect.toml` and the scenarios next to them, as
//! data. `apportion-reproduce` reads and runs them.

#![no_std]
#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The text of a file of [`FILES`].
#[must_use]
pub fn text(path: &str) -> Option<&'static str> {
    FILES.binary_search_by(|(known, _)| (*known).cmp(path)).ok().map(|at| FILES[at].1)
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
