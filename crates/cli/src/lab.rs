//! `apportion lab`: load, run over the TCP of this machine, write, summarise.

use std::path::Path;

use apportion::lab::Precision;
use apportion::{Run, RunError, Scenario};

use crate::arguments::{Lab, Wanted};
use crate::compare::note_faults;
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use crate::run::{load, print_numbers, print_results};
use crate::status::Status;

pub fn lab(arguments: &Lab) -> anyhow::Result<Status> {
    let Lab { wanted, late, force } = arguments;
    let scenario = load(wanted)?;
    if wanted.show_config {
        output::print(scenario.canonical())?;
        return Ok(Status::SUCCESS);
    }
    let folder = wanted.folder("-lab");
    apportion::check_folder(&folder)?;
    apportion::lab::check(&scenario)?;
    let run = |run: Run<'_>| run.retries(late.retries()).force(*force).lab();
    let results = match in_real_time(&scenario, wanted, &folder, run)? {
        Err(RunError::Unwritten { cause, finished }) => {
            // What took minutes to measure is shown even if it cannot be kept.
            print_numbers(&finished, wanted)?;
            return Err(cause.into());
        }
        results => results?,
    };
    let status = print_results(&results, wanted)?;
    let faults = results.faults();
    if faults.is_empty() || late.allow_late {
        return Ok(status);
    }
    // The summary has them.
    if wanted.is_silent() {
        note_faults(&faults);
    }
    Ok(Status::from(1))
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

/// Says how long it takes, what the system does not grant for the sake of precision, and which parameters of the scenario's
/// TCP the kernel does not have.
fn announce(scenario: &Scenario, seeds: u64) {
    let seconds: f64 = scenario.points().iter().map(|point| point.scenario.stop.as_secs_f64()).sum();
    output::note_real_time(seconds * seeds as f64);
    let Precision { real_time, locked } = Precision::read();
    if !real_time {
        output::note(
            "real-time scheduling is not permitted; `ulimit -r 2` as root, or CAP_SYS_NICE, permits it",
        );
    }
    if !locked {
        output::note("locked memory is limited; `ulimit -l unlimited` as root permits it");
    }
    apportion::lab::unsupported(scenario).iter().for_each(|line| output::note(line));
}
