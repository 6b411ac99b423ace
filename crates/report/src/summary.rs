//! A run as a few lines of plain text for a terminal, and as JSON lines for scripts.

use serde::Serialize;

use crate::headline::headlines;
use crate::metrics::Metrics;
use crate::record::{PointRecord, Run};
use crate::statistics::Estimate;

/// Chosen: with the title, two headers and as many headlines at most 25 lines, a terminal's height.
const MAX_POINTS: usize = 10;

/// What is printed at the end of a run: at most 25 lines, without colours.
#[must_use]
pub fn summary(run: &Run) -> String {
    let mut out = format!(
        "{}{}\n",
        run.title,
        if run.complete { "" } else { " (interrupted: results are incomplete)" }
    );
    let shown = &run.points[..run.points.len().min(MAX_POINTS)];
    let mut rows: Vec<Vec<String>> = vec![
        ["point", "total Mb/s", "utilisation", "Jain", "queue p95 ms", "drops"].map(str::to_owned).to_vec(),
    ];
    rows.extend(shown.iter().map(summary_row));
    out.push_str(&align(&rows));
    if run.points.len() > shown.len() {
        out.push_str(&format!(
            "... and {} more points, all in flows.csv and links.csv\n",
            run.points.len() - shown.len()
        ));
    }
    // A long sweep is summed up by its leading sentence.
    let sentences = if run.points.len() > MAX_POINTS { 1 } else { MAX_POINTS + 1 };
    for line in headlines(run).into_iter().take(sentences) {
        out.push_str(&format!("{}{}\n", line.point.map(|p| format!("{p}: ")).unwrap_or_default(), line.text));
    }
    out
}

fn summary_row(point: &PointRecord) -> Vec<String> {
    let metrics = Metrics::of(point);
    let show = |name: &str| metrics.get(name).map_or_else(|| "-".to_owned(), |e| e.to_string());
    let watched = point.outcomes.first().and_then(|o| o.links.iter().find(|l| l.watched)).map(|l| &l.name);
    let of_link = |what: &str| watched.map_or_else(|| "-".to_owned(), |link| show(&format!("{what}/{link}")));
    vec![
        point.name().to_owned(),
        show("throughput_mbps"),
        of_link("utilisation"),
        show("jain"),
        of_link("queue_delay_p95_ms"),
        show("drops_packets"),
    ]
}

/// Columns padded to their widest cell: the first to the left, numbers to the right.
pub(crate) fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| rows.iter().filter_map(|r| r.get(c)).map(|s| s.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
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
    seeds: &'a [u64],
    complete: bool,
}

#[derive(Serialize)]
struct MetricLine<'a> {
    point: &'a str,
    metric: &'a str,
    unit: &'a str,
    #[serde(flatten)]
    measured: Estimate,
}

/// One JSON object a line: first the run, then every metric of every point with its mean and 95 % interval.
#[must_use]
pub fn json_lines(run: &Run) -> String {
    let mut out =
        line(&RunLine { run: &run.title, hash: &run.hash, seeds: &run.seeds, complete: run.complete });
    for point in &run.points {
        for metric in &Metrics::of(point).0 {
            let Some(measured) = metric.estimate() else { continue };
            let (metric, unit) = (metric.name.as_str(), metric.unit);
            out.push_str(&line(&MetricLine { point: &point.label, metric, unit, measured }));
        }
    }
    out
}

fn line(object: &impl Serialize) -> String {
    // These structs hold nothing that JSON cannot: no map with odd keys, and what is not a number becomes
    // null.
    serde_json::to_string(object).map(|text| text + "\n").unwrap_or_default()
}
