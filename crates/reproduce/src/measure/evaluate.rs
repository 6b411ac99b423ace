//! Evaluation of measures.

use apportion_core::queue::DropReason;
use apportion_report::mbps;
use apportion_report::statistics::{jain, mean, sigma};
use apportion_runtime::outcome::{Distribution, FlowOutcome, LinkOutcome};

use super::elementwise::combine;
use super::flows::Flows;
use super::{FitNumber, FlowSelection, Measure, Shape, fit};
use crate::runs::{Basis, RunOutcomes, Runs, link_of, run_of};
use crate::value::{EPSILON, Length};

impl Shape {
    fn of(self, each: Vec<f64>) -> Option<Vec<f64>> {
        let one = match self {
            Self::Each => return Some(each),
            Self::Sum => Some(each.iter().sum()),
            Self::Mean => mean(&each),
            Self::Min => each.iter().copied().min_by(f64::total_cmp),
            Self::Max => each.iter().copied().max_by(f64::total_cmp),
            Self::Median => quantile(each, 0.5),
            Self::P95 => quantile(each, 0.95),
            Self::Sigma => sigma(&each),
            Self::Jain => jain(&each),
        };
        one.map(|one| vec![one])
    }
}

/// The smallest of the numbers that at least this share of them does not exceed.
fn quantile(mut each: Vec<f64>, share: f64) -> Option<f64> {
    each.sort_by(f64::total_cmp);
    let rank = (share * each.len() as f64).ceil() as usize;
    each.get(rank.saturating_sub(1)).copied()
}

/// The mean delay, or its quantile `share`, in ms.
fn delay(of: &Distribution, share: Option<f64>) -> Option<f64> {
    let mean = (of.count > 0).then_some(of.mean);
    Some(share.map_or(mean, |share| of.quantile(share))?.as_secs_f64() * 1e3)
}

impl Measure {
    /// Numbers of the measure; `None` if one of them is undefined.
    #[must_use]
    pub fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        match self {
            Self::Throughput { of, run, from, to, shape } => {
                shape.of(Flows::of(runs, run, of)?.throughputs(basis, *from, *to)?)
            }
            Self::Goodput(FlowSelection { of, run, shape }) => shape.of(Flows::of(runs, run, of)?
                .each(basis, |flow, outcome| Some(mbps(flow.goodput?, outcome.measured)))?),
            Self::Timeouts(FlowSelection { of, run, shape }) => {
                shape.of(Flows::of(runs, run, of)?.each(basis, |flow, _| Some(flow.timeouts? as f64))?)
            }
            Self::Delay { of, share, run, shape } => {
                shape.of(Flows::of(runs, run, of)?.each(basis, |flow, _| delay(&flow.delay, *share))?)
            }
            Self::Late { of, than, run, shape } => {
                shape.of(Flows::of(runs, run, of)?.each(basis, |flow, _| flow.delay.above(than.0))?)
            }
            Self::Drops { of, run, reason, shape } => {
                let wanted = reason.map(DropReason::from);
                let count = |flow: &FlowOutcome| -> u64 {
                    let drops = flow.dropped.iter();
                    drops.filter(|(reason, _)| wanted.is_none_or(|w| w == **reason)).map(|(_, n)| n).sum()
                };
                shape.of(Flows::of(runs, run, of)?.each(basis, |flow, _| Some(count(flow) as f64))?)
            }
            Self::Entitlement(FlowSelection { of, run, shape }) => {
                shape.of(Flows::of(runs, run, of)?.throughputs(Basis::Entitlements, None, None)?)
            }
            Self::Utilisation { link, run } => Some(vec![link_outcome(runs, run, link, basis)?.utilisation]),
            Self::Statistic { link, run, name } => {
                Some(vec![statistic(link_outcome(runs, run, link, basis)?, name)?])
            }
            Self::FlowStatistic { link, run, name, of, shape } => {
                let link = link_outcome(runs, run, link, basis)?;
                let flows = Flows::of(runs, run, of)?;
                let of_flow = |&at: &usize| flow_statistic(link, at, name);
                shape.of(flows.indices().iter().map(of_flow).collect::<Option<_>>()?)
            }
            Self::Fit { of, on, give, run } => {
                let flows = Flows::of(runs, run, of)?;
                let points: Vec<_> =
                    flows.attributes(*on)?.into_iter().zip(flows.throughputs(basis, None, None)?).collect();
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
                let mean = |[from, to]: &[Length; 2]| flows.throughputs(basis, Some(*from), Some(*to));
                let change = |(before, after): (f64, f64)| (after / before - 1.0).abs();
                Some(mean(before)?.into_iter().zip(mean(after)?).map(change).collect())
            }
            // Entitlements are constant over time.
            Self::Settling { .. } if matches!(basis, Basis::Entitlements) => None,
            Self::Settling { of, run, targets, after, window, within, hold } => {
                let flows = Flows::of(runs, run, of)?;
                Some(vec![flows.settling(basis, targets, [*after, *window, *hold], *within)?])
            }
            Self::OverSweep(measure) => measure.evaluate(runs, basis),
            Self::Rank(measure) => measure.evaluate(runs, basis),
            Self::Best(measure) => measure.evaluate(runs, basis),
            Self::WindowedJain(measure) => measure.evaluate(runs, basis),
            Self::Level(measure) => measure.evaluate(runs, basis),
            Self::Step(measure) => measure.evaluate(runs, basis),
            Self::SawTooth(measure) => measure.evaluate(runs, basis),
            Self::Cuts(measure) => measure.evaluate(runs, basis),
            Self::AccumulatedError(measure) => measure.evaluate(runs, basis),
            Self::Differing(measure) => measure.evaluate(runs, basis),
            Self::TransferTime(measure) => measure.evaluate(runs, basis),
            _ => self.combined(runs, basis),
        }
    }

    /// The numbers of constants and of combined measures.
    fn combined(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let parts = |of: &[Self]| -> Option<Vec<Vec<f64>>> {
            of.iter().map(|part| part.evaluate(runs, basis)).collect()
        };
        match self {
            Self::Constant { value } => Some(value.all().to_vec()),
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
            Self::Reduced { of, shape } => shape.of(of.evaluate(runs, basis)?),
            Self::Mean { of } => {
                let parts = parts(of)?;
                Some(combine(&parts.iter().collect::<Vec<_>>(), |x| x.iter().sum::<f64>() / x.len() as f64))
            }
            Self::List { of } => Some(parts(of)?.concat()),
            _ => None,
        }
    }
}

/// Quotient of two numbers.
fn quotient(x: &[f64]) -> f64 {
    if x[1].abs() > EPSILON { x[0] / x[1] } else { f64::NAN }
}

/// The statistic `name` of a link's discipline.
fn statistic(link: &LinkOutcome, name: &str) -> Option<f64> {
    link.statistics.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
}

/// The statistic `name` of the flow with index `at`.
fn flow_statistic(link: &LinkOutcome, at: usize, name: &str) -> Option<f64> {
    let of_flow = link.flow_statistics.iter().filter(|(flow, known, _)| *flow == at && *known == name);
    let values: Vec<f64> = of_flow.map(|&(.., value)| value).collect();
    mean(&values)
}

fn link_outcome<'a>(
    runs: &Runs<'a, RunOutcomes>,
    run: &str,
    link: &str,
    basis: Basis,
) -> Option<&'a LinkOutcome> {
    let measured = run_of(runs, run).ok()?;
    let Basis::Seed(seed) = basis else { return None };
    measured.outcomes.get(seed)?.links.get(link_of(&measured.scenario, link).ok()?)
}
