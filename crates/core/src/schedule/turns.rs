//! Turns by flow at the edge of a network, in one order with the packets of its core.
//!
//! A router of [CSFQ](crate::aqm::csfq) labels the packets that enter the network here, so it has state for their flows,
//! and can schedule these packets by flow. It has no state for the flows of packets that were labelled upstream.
//! One queue serves both:
//! - A packet that is labelled here waits in a queue of its flow, and leaves a *turn* in the order of arrivals.
//! - A packet that was labelled upstream waits in the order of arrivals itself, as in a FIFO.
//! - When a turn comes, [start-time fair queueing](super::start_time_fq) selects the flow that sends a packet.
//!
//! The edge's flows together thus get the service that a FIFO would give them, packet for packet, and so do the flows of the core.
//! If all packets are labelled here this is start-time fair queueing, and if none is, it is a FIFO.
//!
//! A flow's turns are weighted by what it may send: with the fair share FS, its weight w and guarantee g, g + w FS. In CSFQ FS is the same for all,
//! so a flow without a guarantee has its weight. In HCSFQ FS is the one of the flow's customer.
//!
//! A packet that a guarantee covers is served first, if no packet of its flow waits. Guarantees fit on the link, so these packets
//! starve no others. Weights alone would not keep a guarantee: each new flow may send a packet before the second one of an old flow,
//! so a thousand flows of one packet each delay it without bound.
//!
//! Limit: if only some packets of a flow have labels, a packet without one may overtake those with one.
//!
//! Cost: O(log flows) per packet that is labelled here, O(1) for others; 87 bytes per flow that is labelled here.

use alloc::collections::VecDeque;

use super::fifo::Fifo;
use super::start_time_fq::StartTimeFq;
use super::{End, Queued, Scheduler, Turn};
use crate::flow_setting::FlowSetting;
use crate::packet::{FlowId, Packet};
use crate::queue::Backlog;
use crate::units::{Time, Weight};

/// Flows by turns, and packets in order of arrival.
#[derive(Clone, Debug)]
pub struct Turns<P> {
    by_flow: StartTimeFq<P>,
    /// The packets that are served first.
    covered: Fifo<P>,
    /// The packets in order of arrival, each with the number of turns since the packet before it.
    in_order: VecDeque<(u32, Queued<P>)>,
    of_core: Backlog,
    /// The number of turns after the last of these packets.
    last: u32,
}

impl<P: Packet> Turns<P> {
    /// An empty scheduler. `smallest` is the smallest weight of a flow.
    #[must_use]
    pub fn new(smallest: Weight) -> Self {
        Self {
            by_flow: StartTimeFq::new(smallest),
            covered: Fifo::new(),
            in_order: VecDeque::new(),
            of_core: Backlog::EMPTY,
            last: 0,
        }
    }

    /// Whether the packet to serve next is one in order of arrival.
    fn is_core_next(&self) -> bool {
        self.in_order.front().is_some_and(|(turns, _)| *turns == 0)
    }

    /// Removes the packet at `index` in order of arrival. The turns before it stay.
    fn remove(&mut self, index: usize) -> Option<Queued<P>> {
        let (turns, queued) = self.in_order.remove(index)?;
        let behind = self.in_order.get_mut(index).map_or(&mut self.last, |(turns, _)| turns);
        *behind += turns;
        self.of_core.remove(&queued.packet);
        Some(queued)
    }

    /// Removes the last turn.
    fn forgo(&mut self) {
        let turns = self.in_order.iter_mut().map(|(turns, _)| turns).chain([&mut self.last]);
        if let Some(turns) = turns.rev().find(|turns| **turns > 0) {
            *turns -= 1;
        }
    }
}

impl<P: Packet> Scheduler<P> for Turns<P> {
    fn push(&mut self, now: Time, packet: P) {
        self.last += 1;
        self.by_flow.push(now, packet);
    }

    fn push_in_turn(&mut self, now: Time, packet: P, turn: Turn) {
        match turn {
            // Packets of a flow keep their order.
            Turn::First if !self.by_flow.holds(packet.flow()) => return self.covered.push(now, packet),
            Turn::Arrival if !self.by_flow.holds(packet.flow()) => {
                self.of_core.add(&packet);
                let turns = core::mem::take(&mut self.last);
                return self.in_order.push_back((turns, Queued { packet, arrived: now }));
            }
            Turn::Weighted(weight) => _ = self.by_flow.set_flow(packet.flow(), FlowSetting::Weight(weight)),
            Turn::First | Turn::Arrival | Turn::Flow => {}
        }
        self.push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        if let Some(queued) = self.covered.pop(now) {
            return Some(queued);
        }
        if self.is_core_next() {
            return self.remove(0);
        }
        // An empty scheduler learns that the link is idle.
        let queued = self.by_flow.pop(now);
        if queued.is_some() {
            *self.in_order.front_mut().map_or(&mut self.last, |(turns, _)| turns) -= 1;
        }
        debug_assert!(queued.is_some() || self.backlog().is_empty(), "a turn without a packet at {now}");
        queued
    }

    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        // Packets in order of arrival are older than those of the flow's queue.
        let in_order = |turns: &mut Self| {
            let is_victim = |(_, queued): &(u32, Queued<P>)| queued.packet.flow().slot() == flow.slot();
            let index = match end {
                End::Head => turns.in_order.iter().position(is_victim),
                End::Tail => turns.in_order.iter().rposition(is_victim),
            };
            turns.remove(index?)
        };
        let by_flow = |turns: &mut Self| {
            let queued = turns.by_flow.push_out(now, flow, end)?;
            turns.forgo();
            Some(queued)
        };
        let covered = |turns: &mut Self| turns.covered.push_out(now, flow, end);
        match end {
            End::Head => covered(self).or_else(|| in_order(self)).or_else(|| by_flow(self)),
            End::Tail => by_flow(self).or_else(|| in_order(self)).or_else(|| covered(self)),
        }
    }

    fn next_flow(&self) -> Option<FlowId> {
        self.front().map(|queued| queued.packet.flow())
    }

    fn front(&self) -> Option<&Queued<P>> {
        let turn = || match self.is_core_next() {
            true => self.in_order.front().map(|(_, queued)| queued),
            false => self.by_flow.front(),
        };
        self.covered.front().or_else(turn)
    }

    fn keeps_flows_apart(&self) -> bool {
        false
    }

    fn backlog(&self) -> Backlog {
        self.by_flow.backlog().plus(self.of_core).plus(self.covered.backlog())
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.by_flow.set_flow(flow, setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::schedule::testing::{push, serve};
    use crate::testing::packet;

    fn turns() -> Turns<SimplePacket> {
        Turns::new(Weight::ONE)
    }

    /// Pushes packets of 100 B in order of arrival.
    fn from_upstream(turns: &mut Turns<SimplePacket>, packets: &[(u32, u32)]) {
        packets
            .iter()
            .for_each(|&(id, flow)| turns.push_in_turn(Time::ZERO, packet(id, flow, 100), Turn::Arrival));
    }

    #[test]
    fn packets_labelled_here_take_turns_by_flow() {
        let mut turns = turns();
        push(&mut turns, 1, &[(0, 100), (0, 100), (0, 100), (1, 100)]);
        assert_eq!(serve(&mut turns, 9), [1, 4, 2, 3]);
    }

    #[test]
    fn packets_labelled_upstream_keep_their_places_among_turns() {
        let mut turns = turns();
        push(&mut turns, 1, &[(0, 100), (0, 100)]);
        from_upstream(&mut turns, &[(3, 7), (4, 8)]);
        push(&mut turns, 5, &[(0, 100), (1, 100)]);
        from_upstream(&mut turns, &[(7, 7)]);
        assert_eq!(turns.backlog().packets.get(), 7);
        // Flow 1 takes the second turn, which comes before packet 3.
        assert_eq!(serve(&mut turns, 99), [1, 6, 3, 4, 2, 5, 7]);
        assert!(turns.backlog().is_empty());
    }

    #[test]
    fn a_core_has_no_state_of_flows() {
        let mut turns = turns();
        from_upstream(&mut turns, &[(1, 900_000), (2, 5), (3, 900_000)]);
        assert_eq!(turns.by_flow.bytes(), StartTimeFq::<SimplePacket>::new(Weight::ONE).bytes());
        assert_eq!(serve(&mut turns, 9), [1, 2, 3]);
    }

    #[test]
    fn a_weight_of_a_packet_is_one_of_its_flow() {
        let mut turns = turns();
        let third = Turn::Weighted(Weight::new(3.0).unwrap());
        (1..=6).for_each(|id| turns.push_in_turn(Time::ZERO, packet(id, 0, 300), third));
        push(&mut turns, 7, &[(1, 300), (1, 300)]);
        assert_eq!(serve(&mut turns, 9), [1, 7, 2, 3, 4, 8, 5, 6]);
    }

    #[test]
    fn a_covered_packet_is_first_unless_its_flow_waits() {
        let mut turns = turns();
        let covered = |turns: &mut Turns<_>, id, flow| {
            turns.push_in_turn(Time::ZERO, packet(id, flow, 100), Turn::First);
        };
        push(&mut turns, 1, &[(0, 100), (1, 100)]);
        from_upstream(&mut turns, &[(3, 7)]);
        covered(&mut turns, 4, 2);
        covered(&mut turns, 5, 1);
        assert_eq!(turns.front().unwrap().packet.id, 4);
        assert_eq!((turns.backlog().packets.get(), serve(&mut turns, 9)), (5, std::vec![4, 1, 2, 3, 5]));
    }

    #[test]
    fn packets_pushed_out_leave_no_turn_behind() {
        let mut turns = turns();
        push(&mut turns, 1, &[(0, 100), (1, 100)]);
        from_upstream(&mut turns, &[(3, 7), (4, 7)]);
        push(&mut turns, 5, &[(0, 100)]);
        let mut push_out =
            |flow, end| turns.push_out(Time::ZERO, FlowId(flow), end).map(|queued| queued.packet.id);
        assert_eq!(push_out(0, End::Tail), Some(5));
        assert_eq!(push_out(7, End::Head), Some(3));
        assert_eq!(push_out(0, End::Head), Some(1));
        assert_eq!(push_out(9, End::Head), None);
        assert_eq!(serve(&mut turns, 9), [2, 4]);
        assert_eq!(turns.last, 0);
    }
}
