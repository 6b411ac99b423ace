//! DRR, deficit round robin: flows take turns, and each turn grants a quantum of bytes.
//!
//! Shreedhar, Varghese, "Efficient fair queueing using deficit round robin", IEEE/ACM ToN 4(3), 1996,
//! sections III and IV. At the start of a turn the flow's deficit counter grows by its quantum, once. The
//! flow is served while the counter covers the packet at the head; the rest is kept for the next turn. A flow
//! that runs empty leaves the round and loses its counter; a flow that becomes backlogged joins the round at
//! its tail.
//!
//! Deviations:
//! - A turn ends when its last packet is taken, not when the next packet is asked for. A flow that becomes
//!   backlogged during that transmission therefore joins behind the flow just served. For the same reason a
//!   flow that is alone takes the turns that its head packet needs at once.
//! - Counters are kept in 2^-16 bytes, so that weights do not round a quantum to whole bytes.
//! - The flow with the smallest weight gets one quantum and others proportionally more: weights of 100 and
//!   300 mean the same as 1 and 3. The paper's O(1) and short turns then hold whatever the scale of the
//!   weights.
//!
//! Fairness (Theorem 2): over any interval in which two flows are backlogged, their service per weight
//! differs by less than a quantum plus twice the largest packet.
//!
//! Cost: O(1) per packet if the quantum is at least the largest packet, else as many turns as the packet
//! needs quanta. The worst call visits the backlogged flows four times, however small the quantum: after a
//! round in which no flow could pay, all following rounds without service are granted at once. At most 64
//! bytes per flow: records of 32, allocated for up to twice as many flows. Parameters: [`ENTRY`].
//!
//! Statistics: `backlogged_flows`, the length of the ActiveList; `rounds`, the number of completed rounds
//! since the start. A round is complete when each flow that was backlogged at its beginning has had its turn
//! or left.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{End, Queued, Scheduler};
use crate::flow_setting::FlowSetting;
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Heeds, Inside, Param, Role, Shares, Traits, require};
use crate::params;
use crate::queue::Backlog;
use crate::units::{Bytes, Time, Weight};

/// DRR in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "drr",
    role: Role::Scheduler,
    summary: "Deficit round robin: backlogged flows take turns of a quantum of bytes times their weight.",
    reference: "Shreedhar, Varghese 1996",
    cost: "O(1) per packet, at most 64 bytes per flow",
    params: DrrParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "It divides by weight only if the buffer holds a round, which is a `quantum` for the smallest \
            weight and in proportion for the others: lower `quantum` or raise `limit`.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Drr`].
    pub struct DrrParams {
        /// Bytes in a turn of the flow with the smallest weight; others have more, in proportion to their weights.
        quantum: Bytes = Param::of("1500B", "section IV: at least the largest packet; chosen: Ethernet's").symbol("Q"),
    }
    check: |params: &Self, _| require(params.quantum > Bytes::ZERO, "quantum", "a quantum must be at least 1B")
}

/// A size in the fixed point of the deficit counters.
pub(crate) fn scaled(size: Bytes) -> u64 {
    size.get() << 16
}

/// The bytes that a turn grants, by weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quanta {
    per_weight: f64,
}

impl Quanta {
    /// Quanta that grant `quantum` to a flow of weight `smallest`.
    pub fn new(quantum: Bytes, smallest: Weight) -> Self {
        Self { per_weight: scaled(quantum) as f64 / smallest.get() }
    }

    /// The grant in the fixed point of the deficit counters. At least a byte, so that every flow advances,
    /// and at most 2^32 bytes, so that no counter overflows.
    pub fn of(self, weight: Weight) -> u64 {
        libm::round(self.per_weight * weight.get()).clamp(65_536.0, 281_474_976_710_656.0) as u64
    }
}

/// The amount that a packet takes from the deficit counter of its flow.
pub trait Charge {
    /// The charge in the fixed point of the counters.
    fn of<P: Packet>(packet: &P) -> u64;
}

/// The paper's charge: a packet pays for its bytes.
#[derive(Clone, Copy, Debug)]
pub enum ByBytes {}

impl Charge for ByBytes {
    fn of<P: Packet>(packet: &P) -> u64 {
        scaled(packet.size())
    }
}

/// A deficit round robin over flows.
pub type Drr<P> = Turns<P, ByBytes>;

/// A deficit round robin over flows, with charges `C` for packets.
#[derive(Clone, Debug)]
pub struct Turns<P, C> {
    quanta: Quanta,
    flows: Vec<Flow>,
    packets: Pool<P>,
    /// The paper's ActiveList: the backlogged flows. The one at the front has its turn and can pay for its
    /// head packet.
    active: List,
    /// The backlogged flow whose turn ends the round. Flows behind it have joined since the round began, or
    /// have had their turn.
    last: Option<usize>,
    /// The number of completed rounds.
    rounds: u64,
    backlog: Backlog,
    charge: PhantomData<C>,
    /// The number of turns that were passed on.
    #[cfg(test)]
    turns: u64,
}

/// A flow. Two share a cache line and none lies across two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Flow {
    link: Link,
    queue: PacketQueue,
    quantum: u64,
    /// The paper's DC.
    deficit: u64,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl<P: Packet> Drr<P> {
    /// An empty round with a quantum a turn for a flow of weight `smallest`.
    #[must_use]
    pub fn new(params: &DrrParams, smallest: Weight) -> Self {
        Self::with(Quanta::new(params.quantum, smallest))
    }
}

impl<P: Packet, C: Charge> Turns<P, C> {
    /// An empty round with these quanta.
    pub(super) const fn with(quanta: Quanta) -> Self {
        Self {
            quanta,
            flows: Vec::new(),
            packets: Pool::new(),
            active: List::EMPTY,
            last: None,
            rounds: 0,
            backlog: Backlog::EMPTY,
            charge: PhantomData,
            #[cfg(test)]
            turns: 0,
        }
    }

    #[inline]
    fn flow(&mut self, id: FlowId) -> &mut Flow {
        if id.slot() >= self.flows.len() {
            self.grow(id.slot() + 1);
        }
        &mut self.flows[id.slot()]
    }

    // Not inlined: otherwise each call of `flow` saves all registers.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, flows: usize) {
        let quantum = self.quanta.of(Weight::ONE);
        let idle = Flow { link: Link::NONE, queue: PacketQueue::EMPTY, quantum, deficit: 0 };
        self.flows.resize(flows, idle);
    }

    /// Grants the flow at the front its quantum, and passes the turn on until it reaches a flow that can pay.
    fn begin_turn(&mut self) {
        if let Some(front) = self.active.front() {
            self.flows[front].deficit += self.flows[front].quantum;
            self.settle();
        }
    }

    /// Passes the turn on while the flow at the front cannot pay for its head packet.
    ///
    /// Terminates: after one full round, all remaining rounds without service but one are skipped.
    fn settle(&mut self) {
        let first = self.active.front();
        while let Some(front) = self.active.front() {
            if self.wants(front) == 0 {
                return;
            }
            // A round that ends with the flow at the front ends with it again: the flow goes to the back.
            self.rounds += u64::from(self.last == Some(front));
            self.active.rotate(&mut self.flows);
            if self.active.front() == first {
                self.skip_rounds();
            }
            if let Some(next) = self.active.front() {
                self.flows[next].deficit += self.flows[next].quantum;
            }
            #[cfg(test)]
            {
                self.turns += 1;
            }
        }
    }

    /// The amount that a flow lacks to pay for its head packet.
    fn wants(&self, flow: usize) -> u64 {
        let Flow { queue, deficit, .. } = &self.flows[flow];
        queue.front(&self.packets).map_or(0, |head| C::of(&head.packet).saturating_sub(*deficit))
    }

    /// Grants every flow its quanta of the following rounds in which no flow can pay.
    fn skip_rounds(&mut self) {
        let (mut needed, mut flow) = (u64::MAX, self.active.front());
        while let Some(index) = flow {
            needed = needed.min(self.wants(index).div_ceil(self.flows[index].quantum));
            flow = self.active.behind(&mut self.flows, index);
        }
        // Some flow can pay in round `needed`. Until then every counter stays below its head packet.
        let fruitless = needed.saturating_sub(1);
        self.rounds = self.rounds.saturating_add(fruitless);
        let mut flow = self.active.front();
        while let Some(index) = flow.filter(|_| fruitless > 0) {
            self.flows[index].deficit += fruitless * self.flows[index].quantum;
            flow = self.active.behind(&mut self.flows, index);
        }
    }

    /// Removes `flow` from the round, and ends the round if it was the last and has its turn.
    fn leave(&mut self, flow: usize, has_turn: bool) {
        if self.last == Some(flow) {
            self.rounds += u64::from(has_turn);
            self.last = self.active.before(&mut self.flows, flow);
        }
        self.active.remove(&mut self.flows, flow);
        self.last = self.last.or(self.active.back());
    }

    /// Removes a packet from `flow`'s queue, and the flow from the round if it was the flow's last packet.
    /// `cost` is the charge of a packet.
    fn take(&mut self, flow: usize, end: End, cost: fn(&P) -> u64) -> Option<Queued<P>> {
        let queued = self.flows.get_mut(flow)?.queue.pop(&mut self.packets, end)?;
        self.backlog.remove(&queued.packet);
        let had_turn = self.active.front() == Some(flow);
        let state = &mut self.flows[flow];
        if state.queue.is_empty() {
            state.deficit = 0;
            self.leave(flow, had_turn);
            if had_turn {
                self.begin_turn();
            }
        } else if had_turn {
            state.deficit -= cost(&queued.packet);
            self.settle();
        }
        Some(queued)
    }
}

impl<P: Packet, C: Charge> Scheduler<P> for Turns<P, C> {
    fn push(&mut self, now: Time, packet: P) {
        self.backlog.add(&packet);
        let id = packet.flow();
        let was_idle = self.flow(id).queue.is_empty();
        self.flows[id.slot()].queue.push(&mut self.packets, Queued { packet, arrived: now });
        if was_idle {
            let was_empty = self.active.is_empty();
            self.active.push_back(&mut self.flows, id.slot());
            if was_empty {
                self.last = Some(id.slot());
                self.begin_turn();
            }
        }
    }

    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let front = self.active.front()?;
        self.take(front, End::Head, C::of)
    }

    fn push_out(&mut self, _now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        self.take(flow.slot(), end, |_| 0)
    }

    #[inline]
    fn next_flow(&self) -> Option<FlowId> {
        self.active.front().map(|flow| FlowId(flow as u32))
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.flows[self.active.front()?].queue.front(&self.packets)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let backlogged = self.flows.iter().filter(|flow| !flow.queue.is_empty()).count();
        show("backlogged_flows", backlogged as f64);
        show("rounds", self.rounds as f64);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        self.flow(flow).quantum = self.quanta.of(weight);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::testing::packet;

    fn drr(quantum: u64) -> Drr<SimplePacket> {
        Drr::new(&DrrParams { quantum: Bytes::new(quantum) }, Weight::ONE)
    }

    /// Pushes packets of these flows and sizes, numbered from 1.
    fn push(drr: &mut Drr<SimplePacket>, packets: &[(u32, u64)]) {
        for (id, &(flow, size)) in (1..).zip(packets) {
            drr.push(Time::ZERO, packet(id, flow, size));
        }
    }

    fn serve(drr: &mut Drr<SimplePacket>, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| drr.pop(Time::ZERO)).map(|queued| queued.packet.id).collect()
    }

    #[test]
    fn the_example_of_the_paper() {
        // Figures 2 and 3: quantum 500; flow 0 holds 200, 750, 20; flow 1 holds 500. Flow 0 sends 200 and
        // keeps 300; flow 1 sends 500 and is empty; flow 0 has 300 + 500 = 800, sends 750, keeps 50, sends
        // 20.
        let mut round = drr(500);
        push(&mut round, &[(0, 200), (0, 750), (0, 20), (1, 500)]);
        assert_eq!(round.pop(Time::ZERO).map(|q| q.packet.id), Some(1));
        assert_eq!(round.flows[0].deficit >> 16, 300);
        assert_eq!(serve(&mut round, 9), [4, 2, 3]);
        assert_eq!(round.flows[0].deficit, 0, "an empty flow keeps nothing");
    }

    /// The number of backlogged flows, and of rounds.
    fn statistics(round: &Drr<SimplePacket>) -> Vec<(&'static str, f64)> {
        let mut shown = Vec::new();
        round.statistics(&mut |name, value| shown.push((name, value)));
        shown
    }

    #[test]
    fn backlogged_flows_and_rounds_are_shown() {
        // Quantum 500: each flow sends one packet of 400 in a turn. Flow 0 joins the empty round and is alone
        // in it; flows 1 and 2 join behind it, for the next round.
        let mut round = drr(500);
        let shown = |flows, rounds| [("backlogged_flows", flows), ("rounds", rounds)];
        push(&mut round, &[(0, 400), (0, 500), (1, 400), (1, 500), (2, 400)]);
        assert_eq!(statistics(&round), shown(3.0, 0.0));
        // Turns: 0 | 1 2 0 | 1. The first turn of flow 0 ends the first round, its second turn the second.
        for (flows, rounds) in [(3.0, 1.0), (3.0, 1.0), (2.0, 1.0), (1.0, 2.0), (0.0, 3.0)] {
            serve(&mut round, 1);
            assert_eq!(statistics(&round), shown(flows, rounds));
        }
        // Flow 3 is alone, and its packet takes 4 quanta: three rounds without service, and one with it.
        push(&mut round, &[(3, 2_000)]);
        assert_eq!(statistics(&round), shown(1.0, 6.0));
        serve(&mut round, 1);
        assert_eq!(statistics(&round), shown(0.0, 7.0));
    }

    #[test]
    fn a_round_whose_last_flow_is_pushed_out_ends_with_the_one_before_it() {
        let mut round = drr(500);
        // The round of flow 0 alone ends with its first packet; the round of 1, 2 and 0 follows.
        push(&mut round, &[(0, 400), (0, 500), (0, 500), (1, 400), (2, 400), (2, 500)]);
        serve(&mut round, 1);
        round.push_out(Time::ZERO, FlowId(0), End::Tail);
        round.push_out(Time::ZERO, FlowId(0), End::Tail);
        assert_eq!(statistics(&round), [("backlogged_flows", 2.0), ("rounds", 1.0)]);
        serve(&mut round, 1);
        assert_eq!(statistics(&round), [("backlogged_flows", 1.0), ("rounds", 1.0)]);
        serve(&mut round, 1);
        assert_eq!(statistics(&round), [("backlogged_flows", 1.0), ("rounds", 2.0)]);
    }

    #[test]
    fn a_flow_emptied_by_push_out_leaves_the_round() {
        let mut round = drr(500);
        push(&mut round, &[(0, 100), (1, 100), (2, 100)]);
        // Push-out from the flow in turn, then from one that waits.
        assert_eq!(round.push_out(Time::ZERO, FlowId(0), End::Head).map(|q| q.packet.id), Some(1));
        assert_eq!(round.next_flow(), Some(FlowId(1)));
        assert_eq!(round.push_out(Time::ZERO, FlowId(2), End::Tail).map(|q| q.packet.id), Some(3));
        assert_eq!(round.push_out(Time::ZERO, FlowId(2), End::Tail), None);
        assert_eq!(serve(&mut round, 9), [2]);
        assert!(round.backlog().is_empty());
    }

    #[test]
    fn a_packet_pushed_out_is_not_charged_and_the_turn_passes_if_the_next_is_too_large() {
        let mut round = drr(500);
        push(&mut round, &[(0, 400), (0, 600), (1, 100)]);
        // Flow 0 keeps its 500, but 600 exceeds it: flow 1 is next, and then flow 0 with 1000.
        round.push_out(Time::ZERO, FlowId(0), End::Head);
        assert_eq!(round.next_flow(), Some(FlowId(1)));
        assert_eq!(round.flows[0].deficit >> 16, 500);
        assert_eq!(serve(&mut round, 9), [3, 2]);
    }

    #[test]
    fn a_quantum_smaller_than_a_packet_saves_up() {
        let mut round = drr(100);
        push(&mut round, &[(1, 100), (0, 350), (1, 100), (1, 100), (1, 100), (1, 100)]);
        // Flow 0 needs four turns; flow 1 has one turn before and three between.
        assert_eq!(serve(&mut round, 9), [1, 3, 4, 5, 2, 6]);
    }

    #[test]
    fn fruitless_rounds_are_skipped_at_once_and_the_order_is_that_of_single_turns() {
        // A quantum of one byte, 1 to 3 by weight. Heads of 1500, 40 and 900 B need 1500, 20 and 300 turns;
        // the next packet of flow 1, 700 B, needs 350 from turn 20 on. Flow 2 keeps nothing.
        let mut round = drr(1);
        for (flow, weight) in [(1, 2.0), (2, 3.0)] {
            round.set_flow(FlowId(flow), FlowSetting::Weight(Weight::new(weight).unwrap()));
        }
        push(&mut round, &[(0, 1_500), (1, 40), (1, 700), (2, 900), (2, 300), (2, 2_000)]);
        // In the order of their turns: 20; 300; 20 + 350 = 370; 300 + 100 = 400; 400 + 667 = 1067; 1500.
        // The push of packet 1 alone has taken its 1500 turns at once.
        assert_eq!(serve(&mut round, 9), [1, 2, 4, 3, 5, 6]);
    }

    #[test]
    fn the_worst_call_goes_round_twice() {
        let mut round = drr(1);
        let packets: Vec<(u32, u64)> = (0..1_000).map(|flow| (flow, 65_535 - u64::from(flow))).collect();
        push(&mut round, &packets);
        let mut served = 0;
        while !round.backlog().is_empty() {
            let before = round.turns;
            served += serve(&mut round, 1).len();
            assert!(round.turns - before <= 2_000, "{} turns", round.turns - before);
        }
        assert_eq!(served, 1_000);
    }

    #[test]
    fn weights_scale_turns_relative_to_the_smallest_and_change_at_the_next_turn() {
        let weight = |w| Weight::new(w).unwrap();
        let mut round = Drr::new(&DrrParams { quantum: Bytes::new(100) }, weight(200.0));
        round.set_flow(FlowId(0), FlowSetting::Weight(weight(600.0)));
        round.set_flow(FlowId(1), FlowSetting::Weight(weight(200.0)));
        let both: Vec<(u32, u64)> = (0..20).flat_map(|_| [(0, 100), (1, 100)]).collect();
        push(&mut round, &both);
        let flows = |round: &mut Drr<SimplePacket>, n| {
            (0..n).filter_map(|_| round.pop(Time::ZERO)).map(|q| q.packet.flow.0).collect::<Vec<_>>()
        };
        assert_eq!(flows(&mut round, 8), [0, 0, 0, 1, 0, 0, 0, 1]);
        assert_eq!(flows(&mut round, 1), [0]);
        round.set_flow(FlowId(0), FlowSetting::Weight(weight(200.0)));
        // The turn that has begun keeps its old grant; the next has the new one.
        assert_eq!(flows(&mut round, 6), [0, 0, 1, 0, 1, 0]);
    }
}
