//! The results folder: `run.json`, `flows.csv`, `links.csv`, `series.csv`, `allocations.csv`, `completions.csv`,
//! `statistics.csv`, `responses.csv`, `phases.csv` and `report.html`.
//!
//! Every file is first written under a temporary name in the same folder; all are renamed after the last was
//! written, so a failed or interrupted write leaves an earlier run unchanged. The folder must be empty or hold an
//! earlier run; any other is refused. Captures (`*.pcap`) may be there already.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use apportion_runtime::outcome::{Cause, CpuUse, Outcome, ThreadUse};
use apportion_scenario::{open_file, read_text_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::metrics::Metrics;
use crate::page::page;
use crate::record::Run;
use crate::rows::{
    AllocationRow, Cell, CompletionRow, FlowRow, LinkRow, PhaseRow, ResponseRow, Row, SeriesRow, StatisticRow,
};
use crate::tables::{Rows, Table, ms};

/// Marks a `run.json` as ours; the number changes when an older reader would misread it.
const FORMAT: &str = "apportion-run/5";
const FORMAT_NAME: &str = "apportion-run/";
const PARTIAL: &str = ".partial";
/// Longest `run.json` that is read, in bytes. Chosen: ten thousand points of a thousand seeds take 200 MB.
const MAX_HEAD: u64 = 256 << 20;
/// Longest table that is read, in bytes. Chosen: five million rows of flows.
const MAX_TABLE: u64 = 1 << 30;

/// Why results could not be written: where, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot write results to `{}`: {cause}; {mend}", path.display())]
pub struct WriteError {
    path: PathBuf,
    cause: String,
    mend: &'static str,
}

/// Why results could not be read: where, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot read results from `{}`: {cause}; {mend}", path.display())]
pub struct LoadError {
    path: PathBuf,
    cause: String,
    mend: &'static str,
}

/// A run read back, as far as it can be compared.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The folder it was read from, as given.
    pub folder: PathBuf,
    /// The title of its scenario.
    pub title: String,
    /// Hash of the scenario.
    pub hash: String,
    /// False if it was interrupted.
    pub complete: bool,
    /// Why replications are not valid: point, seed and reason of each such; empty if all are valid.
    pub faults: Vec<String>,
    /// The planned seeds.
    pub seeds: Vec<u64>,
    /// The points, in the order of the sweep.
    pub(crate) points: Vec<StoredPoint>,
}

#[derive(Clone, Debug)]
pub(crate) struct StoredPoint {
    pub(crate) label: String,
    pub(crate) metrics: Metrics,
}

/// What `run.json` holds.
#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    title: String,
    complete: bool,
    valid: bool,
    faults: Vec<String>,
    hash: String,
    versions: BTreeMap<String, String>,
    seeds: Vec<u64>,
    points: Vec<HeadPoint>,
    scenario: String,
}

#[derive(Serialize, Deserialize)]
struct HeadPoint {
    label: String,
    settings: Vec<(String, String)>,
    seeds_done: Vec<u64>,
    measure_from_s: f64,
    measured_s: f64,
    sample_s: f64,
    /// Of each replication in real time; empty for simulations.
    in_real_time: Vec<HeadTimekeeping>,
}

/// How well a replication kept real time.
#[derive(Serialize, Deserialize)]
struct HeadTimekeeping {
    seed: u64,
    valid: bool,
    /// How often it was run.
    attempts: u64,
    lateness_mean_ms: f64,
    lateness_p50_ms: Option<f64>,
    lateness_p99_ms: Option<f64>,
    /// Of applications of our own.
    writes_p99_ms: Option<f64>,
    limit_mean_ms: Option<f64>,
    limit_p99_ms: f64,
    /// Shares of the time of all cores.
    cpu: Option<CpuUse>,
    /// Shares of the measured part, of the thread that moved packets and of that of our own applications.
    packets: Option<ThreadUse>,
    applications: Option<ThreadUse>,
    /// What made it late; null if it was not.
    cause: Option<Cause>,
    real_time_scheduling: bool,
    locked_memory: bool,
}

impl HeadTimekeeping {
    fn of(outcome: &Outcome) -> Option<Self> {
        let kept = outcome.timekeeping.as_ref()?;
        Some(Self {
            seed: outcome.seed,
            valid: outcome.fault().is_none(),
            attempts: kept.attempts,
            lateness_mean_ms: ms(kept.lateness.mean),
            lateness_p50_ms: kept.lateness.quantile(0.5).map(ms),
            lateness_p99_ms: kept.lateness.quantile(0.99).map(ms),
            writes_p99_ms: kept.writes.quantile(0.99).map(ms),
            limit_mean_ms: kept.mean_limit.map(ms),
            limit_p99_ms: ms(kept.limit),
            cpu: kept.cpu,
            packets: kept.packets,
            applications: kept.applications,
            cause: kept.cause(),
            real_time_scheduling: kept.real_time,
            locked_memory: kept.locked,
        })
    }
}

/// The part of `run.json` that identifies its format.
#[derive(Deserialize)]
struct Marker {
    format: String,
}

// ---------------------------------------------------------------------------------------------
// Writing

/// Makes sure that [`write()`] may write to `dir`, creating it if need be. Cheap: call it before a long run.
///
/// # Errors
/// If `dir` cannot be created or written, is not a folder, or holds something else than an earlier run.
pub fn check(dir: &Path) -> Result<(), WriteError> {
    const OTHER: &str = "choose another folder with --out DIR";
    let refuse = |cause: &str, mend| Err(WriteError { path: dir.to_owned(), cause: cause.to_owned(), mend });
    if dir.exists() && !dir.is_dir() {
        return refuse("it is a file, not a folder", OTHER);
    }
    fs::create_dir_all(dir).map_err(|e| WriteError::io(dir, &e))?;
    let head = dir.join("run.json");
    if head.is_file() {
        let text = read_text_file(&head, MAX_HEAD).map_err(|e| WriteError::io(&head, &e))?;
        let ours = serde_json::from_str::<Marker>(&text).is_ok_and(|m| m.format.starts_with(FORMAT_NAME));
        if !ours {
            return refuse("its run.json is not from apportion", OTHER);
        }
    } else if has_foreign_entry(dir).map_err(|e| WriteError::io(dir, &e))? {
        return refuse("it holds files but no run.json of an earlier run", OTHER);
    }
    let probe = dir.join(format!(".probe{PARTIAL}"));
    File::create(&probe).and_then(|_| fs::remove_file(&probe)).map_err(|e| WriteError::io(dir, &e))
}

/// Whether the folder holds a file that is neither a capture nor left by an interrupted write.
fn has_foreign_entry(dir: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let name = name.to_string_lossy();
        if !(name.ends_with(".pcap") || name.starts_with('.') && name.ends_with(PARTIAL)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Writes the results folder of `run`, replacing an earlier run's.
///
/// # Errors
/// As [`check`], and if a file cannot be written. The folder then holds what it held before.
pub fn write(dir: &Path, run: &Run) -> Result<(), WriteError> {
    check(dir)?;
    let mut staged = Staged { dir, names: Vec::new() };
    let result = stage_all(&mut staged, run).and_then(|()| staged.publish());
    if result.is_err() {
        staged.discard();
    }
    result
}

fn stage_all(staged: &mut Staged, run: &Run) -> Result<(), WriteError> {
    staged.stage("run.json", |out| {
        serde_json::to_writer_pretty(&mut *out, &head(run))?;
        writeln!(out)
    })?;
    stage_table::<FlowRow>(staged, run)?;
    stage_table::<LinkRow>(staged, run)?;
    stage_table::<SeriesRow>(staged, run)?;
    stage_table::<AllocationRow>(staged, run)?;
    stage_table::<CompletionRow>(staged, run)?;
    stage_table::<StatisticRow>(staged, run)?;
    stage_table::<ResponseRow>(staged, run)?;
    stage_table::<PhaseRow>(staged, run)?;
    staged.stage("report.html", |out| out.write_all(page(run).as_bytes()))
}

fn head(run: &Run) -> Head {
    let points = run.points.iter().map(|point| HeadPoint {
        label: point.label.clone(),
        settings: point.settings.clone(),
        seeds_done: point.outcomes.iter().map(|o| o.seed).collect(),
        measure_from_s: point.measure_from.as_secs_f64(),
        measured_s: point.outcomes.first().map_or(0.0, |o| o.measured.as_secs_f64()),
        sample_s: point.sample.as_secs_f64(),
        in_real_time: point.outcomes.iter().filter_map(HeadTimekeeping::of).collect(),
    });
    let faults = run.faults();
    Head {
        format: FORMAT.to_owned(),
        title: run.title.clone(),
        complete: run.complete,
        valid: faults.is_empty(),
        faults,
        hash: run.hash.clone(),
        versions: run.versions.clone(),
        seeds: run.seeds.clone(),
        points: points.collect(),
        scenario: run.scenario.clone(),
    }
}

fn stage_table<R: Table>(staged: &mut Staged, run: &Run) -> Result<(), WriteError> {
    staged.stage(&format!("{}.csv", R::TABLE), |out| write_csv(out, R::of(run)))
}

/// A CSV table with its header, which is there even without rows.
fn write_csv<R: Row>(out: &mut dyn Write, rows: impl Iterator<Item = R>) -> io::Result<()> {
    let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    csv.write_record(R::COLUMNS.iter().map(|column| column.name)).map_err(cause)?;
    for row in rows {
        csv.serialize(row).map_err(cause)?;
    }
    csv.flush()
}

/// The I/O error inside a CSV error: its kind selects the advice.
fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}

/// Files written under temporary names.
struct Staged<'a> {
    dir: &'a Path,
    names: Vec<String>,
}

impl Staged<'_> {
    fn partial(&self, name: &str) -> PathBuf {
        self.dir.join(format!(".{name}{PARTIAL}"))
    }

    fn stage(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), WriteError> {
        let path = self.dir.join(name);
        if path.is_dir() {
            let cause = "a folder of this name is in the way".to_owned();
            return Err(WriteError { path, cause, mend: "move it or choose another folder with --out DIR" });
        }
        self.names.push(name.to_owned());
        let write = || {
            let mut out = BufWriter::new(File::create(self.partial(name))?);
            fill(&mut out)?;
            // Without this a power cut after the rename could leave an empty file under the final name.
            out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        };
        write().map_err(|e| WriteError::io(&path, &e))
    }

    fn publish(&self) -> Result<(), WriteError> {
        for name in &self.names {
            let path = self.dir.join(name);
            fs::rename(self.partial(name), &path).map_err(|e| WriteError::io(&path, &e))?;
        }
        Ok(())
    }

    fn discard(&self) {
        for name in &self.names {
            // Already failing; what cannot be removed either is recognised as ours by the next write.
            let _ = fs::remove_file(self.partial(name));
        }
    }
}

impl WriteError {
    fn io(path: &Path, error: &io::Error) -> Self {
        let mend = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "free some space or choose a folder on another disk with --out DIR"
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "make it writable or choose another folder with --out DIR"
            }
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                "a file is where a folder is needed; choose another folder with --out DIR"
            }
            _ => "choose another folder with --out DIR",
        };
        Self { path: path.to_owned(), cause: error.to_string(), mend }
    }
}

// ---------------------------------------------------------------------------------------------
// Reading

const AGAIN: &str = "write it again with `apportion run SCENARIO.toml --out DIR`";

/// Reads what [`write()`] wrote.
///
/// # Errors
/// If `dir` holds no run, or one that this version cannot read.
pub fn load(dir: &Path) -> Result<StoredRun, LoadError> {
    let path = dir.join("run.json");
    let fail = |cause: String, mend| LoadError { path: path.clone(), cause, mend };
    let text = read_text_file(&path, MAX_HEAD)
        .map_err(|e| fail(e.to_string(), "name a folder that `apportion run --out DIR` wrote"))?;
    let marker: Marker = serde_json::from_str(&text).map_err(|e| fail(e.to_string(), AGAIN))?;
    if marker.format != FORMAT {
        return Err(fail(format!("its format is `{}`, not `{FORMAT}`", marker.format), AGAIN));
    }
    let head: Head = serde_json::from_str(&text).map_err(|e| fail(e.to_string(), AGAIN))?;

    let mut rows: BTreeMap<String, Rows> = BTreeMap::new();
    for row in read_table::<FlowRow>(dir, true, &head.points)? {
        rows.entry(row.point.clone()).or_default().flows.push(row);
    }
    for row in read_table::<LinkRow>(dir, true, &head.points)? {
        rows.entry(row.point.clone()).or_default().links.push(row);
    }
    for row in read_table::<CompletionRow>(dir, false, &head.points)? {
        rows.entry(row.point.clone()).or_default().completions.push(row);
    }
    for row in read_table::<StatisticRow>(dir, false, &head.points)? {
        rows.entry(row.point.clone()).or_default().statistics.push(row);
    }
    let points = head.points.iter().map(|point| StoredPoint {
        label: point.label.clone(),
        metrics: rows.get(&point.label).map(Metrics::of_rows).unwrap_or_default(),
    });
    Ok(StoredRun {
        folder: dir.to_owned(),
        points: points.collect(),
        title: head.title,
        hash: head.hash,
        complete: head.complete,
        faults: head.faults,
        seeds: head.seeds,
    })
}

/// Reads a table of the folder `dir`. Each of its rows must belong to a replication of `points`; if `complete`, all
/// replications of a point must have equally many rows, at least one.
fn read_table<R: Row + DeserializeOwned>(
    dir: &Path,
    complete: bool,
    points: &[HeadPoint],
) -> Result<Vec<R>, LoadError> {
    let path = dir.join(format!("{}.csv", R::TABLE));
    let fail = |cause: String| LoadError { path: path.clone(), cause, mend: AGAIN };
    let file = open_file(&path, MAX_TABLE).map_err(|error| fail(error.to_string()))?;
    let mut csv = csv::Reader::from_reader(file);
    let header = csv.headers().map_err(|error| fail(explain(error)))?;
    let columns: Vec<&str> = R::COLUMNS.iter().map(|column| column.name).collect();
    if header != columns {
        let (found, wanted) = (header.iter().collect::<Vec<_>>().join(","), columns.join(","));
        return Err(fail(format!("line 1: its columns are `{}`, not `{wanted}`", found.escape_debug())));
    }
    let seeds = |label: &str| points.iter().find(|point| point.label == label).map(|point| &point.seeds_done);
    let mut counts: BTreeMap<(String, u64), usize> = BTreeMap::new();
    let mut rows = Vec::new();
    let header = header.clone();
    let mut record = csv::StringRecord::new();
    while csv.read_record(&mut record).map_err(|error| fail(explain(error)))? {
        let line = record.position().map_or(1, csv::Position::line);
        let at = |cause: String| fail(format!("line {line}: {cause}"));
        let row: R = record.deserialize(Some(&header)).map_err(|error| fail(explain(error)))?;
        let cells = row.cells();
        let is_finite = |cell: &Cell<'_>| !matches!(cell, Cell::Number(number) if !number.is_finite());
        if let Some(wrong) = cells.iter().position(|cell| !is_finite(cell)) {
            return Err(at(format!("{} is not a finite number", columns[wrong])));
        }
        // Every table begins with them.
        let [Cell::Text(point), Cell::Integer(seed), ..] = cells[..] else { continue };
        if seeds(point).is_none_or(|seeds| !seeds.contains(&seed)) {
            return Err(at(format!("run.json has no replication of point `{point}` with seed {seed}")));
        }
        *counts.entry((point.to_owned(), seed)).or_default() += 1;
        rows.push(row);
    }
    for point in points.iter().filter(|_| complete) {
        let count = |seed: &u64| counts.get(&(point.label.clone(), *seed)).copied().unwrap_or(0);
        let most = point.seeds_done.iter().map(count).max().unwrap_or(0).max(1);
        if let Some(seed) = point.seeds_done.iter().find(|seed| count(seed) < most) {
            let (label, found) = (&point.label, count(seed));
            return Err(fail(format!(
                "after the last line: rows of point `{label}`, seed {seed}, are missing: {found} of {most}"
            )));
        }
    }
    Ok(rows)
}

/// A CSV error with its line first.
fn explain(error: csv::Error) -> String {
    let line = error.position().map_or_else(String::new, |at| format!("line {}: ", at.line()));
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error.to_string(),
        csv::ErrorKind::Utf8 { .. } => format!("{line}not text"),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{line}{len} columns, not {expected_len}")
        }
        csv::ErrorKind::Deserialize { err, .. } => {
            let column = err.field().and_then(|at| usize::try_from(at).ok()).map(|at| at + 1);
            let column = column.map_or_else(String::new, |at| format!("column {at}: "));
            format!("{line}{column}{}", err.kind())
        }
        other => format!("{line}{other:?}"),
    }
}
