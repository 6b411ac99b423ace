//! The largest of many changing keys: a tournament tree over flow indices.
//!
//! Every inner place names the winner of the two below it; the winner of the root has the largest key. A change replays
//! the matches on the way up and stops where the result cannot differ: O(log n) at worst, a few steps as a rule.
//! Equal keys: the lower index wins.

use alloc::vec;
use alloc::vec::Vec;

/// Keys by index, with the index of the largest at hand.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    keys: Vec<f64>,
    /// `winner[1]` is the root; the children of `i` are `2i` and `2i + 1`; the leaves are `keys.len()..`.
    winner: Vec<u32>,
}

impl Tournament {
    pub fn new() -> Self {
        Self::of(vec![0.0])
    }

    /// The keys padded to a power of two, with all matches played.
    fn of(mut keys: Vec<f64>) -> Self {
        keys.resize(keys.len().next_power_of_two(), 0.0);
        let n = keys.len();
        let mut tree = Self { keys, winner: vec![0; 2 * n] };
        for leaf in 0..n {
            tree.winner[n + leaf] = leaf as u32;
        }
        for node in (1..n).rev() {
            tree.winner[node] = tree.play(node);
        }
        tree
    }

    /// The index with the largest key, if that is above zero.
    pub fn largest(&self) -> Option<usize> {
        let index = self.winner[1] as usize;
        (self.keys[index] > 0.0).then_some(index)
    }

    /// Sets the key of `index`. Keys are not negative; absent ones are zero.
    pub fn set(&mut self, index: usize, key: f64) {
        if index >= self.keys.len() {
            let mut keys = core::mem::take(&mut self.keys);
            keys.resize(index + 1, 0.0);
            *self = Self::of(keys);
        }
        self.keys[index] = key;
        let mut node = (self.keys.len() + index) / 2;
        while node >= 1 {
            let winner = self.play(node);
            // Another index won before and wins still: above, nobody sees a difference.
            if winner == self.winner[node] && winner != index as u32 {
                return;
            }
            self.winner[node] = winner;
            node /= 2;
        }
    }

    fn play(&self, node: usize) -> u32 {
        let (a, b) = (self.winner[2 * node], self.winner[2 * node + 1]);
        if self.keys[b as usize] > self.keys[a as usize] { b } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_winner_is_what_a_scan_finds(changes in prop::collection::vec((0usize..40, 0u8..8), 1..200)) {
            let mut tree = Tournament::new();
            let mut keys = [0u8; 40];
            for (index, key) in changes {
                keys[index] = key;
                tree.set(index, f64::from(key));
                let best = (0..40).rev().max_by_key(|&i| keys[i]).filter(|&i| keys[i] > 0);
                prop_assert_eq!(tree.largest(), best);
            }
        }
    }
}
