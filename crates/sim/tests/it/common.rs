//! Runs of scenarios written as text.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_core::queue::DropReason;
use apportion_runtime::outcome::{FlowOutcome, LinkOutcome, Outcome};
use apportion_scenario::model::Scenario;
use apportion_sim::{Detail, Simulation};
use apportion_testing::net::net;

/// Returns the scenarios of a [text](apportion_testing::net), one for each point of its sweep. Hosts have no
/// jitter unless a flow says so, since tests compute the arrival times of packets.
pub fn scenarios(text: &str) -> Vec<Scenario> {
    let exact = ("defaults.flow.jitter".to_owned(), "0s".to_owned());
    load(text, &[exact])
}

/// Returns the scenarios as [`scenarios`] does, with the default jitter of hosts.
pub fn scenarios_with_jitter(text: &str) -> Vec<Scenario> {
    load(text, &[])
}

fn load(text: &str, overrides: &[(String, String)]) -> Vec<Scenario> {
    let suite =
        apportion_scenario::load(&net(text), Path::new("test.toml"), overrides, &|path| std::fs::read(path))
            .unwrap_or_else(|problems| {
                panic!("{}", problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())
            });
    suite.points.into_iter().map(|point| point.scenario).collect()
}

/// Returns the outcome of a scenario without a sweep, with the seed that it names.
pub fn run(text: &str) -> Outcome {
    let scenario = scenarios(text).pop().unwrap();
    run_with(&scenario, scenario.seed)
}

pub fn run_with(scenario: &Scenario, seed: u64) -> Outcome {
    let mut simulation = Simulation::new(scenario, seed, Detail::Full, &mut |_| None).unwrap();
    assert!(simulation.run(&AtomicBool::new(false)));
    simulation.outcome()
}

/// Returns the outcomes of all points of a sweep.
pub fn sweep(text: &str) -> Vec<Outcome> {
    scenarios(text).iter().map(|scenario| run_with(scenario, scenario.seed)).collect()
}

pub fn flow<'a>(outcome: &'a Outcome, name: &str) -> &'a FlowOutcome {
    outcome.flows.iter().find(|flow| flow.name == name).unwrap()
}

pub fn link<'a>(outcome: &'a Outcome, name: &str) -> &'a LinkOutcome {
    outcome.links.iter().find(|link| link.name == name).unwrap()
}

/// Returns the number of packets dropped for any reason.
pub fn dropped(drops: &std::collections::BTreeMap<DropReason, u64>) -> u64 {
    drops.values().sum()
}

/// Returns the throughput during the measured part, in bits per second.
pub fn throughput(outcome: &Outcome, name: &str) -> f64 {
    flow(outcome, name).delivered.bytes.bits() as f64 / outcome.measured.as_secs_f64()
}
