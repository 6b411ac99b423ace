//! A run of a scenario that a program writes.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_core::system::Catalog;
use apportion_runtime::outcome::Outcome;
use apportion_scenario::Suite;
use apportion_sim::{Detail, Simulation};

pub(super) type Failure = Box<dyn std::error::Error>;

pub(super) fn load(catalog: &Catalog, text: &str) -> Result<Suite, Failure> {
    let read = |path: &Path| std::fs::read(path);
    let suite = apportion_scenario::load_with(catalog, text, Path::new("headline.toml"), &[], &read);
    Ok(suite.map_err(|problems| problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())?)
}

/// The outcome of a scenario without a sweep.
pub(super) fn simulate(catalog: &Catalog, text: &str, seed: u64) -> Result<Outcome, Failure> {
    let suite = load(catalog, text)?;
    let point = suite.points.first().ok_or("the scenario is a sweep without points")?;
    let mut simulation = Simulation::new(&point.scenario, seed, Detail::Full, &mut |_| None)?;
    simulation.run(&AtomicBool::new(false));
    Ok(simulation.outcome())
}
