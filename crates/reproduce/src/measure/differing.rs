//! Differences between two runs.

use apportion_runtime::outcome::FlowOutcome;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::runs::{Basis, Fault, RunOutcomes, Runs, flows_of, run_of, samples};
use crate::value::Length;

/// |Σ alone - Σ other| / Σ alone of the bytes that flows delivered in two runs.
#[derive(Clone, Debug, Deserialize)]
pub struct AccumulatedError {
    /// Flows or groups, together.
    pub of: Vec<String>,
    /// The run in which the flows are alone, and the other run.
    pub runs: [String; 2],
    /// Start; the start of the measured part if absent.
    pub from: Option<Length>,
    /// End; the end of the run if absent.
    pub to: Option<Length>,
}

impl AccumulatedError {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        for run in &self.runs {
            let scenario = run_of(runs, run).map_err(|(_, message)| ("runs", message))?;
            flows_of(scenario, &self.of)?;
            samples(scenario, self.from, self.to)?;
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let sum = |run: &String| {
            let window = samples(&run_of(runs, run).ok()?.scenario, self.from, self.to).ok()?;
            Some(delivered(runs, run, &self.of, seed)?.get(window)?.iter().sum::<f64>())
        };
        let [alone, other] = [sum(&self.runs[0])?, sum(&self.runs[1])?];
        (alone > 0.0).then(|| vec![(alone - other).abs() / alone])
    }
}

/// Bytes that flows delivered together per sample interval.
pub(crate) fn delivered(
    runs: &Runs<'_, RunOutcomes>,
    run: &str,
    of: &[String],
    seed: usize,
) -> Option<Vec<f64>> {
    let measured = run_of(runs, run).ok()?;
    let flows = &measured.outcomes.get(seed)?.flows;
    let mut sums = Vec::new();
    for at in flows_of(&measured.scenario, of).ok()? {
        let series = &flows.get(at)?.series;
        sums.resize(sums.len().max(series.len()), 0.0);
        sums.iter_mut().zip(series).for_each(|(sum, bytes)| *sum += bytes.get() as f64);
    }
    Some(sums)
}

/// Number of differences between two runs with the same seeds: sample intervals of flows in which the
/// delivered bytes differ, plus differences in drop counts by flow and reason. Zero does not prove that every
/// packet was treated equally; tests of the disciplines show that.
#[derive(Clone, Debug, Deserialize)]
pub struct Differing {
    /// Two runs with the same flows.
    pub runs: [String; 2],
}

impl Differing {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let [a, b] = [run_of(runs, &self.runs[0])?, run_of(runs, &self.runs[1])?];
        let names = |scenario: &Scenario| -> Vec<String> {
            scenario.flows.iter().map(|flow| flow.name.clone()).collect()
        };
        if names(a) != names(b) || (a.sample, a.stop, a.seed) != (b.sample, b.stop, b.seed) {
            let message = "the two do not have the same flows, `sample`, `stop` and `seed`".to_owned();
            return Err(("runs", message));
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let flows = |name: &String| Some(&run_of(runs, name).ok()?.outcomes.get(seed)?.flows);
        let (a, b) = (flows(&self.runs[0])?, flows(&self.runs[1])?);
        Some(vec![a.iter().zip(b).map(|(a, b)| differences(a, b)).sum::<u64>() as f64])
    }
}

fn differences(a: &FlowOutcome, b: &FlowOutcome) -> u64 {
    let intervals = a.series.iter().zip(&b.series).filter(|(a, b)| a != b).count() as u64;
    let count = |flow: &FlowOutcome, reason| flow.dropped.get(reason).copied().unwrap_or(0);
    // A reason in both runs must count once.
    let reasons = a.dropped.keys().chain(b.dropped.keys().filter(|reason| !a.dropped.contains_key(*reason)));
    intervals + reasons.map(|reason| count(a, reason).abs_diff(count(b, reason))).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use apportion_core::queue::DropReason;
    use apportion_core::units::Bytes;

    use super::*;

    #[test]
    fn differences_are_intervals_and_drops_by_reason() {
        let flow = |series: &[u64], drops: &[(DropReason, u64)]| FlowOutcome {
            series: series.iter().map(|bytes| Bytes::new(*bytes)).collect(),
            dropped: drops.iter().copied().collect(),
            ..FlowOutcome::default()
        };
        let a = flow(&[1, 2, 3], &[(DropReason::Early, 4), (DropReason::PushOut, 1)]);
        let b = flow(&[1, 3, 2], &[(DropReason::PushOut, 6), (DropReason::Overflow, 2)]);
        // Two intervals; 4 early, |1 - 6| pushed out, 2 over the limit.
        assert_eq!(differences(&a, &b), 2 + 4 + 5 + 2);
        assert_eq!(differences(&b, &a), 13);
        assert_eq!(differences(&a, &a), 0);
    }
}
