//! The rate that flows have reserved on a link, from what their packets carry: no state per flow.
//!
//! Stoica, Zhang, "Providing guaranteed services without per flow management", SIGCOMM 1999, admission control. The
//! text could not be had: the rules are those known from later descriptions, and the proof below is ours.
//!
//! The edge writes on each packet of a flow with the reserved rate r the bits b that the flow could have sent since its
//! packet before: r times the time between both. The router adds up b over a window T_W:
//!
//! ```text
//! R_cal   = sum of b / (T_W (1 - f)) + what it has admitted in this window     f = (T_I + T_J) / T_W
//! R_bound <- min(R_bound, R_cal)         at the end of a window
//! R_bound <- R_bound + r                 for a request that is admitted: R_bound + r <= C
//! ```
//!
//! T_I is the longest time between two packets of a flow at the edge, which sends empty ones if needed. T_J is the
//! difference between the longest and the shortest delay from there.
//!
//! *R_bound is never below what is reserved.* Let a flow have been admitted before the window (t - T_W, t]. Its last
//! packet before the window left the edge at t - T_W - D or earlier, with D the shortest delay. The next one after the
//! window left later than t - D - T_J, so the last one in the window left later than t - D - T_J - T_I. The packets in the
//! window thus carry at least r (T_W - T_I - T_J). The others were admitted in this window. In the same way a flow
//! carries at most r (T_W + T_I + T_J), so R_cal is at most (1 + f) / (1 - f) times what the flows of the window have
//! reserved, and what was admitted in it.
//!
//! Readings:
//! - The request counts as the first packet of its flow: it takes the same path, and the first b begins with it.
//! - The end of a flow is not announced. What it reserved is free after the first window without it.
//! - Packets with b must not be lost before the router, which guaranteed packets are not.
//!
//! Cost: O(1) per packet, 64 bytes. No discipline of this crate uses it: scenarios give guarantees, whose sum is
//! compared with the links before the run. [`Reserved`] is for disciplines outside of it.

use crate::units::{Rate, Span, Time};

/// An upper bound of the reserved rate, and the admission of more.
#[derive(Clone, Debug)]
pub struct Reserved {
    capacity: f64,
    window: Span,
    /// T_W (1 - f), in seconds.
    covered: f64,
    /// The end of the window.
    end: Time,
    /// The sum of b in the window.
    carried: f64,
    /// What was admitted in the window.
    admitted: f64,
    bound: f64,
}

impl Reserved {
    /// Nothing is reserved on a link of `capacity` at time zero. None unless `window`, T_W, is longer than `gap`, T_I,
    /// and `jitter`, T_J, together.
    #[must_use]
    pub fn new(capacity: Rate, window: Span, gap: Span, jitter: Span) -> Option<Self> {
        let covered = window.as_secs_f64() - gap.as_secs_f64() - jitter.as_secs_f64();
        (covered > 0.0).then_some(Self {
            capacity: capacity.as_bit() as f64,
            window,
            covered,
            end: Time::ZERO + window,
            carried: 0.0,
            admitted: 0.0,
            bound: 0.0,
        })
    }

    /// A packet that carries `bits`, its b, arrives. `now` never decreases.
    pub fn arrived(&mut self, now: Time, bits: f64) {
        self.turn(now);
        self.carried += bits;
    }

    /// A flow requests `rate`. Returns whether it is admitted.
    pub fn request(&mut self, now: Time, rate: Rate) -> bool {
        self.turn(now);
        let rate = rate.as_bit() as f64;
        let fits = self.bound + rate <= self.capacity;
        if fits {
            self.bound += rate;
            self.admitted += rate;
        }
        fits
    }

    /// R_bound at `now`, in bits a second.
    pub fn bound(&mut self, now: Time) -> f64 {
        self.turn(now);
        self.bound
    }

    /// Ends the window, and others in which nothing arrived.
    fn turn(&mut self, now: Time) {
        // Terminates: the second pass jumps to the window of `now`.
        while now >= self.end {
            self.bound = self.bound.min(self.carried / self.covered + self.admitted);
            (self.carried, self.admitted) = (0.0, 0.0);
            let late = now.since(self.end).as_nanos() / self.window.as_nanos().max(1);
            let whole = if self.bound > 0.0 { 1 } else { late + 1 };
            self.end += self.window * whole;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;
    use std::vec::Vec;

    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    const MS: u64 = 1_000_000;

    fn reserved(window: u64, gap: u64, jitter: u64) -> Option<Reserved> {
        Reserved::new(
            Rate::from_mbit(10),
            Span::from_millis(window),
            Span::from_millis(gap),
            Span::from_millis(jitter),
        )
    }

    #[test]
    fn a_request_is_admitted_while_it_fits() {
        let mut link = reserved(100, 8, 2).unwrap();
        let request =
            |link: &mut Reserved, ms, mbit| link.request(Time::from_millis(ms), Rate::from_mbit(mbit));
        assert!(request(&mut link, 0, 6) && !request(&mut link, 1, 5) && request(&mut link, 2, 4));
        // The flow of 6 Mb/s carries 540,000 bits in the window, which are 6 Mb/s over 90 ms; the other ended, but
        // was admitted in this window.
        link.arrived(Time::from_millis(99), 540_000.0);
        assert_eq!(link.bound(Time::from_millis(100)), 10e6);
        link.arrived(Time::from_millis(199), 540_000.0);
        assert_eq!(link.bound(Time::from_millis(200)), 6e6);
        // A window with nothing frees all, and the windows behind it end at once.
        assert_eq!(link.bound(Time::from_secs(9)), 0.0);
        assert!(request(&mut link, 9_000, 10));
    }

    #[test]
    fn a_window_that_gap_and_jitter_fill_is_refused() {
        assert!(reserved(10, 8, 2).is_none() && reserved(11, 8, 2).is_some());
    }

    /// A flow: request, end, rate, and gaps and delays of its packets.
    type Flow = (u64, u64, u64, Vec<(u64, u64)>);

    /// Arrivals at the router, in nanoseconds: a request with its rate, or a packet with its b.
    fn arrivals(flows: &[Flow], gap: u64, jitter: u64) -> Vec<(u64, usize, Option<f64>)> {
        let mut all = Vec::new();
        for (index, (begin, length, rate, packets)) in flows.iter().enumerate() {
            let mut packets = packets.iter().cycle();
            let (mut sent, mut came) = (*begin, *begin + 5 * MS + packets.next().unwrap().1 % (jitter + 1));
            all.push((came, index, None));
            while sent < begin + length {
                let &(wait, delay) = packets.next().unwrap();
                let wait = (wait % (gap + 1)).max(MS);
                sent += wait;
                // Packets of a flow keep their order.
                came = came.max(sent + 5 * MS + delay % (jitter + 1));
                all.push((came, index, Some((*rate * wait) as f64 * 1e-6)));
            }
        }
        all.sort_by_key(|arrival| (arrival.0, arrival.1));
        all
    }

    proptest! {
        #![proptest_config(cases(100))]

        /// Flows of 1 kb/s to 6 Mb/s that come and go; a flow whose request is refused sends nothing.
        #[test]
        fn the_bound_is_never_below_what_is_reserved(
            flows in prop::collection::vec((
                0..3_000 * MS, MS..2_000 * MS, 1u64..6_000, prop::collection::vec((0..MS * 100, 0..MS * 100), 2..30),
            ), 1..20),
            (window, gap, jitter) in (50u64..600, 1u64..30, 0u64..20),
        ) {
            let mut link = reserved(window, gap, jitter).unwrap();
            let mut active: Vec<Option<u64>> = vec![None; flows.len()];
            let all = arrivals(&flows, gap * MS, jitter * MS);
            let last: Vec<_> = (0..flows.len()).map(|index| all.iter().rposition(|arrival| arrival.1 == index)).collect();
            let f = (gap + jitter) as f64 / window as f64;
            // When each flow was admitted, and when it was heard last.
            let [mut asked, mut heard]: [Vec<Option<u64>>; 2] = [vec![None; flows.len()], vec![None; flows.len()]];
            for (i, &(at, index, bits)) in all.iter().enumerate() {
                let now = Time::from_nanos(at);
                match bits {
                    None => {
                        let admitted = link.request(now, Rate::from_kbit(flows[index].2));
                        active[index] = admitted.then_some(flows[index].2 * 1_000);
                        asked[index] = admitted.then_some(at);
                    }
                    Some(bits) if active[index].is_some() => {
                        link.arrived(now, bits);
                        heard[index] = Some(at);
                    }
                    Some(_) => continue,
                }
                let sum: u64 = active.iter().flatten().sum();
                let bound = link.bound(now);
                prop_assert!(bound >= sum as f64 * (1.0 - 1e-9), "{bound} < {sum}");
                let in_two_windows = |times: &[Option<u64>]| {
                    let counts = |index: &usize| times[*index].is_some_and(|then| then + 2 * window * MS > at);
                    (0..flows.len()).filter(counts).map(|index| flows[index].2 * 1_000).sum::<u64>() as f64
                };
                let most = in_two_windows(&heard) * (1.0 + f) / (1.0 - f) + in_two_windows(&asked);
                prop_assert!(bound <= most + 1e-6, "{bound} > {most}");
                if last[index] == Some(i) {
                    active[index] = None;
                }
            }
        }
    }
}
