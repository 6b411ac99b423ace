//! Simulations from earlier runs and from the present one, in a [`Cache`].

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

/// The identity of a simulation within a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Which {
    /// The seed of the replication.
    pub seed: u64,
    /// For a [perturbed copy](crate::Run::phase_check): the number of the replication, and the seed of the
    /// scenario, from which the perturbations are drawn.
    pub copy_of: Option<(u64, u64)>,
}

/// The measurements of one simulation, as they are stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Measurement {
    /// The outcome of a replication.
    Outcome(Box<Outcome>),
    /// The replication as rows of tables, which are smaller, for runs that do not retain outcomes.
    Rows(Box<ReplicationRows>),
    /// The measurements of a perturbed copy.
    Copy(PerturbedCopy),
}

/// An entry of the cache.
#[derive(Serialize, Deserialize)]
pub(crate) struct Entry<E> {
    pub which: Which,
    pub ended: E,
}

/// The part of a cache that belongs to a run's simulations.
pub(crate) struct Cached<'a> {
    /// None: nothing is read or stored.
    cache: Option<&'a Cache>,
    /// The key of each point; none for points with disciplines that a program has registered, whose code is
    /// not part of the hash.
    keys: Vec<Option<&'a Key>>,
    /// Whether something was stored for each point.
    is_kept: Vec<AtomicBool>,
    /// Whether each point was absent from the cache when it was read.
    is_new: Vec<AtomicBool>,
    /// The first write error.
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

    /// Returns the stored results of these simulations of a point that can be used, in order.
    pub fn read(
        &self,
        point: usize,
        all: &[Which],
        is_usable: impl Fn(&Measurement) -> bool,
    ) -> Vec<Option<Measurement>> {
        let mut found = vec![None; all.len()];
        let Some((cache, key)) = self.of(point) else { return found };
        // The replications of a long run come in batches: a point that was absent at first now has only this
        // run's own results.
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

    /// Stores a finished simulation. An error does not disturb the run.
    pub fn keep(&self, point: usize, which: Which, ended: &Measurement) {
        if let Some((cache, key)) = self.of(point) {
            match cache.append(key, &Entry { which, ended }) {
                Ok(()) => self.is_kept[point].store(true, Ordering::Relaxed),
                Err(error) => self.note(error),
            }
        }
    }

    /// Compacts the stored results, and prunes the cache to at most `most` bytes. Returns the first error, if
    /// any.
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

    /// Returns the cache and the key of a point, if it is cached.
    fn of(&self, point: usize) -> Option<(&'a Cache, &'a Key)> {
        self.cache.zip(self.keys.get(point).copied().flatten())
    }

    fn note(&self, error: CacheError) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}
