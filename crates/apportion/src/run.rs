//! Running a scenario in the simulator.

use std::path::PathBuf;

use apportion_report::{Contents, Writer};
use apportion_scenario::{Estimate, Point, replication_seed};

use crate::builders::builders;
use crate::cache::{Cache, CacheError};
use crate::cached::{Cached, Which};
use crate::cancel::{Cancel, Counter, Cuts, OnProgress, Progress};
use crate::captures::Captures;
use crate::collector::{self, Collector};
use crate::events::{Dropped, Events, Marked, Sampled};
use crate::provenance::Begun;
use crate::results::Results;
use crate::retain::Retain;
use crate::run_error::RunError;
use crate::scenario::Scenario;
use crate::simulations::{Opener, Simulations, Simulator};
use crate::staged_run::StagedRun;

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
    /// None: depends on the number of seeds.
    phase_check: Option<bool>,
    pub(crate) jobs: usize,
    pub(crate) cancel: Cancel,
    pub(crate) progress: Option<OnProgress<'a>>,
    pub(crate) events: Events<'a>,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) force: bool,
    pub(crate) cache: Option<(Cache, u64)>,
    pub(crate) retain: Retain,
    /// None: depends on the number of replications.
    series: Option<bool>,
    #[cfg(all(feature = "live", target_os = "linux"))]
    pub(crate) retries: u64,
    #[cfg(all(feature = "live", target_os = "linux"))]
    pub(crate) backend: crate::lab::Backend,
}

builders! {
    Run:
    /// Sets the number of replications of each point, each with its own seed: the scenario's for the first,
    /// seeds derived from it for the others. Default: 1.
    seeds,
    /// Sets whether each replication has a perturbed copy in the simulator, which shows [where results depend
    /// on phases](Results::phase_sensitivity): the same seed, with every propagation delay of the scenario
    /// moved by 1 µs, up or down; two successive replications share the moves. Perturbed copies double the
    /// time. They change no other table. Default: with more than one seed. Runs in real time have none: their
    /// phases vary by more than that from run to run.
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
    /// for row in results.phase_sensitivity().filter(|row| row.significant) {
    ///     println!("{} {}: {:.3} moves by {:.3}", row.flow, row.metric, row.mean, row.shift);
    /// }
    /// # assert_eq!(results.phase_sensitivity().count(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    phase_check,
    /// Sets the number of concurrent replications; 0 means one for each core. Results do not depend on it.
    /// Default: 0.
    jobs,
    /// Sets a token that cancels the run: it then has the finished replications, or if there are none the
    /// measurements of the first one of each point [up to the cancellation](Results::cut), and
    /// [`is_complete`](Results::is_complete) is false. Default: a token that is never cancelled.
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
    cancel,
    /// Sets a callback after each replication and each [perturbed copy](Self::phase_check), one call at a
    /// time and in ascending order, from the thread that ran it.
    progress,
    /// Sets the folder in which the results get their own folder: `folder/1` for the first run, `folder/2`
    /// for the next. It appears when the run is complete, unless nothing was measured, and contains the files
    /// of [`Results::write`] and a capture of each link with `pcap = true`, of the first replication of each
    /// point. Default: none, nothing is written or captured.
    ///
    /// ```no_run
    /// # let scenario = apportion::Scenario::from_file("scenarios/quickstart.toml")?;
    /// apportion::Run::new(&scenario).folder("results/quickstart").simulate()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    folder,
    /// Takes replications and perturbed copies from this cache that were simulated before, and stores those
    /// that are simulated now, each when it ends: a run that was interrupted or killed resumes. At the end
    /// the least recently used files are deleted until the cache has at most `most` bytes. Equal keys mean
    /// equal results: the key of a point is the hash of everything that its results depend on, including the
    /// sources of this program. Scenarios with [registered code](Scenario::has_own_code) are not cached, nor
    /// are runs that [report events](Self::on_drop): [`Results::uncached`] says so. Default: no cache.
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
    cache,
    /// Sets whether to run even if the [estimate](Self::estimate) exceeds a day of CPU time or 2 GB of
    /// memory, or if the lab takes more than a day in real time. Default: false.
    force,
}

impl<'a> Run<'a> {
    /// Creates a run with one replication of each point, on all cores; nothing is written.
    pub fn new(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            seeds: 1,
            phase_check: None,
            jobs: 0,
            cancel: Cancel::new(),
            progress: None,
            events: Events::default(),
            folder: None,
            force: false,
            cache: None,
            retain: Retain::Full,
            series: None,
            #[cfg(all(feature = "live", target_os = "linux"))]
            retries: crate::lab::RETRIES,
            #[cfg(all(feature = "live", target_os = "linux"))]
            backend: crate::lab::Backend::UserSpace,
        }
    }

    /// Sets the parts of each replication that the results retain, in addition to metrics and the report;
    /// with metrics alone a run of any length takes little memory. Default: outcomes.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "1s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// # let folder = tempfile::tempdir()?;
    /// # let folder = folder.path();
    /// let results = apportion::Run::new(&scenario).seeds(3).retain(apportion::Retain::Metrics).folder(folder).simulate()?;
    /// assert_eq!((results.flows().count(), results.metrics()[0].metric.samples.len()), (0, 3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retain(mut self, what: Retain) -> Self {
        self.retain = what;
        self
    }

    /// Sets whether the folder gets the tables over time, `series` and `allocations`. Default: in runs of up
    /// to [a thousand replications](crate::Contents::LONG).
    pub fn series(mut self, with_series: bool) -> Self {
        self.series = Some(with_series);
        self
    }

    /// Estimates the cost in the simulator: time and packets of all points, replications and [perturbed
    /// copies](Self::phase_check), memory of the concurrent ones.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "2s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "12Mbit", delay = "5ms" }
    /// #     flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "6Mbit", packet = "1500B" } }
    /// # "#)?;
    /// let estimate = apportion::Run::new(&scenario).seeds(3).phase_check(false).estimate();
    /// // 500 datagrams a second over one link.
    /// assert_eq!((estimate.writes, estimate.hops), (3000.0, 3000.0));
    /// # Ok::<(), apportion::ScenarioError>(())
    /// ```
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        self.simulations().estimate()
    }

    pub(crate) fn check_size(&self) -> Result<(), RunError> {
        if self.force { Ok(()) } else { self.simulations().check_size() }
    }

    /// Returns the simulations of the run.
    pub fn simulations(&self) -> Simulations<'a> {
        Simulations {
            checks_phases: self.checks_phases(),
            retains_outcomes: self.retain == Retain::Full,
            has_intervals: self.contents().intervals,
            // By default one at a time, so that the page shows each of them.
            jobs: if self.jobs == 0 && self.events.are_watched() { 1 } else { self.jobs },
            cancel: self.cancel.clone(),
            cache: self.cache.as_ref().filter(|_| self.events.are_none()).map(|(cache, _)| cache.clone()),
            ..Simulations::new([self.scenario], self.seeds)
        }
    }

    /// Runs the scenario in the simulator. A run that was cancelled before anything was measured has no
    /// folder.
    ///
    /// # Errors
    /// If the run is [too large](Self::force), a point is too large for the simulator, threads cannot be
    /// started, or the folder or a capture cannot be written. There is no new folder then.
    pub fn simulate(&self) -> Result<Results, RunError> {
        Ok(self.stage()?.publish()?)
    }

    /// Runs the scenario in the simulator, and lets the caller decide whether its folder appears.
    ///
    /// # Errors
    /// As for [`simulate`](Self::simulate).
    pub fn stage(&self) -> Result<StagedRun, RunError> {
        self.check_size()?;
        let begun = Begun::now();
        let seeds = self.seeds_of_points();
        let writer = self.folder.as_deref().map(|folder| Writer::create(folder, self.contents()));
        let writer = writer.transpose()?;
        let captures = writer.as_ref().map(|writer| Captures::new(writer.folder()));
        let mut collector = Collector::new(self.scenario, writer, self.retain, self.checks_phases());
        self.events.begin(self.scenario.title(), seeds.iter().map(Vec::len).sum());
        let simulated = self.replications(captures.as_ref(), &mut collector);
        self.events.end(simulated.is_ok() && collector.is_complete());
        let (reused, cache_failure) = simulated?;
        let (record, writer) = collector.finish(seeds.into_iter().next().unwrap_or_default());
        let made = begun.end(reused);
        let results = Results::new(record, made, None, cache_failure).without_cache(self.uncached());
        Ok(StagedRun::new(results, writer))
    }

    /// Returns the reason why the cache is not used, if one is set.
    fn uncached(&self) -> Option<&'static str> {
        self.cache.as_ref()?;
        match (self.scenario.has_own_code(), self.events.are_none()) {
            (true, _) => {
                Some("runs with a registered queue, congestion control or transport stack are not cached")
            }
            (false, false) => Some("runs that are watched or report events are not cached"),
            (false, true) => None,
        }
    }

    /// Returns the contents of the folder.
    pub(crate) fn contents(&self) -> Contents {
        let replications = self.seeds.saturating_mul(self.scenario.points().len() as u64);
        let usual = Contents::of(replications);
        Contents { intervals: self.series.unwrap_or(usual.intervals), ..usual }
    }

    /// Simulates the replications that are not in the cache, and records all in the order of points, then of
    /// seeds. Returns the number taken from the cache, and the reason if the cache failed.
    fn replications(
        &self,
        captures: Option<&Captures>,
        collector: &mut Collector<'_>,
    ) -> Result<(usize, Option<CacheError>), RunError> {
        let simulations = self.simulations();
        let cached = Cached::new(&simulations);
        let counter = Counter::new(self.progress.as_ref(), simulations.total());
        let cuts = Cuts::default();
        let points = collector::blank(self.scenario);
        let opener =
            |at| -> Option<Opener<'_>> { Some(Box::new(captures?.opener(at, self.scenario.points()))) };
        let openers: Vec<Opener<'_>> = (0..points.len()).filter_map(opener).collect();
        let simulator = Simulator {
            simulations: &simulations,
            points: &points,
            openers: &openers,
            events: (!self.events.are_none()).then_some(&self.events),
            cuts: Some(&cuts),
            cached: &cached,
            counter: &counter,
        };
        let mut all = (0..simulations.total()).map(|number| simulations.which(number));
        loop {
            let batch: Vec<(usize, Which)> = all.by_ref().take(self.batch()).collect();
            if batch.is_empty() {
                break;
            }
            let ended = simulator.run(&batch);
            captures.map(Captures::check).transpose()?;
            let ended = ended.map_err(|cause| RunError::Simulator {
                scenario: self.scenario.origin().to_owned(),
                cause,
            })?;
            for ((at, which), ended) in batch.into_iter().zip(ended) {
                match which.copy_of {
                    None => collector.add(at, ended, cuts.of(at))?,
                    Some(_) => collector.add_copy(at, ended),
                }
            }
        }
        Ok((counter.reused(), cached.finish(self.cache.as_ref().map_or(u64::MAX, |(_, most)| *most))))
    }

    /// Returns the number of simulations that are recorded together: all if outcomes are retained anyway,
    /// otherwise as many as take little memory.
    fn batch(&self) -> usize {
        /// The memory of the rows of a flow or link, and of one sample interval, in bytes. Measured.
        const ROWS: usize = 1_000;
        const INTERVAL: usize = 200;
        /// Chosen: small, but large enough that a run has few batches.
        const MEMORY: usize = 64 << 20;
        if self.retain == Retain::Full {
            return usize::MAX;
        }
        let rows = |point: &Point| {
            let scenario = &point.scenario;
            let samples = scenario.stop.as_nanos() / scenario.sample.as_nanos().max(1);
            let samples = if self.contents().intervals { samples as usize } else { 0 };
            (scenario.flows.len() + scenario.links.len()) * (ROWS + INTERVAL * samples)
        };
        let most = self.scenario.points().iter().map(rows).max().unwrap_or(1);
        // Enough to keep every core busy most of the time.
        (MEMORY / most.max(1)).clamp(256, 1 << 14)
    }

    /// Returns the seeds of each point.
    pub(crate) fn seeds_of_points(&self) -> Vec<Vec<u64>> {
        let seeds =
            |point: &Point| (0..self.seeds).map(|k| replication_seed(point.scenario.seed, k)).collect();
        self.scenario.points().iter().map(seeds).collect()
    }
}

/// Events in the simulator. Callbacks are called on the thread that runs the replication: in the order of
/// time within a replication, concurrently for several replications unless the run has one [job](Run::jobs).
/// A run with callbacks takes nothing from the [cache](Run::cache). Perturbed copies are not reported.
///
/// ```
/// # let scenario = apportion::Scenario::from_text(r#"
/// #     seed = 1
/// #     stop = "5s"
/// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
/// #     flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "3Mbit" } }
/// # "#)?;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let dropped = AtomicU64::new(0);
/// let results = apportion::Run::new(&scenario)
///     .on_drop(|drop| {
///         assert_eq!((drop.link, drop.flow), ("bottleneck", Some("udp")));
///         dropped.fetch_add(1, Ordering::Relaxed);
///     })
///     .on_sample(|sample| println!("{} {}: {}", sample.at, sample.flows[0].name, sample.flows[0].throughput))
///     .simulate()?;
/// assert_eq!(results.flows().map(|row| row.drops_overflow).sum::<u64>(), dropped.into_inner());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<'a> Run<'a> {
    /// Sets a callback for each packet that a discipline drops or a wire loses, from the start of the run;
    /// tables count only from `measure_from` on.
    pub fn on_drop(mut self, report: impl Fn(&Dropped<'_>) + Send + Sync + 'a) -> Self {
        self.events.on_drop = Some(Box::new(report));
        self
    }

    /// Sets a callback for each packet that a discipline marks, from the start of the run.
    pub fn on_mark(mut self, report: impl Fn(&Marked<'_>) + Send + Sync + 'a) -> Self {
        self.events.on_mark = Some(Box::new(report));
        self
    }

    /// Sets a callback at the end of each sample interval.
    pub fn on_sample(mut self, report: impl Fn(&Sampled<'_>) + Send + Sync + 'a) -> Self {
        self.events.on_sample = Some(Box::new(report));
        self
    }

    /// Sets a page in the browser that shows the run, also in [the lab](Self::lab), one replication at a
    /// time: [`jobs`](Self::jobs) is 1 by default then, and of concurrent replications the page shows those
    /// that begin when no other is shown.
    #[cfg(all(feature = "live", target_os = "linux"))]
    pub fn watch(mut self, page: &'a crate::watch::Watch) -> Self {
        self.events.watch = Some(page);
        self
    }
}
