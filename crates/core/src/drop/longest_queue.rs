//! Longest queue drop: when the buffer is too full, the flow that holds most of it for its threshold gives up
//! its front packet.
//!
//! Suter, Lakshman, Stiliadis, Choudhury, "Design considerations for supporting TCP with per-flow queueing",
//! INFOCOM 1998: the victim has the largest q_i - b_i. Thresholds and readings:
//! [`occupancy`](super::occupancy). The default is q_i/b_i with thresholds by weight, so that a flow that
//! may have twice the rate may hold twice as much; with equal weights that is the longest queue, by either
//! rule. Deviation: a packet larger than the whole buffer is dropped as overflow, rather than emptying the
//! buffer in vain.
//!
//! Cost: O(1) per packet, O(log flows) per flow changed since the last victim when there has to be one; 61
//! bytes per flow. Behind a FIFO the front packet of a flow has to be searched for; behind a scheduler with a
//! queue per flow it is at hand. Parameters: [`ENTRY`].

use super::occupancy::{Choice, Occupancy, Thresholds, thresholds};
use super::red::param;
use super::tail::LIMIT;
use super::{BufferPolicy, Limit, Verdict, Victim};
use crate::catalog::{Args, Entry, Kind, ParamError, Role};
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued, Scheduler};
use crate::units::{Span, Time, Weight};

/// Longest queue drop in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "lqd",
    role: Role::Policy,
    summary: "Longest queue drop: the flow that holds most of a full buffer gives up its front packet.",
    reference: "Suter, Lakshman, Stiliadis, Choudhury 1998",
    cost: "O(1) per packet, O(log flows) per push-out, 61 bytes per flow",
    params: &[
        LIMIT,
        thresholds("weights", "chosen: who may send more may hold more"),
        param(
            "victim",
            "argmax",
            Kind::Choice(&["ratio", "difference"]),
            "ratio",
            "chosen: the same for all scales of thresholds; 1998 paper: difference",
            "Who gives up a packet: the flow with the largest q_i/b_i, or with the largest q_i - b_i.",
        ),
    ],
};

/// Parameters of [`LongestQueueDrop`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue entry is their only description")]
pub struct LongestQueueDropParams {
    pub limit: Limit,
    pub thresholds: Thresholds,
    pub victim: Choice,
}

impl LongestQueueDropParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// None today.
    pub fn from_args(args: &Args) -> Result<Self, ParamError> {
        let args = args.of(&ENTRY);
        Ok(Self {
            limit: args.limit("limit"),
            thresholds: Thresholds::of(args.choice("thresholds")),
            victim: Choice::of(args.choice("victim")),
        })
    }
}

/// Longest queue drop at a limit.
#[derive(Clone, Debug)]
pub struct LongestQueueDrop {
    occupancy: Occupancy,
}

impl LongestQueueDrop {
    /// Pushes out beyond the limit. `rtts` are the round-trip times by flow; zero, or beyond its end:
    /// unknown.
    #[must_use]
    pub fn new(params: &LongestQueueDropParams, rtts: &[Span]) -> Self {
        Self { occupancy: Occupancy::new(params.limit, params.thresholds, params.victim, rtts) }
    }
}

impl<P: Packet> BufferPolicy<P> for LongestQueueDrop {
    fn admit(&mut self, _now: Time, packet: &mut P, _backlog: Backlog) -> Verdict {
        self.occupancy.admit(packet)
    }

    fn victim<S: Scheduler<P>>(&mut self, _now: Time, scheduler: &S) -> Option<Victim> {
        if !self.occupancy.is_exceeded(scheduler.backlog()) {
            return None;
        }
        // Neither rule leaves anything to chance.
        let flow = self.occupancy.choose(|| 0.0)?;
        Some(Victim { flow, end: End::Head, reason: DropReason::PushOut })
    }

    fn pushed_out(&mut self, packet: &P) {
        self.occupancy.remove(packet);
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now)?;
        self.occupancy.remove(&queued.packet);
        Some(queued)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("active_flows", self.occupancy.active() as f64);
    }

    fn set_limit(&mut self, limit: Limit) {
        self.occupancy.set_limit(limit);
    }

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        self.occupancy.set_weight(flow, weight)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::buffer::Buffer;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    /// Four packets of flow 0 and two of flow 1 in a buffer of five.
    fn dropped(weight_of_flow_0: f64) -> Vec<u32> {
        let params = LongestQueueDropParams::from_args(&Args::default()).unwrap();
        let params = LongestQueueDropParams { limit: Limit::Packets(Packets::new(5)), ..params };
        let mut policy = LongestQueueDrop::new(&params, &[]);
        let weight = Weight::new(weight_of_flow_0).unwrap();
        assert!(BufferPolicy::<crate::testing::TestPacket>::set_weight(&mut policy, FlowId(0), weight));
        let mut queue = Buffer::new(Fifo::new(), policy);
        let mut log = Log::default();
        for (id, flow) in [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0), (6, 1)] {
            queue.enqueue(Time::ZERO, packet(id, flow, 100), &mut log);
        }
        log.dropped.iter().map(|&(_, id, _)| id).collect()
    }

    #[test]
    fn the_longest_queue_for_its_weight_loses_its_front_packet() {
        // 4 packets / 1 against 2 / 1: flow 0 gives its front, packet 1.
        assert_eq!(dropped(1.0), [1]);
        // 4 packets / 4 against 2 / 1: flow 1 gives its front, packet 2.
        assert_eq!(dropped(4.0), [2]);
    }
}
