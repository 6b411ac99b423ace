//! Prague: DCTCP for the Internet, for queues that mark L4S packets early and often.
//!
//! draft-briscoe-iccrg-prague-congestion-control-04 section 2.4; RFC 9331 section 4 (requirements on
//! senders). Packets are ECT(1), and leave [evenly](apportion_core::congestion::Pacing::Evenly). The receiver
//! counts marks ([`accurate`](crate::tcp::accurate)). If it only echoes them, Prague is ECT(0), and a mark
//! halves its window.
//!
//! A mark lowers the window at once, but not twice in a round trip. Each segment that arrives unmarked opens
//! it, also in the round trip after a mark. With a reduction in each round trip the window W is in equilibrium
//! at a share p of marks with p W / 2 = 1 - p. A short round trip gives no advantage: the window grows and
//! falls, and the share of marks is judged, as over a virtual round trip. Left out: the fallback for classic
//! queues, fractional windows, and the credit of a mark's reduction to a loss in the same round trip. Cost:
//! O(1) per ACK; 56 bytes per connection.

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
    /// Whether the receiver counts marks.
    counts_marks: bool,
    /// Whether a mark has come. Until then alpha is not updated.
    saw_mark: bool,
    /// The share of unmarked segments among those of the last ACK.
    unmarked: f64,
    /// The earliest time of the next reduction.
    reduce_at: Time,
}

impl CongestionControl for Prague {
    fn on_feedback(&mut self, ack: &Feedback) {
        self.counts_marks = ack.counts_marks;
        if !ack.counts_marks {
            return;
        }
        self.unmarked = 1.0 - share(ack.marked, ack.segments);
        self.saw_mark |= ack.marked > 0;
        self.acked += ack.segments;
        self.marked += ack.marked;
        if ack.number > self.end && ack.now >= self.until && self.acked > 0 {
            if self.saw_mark {
                self.alpha = self.alpha * (1.0 - G) + G * share(self.marked, self.acked);
            }
            (self.acked, self.marked) = (0, 0);
            (self.end, self.until) = (ack.last_sent, ack.now + RTT_VIRT);
        }
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.phase == Phase::Cwr && !self.counts_marks {
            // An echo stands for a loss.
        } else if ack.phase != Phase::Cwr && ack.slow_start {
            Reno.on_ack(window, ack);
        } else {
            window.cwnd = grow(window.cwnd, ack.acked * self.unmarked, ack.srtt);
        }
    }

    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        Reno.on_loss(window, event)
    }

    fn on_mark(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        if self.counts_marks {
            if event.now < self.reduce_at {
                return Response::Ignore;
            }
            self.reduce_at = event.now + RTT_VIRT;
        }
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
        Self {
            alpha: 1.0,
            end: 0,
            until: Time::ZERO,
            acked: 0,
            marked: 0,
            counts_marks: false,
            saw_mark: false,
            unmarked: 1.0,
            reduce_at: Time::ZERO,
        }
    }
}

/// The share of marked segments. There may be more marks than segments: marks of an earlier round whose ACK
/// was lost.
fn share(marked: u32, segments: u32) -> f64 {
    (f64::from(marked) / f64::from(segments.max(1))).min(1.0)
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
    use crate::congestion::ACK;

    const MS: Span = Span::from_millis(1);

    /// An ACK of `segments` segments, `marked` of which were marked, after `millis` milliseconds.
    fn feedback(millis: u64, number: u64, segments: u32, marked: u32) -> Feedback {
        let (now, last_sent, bytes) = (Time::ZERO + MS * millis, number + 2, 1_448);
        let (counts_marks, one_way_delay) = (true, None);
        Feedback { now, number, last_sent, bytes, segments, marked, counts_marks, one_way_delay }
    }

    #[test]
    fn alpha_moves_once_in_a_virtual_round_trip_after_the_first_mark() {
        let mut prague = Prague::default();
        let mut alphas = Vec::new();
        // A round trip of 4 ms with two ACKs, of which the second is marked, from 60 ms on.
        for n in 1..=60 {
            prague.on_feedback(&feedback(2 * n, n, 1, u32::from(n > 30 && n % 2 == 0)));
            alphas.push(prague.alpha);
        }
        assert!(alphas[..31].iter().all(|alpha| *alpha == 1.0), "{alphas:?}");
        alphas.dedup();
        // Rounds of 25 ms, of which 13 ACKs and 6 or 7 marks are known.
        assert!((3..=4).contains(&alphas.len()), "{alphas:?}");
        let ratio = (alphas[2] - 0.5) / (alphas[1] - 0.5);
        assert!((ratio - 15.0 / 16.0).abs() < 0.01, "{alphas:?}");
    }

    #[test]
    fn unmarked_segments_open_the_window_after_a_mark_too() {
        let (mut prague, mut window) = (Prague::default(), Window { cwnd: 10.0, ssthresh: 10.0 });
        prague.on_feedback(&feedback(30, 10, 10, 4));
        for phase in [Phase::Cwr, Phase::Open] {
            window.cwnd = 10.0;
            let ack = Ack { phase, acked: 10.0, srtt: MS * 25, slow_start: false, ..ACK };
            prague.on_ack(&mut window, &ack);
            assert!((window.cwnd - 10.6).abs() < 1e-9, "{phase:?} {}", window.cwnd);
        }
        // A receiver that echoes marks does not say which segments were marked.
        prague.on_feedback(&Feedback { counts_marks: false, ..feedback(31, 20, 10, 10) });
        window.cwnd = 10.0;
        prague.on_ack(&mut window, &Ack { phase: Phase::Cwr, acked: 10.0, slow_start: false, ..ACK });
        assert_eq!(window.cwnd, 10.0);
    }

    #[test]
    fn counted_marks_lower_the_window_once_in_a_virtual_round_trip() {
        for (counts_marks, least) in [(true, 50.0), (false, 25.0)] {
            let (mut prague, mut window) = (Prague::default(), Window { cwnd: 100.0, ssthresh: 100.0 });
            prague.on_feedback(&Feedback { counts_marks, ..feedback(1, 1, 1, 1) });
            for at in [1, 20] {
                let (now, cwnd) = (Time::ZERO + MS * at, window.cwnd);
                let (basis, receive_window, in_flight) = (cwnd, f64::INFINITY, cwnd as u32);
                let event = CongestionEvent { now, cwnd, basis, receive_window, in_flight, again: false };
                prague.on_mark(&mut window, &event);
            }
            assert_eq!(window.cwnd, least, "{counts_marks}");
        }
    }

    #[test]
    fn short_round_trips_grow_by_the_square_of_their_part() {
        assert_eq!(grow(10.0, 10.0, Span::from_millis(40)), 11.0);
        assert!((grow(10.0, 10.0, Span::from_millis(5)) - 10.04).abs() < 1e-9);
    }
}
