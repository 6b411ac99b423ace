//! `apportion lab`: load, run over the TCP of this machine, write, summarise.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use apportion_scenario::Suite;
use apportion_scenario::outcome::Outcome;

use crate::arguments::Wanted;
use crate::interrupt::{self, CANCEL};
use crate::output;
use crate::progress::Progress;
use crate::run::{load, record, seeds, tell};

pub fn lab(wanted: &Wanted) -> anyhow::Result<ExitCode> {
    let suite = load(wanted)?;
    if wanted.show_config {
        output::print(&suite.canonical)?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = wanted.folder("-lab");
    apportion_report::check(&folder)?;
    check(&suite, wanted)?;
    // Before there is a second thread.
    apportion_live::lab::enter()?;
    interrupt::listen()?;

    let seeds = seeds(&suite, wanted.seeds);
    let outcomes = experiment(&suite, &seeds, wanted)?;
    let run = record(&suite, &seeds, outcomes);
    apportion_report::write(&folder, &run)?;
    tell(&run, &folder, wanted)
}

/// Refuses what the lab cannot run, before anything is run.
pub fn check(suite: &Suite, wanted: &Wanted) -> anyhow::Result<()> {
    let place = || wanted.scenario.display().to_string();
    suite.points.iter().try_for_each(|point| apportion_live::lab::check(&point.scenario)).with_context(place)
}

/// Runs every point with each of its seeds, one after another; in the order of points, then of seeds. Real time
/// is not shared: a run that had the machine for itself tells more than two that disturb each other.
pub fn experiment(
    suite: &Suite,
    seeds: &[Vec<u64>],
    wanted: &Wanted,
) -> anyhow::Result<Vec<Option<Outcome>>> {
    let silent = wanted.quiet || wanted.json;
    let length: f64 = suite.points.iter().map(|point| point.scenario.stop.as_secs_f64()).sum();
    if !silent {
        output::note(&format!("in real time: this takes {:.0} s", length * wanted.seeds as f64));
    }
    let progress = Progress::new(suite.points.len() * wanted.seeds as usize, silent);
    let mut outcomes = Vec::new();
    for (point, seeds) in suite.points.iter().zip(seeds) {
        for &seed in seeds {
            let outcome = if CANCEL.load(Ordering::Relaxed) {
                None
            } else {
                apportion_live::lab::run(&point.scenario, seed, &CANCEL)
                    .with_context(|| wanted.scenario.display().to_string())?
            };
            outcomes.push(outcome);
            progress.step();
        }
    }
    progress.finish();
    Ok(outcomes)
}
