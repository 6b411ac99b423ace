//! A run as a few lines of plain text for a terminal, and as JSON lines for scripts.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::headline::headlines;
use crate::metrics::SlowestLink;
use crate::phase_sensitivity;
use crate::quantities::{
    COMPLETION_P95, DELAY_P95, JAIN, QUEUE_DELAY_P95, Quantity, RPM, TOTAL_DROPS, TOTAL_THROUGHPUT,
    UTILISATION,
};
use crate::rows::PhaseSensitivityRow;
use crate::run_results::{PointResults, RunResults};
use crate::shares::in_order;
use crate::statistics::Estimate;

/// Maximum of points in the summary. Chosen: with the title, two headers and as many headlines it has at most
/// 25 lines, a terminal's height.
const MAX_POINTS: usize = 10;
/// Maximum of columns of groups. Chosen: as many as fit a terminal's width.
const MAX_GROUPS: usize = 3;

/// A terminal's height.
const LINES: usize = 25;

/// The summary printed at the end of a run: at most 25 lines, without colours.
#[must_use]
pub fn summary(run: &RunResults) -> String {
    let state = match run.cut() {
        Some(cut) => format!(" (interrupted at {cut}: results are partial)"),
        None if run.complete => String::new(),
        None => " (interrupted: results are incomplete)".to_owned(),
    };
    let mut out = format!("{}{state}\n", run.title);
    let shown = &run.points[..run.points.len().min(MAX_POINTS)];
    let waits = waits(shown);
    let link = SlowestLink::of(run.points.iter().map(|point| &point.summary().metrics));
    // The name of the only watched link is left out.
    let of_link = |what: &str| match link {
        Some(SlowestLink { name, is_only: false }) => format!("{name} {what}"),
        _ => what.to_owned(),
    };
    let mut head = ["point", "total Mb/s"].map(str::to_owned).to_vec();
    head.extend([of_link("utilisation"), "Jain".to_owned(), of_link("queue p95 ms")]);
    head.extend(waits.iter().map(|(head, _)| head.clone()));
    head.push("drops".to_owned());
    let mut rows = vec![head];
    rows.extend(shown.iter().map(|point| summary_row(point, link, &waits)));
    out.push_str(&align(&rows));
    if run.points.len() > shown.len() {
        out.push_str(&format!(
            "... and {} more points, all in the tables `flows` and `links`\n",
            run.points.len() - shown.len()
        ));
    }
    // For a long sweep only the leading sentence is printed.
    let sentences = if run.points.len() > MAX_POINTS { 1 } else { MAX_POINTS + 1 };
    for line in headlines(run).into_iter().take(sentences) {
        out.push_str(&format!("{}{}\n", line.point.map(|p| format!("{p}: ")).unwrap_or_default(), line.text));
    }
    let phases = phase_sensitivity::sentences(run);
    let room = LINES.saturating_sub(out.lines().count()).max(1);
    // One line is reserved for the note about lines that are left out.
    let shown = if phases.len() > room { room - 1 } else { phases.len() };
    phases.iter().take(shown).for_each(|sentence| out.push_str(&format!("{sentence}\n")));
    match phases.len() - shown {
        0 => (),
        more if shown == 0 => {
            out.push_str(&format!("{more} points depend on phases: see the table `phase_sensitivity`\n"));
        }
        more => {
            out.push_str(&format!(
                "... and {more} more points depend on phases: see the table `phase_sensitivity`\n"
            ));
        }
    }
    out
}

/// The column of delay for each group, as header and metric: completion time for finite transfers, packet
/// delay for other flows.
fn waits(points: &[PointResults]) -> Vec<(String, String)> {
    let groups: BTreeSet<&str> = points.iter().flat_map(|p| &p.flows).map(|f| f.group.as_str()).collect();
    let groups = in_order(groups.into_iter().map(str::to_owned));
    let finite = |group: &str| points.iter().any(|p| p.summary().metrics.transfers().any(|of| of == group));
    let probe = |group: &str| points.iter().any(|p| p.summary().metrics.probes().any(|of| of == group));
    let wait = |group: &String| match finite(group) {
        true if probe(group) => (format!("{group} RPM"), RPM.at(group)),
        true => (format!("{group} done p95 s"), COMPLETION_P95.at(group)),
        false => (format!("{group} p95 ms"), DELAY_P95.at(group)),
    };
    if groups.len() > MAX_GROUPS { Vec::new() } else { groups.iter().map(wait).collect() }
}

fn summary_row(
    point: &PointResults,
    link: Option<SlowestLink<'_>>,
    waits: &[(String, String)],
) -> Vec<String> {
    let metrics = &point.summary().metrics;
    let show = |name: &str| metrics.show(name).unwrap_or_else(|| "-".to_owned());
    let of_link = |of: Quantity| link.map_or_else(|| "-".to_owned(), |link| show(&of.at(link.name)));
    let mut row = vec![
        point.name().to_owned(),
        show(TOTAL_THROUGHPUT.name),
        of_link(UTILISATION),
        show(JAIN.name),
        of_link(QUEUE_DELAY_P95),
    ];
    row.extend(waits.iter().map(|(_, metric)| show(metric)));
    row.push(show(TOTAL_DROPS.name));
    row
}

/// Pads columns to their widest cell: the first to the left, numbers to the right. Names may have line ends.
pub(crate) fn align(rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| cell.replace('\n', "\\n")).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(c, (cell, &width))| match c {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[derive(Serialize)]
struct RunLine<'a> {
    run: &'a str,
    hash: &'a str,
    /// In decimal: numbers of JSON are exact to 53 bits in many readers.
    seeds: Vec<String>,
    complete: bool,
    valid: bool,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct MetricLine<'a> {
    point: &'a str,
    metric: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    measured: Estimate,
}

#[derive(Serialize)]
struct PhaseLine<'a> {
    phase_sensitivity: &'a PhaseSensitivityRow,
}

/// One JSON object a line: first the run, then every metric of every point with its mean and 95 % interval, then the rows of
/// the table `phase_sensitivity` in objects whose only key is `phase_sensitivity`.
#[must_use]
pub fn json_lines(run: &RunResults) -> String {
    let (complete, valid) = (run.complete, run.faults().is_empty());
    let seeds = run.seeds.iter().map(u64::to_string).collect();
    let warnings = &run.warnings;
    let mut out = line(&RunLine { run: &run.title, hash: &run.hash, seeds, complete, valid, warnings });
    for point in &run.points {
        for metric in point.summary().metrics.iter() {
            let Some(measured) = metric.estimate() else { continue };
            let (metric, unit) = (metric.name.as_str(), metric.unit);
            out.push_str(&line(&MetricLine { point: &point.label, metric, unit, measured }));
        }
    }
    for row in run.points.iter().flat_map(|point| &point.phase_sensitivity) {
        out.push_str(&line(&PhaseLine { phase_sensitivity: row }));
    }
    out
}

fn line(object: &impl Serialize) -> String {
    // These structs always encode: they have no map with odd keys, and a number that is not finite becomes
    // null.
    serde_json::to_string(object).map(|text| text + "\n").unwrap_or_default()
}
