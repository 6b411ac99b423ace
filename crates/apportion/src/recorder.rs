//! What a run has measured so far: replications as they come, in the store and in memory.

use std::collections::BTreeMap;

use apportion_report::phase_sensitivity::PerturbedCopy;
use apportion_report::{FlowInfo, PointRecord, PointSummary, Recorded, WriteError, Writer};
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;
use apportion_scenario::{Point, model};

use crate::retain::Retain;
use crate::scenario::Scenario;
use crate::warnings;

/// A replication that has ended.
pub(crate) enum Measured {
    /// With what its flows were due.
    Outcome(Box<Outcome>, Option<Dues>),
    /// As it is in tables.
    Recorded(Box<Recorded>),
}

/// Collects the replications of a run, which come by point, then by seed, each followed by its perturbed copy.
pub(crate) struct Recorder {
    points: Vec<PointRecord>,
    /// Of each point.
    summaries: Vec<PointSummary>,
    /// Of each point's replications.
    copies: Option<Vec<Vec<Option<PerturbedCopy>>>>,
    writer: Option<Writer>,
    retain: Retain,
    is_complete: bool,
    /// Whether the last replication has ended, so that its perturbed copy counts.
    has_ended: bool,
}

impl Recorder {
    pub(crate) fn new(
        scenario: &Scenario,
        writer: Option<Writer>,
        retain: Retain,
        checks_phases: bool,
    ) -> Self {
        let points = blank(scenario);
        Self {
            summaries: points.iter().map(|_| PointSummary::default()).collect(),
            copies: checks_phases.then(|| points.iter().map(|_| Vec::new()).collect()),
            points,
            writer,
            retain,
            is_complete: true,
            has_ended: false,
        }
    }

    /// Whether no replication was cancelled so far.
    pub(crate) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The next replication, of the point with this number; none if it was cancelled.
    pub(crate) fn add(&mut self, at: usize, measured: Option<Measured>) -> Result<(), WriteError> {
        self.has_ended = measured.is_some();
        self.is_complete &= self.has_ended;
        let with_intervals = self.writer.as_ref().is_some_and(|writer| writer.contents().intervals);
        let point = &mut self.points[at];
        let mut recorded = match measured {
            None => return Ok(()),
            Some(Measured::Recorded(recorded)) => recorded,
            Some(Measured::Outcome(outcome, dues)) => {
                let recorded = Recorded::of(point.with(&outcome, dues.as_ref()), with_intervals);
                if self.retain == Retain::Full {
                    point.outcomes.push(*outcome);
                    point.dues.push(dues);
                }
                Box::new(recorded)
            }
        };
        if self.copies.is_none() {
            recorded.forget_sample();
        }
        self.summaries[at].add(&recorded);
        self.writer.as_mut().map_or(Ok(()), |writer| writer.add(&recorded))?;
        if self.retain == Retain::Rows {
            // The summary has it.
            recorded.forget_sample();
            point.recorded.push(*recorded);
        }
        Ok(())
    }

    /// The perturbed copy of the last replication; none if it was cancelled.
    pub(crate) fn add_copy(&mut self, at: usize, copy: Option<PerturbedCopy>) {
        self.is_complete &= copy.is_some();
        if let Some(copies) = self.copies.as_mut().filter(|_| self.has_ended) {
            copies[at].push(copy);
        }
    }

    /// What was measured, and the store that is left to be [finished](Writer::finish).
    pub(crate) fn finish(
        self,
        scenario: &Scenario,
        seeds: Vec<u64>,
    ) -> (apportion_report::Run, Option<Writer>) {
        let both = self.points.into_iter().zip(self.summaries);
        let mut points: Vec<PointRecord> = both.map(|(point, summary)| point.summarised(summary)).collect();
        for (record, point) in points.iter_mut().zip(scenario.points()) {
            record.buffers = buffers(&point.scenario);
        }
        if let Some(copies) = &self.copies {
            apportion_report::phase_sensitivity::judge(&mut points, copies);
        }
        (record(scenario, points, seeds, self.is_complete), self.writer)
    }
}

/// The points of a scenario of which nothing was measured yet.
pub(crate) fn blank(scenario: &Scenario) -> Vec<PointRecord> {
    scenario.points().iter().map(blank_point).collect()
}

/// One of them.
pub(crate) fn blank_point(point: &Point) -> PointRecord {
    let flow = |flow: &model::Flow| FlowInfo {
        name: flow.name.clone(),
        group: flow.group.clone(),
        customer: flow.customer.as_deref().map(ToOwned::to_owned),
        entitlement: None,
    };
    let flows = point.scenario.flows.iter().map(flow).collect();
    let (from, sample) = (point.scenario.measure_from, point.scenario.sample);
    PointRecord::new(point.label.clone(), point.settings.clone(), from, sample, flows)
}

/// What the queues of links hold at the start, by the names of the links.
fn buffers(scenario: &model::Scenario) -> BTreeMap<String, String> {
    /// Chosen: with more links a report shows the watched ones alone.
    const MOST: usize = 1_000;
    let links = scenario.links.iter().filter(|link| link.watched || scenario.links.len() <= MOST);
    links.filter_map(|link| Some((link.name.clone(), link.queue.limit_at(link.rate)?.to_string()))).collect()
}

fn record(
    scenario: &Scenario,
    points: Vec<PointRecord>,
    seeds: Vec<u64>,
    complete: bool,
) -> apportion_report::Run {
    apportion_report::Run {
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
