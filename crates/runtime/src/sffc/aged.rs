//! A map whose entries have a time each; the earliest are removed first.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::units::Time;

/// A map with times. Cost: O(log n) for each call, and per entry removed.
#[derive(Clone, Debug)]
pub(super) struct Aged<K, V> {
    entries: BTreeMap<K, (Time, V)>,
    order: BTreeSet<(Time, K)>,
}

impl<K, V> Default for Aged<K, V> {
    fn default() -> Self {
        Self { entries: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Copy, V> Aged<K, V> {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, key: K) -> Option<&V> {
        self.entries.get(&key).map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.entries.get_mut(&key).map(|(_, value)| value)
    }

    /// Inserts an entry, which replaces the one with this key.
    pub fn insert(&mut self, key: K, time: Time, value: V) {
        if let Some((old, _)) = self.entries.insert(key, (time, value)) {
            self.order.remove(&(old, key));
        }
        self.order.insert((time, key));
    }

    /// Changes the time of the entry with this key, if there is one.
    pub fn set_time(&mut self, key: K, time: Time) {
        if let Some((old, _)) = self.entries.get_mut(&key) {
            self.order.remove(&(*old, key));
            *old = time;
            self.order.insert((time, key));
        }
    }

    /// The entry with this key, with its time set to `time`; created if there is none.
    pub fn get_or_insert(&mut self, key: K, time: Time, new: impl FnOnce() -> V) -> &mut V {
        let entry = self.entries.entry(key).or_insert_with(|| (time, new()));
        self.order.remove(&(entry.0, key));
        entry.0 = time;
        self.order.insert((time, key));
        &mut entry.1
    }

    pub fn remove(&mut self, key: K) -> Option<V> {
        let (time, value) = self.entries.remove(&key)?;
        self.order.remove(&(time, key));
        Some(value)
    }

    /// The earliest time.
    pub fn first_time(&self) -> Option<Time> {
        self.order.first().map(|(time, _)| *time)
    }

    /// Removes the entry with the earliest time.
    pub fn pop_first(&mut self) -> Option<K> {
        let (_, key) = self.order.pop_first()?;
        self.entries.remove(&key);
        Some(key)
    }

    /// Removes the entry with the earliest time, if that time has come.
    pub fn pop_due(&mut self, now: Time) -> Option<K> {
        if self.first_time()? <= now { self.pop_first() } else { None }
    }
}
