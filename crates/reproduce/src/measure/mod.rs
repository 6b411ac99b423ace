//! Measures: how to compute a number from runs.
//!
//! A measure is computed per seed; means and intervals are over seeds. With entitlements in place of
//! throughputs, it gives the ideal value.

pub mod course;
pub mod cuts;
pub mod differing;
pub(crate) mod elementwise;
mod evaluate;
pub mod fit;
pub(crate) mod flows;
pub mod over_sweep;
pub mod rank;
pub mod step;
pub mod transfers;
pub mod windowed_jain;

use apportion_core::queue::DropReason;
use apportion_runtime::outcome::Distribution;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::runs::{Attribute, Fault, Runs, attributes_of, flows_of, link_of, main_run, run_of, samples};
use crate::value::{Length, Numbers};
use course::{Level, SawTooth};
use cuts::Cuts;
use differing::{AccumulatedError, Differing};
use elementwise::matching;
use over_sweep::OverSweep;
use rank::{Best, Rank};
use step::Step;
use transfers::TransferTime;
use windowed_jain::WindowedJain;

/// A number, or one per flow.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes on the wire that reached the sink, in Mb/s: over the measured part, or between two times.
    Throughput {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// Start of the window. With it or `to`, whole sample intervals within the window count.
        from: Option<Length>,
        /// End of the window.
        to: Option<Length>,
        /// Combination of the numbers of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// New payload delivered in order, Mb/s.
    Goodput(FlowSelection),
    /// Retransmission timeouts.
    Timeouts(FlowSelection),
    /// Mean, or a quantile, of the one-way delay of packets that reached the sink, in ms.
    Delay {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// The quantile, one of [`Distribution::SHARES`]; the mean if absent.
        share: Option<f64>,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// Combination of the numbers of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// Share of the packets that reached the sink later than after a time.
    Late {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// The one-way delay that they exceed.
        than: Length,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// Combination of the numbers of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// Packets that disciplines dropped.
    Drops {
        /// Flows or groups, over all links; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// A single reason; all reasons if absent.
        reason: Option<Reason>,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// Combination of the numbers of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// The entitlements of flows, Mb/s; they do not depend on the seed.
    Entitlement(FlowSelection),
    /// Utilisation of a link, 0 to 1.
    Utilisation {
        link: String,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
    },
    /// A statistic that the discipline of a link reports.
    Statistic {
        link: String,
        /// The name of the statistic, as the discipline reports it.
        name: String,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
    },
    /// A statistic that the discipline of a link reports per flow: the mean over a flow's connections, if it
    /// distinguishes them.
    FlowStatistic {
        link: String,
        /// The name of the statistic, as the discipline reports it.
        name: String,
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// All numbers or one.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// A straight line through throughput in Mb/s against an attribute of flows; see [`fit`].
    Fit {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// The horizontal axis.
        on: Attribute,
        /// The number to give of the line.
        give: FitNumber,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
    },
    /// |after / before - 1| of throughput.
    RelativeChange {
        /// Flows or groups.
        of: Vec<String>,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// The first window.
        before: [Length; 2],
        /// The second window.
        after: [Length; 2],
    },
    /// Settling time of throughputs, in seconds from `after`: the first sample time from which all means over
    /// consecutive windows stay within a fraction of the targets for the time `hold`. Infinite if they never
    /// settle.
    Settling {
        /// Flows or groups.
        of: Vec<String>,
        /// The run; `main` if absent.
        #[serde(default = "main_run")]
        run: String,
        /// Targets in Mb/s, one per flow.
        targets: Vec<f64>,
        /// Time of the disturbance.
        after: Length,
        /// Length of the window of each mean.
        window: Length,
        /// Tolerance, as a share of the target.
        within: f64,
        /// Time for which the means must stay.
        hold: Length,
    },
    Constant {
        value: Numbers,
    },
    /// The difference of two measures, element by element; a single number is used for every element.
    Difference {
        /// Two measures.
        of: Vec<Measure>,
    },
    /// The ratio of two measures, element by element like [`Self::Difference`].
    Quotient {
        /// Two measures.
        of: Vec<Measure>,
    },
    /// The relative difference |first / second - 1|, element by element like [`Self::Difference`].
    RelativeError {
        /// Two measures.
        of: Vec<Measure>,
    },
    /// The numbers of a measure, combined into one.
    Reduced {
        of: Box<Measure>,
        /// Combination of the numbers.
        #[serde(rename = "as")]
        shape: Shape,
    },
    /// The mean of several measures, element by element like [`Self::Difference`].
    Mean {
        of: Vec<Measure>,
    },
    /// The concatenation of several measures.
    List {
        of: Vec<Measure>,
    },
    OverSweep(OverSweep),
    Rank(Rank),
    Best(Best),
    WindowedJain(WindowedJain),
    Level(Level),
    Step(Step),
    SawTooth(SawTooth),
    Cuts(Cuts),
    AccumulatedError(AccumulatedError),
    Differing(Differing),
    TransferTime(TransferTime),
}

/// Flows of a run in a measure.
#[derive(Clone, Debug, Deserialize)]
pub struct FlowSelection {
    /// Flows or groups; all if empty.
    #[serde(default)]
    pub of: Vec<String>,
    /// The run; `main` if absent.
    #[serde(default = "main_run")]
    pub run: String,
    /// Combination of the numbers of several flows.
    #[serde(default, rename = "as")]
    pub shape: Shape,
}

/// Combination of the numbers of several flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// No combination: one number per flow.
    #[default]
    Each,
    Sum,
    Mean,
    /// The minimum.
    Min,
    /// The maximum.
    Max,
    Median,
    /// The smallest number that at least 95 % do not exceed.
    P95,
    /// The population standard deviation.
    Sigma,
    /// The Jain index.
    Jain,
}

/// A drop reason, by its name in results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    Early,
    Forced,
    Overflow,
    Policy,
    PushOut,
}

impl From<Reason> for DropReason {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Early => Self::Early,
            Reason::Forced => Self::Forced,
            Reason::Overflow => Self::Overflow,
            Reason::Policy => Self::Policy,
            Reason::PushOut => Self::PushOut,
        }
    }
}

/// A number of a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FitNumber {
    /// The slope of the line through the origin.
    Slope,
    /// R² of the line through the origin.
    R2,
    /// Maximum relative deviation from the line through the origin, among the quarter with the smallest x.
    LowestQuartileDeviation,
    /// The slope of the line through the logarithms.
    LoglogSlope,
}

impl Measure {
    /// Checks the measure against the scenarios of its runs, and returns a label for each number.
    ///
    /// # Errors
    /// The first problem found.
    pub fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let flows = |run: &str, of: &[String], shape: Shape| {
            let scenario = run_of(runs, run)?;
            let flows = flows_of(scenario, of)?;
            match shape {
                Shape::Each => Ok(flows.iter().map(|&at| scenario.flows[at].name.clone()).collect()),
                _ => one_number(),
            }
        };
        match self {
            Self::Throughput { of, run, from, to, shape } => {
                if from.is_some() || to.is_some() {
                    samples(run_of(runs, run)?, *from, *to)?;
                }
                flows(run, of, *shape)
            }
            Self::Delay { share: Some(share), .. } if !Distribution::SHARES.contains(share) => {
                Err(("share", format!("{share} is none of {:?}", Distribution::SHARES)))
            }
            Self::Delay { of, run, shape, .. }
            | Self::Late { of, run, shape, .. }
            | Self::Goodput(FlowSelection { of, run, shape })
            | Self::Timeouts(FlowSelection { of, run, shape })
            | Self::Entitlement(FlowSelection { of, run, shape })
            | Self::Drops { of, run, shape, .. } => flows(run, of, *shape),
            Self::FlowStatistic { link, of, run, shape, .. } => {
                link_of(run_of(runs, run)?, link)?;
                flows(run, of, *shape)
            }
            Self::Utilisation { link, run } | Self::Statistic { link, run, .. } => {
                link_of(run_of(runs, run)?, link)?;
                one_number()
            }
            Self::Fit { of, run, on, .. } => {
                let scenario = run_of(runs, run)?;
                if attributes_of(scenario, &flows_of(scenario, of)?, *on)?.len() < 2 {
                    return Err(("of", "a line needs at least two flows".to_owned()));
                }
                one_number()
            }
            Self::RelativeChange { of, run, before, after } => {
                for [from, to] in [before, after] {
                    samples(run_of(runs, run)?, Some(*from), Some(*to))?;
                }
                flows(run, of, Shape::Each)
            }
            Self::Settling { of, run, targets, after, window, hold, .. } => {
                let count = flows(run, of, Shape::Each)?.len();
                check_settling(run_of(runs, run)?, count, targets, [*after, *window, *hold])?;
                one_number()
            }
            Self::Constant { .. }
            | Self::Difference { .. }
            | Self::Quotient { .. }
            | Self::RelativeError { .. }
            | Self::Reduced { .. }
            | Self::Mean { .. }
            | Self::List { .. } => self.combined_labels(runs),
            Self::OverSweep(measure) => measure.labels(runs),
            Self::Rank(measure) => measure.labels(runs),
            Self::Best(measure) => measure.labels(runs),
            Self::WindowedJain(measure) => measure.labels(runs),
            Self::Level(measure) => measure.labels(runs),
            Self::Step(measure) => measure.labels(runs),
            Self::SawTooth(measure) => measure.labels(runs),
            Self::Cuts(measure) => measure.labels(runs),
            Self::AccumulatedError(measure) => measure.labels(runs),
            Self::Differing(measure) => measure.labels(runs),
            Self::TransferTime(measure) => measure.labels(runs),
        }
    }

    /// Whether the measure depends on the outcomes of runs, rather than on constants and entitlements alone.
    pub(crate) fn is_measured(&self) -> bool {
        let any = |of: &[Self]| of.iter().any(Self::is_measured);
        match self {
            Self::Constant { .. } | Self::Entitlement(_) => false,
            Self::Difference { of }
            | Self::Quotient { of }
            | Self::RelativeError { of }
            | Self::Mean { of }
            | Self::List { of } => any(of),
            Self::Reduced { of, .. } => of.is_measured(),
            Self::OverSweep(measure) => measure.of.is_measured(),
            Self::Rank(measure) => any(&measure.of),
            Self::Best(measure) => any(&measure.of),
            _ => true,
        }
    }

    /// The labels of constants and of combined measures.
    fn combined_labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let parts = |of: &[Self]| -> Result<Vec<Vec<String>>, Fault> {
            of.iter().map(|part| part.labels(runs)).collect()
        };
        match self {
            Self::Difference { of } | Self::Quotient { of } | Self::RelativeError { of } if of.len() != 2 => {
                Err(("of", format!("{} measures; write two", of.len())))
            }
            Self::Difference { of }
            | Self::Quotient { of }
            | Self::RelativeError { of }
            | Self::Mean { of } => matching(parts(of)?),
            Self::Reduced { of, shape } => match (of.labels(runs)?, shape) {
                (labels, Shape::Each) => Ok(labels),
                _ => one_number(),
            },
            Self::List { of } => Ok(parts(of)?.concat()),
            Self::Constant { value } => Ok(vec![String::new(); value.all().len()]),
            _ => one_number(),
        }
    }
}

/// The labels of a measure that is one number.
fn one_number() -> Result<Vec<String>, Fault> {
    Ok(vec![String::new()])
}

/// See [`Measure::Settling`]. `times` are after, window and hold.
fn check_settling(
    scenario: &Scenario,
    flows: usize,
    targets: &[f64],
    times: [Length; 3],
) -> Result<(), Fault> {
    let [after, window, hold] = times;
    if flows != targets.len() {
        return Err(("targets", format!("{} for {flows} flows; write one for each", targets.len())));
    }
    if window.0 < scenario.sample || hold.0 < window.0 {
        let message = format!("must be at least the sample of {}, and `hold` no less", scenario.sample);
        return Err(("window", message));
    }
    samples(scenario, Some(after), Some(Length(after.0 + hold.0)))
        .map_err(|(_, message)| ("hold", message))?;
    Ok(())
}
