//! Statistics of flows and links. Plain counts are always kept; the rest costs nothing unless it is enabled.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::outcome::{Allocation, Count, FlowOutcome, LinkOutcome, TcpSample};
use std::ops::AddAssign;

use apportion_core::packet::FlowId;
use apportion_core::queue::{Backlog, DropReason};
use apportion_core::system::ramp::FlowShare;
use apportion_core::units::{Bytes, Packets, Rate, Span, Time};

use crate::histogram::Histogram;

/// Counts of one flow, as disciplines see it, since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counters {
    /// Packets that its source put on the first link.
    pub sent: Count,
    /// Packets that reached the sink.
    pub delivered: Count,
    /// Packets dropped by disciplines, in both directions, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Packets lost on wires.
    pub lost: u64,
    /// Packets marked by disciplines.
    pub marked: u64,
    /// Notifications to its sources that a link cannot carry the flow's requirement.
    pub overloads: u64,
    /// Writes that its sources left out while their send buffers were full.
    pub skipped: u64,
}

/// An event of a flow's packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketEvent {
    /// A discipline dropped it.
    Dropped(DropReason),
    /// It was lost on a wire.
    Lost,
    /// A discipline marked it.
    Marked,
}

impl Counters {
    /// Counts an event of a packet.
    pub fn count(&mut self, event: PacketEvent) {
        match event {
            PacketEvent::Dropped(reason) => self.dropped[reason as usize] += 1,
            PacketEvent::Lost => self.lost += 1,
            PacketEvent::Marked => self.marked += 1,
        }
    }

    /// Adds the events since `before` to `outcome`.
    pub fn add_since(&self, before: &Self, outcome: &mut FlowOutcome) {
        outcome.sent += self.sent - before.sent;
        outcome.delivered += self.delivered - before.delivered;
        for (reason, count) in drops(&self.dropped, &before.dropped) {
            *outcome.dropped.entry(reason).or_default() += count;
        }
        outcome.lost += self.lost - before.lost;
        outcome.marked += self.marked - before.marked;
        outcome.overloads += self.overloads - before.overloads;
        outcome.skipped += self.skipped - before.skipped;
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, more: Self) {
        self.sent += more.sent;
        self.delivered += more.delivered;
        self.dropped.iter_mut().zip(more.dropped).for_each(|(dropped, more)| *dropped += more);
        self.lost += more.lost;
        self.marked += more.marked;
        self.overloads += more.overloads;
        self.skipped += more.skipped;
    }
}

/// The [`Counters`] of many flows by id, in tables: one for counts that every packet touches, and one for
/// each kind of rare event, which takes no memory until the first one.
#[derive(Clone, Debug, Default)]
pub struct FlowCounts {
    carried: Vec<Carried>,
    dropped: [Vec<u64>; DropReason::ALL.len()],
    lost: Vec<u64>,
    marked: Vec<u64>,
    overloads: Vec<u64>,
    skipped: Vec<u64>,
}

/// Counts of packets sent and delivered, which never span two cache lines.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
struct Carried {
    sent: Count,
    delivered: Count,
}

impl FlowCounts {
    /// Zero counts for flows with ids below `flows`.
    #[must_use]
    pub fn new(flows: usize) -> Self {
        Self { carried: vec![Carried::default(); flows], ..Self::default() }
    }

    /// Counts a packet that a flow's source put on its first link.
    #[inline]
    pub fn sent(&mut self, flow: FlowId, size: Bytes) {
        self.carried[flow.index()].sent.add(size);
    }

    /// The memory of a flow's counts, to prefetch it.
    #[must_use]
    pub fn memory_of(&self, flow: FlowId) -> Option<&impl Sized> {
        self.carried.get(flow.index())
    }

    /// Counts a packet that reached the sink of its flow.
    #[inline]
    pub fn delivered(&mut self, flow: FlowId, size: Bytes) {
        self.carried[flow.index()].delivered.add(size);
    }

    /// Counts an event of a flow's packet.
    pub fn count(&mut self, flow: FlowId, event: PacketEvent) {
        let table = match event {
            PacketEvent::Dropped(reason) => &mut self.dropped[reason as usize],
            PacketEvent::Lost => &mut self.lost,
            PacketEvent::Marked => &mut self.marked,
        };
        Self::add(table, flow, self.carried.len());
    }

    /// Counts a notification to a flow's sources that a link cannot carry its requirement.
    pub fn notified(&mut self, flow: FlowId) {
        Self::add(&mut self.overloads, flow, self.carried.len());
    }

    /// Counts a write that a flow's source left out while its send buffer was full.
    pub fn skipped(&mut self, flow: FlowId) {
        Self::add(&mut self.skipped, flow, self.carried.len());
    }

    fn add(table: &mut Vec<u64>, flow: FlowId, flows: usize) {
        if table.is_empty() {
            *table = vec![0; flows];
        }
        table[flow.index()] += 1;
    }

    /// The counters of one flow.
    #[must_use]
    pub fn of(&self, flow: FlowId) -> Counters {
        let Carried { sent, delivered } = self.carried[flow.index()];
        let count = |table: &Vec<u64>| table.get(flow.index()).copied().unwrap_or_default();
        Counters {
            sent,
            delivered,
            dropped: self.dropped.each_ref().map(count),
            lost: count(&self.lost),
            marked: count(&self.marked),
            overloads: count(&self.overloads),
            skipped: count(&self.skipped),
        }
    }

    /// Bytes that reached the sinks of the flows with these ids.
    #[must_use]
    pub fn delivered_by(&self, flows: Range<u32>) -> Bytes {
        self.carried[flows.start as usize..flows.end as usize].iter().map(|of| of.delivered.bytes).sum()
    }
}

/// Counts of a link that its discipline does not keep, since the start of the run.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkCounts {
    /// Packets transmitted.
    pub sent: Count,
    /// Packets dropped by the discipline, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Packets lost on the wire.
    pub lost: u64,
    /// Packets marked by the discipline.
    pub marked: u64,
    /// Bits that could have been transmitted up to `counted`, changes of the rate included.
    possible_bits: f64,
    counted: Time,
}

impl LinkCounts {
    /// The counts at `now`, if the rate was `rate` since the last update.
    #[must_use]
    pub fn until(&self, now: Time, rate: Rate) -> Self {
        let more = rate.as_bit() as f64 * now.since(self.counted).as_secs_f64();
        Self { possible_bits: self.possible_bits + more, counted: now, ..*self }
    }

    /// The counts at `now`, if `possible` could have been transmitted since the start of the run.
    #[must_use]
    pub fn until_possible(&self, now: Time, possible: Bytes) -> Self {
        Self { possible_bits: possible.bits() as f64, counted: now, ..*self }
    }

    /// The results since `before`, in a part of `measured` length of the run.
    #[must_use]
    pub fn since(&self, before: &Self, measured: Span) -> LinkOutcome {
        let possible_bits = self.possible_bits - before.possible_bits;
        let seconds = measured.as_secs_f64();
        let sent = self.sent - before.sent;
        LinkOutcome {
            rate: Rate::from_bit(if seconds > 0.0 { (possible_bits / seconds) as u64 } else { 0 }),
            sent,
            dropped: drops(&self.dropped, &before.dropped).collect(),
            lost: self.lost - before.lost,
            marked: self.marked - before.marked,
            utilisation: if possible_bits > 0.0 { sent.bytes.bits() as f64 / possible_bits } else { 0.0 },
            ..LinkOutcome::default()
        }
    }
}

type ByReason = [u64; DropReason::ALL.len()];

/// Drops by reason between `before` and `after`, as results list them.
fn drops<'a>(after: &'a ByReason, before: &'a ByReason) -> impl Iterator<Item = (DropReason, u64)> + use<'a> {
    let more = after.iter().zip(before).map(|(after, before)| after - before);
    DropReason::ALL.into_iter().zip(more).filter(|&(_, count)| count > 0)
}

/// Measurements of a watched link.
#[derive(Debug, Default)]
pub struct LinkProbe {
    /// Time in the queue of packets transmitted.
    pub delay: Histogram,
    /// Packets in the queue at the end of each sample interval.
    pub backlog: Vec<u64>,
    /// Bytes transmitted in each sample interval.
    pub series: Vec<Bytes>,
    /// Allocations of flows.
    pub allocations: Allocations,
    /// Packet-seconds of backlog since the measured part began.
    area: f64,
    since: Time,
    /// Counts at the last two ends of sample intervals, the start of the run being the first.
    ends: [IntervalEnd; 2],
    /// Waiting times before the measured part began.
    before: Waited,
}

/// Counts of a link at the end of a sample interval.
#[derive(Clone, Copy, Debug, Default)]
struct IntervalEnd {
    counts: LinkCounts,
    waited: Waited,
}

/// The sum of waiting times, in seconds, and the number of packets.
#[derive(Clone, Copy, Debug, Default)]
struct Waited {
    seconds: f64,
    packets: u64,
}

/// A sample interval of a watched link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSample {
    /// The backlog at its end.
    pub backlog: Packets,
    /// Bytes transmitted in it.
    pub sent: Bytes,
    /// The mean rate at which the link could have transmitted in it, changes included.
    pub rate: Rate,
    /// The mean time in the queue of packets transmitted in it; none if there were none.
    pub delay: Option<Span>,
    /// Packets that the discipline dropped in it, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Packets that the wire lost in it.
    pub lost: u64,
    /// Packets that the discipline marked in it.
    pub marked: u64,
}

/// The end of a sample interval, for observers of a run.
#[derive(Clone, Copy)]
pub struct Samples<'a> {
    /// The time, from the start of the run.
    pub at: Time,
    /// The flows of the scenario; none if they are too many to be measured.
    pub flows: &'a [FlowProbe],
    /// The watched links by their indices in the scenario.
    pub links: &'a [(usize, LinkSample)],
    /// Bytes that have reached the sink of the flow with this index since the start of the run, including
    /// flows that are not measured.
    pub delivered: &'a dyn Fn(usize) -> Bytes,
}

impl LinkProbe {
    /// Must be called before each change of the queue, with its `backlog` until `now`.
    pub fn before_change(&mut self, now: Time, backlog: Backlog) {
        self.area += backlog.packets.get() as f64 * now.since(self.since).as_secs_f64();
        self.since = now;
    }

    /// Notes a packet transmitted after `waited` in the queue.
    pub fn transmitted(&mut self, waited: Span) {
        self.delay.record(waited);
    }

    /// Ends a sample interval, with these counts since the start of the run.
    pub fn sample(&mut self, backlog: Backlog, counts: LinkCounts) {
        self.ends = [self.ends[1], IntervalEnd { counts, waited: self.waited() }];
        let [before, after] = &self.ends;
        self.backlog.push(backlog.packets.get());
        self.series.push(after.counts.sent.bytes - before.counts.sent.bytes);
        self.allocations.sample(self.series.len());
    }

    /// The last complete sample interval.
    #[must_use]
    pub fn last_sample(&self) -> Option<LinkSample> {
        let backlog = Packets::new(*self.backlog.last()?);
        let [before, after] = &self.ends;
        let seconds = after.counts.counted.since(before.counts.counted).as_secs_f64();
        let possible = after.counts.possible_bits - before.counts.possible_bits;
        let packets = after.waited.packets - before.waited.packets;
        let waited = (after.waited.seconds - before.waited.seconds).max(0.0);
        let mut dropped = after.counts.dropped;
        dropped.iter_mut().zip(before.counts.dropped).for_each(|(dropped, before)| *dropped -= before);
        Some(LinkSample {
            backlog,
            sent: after.counts.sent.bytes - before.counts.sent.bytes,
            rate: Rate::from_bit(if seconds > 0.0 { (possible / seconds).round() as u64 } else { 0 }),
            delay: (packets > 0).then(|| Span::from_nanos((waited * 1e9 / packets as f64).round() as u64)),
            dropped,
            lost: after.counts.lost - before.counts.lost,
            marked: after.counts.marked - before.counts.marked,
        })
    }

    /// Waiting times of packets since the start of the run.
    fn waited(&self) -> Waited {
        Waited {
            seconds: self.before.seconds + self.delay.sum().as_secs_f64(),
            packets: self.before.packets + self.delay.count(),
        }
    }

    /// Begins the measured part: resets everything except the series.
    pub fn restart(&mut self, now: Time) {
        self.before = self.waited();
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

/// Allocations of a discipline to the flows of a scenario, from the totals that it reports since it was
/// created.
#[derive(Debug, Default)]
pub struct Allocations(BTreeMap<u32, Allocated>);

#[derive(Debug, Default)]
struct Allocated {
    /// The total that the discipline reported in this round, over all ids of the flow.
    total: Bytes,
    held: Bytes,
    /// The total of the round before.
    before: Bytes,
    /// The backlog in the round before.
    waits: Bytes,
    /// Allocation since the last sample, and in the measured part.
    interval: Bytes,
    measured: Bytes,
    series: Vec<Bytes>,
    fill: Vec<Bytes>,
}

impl Allocations {
    /// Adds the allocation of one id to that of its flow. A round adds each id once.
    pub fn add(&mut self, flow: u32, share: FlowShare) {
        let flow = self.0.entry(flow).or_default();
        flow.total += share.allocated;
        flow.held += share.fill;
    }

    /// Ends a round, after all ids were added.
    pub fn end_round(&mut self) {
        for flow in self.0.values_mut() {
            flow.waits = std::mem::take(&mut flow.held);
            // A flow that the discipline does not report keeps its total until it does.
            let total = std::mem::take(&mut flow.total).max(flow.before);
            let more = total - flow.before;
            flow.before = total;
            flow.interval += more;
            flow.measured += more;
        }
    }

    /// Notes that the discipline was replaced by one whose totals begin at zero.
    pub fn replace(&mut self) {
        self.0.values_mut().for_each(|flow| flow.before = Bytes::ZERO);
    }

    /// Ends the sample interval with this number; the first is 1.
    fn sample(&mut self, number: usize) {
        for flow in self.0.values_mut() {
            // Flows that came later have had none before.
            flow.series.resize(number - 1, Bytes::ZERO);
            flow.fill.resize(number - 1, Bytes::ZERO);
            flow.series.push(std::mem::take(&mut flow.interval));
            flow.fill.push(flow.waits);
        }
    }

    fn restart(&mut self) {
        self.0.values_mut().for_each(|flow| flow.measured = Bytes::ZERO);
    }

    /// Takes the allocations out, by flow.
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

/// Statistics of a flow in addition to its counts.
#[derive(Debug, Default)]
pub struct FlowProbe {
    /// The state of TCP at the end of each sample interval.
    pub tcp: Vec<TcpSample>,
    /// One-way delay of packets that reached the sink.
    pub delay: Histogram,
    /// Bytes delivered in each sample interval.
    pub series: Vec<Bytes>,
    sampled: Bytes,
}

impl FlowProbe {
    /// Ends a sample interval, with `delivered` bytes since the start of the run.
    pub fn sample(&mut self, delivered: Bytes) {
        self.series.push(delivered - self.sampled);
        self.sampled = delivered;
    }
}
