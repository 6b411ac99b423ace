//! Writes a run as it proceeds.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::WriteError;
use super::file_system::file_system;
use super::folder::Staging;
use super::head::{Head, Provenance};
use super::parquet::TableWriter;
use crate::page::page;
use crate::replication_rows::ReplicationRows;
use crate::rows::{
    AllocationRow, CompletionRow, FlowRow, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, Row,
    SeriesRow, StatisticRow,
};
use crate::run_results::{PointResults, RunResults};

/// The content of a run's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Whether the tables of flows, links, completions, media and statistics are CSV files too.
    pub csv: bool,
    /// Whether there are tables over time: series and allocations. Otherwise these tables are empty.
    pub intervals: bool,
}

impl Contents {
    /// Number of replications from which on a run has no CSV files and no tables over time by default.
    /// Chosen: series take 97 % of the space, and thousands of them are too many to view.
    pub const LONG: u64 = 1_000;

    /// The default content for a run of this many replications over all points.
    #[must_use]
    pub const fn of(replications: u64) -> Self {
        let is_short = replications <= Self::LONG;
        Self { csv: is_short, intervals: is_short }
    }
}

/// A run that is being written: tables grow with each replication.
pub struct Writer {
    contents: Contents,
    tables: Vec<TableFiles>,
    /// The last to be dropped: Windows removes no folder whose files are open.
    staging: Staging,
}

impl Writer {
    /// Starts a run in the folder `out`.
    ///
    /// # Errors
    /// As [`check`](super::check), and if a file cannot be written.
    pub fn create(out: &Path, contents: Contents) -> Result<Self, WriteError> {
        file_system().map_err(|error| WriteError::io(out, &error))?;
        let mut writer = Self { staging: Staging::create(out)?, contents, tables: Vec::new() };
        writer.open::<FlowRow>(contents.csv)?;
        writer.open::<LinkRow>(contents.csv)?;
        writer.open::<CompletionRow>(contents.csv)?;
        writer.open::<MediaRow>(contents.csv)?;
        writer.open::<StatisticRow>(contents.csv)?;
        writer.open::<ResponseRow>(false)?;
        writer.open::<SeriesRow>(false)?;
        writer.open::<AllocationRow>(false)?;
        writer.open::<PhaseSensitivityRow>(false)?;
        Ok(writer)
    }

    /// A folder for files other than tables: they appear with the run.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.staging.path()
    }

    /// The content of the folder.
    #[must_use]
    pub const fn contents(&self) -> Contents {
        self.contents
    }

    /// Adds a replication. Replications come by point, in the order of the sweep, then in the order of seeds.
    ///
    /// # Errors
    /// If a table cannot be written.
    pub fn add(&mut self, rows: &ReplicationRows) -> Result<(), WriteError> {
        self.staging.on();
        self.extend(&rows.flows)?;
        self.extend(&rows.links)?;
        self.extend(&rows.completions)?;
        self.extend(&rows.media)?;
        self.extend(&rows.statistics)?;
        self.extend(&rows.responses)?;
        match &rows.intervals {
            Some(of) if self.contents.intervals => {
                self.extend(&of.series)?;
                self.extend(&of.allocations)
            }
            _ => Ok(()),
        }
    }

    /// Writes the rest: the phase sensitivity, `run.json` and the report of `run`, all of whose replications
    /// were added. Gives the folder its name, which is returned.
    ///
    /// # Errors
    /// If a file cannot be written; there is no folder then.
    pub fn finish(mut self, run: &RunResults, made: &Provenance) -> Result<PathBuf, WriteError> {
        self.staging.on();
        run.points.iter().try_for_each(|point| self.extend(&point.phase_sensitivity))?;
        let mut tables = BTreeMap::new();
        for table in std::mem::take(&mut self.tables) {
            let name = table.name;
            let hash = table.finish().map_err(|error| self.failed(name, &error))?;
            tables.insert(name.to_owned(), hash);
        }
        let mut head = serde_json::to_vec_pretty(&Head::of(run, tables, made)).unwrap_or_default();
        head.push(b'\n');
        self.file("run.json", &head)?;
        self.file("report.html", page(run).as_bytes())?;
        self.staging.publish(run.complete)
    }

    fn open<R: Row>(&mut self, with_csv: bool) -> Result<(), WriteError> {
        let table = TableFiles::create::<R>(&self.folder(), with_csv);
        self.tables.push(table.map_err(|error| self.failed(R::TABLE, &error))?);
        Ok(())
    }

    fn extend<R: Row>(&mut self, rows: &[R]) -> Result<(), WriteError> {
        let table = self.tables.iter_mut().find(|table| table.name == R::TABLE);
        let added = table.map_or(Ok(()), |table| table.extend(rows));
        added.map_err(|error| self.failed(R::TABLE, &error))
    }

    fn file(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        let write = || {
            let mut file = File::create(self.folder().join(name))?;
            file.write_all(bytes)?;
            file.sync_all()
        };
        write().map_err(|error| self.failed(name, &error))
    }

    fn failed(&self, name: &str, error: &io::Error) -> WriteError {
        WriteError::io(&self.staging.parent().join(name), error)
    }
}

/// A numbered folder for files other than a run, which appears with all of them or not at all.
pub struct Folder {
    staging: Staging,
}

impl Folder {
    /// Creates one in the folder `out`.
    ///
    /// # Errors
    /// As [`check`](super::check).
    pub fn create(out: &Path) -> Result<Self, WriteError> {
        Ok(Self { staging: Staging::create(out)? })
    }

    /// Writes a file, in folders that are created if needed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> Result<(), WriteError> {
        let path = self.staging.path().join(name);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        folder.and_then(|()| fs::write(&path, content)).map_err(|error| self.failed(name, &error))
    }

    /// Writes a table as CSV and as Parquet.
    ///
    /// # Errors
    /// The table cannot be written.
    pub fn table<R: Row>(&self, rows: &[R]) -> Result<(), WriteError> {
        let write = || {
            let mut table = TableFiles::create::<R>(&self.staging.path(), true)?;
            table.extend(rows)?;
            table.finish()
        };
        write().map(drop).map_err(|error| self.failed(R::TABLE, &error))
    }

    /// Gives the folder its name, which is returned.
    ///
    /// # Errors
    /// The folder cannot be renamed; there is no folder then.
    pub fn publish(self) -> Result<PathBuf, WriteError> {
        self.staging.publish(true)
    }

    fn failed(&self, name: &str, error: &io::Error) -> WriteError {
        WriteError::io(&self.staging.parent().join(name), error)
    }
}

/// Writes a run below `out` and returns its folder. All outcomes must be held, or the rows of a long run,
/// whose report has no details.
///
/// # Errors
/// If they are not held, or a file cannot be written; there is no folder then.
pub fn write(
    out: &Path,
    run: &RunResults,
    contents: Contents,
    made: &Provenance,
) -> Result<PathBuf, WriteError> {
    let rows = |point: &PointResults| if contents.intervals { 0 } else { point.rows.len() };
    if run.points.iter().any(|point| point.outcomes.len() + rows(point) < point.ended()) {
        let cause = "the run did not hold the outcomes that tables are made from".to_owned();
        return Err(WriteError { path: out.to_owned(), cause, hint: "copy the folder that it was run into" });
    }
    let mut writer = Writer::create(out, contents)?;
    for point in &run.points {
        for replication in point.replications() {
            writer.add(&ReplicationRows::of(replication, contents.intervals))?;
        }
        point.rows.iter().try_for_each(|rows| writer.add(rows))?;
    }
    writer.finish(run, made)
}

/// The files of one table.
struct TableFiles {
    name: &'static str,
    parquet: TableWriter<BufWriter<Hashed<File>>>,
    csv: Option<csv::Writer<File>>,
}

impl TableFiles {
    fn create<R: Row>(dir: &Path, with_csv: bool) -> io::Result<Self> {
        let parquet = File::create(dir.join(format!("{}.parquet", R::TABLE)))?;
        let csv = with_csv.then(|| csv_writer::<R, _>(File::create(dir.join(format!("{}.csv", R::TABLE)))?));
        let parquet = TableWriter::new::<R>(BufWriter::new(Hashed::new(parquet)))?;
        Ok(Self { name: R::TABLE, parquet, csv: csv.transpose()? })
    }

    fn extend<R: Row>(&mut self, rows: &[R]) -> io::Result<()> {
        for row in rows {
            self.parquet.add(row)?;
            if let Some(csv) = &mut self.csv {
                csv.serialize(row).map_err(cause)?;
            }
        }
        Ok(())
    }

    /// The hash of the Parquet file. Without a sync, a power cut after the folder has its name could leave an empty file in it.
    fn finish(self) -> io::Result<String> {
        let parquet = self.parquet.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
        parquet.inner.sync_all()?;
        if let Some(csv) = self.csv {
            csv.into_inner().map_err(csv::IntoInnerError::into_error)?.sync_all()?;
        }
        Ok(parquet.finish())
    }
}

/// A writer that hashes the bytes written.
pub(super) struct Hashed<W> {
    inner: W,
    hash: Sha256,
}

impl<W> Hashed<W> {
    pub(super) fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new() }
    }

    /// The SHA-256 in hexadecimal.
    pub(super) fn finish(self) -> String {
        self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// A CSV table with its header, which it has even without rows.
pub(super) fn csv_writer<R: Row, W: Write>(out: W) -> io::Result<csv::Writer<W>> {
    let mut csv = csv::WriterBuilder::new().has_headers(false).from_writer(out);
    csv.write_record(R::COLUMNS.iter().map(|column| column.name)).map_err(cause)?;
    Ok(csv)
}

/// These rows as CSV, with a header, as the folder of a run has them.
pub fn csv<R: Row>(rows: impl Iterator<Item = R>) -> String {
    let write = || {
        let mut csv = csv_writer::<R, _>(Vec::new())?;
        for row in rows {
            csv.serialize(row).map_err(cause)?;
        }
        csv.into_inner().map_err(csv::IntoInnerError::into_error)
    };
    // Memory takes all that is written.
    write().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The I/O error inside a CSV error: its kind selects the advice.
pub(super) fn cause(error: csv::Error) -> io::Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        other => io::Error::other(format!("{other:?}")),
    }
}
