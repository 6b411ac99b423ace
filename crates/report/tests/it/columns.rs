//! The page of results lists every column of every table.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use apportion_report::quantities::QUANTITIES;
use apportion_report::rows::{
    AllocationRow, CompletionRow, FlowRow, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, Row,
    SeriesRow, StatisticRow,
};

const PAGE: &str = "../../docs/results.md";
const BEGIN: &str = "<!-- Columns: written by the test `columns` of crates/report with WRITE=1. -->\n";
const END: &str = "<!-- End of columns. -->\n";

/// Most tables have these; the page describes them once.
const COMMON: [&str; 3] = ["point", "seed", "valid"];

/// The columns of a table as Markdown, without the common ones.
fn columns<R: Row>() -> String {
    let columns = R::COLUMNS.iter().filter(|column| !COMMON.contains(&column.name));
    let lines = columns.map(|column| {
        let optional = if column.optional { "?" } else { "" };
        // Lines of a comment begin with a space each.
        let mut doc = column.doc.trim().to_owned();
        // The name of a column ends in its unit.
        for end in [".", ";", ":", ","] {
            doc = doc.replace(&format!(", {}{end}", column.unit), end);
        }
        (column.name, format!("{optional}: {doc}"))
    });
    format!("\n### {}\n\n{}", R::TABLE, list(lines))
}

/// The quantities as Markdown, those of all flows, of each group and so on by themselves.
fn quantities() -> String {
    let mut text = "\n### Metrics\n\nA metric of a group, customer or link has its name after a `/`, such as `share/tcp`.\n".to_owned();
    for of in QUANTITIES.chunk_by(|a, b| a.each() == b.each()) {
        let each = if of[0].each().is_empty() { "run" } else { of[0].each() };
        let lines = of.iter().map(|of| (of.name, format!(": {}", of.doc.trim())));
        write!(text, "\nOf a {each}:\n\n{}", list(lines)).unwrap();
    }
    text
}

/// A line for each name and what is said of it, and one for names in succession of which the same is said.
fn list<'a>(names: impl Iterator<Item = (&'a str, String)>) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    for (name, text) in names {
        match lines.last_mut() {
            Some((names, same)) if *same == text => write!(names, ", `{name}`").unwrap(),
            _ => lines.push((format!("`{name}`"), text)),
        }
    }
    lines.iter().map(|(names, text)| format!("- {names}{text}\n")).collect()
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
