//! PACKS: a few FIFO queues in strict priority that admit and sort packets by the quantiles of their ranks.
//!
//! Gran Alcoz, Vass, Namyar, Arzani, Rétvári, Vanbever, "Everything matters in programmable packet
//! scheduling", NSDI 2025. The rank of a packet joins a window of recent ranks (AIFO's [`Window`]); q is the
//! fraction of these below it. The packet joins the queue of the highest priority that has room and accepts
//! it, and is dropped if none does. With n queues of B/n places each, of which b_j are taken, queue i accepts
//! if q is at most 1/(1 - k) times the free places of the queues 1 to i, in parts of B. So the rank bound of a
//! queue moves with the room ahead of it. [`RankQueues`] has ranks and queues; [`Quantiles`] is the mapping
//! alone, for packets of any ranks.
//!
//! Readings: the rule is that of the text of 2025 as other sources describe it, which was not at hand.
//! `bound = "total"` has the rule of the published simulation: queue i accepts if q is below 1/(1 - k) i/n
//! times the free part of all queues.
//!
//! Limits: see [`ENTRY`]. Cost: O(`window` + `queues`) per packet. Memory: 8 to 16 bytes per flow.

use super::aifo::Window;
use super::rank_queues::{Admission, RankQueues, Room};
use crate::choice;
use crate::limit::BufferSize;
use crate::packet::Packet;
use crate::param::{Entry, GoesBy, Heeds, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::DropReason;
use crate::units::{Rate, Ratio, Weight};

/// PACKS in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "packs",
    role: Role::System,
    summary: "PACKS: strict-priority FIFOs that admit and sort by quantiles, ranks of start-time fair queueing.",
    reference: "Gran Alcoz et al. 2025",
    cost: "O(window + queues) per packet, 8 to 16 bytes per flow",
    params: PacksParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Approximate,
        goes_by: Some(GoesBy::Ranks),
        limits: "A flood gets 1.8 to 4.7 times its due. Packets of a flow can overtake each other. A larger \\
            `window` sorts better and does not divide better.",
        ..Traits::NONE
    },
};

choice! {
    /// The room that bounds the ranks of a queue.
    pub enum Bound {
        /// What is free in this queue and those of higher priority.
        Ahead = "ahead",
        /// Its part of what is free in all queues.
        Total = "total",
    }
}

params! {
    /// Parameters of [`Packs`].
    pub struct PacksParams {
        limit: Option<BufferSize> = LIMIT,
        /// Queues in strict priority.
        queues: u32 = Param::of("8", "the paper's first evaluation").symbol("n"),
        /// Part of the buffer that takes packets of any rank.
        headroom: Ratio = Param::of("0.1", "the paper's evaluation in networks").symbol("k"),
        /// Ranks that a packet is compared with.
        window: u64 = Param::of("20", "the paper's evaluation in networks").symbol("|W|"),
        /// Packets of which one joins the window.
        sample: u64 = Param::of("1", "chosen"),
        /// The room that bounds the ranks of a queue: what is free in it and ahead of it, or its part of what
        /// is free in all.
        bound: Bound = Param::of("ahead", "the paper of 2025").one_of(&["ahead", "total"]),
    }
    check: |params: &Self, _| params.check()
}

impl PacksParams {
    fn check(&self) -> Result<(), ParamError> {
        require((1..=1_024).contains(&self.queues), "queues", "it must lie between 1 and 1024")?;
        let message = "it must be below 1, where all ranks are admitted";
        require(self.headroom < Ratio::ONE, "headroom", message)?;
        require((1..=65_536).contains(&self.window), "window", "it must lie between 1 and 65536")?;
        require(self.sample > 0, "sample", "it must be at least 1, with which every packet joins")
    }
}

/// The window and the bounds that follow from it, for packets of any ranks.
#[derive(Clone, Debug)]
pub struct Quantiles {
    window: Window,
    /// The paper's k.
    headroom: Ratio,
    bound: Bound,
}

impl Quantiles {
    /// An empty window.
    #[must_use]
    pub fn new(params: &PacksParams) -> Self {
        let PacksParams { headroom, window, sample, bound, .. } = *params;
        Self { window: Window::of(headroom, window, sample), headroom, bound }
    }
}

impl Admission for Quantiles {
    fn place<P: Packet>(&mut self, rank: u64, room: &Room<'_, P>) -> Result<usize, DropReason> {
        self.window.note(rank);
        let quantile = self.window.quantile(rank) * (1.0 - self.headroom.get());
        let queues = room.levels.len();
        let (mut ahead, mut is_low) = (0.0, false);
        for index in 0..queues {
            ahead += room.free_in(index);
            let accepts = match self.bound {
                Bound::Ahead => quantile <= ahead,
                Bound::Total => quantile < room.free() * (index + 1) as f64 / queues as f64,
            };
            is_low |= accepts;
            if accepts && room.fits(index) {
                return Ok(index);
            }
        }
        Err(if is_low { DropReason::Overflow } else { DropReason::Forced })
    }

    fn rebase(&mut self, by: u64) {
        self.window.rebase(by);
    }
}

/// The queues by start tags, with a limit.
pub type Packs<P> = RankQueues<P, Quantiles>;

impl<P: Packet> Packs<P> {
    /// Empty queues and an empty window. Ranks count bytes of a flow of weight `smallest`.
    #[must_use]
    pub fn new(params: &PacksParams, link_rate: Rate, smallest: Weight) -> Self {
        Self::empty(params.limit, params.queues, Quantiles::new(params), link_rate, smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limit::Limit;
    use crate::param::EntryArgs;
    use crate::queue::Backlog;
    use crate::system::rank_queues::Levels;
    use crate::testing::packet;
    use crate::units::Packets;

    fn quantiles(change: impl FnOnce(&mut PacksParams)) -> Quantiles {
        let mut params = PacksParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.headroom = Ratio::ZERO;
        change(&mut params);
        let mut quantiles = Quantiles::new(&params);
        (0..20).for_each(|rank| quantiles.window.note(5 * rank));
        quantiles
    }

    /// The queue of a packet of each rank, of four queues with 5 places each, which hold these packets. The
    /// window has the ranks 0, 5, …, 95.
    fn places<const N: usize>(
        quantiles: &Quantiles,
        held: [u32; 4],
        ranks: [u64; N],
    ) -> [Result<usize, DropReason>; N] {
        let mut levels = Levels::new(4);
        for (index, many) in held.into_iter().enumerate() {
            (0..many).for_each(|id| levels.push(index, packet(id, 0, 100), 0));
        }
        let backlog = Backlog { packets: Packets::new(held.iter().sum::<u32>().into()), ..Backlog::EMPTY };
        let arriving = packet(99, 1, 100);
        let limit = Limit::Packets(Packets::new(20));
        let room = Room { levels: &levels, packet: &arriving, backlog, limit };
        ranks.map(|rank| quantiles.clone().place(rank, &room))
    }

    #[test]
    fn empty_queues_divide_the_ranks_evenly() {
        // The packet's own rank replaces the oldest, 0; of the others 4 are below 24, so that q is 0.2.
        let ranks = [3, 24, 33, 49, 57, 74, 83, 99];
        for bound in [Bound::Ahead, Bound::Total] {
            let at = places(&quantiles(|params| params.bound = bound), [0; 4], ranks);
            assert_eq!(at, [0, 0, 1, 1, 2, 2, 3, 3].map(Ok), "{bound:?}");
        }
    }

    #[test]
    fn bounds_move_with_the_room_ahead() {
        let quantiles = quantiles(|_| {});
        // The first queue is full; up to the second 0.1 of the buffer is free, then 0.35, then 0.6.
        let held = [5, 3, 0, 0];
        let [placed @ .., refused] = places(&quantiles, held, [3, 9, 17, 34, 43, 58, 66]);
        assert_eq!(placed, [1, 1, 2, 2, 3, 3].map(Ok));
        assert_eq!(refused, Err(DropReason::Forced));
        // A quarter of the 0.6 that are free in all is 0.15.
        let total = Quantiles { bound: Bound::Total, ..quantiles };
        let [placed @ .., refused] = places(&total, held, [3, 24, 38, 53, 66]);
        assert_eq!(placed, [1, 1, 2, 3].map(Ok));
        assert_eq!(refused, Err(DropReason::Forced));
    }

    #[test]
    fn a_full_buffer_overflows_and_headroom_admits_all_ranks() {
        assert_eq!(places(&quantiles(|_| {}), [5; 4], [3]), [Err(DropReason::Overflow)]);
        let half = quantiles(|params| params.headroom = Ratio::new(0.5).unwrap());
        assert_eq!(places(&half, [5, 5, 0, 0], [99]), [Ok(3)]);
        assert_eq!(places(&half, [5, 5, 5, 0], [99]), [Err(DropReason::Forced)]);
    }
}
