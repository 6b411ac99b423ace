//! Fairness at short time scales.

use apportion_core::units::Span;
use apportion_report::statistics::{jain, mean};
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use super::flows::Flows;
use crate::runs::{Basis, Fault, RunOutcomes, Runs, flows_of, main_run, run_of, samples};
use crate::value::Length;

/// Fairness at short time scales: the mean over consecutive windows of the Jain index of throughputs (bytes on
/// the wire; goodput is not counted by the interval). Windows that lie within the measured part count, except those
/// without any throughput.
#[derive(Clone, Debug, Deserialize)]
pub struct WindowedJain {
    /// Flows or groups; all if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// The run; `main` if absent.
    #[serde(default = "main_run")]
    pub run: String,
    /// Length of a window.
    pub window: Length,
}

impl WindowedJain {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let scenario = run_of(runs, &self.run)?;
        flows_of(scenario, &self.of)?;
        let windows = self.windows(scenario);
        if windows.is_empty() || self.window.0 < scenario.sample {
            let message = format!(
                "must be at least the sample of {}, and at most the measured part of {}",
                scenario.sample,
                Span::from_nanos(scenario.stop.as_nanos().saturating_sub(scenario.measure_from.as_nanos()))
            );
            return Err(("window", message));
        }
        for (from, to) in windows {
            samples(scenario, Some(from), Some(to))?;
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let flows = Flows::of(runs, &self.run, &self.of)?;
        let index = |(from, to)| Some(jain(&flows.throughputs(basis, Some(from), Some(to))?));
        let windows = self.windows(&flows.run().scenario).into_iter();
        let all: Vec<Option<f64>> = windows.map(index).collect::<Option<_>>()?;
        Some(vec![mean(&all.into_iter().flatten().collect::<Vec<_>>())?])
    }

    fn windows(&self, scenario: &Scenario) -> Vec<(Length, Length)> {
        let (from, stop) = (scenario.measure_from.as_nanos(), scenario.stop.as_nanos());
        let length = self.window.0.as_nanos().max(1);
        let at = |k: u64| Length(Span::from_nanos(from + k * length));
        (0..stop.saturating_sub(from) / length).map(|k| (at(k), at(k + 1))).collect()
    }
}
