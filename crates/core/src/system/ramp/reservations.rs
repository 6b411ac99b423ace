//! RAMP's reservations: a budget for each flow, spent by earliest deadline first.
//!
//! Li, Walpole, McNamee, Pu, Steere 2001, sections 3.3 and 4: a reservation is a proportion and a period, and
//! the deadline is the end of the period (Liu, Layland 1973).
//!
//! - At 10 Mb/s a period of 0.1 ms is worth 125 B, less than a packet, so nothing can be enforced within it.
//!   A flow has a credit that grows each period. It may send while the credit is above zero, and a packet may
//!   take the credit below zero: the proportion holds over longer times.
//! - A packet's period begins when the flow has both credit and the packet; its deadline is the end of the
//!   period. With `period_control`, beyond the paper, the period of a flow is the time that its proportion
//!   needs for a full packet: faster flows have nearer deadlines, and no flow waits longer than its own rate
//!   requires.
//!
//! Cost: O(log flows) per packet, 64 bytes per flow.

use alloc::vec::Vec;

use crate::smallest::Smallest;
use crate::units::{Bytes, Rate, Span, Time};

/// The binary digits of a byte's fractions in credits, so that a period of a slow flow is not rounded to
/// zero.
const FINE: u32 = 24;

const fn fine(size: Bytes) -> i64 {
    // Packets and caps are far below 2^39 bytes.
    (size.get() as i64) << FINE
}

/// One reservation.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    /// The credit as of `settled`.
    credit: i64,
    /// The credit that a period adds.
    income: i64,
    /// The period up to which income is counted.
    settled: u64,
    /// The time from release to deadline, in periods.
    own: u64,
    backlogged: bool,
}

/// The reservations of all flows, by index.
#[derive(Clone, Debug)]
pub(super) struct Reservations {
    period: Span,
    packet: Bytes,
    period_control: bool,
    budgets: Vec<Budget>,
    /// Flows with packets and credit, by deadline.
    eligible: Smallest,
    /// Flows with packets but without credit, by the period in which they get it.
    waiting: Smallest,
    /// The current period, and the start of the next.
    current: u64,
    next: Time,
}

impl Reservations {
    /// No reservations. A silent flow saves credit for one `packet`, or for two periods if that is more.
    pub fn new(period: Span, packet: Bytes, period_control: bool) -> Self {
        Self {
            period,
            packet,
            period_control,
            budgets: Vec::new(),
            eligible: Smallest::new(),
            waiting: Smallest::new(),
            current: 0,
            next: Time::ZERO + period,
        }
    }

    /// Adds a reservation of zero.
    pub fn add(&mut self) {
        self.budgets.push(Budget { settled: self.current, own: 1, ..Budget::default() });
    }

    /// Sets the rate of `index`.
    pub fn set(&mut self, index: usize, rate: Rate) {
        self.settle(index);
        let bits = u128::from(rate.as_bit()) * u128::from(self.period.as_nanos());
        let income = (bits << FINE) / 8_000_000_000;
        let budget = &mut self.budgets[index];
        budget.income = i64::try_from(income).unwrap_or(i64::MAX / 4).min(i64::MAX / 4);
        budget.own = 1;
        if self.period_control && budget.income > 0 {
            budget.own = (fine(self.packet) as u64).div_ceil(budget.income as u64).max(1);
        }
        if budget.backlogged && !self.eligible.contains(index) {
            self.place(index, self.current);
        }
    }

    /// Sets the rate of `index` to zero. The flow has been silent for long: it has no debt, and has saved
    /// credit.
    pub fn rest(&mut self, index: usize) {
        self.set(index, Rate::ZERO);
        self.budgets[index].credit = fine(self.packet);
    }

    /// Notes whether the flow `index` has packets.
    pub fn set_backlogged(&mut self, index: usize, backlogged: bool) {
        self.settle(index);
        self.budgets[index].backlogged = backlogged;
        self.place(index, self.current);
    }

    /// Charges a packet of `size` to the flow `index`. `backlogged`: it has more packets.
    pub fn charge(&mut self, index: usize, size: Bytes, backlogged: bool) {
        self.settle(index);
        let budget = &mut self.budgets[index];
        budget.credit -= fine(size);
        budget.backlogged = backlogged;
        self.place(index, self.current);
    }

    /// Charges a packet of `size` that the budget of the flow `index` did not pay for. `backlogged`: it has
    /// more packets. A debt is limited to one packet: a flow that used spare capacity owes nothing for it.
    pub fn lend(&mut self, index: usize, size: Bytes, backlogged: bool) {
        self.settle(index);
        let deepest = self.budgets[index].credit.min(-fine(self.packet));
        self.charge(index, size, backlogged);
        self.budgets[index].credit = self.budgets[index].credit.max(deepest);
        self.place(index, self.current);
    }

    /// Advances time to `now`.
    pub fn advance(&mut self, now: Time) {
        if now >= self.next {
            self.current = now.as_nanos() / self.period.as_nanos();
            self.next = Time::ZERO + self.period * (self.current + 1);
        }
        while let Some((period, index)) = self.waiting.first()
            && period <= self.current
        {
            self.settle(index);
            // Credit and packet were available from `period` on, but a busy link did not ask then.
            self.place(index, period);
        }
    }

    /// The flow to serve next.
    pub fn next(&self) -> Option<usize> {
        self.eligible.first().map(|(_, index)| index)
    }

    /// The first flow that waits for credit.
    pub fn next_waiting(&self) -> Option<usize> {
        self.waiting.first().map(|(_, index)| index)
    }

    /// The time at which the first flow that waits for credit gets it.
    pub fn ready(&self) -> Option<Time> {
        self.waiting.first().map(|(period, _)| Time::ZERO + self.period * period)
    }

    /// Adds the income of the periods that have begun since.
    fn settle(&mut self, index: usize) {
        let budget = &mut self.budgets[index];
        let periods = self.current - budget.settled;
        // The usual case: a link sends many packets in a period.
        if periods == 0 {
            return;
        }
        budget.settled = self.current;
        let cap = fine(self.packet).max(2 * budget.income);
        let came = i128::from(budget.income) * i128::from(periods);
        let credit = (i128::from(budget.credit) + came).min(i128::from(cap.max(budget.credit)));
        // The value lies between the old credit and the cap, both i64.
        budget.credit = credit as i64;
    }

    /// Moves a settled flow to its set. If it has credit and a packet, its period began with `release`.
    fn place(&mut self, index: usize, release: u64) {
        let budget = &self.budgets[index];
        if !budget.backlogged {
            self.eligible.remove(index);
            self.waiting.remove(index);
        } else if budget.credit > 0 {
            self.waiting.remove(index);
            let deadline = release.saturating_add(budget.own).min(u64::MAX - 1);
            self.eligible.set(index, deadline);
        } else {
            self.eligible.remove(index);
            // The first period after which the credit is above zero; never, without income.
            let wait = budget.credit.unsigned_abs().checked_div(budget.income as u64);
            match wait.and_then(|wait| self.current.checked_add(wait)?.checked_add(1)) {
                Some(period) => self.waiting.set(index, period),
                None => self.waiting.remove(index),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const PERIOD: Span = Span::from_micros(100);

    /// Reservations of these rates in Mb/s, all of flows with packets.
    fn backlogged(mbit: &[u64], period_control: bool) -> Reservations {
        let mut all = Reservations::new(PERIOD, Bytes::new(1_500), period_control);
        for (index, &mbit) in mbit.iter().enumerate() {
            all.add();
            all.set(index, Rate::from_mbit(mbit));
            all.set_backlogged(index, true);
        }
        all
    }

    /// Lets `periods` pass and serves the due flows with packets of 1500 B. Returns the flows in order.
    fn serve(all: &mut Reservations, from: u64, periods: u64) -> Vec<usize> {
        let mut served = Vec::new();
        for period in from + 1..=from + periods {
            all.advance(Time::ZERO + PERIOD * period);
            while let Some(index) = all.next() {
                all.charge(index, Bytes::new(1_500), true);
                served.push(index);
            }
        }
        served
    }

    #[test]
    fn a_budget_holds_its_proportion_over_any_time_though_a_period_is_less_than_a_packet() {
        // 1 Mb/s is 12.5 B a period, 120 periods a packet; 3 Mb/s 40.
        let mut all = backlogged(&[1, 3], false);
        let served = serve(&mut all, 0, 120_000);
        let of = |flow| served.iter().filter(|index| **index == flow).count();
        // A packet leaves with its first credit, and the last one may not be paid yet.
        assert!((1_000..=1_001).contains(&of(0)) && (3_000..=3_001).contains(&of(1)), "{} {}", of(0), of(1));
    }

    #[test]
    fn a_waiting_flow_is_ready_with_the_first_period_that_leaves_credit() {
        let mut all = backlogged(&[1], false);
        assert_eq!(all.ready(), Some(Time::from_nanos(100_000)));
        assert_eq!(serve(&mut all, 0, 1), [0]);
        // 12.5 - 1500 B: 119 periods bring it to zero, the next above.
        assert_eq!(all.ready(), Some(Time::ZERO + PERIOD * 121));
        assert!(serve(&mut all, 1, 119).is_empty());
        assert_eq!(serve(&mut all, 120, 1), [0]);
        // A higher rate: 1487.5 B at 125 B a period; then none.
        all.set(0, Rate::from_mbit(10));
        assert_eq!(all.ready(), Some(Time::ZERO + PERIOD * 133));
        all.set(0, Rate::ZERO);
        assert_eq!((all.ready(), all.next()), (None, None));
    }

    #[test]
    fn a_silent_flow_saves_up_a_packet_and_no_more() {
        let mut all = backlogged(&[1], false);
        all.set_backlogged(0, false);
        all.advance(Time::from_secs(100));
        assert_eq!((all.next(), all.ready()), (None, None));
        all.set_backlogged(0, true);
        // 1500 B: a packet leaves nothing, and with 12.5 B the next may begin; then 1487.5 B are owed.
        assert_eq!(serve(&mut all, 1_000_000, 2), [0, 0]);
        assert!(serve(&mut all, 1_000_002, 119).is_empty());
        assert_eq!(serve(&mut all, 1_000_121, 1), [0]);
    }

    #[test]
    fn who_had_credit_first_goes_first_however_late_one_asks() {
        // After a packet of 1500 B each, 1 Mb/s has credit again after 120 periods, 3 Mb/s after 40.
        for asked in [&[200][..], &[100, 200], &[50, 130, 200]] {
            let mut all = backlogged(&[1, 3], false);
            serve(&mut all, 0, 1);
            for period in asked {
                all.advance(Time::ZERO + PERIOD * *period);
            }
            assert_eq!(all.next(), Some(1), "asked after {asked:?} periods");
        }
    }

    #[test]
    fn the_longest_released_goes_first_and_with_period_control_the_faster() {
        // The slow one has credit and a packet a period before the fast one.
        let order = |period_control| {
            let mut all = backlogged(&[1, 6], period_control);
            all.set_backlogged(1, false);
            all.advance(Time::ZERO + PERIOD);
            all.advance(Time::ZERO + PERIOD * 2);
            all.set_backlogged(1, true);
            all.next()
        };
        assert_eq!(order(false), Some(0));
        // Deadlines: 120 periods a packet after period 1, and 20 after period 2.
        assert_eq!(order(true), Some(1));
    }
}
