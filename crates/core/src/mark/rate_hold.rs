//! Rate hold: the tickets of a flow whose application wants a rate, within a budget.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, section III-E: "this
//! permits an application to adjust its ticket share in an effort to maintain a certain transmission speed".
//! The paper has no controller. Here T, the tickets issued to the flow, follows its rate r and its target R:
//!
//! ```text
//! dT/dt = T / (5 W) (R - r) / max(R, r),   issue / bound <= T <= issue bound
//! ```
//!
//! *Stability.* The rate of a flow is C T/(T + O), with O the tickets of the others, so that
//! d ln r / d ln T = 1 - T/(T + O): the gain of the loop is at most one for any number of flows and any
//! currency. r is an average over W, which TCP follows in seconds. With 5 W the integral is slower than both,
//! and the loop is damped: at gain one, W s (1 + W s) has a double root at an integral time of 4 W.
//! Controllers that share a link see each other as a change of O. They settle if the link carries all
//! targets. If it does not, all T rise to their bounds, and the bounds divide the link.
//!
//! *Inflation.* A flow gains at most the factor `bound`. Behind an exchange it gains from the flows of its own
//! currency only: the link is issued the same, however many tickets its flows write.
//!
//! A flow on an idle link exceeds its target, and T falls to the lower bound: it pays no more than it needs. When
//! load returns, T rises by at most a factor of e in 5 W, and a twentieth is missing after four times that.
//!
//! Cost: O(1) per packet, two divisions; 40 bytes per flow that holds a rate.

use crate::units::{Rate, Span, TicketRate, Time};

/// The integral time, as a multiple of the window of the rate. Chosen: a fourth above critical damping.
const SLOWNESS: f64 = 5.0;

/// The tickets of a flow that holds a rate.
#[derive(Clone, Debug)]
pub struct RateHold {
    /// R, in bits per second.
    target: f64,
    bound: f64,
    /// The window of the rate, W, in seconds.
    window: f64,
    /// The tickets issued, the middle of the bounds.
    budget: f64,
    /// T.
    tickets: f64,
    last: Time,
}

impl RateHold {
    /// A controller that holds `target` with `issued / bound` to `issued × bound` tickets, for a rate that is an
    /// average over `window`.
    #[must_use]
    pub fn new(target: Rate, bound: f64, window: Span, issued: TicketRate, start: Time) -> Self {
        let issued = issued.get();
        Self {
            target: target.as_bit() as f64,
            bound,
            window: window.as_secs_f64(),
            budget: issued,
            tickets: issued,
            last: start,
        }
    }

    /// Sets the tickets issued, which move T and its bounds in proportion.
    pub fn issue(&mut self, issued: TicketRate) {
        let relative = if self.budget > 0.0 { self.tickets / self.budget } else { 1.0 };
        self.budget = issued.get();
        self.tickets = self.budget * relative;
    }

    /// T at `now` of a flow with `rate` bits per second.
    pub fn tickets(&mut self, now: Time, rate: f64) -> TicketRate {
        // A flow that has sent nothing for longer wants nothing.
        let gap = now.since(self.last).as_secs_f64().min(self.window);
        self.last = now;
        let error = (self.target - rate) / self.target.max(rate).max(1.0);
        let step = gap / (SLOWNESS * self.window.max(f64::MIN_POSITIVE));
        let (least, most) = (self.budget / self.bound, self.budget * self.bound);
        self.tickets = (self.tickets * (1.0 + step * error)).clamp(least, most);
        TicketRate::new(self.tickets).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const WINDOW: Span = Span::from_secs(2);

    fn hold(target: u64, bound: f64) -> RateHold {
        let issued = TicketRate::new(1_000.0).unwrap();
        RateHold::new(Rate::from_mbit(target), bound, WINDOW, issued, Time::ZERO)
    }

    /// Flows with these targets in Mb/s, and `others` tickets, on a link of 10 Mb/s, where the averages of
    /// rates lag by the window. Returns the tickets and the rates in Mb/s of each second.
    fn fluid(targets: &[u64], bound: f64, others: impl Fn(u64) -> f64) -> Vec<Vec<(f64, f64)>> {
        let mut flows: Vec<_> = targets.iter().map(|&target| (hold(target, bound), 0.0, 1_000.0)).collect();
        let mut seconds = Vec::new();
        for tick in 1..=30_000_u64 {
            let all = others(tick / 100) + flows.iter().map(|flow| flow.2).sum::<f64>();
            for (hold, average, tickets) in &mut flows {
                *average += (1e7 * *tickets / all - *average) * 0.01 / 2.0;
                *tickets = hold.tickets(Time::from_millis(10 * tick), *average).get();
            }
            if tick % 100 == 0 {
                seconds.push(flows.iter().map(|flow| (flow.2, 10.0 * flow.2 / all)).collect());
            }
        }
        seconds
    }

    #[test]
    fn the_rate_is_held_when_the_load_doubles() {
        // 5 of 10 Mb/s beside 1000 and from 100 s on 2000 tickets: T = 1000 and 2000.
        let seconds = fluid(&[5], 4.0, |second| if second < 100 { 1_000.0 } else { 2_000.0 });
        for (second, flows) in seconds.iter().enumerate() {
            let (tickets, rate) = flows[0];
            // At the start the average knows nothing. At 100 s a third is lost at once, and four integral times later a
            // twentieth.
            let near = match second {
                0..30 => 0.45,
                99..140 => 1.7,
                _ => 0.25,
            };
            assert!((rate - 5.0).abs() <= near, "{second} s: {rate} Mb/s with {tickets}");
            // Damped: no overshoot.
            assert!(second < 99 || rate < 5.01, "{second} s: {rate} Mb/s");
        }
        assert!((seconds[299][0].0 - 2_000.0).abs() < 10.0);
    }

    #[test]
    fn several_controllers_settle_within_their_bounds() {
        for (targets, rates) in [
            // 1000 tickets of others carry the rest.
            (&[2, 3, 4][..], &[2.0, 3.0, 4.0][..]),
            // 16 Mb/s of 10: all have 4000 tickets of 13,000.
            (&[5, 5, 6], &[10.0 * 4.0 / 13.0; 3]),
            (&[20], &[8.0]),
        ] {
            let seconds = fluid(targets, if targets == [2, 3, 4] { 16.0 } else { 4.0 }, |_| 1_000.0);
            for flows in &seconds[200..] {
                for ((_, rate), wanted) in flows.iter().zip(rates) {
                    assert!((rate - wanted).abs() < 0.05 * wanted, "{targets:?}: {flows:?}");
                }
            }
        }
    }

    #[test]
    fn an_idle_link_costs_the_least_and_a_silent_flow_gains_nothing() {
        let seconds = fluid(&[5], 4.0, |_| 0.0);
        assert_eq!(seconds[299][0].0, 250.0);
        let mut hold = hold(5, 4.0);
        // An hour of silence counts as a window: a factor of 1 + 1/5.
        assert_eq!(hold.tickets(Time::from_secs(3_600), 0.0).get(), 1_200.0);
        hold.issue(TicketRate::new(500.0).unwrap());
        assert_eq!(hold.tickets(Time::from_secs(3_600), 0.0).get(), 600.0);
        assert_eq!(
            (0..99).map(|s| hold.tickets(Time::from_secs(3_600 + s), 0.0).get()).last(),
            Some(2_000.0)
        );
    }
}
