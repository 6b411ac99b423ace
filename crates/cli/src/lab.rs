//! `apportion lab`: loads a scenario, runs it over the TCP of this machine, writes and summarises.

use std::path::Path;

use apportion::lab::{Backend, Precision};
use apportion::{Run, RunError, Scenario, Watch};

use crate::arguments::{Lab, Wanted};
use crate::compare::note_faults;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Bar;
use crate::run::{load, print_numbers, print_results};
use crate::status::Status;
use crate::watch;

pub fn lab(arguments: &Lab) -> anyhow::Result<Status> {
    let Lab { wanted, page, late, force, backend } = arguments;
    let backend = (*backend).into();
    let scenario = load(wanted)?;
    if wanted.show_config {
        output::print(scenario.canonical())?;
        return Ok(Status::SUCCESS);
    }
    let folder = wanted.folder("-lab");
    apportion::check_folder(&folder)?;
    apportion::lab::check_with(&scenario, backend)?;
    // Bind the page first: the namespace that the run enters has no way to a browser.
    let world = RealTime::enter(&scenario, wanted, backend, page.bind(&scenario)?)?;
    let run = |run: Run<'_>| run.retries(late.retries()).force(*force).backend(backend).lab();
    let results = match world.run(&scenario, wanted, &folder, run) {
        Err(RunError::Unwritten { cause, finished }) => {
            // Print what took minutes to measure even if it cannot be kept.
            print_numbers(&finished, wanted)?;
            return Err(cause.into());
        }
        results => results?,
    };
    let mut status = print_results(&results, wanted)?;
    let faults = results.faults();
    if !faults.is_empty() && !late.allow_late {
        // The summary has the faults.
        if wanted.is_silent() {
            note_faults(&faults);
        }
        status = Status::from(1);
    }
    world.keep_page();
    Ok(status)
}

/// The process in its own namespaces, where scenarios run in real time.
pub struct RealTime {
    interrupt: Interrupt,
    page: Option<Watch>,
}

impl RealTime {
    /// Enters the namespaces, listens for interrupts, shows the page, and says how long the scenario takes.
    ///
    /// # Errors
    /// Namespaces, signals or the page cannot be set up.
    pub fn enter(
        scenario: &Scenario,
        wanted: &Wanted,
        backend: Backend,
        mut page: Option<Watch>,
    ) -> anyhow::Result<Self> {
        // A process with a second thread cannot enter a user namespace.
        apportion::lab::enter_with(backend)?;
        let interrupt = Interrupt::listen()?;
        watch::serve(&mut page)?;
        if !wanted.is_silent() {
            announce(scenario, wanted.seeds);
        }
        Ok(Self { interrupt, page })
    }

    /// Runs a scenario as `run` does, with the options and a progress bar of the command line.
    pub fn run<T>(
        &self,
        scenario: &Scenario,
        wanted: &Wanted,
        folder: &Path,
        run: impl FnOnce(Run<'_>) -> T,
    ) -> T {
        let bar = Bar::new(wanted.is_silent());
        let configured = Run::new(scenario).seeds(wanted.seeds).cancel(&self.interrupt.cancel).folder(folder);
        let configured = self.page.iter().fold(configured, Run::watch);
        let results = run(configured.progress(|progress| bar.show(progress)));
        bar.clear();
        results
    }

    /// Keeps the page, if there is one, until an interrupt.
    pub fn keep_page(&self) {
        watch::keep(self.page.as_ref(), &self.interrupt);
    }
}

/// Says how long runs of the lab take.
pub fn note_real_time(seconds: f64) {
    let time = match seconds {
        s if s < 180.0 => format!("{s:.0} s"),
        s if s < 10_800.0 => format!("{:.0} minutes", s / 60.0),
        s if s < 259_200.0 => format!("{:.0} hours", s / 3_600.0),
        s => format!("{:.0} days", s / 86_400.0),
    };
    output::note(&format!("in real time: this takes {time}, and more if runs are repeated"));
}

/// Says how long the run takes, which settings for precision the system denies, and which parameters of the
/// scenario's TCP the kernel lacks.
fn announce(scenario: &Scenario, seeds: u64) {
    let seconds: f64 = scenario.points().iter().map(|point| point.scenario.stop.as_secs_f64()).sum();
    note_real_time(seconds * seeds as f64);
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
