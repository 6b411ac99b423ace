//! The simulations of scenarios: their numbers, their form in the cache, and running those that the cache
//! lacks.

use std::path::PathBuf;

use apportion_core::units::Time;
use apportion_report::phase_sensitivity::{PerturbedCopy, Sample};
use apportion_report::{Contents, PointResults, ReplicationRows};
use apportion_runtime::outcome::Outcome;
use apportion_scenario::{Estimate, Point, model, replication_seed};
use apportion_sim::Job;
use apportion_sim::capture::LinkCapture;
use apportion_sim::replicate::{Ended, ReplicateError, replicate_with};

use crate::cache::Cache;
use crate::cached::{Cached, Measurement, Which};
use crate::cancel::{Cancel, Counter, Course, Cuts};
use crate::collector::blank_point;
use crate::events::{Events, Observing};
use crate::run_error::RunError;
use crate::scenario::Scenario;
use crate::size;

/// The simulations of some scenarios, for programs that divide them among processes of the same
/// [build](crate::build()): a client asks for those that are [missing](Self::missing), other processes
/// [simulate](Self::simulate) them, and the client [stores](Self::keep) the results. A [`Run`](crate::Run) or
/// a [`Reproduction`](crate::Reproduction) then finds all of them in the cache.
///
/// Simulations are numbered from 0 in the order of scenarios, of their points, then of seeds; a replication
/// comes before its [perturbed copy](crate::Run::phase_check).
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
/// use apportion::{Cache, Run, Simulations};
///
/// let cache = Cache::at(folder);
/// let client = Simulations::new([&scenario], 3).phase_check(true).cache(&cache);
/// assert_eq!(client.missing(), (0..2 * 3 * 2).collect::<Vec<_>>());
/// // In another process:
/// let worker = Simulations::new([&scenario], 3).phase_check(true);
/// for part in worker.simulate(&client.missing())? {
///     client.keep(&part)?;
/// }
/// let results = Run::new(&scenario).seeds(3).cache(&cache, Cache::MOST).simulate()?;
/// assert_eq!(results.reused(), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub struct Simulations<'a> {
    /// The points of all scenarios: the scenario, and the number of the point in it.
    pub(crate) points: Vec<(&'a Scenario, usize)>,
    pub(crate) seeds: u64,
    pub(crate) checks_phases: bool,
    /// Whether outcomes are retained.
    pub(crate) retains_outcomes: bool,
    /// Whether there are tables over time.
    pub(crate) has_intervals: bool,
    pub(crate) jobs: usize,
    pub(crate) cancel: Cancel,
    pub(crate) cache: Option<Cache>,
}

impl<'a> Simulations<'a> {
    /// Creates the simulations of `seeds` replications of each point of these scenarios, without perturbed
    /// copies, for runs that [retain outcomes](crate::Run::retain); on all cores, without a cache.
    pub fn new(scenarios: impl IntoIterator<Item = &'a Scenario>, seeds: u64) -> Self {
        let points_of = |scenario: &'a Scenario| (0..scenario.points().len()).map(move |at| (scenario, at));
        let points: Vec<_> = scenarios.into_iter().flat_map(points_of).collect();
        let contents = Contents::of(seeds.saturating_mul(points.len() as u64));
        Self {
            points,
            seeds,
            checks_phases: false,
            retains_outcomes: true,
            has_intervals: contents.intervals,
            jobs: 0,
            cancel: Cancel::new(),
            cache: None,
        }
    }

    /// Sets whether there are perturbed copies, as in [a run](crate::Run::phase_check). Default: false.
    pub fn phase_check(mut self, phase_check: bool) -> Self {
        self.checks_phases = phase_check;
        self
    }

    /// Sets whether the simulations are for a run that [retains](crate::Run::retain) outcomes. Default: true.
    pub fn retain_outcomes(mut self, outcomes: bool) -> Self {
        self.retains_outcomes = outcomes;
        self
    }

    /// Sets the number of concurrent simulations, as in [a run](crate::Run::jobs).
    pub fn jobs(mut self, threads: usize) -> Self {
        self.jobs = threads;
        self
    }

    /// Sets a token that cancels the simulations, as in [a run](crate::Run::cancel).
    pub fn cancel(mut self, token: &Cancel) -> Self {
        self.cancel = token.clone();
        self
    }

    /// Sets the cache that determines which simulations are missing, and stores the results. Default: none.
    pub fn cache(mut self, cache: &Cache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// Returns the [estimated cost](Estimate) of one simulation of each point, in order.
    #[must_use]
    pub fn estimates(&self) -> Vec<Estimate> {
        self.models().map(model::Scenario::estimate).collect()
    }

    /// Returns an error for simulations that would take more than a day of CPU time or 2 GB of memory.
    ///
    /// # Errors
    /// If the simulations are too large.
    pub fn check_size(&self) -> Result<(), RunError> {
        let estimate = self.estimate();
        if size::is_too_large(&estimate) {
            return Err(RunError::TooLarge {
                scenario: self.origin(),
                estimate,
                checks_phases: self.checks_phases,
            });
        }
        Ok(())
    }

    /// Estimates the cost of all simulations: the CPU time of all, and the memory of the concurrent ones.
    #[must_use]
    pub fn estimate(&self) -> Estimate {
        let runs = if self.checks_phases { self.seeds.saturating_mul(2) } else { self.seeds };
        size::estimate(self.models(), runs, self.jobs)
    }

    /// Returns the point of this number.
    pub(crate) fn point(&self, at: usize) -> &'a Point {
        let (scenario, at) = self.points[at];
        &scenario.points()[at]
    }

    fn models(&self) -> impl Iterator<Item = &'a model::Scenario> {
        self.points.iter().map(|(scenario, at)| &scenario.points()[*at].scenario)
    }

    /// Returns the number of simulations.
    #[must_use]
    pub fn total(&self) -> usize {
        self.points.len().saturating_mul(self.of_each_point())
    }

    /// Returns the number of simulations of each point.
    pub(crate) fn of_each_point(&self) -> usize {
        let replications = usize::try_from(self.seeds).unwrap_or(usize::MAX);
        replications.saturating_mul(self.of_each_replication())
    }

    /// Returns the number of simulations of each replication: itself and its perturbed copy.
    fn of_each_replication(&self) -> usize {
        if self.checks_phases { 2 } else { 1 }
    }

    /// Returns the point of the simulation with this number, and its identity within the point.
    pub(crate) fn which(&self, number: usize) -> (usize, Which) {
        let (at, of_point) = (number / self.of_each_point(), number % self.of_each_point());
        let k = (of_point / self.of_each_replication()) as u64;
        let is_copy = of_point % self.of_each_replication() == 1;
        let seed = self.point(at).scenario.seed;
        (at, Which { seed: replication_seed(seed, k), copy_of: is_copy.then_some((k, seed)) })
    }

    pub(crate) fn job(&self, (at, which): (usize, Which)) -> Job<'a> {
        let copy_of = which.copy_of.map(|(k, _)| k);
        Job { copy_of, ..Job::new(&self.point(at).scenario, which.seed) }
    }

    /// Whether a stored simulation has all results that are needed.
    pub(crate) fn is_usable(&self, ended: &Measurement) -> bool {
        match ended {
            Measurement::Outcome(_) | Measurement::Copy(_) => true,
            Measurement::Rows(rows) => self.uses(rows),
        }
    }

    /// Whether a replication stored as rows has all results that are needed.
    pub(crate) fn uses(&self, rows: &ReplicationRows) -> bool {
        !self.retains_outcomes && (rows.has_intervals() || !self.has_intervals)
    }

    /// Returns the form of a simulation's result for the cache; `blank` is its point without replications.
    pub(crate) fn ended(&self, blank: &PointResults, job: &Job<'_>, outcome: Outcome) -> Measurement {
        if self.retains_outcomes && job.copy_of.is_none() {
            return Measurement::Outcome(Box::new(outcome));
        }
        let dues = apportion_runtime::due::dues(job.scenario, &outcome);
        match job.copy_of {
            None => {
                let of = blank.with(&outcome, dues.as_ref());
                Measurement::Rows(Box::new(ReplicationRows::of(of, self.has_intervals)))
            }
            Some(k) => {
                let sample = Sample::of(&outcome, dues.as_ref());
                Measurement::Copy(PerturbedCopy { moves: model::Scenario::moves_of(k), sample })
            }
        }
    }

    /// Returns the points without measurements.
    pub(crate) fn blank(&self) -> Vec<PointResults> {
        (0..self.points.len()).map(|at| blank_point(self.point(at))).collect()
    }

    /// Returns the name of the first scenario.
    pub(crate) fn origin(&self) -> PathBuf {
        self.points.first().map(|(scenario, _)| scenario.origin().to_owned()).unwrap_or_default()
    }
}

/// Opens the captures of a point, by the index of a link.
pub(crate) type Opener<'a> = Box<dyn Fn(usize) -> Option<Box<LinkCapture>> + Sync + 'a>;

/// Runs simulations.
pub(crate) struct Simulator<'a> {
    pub simulations: &'a Simulations<'a>,
    /// The points, without replications.
    pub points: &'a [PointResults],
    /// The opener of each point; empty if nothing is captured.
    pub openers: &'a [Opener<'a>],
    /// The callbacks, if any.
    pub events: Option<&'a Events<'a>>,
    /// The times at which replications are cut; without it, cancelled ones have no results.
    pub cuts: Option<&'a Cuts>,
    pub cached: &'a Cached<'a>,
    pub counter: &'a Counter<'a>,
}

impl Simulator<'_> {
    /// Returns the measurements of these simulations, in order; none for those before which the run was
    /// cancelled.
    pub(crate) fn run(&self, all: &[(usize, Which)]) -> Result<Vec<Option<Measurement>>, ReplicateError> {
        let mut ended: Vec<Option<Measurement>> = Vec::with_capacity(all.len());
        for of_point in all.chunk_by(|a, b| a.0 == b.0) {
            let wanted: Vec<Which> = of_point.iter().map(|(_, which)| *which).collect();
            let is_usable = |ended: &Measurement| self.simulations.is_usable(ended);
            ended.extend(self.cached.read(of_point[0].0, &wanted, is_usable));
        }
        let observers: Vec<_> = all.iter().map(|&(at, which)| self.observer(at, which)).collect();
        let course = |&(at, _): &(usize, Which)| {
            Course::new(self.counter, self.simulations.point(at).scenario.stop.since(Time::ZERO))
        };
        let courses: Vec<Course<'_>> = all.iter().map(course).collect();
        let reached: Vec<_> = courses.iter().map(|course| |now| course.reach(now)).collect();
        let cut: Vec<_> = all.iter().map(|&(at, which)| move |now| self.cuts(at, which, now)).collect();
        let mut jobs = Vec::new();
        for (place, &(at, which)) in all.iter().enumerate() {
            let captures = self.captures(at, which);
            if ended[place].is_none() || captures.is_some() {
                let observer = observers[place].as_ref().map(|observer| observer as _);
                let reached = Some(&reached[place] as _);
                let cuts = Some(&cut[place] as _);
                let job = self.simulations.job((at, which));
                jobs.push((place, Job { captures, observer, reached, cuts, ..job }));
            }
        }
        self.counter.reuse(all.len() - jobs.len());
        let (places, jobs): (Vec<usize>, Vec<Job<'_>>) = jobs.into_iter().unzip();
        let each = |job: usize, ended: Option<Ended>| {
            let (at, which) = all[places[job]];
            if let Some(observer) = &observers[places[job]] {
                observer.end(ended.as_ref().is_some_and(|ended| ended.cut_at.is_none()));
            }
            let Ended { outcome, cut_at } = ended?;
            let measurement = |job| self.simulations.ended(&self.points[at], job, outcome);
            if let (Some(cuts), Some(cut_at)) = (self.cuts, cut_at) {
                // A cache stores complete simulations only.
                cuts.note(at, cut_at);
                let scenario = &ending(jobs[job].scenario, cut_at);
                return Some(measurement(&Job { scenario, ..Job::new(scenario, which.seed) }));
            }
            let ended = measurement(&jobs[job]);
            self.cached.keep(at, which, &ended);
            courses[places[job]].end();
            Some(ended)
        };
        let simulated = replicate_with(&jobs, self.simulations.jobs, &each, self.simulations.cancel.flag())?;
        for (place, of) in places.iter().zip(simulated) {
            // A cancelled replication may come from the cache, but its capture is truncated.
            ended[*place] = of;
        }
        Ok(ended)
    }

    /// Whether a simulation that is cancelled at `now` keeps its measurements so far: only the first
    /// replication of a point does, unless others have ended, since it could not be compared with them.
    fn cuts(&self, at: usize, which: Which, now: Time) -> bool {
        let scenario = &self.simulations.point(at).scenario;
        let Some(cuts) = self.cuts.filter(|_| is_first(scenario, which) && self.counter.is_at_none()) else {
            return false;
        };
        cuts.note(at, now);
        now > scenario.measure_from
    }

    /// Returns the observer of a replication, if there are callbacks. A perturbed copy is in no table.
    fn observer(&self, at: usize, which: Which) -> Option<Observing<'_>> {
        let events = self.events.filter(|_| which.copy_of.is_none())?;
        Some(Observing::new(events, self.simulations.point(at), which.seed))
    }

    /// One replication is captured: the others differ only randomly and would fill the disk.
    fn captures(
        &self,
        at: usize,
        which: Which,
    ) -> Option<&(dyn Fn(usize) -> Option<Box<LinkCapture>> + Sync)> {
        let scenario = &self.simulations.point(at).scenario;
        let is_wanted = is_first(scenario, which) && scenario.links.iter().any(|link| link.pcap);
        self.openers.get(at).filter(|_| is_wanted).map(|opener| opener as _)
    }
}

/// Whether the simulation is the first replication of a point.
fn is_first(scenario: &model::Scenario, which: Which) -> bool {
    which.copy_of.is_none() && which.seed == replication_seed(scenario.seed, 0)
}

/// Returns the scenario with the end at `stop`.
pub(crate) fn ending(scenario: &model::Scenario, stop: Time) -> model::Scenario {
    model::Scenario { stop, ..scenario.clone() }
}
