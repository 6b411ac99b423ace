//! A run, the input of the report: the scenario, and the outcomes of every replication of every point.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::sync::OnceLock;

use apportion_core::units::{Span, Time};
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;

use crate::metrics::Metric;
use crate::point_summary::PointSummary;
use crate::replication::{FlowInfo, Replication};
use crate::replication_rows::ReplicationRows;
use crate::rows::{
    self, AllocationRow, CompletionRow, FlowRow, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, Row,
    SeriesRow, StatisticRow,
};

/// One scenario with all its points (sweeps and alternatives) and replications.
#[derive(Clone, Debug)]
pub struct RunResults {
    /// The title of the scenario.
    pub title: String,
    /// The merged scenario, in its own syntax.
    pub scenario: String,
    /// Hash of the scenario text.
    pub hash: String,
    /// Versions of everything that the results depend on, by component.
    pub versions: BTreeMap<String, String>,
    /// The planned seeds, one per replication.
    pub seeds: Vec<u64>,
    /// False if the run was interrupted: points or replications are missing.
    pub complete: bool,
    /// Warnings about settings that probably do not do what their author expects, one line each.
    pub warnings: Vec<String>,
    /// The points, in the order of the sweep.
    pub points: Vec<PointResults>,
}

/// Point at which an interrupt cut the only replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The simulated time of the cut.
    pub at: Time,
    /// The end in the scenario.
    pub stop: Time,
}

impl Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Three digits are enough for people.
        let seconds = |time: Time| {
            let seconds = time.as_secs_f64();
            let digits = (2 - seconds.max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
            format!("{seconds:.digits$}")
        };
        write!(f, "{} of {} s of simulated time", seconds(self.at), seconds(self.stop))
    }
}

/// One combination of settings.
#[derive(Clone, Debug)]
pub struct PointResults {
    /// The label, for example `queue=red, rate=10Mbit`; empty if the scenario has no alternatives.
    pub label: String,
    /// The settings in which this point differs from others: path and value.
    pub settings: Vec<(String, String)>,
    /// Start of the measured part.
    pub measure_from: Time,
    /// The interval of time series.
    pub sample: Span,
    /// The cut of the replication; it has results if the cut was within the measured part.
    pub cut: Option<Cut>,
    /// Flows in the scenario's order.
    pub flows: Vec<FlowInfo>,
    /// Buffers of queues at the start, for example `100p`, by the names of links; links with an unknown
    /// buffer are absent.
    pub buffers: BTreeMap<String, String>,
    /// Outcomes, one per replication that finished, in the order of [`RunResults::seeds`]; empty if only
    /// their [summary](Self::summarised) is held.
    pub outcomes: Vec<Outcome>,
    /// Entitlements of flows in each outcome; none where they are undefined. Empty if they are unknown for
    /// all.
    pub dues: Vec<Option<Dues>>,
    /// The rows of each replication if there are no outcomes: for a run that was [read](crate::store::read)
    /// from a folder, and for a long one.
    pub rows: Vec<ReplicationRows>,
    /// Effects of moving every delay by 1 µs, see
    /// [`phase_sensitivity::judge`](crate::phase_sensitivity::judge); empty without perturbed copies.
    pub phase_sensitivity: Vec<PhaseSensitivityRow>,
    /// Made from the outcomes on first use.
    summary: OnceLock<PointSummary>,
}

impl RunResults {
    /// Whether no replication has ended.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.iter().all(|point| point.summary().seeds.is_empty())
    }

    /// The cut of the first cut point.
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.points.iter().find_map(|point| point.cut)
    }

    /// Reasons why replications are not valid, each with point and seed; empty if all are valid.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let of_point = |point: &PointResults| {
            let faults = point.summary().faults.iter();
            faults.map(|(seed, fault)| fault_of(&point.label, seed) + fault).collect::<Vec<_>>()
        };
        self.points.iter().flat_map(of_point).collect()
    }

    /// Whether the run was in real time, so that results vary from run to run.
    pub(crate) fn is_in_real_time(&self) -> bool {
        self.points.iter().flat_map(|point| &point.outcomes).any(|outcome| outcome.timekeeping.is_some())
    }
}

impl PointResults {
    /// A point without finished replications.
    #[must_use]
    pub const fn new(
        label: String,
        settings: Vec<(String, String)>,
        measure_from: Time,
        sample: Span,
        flows: Vec<FlowInfo>,
    ) -> Self {
        Self {
            label,
            settings,
            measure_from,
            sample,
            cut: None,
            flows,
            buffers: BTreeMap::new(),
            outcomes: Vec::new(),
            dues: Vec::new(),
            rows: Vec::new(),
            phase_sensitivity: Vec::new(),
            summary: OnceLock::new(),
        }
    }

    /// Adds the summary of all replications, whether their outcomes are held or not; it determines the
    /// entitlements of flows.
    #[must_use]
    pub fn summarised(mut self, summary: PointSummary) -> Self {
        for (at, flow) in self.flows.iter_mut().enumerate() {
            flow.entitlement = summary.entitlement(at);
        }
        Self { summary: OnceLock::from(summary), ..self }
    }

    /// The replications that finished.
    pub(crate) fn replications(&self) -> impl Iterator<Item = Replication<'_>> {
        (0..self.outcomes.len()).filter_map(|place| self.replication(place))
    }

    /// A replication by its index.
    pub(crate) fn replication(&self, place: usize) -> Option<Replication<'_>> {
        let dues = self.dues.get(place).and_then(Option::as_ref);
        self.outcomes.get(place).map(|outcome| self.with(outcome, dues))
    }

    /// A replication of this point that is not held, with the entitlements of its flows.
    #[must_use]
    pub fn with<'a>(&'a self, outcome: &'a Outcome, dues: Option<&'a Dues>) -> Replication<'a> {
        let Self { label, measure_from, sample, flows, .. } = self;
        Replication { point: label, measure_from: *measure_from, sample: *sample, flows, outcome, dues }
    }

    /// The metrics, in the order in which they are listed.
    pub fn metrics(&self) -> impl Iterator<Item = &Metric> {
        self.summary().metrics.iter()
    }

    /// Number of replications that have ended, whether their outcomes are held or not.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.summary().seeds.len()
    }

    /// The summary of all replications.
    pub(crate) fn summary(&self) -> &PointSummary {
        self.summary.get_or_init(|| {
            let mut summary = PointSummary::default();
            self.replications().for_each(|of| summary.add(&ReplicationRows::of(of, false)));
            summary
        })
    }

    /// The point's name in text.
    pub(crate) fn name(&self) -> &str {
        name(&self.label)
    }
}

/// The name in text of the point with this label: the label, or "this run" if the run has no alternatives.
pub(crate) fn name(label: &str) -> &str {
    if label.is_empty() { "this run" } else { label }
}

/// The prefix of a replication in [`RunResults::faults`].
pub(crate) fn fault_of(label: &str, seed: impl Display) -> String {
    format!("{}, seed {seed}: ", name(label))
}

/// The rows of one table of a run, by point, replication and name.
pub trait Table: Row {
    /// The rows of one point, if its outcomes or rows are held.
    fn of_point(point: &PointResults) -> impl Iterator<Item = Self>;

    /// The rows of all points.
    fn of(run: &RunResults) -> impl Iterator<Item = Self> {
        run.points.iter().flat_map(Self::of_point)
    }
}

macro_rules! table {
    ($($row:ident by $function:ident, or $held:expr)*) => { $(
        impl Table for $row {
            fn of_point(point: &PointResults) -> impl Iterator<Item = Self> {
                let held: fn(&ReplicationRows) -> &[Self] = $held;
                let held = point.rows.iter().flat_map(move |of| held(of).iter().cloned());
                point.replications().flat_map(rows::$function).chain(held)
            }
        }
    )* };
}

table! {
    FlowRow by flows, or |of| &of.flows
    LinkRow by links, or |of| &of.links
    SeriesRow by series, or |of| of.intervals.as_ref().map_or(&[], |of| &of.series)
    AllocationRow by allocations, or |of| of.intervals.as_ref().map_or(&[], |of| &of.allocations)
    CompletionRow by completions, or |of| &of.completions
    MediaRow by media, or |of| &of.media
    StatisticRow by statistics, or |of| &of.statistics
    ResponseRow by responses, or |of| &of.responses
}

impl Table for PhaseSensitivityRow {
    fn of_point(point: &PointResults) -> impl Iterator<Item = Self> {
        point.phase_sensitivity.iter().cloned()
    }
}
