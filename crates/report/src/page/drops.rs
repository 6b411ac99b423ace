//! Why packets were dropped or marked: by reason, of each group and at each watched link.

use std::fmt::Write;

use apportion_core::queue::DropReason;

use crate::figure::{Stack, stacks};
use crate::html::escape;
use crate::metrics::Metrics;
use crate::record::{PointRecord, Run};

/// Chosen: as many rows as fit a figure of a screen's height.
const MAX_ROWS: usize = 32;
/// Chosen: groups and links beyond these are in the tables.
const MAX_FIGURES: usize = 12;

/// A metric by reason: its name in the report, and the start of the names of its metrics.
fn reasons(prefix: &str) -> Vec<(String, String)> {
    let drops = DropReason::ALL.map(|reason| {
        let name = reason.name();
        (format!("dropped: {}", name.replace('_', "-")), format!("{prefix}drops_{name}_packets/"))
    });
    drops.into_iter().chain([("marked".to_owned(), format!("{prefix}marked_packets/"))]).collect()
}

/// Figures of drops and marks by reason, one for each watched link and each group; empty if nothing was dropped or marked.
pub(super) fn figures(run: &Run) -> String {
    let mut out = String::new();
    for (what, prefix) in [("at link", "link_"), ("of group", "")] {
        let reasons = reasons(prefix);
        let mut names: Vec<&str> = run
            .points
            .iter()
            .flat_map(|point| point.summary().metrics.iter())
            .filter_map(|metric| {
                reasons.iter().find_map(|(_, start)| metric.name.strip_prefix(start.as_str()))
            })
            .collect();
        names.sort_unstable();
        names.dedup();
        for name in names.into_iter().take(MAX_FIGURES) {
            out.push_str(&figure(run, &format!("Drops and marks {what} {name}, packets"), name, &reasons));
        }
    }
    out
}

fn figure(run: &Run, title: &str, name: &str, reasons: &[(String, String)]) -> String {
    let count = |metrics: &Metrics, start: &str| Some(metrics.get(&format!("{start}{name}"))?.mean);
    let row = |point: &PointRecord| {
        let metrics = &point.summary().metrics;
        let part = |(key, (_, start)): (usize, &(String, String))| Some((key, count(metrics, start)?));
        Stack { label: point.name().to_owned(), parts: reasons.iter().enumerate().filter_map(part).collect() }
    };
    let rows: Vec<Stack> = run.points.iter().take(MAX_ROWS).map(row).collect();
    let occurs =
        |key: usize| rows.iter().flat_map(|row| &row.parts).any(|part| part.0 == key && part.1 > 0.0);
    let mut keys = String::new();
    for (key, (reason, _)) in reasons.iter().enumerate().filter(|(key, _)| occurs(*key)) {
        let _ = writeln!(keys, "<li><span class=\"k{key}\"></span>{reason}</li>");
    }
    let cut = match run.points.len() {
        all if all > MAX_ROWS => format!("<br/>The first {MAX_ROWS} of {all} points."),
        _ => String::new(),
    };
    let title = escape(title);
    format!(
        "<figure class=\"card\" role=\"img\" aria-label=\"{title}\"><figcaption><b>{title}</b>{cut}</figcaption>\n\
         <ul class=\"legend\">\n{keys}</ul>\n{}</figure>\n",
        stacks(&rows).svg()
    )
}
