//! The smallest labels of a sliding window, or the second, third or fourth smallest.
//!
//! The window consists of two halves: a reading covers the running half and the one before, so between half
//! of the window and all of it.
//!
//! Cost: O(ranks) per label; 64 bytes.

use crate::label::Label;
use crate::units::{Span, Time};

/// The maximum rank, and the number of tags kept for each half of the window.
pub const MAX_RANKS: usize = 4;

/// The smallest tags of a sliding window, kept for its two halves.
#[derive(Clone, Debug)]
pub struct LeastLabels {
    half: Span,
    rank: usize,
    /// The number of the running half, its smallest tags in ascending order, and those of the half before.
    number: u64,
    now: [Label; MAX_RANKS],
    before: [Label; MAX_RANKS],
}

/// A label above every tag.
const NO_TAG: Label = Label::from_code(u32::MAX);

impl LeastLabels {
    /// A window that reports the tag of rank `rank` from the smallest, 1 to [`MAX_RANKS`].
    #[must_use]
    pub fn new(window: Span, rank: usize) -> Self {
        let rank = rank.clamp(1, MAX_RANKS);
        let half = Span::from_nanos((window.as_nanos() / 2).max(1));
        Self { half, rank, number: 0, now: [NO_TAG; MAX_RANKS], before: [NO_TAG; MAX_RANKS] }
    }

    /// Counts `tag`, and returns the tag of the rank; none until that many packets have arrived.
    pub fn update(&mut self, now: Time, tag: Label) -> Option<Label> {
        let number = now.as_nanos() / self.half.as_nanos();
        if number != self.number {
            let empty = [NO_TAG; MAX_RANKS];
            let finished = core::mem::replace(&mut self.now, empty);
            self.before = if number == self.number + 1 { finished } else { empty };
            self.number = number;
        }
        let ranks = &mut self.now[..self.rank];
        let place = ranks.partition_point(|&least| least <= tag);
        if place < ranks.len() {
            ranks[place..].rotate_right(1);
            ranks[place] = tag;
        }
        // The element of this rank in the merge of two ascending lists.
        let (mut a, mut b) = (0, 0);
        for _ in 1..self.rank {
            if self.now[a] <= self.before[b] { a += 1 } else { b += 1 }
        }
        let least = self.now[a].min(self.before[b]);
        (least != NO_TAG).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_a_window_is_that_of_its_two_halves() {
        let mut least = LeastLabels::new(Span::from_secs(1), 1);
        let mut at = |ms, tag| least.update(Time::from_millis(ms), Label::new(tag));
        let read = [(0, 9.0), (400, 5.0), (600, 7.0), (900, 8.0), (1_100, 8.0), (1_600, 9.0), (5_000, 6.0)]
            .map(|(ms, tag)| at(ms, tag).unwrap().value());
        // 5 counts until its half and the next one have ended, at 1 s.
        assert_eq!(read, [9.0, 5.0, 5.0, 5.0, 7.0, 8.0, 6.0]);
    }

    #[test]
    fn a_rank_is_that_of_both_halves_together() {
        let mut second = LeastLabels::new(Span::from_secs(1), 2);
        let mut at = |ms, tag| second.update(Time::from_millis(ms), Label::new(tag)).map(Label::value);
        assert_eq!(at(0, 5.0), None);
        // 5 and 9; 5 and 6 over both halves; then 6 and 7 of the second half, with 8 of the third.
        assert_eq!(
            [(100, 9.0), (600, 6.0), (700, 7.0), (1_100, 8.0)].map(|(ms, tag)| at(ms, tag)),
            [9.0, 6.0, 6.0, 7.0].map(Some)
        );
    }
}
