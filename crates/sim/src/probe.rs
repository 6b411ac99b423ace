//! Statistics of flows and links. Plain counts are always kept; the rest costs nothing unless asked for.

use std::collections::BTreeMap;

use apportion_core::queue::{Backlog, DropReason};
use apportion_core::system::ramp::FlowShare;
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::model::Count;
use apportion_scenario::outcome::{Allocation, Drops, TcpSample};

use crate::histogram::Histogram;

/// Counts of what disciplines see as one flow, since the start of the run. What every packet touches lies in
/// one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
pub struct Counters {
    /// Put on the first link by its source.
    pub sent: Count,
    /// Reached the sink.
    pub delivered: Count,
    /// Dropped by disciplines, in both directions, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Lost on wires.
    pub lost: u64,
    /// Marked by disciplines.
    pub marked: u64,
    /// Times that a discipline told its source that it cannot carry what the flow needs.
    pub exceptions: u64,
}

/// Drops by reason, as results list them.
#[must_use]
pub fn drops(counts: &[u64; DropReason::ALL.len()]) -> Drops {
    DropReason::ALL.into_iter().zip(counts.iter().copied()).filter(|&(_, n)| n > 0).collect()
}

/// What is measured on a watched link.
#[derive(Debug, Default)]
pub struct LinkProbe {
    /// Time in the queue of packets transmitted.
    pub delay: Histogram,
    /// Packets in the queue at the end of each sample interval.
    pub backlog: Vec<u64>,
    /// Bytes transmitted in each sample interval.
    pub series: Vec<Bytes>,
    /// What flows are allocated.
    pub allocations: Allocations,
    /// Packet-seconds of backlog since the measured part began.
    area: f64,
    since: Time,
    sampled: Bytes,
}

impl LinkProbe {
    /// Must be called before each change of the queue with the `backlog` it had until `now`.
    pub fn before_change(&mut self, now: Time, backlog: Backlog) {
        self.area += backlog.packets.get() as f64 * now.since(self.since).as_secs_f64();
        self.since = now;
    }

    /// A packet was transmitted after `waited` in the queue.
    pub fn transmitted(&mut self, waited: Span) {
        self.delay.record(waited);
    }

    /// A sample interval ends, with `sent` bytes transmitted since the start of the run.
    pub fn sample(&mut self, backlog: Backlog, sent: Bytes) {
        self.backlog.push(backlog.packets.get());
        self.series.push(sent - self.sampled);
        self.sampled = sent;
        self.allocations.sample(self.series.len());
    }

    /// The measured part begins: forgets what came before, except the series.
    pub fn restart(&mut self, now: Time) {
        self.allocations.restart();
        self.delay = Histogram::default();
        self.area = 0.0;
        self.since = now;
    }

    /// Time average of the packets in the queue over the last `span`, up to `now`.
    pub fn queue_mean(&mut self, now: Time, backlog: Backlog, span: Span) -> f64 {
        self.before_change(now, backlog);
        if span == Span::ZERO { 0.0 } else { self.area / span.as_secs_f64() }
    }
}

/// What a discipline allocates to the flows of a scenario. It tells totals since it was made.
#[derive(Debug, Default)]
pub struct Allocations(BTreeMap<u32, Allocated>);

#[derive(Debug, Default)]
struct Allocated {
    /// What the discipline told in this round, over all ids of the flow.
    told: Bytes,
    held: Bytes,
    /// Its total as of the round before.
    before: Bytes,
    /// What waited as of then.
    waits: Bytes,
    /// Since the last sample, and in the measured part.
    interval: Bytes,
    measured: Bytes,
    series: Vec<Bytes>,
    fill: Vec<Bytes>,
}

impl Allocations {
    /// One id of a flow has this; one of each that there are in each round.
    pub fn tell(&mut self, flow: u32, share: FlowShare) {
        let flow = self.0.entry(flow).or_default();
        flow.told += share.allocated;
        flow.held += share.fill;
    }

    /// All ids have been told of.
    pub fn end_round(&mut self) {
        for flow in self.0.values_mut() {
            flow.waits = std::mem::take(&mut flow.held);
            // A flow that is not told of keeps its total until it is again.
            let told = std::mem::take(&mut flow.told).max(flow.before);
            let more = told - flow.before;
            flow.before = told;
            flow.interval += more;
            flow.measured += more;
        }
    }

    /// The discipline is another one, whose totals begin at zero.
    pub fn replace(&mut self) {
        self.0.values_mut().for_each(|flow| flow.before = Bytes::ZERO);
    }

    /// The sample interval with this number ends, the first being 1.
    fn sample(&mut self, number: usize) {
        for flow in self.0.values_mut() {
            // Those that came later had nothing before.
            flow.series.resize(number - 1, Bytes::ZERO);
            flow.fill.resize(number - 1, Bytes::ZERO);
            flow.series.push(std::mem::take(&mut flow.interval));
            flow.fill.push(flow.waits);
        }
    }

    fn restart(&mut self) {
        self.0.values_mut().for_each(|flow| flow.measured = Bytes::ZERO);
    }

    /// By flow.
    pub fn take(&mut self) -> Vec<Allocation> {
        let outcome = |(flow, of): (u32, Allocated)| Allocation {
            flow: flow as usize,
            measured: of.measured,
            series: of.series,
            fill: of.fill,
        };
        std::mem::take(&mut self.0).into_iter().map(outcome).collect()
    }
}

/// What is measured on a flow beside its counts.
#[derive(Debug, Default)]
pub struct FlowProbe {
    /// The state of its TCP at the end of each sample interval.
    pub tcp: Vec<TcpSample>,
    /// One-way delay of packets that reached the sink.
    pub delay: Histogram,
    /// Bytes delivered in each sample interval.
    pub series: Vec<Bytes>,
    sampled: Bytes,
}

impl FlowProbe {
    /// A sample interval ends, with `delivered` bytes since the start of the run.
    pub fn sample(&mut self, delivered: Bytes) {
        self.series.push(delivered - self.sampled);
        self.sampled = delivered;
    }
}
