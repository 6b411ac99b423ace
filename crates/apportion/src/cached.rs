//! Simulations that were run before, and those that are run now, in a [`Cache`].

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use apportion_report::ReplicationRows;
use apportion_report::phase_sensitivity::PerturbedCopy;
use apportion_runtime::outcome::Outcome;
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CacheError, Key};
use crate::scenario::Scenario;
use crate::simulations::Simulations;

/// Which simulation of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Which {
    /// Of the replication.
    pub seed: u64,
    /// The replication's number, if this is its [perturbed copy](crate::Run::phase_check), and the seed of the scenario, from which its moves
    /// are drawn.
    pub copy_of: Option<(u64, u64)>,
}

/// What one simulation measured, as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Measurement {
    /// Of a replication.
    Outcome(Box<Outcome>),
    /// The same as rows of tables, which take less room: of a run that does not hold outcomes.
    Rows(Box<ReplicationRows>),
    /// Of a perturbed copy.
    Copy(PerturbedCopy),
}

/// An entry of the cache.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry<E> {
    pub which: Which,
    pub ended: E,
}

/// The part of a cache that belongs to some simulations.
pub(crate) struct Cached<'a> {
    /// None: nothing is read and nothing kept.
    cache: Option<&'a Cache>,
    /// Of each point; of disciplines that a program has registered nothing is known, so points with them have none.
    keys: Vec<Option<&'a Key>>,
    /// Points of which something was kept.
    is_kept: Vec<AtomicBool>,
    /// Points of which there was nothing when they were read.
    is_new: Vec<AtomicBool>,
    /// The first failure to write.
    failure: Mutex<Option<CacheError>>,
}

impl<'a> Cached<'a> {
    pub fn new(simulations: &'a Simulations<'_>) -> Self {
        let cache = simulations.cache.as_ref();
        let points = if cache.is_some() { &simulations.points[..] } else { &[] };
        let key =
            |(scenario, at): &(&'a Scenario, usize)| (!scenario.has_own_code()).then(|| scenario.key(*at));
        let keys: Vec<_> = points.iter().map(key).collect();
        let none = || keys.iter().map(|_| AtomicBool::new(false)).collect();
        let (is_kept, is_new) = (none(), none());
        Self { cache, keys, is_kept, is_new, failure: Mutex::new(None) }
    }

    /// What there is of these simulations of a point that can be used, in their order.
    pub fn read(
        &self,
        point: usize,
        all: &[Which],
        is_usable: impl Fn(&Measurement) -> bool,
    ) -> Vec<Option<Measurement>> {
        let mut found = vec![None; all.len()];
        let Some((cache, key)) = self.of(point) else { return found };
        // The many replications of a point come in parts: what was not there at first is what this run keeps.
        if !self.is_new[point].load(Ordering::Relaxed) {
            let places: BTreeMap<Which, usize> = all.iter().copied().zip(0..).collect();
            let mut is_new = true;
            cache.read(key, |entry: Entry<Measurement>| {
                is_new = false;
                if let Some(&at) = places.get(&entry.which).filter(|_| is_usable(&entry.ended)) {
                    found[at] = Some(entry.ended);
                }
            });
            self.is_new[point].store(is_new, Ordering::Relaxed);
        }
        found
    }

    /// Keeps a simulation that has ended. A failure does not disturb the run.
    pub fn keep(&self, point: usize, which: Which, ended: &Measurement) {
        if let Some((cache, key)) = self.of(point) {
            match cache.append(key, &Entry { which, ended }) {
                Ok(()) => self.is_kept[point].store(true, Ordering::Relaxed),
                Err(error) => self.note(error),
            }
        }
    }

    /// Makes what was kept small, and the cache no larger than `most` bytes. The first failure, if there was one.
    pub fn finish(self, most: u64) -> Option<CacheError> {
        let kept = (0..self.keys.len()).filter(|&point| self.is_kept[point].load(Ordering::Relaxed));
        let kept: Vec<(&Cache, &Key)> = kept.filter_map(|point| self.of(point)).collect();
        for (cache, key) in &kept {
            cache.compact(key).unwrap_or_else(|error| self.note(error));
        }
        if let Some((cache, _)) = kept.first()
            && let Err(error) = cache.prune(most)
        {
            self.note(error);
        }
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The cache and the key of a point, where it is cached.
    fn of(&self, point: usize) -> Option<(&'a Cache, &'a Key)> {
        self.cache.zip(self.keys.get(point).copied().flatten())
    }

    fn note(&self, error: CacheError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}
