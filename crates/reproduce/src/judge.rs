//! Verdicts: comparison of claims with measurements.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use apportion_report::statistics::Estimate;
use serde::Serialize;

use crate::expect::{Metric, Op};
use crate::measure::Measure;
use crate::plan::{Plan, PlannedExperiment, Results};
use crate::runs::{Basis, Measured, Runs};
use crate::value::{EPSILON, Numbers};

/// A claim with its measured numbers and verdict.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The id of the experiment.
    pub experiment: String,
    /// The claim as in the file.
    pub metric: Metric,
    /// Its numbers.
    pub elements: Vec<Element>,
    /// The verdict on all its numbers.
    pub verdict: Verdict,
    /// Replications.
    pub seeds: usize,
    /// Whether the mechanism was switched off.
    pub ablated: bool,
    /// The same claim in variants that belong to every run, by their names.
    pub variants: Vec<(String, Self)>,
}

/// One number of a claim.
#[derive(Clone, Debug)]
pub struct Element {
    /// Its label, such as a flow's name; empty if the claim has one number.
    pub label: String,
    /// The published value.
    pub published: f64,
    /// Its value if every flow received its entitlement; `None` if undefined.
    pub ideal: Option<f64>,
    /// Mean over seeds; NaN if it could not be measured, infinite if the event never occurred.
    pub measured: f64,
    /// Half the 95 % interval.
    pub ci95: Option<f64>,
    /// Whether the claim holds for this number.
    pub holds: bool,
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not hold, and the file states the reason.
    Refuted,
    /// It does not hold.
    Fails,
}

/// Compares the measurements of a plan with the claims of the papers, in the order of the plan.
#[must_use]
pub fn judge(plan: &Plan, results: &Results) -> Vec<Claim> {
    let mut all = Vec::new();
    for paper in &plan.papers {
        let mut claims = claims_of(&paper.experiments, plan.ablated, results);
        for planned in paper.variants.iter().filter(|planned| planned.variant.beside) {
            for other in claims_of(&planned.experiments, plan.ablated, results) {
                if let Some(claim) = claims.iter_mut().find(|claim| claim.same_claim(&other)) {
                    claim.variants.push((planned.variant.name.clone(), other));
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

/// A measured number: the mean over seeds, and the ideal value if every flow received its entitlement.
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
        variants: Vec::new(),
    }
}

/// Replaces rounding errors of zero, such as the spread of equal shares, by zero.
fn clean(x: f64) -> f64 {
    if x.abs() < EPSILON { 0.0 } else { x }
}

impl Metric {
    /// How far inside the bound `measured` is; NaN if nothing was measured.
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
    /// Whether it is the same claim, possibly of another variant.
    #[must_use]
    pub fn same_claim(&self, other: &Self) -> bool {
        self.experiment == other.experiment && self.metric.name == other.metric.name
    }

    /// With the mechanism switched off: whether the claim holds although it must fail.
    #[must_use]
    pub fn survives_ablation(&self) -> bool {
        self.ablated && self.metric.breaks && self.verdict == Verdict::Holds
    }

    /// Whether this claim makes the whole run fail.
    #[must_use]
    pub fn fails_run(&self) -> bool {
        if self.ablated { self.survives_ablation() } else { self.verdict == Verdict::Fails }
    }

    /// One element for each published number. Where one number is published for several, the element closest to the bound
    /// represents them: if it holds, all do.
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

    /// The claim as an object of a JSON line.
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
            variants: self.variants.iter().map(|(name, other)| (name.as_str(), other.measured())).collect(),
        }
    }

    /// The measured numbers: a list if several are published, else a single number.
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

/// The fields of a claim in a JSON line.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    /// The id of the experiment.
    pub experiment: &'a str,
    /// The name of the metric.
    pub metric: &'a str,
    /// The unit of all its numbers.
    pub unit: &'a str,
    /// The published values.
    pub published: &'a Numbers,
    /// Its values with every flow at its entitlement; `None` if that is not known.
    pub ideal: Option<Numbers<Option<f64>>>,
    /// Means over seeds; null if not finite.
    pub measured: Numbers<Option<f64>>,
    /// Half the 95 % confidence intervals.
    pub ci95: Numbers<Option<f64>>,
    /// Replications.
    pub seeds: usize,
    /// The comparison of measured and published values.
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
    /// Means over seeds in variants, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "beside")]
    pub variants: BTreeMap<&'a str, Numbers<Option<f64>>>,
}
