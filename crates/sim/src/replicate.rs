//! Many runs over many cores. Results are in the order of the jobs, for any number of threads.

use std::sync::atomic::{AtomicBool, Ordering};

use apportion_core::units::Time;
use apportion_runtime::outcome::Outcome;
use apportion_scenario::model::Scenario;
use rayon::prelude::*;

use crate::build::{BuildError, Detail};
use crate::capture::{CaptureError, LinkCapture};
use crate::observer::Observer;
use crate::simulation::{Ending, Simulation};

/// One run to execute.
pub struct Job<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The seed of this replication.
    pub seed: u64,
    /// Runs the [perturbed copy](Scenario::perturbed) of the replication with this number instead.
    pub copy_of: Option<u64>,
    /// Opens the capture of a link, by its index, if this run is to be captured.
    pub captures: Option<&'a (dyn Fn(usize) -> Option<Box<LinkCapture>> + Sync)>,
    /// The observer of the run, if there is one.
    pub observer: Option<&'a dyn Observer>,
    /// Called at intervals with the simulated time that the run has reached.
    pub reached: Option<&'a (dyn Fn(Time) + Sync)>,
    /// Called with the time of a cancellation: whether the run keeps its measurements until then.
    pub cuts: Option<&'a (dyn Fn(Time) -> bool + Sync)>,
}

impl<'a> Job<'a> {
    /// A replication without captures and observers.
    #[must_use]
    pub const fn new(scenario: &'a Scenario, seed: u64) -> Self {
        Self { scenario, seed, copy_of: None, captures: None, observer: None, reached: None, cuts: None }
    }
}

/// A job that has ended.
#[derive(Debug)]
pub struct Ended {
    /// The measurements.
    pub outcome: Outcome,
    /// The time at which it ended, if that was before the end of the scenario.
    pub cut_at: Option<Time>,
}

/// The reason why replications could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ReplicateError {
    /// A scenario is too large for the simulator.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The threads could not be started.
    #[error("cannot start {threads} threads: {source}; try a smaller number of jobs")]
    Threads {
        /// The requested number.
        threads: usize,
        /// The system's error.
        source: rayon::ThreadPoolBuildError,
    },
    /// A capture could not be written.
    #[error("cannot write a capture: {0}")]
    Capture(#[from] CaptureError),
}

/// Runs all `jobs` on `threads` threads (0: one per core; 1: the caller's) and calls `done` with the index of
/// each as it ends.
///
/// A job that had not ended when `cancel` was set has no outcome.
///
/// # Errors
/// If threads cannot be started, a scenario is too large, or a capture cannot be written.
pub fn replicate(
    jobs: &[Job<'_>],
    threads: usize,
    done: &(dyn Fn(usize) + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<Option<Outcome>>, ReplicateError> {
    replicate_with(jobs, threads, &|index, ended| (done(index), ended.map(|ended| ended.outcome)).1, cancel)
}

/// Runs as [`replicate`] does, with the result of `each` for the index and the end of each job, on the thread
/// that ran it: dropped data take no memory while others run.
///
/// # Errors
/// As for [`replicate`].
pub fn replicate_with<T: Send>(
    jobs: &[Job<'_>],
    threads: usize,
    each: &(dyn Fn(usize, Option<Ended>) -> T + Sync),
    cancel: &AtomicBool,
) -> Result<Vec<T>, ReplicateError> {
    let ended = |(index, job)| Ok(each(index, run(job, cancel)?));
    // More threads than jobs would have no work.
    let threads = if threads == 0 { 0 } else { threads.min(jobs.len()).max(1) };
    // A browser gives WebAssembly one thread.
    if threads == 1 || cfg!(target_family = "wasm") {
        return jobs.iter().enumerate().map(ended).collect();
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|source| ReplicateError::Threads { threads, source })?;
    pool.install(|| {
        // One job at a time per thread: their lengths differ, and the first ones are the user's first points.
        jobs.par_iter().enumerate().with_max_len(1).map(ended).collect()
    })
}

fn run(job: &Job<'_>, cancel: &AtomicBool) -> Result<Option<Ended>, ReplicateError> {
    if cancel.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut captures = |link: usize| job.captures.and_then(|open| open(link));
    let copy = job.copy_of.map(|k| job.scenario.perturbed(k));
    let scenario = copy.as_ref().unwrap_or(job.scenario);
    let mut simulation = Simulation::new(scenario, job.seed, Detail::Full, &mut captures)?;
    if let Some(observer) = job.observer {
        simulation.observe(observer);
    }
    let reached = |now| {
        if let Some(reached) = job.reached {
            reached(now);
        }
    };
    let ending = simulation.run_with(cancel, &reached, &|now| job.cuts.is_some_and(|cuts| cuts(now)));
    simulation.finish_captures()?;
    let cut_at = match ending {
        Ending::Whole => None,
        Ending::Cut(at) => Some(at),
        Ending::Cancelled => return Ok(None),
    };
    Ok(Some(Ended { outcome: simulation.outcome(), cut_at }))
}
