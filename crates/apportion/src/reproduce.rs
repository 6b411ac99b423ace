//! Experiments of papers: their claims, compared with measurements in the simulator, or over the TCP of this
//! machine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use apportion_reproduce::table::{json_lines, tables};
use apportion_reproduce::write::{World, WriteError};
use apportion_reproduce::{Claim, Plan, Problems, Results, Scope, find, judge, variant_table, write};
use apportion_runtime::outcome::Outcome;
use apportion_scenario::Estimate;
use apportion_sim::replicate::ReplicateError;

use crate::builders::builders;
use crate::cache::{Cache, CacheError};
use crate::cached::{Cached, Measurement};
use crate::cancel::{Cancel, Counter, OnProgress, Progress};
use crate::scenario::Scenario;
use crate::simulations::{Simulations, Simulator};
use crate::size;

#[cfg(all(feature = "live", target_os = "linux"))]
mod lab;

/// The folder whose papers replace the built-in ones.
pub(crate) const PAPERS: &str = "papers";
/// The default number of replications of each run. Chosen: claims about means then have intervals of a few
/// percent.
const SEEDS: u64 = 20;

/// A run of experiments of papers, with its options.
///
/// ```no_run
/// let reproduced = apportion::Reproduction::new(["pps/table1-sender"]).seeds(5).run()?;
/// print!("{}", reproduced.text());
/// assert!(reproduced.holds());
/// # Ok::<(), apportion::ReproduceError>(())
/// ```
#[must_use]
pub struct Reproduction<'a> {
    pub(crate) names: Vec<String>,
    pub(crate) seeds: u64,
    pub(crate) jobs: usize,
    ablate: bool,
    variants: Option<Vec<String>>,
    pub(crate) cancel: Cancel,
    progress: Option<OnProgress<'a>>,
    folder: Option<PathBuf>,
    kit: bool,
    force: bool,
    cache: Option<(Cache, u64)>,
    /// The number of retries in the lab; `None` for the simulator.
    lab: Option<u64>,
}

builders! {
    Reproduction:
    /// Sets the number of replications of each run, each with its own seed. Default: 20.
    seeds,
    /// Sets the number of concurrent replications; 0 means one for each core. Default: 0.
    jobs,
    /// Sets a token that ends the run, without a result. Default: a token that is never cancelled.
    cancel,
    /// Sets a callback after each replication, one call at a time and in ascending order, from the thread
    /// that ran it.
    progress,
    /// Sets a folder for a page and a file of JSON lines for each paper. Default: none, nothing is written.
    folder,
    /// Sets whether the folder also gets figures and tables for papers, in a folder `PAPER-kit` for each
    /// paper. Default: false.
    kit,
    /// Takes replications from this cache that were simulated before, and stores those that are simulated
    /// now, as [`Run::cache`](crate::Run::cache) does. Runs in the lab are not cached. Default: no cache.
    ///
    /// ```no_run
    /// use apportion::{Cache, Reproduction};
    ///
    /// let cache = Cache::at("cache");
    /// let run = || Reproduction::new(["csfq"]).seeds(2).cache(&cache, Cache::MOST).run();
    /// // The second takes all of it from the cache.
    /// assert_eq!(run()?.text(), run()?.text());
    /// # Ok::<(), apportion::ReproduceError>(())
    /// ```
    cache,
    /// Sets whether to run the experiments even if the [estimate](Self::estimate) exceeds a day of CPU time
    /// or 2 GB of memory. Default: false.
    force,
}

impl<'a> Reproduction<'a> {
    /// Creates a run of the experiments of these names: an experiment such as `pps/fig4-onehop`, a paper such
    /// as `pps`, or a path to an `expect.toml` or its folder. Without names, all experiments. Papers are
    /// those in `papers/` of the current folder, otherwise the built-in ones.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self {
            names: names.into_iter().map(Into::into).collect(),
            seeds: SEEDS,
            jobs: 0,
            ablate: false,
            variants: None,
            cancel: Cancel::new(),
            progress: None,
            folder: None,
            kit: false,
            force: false,
            cache: None,
            lab: None,
        }
    }

    /// Sets whether to run each experiment with its controls, which disable a mechanism of the scheme, so
    /// that claims that depend on it must fail. Default: false.
    pub fn ablate(mut self, ablate: bool) -> Self {
        self.ablate = ablate;
        self
    }

    /// Also runs the variants of these names, which change parts of the experiments; all variants if there
    /// are no names. Without effect on an [ablation](Self::ablate).
    pub fn variants<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.variants = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Returns the real time of all runs, in seconds.
    ///
    /// # Errors
    /// If experiments are not found or invalid.
    pub fn real_seconds(&self) -> Result<f64, ReproduceError> {
        Ok(self.real_time(&self.plan()?))
    }

    fn real_time(&self, plan: &Plan) -> f64 {
        let once: f64 = plan.scenarios().map(|scenario| scenario.stop.as_secs_f64()).sum();
        once * self.seeds as f64
    }

    /// Estimates the cost of all runs: time and packets of all of them, memory of the concurrent ones.
    ///
    /// ```
    /// let estimate = apportion::Reproduction::new(["pps/table1-sender"]).seeds(5).estimate()?;
    /// assert!(estimate.seconds() < 600.0);
    /// # Ok::<(), apportion::ReproduceError>(())
    /// ```
    ///
    /// # Errors
    /// If experiments are not found or invalid.
    pub fn estimate(&self) -> Result<Estimate, ReproduceError> {
        Ok(self.size_of(&self.plan()?))
    }

    fn size_of(&self, plan: &Plan) -> Estimate {
        size::estimate(plan.scenarios(), self.seeds, self.jobs)
    }

    fn plan(&self) -> Result<Plan, ReproduceError> {
        let (papers, wanted) = find(Path::new(PAPERS), &self.names)?;
        let scope = match &self.variants {
            _ if self.ablate => Scope::Ablated,
            Some(names) => Scope::Variants(names),
            None => Scope::Usual,
        };
        Ok(Plan::new(papers, &wanted, scope)?)
    }

    /// Returns the plan, unless it is too large.
    pub(crate) fn plan_of_right_size(&self) -> Result<Plan, ReproduceError> {
        let plan = self.plan()?;
        let estimate = self.size_of(&plan);
        let refused = size::is_too_large(&estimate) && !self.force;
        if refused { Err(ReproduceError::TooLarge(estimate)) } else { Ok(plan) }
    }

    /// Runs the experiments and judges their claims.
    ///
    /// # Errors
    /// If experiments are not found or invalid, they are [too large](Self::force), or the folder cannot be
    /// written; [`Cancelled`](ReproduceError::Cancelled) if the run was cancelled before all runs had ended.
    pub fn run(&self) -> Result<Reproduced, ReproduceError> {
        let plan = self.checked()?;
        let runs = plan.runs().len().saturating_mul(self.seeds as usize);
        let counter = Counter::new(self.progress.as_ref(), runs);
        let (results, cache_failure) = match self.lab {
            #[cfg(all(feature = "live", target_os = "linux"))]
            Some(retries) => (self.in_real_time(&plan, retries, &counter)?, None),
            _ => self.simulate(&plan, self.cache.as_ref(), &counter)?,
        };
        let results = results.ok_or(ReproduceError::Cancelled)?;
        let claims = judge(&plan, &results);
        let world = if self.lab.is_some() { World::Lab } else { World::Simulator };
        let write = |folder: &PathBuf| {
            write::write(folder, &plan, &results, &claims, world, self.kit, &self.command())
        };
        let pages = self.folder.as_ref().map(write).transpose()?.unwrap_or_default();
        let cache_failure = cache_failure.map(|failure| failure.to_string());
        Ok(Reproduced { plan, results, claims, pages, cache_failure })
    }

    /// Returns the plan, if it can be run and its folder can be written.
    fn checked(&self) -> Result<Plan, ReproduceError> {
        let plan = self.plan_of_right_size()?;
        self.folder.as_deref().map(write::check).transpose()?;
        Ok(plan)
    }

    /// Returns the scenarios that the experiments simulate with all seeds, without perturbed copies, each
    /// with a single point, so that [`Simulations`] can run them elsewhere.
    ///
    /// # Errors
    /// As for [`run`](Self::run) before it starts.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, ReproduceError> {
        Ok(scenarios_of(&self.checked()?))
    }

    /// Simulates the parts of a plan that are not in the cache. Also returns the reason if the cache failed.
    /// No results if the run was cancelled.
    pub(crate) fn simulate(
        &self,
        plan: &Plan,
        cache: Option<&(Cache, u64)>,
        counter: &Counter<'_>,
    ) -> Result<(Option<Results>, Option<CacheError>), ReproduceError> {
        let scenarios = scenarios_of(plan);
        let mut simulations = Simulations::new(&scenarios, self.seeds).jobs(self.jobs).cancel(&self.cancel);
        if let Some((cache, _)) = cache {
            simulations = simulations.cache(cache);
        }
        let points = simulations.blank();
        let cached = Cached::new(&simulations);
        let simulator = Simulator {
            simulations: &simulations,
            points: &points,
            openers: &[],
            events: None,
            cuts: None,
            cached: &cached,
            counter,
        };
        let all: Vec<_> = (0..simulations.total()).map(|number| simulations.which(number)).collect();
        let ended = simulator.run(&all)?;
        let failure = cached.finish(cache.map_or(u64::MAX, |(_, most)| *most));
        let outcome = |ended| match ended {
            Some(Measurement::Outcome(outcome)) => Some(*outcome),
            _ => None,
        };
        let outcomes: Option<Vec<Outcome>> = ended.into_iter().map(outcome).collect();
        Ok((outcomes.map(|outcomes| plan.results(self.seeds, outcomes)), failure))
    }

    /// Returns the command line for the same run.
    fn command(&self) -> String {
        let mut command = "apportion reproduce".to_owned();
        for name in &self.names {
            command.push(' ');
            command.push_str(name);
        }
        let _ = write!(command, " --seeds {}", self.seeds);
        if self.lab.is_some() {
            command.push_str(" --world lab");
        }
        if self.ablate {
            command.push_str(" --ablate");
        }
        if let Some(names) = &self.variants {
            command.push_str(" --variants");
            for name in names {
                let _ = write!(command, " \"{name}\"");
            }
        }
        command
    }
}

/// Returns the runs of a plan.
fn scenarios_of(plan: &Plan) -> Vec<Scenario> {
    plan.runs().iter().map(|run| Scenario::of_suite(run.suite.clone(), run.path.clone())).collect()
}

/// Results of experiments: measurements and verdicts.
#[derive(Debug)]
pub struct Reproduced {
    plan: Plan,
    results: Results,
    claims: Vec<Claim>,
    pages: Vec<PathBuf>,
    cache_failure: Option<String>,
}

impl Reproduced {
    /// Returns the claims with their verdicts, in the order of the papers' files.
    #[must_use]
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Whether no claim fails, no claim marked as refuted holds, and no claim holds that must fail with the
    /// mechanism disabled. Claims may be undecided.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.claims.iter().any(Claim::fails_run)
    }

    /// Returns the problems of replications in the lab, such as a machine that was too busy, one per line.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.results.outcomes().filter_map(Outcome::fault).collect()
    }

    /// Returns tables of the claims and of [variants](Reproduction::variants), for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = tables(&self.claims);
        for table in self.variants() {
            let _ = write!(text, "\n{}", table.markdown());
        }
        text
    }

    /// Returns the claims and variants as JSON lines, one object per line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let variants: String = self.variants().iter().map(variant_table::Table::json_lines).collect();
        json_lines(&self.claims) + &variants
    }

    /// Returns the pages that were written, one for each paper.
    #[must_use]
    pub fn pages(&self) -> &[PathBuf] {
        &self.pages
    }

    /// Returns the reason why simulations could not be stored in the [cache](Reproduction::cache); none if
    /// all are.
    #[must_use]
    pub fn cache_failure(&self) -> Option<&str> {
        self.cache_failure.as_deref()
    }

    fn variants(&self) -> Vec<variant_table::Table<'_>> {
        if self.plan.varied { variant_table::tables(&self.plan, &self.results) } else { Vec::new() }
    }
}

/// An experiment of a paper.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Experiment {
    /// The identifier, `PAPER/NAME`.
    pub id: String,
    /// The place in the paper, such as a figure.
    pub source: String,
    /// A summary of the setup.
    pub summary: String,
}

/// Returns the experiments of all papers: those in `papers/` of the current folder, otherwise the built-in
/// ones.
///
/// ```
/// let experiments = apportion::experiments()?;
/// assert!(experiments.iter().any(|experiment| experiment.id == "pps/table1-sender"));
/// # Ok::<(), apportion::ReproduceError>(())
/// ```
///
/// # Errors
/// If a file of a paper is invalid.
pub fn experiments() -> Result<Vec<Experiment>, ReproduceError> {
    let (papers, _) = find(Path::new(PAPERS), &[])?;
    let all = papers.into_iter().flat_map(|paper| paper.content.experiments);
    Ok(all.map(|one| Experiment { id: one.id, source: one.source, summary: one.summary }).collect())
}

/// The reason why a reproduction failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// Papers or experiments are not found or invalid: one problem per line.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// The reproduction would take too long, or too much memory.
    #[error(
        "the experiments would take {0}, which is more than a day or 2 GB: name fewer of them, reduce the seeds, or run them all the \
         same with --force"
    )]
    TooLarge(Estimate),
    /// The simulator refused or failed.
    #[error(transparent)]
    Simulator(#[from] ReplicateError),
    /// The reproduction would take too long in real time.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error(
        "the experiments would take {days:.1} days in real time, which is more than one: name fewer of them, reduce the seeds, or run them all the same with --force"
    )]
    TooLong {
        /// The time that it would take.
        days: f64,
    },
    /// The lab cannot run an experiment, or failed.
    #[error("{0}; name experiments that the lab can run, or run this one in the simulator")]
    #[cfg(all(feature = "live", target_os = "linux"))]
    Lab(Box<apportion_live::lab::LabError>),
    /// The folder cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The reproduction was cancelled before all runs had ended.
    #[error("interrupted before all runs were done: nothing is judged or written")]
    Cancelled,
}
