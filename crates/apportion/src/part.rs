//! A run in parts: which simulations a cache lacks, simulating some of them in another process, and keeping what that gives.

use std::collections::{BTreeMap, BTreeSet};

use apportion_cache::{CacheError, Frame};
use apportion_report::Recorded;
use apportion_runtime::outcome::Outcome;
use apportion_scenario::{model, replication_seed};
use apportion_sim::Job;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cached::{BUILD, Entry, TARGET, Which, key_of};
use crate::recorder::blank_point;
use crate::run::{Run, RunError};

/// Simulations of one point, as a [`Cache`](crate::Cache) holds them.
#[derive(Clone, Debug)]
pub struct Part {
    /// The number of the point.
    pub point: usize,
    /// The hash of all that its results depend on, besides seeds, in hexadecimal.
    pub key: String,
    /// What the simulations gave.
    pub frame: Frame,
}

/// Of an entry what says whether it can be used.
#[derive(Deserialize)]
struct Head {
    which: Which,
    ended: Kind,
}

/// The same of what was kept.
#[derive(Deserialize)]
enum Kind {
    Replication(IgnoredAny),
    Recorded(Box<Recorded>),
    Twin(IgnoredAny),
}

/// Names the sources and the system that this program was built from and for: programs of the same build simulate the same, bit for
/// bit.
///
/// ```
/// assert!(apportion::build().starts_with(env!("CARGO_PKG_VERSION")));
/// ```
#[must_use]
pub fn build() -> String {
    format!("{BUILD} for {TARGET}")
}

/// A run in parts, for programs that divide it among processes of the same [build](build()): a client asks for what is
/// [missing](Self::missing), others [simulate](Self::simulate_part) it, the client [keeps](Self::keep) that, and then
/// [`simulate`](Self::simulate) finds all of it in the cache.
///
/// Simulations have numbers from 0 in the order of points, then of seeds; a replication comes before its
/// [twin](Self::perturb).
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
/// use apportion::{Cache, Run};
///
/// let run = || Run::new(&scenario).seeds(3).cache(&Cache::at(folder), Cache::MOST);
/// let client = run();
/// assert_eq!(client.missing()?, (0..2 * 3 * 2).collect::<Vec<_>>());
/// // In another process:
/// let parts = run().simulate_part(&client.missing()?)?;
/// for part in &parts {
///     client.keep(part)?;
/// }
/// assert_eq!(client.simulate()?.reused(), 12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl Run<'_> {
    /// How many simulations it has.
    #[must_use]
    pub fn total(&self) -> usize {
        self.scenario.points().len().saturating_mul(self.of_each_point())
    }

    /// The numbers of those that its [cache](Self::cache) does not have, ascending.
    ///
    /// # Errors
    /// If the run is [too large](Self::force).
    pub fn missing(&self) -> Result<Vec<usize>, RunError> {
        self.check_size()?;
        let cache = self.cache.as_ref().filter(|_| !self.scenario.has_own_disciplines());
        let mut missing = Vec::new();
        for (at, point) in self.scenario.points().iter().enumerate() {
            let mut there = BTreeSet::new();
            if let Some((cache, _)) = cache {
                cache.read(&key_of(self.scenario, point), |entry: Head| {
                    let is_usable = match entry.ended {
                        Kind::Replication(_) | Kind::Twin(_) => true,
                        Kind::Recorded(recorded) => self.uses(&recorded),
                    };
                    if is_usable {
                        there.insert(entry.which);
                    }
                });
            }
            let numbers = (at * self.of_each_point()..).take(self.of_each_point());
            missing.extend(numbers.filter(|number| !there.contains(&self.which(&point.scenario, *number))));
        }
        Ok(missing)
    }

    /// Simulates those of these numbers. After it was [cancelled](Self::cancel) it has what had ended until then.
    ///
    /// # Errors
    /// If there is none of a number, a point is too large for the simulator, or threads cannot be started.
    pub fn simulate_part(&self, numbers: &[usize]) -> Result<Vec<Part>, RunError> {
        let points = self.scenario.points();
        if let Some(&number) = numbers.iter().find(|number| **number >= self.total()) {
            return Err(RunError::NoSimulation { number, count: self.total() });
        }
        let wanted = numbers.iter().map(|&number| {
            let at = number / self.of_each_point();
            (at, &points[at].scenario, self.which(&points[at].scenario, number))
        });
        let wanted: Vec<_> = wanted.collect();
        let job = |&(_, scenario, Which { seed, twin_of })| Job {
            scenario,
            seed,
            twin_of: twin_of.map(|(k, _)| k),
            captures: None,
        };
        let jobs: Vec<Job<'_>> = wanted.iter().map(job).collect();
        // Nothing is recorded in them.
        let used: BTreeSet<usize> = wanted.iter().map(|(at, ..)| *at).collect();
        let blank: BTreeMap<_, _> = used.into_iter().map(|at| (at, blank_point(&points[at]))).collect();
        let each = |job: usize, outcome: Option<Outcome>| {
            let (at, _, which) = wanted[job];
            Some((at, Entry { which, ended: self.ended(&blank[&at], &jobs[job], outcome?) }))
        };
        let simulated = apportion_sim::replicate_with(&jobs, self.jobs, &each, self.cancel.flag());
        let simulated = simulated
            .map_err(|cause| RunError::Simulator { scenario: self.scenario.origin().to_owned(), cause })?;
        let ended: Vec<_> = simulated.into_iter().flatten().collect();
        let of_point = |entries: &[(usize, Entry<_>)]| {
            let point = entries[0].0;
            let key = key_of(self.scenario, &points[point]).to_string();
            let entries: Vec<_> = entries.iter().map(|(_, entry)| entry).collect();
            Ok(Part { point, key, frame: Frame::of(&entries).map_err(RunError::Part)? })
        };
        ended.chunk_by(|one, next| one.0 == next.0).map(of_point).collect()
    }

    /// Adds what a process has [simulated](Self::simulate_part) to its [cache](Self::cache).
    ///
    /// # Errors
    /// If it was simulated from other inputs, or by another build; or if the cache cannot be written.
    pub fn keep(&self, part: &Part) -> Result<(), KeepError> {
        let point = self.scenario.points().get(part.point).ok_or(KeepError::Foreign)?;
        let key = key_of(self.scenario, point);
        if key.to_string() != part.key {
            return Err(KeepError::Foreign);
        }
        match &self.cache {
            Some((cache, _)) => Ok(cache.append_frame(&key, &part.frame)?),
            None => Ok(()),
        }
    }

    /// Makes what was [kept](Self::keep) small. Call it when all is kept.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn compact(&self) -> Result<(), CacheError> {
        let Some((cache, _)) = &self.cache else { return Ok(()) };
        for point in self.scenario.points() {
            cache.compact(&key_of(self.scenario, point))?;
        }
        Ok(())
    }

    /// Simulations of each point.
    fn of_each_point(&self) -> usize {
        let replications = usize::try_from(self.seeds).unwrap_or(usize::MAX);
        replications.saturating_mul(self.of_each_replication())
    }

    /// Itself, and its twin.
    fn of_each_replication(&self) -> usize {
        if self.has_twins() { 2 } else { 1 }
    }

    fn which(&self, scenario: &model::Scenario, number: usize) -> Which {
        let of_point = number % self.of_each_point();
        let k = (of_point / self.of_each_replication()) as u64;
        let is_twin = of_point % self.of_each_replication() == 1;
        Which { seed: replication_seed(scenario.seed, k), twin_of: is_twin.then_some((k, scenario.seed)) }
    }
}

/// Why a part could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// It is not of this run.
    #[error(
        "it was simulated from other inputs: a file that the scenario refers to may have changed since it was loaded; load it again"
    )]
    Foreign,
    /// The cache cannot be written.
    #[error(transparent)]
    Cache(#[from] CacheError),
}
