//! The numbers of a replication that are compared with those of its perturbed copy.

use apportion_core::units::Rate;
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;
use serde::{Deserialize, Serialize};

use crate::statistics::{jain, judged};
use crate::units::mbps;

/// The numbers of one replication, or of its perturbed copy, that are compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Throughput of each flow, Mb/s.
    pub(crate) flows: Vec<f64>,
    /// Throughput of all flows together, Mb/s.
    pub(crate) total: f64,
    pub(crate) jain: Option<f64>,
}

impl Sample {
    /// The numbers of an outcome, with the entitlements of flows in it if they are known.
    #[must_use]
    pub fn of(outcome: &Outcome, dues: Option<&Dues>) -> Self {
        let flows: Vec<f64> =
            outcome.flows.iter().map(|flow| mbps(flow.delivered.bytes, outcome.measured)).collect();
        let due = |at: usize| Some(Rate::as_mbit_f64(dues?.flows.get(at)?.measured));
        let shares: Vec<f64> = judged((0..flows.len()).map(due))
            .map(|(at, entitlement)| flows[at] / entitlement.unwrap_or(1.0))
            .collect();
        Self { total: flows.iter().sum(), jain: jain(&shares), flows }
    }
}
