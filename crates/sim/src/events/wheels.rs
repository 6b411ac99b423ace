//! What no link has in the calendar: starts, timers, writes, and what lies far ahead.
//!
//! Hierarchical timing wheels (Varghese, Lauck 1987, scheme 7), but in exact order. The finest wheel has bins of about a millisecond, and a
//! bin of each coarser one is a turn of the finer one. Keys lie in their bin in no order. When time comes to a bin of the finest wheel its keys
//! are sorted, and those of a coarser one are spread over the finer ones.
//!
//! Cost: O(1) per key for each of at most four wheels, and O(log b) where b keys lie in one bin: with many connections, whose timers are
//! seconds ahead, most of the work is at the ends of arrays, and what is in order stays in the cache. Memory: 50 kB, and 16 to 32 bytes a key.

use std::mem::{swap, take};

use super::heap::Heap;
use super::key::{NOTHING, time_of};
use super::occupied::Occupied;

/// A bin of the finest wheel lasts 2^20 ns.
const BIN_BITS: u32 = 20;
/// A wheel has 2^9 bins.
const WHEEL_BITS: u32 = 9;
/// Together they reach to [`MAX_TIME`](super::MAX_TIME).
const WHEELS: usize = 4;
const _: () = assert!(1 << (BIN_BITS + WHEELS as u32 * WHEEL_BITS) > super::MAX_TIME.as_nanos());

/// Keys in order.
#[derive(Debug)]
pub(super) struct Wheels {
    /// The keys up to the end of the current bin. None only if there are no others either.
    due: Due,
    /// The finest one first.
    wheels: [Wheel; WHEELS],
    /// The number of the current bin since the beginning of time.
    current: u64,
}

impl Wheels {
    pub(super) fn new() -> Self {
        Self { due: Due::new(), wheels: [(); WHEELS].map(|()| Wheel::new()), current: 0 }
    }

    /// The least key; [`NOTHING`] if there is none.
    #[inline(always)]
    pub(super) const fn first(&self) -> u128 {
        self.due.first
    }

    /// The key that comes after `others` others, if it is among those of the current bin and no later one comes in between.
    pub(super) fn upcoming(&self, others: usize) -> Option<u128> {
        self.due.sorted.get(self.due.sorted.len().checked_sub(1 + others)?).copied()
    }

    #[inline(never)]
    pub(super) fn push(&mut self, key: u128) {
        self.put(key);
        self.find_due();
    }

    /// Removes the least key, if there is one.
    #[inline(never)]
    pub(super) fn pop(&mut self) {
        self.due.pop();
        self.find_due();
    }

    #[inline(always)]
    fn put(&mut self, key: u128) {
        let bin = time_of(key).as_nanos() >> BIN_BITS;
        if bin <= self.current {
            return self.due.push(key);
        }
        // The wheel of the highest digit in which it differs from the current bin.
        let wheel = (bin ^ self.current).ilog2() / WHEEL_BITS;
        self.wheels[wheel as usize].put(digit(bin, wheel), key);
    }

    /// If nothing is left of the current bin, the next one with keys becomes it.
    #[inline(always)]
    fn find_due(&mut self) {
        if self.due.first == NOTHING {
            self.advance();
        }
    }

    #[inline(never)]
    fn advance(&mut self) {
        // Terminates: each turn opens a bin, and keys only go from a coarser wheel to a finer one.
        while self.due.first == NOTHING {
            let mut wheels = (0..).zip(&mut self.wheels);
            let next = wheels
                .find_map(|(number, wheel)| Some((number, wheel.next(digit(self.current, number))?, wheel)));
            let Some((number, place, wheel)) = next else { return };
            let bits = number * WHEEL_BITS;
            self.current = (self.current >> (bits + WHEEL_BITS) << WHEEL_BITS | place as u64) << bits;
            if number == 0 {
                wheel.open(place, &mut self.due);
            } else {
                let keys = wheel.take(place);
                keys.into_iter().for_each(|key| self.put(key));
            }
        }
    }
}

/// The place of a bin in a wheel.
const fn digit(bin: u64, wheel: u32) -> usize {
    (bin >> (wheel * WHEEL_BITS)) as usize % (1 << WHEEL_BITS)
}

/// Keys that are spread over bins. All are behind the current bin.
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

    #[inline(always)]
    fn put(&mut self, place: usize, key: u128) {
        let bin = &mut self.bins[place];
        if bin.is_empty() {
            self.occupied.insert(place);
        }
        bin.push(key);
    }

    /// The next bin with keys. None is before the current one, which is at `from`.
    fn next(&self, from: usize) -> Option<usize> {
        self.occupied.next(from)
    }

    /// The keys of a bin.
    fn take(&mut self, place: usize) -> Vec<u128> {
        self.occupied.remove(place);
        take(&mut self.bins[place])
    }

    /// Moves the keys of a bin to `due`, which has none and whose array takes the place of theirs.
    fn open(&mut self, place: usize, due: &mut Due) {
        self.occupied.remove(place);
        swap(&mut due.sorted, &mut self.bins[place]);
        due.sort();
    }
}

/// The keys of the current bin.
#[derive(Debug)]
struct Due {
    /// Those that were there when it began, the least one last.
    sorted: Vec<u128>,
    /// Those that have come since.
    late: Heap,
    /// The least of all; [`NOTHING`] if there is none.
    first: u128,
}

impl Due {
    const fn new() -> Self {
        Self { sorted: Vec::new(), late: Heap::new(), first: NOTHING }
    }

    fn sort(&mut self) {
        self.sorted.sort_unstable_by(|a, b| b.cmp(a));
        self.find_first();
    }

    fn push(&mut self, key: u128) {
        self.late.push(key);
        self.first = self.first.min(key);
    }

    fn pop(&mut self) {
        if self.late.first == self.first {
            self.late.pop();
        } else {
            self.sorted.pop();
        }
        self.find_first();
    }

    fn find_first(&mut self) {
        self.first = self.sorted.last().map_or(NOTHING, |&key| key).min(self.late.first);
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Time;
    use proptest::prelude::*;

    use super::super::MAX_TIME;
    use super::super::key::key;
    use super::*;

    proptest! {
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
                prop_assert_eq!(wheels.first(), pending[0]);
                if pop {
                    wheels.pop();
                    now = time_of(pending.remove(0)).as_nanos();
                    prop_assert_eq!(wheels.first(), pending.first().copied().unwrap_or(NOTHING));
                }
            }
            for key in pending {
                prop_assert_eq!(wheels.first(), key);
                wheels.pop();
            }
            prop_assert_eq!(wheels.first(), NOTHING);
        }
    }

    #[test]
    fn arrays_serve_one_bin_after_the_other() {
        let mut wheels = Wheels::new();
        for millisecond in 0..20_000 {
            for number in 0..8 {
                wheels.push(key(Time::ZERO, Time::from_millis(millisecond + 700), number));
            }
            while time_of(wheels.first()) <= Time::from_millis(millisecond) {
                wheels.pop();
            }
        }
        let bins = wheels.wheels.iter().flat_map(|wheel| &wheel.bins);
        let (room, pending) = (bins.map(Vec::capacity).sum::<usize>(), 700 * 8);
        assert!(room < 3 * pending, "{room}");
    }
}
