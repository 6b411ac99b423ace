//! The event queue: future events in order of time.
//!
//! Events are small numbers, not closures. Events at the same time come out in the order of their causes: the
//! one whose cause came first is first, where the cause of an arrival is the beginning of its transmission.
//! If the causes have the same time too, events come out by kind and then by number. The order thus follows
//! from the model alone, and not from when the engine schedules events.
//!
//! A link has at most one pending arrival and one pending end of transmission, both near: these are in a
//! calendar (Brown 1988), an array of short lists through which time advances, in nodes that belong to the
//! links. Events beyond the calendar, and all others, go to timing wheels (`events/wheels.rs`).
//!
//! Cost: O(1) per event of a link in the calendar; for the others O(log b), where b of them fall into the
//! same millisecond, and a constant for each of up to four wheels. Events for the middle of a long list go to
//! the wheels too. Memory: 64 bytes per link, 8 per day of the calendar, 50 kB, and 16 to 32 per other
//! pending event.

mod calendar;
mod heap;
mod key;
mod occupied;
mod wheels;

use apportion_core::units::{Span, Time};

use calendar::Calendar;
pub use key::MAX_TIME;
use key::{key, last_key, time_of};
use wheels::Wheels;

/// Bits of a packed event that hold its kind.
const KIND_BITS: u32 = 4;
/// Largest index an event can carry.
pub const MAX_INDEX: u32 = (1 << (32 - KIND_BITS)) - 1;

/// The kinds of events.
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
    /// A player or a call of this connection has work to do.
    Media(u32),
    /// This connection starts.
    Start(u32),
    /// This connection's source falls silent.
    Stop(u32),
    /// This change of the scenario takes effect.
    Change(u32),
    /// A router that exchanges reports has work to do.
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
        // Most events are arrivals.
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
    others: Wheels,
    /// The next arrival, stored outside the calendar; [`NextArrival::NEVER`] if there is none. If one wire
    /// carries packet after packet, all its arrivals come and go here, mostly without a key.
    next: NextArrival,
    /// The time of the last event that came out.
    now: Time,
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
        key(self.begun, self.at, Event::Arrival(self.link).pack())
    }
}

/// The event that came out last.
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

impl Events {
    /// An empty queue. The events of `links` links are at most about `horizon` ahead and come about
    /// `per_second` times a second; wrong guesses only cost time.
    #[must_use]
    pub fn new(links: usize, horizon: Span, per_second: f64) -> Self {
        Self {
            links: Calendar::new(2 * links, horizon, per_second),
            others: Wheels::new(),
            next: NextArrival::NEVER,
            now: Time::ZERO,
            current: Current::Key(0),
        }
    }

    /// Schedules `event` at `at`, which must not be earlier than the last event that came out, with the time
    /// of its cause, `cause`. Events later than [`MAX_TIME`] never happen. A link's arrival and end of
    /// transmission must not be pending already. Inlined, because callers know the kind of event.
    #[inline(always)]
    pub fn schedule(&mut self, cause: Time, at: Time, event: Event) {
        if at > MAX_TIME {
            return;
        }
        let key = key(cause, at, event.pack());
        match event {
            Event::Arrival(link) => self.schedule_of_link(2 * link, key),
            Event::Ready(link) => self.schedule_of_link(2 * link + 1, key),
            _ => self.others.push(key),
        }
    }

    /// Schedules as [`schedule`](Self::schedule) does, for an arrival over a link that probably precedes most
    /// other events.
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

    // Not inlined, and last in its caller: a tail call needs no registers saved.
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
        // In most cases the times are decisive.
        if at == self.now { key(cause, at, event.pack()) <= self.current.key() } else { at < self.now }
    }

    /// Notes that all events up to `end` have come out.
    pub fn finish(&mut self, end: Time) {
        let last = self.current.key().max(last_key(end));
        (self.now, self.current) = (time_of(last), Current::Key(last));
    }

    /// The event `others` places after the first among those of this millisecond, without events of links and
    /// events that were scheduled late: a hint.
    #[must_use]
    pub fn upcoming(&self, others: usize) -> Option<Event> {
        Some(Event::unpack(self.others.upcoming(others)? as u32))
    }

    /// The next event, if it is not later than `end`.
    #[inline]
    pub fn pop(&mut self, end: Time) -> Option<(Time, Event)> {
        let is_of_link = self.links.first < self.others.first;
        let key = if is_of_link { self.links.first } else { self.others.first };
        let (at, next) = (time_of(key), self.next);
        // In most cases the times are decisive.
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

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    #[test]
    fn events_at_one_time_come_in_the_order_of_their_causes_wherever_they_wait() {
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
        // The second goes to the calendar.
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
    fn the_timers_of_a_millisecond_are_known_ahead() {
        let mut events = Events::new(8, Span::from_millis(1), 1e6);
        events.schedule(Time::ZERO, Time::from_millis(2), Event::Measure);
        for number in [3, 1, 2] {
            let at = Time::from_millis(50) + Span::from_micros(u64::from(number));
            events.schedule(Time::ZERO, at, Event::Timer(number));
        }
        events.schedule(Time::ZERO, Time::from_millis(900), Event::Timer(4));
        let upcoming = |events: &Events| [0, 1, 2, 3].map(|others| events.upcoming(others));
        let timer = |number| Some(Event::Timer(number));
        events.pop(Time::MAX);
        assert_eq!(upcoming(&events), [timer(1), timer(2), timer(3), None]);
        events.pop(Time::MAX);
        assert_eq!(upcoming(&events), [timer(2), timer(3), None, None]);
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
        #![proptest_config(cases(256))]

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
    }
}
