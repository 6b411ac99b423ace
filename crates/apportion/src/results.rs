//! Results of a run.

use std::path::{Path, PathBuf};

use apportion_report::metrics::Metric;
use apportion_report::rows::{
    AllocationRow, CompletionRow, FlowRow, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, SeriesRow,
    StatisticRow,
};
use apportion_report::{Contents, Cut, LoadError, PointResults, Provenance, StoredRun, Table, WriteError};

use crate::cache::CacheError;

/// The results of a run: tables of [rows](crate::rows), text and a report.
///
/// ```
/// # let scenario = apportion::Scenario::from_text(r#"
/// #     seed = 1
/// #     stop = "1s"
/// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", watch = true }
/// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// # "#)?;
/// let results = apportion::Run::new(&scenario).simulate()?;
/// let link = results.links().find(|row| row.link == "bottleneck").unwrap();
/// println!("{:.0} % used, {:?} ms in the queue", 100.0 * link.utilisation, link.queue_delay_p95_ms);
/// # assert!(link.utilisation > 0.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Results {
    record: apportion_report::RunResults,
    made: Provenance,
    folder: Option<PathBuf>,
    cache_failure: Option<String>,
    uncached: Option<&'static str>,
}

/// The mean of a metric at one point; see [`Results::metrics`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PointMetric {
    /// The label of the point; empty without a sweep.
    pub point: String,
    /// The metric, with a sample for each replication.
    pub metric: Metric,
}

impl Results {
    /// Creates the results of this record, with the folder to which it was written, if any.
    pub(crate) fn new(
        record: apportion_report::RunResults,
        made: Provenance,
        folder: Option<PathBuf>,
        cache_failure: Option<CacheError>,
    ) -> Self {
        let cache_failure = cache_failure.map(|failure| failure.to_string());
        Self { record, made, folder, cache_failure, uncached: None }
    }

    /// Reads results that were written to a folder, or the last ones below it, with all their tables.
    /// Outcomes are not stored: [`points`](Self::points) have none, the [`report`](Self::report) lacks
    /// details, and [`write`](Self::write) returns an error. To compare or plot results, [`load`] takes less
    /// time and memory.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let results = apportion::Run::new(&scenario).simulate()?;
    /// let read = apportion::Results::read(results.write(folder)?)?;
    /// assert!(read.flows().eq(results.flows()) && read.summary() == results.summary());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the folder contains no results, or results that this version cannot read.
    pub fn read(folder: impl AsRef<Path>) -> Result<Self, LoadError> {
        let (folder, record, made) = apportion_report::read(folder.as_ref())?;
        Ok(Self::new(record, made, Some(folder), None))
    }

    /// Returns the provenance of the results.
    #[must_use]
    pub const fn provenance(&self) -> &Provenance {
        &self.made
    }

    /// Returns the folder of the run, if it was [written](crate::Run::folder) or [read](Self::read).
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the number of replications and perturbed copies that were taken from the
    /// [cache](crate::Run::cache) instead of being simulated.
    #[must_use]
    pub const fn reused(&self) -> u64 {
        self.made.reused
    }

    /// Returns the reason why the [cache](crate::Run::cache) could not be written, if it failed: the results
    /// are complete, and another run has to simulate them again.
    #[must_use]
    pub fn cache_failure(&self) -> Option<&str> {
        self.cache_failure.as_deref()
    }

    /// Returns the reason why the [cache](crate::Run::cache) was neither read nor written, if one was set.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let cache = apportion::Cache::at(folder);
    /// let run = || apportion::Run::new(&scenario).cache(&cache, 1 << 30);
    /// assert_eq!(run().simulate()?.uncached(), None);
    /// let reason = "runs that are watched or report events are not cached";
    /// assert_eq!(run().on_drop(|_| ()).simulate()?.uncached(), Some(reason));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub const fn uncached(&self) -> Option<&str> {
        self.uncached
    }

    /// Returns throughput, delay and drops of each flow: by point, replication and flow.
    pub fn flows(&self) -> impl Iterator<Item = FlowRow> {
        FlowRow::of(&self.record)
    }

    /// Returns throughput, delay and drops of each link: by point, replication and link.
    pub fn links(&self) -> impl Iterator<Item = LinkRow> {
        LinkRow::of(&self.record)
    }

    /// Returns throughput, backlog, window and round-trip time in each sample interval: by point and
    /// replication, flows first, then watched links.
    pub fn series(&self) -> impl Iterator<Item = SeriesRow> {
        SeriesRow::of(&self.record)
    }

    /// Returns the rates that watched links allocated to flows in each sample interval, if their discipline
    /// infers the needs of flows: by point, replication, link and flow.
    pub fn allocations(&self) -> impl Iterator<Item = AllocationRow> {
        AllocationRow::of(&self.record)
    }

    /// Returns the finite transfers that finished: by point, replication and flow, in the order of their
    /// start.
    pub fn completions(&self) -> impl Iterator<Item = CompletionRow> {
        CompletionRow::of(&self.record)
    }

    /// Returns the perceived quality of video and calls: by point, replication and flow.
    pub fn media(&self) -> impl Iterator<Item = MediaRow> {
        MediaRow::of(&self.record)
    }

    /// Returns the statistics that the disciplines of links report: by point, replication and link.
    pub fn statistics(&self) -> impl Iterator<Item = StatisticRow> {
        StatisticRow::of(&self.record)
    }

    /// Returns the responses of flows to each event that changes the rates due to them: by point,
    /// replication, event and flow.
    pub fn responses(&self) -> impl Iterator<Item = ResponseRow> {
        ResponseRow::of(&self.record)
    }

    /// Returns the dependence of results on phases, if [perturbed copies](crate::Run::phase_check) were
    /// simulated: by point and flow.
    pub fn phase_sensitivity(&self) -> impl Iterator<Item = PhaseSensitivityRow> {
        PhaseSensitivityRow::of(&self.record)
    }

    /// Returns one of these tables, by the type of its rows.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// # let results = apportion::Run::new(&scenario).simulate()?;
    /// use apportion::rows::{FlowRow, Row};
    ///
    /// let rows: Vec<FlowRow> = results.table().collect();
    /// for (column, cell) in FlowRow::COLUMNS.iter().zip(rows[0].cells()) {
    ///     println!("{} in {}: {cell:?}", column.name, column.unit);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn table<R: Table>(&self) -> impl Iterator<Item = R> {
        R::of(&self.record)
    }

    /// Returns one of these tables as CSV, with a header, as the files of a [folder](Self::write) have it.
    #[must_use]
    pub fn csv<R: Table>(&self) -> String {
        apportion_report::store::csv(self.table::<R>())
    }

    /// Returns the metrics of each point, with a sample for each replication: throughput, Jain's index,
    /// delays, utilisation, drops and others, in total and by group or link.
    #[must_use]
    pub fn metrics(&self) -> Vec<PointMetric> {
        let named =
            self.record.points.iter().flat_map(|point| point.metrics().map(move |metric| (point, metric)));
        named
            .map(|(point, metric)| PointMetric { point: point.label.clone(), metric: metric.clone() })
            .collect()
    }

    /// Returns the points, with the outcome of each replication if the run [retains](crate::Run::retain)
    /// them.
    #[must_use]
    pub fn points(&self) -> &[PointResults] {
        &self.record.points
    }

    /// Returns the seeds, as planned: one for each replication of a point.
    #[must_use]
    pub fn seeds(&self) -> &[u64] {
        &self.record.seeds
    }

    /// Whether all replications of all points, and all perturbed copies, are present; false if the run was
    /// cancelled.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.record.complete
    }

    /// Returns the simulated time at which the first replication was cut, if the run was cancelled in the
    /// simulator before any replication had ended. The results then cover the measurements up to this time,
    /// unless there are [none](Self::is_empty).
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.record.cut()
    }

    /// Whether no replication is present: the run was cancelled before any had ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.record.is_empty()
    }

    /// Returns the reasons why replications are not valid, one line each with point and seed; empty if all
    /// are valid. In the lab a replication is not valid if the machine was too busy to keep real time.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.record.faults()
    }

    /// Returns warnings about likely mistakes in the scenario, one line each: an unwatched link limits the
    /// flows, too little time is measured, a `ramp` has no flow to reserve for, or a guarantee has no effect.
    /// Empty if there are none.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.record.warnings
    }

    /// Returns the report as one self-contained HTML page.
    #[must_use]
    pub fn report(&self) -> String {
        apportion_report::page(&self.record)
    }

    /// Returns a summary for a terminal, of at most 25 lines.
    #[must_use]
    pub fn summary(&self) -> String {
        apportion_report::summary(&self.record)
    }

    /// Returns the run, the [metrics](Self::metrics) with mean and 95 % interval and the rows of [phase
    /// sensitivity](Self::phase_sensitivity) as JSON lines, one object per line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        apportion_report::json_lines(&self.record)
    }

    /// Writes the results to their own folder below `folder`, and returns it: `folder/1` for the first,
    /// `folder/2` for the next. It contains `run.json`, a Parquet file for each table, CSV files of the most
    /// used ones unless the run is long, and `report.html`; it appears with all of them or not at all.
    ///
    /// # Errors
    /// If the folder cannot be written, or if the run did not [retain](crate::Run::retain) the outcomes that
    /// tables and report need.
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<PathBuf, WriteError> {
        let replications = self.record.seeds.len().saturating_mul(self.record.points.len());
        apportion_report::write(folder.as_ref(), &self.record, Contents::of(replications as u64), &self.made)
    }

    /// Returns the results with the folder to which they were written.
    /// Sets why the cache was not used.
    pub(crate) fn without_cache(self, uncached: Option<&'static str>) -> Self {
        Self { uncached, ..self }
    }

    pub(crate) fn written(self, folder: PathBuf) -> Self {
        Self { folder: Some(folder), ..self }
    }

    pub(crate) const fn record(&self) -> &apportion_report::RunResults {
        &self.record
    }
}

/// Checks that results can be written below a folder, and creates it if needed. Cheap: call it before a long
/// run.
///
/// # Errors
/// If the folder cannot be created or written, or is not a folder.
pub fn check_folder(folder: impl AsRef<Path>) -> Result<(), WriteError> {
    apportion_report::check(folder.as_ref())
}

/// Reads the results of a folder for a [comparison](crate::compare()).
///
/// ```no_run
/// let runs = [apportion::load("results/one")?, apportion::load("results/two")?];
/// print!("{}", apportion::compare(&runs)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the folder contains no results, or results that this version cannot read.
pub fn load(folder: impl AsRef<Path>) -> Result<StoredRun, LoadError> {
    apportion_report::load(folder.as_ref())
}
