//! Reads a run: the data for comparisons and figures, or all its tables.

use std::io::{self, Seek as _, Write};
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use apportion_core::units::{Span, Time};
use apportion_scenario::{did_you_mean, open_file, read_text_file};

use super::head::{FORMAT, Head, HeadPoint, Marker, Provenance};
use super::parquet::{Rows, open};
use super::write::{Hashed, cause, csv_writer};
use super::{LoadError, find};
use crate::point_summary::PointSummary;
use crate::quantities::LeagueFlows;
use crate::replication::FlowInfo;
use crate::replication_rows::{Intervals, ReplicationRows};
use crate::rows::{
    AllocationRow, Cell, CompletionRow, FlowRow, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, Row,
    SeriesRow, StatisticRow,
};
use crate::run_results::{Cut, PointResults, RunResults};

/// Maximum bytes of a `run.json`. Chosen: ten thousand points of a thousand seeds take 250 MB.
const MAX_HEAD: u64 = 512 << 20;
/// Maximum bytes of a table. Chosen: tens of millions of rows.
const MAX_TABLE: u64 = 2 << 30;

const AGAIN: &str = "write it again with `apportion run SCENARIO.toml --out DIR`";

/// The data of a stored run for comparisons and figures.
#[derive(Clone, Debug)]
pub struct StoredRun {
    /// The run's folder.
    pub folder: PathBuf,
    /// The title of the scenario.
    pub title: String,
    /// Hash of the scenario.
    pub hash: String,
    /// False if the run was interrupted.
    pub complete: bool,
    /// The cut of the replication, if the run was interrupted before any had ended.
    pub cut: Option<Cut>,
    /// Reasons why replications are not valid, each with point and seed; empty if all are valid.
    pub faults: Vec<String>,
    /// The planned seeds.
    pub seeds: Vec<u64>,
    /// The text of the scenario.
    pub(crate) scenario: String,
    /// Whether it was run in real time.
    pub(crate) is_in_real_time: bool,
    /// The points, in the order of the sweep.
    pub(crate) points: Vec<StoredPoint>,
}

#[derive(Clone, Debug)]
pub(crate) struct StoredPoint {
    pub(crate) label: String,
    /// The settings in which it differs from others: path and value.
    pub(crate) settings: Vec<(String, String)>,
    /// Start of the measured part, in seconds.
    pub(crate) measure_from_s: f64,
    pub(crate) summary: PointSummary,
}

/// Reads a run, or the last of the runs in a folder.
///
/// # Errors
/// If `dir` holds no run, or one that this version cannot read.
pub fn load(dir: &Path) -> Result<StoredRun, LoadError> {
    let folder = find(dir)?;
    let head = head(&folder)?;
    let mut tables = Tables::open(&folder, &head, false)?;
    let points = head.points.iter().map(|point| {
        let (mut summary, mut flows) = (PointSummary::default(), Vec::new());
        tables.replications(point, &head, |rows| {
            summary.add(&rows);
            flows.push(rows.flows);
        })?;
        // Which groups are finite transfers is known once all replications are.
        let transfers: Vec<String> = summary.metrics.transfers().map(str::to_owned).collect();
        flows.iter().for_each(|of| summary.metrics.add_shares(&LeagueFlows::new(of, &transfers)));
        Ok(StoredPoint {
            label: point.label.clone(),
            settings: point.settings.clone(),
            measure_from_s: point.measure_from_s,
            summary,
        })
    });
    let points = points.collect::<Result<_, _>>()?;
    tables.end()?;
    Ok(StoredRun {
        points,
        title: head.title,
        scenario: head.scenario,
        is_in_real_time: head.points.iter().any(HeadPoint::is_in_real_time),
        hash: head.hash,
        complete: head.complete,
        cut: head.points.iter().find_map(HeadPoint::cut),
        faults: head.faults,
        seeds: head.seeds.iter().map(|seed| number(&folder, seed)).collect::<Result<_, _>>()?,
        folder,
    })
}

/// Reads a run, or the last of the runs in a folder, with the rows of all its tables: its folder, what was run, and how. Outcomes are not
/// stored.
///
/// # Errors
/// If `dir` holds no run, or one that this version cannot read.
pub fn read(dir: &Path) -> Result<(PathBuf, RunResults, Provenance), LoadError> {
    let folder = find(dir)?;
    let head = head(&folder)?;
    let mut tables = Tables::open(&folder, &head, true)?;
    let mut points = Vec::new();
    for point in &head.points {
        let (mut summary, mut rows) = (PointSummary::default(), Vec::new());
        tables.replications(point, &head, |of| {
            summary.add(&of);
            rows.push(of);
        })?;
        let cut = point.cut();
        let from = Time::ZERO + Span::from_secs_f64(point.measure_from_s.max(0.0));
        let sample = Span::from_secs_f64(point.sample_s.max(0.0));
        let flows = rows.first().map_or(&[][..], |of| &of.flows).iter().map(FlowInfo::of).collect();
        let mut point = PointResults::new(point.label.clone(), point.settings.clone(), from, sample, flows);
        point.rows = rows;
        point.cut = cut;
        points.push(point.summarised(summary));
    }
    tables.end()?;
    let (path, rows) = open_table::<PhaseSensitivityRow>(&folder, &head)?;
    for row in rows {
        let row = row.map_err(|cause| LoadError { path: path.clone(), cause, hint: AGAIN })?;
        if let Some(point) = points.iter_mut().find(|point| point.label == row.point) {
            point.phase_sensitivity.push(row);
        }
    }
    let run = RunResults {
        title: head.title,
        scenario: head.scenario,
        hash: head.hash,
        versions: head.versions,
        seeds: head.seeds.iter().map(|seed| number(&folder, seed)).collect::<Result<_, _>>()?,
        complete: head.complete,
        warnings: head.warnings,
        points,
    };
    Ok((folder, run, head.made))
}

fn head(folder: &Path) -> Result<Head, LoadError> {
    let path = folder.join("run.json");
    let fail = |cause: String, hint| LoadError { path: path.clone(), cause, hint };
    let text = read_text_file(&path, MAX_HEAD).map_err(|e| {
        fail(e.to_string(), "name a folder that `apportion run` wrote, such as results/quickstart")
    })?;
    let marker: Marker = serde_json::from_str(&text).map_err(|e| fail(e.to_string(), AGAIN))?;
    if marker.format != FORMAT {
        let found = marker.format.escape_debug();
        return Err(fail(format!("its format is `{found}`, not `{FORMAT}`"), AGAIN));
    }
    serde_json::from_str(&text).map_err(|e| fail(e.to_string(), AGAIN))
}

fn number(folder: &Path, seed: &str) -> Result<u64, LoadError> {
    seed.parse().map_err(|_| LoadError {
        path: folder.join("run.json"),
        cause: format!("`{}` is no seed", seed.escape_debug()),
        hint: AGAIN,
    })
}

/// The tables with rows for each replication.
struct Tables {
    flows: Replications<FlowRow>,
    links: Replications<LinkRow>,
    completions: Replications<CompletionRow>,
    media: Replications<MediaRow>,
    statistics: Replications<StatisticRow>,
    /// Tables that no metric needs, if they are read.
    others: Option<OtherTables>,
}

struct OtherTables {
    responses: Replications<ResponseRow>,
    series: Replications<SeriesRow>,
    allocations: Replications<AllocationRow>,
}

impl Tables {
    fn open(folder: &Path, head: &Head, with_others: bool) -> Result<Self, LoadError> {
        let others = || {
            Ok(OtherTables {
                responses: Replications::open(folder, head, false)?,
                series: Replications::open(folder, head, false)?,
                allocations: Replications::open(folder, head, false)?,
            })
        };
        Ok(Self {
            flows: Replications::open(folder, head, true)?,
            links: Replications::open(folder, head, true)?,
            completions: Replications::open(folder, head, false)?,
            media: Replications::open(folder, head, false)?,
            statistics: Replications::open(folder, head, false)?,
            others: with_others.then(others).transpose()?,
        })
    }

    /// Calls `each` with the replications of a point, which come next in each table.
    fn replications(
        &mut self,
        point: &HeadPoint,
        head: &Head,
        mut each: impl FnMut(ReplicationRows),
    ) -> Result<(), LoadError> {
        let label = &point.label;
        for text in &point.seeds_done {
            let seed = number(self.flows.folder(), text)?;
            let (mut responses, mut intervals) = (Vec::new(), None);
            if let Some(others) = &mut self.others {
                responses = others.responses.take(label, seed)?;
                let (series, allocations) =
                    (others.series.take(label, seed)?, others.allocations.take(label, seed)?);
                intervals = Some(Intervals { series, allocations });
            }
            each(ReplicationRows {
                seed,
                measured: Span::from_secs_f64(point.measured_s.max(0.0)),
                fault: head.fault(label, text),
                flows: self.flows.take(label, seed)?,
                links: self.links.take(label, seed)?,
                completions: self.completions.take(label, seed)?,
                media: self.media.take(label, seed)?,
                statistics: self.statistics.take(label, seed)?,
                responses,
                intervals,
                sample: None,
            });
        }
        Ok(())
    }

    fn end(mut self) -> Result<(), LoadError> {
        self.flows.end()?;
        self.links.end()?;
        self.completions.end()?;
        self.media.end()?;
        self.statistics.end()?;
        let Some(mut others) = self.others else { return Ok(()) };
        others.responses.end()?;
        others.series.end()?;
        others.allocations.end()
    }
}

/// Reads a table replication by replication.
struct Replications<R: Row> {
    path: PathBuf,
    rows: Peekable<Rows<R>>,
    /// Whether each replication of a point has as many rows as its first, at least one.
    is_complete: bool,
    /// The label of the last point, and rows of its first replication.
    first: Option<(String, usize)>,
    /// Number of rows read.
    read: u64,
}

impl<R: Row> Replications<R> {
    fn open(folder: &Path, head: &Head, is_complete: bool) -> Result<Self, LoadError> {
        let (path, rows) = open_table(folder, head)?;
        Ok(Self { path, rows: rows.peekable(), is_complete, first: None, read: 0 })
    }

    fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    fn fail(&self, cause: String) -> LoadError {
        LoadError { path: self.path.clone(), cause, hint: AGAIN }
    }

    /// The rows of a replication, which come next.
    fn take(&mut self, label: &str, seed: u64) -> Result<Vec<R>, LoadError> {
        let is_of = |row: &R| matches!(row.cells()[..], [Cell::Text(of), Cell::Integer(is), ..] if (of, is) == (label, seed));
        let mut all = Vec::new();
        while let Some(row) = self.rows.next_if(|row| row.as_ref().map_or(true, is_of)) {
            self.read += 1;
            all.push(row.map_err(|cause| self.fail(cause))?);
        }
        if self.is_complete {
            let most = match &self.first {
                Some((of, count)) if of == label => *count,
                _ => self.first.insert((label.to_owned(), all.len().max(1))).1,
            };
            if all.len() != most {
                let (after, found) = (self.read, all.len());
                return Err(self.fail(format!(
                    "after row {after}: rows of point `{label}`, seed {seed}, are missing: {found} of {most}"
                )));
            }
        }
        Ok(all)
    }

    /// Checks that no row is left.
    fn end(&mut self) -> Result<(), LoadError> {
        match self.rows.next() {
            None => Ok(()),
            Some(Err(cause)) => Err(self.fail(cause)),
            Some(Ok(row)) => {
                let cells = row.cells();
                let [Cell::Text(point), Cell::Integer(seed), ..] = cells[..] else { return Ok(()) };
                let row = self.read + 1;
                Err(self.fail(format!(
                    "row {row}: run.json has no replication of point `{point}` with seed {seed} here"
                )))
            }
        }
    }
}

/// Opens a table in the folder of a run: its path and its rows. A file whose hash differs is refused.
fn open_table<R: Row>(folder: &Path, head: &Head) -> Result<(PathBuf, Rows<R>), LoadError> {
    let path = folder.join(format!("{}.parquet", R::TABLE));
    let open = || {
        let mut file = open_file(&path, MAX_TABLE).map_err(|error| error.to_string())?.into_inner();
        let mut hash = Hashed::new(io::sink());
        let read = io::copy(&mut file, &mut hash).and_then(|_| file.rewind());
        read.map_err(|error| error.to_string())?;
        match head.tables.get(R::TABLE) {
            Some(written) if *written == hash.finish() => open::<R>(file),
            Some(_) => {
                Err("it is not the table that was written: its SHA-256 is not that of run.json".to_owned())
            }
            None => Err("run.json does not know it".to_owned()),
        }
    };
    match open() {
        Ok(rows) => Ok((path, rows)),
        Err(cause) => Err(LoadError { path, cause, hint: AGAIN }),
    }
}

/// The series of a run, for the first replication of each of these points.
///
/// # Errors
/// The series cannot be read.
pub(crate) fn series(run: &StoredRun, points: &[&str]) -> Result<Vec<SeriesRow>, LoadError> {
    let (path, rows) = open_table::<SeriesRow>(&run.folder, &head(&run.folder)?)?;
    let mut found: Vec<SeriesRow> = Vec::new();
    for row in rows {
        let row: SeriesRow = row.map_err(|cause| LoadError { path: path.clone(), cause, hint: AGAIN })?;
        // Rows are in the order of points, and of the replications of each.
        let is_first = found.last().is_none_or(|last| last.point != row.point || last.seed == row.seed);
        if is_first && points.contains(&row.point.as_str()) {
            found.push(row);
        }
    }
    Ok(found)
}

// ---------------------------------------------------------------------------------------------
// Export

/// Why a table could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// There is no such table.
    #[error("`{0}` is no table{guess}; the tables are {tables}", guess = did_you_mean(.0, TABLES), tables = TABLES.join(", "))]
    Unknown(String),
    /// The table cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The table cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// The names of the tables of a run.
pub const TABLES: [&str; 9] = [
    FlowRow::TABLE,
    LinkRow::TABLE,
    CompletionRow::TABLE,
    MediaRow::TABLE,
    StatisticRow::TABLE,
    ResponseRow::TABLE,
    SeriesRow::TABLE,
    AllocationRow::TABLE,
    PhaseSensitivityRow::TABLE,
];

/// Writes a table of a run, or of the last of the runs in a folder, as CSV.
///
/// # Errors
/// There is no such run or table, or the table cannot be read or written.
pub fn export(dir: &Path, table: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let folder = &find(dir)?;
    let head = &head(folder)?;
    match table {
        FlowRow::TABLE => copy::<FlowRow>(folder, head, out),
        LinkRow::TABLE => copy::<LinkRow>(folder, head, out),
        CompletionRow::TABLE => copy::<CompletionRow>(folder, head, out),
        MediaRow::TABLE => copy::<MediaRow>(folder, head, out),
        StatisticRow::TABLE => copy::<StatisticRow>(folder, head, out),
        ResponseRow::TABLE => copy::<ResponseRow>(folder, head, out),
        SeriesRow::TABLE => copy::<SeriesRow>(folder, head, out),
        AllocationRow::TABLE => copy::<AllocationRow>(folder, head, out),
        PhaseSensitivityRow::TABLE => copy::<PhaseSensitivityRow>(folder, head, out),
        other => Err(ExportError::Unknown(other.to_owned())),
    }
}

fn copy<R: Row>(folder: &Path, head: &Head, out: &mut dyn Write) -> Result<(), ExportError> {
    let (path, rows) = open_table::<R>(folder, head)?;
    let mut csv = csv_writer::<R, _>(out)?;
    for row in rows {
        let row = row.map_err(|cause| LoadError { path: path.clone(), cause, hint: AGAIN })?;
        csv.serialize(row).map_err(cause)?;
    }
    Ok(csv.flush()?)
}
