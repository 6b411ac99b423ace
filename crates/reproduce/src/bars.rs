//! Figures with groups of bars: a group for each of several names, and in each a bar for each of several
//! measures.

use apportion_report::statistics::Estimate;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::measure::{Fault, Labelled, Measure, Measured, Of, Runs};

/// A figure with a group of bars for each of its names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BarFigure {
    /// What it shows.
    pub title: String,
    /// The vertical axis.
    pub y: String,
    /// Names below the groups.
    pub groups: Vec<String>,
    /// A bar in each group: a number for each group.
    pub series: Vec<Labelled>,
    /// A line across each group, what its bars should be: a number for each group.
    pub ideal: Option<Measure>,
}

impl BarFigure {
    pub(crate) fn check(&self, runs: &Runs<'_, Scenario>) -> Result<(), Fault> {
        if self.groups.is_empty() {
            return Err(("groups", "there is none; write a name for each group of bars".to_owned()));
        }
        for series in &self.series {
            self.fits(&series.measure, runs)
                .map_err(|message| ("series", format!("`{}`: {message}", series.label)))?;
        }
        self.ideal.as_ref().map_or(Ok(()), |ideal| self.fits(ideal, runs)).map_err(|fault| ("ideal", fault))
    }

    fn fits(&self, measure: &Measure, runs: &Runs<'_, Scenario>) -> Result<(), String> {
        let labels = measure.labels(runs).map_err(|(key, message)| format!("measure.{key}: {message}"))?;
        if labels.len() == self.groups.len() {
            return Ok(());
        }
        let (numbers, groups) = (labels.len(), self.groups.len());
        Err(format!("{numbers} numbers for {groups} groups; write one for each"))
    }

    /// What `measure` gives for each group, over `seeds`; `None` where that cannot be said.
    pub(crate) fn estimates(
        &self,
        measure: &Measure,
        runs: &Runs<'_, Measured>,
        seeds: usize,
    ) -> Vec<Option<Estimate>> {
        let taken: Option<Vec<Vec<f64>>> =
            (0..seeds).map(|seed| measure.take(runs, Of::Seed(seed))).collect();
        let taken = taken.unwrap_or_default();
        let group = |k: usize| {
            let samples: Option<Vec<f64>> = taken.iter().map(|numbers| numbers.get(k).copied()).collect();
            Estimate::of(&samples?).filter(|estimate| estimate.mean.is_finite())
        };
        (0..self.groups.len()).map(group).collect()
    }
}
