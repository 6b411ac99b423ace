//! `apportion league`: runs every discipline in every situation.

use anyhow::Context as _;
use apportion::{Cache, Cancel, Estimate, LeagueError, LeagueResults};
use serde::Serialize;

use crate::arguments::{self, CacheUse, Play};
use crate::cache;
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use crate::status::Status;

pub fn league(arguments: &arguments::League) -> anyhow::Result<Status> {
    if arguments.list {
        output::print(&list(apportion::situations()))?;
        return Ok(Status::SUCCESS);
    }
    let disciplines = names("disciplines", &arguments.disciplines)?;
    let situations = names("situations", &arguments.situations)?;
    if let Some(played) = &arguments.from {
        let results = LeagueResults::load(played, &disciplines, &situations)?;
        show(&results.write(&arguments.out, arguments.kit)?, arguments)?;
        return Ok(Status::SUCCESS);
    }
    let mut league = apportion::League::new()
        .disciplines(disciplines)
        .situations(situations)
        .kit(arguments.kit)
        .seeds(arguments.seeds)
        .phase_check(arguments.phase_check.of(arguments.seeds))
        .jobs(arguments.play.jobs)
        .force(arguments.play.force)
        .folder(&arguments.out);
    if arguments.play.estimate {
        return estimate(league.simulations()?, &league.estimate()?);
    }
    let playing = Playing::start(&arguments.play)?;
    if let Some(cache) = &playing.cache {
        league = league.cache(cache, Cache::MOST);
    }
    let played = league.cancel(&playing.cancel).progress(|progress| playing.bar.show(progress)).run();
    playing.end(played, |results| show(results, arguments))
}

fn show(results: &LeagueResults, arguments: &arguments::League) -> anyhow::Result<()> {
    arguments.play.show(results, "league.html", results.rows(), &results.text())
}

/// Prints what the simulations of a league take.
pub fn estimate(simulations: usize, estimate: &Estimate) -> anyhow::Result<Status> {
    output::print(&format!("{simulations} simulations. All of them take {estimate}.\n"))?;
    Ok(Status::SUCCESS)
}

/// A league of cells or of pairs while it runs.
pub struct Playing {
    asked: CacheUse,
    pub cache: Option<Cache>,
    pub cancel: Cancel,
    pub bar: Bar,
}

impl Playing {
    pub fn start(play: &Play) -> anyhow::Result<Self> {
        let cache = play.cache.chosen();
        Ok(Self {
            asked: play.cache,
            cache,
            cancel: interrupt::listen()?,
            bar: Bar::new(play.quiet || play.json),
        })
    }

    /// Shows the results, or says that an interrupt came before there were any.
    pub fn end<T>(
        &self,
        played: Result<LeagueResults<T>, LeagueError>,
        show: impl FnOnce(&LeagueResults<T>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Status> {
        self.bar.clear();
        let results = match played {
            Err(error @ LeagueError::Cancelled) => {
                let kept = if self.cache.is_some() { "; the same command resumes it" } else { "" };
                output::note(&format!("{error}{kept}"));
                return Ok(Status::FAILURE);
            }
            other => other?,
        };
        cache::note_failure(results.cache_failure());
        self.asked.note_unused(results.uncached());
        results.faults().iter().for_each(|fault| output::note(&format!("NOT VALID: {fault}")));
        show(&results)?;
        Ok(if results.faults().is_empty() { Status::SUCCESS } else { Status::FAILURE })
    }
}

impl Play {
    /// Prints the rows or the text of a league, and the path of its page.
    pub fn show<T>(
        &self,
        results: &LeagueResults<T>,
        page: &str,
        rows: Vec<impl Serialize>,
        text: &str,
    ) -> anyhow::Result<()> {
        if self.json {
            for row in rows {
                let line = serde_json::to_string(&row).context("cannot print a row as JSON")?;
                output::print(&format!("{line}\n"))?;
            }
        } else if !self.quiet {
            output::print(text)?;
            if let Some(folder) = results.folder() {
                output::print(&format!("\npage: {}\n", folder.join(page).display()))?;
            }
        }
        Ok(())
    }
}

/// Lists files with the descriptions at their tops.
pub fn list(files: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    let about = |text: &'static str| {
        let lines = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        lines.collect::<Vec<_>>().join(" ")
    };
    let rows: Vec<Vec<String>> = files.map(|(name, text)| vec![name.to_owned(), about(text)]).collect();
    apportion::catalogue::table(&rows)
}

/// Collects the names of all lists of an option.
///
/// # Errors
/// The option was given and names nothing, which would otherwise mean all.
pub fn names(option: &str, lists: &[String]) -> anyhow::Result<Vec<String>> {
    let names: Vec<String> = lists.iter().flat_map(|list| split(list)).collect();
    anyhow::ensure!(lists.is_empty() || !names.is_empty(), "--{option} names none; leave it out for all");
    Ok(names)
}

/// Splits a list at commas, except at commas within a table.
fn split(list: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut depth = 0_usize;
    for c in list.chars() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                names.push(String::new());
                continue;
            }
            _ => (),
        }
        if let Some(last) = names.last_mut() {
            last.push(c);
        }
    }
    names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_table_is_one_name() {
        let table = "{ kind = \"red\", limit = \"50p\" }";
        assert_eq!(super::split(&format!("fifo, {table},stfq+pfd")), ["fifo", table, "stfq+pfd"]);
    }
}
