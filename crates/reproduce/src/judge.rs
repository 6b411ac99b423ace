//! Verdicts: comparison of claims with measurements.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use apportion_report::statistics::Estimate;
use serde::Serialize;

use crate::expect::{Metric, Op, Refutation};
use crate::measure::Measure;
use crate::plan::{Plan, PlannedExperiment, Results};
use crate::runs::{Basis, RunOutcomes, Runs};
use crate::value::{EPSILON, Numbers};

/// A claim with its measured numbers and verdict.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The id of the experiment.
    pub experiment: String,
    /// The claim as in the file.
    pub metric: Metric,
    /// Numbers of the claim.
    pub elements: Vec<Element>,
    /// Verdict on all numbers.
    pub verdict: Verdict,
    /// Replications.
    pub seeds: usize,
    /// Control with which the claim was measured: a mechanism is switched off.
    pub control: Option<String>,
    /// The same claim in variants that belong to every run, by name.
    pub variants: Vec<(String, Self)>,
}

/// One number of a claim.
#[derive(Clone, Debug)]
pub struct Element {
    /// Label, for example a flow's name; empty if the claim has one number.
    pub label: String,
    /// The published value; `None` if there is nothing to compare with.
    pub published: Option<f64>,
    /// Value if every flow received its entitlement; `None` if undefined.
    pub ideal: Option<f64>,
    /// Mean over seeds; NaN if unmeasured, infinite if the event never occurred.
    pub measured: f64,
    /// Half the 95 % interval.
    pub ci95: Option<f64>,
    /// The verdict on this number.
    pub verdict: Verdict,
    /// Whether the bound is closer to the mean than the full width of the interval.
    pub knife_edge: bool,
}

/// Verdict on a claim, ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No bound: the number can neither hold nor fail.
    Recorded,
    /// The interval of the mean lies within the bound.
    Holds,
    /// The interval of the mean straddles the bound.
    Undecided,
    /// The claim fails, and the file states why and where it was searched for.
    Refuted,
    /// The interval of the mean lies beyond the bound, or there is no number.
    Fails,
}

impl Verdict {
    /// Name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Holds => "holds",
            Self::Undecided => "undecided",
            Self::Refuted => "refuted",
            Self::Fails => "fails",
        }
    }
}

/// Number of claims by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Claims that hold.
    pub hold: usize,
    /// Claims that hold, with a bound near the mean.
    pub on_edge: usize,
    /// Claims that hold although the file marks them as refuted.
    pub hold_refuted: usize,
    /// Claims whose interval straddles the bound.
    pub undecided: usize,
    /// Claims that fail as the file says.
    pub refuted: usize,
    /// Claims that fail.
    pub fail: usize,
    /// Numbers without a bound, which are no claims.
    pub recorded: usize,
}

impl Tally {
    /// Counts `claims`.
    #[must_use]
    pub fn of<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Self {
        let mut tally = Self::default();
        for claim in claims {
            let count = match claim.verdict {
                Verdict::Holds => &mut tally.hold,
                Verdict::Undecided => &mut tally.undecided,
                Verdict::Refuted => &mut tally.refuted,
                Verdict::Fails => &mut tally.fail,
                Verdict::Recorded => &mut tally.recorded,
            };
            *count += 1;
            tally.on_edge += usize::from(claim.verdict == Verdict::Holds && claim.knife_edge());
            tally.hold_refuted += usize::from(claim.holds_though_refuted());
        }
        tally
    }

    /// Number of all claims; recorded numbers are not claims.
    #[must_use]
    pub const fn claims(&self) -> usize {
        self.hold + self.undecided + self.refuted + self.fail
    }
}

/// Compares the measurements of a plan with the papers' claims, in the order of the plan.
#[must_use]
pub fn judge(plan: &Plan, results: &Results) -> Vec<Claim> {
    let mut all = Vec::new();
    for paper in &plan.papers {
        let mut claims = claims_of(&paper.experiments, results);
        for planned in paper.variants.iter().filter(|planned| planned.variant.beside) {
            for other in claims_of(&planned.experiments, results) {
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
    results: &Results,
) -> Vec<Claim> {
    let of_experiment = |planned: &PlannedExperiment| -> Vec<Claim> {
        let runs = planned.runs(results);
        let claim =
            |(metric, labels): (&Metric, &Vec<String>)| claim(planned, metric, labels, &runs, results.seeds);
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

/// Samples the `count` numbers of a measure.
pub(crate) fn sample(
    measure: &Measure,
    runs: &Runs<'_, RunOutcomes>,
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
    planned: &PlannedExperiment,
    metric: &Metric,
    labels: &[String],
    runs: &Runs<'_, RunOutcomes>,
    seeds: usize,
) -> Claim {
    let element = |(k, (label, Sampled { estimate, ideal })): (usize, (&String, Sampled))| {
        let measured = estimate.map_or(f64::NAN, |estimate| estimate.mean);
        let published = metric.published();
        let published = published.get(k % published.len().max(1)).copied();
        let ci95 = estimate.and_then(|estimate| estimate.ci95).filter(|half| half.is_finite());
        let (verdict, knife_edge) = metric.judge(published, measured, ci95.unwrap_or(0.0));
        Element { label: label.clone(), published, ideal, measured, ci95, verdict, knife_edge }
    };
    let sampled = sample(&metric.measure, runs, seeds, labels.len());
    let elements: Vec<Element> = labels.iter().zip(sampled).enumerate().map(element).collect();
    let worst = elements.iter().map(|element| element.verdict).max().unwrap_or(Verdict::Fails);
    let is_refuted = metric.refuted.is_some() && planned.control.is_none();
    Claim {
        experiment: planned.experiment.id.clone(),
        metric: metric.clone(),
        elements,
        verdict: if is_refuted && worst == Verdict::Fails { Verdict::Refuted } else { worst },
        seeds,
        control: planned.control.clone(),
        variants: Vec::new(),
    }
}

/// Replaces rounding errors of zero, for example in the spread of equal shares, by zero.
fn clean(x: f64) -> f64 {
    if x.abs() < EPSILON { 0.0 } else { x }
}

impl Metric {
    /// Distance of `measured` inside the bound; NaN if unmeasured. Without a bound, greater for a number
    /// nearer to the published value.
    fn margin(&self, value: f64, measured: f64) -> f64 {
        let widened = self.tol_abs.unwrap_or(0.0);
        match self.op {
            Op::Approx => {
                self.tol_abs.unwrap_or(self.tol_rel.unwrap_or(0.0) * value.abs()) - (measured - value).abs()
            }
            Op::Ge | Op::Gt => measured - (value - widened),
            Op::Le | Op::Lt => value + widened - measured,
            Op::Record => -(measured - value).abs(),
        }
    }

    /// Judges a mean with an interval of `half` to each side. Also returns whether the bound is closer than
    /// twice `half`.
    fn judge(&self, value: Option<f64>, measured: f64, half: f64) -> (Verdict, bool) {
        let Some(value) = value.filter(|_| self.op != Op::Record) else { return (Verdict::Recorded, false) };
        if !measured.is_finite() {
            return (Verdict::Fails, false);
        }
        // A decimal tolerance includes values at its edge: 0.07 - 0.05 is 0.02 but for rounding.
        let rounding = 1e-12 * value.abs().max(measured.abs());
        let margin = self.margin(value, measured);
        let is_inside = match self.op {
            Op::Gt | Op::Lt => margin > 0.0,
            _ => margin >= -rounding,
        };
        // Seeds that differ only by rounding have no interval.
        let half = if half > rounding.max(EPSILON) { half } else { 0.0 };
        let verdict = match is_inside {
            _ if margin.abs() < half => Verdict::Undecided,
            true => Verdict::Holds,
            false => Verdict::Fails,
        };
        (verdict, margin.abs() < 2.0 * half)
    }

    /// Relative distance of `measured` from the published number; `None` if that is a bound.
    pub(crate) fn deviation(&self, published: Option<f64>, measured: f64) -> Option<f64> {
        let is_number = matches!(self.op, Op::Approx | Op::Record);
        let published = published.filter(|value| is_number && *value != 0.0)?;
        Some(measured / published - 1.0).filter(|deviation| deviation.is_finite())
    }
}

impl Claim {
    /// Whether both are the same claim, possibly of another variant.
    #[must_use]
    pub fn same_claim(&self, other: &Self) -> bool {
        self.experiment == other.experiment && self.metric.name == other.metric.name
    }

    /// Whether the claim was measured with a control with which it must fail.
    #[must_use]
    pub fn must_fail(&self) -> bool {
        self.control.as_ref().is_some_and(|control| self.metric.breaks.contains(control))
    }

    /// Whether the claim holds although the file marks it as refuted.
    #[must_use]
    pub fn holds_though_refuted(&self) -> bool {
        self.control.is_none() && self.metric.refuted.is_some() && self.verdict == Verdict::Holds
    }

    /// Whether a bound is closer to the mean of a number than the full width of its interval.
    #[must_use]
    pub fn knife_edge(&self) -> bool {
        self.elements.iter().any(|element| element.knife_edge)
    }

    /// Whether this claim makes the whole run fail: it fails, holds though marked as refuted, or holds with a control with
    /// which it must fail.
    #[must_use]
    pub fn fails_run(&self) -> bool {
        match self.control {
            Some(_) => self.must_fail() && self.verdict == Verdict::Holds,
            None => self.verdict == Verdict::Fails || self.holds_though_refuted(),
        }
    }

    /// One element per published number. Where one number is published for several, the element closest to
    /// the bound represents them: if it holds, all do. All elements if nothing is published.
    #[must_use]
    pub fn representatives(&self) -> Vec<&Element> {
        let room =
            |element: &Element| element.published.map(|value| self.metric.margin(value, element.measured));
        let least = |a: &&Element, b: &&Element| match (room(a), room(b)) {
            (Some(a), Some(b)) if a.is_nan() || b.is_nan() => b.is_nan().cmp(&a.is_nan()),
            (a, b) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        };
        let count = self.metric.value.as_ref().map_or(self.elements.len(), |value| value.all().len()).max(1);
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
            published: self.metric.value.as_ref(),
            ideal: ideal.map(|ideal| as_published(ideal.into_iter().map(Some).collect())),
            measured: self.measured(),
            ci95: as_published(chosen.iter().map(|element| element.ci95).collect()),
            deviation: as_published(chosen.iter().map(|element| self.deviation(element)).collect()),
            seeds: self.seeds,
            op: self.metric.op,
            verdict: self.verdict,
            knife_edge: self.knife_edge(),
            refuted: self.metric.refuted.as_ref(),
            control: self.control.as_deref(),
            must_fail: self.control.as_ref().map(|_| self.must_fail()),
            variants: self.variants.iter().map(|(name, other)| (name.as_str(), other.measured())).collect(),
        }
    }

    /// Relative distance of a number from the published one; `None` if that is a bound.
    pub(crate) fn deviation(&self, element: &Element) -> Option<f64> {
        self.metric.deviation(element.published, element.measured)
    }

    /// The measured numbers: a list if several are published, else a single number.
    #[must_use]
    pub fn measured(&self) -> Numbers<Option<f64>> {
        let finite = |element: &&Element| Some(element.measured).filter(|x| x.is_finite());
        self.as_published(self.representatives().iter().map(finite).collect())
    }

    fn as_published(&self, all: Vec<Option<f64>>) -> Numbers<Option<f64>> {
        match (&self.metric.value, all.as_slice()) {
            (Some(Numbers::One(_)) | None, [one]) => Numbers::One(*one),
            _ => Numbers::Many(all),
        }
    }
}

/// Fields of a claim in a JSON line.
#[derive(Debug, Serialize)]
pub struct Row<'a> {
    /// The id of the experiment.
    pub experiment: &'a str,
    /// The name of the metric.
    pub metric: &'a str,
    /// Unit of all numbers.
    pub unit: &'a str,
    /// The published values; null if there is nothing to compare with.
    pub published: Option<&'a Numbers>,
    /// Values with every flow at its entitlement; `None` if unknown.
    pub ideal: Option<Numbers<Option<f64>>>,
    /// Means over seeds; null if not finite.
    pub measured: Numbers<Option<f64>>,
    /// Half the 95 % confidence intervals.
    pub ci95: Numbers<Option<f64>>,
    /// measured / published - 1; null where the published value is a bound, zero or missing.
    pub deviation: Numbers<Option<f64>>,
    /// Replications.
    pub seeds: usize,
    /// The comparison of measured and published values.
    pub op: Op,
    pub verdict: Verdict,
    /// Whether the bound is closer to the mean than the full width of the interval.
    pub knife_edge: bool,
    /// Why the claim is known not to hold, even if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refuted: Option<&'a Refutation>,
    /// Control with which the claim was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<&'a str>,
    /// Whether the claim must fail with the control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub must_fail: Option<bool>,
    /// Means over seeds in variants, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(rename = "beside")]
    pub variants: BTreeMap<&'a str, Numbers<Option<f64>>>,
}
