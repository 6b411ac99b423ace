//! Reno's window: slow start, congestion avoidance, and half of the window after a loss.
//!
//! RFC 5681 section 3.1; ns-2 if a profile says so. Tahoe, NewReno and SACK use it too: they differ in loss
//! recovery. Cost: O(1) per ACK, no state.

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Response, Window};

/// Reno's control.
#[derive(Clone, Copy, Debug)]
pub struct Reno;

impl Reno {
    /// All of [`on_ack`](CongestionControl::on_ack) for an ACK with which the window may grow. The classical
    /// recoveries call it directly, and compute nothing else of the ACK.
    #[inline(always)]
    pub fn grow(&mut self, window: &mut Window, counted: f64, abc_limit: Option<u32>) {
        window.grow_as_reno(counted, abc_limit);
    }
}

impl CongestionControl for Reno {
    #[inline(always)]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        if ack.may_grow {
            self.grow(window, ack.counted, ack.abc_limit);
        }
    }

    fn on_loss(&mut self, _: &mut Window, event: &CongestionEvent) -> Response {
        Response::Reduce(event.basis / 2.0)
    }

    fn observes_segments(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::ACK;

    #[test]
    fn an_ack_of_two_segments_grows_by_acks_or_by_bytes() {
        // ns-2, and RFC 5681 with L = 1.
        for (counted, abc_limit, slow_start, avoidance) in [(1.0, None, 5.0, 10.1), (2.0, Some(1), 5.0, 10.2)]
        {
            for (before, after) in [(4.0, slow_start), (10.0, avoidance)] {
                let mut window = Window { cwnd: before, ssthresh: 10.0 };
                Reno.on_ack(&mut window, &Ack { counted, abc_limit, ..ACK });
                assert_eq!(window.cwnd, after, "{counted}");
            }
        }
    }
}
