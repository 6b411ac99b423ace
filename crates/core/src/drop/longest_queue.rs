//! Longest queue drop: when the buffer is too full, the flow that holds most of it for its weight gives up
//! its front packet.
//!
//! Suter, Lakshman, Stiliadis, Choudhury, "Design considerations for supporting TCP with per-flow queueing",
//! INFOCOM 1998. Held in bytes, divided by the flow's weight; with equal weights the victim is the longest
//! queue in bytes. Of equal ones the lowest flow number gives way. Deviation: a packet larger than the whole
//! buffer is dropped as overflow, rather than emptying the buffer in vain.
//!
//! Cost: O(1) per packet, O(log flows) per flow changed since the last victim when there has to be one; 44
//! bytes per flow. Behind a FIFO the front packet of a flow has to be searched for; behind a scheduler with a
//! queue per flow it is at hand. Parameters: [`ENTRY`].

use alloc::vec::Vec;

use super::tail::LIMIT;
use super::{BufferPolicy, Limit, Verdict, Victim};
use crate::catalog::{Args, Entry, ParamError, Role};
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued, Scheduler};
use crate::tournament::Tournament;
use crate::units::{Time, Weight};

/// Longest queue drop in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "lqd",
    role: Role::Policy,
    summary: "Longest queue drop: the flow that holds most of a full buffer gives up its front packet.",
    reference: "Suter, Lakshman, Stiliadis, Choudhury 1998",
    cost: "O(1) per packet, O(log flows) per push-out, 44 bytes per flow",
    params: &[LIMIT],
};

/// Parameters of [`LongestQueueDrop`].
#[derive(Clone, Debug, PartialEq)]
pub struct LongestQueueDropParams {
    /// Size of the buffer, shared by all flows.
    pub limit: Limit,
}

impl LongestQueueDropParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// None today.
    pub fn from_args(args: &Args) -> Result<Self, ParamError> {
        Ok(Self { limit: args.of(&ENTRY).limit("limit") })
    }
}

/// Longest queue drop at a limit.
#[derive(Clone, Debug)]
pub struct LongestQueueDrop {
    limit: Limit,
    flows: Vec<Share>,
    /// Bytes held, divided by weight.
    longest: Tournament,
}

/// What a flow holds of the buffer.
#[derive(Clone, Copy, Debug)]
struct Share {
    bytes: u64,
    /// 1 / weight: a product is cheaper than a quotient.
    per_weight: f64,
}

impl LongestQueueDrop {
    /// Pushes out beyond the limit.
    #[must_use]
    pub fn new(params: &LongestQueueDropParams) -> Self {
        Self { limit: params.limit, flows: Vec::new(), longest: Tournament::new() }
    }

    fn share(&mut self, flow: FlowId) -> &mut Share {
        if flow.slot() >= self.flows.len() {
            self.flows.resize(flow.slot() + 1, Share { bytes: 0, per_weight: 1.0 });
        }
        &mut self.flows[flow.slot()]
    }

    fn update(&mut self, flow: FlowId, change: impl FnOnce(&mut Share)) {
        let share = self.share(flow);
        change(share);
        let key = share.bytes as f64 * share.per_weight;
        self.longest.set(flow.slot(), key);
    }

    fn forget<P: Packet>(&mut self, packet: &P) {
        self.update(packet.flow(), |share| share.bytes -= packet.size().get());
    }
}

impl<P: Packet> BufferPolicy<P> for LongestQueueDrop {
    fn admit(&mut self, _now: Time, packet: &mut P, _backlog: Backlog) -> Verdict {
        if !self.limit.admits(packet, Backlog::EMPTY) {
            return Verdict::Drop(DropReason::Overflow);
        }
        self.update(packet.flow(), |share| share.bytes += packet.size().get());
        Verdict::Accept
    }

    fn victim<S: Scheduler<P>>(&mut self, _now: Time, scheduler: &S) -> Option<Victim> {
        if !self.limit.is_exceeded_by(scheduler.backlog()) {
            return None;
        }
        self.longest.largest().map(|flow| Victim { flow: FlowId(flow as u32), end: End::Head })
    }

    fn pushed_out(&mut self, packet: &P) {
        self.forget(packet);
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now)?;
        self.forget(&queued.packet);
        Some(queued)
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        self.update(flow, |share| share.per_weight = 1.0 / weight.get());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    /// Four packets of flow 0 and two of flow 1 in a buffer of five.
    fn dropped(weight_of_flow_0: f64) -> Vec<u32> {
        let mut policy =
            LongestQueueDrop::new(&LongestQueueDropParams { limit: Limit::Packets(Packets::new(5)) });
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
        // 400 B / 1 against 200 B / 1: flow 0 gives its front, packet 1.
        assert_eq!(dropped(1.0), [1]);
        // 400 B / 4 against 200 B / 1: flow 1 gives its front, packet 2.
        assert_eq!(dropped(4.0), [2]);
    }
}
