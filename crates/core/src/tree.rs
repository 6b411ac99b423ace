//! A summary of many changing leaves: a tree over flow indices, updated when it is read.
//!
//! Every inner place sums up the two below it: [`Largest`] makes it a tournament whose winner is found from
//! the root, [`Sum`] makes it a roulette wheel on which each leaf has its part. Leaves change with every
//! packet but are read only when a buffer overflows, so a change only marks its leaf, and the next question
//! recomputes the places above it: O(1) per change and O(log n) per leaf changed since the last question, at
//! most O(n) in total.

use alloc::vec;
use alloc::vec::Vec;

use crate::random::Stream;

/// The summary of the leaves below a place.
pub(crate) trait Summary: Copy + PartialEq {
    /// The summary of an absent leaf.
    const ABSENT: Self;
    /// The summary of two neighbours, `self` before `right`.
    fn join(self, right: Self) -> Self;
}

/// The largest key, and how many leaves have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Largest {
    pub key: f64,
    count: u32,
}

impl Largest {
    /// The summary of a leaf with a finite `key`.
    pub const fn of(key: f64) -> Self {
        Self { key, count: 1 }
    }
}

impl Summary for Largest {
    const ABSENT: Self = Self { key: f64::NEG_INFINITY, count: 0 };
    fn join(self, right: Self) -> Self {
        if right.key == self.key {
            Self { key: self.key, count: self.count + right.count }
        } else if right.key > self.key {
            right
        } else {
            self
        }
    }
}

/// The sum of keys that are not negative. Each update recomputes it from the leaves, so errors do not
/// accumulate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sum(pub f64);

impl Summary for Sum {
    const ABSENT: Self = Self(0.0);
    fn join(self, right: Self) -> Self {
        Self(self.0 + right.0)
    }
}

/// Leaves by index, with their summary.
#[derive(Clone, Debug)]
pub(crate) struct Tree<T> {
    /// Place 1 is the root; those below `i` are `2i` and `2i + 1`; the second half are the leaves.
    places: Vec<T>,
    is_stale: Vec<bool>,
    /// The leaves that changed since the places above them were recomputed.
    stale: Vec<u32>,
}

impl<T: Summary> Tree<T> {
    pub fn new() -> Self {
        Self { places: vec![T::ABSENT; 2], is_stale: vec![false], stale: Vec::new() }
    }

    /// The memory of the leaves, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let places = self.places.capacity() * size_of::<T>();
        places + self.is_stale.capacity() + self.stale.capacity() * size_of::<u32>()
    }

    fn leaves(&self) -> usize {
        self.places.len() / 2
    }

    /// Replaces the leaf `index`.
    #[inline]
    pub fn set(&mut self, index: usize, leaf: T) {
        if index >= self.leaves() {
            self.grow(index + 1);
        }
        let place = self.leaves() + index;
        self.places[place] = leaf;
        if !self.is_stale[index] {
            self.is_stale[index] = true;
            self.stale.push(index as u32);
        }
    }

    /// The summary of all leaves.
    pub fn root(&mut self) -> T {
        // An update from one leaf costs log n, of all places n.
        let depth = self.leaves().ilog2() as usize;
        if self.stale.len() * depth < self.leaves() {
            while let Some(index) = self.stale.pop() {
                self.is_stale[index as usize] = false;
                self.follow(index as usize);
            }
        } else {
            self.stale.drain(..).for_each(|index| self.is_stale[index as usize] = false);
            self.work_out();
        }
        self.places[1]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, n: usize) {
        let n = n.next_power_of_two();
        let mut places = vec![T::ABSENT; 2 * n];
        let leaves = self.leaves();
        places[n..n + leaves].copy_from_slice(&self.places[leaves..]);
        self.places = places;
        self.is_stale.resize(n, false);
        self.work_out();
    }

    fn work_out(&mut self) {
        for place in (1..self.leaves()).rev() {
            self.places[place] = self.places[2 * place].join(self.places[2 * place + 1]);
        }
    }

    /// Recomputes the places above a leaf, as far up as they change.
    fn follow(&mut self, index: usize) {
        let mut place = (self.leaves() + index) / 2;
        while place >= 1 {
            let joined = self.places[2 * place].join(self.places[2 * place + 1]);
            if joined == self.places[place] {
                return;
            }
            self.places[place] = joined;
            place /= 2;
        }
    }
}

impl Tree<Largest> {
    /// An index with the largest key, uniformly at random among equal ones; none if there is no leaf.
    pub fn largest(&mut self, random: &mut Stream) -> Option<usize> {
        let best = self.root();
        let mut before = match best.count {
            0 => return None,
            1 => 0,
            count => random.below(u64::from(count)) as u32,
        };
        let mut place = 1;
        while place < self.leaves() {
            let left = self.places[2 * place];
            let in_left = if left.key == best.key { left.count } else { 0 };
            let goes_right = before >= in_left;
            if goes_right {
                before -= in_left;
            }
            place = 2 * place + usize::from(goes_right);
        }
        Some(place - self.leaves())
    }
}

impl Tree<Sum> {
    /// The leaf at the share `u`, in [0, 1), of the sum; none if all are zero.
    pub fn at(&mut self, u: f64) -> Option<usize> {
        let Sum(sum) = self.root();
        if sum <= 0.0 {
            return None;
        }
        let (mut rest, mut place) = (u * sum, 1);
        while place < self.leaves() {
            let (Sum(left), Sum(right)) = (self.places[2 * place], self.places[2 * place + 1]);
            // The remainder may be rounded up to the sum; an empty part has no place on the wheel.
            let goes_right = rest >= left && right > 0.0;
            if goes_right {
                rest -= left;
            }
            place = 2 * place + usize::from(goes_right);
        }
        Some(place - self.leaves())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn what_the_root_says_is_what_a_scan_finds(
            changes in prop::collection::vec((0usize..300, 0u8..8, 0u8..20), 1..400)
        ) {
            let (mut tournament, mut wheel) = (Tree::new(), Tree::new());
            let mut random = Stream::new(1, "ties");
            let mut keys = [0u8; 300];
            for (index, key, ask) in changes {
                keys[index] = key;
                let present = Largest::of(f64::from(key) - 5.0);
                tournament.set(index, if key > 0 { present } else { Largest::ABSENT });
                wheel.set(index, Sum(f64::from(key)));
                // Some questions come after one change, others after many.
                if ask < 5 {
                    let best = keys.iter().copied().max().filter(|&key| key > 0);
                    prop_assert_eq!(tournament.largest(&mut random).map(|index| keys[index]), best);
                    // Whole numbers add without error: each unit of the sum has its own place.
                    let units: Vec<usize> = (0..300).flat_map(|i| vec![i; usize::from(keys[i])]).collect();
                    for (unit, &index) in (0..).zip(&units) {
                        let u = (f64::from(unit) + 0.5) / units.len() as f64;
                        prop_assert_eq!(wheel.at(u), Some(index));
                    }
                    prop_assert_eq!(wheel.at(0.0).is_none(), units.is_empty());
                }
            }
        }
    }

    #[test]
    fn each_of_equals_is_as_likely_wherever_it_stands() {
        // A tree for 128 leaves holds 65: the last one has half of the tree for itself.
        let (mut tree, mut random, mut counts) = (Tree::new(), Stream::new(1, "ties"), [0_u32; 70]);
        (0..70).for_each(|index| tree.set(index, Largest::of(if index < 65 { 2.0 } else { 1.0 })));
        (0..65_000).for_each(|_| counts[tree.largest(&mut random).unwrap()] += 1);
        // Binomial: 1000 ± 31.4.
        assert!(counts[..65].iter().all(|&count| (870..=1_130).contains(&count)), "{counts:?}");
        assert_eq!(counts[65..], [0; 5]);
    }
}
