//! Prague: DCTCP for the Internet, for queues that mark L4S packets early and often.
//!
//! draft-briscoe-iccrg-prague-congestion-control-03 section 2.4; RFC 9331 section 4 (what L4S asks of a sender). Packets are
//! ECT(1), and paced. The receiver echoes each mark as DCTCP's does ([`receiver`](super::receiver)), which says what the
//! counters of Accurate ECN (RFC 9768) say while no ACK is lost. A mark lowers the window as [`dctcp`](super::dctcp) says.
//! A short round trip gives no advantage: the window grows, and the share of marks is judged, as over a virtual round trip.
//! Left out: the fall back where a classic queue marks, fractional windows, and growth in the round trip after a mark.
//! Cost: O(1) per ACK; 48 bytes per connection.

use apportion_core::units::{Span, Time};

/// Section 2.4.2: the weight of the last round in the estimate.
const G: f64 = 1.0 / 16.0;
/// Section 2.4.4: the round trip below which rates do not depend on it.
const RTT_VIRT: Span = Span::from_millis(25);

/// The share of bytes that are marked, over virtual round trips.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    alpha: f64,
    end: u64,
    /// The virtual round trip ends then at the earliest.
    until: Time,
    bytes_acked: u64,
    bytes_marked: u64,
}

impl Default for Prague {
    fn default() -> Self {
        Self { alpha: 1.0, end: 0, until: Time::ZERO, bytes_acked: 0, bytes_marked: 0 }
    }
}

impl Prague {
    /// An ACK of `bytes` up to `ack`, all of them marked or none. Data up to `sent` are outstanding.
    pub fn on_ack(&mut self, now: Time, ack: u64, bytes: u64, marked: bool, sent: u64) {
        self.bytes_acked += bytes;
        self.bytes_marked += if marked { bytes } else { 0 };
        if ack <= self.end || now < self.until || self.bytes_acked == 0 {
            return;
        }
        let share = self.bytes_marked as f64 / self.bytes_acked as f64;
        let alpha = self.alpha * (1.0 - G) + G * share;
        *self = Self { alpha, end: sent, until: now + RTT_VIRT, bytes_acked: 0, bytes_marked: 0 };
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
        let mut prague = Prague::default();
        let mut alphas = Vec::new();
        // A round trip of 5 ms with two ACKs, of which the second is marked: one of ten counts in the 25 ms of five.
        for n in 1..=40 {
            prague.on_ack(Time::ZERO + Span::from_micros(2_500 * n), n, 1, n % 2 == 0, n + 2);
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
