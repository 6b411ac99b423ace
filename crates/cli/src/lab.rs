//! `apportion lab`: load, run over the TCP of this machine, write, summarise.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use apportion_runtime::outcome::Outcome;
use apportion_scenario::Suite;

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
    let (outcomes, error) = experiment(&suite, &seeds, wanted);
    let run = record(&suite, &seeds, outcomes);
    // What was finished before a run failed took its time: it is kept.
    apportion_report::write(&folder, &run)?;
    error.map_or_else(|| tell(&run, &folder, wanted), Err)
}

/// Refuses what the lab cannot run, before anything is run.
pub fn check(suite: &Suite, wanted: &Wanted) -> anyhow::Result<()> {
    let place = || wanted.scenario.display().to_string();
    suite.points.iter().try_for_each(|point| apportion_live::lab::check(&point.scenario)).with_context(place)
}

/// Runs every point with each of its seeds, one after another; in the order of points, then of seeds. Real time
/// is not shared: a run that had the machine for itself tells more than two that disturb each other. After a run
/// that fails there is no other one, and its error comes beside what there is.
pub fn experiment(
    suite: &Suite,
    seeds: &[Vec<u64>],
    wanted: &Wanted,
) -> (Vec<Option<Outcome>>, Option<anyhow::Error>) {
    let silent = wanted.quiet || wanted.json;
    if !silent {
        announce(suite, wanted.seeds);
    }
    let progress = Progress::new(suite.points.len() * wanted.seeds as usize, silent);
    let (mut outcomes, mut failed) = (Vec::new(), None);
    for (point, seeds) in suite.points.iter().zip(seeds) {
        for &seed in seeds {
            let is_over = failed.is_some() || CANCEL.load(Ordering::Relaxed);
            let run = || apportion_live::lab::run(&point.scenario, seed, &CANCEL);
            outcomes.push(if is_over { Ok(None) } else { run() }.unwrap_or_else(|error| {
                failed = Some(anyhow::Error::from(error).context(wanted.scenario.display().to_string()));
                None
            }));
            progress.step();
        }
    }
    progress.finish();
    (outcomes, failed)
}

/// Says how long it takes, and what of the scenario's TCP is not the kernel's.
fn announce(suite: &Suite, seeds: u64) {
    let length: f64 = suite.points.iter().map(|point| point.scenario.stop.as_secs_f64()).sum();
    output::note(&format!("in real time: this takes {:.0} s", length * seeds as f64));
    let unsupported: BTreeSet<_> =
        suite.points.iter().flat_map(|point| apportion_live::lab::unsupported(&point.scenario)).collect();
    unsupported.iter().for_each(|line| output::note(line));
}
