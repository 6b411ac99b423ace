//! Times at which senders cut their windows: together, or one sender repeatedly.

use apportion_scenario::model::Scenario;
use serde::Deserialize;

use super::course::{Course, Show, teeth};
use crate::runs::{Basis, Fault, RunOutcomes, Runs, flows_of, main_run, run_of, samples};
use crate::value::Length;

/// Cuts of the congestion windows of several flows, from their courses: a cut is the end of a
/// [saw-tooth](super::course::SawTooth), at the end of that sample.
#[derive(Clone, Debug, Deserialize)]
pub struct Cuts {
    /// Flows or groups, each a TCP with one connection; all if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// The run; `main` if absent.
    #[serde(default = "main_run")]
    pub run: String,
    /// The number to compute.
    pub give: CutsNumber,
    /// Maximum distance in time, in whole samples.
    pub within: Length,
}

/// A number of cuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutsNumber {
    /// Pairs of cuts of two flows at most `within` apart, over the expected number if each flow's cuts fall
    /// on any sample with equal probability: 1 is chance, more is synchronisation.
    Together,
    /// Fraction of cuts after which the same flow cuts again at most `within` later.
    Again,
}

impl Cuts {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let scenario = run_of(runs, &self.run)?;
        for course in self.courses(scenario)? {
            course.check(runs)?;
        }
        let slots = samples(scenario, None, None)?.len();
        if !(1..slots).contains(&self.distance(scenario)) {
            let message = format!(
                "must be at least the sample of {}, and less than the measured part",
                scenario.sample
            );
            return Err(("within", message));
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let scenario = &run_of(runs, &self.run).ok()?.scenario;
        let slots = samples(scenario, None, None).ok()?;
        let cuts = |course: Course| -> Option<Vec<usize>> {
            let values = course.values(runs, seed)?;
            let values: Vec<f64> =
                values.get(slots.clone())?.iter().map(|value| value.unwrap_or(0.0)).collect();
            Some(teeth(&values).into_iter().map(|(at, _)| at).collect())
        };
        let cuts: Vec<Vec<usize>> =
            self.courses(scenario).ok()?.into_iter().map(cuts).collect::<Option<_>>()?;
        let distance = self.distance(scenario);
        let number = match self.give {
            CutsNumber::Together => together(&cuts, distance, slots.len()),
            CutsNumber::Again => again(&cuts, distance),
        };
        number.map(|number| vec![number])
    }

    /// The windows of the flows.
    fn courses(&self, scenario: &Scenario) -> Result<Vec<Course>, Fault> {
        let of = |at: usize| Course {
            show: Show::Window,
            of: scenario.flows[at].name.clone(),
            link: None,
            run: self.run.clone(),
        };
        Ok(flows_of(scenario, &self.of)?.into_iter().map(of).collect())
    }

    /// `within` in samples.
    fn distance(&self, scenario: &Scenario) -> usize {
        (self.within.0.as_nanos() / scenario.sample.as_nanos().max(1)) as usize
    }
}

/// See [`CutsNumber::Together`], over `slots` samples; none if no two flows have cuts.
fn together(cuts: &[Vec<usize>], distance: usize, slots: usize) -> Option<f64> {
    let d = distance as f64;
    // Probability that two independent and uniform slots are at most d apart.
    let chance = (slots as f64 * (2.0 * d + 1.0) - d * (d + 1.0)) / (slots as f64 * slots as f64);
    let (mut found, mut expected) = (0, 0.0);
    for (index, one) in cuts.iter().enumerate() {
        for other in &cuts[index + 1..] {
            expected += (one.len() * other.len()) as f64 * chance;
            found +=
                one.iter().map(|at| near(other, at.saturating_sub(distance), at + distance)).sum::<usize>();
        }
    }
    (expected > 0.0).then(|| found as f64 / expected)
}

/// Number of ascending slots from `first` to `last`.
fn near(slots: &[usize], first: usize, last: usize) -> usize {
    slots.partition_point(|slot| *slot <= last) - slots.partition_point(|slot| *slot < first)
}

/// See [`CutsNumber::Again`]; none without cuts.
fn again(cuts: &[Vec<usize>], distance: usize) -> Option<f64> {
    let all: usize = cuts.iter().map(Vec::len).sum();
    let repeated = |cuts: &Vec<usize>| cuts.windows(2).filter(|pair| pair[1] - pair[0] <= distance).count();
    (all > 0).then(|| cuts.iter().map(repeated).sum::<usize>() as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_different_flows_are_counted_against_chance() {
        // 10 slots, at most 1 apart: 28 of 100 pairs of slots. Flows with 2 and 1 cuts expect 0.56 pairs, and
        // have one.
        let cuts = [vec![2, 7], vec![8]];
        assert!((together(&cuts, 1, 10).unwrap() - 1.0 / 0.56).abs() < 1e-12);
        // Both flows cut in all slots: every possible pair, which is chance.
        let all: Vec<usize> = (0..10).collect();
        assert!((together(&[all.clone(), all], 3, 10).unwrap() - 1.0).abs() < 1e-12);
        // A flow is not compared with itself.
        assert_eq!(together(&[vec![1, 2], vec![]], 1, 10), None);
    }

    #[test]
    fn a_cut_is_repeated_if_the_next_of_the_same_flow_is_near() {
        // 3 to 5 counts, 5 to 9 does not, and flows do not mix: one of four cuts.
        assert_eq!(again(&[vec![3, 5, 9], vec![4]], 2), Some(0.25));
        assert_eq!(again(&[vec![]], 2), None);
    }
}
