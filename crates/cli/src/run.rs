//! `apportion run`: loads a scenario, simulates it, writes and summarises.

use std::path::{Path, PathBuf};

use apportion::{Cache, Contents, Results, Retain, Run, Scenario, ScenarioBuilder};

use crate::arguments::{self, Wanted};
use crate::cache;
use crate::interrupt::Interrupt;
use crate::output;
use crate::progress::Bar;
use crate::status::Status;
#[cfg(target_os = "linux")]
use crate::watch;

pub fn run(arguments: &arguments::Run) -> anyhow::Result<Status> {
    let wanted = &arguments.wanted;
    let scenario = load(wanted)?;
    if wanted.show_config {
        output::print(scenario.canonical())?;
        return Ok(Status::SUCCESS);
    }
    let folder = wanted.folder("");
    let mut run = Run::new(&scenario).seeds(wanted.seeds).jobs(arguments.jobs).force(arguments.force);
    run = run.retain(wanted.retain(&scenario));
    if arguments.series {
        run = run.series(true);
    }
    if let Some(cache) = arguments.cache.chosen() {
        run = run.cache(&cache, Cache::MOST);
    }
    let run = run.phase_check(arguments.phase_check.of(wanted.seeds));
    if arguments.estimate {
        output::print(&format!("{}\n", estimate(&run)))?;
        return Ok(Status::SUCCESS);
    }
    #[cfg(target_os = "linux")]
    let mut page = arguments.page.bind(&scenario)?;
    let interrupt = Interrupt::listen()?;
    #[cfg(target_os = "linux")]
    let run = {
        watch::serve(&mut page)?;
        page.iter().fold(run, Run::watch)
    };
    let bar = Bar::new(wanted.is_silent());
    let run = run.cancel(&interrupt.cancel).folder(&folder);
    let results = run.progress(|progress| bar.show(progress)).simulate();
    bar.clear();
    let results = results?;
    cache::note_failure(results.cache_failure());
    arguments.cache.note_unused(results.uncached());
    let status = print_results(&results, wanted)?;
    #[cfg(target_os = "linux")]
    watch::keep(page.as_ref(), &interrupt);
    Ok(status)
}

/// Describes the cost of a run in words.
fn estimate(run: &Run<'_>) -> String {
    let simulations = run.simulations();
    let (total, missing) = (simulations.total(), simulations.missing().len());
    let refused = if simulations.check_size().is_err() { "\nToo much: only --force runs it." } else { "" };
    format!(
        "{total} simulations, {} of them in the cache. All of them take {}.{refused}",
        total - missing,
        simulations.estimate()
    )
}

impl Wanted {
    /// Folder for results: `--out`, or one named after the scenario with `suffix`.
    pub fn folder(&self, suffix: &str) -> PathBuf {
        let name = self.scenario.file_stem().unwrap_or_default().to_string_lossy();
        self.out.clone().unwrap_or_else(|| Path::new("results").join(format!("{name}{suffix}")))
    }

    /// Whether the run is short enough for outcomes to be held.
    pub fn is_short(&self, scenario: &Scenario) -> bool {
        self.seeds.saturating_mul(scenario.points().len() as u64) <= Contents::LONG
    }

    /// The part of each replication to hold: tables are in the folder.
    pub fn retain(&self, scenario: &Scenario) -> Retain {
        if self.is_short(scenario) { Retain::Full } else { Retain::Metrics }
    }

    /// Whether progress is hidden.
    pub fn is_silent(&self) -> bool {
        self.quiet || self.json
    }
}

/// Prints the results of a run and their folder.
pub fn print_results(results: &Results, wanted: &Wanted) -> anyhow::Result<Status> {
    print_numbers(results, wanted)?;
    if let Some(folder) = results.folder().filter(|_| !wanted.is_silent()) {
        output::print(&format!("report: {}\n", folder.join("report.html").display()))?;
    }
    if results.is_empty() {
        output::note(&nothing_to_keep(results));
    }
    Ok(if results.is_complete() { Status::SUCCESS } else { Status::from(1) })
}

/// Explains why an interrupted run has no results.
fn nothing_to_keep(results: &Results) -> String {
    let from = results.points().first().map(|point| point.measure_from);
    match (results.cut(), from) {
        (Some(cut), Some(from)) => {
            format!("interrupted at {cut}, before the measurement begins at {from}: there is nothing to keep")
        }
        _ => "interrupted before any replication had ended: nothing is written".to_owned(),
    }
}

/// Prints the warnings and the numbers of a run, as the command line asks.
pub fn print_numbers(results: &Results, wanted: &Wanted) -> anyhow::Result<()> {
    if wanted.json {
        // The JSON lines have the warnings.
        output::print(&results.json_lines())?;
    } else if !wanted.quiet {
        results.warnings().iter().for_each(|warning| output::note(&format!("warning: {warning}")));
        output::print(&results.summary())?;
    }
    Ok(())
}

/// Reads a scenario file with its settings; without such a file, the built-in example of that name.
pub fn load(wanted: &Wanted) -> anyhow::Result<Scenario> {
    let path = &wanted.scenario;
    let example = path.to_str().filter(|_| !path.exists()).and_then(ScenarioBuilder::example);
    let builder = example.unwrap_or_else(|| ScenarioBuilder::from_file(path));
    Ok(wanted.set.iter().fold(builder, |builder, (path, value)| builder.set(path, value)).load()?)
}
