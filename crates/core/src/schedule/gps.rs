//! GPS, generalised processor sharing: the fluid that WFQ and WF2Q follow.
//!
//! Parekh, Gallager, "A generalized processor sharing approach to flow control in integrated services networks:
//! the single-node case", IEEE/ACM ToN 1(3), 1993, section III. A fluid serves all backlogged flows at once by
//! weight. Virtual time V rises by the service given over the sum of the weights of the flows that the fluid has
//! backlogged (eq. 10). A flow leaves this set when V reaches the finish F of its last packet.
//!
//! **Service, not time.** In the paper V rises with time at the rate of the link. Here the caller says what has
//! been served, which is the same while the link sends at its rate. On a link whose rate varies the fluid thus
//! has the rate of the link, whatever it is.
//!
//! **Drops.** The paper has none. The fluid loses the work of a packet that is pushed out. What it had already
//! served of this packet goes to the flows that it has backlogged then. The work that the fluid holds is
//! therefore always the work that the link has left, and both are idle at the same time, however many packets
//! are dropped. Otherwise each such packet would delay V for good, and flows that come later would be served
//! before their time.
//!
//! **Numbers.** The unit of work is a unit of virtual time (`tags.rs`) times a share (2^16 is the smallest
//! weight). What is left of a division is kept for the next one, so that no work is lost.

use crate::smallest::Smallest;

/// The fluid.
#[derive(Clone, Debug)]
pub(super) struct Gps {
    /// Virtual time.
    v: u64,
    /// F of the last packet of each flow that the fluid has backlogged. All are above V.
    finishes: Smallest,
    /// The sum of these flows' shares.
    shares: u64,
    /// The service that has not raised V yet, less than `shares`.
    rest: u128,
}

impl Gps {
    pub fn new() -> Self {
        Self { v: 0, finishes: Smallest::new(), shares: 0, rest: 0 }
    }

    /// Virtual time.
    pub const fn v(&self) -> u64 {
        self.v
    }

    /// Adds a packet of flow `index`, of `length` in virtual time.
    pub fn arrive(&mut self, index: usize, length: u64, share: u64) {
        let start = self.finishes.key(index).unwrap_or_else(|| {
            self.shares += share;
            self.v
        });
        self.finishes.set(index, start.saturating_add(length).min(u64::MAX - 1));
    }

    /// Serves `work`. `share` returns the shares of flows.
    pub fn serve(&mut self, work: u128, mut share: impl FnMut(usize) -> u64) {
        let mut left = work + self.rest;
        // Terminates: each pass removes a flow.
        while let Some((finish, index)) = self.finishes.first() {
            let shares = u128::from(self.shares);
            let until_finish = u128::from(finish - self.v) * shares;
            if left < until_finish {
                self.v += (left / shares) as u64;
                self.rest = left % shares;
                return;
            }
            left -= until_finish;
            self.v = finish;
            self.finishes.remove(index);
            self.shares -= share(index);
        }
        self.rest = 0;
    }

    /// Removes the work of a packet of flow `index` that was pushed out.
    pub fn withdraw(&mut self, index: usize, length: u64, mut share: impl FnMut(usize) -> u64) {
        let own = share(index);
        let waiting = self.finishes.key(index).map_or(0, |finish| finish - self.v);
        if waiting > length {
            return self.finishes.set(index, self.v + waiting - length);
        }
        if waiting > 0 {
            self.finishes.remove(index);
            self.shares -= own;
        }
        self.serve(u128::from(length - waiting) * u128::from(own), share);
    }

    /// Changes the share of flow `index`, whose work stays.
    pub fn reweigh(&mut self, index: usize, before: u64, after: u64) {
        let Some(finish) = self.finishes.key(index) else { return };
        self.shares = self.shares - before + after;
        let waiting = u128::from(finish - self.v) * u128::from(before) / u128::from(after.max(1));
        let waiting = u64::try_from(waiting).unwrap_or(u64::MAX).clamp(1, 1 << 62);
        self.finishes.set(index, self.v + waiting);
    }

    /// The link is idle: no flow owes work, and V is at least `latest`.
    pub fn idle(&mut self, latest: u64) {
        self.v = self.v.max(latest);
        if self.finishes.first().is_some() {
            self.finishes.clear();
        }
        (self.shares, self.rest) = (0, 0);
    }

    /// Reduces all numbers.
    pub fn rebase(&mut self, by: u64) {
        self.v -= by;
        self.finishes.shift(by);
    }
}

#[cfg(test)]
impl Gps {
    /// The work that the fluid holds, for weights that are multiples of the smallest.
    pub fn work(&self, weight: impl Fn(usize) -> u64) -> u128 {
        let of = |index| {
            self.finishes.key(index).map_or(0, |finish| u128::from((finish - self.v) * weight(index)) << 16)
        };
        (0..64).map(of).sum::<u128>() - self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: u64 = 1 << 16;

    /// The work of `length` at the smallest weight.
    fn work(length: u64) -> u128 {
        u128::from(length) * u128::from(ONE)
    }

    #[test]
    fn virtual_time_rises_faster_when_a_flow_leaves() {
        let mut gps = Gps::new();
        gps.arrive(0, 100, ONE);
        gps.arrive(1, 300, ONE);
        // Two flows until V = 100, after 200 of service; then one.
        gps.serve(work(100), |_| ONE);
        assert_eq!(gps.v(), 50);
        gps.serve(work(150), |_| ONE);
        assert_eq!(gps.v(), 150);
        // Flow 0 begins anew at V, and shares with flow 1 again.
        gps.arrive(0, 100, ONE);
        gps.serve(work(100), |_| ONE);
        assert_eq!((gps.v(), gps.finishes.key(0), gps.finishes.key(1)), (200, Some(250), Some(300)));
    }

    #[test]
    fn what_a_division_leaves_is_not_lost() {
        let mut gps = Gps::new();
        (0..3).for_each(|flow| gps.arrive(flow, 1_000_000, ONE));
        // A unit of work at a time: V rises by one after 3 * 2^16 of them.
        (0..3 * ONE - 1).for_each(|_| gps.serve(1, |_| ONE));
        assert_eq!(gps.v(), 0);
        gps.serve(1, |_| ONE);
        assert_eq!(gps.v(), 1);
    }

    #[test]
    fn service_of_a_dropped_packet_goes_to_the_others() {
        let mut gps = Gps::new();
        gps.arrive(0, 100, ONE);
        gps.arrive(1, 500, ONE);
        gps.serve(work(80), |_| ONE);
        // 40 of the packet of flow 0 have been served, 60 have not: flow 1 gets the 40.
        gps.withdraw(0, 100, |_| ONE);
        assert_eq!((gps.v(), gps.shares, gps.finishes.key(0)), (80, ONE, None));
        // A packet that the fluid has not begun leaves no trace.
        gps.arrive(1, 70, ONE);
        gps.withdraw(1, 70, |_| ONE);
        assert_eq!((gps.v(), gps.finishes.key(1)), (80, Some(500)));
    }

    #[test]
    fn a_weight_that_changes_keeps_the_work() {
        let mut gps = Gps::new();
        gps.arrive(0, 100, ONE);
        gps.arrive(1, 100, ONE);
        gps.serve(work(100), |_| ONE);
        gps.reweigh(0, ONE, 4 * ONE);
        gps.reweigh(2, ONE, 4 * ONE);
        assert_eq!((gps.finishes.key(0), gps.finishes.key(1), gps.shares), (Some(62), Some(100), 5 * ONE));
    }
}
