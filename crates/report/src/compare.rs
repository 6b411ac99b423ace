//! Comparison of stored runs: common metrics, their differences, and whether their intervals overlap; as text
//! and as a page.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::statistics::{Estimate, number};
use crate::store::{StoredPoint, StoredRun};
use crate::summary::align;

mod moved;
mod page;

pub use moved::NotJudged;

/// The metrics that several runs share, each compared with the first run's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs in the given order; the others are compared with the first.
    pub runs: Vec<ComparedRun>,
    /// Rows by point and metric, in the first run's order.
    pub rows: Vec<ComparisonRow>,
    /// Counts by reasons that occurred in none of the runs.
    #[serde(skip)]
    unlisted: Vec<ComparisonRow>,
}

/// A run of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The folder of the run.
    pub folder: String,
    /// The title of the scenario.
    pub title: String,
    /// Hash of the scenario; equal hashes mean equal scenarios.
    pub hash: String,
    /// False if the run was interrupted.
    pub complete: bool,
    /// The cut of the replication, as text, if the run was interrupted before any had ended; absent if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
}

/// One metric of one point in all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonRow {
    /// The label of the point.
    pub point: String,
    /// The name of the metric.
    pub metric: String,
    /// Unit of the metric.
    pub unit: &'static str,
    /// One per run; `None` where a run did not measure it.
    pub measured: Vec<Option<Estimate>>,
    /// One per run after the first.
    pub differences: Vec<Option<Difference>>,
}

/// The difference between a run and the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean minus the first run's.
    pub absolute: f64,
    /// The absolute difference divided by the first run's mean; `None` if that mean is zero.
    pub relative: Option<f64>,
    /// Whether the two 95 % intervals overlap; `None` if one of the runs has a single seed.
    pub overlap: Option<bool>,
}

/// Two runs have no point in common.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` and `{}` have no point in common: the points of the first are {}, those of the second {}; run both with the same alternatives",
    .folders[0], .folders[1], .points[0], .points[1]
)]
pub struct NothingInCommon {
    folders: [String; 2],
    /// The points of the two runs, as text.
    points: [String; 2],
}

/// Maximum of points in a message. Chosen: as many as it has room for.
const MAX_NAMED: usize = 12;

impl NothingInCommon {
    fn of(runs: [&StoredRun; 2]) -> Self {
        let points = |run: &StoredRun| {
            let named = run.points.iter().take(MAX_NAMED).map(|point| match point.label.as_str() {
                "" => "one without a name".to_owned(),
                label => format!("`{label}`"),
            });
            let more = run.points.len().saturating_sub(MAX_NAMED);
            let more = (more > 0).then(|| format!("{more} more"));
            named.chain(more).collect::<Vec<_>>().join(", ")
        };
        Self { folders: runs.map(|run| run.folder.display().to_string()), points: runs.map(points) }
    }
}

/// Compares `runs` with the first of them, point by point. Points are matched by their labels; runs that all
/// have a single point are matched whatever its label.
///
/// # Errors
/// If a run has no point in common with the first one.
pub fn compare(runs: &[StoredRun]) -> Result<Comparison, NothingInCommon> {
    let single = are_single(runs);
    if let Some((first, others)) = runs.split_first() {
        let labels: BTreeSet<&str> = first.points.iter().map(|point| point.label.as_str()).collect();
        let is_other =
            |run: &&StoredRun| !run.points.iter().any(|point| labels.contains(point.label.as_str()));
        if let Some(other) = others.iter().find(is_other).filter(|_| !single) {
            return Err(NothingInCommon::of([first, other]));
        }
    }
    let (mut rows, mut unlisted) = (Vec::new(), Vec::new());
    for matching in matching(runs) {
        let Some(point) = matching.first().copied().flatten() else { continue };
        for metric in point.summary.metrics.all() {
            let found = matching.iter().map(|p| p.and_then(|p| p.summary.metrics.find(&metric.name)));
            let found: Vec<Option<(Estimate, bool)>> = found.collect();
            let is_listed = found.iter().flatten().any(|(_, is_listed)| *is_listed);
            let measured: Vec<_> = found.into_iter().map(|found| Some(found?.0)).collect();
            let first = measured.first().copied().flatten();
            let differences =
                measured.iter().skip(1).map(|other| Some(difference(first?, (*other)?))).collect();
            let rows = if is_listed { &mut rows } else { &mut unlisted };
            rows.push(ComparisonRow {
                point: point.label.clone(),
                metric: metric.name.clone(),
                unit: metric.unit,
                measured,
                differences,
            });
        }
    }
    let runs = runs.iter().map(|run| ComparedRun {
        folder: run.folder.display().to_string(),
        title: run.title.clone(),
        hash: run.hash.clone(),
        complete: run.complete,
        cut: run.cut.map(|cut| cut.to_string()),
    });
    Ok(Comparison { runs: runs.collect(), rows, unlisted })
}

/// Whether all runs have a single point: these are matched whatever their labels.
fn are_single(runs: &[StoredRun]) -> bool {
    runs.iter().all(|run| run.points.len() == 1)
}

/// Matching points of every run for each point of the first run, in their order.
fn matching(runs: &[StoredRun]) -> impl Iterator<Item = Vec<Option<&StoredPoint>>> {
    let single = are_single(runs);
    let points = runs.first().map_or(&[][..], |first| &first.points);
    let of = move |label: &str, run| -> Option<&StoredPoint> {
        let run: &StoredRun = run;
        run.points.iter().find(|point| single || point.label == label)
    };
    points.iter().map(move |point| runs.iter().map(|run| of(&point.label, run)).collect())
}

fn difference(first: Estimate, other: Estimate) -> Difference {
    let absolute = other.mean - first.mean;
    let relative = (first.mean != 0.0).then(|| absolute / first.mean);
    Difference { absolute, relative, overlap: first.overlaps(&other) }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, run) in self.runs.iter().enumerate() {
            let state = match &run.cut {
                Some(cut) => format!(" (interrupted: partial, cut at {cut})"),
                None if run.complete => String::new(),
                None => " (interrupted: incomplete)".to_owned(),
            };
            writeln!(f, "[{}] {}: {}, scenario {}{state}", i + 1, run.folder, run.title, run.hash)?;
        }
        if self.rows.is_empty() {
            return writeln!(f, "no results in common");
        }
        let mut point = None;
        let mut rows = vec![header(self.runs.len())];
        for row in &self.rows {
            if point != Some(&row.point) && !row.point.is_empty() {
                rows.push(vec![format!("{}:", row.point)]);
            }
            point = Some(&row.point);
            let mut cells = cells(row, "-");
            if !row.point.is_empty() {
                cells[0].insert_str(0, "  ");
            }
            rows.push(cells);
        }
        f.write_str(&align(&rows))
    }
}

/// The heads of the table for `runs` runs.
fn header(runs: usize) -> Vec<String> {
    let mut header = vec!["metric".to_owned(), "unit".to_owned(), "[1]".to_owned()];
    for i in 2..=runs {
        header.extend([format!("[{i}]"), format!("[{i}] - [1]"), "95 % intervals".to_owned()]);
    }
    header
}

/// A row of the table, with `none` in cells without a value.
fn cells(row: &ComparisonRow, none: &str) -> Vec<String> {
    let show = |e: &Option<Estimate>| e.map_or_else(|| none.to_owned(), |e| e.to_string());
    let mut cells = vec![row.metric.clone(), row.unit.to_owned()];
    cells.extend(row.measured.first().map(show));
    for (measured, difference) in row.measured.iter().skip(1).zip(&row.differences) {
        cells.push(show(measured));
        let Some(d) = difference else {
            cells.extend([none.to_owned(), none.to_owned()]);
            continue;
        };
        let relative = d.relative.map_or_else(String::new, |r| format!(" ({:+.1} %)", r * 100.0));
        let sign = if d.absolute >= 0.0 { "+" } else { "" };
        cells.push(format!("{sign}{}{relative}", number(d.absolute)));
        let verdict = match d.overlap {
            Some(true) => "not distinguishable",
            Some(false) => "apart",
            None => "no interval",
        };
        cells.push(verdict.to_owned());
    }
    cells
}
