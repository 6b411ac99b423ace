//! Verdicts: which claims hold.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use apportion_report::statistics::Estimate;
use serde::Serialize;

use crate::expect::{Metric, Op};
use crate::measure::Measure;
use crate::plan::{Plan, PlannedExperiment, Results};
use crate::runs::{Basis, Measured, Runs};
use crate::value::{EPSILON, Numbers};

/// One claim with what was measured.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Of the experiment.
    pub experiment: String,
    /// As in the file.
    pub metric: Metric,
    /// What was measured, number by number.
    pub elements: Vec<Element>,
    /// Of the whole.
    pub verdict: Verdict,
    /// Replications.
    pub seeds: usize,
    /// Whether the mechanism was switched off.
    pub ablated: bool,
    /// The same claim in variants that belong to every run, by their names.
    pub beside: Vec<(String, Self)>,
}

/// One number of a claim.
#[derive(Clone, Debug)]
pub struct Element {
    /// Such as a flow's name; empty if the claim is about one number.
    pub label: String,
    /// What the paper says.
    pub published: f64,
    /// What it would be if every flow got its due.
    pub ideal: Option<f64>,
    /// Mean over seeds; not a number if it could not be measured, infinite if it never came to be.
    pub measured: f64,
    /// Half the 95 % interval.
    pub ci95: Option<f64>,
    /// Whether the claim holds for this number.
    pub holds: bool,
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not, and the file says why.
    Refuted,
    /// It does not.
    Fails,
}

/// Compares everything a plan's runs measured with what the papers say, in the order of the plan.
#[must_use]
pub fn judge(plan: &Plan, results: &Results) -> Vec<Claim> {
    let mut all = Vec::new();
    for paper in &plan.papers {
        let mut claims = claims_of(&paper.experiments, plan.ablated, results);
        for beside in paper.variants.iter().filter(|planned| planned.variant.beside) {
            for other in claims_of(&beside.experiments, plan.ablated, results) {
                if let Some(claim) = claims.iter_mut().find(|claim| claim.same_claim(&other)) {
                    claim.beside.push((beside.variant.name.clone(), other));
                }
            }
        }
        all.append(&mut claims);
    }
    all
}

/// The claims of these experiments.
pub(crate) fn claims_of<'a>(
    experiments: impl IntoIterator<Item = &'a PlannedExperiment>,
    ablated: bool,
    results: &Results,
) -> Vec<Claim> {
    let of_experiment = |planned: &PlannedExperiment| -> Vec<Claim> {
        let runs = planned.runs(results);
        let claim = |(metric, labels): (&Metric, &Vec<String>)| {
            claim(&planned.experiment.id, metric, labels, &runs, results.seeds, ablated)
        };
        planned.experiment.metrics.iter().zip(&planned.labels).map(claim).collect()
    };
    experiments.into_iter().flat_map(of_experiment).collect()
}

/// A number that was measured: the mean over seeds, and what it would be if every flow got its due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampled {
    pub estimate: Option<Estimate>,
    pub ideal: Option<f64>,
}

/// The numbers of a measure, `count` of them.
pub(crate) fn sample(
    measure: &Measure,
    runs: &Runs<'_, Measured>,
    seeds: usize,
    count: usize,
) -> Vec<Sampled> {
    // (seed, number)
    let samples: Vec<_> = (0..seeds).map(|seed| measure.evaluate(runs, Basis::Seed(seed))).collect();
    let ideal = measure.evaluate(runs, Basis::Entitlements);
    let sampled = |k: usize| {
        let samples: Option<Vec<f64>> =
            samples.iter().map(|all| all.as_ref().and_then(|all| all.get(k)).copied()).collect();
        Sampled {
            estimate: samples.and_then(|samples| Estimate::of(&samples)),
            ideal: ideal.as_ref().and_then(|all| all.get(k)).copied().filter(|x| x.is_finite()).map(clean),
        }
    };
    (0..count).map(sampled).collect()
}

fn claim(
    experiment: &str,
    metric: &Metric,
    labels: &[String],
    runs: &Runs<'_, Measured>,
    seeds: usize,
    ablated: bool,
) -> Claim {
    let published = metric.value.all();
    let element = |(k, (label, Sampled { estimate, ideal })): (usize, (&String, Sampled))| {
        let measured = estimate.map_or(f64::NAN, |estimate| estimate.mean);
        let published = published[k % published.len()];
        Element {
            label: label.clone(),
            published,
            ideal,
            measured,
            ci95: estimate.and_then(|estimate| estimate.ci95).filter(|half| half.is_finite()),
            holds: metric.holds(published, measured),
        }
    };
    let sampled = sample(&metric.measure, runs, seeds, labels.len());
    let elements: Vec<Element> = labels.iter().zip(sampled).enumerate().map(element).collect();
    let verdict = match (elements.iter().all(|element| element.holds), &metric.refuted) {
        (true, _) => Verdict::Holds,
        (false, Some(_)) => Verdict::Refuted,
        (false, None) => Verdict::Fails,
    };
    Claim {
        experiment: experiment.to_owned(),
        metric: metric.clone(),
        elements,
        verdict,
        seeds,
        ablated,
        beside: Vec::new(),
    }
}

/// Without the noise that rounding leaves of zero, such as the spread of equal shares.
fn clean(x: f64) -> f64 {
    if x.abs() < EPSILON { 0.0 } else { x }
}

impl Metric {
    /// How far inside the bound `measured` is; not a number if nothing was measured.
    fn margin(&self, value: f64, measured: f64) -> f64 {
        let widened = self.tol_abs.unwrap_or(0.0);
        match self.op {
            Op::Approx => {
                self.tol_abs.unwrap_or(self.tol_rel.unwrap_or(0.0) * value.abs()) - (measured - value).abs()
            }
            Op::Ge | Op::Gt => measured - (value - widened),
            Op::Le | Op::Lt => value + widened - measured,
            Op::Record => 0.0,
        }
    }

    fn holds(&self, value: f64, measured: f64) -> bool {
        // A tolerance written in decimals is met by a value at its edge: 0.07 - 0.05 is 0.02 but for
        // rounding.
        let rounding = 1e-12 * value.abs().max(measured.abs());
        match self.op {
            _ if !measured.is_finite() => false,
            Op::Record => true,
            Op::Gt | Op::Lt => self.margin(value, measured) > 0.0,
            Op::Approx | Op::Ge | Op::Le => self.margin(value, measured) >= -rounding,
        }
    }
}

impl Claim {
    /// Whether it is the same claim, perhaps of another variant.
    #[must_use]
    pub fn same_claim(&self, other: &Self) -> bool {
        self.experiment == other.experiment && self.metric.name == other.metric.name
    }

    /// With the mechanism switched off: whether the claim holds although it must fail.
    #[must_use]
    pub fn survives_ablation(&self) -> bool {
        self.ablated && self.metric.breaks && self.verdict == Verdict::Holds
    }

    /// Whether the run as a whole has failed by it.
    #[must_use]
    pub fn fails_run(&self) -> bool {
        if self.ablated { self.survives_ablation() } else { self.verdict == Verdict::Fails }
    }

    /// One element for each published number. Where one is published for several, the element with the least
    /// room stands for them: if it holds, all do.
    #[must_use]
    pub fn representatives(&self) -> Vec<&Element> {
        let room = |element: &Element| self.metric.margin(element.published, element.measured);
        let least = |a: &&Element, b: &&Element| match (room(a), room(b)) {
            (a, b) if a.is_nan() || b.is_nan() => b.is_nan().cmp(&a.is_nan()),
            (a, b) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        };
        let count = self.metric.value.all().len();
        (0..count).filter_map(|k| self.elements.iter().skip(k).step_by(count).min_by(least)).collect()
    }

    /// As an object of a JSON line.
    #[must_use]
    pub fn row(&self) -> Row<'_> {
        let chosen = self.representatives();
        let as_published = |all| self.as_published(all);
        let ideal: Option<Vec<f64>> = chosen.iter().map(|element| element.ideal).collect();
        Row {
            experiment: &self.experiment,
            metric: &self.metric.name,
            unit: &self.metric.unit,
            published: &self.metric.value,
            ideal: ideal.map(|ideal| as_published(ideal.into_iter().map(Some).collect())),
            measured: self.measured(),
            ci95: as_published(chosen.iter().map(|element| element.ci95).collect()),
            seeds: self.seeds,
            op: self.metric.op,
            holds: self.verdict == Verdict::Holds,
            refuted: self.metric.refuted.as_deref().filter(|_| self.verdict == Verdict::Refuted),
            ablated: self.ablated.then_some(true),
            must_fail: self.ablated.then_some(self.metric.breaks),
            beside: self.beside.iter().map(|(name, other)| (name.as_str(), other.measured())).collect(),
        }
    }

    /// What was measured, in the form of what is published.
    #[must_use]
    pub fn measured(&self) -> Numbers<Option<f64>> {
        let finite = |element: &&Element| Some(element.measured).filter(|x| x.is_finite());
        self.as_published(self.representatives().iter().map(finite).collect())
    }

    fn as_published(&self, all: Vec<Option<f64>>) -> Numbers<Option<f64>> {
        match (&self.metric.value, all.as_slice()) {
            (Numbers::One(_), [one]) => Numbers::One(*one),
            _ => Numbers::Many(all),
        }
    }
}

/// A claim as a JSON line shows it.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    /// The id of the experiment.
    pub experiment: &'a str,
    /// The name of the metric.
    pub metric: &'a str,
    /// The unit of all its numbers.
    pub unit: &'a str,
    /// As in the paper.
    pub published: &'a Numbers,
    /// What it would be with every flow at its entitlement; `None` if that is not known.
    pub ideal: Option<Numbers<Option<f64>>>,
    /// Means over seeds; null if not finite.
    pub measured: Numbers<Option<f64>>,
    /// Half the 95 % confidence intervals.
    pub ci95: Numbers<Option<f64>>,
    /// Replications.
    pub seeds: usize,
    /// How measured and published are compared.
    pub op: Op,
    /// Whether the claim holds.
    pub holds: bool,
    /// Why the claim is known not to hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuted: Option<&'a str>,
    /// Whether the mechanism was switched off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ablated: Option<bool>,
    /// Whether the claim must then fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_fail: Option<bool>,
    /// Measured in variants, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub beside: BTreeMap<&'a str, Numbers<Option<f64>>>,
}
