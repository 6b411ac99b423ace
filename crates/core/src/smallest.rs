//! The smallest of many keys, by flow: a tournament of four to a match that is always played out.
//!
//! Schedulers ask with every packet, so a change plays its matches at once, from the leaf to the root: O(log
//! n) without a branch to mispredict. What a match needs beside the winner below is known beforehand, so it
//! is fetched from memory and compared while that match is on. Measured where every packet changes the
//! smallest key, a heap of four children a place takes twice as long, at 1,000 flows as at 1,000,000, and
//! matches of two take 1.5 times as long. [`Tree`] is for keys of which few changes are ever asked
//! about.
//!
//! [`Tree`]: crate::tree::Tree

use alloc::vec;
use alloc::vec::Vec;

/// No key.
const ABSENT: u128 = u128::MAX;

/// Where the last winner stands, so that each four that meet begin at a multiple of four: `4i - 8 .. 4i - 4`
/// meet at `i`.
const ROOT: usize = 3;

/// Four that meet. They share a line of the cache, and a match is one access to memory.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Four([u128; 4]);

impl Four {
    fn winner(&self) -> u128 {
        let [a, b, c, d] = self.0;
        a.min(b).min(c.min(d))
    }
}

/// Keys by index, with the smallest at hand. Equal keys: the lower index wins. 16 to 38 bytes per index.
#[derive(Clone, Debug)]
pub(crate) struct Smallest {
    /// Nodes, four by four; each is a key above its index in one number, so that one comparison orders both.
    fours: Vec<Four>,
    /// The node where the leaves begin, after the inner ones.
    leaves: usize,
}

impl Smallest {
    pub fn new() -> Self {
        Self { fours: vec![Four([ABSENT; 4]); 2], leaves: 4 }
    }

    /// The smallest key and its index.
    pub fn first(&self) -> Option<(u64, usize)> {
        let first = self.fours[0].0[ROOT];
        (first != ABSENT).then_some(((first >> 64) as u64, first as u32 as usize))
    }

    pub fn contains(&self, index: usize) -> bool {
        let node = self.leaves + index;
        self.fours.get(node / 4).is_some_and(|four| four.0[node % 4] != ABSENT)
    }

    /// Sets the key of `index`, which may be new.
    pub fn set(&mut self, index: usize, key: u64) {
        if self.leaves + index >= 4 * self.fours.len() {
            self.grow(index + 1);
        }
        self.replace(index, u128::from(key) << 64 | index as u128);
    }

    /// Takes `index` out, if it is in.
    pub fn remove(&mut self, index: usize) {
        if self.contains(index) {
            self.replace(index, ABSENT);
        }
    }

    /// Makes every key smaller by `by`, which no key is below.
    pub fn shift(&mut self, by: u64) {
        let present = self.fours.iter_mut().flat_map(|four| &mut four.0).filter(|node| **node != ABSENT);
        present.for_each(|node| *node -= u128::from(by) << 64);
    }

    fn replace(&mut self, index: usize, leaf: u128) {
        let mut node = self.leaves + index;
        let mut winner = leaf;
        self.fours[node / 4].0[node % 4] = leaf;
        while node > ROOT {
            let (four, place) = (&self.fours[node / 4].0, node % 4);
            let others = four[place ^ 1].min(four[place ^ 2]).min(four[place ^ 3]);
            winner = winner.min(others);
            node = node / 4 + 2;
            let above = &mut self.fours[node / 4].0[node % 4];
            if *above == winner {
                return;
            }
            *above = winner;
        }
    }

    /// Makes room for `n` leaves and plays every match: O(n), each time for twice as many.
    fn grow(&mut self, n: usize) {
        let keys = self.fours.split_off(self.leaves / 4);
        let n = n.div_ceil(4).max(2 * keys.len());
        let (mut leaves, mut level) = (4, 4);
        while level < 4 * n {
            leaves = 4 * leaves - 8;
            level *= 4;
        }
        self.leaves = leaves;
        self.fours = vec![Four([ABSENT; 4]); leaves / 4 + n];
        self.fours[leaves / 4..][..keys.len()].copy_from_slice(&keys);
        for four in (1..self.fours.len()).rev() {
            let above = four + 2;
            self.fours[above / 4].0[above % 4] = self.fours[four].winner();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_is_what_a_scan_finds(
            changes in prop::collection::vec((0usize..60, prop::option::weighted(0.7, 5u64..25)), 1..400)
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
            }
            tree.shift(5);
            prop_assert_eq!(tree.first().map(|(key, _)| key + 5), keys.values().min().copied());
        }
    }
}
