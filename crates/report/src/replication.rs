//! One replication, from which the rows of tables are made.

use apportion_core::units::{Rate, Span, Time};
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;

use crate::rows::FlowRow;

/// One replication of a point.
#[derive(Clone, Copy, Debug)]
pub struct Replication<'a> {
    /// The label of its point.
    pub point: &'a str,
    /// Results count from here.
    pub measure_from: Time,
    /// The interval of time series.
    pub sample: Span,
    /// In the scenario's order.
    pub flows: &'a [FlowInfo],
    /// What was measured.
    pub outcome: &'a Outcome,
    /// What flows were due in it, if that is known.
    pub dues: Option<&'a Dues>,
}

/// The attributes of a flow that the report shows besides its measurements.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// As in the scenario.
    pub name: String,
    /// As in the scenario.
    pub group: String,
    /// Its customer, if it has one.
    pub customer: Option<String>,
    /// What it is due in the measured part, as a mean over time and replications: its weighted max-min share, or that by
    /// tickets or customers; `None` if the scenario does not define one.
    pub entitlement: Option<Rate>,
}

impl FlowInfo {
    /// Of a row; what the flow is due is not known from one replication.
    pub(crate) fn of(row: &FlowRow) -> Self {
        let FlowRow { flow, group, customer, .. } = row.clone();
        Self { name: flow, group, customer, entitlement: None }
    }
}
