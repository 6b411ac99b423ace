//! The event queue: what happens next, and when.
//!
//! Events are small numbers, not closures. Events at the same time come out in the order in which they were scheduled.
//!
//! A link has at most one pending arrival and one pending end of transmission, so the events of links live in a
//! tournament tree with a fixed place for each: the next event is the winner at the root, and a link whose event was the
//! winner usually schedules the same event anew, which replays its matches once instead of taking out and putting in.
//! Everything else goes to a 4-ary heap.
//!
//! Cost: O(log n) per event, for links with n the number of links and without branches to guess. Memory: 64 bytes per
//! link, 16 bytes per other pending event.

use apportion_core::units::Time;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The packet at the head of this link's wire arrives at its end.
    Arrival(u32),
    /// This link's transmitter is free.
    Ready(u32),
    /// This link's discipline asked to be called again.
    Wakeup(u32),
    /// A timer of this connection may have expired.
    Timer(u32),
    /// This connection's source writes.
    Write(u32),
    /// This connection starts.
    Start(u32),
    /// This connection's source falls silent.
    Stop(u32),
    /// This change of the scenario takes effect.
    Change(u32),
    /// The measured part of the run begins.
    Measure,
    /// A sample interval ends.
    Sample,
}

/// Bits of a packed event that hold its kind.
const KIND_BITS: u32 = 4;
/// Largest index an event can carry.
pub const MAX_INDEX: u32 = (1 << (32 - KIND_BITS)) - 1;
/// Runs end before 2^56 ns, some 2.2 years.
pub const MAX_TIME: Time = Time::from_nanos((1 << 56) - 1);

impl Event {
    fn pack(self) -> u32 {
        let (kind, index) = match self {
            Self::Arrival(i) => (0, i),
            Self::Ready(i) => (1, i),
            Self::Wakeup(i) => (2, i),
            Self::Timer(i) => (3, i),
            Self::Write(i) => (4, i),
            Self::Start(i) => (5, i),
            Self::Stop(i) => (6, i),
            Self::Change(i) => (7, i),
            Self::Measure => (8, 0),
            Self::Sample => (9, 0),
        };
        debug_assert!(index <= MAX_INDEX);
        kind << (32 - KIND_BITS) | index
    }

    fn unpack(packed: u32) -> Self {
        let index = packed & MAX_INDEX;
        match packed >> (32 - KIND_BITS) {
            0 => Self::Arrival(index),
            1 => Self::Ready(index),
            2 => Self::Wakeup(index),
            3 => Self::Timer(index),
            4 => Self::Write(index),
            5 => Self::Start(index),
            6 => Self::Stop(index),
            7 => Self::Change(index),
            8 => Self::Measure,
            _ => Self::Sample,
        }
    }
}

/// Pending events in order of time, then of scheduling.
#[derive(Debug)]
pub struct Events {
    links: Tournament,
    others: Heap,
    scheduled: u64,
}

/// Above the key of every event.
const NOTHING: u128 = u128::MAX;

impl Events {
    /// No events; there are `links` links.
    #[must_use]
    pub fn new(links: usize) -> Self {
        Self { links: Tournament::new(2 * links), others: Heap::default(), scheduled: 0 }
    }

    /// Schedules `event` at `at`. Later than [`MAX_TIME`] never happens. A link's arrival and end of transmission must
    /// not be pending already.
    pub fn schedule(&mut self, at: Time, event: Event) {
        if at > MAX_TIME {
            return;
        }
        // 56 bits of time, 40 of order, 32 of event. 2^40 events take days to handle.
        let order = self.scheduled & ((1 << 40) - 1);
        self.scheduled += 1;
        let key = u128::from(at.as_nanos()) << 72 | u128::from(order) << 32 | u128::from(event.pack());
        match event {
            Event::Arrival(link) => self.links.set(2 * link as usize, key),
            Event::Ready(link) => self.links.set(2 * link as usize + 1, key),
            _ => self.others.push(key),
        }
    }

    /// The next event, if it is not later than `end`.
    pub fn pop(&mut self, end: Time) -> Option<(Time, Event)> {
        let (link, other) = (self.links.first(), self.others.first());
        let key = link.min(other);
        let at = Time::from_nanos((key >> 72) as u64);
        if key == NOTHING || at > end {
            return None;
        }
        let event = Event::unpack(key as u32);
        match event {
            Event::Arrival(link) => self.links.take(2 * link as usize),
            Event::Ready(link) => self.links.take(2 * link as usize + 1),
            _ => self.others.pop(),
        }
        Some((at, event))
    }
}

/// The least of many keys with fixed places: a tournament tree.
#[derive(Debug)]
struct Tournament {
    /// Node 1 is the root, node `i` has the children `2i` and `2i + 1`, and holds the lesser of their keys.
    keys: Vec<u128>,
    /// The place of the winner that was taken, whose matches are not replayed yet. Its key is still in the tree on the
    /// whole way to the root: nobody looks there until it is replaced.
    taken: Option<usize>,
}

impl Tournament {
    fn new(places: usize) -> Self {
        Self { keys: vec![NOTHING; 2 * places.next_power_of_two()], taken: None }
    }

    fn first(&mut self) -> u128 {
        if let Some(place) = self.taken {
            self.set(place, NOTHING);
        }
        self.keys[1]
    }

    /// Takes the winner, which stands at `place`.
    fn take(&mut self, place: usize) {
        self.taken = Some(place);
    }

    fn set(&mut self, place: usize, key: u128) {
        if self.taken == Some(place) {
            self.taken = None;
        }
        let mut node = self.keys.len() / 2 + place;
        let mut winner = key;
        self.keys[node] = winner;
        while node > 1 {
            winner = winner.min(self.keys[node ^ 1]);
            node /= 2;
            self.keys[node] = winner;
        }
    }
}

/// A 4-ary min-heap of keys: half as deep as a binary one, and four children share a cache line.
#[derive(Debug, Default)]
struct Heap {
    keys: Vec<u128>,
}

impl Heap {
    const ARITY: usize = 4;

    fn first(&self) -> u128 {
        self.keys.first().copied().unwrap_or(NOTHING)
    }

    fn push(&mut self, key: u128) {
        let mut hole = self.keys.len();
        self.keys.push(key);
        while hole > 0 {
            let parent = (hole - 1) / Self::ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
    }

    fn pop(&mut self) {
        let Some(last) = self.keys.pop() else { return };
        let len = self.keys.len();
        if len == 0 {
            return;
        }
        let mut hole = 0;
        loop {
            let first_child = hole * Self::ARITY + 1;
            if first_child >= len {
                break;
            }
            let end = (first_child + Self::ARITY).min(len);
            let mut least = first_child;
            for child in first_child + 1..end {
                if self.keys[child] < self.keys[least] {
                    least = child;
                }
            }
            if last <= self.keys[least] {
                break;
            }
            self.keys[hole] = self.keys[least];
            hole = least;
        }
        self.keys[hole] = last;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MAX_LINKS: usize = 8;

    #[test]
    fn events_at_one_time_keep_their_order_across_heaps() {
        let mut events = Events::new(MAX_LINKS);
        let t = Time::from_millis(5);
        let all = [Event::Arrival(3), Event::Timer(9), Event::Ready(1), Event::Sample, Event::Arrival(7)];
        for event in all {
            events.schedule(t, event);
        }
        events.schedule(Time::from_millis(1), Event::Start(7));
        assert_eq!(events.pop(t), Some((Time::from_millis(1), Event::Start(7))));
        for event in all {
            assert_eq!(events.pop(t), Some((t, event)));
        }
        assert_eq!(events.pop(Time::MAX), None);
    }

    #[test]
    fn nothing_later_than_the_end_comes_out() {
        let mut events = Events::new(MAX_LINKS);
        events.schedule(Time::from_secs(2), Event::Measure);
        events.schedule(Time::MAX, Event::Measure);
        assert_eq!(events.pop(Time::from_secs(1)), None);
        assert_eq!(events.pop(Time::from_secs(2)), Some((Time::from_secs(2), Event::Measure)));
        assert_eq!(events.pop(Time::MAX), None);
    }

    proptest! {
        #[test]
        fn the_heap_sorts(keys in proptest::collection::vec(any::<u64>(), 0..300)) {
            let mut heap = Heap::default();
            for &key in &keys {
                heap.push(u128::from(key));
            }
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            for key in sorted {
                prop_assert_eq!(heap.first(), u128::from(key));
                heap.pop();
            }
            prop_assert_eq!(heap.first(), NOTHING);
        }
    }
}
