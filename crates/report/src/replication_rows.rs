//! One replication as the rows of its tables. A long run holds these for a moment instead of outcomes.

use apportion_core::units::Span;
use serde::{Deserialize, Serialize};

use crate::replication::Replication;
use crate::rows::{
    self, AllocationRow, CompletionRow, FlowRow, LinkRow, MediaRow, ResponseRow, SeriesRow, StatisticRow,
};
use crate::sample::Sample;

/// One replication as rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ReplicationRows {
    pub(crate) seed: u64,
    pub(crate) measured: Span,
    /// Why the replication is not valid, if so.
    pub(crate) fault: Option<String>,
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) links: Vec<LinkRow>,
    pub(crate) completions: Vec<CompletionRow>,
    pub(crate) media: Vec<MediaRow>,
    pub(crate) statistics: Vec<StatisticRow>,
    pub(crate) responses: Vec<ResponseRow>,
    /// The rows of each sample interval; none if they are not kept.
    pub(crate) intervals: Option<Intervals>,
    /// Numbers to compare with its perturbed copy; not read back from a store.
    pub(crate) sample: Option<Sample>,
}

/// The rows of the tables over time, which take most of the memory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Intervals {
    pub(crate) series: Vec<SeriesRow>,
    pub(crate) allocations: Vec<AllocationRow>,
}

impl ReplicationRows {
    /// The rows of a replication; tables over time only if `with_intervals`.
    #[must_use]
    pub fn of(of: Replication<'_>, with_intervals: bool) -> Self {
        let intervals =
            || Intervals { series: rows::series(of).collect(), allocations: rows::allocations(of).collect() };
        Self {
            seed: of.outcome.seed,
            measured: of.outcome.measured,
            fault: of.outcome.fault(),
            flows: rows::flows(of).collect(),
            links: rows::links(of).collect(),
            completions: rows::completions(of).collect(),
            media: rows::media(of).collect(),
            statistics: rows::statistics(of).collect(),
            responses: rows::responses(of).collect(),
            intervals: with_intervals.then(intervals),
            sample: Some(Sample::of(of.outcome, of.dues)),
        }
    }

    /// Removes the numbers to compare, if there are no perturbed copies.
    pub fn forget_sample(&mut self) {
        self.sample = None;
    }

    /// Whether the tables over time are included.
    #[must_use]
    pub const fn has_intervals(&self) -> bool {
        self.intervals.is_some()
    }

    /// Moves the rows to the point with this label: the point may have had another one when it was run.
    #[must_use]
    pub fn at_point(mut self, label: &str) -> Self {
        let (series, allocations) = match &mut self.intervals {
            Some(of) => (of.series.as_mut_slice(), of.allocations.as_mut_slice()),
            None => (&mut [][..], &mut [][..]),
        };
        let labels = (self.flows.iter_mut().map(|row| &mut row.point))
            .chain(self.links.iter_mut().map(|row| &mut row.point))
            .chain(self.completions.iter_mut().map(|row| &mut row.point))
            .chain(self.media.iter_mut().map(|row| &mut row.point))
            .chain(self.statistics.iter_mut().map(|row| &mut row.point))
            .chain(self.responses.iter_mut().map(|row| &mut row.point))
            .chain(series.iter_mut().map(|row| &mut row.point))
            .chain(allocations.iter_mut().map(|row| &mut row.point));
        labels.for_each(|of| label.clone_into(of));
        self
    }
}
