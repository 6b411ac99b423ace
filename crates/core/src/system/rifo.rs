//! RIFO, range-in first-out: one FIFO that admits a packet by the place of its rank in the range of recent
//! ranks.
//!
//! Mostafaei, Pacut, Schmid, "RIFO: pushing the efficiency of programmable packet schedulers", arXiv
//! 2308.07442. Three registers: the smallest and the largest rank of the packets since the last reset, and
//! their number; a reset follows after `reset` packets. A packet has the score N = (rank - smallest) /
//! (largest - smallest). While at most k of the buffer is taken all packets are admitted; else those with N
//! at most 1 - U, where U is the part that is taken. [`RankQueues`] has ranks and the queue; [`Range`] is the
//! test alone, for packets of any ranks.
//!
//! Readings: the paper's text was not at hand. The published simulation and its P4 program admit if 1 - N is
//! at least 1 - U, which is N at most U: the fuller the queue, the higher the ranks that it admits.
//! `admission = "published"` and the preset have that rule. The default is AIFO's rule with the range in the
//! place of the quantile. The rank of an arriving packet counts in its range.
//!
//! Limits: see [`ENTRY`]. Cost: O(1) per packet, three words. Memory: 8 to 16 bytes per flow, for the ranks.

use super::rank_queues::{Admission, RankQueues, Room};
use crate::choice;
use crate::limit::BufferSize;
use crate::packet::Packet;
use crate::param::{Entry, Heeds, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::DropReason;
use crate::units::{Rate, Ratio, Weight};

/// RIFO in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "rifo",
    role: Role::System,
    summary: "RIFO: one FIFO that admits by the place of a rank in the range, ranks of start-time fair queueing.",
    reference: "Mostafaei, Pacut, Schmid 2023",
    cost: "O(1) per packet, 8 to 16 bytes per flow",
    params: RifoParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Approximate,
        limits: "A flood gets 3.6 times its due beside 12 TCP flows and 3.4 times beside 1,000. With ranks that are not \\
            spread evenly the range says little: of exponential ranks it sorts a third as well as `aifo`. \\
            `admission = \"published\"` does not hold a flood back.",
        ..Traits::NONE
    },
};

choice! {
    /// The ranks that are admitted beyond the headroom.
    pub enum Rule {
        /// The lower ones, the fuller the buffer.
        Sound = "sound",
        /// More of them, the fuller the buffer.
        Published = "published",
    }
}

params! {
    /// Parameters of [`Rifo`].
    pub struct RifoParams {
        limit: Option<BufferSize> = LIMIT,
        /// Part of the buffer that takes packets of any rank.
        headroom: Ratio = Param::of("0.1", "the paper's simulations").symbol("k"),
        /// Packets until the range starts anew.
        reset: u64 = Param::of("150", "the paper's simulations").symbol("T"),
        /// The ranks that are admitted beyond the headroom: those in the lower part of the range that is
        /// free, or, by the published programs, in the lower part that is taken.
        admission: Rule = Param::of("sound", "AIFO, section 4").in_paper("published").one_of(&["sound", "published"]),
    }
    check: |params: &Self, _| params.check()
}

impl RifoParams {
    fn check(&self) -> Result<(), ParamError> {
        let message = "it must be below 1, where all ranks are admitted";
        require(self.headroom < Ratio::ONE, "headroom", message)?;
        require(self.reset > 1, "reset", "it must be at least 2: one packet has no range")
    }
}

/// The range of recent ranks, for packets of any ranks.
#[derive(Clone, Debug)]
pub struct Range {
    headroom: Ratio,
    reset: u64,
    rule: Rule,
    /// The paper's Min and Max.
    least: u64,
    most: u64,
    /// The packets since the last reset.
    seen: u64,
}

impl Range {
    /// An empty range.
    #[must_use]
    pub const fn new(params: &RifoParams) -> Self {
        let RifoParams { headroom, reset, admission, .. } = *params;
        Self { headroom, reset, rule: admission, least: u64::MAX, most: 0, seen: 0 }
    }

    /// Whether this rank, which joins the range, is low enough for a buffer of which the fraction `free` is not taken.
    pub fn admits(&mut self, rank: u64, free: f64) -> bool {
        if self.seen >= self.reset {
            (self.least, self.most, self.seen) = (u64::MAX, 0, 0);
        }
        self.seen += 1;
        (self.least, self.most) = (self.least.min(rank), self.most.max(rank));
        let score = (rank - self.least) as f64 / ((self.most - self.least) as f64).max(1.0);
        let bound = match self.rule {
            Rule::Sound => free,
            Rule::Published => 1.0 - free,
        };
        1.0 - free <= self.headroom.get() || score <= bound
    }
}

impl Admission for Range {
    fn place<P: Packet>(&mut self, rank: u64, room: &Room<'_, P>) -> Result<usize, DropReason> {
        let is_low = self.admits(rank, room.free());
        match (room.fits(0), is_low) {
            (false, _) => Err(DropReason::Overflow),
            (true, false) => Err(DropReason::Forced),
            (true, true) => Ok(0),
        }
    }

    fn rebase(&mut self, by: u64) {
        (self.least, self.most) = (self.least.saturating_sub(by), self.most.saturating_sub(by));
    }
}

/// The queue and the range, by start tags.
pub type Rifo<P> = RankQueues<P, Range>;

impl<P: Packet> Rifo<P> {
    /// An empty queue and range. Ranks count bytes of a flow of weight `smallest`.
    #[must_use]
    pub fn new(params: &RifoParams, link_rate: Rate, smallest: Weight) -> Self {
        Self::empty(params.limit, 1, Range::new(params), link_rate, smallest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::EntryArgs;

    fn range(rule: Rule, reset: u64) -> Range {
        let params = RifoParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        let mut range = Range::new(&RifoParams { reset, admission: rule, ..params });
        assert!(range.admits(0, 1.0) && range.admits(100, 1.0));
        range
    }

    #[test]
    fn fuller_buffers_ask_for_lower_ranks_and_as_published_higher() {
        let highest = |rule, free| (0..=100).rfind(|&rank| range(rule, 150).admits(rank, free));
        assert_eq!([0.75, 0.5, 0.25].map(|free| highest(Rule::Sound, free)), [75, 50, 25].map(Some));
        assert_eq!([0.75, 0.5, 0.25].map(|free| highest(Rule::Published, free)), [25, 50, 75].map(Some));
        // A tenth of the buffer takes any rank.
        assert_eq!([0.9, 0.885].map(|free| highest(Rule::Published, free)), [Some(100), Some(11)]);
    }

    #[test]
    fn the_range_starts_anew_after_its_packets() {
        let mut range = range(Rule::Sound, 3);
        assert!(!range.admits(60, 0.5));
        // The first of a new range is its smallest.
        assert!(range.admits(60, 0.1) && !range.admits(200, 0.2) && range.admits(130, 0.5));
    }
}
