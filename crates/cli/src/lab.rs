//! `apportion lab`: load, run over the TCP of this machine, write, summarise.

use std::path::Path;
use std::process::ExitCode;

use apportion::{Run, Scenario};

use crate::arguments::Wanted;
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use crate::run::{load, print_results};

pub fn lab(wanted: &Wanted) -> anyhow::Result<ExitCode> {
    let scenario = load(wanted)?;
    if wanted.show_config {
        output::print(scenario.canonical())?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = wanted.folder("-lab");
    apportion::check_folder(&folder)?;
    apportion::lab::check(&scenario)?;
    let results = in_real_time(&scenario, wanted, &folder, |run| run.lab())?;
    print_results(&results?, &folder, wanted)
}

/// Runs a scenario in real time as `run` does, with the options and a progress bar of the command line.
///
/// # Errors
/// If namespaces or signals cannot be set up.
pub fn in_real_time<T>(
    scenario: &Scenario,
    wanted: &Wanted,
    folder: &Path,
    run: impl FnOnce(Run<'_>) -> T,
) -> anyhow::Result<T> {
    // Before there is a second thread.
    apportion::lab::enter()?;
    let cancel = interrupt::listen()?;
    if !wanted.is_silent() {
        announce(scenario, wanted.seeds);
    }
    let bar = Bar::new(wanted.is_silent());
    let configured = Run::new(scenario).seeds(wanted.seeds).cancel(&cancel).folder(folder);
    let results = run(configured.progress(|progress| bar.show(progress)));
    bar.clear();
    Ok(results)
}

/// Says how long it takes, and which parameters of the scenario's TCP the kernel does not have.
fn announce(scenario: &Scenario, seeds: u64) {
    let seconds: f64 = scenario.points().iter().map(|point| point.scenario.stop.as_secs_f64()).sum();
    output::note(&format!("in real time: this takes {:.0} s", seconds * seeds as f64));
    apportion::lab::unsupported(scenario).iter().for_each(|line| output::note(line));
}
