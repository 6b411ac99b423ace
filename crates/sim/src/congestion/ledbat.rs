//! LEDBAT: a background transport whose own queueing delay stays at a target.
//!
//! RFC 6817 section 2.4.2. The one-way delay comes from timestamps, in milliseconds: the receiver's clock at
//! the arrival of data, minus the sender's at the transmission of the segment that is echoed (RFC 7323
//! section 4.3: the first one that an ACK answers). Clocks neither drift nor differ, so the skew of section
//! 2.2 is not corrected; a constant difference would cancel. Losses are repaired and halve the window as in
//! the rest of the profile, and there is no slow start. Cost: O(1) per ACK; 64 bytes per connection.
//!
//! | here | RFC 6817 section 2.5 | default | from |
//! |---|---|---|---|
//! | `TARGET` | TARGET | 100 ms | at most that |
//! | `GAIN` | GAIN | 1 | at most that |
//! | `BASE_HISTORY` | BASE_HISTORY | 10 minutes | recommended |
//! | `CURRENT_FILTER` | CURRENT_FILTER | 4 | at least 4 samples in a round trip, none older; of a window of fewer segments some are older |
//! | the profile's | INIT_CWND | 10 segments | recommended: 2, and at most what TCP may have |
//! | `ALLOWED_INCREASE` | ALLOWED_INCREASE | 1 segment | recommended |
//! | `MIN_CWND` | MIN_CWND | 2 segments | recommended |

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Feedback, Response, Window};
use apportion_core::units::{Span, Time};

const TARGET: Span = Span::from_millis(100);
const GAIN: f64 = 1.0;
const BASE_HISTORY: usize = 10;
const BASE_INTERVAL: Span = Span::from_secs(60);
const CURRENT_FILTER: usize = 4;
const ALLOWED_INCREASE: f64 = 1.0;
const MIN_CWND: f64 = 2.0;

/// No sample.
const NONE: u32 = u32::MAX;

/// The delays that LEDBAT compares, in milliseconds. Names as in RFC 6817 section 2.4.2.
#[derive(Clone, Copy, Debug)]
pub struct Ledbat {
    /// The minimum of each of the last minutes with a sample, as a ring that includes the present one.
    base_delays: [u32; BASE_HISTORY],
    current_delays: [u32; CURRENT_FILTER],
    /// Samples so far.
    samples: usize,
    /// The minute of the last sample.
    last_rollover: u64,
}

impl Default for Ledbat {
    fn default() -> Self {
        let (base_delays, current_delays) = ([NONE; BASE_HISTORY], [NONE; CURRENT_FILTER]);
        Self { base_delays, current_delays, samples: 0, last_rollover: 0 }
    }
}

impl CongestionControl for Ledbat {
    fn on_feedback(&mut self, ack: &Feedback) {
        if let Some(delay) = ack.one_way_delay {
            self.sample(ack.now, (delay.as_nanos() / 1_000_000) as u32);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let flightsize = f64::from(ack.in_flight + ack.delivered);
        window.cwnd = self.grow(window.cwnd, ack.acked, flightsize);
    }

    fn on_loss(&mut self, _: &mut Window, event: &CongestionEvent) -> Response {
        Response::Reduce(event.basis / 2.0)
    }

    fn has_slow_start(&self) -> bool {
        false
    }
}

impl Ledbat {
    /// Takes a sample of the one-way delay, in milliseconds.
    fn sample(&mut self, now: Time, delay: u32) {
        let minute = now.as_nanos() / BASE_INTERVAL.as_nanos();
        // Minutes without a sample have no minimum.
        for passed in self.last_rollover + 1..=minute.min(self.last_rollover + BASE_HISTORY as u64) {
            self.base_delays[passed as usize % BASE_HISTORY] = NONE;
        }
        self.last_rollover = minute;
        let base = &mut self.base_delays[minute as usize % BASE_HISTORY];
        *base = delay.min(*base);
        self.current_delays[self.samples % CURRENT_FILTER] = delay;
        self.samples += 1;
    }

    /// The minimum of the current delays minus the overall minimum; none before a sample.
    fn queuing_delay(&self) -> Option<Span> {
        let least = |delays: &[u32]| delays.iter().copied().min().filter(|&delay| delay != NONE);
        let current = least(&self.current_delays)?;
        let base = least(&self.base_delays)?;
        Some(Span::from_millis(u64::from(current.saturating_sub(base))))
    }

    /// The window after an ACK of `acked` segments, with `flightsize` outstanding.
    fn grow(&self, cwnd: f64, acked: f64, flightsize: f64) -> f64 {
        let Some(delay) = self.queuing_delay() else { return cwnd };
        let off_target = (TARGET.as_secs_f64() - delay.as_secs_f64()) / TARGET.as_secs_f64();
        let max_allowed_cwnd = flightsize + ALLOWED_INCREASE;
        (cwnd + GAIN * off_target * acked / cwnd).min(max_allowed_cwnd).max(MIN_CWND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_moves_with_the_distance_from_the_target() {
        // At the target the window stays; 50 ms below, half a segment a window more; 50 ms above, half a
        // segment less.
        for (delay, expected) in [(140, 20.0), (90, 20.5), (190, 19.5), (40, 21.0)] {
            let mut ledbat = Ledbat::default();
            ledbat.sample(Time::from_secs(1), 40);
            (0..CURRENT_FILTER).for_each(|_| ledbat.sample(Time::from_secs(2), delay));
            assert!((ledbat.grow(20.0, 20.0, 30.0) - expected).abs() < 1e-9, "{delay} ms");
        }
        // An unused window does not grow, and the minimum is two segments.
        let mut ledbat = Ledbat::default();
        ledbat.sample(Time::from_secs(1), 40);
        assert_eq!(ledbat.grow(20.0, 2.0, 12.0), 13.0);
        (0..CURRENT_FILTER).for_each(|_| ledbat.sample(Time::from_secs(2), 900));
        assert_eq!(ledbat.grow(2.5, 2.0, 2.5), 2.0);
    }

    #[test]
    fn the_shortest_of_four_delays_and_of_ten_minutes_counts() {
        let mut ledbat = Ledbat::default();
        ledbat.sample(Time::from_secs(1), 40);
        for delay in [140, 150, 145, 160] {
            ledbat.sample(Time::from_secs(30), delay);
        }
        assert_eq!(ledbat.queuing_delay(), Some(Span::from_millis(100)));
        // Minute 0 counts until the end of minute 9.
        for (at, base) in [(599, 40), (600, 60)] {
            ledbat.sample(Time::from_secs(300), 60);
            (0..CURRENT_FILTER).for_each(|_| ledbat.sample(Time::from_secs(at), 160));
            assert_eq!(ledbat.queuing_delay(), Some(Span::from_millis(160 - base)), "{at} s");
        }
        // Silence that exceeds the history erases it.
        (0..CURRENT_FILTER).for_each(|_| ledbat.sample(Time::from_secs(100_000), 200));
        assert_eq!(ledbat.queuing_delay(), Some(Span::ZERO));
    }
}
