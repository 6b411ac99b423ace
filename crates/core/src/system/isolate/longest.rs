//! The longest of a host's groups, or of a group's flows: a heap.
//!
//! Cost: O(log entries) per change, O(1) while all are equally long. A heap that shrinks frees its memory, so
//! that all heaps together take at most four places for each entry.

use alloc::vec::Vec;

/// The capacity that an empty heap keeps. Chosen: most hosts have no more flows, and need not allocate.
const KEPT: usize = 16;

/// An entry with a length and its place in a heap.
pub(super) trait Ranked {
    fn length(&self) -> f64;
    fn place(&mut self) -> &mut u32;
}

/// Entries by their length. Every call gets the slice that holds the entries.
#[derive(Clone, Debug)]
pub(super) struct Longest(Vec<u32>);

impl Longest {
    pub const EMPTY: Self = Self(Vec::new());

    /// The longest entry, if there is one; among equally long ones, any.
    pub fn first(&self) -> Option<usize> {
        self.0.first().map(|&entry| entry as usize)
    }

    /// The memory of the heap's places, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }

    pub fn insert<T: Ranked>(&mut self, entries: &mut [T], entry: usize) {
        *entries[entry].place() = self.0.len() as u32;
        self.0.push(entry as u32);
        self.rise(entries, self.0.len() - 1);
    }

    /// Moves `entry`, whose length has changed.
    pub fn update<T: Ranked>(&mut self, entries: &mut [T], entry: usize) {
        let place = *entries[entry].place() as usize;
        let place = self.rise(entries, place);
        self.sink(entries, place);
    }

    /// Removes `entry`.
    pub fn remove<T: Ranked>(&mut self, entries: &mut [T], entry: usize) {
        let place = *entries[entry].place() as usize;
        self.0.swap_remove(place);
        if let Some(&moved) = self.0.get(place) {
            *entries[moved as usize].place() = place as u32;
            self.update(entries, moved as usize);
        }
        if self.0.capacity() > KEPT && self.0.len() < self.0.capacity() / 4 {
            self.0.shrink_to(KEPT.max(self.0.capacity() / 2));
        }
    }

    fn is_longer<T: Ranked>(&self, entries: &[T], a: usize, b: usize) -> bool {
        entries[self.0[a] as usize].length() > entries[self.0[b] as usize].length()
    }

    fn swap<T: Ranked>(&mut self, entries: &mut [T], a: usize, b: usize) {
        self.0.swap(a, b);
        for place in [a, b] {
            *entries[self.0[place] as usize].place() = place as u32;
        }
    }

    /// Moves the entry at `place` up as far as needed, and returns its new place.
    fn rise<T: Ranked>(&mut self, entries: &mut [T], mut place: usize) -> usize {
        while place > 0 && self.is_longer(entries, place, (place - 1) / 2) {
            self.swap(entries, place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    /// Moves the entry at `place` down as far as needed.
    fn sink<T: Ranked>(&mut self, entries: &mut [T], mut place: usize) {
        loop {
            let below = (2 * place + 1..self.0.len()).take(2);
            let longer = below
                .fold(place, |best, other| if self.is_longer(entries, other, best) { other } else { best });
            if longer == place {
                return;
            }
            self.swap(entries, place, longer);
            place = longer;
        }
    }
}
