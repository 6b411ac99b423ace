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

use crate::random::mix;
use crate::smallest::Smallest;

/// A class is a 64th of an octave.
const CLASS_BITS: u32 = 46;
/// As many as are counted: four octaves below the largest.
const CLASSES: usize = 256;
/// The random bits of a key are its last 16.
const TIE_SHIFT: u32 = 48;

/// A finite key as a whole number in the same order. No key is -0.
fn ordered(key: f64) -> u64 {
    let bits = key.to_bits();
    if key.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// Keys by index, kept elsewhere, with the largest to be found.
///
/// Chance decides between equal keys: the last bits of each are random from when it is set, so that none is the largest for its index.
/// Keys that are that close count as equal; whole numbers up to 2^36 are not.
#[derive(Clone, Debug)]
pub(crate) struct Longest {
    /// Indices with a key at or above the floor, by the complement of their key.
    above: Smallest,
    floor: u64,
    /// How many they are, and how many make the floor too low.
    members: usize,
    most: usize,
    /// The random bits, at its upper end.
    ties: u64,
}

impl Longest {
    /// For keys that may be there already. `seed` decides between equal ones.
    pub fn new(seed: u64) -> Self {
        Self { above: Smallest::new(), floor: u64::MAX, members: 0, most: 0, ties: mix(seed) | 1 }
    }

    /// Sets a key that is at or above the floor.
    // Apart: with it, packets of flows that are not among the longest save more registers.
    #[inline(never)]
    fn put(&mut self, index: usize, key: u64) {
        // Lehmer's generator with the multiplier of Steele, Vigna 2021: a draw from a stream costs three times as much, and each packet
        // of a long flow needs one.
        self.ties = self.ties.wrapping_mul(0xf135_7aea_2e62_a9c5);
        self.above.set(index, !(key ^ self.ties >> TIE_SHIFT));
    }

    /// The key of `index`, if it had one, became `after`, if it has one.
    pub fn change(&mut self, index: usize, before: Option<f64>, after: Option<f64>) {
        let above = |key: Option<f64>| key.map(ordered).filter(|&key| key >= self.floor);
        match (above(before), above(after)) {
            (None, None) => {}
            (before, Some(key)) => {
                self.members += usize::from(before.is_none());
                self.put(index, key);
            }
            (Some(_), None) => {
                self.members -= 1;
                self.above.remove(index);
            }
        }
    }

    /// An index with the largest key; none if there is no key. All indices are below `n`, and `key` says
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
                self.put(index, key);
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
            let mut longest = Longest::new(1);
            let mut keys = vec![None; 200];
            for (step, (index, level, ask)) in changes.into_iter().enumerate() {
                // All keys grow or shrink in time, so that the floor has to follow.
                let drift = [0.0, step as f64, -(step as f64)][slope] / 100.0;
                let key = (level > 0).then_some(f64::from(level) - 5.0 + drift.round());
                let before = core::mem::replace(&mut keys[index], key);
                longest.change(index, before, key);
                if ask < 5 {
                    let best = keys.iter().flatten().copied().reduce(f64::max);
                    let found = longest.largest(200, |index| keys[index]);
                    prop_assert_eq!(found.and_then(|index| keys[index]), best);
                }
            }
        }
    }

    #[test]
    fn a_flow_that_stays_short_is_not_in_the_tournament() {
        // 160 flows have 1 to 160 packets. The floor is below the class of the sixteenth from above.
        let key = |index: usize| Some(index as f64 + 1.0);
        let mut longest = Longest::new(1);
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

    #[test]
    fn each_of_equals_is_as_likely_wherever_it_stands() {
        // Of 65 equal keys each is set anew each time, as those of flows that take turns.
        let (mut longest, mut counts) = (Longest::new(1), [0_u32; 65]);
        for _ in 0..6_500 {
            counts[longest.largest(65, |_| Some(2.0)).unwrap()] += 1;
            (0..65).for_each(|index| longest.change(index, Some(2.0), Some(2.0)));
        }
        // Binomial: 100 ± 9.9.
        assert!(counts.iter().all(|&count| (60..=140).contains(&count)), "{counts:?}");
    }
}
