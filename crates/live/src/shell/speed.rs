//! The speed of a direction of a shell's link: unlimited, a rate, rates that change, or a trace.

use std::str::FromStr;

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::units::{Rate, Time};

use crate::pace::Pace;

/// A rate at which no queue builds up: a hundred times what one core forwards.
const UNLIMITED: Rate = Rate::from_mbit(1_000_000);
/// Maximum of steps. Chosen: a change each 0.1 s for a quarter of an hour; beyond that a trace is better.
const MAX_STEPS: usize = 10_000;

/// Times at which packets can be sent.
#[derive(Clone, Debug)]
pub enum Speed {
    /// At once.
    Unlimited,
    Rate(Rate),
    /// At each of these rates from its time on; times ascend, and the first is zero.
    Steps(Vec<(Time, Rate)>),
    /// Delivery opportunities of a recorded link.
    Trace(DeliveryTrace),
}

/// Why text is no list of steps.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{step}`: {message}; write for example \"0s 10Mbit, 5s 2Mbit\"")]
pub struct StepsError {
    step: String,
    message: String,
}

impl Speed {
    /// Parses rates that change, for example `0s 10Mbit, 5s 2Mbit`.
    ///
    /// # Errors
    /// The first wrong step.
    pub fn parse_steps(text: &str) -> Result<Self, StepsError> {
        let mut steps: Vec<(Time, Rate)> = Vec::new();
        for step in text.split(',').map(str::trim) {
            let fail = |message: String| StepsError { step: step.to_owned(), message };
            let Some((at, rate)) = step.split_once(char::is_whitespace) else {
                return Err(fail("a step is a time and a rate".to_owned()));
            };
            let at = Time::from_str(at).map_err(|error| fail(error.to_string()))?;
            let rate = Rate::from_str(rate).map_err(|error| fail(error.to_string()))?;
            match steps.last() {
                None if at > Time::ZERO => return Err(fail("the first step must be at 0s".to_owned())),
                Some((before, _)) if at <= *before => {
                    return Err(fail("it is not after the step before".to_owned()));
                }
                _ if steps.len() == MAX_STEPS => {
                    return Err(fail(format!("there are more than {MAX_STEPS} steps; use a trace")));
                }
                _ => steps.push((at, rate)),
            }
        }
        Ok(Self::Steps(steps))
    }

    /// Whether packets never wait.
    #[must_use]
    pub const fn is_unlimited(&self) -> bool {
        matches!(self, Self::Unlimited)
    }

    pub(super) fn at_start(&self) -> Pace {
        match self {
            Self::Unlimited => Pace::rate(UNLIMITED),
            Self::Rate(rate) => Pace::rate(*rate),
            Self::Steps(steps) => Pace::rate(steps.first().map_or(Rate::ZERO, |(_, rate)| *rate)),
            Self::Trace(trace) => Pace::Trace(trace.clone()),
        }
    }

    /// The changes after the start.
    pub(super) fn later_steps(&self) -> impl Iterator<Item = (Time, Rate)> + use<> {
        let steps = if let Self::Steps(steps) = self { steps.clone() } else { Vec::new() };
        steps.into_iter().skip(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_times_with_rates() {
        let Ok(Speed::Steps(steps)) = Speed::parse_steps("0s 10mbit, 500ms 2 Mbit,1s 0bit") else { panic!() };
        let mbit = Rate::from_mbit;
        assert_eq!(
            steps,
            [(Time::ZERO, mbit(10)), (Time::from_millis(500), mbit(2)), (Time::from_secs(1), Rate::ZERO)]
        );
    }

    #[test]
    fn what_are_no_steps_is_refused_with_the_step() {
        let error = |text| Speed::parse_steps(text).unwrap_err().to_string();
        assert!(error("1s 1Mbit").starts_with("`1s 1Mbit`: the first step must be at 0s"));
        assert!(error("0s 1Mbit, 0s 2Mbit").starts_with("`0s 2Mbit`: it is not after the step before"));
        assert!(error("0s").starts_with("`0s`: a step is a time and a rate"));
        assert!(error("0s 1kbps").contains("bits or bytes?"));
    }
}
