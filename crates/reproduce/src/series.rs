//! Numbers made of what flows got in each sample interval.

use apportion_core::units::Span;
use apportion_report::statistics::{jain, mean};
use apportion_runtime::outcome::FlowOutcome;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::expect::{Length, SharesSeries};
use crate::measure::{Fault, Measured, Of, Runs, flows_of, main_run, run_of, samples};
use crate::take::Flows;

/// Fairness at short time scales: the mean over consecutive windows of the Jain index of throughputs (bytes on
/// the wire; goodput is not counted by the interval). Whole windows of the measured part count, but for those
/// in which no flow got anything.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowedJain {
    /// Flows or groups; all if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// Of which run.
    #[serde(default = "main_run")]
    pub run: String,
    /// Length of a window.
    pub window: Length,
}

/// A figure: throughput since the start of the run over time, the mean over flows, a curve for each run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunningMean {
    /// What it shows.
    pub title: String,
    /// A curve each.
    pub series: Vec<SharesSeries>,
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

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let flows = Flows::of(runs, &self.run, &self.of)?;
        let index = |(from, to)| Some(jain(&flows.throughputs(what, Some(from), Some(to))?));
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

/// In how much two runs of the same seeds differ: the sample intervals, flow by flow, in which they delivered
/// different numbers of bytes, and the differences in the counts of drops, by flow and reason. Zero if what
/// they dropped is the same; that every packet fared alike is for a test of the disciplines to show.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let Of::Seed(seed) = what else { return None };
        let flows = |name: &String| Some(&run_of(runs, name).ok()?.outcomes.get(seed)?.flows);
        let (a, b) = (flows(&self.runs[0])?, flows(&self.runs[1])?);
        Some(vec![a.iter().zip(b).map(|(a, b)| differences(a, b)).sum::<u64>() as f64])
    }
}

fn differences(a: &FlowOutcome, b: &FlowOutcome) -> u64 {
    let intervals = a.series.iter().zip(&b.series).filter(|(a, b)| a != b).count() as u64;
    let count = |flow: &FlowOutcome, reason| flow.dropped.get(reason).copied().unwrap_or(0);
    // A reason that both have must count once.
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
