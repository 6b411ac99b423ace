//! `apportion pairs`: runs each service next to each other on one link.

use apportion::Cache;
use apportion::units::{Rate, Span};

use crate::arguments;
use crate::league::{Playing, estimate, list, names};
use crate::output;
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
        .jobs(arguments.play.jobs)
        .force(arguments.play.force)
        .folder(&arguments.out);
    let disciplines = names("disciplines", &arguments.disciplines)?;
    if !disciplines.is_empty() {
        pairs = pairs.disciplines(disciplines);
    }
    if !arguments.rates.is_empty() {
        pairs = pairs.rates(arguments.rates.iter().copied());
    }
    if arguments.play.estimate {
        return estimate(pairs.simulations()?, &pairs.estimate()?);
    }
    let playing = Playing::start(&arguments.play)?;
    if let Some(cache) = &playing.cache {
        pairs = pairs.cache(cache, Cache::MOST);
    }
    let played = pairs.cancel(&playing.cancel).progress(|progress| playing.bar.show(progress)).run();
    playing.end(played, |results| arguments.play.show(results, "pairs.html", results.rows(), &results.text()))
}
