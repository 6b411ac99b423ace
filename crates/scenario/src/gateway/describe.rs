//! The keys of a gateway's configuration as Markdown, read from the tables that the loader uses.

use std::fmt::Write as _;

use super::tables::{DIRECTION, LABELS, ROOT, RULE};
use crate::describe::markdown_keys;
use crate::tables::CUSTOMER;

/// The keys of configuration files of gateways as Markdown: the tables of the page `docs/gateway.md`.
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

const HEAD: &str = "Quantities have a unit: `\"18Mbit\"` (per second), `\"22B\"`, `\"15ms\"`. Queues, markers and exchanges have the syntax of
[scenario files](scenario.md). The gateway refuses unknown keys; each error message names the file, the line, the key and the fix.
";

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::gateway::GatewayConfig;

    const PAGE: &str = include_str!("../../../../docs/gateway.md");

    #[test]
    fn the_reference_is_in_the_documentation() {
        assert!(
            PAGE.contains(&reference()),
            "write the output of `cargo run -p apportion-scenario --example reference gateway` into \
             docs/gateway.md, under its first example"
        );
    }

    #[test]
    fn the_first_example_of_the_page_loads_without_a_warning() {
        let (_, rest) = PAGE.split_once("```toml\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let config = GatewayConfig::load(example, Path::new("home.toml")).unwrap();
        assert_eq!(config.warnings(), [""; 0]);
    }
}
