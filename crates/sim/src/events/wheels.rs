//! Events outside the calendar: starts, timers, writes, and events far ahead.
//!
//! Hierarchical timing wheels (Varghese, Lauck 1987, scheme 7), but in exact order. The finest wheel has bins
//! of about a millisecond, and a bin of each coarser one is a turn of the finer one. Keys in a bin are
//! unordered. When time reaches a bin of the finest wheel its keys are sorted, and those of a coarser one are
//! spread over the finer ones.
//!
//! Cost: O(1) per key for each of at most four wheels, and O(log b) for b keys in one bin. With many
//! connections, whose timers are seconds ahead, most of the work is at the ends of arrays, and sorted keys
//! stay in the cache. A key for the current bin, or for an earlier one while little else is pending, costs
//! O(log n) of such keys. Memory: 50 kB, 16 to 32 bytes a key, and at most half a megabyte of small arrays
//! for later use.

use std::mem::take;

use super::heap::Heap;
use super::key::{NOTHING, time_of};
use super::occupied::Occupied;

/// The width of a bin of the finest wheel is 2^20 ns.
const BIN_BITS: u32 = 20;
/// A wheel has 2^9 bins.
const WHEEL_BITS: u32 = 9;
/// The number of wheels, which together reach [`MAX_TIME`](super::MAX_TIME).
const WHEELS: usize = 4;
/// The last bin, which also holds keys beyond it.
const LAST_BIN: u64 = (1 << (WHEELS as u32 * WHEEL_BITS)) - 1;
const _: () = assert!(super::MAX_TIME.as_nanos() >> BIN_BITS <= LAST_BIN);
/// The capacity above which arrays are freed. Chosen: a kilobyte, so that a burst does not leave its capacity
/// to each later bin.
const SMALL: usize = 64;

/// Keys in order.
#[derive(Debug)]
pub(super) struct Wheels {
    /// The smallest key; [`NOTHING`] if there is none.
    pub(super) first: u128,
    /// The keys up to the end of the current bin.
    due: Due,
    /// The wheels, the finest one first.
    wheels: [Wheel; WHEELS],
    /// The current bin. Bin 0 precedes all keys, so that initial keys are sorted like all others.
    current: u64,
    /// Empty arrays.
    spare: Vec<Vec<u128>>,
}

fn bin_of(key: u128) -> u64 {
    ((time_of(key).as_nanos() >> BIN_BITS) + 1).min(LAST_BIN)
}

impl Wheels {
    pub(super) fn new() -> Self {
        Self {
            first: NOTHING,
            due: Due::new(),
            wheels: [(); WHEELS].map(|()| Wheel::new()),
            current: 0,
            spare: Vec::new(),
        }
    }

    /// The key `others` places after the first among those that were in the current bin when its turn came.
    /// Later keys are left out: a hint.
    pub(super) fn upcoming(&self, others: usize) -> Option<u128> {
        self.due.sorted.get(self.due.sorted.len().checked_sub(1 + others)?).copied()
    }

    // The bin of a single key opens when the key is removed, and not before: otherwise all earlier keys would
    // be late.
    #[inline(never)]
    pub(super) fn push(&mut self, key: u128) {
        self.first = self.first.min(key);
        if bin_of(key) <= self.current {
            self.due.late.push(key);
        } else {
            self.put(key);
        }
    }

    /// Removes the smallest key, if there is one.
    #[inline(never)]
    pub(super) fn pop(&mut self) {
        if self.due.first() == NOTHING {
            self.advance();
        }
        self.due.pop();
        if self.due.first() == NOTHING {
            self.advance();
        }
        self.first = self.due.first();
    }

    /// Puts a key behind the current bin into the wheel of the highest digit in which its bin differs from
    /// the current one.
    #[inline(always)]
    fn put(&mut self, key: u128) {
        let bin = bin_of(key);
        let number = (bin ^ self.current).ilog2() / WHEEL_BITS;
        let wheel = &mut self.wheels[number as usize];
        let place = digit(bin, number);
        let keys = &mut wheel.bins[place];
        if keys.is_empty() {
            wheel.occupied.insert(place);
            if keys.capacity() == 0 {
                *keys = self.spare.pop().unwrap_or_default();
            }
        }
        keys.push(key);
    }

    /// Makes the next bin with keys the current one, if there is one, when the current bin is empty.
    #[inline(never)]
    fn advance(&mut self) {
        // Terminates: each turn opens a bin, and keys only move from a coarser wheel to a finer one.
        while self.due.sorted.is_empty() {
            let mut wheels = (0..).zip(&mut self.wheels);
            let next = wheels.find_map(|(number, wheel)| {
                let place = wheel.occupied.next(digit(self.current, number))?;
                wheel.occupied.remove(place);
                Some((number, place, take(&mut wheel.bins[place])))
            });
            let Some((number, place, mut keys)) = next else { return };
            let bits = number * WHEEL_BITS;
            self.current = (self.current >> (bits + WHEEL_BITS) << WHEEL_BITS | place as u64) << bits;
            if number == 0 {
                std::mem::swap(&mut self.due.sorted, &mut keys);
            } else {
                self.spread(&keys);
                keys.clear();
            }
            if keys.capacity() <= SMALL && self.spare.len() < 1 << WHEEL_BITS {
                self.spare.push(keys);
            }
        }
        self.due.sorted.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Spreads the keys of a coarse bin, whose first fine bin is the current one, over finer wheels.
    fn spread(&mut self, keys: &[u128]) {
        for &key in keys {
            if bin_of(key) == self.current {
                self.due.sorted.push(key);
            } else {
                self.put(key);
            }
        }
    }
}

/// The place of a bin in a wheel.
const fn digit(bin: u64, wheel: u32) -> usize {
    (bin >> (wheel * WHEEL_BITS)) as usize % (1 << WHEEL_BITS)
}

/// Keys in bins, all behind the current bin.
#[derive(Debug)]
struct Wheel {
    bins: Vec<Vec<u128>>,
    occupied: Occupied,
}

impl Wheel {
    fn new() -> Self {
        let bins = 1 << WHEEL_BITS;
        Self { bins: vec![Vec::new(); bins], occupied: Occupied::new(bins) }
    }
}

/// The keys of the current bin, and any earlier ones.
#[derive(Debug)]
struct Due {
    /// Keys that were in the bin when its turn came, the smallest last.
    sorted: Vec<u128>,
    /// Keys that have come since then.
    late: Heap,
}

impl Due {
    const fn new() -> Self {
        Self { sorted: Vec::new(), late: Heap::new() }
    }

    /// The smallest of them; [`NOTHING`] if there is none.
    #[inline(always)]
    fn first(&self) -> u128 {
        self.sorted.last().map_or(NOTHING, |&key| key).min(self.late.first)
    }

    #[inline(always)]
    fn pop(&mut self) {
        if self.sorted.last().is_some_and(|&key| key < self.late.first) {
            self.sorted.pop();
        } else {
            self.late.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::{Span, Time};
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::super::MAX_TIME;
    use super::super::key::key;
    use super::*;

    proptest! {
        #![proptest_config(cases(256))]

        /// Against a sorted list, with keys within a bin and on each wheel.
        #[test]
        fn keys_come_out_in_order(steps in proptest::collection::vec((0u64..2_000, 0u32..46, any::<bool>()), 1..400)) {
            let (mut wheels, mut pending, mut now) = (Wheels::new(), Vec::new(), 0);
            for (number, (ahead, shift, pop)) in (0..).zip(steps) {
                let at = Time::from_nanos(now + (ahead << shift)).min(MAX_TIME);
                let key = key(Time::ZERO, at, number);
                wheels.push(key);
                pending.push(key);
                pending.sort_unstable();
                prop_assert_eq!(wheels.first, pending[0]);
                if pop {
                    wheels.pop();
                    now = time_of(pending.remove(0)).as_nanos();
                    prop_assert_eq!(wheels.first, pending.first().copied().unwrap_or(NOTHING));
                }
            }
            for key in pending {
                prop_assert_eq!(wheels.first, key);
                wheels.pop();
            }
            prop_assert_eq!(wheels.first, NOTHING);
        }
    }

    fn room(wheels: &Wheels) -> usize {
        let bins = wheels.wheels.iter().flat_map(|wheel| &wheel.bins);
        bins.chain(&wheels.spare).chain([&wheels.due.sorted]).map(Vec::capacity).sum()
    }

    #[test]
    fn arrays_serve_one_bin_after_the_other() {
        let mut wheels = Wheels::new();
        for millisecond in 0..20_000 {
            for number in 0..8 {
                wheels.push(key(Time::ZERO, Time::from_millis(millisecond + 700), number));
            }
            while time_of(wheels.first) <= Time::from_millis(millisecond) {
                wheels.pop();
            }
        }
        assert!(room(&wheels) < 3 * 700 * 8, "{}", room(&wheels));
    }

    #[test]
    fn a_burst_leaves_no_room_behind() {
        let mut wheels = Wheels::new();
        for burst in 1..1_000 {
            let at = Time::from_millis(10 * burst);
            (0..1_000).for_each(|number| wheels.push(key(Time::ZERO, at, number)));
            wheels.push(key(Time::ZERO, at + Span::from_millis(333), 0));
            while time_of(wheels.first) <= at {
                wheels.pop();
            }
        }
        assert!(room(&wheels) < 30_000, "{}", room(&wheels));
    }

    #[test]
    fn what_comes_before_a_far_event_is_sorted_with_its_bin() {
        let mut wheels = Wheels::new();
        wheels.push(key(Time::ZERO, Time::from_secs(50), 0));
        (0..100).for_each(|number| wheels.push(key(Time::ZERO, Time::ZERO, number)));
        wheels.push(key(Time::ZERO, Time::from_secs(1), 0));
        wheels.pop();
        assert_eq!((wheels.due.sorted.len(), wheels.due.late.first), (99, NOTHING));
        (0..99).for_each(|_| wheels.pop());
        assert_eq!(time_of(wheels.first), Time::from_secs(1));
    }
}
