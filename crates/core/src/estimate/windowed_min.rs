//! Minimum over a sliding window, for round-trip times and standing delays.
//!
//! The window is divided into [`PARTS`] parts and the minimum of each is kept, so memory does not grow with
//! the number of samples. A reading covers the running part and the whole parts before it: between 7/8 of the
//! window and all of it.
//!
//! Cost: O(1) to update, O(parts) to read; 136 bytes.

use crate::units::{Span, Time};

/// Parts of a window. Chosen: the length of the window is off by at most an eighth.
pub const PARTS: usize = 8;

/// The smallest of the recent samples.
#[derive(Clone, Debug)]
pub struct WindowedMin {
    part: Span,
    initial: Span,
    /// For each place of the ring: the number of the time interval that it holds, and the minimum in it.
    minima: [(u64, Span); PARTS],
}

impl WindowedMin {
    /// A window that reads `initial` while it holds no samples.
    #[must_use]
    pub fn new(window: Span, initial: Span) -> Self {
        let part = Span::from_nanos((window.as_nanos() / PARTS as u64).max(1));
        Self { part, initial, minima: [(0, Span::MAX); PARTS] }
    }

    fn number(&self, now: Time) -> u64 {
        now.as_nanos() / self.part.as_nanos()
    }

    /// Counts a sample taken at `now`, which never decreases.
    pub fn update(&mut self, now: Time, sample: Span) {
        let number = self.number(now);
        let place = &mut self.minima[(number % PARTS as u64) as usize];
        let kept = if place.0 == number { place.1 } else { Span::MAX };
        *place = (number, kept.min(sample));
    }

    /// The smallest sample in the window that ends at `now`, else the initial value.
    #[must_use]
    pub fn get(&self, now: Time) -> Span {
        let number = self.number(now);
        let recent = self.minima.iter().filter(|(n, _)| number - n.min(&number) < PARTS as u64);
        match recent.map(|&(_, minimum)| minimum).min() {
            None | Some(Span::MAX) => self.initial,
            Some(minimum) => minimum,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    #[test]
    fn it_reads_its_initial_value_until_it_knows_and_after_it_forgot() {
        let ms = Span::from_millis;
        let mut min = WindowedMin::new(ms(800), ms(77));
        assert_eq!(min.get(Time::ZERO), ms(77));
        min.update(Time::ZERO, ms(20));
        min.update(Time::from_millis(50), ms(30));
        min.update(Time::from_millis(150), ms(40));
        assert_eq!(min.get(Time::from_millis(799)), ms(20));
        assert_eq!(min.get(Time::from_millis(800)), ms(40));
        assert_eq!(min.get(Time::from_secs(9)), ms(77));
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn it_lies_between_the_minima_of_the_whole_and_of_seven_eighths(
            steps in prop::collection::vec((0u64..300, 1u64..1_000), 1..100)
        ) {
            let mut min = WindowedMin::new(Span::from_nanos(800), Span::MAX);
            let mut samples = Vec::new();
            let mut now = 0;
            for (step, sample) in steps {
                now += step;
                samples.push((now, sample));
                min.update(Time::from_nanos(now), Span::from_nanos(sample));
                let least = |reach: u64| {
                    samples.iter().filter(|(t, _)| t + reach > now).map(|&(_, s)| s).min().unwrap_or(u64::MAX)
                };
                let read = min.get(Time::from_nanos(now)).as_nanos();
                prop_assert!(least(800) <= read && read <= least(700));
            }
        }
    }
}
