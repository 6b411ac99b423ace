//! Longest queue drop: when the buffer is exceeded, the flow that holds most of it relative to its threshold
//! loses its front packet.
//!
//! Suter, Lakshman, Stiliadis, Choudhury, "Design considerations for supporting TCP with per-flow queueing",
//! INFOCOM 1998: the victim has the largest q_i - b_i. Thresholds and readings:
//! [`occupancy`](super::occupancy). The default is q_i/b_i with thresholds by weight, so that a flow that may
//! have twice the rate may hold twice as much; with equal weights both rules select the longest queue. Among
//! equally long queues the victim is random; with `ties = "arrival"` it is the flow of the arrival, if it is
//! among them. If the buffer holds two packets a flow or fewer, this choice decides which flow is served.
//! Deviation: a packet larger than the whole buffer is dropped as overflow; otherwise it would empty the
//! buffer and still not fit.
//!
//! Cost: O(1) per packet of a flow that is not among the longest, O(log flows) per packet of one that is; at
//! most 55 bytes per flow, 71 if it is configured, 88 more with thresholds by round-trip time. Behind a FIFO
//! the front packet of a flow requires a search; a scheduler with a queue per flow finds it directly.
//! Parameters: [`ENTRY`].

use super::dimensioning::{Dimensioning, RTT_OF, RttOf, refuse_idle_rtt_of};
use super::occupancy::{Choice, Occupancy, THRESHOLDS, Thresholds, Ties};
use super::push_out::{PushOut, Rule};
use crate::limit::{BufferSize, LinkLimit};
use crate::param::{Entry, Heeds, Inside, LIMIT, Param, Role, Shares, Traits};
use crate::params;
use crate::queue::DropReason;
use crate::random::Stream;
use crate::units::{Rate, Span, Time};

/// Longest queue drop in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "lqd",
    role: Role::Policy,
    summary: "Longest queue drop: a full buffer drops the head packet of the flow with the longest queue.",
    reference: "Suter, Lakshman, Stiliadis, Choudhury 1998",
    cost: "O(log flows) per packet, mostly O(1), at most 71 bytes per flow",
    params: LongestQueueDropParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight, Heeds::Rtt],
        inside: Inside::Part,
        shares: Shares::Kept,
        limits: "In a FIFO it divides the buffer, not the link: put it behind a scheduler. A flow whose weight \
            gives it less than a packet of the buffer loses packets within its share: raise `limit`.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`LongestQueueDrop`].
    pub struct LongestQueueDropParams {
        limit: Option<BufferSize> = LIMIT,
        thresholds: Thresholds = THRESHOLDS,
        rtt_of: RttOf = RTT_OF,
        /// Which flow loses a packet: the one with the largest q_i/b_i, or with the largest q_i - b_i. In a FIFO that divides the
        /// buffer and not the link: the flow that sends most has next to nothing.
        victim: Choice = Param::of("ratio", "chosen: the same for all scales of thresholds; 1998 paper: difference")
            .symbol("argmax")
            .one_of(&["ratio", "difference"]),
        /// Which of several such flows: one by chance, or that whose packet has just arrived if it is among them.
        ties: Ties = Param::of("random", "chosen: the papers do not say; no flow loses for its number or its phase"),
    }
    check: |params: &Self, args| refuse_idle_rtt_of(params.thresholds, args)
}

/// Longest queue drop at a limit.
pub type LongestQueueDrop = PushOut<WhenFull>;

/// The rule of LQD: a packet is dropped when the buffer is exceeded; only ties are random.
#[derive(Clone, Debug)]
pub struct WhenFull(());

impl LongestQueueDrop {
    /// Pushes out beyond the limit, for a link of `link_rate`. `rtts` are the round-trip times by flow; zero,
    /// or beyond its end: unknown.
    #[must_use]
    pub fn new(params: &LongestQueueDropParams, link_rate: Rate, rtts: &[Span], random: Stream) -> Self {
        let limit = LinkLimit::new(params.limit, link_rate);
        let occupancy = Occupancy::new(limit.get(), params.thresholds, params.victim, rtts);
        let dimensioning = Dimensioning::new(params.thresholds, params.rtt_of, rtts);
        Self::with(limit, occupancy.with_ties(params.ties, random), dimensioning, WhenFull(()))
    }
}

impl Rule for WhenFull {
    fn reason(&mut self, _now: Time, _occupancy: &Occupancy, is_exceeded: bool) -> Option<DropReason> {
        is_exceeded.then_some(DropReason::PushOut)
    }

    fn uniform(&mut self) -> f64 {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::BufferPolicy;
    use crate::buffer::Buffer;
    use crate::flow_setting::FlowSetting;
    use crate::limit::Limit;
    use crate::packet::FlowId;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::{Packets, Weight};

    /// Four packets of flow 0 and two of flow 1 in a buffer of five.
    fn dropped(weight_of_flow_0: f64) -> Vec<u32> {
        let params = LongestQueueDropParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        let params = LongestQueueDropParams { limit: Some(Limit::Packets(Packets::new(5)).into()), ..params };
        let mut policy = LongestQueueDrop::new(&params, Rate::from_mbit(1), &[], Stream::new(1, "lqd"));
        let weight = Weight::new(weight_of_flow_0).unwrap();
        assert!(BufferPolicy::<crate::packet::SimplePacket>::set_flow(
            &mut policy,
            FlowId(0),
            FlowSetting::Weight(weight)
        ));
        let mut queue = Buffer::new(Fifo::new(), policy);
        let mut log = Log::default();
        for (id, flow) in [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0), (6, 1)] {
            queue.enqueue(Time::ZERO, packet(id, flow, 100), &mut log);
        }
        log.dropped.iter().map(|&(_, id, _)| id).collect()
    }

    #[test]
    fn of_equally_long_queues_one_pays_by_chance_or_the_arrival() {
        // Flows 0 to 3 send in turn into a buffer of seven. The eighth packet, the second of flow 3, makes
        // all queues equally long; the front packet of flow i is packet i.
        let of_equals = |ties, seed| {
            let params = LongestQueueDropParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
            let limit = Some(Limit::Packets(Packets::new(7)).into());
            let params = LongestQueueDropParams { limit, ties, ..params };
            let policy = LongestQueueDrop::new(&params, Rate::from_mbit(1), &[], Stream::new(seed, "lqd"));
            let mut queue = Buffer::new(Fifo::new(), policy);
            let mut log = Log::default();
            for id in 0..8 {
                queue.enqueue(Time::ZERO, packet(id, id % 4, 100), &mut log);
            }
            log.dropped.iter().map(|&(_, id, _)| id).collect::<Vec<_>>()
        };
        let mut by_chance: Vec<u32> = (0..64).flat_map(|seed| of_equals(Ties::Random, seed)).collect();
        by_chance.sort_unstable();
        by_chance.dedup();
        assert_eq!(by_chance, [0, 1, 2, 3]);
        assert_eq!(of_equals(Ties::Arrival, 1), [3]);
    }

    #[test]
    fn the_longest_queue_for_its_weight_loses_its_front_packet() {
        // 4 packets / 1 against 2 / 1: flow 0 loses its front, packet 1.
        assert_eq!(dropped(1.0), [1]);
        // 4 packets / 4 against 2 / 1: flow 1 loses its front, packet 2.
        assert_eq!(dropped(4.0), [2]);
    }
}
