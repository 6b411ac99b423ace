//! `apportion compare`: runs against the first of them, or the simulator against the TCP of this machine.

use std::process::ExitCode;

use anyhow::Context as _;
use apportion_report::parity::{BUDGET, Parity};
use apportion_sim::{Detail, Simulation};
use serde::Serialize;

use crate::arguments::{Compare, Wanted};
use crate::interrupt::{self, CANCEL};
use crate::lab::{check, experiment};
use crate::output;
use crate::run::{load, record, seeds};

/// Replications in the simulator at least.
const SIMULATED: u64 = 10;

pub fn compare(arguments: &Compare) -> anyhow::Result<ExitCode> {
    if let Some(scenario) = &arguments.parity {
        let (seeds, out, set) = (arguments.seeds, arguments.out.clone(), arguments.set.clone());
        let quiet = arguments.json;
        let wanted =
            Wanted { scenario: scenario.clone(), seeds, out, set, json: quiet, quiet, show_config: false };
        return parity(&wanted);
    }
    let runs: Result<Vec<_>, _> =
        arguments.runs.iter().map(|folder| apportion_report::load(folder)).collect();
    let comparison = apportion_report::compare(&runs?);
    print(arguments.json, &comparison.rows, &comparison)?;
    Ok(ExitCode::SUCCESS)
}

/// Runs a scenario in both worlds, writes what came out, and holds one against the other.
fn parity(wanted: &Wanted) -> anyhow::Result<ExitCode> {
    let suite = load(wanted)?;
    let folder = wanted.folder("-parity");
    let folders = ["lab", "sim"].map(|world| folder.join(world));
    folders.iter().try_for_each(|folder| apportion_report::check(folder))?;
    check(&suite, wanted)?;
    // What the simulator cannot run must not take minutes of real time first.
    for point in &suite.points {
        Simulation::new(&point.scenario, point.scenario.seed, Detail::Counts, &mut |_| None)
            .with_context(|| wanted.scenario.display().to_string())?;
    }
    // Before there is a second thread.
    apportion_live::lab::enter()?;
    interrupt::listen()?;

    let seeds = seeds(&suite, wanted.seeds);
    let (outcomes, error) = experiment(&suite, &seeds, wanted);
    if let Some(error) = error {
        return Err(error);
    }
    let lab = record(&suite, &seeds, outcomes);
    // More of them show what is chance, and take no time.
    let more = crate::run::seeds(&suite, wanted.seeds.max(SIMULATED));
    let jobs: Vec<_> = suite
        .points
        .iter()
        .zip(&more)
        .flat_map(|(point, seeds)| {
            let job =
                |seed: &u64| apportion_sim::Job { scenario: &point.scenario, seed: *seed, captures: None };
            seeds.iter().map(job)
        })
        .collect();
    let outcomes = apportion_sim::replicate(&jobs, 0, &|_| (), &CANCEL)
        .with_context(|| wanted.scenario.display().to_string())?;
    let sim = record(&suite, &more, outcomes);
    for (folder, run) in folders.iter().zip([&lab, &sim]) {
        apportion_report::write(folder, run)?;
    }
    if !(lab.complete && sim.complete) {
        output::note("interrupted before all runs were done: nothing is compared");
        return Ok(ExitCode::from(1));
    }
    let parity = Parity::new(&sim, &lab, BUDGET);
    print(wanted.json, &parity.rows, &parity)?;
    if wanted.json {
        parity.faults.iter().for_each(|fault| output::note(&format!("NOT VALID: {fault}")));
    }
    Ok(if parity.holds() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints rows as JSON lines, or all of it as text.
fn print(json: bool, rows: &[impl Serialize], text: &impl ToString) -> anyhow::Result<()> {
    if !json {
        return Ok(output::print(&text.to_string())?);
    }
    for row in rows {
        let line = serde_json::to_string(row).context("cannot print a row as JSON")?;
        output::print(&format!("{line}\n"))?;
    }
    Ok(())
}
