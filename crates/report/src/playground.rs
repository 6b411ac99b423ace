//! Links from pages to the playground, which runs scenarios in a browser.
//!
//! A script makes them from the texts of scenarios in the page, which it compresses: none is in the page twice.

use std::io;
use std::path::Path;

use apportion_scenario::load;

use crate::html::escape;

/// The address of the playground's page, as the build sets it: a report must not name a host that has none. Pages of other builds have
/// no links.
const ADDRESS: Option<&str> = option_env!("APPORTION_PLAYGROUND");
/// The maximum length of a text that the playground reads, in bytes. Chosen: a hundred times the longest example.
pub const LONGEST: usize = 200_000;
/// The most replications that it runs.
const MOST_SEEDS: usize = 100;
/// The most memory that a run there may need by its estimate, in bytes: a page has 1 GB.
const MOST_MEMORY: f64 = 900e6;

/// The attribute of `main` that holds the address; empty without one.
pub(crate) fn address() -> String {
    let known = ADDRESS.filter(|address| !address.is_empty());
    known.map_or_else(String::new, |address| format!(" data-playground=\"{}\"", escape(address)))
}

/// The attribute of an element that holds the text of a scenario, by which the script knows the replications of its link; empty if the
/// playground refuses the scenario.
pub(crate) fn seeds(text: &str, seeds: usize) -> String {
    if opens(text, seeds) { format!(" data-seeds=\"{seeds}\"") } else { String::new() }
}

/// Whether the playground runs a scenario: without files, and with the disciplines of this project alone.
fn opens(text: &str, seeds: usize) -> bool {
    // `escape` replaces control characters.
    let is_kept = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.len() > LONGEST || !(1..=MOST_SEEDS).contains(&seeds) || !text.chars().all(is_kept) {
        return false;
    }
    let no_files = |_: &Path| Err(io::ErrorKind::NotFound.into());
    load(text, Path::new("scenario"), &[], &no_files)
        .is_ok_and(|suite| suite.points.iter().all(|point| point.scenario.estimate().memory <= MOST_MEMORY))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "seed = 1\nstop = \"2s\"\n\
        link.l = { from = \"a\", to = \"b\", rate = \"2Mbit\", delay = \"5ms\" }\n\
        flow.x = { from = \"a\", to = \"b\", tcp = \"rfc\" }\n";

    #[test]
    fn what_the_playground_refuses_has_no_link() {
        assert_eq!(seeds(SCENARIO, 3), " data-seeds=\"3\"");
        let longer = |by: usize| format!("{SCENARIO}#{}", "x".repeat(LONGEST - SCENARIO.len() - 1 + by));
        assert!(opens(&longer(0), 1) && !opens(&longer(1), 1));
        assert!(opens(SCENARIO, 100) && !opens(SCENARIO, 101) && !opens(SCENARIO, 0));
        for (from, to) in [
            ("rate = \"2Mbit\"", "trace = \"trace.txt\""),
            ("tcp = \"rfc\"", "tcp = \"mine\""),
            ("seed = 1", "title = \"\u{85}\"\nseed = 1"),
            ("tcp = \"rfc\"", "count = 400000"),
        ] {
            assert!(!opens(&SCENARIO.replace(from, to), 1), "{to}");
        }
    }
}
