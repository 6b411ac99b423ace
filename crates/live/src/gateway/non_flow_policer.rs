//! A policer of frames that belong to no flow, for example ARP, while the gateway is overloaded.
//!
//! The gateway then sheds packets of flows that are not established. A frame without a flow does not show
//! whether a host waits for it, and hosts need some. A fixed number a second therefore pass from all senders
//! together, and a flood of such frames costs established flows no more than these.
//!
//! Source: the virtual scheduling algorithm of ITU-T I.371 (the generic cell rate algorithm). Cost: O(1) for
//! each frame.

use apportion_core::units::{Span, Time};

/// Interval of frames that pass. Chosen: a thousand a second suffice for hundreds of hosts that look for each
/// other after an outage, and are less than a hundredth of what one core moves.
const EVERY: Span = Span::from_millis(1);
/// Maximum time by which frames may be ahead of the interval. Chosen: a hundred frames at once.
const AHEAD: Span = Span::from_millis(100);

/// The policer of one direction.
#[derive(Clone, Copy, Debug, Default)]
pub struct NonFlowPolicer {
    /// Time at which all frames so far would have come one by one.
    due: Time,
}

impl NonFlowPolicer {
    /// Whether a frame at `now` passes. If so, it counts.
    pub fn admits(&mut self, now: Time) -> bool {
        if self.due.since(now) >= AHEAD {
            return false;
        }
        self.due = self.due.max(now) + EVERY;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_a_hundred_passes_and_a_thousand_a_second() {
        let mut policer = NonFlowPolicer::default();
        let mut passed = |from: u64, every| {
            (0..10_000)
                .filter(|at| policer.admits(Time::from_secs(from) + Span::from_micros(every) * *at))
                .count()
        };
        // All at once; ten a millisecond; one in two milliseconds.
        assert_eq!(
            [(0, 0), (10, 100), (20, 2_000)].map(|(from, every)| passed(from, every)),
            [100, 1_100, 10_000]
        );
    }
}
