//! SP-PIFO: a few FIFO queues in strict priority, whose bounds adapt so that packets leave nearly in the
//! order of their ranks.
//!
//! Alcoz, Dietmüller, Vanbever, "SP-PIFO: approximating push-in first-out behaviors using strict-priority
//! queues", NSDI 2020, section 4, algorithm 1. Queue i takes packets of ranks from its bound q_i on. A packet
//! is compared with the bounds from the lowest priority up and joins the first queue whose bound is not above
//! its rank; the bound becomes its rank ("push-up"). If even the bound of the highest priority is above its
//! rank, it joins there, and all bounds fall by the difference ("push-down"). Ranks are the start tags of
//! start-time fair queueing (`ranks.rs`), as in the paper's use for fairness; [`Levels`] is the scheduler
//! alone, for packets of any ranks.
//!
//! Readings: each queue has an equal part of `limit`, at which arrivals are dropped; dropped packets change
//! bounds too.
//!
//! Deviation: a packet never joins a queue ahead of one in which a packet of its flow waits. In the paper's
//! scheduler packets of a flow can overtake each other, which TCP takes for loss.
//!
//! Limits: inversions decrease with the number of queues, as the paper says. For random arrivals of ten flows
//! with sizes 1 to 10, the share of packets overtaken by a larger rank is 0.90 with one queue, 0.75 with 2,
//! 0.56 with 8, 0.32 with 32; a PIFO has none. A flood keeps more than its due,
//! since a PIFO drops the largest rank and these queues drop arrivals at a full queue.
//!
//! Cost: O(`queues`) per packet. Memory: 16 to 32 bytes per flow. Parameters: [`ENTRY`].

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::discipline::Discipline;
use super::ranks::Ranks;
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, GoesBy, Heeds, LIMIT, Param, Role, Shares, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::units::{Rate, Time, Weight};

/// SP-PIFO in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "sp_pifo",
    role: Role::System,
    summary: "SP-PIFO: strict-priority FIFOs with adaptive bounds, ranks of start-time fair queueing.",
    reference: "Alcoz, Dietmüller, Vanbever 2020",
    cost: "O(queues) per packet, 16 to 32 bytes per flow",
    params: SpPifoParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Approximate,
        goes_by: Some(GoesBy::Ranks),
        limits: "It orders packets and does not divide the buffer: a flood gets 1.4 to 11 times its due, and the \
            least of 1,000 TCP flows a third. More `queues` do not help. `stfq` with `lqd`, which it \
            approximates, has none of these limits.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`SpPifo`].
    pub struct SpPifoParams {
        limit: Option<BufferSize> = LIMIT,
        /// Queues in strict priority.
        queues: u32 = Param::of("8", "the paper evaluates 8 and more").symbol("n"),
    }
    check: |params: &Self, _| require((1..=1_024).contains(&params.queues), "queues", "it must lie between 1 and 1024")
}

#[derive(Clone, Debug)]
struct Level<P> {
    /// The paper's q_i.
    bound: u64,
    /// Packets with their ranks.
    queue: VecDeque<(P, u64)>,
    backlog: Backlog,
}

/// The queues and their bounds, for packets of any ranks, without a limit. Queue 0 has the highest priority.
#[derive(Clone, Debug)]
pub struct Levels<P> {
    levels: Vec<Level<P>>,
}

impl<P: Packet> Levels<P> {
    /// Empty queues with bounds of 0; at least one.
    #[must_use]
    pub fn new(queues: u32) -> Self {
        let level = || Level { bound: 0, queue: VecDeque::new(), backlog: Backlog::EMPTY };
        Self { levels: (0..queues.max(1)).map(|_| level()).collect() }
    }

    /// The queue for a packet of this rank (algorithm 1, lines 1 to 4).
    #[must_use]
    pub fn place(&self, rank: u64) -> usize {
        self.levels.iter().rposition(|level| level.bound <= rank).unwrap_or(0)
    }

    /// Adapts the bounds to a packet of this rank in queue `index`, which [`place`](Self::place) selected:
    /// "push-up", or, if even the highest priority has a larger bound, "push-down" of all by the difference
    /// (algorithm 1).
    pub fn adapt(&mut self, index: usize, rank: u64) {
        let Some(level) = self.levels.get_mut(index) else { return };
        if level.bound <= rank {
            level.bound = rank;
            return;
        }
        let cost = level.bound - rank;
        self.levels.iter_mut().for_each(|level| level.bound = level.bound.saturating_sub(cost));
    }

    /// The backlog of queue `index`; empty if there is no such queue.
    #[must_use]
    pub fn held(&self, index: usize) -> Backlog {
        self.levels.get(index).map_or(Backlog::EMPTY, |level| level.backlog)
    }

    /// Puts a packet at the end of queue `index`, or of the lowest priority if there is no such queue.
    pub fn push(&mut self, index: usize, packet: P, rank: u64) {
        let index = index.min(self.levels.len() - 1);
        let level = &mut self.levels[index];
        level.backlog.add(&packet);
        level.queue.push_back((packet, rank));
    }

    /// Removes and returns the first packet of the highest priority, with its rank.
    pub fn pop(&mut self) -> Option<(P, u64)> {
        let level = self.levels.iter_mut().find(|level| !level.queue.is_empty())?;
        let (packet, rank) = level.queue.pop_front()?;
        level.backlog.remove(&packet);
        Some((packet, rank))
    }

    /// The ranks of the packets that wait, by queue.
    pub fn ranks(&self) -> impl Iterator<Item = u64> {
        self.levels.iter().flat_map(|level| level.queue.iter().map(|(_, rank)| *rank))
    }

    /// Removes and returns the packet of this flow that would be served first.
    fn take(&mut self, flow: FlowId) -> Option<P> {
        let is_meant = |(packet, _): &(P, u64)| packet.flow().slot() == flow.slot();
        let (level, position) = (self.levels.iter_mut())
            .find_map(|level| level.queue.iter().position(is_meant).map(|position| (level, position)))?;
        let (packet, _) = level.queue.remove(position)?;
        level.backlog.remove(&packet);
        Some(packet)
    }

    /// Reduces all numbers by `by`.
    fn rebase(&mut self, by: u64) {
        for level in &mut self.levels {
            level.bound = level.bound.saturating_sub(by);
            level.queue.iter_mut().for_each(|(_, rank)| *rank = rank.saturating_sub(by));
        }
    }
}

/// The places of a flow's packets.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    held: u32,
    /// The queue of the last one.
    last: u32,
}

/// The queues by start tags, with a limit.
#[derive(Clone, Debug)]
pub struct SpPifo<P> {
    limit: LinkLimit,
    ranks: Ranks,
    levels: Levels<P>,
    places: Vec<Place>,
    backlog: Backlog,
    /// The number of packets that left after one of a larger rank while they waited.
    overtaken: u64,
}

impl<P: Packet> SpPifo<P> {
    /// Empty queues with bounds of 0. Ranks count bytes of a flow of weight `smallest`.
    #[must_use]
    pub fn new(params: &SpPifoParams, link_rate: Rate, smallest: Weight) -> Self {
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            ranks: Ranks::new(smallest),
            levels: Levels::new(params.queues),
            places: vec![],
            backlog: Backlog::EMPTY,
            overtaken: 0,
        }
    }

    /// Whether queue `index` has room for the packet in its part of the buffer. An empty queue has.
    fn has_room(&self, index: usize, packet: &P) -> bool {
        let limit = self.limit.get();
        let mut with = self.levels.held(index);
        let is_empty = with.is_empty();
        with.add(packet);
        let (queued, all) = limit.measure(with);
        (is_empty || queued.saturating_mul(self.levels.levels.len() as u64) <= all)
            && limit.admits(packet, self.backlog)
    }

    fn left(&mut self, packet: P) -> P {
        self.backlog.remove(&packet);
        self.places[packet.flow().slot()].held -= 1;
        packet
    }

    fn serve(&mut self) -> Option<P> {
        let (packet, rank) = self.levels.pop()?;
        // No packet had a rank below v when it arrived.
        self.overtaken += u64::from(rank < self.ranks.v);
        if let Some(by) = self.ranks.served(rank) {
            self.levels.rebase(by);
        }
        Some(self.left(packet))
    }
}

impl<P: Packet> Queue<P> for SpPifo<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let flow = packet.flow();
        if flow.slot() >= self.places.len() {
            self.places.resize(flow.slot() + 1, Place::default());
        }
        let rank = self.ranks.of(flow);
        let mapped = self.levels.place(rank);
        self.levels.adapt(mapped, rank);
        let Place { held, last } = self.places[flow.slot()];
        let index = if held > 0 { mapped.max(last as usize) } else { mapped };
        if !self.has_room(index, &packet) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        self.ranks.admitted(flow, packet.size(), rank);
        self.places[flow.slot()] = Place { held: held + 1, last: index as u32 };
        self.backlog.add(&packet);
        self.levels.push(index, packet, rank);
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.serve()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for SpPifo<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.serve()
    }
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let packet = self.levels.take(flow)?;
        Some(self.left(packet))
    }
    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }
    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        self.ranks.charges.set_weight(flow, weight);
        true
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("overtaken", self.overtaken as f64);
    }
    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::random::Stream;
    use crate::system::charge::{BYTE, HORIZON};
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    fn sp_pifo(queues: u32, limit: u64) -> SpPifo<SimplePacket> {
        let limit = Some(Limit::Packets(Packets::new(limit)).into());
        SpPifo::new(&SpPifoParams { limit, queues }, Rate::from_mbit(10), Weight::ONE)
    }

    fn bounds(levels: &Levels<SimplePacket>) -> Vec<u64> {
        levels.levels.iter().map(|level| level.bound).collect()
    }

    fn map(levels: &mut Levels<SimplePacket>, rank: u64) -> usize {
        let index = levels.place(rank);
        levels.adapt(index, rank);
        index
    }

    #[test]
    fn bounds_are_pushed_up_and_down() {
        let mut levels = Levels::new(3);
        // All bounds are 0: the lowest priority takes the first packet, and ranks that are not below it.
        assert_eq!([10, 12].map(|rank| map(&mut levels, rank)), [2, 2]);
        assert_eq!(bounds(&levels), [0, 0, 12]);
        assert_eq!([7, 5, 6].map(|rank| map(&mut levels, rank)), [1, 0, 0]);
        assert_eq!(bounds(&levels), [6, 7, 12]);
        // 2 is below all bounds by at least 4.
        assert_eq!((map(&mut levels, 2), bounds(&levels)), (0, vec![2, 3, 8]));
    }

    #[test]
    fn a_flow_that_has_less_goes_ahead_and_each_flow_keeps_its_order() {
        let mut queue = sp_pifo(2, 100);
        let mut log = Log::default();
        let ids = [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)];
        for (id, flow) in ids {
            queue.enqueue(Time::ZERO, packet(id, flow, 100), &mut log);
        }
        // Ranks 0, 100, 200 in queue 2; flow 1 has 0, below 200, in queue 1, and 100, below 200 too.
        let order: Vec<_> = core::iter::from_fn(|| queue.serve()).map(|packet| packet.id).collect();
        assert_eq!(order, [4, 5, 1, 2, 3]);
        // Packet 1 had rank 0, after 5 with 100.
        assert_eq!(queue.overtaken, 1);
    }

    #[test]
    fn each_queue_has_its_part_of_the_buffer() {
        let mut queue = sp_pifo(4, 8);
        let mut log = Log::default();
        (0..5).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 100), &mut log));
        assert_eq!(queue.backlog.packets, Packets::new(2));
        queue.enqueue(Time::ZERO, packet(9, 1, 100), &mut log);
        assert_eq!(queue.serve().map(|packet| packet.id), Some(9));
    }

    /// The share of packets that are overtaken, for random arrivals of ten flows, three for each two
    /// departures until the buffer is full.
    fn overtaken(queues: u32) -> f64 {
        let mut queue = sp_pifo(queues, 400);
        let (mut random, mut log) = (Stream::new(1, "arrivals"), Log::default());
        let mut served = 0;
        for id in 0..60_000 {
            let flow = random.below(10) as u32;
            queue.enqueue(Time::ZERO, packet(id, flow, 100 + 100 * u64::from(flow)), &mut log);
            served += u32::from(id % 3 > 0 && queue.serve().is_some());
        }
        queue.overtaken as f64 / f64::from(served)
    }

    #[test]
    fn more_queues_have_fewer_inversions() {
        let [one, two, eight, many] = [1, 2, 8, 32].map(overtaken);
        assert!(one > two && two > eight && eight > many, "{one} {two} {eight} {many}");
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, HORIZON - 3_000 * BYTE].map(|v| {
            let mut queue = sp_pifo(4, 100);
            queue.ranks.v = v;
            queue.levels.levels.iter_mut().for_each(|level| level.bound = v);
            let (mut order, mut log) = (Vec::new(), Log::default());
            for id in 0..200 {
                queue.enqueue(Time::ZERO, packet(id, id * id % 7, 100), &mut log);
                order.extend((id % 3 > 0).then(|| queue.serve()).flatten());
            }
            assert!(queue.ranks.v < HORIZON);
            order
        });
        assert_eq!(orders[0], orders[1]);
    }
}
