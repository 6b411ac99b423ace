//! The event queue: what happens next, and when.
//!
//! Events are small numbers, not closures. Events at the same time come out in the order of their causes: first the one whose
//! cause came first, where the cause of an arrival is the beginning of its transmission. With one time for the causes too, they
//! come out by kind and then by number. So the order follows from the model alone, and not from when the engine happens to
//! schedule what.
//!
//! A link has at most one pending arrival and one pending end of transmission, both near: these live in a
//! calendar (Brown 1988), an array of short lists that time walks through, in nodes that belong to the links.
//! What lies beyond the calendar, and everything else, goes to a 4-ary heap.
//!
//! Cost: O(1) per event of a link in the calendar, O(log n) for the others. What belongs into
//! the middle of a long list goes to the heap too. Memory: 64 bytes per link, 8 per day of the calendar, 16
//! per other pending event.

use apportion_core::units::{Span, Time};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The packet at the head of this link's wire arrives at its end.
    Arrival(u32),
    /// The packet at the head of this link's wire, on which packets overtake others, arrives at its end.
    Overtaking(u32),
    /// This link's transmitter is free.
    Ready(u32),
    /// This link's discipline asked to be called again.
    Wakeup(u32),
    /// A timer of this connection may have expired.
    Timer(u32),
    /// This connection's source writes.
    Write(u32),
    /// A player or a call of this connection has something to do.
    Media(u32),
    /// This connection starts.
    Start(u32),
    /// This connection's source falls silent.
    Stop(u32),
    /// This change of the scenario takes effect.
    Change(u32),
    /// A router that exchanges reports has something to do.
    Router(u32),
    /// The first of the packets that wait in this host leaves it.
    Departure(u32),
    /// An overload notification reaches a source.
    Notice,
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
    #[inline]
    fn pack(self) -> u32 {
        let (kind, index) = match self {
            Self::Change(i) => (0, i),
            Self::Measure => (1, 0),
            Self::Sample => (2, 0),
            Self::Router(i) => (3, i),
            Self::Start(i) => (4, i),
            Self::Arrival(i) => (5, i),
            Self::Ready(i) => (6, i),
            Self::Wakeup(i) => (7, i),
            Self::Departure(i) => (8, i),
            Self::Timer(i) => (9, i),
            Self::Write(i) => (10, i),
            Self::Stop(i) => (11, i),
            Self::Notice => (12, 0),
            Self::Media(i) => (13, i),
            Self::Overtaking(i) => (14, i),
        };
        debug_assert!(index <= MAX_INDEX);
        kind << (32 - KIND_BITS) | index
    }

    #[inline]
    fn unpack(packed: u32) -> Self {
        let (kind, index) = (packed >> (32 - KIND_BITS), packed & MAX_INDEX);
        // Most are arrivals.
        if kind == 5 {
            return Self::Arrival(index);
        }
        match kind {
            0 => Self::Change(index),
            1 => Self::Measure,
            2 => Self::Sample,
            3 => Self::Router(index),
            4 => Self::Start(index),
            6 => Self::Ready(index),
            7 => Self::Wakeup(index),
            8 => Self::Departure(index),
            9 => Self::Timer(index),
            10 => Self::Write(index),
            11 => Self::Stop(index),
            12 => Self::Notice,
            13 => Self::Media(index),
            _ => Self::Overtaking(index),
        }
    }
}

/// Pending events in order of time, then of their causes.
#[derive(Debug)]
pub struct Events {
    links: Calendar,
    others: Heap,
    /// An arrival that was scheduled as the next of its wire, apart from the calendar; [`NextArrival::NEVER`] if there is none. Where one wire brings packet after packet, they all come and go here, mostly without a key.
    next: NextArrival,
    /// The time of the event that came out last.
    now: Time,
    /// That event.
    current: Current,
}

/// The arrival of a packet at the end of a link.
#[derive(Clone, Copy, Debug)]
struct NextArrival {
    at: Time,
    begun: Time,
    link: u32,
}

impl NextArrival {
    const NEVER: Self = Self { at: Time::MAX, begun: Time::MAX, link: 0 };

    fn key(self) -> u128 {
        key(self.begun, self.at, Event::Arrival(self.link))
    }
}

/// An event that came out.
#[derive(Clone, Copy, Debug)]
enum Current {
    Key(u128),
    Next(NextArrival),
}

impl Current {
    fn key(self) -> u128 {
        match self {
            Self::Key(key) => key,
            Self::Next(next) => next.key(),
        }
    }
}

/// The bits of a key below its time.
const TIME_BITS: u32 = 72;
/// Above the key of every event.
const NOTHING: u128 = u128::MAX;

impl Events {
    /// No events. There are `links` links, whose events lie at most about `horizon` ahead and come about
    /// `per_second` times a second; wrong guesses cost time and nothing else.
    #[must_use]
    pub fn new(links: usize, horizon: Span, per_second: f64) -> Self {
        Self {
            links: Calendar::new(2 * links, horizon, per_second),
            others: Heap::new(),
            next: NextArrival::NEVER,
            now: Time::ZERO,
            current: Current::Key(0),
        }
    }

    /// Schedules `event` at `at`, which must not be earlier than the last event that came out, because of what happened at
    /// `cause`. Later than [`MAX_TIME`] never happens. A link's arrival and end of transmission must not be pending already.
    // Inlined, because callers know the kind of event.
    #[inline(always)]
    pub fn schedule(&mut self, cause: Time, at: Time, event: Event) {
        if at > MAX_TIME {
            return;
        }
        let key = key(cause, at, event);
        match event {
            Event::Arrival(link) => self.schedule_of_link(2 * link, key),
            Event::Ready(link) => self.schedule_of_link(2 * link + 1, key),
            _ => self.others.push(key),
        }
    }

    /// As [`schedule`](Self::schedule), for an arrival over a link that probably comes before most other events.
    #[inline(always)]
    pub fn schedule_next(&mut self, begun: Time, at: Time, link: u32) {
        if self.next.at == Time::MAX && at <= MAX_TIME {
            self.next = NextArrival { at, begun, link };
        } else {
            self.schedule(begun, at, Event::Arrival(link));
        }
    }

    #[inline(never)]
    fn schedule_of_link(&mut self, place: u32, key: u128) {
        if !self.links.append(place, key) {
            self.schedule_apart(place, key);
        }
    }

    // Apart, and last in its caller: without a call from which it comes back, that needs no registers saved.
    #[inline(never)]
    fn schedule_apart(&mut self, place: u32, key: u128) {
        if !self.links.insert_before_last(place, key) {
            self.others.push(key);
        }
    }

    /// Whether `event`, had it been scheduled, would have come out by now.
    #[must_use]
    #[inline]
    pub fn is_due(&self, cause: Time, at: Time, event: Event) -> bool {
        // Mostly the times say it.
        if at == self.now { key(cause, at, event) <= self.current.key() } else { at < self.now }
    }

    /// All that is scheduled up to `end` has come out.
    pub fn finish(&mut self, end: Time) {
        let last = self.current.key().max(last_key(end));
        (self.now, self.current) = (time_of(last), Current::Key(last));
    }

    /// The next event, if it is not later than `end`.
    #[inline]
    pub fn pop(&mut self, end: Time) -> Option<(Time, Event)> {
        let is_of_link = self.links.first < self.others.first;
        let key = if is_of_link { self.links.first } else { self.others.first };
        let (at, next) = (time_of(key), self.next);
        // Mostly the times say it.
        if next.at < at || next.at == at && next.key() < key {
            return self.pop_next(end);
        }
        if key > last_key(end) {
            return None;
        }
        if is_of_link {
            self.links.remove_first();
        } else {
            self.others.pop();
        }
        (self.now, self.current) = (at, Current::Key(key));
        self.links.advance(at);
        Some((at, Event::unpack(key as u32)))
    }

    #[inline(always)]
    fn pop_next(&mut self, end: Time) -> Option<(Time, Event)> {
        let next = self.next;
        if next.at > end {
            return None;
        }
        self.next = NextArrival::NEVER;
        (self.now, self.current) = (next.at, Current::Next(next));
        self.links.advance(next.at);
        Some((next.at, Event::Arrival(next.link)))
    }
}

/// 56 bits of time, 40 of order, 32 of event. Causes more than 2^40 ns ago, some 18 minutes, are alike.
#[inline]
fn key(cause: Time, at: Time, event: Event) -> u128 {
    const MAX_AGE: u64 = (1 << 40) - 1;
    let order = MAX_AGE - at.since(cause).as_nanos().min(MAX_AGE);
    u128::from(at.as_nanos()) << TIME_BITS | u128::from(order) << 32 | u128::from(event.pack())
}

/// No event up to `end` has a higher key, and every later one and no event have.
fn last_key(end: Time) -> u128 {
    (u128::from(end.min(MAX_TIME).as_nanos()) << TIME_BITS | ((1 << TIME_BITS) - 1)).min(NOTHING - 1)
}

fn time_of(key: u128) -> Time {
    Time::from_nanos((key >> TIME_BITS) as u64)
}

/// Keys of the near future, a list for each day.
#[derive(Debug)]
struct Calendar {
    /// A day lasts 2^shift nanoseconds.
    shift: u32,
    /// Each day's list, in order of keys; day `d` stands at `d` modulo their number.
    days: Vec<Day>,
    /// A bit for each day that has a list.
    busy: Vec<u64>,
    /// Each place's key, and the node behind it in its list.
    nodes: Vec<Node>,
    /// No key is in an earlier day.
    today: u64,
    /// The least key; [`NOTHING`] if there is none.
    first: u128,
    /// The place of its day in `days`.
    first_slot: usize,
    /// How many days have a list.
    busy_days: usize,
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

/// Ends a list.
const NO_NODE: u32 = u32::MAX;
/// Bounds of the number of days. Chosen: 8 kB, and 8 MB for a million events pending.
const DAYS: std::ops::RangeInclusive<u64> = 1 << 10..=1 << 20;
/// Steps into a list that cost about as much as the heap. Events mostly go to the end of a list: those of one
/// wire come in order, and so do those of one instant.
const MAX_WALK: usize = 16;

impl Calendar {
    fn new(places: usize, horizon: Span, per_second: f64) -> Self {
        // Two days for each event that is pending at one time keep lists short.
        let pending = horizon.as_secs_f64() * per_second;
        let days = ((2.0 * pending) as u64).clamp(*DAYS.start(), *DAYS.end()).next_power_of_two();
        // The smallest width with which all days reach beyond the horizon.
        let shift = (horizon.as_nanos() / days + 1).next_power_of_two().trailing_zeros();
        Self {
            shift,
            days: vec![Day { first: NO_NODE, last: NO_NODE }; days as usize],
            busy: vec![0; days as usize / 64],
            nodes: vec![Node { key: NOTHING, next: NO_NODE }; places],
            today: 0,
            first: NOTHING,
            first_slot: 0,
            busy_days: 0,
        }
    }

    /// The place in `days` of the day of `key`, unless it lies beyond the last day.
    #[inline(always)]
    fn slot(&self, key: u128) -> Option<usize> {
        let day = time_of(key).as_nanos() >> self.shift;
        let is_near = day.wrapping_sub(self.today) < self.days.len() as u64;
        is_near.then_some((day as usize) & (self.days.len() - 1))
    }

    /// Puts `key` at `place`, if its day has no list or a list of earlier ones.
    #[inline(always)]
    fn append(&mut self, place: u32, key: u128) -> bool {
        let Some(slot) = self.slot(key) else { return false };
        let Day { first, last } = self.days[slot];
        if first == NO_NODE {
            self.nodes[place as usize] = Node { key, next: NO_NODE };
            self.days[slot] = Day { first: place, last: place };
            self.busy[slot / 64] |= 1 << (slot % 64);
            self.busy_days += 1;
        } else if self.nodes[last as usize].key < key {
            self.nodes[place as usize] = Node { key, next: NO_NODE };
            self.nodes[last as usize].next = place;
            self.days[slot].last = place;
            // Behind another key it is not the least.
            return true;
        } else {
            return false;
        }
        self.note_first(slot, key);
        true
    }

    /// Puts `key` at its place in the list of its day, which ends with a later key, unless its day lies beyond the last one, or that takes
    /// more than [`MAX_WALK`] steps.
    fn insert_before_last(&mut self, place: u32, key: u128) -> bool {
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

    /// A key has come into the list of the day at `slot`.
    #[inline(always)]
    fn note_first(&mut self, slot: usize, key: u128) {
        if key < self.first {
            (self.first, self.first_slot) = (key, slot);
        }
    }

    /// Removes the least key; there must be one.
    #[inline]
    fn remove_first(&mut self) {
        let slot = self.first_slot;
        let next = self.nodes[self.days[slot].first as usize].next;
        self.days[slot].first = next;
        if next == NO_NODE {
            self.busy[slot / 64] &= !(1 << (slot % 64));
            self.busy_days -= 1;
            self.find_first(slot);
        } else {
            self.first = self.nodes[next as usize].key;
        }
    }

    /// Finds the least key, which is in no day before the one at `slot`.
    #[inline]
    fn find_first(&mut self, slot: usize) {
        if self.busy_days == 0 {
            self.first = NOTHING;
            return;
        }
        let mut word = slot / 64;
        let mut bits = self.busy[word] & (!0 << (slot % 64));
        // Terminates: some day has a list. The word of the slot comes round again for the days before its bit.
        while bits == 0 {
            word = (word + 1) & (self.busy.len() - 1);
            bits = self.busy[word];
        }
        self.first_slot = word * 64 + bits.trailing_zeros() as usize;
        self.first = self.nodes[self.days[self.first_slot].first as usize].key;
    }

    /// Nothing will be earlier than `now`.
    fn advance(&mut self, now: Time) {
        self.today = now.as_nanos() >> self.shift;
    }
}

/// A 4-ary min-heap of keys: half as deep as a binary one, and four children share a cache line.
#[derive(Debug)]
struct Heap {
    keys: Vec<u128>,
    /// The least key; [`NOTHING`] if there is none.
    first: u128,
}

impl Heap {
    const ARITY: usize = 4;

    const fn new() -> Self {
        Self { keys: Vec::new(), first: NOTHING }
    }

    #[inline(never)]
    fn push(&mut self, key: u128) {
        self.first = self.first.min(key);
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
            self.first = NOTHING;
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
        self.first = self.keys[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_at_one_time_come_in_the_order_of_their_causes_across_heaps() {
        let mut events = Events::new(8, Span::from_millis(1), 1e6);
        let t = Time::from_millis(5);
        let all = [
            (1, Event::Timer(9)),
            (2, Event::Arrival(3)),
            (3, Event::Sample),
            (3, Event::Arrival(2)),
            (3, Event::Arrival(7)),
            (3, Event::Ready(1)),
            (4, Event::Change(1)),
        ];
        for (cause, event) in all.into_iter().rev() {
            events.schedule(Time::from_millis(cause), t, event);
        }
        events.schedule(Time::ZERO, Time::from_millis(1), Event::Start(7));
        assert_eq!(events.pop(t), Some((Time::from_millis(1), Event::Start(7))));
        for (_, event) in all {
            assert_eq!(events.pop(t), Some((t, event)));
        }
        assert_eq!(events.pop(Time::MAX), None);
    }

    #[test]
    fn the_next_arrival_of_a_wire_has_its_place_among_events_at_one_time() {
        let mut events = Events::new(8, Span::from_millis(1), 1e6);
        let (cause, t) = (Time::from_millis(1), Time::from_millis(5));
        events.schedule(cause, t, Event::Arrival(2));
        events.schedule_next(cause, t, 3);
        // Of two, one goes to the calendar.
        events.schedule_next(cause, t, 4);
        events.schedule(cause, t, Event::Ready(1));
        for event in [Event::Arrival(2), Event::Arrival(3), Event::Arrival(4), Event::Ready(1)] {
            assert!(!events.is_due(cause, t, event));
            assert_eq!(events.pop(t), Some((t, event)));
            assert!(events.is_due(cause, t, event));
        }
        events.schedule_next(cause, Time::from_millis(7), 3);
        assert_eq!(events.pop(Time::from_millis(6)), None);
        assert_eq!(events.pop(Time::MAX), Some((Time::from_millis(7), Event::Arrival(3))));
        assert_eq!(events.pop(Time::MAX), None);
    }

    #[test]
    fn nothing_later_than_the_end_comes_out() {
        let mut events = Events::new(8, Span::from_millis(1), 1e6);
        events.schedule(Time::ZERO, Time::from_secs(2), Event::Measure);
        events.schedule(Time::ZERO, Time::MAX, Event::Measure);
        assert_eq!(events.pop(Time::from_secs(1)), None);
        assert_eq!(events.pop(Time::from_secs(2)), Some((Time::from_secs(2), Event::Measure)));
        assert_eq!(events.pop(Time::MAX), None);
    }

    proptest! {
        /// Against a sorted list, with events at equal times, beyond the calendar, and scheduled while others
        /// come out.
        #[test]
        fn events_come_out_in_order(
            steps in proptest::collection::vec((0u32..120, 0u64..5_000, 0u64..50, prop::bool::weighted(0.4)), 1..600),
            horizon in 1u64..30_000_000,
            per_second in 1e3..1e9,
        ) {
            let mut events = Events::new(120, Span::from_nanos(horizon), per_second);
            let mut pending: Vec<(Time, Time, u32, Event)> = Vec::new();
            let mut now = Time::ZERO;
            for (place, ahead, ago, pop) in steps {
                let event = if place % 2 == 0 { Event::Arrival(place) } else { Event::Timer(place) };
                if pending.iter().all(|&(.., other)| other != event) {
                    let at = now + Span::from_nanos(ahead);
                    let cause = Time::from_nanos(now.as_nanos().saturating_sub(ago));
                    match event {
                        Event::Arrival(link) if place % 4 == 0 => events.schedule_next(cause, at, link),
                        _ => events.schedule(cause, at, event),
                    }
                    pending.push((at, cause, event.pack(), event));
                }
                if pop && !pending.is_empty() {
                    pending.sort_by_key(|&(at, cause, packed, _)| (at, cause, packed));
                    let (at, .., event) = pending.remove(0);
                    prop_assert_eq!(events.pop(Time::MAX), Some((at, event)));
                    now = at;
                }
                if pending.is_empty() {
                    prop_assert_eq!(events.pop(Time::MAX), None);
                }
            }
        }

        #[test]
        fn the_heap_sorts(keys in proptest::collection::vec(any::<u64>(), 0..300)) {
            let mut heap = Heap::new();
            for &key in &keys {
                heap.push(u128::from(key));
            }
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            for key in sorted {
                prop_assert_eq!(heap.first, u128::from(key));
                heap.pop();
            }
            prop_assert_eq!(heap.first, NOTHING);
        }
    }
}
