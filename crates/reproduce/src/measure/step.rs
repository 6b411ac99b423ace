//! The response of a quantity to a step of its target.

use apportion_core::units::Span;
use apportion_scenario::model::Scenario;
use serde::Deserialize;

use super::course::Course;
use crate::runs::{Basis, Fault, RunOutcomes, Runs, run_of, samples};
use crate::value::Length;

/// The response of a quantity to a step of its target.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// The quantity.
    pub course: Course,
    /// The times of the step.
    pub times: StepTimes,
    /// The number to compute.
    pub give: StepNumber,
}

/// Times of a step. The level before is the mean over the second half of `before` to `at`; the level after,
/// over the second half of `at` to `until`. The first halves are for settling.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct StepTimes {
    /// Start of the level before.
    pub before: Length,
    /// The time of the step.
    pub at: Length,
    /// End of the level after.
    pub until: Length,
    /// Time that the quantity must stay near the level after to count as settled; 0.3 s if absent (Li et al.
    /// 2001 read their figure at 300 ms).
    #[serde(default = "hold")]
    pub hold: Length,
    /// The tolerance of settling, as a share of the level after; 0.05 if absent.
    #[serde(default = "within")]
    pub within: f64,
}

fn hold() -> Length {
    Length(Span::from_millis(300))
}

const fn within() -> f64 {
    0.05
}

/// A number of a step response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepNumber {
    /// Time from first reaching 10 % of the step to first reaching 90 %, in ms; infinite if it never does.
    Response,
    /// Time from the step to first reaching 90 %, in ms; infinite if it never does.
    Reach,
    /// Time from the step to the start of the first `hold` spent entirely near the level after, in ms;
    /// infinite if there is none.
    Settling,
    /// Overshoot: the largest deviation beyond the level after, as a share of the step's height.
    Overshoot,
}

/// A step response, in seconds of the run and in the unit of the course.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The times of first passing 10 % and 90 % of the step.
    pub(crate) t10: f64,
    pub(crate) t90: f64,
    pub(crate) settled: f64,
    /// The time and value of the peak.
    pub(crate) peak: (f64, f64),
}

impl Step {
    pub(crate) fn labels(&self, runs: &Runs<'_, Scenario>) -> Result<Vec<String>, Fault> {
        self.times.check(self.course.check(runs)?)?;
        Ok(vec![String::new()])
    }

    pub(crate) fn evaluate(&self, runs: &Runs<'_, RunOutcomes>, basis: Basis) -> Option<Vec<f64>> {
        let Basis::Seed(seed) = basis else { return None };
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

    /// The step response; `None` without samples or without a step.
    pub(crate) fn answer(
        &self,
        course: &Course,
        runs: &Runs<'_, RunOutcomes>,
        seed: usize,
    ) -> Option<Answer> {
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

/// Second half of an interval.
fn half((from, to): (Length, Length)) -> Length {
    Length(Span::from_nanos(from.0.as_nanos().midpoint(to.0.as_nanos())))
}

/// The step response from samples (time, value) after a step between two levels.
fn answer(after: &[(f64, f64)], (low, high): (f64, f64), hold: f64, within: f64) -> Answer {
    let done = |value: f64| (value - low) / (high - low);
    let reaches =
        |share| after.iter().find(|(_, value)| done(*value) >= share).map_or(f64::INFINITY, |(at, _)| *at);
    let is_near = |value: f64| (value - high).abs() <= within * high.abs();
    let end = after.last().map_or(0.0, |(at, _)| *at);
    // A sample stands for its interval: a hold of 300 ms is 30 intervals of 10 ms, with 29 gaps between
    // samples.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Time of sample `k`: one every 10 ms.
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
        // 10 % is 1.2, first passed by 1.25 at 10 ms; 90 % is 2.8, by 3.0 at 80 ms. From 160 ms on the value
        // stays for 140 ms, from 310 ms for good.
        assert_eq!((found.t10, found.t90, found.settled, found.peak), (at(1), at(8), at(31), (at(12), 4.0)));
        // For 140 ms the first stay is long enough.
        assert_eq!(answer(&after, (1.0, 3.0), 0.14, 0.05).settled, at(16));
        // The value enters a wide band on the way up: 2.75 is within 10 % of 3, and 3.5 is not.
        assert_eq!(answer(&after, (1.0, 3.0), 0.03, 0.1).settled, at(7));
        assert_eq!(answer(&after[..30], (1.0, 3.0), 0.2, 0.05).settled, f64::INFINITY);
    }

    #[test]
    fn a_step_down_is_a_step_and_goes_beyond_below() {
        let after: Vec<_> = [3.0, 2.0, 0.5, 1.0, 1.0].iter().enumerate().map(|(k, &v)| (at(k), v)).collect();
        let found = answer(&after, (3.0, 1.0), 0.02, 0.05);
        assert_eq!((found.t10, found.t90, found.settled, found.peak), (at(1), at(2), at(3), (at(2), 0.5)));
    }
}
