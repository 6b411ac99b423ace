//! Random drop from a queue above its threshold, RND in its sources: when the buffer is exceeded, one of the
//! flows that hold more than their threshold, chosen uniformly, loses its front packet.
//!
//! Suter, Lakshman, Stiliadis, Choudhury, "Design considerations for supporting TCP with per-flow queueing",
//! INFOCOM 1998, as described by Srinivasan, Vaidyanathan, Baras, section 3. Thresholds and readings:
//! [`occupancy`](super::occupancy). Deviation: a packet larger than the whole buffer is dropped as overflow.
//!
//! Cost: O(1) per packet and per push-out with a limit in packets; with one in bytes and equal thresholds a
//! step per 64 bytes of the packet. At most 56 bytes per flow and 8 per packet of the longest queue, or per
//! 64 bytes of it; with thresholds by weight or round-trip time at most 64 bytes per flow, 88 more by round-trip
//! time. Parameters: [`ENTRY`].

use super::dimensioning::{Dimensioning, RTT_OF, RttOf, refuse_idle_rtt_of};
use super::occupancy::{Choice, Occupancy, THRESHOLDS, Thresholds};
use super::push_out::{PushOut, Rule};
use crate::limit::{BufferSize, LinkLimit};
use crate::param::{Entry, Heeds, Inside, LIMIT, Role, Shares, Traits};
use crate::params;
use crate::queue::DropReason;
use crate::random::Stream;
use crate::units::{Rate, Span, Time};

/// Random drop in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "random_drop",
    role: Role::Policy,
    summary: "Random queue drop: a full buffer drops the head packet of a random flow above its share.",
    reference: "Suter, Lakshman, Stiliadis, Choudhury 1998",
    cost: "O(1) per packet, at most 64 bytes per flow",
    params: RandomDropParams::PARAMS,
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
    /// Parameters of [`RandomDrop`].
    pub struct RandomDropParams {
        limit: Option<BufferSize> = LIMIT,
        thresholds: Thresholds = THRESHOLDS.in_paper("equal"),
        rtt_of: RttOf = RTT_OF,
    }
    check: |params: &Self, args| refuse_idle_rtt_of(params.thresholds, args)
}

/// Random drop at a limit.
pub type RandomDrop = PushOut<AtRandom>;

/// The rule of RND: a packet of a random flow is dropped when the buffer is exceeded.
#[derive(Clone, Debug)]
pub struct AtRandom(Stream);

impl RandomDrop {
    /// Pushes out beyond the limit, for a link of `link_rate`. `rtts` are the round-trip times by flow; zero,
    /// or beyond its end: unknown.
    #[must_use]
    pub fn new(params: &RandomDropParams, link_rate: Rate, rtts: &[Span], random: Stream) -> Self {
        let limit = LinkLimit::new(params.limit, link_rate);
        let dimensioning = Dimensioning::new(params.thresholds, params.rtt_of, rtts);
        let occupancy = Occupancy::new(limit.get(), params.thresholds, Choice::Uniform, rtts);
        Self::with(limit, occupancy, dimensioning, AtRandom(random))
    }
}

impl Rule for AtRandom {
    fn reason(&mut self, _now: Time, _occupancy: &Occupancy, is_exceeded: bool) -> Option<DropReason> {
        is_exceeded.then_some(DropReason::PushOut)
    }

    fn uniform(&mut self) -> f64 {
        self.0.uniform()
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::BufferPolicy;
    use crate::buffer::Buffer;
    use crate::flow_setting::FlowSetting;
    use crate::packet::FlowId;
    use crate::packet::SimplePacket;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Weight;

    /// Drops by flow in 20 000 overflows of a buffer in which flows 0 to 3 hold 5, 4, 2 and 1 packets, and
    /// the thirteenth is flow 3's second.
    fn drops(thresholds: Thresholds, limit: &str, weights: [f64; 4], rtts: &[Span]) -> [f64; 4] {
        let params = RandomDropParams { limit: limit.parse().ok(), thresholds, rtt_of: RttOf::All };
        let mut counts = [0.0; 4];
        let mut random = Stream::new(1, "rnd");
        for _ in 0..20_000 {
            let mut policy = RandomDrop::new(&params, Rate::from_mbit(1), rtts, random.clone());
            for (flow, weight) in (0..).map(FlowId).zip(weights) {
                BufferPolicy::<SimplePacket>::set_flow(
                    &mut policy,
                    flow,
                    FlowSetting::Weight(Weight::new(weight).unwrap()),
                );
            }
            let mut queue = Buffer::new(Fifo::new(), policy);
            let mut log = Log::default();
            let flows: Vec<u32> = [0; 5].into_iter().chain([1; 4]).chain([2, 2, 3, 3]).collect();
            for &flow in &flows {
                queue.enqueue(Time::ZERO, packet(flow, flow, 100), &mut log);
            }
            assert_eq!(log.dropped.len(), 1);
            counts[log.dropped[0].1 as usize] += 1.0 / 20_000.0;
            random.uniform();
        }
        counts
    }

    #[test]
    fn each_flow_above_its_threshold_is_equally_likely_and_no_other_is_drawn() {
        // b_i = 12/4 = 3: 5 and 4 are above. 1/2 each; sigma = sqrt(1/4/20000) = 0.35 %.
        let band = 4.0 * (0.25 / 20_000.0_f64).sqrt();
        for limit in ["12p", "1200B"] {
            let shares = drops(Thresholds::Equal, limit, [1.0; 4], &[]);
            assert!((shares[0] - 0.5).abs() < band, "{limit}: {shares:?}");
            assert_eq!((shares[2], shares[3]), (0.0, 0.0), "{limit}");
        }
    }

    #[test]
    fn thresholds_follow_weights_or_round_trip_times() {
        // 12 packets shared 6 : 1 : 1 : 4 = 6, 1, 1 and 4: flows 1 and 2 are above, with 4 and 2.
        let band = 4.0 * (0.25 / 20_000.0_f64).sqrt();
        let rtts = [60, 10, 10, 40].map(Span::from_millis);
        for shares in [
            drops(Thresholds::Weights, "12p", [6.0, 1.0, 1.0, 4.0], &[]),
            drops(Thresholds::Rtt, "12p", [1.0; 4], &rtts),
            drops(Thresholds::Rtt, "1200B", [1.0; 4], &rtts),
        ] {
            assert!((shares[1] - 0.5).abs() < band, "{shares:?}");
            assert_eq!((shares[0], shares[3]), (0.0, 0.0));
        }
    }
}
