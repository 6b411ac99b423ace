//! C, measured: while packets wait, they leave at the rate of the link.
//!
//! The set rate of a link is not always its rate: a recorded link varies, a transmitter with aggregates pauses, and behind
//! another discipline a queue has a part of the link. With the set rate as C, the share exceeds what fits or leaves the rest
//! unused, and a backlog says little about the delay.
//!
//! When l bits have left in T seconds, C moves with the time constant τ:
//!
//! ```text
//! C = (C τ + l) / (τ + T)
//! ```
//!
//! Packets that leave together, as in an aggregate, count together. If no packet waited, the link may have been idle for a
//! part of T, and l/T is a lower bound: C then only rises. Without that C would stay low after an increase, since a share of the
//! old C leaves no queue. τ is the target delay: C is to turn a backlog of about that delay into a time.

use crate::units::{Bytes, Time, float, larger};

/// The last departures, which end when the next packet leaves.
#[derive(Clone, Debug, Default)]
pub(super) struct Departures {
    /// Their time; none while the link is idle.
    since: Option<Time>,
    /// Their bits.
    bits: f64,
    /// Whether packets waited after them.
    is_backlogged: bool,
}

impl Departures {
    /// C, which has been `c`, when a packet of `size` leaves or the link finds none. `tau` is in seconds.
    #[inline]
    pub(super) fn rate(
        &mut self,
        now: Time,
        size: Option<Bytes>,
        is_backlogged: bool,
        [c, tau]: [f64; 2],
    ) -> f64 {
        let (mut rate, since) = (c, self.since);
        if let Some(since) = since.filter(|since| now > *since) {
            let time = float(now.since(since).as_nanos()) / 1e9;
            let measured = (c * tau + self.bits) / (tau + time);
            rate = if self.is_backlogged { measured } else { larger(measured, c) };
            (self.since, self.bits) = (None, 0.0);
        }
        if let Some(size) = size {
            self.since = Some(now);
            self.bits += float(size.bits());
        }
        self.is_backlogged = is_backlogged;
        rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// C after departures of packets of 1000 B at these milliseconds, and whether others wait. C starts with
    /// 8 Mb/s, and τ is 20 ms. A size of 0 is a link that asks in vain.
    fn after(departures: &[(u64, u64, bool)]) -> Vec<f64> {
        let (mut state, mut c) = (Departures::default(), 8e6);
        let mut next = |&(ms, size, waits): &(u64, u64, bool)| {
            let size = (size > 0).then(|| Bytes::new(size));
            c = state.rate(Time::from_millis(ms), size, waits, [c, 0.02]);
            c
        };
        departures.iter().map(&mut next).collect()
    }

    #[test]
    fn departures_of_waiting_packets_measure_the_link() {
        // A packet per millisecond is the set rate. One in 4 ms: (8e6·0.02 + 8e3) / 0.024.
        let steady = after(&[(10, 1_000, true), (11, 1_000, true), (12, 1_000, true)]);
        assert!(steady.iter().all(|c| (c / 8e6 - 1.0).abs() < 1e-12), "{steady:?}");
        assert_eq!(after(&[(10, 1_000, true), (14, 1_000, true)])[1], 168e3 / 0.024);
        // Over 1 s at a quarter of the rate C becomes that.
        let slow: Vec<_> = (0..250).map(|i| (4 * i, 1_000, true)).collect();
        assert!((after(&slow)[249] / 2e6 - 1.0).abs() < 0.01);
    }

    #[test]
    fn packets_that_leave_together_count_together() {
        let together = after(&[(10, 1_000, true), (10, 1_000, true), (10, 2_000, true), (14, 1_000, true)]);
        assert!(together.iter().all(|c| (c / 8e6 - 1.0).abs() < 1e-12), "{together:?}");
    }

    #[test]
    fn time_that_may_be_idle_is_a_lower_bound_only() {
        // The link asks in vain at 11 ms, and the pause until 90 ms is not counted.
        assert_eq!(after(&[(10, 1_000, false), (14, 1_000, false)]), [8e6, 8e6]);
        assert_eq!(after(&[(10, 1_000, false), (11, 0, false), (90, 1_000, true)])[2], 8e6);
        // 8000 B in a millisecond are 64 Mb/s.
        assert_eq!(after(&[(10, 8_000, false), (11, 0, false)])[1], 224e3 / 0.021);
    }
}
