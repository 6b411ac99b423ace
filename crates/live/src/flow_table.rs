//! Numbers flows: a bounded table from addresses and ports to the small dense numbers that disciplines use.
//! Hosts are numbered in the same way, by their addresses.
//!
//! A flow that has been silent for long enough gives its number to the next new one. When every number is
//! taken, the least recently seen of 16 flows gives up its number; one that is to be [kept](FlowTable::keep)
//! does so only if all are. A flood of new flows costs others their state, but never memory or time. Cost: a
//! hash and a comparison per packet; 64 bytes per flow.

use std::hash::Hash;

use apportion_core::packet::FlowId;
use apportion_core::units::{Span, Time};

/// Number of flows among which the least recently seen gives up its number. Chosen: bounds the time that a
/// new flow takes.
const MAX_PROBES: usize = 16;

/// Only looked up, never iterated, so its order does not matter; a hash with a secret of its own keeps
/// senders from choosing flows that collide.
#[expect(clippy::disallowed_types, reason = "looked up only, never iterated")]
type Index<K> = std::collections::HashMap<K, u32>;

/// The flows that have numbers, by their keys.
#[derive(Debug)]
pub struct FlowTable<K> {
    index: Index<K>,
    entries: Vec<Entry<K>>,
    /// Number of the first entry.
    first: u32,
    most: usize,
    idle: Span,
    /// The next entry to check for a silent flow.
    hand: usize,
}

#[derive(Debug)]
struct Entry<K> {
    key: K,
    last_seen: Time,
    is_kept: bool,
}

/// The number of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbered {
    /// The number.
    pub flow: FlowId,
    /// Whether the flow is new; state under this number then belongs to another flow.
    pub is_new: bool,
    /// Time since the flow's last packet; zero if it is new.
    pub silence: Span,
}

impl<K: Copy + Eq + Hash> FlowTable<K> {
    /// An empty table that gives `most` numbers (at least one) from `first` on. Flows are forgotten after
    /// `idle`, when their number is needed.
    #[must_use]
    pub fn new(first: FlowId, most: usize, idle: Span) -> Self {
        Self { index: Index::new(), entries: Vec::new(), first: first.0, most: most.max(1), idle, hand: 0 }
    }

    /// The number of the flow of a packet that arrived at `now`; a new flow gets one.
    pub fn number(&mut self, now: Time, key: K) -> Numbered {
        if let Some(&at) = self.index.get(&key) {
            let last_seen = std::mem::replace(&mut self.entries[at as usize].last_seen, now);
            let silence = now.since(last_seen);
            return Numbered { flow: FlowId(self.first + at), is_new: false, silence };
        }
        let entry = Entry { key, last_seen: now, is_kept: false };
        let at = match self.silent(now) {
            Some(at) => {
                self.index.remove(&self.entries[at].key);
                self.entries[at] = entry;
                at
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        // There are at most `most` entries, below 2^32.
        self.index.insert(key, at as u32);
        Numbered { flow: FlowId(self.first + at as u32), is_new: true, silence: Span::ZERO }
    }

    /// Keeps a flow: it gives up its number after flows that are not kept, and in any case after `idle`.
    pub fn keep(&mut self, flow: FlowId) {
        let at = flow.0.checked_sub(self.first).map(|at| at as usize);
        if let Some(entry) = at.and_then(|at| self.entries.get_mut(at)) {
            entry.is_kept = true;
        }
    }

    /// An entry whose number may be given to another flow.
    fn silent(&mut self, now: Time) -> Option<usize> {
        let count = self.entries.len();
        let mut oldest = None;
        for _ in 0..MAX_PROBES.min(count) {
            let at = self.hand;
            self.hand = (self.hand + 1) % count;
            let Entry { last_seen, is_kept, .. } = self.entries[at];
            if now.since(last_seen) >= self.idle {
                return Some(at);
            }
            let rank = (is_kept, last_seen);
            if oldest.is_none_or(|(before, _)| rank < before) {
                oldest = Some((rank, at));
            }
        }
        oldest.filter(|_| count >= self.most).map(|(_, at)| at)
    }

    /// Flows are forgotten after `idle` from now on.
    pub fn set_idle(&mut self, idle: Span) {
        self.idle = idle;
    }

    /// Notes a packet that arrived at `now` if `flow` is the number of its key, and returns whether it is.
    /// Unlike [`number`](Self::number) this needs no hash.
    pub fn note(&mut self, now: Time, flow: FlowId, key: &K) -> bool {
        let at = flow.0.checked_sub(self.first).map(|at| at as usize);
        match at.and_then(|at| self.entries.get_mut(at)).filter(|entry| entry.key == *key) {
            Some(entry) => {
                entry.last_seen = now;
                true
            }
            None => false,
        }
    }

    /// Time at which the last packet of this flow arrived.
    #[must_use]
    pub fn last_seen(&self, flow: FlowId) -> Option<Time> {
        let at = flow.0.checked_sub(self.first)?;
        self.entries.get(at as usize).map(|entry| entry.last_seen)
    }

    /// The key of the flow with this number.
    #[must_use]
    pub fn key(&self, flow: FlowId) -> Option<&K> {
        let at = flow.0.checked_sub(self.first)?;
        self.entries.get(at as usize).map(|entry| &entry.key)
    }

    /// The number of a flow; none if it has none.
    #[must_use]
    pub fn find(&self, key: &K) -> Option<FlowId> {
        self.index.get(key).map(|at| FlowId(self.first + at))
    }

    /// Flows that have numbers, silent ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no flow has a number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FlowTuple;
    use apportion_scenario::gateway::classifier::Headers;

    fn tuple(port: u16) -> FlowTuple {
        let headers = Headers {
            protocol: 17,
            source: "192.0.2.1".parse().unwrap(),
            destination: "192.0.2.2".parse().unwrap(),
            ports: Some((port, 9)),
            dscp: 0,
        };
        FlowTuple::new(&headers).unwrap()
    }

    fn table() -> FlowTable<FlowTuple> {
        FlowTable::new(FlowId(1), 3, Span::from_secs(10))
    }

    #[test]
    fn a_flow_keeps_its_number() {
        let mut table = table();
        let a = table.number(Time::ZERO, tuple(1));
        let b = table.number(Time::ZERO, tuple(2));
        assert_eq!((a.flow, b.flow, a.is_new, b.is_new), (FlowId(1), FlowId(2), true, true));
        let again = table.number(Time::from_secs(100), tuple(1));
        assert_eq!(again, Numbered { flow: FlowId(1), is_new: false, silence: Span::from_secs(100) });
        assert_eq!((table.key(FlowId(2)), table.key(FlowId(0))), (Some(&tuple(2)), None));
        assert_eq!((table.find(&tuple(2)), table.find(&tuple(3))), (Some(FlowId(2)), None));
        let later = Time::from_secs(101);
        assert!(table.note(later, FlowId(2), &tuple(2)) && !table.note(later, FlowId(1), &tuple(2)));
        assert!(!table.note(later, FlowId(0), &tuple(2)) && !table.note(later, FlowId(9), &tuple(2)));
        let seen = [1, 2].map(|flow| table.last_seen(FlowId(flow)));
        assert_eq!(seen, [Time::from_secs(100), later].map(Some));
    }

    #[test]
    fn a_silent_flow_gives_up_its_number_to_a_new_one() {
        let mut table = table();
        table.number(Time::ZERO, tuple(1));
        table.number(Time::from_secs(9), tuple(2));
        // Flow 1 has been silent for 10 s, flow 2 for 1 s.
        let third = table.number(Time::from_secs(10), tuple(3));
        assert_eq!(third, Numbered { flow: FlowId(1), is_new: true, silence: Span::ZERO });
        assert_eq!(table.find(&tuple(1)), None);
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_flood_of_flows_takes_the_number_of_the_least_recently_seen_flow() {
        let mut table = table();
        for (second, port) in (0..).zip([1, 2, 3, 1]) {
            table.number(Time::from_secs(second), tuple(port));
        }
        // Flow 2 was seen at 1 s, flow 3 at 2 s, flow 1 at 3 s.
        assert_eq!(table.number(Time::from_secs(4), tuple(4)).flow, FlowId(2));
        for port in 5..10_000 {
            table.number(Time::from_secs(4), tuple(port));
        }
        assert_eq!((table.len(), table.index.len()), (3, 3));
    }

    #[test]
    fn a_flood_of_flows_takes_no_number_that_is_to_be_kept() {
        let mut table = table();
        let kept = table.number(Time::ZERO, tuple(1)).flow;
        table.keep(kept);
        for port in 2..10_000 {
            table.number(Time::from_secs(9), tuple(port));
        }
        assert_eq!(table.find(&tuple(1)), Some(kept));
        // A kept flow gives up its number if it is silent for too long, or if all are kept.
        (2..4).for_each(|flow| table.keep(FlowId(flow)));
        assert_eq!(table.number(Time::from_secs(9), tuple(10_000)).flow, kept);
    }
}
