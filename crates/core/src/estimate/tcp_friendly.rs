//! Whether a flow sends no more than TCP would with its losses; a flow that sends more is unresponsive.
//!
//! Floyd, Fall, "Promoting the use of end-to-end congestion control in the Internet", 1999, section 4.1: over
//! a round trip R, with a loss event for each 1/p packets, Reno sends at most sqrt(3/2) / (R sqrt(p)) packets
//! per second. All losses within a round trip are one event, as TCP reduces its window once for them (RFC
//! 5348 section 5.2). CUBIC sends 1.054 / (R^(1/4) p^(3/4)) if that is more (RFC 9438 section 5.1, with its C
//! and β). Real senders are slower, all the more at high losses.
//!
//! A flow is judged over periods of ten round trips and at least a second. Three contrary periods in a row
//! change the verdict, as the windows of CUBIC take longer than a period to grow again. R is the round trip
//! without queues, so the test is lenient. A flow with losses in each round trip is detected from six packets
//! per round trip on.
//!
//! Limits: several connections that form one flow here may fail the test. A flow without losses always
//! passes.
//!
//! Cost: O(1) per packet, a root and two powers per period; 40 bytes per flow.

use crate::units::{Span, Time};

/// Round trips in a period: the window of a TCP with few losses is halved and grows again. Floyd and Fall ask
/// for several.
const ROUND_TRIPS: u64 = 10;
/// The shortest period: enough packets of a flow of 100 kb/s.
const SHORTEST: Span = Span::from_secs(1);
/// The tolerated ratio of the sending rate to the laws. Chosen: the laws' own error for single flows is
/// smaller, and floods exceed it by tens.
const LENIENCY: f64 = 2.0;
/// The contrary periods in a row that change the verdict.
const PERIODS: u8 = 3;

/// The state of a flow.
#[derive(Clone, Copy, Debug)]
pub struct TcpFriendly {
    /// The start of the period.
    since: Time,
    /// The packets that arrived in the period.
    packets: u32,
    /// The loss events in the period.
    events: u32,
    /// The end of the last loss event; a later loss starts a new one.
    event_ends: Time,
    /// The contrary periods in a row.
    contrary: u8,
    is_friendly: bool,
}

impl TcpFriendly {
    /// A flow first seen at `now`, without packets: it is assumed to be friendly.
    #[must_use]
    pub const fn new(now: Time) -> Self {
        Self { since: now, packets: 0, events: 0, event_ends: now, contrary: 0, is_friendly: true }
    }

    /// Counts a packet that arrives at `now`, with a round trip of `rtt` without queues.
    #[inline]
    pub fn arrived(&mut self, now: Time, rtt: Span) {
        if now.since(self.since) >= SHORTEST.max(rtt * ROUND_TRIPS) {
            self.judge(now, rtt);
        }
        self.packets = self.packets.saturating_add(1);
    }

    /// Counts the drop of one of its packets at `now`.
    pub fn dropped(&mut self, now: Time, rtt: Span) {
        if now >= self.event_ends {
            self.events = self.events.saturating_add(1);
            self.event_ends = now + rtt;
        }
    }

    /// Whether the flow sends no more than TCP, as far as is known.
    #[must_use]
    pub const fn is_friendly(&self) -> bool {
        self.is_friendly
    }

    /// Ends the period.
    fn judge(&mut self, now: Time, rtt: Span) {
        let rate = f64::from(self.packets) / now.since(self.since).as_secs_f64();
        let p = f64::from(self.events) / f64::from(self.packets.max(1));
        let was_friendly = rate <= LENIENCY * rate_of_tcp(rtt.as_secs_f64(), p.min(1.0));
        self.contrary = if was_friendly == self.is_friendly { 0 } else { self.contrary + 1 };
        if self.contrary == PERIODS {
            (self.is_friendly, self.contrary) = (was_friendly, 0);
        }
        (self.since, self.packets, self.events) = (now, 0, 0);
    }
}

/// Packets per second of Reno or CUBIC, whichever is faster, over a round trip of `rtt` seconds with `p` loss events per
/// packet.
fn rate_of_tcp(rtt: f64, p: f64) -> f64 {
    let reno = libm::sqrt(1.5 / p) / rtt;
    let cubic = 1.054 / libm::pow(rtt, 0.25) / libm::pow(p, 0.75);
    reno.max(cubic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends `rate` packets per second for 60 s and drops a share `lost`, evenly; returns whether the flow is
    /// friendly at the end.
    fn is_friendly(rate: f64, lost: f64, rtt: Span) -> bool {
        let mut flow = TcpFriendly::new(Time::ZERO);
        let mut owed = 0.0;
        for packet in 0..(60.0 * rate) as u64 {
            let now = Time::ZERO + Span::from_secs_f64(packet as f64 / rate);
            flow.arrived(now, rtt);
            owed += lost;
            if owed >= 1.0 {
                owed -= 1.0;
                flow.dropped(now, rtt);
            }
        }
        flow.is_friendly()
    }

    #[test]
    fn the_laws_are_those_of_their_sources() {
        // Floyd and Fall 1999, section 4.1: 1.22 over the root of the loss, per round trip of 10 ms.
        assert!((rate_of_tcp(0.01, 0.01) - 1224.7).abs() < 0.1);
        // 1.054 (0.1 s / 0.0001)^(3/4) = 187 packets are faster than Reno's 122.
        let window = rate_of_tcp(0.1, 1e-4) * 0.1;
        assert!((window - 187.0).abs() < 1.0, "{window}");
    }

    #[test]
    fn who_sends_more_than_tcp_with_its_losses_is_not_friendly() {
        let long = Span::from_millis(250);
        // Reno over 250 ms at 1 %: 49 packets per second.
        assert!(is_friendly(49.0, 0.01, long));
        assert!(is_friendly(80.0, 0.01, long));
        assert!(!is_friendly(130.0, 0.01, long));
        // The same rate is TCP's over a short round trip.
        assert!(is_friendly(130.0, 0.01, Span::from_millis(8)));
        assert!(is_friendly(10_000.0, 0.0, long), "nothing is lost");
        // 250 packets per round trip, and one loss event each.
        assert!(!is_friendly(1000.0, 0.5, long));
        assert!(!is_friendly(1000.0, 0.02, long));
    }

    #[test]
    fn three_periods_in_a_row_change_what_is_known() {
        let rtt = Span::from_millis(10);
        let mut flow = TcpFriendly::new(Time::ZERO);
        // Periods of a second in which half of 2000 packets are dropped, or none; the packet after each
        // begins the next.
        let mut period = |second: u64, drops: bool| {
            for packet in 0..2000 {
                let now = Time::from_secs(second) + Span::from_micros(500 * packet);
                flow.arrived(now, rtt);
                if drops && packet % 2 == 1 {
                    flow.dropped(now, rtt);
                }
            }
            flow.arrived(Time::from_secs(second + 1), rtt);
            flow.is_friendly()
        };
        let seen = [true, true, false, true, true, true, false, false, false].map({
            let mut second = 0;
            move |drops| {
                second += 1;
                period(second, drops)
            }
        });
        assert_eq!(seen, [true, true, true, true, true, false, false, false, true]);
    }
}
