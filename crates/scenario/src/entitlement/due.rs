//! Entitlements of flows over time: rates that are constant between events, and their integrals.

use apportion_core::units::{Rate, Span, Time};

/// Parts of a bit per second as the unit of rates, so that integrals over nanoseconds are exact integers.
/// Chosen: far below the precision of a report; 18 Tb/s fit 64 bits.
const PARTS: u64 = 1_000_000;
/// A bit in parts of a bit per second times nanoseconds.
const PER_BIT: u128 = PARTS as u128 * 1_000_000_000;

/// An amount of data that a flow is due: an integral of rates over time, without rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(u128);

impl Amount {
    /// Whether the amount is zero.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The amount in bits.
    #[must_use]
    pub fn bits(self) -> f64 {
        (self.0 / PER_BIT) as f64 + (self.0 % PER_BIT) as f64 / PER_BIT as f64
    }
    /// The mean rate over `span`, rounded to a bit per second; zero if `span` is zero.
    #[must_use]
    pub fn over(self, span: Span) -> Rate {
        let unit = u128::from(span.as_nanos()) * u128::from(PARTS);
        let rate = (self.0 + unit / 2).checked_div(unit).unwrap_or(0);
        Rate::from_bit(u64::try_from(rate).unwrap_or(u64::MAX))
    }
    /// The sum of both.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

/// The start of a rate that the members of a class are due.
#[derive(Clone, Copy, Debug)]
struct Step {
    from: Time,
    /// The rate of one member in parts of a bit per second, rounded down.
    rate: u64,
    /// The integral up to here.
    before: u128,
}

/// The entitlement of one member of a class over time; zero before its first step.
#[derive(Clone, Debug, Default)]
pub(super) struct Steps(Vec<Step>);

impl Steps {
    /// The rate from `from` on, in bit/s.
    pub(super) fn push(&mut self, from: Time, rate: f64) {
        // A float beyond the integers becomes the largest one.
        let rate = (rate * PARTS as f64) as u64;
        let Some(last) = self.0.last() else {
            self.0.push(Step { from, rate, before: 0 });
            return;
        };
        if last.rate != rate {
            let before = last.before + u128::from(last.rate) * u128::from(from.since(last.from).as_nanos());
            self.0.push(Step { from, rate, before });
        }
    }

    /// The integral from the first step to `to`.
    fn until(&self, to: Time) -> u128 {
        let at = self.0.partition_point(|step| step.from <= to);
        let Some(step) = at.checked_sub(1).and_then(|at| self.0.get(at)) else { return 0 };
        step.before + u128::from(step.rate) * u128::from(to.since(step.from).as_nanos())
    }

    /// The rate at `time`, and when the next one begins.
    fn at(&self, time: Time) -> (u64, Time) {
        let at = self.0.partition_point(|step| step.from <= time);
        let rate = at.checked_sub(1).and_then(|at| self.0.get(at)).map_or(0, |step| step.rate);
        (rate, self.0.get(at).map_or(Time::MAX, |step| step.from))
    }
}

/// The time for which a flow is in a class, with this number of members.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stay {
    pub(super) from: Time,
    pub(super) to: Time,
    pub(super) class: usize,
    pub(super) members: u32,
}

/// The entitlement of each flow of a scenario between two times.
#[derive(Clone, Debug)]
pub struct Due {
    pub(super) from: Time,
    pub(super) to: Time,
    /// Steps by class.
    pub(super) steps: Vec<Steps>,
    /// Stays by flow, ascending.
    pub(super) stays: Vec<Vec<Stay>>,
    pub(super) pieces: usize,
}

impl Due {
    /// The amount that a flow (by its index in the scenario) is due from `from` to `to`, both within the
    /// times that it was computed for; zero outside.
    #[must_use]
    pub fn amount(&self, flow: usize, from: Time, to: Time) -> Amount {
        let (from, to) = (from.max(self.from), to.min(self.to));
        let stays = self.stays.get(flow).map_or(&[][..], Vec::as_slice);
        let first = stays.partition_point(|stay| stay.to <= from);
        let within = stays[first..].iter().take_while(|stay| stay.from < to);
        let of = |stay: &Stay| {
            let (from, to) = (stay.from.max(from), stay.to.min(to));
            let steps = &self.steps[stay.class];
            u128::from(stay.members) * steps.until(to).saturating_sub(steps.until(from))
        };
        Amount(within.map(of).sum())
    }

    /// The entitlement of a flow over time: times and rates, only where it changes.
    #[must_use]
    pub fn rates(&self, flow: usize) -> Vec<(Time, Rate)> {
        let mut all: Vec<(Time, Rate)> = Vec::new();
        let mut push = |from: Time, rate: Rate| {
            if all.last().map_or(Rate::ZERO, |&(_, last)| last) != rate {
                all.push((from, rate));
            }
        };
        let mut end = self.from;
        for stay in self.stays.get(flow).into_iter().flatten() {
            if stay.from > end {
                push(end, Rate::ZERO);
            }
            let mut at = stay.from;
            while at < stay.to {
                let (rate, next) = self.steps[stay.class].at(at);
                let whole =
                    (u128::from(rate) * u128::from(stay.members) + u128::from(PARTS) / 2) / u128::from(PARTS);
                push(at, Rate::from_bit(u64::try_from(whole).unwrap_or(u64::MAX)));
                at = next;
            }
            end = stay.to;
        }
        if end < self.to {
            push(end, Rate::ZERO);
        }
        all
    }

    /// The number of pieces in which rates were computed: the times of changes, plus one.
    #[must_use]
    pub const fn pieces(&self) -> usize {
        self.pieces
    }
}
