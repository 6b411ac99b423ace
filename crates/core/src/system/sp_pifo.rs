//! SP-PIFO: a few FIFO queues in strict priority, whose bounds adapt so that packets leave nearly in the
//! order of their ranks.
//!
//! Alcoz, Dietmüller, Vanbever, "SP-PIFO: approximating push-in first-out behaviors using strict-priority
//! queues", NSDI 2020, section 4, algorithm 1. Queue i takes packets of ranks from its bound q_i on. A packet
//! is compared with the bounds from the lowest priority up and joins the first queue whose bound is not above
//! its rank; the bound becomes its rank ("push-up"). If even the bound of the highest priority is above its
//! rank, it joins there, and all bounds fall by the difference ("push-down"). [`RankQueues`] has ranks and
//! queues; [`Bounds`] is the mapping alone, for packets of any ranks.
//!
//! Readings: each queue has an equal part of `limit`, at which arrivals are dropped; dropped packets change
//! bounds too.
//!
//! Limits: inversions decrease with the number of queues, as the paper says. For random arrivals of ten flows
//! with sizes 1 to 10, the share of packets overtaken by a larger rank is 0.90 with one queue, 0.75 with 2,
//! 0.56 with 8, 0.32 with 32; a PIFO has none. A flood keeps more than its due,
//! since a PIFO drops the largest rank and these queues drop arrivals at a full queue.
//!
//! Cost: O(`queues`) per packet. Memory: 8 to 16 bytes per flow. Parameters: [`ENTRY`].

use alloc::vec;
use alloc::vec::Vec;

use super::rank_queues::{Admission, RankQueues, Room};
use crate::limit::BufferSize;
use crate::packet::Packet;
use crate::param::{Entry, GoesBy, Heeds, LIMIT, Param, Role, Shares, Traits, require};
use crate::params;
use crate::queue::DropReason;
use crate::units::{Rate, Weight};

/// SP-PIFO in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "sp_pifo",
    role: Role::System,
    summary: "SP-PIFO: strict-priority FIFOs with adaptive bounds, ranks of start-time fair queueing.",
    reference: "Alcoz, Dietmüller, Vanbever 2020",
    cost: "O(queues) per packet, 8 to 16 bytes per flow",
    params: SpPifoParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Approximate,
        goes_by: Some(GoesBy::Ranks),
        limits: "It orders packets and does not divide the buffer: a flood gets 2 to 3.3 times its due. Packets of a \
            flow can overtake each other. More `queues` do not help. `stfq` with `lqd`, which it approximates, has \
            none of these limits.",
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

/// The paper's bounds q_i, the highest priority first.
#[derive(Clone, Debug)]
pub struct Bounds(Vec<u64>);

impl Bounds {
    /// Bounds of 0 for this many queues; at least one.
    #[must_use]
    pub fn new(queues: u32) -> Self {
        Self(vec![0; queues.max(1) as usize])
    }

    /// The queue for a packet of this rank (algorithm 1, lines 1 to 4).
    #[must_use]
    pub fn map(&self, rank: u64) -> usize {
        self.0.iter().rposition(|&bound| bound <= rank).unwrap_or(0)
    }

    /// Adapts the bounds to a packet of this rank in queue `index`, which [`map`](Self::map) selected:
    /// "push-up", or, if even the highest priority has a larger bound, "push-down" of all by the difference
    /// (algorithm 1).
    pub fn adapt(&mut self, index: usize, rank: u64) {
        let Some(bound) = self.0.get_mut(index) else { return };
        if *bound <= rank {
            *bound = rank;
            return;
        }
        let cost = *bound - rank;
        self.rebase(cost);
    }
}

impl Admission for Bounds {
    fn place<P: Packet>(&mut self, rank: u64, room: &Room<'_, P>) -> Result<usize, DropReason> {
        let index = self.map(rank);
        self.adapt(index, rank);
        if room.fits(index) { Ok(index) } else { Err(DropReason::Overflow) }
    }

    fn rebase(&mut self, by: u64) {
        self.0.iter_mut().for_each(|bound| *bound = bound.saturating_sub(by));
    }
}

/// The queues by start tags, with a limit.
pub type SpPifo<P> = RankQueues<P, Bounds>;

impl<P: Packet> SpPifo<P> {
    /// Empty queues with bounds of 0. Ranks count bytes of a flow of weight `smallest`.
    #[must_use]
    pub fn new(params: &SpPifoParams, link_rate: Rate, smallest: Weight) -> Self {
        Self::empty(params.limit, params.queues, Bounds::new(params.queues), link_rate, smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::packet::SimplePacket;
    use crate::queue::Queue;
    use crate::random::Stream;
    use crate::testing::{Log, packet};
    use crate::units::{Packets, Time};

    fn sp_pifo(queues: u32, limit: u64) -> SpPifo<SimplePacket> {
        let limit = Some(Limit::Packets(Packets::new(limit)).into());
        SpPifo::new(&SpPifoParams { limit, queues }, Rate::from_mbit(10), Weight::ONE)
    }

    fn map(bounds: &mut Bounds, rank: u64) -> usize {
        let index = bounds.map(rank);
        bounds.adapt(index, rank);
        index
    }

    #[test]
    fn bounds_are_pushed_up_and_down() {
        let mut bounds = Bounds::new(3);
        // All bounds are 0: the lowest priority takes the first packet, and ranks that are not below it.
        assert_eq!([10, 12].map(|rank| map(&mut bounds, rank)), [2, 2]);
        assert_eq!(bounds.0, [0, 0, 12]);
        assert_eq!([7, 5, 6].map(|rank| map(&mut bounds, rank)), [1, 0, 0]);
        assert_eq!(bounds.0, [6, 7, 12]);
        // 2 is below all bounds by at least 4.
        assert_eq!((map(&mut bounds, 2), bounds.0), (0, vec![2, 3, 8]));
    }

    #[test]
    fn packets_leave_by_rank_as_far_as_bounds_tell_them_apart() {
        let mut queue = sp_pifo(2, 100);
        let mut log = Log::default();
        for (id, flow) in [(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)] {
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
}
