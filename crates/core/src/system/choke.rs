//! CHOKe, choose and keep, choose and kill: under congestion, each arrival is compared with a packet drawn
//! from the queue, and both are dropped if they belong to one flow.
//!
//! Pan, Prabhakar, Psounis, "CHOKe, a stateless active queue management scheme for approximating fair
//! bandwidth allocation", INFOCOM 2000, its flow chart. A flow that holds many packets is drawn often:
//! without state per flow, the flow with the most packets loses the most.
//!
//! A system rather than a buffer policy, because a policy sees no packets inside a scheduler.
//!
//! Readings, where the paper leaves room:
//! - Average, idle time, ramp and count are RED's (`average.rs`, `drop_curve.rs`), in packets. An average of
//!   `min_th` is no congestion yet.
//! - The draw comes first: above `max_th` an arrival that is dropped in any case removes a packet of its flow
//!   too. One packet is drawn for each arrival.
//! - In a pair, the packet from the queue is reported as pushed out, the arriving one as an early drop. A
//!   pair restarts the count.
//!
//! Cost: O(1) per packet; a packet removed from the queue moves those behind or before it up, O(queue). No
//! state per flow. Parameters: [`ENTRY`].

use alloc::collections::VecDeque;

use super::discipline::Discipline;
use crate::aqm::average::AverageQueue;
use crate::aqm::detection::{DetectionParams, MEAN_PKTSIZE};
use crate::aqm::drop_curve::DropSpacing;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Inside, LIMIT, Role, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Time};

/// CHOKe in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "choke",
    role: Role::System,
    summary: "CHOKe: RED that compares an arrival with a random packet of the queue; drops both if of one flow.",
    reference: "Pan, Prabhakar, Psounis 2000",
    cost: "O(1) per packet, O(queue) per pair dropped, no state per flow",
    params: ChokeParams::PARAMS,
    traits: Traits { inside: Inside::Part, ..Traits::NONE },
};

params! {
    /// Parameters of [`Choke`].
    pub struct ChokeParams {
        limit: Option<BufferSize> = LIMIT,
        /// RED's average queue and drop curve.
        ..detection: DetectionParams,
        mean_pktsize: Bytes = MEAN_PKTSIZE,
    }
    check: |params: &Self, _| params.detection.check(params.limit, params.mean_pktsize)
}

/// CHOKe's state.
#[derive(Clone, Debug)]
pub struct Choke<P> {
    params: ChokeParams,
    limit: LinkLimit,
    queue: VecDeque<P>,
    backlog: Backlog,
    /// Average queue, in the unit of the thresholds.
    average: AverageQueue,
    spacing: DropSpacing,
    random: Stream,
    pairs: u64,
}

impl<P: Packet> Choke<P> {
    /// An empty queue for a link of `link_rate`, with an average of 0.
    #[must_use]
    pub fn new(params: &ChokeParams, link_rate: Rate, random: Stream) -> Self {
        Self {
            queue: VecDeque::new(),
            backlog: Backlog::EMPTY,
            average: params.detection.average(params.mean_pktsize, link_rate),
            spacing: params.detection.spacing(),
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            random,
            pairs: 0,
        }
    }

    /// Draws a packet from the queue and removes it if it belongs to `flow`.
    fn draw(&mut self, flow: FlowId) -> Option<P> {
        let drawn = self.random.below(self.queue.len() as u64) as usize;
        self.queue.get(drawn).filter(|packet| packet.flow() == flow)?;
        let packet = self.queue.remove(drawn)?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn take_head(&mut self) -> Option<P> {
        let packet = self.queue.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl<P: Packet> Discipline<P> for Choke<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.take_head()
    }
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let first = self.queue.iter().position(|packet| packet.flow().slot() == flow.slot())?;
        let packet = self.queue.remove(first)?;
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
        self.average.set_link_rate(rate);
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("avg", self.average.get());
        show("pairs", self.pairs as f64);
    }
    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

impl<P: Packet> Queue<P> for Choke<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        self.average.update(now, self.params.detection.min_th.measure(self.backlog));
        let avg = self.average.get();
        if avg > self.params.detection.min_th.level()
            && !self.queue.is_empty()
            && let Some(drawn) = self.draw(packet.flow())
        {
            self.spacing.dropped();
            self.pairs += 1;
            sink.dropped(now, drawn, DropReason::PushOut);
            return sink.dropped(now, packet, DropReason::Early);
        }
        let early = self.spacing.early(avg, self.backlog.packets, 1.0, &mut self.random);
        let fits = self.limit.get().admits(&packet, self.backlog);
        let reason = if fits { early } else { Some(DropReason::Overflow) };
        if let Some(reason) = reason {
            self.spacing.dropped();
            return sink.dropped(now, packet, reason);
        }
        self.backlog.add(&packet);
        self.queue.push_back(packet);
    }

    fn dequeue(&mut self, now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        let packet = self.take_head();
        if packet.is_none() {
            self.average.idle(now);
        }
        packet
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::testing::{Log, packet};
    use crate::units::{Packets, Ratio};

    /// CHOKe with thresholds 5 and 15 and an average that equals the queue, which holds packets of these
    /// flows.
    fn holding(flows: &[u32]) -> Choke<SimplePacket> {
        let mut params = ChokeParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.detection.w_q = Ratio::ONE;
        let mut choke = Choke::new(&params, Rate::from_mbit(4), Stream::new(1, "choke"));
        for (id, &flow) in (0..).zip(flows) {
            let packet = packet(id, flow, 500);
            choke.backlog.add(&packet);
            choke.queue.push_back(packet);
        }
        choke
    }

    fn arrive(choke: &mut Choke<SimplePacket>, flow: u32) -> Vec<(u32, DropReason)> {
        let mut log = Log::default();
        choke.enqueue(Time::ZERO, packet(99, flow, 500), &mut log);
        log.dropped.into_iter().map(|(_, id, reason)| (id, reason)).collect()
    }

    #[test]
    fn without_congestion_nothing_is_compared() {
        // Five packets of the same flow: the average is at min_th, not above.
        assert_eq!(arrive(&mut holding(&[0; 5]), 0), []);
    }

    #[test]
    fn a_packet_drawn_of_the_same_flow_goes_with_the_arrival() {
        let mut choke = holding(&[0; 6]);
        let dropped = arrive(&mut choke, 0);
        let reasons: Vec<_> = dropped.iter().map(|drop| drop.1).collect();
        assert_eq!(reasons, [DropReason::PushOut, DropReason::Early]);
        assert!(dropped[0].0 < 6 && dropped[1].0 == 99);
        let backlog = Backlog { packets: Packets::new(5), bytes: Bytes::new(2_500) };
        assert_eq!((choke.backlog(), choke.pairs), (backlog, 1));
        // The others leave in their order.
        let left: Vec<_> = core::iter::from_fn(|| choke.drain(Time::ZERO)).map(|packet| packet.id).collect();
        assert!(left.is_sorted() && left.len() == 5 && !left.contains(&dropped[0].0));
        // An arrival of another flow is judged by RED: the first above min_th joins.
        assert_eq!(arrive(&mut holding(&[0; 6]), 1), []);
    }

    #[test]
    fn above_the_maximum_the_draw_still_comes_first() {
        assert_eq!(arrive(&mut holding(&[0; 15]), 1), [(99, DropReason::Forced)]);
        let reasons: Vec<_> = arrive(&mut holding(&[0; 15]), 0).into_iter().map(|drop| drop.1).collect();
        assert_eq!(reasons, [DropReason::PushOut, DropReason::Early]);
    }

    #[test]
    fn a_full_buffer_loses_the_arrival_as_overflow() {
        let mut choke = holding(&[0; 6]);
        choke.set_limit(Limit::Packets(Packets::new(6)));
        assert_eq!(arrive(&mut choke, 1), [(99, DropReason::Overflow)]);
    }

    #[test]
    fn a_flow_is_hit_in_proportion_to_what_it_holds() {
        // Two of eight packets: 0.25.
        let mut choke = holding(&[0, 1, 2, 3, 0, 4, 5, 6]);
        let full = choke.queue.clone();
        let hits = (0..20_000).filter(|_| {
            choke.queue.clone_from(&full);
            choke.backlog = Backlog { packets: Packets::new(8), bytes: Bytes::new(4_000) };
            choke.draw(FlowId(0)).is_some()
        });
        let share = hits.count() as f64 / 20_000.0;
        let band = 4.0 * (0.25 * 0.75 / 20_000.0_f64).sqrt();
        assert!((share - 0.25).abs() < band, "{share} against 0.25 ± {band}");
    }
}
