//! DCTCP: a mark cuts the window by half of the recent share of marked bytes.
//!
//! RFC 8257 sections 3.3 and 3.4; Alizadeh et al., "Data center TCP (DCTCP)", SIGCOMM 2010. The receiver's
//! echo is in [`receiver`](crate::tcp::receiver) (section 3.2), and the threshold belongs to the queue.
//! Losses and slow start are Reno's. As in Linux, a mark lowers the window over a round trip
//! ([`prr`](crate::tcp::prr)), where section 3.3 and the paper lower it at once: until then the queue is
//! above its threshold, and a second window is marked. The window does not grow until the data outstanding at
//! the mark is acknowledged. It has whole segments, as in Linux (docs/parity.md has a trace): a small one is
//! cut by less than half of the share, or not at all. All packets are ECN-capable, including SYNs, ACKs and
//! retransmissions. Cost: O(1) per ACK; 32 bytes per connection.

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Feedback, Response, Window};

use super::reno::Reno;

/// RFC 8257 section 4.2: g, the weight of the last window in the estimate, is 1/16 in some implementations.
const G: f64 = 1.0 / 16.0;

/// The share of marked bytes. Names as in RFC 8257 section 3.3, without their prefix.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    alpha: f64,
    window_end: u64,
    bytes_acked: u64,
    bytes_marked: u64,
}

impl CongestionControl for Dctcp {
    /// Either all bytes of an ACK are marked, or none.
    fn on_feedback(&mut self, ack: &Feedback) {
        self.bytes_acked += ack.bytes;
        self.bytes_marked += if ack.marked > 0 { ack.bytes } else { 0 };
        if ack.number <= self.window_end || self.bytes_acked == 0 {
            return;
        }
        // Steps 5 to 8.
        let share = self.bytes_marked as f64 / self.bytes_acked as f64;
        self.alpha = self.alpha * (1.0 - G) + G * share;
        *self = Self { window_end: ack.last_sent, bytes_acked: 0, bytes_marked: 0, ..*self };
    }

    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.slow_start {
            Reno.on_ack(window, ack);
        } else {
            window.cwnd = grow(window.cwnd, ack.acked);
        }
    }

    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        Reno.on_loss(window, event)
    }

    fn on_mark(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        Response::Reduce(self.leaves(window.cwnd.min(event.receive_window)))
    }
}

impl Default for Dctcp {
    /// RFC 8257 section 3.3: the initial Alpha is 1, so that the first mark halves the window.
    fn default() -> Self {
        Self { alpha: 1.0, window_end: 0, bytes_acked: 0, bytes_marked: 0 }
    }
}

impl Dctcp {
    /// The estimate of the share of marked bytes, 0 to 1.
    #[must_use]
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// The window after a mark at `cwnd` segments (step 9). Whole segments are subtracted.
    fn leaves(&self, cwnd: f64) -> f64 {
        let whole = cwnd.floor();
        whole - (whole * self.alpha / 2.0).floor()
    }
}

/// The window in congestion avoidance after an ACK of `acked` segments: one more for each window acknowledged
/// (RFC 5681 section 3.1, its recommended way). Equation (3) there lets a window of four wait for half a
/// segment more.
fn grow(cwnd: f64, acked: f64) -> f64 {
    let whole = cwnd.floor();
    let count = ((cwnd - whole) * whole).round() + acked;
    let more = (count / whole).floor();
    let grown = whole + more;
    grown + (count - more * whole) / grown
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Time;

    use super::*;

    fn ack(dctcp: &mut Dctcp, number: u64, bytes: u64, marked: bool, last_sent: u64) {
        let (now, marked, one_way_delay) = (Time::ZERO, u32::from(marked), None);
        let counts_marks = false;
        dctcp.on_feedback(&Feedback {
            now,
            number,
            last_sent,
            bytes,
            segments: 1,
            marked,
            counts_marks,
            one_way_delay,
        });
    }

    #[test]
    fn the_share_of_marks_is_smoothed_once_a_window() {
        let mut dctcp = Dctcp::default();
        assert_eq!(dctcp.leaves(10.0), 5.0);
        // The first ACK ends the window before the first: 15/16. The next window ends beyond 1,100.
        ack(&mut dctcp, 100, 100, false, 1_100);
        assert_eq!(dctcp.alpha, 0.9375);
        for n in 2..=11 {
            ack(&mut dctcp, 100 * n, 100, n % 2 == 0, 2_000);
        }
        assert_eq!(dctcp.alpha, 0.9375);
        // ACK 12 ends it: 6 of 11 were marked, 15/16 · 15/16 + 6/11 / 16.
        ack(&mut dctcp, 1_200, 100, true, 2_000);
        assert!((dctcp.alpha - (0.878_906_25 + 6.0 / 176.0)).abs() < 1e-12);
    }

    #[test]
    fn a_mark_takes_whole_segments() {
        let dctcp = Dctcp { alpha: 0.49, ..Dctcp::default() };
        // Reductions of 0.98, 1.225 and 11.27 segments.
        assert_eq!((dctcp.leaves(4.9), dctcp.leaves(5.0), dctcp.leaves(46.5)), (4.0, 4.0, 35.0));
    }

    #[test]
    fn a_window_grows_by_one_segment_for_each_window_acknowledged() {
        for whole in 2..100 {
            let mut cwnd = f64::from(whole);
            for _ in 1..whole {
                cwnd = grow(cwnd, 1.0);
                assert_eq!(cwnd.floor(), f64::from(whole), "{whole}");
            }
            assert_eq!(grow(cwnd, 1.0), f64::from(whole + 1));
        }
        // Segments beyond a window count for the next.
        assert_eq!(grow(4.75, 2.0), 5.2);
    }
}
