//! The stream of a sender: the data to send, again or for the first time, and the data that have arrived.
//!
//! RFC 9000 section 2.2 and 13.3: data of a lost packet are sent in a new one. Cost: O(1) while nothing is
//! missing; else O(log gaps) for each packet that is sent or lost, and O(gaps) for each that arrives.

use std::collections::BTreeMap;

use crate::tcp::scoreboard::Scoreboard;

/// The size of an unlimited supply: more than any run can send, and far from overflow.
const UNLIMITED: u64 = u64::MAX / 4;

/// The progress of a stream. Offsets in bytes.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// The offset below which everything has arrived.
    base: u64,
    /// Ranges beyond `base` that have arrived.
    arrived: Scoreboard,
    /// Ranges that were lost, and neither sent again nor arrived since.
    lost: Lost,
    /// The offset below which everything was sent.
    next: u64,
    /// The end of the application's data.
    end: u64,
    closed: bool,
}

/// Ranges that are disjoint and not adjacent.
#[derive(Clone, Debug, Default)]
struct Lost {
    /// Ends of ranges by their beginnings.
    ranges: BTreeMap<u64, u64>,
    /// The total bytes of the ranges.
    bytes: u64,
}

impl Lost {
    fn put(&mut self, from: u64, to: u64) {
        if from < to {
            self.ranges.insert(from, to);
            self.bytes += to - from;
        }
    }

    /// Removes the last range that begins up to `limit` and ends at `from` or after it.
    fn pull(&mut self, from: u64, limit: u64) -> Option<(u64, u64)> {
        let (&start, &end) = self.ranges.range(..=limit).next_back().filter(|&(_, &end)| end >= from)?;
        self.ranges.remove(&start);
        self.bytes -= end - start;
        Some((start, end))
    }

    fn add(&mut self, (mut from, mut to): (u64, u64)) {
        while let Some((start, end)) = self.pull(from, to) {
            (from, to) = (from.min(start), to.max(end));
        }
        self.put(from, to);
    }

    fn remove(&mut self, (from, to): (u64, u64)) {
        let mut limit = to;
        while let Some((start, end)) = self.pull(from, limit) {
            self.put(start, end.min(from));
            self.put(start.max(to), end);
            // The rest of it is not visited again.
            let Some(below) = start.checked_sub(1) else { break };
            limit = below;
        }
    }

    /// Removes the first bytes, at most `most` in one range.
    fn take(&mut self, most: u64) -> Option<(u64, u64)> {
        let (from, to) = self.ranges.pop_first()?;
        self.bytes -= to - from;
        let end = to.min(from.saturating_add(most));
        self.put(end, to);
        Some((from, end))
    }
}

impl Outgoing {
    /// The application hands over `bytes`.
    pub const fn supply(&mut self, bytes: u64) {
        if !self.closed {
            let end = self.end.saturating_add(bytes);
            self.end = if end < UNLIMITED { end } else { UNLIMITED };
        }
    }

    /// The application has no more data. An unlimited supply ends with the data already sent.
    pub const fn close(&mut self) {
        if self.end == UNLIMITED {
            self.end = self.next;
        }
        self.closed = true;
    }

    /// Whether everything has arrived, and the supply has ended.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.closed && self.base == self.end
    }

    /// Bytes that have arrived in order.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes that wait to be sent; new ones up to `window` beyond the data that arrived in order.
    #[must_use]
    pub const fn waiting(&self, window: u64) -> u64 {
        self.lost.bytes + self.limit(window).saturating_sub(self.next)
    }

    /// The end of the data that may be sent.
    const fn limit(&self, window: u64) -> u64 {
        let limit = self.base + window;
        if self.end < limit { self.end } else { limit }
    }

    /// Removes and returns the next bytes to send, at most `most`, and whether they are new: lost bytes
    /// first, then new bytes up to `window` beyond the data that arrived in order.
    pub fn take(&mut self, most: u64, window: u64) -> Option<((u64, u64), bool)> {
        if let Some(lost) = self.lost.take(most) {
            return Some((lost, false));
        }
        let (from, limit) = (self.next, self.limit(window));
        let to = from.saturating_add(most).min(limit);
        if from >= to {
            return None;
        }
        self.next = to;
        Some(((from, to), true))
    }

    /// Notes that a packet with these bytes is lost.
    pub fn lose(&mut self, (from, to): (u64, u64)) {
        let (from, to) = (from.max(self.base), to.max(self.base));
        for missing in self.arrived.missing_in(from, to) {
            self.lost.add(missing);
        }
    }

    /// Notes that a packet with these bytes arrived.
    pub fn deliver(&mut self, (from, to): (u64, u64)) {
        self.lost.remove((from, to));
        if from > self.base {
            // Each range holds at least a packet: there are no more ranges than packets.
            self.arrived.add_within(from, to, usize::MAX);
            return;
        }
        if to > self.base {
            self.base = to;
            if !self.arrived.is_empty() {
                self.base = self.arrived.first_missing(to);
                self.arrived.acknowledge(self.base);
            }
        }
    }

    /// The part of these bytes that is not known to have arrived, for a probe.
    #[must_use]
    pub fn missing_of(&self, (from, to): (u64, u64)) -> Option<(u64, u64)> {
        self.arrived.missing_in(from.max(self.base), to.max(self.base)).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_data_go_first_and_only_those_that_have_not_arrived() {
        let mut stream = Outgoing::default();
        stream.supply(1_000);
        assert_eq!(stream.take(300, 800), Some(((0, 300), true)));
        assert_eq!(stream.take(300, 800), Some(((300, 600), true)));
        // The window ends at 800.
        assert_eq!(stream.take(300, 800), Some(((600, 800), true)));
        assert_eq!((stream.take(300, 800), stream.waiting(800)), (None, 0));
        stream.lose((0, 300));
        stream.lose((300, 600));
        stream.deliver((300, 600));
        assert_eq!(stream.take(200, 800), Some(((0, 200), false)));
        assert_eq!(stream.take(200, 800), Some(((200, 300), false)));
        assert_eq!(stream.take(200, 800), None);
        stream.deliver((0, 200));
        stream.deliver((200, 300));
        assert_eq!((stream.base(), stream.waiting(800)), (600, 200));
        assert_eq!(stream.missing_of((500, 700)), Some((600, 700)));
        assert_eq!(stream.take(300, 800), Some(((800, 1_000), true)));
        stream.close();
        stream.deliver((600, 800));
        assert!(!stream.is_done());
        stream.deliver((800, 1_000));
        assert!(stream.is_done());
    }

    #[test]
    fn what_waits_is_what_is_lost_and_neither_sent_again_nor_arrived() {
        let mut stream = Outgoing::default();
        stream.supply(1_000);
        assert_eq!(stream.take(1_000, 1_000), Some(((0, 1_000), true)));
        // Disjoint, adjacent, and overlapping ranges.
        for lost in [(100, 200), (300, 400), (600, 700), (400, 500), (350, 450), (900, 1_000)] {
            stream.lose(lost);
        }
        assert_eq!(stream.waiting(1_000), 500);
        // The end of one range, all of another and the beginning of a third.
        stream.deliver((150, 650));
        assert_eq!(stream.waiting(1_000), 50 + 50 + 100);
        // The middle of a range.
        stream.deliver((930, 960));
        assert_eq!(stream.waiting(1_000), 50 + 50 + 30 + 40);
        // Bytes that have arrived are not lost.
        stream.lose((140, 680));
        assert_eq!(stream.waiting(1_000), 170);
        let again = std::iter::from_fn(|| stream.take(45, 1_000).map(|(data, _)| data));
        let expected = [(100, 145), (145, 150), (650, 695), (695, 700), (900, 930), (960, 1_000)];
        assert_eq!(again.collect::<Vec<_>>(), expected);
        assert_eq!(stream.waiting(1_000), 0);
    }

    #[test]
    fn an_unlimited_supply_ends_with_what_was_sent() {
        let mut stream = Outgoing::default();
        stream.supply(u64::MAX);
        assert_eq!(stream.take(100, 1_000), Some(((0, 100), true)));
        stream.close();
        stream.supply(5);
        assert_eq!(stream.take(100, 1_000), None);
        stream.deliver((0, 100));
        assert!(stream.is_done());
    }
}
