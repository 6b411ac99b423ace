//! Completion times of finite transfers.

use apportion_report::statistics::mean;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::runs::{Basis, Fault, RunOutcomes, Runs, flows_of, main_run, run_of};

/// The mean completion time of the transfers of all these flows that ended in the measured part, in s;
/// undefined if none ended.
#[derive(Clone, Debug, Deserialize)]
pub struct TransferTime {
    /// Flows or groups; all if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// The run; `main` if absent.
    #[serde(default = "main_run")]
    pub run: String,
}

impl TransferTime {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        flows_of(run_of(runs, &self.run)?, &self.of)?;
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let run = run_of(runs, &self.run).ok()?;
        let outcome = run.outcomes.get(seed)?;
        let flows = flows_of(&run.scenario, &self.of).ok()?;
        let ended =
            flows.into_iter().filter_map(|at| outcome.flows.get(at)).flat_map(|flow| &flow.completions);
        let times: Vec<f64> = ended.map(|transfer| transfer.took.as_secs_f64()).collect();
        Some(vec![mean(&times)?])
    }
}
