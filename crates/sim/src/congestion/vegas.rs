//! TCP Vegas: the window keeps a few packets of its own in the queue.
//!
//! Brakmo and Peterson, "TCP Vegas: end to end congestion avoidance on a global Internet", IEEE JSAC 13(8),
//! 1995, sections III.B (congestion avoidance) and III.C (slow start). Losses are found and halve the window
//! as in the rest of the profile, not by the paper's section III.A. Deviations, as in Linux: the round-trip
//! time of a round is its minimum, which delayed ACKs do not lengthen, instead of that of one distinguished
//! segment; the window stands for the data sent meanwhile; and slow start ends with the window that would
//! leave no queue, plus one segment. Cost: O(1) per ACK; 40 bytes per connection.
//!
//! | here | paper | default | from |
//! |---|---|---|---|
//! | `ALPHA`, `BETA` | alpha, beta | 2, 4 segments | Linux; the paper's Vegas-2,4 |
//! | `GAMMA` | gamma | 1 segment | section III.C; Linux |

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Response, Window};
use apportion_core::units::Span;

/// The number of its own segments in the queue below which the window grows.
const ALPHA: f64 = 2.0;
/// The number above which the window falls.
const BETA: f64 = 4.0;
/// The number above which slow start ends.
const GAMMA: f64 = 1.0;
/// The minimum window, in segments, which RFC 5681 equation (4) has as the minimum threshold.
const LEAST: f64 = 2.0;

/// The state of Vegas.
#[derive(Clone, Copy, Debug, Default)]
pub struct Vegas {
    /// BaseRTT: the minimum of the connection.
    base_rtt: Option<Span>,
    /// The minimum of this round.
    rtt: Option<Span>,
    /// The round ends when more than this is acknowledged.
    end: u64,
    /// Whether slow start doubles the window in this round: it does in every other.
    doubles: bool,
}

impl CongestionControl for Vegas {
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        let shorter = |known: Option<Span>| known.into_iter().chain(ack.rtt).min();
        (self.base_rtt, self.rtt) = (shorter(self.base_rtt), shorter(self.rtt));
        let slow_start = window.is_slow_start();
        if ack.number > self.end {
            let measured = self.base_rtt.zip(self.rtt);
            (self.end, self.rtt, self.doubles) = (ack.last_sent, None, !self.doubles);
            if let Some((base, rtt)) = measured {
                *window = judge(*window, base.as_secs_f64() / rtt.as_secs_f64(), ack.is_limited);
                return;
            }
        }
        if slow_start && self.doubles && ack.is_limited {
            window.cwnd = (window.cwnd + ack.acked).min(window.ssthresh);
        }
    }

    fn on_loss(&mut self, _: &mut Window, event: &CongestionEvent) -> Response {
        Response::Reduce(event.basis / 2.0)
    }

    fn has_slow_start(&self) -> bool {
        false
    }
}

/// The window and the threshold after a round of `share` = BaseRTT / RTT.
fn judge(Window { cwnd, ssthresh }: Window, share: f64, limited: bool) -> Window {
    // Diff = Expected - Actual = cwnd / BaseRTT - cwnd / RTT, here times BaseRTT: segments in the queue.
    let diff = cwnd * (1.0 - share);
    if cwnd < ssthresh {
        return if diff > GAMMA {
            let empty = (cwnd * share + 1.0).min(cwnd).max(LEAST);
            Window { cwnd: empty, ssthresh: empty }
        } else {
            Window { cwnd: cwnd.max(LEAST), ssthresh }
        };
    }
    let step = if diff > BETA {
        -1.0
    } else if diff < ALPHA && limited {
        1.0
    } else {
        0.0
    };
    let next = (cwnd + step).max(LEAST);
    // If the window were below the threshold, the next round would be slow start.
    Window { cwnd: next, ssthresh: ssthresh.min(next) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::ACK;

    #[test]
    fn the_shortest_round_trip_of_a_round_moves_the_window_by_a_segment() {
        // 100 ms without a queue. 20 segments over 108, 115 and 130 ms: 1.5, 2.6 and 4.6 in the queue.
        for (shortest, expected) in [(108, 21.0), (115, 20.0), (130, 19.0)] {
            let base_rtt = Some(Span::from_millis(100));
            let mut vegas = Vegas { base_rtt, end: 20, ..Vegas::default() };
            let start = Window { cwnd: 20.0, ssthresh: 10.0 };
            let mut window = start;
            for number in 1..=21 {
                assert_eq!(window, start);
                let rtt = Some(Span::from_millis(shortest + if number == 7 { 0 } else { 50 }));
                vegas.on_ack(&mut window, &Ack { number, last_sent: 40, rtt, ..ACK });
            }
            assert_eq!(window, Window { cwnd: expected, ssthresh: 10.0 }, "{shortest} ms");
        }
    }

    #[test]
    fn slow_start_doubles_in_every_other_round_and_ends_with_a_segment_in_the_queue() {
        let mut vegas = Vegas::default();
        let (mut window, mut windows) = (Window { cwnd: 4.0, ssthresh: f64::INFINITY }, Vec::new());
        for round in 1..=6 {
            for ack in 0..4 {
                let (number, last_sent) = (4 * round + ack - 3, 4 * round);
                let rtt = Some(Span::from_millis(if round < 6 { 100 } else { 110 }));
                let acked = window.cwnd / 4.0;
                vegas.on_ack(&mut window, &Ack { acked, number, last_sent, rtt, ..ACK });
                assert!(window.ssthresh.is_infinite(), "ended in round {round}");
            }
            windows.push(window.cwnd);
        }
        // The ACK that begins a round belongs to the one before: three of four increase the window, by a
        // quarter each.
        let grown = 1.25_f64.powi(3);
        let expected = [1, 1, 2, 2, 3, 3].map(|times| 4.0 * grown.powi(times));
        assert!(windows.iter().zip(expected).all(|(w, e)| (w - e).abs() < 1e-9), "{windows:?}");
        // The ACK after the sixth round: 10 of 110 ms are queueing delay.
        let cwnd = window.cwnd;
        let rtt = Some(Span::from_millis(110));
        vegas.on_ack(&mut window, &Ack { number: 25, last_sent: 30, rtt, ..ACK });
        let Window { cwnd: end, ssthresh } = window;
        assert!((end - (cwnd / 1.1 + 1.0)).abs() < 1e-9 && ssthresh == end, "{cwnd} to {end}");
    }
}
