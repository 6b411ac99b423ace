//! `apportion pairs`: runs each service next to each other on one link.

use anyhow::Context as _;
use apportion::units::{Rate, Span};
use apportion::{Cache, LeagueError, PairsResults};

use crate::arguments;
use crate::cache;
use crate::interrupt;
use crate::league::{list, names};
use crate::output;
use crate::progress::Bar;
use crate::status::Status;

pub fn pairs(arguments: &arguments::Pairs) -> anyhow::Result<Status> {
    if arguments.list {
        output::print(&list(apportion::services()))?;
        return Ok(Status::SUCCESS);
    }
    // Flows start within the first second.
    anyhow::ensure!(arguments.length >= Span::from_secs(5), "--length {}: at least 5s", arguments.length);
    anyhow::ensure!(arguments.rates.iter().all(|rate| *rate > Rate::ZERO), "--rates: a rate is above zero");
    let mut pairs = apportion::Pairs::new()
        .services(names("services", &arguments.services)?)
        .length(arguments.length)
        .seeds(arguments.seeds)
        .jobs(arguments.jobs)
        .force(arguments.force);
    let disciplines = names("disciplines", &arguments.disciplines)?;
    if !disciplines.is_empty() {
        pairs = pairs.disciplines(disciplines);
    }
    if !arguments.rates.is_empty() {
        pairs = pairs.rates(arguments.rates.iter().copied());
    }
    if arguments.estimate {
        let (count, estimate) = (pairs.simulations()?, pairs.estimate()?);
        output::print(&format!("{count} simulations. All of them take {estimate}.\n"))?;
        return Ok(Status::SUCCESS);
    }
    let cache = arguments.cache.chosen();
    if let Some(cache) = &cache {
        pairs = pairs.cache(cache, Cache::MOST);
    }
    let cancel = interrupt::listen()?;
    let bar = Bar::new(arguments.quiet || arguments.json);
    let played = pairs.cancel(&cancel).folder(&arguments.out).progress(|progress| bar.show(progress)).run();
    bar.clear();
    let results = match played {
        Err(error @ LeagueError::Cancelled) => {
            let kept = if cache.is_some() { "; the same command resumes it" } else { "" };
            output::note(&format!("{error}{kept}"));
            return Ok(Status::FAILURE);
        }
        other => other?,
    };
    cache::note_failure(results.cache_failure());
    results.faults().iter().for_each(|fault| output::note(&format!("NOT VALID: {fault}")));
    show(&results, arguments)?;
    Ok(if results.faults().is_empty() { Status::SUCCESS } else { Status::FAILURE })
}

/// Prints the grids.
fn show(results: &PairsResults, arguments: &arguments::Pairs) -> anyhow::Result<()> {
    if arguments.json {
        for row in results.rows() {
            let line = serde_json::to_string(&row).context("cannot print a row as JSON")?;
            output::print(&format!("{line}\n"))?;
        }
    } else if !arguments.quiet {
        output::print(&results.text())?;
        if let Some(folder) = results.folder() {
            output::print(&format!("\npage: {}\n", folder.join("pairs.html").display()))?;
        }
    }
    Ok(())
}
