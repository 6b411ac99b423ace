//! The keys of a gateway's configuration as Markdown, read from the tables that the loader uses.

use std::fmt::Write as _;

use super::tables::{DIRECTION, LABELS, ROOT, RULE};
use crate::describe::markdown_keys;
use crate::tables::CUSTOMER;

/// The keys of configuration files of gateways as Markdown: the end of the page `docs/gateway.md`.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(HEAD);
    let tables = [
        ("The file", ROOT),
        ("`[up]` and `[down]`", DIRECTION),
        ("`labels` of a direction", LABELS),
        ("`[[rule]]`", RULE),
        ("`[customer.NAME]`", CUSTOMER),
    ];
    for (title, keys) in tables {
        let _ = write!(out, "\n### {title}\n");
        markdown_keys(&mut out, keys);
    }
    out
}

const HEAD: &str = "## Keys of the configuration file

A configuration is a TOML file. Quantities are written with their unit; queues, markers and exchanges are written as in
[scenario files](scenario.md). Unknown keys are refused. Every error message names the file, the line, the key and the fix.
These tables are generated from those that the loader reads.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_is_the_end_of_the_page_in_the_documentation() {
        let page = include_str!("../../../../docs/gateway.md");
        assert!(
            page.ends_with(&reference()),
            "write the output of `cargo run -p apportion-scenario --example reference gateway` to the end of \
             docs/gateway.md"
        );
        // The part above it is written by hand.
        assert_eq!(page.matches("## Keys of the configuration file").count(), 1);
    }
}
