//! Sweeps: the same run at several values of something, such as the size of a buffer, and what is made of the
//! numbers along them.

use std::collections::BTreeMap;

use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::expect::text_of;
use crate::fit;
use crate::measure::{Fault, Labelled, Measure, Measured, Of, Runs};
use apportion_report::statistics::mean;

/// Values along which runs differ. Keys move together: point k has the kth value of each.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sweep {
    /// What is swept, as an axis calls it.
    pub axis: String,
    /// Where its points are on the axis, ascending.
    pub at: Vec<f64>,
    /// As `set` of a run, with a list of as many values.
    pub set: BTreeMap<String, Vec<toml::Value>>,
}

impl Sweep {
    /// What point `k` sets, as paths and texts.
    pub(crate) fn overrides(&self, k: usize) -> Vec<(String, String)> {
        self.set.iter().filter_map(|(path, values)| Some((path.clone(), text_of(values.get(k)?)))).collect()
    }

    /// What is wrong with it: the key, and a message with the mend.
    pub(crate) fn check(&self) -> Option<(String, String)> {
        if self.at.is_empty() || self.at.windows(2).any(|pair| pair[0] >= pair[1]) {
            let message = "where are the points? write numbers in ascending order, for example [10, 20]";
            return Some(("at".to_owned(), message.to_owned()));
        }
        let wrong = self.set.iter().find(|(_, values)| values.len() != self.at.len());
        wrong.map(|(path, values)| {
            let message = format!("{} values for {} points; write one for each", values.len(), self.at.len());
            (format!("set.{path}"), message)
        })
    }
}

/// A run: one, or one for each point of its sweep.
#[derive(Clone, Debug)]
pub struct Points<'a, T> {
    /// In the order of the sweep.
    pub all: Vec<&'a T>,
    /// None for a single run.
    pub sweep: Option<&'a Sweep>,
}

impl<'a, T> Points<'a, T> {
    /// A run without a sweep.
    #[must_use]
    pub fn single(run: &'a T) -> Self {
        Self { all: vec![run], sweep: None }
    }
}

/// The sweep of these runs; they have the same points.
///
/// # Errors
/// If none of them is swept, or two differ.
pub fn sweep_of<'a, T>(runs: &Runs<'a, T>) -> Result<&'a Sweep, Fault> {
    let mut swept = runs.iter().filter_map(|(name, points)| Some((name, points.sweep?)));
    let Some((first, sweep)) = swept.next() else {
        return Err(("of", "no run of the experiment is swept; give one a `sweep`".to_owned()));
    };
    match swept.find(|(_, other)| other.at != sweep.at) {
        None => Ok(sweep),
        Some((other, _)) => {
            Err(("of", format!("runs `{first}` and `{other}` have different points; write the same `at`")))
        }
    }
}

/// All runs at point `k`; those without a sweep stand at every point.
pub(crate) fn at_point<'a, T>(runs: &Runs<'a, T>, k: usize) -> Runs<'a, T> {
    let point = |(name, points): (&&'a str, &Points<'a, T>)| match points.sweep {
        None => Some((*name, Points { all: points.all.clone(), sweep: None })),
        Some(_) => Some((*name, Points::single(*points.all.get(k)?))),
    };
    runs.iter().filter_map(point).collect()
}

/// A measure at every point of a sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverSweep {
    /// One number at each point.
    pub of: Box<Measure>,
    /// What becomes of them.
    #[serde(default)]
    pub give: Along,
    /// Points from here on the axis; from the first if absent.
    pub from: Option<f64>,
    /// Points up to here; to the last if absent.
    pub to: Option<f64>,
}

/// What becomes of the numbers along a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// One for each point.
    #[default]
    Each,
    /// Their mean; points count alike, wherever they are on the axis.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Of the least-squares line with intercept over the axis.
    Slope,
}

/// A figure with a curve for each of several measures along the sweep.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepFigure {
    /// What it shows.
    pub title: String,
    /// The vertical axis.
    pub y: String,
    /// A curve each: one number at each point.
    pub series: Vec<Labelled>,
}

impl SweepFigure {
    pub(crate) fn check(&self, runs: &Runs<'_, Scenario>) -> Result<(), Fault> {
        for series in &self.series {
            let of = Box::new(series.measure.clone());
            OverSweep { of, give: Along::Each, from: None, to: None }.labels(runs)?;
        }
        Ok(())
    }
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
            Along::Each => Ok(chosen.iter().map(|&k| crate::text::plain(sweep.at[k])).collect()),
            _ => Ok(vec![String::new()]),
        }
    }

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let sweep = sweep_of(runs).ok()?;
        let point = |k: usize| -> Option<(f64, f64)> {
            let [y] = self.of.take(&at_point(runs, k), what)?[..] else { return None };
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
