//! Measures of what changes in the course of a run: how it answers to a step, its level, its saw-teeth, and by
//! how much the sums of two runs differ.

use std::ops::Range;

use apportion_core::units::{Bytes, Span};
use apportion_report::mbps;
use apportion_scenario::model::{Scenario, Transport};
use serde::Deserialize;

use crate::expect::{self, Length};
use crate::measure::{Fault, Measured, Of, Runs, flows_of, link_of, main_run, run_of, samples};

/// Something of one flow that has a value for each sample interval.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Course {
    /// What of it.
    pub show: Show,
    /// The flow.
    pub of: String,
    /// Of an allocation and of what waits: at which link, which is watched.
    pub link: Option<String>,
    /// In which run.
    #[serde(default = "main_run")]
    pub run: String,
}

/// What a [`Course`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Show {
    /// Mb/s at the sink, the mean of each interval.
    Throughput,
    /// Mb/s that the link's queue allocates to it, the mean of each interval.
    Allocation,
    /// Bytes that wait at the link, at the end of each interval; those that the queue has already given to its
    /// interface do not count.
    Fill,
    /// The congestion window in segments, at the end of each interval.
    Window,
    /// The smoothed round-trip time in ms, at the end of each interval; none before the first.
    Srtt,
}

impl Show {
    /// What an axis calls it.
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

    /// Whether a value is a mean over its interval, and not a state at the end of it.
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
            None if at_link => return Err(("link", "missing: at which link?".to_owned())),
            Some(_) => return Err(("link", "only an allocation and a fill are at a link".to_owned())),
            None => {}
        }
        let flow = &scenario.flows[flow];
        let of_sender = matches!(self.show, Show::Window | Show::Srtt);
        if of_sender && (flow.connections > 1 || !matches!(flow.transport, Transport::Tcp(_))) {
            return Err(("of", format!("`{}` is not TCP of one connection", flow.name)));
        }
        Ok(scenario)
    }

    /// A value for each sample interval of a run; none where it has no value there, or at all.
    pub(crate) fn values(&self, runs: &Runs<'_, Measured>, seed: usize) -> Option<Vec<Option<f64>>> {
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

    /// When the interval with this number, from 0, counts, in seconds: its middle for a mean, else its end.
    pub(crate) fn time(&self, scenario: &Scenario, interval: usize) -> f64 {
        let share = if self.show.is_mean() { 0.5 } else { 1.0 };
        (interval as f64 + share) * scenario.sample.as_secs_f64()
    }
}

/// A number of the level of something: over the intervals from `from` to `to`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// Of what.
    pub course: Course,
    /// Start; of the measured part if absent.
    pub from: Option<Length>,
    /// End; of the run if absent.
    pub to: Option<Length>,
    /// Which number.
    pub give: LevelNumber,
    /// Of `error`: what it should be.
    pub target: Option<f64>,
}

/// A number of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LevelNumber {
    /// The mean.
    Mean,
    /// The least.
    Min,
    /// The largest.
    Max,
    /// The mean of |value / target - 1|.
    Error,
}

impl Level {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        let scenario = self.course.check(runs)?;
        samples(scenario, self.from, self.to)?;
        if (self.give == LevelNumber::Error) != self.target.is_some_and(|target| target > 0.0) {
            return Err(("target", "`error` needs one above zero, and nothing else has one".to_owned()));
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let Of::Seed(seed) = what else { return None };
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

/// How something answers to a step of what it should follow.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Of what.
    pub course: Course,
    /// When.
    pub times: StepTimes,
    /// Which number.
    pub give: StepNumber,
}

/// When a step is. The level before is the mean over the second half of the time from `before` to `at`, the
/// level after over the second half of that from `at` to `until`: first halves are for it to settle.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepTimes {
    /// Where the level before begins.
    pub before: Length,
    /// The step.
    pub at: Length,
    /// Where the level after ends.
    pub until: Length,
    /// For how long it must stay to be settled (Li et al. 2001 read their figure at 300 ms); 0.3 s if absent.
    #[serde(default = "hold")]
    pub hold: Length,
    /// How near, as a share of the level after; 0.05 if absent.
    #[serde(default = "within")]
    pub within: f64,
}

fn hold() -> Length {
    Length(Span::from_millis(300))
}

const fn within() -> f64 {
    0.05
}

/// A number of an answer to a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepNumber {
    /// From first reaching 10 % of the step to first reaching 90 %, ms; infinite if it does not get there.
    Response,
    /// From the step to first reaching 90 %, ms; infinite if it does not get there.
    Reach,
    /// From the step to the start of the first `hold` that is near the level after all the time, ms; infinite
    /// if there is none.
    Settling,
    /// The furthest beyond the level after, as a share of the step's height.
    Overshoot,
}

/// The answer to a step, in seconds of the run and in the unit of the course.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// First beyond 10 % and 90 % of the step.
    pub(crate) t10: f64,
    pub(crate) t90: f64,
    pub(crate) settled: f64,
    /// The furthest, and when.
    pub(crate) peak: (f64, f64),
}

impl Step {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        self.times.check(self.course.check(runs)?)?;
        Ok(vec![String::new()])
    }

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let Of::Seed(seed) = what else { return None };
        let answer = self.times.answer(&self.course, runs, seed)?;
        let at = self.times.at.0.as_secs_f64();
        Some(vec![match self.give {
            StepNumber::Response => (answer.t90 - answer.t10) * 1e3,
            StepNumber::Reach => (answer.t90 - at) * 1e3,
            StepNumber::Settling => (answer.settled - at) * 1e3,
            StepNumber::Overshoot => (answer.peak.1 - answer.high) / (answer.high - answer.low),
        }])
    }
}

impl StepTimes {
    pub(crate) fn check(&self, scenario: &Scenario) -> Result<(), Fault> {
        for (key, range) in [("before", (self.before, self.at)), ("until", (self.at, self.until))] {
            samples(scenario, Some(half(range)), Some(range.1)).map_err(|(_, message)| (key, message))?;
        }
        if self.hold.0 < scenario.sample || self.at.0 + self.hold.0 > self.until.0 {
            let message =
                format!("must be at least the sample of {}, and end before `until`", scenario.sample);
            return Err(("hold", message));
        }
        if !(self.within > 0.0 && self.within < 1.0) {
            return Err(("within", "a share between 0 and 1, such as 0.05".to_owned()));
        }
        Ok(())
    }

    /// None if there is nothing, or no step.
    pub(crate) fn answer(&self, course: &Course, runs: &Runs<'_, Measured>, seed: usize) -> Option<Answer> {
        let scenario = &run_of(runs, &course.run).ok()?.scenario;
        let values = course.values(runs, seed)?;
        let mean = |range| {
            let window = samples(scenario, Some(half(range)), Some(range.1)).ok()?;
            let values: Vec<f64> = values.get(window)?.iter().flatten().copied().collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let (low, high) = (mean((self.before, self.at))?, mean((self.at, self.until))?);
        let window = samples(scenario, Some(self.at), Some(self.until)).ok()?;
        let after: Vec<(f64, f64)> =
            window.filter_map(|k| Some((course.time(scenario, k), (*values.get(k)?)?))).collect();
        let hold = self.hold.0.as_secs_f64();
        (high != low).then(|| answer(&after, (low, high), hold, self.within))
    }
}

/// The second half.
fn half((from, to): (Length, Length)) -> Length {
    Length(Span::from_nanos(from.0.as_nanos().midpoint(to.0.as_nanos())))
}

/// From (time, value) after a step between two levels.
fn answer(after: &[(f64, f64)], (low, high): (f64, f64), hold: f64, within: f64) -> Answer {
    let done = |value: f64| (value - low) / (high - low);
    let reaches =
        |share| after.iter().find(|(_, value)| done(*value) >= share).map_or(f64::INFINITY, |(at, _)| *at);
    let is_near = |value: f64| (value - high).abs() <= within * high.abs();
    let end = after.last().map_or(0.0, |(at, _)| *at);
    // A sample stands for its interval: a hold of 300 ms is 30 of 10 ms, with 29 gaps between them.
    let begin = after.first().map_or(0.0, |(at, _)| *at);
    let gap = (end - begin) / after.len().saturating_sub(1).max(1) as f64;
    let mut settled = f64::INFINITY;
    let mut since: Option<f64> = None;
    for &(at, value) in after {
        since = if is_near(value) { since.or(Some(at)) } else { None };
        if let Some(since) = since.filter(|since| at - since + gap >= hold * (1.0 - 1e-9)) {
            settled = since;
            break;
        }
    }
    let furthest = after.iter().max_by(|a, b| done(a.1).total_cmp(&done(b.1)));
    Answer {
        low,
        high,
        t10: reaches(0.1),
        t90: reaches(0.9),
        settled,
        peak: furthest.copied().unwrap_or((end, high)),
    }
}

/// The saw-teeth of something, usually of a congestion window. A tooth ends where the value falls below 0.7
/// of the highest since the tooth before: halving does, and a window of CUBIC after its first loss just does;
/// a segment less does not. A timeout right after a halving ends a tooth of its own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SawTooth {
    /// Of what.
    pub course: Course,
    /// Start; of the measured part if absent.
    pub from: Option<Length>,
    /// End; of the run if absent.
    pub to: Option<Length>,
    /// Which number.
    pub give: ToothNumber,
}

/// A number of saw-teeth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToothNumber {
    /// Teeth a second.
    Rate,
    /// Mean height of their tips; the highest value if no tooth ends.
    Peak,
}

/// Where a tooth ends, as a share of its tip.
const TOOTH: f64 = 0.7;

impl SawTooth {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        samples(self.course.check(runs)?, self.from, self.to)?;
        Ok(vec![String::new()])
    }

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let Of::Seed(seed) = what else { return None };
        let scenario = &run_of(runs, &self.course.run).ok()?.scenario;
        let window: Range<usize> = samples(scenario, self.from, self.to).ok()?;
        let length = scenario.sample.as_secs_f64() * window.len() as f64;
        let values = self.course.values(runs, seed)?;
        let values: Vec<f64> = values.get(window)?.iter().flatten().copied().collect();
        let tips = tips(&values);
        Some(vec![match self.give {
            ToothNumber::Rate => tips.len() as f64 / length,
            ToothNumber::Peak if tips.is_empty() => values.iter().copied().max_by(f64::total_cmp)?,
            ToothNumber::Peak => tips.iter().sum::<f64>() / tips.len() as f64,
        }])
    }
}

/// The tips of the teeth that end.
fn tips(values: &[f64]) -> Vec<f64> {
    let mut tips = Vec::new();
    let mut highest = 0.0_f64;
    for &value in values {
        if value < TOOTH * highest {
            tips.push(highest);
            highest = value;
        }
        highest = highest.max(value);
    }
    tips
}

/// |Σ alone - Σ beside| / Σ alone of the bytes that flows delivered in two runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccumulatedError {
    /// Flows or groups, together.
    pub of: Vec<String>,
    /// The run in which they are alone, and the other.
    pub runs: [String; 2],
    /// Start; of the measured part if absent.
    pub from: Option<Length>,
    /// End; of the run if absent.
    pub to: Option<Length>,
}

impl AccumulatedError {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        for run in &self.runs {
            let scenario = run_of(runs, run).map_err(|(_, message)| ("runs", message))?;
            flows_of(scenario, &self.of)?;
            samples(scenario, self.from, self.to)?;
        }
        Ok(vec![String::new()])
    }

    pub(crate) fn take(&self, runs: &Runs<'_, Measured>, what: Of) -> Option<Vec<f64>> {
        let Of::Seed(seed) = what else { return None };
        let sum = |run: &String| {
            let window = samples(&run_of(runs, run).ok()?.scenario, self.from, self.to).ok()?;
            Some(delivered(runs, run, &self.of, seed)?.get(window)?.iter().sum::<f64>())
        };
        let [alone, beside] = [sum(&self.runs[0])?, sum(&self.runs[1])?];
        (alone > 0.0).then(|| vec![(alone - beside).abs() / alone])
    }
}

/// Bytes that flows delivered together in each sample interval.
pub(crate) fn delivered(
    runs: &Runs<'_, Measured>,
    run: &str,
    of: &[String],
    seed: usize,
) -> Option<Vec<f64>> {
    let measured = run_of(runs, run).ok()?;
    let flows = &measured.outcomes.get(seed)?.flows;
    let mut sums = Vec::new();
    for at in flows_of(&measured.scenario, of).ok()? {
        let series = &flows.get(at)?.series;
        sums.resize(sums.len().max(series.len()), 0.0);
        sums.iter_mut().zip(series).for_each(|(sum, bytes)| *sum += bytes.get() as f64);
    }
    Some(sums)
}

/// A figure: something over time, mean over seeds, a curve for each of several.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
    pub levels: Vec<expect::Level>,
    /// Draws one seed, counting from 1, where a mean over seeds would blur what differs in phase.
    pub seed: Option<std::num::NonZeroUsize>,
    /// A step that the first curve answers to, in the first seed: response, settling and overshoot are marked.
    pub step: Option<StepTimes>,
}

/// A curve.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelledCourse {
    /// In the legend.
    pub label: String,
    /// What is drawn.
    pub course: Course,
}

/// A figure: by how much what flows delivered in one run since its start exceeds what they delivered in others,
/// over time, mean over seeds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
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
#[serde(deny_unknown_fields)]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every 10 ms.
    fn at(k: usize) -> f64 {
        k as f64 / 100.0
    }

    #[test]
    fn an_answer_is_timed_from_tenth_to_nine_tenths_and_settles_for_good() {
        // From 1 to 3 in steps of 0.25 each 10 ms, up to 4 at 120 ms, back to 3 at 160 ms, and a single
        // sample away from it at 300 ms.
        let value = |k: usize| match k {
            0..=12 => 1.0 + 0.25 * k as f64,
            13..=16 => 4.0 - 0.25 * (k - 12) as f64,
            30 => 3.5,
            _ => 3.0,
        };
        let after: Vec<_> = (0..100).map(|k| (at(k), value(k))).collect();
        let found = answer(&after, (1.0, 3.0), 0.2, 0.05);
        // 10 % is 1.2, first passed by 1.25 at 10 ms; 90 % is 2.8, by 3.0 at 80 ms. From 160 ms on it stays
        // 140 ms, from 310 ms for good.
        assert_eq!((found.t10, found.t90, found.settled, found.peak), (at(1), at(8), at(31), (at(12), 4.0)));
        // For 140 ms the first stay is long enough.
        assert_eq!(answer(&after, (1.0, 3.0), 0.14, 0.05).settled, at(16));
        // A wide band is entered on the way up: 2.75 is within 10 % of 3, and 3.5 is not.
        assert_eq!(answer(&after, (1.0, 3.0), 0.03, 0.1).settled, at(7));
        assert_eq!(answer(&after[..30], (1.0, 3.0), 0.2, 0.05).settled, f64::INFINITY);
    }

    #[test]
    fn a_step_down_is_a_step_and_goes_beyond_below() {
        let after: Vec<_> = [3.0, 2.0, 0.5, 1.0, 1.0].iter().enumerate().map(|(k, &v)| (at(k), v)).collect();
        let found = answer(&after, (3.0, 1.0), 0.02, 0.05);
        assert_eq!((found.t10, found.t90, found.settled, found.peak), (at(1), at(2), at(3), (at(2), 0.5)));
    }

    #[test]
    fn a_tooth_ends_where_a_value_falls_below_seven_tenths_of_the_highest() {
        // 10 to 5: a tooth; 8 to 6 is 0.75: none; 9 to 4.5, and on to 1 by a timeout: two.
        assert_eq!(tips(&[8.0, 10.0, 5.0, 8.0, 6.0, 9.0, 4.5, 1.0, 2.0]), [10.0, 9.0, 4.5]);
        assert_eq!(tips(&[7.0, 10.0, 7.0]), [0.0; 0]);
    }
}
