//! The largest of many changing keys: a tournament tree over flow indices that plays its matches when asked.
//!
//! Every inner place names the winner of the two below it; the winner of the root has the largest key. Keys
//! change with every packet but the largest is needed only when a buffer overflows, so a change is just
//! noted, and the matches it could have turned are replayed with the next question: O(1) per change and O(log
//! n) per flow changed since the last question, at most O(n) together. Equal keys: the lower index wins.

use alloc::vec;
use alloc::vec::Vec;

/// Keys by index, with the index of the largest at hand.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    leaves: Vec<Leaf>,
    /// `winner[1]` is the root; the children of `i` are `2i` and `2i + 1`; the leaves are `leaves.len()..`.
    winner: Vec<u32>,
    /// The leaves that changed since the matches were played.
    stale: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Leaf {
    key: f64,
    stale: bool,
}

impl Tournament {
    pub fn new() -> Self {
        Self { leaves: vec![Leaf::default()], winner: vec![0; 2], stale: Vec::new() }
    }

    /// Sets the key of `index`. Keys are not negative; absent ones are zero.
    pub fn set(&mut self, index: usize, key: f64) {
        if index >= self.leaves.len() {
            self.grow(index + 1);
        }
        let leaf = &mut self.leaves[index];
        leaf.key = key;
        if !leaf.stale {
            leaf.stale = true;
            self.stale.push(index as u32);
        }
    }

    /// The index with the largest key, if that is above zero.
    pub fn largest(&mut self) -> Option<usize> {
        // Replaying a leaf's matches costs log n, playing all of them n.
        let depth = self.leaves.len().ilog2() as usize;
        if self.stale.len() * depth < self.leaves.len() {
            while let Some(index) = self.stale.pop() {
                self.leaves[index as usize].stale = false;
                self.replay(index);
            }
        } else {
            self.stale.drain(..).for_each(|index| self.leaves[index as usize].stale = false);
            for node in (1..self.leaves.len()).rev() {
                self.winner[node] = self.play(node);
            }
        }
        let index = self.winner[1] as usize;
        (self.leaves[index].key > 0.0).then_some(index)
    }

    /// Makes room for `n` leaves, and every match due.
    fn grow(&mut self, n: usize) {
        let n = n.next_power_of_two();
        self.leaves.resize(n, Leaf::default());
        self.winner = vec![0; 2 * n];
        for (leaf, place) in (0..).zip(&mut self.winner[n..]) {
            *place = leaf;
        }
        self.stale.clear();
        self.stale.extend(0..n as u32);
        self.leaves.iter_mut().for_each(|leaf| leaf.stale = true);
    }

    /// Plays the matches above a leaf, as far up as they can end otherwise than before.
    fn replay(&mut self, index: u32) {
        let mut node = (self.leaves.len() + index as usize) / 2;
        while node >= 1 {
            let winner = self.play(node);
            // Another index won before and wins still: above, nobody sees a difference.
            if winner == self.winner[node] && winner != index {
                return;
            }
            self.winner[node] = winner;
            node /= 2;
        }
    }

    fn play(&self, node: usize) -> u32 {
        let (a, b) = (self.winner[2 * node], self.winner[2 * node + 1]);
        if self.leaves[b as usize].key > self.leaves[a as usize].key { b } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_winner_is_what_a_scan_finds(
            changes in prop::collection::vec((0usize..300, 0u8..8, 0u8..20), 1..400)
        ) {
            let mut tree = Tournament::new();
            let mut keys = [0u8; 300];
            for (index, key, ask) in changes {
                keys[index] = key;
                tree.set(index, f64::from(key));
                // Now after one change, now after many.
                if ask < 5 {
                    let best = (0..300).rev().max_by_key(|&i| keys[i]).filter(|&i| keys[i] > 0);
                    prop_assert_eq!(tree.largest(), best);
                }
            }
        }
    }
}
