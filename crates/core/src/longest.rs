//! The largest of many keys that change with every packet and are asked for when a packet has to go.
//!
//! Only long queues are kept in order. A flow whose key is at or above a *floor* stands in a tournament,
//! [`Smallest`] of the inverted keys; the largest key is there or nowhere. Other flows stand in no structure:
//! a change below the floor touches no memory but the flow's own.
//!
//! The floor is set when the largest is asked for and no key is left above it, or too many keys have risen
//! above it. Keys are counted in classes from the largest down, and the floor goes below the class that
//! reaches a sixteenth of all flows (chosen: few enough to stay in a cache, enough that the next count is
//! rare). A count costs O(flows), and comes after a sixteenth of the flows have fallen below the floor or an
//! eighth have risen above it. A change therefore costs O(log flows) amortised, and in most cases a
//! comparison.

use crate::random::mix;
use crate::smallest::Smallest;

/// The bits below a class: a class is a 64th of an octave.
const CLASS_BITS: u32 = 46;
/// The number of classes: four octaves below the largest key.
const CLASSES: usize = 256;
/// The shift that leaves 16 random bits, the last 16 of a key.
const TIE_SHIFT: u32 = 48;

/// A finite key as a whole number in the same order. No key is -0.
fn ordered(key: f64) -> u64 {
    let bits = key.to_bits();
    if key.is_sign_negative() { !bits } else { bits | 1 << 63 }
}

/// The largest of many keys by index. The caller stores the keys.
///
/// Equal keys are ordered at random: the last bits of each key are random and drawn when it is set, so that
/// no index has an advantage. Keys that differ only in these bits count as equal; whole numbers up to 2^36
/// never do.
#[derive(Clone, Debug)]
pub(crate) struct Longest {
    /// Indices with a key at or above the floor, by the complement of their key.
    above: Smallest,
    floor: u64,
    /// The number of indices in `above`, and the number at which the floor is too low.
    members: usize,
    most: usize,
    /// The state of the random generator; its upper bits are used.
    ties: u64,
}

impl Longest {
    /// An empty set. The caller may have keys already; the first question counts them. `seed` orders equal
    /// keys.
    pub fn new(seed: u64) -> Self {
        Self { above: Smallest::new(), floor: u64::MAX, members: 0, most: 0, ties: mix(seed) | 1 }
    }

    /// Sets a key that is at or above the floor.
    // A function of its own: if it is inlined, packets of short queues save more registers.
    #[inline(never)]
    fn put(&mut self, index: usize, key: u64) {
        // Lehmer's generator with the multiplier of Steele, Vigna 2021: a draw from a stream costs three times as much, and each packet
        // of a long flow needs one.
        self.ties = self.ties.wrapping_mul(0xf135_7aea_2e62_a9c5);
        self.above.set(index, !(key ^ self.ties >> TIE_SHIFT));
    }

    /// Changes the key of `index` from `before` to `after`; none means absent.
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

    /// An index with the largest key; none if there is no key. All indices are below `n`, and `key` returns
    /// the key of each.
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

    // A function of its own: it needs 2 kB of stack.
    #[cold]
    #[inline(never)]
    fn set_floor(&mut self, n: usize, key: impl Fn(usize) -> Option<u64>) {
        let keys = || (0..n).filter_map(&key);
        let top = keys().max().unwrap_or(0) >> CLASS_BITS;
        let mut classes = [0_usize; CLASSES];
        for key in keys() {
            // Keys below the last class are not counted.
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
                // All keys grow or shrink over time, so the floor has to follow.
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
        // That is the tenth, with 151 packets. From 128 on a 64th of an octave is two packets: 150 is in the
        // same class.
        assert_eq!(longest.members, 11);
        longest.change(100, Some(101.0), Some(102.0));
        assert!(!longest.above.contains(100));
        longest.change(100, Some(102.0), Some(500.0));
        assert_eq!(longest.largest(160, key), Some(100));
        assert_eq!(longest.members, 12);
    }

    #[test]
    fn each_of_equals_is_as_likely_wherever_it_stands() {
        // 65 equal keys are set anew each time, like those of flows that take turns.
        let (mut longest, mut counts) = (Longest::new(1), [0_u32; 65]);
        for _ in 0..6_500 {
            counts[longest.largest(65, |_| Some(2.0)).unwrap()] += 1;
            (0..65).for_each(|index| longest.change(index, Some(2.0), Some(2.0)));
        }
        // Binomial: 100 ± 9.9.
        assert!(counts.iter().all(|&count| (60..=140).contains(&count)), "{counts:?}");
    }
}
