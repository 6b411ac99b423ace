//! A measure along a sweep, reduced to one number or kept as a list.

use apportion_report::statistics::mean;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use super::{Measure, fit};
use crate::runs::{Basis, Fault, RunOutcomes, Runs, Sweep, at_point, sweep_of};
use crate::value::plain;

/// A measure at every point of a sweep.
#[derive(Clone, Debug, Deserialize)]
pub struct OverSweep {
    /// One number at each point.
    pub of: Box<Measure>,
    /// Combination of the numbers.
    #[serde(default)]
    pub give: Along,
    /// Points from here on the axis; from the first if absent.
    pub from: Option<f64>,
    /// Points up to here; to the last if absent.
    pub to: Option<f64>,
}

/// Combination of the numbers along a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// No combination: one number per point.
    #[default]
    Each,
    /// The mean; all points have equal weight, whatever their spacing.
    Mean,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    /// The slope of the least-squares line with intercept over the axis.
    Slope,
}

impl OverSweep {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let sweep = sweep_of(runs)?;
        let chosen = self.chosen(sweep);
        if chosen.len() < if self.give == Along::Slope { 2 } else { 1 } {
            return Err(("from", "too few points lie between it and `to`; widen the range".to_owned()));
        }
        for &k in &chosen {
            let count = self.of.labels(&at_point(runs, k))?.len();
            if count != 1 {
                let message =
                    format!("{count} numbers at each point; make it one, for example as = \"mean\"");
                return Err(("of", message));
            }
        }
        match self.give {
            Along::Each => Ok(chosen.iter().map(|&k| plain(sweep.at[k])).collect()),
            _ => Ok(vec![String::new()]),
        }
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let sweep = sweep_of(runs).ok()?;
        let point = |k: usize| -> Option<(f64, f64)> {
            let [y] = self.of.evaluate(&at_point(runs, k), basis)?[..] else { return None };
            Some((*sweep.at.get(k)?, y))
        };
        let points: Vec<(f64, f64)> = self.chosen(sweep).into_iter().map(point).collect::<Option<_>>()?;
        let ys: Vec<f64> = points.iter().map(|point| point.1).collect();
        let one = match self.give {
            Along::Each => return Some(ys),
            Along::Mean => mean(&ys),
            Along::Min => ys.into_iter().min_by(f64::total_cmp),
            Along::Max => ys.into_iter().max_by(f64::total_cmp),
            Along::Slope => fit::slope(&points),
        };
        one.map(|one| vec![one])
    }

    /// Indices of points.
    fn chosen(&self, sweep: &Sweep) -> Vec<usize> {
        let within = |x: f64| self.from.is_none_or(|from| x >= from) && self.to.is_none_or(|to| x <= to);
        sweep.at.iter().enumerate().filter(|(_, x)| within(**x)).map(|(k, _)| k).collect()
    }
}
