//! How a number is computed from runs.
//!
//! A measure is computed for each seed by itself; means and intervals are over seeds. The same measure taken
//! of entitlements in place of throughputs is what it would be if every flow got its due.

pub mod course;
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
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::runs::{Attribute, Fault, Runs, attributes_of, flows_of, link_of, main_run, run_of, samples};
use crate::value::{Length, Numbers};
use course::{Level, SawTooth};
use differing::{AccumulatedError, Differing};
use elementwise::matching;
use over_sweep::OverSweep;
use rank::{Best, Rank};
use step::Step;
use transfers::TransferTime;
use windowed_jain::WindowedJain;

/// A number, or one for each of several flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Bytes on the wire that reached the sink, Mb/s: of the measured part, or between two times.
    Throughput {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// Start of the window; with it or `to`, whole sample intervals within the window count.
        from: Option<Length>,
        /// End of the window.
        to: Option<Length>,
        /// What becomes of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// New payload delivered in order, Mb/s.
    Goodput {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// What becomes of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// Retransmission timeouts.
    Timeouts {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// What becomes of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// Packets that disciplines dropped.
    Drops {
        /// Flows or groups, over all links; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// Of one reason; of all if absent.
        reason: Option<Reason>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// What becomes of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// What flows are entitled to, Mb/s, whatever the seed.
    Entitlement {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// What becomes of several flows.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// Bits transmitted over bits possible.
    Utilisation {
        /// Which link.
        link: String,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
    },
    /// What the discipline of a link reports of itself.
    Statistic {
        /// Which link.
        link: String,
        /// As the discipline calls it.
        name: String,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
    },
    /// What the discipline of a link reports of flows: the mean over a flow's connections, where it keeps them
    /// apart.
    FlowStatistic {
        /// Which link.
        link: String,
        /// As the discipline calls it.
        name: String,
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// All or one number.
        #[serde(default, rename = "as")]
        shape: Shape,
    },
    /// A straight line through throughput in Mb/s over an attribute of flows; see [`fit`](fit).
    Fit {
        /// Flows or groups; all if empty.
        #[serde(default)]
        of: Vec<String>,
        /// The horizontal axis.
        on: Attribute,
        /// Which number of the line.
        give: FitNumber,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
    },
    /// |after / before - 1| of throughput.
    RelativeChange {
        /// Flows or groups.
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// The first window.
        before: [Length; 2],
        /// The second window.
        after: [Length; 2],
    },
    /// Seconds after `after` until throughputs have come to stay: the first sample time from which on all
    /// means over consecutive windows, for as long as `hold`, are within a share of the targets. Infinite
    /// if that never happens.
    Settling {
        /// Flows or groups.
        of: Vec<String>,
        /// Of which run.
        #[serde(default = "main_run")]
        run: String,
        /// Mb/s, one for each flow.
        targets: Vec<f64>,
        /// When the disturbance is.
        after: Length,
        /// Length of a mean.
        window: Length,
        /// Share of the target.
        within: f64,
        /// How long they must stay.
        hold: Length,
    },
    /// Numbers as they are.
    Constant {
        /// The numbers.
        value: Numbers,
    },
    /// What each of several demands gets of an amount that SF-FC divides max-min fairly.
    WaterFilling {
        /// What there is.
        amount: f64,
        /// What each wants.
        demands: Vec<f64>,
    },
    /// The first less the second, element by element; a single number stands for as many as needed.
    Difference {
        /// Two measures.
        of: Vec<Measure>,
    },
    /// The first over the second, likewise.
    Quotient {
        /// Two measures.
        of: Vec<Measure>,
    },
    /// |first / second - 1|, likewise.
    RelativeError {
        /// Two measures.
        of: Vec<Measure>,
    },
    /// One number of all that a measure gives.
    Reduced {
        /// The measure.
        of: Box<Measure>,
        /// What becomes of its numbers.
        #[serde(rename = "as")]
        shape: Shape,
    },
    /// The mean of several measures, likewise.
    Mean {
        /// The measures.
        of: Vec<Measure>,
    },
    /// Several measures one after another.
    List {
        /// The measures.
        of: Vec<Measure>,
    },
    /// See [`OverSweep`].
    OverSweep(OverSweep),
    /// See [`Rank`].
    Rank(Rank),
    /// See [`Best`].
    Best(Best),
    /// See [`WindowedJain`].
    WindowedJain(WindowedJain),
    /// See [`Level`].
    Level(Level),
    /// See [`Step`].
    Step(Step),
    /// See [`SawTooth`].
    SawTooth(SawTooth),
    /// See [`AccumulatedError`].
    AccumulatedError(AccumulatedError),
    /// See [`Differing`].
    Differing(Differing),
    /// See [`TransferTime`].
    TransferTime(TransferTime),
}

/// What becomes of the numbers of several flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// One for each.
    #[default]
    Each,
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// Their population standard deviation.
    Sigma,
    /// Their Jain index.
    Jain,
}

/// A reason of drops, as results call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// See [`DropReason::Early`].
    Early,
    /// See [`DropReason::Forced`].
    Forced,
    /// See [`DropReason::Overflow`].
    Overflow,
    /// See [`DropReason::Policy`].
    Policy,
    /// See [`DropReason::PushOut`].
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
    /// Through the origin.
    Slope,
    /// Through the origin.
    R2,
    /// From the line through the origin.
    LowestQuartileDeviation,
    /// Of the line through the logarithms.
    LoglogSlope,
}

impl Measure {
    /// Checks it against the scenarios it is taken of, and gives a label for each of its numbers.
    ///
    /// # Errors
    /// What is wrong first.
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
            Self::Goodput { of, run, shape }
            | Self::Timeouts { of, run, shape }
            | Self::Drops { of, run, shape, .. }
            | Self::Entitlement { of, run, shape } => flows(run, of, *shape),
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
            | Self::WaterFilling { .. }
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
            Self::AccumulatedError(measure) => measure.labels(runs),
            Self::Differing(measure) => measure.labels(runs),
            Self::TransferTime(measure) => measure.labels(runs),
        }
    }

    /// Of numbers as they are, and of measures made of measures.
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
            Self::WaterFilling { amount, demands } => {
                match demands.iter().chain([amount]).all(|number| number.is_finite() && *number >= 0.0) {
                    true => Ok(vec![String::new(); demands.len()]),
                    false => Err(("demands", "amounts are not negative".to_owned())),
                }
            }
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
