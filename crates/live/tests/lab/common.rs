//! Scenarios and their results.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_core::units::Span;
use apportion_live::lab;
use apportion_runtime::outcome::{Distribution, FlowOutcome, LinkOutcome, Outcome};
use apportion_scenario::model::Scenario;

use apportion_testing::processes::enter;

/// The scenario that `text` describes.
pub fn scenario(text: &str) -> Scenario {
    let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| panic!("{path:?}"));
    let suite = suite.unwrap_or_else(|problems| panic!("{problems:?}"));
    suite.points.into_iter().next().unwrap().scenario
}

/// Runs the scenario in namespaces of its own.
pub fn run(text: &str) -> Outcome {
    enter();
    lab::run(&scenario(text), 1, &AtomicBool::new(false)).unwrap().unwrap()
}

pub fn link<'a>(outcome: &'a Outcome, name: &str) -> &'a LinkOutcome {
    outcome.links.iter().find(|link| link.name == name).unwrap()
}

pub fn flow<'a>(outcome: &'a Outcome, name: &str) -> &'a FlowOutcome {
    outcome.flows.iter().find(|flow| flow.name == name).unwrap()
}

/// Maximum time for which a thread was stopped, in seconds: 30 ms of 3 s where the 99th percentiles of
/// packets and of writes were at most 2 ms late, and half a second where the machine was busier.
pub fn patience(outcome: &Outcome) -> f64 {
    let kept = outcome.timekeeping.as_ref().unwrap();
    let is_early = |late: &Distribution| late.quantile(0.99).is_none_or(|late| late <= Span::from_millis(2));
    if is_early(&kept.lateness) && is_early(&kept.writes) { 0.03 } else { 0.5 }
}

/// Whether `count` is that of `per_second` in `seconds`, within one and the lateness of the run.
pub fn is_about(count: u64, per_second: f64, seconds: f64, outcome: &Outcome) -> bool {
    (count as f64 - per_second * seconds).abs() <= per_second * patience(outcome) + 1.0
}
