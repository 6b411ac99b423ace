//! Due times of numbered entries, the next one first.
//!
//! Cost: O(log n) per change.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use apportion_core::units::Time;

/// Times by number.
#[derive(Debug)]
pub(crate) struct TimerHeap {
    due: Vec<Time>,
    /// A heap entry is stale if `times` holds another time for its number.
    order: BinaryHeap<Reverse<(Time, u32)>>,
}

impl TimerHeap {
    /// A heap for the numbers below `count`, none of which is due.
    pub(crate) fn new(count: usize) -> Self {
        Self { due: vec![Time::MAX; count], order: BinaryHeap::new() }
    }

    /// Sets when `number` is next due; never at [`Time::MAX`].
    pub(crate) fn set(&mut self, number: u32, at: Time) {
        let due = &mut self.due[number as usize];
        if *due != at {
            *due = at;
            if at < Time::MAX {
                self.order.push(Reverse((at, number)));
            }
        }
    }

    /// The first due time; never if no entry is due.
    pub(crate) fn next(&mut self) -> Time {
        while let Some(&Reverse((at, number))) = self.order.peek() {
            if self.due[number as usize] == at {
                return at;
            }
            self.order.pop();
        }
        Time::MAX
    }

    /// Takes out the first entry that is due by `now`; it is not due again until it is [set](Self::set).
    pub(crate) fn take(&mut self, now: Time) -> Option<u32> {
        if self.next() > now {
            return None;
        }
        let Reverse((_, number)) = self.order.pop()?;
        self.due[number as usize] = Time::MAX;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn the_earliest_comes_first_and_the_latest_setting_counts() {
        let mut timers = TimerHeap::new(3);
        timers.set(0, ms(5));
        timers.set(1, ms(3));
        timers.set(2, ms(4));
        // A later time, an earlier one, and none.
        timers.set(1, ms(6));
        timers.set(0, ms(2));
        timers.set(2, Time::MAX);
        assert_eq!((timers.next(), timers.take(ms(1))), (ms(2), None));
        assert_eq!((timers.take(ms(9)), timers.take(ms(9)), timers.take(ms(9))), (Some(0), Some(1), None));
        // The time is one that it had before: the stale entry is gone or counts once.
        timers.set(0, ms(5));
        assert_eq!((timers.take(ms(5)), timers.take(ms(5))), (Some(0), None));
    }
}
