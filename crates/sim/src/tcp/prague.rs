//! Prague: DCTCP for the Internet, for queues that mark L4S packets early and often.
//!
//! draft-briscoe-iccrg-prague-congestion-control-03 section 2.4; RFC 9331 section 4 (what L4S asks of a sender). Packets are
//! ECT(1), and paced. The receiver counts marks ([`accurate`](super::accurate)); where it only echoes them, Prague is ECT(0), and a
//! mark halves its window. A mark lowers the window at once, and it does not grow until what was outstanding then is acknowledged.
//! A short round trip gives no advantage: the window grows, and the share of marks is judged, as over a virtual round trip.
//! Left out: the fall back where a classic queue marks, fractional windows, and growth in the round trip after a mark.
//! Cost: O(1) per ACK; 48 bytes per connection.

use apportion_core::units::{Span, Time};

use super::accurate::Marks;
use super::segment::Flags;

/// Section 2.4.2: the weight of the last round in the estimate.
const G: f64 = 1.0 / 16.0;
/// Section 2.4.4: the round trip below which rates do not depend on it.
const RTT_VIRT: Span = Span::from_millis(25);

/// The share of segments that are marked, over virtual round trips.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    alpha: f64,
    end: u64,
    /// The virtual round trip ends then at the earliest.
    until: Time,
    acked: u32,
    marked: u32,
    /// What ACKs have said.
    marks: Marks,
}

impl Default for Prague {
    fn default() -> Self {
        Self { alpha: 1.0, end: 0, until: Time::ZERO, acked: 0, marked: 0, marks: Marks::default() }
    }
}

impl Prague {
    /// An ACK up to `ack` with these flags, by which so many `segments` are known to have arrived. Data up to `sent` are outstanding.
    /// Returns how many were marked.
    pub fn on_ack(&mut self, now: Time, ack: u64, flags: Flags, segments: u32, sent: u64) -> u32 {
        let marked = self.marks.decode(flags, segments, self.alpha);
        self.acked += segments;
        self.marked += marked;
        if ack > self.end && now >= self.until && self.acked > 0 {
            // More marks than segments: those of a round before that an ACK which was lost would have said.
            let share = (f64::from(self.marked) / f64::from(self.acked)).min(1.0);
            let alpha = self.alpha * (1.0 - G) + G * share;
            *self = Self { alpha, end: sent, until: now + RTT_VIRT, acked: 0, marked: 0, marks: self.marks };
        }
        marked
    }

    /// What a mark leaves of the window.
    #[must_use]
    pub fn leaves(&self) -> f64 {
        1.0 - self.alpha / 2.0
    }
}

/// The window in congestion avoidance after an ACK of `acked` segments over a round trip of `srtt`: the rate grows as that
/// of a Reno flow over the virtual one, and so the window by the square of what one is of the other.
#[must_use]
pub fn grow(cwnd: f64, acked: f64, srtt: Span) -> f64 {
    let share = srtt.min(RTT_VIRT).as_secs_f64() / RTT_VIRT.as_secs_f64();
    cwnd + share * share * acked / cwnd
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_marks_is_judged_once_in_a_virtual_round_trip() {
        let (mut prague, mut marks) = (Prague::default(), Marks::default());
        let mut alphas = Vec::new();
        // A round trip of 5 ms with two ACKs, of which the second is marked: one of ten counts in the 25 ms of five.
        for n in 1..=40 {
            if n % 2 == 0 {
                marks.count();
            }
            let now = Time::ZERO + Span::from_micros(2_500 * n);
            assert_eq!(prague.on_ack(now, n, marks.field(), 1, n + 2), u32::from(n % 2 == 0));
            alphas.push(prague.alpha);
        }
        alphas.dedup();
        assert_eq!(alphas.len(), 4, "{alphas:?}");
        // The first ACK ends the round before the first, unmarked.
        assert!((alphas[1] - (alphas[0] * 15.0 / 16.0 + 0.5 / 16.0)).abs() < 1e-9, "{alphas:?}");
    }

    #[test]
    fn short_round_trips_grow_by_the_square_of_their_part() {
        assert_eq!(grow(10.0, 10.0, Span::from_millis(40)), 11.0);
        assert!((grow(10.0, 10.0, Span::from_millis(5)) - 10.04).abs() < 1e-9);
    }
}
