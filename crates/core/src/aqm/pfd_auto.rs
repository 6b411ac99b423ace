//! p and thresh of [`pfd`](super::pfd) from the buffer and the traffic.
//!
//! Not from the paper, which names it as future work. It gains nothing: on ten different settings no pair is
//! more than 1 % better than the default one (`papers/pfd-stress`), and it is off by default. Two questions
//! are answered once per interval.
//!
//! *How much room must there be above thresh?* As much as can arrive between an early drop and the sender's
//! response. A drop from the front is noticed when three later packets of the flow have reached the receiver:
//! three rounds of the scheduler, in each of which it serves one packet of each active flow. Then a round
//! trip without queueing passes, in which it serves C R. At worst all flows are in slow start and send two
//! packets for each that is served, so that the queue grows by as many as are served. With n the maximum
//! number of flows that were active during the interval and L the mean packet in the buffer,
//!
//! ```text
//! thresh B = B - (3 n L + C R)          (1)
//! ```
//!
//! between half of the buffer, below which it would be a smaller buffer in effect, and 19/20, above which
//! there are hardly any early drops (both chosen). R is the mean of the round-trip times that the backend
//! knows, at first or, with thresholds by round-trip time, at present; 0 if it knows none: then only the
//! buffer matters.
//!
//! *How often must senders be signalled?* So often that the buffer seldom overflows: the share of forced
//! drops among the packets pushed out in an interval is held near one in ten (chosen). If it is above, p
//! grows; if it is below although the buffer was above thresh, p shrinks. Steps and interval are those by
//! which Adaptive RED moves max_p towards a target, slowly compared to a round trip (Floyd, Gummadi, Shenker,
//! "Adaptive RED: an algorithm for increasing the robustness of RED's active queue management", 2001, section
//! 4):
//!
//! ```text
//! p <- p + min(0.01, p/4)               (2)
//! p <- 0.9 p                            (3)
//! ```

use super::Limit;
use super::occupancy::Occupancy;
use crate::units::{Rate, Ratio, Span, Time};

const INTERVAL: Span = Span::from_millis(500);
/// The target share of packets pushed out by an overflow.
const TARGET: f64 = 0.1;
/// Adaptive RED holds max_p between 0.01 and 0.5. Its lower bound applies to a probability that is reached at
/// the upper threshold only; chosen: a tenth of it.
const BOUNDS: (f64, f64) = (0.001, 0.5);
const THRESH: (f64, f64) = (0.5, 0.95);

/// The state of the present interval.
#[derive(Clone, Debug)]
pub(crate) struct Controller {
    link_rate: Rate,
    /// R, in seconds.
    rtt: f64,
    /// The end of the interval; none before the first arrival.
    end: Option<Time>,
    /// n, the maximum number of active flows in the interval.
    active: u64,
    was_above: bool,
    /// The early drops and overflows before the interval.
    before: (u64, u64),
}

impl Controller {
    /// The state for a link of `link_rate`. `rtts` are round-trip times, zero where unknown.
    pub fn new(link_rate: Rate, rtts: &[Span]) -> Self {
        let known = || rtts.iter().filter(|rtt| **rtt > Span::ZERO);
        let sum: f64 = known().map(|rtt| rtt.as_secs_f64()).sum();
        let rtt = sum / known().count().max(1) as f64;
        Self { link_rate, rtt, end: None, active: 0, was_above: false, before: (0, 0) }
    }

    pub fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = rate;
    }

    /// Sets R.
    pub fn set_rtt(&mut self, rtt: Span) {
        self.rtt = rtt.as_secs_f64();
    }

    /// Observes the buffer after an arrival, with the early drops and overflows so far. Returns the new p and
    /// thresh at the end of an interval.
    pub fn adjust(
        &mut self,
        now: Time,
        occupancy: &Occupancy,
        is_above: bool,
        drops: (u64, u64),
        p: Ratio,
    ) -> Option<(Ratio, Ratio)> {
        self.active = self.active.max(occupancy.active());
        self.was_above |= is_above;
        let end = *self.end.get_or_insert(now + INTERVAL);
        if now < end {
            return None;
        }
        let settings = (self.p(p, drops), self.thresh(occupancy));
        (self.end, self.active, self.was_above, self.before) = (Some(now + INTERVAL), 0, false, drops);
        Some(settings)
    }

    fn p(&self, p: Ratio, drops: (u64, u64)) -> Ratio {
        let (early, overflows) = (drops.0 - self.before.0, drops.1 - self.before.1);
        let p = p.get();
        let moved = if overflows as f64 > TARGET * (early + overflows) as f64 {
            p.max(BOUNDS.0) + (p.max(BOUNDS.0) / 4.0).min(0.01) // (2)
        } else if self.was_above {
            0.9 * p // (3)
        } else {
            p
        };
        Ratio::clamped(moved.clamp(BOUNDS.0, BOUNDS.1))
    }

    fn thresh(&self, occupancy: &Occupancy) -> Ratio {
        let held = occupancy.held();
        let mean = held.bytes.get() as f64 / held.packets.get().max(1) as f64;
        let in_flight = self.link_rate.as_bit() as f64 / 8.0 * self.rtt;
        let room = 3.0 * self.active as f64 * mean + in_flight;
        let in_unit = match occupancy.limit() {
            Limit::Bytes(_) => room,
            Limit::Packets(_) => room / mean,
        };
        // Eq. (1). A buffer of size zero counts as one in which nothing fits.
        let thresh = 1.0 - in_unit / occupancy.capacity();
        Ratio::clamped(thresh.max(THRESH.0).min(THRESH.1))
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::super::occupancy::{Choice, Thresholds};
    use super::*;
    use crate::testing::packet;

    /// A buffer of `limit` in which each of `flows` flows holds a packet of 500 bytes.
    fn buffer(limit: &str, flows: u32) -> Occupancy {
        let mut occupancy = Occupancy::new(limit.parse().unwrap(), Thresholds::Equal, Choice::Ratio, &[]);
        for flow in 0..flows {
            occupancy.add(&packet(flow, flow, 500));
        }
        occupancy
    }

    /// The values that the first interval with `drops` sets, from p = 0.02 on.
    fn set(occupancy: &Occupancy, rtts: &[Span], is_above: bool, drops: (u64, u64), p: f64) -> (f64, f64) {
        let mut controller = Controller::new(Rate::from_mbit(4), rtts);
        let (ms, p) = (Time::from_millis, Ratio::clamped(p));
        assert_eq!(controller.adjust(ms(100), occupancy, is_above, (0, 0), p), None);
        assert_eq!(controller.adjust(ms(599), occupancy, is_above, (0, 0), p), None);
        let (p, thresh) = controller.adjust(ms(600), occupancy, false, drops, p).unwrap();
        (p.get(), thresh.get())
    }

    #[test]
    fn the_room_above_thresh_takes_three_rounds_of_slow_start_and_a_round_trip() {
        // Ten flows: 3·10 = 30 packets. At 4 Mbit/s, 20 ms are 10 kB, 20 packets of 500 B.
        let rtts = [10, 0, 30].map(Span::from_millis);
        for (limit, rtts, thresh) in [
            ("200p", &[][..], 0.85), // 1 - 30/200
            ("200p", &rtts, 0.75),   // 1 - 50/200
            ("100kB", &rtts, 0.75),  // 1 - 25 kB/100 kB
            ("80p", &rtts, 0.5),     // 1 - 50/80 = 0.375
            ("10000p", &rtts, 0.95), // 1 - 50/10000 = 0.995
        ] {
            let (_, set) = set(&buffer(limit, 10), rtts, false, (0, 0), 0.02);
            assert!((set - thresh).abs() < 1e-12, "{limit}: {set} against {thresh}");
        }
    }

    #[test]
    fn p_grows_while_overflow_forces_more_than_a_tenth_and_shrinks_while_it_does_not() {
        let occupancy = buffer("200p", 10);
        let p = |is_above, drops, p| set(&occupancy, &[], is_above, drops, p).0;
        // 2 of 19 are more than a tenth: 0.02 + min(0.01, 0.005); 2 of 20 are not: 0.9·0.02.
        assert!((p(true, (17, 2), 0.02) - 0.025).abs() < 1e-15);
        assert!((p(true, (18, 2), 0.02) - 0.018).abs() < 1e-15);
        // Steps of at most 0.01, up to 0.5, down to 0.001, and none if the buffer was never above thresh.
        assert!((p(true, (0, 1), 0.2) - 0.21).abs() < 1e-15);
        assert_eq!(p(true, (0, 1), 0.495), 0.5);
        assert_eq!(p(true, (9, 0), 0.001), 0.001);
        assert_eq!(p(false, (0, 0), 0.02), 0.02);
        // It can leave 0.
        assert!((p(true, (0, 1), 0.0) - 0.001_25).abs() < 1e-15);
    }

    #[test]
    fn each_interval_counts_from_its_own_beginning() {
        let occupancy = buffer("200p", 10);
        let mut controller = Controller::new(Rate::from_mbit(4), &[]);
        let mut p = Ratio::clamped(0.1);
        let mut seen = Vec::new();
        // An overflow in the second interval only; above thresh in the first two; then an idle time, which
        // counts as one interval.
        for (ms, is_above, drops) in
            [(0, true, (0, 0)), (500, true, (5, 0)), (1_000, false, (5, 1)), (9_000, false, (5, 1))]
        {
            if let Some((next, _)) = controller.adjust(Time::from_millis(ms), &occupancy, is_above, drops, p)
            {
                p = next;
                seen.push(p.get());
            }
        }
        // 0.9·0.1; + 0.01; no change.
        let expected = [0.09, 0.10, 0.10];
        assert_eq!(seen.len(), 3);
        assert!(seen.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{seen:?}");
    }
}
