//! The page of results must list every column of every table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use apportion_report::quantities::QUANTITIES;
use apportion_report::rows::{
    AllocationRow, CompletionRow, FlowRow, Kind, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, Row,
    SeriesRow, StatisticRow,
};

const PAGE: &str = "../../docs/results.md";
const BEGIN: &str = "<!-- Columns: written by the test `columns` of crates/report with WRITE=1. -->\n";
const END: &str = "<!-- End of columns. -->\n";

/// The first columns of most tables; the page describes them once.
const COMMON: [&str; 2] = ["point", "seed"];

/// The columns of a table as Markdown, without the common ones.
fn columns<R: Row>() -> String {
    let mut text = format!("\n### {}\n\n| column | type | unit | |\n|---|---|---|---|\n", R::TABLE);
    for column in R::COLUMNS.iter().filter(|column| !COMMON.contains(&column.name)) {
        let kind = match column.kind {
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Flag => "true or false",
        };
        let kind = if column.optional { format!("{kind}, may be empty") } else { kind.to_owned() };
        // Lines of a comment begin with a space each.
        let mut doc = column.doc.trim().replace('|', "\\|");
        // The unit has a column of its own.
        for end in [".", ";", ":"] {
            doc = doc.replace(&format!(", {}{end}", column.unit), end);
        }
        writeln!(text, "| `{}` | {kind} | {} | {doc} |", column.name, column.unit).unwrap();
    }
    text
}

/// The quantities as Markdown.
fn quantities() -> String {
    let mut text = "\n### Metrics\n\nA metric of a group, customer or link has its name after a `/`, such as `share/tcp`.\n\n".to_owned();
    text += "| metric | of each | unit | |\n|---|---|---|---|\n";
    for quantity in QUANTITIES {
        let doc = quantity.doc.trim();
        writeln!(text, "| `{}` | {} | {} | {doc} |", quantity.name, quantity.each(), quantity.unit).unwrap();
    }
    text
}

#[test]
fn the_page_of_results_has_every_column_and_metric() {
    let all = [
        columns::<FlowRow>(),
        columns::<LinkRow>(),
        columns::<SeriesRow>(),
        columns::<AllocationRow>(),
        columns::<CompletionRow>(),
        columns::<MediaRow>(),
        columns::<StatisticRow>(),
        columns::<ResponseRow>(),
        columns::<PhaseSensitivityRow>(),
        quantities(),
    ];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let expected = format!("{before}{BEGIN}{}\n{END}{after}", all.concat());
    if std::env::var_os("WRITE").is_some() {
        fs::write(path, expected).unwrap();
    } else {
        assert!(page == expected, "docs/results.md is out of date; write it with WRITE=1");
    }
}
