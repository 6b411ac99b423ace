//! A league: every discipline in every situation.

use std::path::{Path, PathBuf};

use apportion_core::system::Catalog;
use apportion_report::league::{self, Cell, alone};
use apportion_report::{Folder, WriteError};
use apportion_scenario::Estimate;

use crate::builders::builders;
use crate::cache::Cache;
use crate::cancel::{Cancel, OnProgress, Progress};
use crate::catalogue;
use crate::results::Results;
use crate::run::Run;
use crate::scenario::Scenario;
use crate::size;
use crate::warnings;

mod built_in;
mod discipline;
mod error;
mod obstacle;
mod pairs;
mod service;
mod situation;

use discipline::Discipline;
pub use error::LeagueError;
pub use pairs::{Pairs, PairsResults};
pub use service::services;
use situation::Situation;
pub use situation::situations;

/// The default number of replications of each cell. Chosen: intervals are a few percent wide, and two cores
/// take less than half an hour.
const SEEDS: u64 = 5;

/// A league: each discipline runs in each scenario, a *situation* of the league.
///
/// ```
/// let results = apportion::League::new()
///     .disciplines(["fifo", "drr"])
///     .situations(["floods"])
///     .seeds(1)
///     .run()?;
/// let worst = |discipline| results.cell(discipline, "floods").unwrap().played().unwrap().metric("worst_share").unwrap().mean;
/// assert!(worst("fifo") < 0.1 && worst("drr") > 0.9);
/// # Ok::<(), apportion::LeagueError>(())
/// ```
#[must_use]
pub struct League<'a> {
    disciplines: Vec<String>,
    situations: Vec<String>,
    /// Scenarios of the caller, by name.
    own: Vec<(String, Scenario)>,
    catalog: Catalog,
    seeds: u64,
    phase_check: Option<bool>,
    jobs: usize,
    cancel: Cancel,
    progress: Option<OnProgress<'a>>,
    folder: Option<PathBuf>,
    kit: bool,
    cache: Option<(Cache, u64)>,
    force: bool,
}

impl Default for League<'_> {
    fn default() -> Self {
        Self::new()
    }
}

builders! {
    League:
    /// Sets the number of replications of each cell, each with its own seed. Default: 5.
    seeds,
    /// Sets whether each replication has a [perturbed copy](Run::phase_check). Default: with more than one
    /// seed.
    phase_check,
    /// Sets the number of concurrent simulations, as in [a run](Run::jobs).
    jobs,
    /// Sets a token that ends the league, without a result; finished simulations are in the cache.
    cancel,
    /// Sets a callback after each simulation, one call at a time and in ascending order.
    progress,
    /// Sets the folder in which the league gets its own folder, `folder/1` for the first. It contains
    /// `league.html`, a page for each cell in `cells`, all metrics of all cells as `cells.csv` and
    /// `cells.parquet`, and the contents of the page as `league.jsonl`. Default: none, nothing is written.
    folder,
    /// Sets whether the folder also gets figures and tables for papers, in `kit`. Default: false.
    kit,
    /// Sets the cache, as in [a run](Run::cache): a league that was killed resumes, and only cells with a
    /// changed situation or discipline are simulated anew.
    cache,
    /// Sets whether to run the league even if the [estimate](Self::estimate) exceeds a day of CPU time or 2
    /// GB of memory. Default: false.
    force,
}

impl<'a> League<'a> {
    /// Creates a league of every discipline of the catalogue in every [situation](situations()), with five
    /// replications each, on all cores; nothing is written.
    pub fn new() -> Self {
        Self {
            disciplines: Vec::new(),
            situations: Vec::new(),
            own: Vec::new(),
            catalog: catalogue::standard(),
            seeds: SEEDS,
            phase_check: None,
            jobs: 0,
            cancel: Cancel::new(),
            progress: None,
            folder: None,
            kit: false,
            cache: None,
            force: false,
        }
    }

    /// Sets the disciplines: names of the catalogue, combined with a buffer policy or with `isolate` by `+`
    /// as in `stfq+pfd` and `fq_codel+isolate`, or tables as in scenarios, such as
    /// `{ kind = "pie", target = "5ms" }`. Default: all.
    pub fn disciplines<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.disciplines = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the situations: names of [situations](situations()), or paths of scenario files, or of folders of
    /// them. Default: all built-in ones. In a file, the disciplines replace its list of queues, or its only queue.
    pub fn situations<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.situations = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a scenario of the caller as a situation with this name. The disciplines replace its queues as in
    /// a file.
    ///
    /// ```
    /// let mine = apportion::Scenario::from_text(r#"
    ///     seed = 1
    ///     stop = "5s"
    ///     link.mine = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = "fifo", watch = true }
    ///     flow.tcp = { count = 3, from = "a", to = "b" }
    /// "#)?;
    /// let results = apportion::League::new().disciplines(["fifo", "drr"]).situation("mine", &mine).seeds(1).run()?;
    /// assert!(results.cell("drr", "mine").unwrap().played().is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn situation(mut self, name: impl Into<String>, scenario: &Scenario) -> Self {
        self.own.push((name.into(), scenario.clone()));
        self
    }

    /// Sets the catalogue in which names of disciplines are looked up. Registered disciplines take part too.
    pub fn catalog(mut self, catalog: &Catalog) -> Self {
        self.catalog = catalog.clone();
        self
    }

    /// Estimates the cost of all simulations.
    ///
    /// # Errors
    /// If a name is unknown, or a scenario is invalid.
    pub fn estimate(&self) -> Result<Estimate, LeagueError> {
        Ok(self.size_of(&self.plan()?))
    }

    /// Returns the number of simulations, including perturbed copies.
    ///
    /// # Errors
    /// As for [`estimate`](Self::estimate).
    pub fn simulations(&self) -> Result<usize, LeagueError> {
        Ok(self.simulations_of(&self.plan()?))
    }

    /// Returns the scenarios that the league simulates with all seeds and their perturbed copies, for runs
    /// that retain outcomes, so that [`Simulations`](crate::Simulations) can run them elsewhere.
    ///
    /// # Errors
    /// As for [`estimate`](Self::estimate).
    pub fn scenarios(&self) -> Result<Vec<Scenario>, LeagueError> {
        Ok(self.plan()?.runs().cloned().collect())
    }

    fn simulations_of(&self, plan: &Plan) -> usize {
        plan.runs().map(|scenario| self.run_of(scenario).simulations().total()).sum()
    }

    fn size_of(&self, plan: &Plan) -> Estimate {
        let points = plan.runs().flat_map(Scenario::points).map(|point| &point.scenario);
        let copies = if self.checks_phases() { 2 } else { 1 };
        size::estimate(points, self.seeds.saturating_mul(copies), self.jobs)
    }

    fn plan(&self) -> Result<Plan, LeagueError> {
        let disciplines = discipline::all(&self.catalog, &self.disciplines)?;
        let situations = situation::all(&self.situations, &self.own, &self.catalog)?;
        let boards =
            situations.into_iter().map(|of| Board::of(of, &disciplines)).collect::<Result<Vec<_>, _>>()?;
        Ok(Plan { disciplines, boards })
    }

    fn run_of<'b>(&self, scenario: &'b Scenario) -> Run<'b> {
        let run = Run::new(scenario).seeds(self.seeds).jobs(self.jobs).force(true).cancel(&self.cancel);
        let run = run.phase_check(self.checks_phases());
        match &self.cache {
            Some((cache, most)) => run.cache(cache, *most),
            None => run,
        }
    }

    /// Runs the league.
    ///
    /// # Errors
    /// If a name is unknown, a scenario is invalid, the league is [too large](Self::force), or a file cannot
    /// be written; [`Cancelled`](LeagueError::Cancelled) if it was cancelled before all simulations had
    /// ended. There is no new folder then.
    pub fn run(&self) -> Result<LeagueResults, LeagueError> {
        let plan = self.plan()?;
        let folder = self.start(&plan)?;
        let mut situations: Vec<league::Situation> =
            plan.boards.iter().map(|board| board.played(&[])).collect();
        let played = self.play(&plan.boards, |at, results| {
            situations[at] = plan.boards[at].played(results.points());
            match &folder {
                Some(folder) => {
                    plan.boards[at].write(&plan.disciplines, &results, &mut situations[at], folder)
                }
                None => Ok(()),
            }
        })?;
        let league = league::League {
            seeds: self.seeds,
            disciplines: plan.disciplines.iter().map(Discipline::entrant).collect(),
            situations,
            command: self.command(),
            commit: crate::provenance::COMMIT.to_owned(),
            versions: crate::provenance::versions(false),
        };
        let folder = folder.map(|folder| publish(folder, &league, self.kit)).transpose()?;
        Ok(LeagueResults { of: league, folder, played })
    }

    /// Creates the folder, unless the simulations take too much.
    fn start(&self, plan: &Plan) -> Result<Option<Folder>, LeagueError> {
        let estimate = self.size_of(plan);
        if size::is_too_large(&estimate) && !self.force {
            return Err(LeagueError::TooLarge(estimate));
        }
        Ok(self.folder.as_deref().map(Folder::create).transpose()?)
    }

    /// Runs the scenarios of boards, and passes the results of each to `each`, with the number of its board.
    fn play(
        &self,
        boards: &[Board],
        mut each: impl FnMut(usize, Results) -> Result<(), LeagueError>,
    ) -> Result<Played, LeagueError> {
        let scenarios =
            || boards.iter().enumerate().filter_map(|(at, board)| Some((at, board.scenario.as_ref()?)));
        let total = scenarios().map(|(_, scenario)| self.run_of(scenario).simulations().total()).sum();
        let mut before = Progress::none_of(total);
        let mut played = Played::default();
        for (at, scenario) in scenarios() {
            let base = before;
            let report = |of: Progress| {
                if let Some(report) = &self.progress {
                    let (done, reused) = (base.done + of.done, base.reused + of.reused);
                    report(Progress { done, reused, total, partly: of.partly });
                }
            };
            let run = self.run_of(scenario).progress(report);
            let simulations = run.simulations().total();
            let results = run.simulate()?;
            if !results.is_complete() {
                return Err(LeagueError::Cancelled);
            }
            before.done += simulations;
            before.reused += results.reused() as usize;
            let name = &boards[at].situation.name;
            played.faults.extend(results.faults().into_iter().map(|fault| format!("{name}: {fault}")));
            played.cache_failure =
                played.cache_failure.or_else(|| results.cache_failure().map(str::to_owned));
            played.uncached = played.uncached.or_else(|| results.uncached().map(str::to_owned));
            each(at, results)?;
        }
        played.reused = before.reused as u64;
        Ok(played)
    }

    /// Returns the command line for the same league.
    fn command(&self) -> String {
        let own = self.own.iter().map(|(_, scenario)| scenario.origin().display().to_string());
        let situations: Vec<String> = self.situations.iter().cloned().chain(own).collect();
        let check = match self.phase_check {
            Some(true) => " --phase-check",
            Some(false) => " --no-phase-check",
            None => "",
        };
        format!(
            "apportion league{}{} --seeds {}{check}",
            option("disciplines", &self.disciplines),
            option("situations", &situations),
            self.seeds
        )
    }
}

/// An option of a command line, if it names anything.
fn option(option: &str, names: &[String]) -> String {
    let quote = |name: &String| if name.contains(' ') { format!("'{name}'") } else { name.clone() };
    let names: Vec<String> = names.iter().map(quote).collect();
    if names.is_empty() { String::new() } else { format!(" --{option} {}", names.join(",")) }
}

/// The simulations of a league.
struct Plan {
    disciplines: Vec<Discipline>,
    boards: Vec<Board>,
}

impl Plan {
    /// Returns a scenario for each situation in which a discipline can run.
    fn runs(&self) -> impl Iterator<Item = &Scenario> {
        self.boards.iter().filter_map(|board| board.scenario.as_ref())
    }
}

/// A situation, with the disciplines that run in it.
struct Board {
    situation: Situation,
    /// For each discipline, the reason why it cannot run in the situation, if any.
    obstacles: Vec<Option<String>>,
    /// The situation with a point for each discipline that can run; none if no discipline can.
    scenario: Option<Scenario>,
}

impl Board {
    fn of(situation: Situation, disciplines: &[Discipline]) -> Result<Self, LeagueError> {
        let mut obstacles = Vec::new();
        let mut queues = Vec::new();
        for discipline in disciplines {
            let obstacle = obstacle::of(&situation, discipline)?;
            if obstacle.is_none() {
                queues.push(discipline.queue_where(situation.has_marks()));
            }
            obstacles.push(obstacle);
        }
        let wanted = queues.len();
        let scenario = match wanted {
            0 => None,
            _ => Some(situation.with(&format!("[{}]", queues.join(", "))).map_err(Box::new)?),
        };
        let has_others = scenario.as_ref().is_some_and(|scenario| scenario.points().len() != wanted);
        if has_others {
            return Err(LeagueError::Situation {
                name: situation.name,
                cause: "it has a list besides its queues; a situation has one point for each discipline"
                    .to_owned(),
            });
        }
        Ok(Self { situation, obstacles, scenario })
    }

    /// Returns the situation with its measurements.
    fn played(&self, points: &[apportion_report::PointResults]) -> league::Situation {
        let Situation { name, about, .. } = &self.situation;
        let title = self.situation.base.title().to_owned();
        let texts = [name.clone(), title, about.clone()];
        league::Situation::of(texts, self.situation.around(), self.obstacles.clone(), points)
    }

    /// Writes the page of each cell.
    fn write(
        &self,
        disciplines: &[Discipline],
        results: &Results,
        situation: &mut league::Situation,
        folder: &Folder,
    ) -> Result<(), LeagueError> {
        let cells = situation.cells.iter_mut().zip(disciplines);
        let played = cells.filter_map(|(cell, discipline)| match cell {
            Cell::Empty(_) => None,
            Cell::Played(played) => Some((played, discipline)),
        });
        for (at, (played, discipline)) in played.enumerate() {
            let scenario = self.situation.with_discipline(discipline).map_err(Box::new)?;
            let record = results.record();
            let title = format!("{}: {}", situation.title, discipline.name);
            let warnings = warnings::of(&scenario, &record.points[at..=at]);
            let hash = format!("{:016x}", scenario.hash());
            let run = alone(record, at, title, scenario.canonical().to_owned(), hash, warnings);
            let name = format!("cells/{}/{}.html", situation.name, discipline.file);
            folder.file(&name, apportion_report::page(&run))?;
            played.report = Some(name);
        }
        Ok(())
    }
}

/// Writes the files about all cells, and publishes the folder.
fn publish(folder: Folder, league: &league::League, kit: bool) -> Result<PathBuf, WriteError> {
    folder.table(&league.rows())?;
    folder.file(league::FILE, league.stored())?;
    folder.file("league.html", league.page())?;
    if kit {
        league.kit().into_iter().try_for_each(|(name, bytes)| folder.file(&format!("kit/{name}"), bytes))?;
    }
    folder.publish()
}

/// Side results of the simulations of a league: cache hits, faults.
#[derive(Clone, Debug, Default)]
struct Played {
    /// The number of simulations taken from the cache.
    reused: u64,
    /// The reasons why replications are not valid.
    faults: Vec<String>,
    cache_failure: Option<String>,
    uncached: Option<String>,
}

/// The results of a league: cells of disciplines in situations, or [pairs](PairsResults).
#[derive(Clone, Debug)]
pub struct LeagueResults<T = league::League> {
    of: T,
    folder: Option<PathBuf>,
    played: Played,
}

impl LeagueResults {
    /// Loads a stored league, from its folder or the `league.jsonl` in it: the contents of its page, to five
    /// digits. Keeps the named disciplines and situations, in this order; all if none are named.
    ///
    /// ```no_run
    /// let results = apportion::LeagueResults::load("results/league/1", &["fifo", "drr"], &[])?.write("results/two", true)?;
    /// assert!(results.folder().is_some_and(|folder| folder.join("kit").is_dir()));
    /// # Ok::<(), apportion::LeagueError>(())
    /// ```
    ///
    /// # Errors
    /// If the league cannot be read, or contains nothing of such a name.
    pub fn load<S: AsRef<str>>(
        path: impl AsRef<Path>,
        disciplines: &[S],
        situations: &[S],
    ) -> Result<Self, LeagueError> {
        let names = |names: &[S]| names.iter().map(|name| name.as_ref().to_owned()).collect::<Vec<_>>();
        let league = league::League::load(path.as_ref())?.only(&names(disciplines), &names(situations))?;
        Ok(Self { of: league, folder: None, played: Played::default() })
    }

    /// Writes the league as [`folder`](League::folder) of a run does, except for reports of cells, and with a
    /// [kit](League::kit) if wanted.
    ///
    /// # Errors
    /// If a file cannot be written; there is no new folder then.
    pub fn write(self, folder: impl AsRef<Path>, kit: bool) -> Result<Self, LeagueError> {
        let folder = publish(Folder::create(folder.as_ref())?, &self.of, kit)?;
        Ok(Self { folder: Some(folder), ..self })
    }

    /// Returns the disciplines and the situations with their cells.
    #[must_use]
    pub const fn league(&self) -> &league::League {
        &self.of
    }

    /// Returns the cell of a discipline in a situation, by their names.
    #[must_use]
    pub fn cell(&self, discipline: &str, situation: &str) -> Option<&Cell> {
        self.of.cell(discipline, situation)
    }

    /// Returns the league as text for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        self.of.text()
    }

    /// Returns the league as one HTML page.
    #[must_use]
    pub fn page(&self) -> String {
        self.of.page()
    }

    /// Returns all metrics of all cells.
    #[must_use]
    pub fn rows(&self) -> Vec<crate::rows::LeagueRow> {
        self.of.rows()
    }
}

impl<T> LeagueResults<T> {
    /// Returns the folder of the results, if they were [written](League::folder).
    #[must_use]
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Returns the number of simulations taken from the [cache](League::cache).
    #[must_use]
    pub const fn reused(&self) -> u64 {
        self.played.reused
    }

    /// Returns the reasons why replications are not valid, one line each with situation, point and seed;
    /// empty if all are valid.
    #[must_use]
    pub fn faults(&self) -> &[String] {
        &self.played.faults
    }

    /// Returns the reason why the [cache](League::cache) could not be written, if it failed.
    #[must_use]
    pub fn cache_failure(&self) -> Option<&str> {
        self.played.cache_failure.as_deref()
    }

    /// Returns the reason why the [cache](League::cache) was not used for some simulations, if one was set: a
    /// discipline or service [registered by the program](crate::Scenario::has_own_code).
    #[must_use]
    pub fn uncached(&self) -> Option<&str> {
        self.played.uncached.as_deref()
    }
}
