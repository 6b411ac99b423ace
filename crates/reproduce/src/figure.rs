//! What figures and tables of a page show.

use apportion_report::statistics::Estimate;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::measure::Measure;
use crate::measure::course::Course;
use crate::measure::over_sweep::{Along, OverSweep};
use crate::measure::step::StepTimes;
use crate::runs::{Attribute, Basis, Fault, Measured, Runs, flows_of, main_run, run_of, samples};
use crate::value::Length;

/// A figure or table of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Throughput of flows over what they hold: a mark for each, and a line for the entitlement.
    Shares {
        /// What it shows.
        title: String,
        /// The horizontal axis.
        on: Attribute,
        /// Each in a colour.
        series: Vec<SharesSeries>,
    },
    /// Throughput of flows over time.
    OverTime {
        /// What it shows.
        title: String,
        /// Which run.
        #[serde(default = "main_run")]
        run: String,
        /// A curve each.
        of: Vec<String>,
        /// What they should have.
        #[serde(default)]
        levels: Vec<Level>,
    },
    /// Claims side by side: a row for each element.
    Table {
        /// What it shows.
        title: String,
        /// What the rows are.
        head: String,
        /// The names of the rows.
        rows: Vec<String>,
        /// A published, an ideal and a measured column each.
        columns: Vec<Column>,
        /// The name of a last row.
        foot: Option<String>,
    },
    /// Measures along a sweep.
    OverSweep(SweepFigure),
    /// Measures of several things beside each other.
    Bars(BarFigure),
    /// Runs over time, against each other.
    RunningMean(RunningMean),
    /// What changes in the course of runs.
    Course(CourseFigure),
    /// What runs delivered, against one of them.
    AccumulatedDifference(DifferenceFigure),
}

/// Flows of a run in one colour.
#[derive(Clone, Debug, Deserialize)]
pub struct SharesSeries {
    /// In the legend.
    pub label: String,
    /// Which run.
    #[serde(default = "main_run")]
    pub run: String,
    /// Flows or groups.
    pub of: Vec<String>,
}

/// A dashed line.
#[derive(Clone, Debug, Deserialize)]
pub struct Level {
    /// Mb/s.
    pub at: f64,
    /// From here on; from the start if absent.
    pub from: Option<Length>,
    /// Up to here; to the end if absent.
    pub to: Option<Length>,
}

/// One claim of a table.
#[derive(Clone, Debug, Deserialize)]
pub struct Column {
    /// Above it.
    pub label: String,
    /// Of this experiment, or of another of the paper: left out if that is not part of the run.
    pub experiment: Option<String>,
    /// The claim, with a value for each row.
    pub metric: String,
    /// The claim in the last row.
    pub foot: Option<String>,
}

/// A measure in one colour of a figure.
#[derive(Clone, Debug, Deserialize)]
pub struct Labelled {
    /// In the legend.
    pub label: String,
    /// What is drawn.
    pub measure: Measure,
}

/// A figure with a curve for each of several measures along the sweep.
#[derive(Clone, Debug, Deserialize)]
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

/// A figure with a group of bars for each of its names.
#[derive(Clone, Debug, Deserialize)]
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
            (0..seeds).map(|seed| measure.evaluate(runs, Basis::Seed(seed))).collect();
        let taken = taken.unwrap_or_default();
        let group = |k: usize| {
            let samples: Option<Vec<f64>> = taken.iter().map(|numbers| numbers.get(k).copied()).collect();
            Estimate::of(&samples?).filter(|estimate| estimate.mean.is_finite())
        };
        (0..self.groups.len()).map(group).collect()
    }
}
/// A figure: throughput since the start of the run over time, the mean over flows, a curve for each run.
#[derive(Clone, Debug, Deserialize)]
pub struct RunningMean {
    /// What it shows.
    pub title: String,
    /// A curve each.
    pub series: Vec<SharesSeries>,
}

/// A figure: something over time, mean over seeds, a curve for each of several.
#[derive(Clone, Debug, Deserialize)]
pub struct CourseFigure {
    /// What it shows.
    pub title: String,
    /// A curve each, all of the same.
    pub series: Vec<LabelledCourse>,
    /// Where it begins; with the run if absent.
    pub from: Option<Length>,
    /// Where it ends; with the run if absent.
    pub to: Option<Length>,
    /// What the curves should have.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// Draws one seed, counting from 1, where a mean over seeds would blur what differs in phase.
    pub seed: Option<std::num::NonZeroUsize>,
    /// A step that the first curve answers to, in the first seed: response, settling and overshoot are marked.
    pub step: Option<StepTimes>,
}

/// A curve.
#[derive(Clone, Debug, Deserialize)]
pub struct LabelledCourse {
    /// In the legend.
    pub label: String,
    /// What is drawn.
    pub course: Course,
}

/// A figure: by how much what flows delivered in one run since its start exceeds what they delivered in others,
/// over time, mean over seeds.
#[derive(Clone, Debug, Deserialize)]
pub struct DifferenceFigure {
    /// What it shows.
    pub title: String,
    /// Flows or groups, together.
    pub of: Vec<String>,
    /// The run that the others are held against.
    pub alone: String,
    /// A curve for each of these runs.
    pub series: Vec<LabelledRun>,
}

/// A run as a curve.
#[derive(Clone, Debug, Deserialize)]
pub struct LabelledRun {
    /// In the legend.
    pub label: String,
    /// Which.
    pub run: String,
}

impl CourseFigure {
    pub(crate) fn check(&self, runs: &Runs<'_, Scenario>) -> Result<(), Fault> {
        let Some(first) = self.series.first() else {
            return Err(("series", "there is none; write a label and a course for each curve".to_owned()));
        };
        for one in &self.series {
            let in_series = |(key, message)| ("series", format!("`{}`: {key}: {message}", one.label));
            let scenario = one.course.check(runs).map_err(in_series)?;
            if one.course.show != first.course.show {
                return Err(("series", format!("`{}` shows something else; make two figures", one.label)));
            }
            samples(scenario, self.from, self.to)?;
        }
        match &self.step {
            Some(step) => {
                step.check(first.course.check(runs)?).map_err(|(key, m)| ("step", format!("{key}: {m}")))
            }
            None => Ok(()),
        }
    }
}

impl DifferenceFigure {
    pub(crate) fn check(&self, runs: &Runs<'_, Scenario>) -> Result<(), Fault> {
        if self.series.is_empty() {
            return Err(("series", "there is none; write a label and a run for each curve".to_owned()));
        }
        let alone = run_of(runs, &self.alone).map_err(|(_, message)| ("alone", message))?;
        flows_of(alone, &self.of)?;
        for one in &self.series {
            let scenario = run_of(runs, &one.run).map_err(|(_, message)| ("series", message))?;
            flows_of(scenario, &self.of)?;
            if (scenario.sample, scenario.stop) != (alone.sample, alone.stop) {
                let message = format!("`{}` has another `sample` or `stop` than `{}`", one.run, self.alone);
                return Err(("series", message));
            }
        }
        Ok(())
    }
}
