//! Figures and tables of a page.

use apportion_report::statistics::Estimate;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::measure::Measure;
use crate::measure::course::Course;
use crate::measure::over_sweep::{Along, OverSweep};
use crate::measure::step::StepTimes;
use crate::runs::{Attribute, Basis, Fault, RunOutcomes, Runs, flows_of, main_run, run_of, samples};
use crate::value::Length;

/// A figure or table of the page.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Throughput of flows against one of their attributes: a mark per flow, and a line for the entitlement.
    Shares {
        title: String,
        /// The horizontal axis.
        on: Attribute,
        /// Series of flows, each in its own colour.
        series: Vec<SharesSeries>,
    },
    /// Throughput of flows over time.
    OverTime {
        title: String,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// Flows or groups; a curve per flow.
        of: Vec<String>,
        /// Target rates, drawn as dashed lines.
        #[serde(default)]
        levels: Vec<Level>,
    },
    /// Claims side by side: a row per element.
    Table {
        title: String,
        /// The heading of the first column.
        head: String,
        /// The names of the rows.
        rows: Vec<String>,
        /// Claims, each with a published, an ideal and a measured column.
        columns: Vec<Column>,
        /// The name of a last row.
        foot: Option<String>,
    },
    /// Measures along a sweep.
    OverSweep(SweepFigure),
    /// Measures as groups of bars.
    Bars(BarFigure),
    /// Throughput since the start of the run, for several runs.
    RunningMean(RunningMean),
    /// A quantity over time.
    Course(CourseFigure),
    /// The difference of delivered bytes between one run and others.
    AccumulatedDifference(DifferenceFigure),
}

/// Flows of a run in one colour.
#[derive(Clone, Debug, Deserialize)]
pub struct SharesSeries {
    /// The label in the legend.
    pub label: String,
    /// The run; `main` if absent.
    #[serde(default = "main_run")]
    pub run: String,
    /// Flows or groups.
    pub of: Vec<String>,
}

/// A dashed line.
#[derive(Clone, Debug, Deserialize)]
pub struct Level {
    /// The rate, Mb/s.
    pub at: f64,
    /// Start; the start of the run if absent.
    pub from: Option<Length>,
    /// End; the end of the run if absent.
    pub to: Option<Length>,
}

/// One claim of a table.
#[derive(Clone, Debug, Deserialize)]
pub struct Column {
    /// The heading of its columns.
    pub label: String,
    /// The experiment of the claim: this one if absent. The column is left out if another one was not chosen.
    pub experiment: Option<String>,
    /// The claim, with a value for each row.
    pub metric: String,
    /// The claim in the last row.
    pub foot: Option<String>,
}

/// A measure in one colour of a figure.
#[derive(Clone, Debug, Deserialize)]
pub struct Labelled {
    /// The label in the legend.
    pub label: String,
    /// The measure to draw.
    pub measure: Measure,
}

/// A figure with several measures along the sweep, a curve each.
#[derive(Clone, Debug, Deserialize)]
pub struct SweepFigure {
    pub title: String,
    /// The vertical axis.
    pub y: String,
    /// Measures, a curve each: one number at each point.
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

/// A figure with a group of bars for each name.
#[derive(Clone, Debug, Deserialize)]
pub struct BarFigure {
    pub title: String,
    /// The vertical axis.
    pub y: String,
    /// Names below the groups.
    pub groups: Vec<String>,
    /// Measures, a bar in each group: one number per group.
    pub series: Vec<Labelled>,
    /// Target of the bars, drawn as a line across each group: one number per group.
    pub ideal: Option<Measure>,
}

impl BarFigure {
    pub(crate) fn check(&self, runs: &Runs<'_, Scenario>) -> Result<(), Fault> {
        if self.groups.is_empty() {
            return Err(("groups", "it is empty; write a name for each group of bars".to_owned()));
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

    /// Estimates of the measure over `seeds`, one per group; `None` where undefined.
    pub(crate) fn estimates(
        &self,
        measure: &Measure,
        runs: &Runs<'_, RunOutcomes>,
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
/// A figure of the throughput since the start of the run over time: the mean over flows, a curve per run.
#[derive(Clone, Debug, Deserialize)]
pub struct RunningMean {
    pub title: String,
    /// Runs, a curve each.
    pub series: Vec<SharesSeries>,
}

/// A figure of a quantity over time, averaged over seeds, with several curves.
#[derive(Clone, Debug, Deserialize)]
pub struct CourseFigure {
    pub title: String,
    /// Curves, all of the same quantity.
    pub series: Vec<LabelledCourse>,
    /// Start; the start of the run if absent.
    pub from: Option<Length>,
    /// End; the end of the run if absent.
    pub to: Option<Length>,
    /// The target of the curves.
    #[serde(default)]
    pub levels: Vec<Level>,
    /// Seed to draw alone, counting from 1, where a mean over seeds would blur differences in phase.
    pub seed: Option<std::num::NonZeroUsize>,
    /// A step of the target: response, settling and overshoot of the first curve in the first seed are marked.
    pub step: Option<StepTimes>,
}

/// A curve.
#[derive(Clone, Debug, Deserialize)]
pub struct LabelledCourse {
    /// The label in the legend.
    pub label: String,
    /// The measure to draw.
    pub course: Course,
}

/// A figure of the bytes that flows delivered in one run minus those in other runs, accumulated over time and
/// averaged over seeds.
#[derive(Clone, Debug, Deserialize)]
pub struct DifferenceFigure {
    pub title: String,
    /// Flows or groups, together.
    pub of: Vec<String>,
    /// The reference run.
    pub alone: String,
    /// A curve for each of these runs.
    pub series: Vec<LabelledRun>,
}

/// A run as a curve.
#[derive(Clone, Debug, Deserialize)]
pub struct LabelledRun {
    /// The label in the legend.
    pub label: String,
    pub run: String,
}

impl CourseFigure {
    pub(crate) fn check(&self, runs: &Runs<'_, Scenario>) -> Result<(), Fault> {
        let Some(first) = self.series.first() else {
            return Err(("series", "it is empty; write a label and a course for each curve".to_owned()));
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
            return Err(("series", "it is empty; write a label and a run for each curve".to_owned()));
        }
        let alone = run_of(runs, &self.alone).map_err(|(_, message)| ("alone", message))?;
        flows_of(alone, &self.of)?;
        for one in &self.series {
            let scenario = run_of(runs, &one.run).map_err(|(_, message)| ("series", message))?;
            flows_of(scenario, &self.of)?;
            if (scenario.sample, scenario.stop) != (alone.sample, alone.stop) {
                let message =
                    format!("`{}` must have the same `sample` and `stop` as `{}`", one.run, self.alone);
                return Err(("series", message));
            }
        }
        Ok(())
    }
}
