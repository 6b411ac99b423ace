//! The results of a run so far: replications as they arrive, in the store and in memory.

use std::collections::BTreeMap;

use apportion_core::units::Time;
use apportion_report::phase_sensitivity::PerturbedCopy;
use apportion_report::{Cut, FlowInfo, PointResults, PointSummary, ReplicationRows, WriteError, Writer};
use apportion_runtime::due;
use apportion_scenario::{Point, model};

use crate::cached::Measurement;
use crate::retain::Retain;
use crate::scenario::Scenario;
use crate::simulations::ending;
use crate::warnings;

/// Collects the replications of a run, which arrive by point, then by seed, each followed by its perturbed
/// copy.
pub(crate) struct Collector<'a> {
    scenario: &'a Scenario,
    points: Vec<PointResults>,
    /// The summary of each point.
    summaries: Vec<PointSummary>,
    /// The perturbed copies of each point's replications.
    copies: Option<Vec<Vec<Option<PerturbedCopy>>>>,
    writer: Option<Writer>,
    retain: Retain,
    is_complete: bool,
    /// Whether the last replication has ended, so that its perturbed copy counts.
    has_ended: bool,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(
        scenario: &'a Scenario,
        writer: Option<Writer>,
        retain: Retain,
        checks_phases: bool,
    ) -> Self {
        let points = blank(scenario);
        Self {
            scenario,
            summaries: points.iter().map(|_| PointSummary::default()).collect(),
            copies: checks_phases.then(|| points.iter().map(|_| Vec::new()).collect()),
            points,
            writer,
            retain,
            is_complete: true,
            has_ended: false,
        }
    }

    /// Whether no replication has been cancelled so far.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Adds the next replication of the point with this number; none if it was cancelled. `cut_at`: the time
    /// at which the point's only replication was cut.
    pub(crate) fn add(
        &mut self,
        at: usize,
        measured: Option<Measurement>,
        cut_at: Option<Time>,
    ) -> Result<(), WriteError> {
        let stop = self.scenario.points()[at].scenario.stop;
        self.points[at].cut = cut_at.map(|at| Cut { at, stop });
        self.has_ended = measured.is_some();
        self.is_complete &= self.has_ended && cut_at.is_none();
        let with_intervals = self.writer.as_ref().is_some_and(|writer| writer.contents().intervals);
        let point = &mut self.points[at];
        let mut rows = match measured {
            Some(Measurement::Rows(rows)) => Box::new(rows.at_point(&point.label)),
            Some(Measurement::Outcome(outcome)) => {
                let scenario = &self.scenario.points()[at].scenario;
                let dues = match cut_at {
                    Some(cut_at) => due::dues(&ending(scenario, cut_at), &outcome),
                    None => due::dues(scenario, &outcome),
                };
                let rows = ReplicationRows::of(point.with(&outcome, dues.as_ref()), with_intervals);
                if self.retain == Retain::Full {
                    point.outcomes.push(*outcome);
                    point.dues.push(dues);
                }
                Box::new(rows)
            }
            Some(Measurement::Copy(_)) | None => return Ok(()),
        };
        if self.copies.is_none() {
            rows.forget_sample();
        }
        self.summaries[at].add(&rows);
        self.writer.as_mut().map_or(Ok(()), |writer| writer.add(&rows))?;
        if self.retain == Retain::Rows {
            // The summary holds the sample.
            rows.forget_sample();
            point.rows.push(*rows);
        }
        Ok(())
    }

    /// Adds the perturbed copy of the last replication; none if it was cancelled.
    pub(crate) fn add_copy(&mut self, at: usize, copy: Option<Measurement>) {
        let copy = match copy {
            Some(Measurement::Copy(copy)) => Some(copy),
            _ => None,
        };
        self.is_complete &= copy.is_some();
        if let Some(copies) = self.copies.as_mut().filter(|_| self.has_ended) {
            copies[at].push(copy);
        }
    }

    /// Returns the results, and the store that remains to be [finished](Writer::finish).
    pub(crate) fn finish(self, seeds: Vec<u64>) -> (apportion_report::RunResults, Option<Writer>) {
        let both = self.points.into_iter().zip(self.summaries);
        let mut points: Vec<PointResults> = both.map(|(point, summary)| point.summarised(summary)).collect();
        for (record, point) in points.iter_mut().zip(self.scenario.points()) {
            record.buffers = buffers(&point.scenario);
        }
        if let Some(copies) = &self.copies {
            apportion_report::phase_sensitivity::judge(&mut points, copies);
        }
        (results(self.scenario, points, seeds, self.is_complete), self.writer)
    }
}

/// Returns the points of a scenario without measurements.
pub(crate) fn blank(scenario: &Scenario) -> Vec<PointResults> {
    scenario.points().iter().map(blank_point).collect()
}

/// Returns a point without measurements.
pub(crate) fn blank_point(point: &Point) -> PointResults {
    let flow = |flow: &model::Flow| FlowInfo {
        name: flow.name.clone(),
        group: flow.group.clone(),
        customer: flow.customer.as_deref().map(ToOwned::to_owned),
        entitlement: None,
    };
    let flows = point.scenario.flows.iter().map(flow).collect();
    let (from, sample) = (point.scenario.measure_from, point.scenario.sample);
    PointResults::new(point.label.clone(), point.settings.clone(), from, sample, flows)
}

/// Returns the initial buffer sizes of links, by the names of the links.
fn buffers(scenario: &model::Scenario) -> BTreeMap<String, String> {
    /// Chosen: with more links a report shows only the watched ones.
    const MOST: usize = 1_000;
    let links = scenario.links.iter().filter(|link| link.watched || scenario.links.len() <= MOST);
    links.filter_map(|link| Some((link.name.clone(), link.queue.limit_at(link.rate)?.to_string()))).collect()
}

fn results(
    scenario: &Scenario,
    points: Vec<PointResults>,
    seeds: Vec<u64>,
    complete: bool,
) -> apportion_report::RunResults {
    apportion_report::RunResults {
        title: scenario.title().to_owned(),
        scenario: scenario.canonical().to_owned(),
        hash: format!("{:016x}", scenario.hash()),
        versions: crate::provenance::versions(false),
        warnings: warnings::of(scenario, &points),
        points,
        seeds,
        complete,
    }
}
