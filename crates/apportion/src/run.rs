//! Running a scenario in the simulator.

use std::io;
use std::path::PathBuf;

use apportion_cache::{Cache, CacheError};
use apportion_report::WriteError;
use apportion_report::phases::{Sample, Twin};
use apportion_runtime::outcome::Outcome;
use apportion_scenario::{Estimate, Point, model, replication_seed};
use apportion_sim::Job;
use apportion_sim::replicate::ReplicateError;

use crate::cached::{Cached, Ended, Which};
use crate::cancel::{Cancel, Counter, OnProgress, Progress};
use crate::captures::Captures;
use crate::results::Results;
use crate::scenario::Scenario;
use crate::size;

/// A run of a scenario: every point of its sweep with every seed.
///
/// ```
/// # let scenario = apportion::Scenario::from_text(r#"
/// #     seed = 1
/// #     stop = "1s"
/// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = ["fifo", "drr"] }
/// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// # "#)?;
/// let results = apportion::Run::new(&scenario)
///     .seeds(3)
///     .progress(|progress| eprintln!("{} of {}", progress.done, progress.total))
///     .simulate()?;
/// assert_eq!(results.flows().count(), 2 * 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Run<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seeds: u64,
    /// None: by the number of seeds.
    perturb: Option<bool>,
    jobs: usize,
    pub(crate) cancel: Cancel,
    pub(crate) progress: Option<OnProgress<'a>>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) force: bool,
    cache: Option<(Cache, u64)>,
    #[cfg(all(feature = "live", target_os = "linux"))]
    pub(crate) retries: u64,
}

impl<'a> Run<'a> {
    /// One replication of each point, on all cores; nothing is written.
    pub fn new(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            seeds: 1,
            perturb: None,
            jobs: 0,
            cancel: Cancel::new(),
            progress: None,
            folder: None,
            force: false,
            cache: None,
            #[cfg(all(feature = "live", target_os = "linux"))]
            retries: crate::lab::RETRIES,
        }
    }

    /// Replications of each point, each with a seed of its own: the scenario's for the first, seeds derived from it
    /// for the others. Default 1.
    pub fn seeds(mut self, count: u64) -> Self {
        self.seeds = count;
        self
    }

    /// Whether each replication has a twin in the simulator, which shows [where results depend on phases](Results::phases): the same
    /// seed, with every propagation delay of the scenario moved by 1 µs, up or down; two replications in succession share the moves. The twins double the time. They change no other table. Default: with more than one seed. Runs in real time
    /// have none: their phases vary by more than that from run to run.
    ///
    /// ```
    /// // Two flows alike, without jitter and random starts: which of them finds the last place of the buffer is decided by phases.
    /// let scenario = apportion::Scenario::from_text(r#"
    ///     seed = 1
    ///     stop = "5s"
    ///     link.wire = { from = "a", to = "b", rate = "4Mbit", delay = "5ms", queue = { kind = "fifo", limit = "10p" } }
    ///     flow.x = { from = "a", to = "b", jitter = "0s", source = { kind = "cbr", rate = "3Mbit", packet = "500B" } }
    ///     flow.y = { from = "a", to = "b", jitter = "0s", source = { kind = "cbr", rate = "3Mbit", packet = "500B" } }
    /// "#)?;
    /// let results = apportion::Run::new(&scenario).seeds(2).simulate()?;
    /// for row in results.phases().filter(|row| row.significant) {
    ///     println!("{} {}: {:.3} moves by {:.3}", row.flow, row.metric, row.mean, row.shift);
    /// }
    /// # assert_eq!(results.phases().count(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn perturb(mut self, perturb: bool) -> Self {
        self.perturb = Some(perturb);
        self
    }

    /// Whether replications have twins.
    fn has_twins(&self) -> bool {
        self.perturb.unwrap_or(self.seeds > 1)
    }

    /// Replications that are simulated at the same time; 0, the default, is one for each core. Results do not
    /// depend on it.
    pub fn jobs(mut self, threads: usize) -> Self {
        self.jobs = threads;
        self
    }

    /// A token that ends the run: it then has the replications that were finished, and
    /// [`is_complete`](Results::is_complete) is false. Default: a token that nothing cancels.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// let cancel = apportion::Cancel::new();
    /// // After the first of twenty replications.
    /// let results = apportion::Run::new(&scenario)
    ///     .seeds(20)
    ///     .jobs(1)
    ///     .cancel(&cancel)
    ///     .progress(|_| cancel.cancel())
    ///     .simulate()?;
    /// assert!(!results.is_complete());
    /// assert_eq!(results.flows().count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cancel(mut self, token: &Cancel) -> Self {
        self.cancel = token.clone();
        self
    }

    /// A callback after each replication and each [twin](Self::perturb), one call at a time and in ascending order, from the thread that ran it.
    pub fn progress(mut self, report: impl Fn(Progress) + Send + Sync + 'a) -> Self {
        self.progress = Some(Box::new(report));
        self
    }

    /// A folder for the results. It is checked before the run and written after it, as [`Results::write`] does,
    /// together with a capture of each link that has `pcap = true`, of the first replication of each point.
    /// Without a folder, the default, nothing is written and nothing captured.
    ///
    /// ```no_run
    /// # let scenario = apportion::Scenario::from_file("scenarios/quickstart.toml")?;
    /// apportion::Run::new(&scenario).folder("results/quickstart").simulate()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Takes replications and twins that were simulated before from this cache, and keeps those that are simulated now in it, each as
    /// it ends: a run that was interrupted or killed goes on where it was. At the end what was not used for the longest time is
    /// deleted until the cache has at most `most` bytes. Equal keys mean equal results: the key of a point is the hash of all that
    /// its results depend on, with the sources of this program. Scenarios with [disciplines of your own](crate::Catalog) are not
    /// cached. Default: no cache.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = ["fifo", "drr"] }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let cache = apportion::Cache::at(folder);
    /// let run = || apportion::Run::new(&scenario).cache(&cache, 1 << 30).simulate();
    /// assert_eq!((run()?.reused(), run()?.reused()), (0, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cache(mut self, cache: &Cache, most: u64) -> Self {
        self.cache = Some((cache.clone(), most));
        self
    }

    /// What it takes in the simulator: time and packets of all points, replications and [twins](Self::perturb), memory of those
    /// that run at once.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "2s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "12Mbit", delay = "5ms" }
    /// #     flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "6Mbit", packet = "1500B" } }
    /// # "#)?;
    /// let estimate = apportion::Run::new(&scenario).seeds(3).perturb(false).estimate();
    /// // 500 datagrams a second over one link.
    /// assert_eq!((estimate.writes, estimate.hops), (3000.0, 3000.0));
    /// # Ok::<(), apportion::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let runs = if self.has_twins() { self.seeds.saturating_mul(2) } else { self.seeds };
        size::estimate(self.scenario.points().iter().map(|point| &point.scenario), runs, self.jobs)
    }

    /// Runs it even if the [estimate](Self::estimate) is of more than a day of CPU time or 2 GB of memory, or if the lab takes more
    /// than a day in real time. Default: false.
    pub fn force(mut self, force: bool) -> Self {
        self.force = force;
        self
    }

    pub(crate) fn check_size(&self) -> Result<(), RunError> {
        let estimate = self.estimate();
        if size::is_too_large(&estimate) && !self.force {
            let scenario = self.scenario.origin().to_owned();
            return Err(RunError::TooLarge { scenario, estimate, has_twins: self.has_twins() });
        }
        Ok(())
    }

    /// Runs it in the simulator.
    ///
    /// # Errors
    /// If it is [too large](Self::force), a point is too large for the simulator, threads cannot be started, or the folder or a capture cannot be
    /// written. The folder then holds what it held before.
    pub fn simulate(&self) -> Result<Results, RunError> {
        self.check_size()?;
        self.folder.as_deref().map(apportion_report::check).transpose()?;
        let seeds = self.seeds_of_points();
        let captures = self.folder.as_deref().map(Captures::new);
        let Replications { outcomes, twins, reused, cache_failure } =
            self.replications(&seeds, captures.as_ref())?;
        let twins = self.has_twins().then_some(twins);
        let results =
            Results::with_twins(self.scenario, &seeds, outcomes, twins).reusing(reused, cache_failure);
        if let (Some(folder), Some(captures)) = (&self.folder, captures) {
            results.write(folder)?;
            captures.publish()?;
        }
        Ok(results)
    }

    /// The outcomes in the order of points, then of seeds, and of the twins what is compared; none where the run was cancelled
    /// before.
    fn replications(
        &self,
        seeds: &[Vec<u64>],
        captures: Option<&Captures<'_>>,
    ) -> Result<Replications, RunError> {
        let points = self.scenario.points();
        let openers: Vec<_> =
            (0..points.len()).map(|at| captures.map(|captures| captures.opener(at, points))).collect();
        let cached = Cached::new(self.cache.as_ref().map(|(cache, _)| cache), self.scenario);
        // In the order of the results, each with what there is of it, and the place in `all` of those that are run.
        let (mut all, mut jobs, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (at, ((point, seeds), opener)) in points.iter().zip(seeds).zip(&openers).enumerate() {
            let scenario = &point.scenario;
            let has_captures = scenario.links.iter().any(|link| link.pcap);
            let wanted = self.simulations(scenario, seeds);
            for (which, found) in wanted.iter().zip(cached.read(at, &wanted)) {
                // One replication is captured: the others differ by chance alone and would fill the disk.
                let is_first = which.seed == seeds[0] && which.twin_of.is_none();
                let captures: Option<&(dyn Fn(usize) -> _ + Sync)> = match opener {
                    Some(opener) if is_first && has_captures => Some(opener),
                    _ => None,
                };
                if found.is_none() || captures.is_some() {
                    let twin_of = which.twin_of.map(|(k, _)| k);
                    jobs.push(Job { scenario, seed: which.seed, twin_of, captures });
                    places.push((at, *which, all.len()));
                }
                all.push((which.twin_of.is_some(), found));
            }
        }
        let reused = all.len() - jobs.len();
        let counter = Counter::new(self.progress.as_ref(), reused, all.len());
        let each = |job: usize, outcome: Option<Outcome>| {
            let ended = ended(&jobs[job], outcome?);
            let (point, which, _) = places[job];
            cached.keep(point, which, &ended);
            counter.step();
            Some(ended)
        };
        let simulated = apportion_sim::replicate_with(&jobs, self.jobs, &each, self.cancel.flag());
        captures.map(Captures::check).transpose()?;
        let simulated = simulated
            .map_err(|cause| RunError::Simulator { scenario: self.scenario.origin().to_owned(), cause })?;
        for ((_, _, place), ended) in places.into_iter().zip(simulated) {
            all[place].1 = ended;
        }
        let cache_failure = cached.finish(self.cache.as_ref().map_or(u64::MAX, |(_, most)| *most));
        let (mut outcomes, mut twins) = (Vec::new(), Vec::new());
        for ended in all {
            match ended {
                (false, Some(Ended::Replication(outcome))) => outcomes.push(Some(*outcome)),
                (true, Some(Ended::Twin(twin))) => twins.push(Some(twin)),
                (false, _) => outcomes.push(None),
                (true, _) => twins.push(None),
            }
        }
        Ok(Replications { outcomes, twins, reused, cache_failure })
    }

    /// The replications of a point, each followed by its twin.
    fn simulations(&self, scenario: &model::Scenario, seeds: &[u64]) -> Vec<Which> {
        let twin = |k: u64| self.has_twins().then_some(Some((k, scenario.seed)));
        let of = |(k, &seed): (u64, &u64)| {
            [Some(None), twin(k)].into_iter().flatten().map(move |twin_of| Which { seed, twin_of })
        };
        (0..).zip(seeds).flat_map(of).collect()
    }

    /// The seeds of each point.
    pub(crate) fn seeds_of_points(&self) -> Vec<Vec<u64>> {
        let seeds =
            |point: &Point| (0..self.seeds).map(|k| replication_seed(point.scenario.seed, k)).collect();
        self.scenario.points().iter().map(seeds).collect()
    }
}

/// What was run: an entry for each replication, in the order of points, then of seeds; `None` where it was cancelled before.
struct Replications {
    outcomes: Vec<Option<Outcome>>,
    /// What is compared of the twins; empty if there are none.
    twins: Vec<Option<Twin>>,
    /// How many of both are from the cache.
    reused: usize,
    cache_failure: Option<CacheError>,
}

/// What is kept of a simulation.
fn ended(job: &Job<'_>, outcome: Outcome) -> Ended {
    match job.twin_of {
        None => Ended::Replication(Box::new(outcome)),
        Some(k) => {
            let dues = apportion_runtime::due::dues(job.scenario, &outcome);
            Ended::Twin(Twin {
                moves: model::Scenario::moves_of(k),
                sample: Sample::of(&outcome, dues.as_ref()),
            })
        }
    }
}

/// Why a run has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It would take too long, or too much memory.
    #[error(
        "{}: it would take {estimate}, which is more than a day or 2 GB: reduce the rates, the time, the flows, the points or \
         the seeds, {}or run it all the same with --force",
        scenario.display(),
        if *has_twins { "leave out twins with --no-perturb, " } else { "" }
    )]
    TooLarge {
        /// What the scenario is called.
        scenario: PathBuf,
        /// What it would take.
        estimate: Estimate,
        /// Whether a part of that is [twins](Run::perturb).
        has_twins: bool,
    },
    /// The lab would take too long.
    #[error(
        "{}: the lab would take {:.1} days in real time, which is more than a day: reduce the time, the points or the seeds, or run it all the \
         same with --force",
        scenario.display(),
        seconds / 86_400.0
    )]
    TooLong {
        /// What the scenario is called.
        scenario: PathBuf,
        /// How long it would take, s.
        seconds: f64,
    },
    /// The simulator refused or failed.
    #[error("{}: {cause}", scenario.display())]
    Simulator {
        /// What the scenario is called.
        scenario: PathBuf,
        /// Why.
        cause: ReplicateError,
    },
    /// A capture cannot be written.
    #[error("cannot write the capture `{}`: {cause}", path.display())]
    Capture {
        /// Its file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The lab ran it, and its results cannot be written.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error("{cause}")]
    Unwritten {
        /// Why.
        cause: WriteError,
        /// What the lab measured: it took its time.
        finished: Box<Results>,
    },
    /// The lab refused or failed.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error("{}: {cause}", scenario.display())]
    Lab {
        /// What the scenario is called.
        scenario: PathBuf,
        /// Why.
        cause: Box<apportion_live::lab::LabError>,
        /// What was finished before; it was written if there was a folder. None if nothing was run.
        finished: Option<Box<Results>>,
    },
}
