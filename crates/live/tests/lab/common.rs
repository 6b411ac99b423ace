//! Scenarios, and what came out of them.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_live::lab;
use apportion_scenario::model::Scenario;
use apportion_scenario::outcome::{FlowOutcome, LinkOutcome, Outcome};

use crate::processes::enter;

/// The scenario that `text` describes.
pub fn scenario(text: &str) -> Scenario {
    let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| panic!("{path:?}"));
    let suite = suite.unwrap_or_else(|problems| panic!("{problems:?}"));
    suite.points.into_iter().next().unwrap().scenario
}

/// Runs it in namespaces of its own.
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
