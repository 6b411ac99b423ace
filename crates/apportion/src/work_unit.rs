//! Simulations in parts: which a cache lacks, simulating some of them in another process, and keeping what that gives.

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

/// A part of the work of a run: simulations of one point that were [done](Simulations::simulate), as a [`Cache`](crate::Cache) holds them.
#[derive(Clone, Debug)]
pub struct WorkUnit {
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
    Outcome(IgnoredAny),
    Rows(Box<ReplicationRows>),
    Copy(IgnoredAny),
}

impl Simulations<'_> {
    /// The numbers of those that the [cache](Self::cache) does not have, ascending.
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

    /// Simulates those of these numbers. After it was [cancelled](Self::cancel) it has what had ended until then.
    ///
    /// # Errors
    /// If there is none of a number, a point is too large for the simulator, or threads cannot be started.
    pub fn simulate(&self, numbers: &[usize]) -> Result<Vec<WorkUnit>, RunError> {
        if let Some(&number) = numbers.iter().find(|number| **number >= self.total()) {
            return Err(RunError::NoSimulation { number, count: self.total() });
        }
        let wanted: Vec<(usize, Which)> = numbers.iter().map(|&number| self.which(number)).collect();
        let jobs: Vec<Job<'_>> = wanted.iter().map(|&one| self.job(one)).collect();
        // Nothing was measured of them.
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

    /// Adds what a process has [simulated](Self::simulate) to the [cache](Self::cache).
    ///
    /// # Errors
    /// If it was simulated from other inputs, or by another build; or if the cache cannot be written.
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

    /// Makes what was [kept](Self::keep) small. Call it when all is kept.
    ///
    /// # Errors
    /// If the cache cannot be written.
    pub fn compact(&self) -> Result<(), CacheError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        self.points.iter().try_for_each(|(scenario, at)| cache.compact(scenario.key(*at)))
    }
}

/// Why a work unit could not be kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// It is not of these simulations.
    #[error(
        "it was simulated from other inputs: a file that the scenario refers to may have changed since it was loaded; load it again"
    )]
    Foreign,
    /// The cache cannot be written.
    #[error(transparent)]
    Cache(#[from] CacheError),
}
