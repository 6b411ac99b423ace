//! One replication, the source of the rows of tables.

use apportion_core::units::{Rate, Span, Time};
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;

use crate::rows::FlowRow;

/// One replication of a point.
#[derive(Clone, Copy, Debug)]
pub struct Replication<'a> {
    /// The label of the point.
    pub point: &'a str,
    /// Start of the measured part.
    pub measure_from: Time,
    /// The interval of time series.
    pub sample: Span,
    /// Flows in the scenario's order.
    pub flows: &'a [FlowInfo],
    /// The measurements.
    pub outcome: &'a Outcome,
    /// Entitlements of flows in it, if they are known.
    pub dues: Option<&'a Dues>,
}

/// The attributes of a flow that the report shows besides its measurements.
#[derive(Clone, Debug)]
pub struct FlowInfo {
    /// The name in the scenario.
    pub name: String,
    /// The group in the scenario.
    pub group: String,
    /// The customer, if there is one.
    pub customer: Option<String>,
    /// The entitlement in the measured part, as a mean over time and replications: the weighted max-min
    /// share, or that by tickets or customers; `None` if the scenario does not define one.
    pub entitlement: Option<Rate>,
}

impl FlowInfo {
    /// The attributes in a row; one replication does not determine the entitlement.
    pub(crate) fn of(row: &FlowRow) -> Self {
        let FlowRow { flow, group, customer, .. } = row.clone();
        Self { name: flow, group, customer, entitlement: None }
    }
}
