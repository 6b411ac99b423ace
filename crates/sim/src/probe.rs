//! Statistics of flows and links. Plain counts are always kept; the rest costs nothing unless asked for.

use apportion_core::queue::{Backlog, DropReason};
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::model::Count;
use apportion_scenario::outcome::Drops;

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
    }

    /// The measured part begins: forgets what came before, except the series.
    pub fn restart(&mut self, now: Time) {
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

/// What is measured on a flow beside its counts.
#[derive(Debug, Default)]
pub struct FlowProbe {
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
