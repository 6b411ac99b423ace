//! Work units: finding the simulations that a cache lacks, simulating some of them in another process, and
//! storing their results.

use std::collections::{BTreeMap, BTreeSet};

use apportion_report::ReplicationRows;
use apportion_sim::{Ended, Job};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::cache::{CacheError, Frame};
use crate::cached::{Entry, Which};
use crate::collector::blank_point;
use crate::run_error::RunError;
use crate::simulations::Simulations;

/// A unit of the work of a run: [finished](Simulations::simulate) simulations of one point, in the form of a
/// [`Cache`](crate::Cache).
#[derive(Clone, Debug)]
pub struct WorkUnit {
    /// The number of the point.
    pub point: usize,
    /// The hash of everything except seeds that the results of the point depend on, in hexadecimal.
    pub key: String,
    /// The results of the simulations.
    pub frame: Frame,
}

/// The part of an entry that determines whether it can be used.
#[derive(Deserialize)]
struct Head {
    which: Which,
    ended: Kind,
}

/// The corresponding part of an entry's measurement.
#[derive(Deserialize)]
enum Kind {
    Outcome(IgnoredAny),
    Rows(Box<ReplicationRows>),
    Copy(IgnoredAny),
}

impl Simulations<'_> {
    /// Returns the numbers of the simulations that the [cache](Self::cache) lacks, ascending.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let mut missing = Vec::new();
        for (at, &(scenario, of_scenario)) in self.points.iter().enumerate() {
            let mut there = BTreeSet::new();
            if let Some(cache) = self.cache.as_ref().filter(|_| !scenario.has_own_code()) {
                cache.read(scenario.key(of_scenario), |entry: Head| {
                    let is_usable = match entry.ended {
                        Kind::Outcome(_) | Kind::Copy(_) => true,
                        Kind::Rows(rows) => self.uses(&rows),
                    };
                    if is_usable {
                        there.insert(entry.which);
                    }
                });
            }
            let numbers = (at * self.of_each_point()..).take(self.of_each_point());
            missing.extend(numbers.filter(|number| !there.contains(&self.which(*number).1)));
        }
        missing
    }

    /// Runs the simulations of these numbers. After a [cancellation](Self::cancel) it returns those that
    /// had ended.
    ///
    /// # Errors
    /// If a number is out of range, a point is too large for the simulator, or threads cannot be started.
    pub fn simulate(&self, numbers: &[usize]) -> Result<Vec<WorkUnit>, RunError> {
        if let Some(&number) = numbers.iter().find(|number| **number >= self.total()) {
            return Err(RunError::NoSimulation { number, count: self.total() });
        }
        let wanted: Vec<(usize, Which)> = numbers.iter().map(|&number| self.which(number)).collect();
        let jobs: Vec<Job<'_>> = wanted.iter().map(|&one| self.job(one)).collect();
        // Points of the simulations, without measurements.
        let used: BTreeSet<usize> = wanted.iter().map(|(at, _)| *at).collect();
        let blank: BTreeMap<_, _> = used.into_iter().map(|at| (at, blank_point(self.point(at)))).collect();
        let each = |job: usize, ended: Option<Ended>| {
            let (at, which) = wanted[job];
            Some((at, Entry { which, ended: self.ended(&blank[&at], &jobs[job], ended?.outcome) }))
        };
        let simulated = apportion_sim::replicate_with(&jobs, self.jobs, &each, self.cancel.flag());
        let simulated = simulated.map_err(|cause| RunError::Simulator { scenario: self.origin(), cause })?;
        let ended: Vec<_> = simulated.into_iter().flatten().collect();
        let of_point = |entries: &[(usize, Entry<_>)]| {
            let point = entries[0].0;
            let (scenario, at) = self.points[point];
            let key = scenario.key(at).to_string();
            let entries: Vec<_> = entries.iter().map(|(_, entry)| entry).collect();
            Ok(WorkUnit { point, key, frame: Frame::of(&entries).map_err(RunError::Encode)? })
        };
        ended.chunk_by(|one, next| one.0 == next.0).map(of_point).collect()
    }

    /// Stores the results that a process has [simulated](Self::simulate) in the [cache](Self::cache).
    ///
    /// # Errors
    /// If they were simulated from other inputs, or by another build; or if the cache cannot be written.
    pub fn keep(&self, part: &WorkUnit) -> Result<(), KeepError> {
        let &(scenario, at) = self.points.get(part.point).ok_or(KeepError::Foreign)?;
        let key = scenario.key(at);
        if key.to_string() != part.key {
            return Err(KeepError::Foreign);
        }
        match &self.cache {
            Some(cache) => Ok(cache.append_frame(key, &part.frame)?),
            None => Ok(()),
        }
    }

    /// Compacts the [stored](Self::keep) results. Call it when all are stored.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn compact(&self) -> Result<(), CacheError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        self.points.iter().try_for_each(|(scenario, at)| cache.compact(scenario.key(*at)))
    }
}

/// The reason why a work unit could not be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The unit does not belong to these simulations.
    #[error(
        "it was simulated from other inputs: a file that the scenario refers to may have changed since it was loaded; load it again"
    )]
    Foreign,
    /// The cache cannot be written.
    #[error(transparent)]
    Cache(#[from] CacheError),
}
