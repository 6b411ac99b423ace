//! Measures how long the answers of a connection take, with many segments in flight at the same time.
//!
//! Like [`Half`](super::super::round_trip::Half), but for the present queue and not for the shortest time: it
//! times a segment every [`GAP`], not one at a time. After a loss the answer would include the time of the
//! repair, so no segment counts that was in flight when a duplicate acknowledgement came, or that is a
//! retransmission.

use std::collections::VecDeque;

use apportion_core::units::{Span, Time};

use super::estimate::GIVE_UP;
use crate::frame::{Segment, Timestamps};
use crate::gateway::round_trip::is_before;

/// The shortest time between two segments that are timed.
const GAP: Span = Span::from_millis(10);
/// Maximum of segments that are timed at once.
const MOST: usize = 32;

/// The samples of a connection, in the direction in which segments leave.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    /// The sequence numbers after segments that departed.
    by_number: Waiting,
    /// TSvals that departed.
    by_stamp: Waiting,
    /// The last acknowledgement number.
    acknowledged: Option<u32>,
}

impl Sampler {
    /// Notes a segment that left at `now`. Returns how long an earlier one has had no answer, if that one is
    /// given up.
    pub fn departed(&mut self, now: Time, segment: Segment, stamps: Option<Timestamps>) -> Option<Span> {
        if segment.is_reset() {
            return None;
        }
        if segment.is_syn() {
            *self = Self::default();
        }
        let given_up = self.by_number.give_up(now).max(self.by_stamp.give_up(now));
        if segment.numbers() > 0 {
            self.by_number.departed(now, segment.sequence.wrapping_add(segment.numbers()));
        }
        if let Some(stamps) = stamps {
            self.by_stamp.departed(now, stamps.value);
        }
        given_up
    }

    /// Handles an answer from the other end at `now`. Returns how long it took, if that is known.
    pub fn answered(&mut self, now: Time, segment: Segment, stamps: Option<Timestamps>) -> Option<Span> {
        let acknowledged = segment.acknowledges.filter(|_| !segment.is_reset())?;
        if self.acknowledged.replace(acknowledged) == Some(acknowledged) && segment.numbers() == 0 {
            self.by_number.under_way.clear();
            self.by_stamp.under_way.clear();
            return None;
        }
        let by_number = self.by_number.answered(now, acknowledged, false);
        let by_stamp = stamps.and_then(|stamps| self.by_stamp.answered(now, stamps.echo?, true));
        by_number.into_iter().chain(by_stamp).min()
    }
}

/// Ascending numbers, each with its departure.
#[derive(Clone, Debug, Default)]
struct Waiting {
    under_way: VecDeque<(u32, Time)>,
    /// The highest number that departed.
    newest: Option<u32>,
}

impl Waiting {
    fn departed(&mut self, now: Time, number: u32) {
        if self.newest.is_some_and(|newest| !is_before(newest, number)) {
            return;
        }
        self.newest = Some(number);
        let is_due = self.under_way.back().is_none_or(|(_, last)| now.since(*last) >= GAP);
        if is_due && self.under_way.len() < MOST {
            self.under_way.push_back((number, now));
        }
    }

    /// The departure of the last number up to `number`, or with `exactly` of `number` itself, if it departed.
    fn answered(&mut self, now: Time, number: u32, exactly: bool) -> Option<Span> {
        if self.newest.is_none_or(|newest| is_before(newest, number)) {
            return None;
        }
        let mut last = None;
        while let Some(&(found, departed)) = self.under_way.front()
            && !is_before(number, found)
        {
            self.under_way.pop_front();
            last = (found == number || !exactly).then(|| now.since(departed));
        }
        last
    }

    /// Gives up numbers that have waited for too long. Returns for how long the last of them has.
    fn give_up(&mut self, now: Time) -> Option<Span> {
        let mut last = None;
        while let Some(&(_, departed)) = self.under_way.front()
            && now.since(departed) >= GIVE_UP
        {
            self.under_way.pop_front();
            last = Some(now.since(departed));
        }
        last
    }
}
