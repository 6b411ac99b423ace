//! Throughputs of selected flows of a run.

use apportion_core::units::{Bytes, Span, Time};
use apportion_report::mbps;
use apportion_runtime::outcome::{FlowOutcome, Outcome};

use crate::runs::{Attribute, Basis, RunOutcomes, Runs, attributes_of, flows_of, run_of, samples};
use crate::value::Length;

/// Selected flows of a run.
pub(crate) struct Flows<'a> {
    run: &'a RunOutcomes,
    flows: Vec<usize>,
}

impl<'a> Flows<'a> {
    pub(crate) fn of(runs: &Runs<'a, RunOutcomes>, run: &str, names: &[String]) -> Option<Self> {
        let run = run_of(runs, run).ok()?;
        Some(Self { run, flows: flows_of(&run.scenario, names).ok()? })
    }

    pub(crate) fn run(&self) -> &'a RunOutcomes {
        self.run
    }

    pub(crate) fn indices(&self) -> &[usize] {
        &self.flows
    }

    pub(crate) fn attributes(&self, on: Attribute) -> Option<Vec<f64>> {
        attributes_of(&self.run.scenario, &self.flows, on).ok()
    }

    pub(super) fn each(
        &self,
        basis: Basis,
        number: impl Fn(&FlowOutcome, &Outcome) -> Option<f64>,
    ) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let outcome = self.run.outcomes.get(seed)?;
        self.flows.iter().map(|at| number(outcome.flows.get(*at)?, outcome)).collect()
    }

    /// Throughputs in Mb/s, over the measured part if there is no window.
    pub(crate) fn throughputs(
        &self,
        basis: Basis,
        from: Option<Length>,
        to: Option<Length>,
    ) -> Option<Vec<f64>> {
        if matches!(basis, Basis::Entitlements) {
            let scenario = &self.run.scenario;
            let at = |length: Length| Time::from_nanos(length.0.as_nanos());
            let rates = scenario
                .entitlements_between(from.map_or(scenario.measure_from, at), to.map_or(scenario.stop, at))?;
            return self.flows.iter().map(|at| rates.get(*at).map(|rate| rate.as_mbit_f64())).collect();
        }
        if from.is_none() && to.is_none() {
            return self.each(basis, |flow, outcome| Some(mbps(flow.delivered.bytes, outcome.measured)));
        }
        let window = samples(&self.run.scenario, from, to).ok()?;
        let length = self.run.scenario.sample * window.len() as u64;
        self.each(basis, |flow, _| {
            let bytes: u64 =
                flow.series.get(window.clone()).unwrap_or_default().iter().map(|b| b.get()).sum();
            Some(mbps(Bytes::new(bytes), length))
        })
    }

    /// See [`Measure::Settling`](super::Measure::Settling). `times` are after, window and hold.
    pub(super) fn settling(
        &self,
        basis: Basis,
        targets: &[f64],
        times: [Length; 3],
        within: f64,
    ) -> Option<f64> {
        let scenario = &self.run.scenario;
        let sample = scenario.sample.as_nanos().max(1);
        let [after, window, hold] = times.map(|length| length.0.as_nanos());
        let (first, last) = (
            after.div_ceil(sample),
            (scenario.stop.as_nanos() - hold.min(scenario.stop.as_nanos())) / sample,
        );
        let close = |start: u64| -> Option<bool> {
            let means = self.throughputs(
                basis,
                Some(Length(Span::from_nanos(start))),
                Some(Length(Span::from_nanos(start + window))),
            )?;
            Some(means.iter().zip(targets).all(|(mean, target)| (mean - target).abs() <= within * target))
        };
        for k in first..=last {
            let start = k * sample;
            let mut settled = true;
            for part in 0..hold / window {
                settled = settled && close(start + part * window)?;
            }
            if settled {
                return Some((start - after) as f64 / 1e9);
            }
        }
        Some(f64::INFINITY)
    }
}
