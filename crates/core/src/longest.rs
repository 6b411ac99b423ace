//! The largest of many keys that change with every packet and are asked for when a packet has to go.
//!
//! Only the long are kept in order. A flow whose key is at or above a *floor* stands in a tournament,
//! [`Smallest`] of the keys turned round; the largest key is there or nowhere. The others are not touched: to
//! see that a flow is below the floor before and after a change takes no memory but its own.
//!
//! The floor is set when the largest is asked for and no key is left above it, or too many have risen above
//! it. Keys are counted in classes from the largest down, and the floor goes below the class that makes a
//! sixteenth of all flows (chosen: few enough to stay in a cache, enough that the next time is far). That
//! costs O(flows), and comes after a sixteenth of the flows have fallen below it or an eighth have risen
//! above it, so that a change costs O(log flows) in the long run and mostly a comparison.

use crate::smallest::Smallest;

/// A class is a 64th of an octave.
const CLASS_BITS: u32 = 46;
/// As many as are counted: four octaves below the largest.
const CLASSES: usize = 256;

/// A finite key as a whole number in the same order. No key is -0.
fn ordered(key: f64) -> u64 {
    let bits = key.to_bits();
    if key.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Keys by index, kept elsewhere, with the largest to be found. Of equal keys, the lower index.
#[derive(Clone, Debug)]
pub(crate) struct Longest {
    /// Indices with a key at or above the floor, by the complement of their key.
    above: Smallest,
    floor: u64,
    /// How many they are, and how many make the floor too low.
    members: usize,
    most: usize,
}

impl Longest {
    /// For keys that may be there already.
    pub fn new() -> Self {
        Self { above: Smallest::new(), floor: u64::MAX, members: 0, most: 0 }
    }

    /// The key of `index`, if it had one, became `after`, if it has one.
    pub fn change(&mut self, index: usize, before: Option<f64>, after: Option<f64>) {
        let above = |key: Option<f64>| key.map(ordered).filter(|&key| key >= self.floor);
        match (above(before), above(after)) {
            (None, None) => {}
            (before, Some(key)) => {
                self.members += usize::from(before.is_none());
                self.above.set(index, !key);
            }
            (Some(_), None) => {
                self.members -= 1;
                self.above.remove(index);
            }
        }
    }

    /// The index with the largest key; none if there is no key. All indices are below `n`, and `key` says
    /// what each has.
    pub fn largest(&mut self, n: usize, key: impl Fn(usize) -> Option<f64>) -> Option<usize> {
        let is_spent = self.members == 0 && self.floor > 0;
        if is_spent || self.members > self.most {
            self.set_floor(n, |index| key(index).map(ordered));
        }
        self.above.first().map(|(_, index)| index)
    }

    /// The memory that its keys take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.above.bytes()
    }

    // Apart: it needs 2 kB of stack.
    #[cold]
    #[inline(never)]
    fn set_floor(&mut self, n: usize, key: impl Fn(usize) -> Option<u64>) {
        let keys = || (0..n).filter_map(&key);
        let top = keys().max().unwrap_or(0) >> CLASS_BITS;
        let mut classes = [0_usize; CLASSES];
        for key in keys() {
            // What is further below counts in no class.
            if let Some(count) = classes.get_mut((top - (key >> CLASS_BITS)) as usize) {
                *count += 1;
            }
        }
        let enough = (n / 16).max(4);
        let mut members = 0;
        let class = classes.iter().position(|count| {
            members += count;
            members >= enough
        });
        self.floor = class.map_or(0, |class| top.saturating_sub(class as u64) << CLASS_BITS);
        self.above.clear();
        self.members = 0;
        for index in 0..n {
            if let Some(key) = key(index).filter(|&key| key >= self.floor) {
                self.above.set(index, !key);
                self.members += 1;
            }
        }
        self.most = self.members + (n / 8).max(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_largest_is_what_a_scan_finds(
            changes in prop::collection::vec((0usize..200, 0u8..12, 0u8..20), 1..2_000),
            slope in 0usize..3,
        ) {
            let mut longest = Longest::new();
            let mut keys = vec![None; 200];
            for (step, (index, level, ask)) in changes.into_iter().enumerate() {
                // All keys grow or shrink in time, so that the floor has to follow.
                let drift = [0.0, step as f64, -(step as f64)][slope] / 100.0;
                let key = (level > 0).then_some(f64::from(level) - 5.0 + drift.round());
                let before = core::mem::replace(&mut keys[index], key);
                longest.change(index, before, key);
                if ask < 5 {
                    let best = (0..200).rev().filter(|&i| keys[i].is_some()).max_by(|&a, &b| {
                        keys[a].partial_cmp(&keys[b]).unwrap()
                    });
                    prop_assert_eq!(longest.largest(200, |index| keys[index]), best);
                }
            }
        }
    }

    #[test]
    fn a_flow_that_stays_short_is_not_in_the_tournament() {
        // 160 flows have 1 to 160 packets. The floor is below the class of the sixteenth from above.
        let key = |index: usize| Some(index as f64 + 1.0);
        let mut longest = Longest::new();
        assert_eq!(longest.largest(160, key), Some(159));
        // That is the tenth, with 151 packets. From 128 on a 64th of an octave is two packets: 150 is of its
        // class.
        assert_eq!(longest.members, 11);
        longest.change(100, Some(101.0), Some(102.0));
        assert!(!longest.above.contains(100));
        longest.change(100, Some(102.0), Some(500.0));
        assert_eq!(longest.largest(160, key), Some(100));
        assert_eq!(longest.members, 12);
    }
}
