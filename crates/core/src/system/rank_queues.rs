//! FIFO queues in strict priority for packets with ranks: the part that AIFO, PACKS, RIFO and SP-PIFO have in
//! common.
//!
//! The four differ in [`Admission`]: the choice of a packet's queue, or its refusal, by its rank and the room
//! in the queues. Ranks are the start tags of start-time fair queueing (`ranks.rs`), as in the papers' use
//! for fairness; [`Levels`] and the admissions alone take packets of any ranks.
//!
//! With several queues, packets of a flow can overtake each other, as in the papers. A rule that keeps their
//! order binds a flow to a queue of low priority for as long as one of its packets waits there: of 1,000 TCP
//! flows behind PACKS some then got nothing, and with SP-PIFO the least got 0.04 of its due instead of 0.75.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::discipline::Discipline;
use super::ranks::Ranks;
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::units::{Rate, Time, Weight};

#[derive(Clone, Debug)]
struct Level<P> {
    /// Packets with their ranks.
    queue: VecDeque<(P, u64)>,
    backlog: Backlog,
}

/// FIFO queues in strict priority, for packets of any ranks, without a limit. Queue 0 has the highest
/// priority.
#[derive(Clone, Debug)]
pub struct Levels<P> {
    levels: Vec<Level<P>>,
}

impl<P: Packet> Levels<P> {
    /// Empty queues; at least one.
    #[must_use]
    pub fn new(queues: u32) -> Self {
        let level = || Level { queue: VecDeque::new(), backlog: Backlog::EMPTY };
        Self { levels: (0..queues.max(1)).map(|_| level()).collect() }
    }

    /// The number of queues.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.levels.len()
    }

    /// Whether no packet waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.queue.is_empty())
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

    /// Reduces all ranks by `by`.
    fn rebase(&mut self, by: u64) {
        let waiting = self.levels.iter_mut().flat_map(|level| &mut level.queue);
        waiting.for_each(|(_, rank)| *rank = rank.saturating_sub(by));
    }
}

/// The queues as an arriving packet finds them. Each has an equal part of the buffer.
#[derive(Debug)]
pub struct Room<'a, P> {
    /// The queues.
    pub levels: &'a Levels<P>,
    /// The arriving packet.
    pub packet: &'a P,
    /// What all queues hold.
    pub backlog: Backlog,
    /// The size of the buffer.
    pub limit: Limit,
}

impl<P: Packet> Room<'_, P> {
    /// Whether the packet fits into queue `index`. One packet always fits into an empty queue of a buffer
    /// that has room.
    #[must_use]
    pub fn fits(&self, index: usize) -> bool {
        let mut with = self.levels.held(index);
        let is_first = with.is_empty();
        with.add(self.packet);
        let (queued, all) = self.limit.measure(with);
        (is_first || queued.saturating_mul(self.levels.len() as u64) <= all)
            && self.limit.admits(self.packet, self.backlog)
    }

    /// The free part of the buffer, 0 to 1.
    #[must_use]
    pub fn free(&self) -> f64 {
        (1.0 - self.limit.filled_by(self.backlog)).max(0.0)
    }

    /// What is free in queue `index`, in parts of the whole buffer.
    #[must_use]
    pub fn free_in(&self, index: usize) -> f64 {
        (1.0 / self.levels.len() as f64 - self.limit.filled_by(self.levels.held(index))).max(0.0)
    }
}

/// The choice of a queue by rank.
pub trait Admission {
    /// The queue that a packet of this rank joins, or the reason to drop it. Called once for each packet that
    /// arrives.
    ///
    /// # Errors
    /// When the packet is dropped.
    fn place<P: Packet>(&mut self, rank: u64, room: &Room<'_, P>) -> Result<usize, DropReason>;

    /// Reduces all ranks that it holds by `by`.
    fn rebase(&mut self, by: u64);
}

/// The queues by start tags, with a limit and an admission.
#[derive(Clone, Debug)]
pub struct RankQueues<P, A> {
    limit: LinkLimit,
    pub(super) ranks: Ranks,
    pub(super) levels: Levels<P>,
    pub(super) admission: A,
    pub(super) backlog: Backlog,
    /// The number of packets that left after one of a larger rank while they waited.
    pub(super) overtaken: u64,
}

impl<P: Packet, A: Admission> RankQueues<P, A> {
    /// Empty queues. Ranks count bytes of a flow of weight `smallest`.
    pub(super) fn empty(
        limit: Option<BufferSize>,
        queues: u32,
        admission: A,
        link_rate: Rate,
        smallest: Weight,
    ) -> Self {
        Self {
            limit: LinkLimit::new(limit, link_rate),
            ranks: Ranks::new(smallest),
            levels: Levels::new(queues),
            admission,
            backlog: Backlog::EMPTY,
            overtaken: 0,
        }
    }

    pub(super) fn serve(&mut self) -> Option<P> {
        let (packet, rank) = self.levels.pop()?;
        // No packet had a rank below v when it arrived.
        self.overtaken += u64::from(rank < self.ranks.v);
        if let Some(by) = self.ranks.served(rank) {
            self.levels.rebase(by);
            self.admission.rebase(by);
        }
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl<P: Packet, A: Admission> Queue<P> for RankQueues<P, A> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let flow = packet.flow();
        let rank = self.ranks.of(flow);
        let room =
            Room { levels: &self.levels, packet: &packet, backlog: self.backlog, limit: self.limit.get() };
        let index = match self.admission.place(rank, &room) {
            Ok(index) => index,
            Err(reason) => return sink.dropped(now, packet, reason),
        };
        self.ranks.admitted(flow, packet.size(), rank);
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

impl<P: Packet, A: Admission> Discipline<P> for RankQueues<P, A> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.serve()
    }
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let packet = self.levels.take(flow)?;
        self.backlog.remove(&packet);
        Some(packet)
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
    use alloc::vec;

    use super::*;
    use crate::packet::SimplePacket;
    use crate::system::charge::{BYTE, HORIZON};
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    /// A queue whatever the rank, and what ranks have been reduced by.
    #[derive(Clone, Debug)]
    struct Fixed(usize, u64);

    impl Admission for Fixed {
        fn place<P: Packet>(&mut self, _: u64, room: &Room<'_, P>) -> Result<usize, DropReason> {
            if room.fits(self.0) { Ok(self.0) } else { Err(DropReason::Overflow) }
        }
        fn rebase(&mut self, by: u64) {
            self.1 += by;
        }
    }

    fn queues(limit: u64) -> RankQueues<SimplePacket, Fixed> {
        let limit = Some(Limit::Packets(Packets::new(limit)).into());
        RankQueues::empty(limit, 3, Fixed(0, 0), Rate::from_mbit(10), Weight::ONE)
    }

    #[test]
    fn each_queue_has_its_part_and_an_empty_one_room() {
        let (levels, one) = (Levels::new(4), packet(0, 0, 100));
        let room = |limit, held: u64, levels| Room {
            levels,
            packet: &one,
            backlog: Backlog { packets: Packets::new(held), ..Backlog::EMPTY },
            limit: Limit::Packets(Packets::new(limit)),
        };
        let mut two = levels.clone();
        (0..2).for_each(|id| two.push(1, packet(id, 0, 100), 0));
        assert_eq!([0, 1].map(|index| room(8, 2, &two).fits(index)), [true, false]);
        assert!(room(2, 1, &levels).fits(3) && !room(2, 2, &levels).fits(3));
        assert_eq!((room(8, 2, &two).free(), room(8, 9, &two).free()), (0.75, 0.0));
        assert_eq!([0, 1].map(|index| room(8, 2, &two).free_in(index)), [0.25, 0.0]);
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, HORIZON - 3_000 * BYTE].map(|v| {
            let mut queues = queues(300);
            queues.ranks.v = v;
            let (mut order, mut log) = (vec![], Log::default());
            for id in 0..200 {
                queues.admission.0 = (id % 3) as usize;
                queues.enqueue(Time::ZERO, packet(id, id * id % 7, 100), &mut log);
                order.extend((id % 3 > 0).then(|| queues.serve()).flatten());
            }
            assert!(queues.ranks.v < HORIZON && (v == 0) == (queues.admission.1 == 0));
            (order, queues.overtaken)
        });
        assert_eq!(orders[0], orders[1]);
    }
}
