//! A run as the command line hands it over: what was asked, and what every replication of every point
//! measured.

use std::collections::BTreeMap;

use apportion_core::units::{Rate, Span, Time};
use apportion_runtime::outcome::Outcome;

/// One scenario with all its points (sweeps and alternatives) and replications.
#[derive(Clone, Debug)]
pub struct Run {
    /// What the user calls it.
    pub title: String,
    /// The scenario as merged, in the syntax it is read from.
    pub scenario: String,
    /// Of the scenario text.
    pub hash: String,
    /// Of everything the results depend on, by component.
    pub versions: BTreeMap<String, String>,
    /// One per replication, as planned.
    pub seeds: Vec<u64>,
    /// False if the run was interrupted: points or replications are missing.
    pub complete: bool,
    /// In the order of the sweep.
    pub points: Vec<PointRecord>,
}

/// One combination of settings.
#[derive(Clone, Debug)]
pub struct PointRecord {
    /// Such as `queue=red, rate=10Mbit`; empty if the scenario has no alternatives.
    pub label: String,
    /// The settings in which this point differs from others: path and value.
    pub settings: Vec<(String, String)>,
    /// Results count from here.
    pub measure_from: Time,
    /// The interval of time series.
    pub sample: Span,
    /// In the scenario's order.
    pub flows: Vec<FlowInfo>,
    /// One per replication that finished, in the order of [`Run::seeds`].
    pub outcomes: Vec<Outcome>,
}

/// What a report needs to know of a flow beyond what was measured.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// As in the scenario.
    pub name: String,
    /// As in the scenario.
    pub group: String,
    /// Its weighted max-min share; `None` if the scenario does not define one.
    pub entitlement: Option<Rate>,
}

impl Run {
    /// Whether it ran in real time, where nothing comes out twice to the bit.
    pub(crate) fn is_in_real_time(&self) -> bool {
        self.points.iter().flat_map(|point| &point.outcomes).any(|outcome| outcome.timekeeping.is_some())
    }
}

impl PointRecord {
    /// What to call it: its label, or a plain word if the run has no alternatives.
    pub(crate) fn name(&self) -> &str {
        if self.label.is_empty() { "this run" } else { &self.label }
    }
}
