//! Results of a run.

use std::collections::BTreeMap;
use std::path::Path;

use apportion_cache::CacheError;
use apportion_core::units::Rate;
use apportion_report::metrics::Metric;
use apportion_report::phases::Twin;
use apportion_report::rows::{
    AllocationRow, CompletionRow, FlowRow, LinkRow, PhaseRow, ResponseRow, SeriesRow, StatisticRow,
};
use apportion_report::{FlowInfo, LoadError, PointRecord, StoredRun, Table, WriteError};
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;

use crate::scenario::Scenario;

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
    record: apportion_report::Run,
    reused: usize,
    cache_failure: Option<String>,
}

/// The mean of a metric at one point, see [`Results::metrics`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PointMetric {
    /// The label of the point; empty without a sweep.
    pub point: String,
    /// The metric, with a sample for each replication.
    pub metric: Metric,
}

impl Results {
    /// Those of a run without twins.
    pub(crate) fn new(scenario: &Scenario, seeds: &[Vec<u64>], outcomes: Vec<Option<Outcome>>) -> Self {
        Self::with_twins(scenario, seeds, outcomes, None)
    }

    /// Those of a run whose replications have twins; the numbers of the twins are in the order of the outcomes.
    pub(crate) fn with_twins(
        scenario: &Scenario,
        seeds: &[Vec<u64>],
        outcomes: Vec<Option<Outcome>>,
        twins: Option<Vec<Option<Twin>>>,
    ) -> Self {
        let has_all_twins = twins.as_ref().is_none_or(|twins| twins.iter().all(Option::is_some));
        let complete = has_all_twins && outcomes.iter().all(Option::is_some);
        let twins = twins.map(|twins| finished_twins(seeds, &outcomes, twins));
        let mut outcomes = outcomes.into_iter();
        let points = scenario.points().iter().zip(seeds).map(|(point, seeds)| {
            let outcomes: Vec<Outcome> = outcomes.by_ref().take(seeds.len()).flatten().collect();
            let dues: Vec<Option<Dues>> = outcomes
                .iter()
                .map(|outcome| apportion_runtime::due::dues(&point.scenario, outcome))
                .collect();
            let flow = |(at, flow): (usize, &apportion_scenario::model::Flow)| FlowInfo {
                name: flow.name.clone(),
                group: flow.group.clone(),
                customer: flow.customer.as_deref().map(ToOwned::to_owned),
                entitlement: mean_due(&dues, at),
            };
            PointRecord {
                label: point.label.clone(),
                settings: point.settings.clone(),
                measure_from: point.scenario.measure_from,
                sample: point.scenario.sample,
                flows: point.scenario.flows.iter().enumerate().map(flow).collect(),
                outcomes,
                dues,
                phases: Vec::new(),
            }
        });
        let mut points: Vec<PointRecord> = points.collect();
        if let Some(twins) = twins {
            apportion_report::phases::judge(&mut points, &twins);
        }
        Self::from_record(apportion_report::Run {
            title: scenario.title().to_owned(),
            scenario: scenario.canonical().to_owned(),
            hash: format!("{:016x}", scenario.hash()),
            versions: BTreeMap::new(),
            points,
            seeds: seeds.first().cloned().unwrap_or_default(),
            complete,
        })
    }

    pub(crate) fn from_record(mut record: apportion_report::Run) -> Self {
        let mut outcomes = record.points.iter().flat_map(|point| &point.outcomes);
        record.versions = versions(outcomes.any(|outcome| outcome.timekeeping.is_some()));
        Self { record, reused: 0, cache_failure: None }
    }

    /// The same, of which so many replications and twins are from a cache that may have failed.
    pub(crate) fn reusing(self, reused: usize, failure: Option<CacheError>) -> Self {
        Self { reused, cache_failure: failure.map(|failure| failure.to_string()), ..self }
    }

    /// How many replications and twins were not simulated now, but taken from the [cache](crate::Run::cache).
    #[must_use]
    pub const fn reused(&self) -> usize {
        self.reused
    }

    /// Why the [cache](crate::Run::cache) could not be written, if it could not: the results are whole, and another run has to
    /// simulate them again.
    #[must_use]
    pub fn cache_failure(&self) -> Option<&str> {
        self.cache_failure.as_deref()
    }

    /// Throughput, delay and drops of each flow: by point, replication and flow.
    pub fn flows(&self) -> impl Iterator<Item = FlowRow> {
        FlowRow::of(&self.record)
    }

    /// Throughput, delay and drops of each link: by point, replication and link.
    pub fn links(&self) -> impl Iterator<Item = LinkRow> {
        LinkRow::of(&self.record)
    }

    /// Throughput, backlog, window and round-trip time in each sample interval: by point and replication, flows
    /// first, then watched links.
    pub fn series(&self) -> impl Iterator<Item = SeriesRow> {
        SeriesRow::of(&self.record)
    }

    /// Rates that watched links allocated to flows in each sample interval, if their discipline infers the needs of
    /// flows: by point, replication, link and flow.
    pub fn allocations(&self) -> impl Iterator<Item = AllocationRow> {
        AllocationRow::of(&self.record)
    }

    /// Finite transfers that finished: by point, replication and flow, in the order of their start.
    pub fn completions(&self) -> impl Iterator<Item = CompletionRow> {
        CompletionRow::of(&self.record)
    }

    /// Numbers that the disciplines of links report of themselves: by point, replication and link.
    pub fn statistics(&self) -> impl Iterator<Item = StatisticRow> {
        StatisticRow::of(&self.record)
    }

    /// How flows answered to each event that changes what they are due: by point, replication, event and flow.
    pub fn responses(&self) -> impl Iterator<Item = ResponseRow> {
        ResponseRow::of(&self.record)
    }

    /// Where results depend on phases, and by how much, if [twins](crate::Run::perturb) were simulated: by point and flow.
    pub fn phases(&self) -> impl Iterator<Item = PhaseRow> {
        PhaseRow::of(&self.record)
    }

    /// One of these tables, by the type of its rows.
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

    /// The metrics of each point, with a sample for each replication: throughput, Jain's index, delays, utilisation,
    /// drops and others, of everything and by group or link.
    #[must_use]
    pub fn metrics(&self) -> Vec<PointMetric> {
        let of_point = |point: &PointRecord| {
            let label = point.label.clone();
            apportion_report::metrics::of(point)
                .into_iter()
                .map(move |metric| PointMetric { point: label.clone(), metric })
        };
        self.record.points.iter().flat_map(of_point).collect()
    }

    /// The points with the outcome of each replication.
    #[must_use]
    pub fn points(&self) -> &[PointRecord] {
        &self.record.points
    }

    /// The seeds, as planned: one for each replication of a point.
    #[must_use]
    pub fn seeds(&self) -> &[u64] {
        &self.record.seeds
    }

    /// Whether every replication of every point, and every twin, is there; false if the run was cancelled.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.record.complete
    }

    /// Why replications are not valid, one line each with point and seed; empty if all are. In the lab a replication is
    /// not valid if the machine was too busy to keep real time.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.record.faults()
    }

    /// The report as one self-contained HTML page.
    #[must_use]
    pub fn report(&self) -> String {
        apportion_report::page(&self.record)
    }

    /// A summary for a terminal: at most 25 lines.
    #[must_use]
    pub fn summary(&self) -> String {
        apportion_report::summary(&self.record)
    }

    /// The run, the [metrics](Self::metrics) with mean and 95 % interval and the rows of [phases](Self::phases), one JSON object a
    /// line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        apportion_report::json_lines(&self.record)
    }

    /// Writes `run.json`, a CSV file for each table and `report.html` to a folder: all of them or none. The folder
    /// must be empty or hold the results of an earlier run, which are replaced.
    ///
    /// # Errors
    /// If the folder holds something else or cannot be written.
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        apportion_report::write(folder.as_ref(), &self.record)
    }

    #[cfg(all(feature = "live", target_os = "linux"))]
    pub(crate) const fn record(&self) -> &apportion_report::Run {
        &self.record
    }
}

/// The twins of the outcomes that are there, by point.
fn finished_twins(
    seeds: &[Vec<u64>],
    outcomes: &[Option<Outcome>],
    twins: Vec<Option<Twin>>,
) -> Vec<Vec<Option<Twin>>> {
    let mut both = outcomes.iter().zip(twins);
    let of_point = |seeds: &Vec<u64>| {
        both.by_ref()
            .take(seeds.len())
            .filter(|(outcome, _)| outcome.is_some())
            .map(|(_, twin)| twin)
            .collect()
    };
    seeds.iter().map(of_point).collect()
}

/// What a flow was due in the measured part, as a mean over replications.
fn mean_due(dues: &[Option<Dues>], flow: usize) -> Option<Rate> {
    let all: Option<Vec<u128>> =
        dues.iter().map(|dues| Some(u128::from(dues.as_ref()?.flows.get(flow)?.measured.as_bit()))).collect();
    let all = all.filter(|all| !all.is_empty())?;
    let count = all.len() as u128;
    let mean = (all.iter().sum::<u128>() + count / 2) / count;
    Some(Rate::from_bit(u64::try_from(mean).unwrap_or(u64::MAX)))
}

/// Checks that results can be written to a folder, and creates it if need be. Cheap: call it before a long run.
///
/// # Errors
/// If it cannot be created or written, is no folder, or holds something else than an earlier run.
pub fn check_folder(folder: impl AsRef<Path>) -> Result<(), WriteError> {
    apportion_report::check(folder.as_ref())
}

/// Reads the results of a folder, as far as they can be [compared](crate::compare()).
///
/// ```no_run
/// let runs = [apportion::load("results/one")?, apportion::load("results/two")?];
/// print!("{}", apportion::compare(&runs));
/// # Ok::<(), apportion::LoadError>(())
/// ```
///
/// # Errors
/// If it holds no results, or results that this version cannot read.
pub fn load(folder: impl AsRef<Path>) -> Result<StoredRun, LoadError> {
    apportion_report::load(folder.as_ref())
}

/// Versions of everything that results depend on; the kernel's only of runs in real time.
fn versions(in_real_time: bool) -> BTreeMap<String, String> {
    let own = ("apportion".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let kernel = in_real_time.then(kernel_release).flatten();
    [own].into_iter().chain(kernel.map(|release| ("kernel".to_owned(), release))).collect()
}

#[cfg(all(feature = "live", target_os = "linux"))]
fn kernel_release() -> Option<String> {
    apportion_live::lab::kernel_release()
}

#[cfg(not(all(feature = "live", target_os = "linux")))]
const fn kernel_release() -> Option<String> {
    None
}
