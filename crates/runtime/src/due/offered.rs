//! The writes of sources whose rate varies: their mean rate in each of some intervals.

use apportion_core::units::{Rate, Span, Time};
use apportion_scenario::entitlement::{Phase, Wants};
use apportion_scenario::model::Scenario;

use crate::connections::{Planned, Workload};
use crate::source::Write;

/// Shortest interval. Chosen: queues smooth faster variation, and it is the second of the worst second.
const SHORTEST: Span = Span::from_secs(1);
/// Maximum number of intervals of a run, and of intervals times flows. Chosen: entitlements of all flows are
/// computed again in each interval, and this is about a tenth of the maximum of such computations.
const MAX: u64 = 500;
const MAX_OF_FLOWS: u64 = 100_000;

/// Intervals of equal length, one of which begins with the measured part.
pub(super) struct Bins {
    /// The end of the first one.
    first: Time,
    length: Span,
    /// The end of the run.
    stop: Time,
}

impl Bins {
    pub(super) fn of(scenario: &Scenario) -> Self {
        let count = (MAX_OF_FLOWS / (scenario.flows.len() as u64).max(1)).clamp(1, MAX);
        let length = Span::from_nanos(scenario.stop.as_nanos().div_ceil(count)).max(SHORTEST);
        let before = scenario.measure_from.as_nanos() % length.as_nanos();
        Self { first: Time::ZERO + Span::from_nanos(before), length, stop: scenario.stop }
    }

    /// Demand of the connections of a flow over time; their rate changes at `changes`.
    pub(super) fn phases(&self, members: &[Planned], changes: &[(Time, Rate)]) -> Vec<Phase> {
        let Some(start) = members.iter().map(|of| of.start).min() else { return Vec::new() };
        let stop = members.iter().map(|of| of.stop).max().map_or(self.stop, |stop| stop.min(self.stop));
        let mut bits = vec![0; self.place(self.stop) + 1];
        for connection in members {
            let mut add =
                |at: Time, size: u64| bits.get_mut(self.place(at)).into_iter().for_each(|sum| *sum += size);
            writes(connection, changes, stop, &mut add);
        }
        let mut all: Vec<Phase> = Vec::new();
        for (place, bits) in bits.into_iter().enumerate() {
            let (from, to) = self.ends(place);
            let (from, to) = (from.max(start), to.min(stop));
            if from < to {
                let rate = bits as f64 / to.since(from).as_secs_f64();
                let wants =
                    if bits > 0 { Wants::Rate(Rate::from_bit(rate.round() as u64)) } else { Wants::Nothing };
                all.push(Phase { at: from, wants });
            }
        }
        all.extend((start < stop).then_some(Phase { at: stop, wants: Wants::Nothing }));
        all
    }

    /// The index of the interval that contains a time.
    fn place(&self, at: Time) -> usize {
        match at < self.first {
            true => 0,
            false => 1 + (at.since(self.first).as_nanos() / self.length.as_nanos()) as usize,
        }
    }

    /// Start and end of an interval.
    fn ends(&self, place: usize) -> (Time, Time) {
        let end = self.first + self.length * place as u64;
        (if place == 0 { Time::ZERO } else { self.first + self.length * (place as u64 - 1) }, end)
    }
}

/// Calls `add` with the time and bits of each write of a connection before `stop`.
fn writes(connection: &Planned, changes: &[(Time, Rate)], stop: Time, add: &mut impl FnMut(Time, u64)) {
    let Workload::Writes(writes) = &connection.workload else { return };
    let mut generator = writes.generator.clone();
    let mut pending = None;
    let ends = changes.iter().map(|&(at, rate)| (at, Some(rate))).chain([(stop, None)]);
    for (until, rate) in ends {
        // As in the simulator: a source produces its first write at the start, and the next one after the
        // last, or after a change that finds none pending. A change keeps the pending write, except for
        // silence.
        if until > connection.start {
            pending = pending.or_else(|| generator.next());
        }
        while let Some(write) = pending.filter(|write: &Write| write.at < until) {
            add(write.at, write.size.bits());
            pending = generator.next();
        }
        if let Some(rate) = rate {
            generator.set_rate(until, rate);
            pending = pending.filter(|_| rate > Rate::ZERO);
        }
    }
}
