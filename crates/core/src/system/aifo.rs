//! AIFO, admission-in first-out: one FIFO that admits a packet by the quantile of its rank among recent
//! ranks.
//!
//! Yu, Hu, Wu, Jin, "Programmable packet scheduling with a single queue", SIGCOMM 2021, section 4. A packet
//! is admitted if the fraction of ranks in a window that are below its own is at most 1/(1 - k) (C - c)/C,
//! where c of the C places of the buffer are taken. The fuller the buffer, the lower a rank must be; while at
//! most k C places are taken all packets are admitted. Admitted packets leave in the order of arrival: those
//! that a PIFO would send are admitted, but leave in another order. [`RankQueues`] has ranks and the queue;
//! [`Window`] is the test alone, for packets of any ranks.
//!
//! Readings: a packet is compared with the ranks before it and then joins the window, admitted or not; one of
//! `sample` packets joins; an empty window admits.
//!
//! Limits: with one queue it divides better than SP-PIFO with eight, since it decides on admission. With ten
//! flows the window of 20 is the best of those tried; with 100 and more it has too few ranks to recognise a
//! flood, and 128 are enough.
//!
//! Cost: O(`window`) per packet. Memory: 8 to 16 bytes per flow. Parameters: [`ENTRY`].

use alloc::vec::Vec;

use super::rank_queues::{Admission, RankQueues, Room};
use crate::limit::BufferSize;
use crate::packet::Packet;
use crate::param::{Entry, Heeds, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::DropReason;
use crate::units::{Rate, Ratio, Weight};

/// AIFO in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "aifo",
    role: Role::System,
    summary: "AIFO: one FIFO that admits by the quantile of a rank, ranks of start-time fair queueing.",
    reference: "Yu, Hu, Wu, Jin 2021",
    cost: "O(window) per packet, 8 to 16 bytes per flow",
    params: AifoParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Approximate,
        limits: "A flood gets 1.1 times its due beside 10 TCP flows, and 12 times beside 1,000: set `window = \
            128` for 100 flows or more (1.3 times). A flow of weight 100 next to ten of weight 1 gets a \
            third of its due.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Aifo`].
    pub struct AifoParams {
        limit: Option<BufferSize> = LIMIT,
        /// Part of the buffer that takes packets of any rank.
        headroom: Ratio = Param::of("0.1", "chosen").symbol("k"),
        /// Ranks that a packet is compared with.
        window: u64 = Param::of("20", "chosen").symbol("|W|"),
        /// Packets of which one joins the window.
        sample: u64 = Param::of("1", "chosen"),
    }
    check: |params: &Self, _| params.check()
}

impl AifoParams {
    fn check(&self) -> Result<(), ParamError> {
        let message = "it must be below 1, where all ranks are admitted";
        require(self.headroom < Ratio::ONE, "headroom", message)?;
        require((1..=65_536).contains(&self.window), "window", "it must lie between 1 and 65536")?;
        require(self.sample > 0, "sample", "it must be at least 1, with which every packet joins")
    }
}

/// The window of recent ranks, for packets of any ranks.
#[derive(Clone, Debug)]
pub struct Window {
    /// The paper's k.
    headroom: Ratio,
    /// The maximum number of ranks.
    size: u64,
    /// One of this many packets joins.
    sample: u64,
    /// The paper's W: a ring, whose order does not matter.
    ranks: Vec<u64>,
    /// The oldest rank of a full window.
    oldest: usize,
    /// The number of packets until the next joins.
    skip: u64,
}

impl Window {
    /// An empty window.
    #[must_use]
    pub fn new(params: &AifoParams) -> Self {
        let AifoParams { headroom, window, sample, .. } = *params;
        Self::of(headroom, window, sample)
    }

    /// An empty window of `window` ranks, of which one of `sample` packets joins, with the headroom k.
    pub(super) fn of(headroom: Ratio, window: u64, sample: u64) -> Self {
        Self { headroom, size: window.max(1), sample: sample.max(1), ranks: Vec::new(), oldest: 0, skip: 0 }
    }

    /// The fraction of the ranks in the window that are below `rank`; 0 if it is empty.
    #[must_use]
    pub fn quantile(&self, rank: u64) -> f64 {
        let below: u64 = self.ranks.iter().map(|&other| u64::from(other < rank)).sum();
        below as f64 / (self.ranks.len() as f64).max(1.0)
    }

    /// Whether this rank is low enough for a buffer of which the fraction `free` is not taken (section 4,
    /// algorithm 1).
    #[must_use]
    pub fn is_low(&self, rank: u64, free: f64) -> bool {
        self.quantile(rank) * (1.0 - self.headroom.get()) <= free
    }

    /// Adds a rank to the window, if its turn has come.
    pub fn note(&mut self, rank: u64) {
        if self.skip > 0 {
            self.skip -= 1;
            return;
        }
        self.skip = self.sample - 1;
        if (self.ranks.len() as u64) < self.size {
            return self.ranks.push(rank);
        }
        self.ranks[self.oldest] = rank;
        self.oldest = if self.oldest + 1 < self.ranks.len() { self.oldest + 1 } else { 0 };
    }
}

impl Admission for Window {
    fn place<P: Packet>(&mut self, rank: u64, room: &Room<'_, P>) -> Result<usize, DropReason> {
        let is_low = self.is_low(rank, room.free());
        self.note(rank);
        match (room.fits(0), is_low) {
            (false, _) => Err(DropReason::Overflow),
            (true, false) => Err(DropReason::Forced),
            (true, true) => Ok(0),
        }
    }

    fn rebase(&mut self, by: u64) {
        self.ranks.iter_mut().for_each(|rank| *rank = rank.saturating_sub(by));
    }
}

/// The queue and the window, by start tags.
pub type Aifo<P> = RankQueues<P, Window>;

impl<P: Packet> Aifo<P> {
    /// An empty queue and window. Ranks count bytes of a flow of weight `smallest`.
    #[must_use]
    pub fn new(params: &AifoParams, link_rate: Rate, smallest: Weight) -> Self {
        Self::empty(params.limit, 1, Window::new(params), link_rate, smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::testing::{Log, packet};
    use crate::units::{Packets, Time};

    fn aifo(change: impl FnOnce(&mut AifoParams)) -> Aifo<SimplePacket> {
        let mut params = AifoParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(10)).into());
        change(&mut params);
        Aifo::new(&params, Rate::from_mbit(10), Weight::ONE)
    }

    #[test]
    fn a_rank_is_admitted_up_to_the_quantile_that_is_free() {
        let mut window = Window::of(Ratio::new(0.2).unwrap(), 4, 1);
        window.ranks = [10, 20, 30, 40].to_vec();
        // 0.8 times the fraction of lower ranks is compared with the free part: 0.3 of 10 places, against 0.8
        // / 4 = 0.2 and 0.8 / 2 = 0.4.
        assert_eq!([10, 20, 21, 99].map(|rank| window.is_low(rank, 0.3)), [true, true, false, false]);
        // Up to the headroom, 2 of 10, all are admitted.
        assert!(window.is_low(99, 0.8) && !window.is_low(99, 0.7));
    }

    #[test]
    fn a_window_keeps_the_latest_of_the_ranks_that_are_sampled() {
        let mut window = Window::of(Ratio::ZERO, 3, 2);
        (1..=9).for_each(|rank| window.note(rank));
        assert_eq!(window.ranks, [7, 9, 5]);
    }

    #[test]
    fn a_flow_that_is_ahead_is_refused_where_another_is_admitted() {
        let mut queue = aifo(|_| {});
        let mut log = Log::default();
        (0..20).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 100), &mut log));
        let (held, lost) = (queue.backlog.packets, log.dropped.len());
        assert!(held < Packets::new(10) && log.dropped.iter().all(|drop| drop.2 == DropReason::Forced));
        queue.enqueue(Time::ZERO, packet(99, 1, 100), &mut log);
        assert_eq!((queue.backlog.packets, log.dropped.len()), (held + Packets::new(1), lost));
        let order: Vec<_> = core::iter::from_fn(|| queue.serve()).map(|packet| packet.id).collect();
        assert!(order.is_sorted() && order.last() == Some(&99), "{order:?}");
    }
}
