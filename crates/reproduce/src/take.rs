//! Computing measures from what was measured.

use apportion_core::fairness::water_filling;
use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Span, Time};
use apportion_report::mbps;
use apportion_report::statistics::{jain, mean, sigma};
use apportion_runtime::outcome::{FlowOutcome, LinkOutcome, Outcome};

use crate::expect::Length;
use crate::fit;
use crate::measure::{
    Attribute, FitNumber, Measure, Measured, Of, Runs, Shape, attributes_of, flows_of, link_of, run_of,
    samples,
};

impl Shape {
    fn of(self, each: Vec<f64>) -> Option<Vec<f64>> {
        let one = match self {
            Self::Each => return Some(each),
            Self::Sum => Some(each.iter().sum()),
            Self::Mean => mean(&each),
            Self::Min => each.iter().copied().min_by(f64::total_cmp),
            Self::Max => each.iter().copied().max_by(f64::total_cmp),
            Self::Sigma => sigma(&each),
            Self::Jain => jain(&each),
        };
        one.map(|one| vec![one])
    }
}

impl Measure {
    /// The numbers; `None` if one of them cannot be said.
    #[must_use]
    pub fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        match self {
            Self::Throughput { of, run, from, to, shape } => {
                shape.of(Flows::of(runs, run, of)?.throughputs(what, *from, *to)?)
            }
            Self::Goodput { of, run, shape } => shape
                .of(Flows::of(runs, run, of)?
                    .each(what, |flow, outcome| mbps(flow.goodput, outcome.measured))?),
            Self::Timeouts { of, run, shape } => {
                shape.of(Flows::of(runs, run, of)?.each(what, |flow, _| flow.timeouts as f64)?)
            }
            Self::Drops { of, run, reason, shape } => {
                let wanted = reason.map(DropReason::from);
                let count = |flow: &FlowOutcome| -> u64 {
                    let drops = flow.dropped.iter();
                    drops.filter(|(reason, _)| wanted.is_none_or(|w| w == **reason)).map(|(_, n)| n).sum()
                };
                shape.of(Flows::of(runs, run, of)?.each(what, |flow, _| count(flow) as f64)?)
            }
            Self::Entitlement { of, run, shape } => {
                shape.of(Flows::of(runs, run, of)?.throughputs(Of::Entitlements, None, None)?)
            }
            Self::Utilisation { link, run } => Some(vec![link_outcome(runs, run, link, what)?.utilisation]),
            Self::Statistic { link, run, name } => {
                Some(vec![statistic(link_outcome(runs, run, link, what)?, name)?])
            }
            Self::FlowStatistic { link, run, name, of, shape } => {
                let link = link_outcome(runs, run, link, what)?;
                let flows = Flows::of(runs, run, of)?;
                let of_flow = |&at: &usize| flow_statistic(link, at, name);
                shape.of(flows.indices().iter().map(of_flow).collect::<Option<_>>()?)
            }
            Self::Fit { of, on, give, run } => {
                let flows = Flows::of(runs, run, of)?;
                let points: Vec<_> =
                    flows.attributes(*on)?.into_iter().zip(flows.throughputs(what, None, None)?).collect();
                let number = match give {
                    FitNumber::Slope => fit::slope_through_origin(&points),
                    FitNumber::R2 => fit::r2_through_origin(&points),
                    FitNumber::LowestQuartileDeviation => fit::lowest_quartile_deviation(&points),
                    FitNumber::LoglogSlope => fit::loglog_slope(&points),
                };
                number.map(|number| vec![number])
            }
            Self::RelativeChange { of, run, before, after } => {
                let flows = Flows::of(runs, run, of)?;
                let mean = |[from, to]: &[Length; 2]| flows.throughputs(what, Some(*from), Some(*to));
                let change = |(before, after): (f64, f64)| (after / before - 1.0).abs();
                Some(mean(before)?.into_iter().zip(mean(after)?).map(change).collect())
            }
            // Entitlements do not move.
            Self::Settling { .. } if matches!(what, Of::Entitlements) => None,
            Self::Settling { of, run, targets, after, window, within, hold } => {
                let flows = Flows::of(runs, run, of)?;
                Some(vec![flows.settling(what, targets, [*after, *window, *hold], *within)?])
            }
            Self::OverSweep(measure) => measure.take(runs, what),
            Self::Rank(measure) => measure.take(runs, what),
            Self::Best(measure) => measure.take(runs, what),
            Self::WindowedJain(measure) => measure.take(runs, what),
            Self::Level(measure) => measure.take(runs, what),
            Self::Step(measure) => measure.take(runs, what),
            Self::SawTooth(measure) => measure.take(runs, what),
            Self::AccumulatedError(measure) => measure.take(runs, what),
            Self::Differing(measure) => measure.take(runs, what),
            Self::TransferTime(measure) => measure.take(runs, what),
            _ => self.combined(runs, what),
        }
    }

    /// Numbers as they are, and measures made of measures.
    fn combined(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let parts =
            |of: &[Self]| -> Option<Vec<Vec<f64>>> { of.iter().map(|part| part.take(runs, what)).collect() };
        match self {
            Self::Constant { value } => Some(value.all().to_vec()),
            Self::WaterFilling { amount, demands } => {
                let level = water_filling::level(*amount, &mut demands.clone());
                Some(demands.iter().map(|demand| demand.min(level)).collect())
            }
            Self::Difference { of } => match parts(of)?.as_slice() {
                [a, b] => Some(combine(&[a, b], |x| x[0] - x[1])),
                _ => None,
            },
            Self::Quotient { of } => match parts(of)?.as_slice() {
                [a, b] => Some(combine(&[a, b], quotient)),
                _ => None,
            },
            Self::RelativeError { of } => match parts(of)?.as_slice() {
                [a, b] => Some(combine(&[a, b], |x| (quotient(x) - 1.0).abs())),
                _ => None,
            },
            Self::Reduced { of, shape } => shape.of(of.take(runs, what)?),
            Self::Mean { of } => {
                let parts = parts(of)?;
                Some(combine(&parts.iter().collect::<Vec<_>>(), |x| x.iter().sum::<f64>() / x.len() as f64))
            }
            Self::List { of } => Some(parts(of)?.concat()),
            _ => None,
        }
    }
}

/// What is below differs from zero by rounding only, in any unit used here.
pub(crate) const NOTHING: f64 = 1e-12;

/// Of two numbers.
fn quotient(x: &[f64]) -> f64 {
    if x[1].abs() > NOTHING { x[0] / x[1] } else { f64::NAN }
}

/// Element by element; a single number stands for as many as needed.
pub(crate) fn combine(parts: &[&Vec<f64>], with: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let most = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    let at = |k: usize| -> Vec<f64> {
        parts.iter().filter_map(|part| part.get(if part.len() == 1 { 0 } else { k })).copied().collect()
    };
    (0..most).map(|k| with(&at(k))).collect()
}

/// What the discipline of a link reports under `name`.
fn statistic(link: &LinkOutcome, name: &str) -> Option<f64> {
    link.statistics.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// What it reports of the flow at `at` under `name`.
fn flow_statistic(link: &LinkOutcome, at: usize, name: &str) -> Option<f64> {
    let of_flow = link.flow_statistics.iter().filter(|(flow, known, _)| *flow == at && *known == name);
    let values: Vec<f64> = of_flow.map(|&(.., value)| value).collect();
    mean(&values)
}

fn link_outcome<'a>(runs: &Runs<'a, Measured>, run: &str, link: &str, what: Of) -> Option<&'a LinkOutcome> {
    let measured = run_of(runs, run).ok()?;
    let Of::Seed(seed) = what else { return None };
    measured.outcomes.get(seed)?.links.get(link_of(&measured.scenario, link).ok()?)
}

/// Some flows of a run.
pub(crate) struct Flows<'a> {
    run: &'a Measured,
    flows: Vec<usize>,
}

impl<'a> Flows<'a> {
    pub(crate) fn of(runs: &Runs<'a, Measured>, run: &str, names: &[String]) -> Option<Self> {
        let run = run_of(runs, run).ok()?;
        Some(Self { run, flows: flows_of(&run.scenario, names).ok()? })
    }

    pub(crate) fn run(&self) -> &'a Measured {
        self.run
    }

    pub(crate) fn indices(&self) -> &[usize] {
        &self.flows
    }

    pub(crate) fn attributes(&self, on: Attribute) -> Option<Vec<f64>> {
        attributes_of(&self.run.scenario, &self.flows, on).ok()
    }

    fn each(&self, what: Of, number: impl Fn(&FlowOutcome, &Outcome) -> f64) -> Option<Vec<f64>> {
        let Of::Seed(seed) = what else { return None };
        let outcome = self.run.outcomes.get(seed)?;
        self.flows.iter().map(|at| Some(number(outcome.flows.get(*at)?, outcome))).collect()
    }

    /// Mb/s: of the measured part if there is no window.
    pub(crate) fn throughputs(&self, what: Of, from: Option<Length>, to: Option<Length>) -> Option<Vec<f64>> {
        if matches!(what, Of::Entitlements) {
            let scenario = &self.run.scenario;
            let at = |length: Length| Time::from_nanos(length.0.as_nanos());
            let rates = scenario
                .entitlements_between(from.map_or(scenario.measure_from, at), to.map_or(scenario.stop, at))?;
            return self.flows.iter().map(|at| rates.get(*at).map(|rate| rate.as_mbit_f64())).collect();
        }
        if from.is_none() && to.is_none() {
            return self.each(what, |flow, outcome| mbps(flow.delivered.bytes, outcome.measured));
        }
        let window = samples(&self.run.scenario, from, to).ok()?;
        let length = self.run.scenario.sample * window.len() as u64;
        self.each(what, |flow, _| {
            let bytes: u64 =
                flow.series.get(window.clone()).unwrap_or_default().iter().map(|b| b.get()).sum();
            mbps(Bytes::new(bytes), length)
        })
    }

    /// See [`Measure::Settling`]. `times` are after, window and hold.
    fn settling(&self, what: Of, targets: &[f64], times: [Length; 3], within: f64) -> Option<f64> {
        let scenario = &self.run.scenario;
        let sample = scenario.sample.as_nanos().max(1);
        let [after, window, hold] = times.map(|length| length.0.as_nanos());
        let (first, last) = (
            after.div_ceil(sample),
            (scenario.stop.as_nanos() - hold.min(scenario.stop.as_nanos())) / sample,
        );
        let close = |start: u64| -> Option<bool> {
            let means = self.throughputs(
                what,
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
