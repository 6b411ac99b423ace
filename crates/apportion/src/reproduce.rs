//! Experiments of papers: their claims, compared with measurements in the simulator, or over the TCP of this machine.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use apportion_live::lab::{self, LabError};
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
use crate::lab::until_valid;
use crate::scenario::Scenario;
use crate::simulations::{Simulations, Simulator};
use crate::size::{self, MAX_SECONDS};

/// Papers in this folder replace those that are built in.
pub(crate) const PAPERS: &str = "papers";
/// Replications of each run, if not set. Chosen: claims about means then have intervals of a few percent.
const SEEDS: u64 = 20;

/// A run of experiments of papers: which ones, and how.
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
    /// The retries of the lab; `None` for the simulator.
    lab: Option<u64>,
}

builders! {
    Reproduction:
    /// Replications of each run, each with a seed of its own. Default 20.
    seeds,
    /// Replications that are simulated at the same time; 0, the default, is one for each core.
    jobs,
    /// A token that ends the run, without a result. Default: a token that nothing cancels.
    cancel,
    /// A callback after each replication, one call at a time and in ascending order, from the thread that ran it.
    progress,
    /// A folder for a page and a file of JSON lines for each paper; nothing is written without one, the default.
    folder,
    /// Whether the folder also gets figures and tables for papers, in a folder `PAPER-kit` for each paper. Default: false.
    kit,
    /// Takes replications that were simulated before from this cache, and keeps those that are simulated now, as
    /// [`Run::cache`](crate::Run::cache). Runs in the lab are not cached. Default: no cache.
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
    /// Runs them even if the [estimate](Self::estimate) is of more than a day of CPU time or 2 GB of memory. Default: false.
    force,
}

impl<'a> Reproduction<'a> {
    /// The experiments of these names: an experiment such as `pps/fig4-onehop`, a paper such as `pps`, or a path to
    /// an `expect.toml` or its folder. All experiments if there are no names. Papers are those in `papers/` of the
    /// current folder, else those that are built in.
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

    /// Whether to run each experiment with its controls, which switch a mechanism of the scheme off, so that claims that
    /// show it must fail. Default false.
    pub fn ablate(mut self, ablate: bool) -> Self {
        self.ablate = ablate;
        self
    }

    /// Runs the variants of these names as well, which change something of the experiments; all variants if there
    /// are no names. Without effect on an [ablation](Self::ablate).
    pub fn variants<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.variants = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Runs them in the lab, over the TCP of this machine and in real time, instead of in the simulator; call
    /// [`lab::enter`] first. A replication that is not valid is repeated so often.
    /// [`jobs`](Self::jobs) has no effect then.
    ///
    /// What a profile asks of TCP and the kernel has no setting for is as in the kernel.
    pub fn in_lab(mut self, retries: u64) -> Self {
        self.lab = Some(retries);
        self
    }

    /// What all runs take in real time, in seconds.
    ///
    /// # Errors
    /// If experiments are not found or wrong.
    pub fn real_seconds(&self) -> Result<f64, ReproduceError> {
        Ok(self.real_time(&self.plan()?))
    }

    fn real_time(&self, plan: &Plan) -> f64 {
        let once: f64 = plan.scenarios().map(|scenario| scenario.stop.as_secs_f64()).sum();
        once * self.seeds as f64
    }

    /// What all runs take: time and packets of all of them, memory of those that run at once.
    ///
    /// ```
    /// let estimate = apportion::Reproduction::new(["pps/table1-sender"]).seeds(5).estimate()?;
    /// assert!(estimate.seconds() < 600.0);
    /// # Ok::<(), apportion::ReproduceError>(())
    /// ```
    ///
    /// # Errors
    /// If experiments are not found or wrong.
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

    /// The plan, unless it is too large.
    pub(crate) fn plan_of_right_size(&self) -> Result<Plan, ReproduceError> {
        let plan = self.plan()?;
        let estimate = self.size_of(&plan);
        let refused = size::is_too_large(&estimate) && !self.force;
        if refused { Err(ReproduceError::TooLarge(estimate)) } else { Ok(plan) }
    }

    /// Runs the experiments and judges their claims.
    ///
    /// # Errors
    /// If experiments are not found or wrong, they are [too large](Self::force), or the folder cannot be written;
    /// [`Cancelled`](ReproduceError::Cancelled) if it was cancelled before all runs were done.
    pub fn run(&self) -> Result<Reproduced, ReproduceError> {
        let plan = self.checked()?;
        let runs = plan.runs().len().saturating_mul(self.seeds as usize);
        let counter = Counter::new(self.progress.as_ref(), runs);
        let (results, cache_failure) = match self.lab {
            None => self.simulate(&plan, self.cache.as_ref(), &counter)?,
            Some(retries) => (self.in_real_time(&plan, retries, &counter)?, None),
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

    /// The plan, if it can be run and its folder written.
    fn checked(&self) -> Result<Plan, ReproduceError> {
        let plan = self.plan_of_right_size()?;
        self.folder.as_deref().map(write::check).transpose()?;
        Ok(plan)
    }

    /// The scenarios that it simulates with all seeds, without perturbed copies, each of a single point: for [`Simulations`] elsewhere.
    ///
    /// # Errors
    /// As of [`run`](Self::run) before it starts.
    pub fn scenarios(&self) -> Result<Vec<Scenario>, ReproduceError> {
        Ok(scenarios_of(&self.checked()?))
    }

    /// Simulates a plan, as far as the cache does not have it, and why that failed if it did. No results if it was cancelled.
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

    /// Runs a plan in the lab, where one run at a time has the machine.
    fn in_real_time(
        &self,
        plan: &Plan,
        retries: u64,
        counter: &Counter<'_>,
    ) -> Result<Option<Results>, ReproduceError> {
        let seconds = self.real_time(plan);
        if seconds > MAX_SECONDS && !self.force {
            return Err(ReproduceError::TooLong { days: seconds / MAX_SECONDS });
        }
        for scenario in plan.scenarios() {
            lab::check(scenario).map_err(|cause| ReproduceError::Lab(Box::new(cause)))?;
        }
        let run = |(scenario, seed)| {
            let outcome = until_valid(scenario, seed, retries, &|| None, None, &self.cancel);
            counter.step(0.0);
            outcome.map_err(|cause| ReproduceError::Lab(Box::new(cause)))
        };
        let outcomes: Option<Vec<Outcome>> =
            plan.replications(self.seeds).map(run).collect::<Result<_, _>>()?;
        Ok(outcomes.map(|outcomes| plan.results(self.seeds, outcomes)))
    }

    /// The command line that does the same.
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

/// The runs of a plan.
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
    /// The claims with their verdicts, in the order of the papers' files.
    #[must_use]
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Whether no claim fails, none holds that is marked as refuted, and with the mechanism switched off none holds that
    /// must fail. Claims may be undecided.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.claims.iter().any(Claim::fails_run)
    }

    /// What was wrong with replications in the lab, such as a machine that was too busy: a line for each.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        self.results.outcomes().filter_map(Outcome::fault).collect()
    }

    /// Tables of the claims and of [variants](Reproduction::variants), for a terminal.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = tables(&self.claims);
        for table in self.variants() {
            let _ = write!(text, "\n{}", table.markdown());
        }
        text
    }

    /// The same, one JSON object a line.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let variants: String = self.variants().iter().map(variant_table::Table::json_lines).collect();
        json_lines(&self.claims) + &variants
    }

    /// The pages that were written: one for each paper.
    #[must_use]
    pub fn pages(&self) -> &[PathBuf] {
        &self.pages
    }

    /// Why simulations could not be kept in the [cache](Reproduction::cache); none if all are.
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
    /// `PAPER/NAME`.
    pub id: String,
    /// The place in the paper, such as a figure.
    pub source: String,
    /// A summary of the setup.
    pub summary: String,
}

/// The experiments of all papers: those in `papers/` of the current folder, else those that are built in.
///
/// ```
/// let experiments = apportion::experiments()?;
/// assert!(experiments.iter().any(|experiment| experiment.id == "pps/table1-sender"));
/// # Ok::<(), apportion::ReproduceError>(())
/// ```
///
/// # Errors
/// If a file of a paper is wrong.
pub fn experiments() -> Result<Vec<Experiment>, ReproduceError> {
    let (papers, _) = find(Path::new(PAPERS), &[])?;
    let all = papers.into_iter().flat_map(|paper| paper.content.experiments);
    Ok(all.map(|one| Experiment { id: one.id, source: one.source, summary: one.summary }).collect())
}

/// Why a reproduction failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReproduceError {
    /// Papers or experiments are not found or wrong: one problem a line.
    #[error(transparent)]
    Problems(#[from] Problems),
    /// It would take too long, or too much memory.
    #[error(
        "the experiments would take {0}, which is more than a day or 2 GB: name fewer of them, reduce the seeds, or run them all the \
         same with --force"
    )]
    TooLarge(Estimate),
    /// The simulator refused or failed.
    #[error(transparent)]
    Simulator(#[from] ReplicateError),
    /// It would take too long in real time.
    #[error(
        "the experiments would take {days:.1} days in real time, which is more than one: name fewer of them, reduce the seeds, or run them all the same with --force"
    )]
    TooLong {
        /// How long.
        days: f64,
    },
    /// The lab cannot run an experiment, or failed.
    #[error("{0}; name experiments that the lab can run, or run this one in the simulator")]
    Lab(Box<LabError>),
    /// The folder cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It was cancelled before all runs were done.
    #[error("interrupted before all runs were done: nothing is judged or written")]
    Cancelled,
}
