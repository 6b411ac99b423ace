//! Queues by the round in which they can send: a calendar of lists, in which rounds without a queue are skipped.

use alloc::vec;
use alloc::vec::Vec;

use crate::list::{Linked, List};

const WORDS: usize = 32;
const BITS: usize = u64::BITS as usize;
/// The number of rounds in the calendar. Chosen: about as many as a full packet takes at a thousandth of a
/// quantum a round.
const ROUNDS: usize = WORDS * BITS;

/// The calendar.
#[derive(Clone, Debug)]
pub(super) struct Rounds {
    lists: Vec<List>,
    /// A bit set of the lists with queues, and one of the words that are not zero.
    words: [u64; WORDS],
    summary: u32,
    /// The list of the round in service.
    now: usize,
}

impl Rounds {
    /// The maximum number of rounds by which a queue can be deferred at once.
    pub const MOST: i64 = ROUNDS as i64 - 1;

    pub const fn new() -> Self {
        Self { lists: Vec::new(), words: [0; WORDS], summary: 0, now: 0 }
    }

    /// Defers a queue that is in no list by at least 1 and at most [`MOST`](Self::MOST) rounds.
    pub fn push<T: Linked>(&mut self, queues: &mut [T], index: usize, rounds: usize) {
        if self.lists.is_empty() {
            self.lists = vec![List::EMPTY; ROUNDS];
        }
        let at = (self.now + rounds) % ROUNDS;
        self.lists[at].push_back(queues, index);
        self.words[at / BITS] |= 1 << (at % BITS);
        self.summary |= 1 << (at / BITS);
    }

    /// The queue in turn; its round becomes the round in service.
    pub fn front(&mut self) -> Option<usize> {
        if self.summary == 0 {
            return None;
        }
        let word = self.now / BITS;
        let rest = self.words[word] & (u64::MAX << (self.now % BITS));
        self.now = if rest != 0 {
            word * BITS + rest.trailing_zeros() as usize
        } else {
            // Words behind this one, or else from the first one on.
            let behind = self.summary & u32::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
            let next = if behind != 0 { behind } else { self.summary }.trailing_zeros() as usize;
            next * BITS + self.words[next].trailing_zeros() as usize
        };
        self.lists[self.now].front()
    }

    /// Removes the queue in turn.
    pub fn pop_front<T: Linked>(&mut self, queues: &mut [T]) {
        let list = &mut self.lists[self.now];
        list.pop_front(queues);
        if list.is_empty() {
            let word = self.now / BITS;
            self.words[word] &= !(1 << (self.now % BITS));
            if self.words[word] == 0 {
                self.summary &= !(1 << word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Link;
    use crate::random::Stream;

    struct Place(Link);
    impl Linked for Place {
        fn link(&mut self) -> &mut Link {
            &mut self.0
        }
    }

    #[test]
    fn queues_come_back_by_round_and_in_each_in_order() {
        let mut queues: Vec<Place> = (0..50).map(|_| Place(Link::NONE)).collect();
        let (mut rounds, mut random) = (Rounds::new(), Stream::new(1, "rounds"));
        let mut slow: Vec<(usize, usize, usize)> = Vec::new();
        for step in 0..20_000 {
            let (round, index) = if step < 50 {
                (0, step)
            } else {
                slow.sort_unstable();
                let (round, _, index) = slow.remove(0);
                assert_eq!(rounds.front(), Some(index));
                rounds.pop_front(&mut queues);
                (round, index)
            };
            // Some rounds are close, others far.
            let most = if random.chance(0.5) { 4 } else { Rounds::MOST as u64 };
            let ahead = 1 + random.below(most) as usize;
            rounds.push(&mut queues, index, ahead);
            slow.push((round + ahead, step, index));
        }
        (0..50).for_each(|_| {
            assert!(rounds.front().is_some());
            rounds.pop_front(&mut queues);
        });
        assert_eq!(rounds.front(), None);
    }
}
