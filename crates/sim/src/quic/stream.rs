//! The stream of a sender: what of it is to be sent, again or for the first time, and what has arrived.
//!
//! RFC 9000 section 2.2 and 13.3: data of a lost packet are sent in a new one. Cost: O(1) while nothing is missing, O(gaps) else.

use crate::tcp::scoreboard::{Scoreboard, merge};

/// More data than any run can send, and far from overflow.
const UNLIMITED: u64 = u64::MAX / 4;

/// Where a stream stands. Offsets in bytes.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    /// All before it has arrived.
    base: u64,
    /// What has arrived beyond.
    arrived: Scoreboard,
    /// What was lost and not sent again; some of it may have arrived since.
    lost: Vec<(u64, u64)>,
    /// All before it was sent.
    next: u64,
    /// The end of what the application has handed over.
    end: u64,
    closed: bool,
}

impl Outgoing {
    /// The application hands over `bytes`.
    pub const fn supply(&mut self, bytes: u64) {
        if !self.closed {
            let end = self.end.saturating_add(bytes);
            self.end = if end < UNLIMITED { end } else { UNLIMITED };
        }
    }

    /// The application has no more. An unlimited supply ends with what was sent.
    pub const fn close(&mut self) {
        if self.end == UNLIMITED {
            self.end = self.next;
        }
        self.closed = true;
    }

    /// Whether all has arrived, and no more comes.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        self.closed && self.base == self.end
    }

    /// Bytes that have arrived in order.
    #[must_use]
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes that wait to be sent, of new ones those that `window` lets be sent beyond what arrived in order.
    #[must_use]
    pub fn waiting(&self, window: u64) -> u64 {
        let missing =
            |&(from, to): &(u64, u64)| self.arrived.missing_in(from.max(self.base), to.max(self.base));
        let lost: u64 = self.lost.iter().flat_map(missing).map(|(from, to)| to - from).sum();
        lost + self.end.min(self.base + window).saturating_sub(self.next)
    }

    /// The next bytes to send, at most `most`, and whether they are new: first what is lost, then what `window` lets be sent
    /// beyond what arrived in order.
    pub fn take(&mut self, most: u64, window: u64) -> Option<((u64, u64), bool)> {
        while let Some(&(from, to)) = self.lost.first() {
            let missing = self.arrived.missing_in(from.max(self.base), to.max(self.base)).next();
            let (from, end) = missing.unwrap_or((to, to));
            let end = end.min(from.saturating_add(most));
            if end < to {
                self.lost[0].0 = end;
            } else {
                self.lost.remove(0);
            }
            if from < end {
                return Some(((from, end), false));
            }
        }
        let (from, limit) = (self.next, self.end.min(self.base + window));
        let to = from.saturating_add(most).min(limit);
        if from >= to {
            return None;
        }
        self.next = to;
        Some(((from, to), true))
    }

    /// A packet with these bytes is lost.
    pub fn lose(&mut self, (from, to): (u64, u64)) {
        let (from, to) = (from.max(self.base), to.max(self.base));
        for missing in self.arrived.missing_in(from, to) {
            merge(&mut self.lost, missing, usize::MAX);
        }
    }

    /// A packet with these bytes arrived.
    pub fn deliver(&mut self, (from, to): (u64, u64)) {
        if from > self.base {
            // Each range holds a packet at least: there are no more of them than of those.
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

    /// The part of these bytes that is not known to have arrived, to send again as a probe.
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
