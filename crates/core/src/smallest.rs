//! The smallest of many keys, by flow: a tournament that is always played out.
//!
//! Schedulers ask with every packet, so a change plays its matches at once, from the leaf to the root or up
//! to the first match whose result stays: O(log n). The inputs of a match other than the winner below are
//! known beforehand, so they are fetched from memory while that winner is computed. Each match is one cache
//! line: first eight keys meet, whose places give their indices, then four winners at a time. Measured where
//! every packet changes the smallest key: a heap of four children a place takes twice as long, at 1,000 flows
//! as at 1,000,000, and matches of two take 1.5 times as long. [`Tree`] suits keys that change more often
//! than they are asked for.
//!
//! [`Tree`]: crate::tree::Tree

use alloc::vec;
use alloc::vec::Vec;

/// No key.
const ABSENT: u64 = u64::MAX;

/// The place of the last winner. It makes each group of four begin at a multiple of four: `4i - 8 .. 4i - 4`
/// meet at `i`.
const ROOT: usize = 3;

/// Leaves that meet: the keys of eight indices in a row.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Eight([u64; 8]);

/// A key and its index. Of two winners that meet, the one with the lower index stands first, and wins unless
/// the other key is smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Winner {
    key: u64,
    index: u64,
}

impl Winner {
    const ABSENT: Self = Self { key: ABSENT, index: u64::MAX };

    #[inline]
    const fn meets(self, second: Self) -> Self {
        if second.key < self.key { second } else { self }
    }
}

/// Winners that meet.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Four([Winner; 4]);

impl Eight {
    const ABSENT: Self = Self([ABSENT; 8]);

    /// The winner of the eight whose first index is `first`.
    fn winner(&self, first: usize) -> Winner {
        let entry = |i: usize| Winner { key: self.0[i], index: i as u64 };
        let pair = |i| entry(i).meets(entry(i + 1));
        let Winner { key, index } = pair(0).meets(pair(2)).meets(pair(4).meets(pair(6)));
        Winner { key, index: first as u64 + index }
    }
}

impl Four {
    const ABSENT: Self = Self([Winner::ABSENT; 4]);

    #[inline]
    fn winner(&self) -> Winner {
        // Places meet, as in leaves: one index is loaded, not four.
        let at = |i: usize| Winner { key: self.0[i].key, index: i as u64 };
        let Winner { key, index } = at(0).meets(at(1)).meets(at(2).meets(at(3)));
        Winner { key, index: self.0[index as usize & 3].index }
    }
}

/// The smallest of many keys below `u64::MAX`, by index. Of equal keys the lower index wins.
#[derive(Clone, Debug)]
pub(crate) struct Smallest {
    leaves: Vec<Eight>,
    /// The winners of leaves begin at the node `inner`, after those of later matches.
    fours: Vec<Four>,
    inner: usize,
}

impl Smallest {
    pub fn new() -> Self {
        Self { leaves: Vec::new(), fours: vec![Four::ABSENT; 2], inner: 4 }
    }

    /// The smallest key and its index.
    pub fn first(&self) -> Option<(u64, usize)> {
        let Winner { key, index } = self.fours[0].0[ROOT];
        (key != ABSENT).then_some((key, index as usize))
    }

    pub fn contains(&self, index: usize) -> bool {
        self.key(index).is_some()
    }

    /// The key of `index`, if it has one.
    pub fn key(&self, index: usize) -> Option<u64> {
        self.leaves.get(index / 8).map(|eight| eight.0[index % 8]).filter(|key| *key != ABSENT)
    }

    /// Sets the key of `index`, which is added if it is new.
    #[inline]
    pub fn set(&mut self, index: usize, key: u64) {
        if index / 8 >= self.leaves.len() {
            self.grow(index / 8 + 1);
        }
        self.replace(index, key);
    }

    /// Removes `index`, if present.
    pub fn remove(&mut self, index: usize) {
        if self.contains(index) {
            self.replace(index, ABSENT);
        }
    }

    /// Subtracts `by` from every key. No key may be below `by`.
    pub fn shift(&mut self, by: u64) {
        let keys = self.leaves.iter_mut().flat_map(|eight| &mut eight.0);
        keys.filter(|key| **key != ABSENT).for_each(|key| *key -= by);
        self.play();
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        self.leaves.fill(Eight::ABSENT);
        self.fours.fill(Four::ABSENT);
    }

    #[inline(never)]
    fn replace(&mut self, index: usize, key: u64) {
        let eight = &mut self.leaves[index / 8];
        if core::mem::replace(&mut eight.0[index % 8], key) == key {
            return;
        }
        let mut winner = eight.winner(index & !7);
        let mut node = self.inner + index / 8;
        loop {
            let (four, place) = (&mut self.fours[node / 4], node % 4);
            if four.0[place] == winner {
                return;
            }
            four.0[place] = winner;
            if node == ROOT {
                return;
            }
            winner = four.winner();
            node = node / 4 + 2;
        }
    }

    /// Makes room for `n` times eight leaves and plays every match: O(n). Each call doubles the room.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, n: usize) {
        let n = n.max(2 * self.leaves.len());
        self.leaves.reserve_exact(n - self.leaves.len());
        self.leaves.resize(n, Eight::ABSENT);
        let (mut inner, mut level) = (4, 4);
        while level < n {
            inner = 4 * inner - 8;
            level *= 4;
        }
        self.inner = inner;
        self.fours = vec![Four::ABSENT; inner / 4 + n.div_ceil(4)];
        self.play();
    }

    fn play(&mut self) {
        for (i, eight) in self.leaves.iter().enumerate() {
            let node = self.inner + i;
            self.fours[node / 4].0[node % 4] = eight.winner(8 * i);
        }
        for four in (1..self.fours.len()).rev() {
            let above = four + 2;
            self.fours[above / 4].0[above % 4] = self.fours[four].winner();
        }
    }

    /// The memory of the keys, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.leaves.capacity() * size_of::<Eight>() + self.fours.capacity() * size_of::<Four>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_first_is_what_a_scan_finds(
            changes in prop::collection::vec((0usize..600, prop::option::weighted(0.7, 5u64..25)), 1..400)
        ) {
            let (mut tree, mut keys) = (Smallest::new(), BTreeMap::new());
            for (index, key) in changes {
                match key {
                    Some(key) => {
                        keys.insert(index, key);
                        tree.set(index, key);
                    }
                    None => {
                        keys.remove(&index);
                        tree.remove(index);
                    }
                }
                let least = keys.iter().map(|(&index, &key)| (key, index)).min();
                prop_assert_eq!(tree.first(), least);
                prop_assert_eq!(tree.contains(index), keys.contains_key(&index));
                prop_assert_eq!(tree.key(index), keys.get(&index).copied());
            }
            tree.shift(5);
            prop_assert_eq!(tree.first().map(|(key, _)| key + 5), keys.values().min().copied());
            tree.clear();
            prop_assert_eq!(tree.first(), None);
        }
    }

    #[test]
    fn an_index_takes_at_most_23_bytes() {
        // The leaves have just doubled, 2·8 bytes each, and twice as many places as there are winners stand
        // above them: 16·(1 + 2/3)/8 bytes for each leaf.
        let mut tree = Smallest::new();
        let mut most = 0;
        for index in 0..100_000 {
            tree.set(index, 1);
            if index >= 1_000 {
                most = most.max(tree.bytes().div_ceil(index + 1));
            }
        }
        assert_eq!(most, 23);
    }
}
