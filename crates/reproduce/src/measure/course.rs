//! A quantity of one flow over time: its level and its saw-teeth.

use std::ops::Range;

use apportion_core::units::Bytes;
use apportion_report::mbps;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use crate::runs::{Basis, Fault, RunOutcomes, Runs, flows_of, link_of, main_run, run_of, samples};
use crate::value::Length;

/// A quantity of one flow with a value per sample interval.
#[derive(Clone, Debug, Deserialize)]
pub struct Course {
    /// The quantity.
    pub show: Show,
    /// The flow.
    pub of: String,
    /// The link of an allocation or a fill; it must be watched.
    pub link: Option<String>,
    /// The run; `main` if absent.
    #[serde(default = "main_run")]
    pub run: String,
}

/// The quantity of a [`Course`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    /// Throughput at the sink, mean of each interval; Mb/s.
    Throughput,
    /// Allocation of the link's queue to the flow, mean of each interval; Mb/s.
    Allocation,
    /// Bytes of the flow in the link's queue at the end of each interval, without those already passed to the
    /// interface.
    Fill,
    /// The congestion window in segments, at the end of each interval.
    Window,
    /// Smoothed round-trip time at the end of each interval, none before the first; ms.
    Srtt,
}

impl Show {
    /// Label on an axis.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Throughput => "Throughput, Mb/s",
            Self::Allocation => "Allocation, Mb/s",
            Self::Fill => "Queue, bytes",
            Self::Window => "Congestion window, segments",
            Self::Srtt => "Smoothed round-trip time, ms",
        }
    }

    /// Whether a value is a mean over its interval, and not a state at its end.
    const fn is_mean(self) -> bool {
        matches!(self, Self::Throughput | Self::Allocation)
    }
}

impl Course {
    pub(crate) fn check<'a>(&self, runs: &Runs<'a, Scenario>) -> Result<&'a Scenario, Fault> {
        let scenario = run_of(runs, &self.run)?;
        let &[flow] = &flows_of(scenario, std::slice::from_ref(&self.of))?[..] else {
            return Err(("of", format!("`{0}` is several flows; write one, such as `{0}.1`", self.of)));
        };
        let at_link = matches!(self.show, Show::Allocation | Show::Fill);
        match &self.link {
            Some(link) if at_link => {
                let at = link_of(scenario, link)?;
                if !scenario.links[at].watched {
                    return Err(("link", format!("`{link}` is not watched; write watch = true in it")));
                }
            }
            None if at_link => return Err(("link", "missing; name the link".to_owned())),
            Some(_) => {
                return Err(("link", "only `allocation` and `fill` have a link; leave it out".to_owned()));
            }
            None => {}
        }
        let flow = &scenario.flows[flow];
        let of_sender = matches!(self.show, Show::Window | Show::Srtt);
        if of_sender && (flow.connections > 1 || !flow.transport.is_acknowledged()) {
            return Err(("of", format!("`{}` is not TCP or QUIC of one connection", flow.name)));
        }
        Ok(scenario)
    }

    /// Values of a run, one per sample interval; none in intervals without a value.
    pub(crate) fn values(&self, runs: &Runs<'_, RunOutcomes>, seed: usize) -> Option<Vec<Option<f64>>> {
        let measured = run_of(runs, &self.run).ok()?;
        let (scenario, outcome) = (&measured.scenario, measured.outcomes.get(seed)?);
        let &[at] = &flows_of(scenario, std::slice::from_ref(&self.of)).ok()?[..] else { return None };
        let flow = outcome.flows.get(at)?;
        let rates = |series: &[Bytes]| -> Vec<Option<f64>> {
            series.iter().map(|bytes| Some(mbps(*bytes, scenario.sample))).collect()
        };
        let allocation = || {
            let link = outcome.links.get(link_of(scenario, self.link.as_ref()?).ok()?)?;
            link.allocations.iter().find(|allocation| allocation.flow == at)
        };
        Some(match self.show {
            Show::Throughput => rates(&flow.series),
            Show::Allocation => rates(&allocation()?.series),
            Show::Fill => allocation()?.fill.iter().map(|bytes| Some(bytes.get() as f64)).collect(),
            Show::Window => flow.tcp.iter().map(|tcp| Some(tcp.window)).collect(),
            Show::Srtt => flow.tcp.iter().map(|tcp| tcp.srtt.map(|srtt| srtt.as_secs_f64() * 1e3)).collect(),
        })
    }

    /// Time of the interval with this number, from 0, in seconds: its middle for a mean, else its end.
    pub(crate) fn time(&self, scenario: &Scenario, interval: usize) -> f64 {
        let share = if self.show.is_mean() { 0.5 } else { 1.0 };
        (interval as f64 + share) * scenario.sample.as_secs_f64()
    }
}

/// The level of a quantity over the intervals from `from` to `to`.
#[derive(Clone, Debug, Deserialize)]
pub struct Level {
    /// The quantity.
    pub course: Course,
    /// Start; the start of the measured part if absent.
    pub from: Option<Length>,
    /// End; the end of the run if absent.
    pub to: Option<Length>,
    /// The number to compute.
    pub give: LevelNumber,
    /// The target of `error`, in the unit of the course.
    pub target: Option<f64>,
}

/// A number of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelNumber {
    Mean,
    /// The smallest value.
    Min,
    /// The largest value.
    Max,
    /// The mean of |value / target - 1|.
    Error,
}

impl Level {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let scenario = self.course.check(runs)?;
        samples(scenario, self.from, self.to)?;
        if (self.give == LevelNumber::Error) != self.target.is_some_and(|target| target > 0.0) {
            return Err((
                "target",
                "`error` needs a target above zero; the other numbers have none".to_owned(),
            ));
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let window = samples(&run_of(runs, &self.course.run).ok()?.scenario, self.from, self.to).ok()?;
        let values = self.course.values(runs, seed)?;
        let values: Vec<f64> = values.get(window)?.iter().flatten().copied().collect();
        let mean = |values: &mut dyn Iterator<Item = f64>| {
            let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
            (count > 0.0).then_some(sum / count)
        };
        let number = match self.give {
            LevelNumber::Mean => mean(&mut values.iter().copied()),
            LevelNumber::Min => values.iter().copied().min_by(f64::total_cmp),
            LevelNumber::Max => values.iter().copied().max_by(f64::total_cmp),
            LevelNumber::Error => {
                let target = self.target?;
                mean(&mut values.iter().map(|value| (value / target - 1.0).abs()))
            }
        };
        number.map(|number| vec![number])
    }
}

/// Saw-teeth of a quantity, usually of a congestion window. A tooth ends where the value falls below 0.7 of
/// the highest since the previous tooth. A halving ends one, and so does CUBIC's first reduction, just below
/// 0.7; a decrease by one segment does not. A timeout right after a halving ends another tooth.
#[derive(Clone, Debug, Deserialize)]
pub struct SawTooth {
    /// The quantity.
    pub course: Course,
    /// Start; the start of the measured part if absent.
    pub from: Option<Length>,
    /// End; the end of the run if absent.
    pub to: Option<Length>,
    /// The number to compute.
    pub give: ToothNumber,
}

/// A number of saw-teeth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToothNumber {
    /// Teeth per second.
    Rate,
    /// Mean height of tips; the highest value if no tooth ends.
    Peak,
}

/// Height at which a tooth ends, as a fraction of its tip.
const TOOTH: f64 = 0.7;

impl SawTooth {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        samples(self.course.check(runs)?, self.from, self.to)?;
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
        let scenario = &run_of(runs, &self.course.run).ok()?.scenario;
        let window: Range<usize> = samples(scenario, self.from, self.to).ok()?;
        let length = scenario.sample.as_secs_f64() * window.len() as f64;
        let values = self.course.values(runs, seed)?;
        let values: Vec<f64> = values.get(window)?.iter().flatten().copied().collect();
        let teeth = teeth(&values);
        Some(vec![match self.give {
            ToothNumber::Rate => teeth.len() as f64 / length,
            ToothNumber::Peak if teeth.is_empty() => values.iter().copied().max_by(f64::total_cmp)?,
            ToothNumber::Peak => teeth.iter().map(|(_, tip)| tip).sum::<f64>() / teeth.len() as f64,
        }])
    }
}

/// Teeth that end: position and tip.
pub(super) fn teeth(values: &[f64]) -> Vec<(usize, f64)> {
    let mut teeth = Vec::new();
    let mut highest = 0.0_f64;
    for (at, &value) in values.iter().enumerate() {
        if value < TOOTH * highest {
            teeth.push((at, highest));
            highest = value;
        }
        highest = highest.max(value);
    }
    teeth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tooth_ends_where_a_value_falls_below_seven_tenths_of_the_highest() {
        // 10 to 5: a tooth; 8 to 6 is 0.75: none; 9 to 4.5, and on to 1 by a timeout: two.
        assert_eq!(teeth(&[8.0, 10.0, 5.0, 8.0, 6.0, 9.0, 4.5, 1.0, 2.0]), [(2, 10.0), (6, 9.0), (7, 4.5)]);
        assert_eq!(teeth(&[7.0, 10.0, 7.0]), []);
    }
}
