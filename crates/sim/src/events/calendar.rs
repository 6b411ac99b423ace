//! An array of short lists through which time advances (Brown 1988).

use apportion_core::units::{Span, Time};

use super::key::{NOTHING, time_of};
use super::occupied::Occupied;

/// Keys of the near future, a list for each day.
#[derive(Debug)]
pub(super) struct Calendar {
    /// The duration of a day is 2^shift nanoseconds.
    shift: u32,
    /// Each day's list, in order of keys; day `d` is at `d` modulo their number.
    days: Vec<Day>,
    /// The days with lists.
    busy: Occupied,
    /// Each place's key, and the next node in its list.
    nodes: Vec<Node>,
    /// The earliest day that may have keys.
    today: u64,
    /// The smallest key; [`NOTHING`] if there is none.
    pub(super) first: u128,
    /// The place of its day in `days`.
    first_slot: usize,
}

/// The ends of a list of nodes.
#[derive(Clone, Copy, Debug)]
struct Day {
    first: u32,
    last: u32,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u128,
    next: u32,
}

/// The end of a list.
const NO_NODE: u32 = u32::MAX;
/// Bounds of the number of days. Chosen: 8 kB, and 8 MB for a million pending events.
const DAYS: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 20;
/// The number of steps into a list that cost about as much as the timing wheels. Events mostly go to the end
/// of a list: those of one wire come in order, and so do those of one time.
const MAX_WALK: usize = 16;

impl Calendar {
    pub(super) fn new(places: usize, horizon: Span, per_second: f64) -> Self {
        // Two days for each pending event keep lists short.
        let pending = horizon.as_secs_f64() * per_second;
        let days = ((2.0 * pending) as u64).clamp(*DAYS.start(), *DAYS.end()).next_power_of_two();
        // The smallest width with which all days together reach beyond the horizon.
        let shift = (horizon.as_nanos() / days + 1).next_power_of_two().trailing_zeros();
        Self {
            shift,
            days: vec![Day { first: NO_NODE, last: NO_NODE }; days as usize],
            busy: Occupied::new(days as usize),
            nodes: vec![Node { key: NOTHING, next: NO_NODE }; places],
            today: 0,
            first: NOTHING,
            first_slot: 0,
        }
    }

    /// The place in `days` of the day of `key`, unless it is beyond the last day.
    #[inline(always)]
    fn slot(&self, key: u128) -> Option<usize> {
        let day = time_of(key).as_nanos() >> self.shift;
        let is_near = day.wrapping_sub(self.today) < self.days.len() as u64;
        is_near.then_some((day as usize) & (self.days.len() - 1))
    }

    /// Puts `key` at `place`, if its day has no list or a list of earlier ones.
    #[inline(always)]
    pub(super) fn append(&mut self, place: u32, key: u128) -> bool {
        let Some(slot) = self.slot(key) else { return false };
        let Day { first, last } = self.days[slot];
        if first == NO_NODE {
            self.nodes[place as usize] = Node { key, next: NO_NODE };
            self.days[slot] = Day { first: place, last: place };
            self.busy.insert(slot);
        } else if self.nodes[last as usize].key < key {
            self.nodes[place as usize] = Node { key, next: NO_NODE };
            self.nodes[last as usize].next = place;
            self.days[slot].last = place;
            // Behind another key it is not the smallest.
            return true;
        } else {
            return false;
        }
        self.note_first(slot, key);
        true
    }

    /// Inserts `key` into the list of its day, which ends with a later key, unless its day is beyond the last
    /// one, or the insertion takes more than [`MAX_WALK`] steps.
    pub(super) fn insert_before_last(&mut self, place: u32, key: u128) -> bool {
        let Some(slot) = self.slot(key) else { return false };
        let mut previous = NO_NODE;
        let mut next = self.days[slot].first;
        for _ in 0..MAX_WALK {
            if self.nodes[next as usize].key > key {
                self.nodes[place as usize] = Node { key, next };
                match previous {
                    NO_NODE => self.days[slot].first = place,
                    previous => self.nodes[previous as usize].next = place,
                }
                self.note_first(slot, key);
                return true;
            }
            previous = next;
            next = self.nodes[next as usize].next;
        }
        false
    }

    /// Notes a key in the list of the day at `slot`.
    #[inline(always)]
    fn note_first(&mut self, slot: usize, key: u128) {
        if key < self.first {
            (self.first, self.first_slot) = (key, slot);
        }
    }

    /// Removes the smallest key; there must be one.
    #[inline]
    pub(super) fn remove_first(&mut self) {
        let slot = self.first_slot;
        let next = self.nodes[self.days[slot].first as usize].next;
        self.days[slot].first = next;
        if next == NO_NODE {
            self.busy.remove(slot);
            self.find_first(slot);
        } else {
            self.first = self.nodes[next as usize].key;
        }
    }

    /// Finds the smallest key, which is in no day before the one at `slot`.
    #[inline]
    fn find_first(&mut self, slot: usize) {
        let Some(first) = self.busy.next(slot) else {
            self.first = NOTHING;
            return;
        };
        self.first_slot = first;
        self.first = self.nodes[self.days[self.first_slot].first as usize].key;
    }

    /// Notes that no later key will be earlier than `now`.
    pub(super) fn advance(&mut self, now: Time) {
        self.today = now.as_nanos() >> self.shift;
    }
}
