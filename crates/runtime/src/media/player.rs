//! Adaptive video over HTTP and TCP (DASH, ISO/IEC 23009-1): a player with a buffer that requests one segment
//! after another.
//!
//! The player requests a segment when none is in flight and the buffer has room for another one. The server
//! writes the segment, rate × length bytes or the size in a file, to its TCP connection. Once it has arrived
//! as a whole it is in the buffer, and the player chooses the rate of the next one. Playback begins with the
//! first segment, takes one second of video a second, and stalls when the buffer is empty, until the next
//! segment has arrived.
//!
//! | symbol | here | value | from |
//! |---|---|---|---|
//! | `B(t)` | [`Player::held`] | s of video | – |
//! | `r`, `cu` | `reservoir`, `cushion` | 90 s, 126 s of 240 s | Huang et al., "A Buffer-Based Approach to Rate Adaptation", SIGCOMM 2014, section 5 |
//! | `f(B)` | `map` | from the lowest rate at `r` to the highest at `r + cu`, linear | the same, figure 6 |
//! | `p` | `safety` | 0.85 | Jiang, Sekar, Zhang, "FESTIVE", CoNEXT 2012, section 4.3 |
//! | – | `window` | 5 segments | Yin et al., "A Control-Theoretic Approach to DASH", SIGCOMM 2015, section 7.1 |
//! | – | `PATIENCE` | 1 s, doubled each time | RFC 6298 section 2: the first timeout of the viewer's own TCP |
//!
//! Deviations: the maps of BBA-1 and BBA-2, which use the sizes of segments, are missing. FESTIVE uses 20
//! segments, goes up one rate at a time, and spreads requests at random; this player has only its estimate
//! and its safety factor. The connection stays open, and responses have no headers.
//!
//! Cost: O(rates) for each segment. Memory: 24 bytes for each segment held, 8 for each of the window.

use std::collections::VecDeque;
use std::sync::Arc;

use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::media::{Adaptation, Dash};

use crate::outcome::Playback;

/// Time that the viewer waits for the first byte before repeating a request.
const PATIENCE: Span = Span::from_secs(1);
/// Maximum of doublings of that time. Chosen: it then stays at a minute, as RFC 6298 section 2.5 allows.
const MAX_DOUBLINGS: u32 = 6;

/// A player and its server.
#[derive(Debug)]
pub struct Player {
    dash: Arc<Dash>,
    start: Time,
    stop: Time,
    /// The number of the last request, from 1.
    number: u32,
    /// The segment in flight.
    wanted: Option<Wanted>,
    /// The number of the last request that the server answered.
    answered: u32,
    /// All bytes of the segments that have arrived.
    arrived: u64,
    /// Index of the rate of the last segment.
    rate: usize,
    /// Throughputs of the last segments, bit/s, the oldest first.
    throughputs: VecDeque<f64>,
    /// Indices of the rates of the segments to play, each with the rest of its length.
    buffer: VecDeque<(usize, Span)>,
    /// The time up to which playback is computed.
    clock: Time,
    /// Index of the rate that was played last.
    shown: Option<usize>,
    plays: bool,
    seen: Playback,
    /// Bits played, times ns.
    rate_played: u128,
}

/// A segment that was requested and has not arrived.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    asked: Time,
    /// Time to repeat the request, unless a byte of the segment has arrived.
    again: Time,
    doublings: u32,
    size: Bytes,
}

impl Player {
    pub(super) fn new(dash: Arc<Dash>, start: Time, stop: Time) -> Self {
        Self {
            dash,
            start,
            stop,
            number: 0,
            wanted: None,
            answered: 0,
            arrived: 0,
            rate: 0,
            throughputs: VecDeque::new(),
            buffer: VecDeque::new(),
            clock: start,
            shown: None,
            plays: false,
            seen: Playback::default(),
            rate_played: 0,
        }
    }

    /// Time to send a request, for the first time or again.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        let at = match &self.wanted {
            Some(wanted) => wanted.again,
            // The excess over the room plays without a pause.
            None => self.clock + (self.held() + self.dash.segment).saturating_sub(self.dash.buffer),
        };
        (at < self.stop).then_some(at)
    }

    /// Requests a segment if that is due, and returns its number.
    pub(super) fn on_timer(&mut self, now: Time) -> Option<u32> {
        if self.next_timer().is_none_or(|at| at > now) {
            return None;
        }
        self.advance(now);
        if let Some(wanted) = &mut self.wanted {
            wanted.doublings = (wanted.doublings + 1).min(MAX_DOUBLINGS);
            wanted.again = now + PATIENCE * (1 << wanted.doublings);
        } else {
            self.rate = self.choose();
            let size = self.dash.size(self.number, self.rate);
            self.number += 1;
            self.wanted = Some(Wanted { asked: now, again: now + PATIENCE, doublings: 0, size });
        }
        Some(self.number)
    }

    /// Handles a request at the server. Returns the bytes that it writes; none if it has answered the request
    /// already.
    pub fn on_request(&mut self, number: u32) -> Option<Bytes> {
        let wanted = self.wanted.as_ref()?;
        (number > self.answered).then(|| {
            self.answered = number;
            wanted.size
        })
    }

    /// Notes that the viewer has this number of bytes in order.
    pub fn on_delivered(&mut self, now: Time, bytes: u64) {
        let Some(wanted) = &mut self.wanted else { return };
        let came = bytes.saturating_sub(self.arrived);
        if came > 0 {
            wanted.again = Time::MAX;
        }
        if came < wanted.size.get() {
            return;
        }
        let (took, size) = (now.since(wanted.asked), wanted.size);
        self.wanted = None;
        self.arrived += size.get();
        self.advance(now);
        if self.dash.algorithm == Adaptation::Throughput {
            if self.throughputs.len() == self.dash.window as usize {
                self.throughputs.pop_front();
            }
            self.throughputs.push_back(size.bits() as f64 / took.as_secs_f64().max(1e-9));
        }
        self.buffer.push_back((self.rate, self.dash.segment));
        self.plays = true;
        if self.seen.startup.is_none() {
            self.seen.startup = Some(now.since(self.start));
        }
    }

    /// Length of the video in the buffer.
    #[must_use]
    pub fn held(&self) -> Span {
        self.buffer.iter().fold(Span::ZERO, |sum, &(_, left)| sum + left)
    }

    /// Plays up to `now`, or until the viewer leaves.
    fn advance(&mut self, now: Time) {
        let now = now.min(self.stop);
        while self.clock < now {
            let Some((rate, left)) = self.buffer.front_mut() else {
                if self.plays {
                    self.plays = false;
                    self.seen.stalls += 1;
                }
                if self.shown.is_some() {
                    self.seen.stalled += now.since(self.clock);
                }
                self.clock = now;
                return;
            };
            let step = now.since(self.clock).min(*left);
            let is_other = self.shown.replace(*rate).is_some_and(|shown| shown != *rate);
            self.seen.switches += u64::from(is_other);
            self.seen.played += step;
            self.rate_played += u128::from(self.dash.ladder[*rate].as_bit()) * u128::from(step.as_nanos());
            *left = left.saturating_sub(step);
            if *left == Span::ZERO {
                self.buffer.pop_front();
            }
            self.clock += step;
        }
    }

    /// Index of the rate of the next segment.
    fn choose(&self) -> usize {
        let dash = &self.dash;
        match dash.algorithm {
            Adaptation::Buffer => self.by_buffer(dash.part(dash.reservoir), dash.part(dash.cushion)),
            Adaptation::Throughput => {
                let count = self.throughputs.len() as f64;
                let sum: f64 = self.throughputs.iter().map(|rate| rate.recip()).sum();
                // Without a segment there is no estimate, and the lowest rate starts soonest.
                let promised = if count > 0.0 { dash.safety.get() * count / sum } else { 0.0 };
                let within = dash.ladder.partition_point(|rate| rate.as_bit() as f64 <= promised);
                within.saturating_sub(1)
            }
        }
    }

    /// BBA-0, algorithm 1 of the paper.
    fn by_buffer(&self, reservoir: Span, cushion: Span) -> usize {
        let (held, ladder) = (self.held(), &self.dash.ladder);
        let highest = ladder.len() - 1;
        let (up, down) = ((self.rate + 1).min(highest), self.rate.saturating_sub(1));
        if held <= reservoir {
            return 0;
        }
        if held >= reservoir + cushion {
            return highest;
        }
        let aim = map(held.saturating_sub(reservoir), cushion, ladder[0], ladder[highest]);
        if aim >= ladder[up] {
            // The highest rate below the aim.
            ladder.partition_point(|&rate| rate < aim).saturating_sub(1)
        } else if aim <= ladder[down] {
            // The lowest rate above it.
            ladder.partition_point(|&rate| rate <= aim).min(highest)
        } else {
            self.rate
        }
    }

    pub(super) fn begin_measuring(&mut self, now: Time) {
        self.advance(now);
        self.seen = Playback { startup: self.seen.startup, ..Playback::default() };
        self.rate_played = 0;
    }

    pub(super) fn outcome(&mut self, now: Time) -> Playback {
        self.advance(now);
        let played = u128::from(self.seen.played.as_nanos());
        let rate = self.rate_played.checked_div(played).and_then(|rate| u64::try_from(rate).ok());
        Playback { rate: rate.map(Rate::from_bit), ..self.seen.clone() }
    }
}

/// The rate at a point of the cushion: from the lowest at its begin to the highest at its end.
fn map(held: Span, cushion: Span, lowest: Rate, highest: Rate) -> Rate {
    let room = u128::from(highest.as_bit() - lowest.as_bit());
    let more = room * u128::from(held.as_nanos()) / u128::from(cushion.as_nanos().max(1));
    Rate::from_bit(lowest.as_bit() + u64::try_from(more).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Ratio;

    use super::*;

    fn player(algorithm: Adaptation) -> Player {
        let dash = Dash {
            ladder: [1, 2, 3, 4, 5].map(Rate::from_mbit).into(),
            sizes: Arc::default(),
            segment: Span::from_secs(4),
            buffer: Span::from_secs(40),
            algorithm,
            // 10 s and 20 s.
            reservoir: Ratio::clamped(0.25),
            cushion: Ratio::clamped(0.5),
            window: 2,
            safety: Ratio::clamped(0.8),
        };
        Player::new(Arc::new(dash), Time::from_secs(10), Time::from_secs(10_000))
    }

    fn bba() -> Player {
        player(Adaptation::Buffer)
    }

    /// Delivers segments at `rate`, a time `latency` after each request, until `until`. Returns the indices
    /// of their rates.
    fn fed(player: &mut Player, rate: Rate, latency: Span, until: Time) -> Vec<usize> {
        let mut places = Vec::new();
        while let Some(now) = player.next_timer().filter(|&now| now < until) {
            let number = player.on_timer(now).unwrap();
            let size = player.on_request(number).unwrap();
            places.push(player.rate);
            player.on_delivered(now + latency + rate.time_for(size), player.arrived + size.get());
        }
        places
    }

    #[test]
    fn bba_follows_its_map_and_keeps_a_rate_between_its_neighbours() {
        let mut player = bba();
        let mut at = |held: u64, rate: usize| {
            player.buffer = VecDeque::from([(0, Span::from_millis(held))]);
            player.rate = rate;
            player.choose()
        };
        // Reservoir and above the cushion, with any previous rate.
        assert_eq!([at(0, 4), at(10_000, 4), at(30_000, 0), at(40_000, 0)], [0, 0, 4, 4]);
        // f(20 s) = 3 Mb/s: from 1 Mb/s to the highest rate below it, from 5 to the lowest above, from 3 no
        // change.
        assert_eq!([at(20_000, 0), at(20_000, 4), at(20_000, 2)], [1, 3, 2]);
        // f(17.5 s) = 2.5 Mb/s lies between 2 and 3: both stay.
        assert_eq!([at(17_500, 1), at(17_500, 2)], [1, 2]);
    }

    #[test]
    fn segments_have_the_sizes_of_their_file_from_the_start_again() {
        let mut player = bba();
        let row = |kilobytes: u64| [1, 2, 3, 4, 5].map(|n| Bytes::new(kilobytes * 1_000 * n)).into();
        Arc::get_mut(&mut player.dash).unwrap().sizes = [row(400), row(600)].into();
        let mut sizes = Vec::new();
        while sizes.len() < 3 {
            let now = player.next_timer().unwrap();
            let number = player.on_timer(now).unwrap();
            let size = player.on_request(number).unwrap();
            sizes.push((player.rate, size.get()));
            player.on_delivered(now, player.arrived + size.get());
        }
        assert_eq!(sizes, [(0, 400_000), (0, 600_000), (0, 400_000)]);
    }

    #[test]
    fn with_room_it_climbs_to_the_highest_rate_and_pauses_with_a_full_buffer() {
        let mut player = bba();
        let places = fed(&mut player, Rate::from_mbit(20), Span::from_millis(50), Time::from_secs(200));
        assert_eq!((places[0], *places.last().unwrap()), (0, 4));
        assert!(places.is_sorted(), "{places:?}");
        let seen = player.outcome(Time::from_secs(200));
        // 4 s at 1 Mb/s over 20 Mb/s, and the latency.
        assert_eq!(seen.startup, Some(Span::from_millis(250)));
        assert_eq!((seen.stalls, seen.stalled, seen.switches > 0), (0, Span::ZERO, true));
        assert_eq!(seen.played, Span::from_millis(190_000 - 250));
        // The buffer holds no more than its room, and requests come as often as segments are played.
        assert!(player.held() <= Span::from_secs(40) && player.held() >= Span::from_secs(36));
    }

    #[test]
    fn a_path_below_the_lowest_rate_stalls_for_the_time_that_is_lacking() {
        let mut player = bba();
        fed(&mut player, Rate::from_kbit(800), Span::ZERO, Time::from_secs(110));
        let seen = player.outcome(Time::from_secs(110));
        // Each segment of 4 s takes 5 s: 1 s of stall after each but the last.
        assert_eq!((seen.startup, seen.stalls), (Some(Span::from_secs(5)), 19));
        assert_eq!((seen.stalled, seen.played), (Span::from_secs(19), Span::from_secs(76)));
        assert_eq!((seen.rate, seen.switches), (Some(Rate::from_mbit(1)), 0));
    }

    #[test]
    fn the_throughput_rule_takes_the_highest_rate_within_the_share_of_the_harmonic_mean() {
        let mut player = player(Adaptation::Throughput);
        let mut after = |rates: &[f64]| {
            player.throughputs = rates.iter().map(|rate| rate * 1e6).collect();
            player.choose()
        };
        // The harmonic mean of 2 and 6 is 3, not 4: 2.4 Mb/s are used.
        assert_eq!([after(&[]), after(&[2.0, 6.0]), after(&[100.0]), after(&[0.1])], [0, 1, 4, 0]);
        // Only the last two segments count.
        fed(&mut player, Rate::from_mbit(10), Span::ZERO, Time::from_secs(100));
        assert_eq!(player.throughputs.len(), 2);
        assert_eq!(player.rate, 4);
    }

    #[test]
    fn a_request_that_was_lost_is_sent_again_and_answered_once() {
        let mut player = bba();
        let begin = Time::from_secs(10);
        assert_eq!(player.next_timer(), Some(begin));
        assert_eq!(player.on_timer(begin), Some(1));
        // A second and two seconds later.
        for wait in [1, 3] {
            let at = begin + Span::from_secs(wait);
            assert_eq!(player.next_timer(), Some(at));
            assert_eq!(player.on_timer(at), Some(1));
        }
        let size = player.on_request(1).unwrap();
        assert_eq!(player.on_request(1), None);
        // After the first byte it waits for the rest.
        player.on_delivered(begin + Span::from_secs(4), 1);
        assert_eq!(player.next_timer(), None);
        player.on_delivered(begin + Span::from_secs(5), size.get());
        assert_eq!(
            (player.held(), player.next_timer()),
            (Span::from_secs(4), Some(begin + Span::from_secs(5)))
        );
    }

    #[test]
    fn what_came_before_the_measured_part_is_left_out_but_for_the_startup() {
        let mut player = bba();
        fed(&mut player, Rate::from_kbit(800), Span::ZERO, Time::from_secs(60));
        player.begin_measuring(Time::from_secs(60));
        let seen = player.outcome(Time::from_secs(60));
        let startup = Some(Span::from_secs(5));
        assert_eq!(seen, Playback { startup, ..Playback::default() });
    }

    #[test]
    fn nothing_is_asked_for_or_played_after_the_viewer_has_left() {
        let mut player = bba();
        player.stop = Time::from_secs(20);
        fed(&mut player, Rate::from_mbit(4), Span::ZERO, Time::from_secs(500));
        assert_eq!(player.next_timer(), None);
        assert_eq!(player.outcome(Time::from_secs(500)).played, Span::from_secs(9));
    }
}
