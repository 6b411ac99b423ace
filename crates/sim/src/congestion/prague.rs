//! Prague: DCTCP for the Internet, for queues that mark L4S packets early and often.
//!
//! draft-briscoe-iccrg-prague-congestion-control-03 section 2.4; RFC 9331 section 4 (requirements on
//! senders). Packets are ECT(1), and leave [evenly](apportion_core::congestion::Pacing::Evenly). The receiver
//! counts marks ([`accurate`](crate::tcp::accurate)). If it only echoes them, Prague is ECT(0), and a mark
//! halves its window. A mark lowers the window at once, and the window does not grow until the data
//! outstanding then is acknowledged. A short round trip gives no advantage: the window grows, and the share
//! of marks is judged, as over a virtual round trip. Left out: the fallback for classic queues, fractional
//! windows, and growth in the round trip after a mark. Cost: O(1) per ACK; 48 bytes per connection.

use apportion_core::congestion::{
    Ack, CongestionControl, CongestionEvent, Feedback, Phase, Response, Window,
};
use apportion_core::units::{Span, Time};

use super::reno::Reno;

/// Section 2.4.2: the weight of the last round in the estimate.
const G: f64 = 1.0 / 16.0;
/// Section 2.4.4: the round trip below which rates do not depend on it.
const RTT_VIRT: Span = Span::from_millis(25);

/// The share of marked segments, over virtual round trips.
#[derive(Clone, Copy, Debug)]
pub struct Prague {
    alpha: f64,
    end: u64,
    /// The earliest end of the virtual round trip.
    until: Time,
    acked: u32,
    marked: u32,
}

impl CongestionControl for Prague {
    fn on_feedback(&mut self, ack: &Feedback) {
        if !ack.counts_marks {
            return;
        }
        self.acked += ack.segments;
        self.marked += ack.marked;
        if ack.number > self.end && ack.now >= self.until && self.acked > 0 {
            // There may be more marks than segments: marks of an earlier round whose ACK was lost.
            let share = (f64::from(self.marked) / f64::from(self.acked)).min(1.0);
            let alpha = self.alpha * (1.0 - G) + G * share;
            *self = Self { alpha, end: ack.last_sent, until: ack.now + RTT_VIRT, ..Self::default() };
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.phase == Phase::Cwr {
            // The mark has lowered the window.
        } else if ack.slow_start {
            Reno.on_ack(window, ack);
        } else {
            window.cwnd = grow(window.cwnd, ack.acked, ack.srtt);
        }
    }

    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        Reno.on_loss(window, event)
    }

    fn on_mark(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        let left = (1.0 - self.alpha / 2.0) * window.cwnd.min(event.receive_window);
        *window = Window { cwnd: left.max(2.0), ssthresh: left.max(2.0) };
        Response::Done
    }

    fn moves_window(&self, phase: Phase) -> bool {
        phase == Phase::Cwr
    }

    fn mark_share(&self) -> f64 {
        self.alpha
    }
}

impl Default for Prague {
    fn default() -> Self {
        Self { alpha: 1.0, end: 0, until: Time::ZERO, acked: 0, marked: 0 }
    }
}

/// The window in congestion avoidance after an ACK of `acked` segments over a round trip of `srtt`. The rate
/// grows like that of a Reno flow over the virtual round trip, so growth of the window is scaled by the
/// square of the ratio of both.
fn grow(cwnd: f64, acked: f64, srtt: Span) -> f64 {
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
            let (now, marked) = (Time::ZERO + Span::from_micros(2_500 * n), u32::from(n % 2 == 0));
            let (last_sent, bytes, segments) = (n + 2, 1_448, 1);
            let (counts_marks, one_way_delay) = (true, None);
            prague.on_feedback(&Feedback {
                now,
                number: n,
                last_sent,
                bytes,
                segments,
                marked,
                counts_marks,
                one_way_delay,
            });
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
