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

/// Keys by index, with the smallest at hand. Equal keys: the lower index wins. 16 to 38 bytes per index.
#[derive(Clone, Debug)]
pub(crate) struct Smallest {
    /// Key above index in one number, so that one comparison orders both.
    nodes: Vec<u128>,
    /// Where the leaves begin, after the inner nodes.
    leaves: usize,
}

impl Smallest {
    pub fn new() -> Self {
        Self { nodes: vec![ABSENT; 8], leaves: 4 }
    }

    /// The smallest key and its index.
    pub fn first(&self) -> Option<(u64, usize)> {
        let first = self.nodes[ROOT];
        (first != ABSENT).then_some(((first >> 64) as u64, first as u32 as usize))
    }

    pub fn contains(&self, index: usize) -> bool {
        self.nodes.get(self.leaves + index).is_some_and(|&leaf| leaf != ABSENT)
    }

    /// Sets the key of `index`, which may be new.
    pub fn set(&mut self, index: usize, key: u64) {
        if self.leaves + index >= self.nodes.len() {
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
        let present = self.nodes.iter_mut().filter(|node| **node != ABSENT);
        present.for_each(|node| *node -= u128::from(by) << 64);
    }

    fn replace(&mut self, index: usize, leaf: u128) {
        let mut node = self.leaves + index;
        let mut winner = leaf;
        self.nodes[node] = leaf;
        while node > ROOT {
            let (four, place) = (&self.nodes[node & !3..][..4], node & 3);
            let others = four[place ^ 1].min(four[place ^ 2]).min(four[place ^ 3]);
            winner = winner.min(others);
            node = node / 4 + 2;
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// Makes room for `n` leaves and plays every match: O(n), each time for twice as many.
    fn grow(&mut self, n: usize) {
        let keys = self.nodes.split_off(self.leaves);
        let n = n.max(2 * keys.len()).next_multiple_of(4);
        let (mut leaves, mut level) = (4, 4);
        while level < n {
            leaves = 4 * leaves - 8;
            level *= 4;
        }
        self.leaves = leaves;
        self.nodes = vec![ABSENT; leaves + n];
        self.nodes[leaves..][..keys.len()].copy_from_slice(&keys);
        for four in (4..self.nodes.len()).step_by(4).rev() {
            let winner = self.nodes[four..four + 4].iter().copied().fold(ABSENT, u128::min);
            self.nodes[four / 4 + 2] = winner;
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
