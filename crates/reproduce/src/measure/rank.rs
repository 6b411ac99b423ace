//! The rank of the first of several measures, element by element.

use apportion_scenario::model::Scenario;
use serde::Deserialize;

use super::Measure;
use super::elementwise::{combine, matching};
use crate::runs::{Basis, Fault, RunOutcomes, Runs};

/// The rank of the first measure: 1 if none is larger; equal ones share the mean of their ranks.
#[derive(Clone, Debug, Deserialize)]
pub struct Rank {
    pub of: Vec<Measure>,
}

/// 1 where the first is the largest, or below the largest by at most a fraction of it, else 0. Averaged along
/// a sweep, this is the fraction of points at which it is best.
#[derive(Clone, Debug, Deserialize)]
pub struct Best {
    pub of: Vec<Measure>,
    /// The tolerance, as a share of the largest.
    #[serde(default)]
    pub within: f64,
}

impl Rank {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        labels(&self.of, runs)
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        Some(combine(&evaluated(&self.of, runs, basis)?.iter().collect::<Vec<_>>(), rank))
    }
}

impl Best {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        labels(&self.of, runs)
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let best = |all: &[f64]| f64::from(u8::from(is_best(all, self.within)));
        Some(combine(&evaluated(&self.of, runs, basis)?.iter().collect::<Vec<_>>(), best))
    }
}

fn labels(of: &[Measure], runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
    if of.len() < 2 {
        return Err(("of", format!("{} measures; write two or more", of.len())));
    }
    let parts: Vec<_> = of.iter().map(|part| part.labels(runs)).collect::<Result<_, _>>()?;
    matching(parts)
}

fn evaluated(of: &[Measure], runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<Vec<f64>>> {
    of.iter().map(|part| part.evaluate(runs, basis)).collect()
}

fn rank(all: &[f64]) -> f64 {
    let Some((first, others)) = all.split_first() else { return f64::NAN };
    let larger = others.iter().filter(|other| *other > first).count();
    let equal = others.iter().filter(|other| *other == first).count();
    1.0 + larger as f64 + 0.5 * equal as f64
}

fn is_best(all: &[f64], within: f64) -> bool {
    let largest = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    all.first().is_some_and(|first| *first >= largest * (1.0 - within))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn the_largest_has_rank_one_and_equals_share_theirs() {
        assert!(close(rank(&[3.0, 1.0, 2.0]), 1.0));
        assert!(close(rank(&[1.0, 3.0, 2.0]), 3.0));
        // First and second are equal: (1 + 2) / 2.
        assert!(close(rank(&[3.0, 3.0, 2.0]), 1.5));
    }

    #[test]
    fn best_allows_a_share_of_the_largest() {
        // 0.996 is 0.4 % below 1.
        assert!(is_best(&[0.996, 1.0], 0.005));
        assert!(!is_best(&[0.994, 1.0], 0.005));
        assert!(!is_best(&[0.999, 1.0], 0.0));
        assert!(is_best(&[1.0, 1.0], 0.0));
    }
}
