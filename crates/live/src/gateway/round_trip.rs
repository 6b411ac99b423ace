//! Round-trip times of TCP connections, measured from the headers that pass.
//!
//! The gateway divides a round trip into two *halves*: from the gateway to the host on one side and back, and
//! the same on the other side. A half is measured between a segment that leaves towards its host and the
//! host's answer:
//! - by *numbers*: from a segment with data, SYN or FIN to the first segment that acknowledges it, one at a
//!   time. Retransmissions yield no sample (Karn, Partridge, "Improving round-trip time estimates in reliable
//!   transport protocols", 1987). The SYN and its answer are the first sample of a connection;
//! - by *timestamps* (RFC 7323): from the first segment with a TSval to the first that echoes it. This works
//!   even where the host only receives and its answers are not acknowledged. Clocks tick slowly, so several
//!   segments have the same TSval; one that is still in use after [`TICK`] yields no sample.
//!
//! Waiting time in the gateway counts for neither half: a sample begins when the segment leaves, and ends
//! when the answer arrives. Queues and hosts elsewhere make samples longer, never shorter, so a half is the
//! shortest sample of the last five to ten minutes. A round trip is known once both halves are, which takes
//! both directions, and is forgotten when no sample confirms it for two [`WINDOW`]s.
//!
//! What a host can do about it:
//! - It cannot make its half shorter than it is unless it acknowledges data that it has not received, or
//!   echoes timestamps that it has not seen; the gain is a smaller threshold for its own flows.
//! - It can answer late. Where it receives data, it must then acknowledge all data late, from the SYN on, and
//!   so really has that round trip. Where it sends, a late echo costs it nothing, and the gateway cannot
//!   detect it. A round trip is therefore at most [`LONGEST`], and it counts for thresholds only while the
//!   flow sends no more than TCP would over such a round trip
//!   ([`tcp_friendly`](apportion_core::estimate::tcp_friendly)): a host that claims more may send less.
//! - It can send segments that the other host drops, for example with a wrong checksum, so that the answer to
//!   their retransmission looks late. Retransmissions yield no sample.
//!
//! Cost: O(1) per segment; 136 bytes per flow.

use apportion_core::units::{Span, Time};

use crate::frame::{Segment, Timestamps};

/// Half of the time after which a round trip without new samples is forgotten, and over which the shortest
/// sample counts. Chosen: paths change seldom, and hosts that pause for minutes stay known.
const WINDOW: Span = Span::from_secs(300);
/// The longest time for which a TSval is used. Chosen: current clocks tick every millisecond, those of
/// Windows and older systems every ten.
const TICK: Span = Span::from_millis(10);
/// The longest half, and the longest round trip. Chosen: a geostationary satellite takes 0.6 s.
const LONGEST: Span = Span::from_secs(1);
/// The shortest round trip. Chosen: below it hosts and their interrupts take most of the time.
const SHORTEST: Span = Span::from_millis(1);

/// Whether the number `a` comes before `b`; numbers wrap (RFC 9293 section 3.4, RFC 7323 section 5.2).
pub(super) const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// A segment that waits for an answer.
#[derive(Clone, Copy, Debug)]
struct Probe {
    number: u32,
    departed: Time,
}

impl Probe {
    /// Whether an answer at `now` would be too late.
    fn is_over(&self, now: Time) -> bool {
        now.since(self.departed) > LONGEST
    }
}

/// The shortest sample of the last one to two windows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shortest {
    begun: Time,
    current: Option<Span>,
    previous: Option<Span>,
}

impl Shortest {
    fn roll(&mut self, now: Time) {
        let age = now.since(self.begun);
        if age >= WINDOW {
            self.previous = self.current.filter(|_| age < WINDOW * 2);
            (self.current, self.begun) = (None, now);
        }
    }

    pub fn note(&mut self, now: Time, sample: Span) {
        self.roll(now);
        self.current = Some(self.current.map_or(sample, |shortest| shortest.min(sample)));
    }

    pub fn get(&mut self, now: Time) -> Option<Span> {
        self.roll(now);
        self.current.into_iter().chain(self.previous).min()
    }
}

/// The half towards which a flow leaves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Half {
    /// The sequence number after a segment that departed.
    by_number: Option<Probe>,
    /// A TSval that departed.
    by_stamp: Option<Probe>,
    /// The sequence number after all segments that departed.
    next: Option<u32>,
    /// The newest TSval that departed.
    newest: Option<u32>,
    shortest: Shortest,
}

impl Half {
    /// Notes a segment of the flow that left at `now`.
    pub fn departed(&mut self, now: Time, segment: Segment, stamps: Option<Timestamps>) {
        if segment.is_reset() {
            return;
        }
        let end = segment.sequence.wrapping_add(segment.numbers());
        if segment.is_syn() && self.next != Some(end) {
            // A new connection begins.
            *self = Self { shortest: self.shortest, ..Self::default() };
        }
        if segment.numbers() > 0 {
            self.number_departed(now, segment.sequence, end);
        }
        if let Some(stamps) = stamps {
            self.stamp_departed(now, stamps.value);
        }
    }

    fn number_departed(&mut self, now: Time, begin: u32, end: u32) {
        let next = self.next.unwrap_or(begin);
        if is_before(next, end) {
            self.next = Some(end);
        }
        if is_before(begin, next) {
            // After a retransmission the answer may be to either of the two.
            self.by_number = None;
        } else if self.by_number.is_none_or(|probe| probe.is_over(now)) {
            self.by_number = Some(Probe { number: end, departed: now });
        }
    }

    fn stamp_departed(&mut self, now: Time, value: u32) {
        if self.newest.is_none_or(|newest| is_before(newest, value)) {
            self.newest = Some(value);
            if self.by_stamp.is_none_or(|probe| probe.is_over(now)) {
                self.by_stamp = Some(Probe { number: value, departed: now });
            }
        } else {
            // The sender may have meant the first one to be lost.
            self.by_stamp = self.by_stamp.filter(|it| it.number != value || now.since(it.departed) <= TICK);
        }
    }

    /// Handles a segment from the host at `now`. Returns whether it yielded a sample.
    pub fn answered(&mut self, now: Time, segment: Segment, stamps: Option<Timestamps>) -> bool {
        let Some(acknowledged) = segment.acknowledges.filter(|_| !segment.is_reset()) else { return false };
        let mut is_sample = false;
        let mut note = |probe: &Probe| {
            if !probe.is_over(now) {
                self.shortest.note(now, now.since(probe.departed));
                is_sample = true;
            }
        };
        let sent = self.next.is_some_and(|next| !is_before(next, acknowledged));
        if let Some(probe) = self.by_number.take_if(|it| sent && !is_before(acknowledged, it.number)) {
            note(&probe);
        }
        let Some(echo) = stamps.and_then(|stamps| stamps.echo) else { return is_sample };
        let sent = self.newest.is_some_and(|newest| !is_before(newest, echo));
        if let Some(probe) = self.by_stamp.take_if(|it| sent && !is_before(echo, it.number)) {
            // If a later TSval is echoed, this one was lost on its way, or merged with another.
            if probe.number == echo {
                note(&probe);
            }
        }
        is_sample
    }
}

/// The round-trip time of a flow.
#[derive(Clone, Copy, Debug, Default)]
struct Trip {
    half: Half,
    /// Both halves together; zero: unknown.
    rtt: Span,
    /// Time at which a sample last confirmed it.
    confirmed: Time,
}

/// The round-trip times of the flows of one direction, by their indices in the table of flows.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    trips: Vec<Trip>,
    /// Number of known round-trip times.
    known: usize,
    /// Sum of the known ones in nanoseconds.
    sum: u64,
}

impl RoundTrips {
    /// The half of the flow at this index, of at most `count` flows.
    pub fn half(&mut self, at: usize, count: usize) -> Option<&mut Half> {
        if self.trips.len() < count {
            self.trips.resize(count, Trip::default());
        }
        self.trips.get_mut(at).map(|trip| &mut trip.half)
    }

    /// The shortest sample of the half, if there is one.
    pub fn shortest(&mut self, now: Time, at: usize) -> Option<Span> {
        self.trips.get_mut(at)?.half.shortest.get(now)
    }

    /// The round-trip time of the flow at this index; zero if it is unknown.
    pub fn rtt(&self, at: usize) -> Span {
        self.trips.get(at).map_or(Span::ZERO, |trip| trip.rtt)
    }

    /// Sets the sum of both halves, as measured at `now`. Returns whether the round-trip time changed by an
    /// eighth or more, so that queues need not learn of every microsecond.
    pub fn confirm(&mut self, now: Time, at: usize, halves: Span) -> bool {
        let Some(trip) = self.trips.get_mut(at) else { return false };
        trip.confirmed = now;
        let (new, old) = (halves.max(SHORTEST).min(LONGEST), trip.rtt);
        let difference = new.max(old).saturating_sub(new.min(old));
        let is_other = difference > old.div(8);
        if is_other {
            self.replace(at, new);
        }
        is_other
    }

    /// Forgets the round-trip time of the flow at this index if it is too old at `now`. Returns whether it
    /// did.
    pub fn expire(&mut self, now: Time, at: usize) -> bool {
        let is_old = |trip: &Trip| trip.rtt > Span::ZERO && now.since(trip.confirmed) >= WINDOW * 2;
        let is_old = self.trips.get(at).is_some_and(is_old);
        if is_old {
            self.replace(at, Span::ZERO);
        }
        is_old
    }

    /// Forgets the flow at this index, whose number passes to another.
    pub fn forget(&mut self, at: usize) {
        self.replace(at, Span::ZERO);
        if let Some(trip) = self.trips.get_mut(at) {
            *trip = Trip::default();
        }
    }

    fn replace(&mut self, at: usize, rtt: Span) {
        let Some(trip) = self.trips.get_mut(at) else { return };
        let old = std::mem::replace(&mut trip.rtt, rtt);
        self.sum = self.sum + rtt.as_nanos() - old.as_nanos();
        self.known = self.known + usize::from(rtt > Span::ZERO) - usize::from(old > Span::ZERO);
    }

    /// Number of flows with a known round-trip time, and their mean; zero if there is none.
    pub fn known(&self) -> (usize, Span) {
        (self.known, Span::from_nanos(self.sum).div(self.known.max(1) as u64))
    }
}

#[cfg(test)]
mod tests;
