//! FQ: flows take turns, flows that have just become active go first, and none exceeds a maximum rate.
//!
//! Dumazet 2013, as described in tc-fq(8). A flow that would exceed `maxrate` leaves the round until its
//! time; meanwhile the others get the link, and if there are none it idles. A packet does not carry the
//! pacing rate of its sender, so on a router only `maxrate` paces.
//!
//! Readings and deviations:
//! - A flow that is late because others had the link may catch up by a `quantum`: in any time it sends at
//!   most what `maxrate` allows plus a quantum and a packet. An idle flow keeps its time and so gains nothing
//!   by running empty.
//! - A flow gets `initial_quantum` with its first packet, and at least a quantum when it returns. One that
//!   runs empty stays in the round until it has paid for a packet larger than its credit: otherwise a flow
//!   that runs empty often would get more. Linux forgives this debt after 40 ms, which may be less than a
//!   turn on a slow link.
//! - Flows are numbered already, so nothing is hashed and no two collide.
//! - Flows can have weights, which scale their quantum and their `flow_limit`, not `maxrate`; the smallest
//!   weight has `quantum` and `flow_limit` themselves. A turn would otherwise be worth more than a flow may
//!   hold.
//! - There is no queue for control traffic ahead of the others.
//! - Beyond `limit` the flow that holds most for its weight loses its last packet: the arrival, if it belongs
//!   to that flow. tc-fq(8) drops the arrival, whatever its flow. On a host `limit` has room for a
//!   `flow_limit` of 100 flows. On a link this need not hold, and the choice of packets that find room would
//!   decide which flows are served.
//!
//! Cost: O(1) per packet, O(log flows) when a flow is held back or among the longest of a full buffer.
//! Memory: at most 190 bytes per flow: records of 48 and backlogs of 16, allocated for up to twice as many
//! flows, a weight, and 23 in each of two tournaments, of held back flows and of the longest. Parameters:
//! [`ENTRY`].

use alloc::vec::Vec;

use super::discipline::Discipline;
use crate::aqm::occupancy::{Choice, Occupancy, Thresholds, Ties};
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Heeds, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::schedule::drr::{Quanta, scaled};
use crate::schedule::{End, Queued};
use crate::smallest::Smallest;
use crate::units::{Bytes, Packets, Rate, Span, Time, Weight};

/// FQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "fq",
    role: Role::System,
    summary: "Fair queueing with pacing: DRR that serves new flows first and paces each to a maximum rate.",
    reference: "Dumazet 2013, tc-fq(8)",
    cost: "O(1) per packet, O(log flows) when a flow is held back or the buffer is full, at most 190 bytes per flow",
    params: FqParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        shares: Shares::Given,
        limits: "Near `maxrate` weights are inexact. Packets do not carry the pacing rate of their sender. A full \
            buffer drops from the longest flow, where tc-fq(8) drops the arrival.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Fq`].
    pub struct FqParams {
        limit: Option<BufferSize> = LIMIT.in_paper("10000p").doc(
            "Size of all queues together, beyond which the longest for its weight loses its last packet; if not set 100 ms of the link, \
             at least 96 kB.",
        ),
        /// Packets of the flow with the smallest weight, beyond which its arriving packets are dropped; others hold more in proportion to their weights.
        flow_limit: Packets = Param::of("100p", "tc-fq(8)"),
        /// Bytes in a turn of the flow with the smallest weight; others send more in proportion to their weights.
        quantum: Bytes = Param::of("3028B", "tc-fq(8): two MTUs"),
        /// Bytes that a flow sends ahead of the others when it is seen first; at least a quantum.
        initial_quantum: Bytes = Param::of("15140B", "tc-fq(8): ten MTUs"),
        /// Rate that no flow exceeds; if not set, none is held back.
        maxrate: Option<Rate> = Param::unset("tc-fq(8)"),
    }
    check: |params: &Self, _| params.check()
}

/// The largest `initial_quantum`: the range of the fixed point of credits, with room to add.
const MAX_INITIAL: Bytes = Bytes::new(1 << 32);

impl FqParams {
    fn check(&self) -> Result<(), ParamError> {
        require(self.flow_limit > Packets::ZERO, "flow_limit", "a flow must have room for at least 1p")?;
        require(self.quantum > Bytes::ZERO, "quantum", "a quantum must be at least 1B")?;
        require(self.initial_quantum <= MAX_INITIAL, "initial_quantum", "it must be at most 4294967296B")?;
        let paces = self.maxrate != Some(Rate::ZERO);
        require(paces, "maxrate", "at rate 0 nothing is sent; leave it out to hold no flow back")
    }
}

/// The place of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Idle,
    New,
    Old,
    /// Held back until its time.
    HeldBack,
}

#[derive(Clone, Debug)]
struct Flow {
    link: Link,
    queue: PacketQueue,
    quantum: i64,
    credits: i64,
    /// The time at which `maxrate` permits the next packet.
    next: Time,
    round: Round,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// Fair queueing with a maximum rate per flow.
#[derive(Clone, Debug)]
pub struct Fq<P> {
    params: FqParams,
    limit: LinkLimit,
    quanta: Quanta,
    /// The quantum of the smallest weight.
    smallest: u64,
    /// The time that a late flow may catch up: a `quantum` at `maxrate`.
    most_late: Span,
    flows: Vec<Flow>,
    packets: Pool<P>,
    new_flows: List,
    old_flows: List,
    /// Held back flows, by their time.
    held_back: Smallest,
    /// The backlog of each flow.
    occupancy: Occupancy,
}

impl<P: Packet> Fq<P> {
    /// No flows, on a link of `link_rate`. A flow of weight `smallest` has one quantum a turn; `random`
    /// chooses between equally long flows.
    #[must_use]
    pub fn new(params: &FqParams, link_rate: Rate, smallest: Weight, random: Stream) -> Self {
        let limit = LinkLimit::new(params.limit, link_rate);
        let occupancy = Occupancy::new(limit.get(), Thresholds::Weights, Choice::Ratio, &[]);
        Self {
            limit,
            occupancy: occupancy.with_ties(Ties::Random, random),
            smallest: Quanta::new(params.quantum, smallest).of(smallest),
            most_late: params.maxrate.map_or(Span::ZERO, |maxrate| maxrate.time_for(params.quantum)),
            params: params.clone(),
            quanta: Quanta::new(params.quantum, smallest),
            flows: Vec::new(),
            packets: Pool::new(),
            new_flows: List::EMPTY,
            old_flows: List::EMPTY,
            held_back: Smallest::new(),
        }
    }

    /// The place of `flow`, which is created if needed.
    fn place_of(&mut self, flow: FlowId) -> usize {
        let index = flow.slot();
        if index >= self.flows.len() {
            self.grow(index + 1);
        }
        index
    }

    // Not inlined: otherwise each arrival saves all registers.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, flows: usize) {
        let idle = Flow {
            link: Link::NONE,
            queue: PacketQueue::EMPTY,
            quantum: self.quanta.of(Weight::ONE) as i64,
            credits: scaled(self.params.initial_quantum) as i64,
            next: Time::ZERO,
            round: Round::Idle,
        };
        self.flows.resize(flows, idle);
    }

    /// Moves the flow in turn.
    fn end_turn(&mut self, index: usize, round: Round) {
        let list =
            if self.flows[index].round == Round::New { &mut self.new_flows } else { &mut self.old_flows };
        list.remove(&mut self.flows, index);
        self.enter(index, round);
    }

    fn enter(&mut self, index: usize, round: Round) {
        self.flows[index].round = round;
        match round {
            Round::Idle => {}
            Round::New => self.new_flows.push_back(&mut self.flows, index),
            Round::Old => self.old_flows.push_back(&mut self.flows, index),
            // The last key means absent.
            Round::HeldBack => {
                let at = self.flows[index].next.as_nanos().min(u64::MAX - 1);
                self.held_back.set(index, at);
            }
        }
    }

    /// Removes a packet out of turn. A flow that runs empty stays in its round until its turn; a held back
    /// flow has no turn.
    fn take_from(&mut self, index: usize, end: End) -> Option<P> {
        let flow = self.flows.get_mut(index)?;
        let packet = flow.queue.pop(&mut self.packets, end)?.packet;
        if flow.queue.is_empty() && flow.round == Round::HeldBack {
            self.held_back.remove(index);
            self.enter(index, Round::Idle);
        }
        self.occupancy.remove(packet.flow(), &packet);
        Some(packet)
    }

    /// Whether the backlog exceeds `limit`.
    fn is_exceeded(&self) -> bool {
        self.occupancy.is_exceeded(self.occupancy.held())
    }

    /// Drops from the flow that is longest for its weight, until the backlog is within `limit`. Not inlined:
    /// with the loop, each `enqueue` pays for its registers.
    #[inline(never)]
    fn push_out(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        // Terminates: each pass removes a packet, and an empty buffer exceeds no limit.
        while self.is_exceeded() {
            let longest = self.occupancy.choose(|| 0.0);
            let Some(packet) = longest.and_then(|flow| self.take_from(flow.slot(), End::Tail)) else {
                return;
            };
            sink.dropped(now, packet, DropReason::PushOut);
        }
    }

    /// Whether a flow holds less than its weight allows.
    fn has_room(&self, index: usize) -> bool {
        let held = self.occupancy.held_by(FlowId(index as u32)).packets.get();
        let limit = self.params.flow_limit.get();
        let times = |packets: u64, quantum: u64| u128::from(packets) * u128::from(quantum);
        held < limit || times(held, self.smallest) < times(limit, self.flows[index].quantum as u64)
    }

    /// Returns flows whose time has come to the round.
    fn release(&mut self, now: Time) {
        // Terminates: each pass removes a flow.
        while let Some((_, index)) = self.held_back.first().filter(|&(at, _)| at <= now.as_nanos()) {
            self.held_back.remove(index);
            self.enter(index, Round::Old);
        }
    }
}

impl<P: Packet> Discipline<P> for Fq<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        // Terminates: each pass returns a packet or removes a flow from a round.
        loop {
            let in_turn = self.new_flows.front().or(self.old_flows.front());
            let index = in_turn.or(self.held_back.first().map(|(_, index)| index))?;
            if let Some(packet) = self.take_from(index, End::Head) {
                return Some(packet);
            }
            self.end_turn(index, Round::Idle);
        }
    }

    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        self.take_from(flow.slot(), End::Head)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
        self.occupancy.set_limit(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.occupancy.set_limit(self.limit.get());
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        let index = self.place_of(flow);
        self.flows[index].quantum = self.quanta.of(weight) as i64;
        self.occupancy.set_weight(flow, weight)
    }

    fn allows_deferred_dequeue(&self) -> bool {
        self.params.maxrate.is_none()
    }
}

impl<P: Packet> Queue<P> for Fq<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let index = self.place_of(packet.flow());
        if !self.has_room(index) || !self.occupancy.fits(&packet) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        self.occupancy.add(&packet);
        let flow = &mut self.flows[index];
        flow.queue.push(&mut self.packets, Queued { packet, arrived: now });
        if flow.round == Round::Idle {
            flow.credits = flow.credits.max(flow.quantum);
            self.enter(index, Round::New);
        }
        if self.is_exceeded() {
            self.push_out(now, sink);
        }
    }

    fn dequeue(&mut self, now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.release(now);
        // Terminates: each pass pays a quantum to a flow, removes one from the round, or serves a packet.
        loop {
            let index = self.new_flows.front().or(self.old_flows.front())?;
            let flow = &mut self.flows[index];
            if flow.queue.is_empty() {
                // A new flow that runs empty becomes an old one, so that it cannot return as new at once.
                let owes = flow.credits < 0;
                if owes && flow.round == Round::Old {
                    flow.credits += flow.quantum;
                }
                let round = if owes || flow.round == Round::New { Round::Old } else { Round::Idle };
                self.end_turn(index, round);
                continue;
            }
            if flow.next > now {
                self.end_turn(index, Round::HeldBack);
                continue;
            }
            if flow.credits <= 0 {
                flow.credits += flow.quantum;
                self.end_turn(index, Round::Old);
                continue;
            }
            let packet = flow.queue.pop(&mut self.packets, End::Head)?.packet;
            self.occupancy.remove(packet.flow(), &packet);
            flow.credits -= scaled(packet.size()) as i64;
            if let Some(maxrate) = self.params.maxrate {
                let from = flow.next.as_nanos().max(now.as_nanos().saturating_sub(self.most_late.as_nanos()));
                flow.next = Time::from_nanos(from.saturating_add(maxrate.time_for(packet.size()).as_nanos()));
            }
            return Some(packet);
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        let waits = self.new_flows.is_empty() && self.old_flows.is_empty();
        let (at, _) = self.held_back.first().filter(|_| waits)?;
        Some(Time::from_nanos(at))
    }

    fn backlog(&self) -> Backlog {
        self.occupancy.held()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::testing::{Log, packet};

    fn fq(change: impl FnOnce(&mut FqParams)) -> Fq<SimplePacket> {
        let mut params = FqParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        change(&mut params);
        Fq::new(&params, Rate::from_mbit(10), Weight::ONE, Stream::new(1, "fq"))
    }

    fn serve(queue: &mut Fq<SimplePacket>, now: Time, n: usize) -> Vec<u32> {
        let mut log = Log::default();
        (0..n).map_while(|_| queue.dequeue(now, &mut log)).map(|packet| packet.id).collect()
    }

    #[test]
    fn a_flow_that_runs_empty_after_each_packet_gets_no_more() {
        // Flow 0 has a packet of nine quanta 3 ms after its last one has left, flow 1 always has packets of
        // one quantum.
        let mut queue = fq(|params| {
            (params.quantum, params.initial_quantum) = (Bytes::new(1_000), Bytes::new(1_000));
        });
        let (mut log, mut sent, mut last) = (Log::default(), [0; 2], Time::ZERO);
        for now in (0..2_000).map(Time::from_millis) {
            if now.as_nanos() == last.as_nanos() + 3_000_000 {
                queue.enqueue(now, packet(0, 0, 9_000), &mut log);
            }
            if queue.occupancy.held_by(FlowId(1)).packets == Packets::ZERO {
                (0..9).for_each(|_| queue.enqueue(now, packet(0, 1, 1_000), &mut log));
            }
            let packet = queue.dequeue(now, &mut log).unwrap();
            if packet.flow == FlowId(0) {
                last = now;
            }
            sent[packet.flow.slot()] += packet.size.get();
        }
        let share = sent[0] as f64 / (sent[0] + sent[1]) as f64;
        assert!((0.45..0.51).contains(&share), "{share}");
    }

    #[test]
    fn a_flow_is_held_to_the_maximum_rate_and_the_others_are_not() {
        // 1000 B at 8 Mb/s are 1 ms.
        let mut queue = fq(|params| {
            params.maxrate = Some(Rate::from_mbit(8));
            params.quantum = Bytes::new(1_000);
        });
        let mut log = Log::default();
        (0..3).for_each(|id| queue.enqueue(Time::from_millis(10), packet(id, 0, 1_000), &mut log));
        // A quantum of catching up, then each packet at its time.
        assert_eq!(serve(&mut queue, Time::from_millis(10), 9), [0, 1]);
        assert_eq!(queue.next_wakeup(), Some(Time::from_millis(11)));
        queue.enqueue(Time::from_millis(10), packet(9, 1, 1_000), &mut log);
        assert_eq!(serve(&mut queue, Time::from_millis(10), 9), [9]);
        assert_eq!(serve(&mut queue, Time::from_nanos(10_999_999), 9), []);
        assert_eq!(serve(&mut queue, Time::from_millis(11), 9), [2]);
        assert_eq!((queue.next_wakeup(), queue.backlog()), (None, Backlog::EMPTY));
    }

    #[test]
    fn a_flow_that_is_taken_away_while_held_back_needs_no_wakeup() {
        let mut queue = fq(|params| {
            params.maxrate = Some(Rate::from_mbit(8));
            params.quantum = Bytes::new(1_000);
        });
        let mut log = Log::default();
        (0..3).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
        assert_eq!(serve(&mut queue, Time::ZERO, 9), [0]);
        let taken = [1, 2].map(|_| queue.take(Time::ZERO, FlowId(0)).map(|packet| packet.id));
        assert_eq!((taken, queue.next_wakeup()), ([Some(1), Some(2)], None));
        // The flow keeps its time.
        queue.enqueue(Time::ZERO, packet(3, 0, 1_000), &mut log);
        assert_eq!(serve(&mut queue, Time::ZERO, 9), []);
        assert_eq!(serve(&mut queue, Time::from_millis(1), 9), [3]);
    }

    #[test]
    fn a_new_flow_goes_first_for_its_initial_quantum() {
        for (initial, before, expected) in [(2_000, 3, [10, 11, 3, 12, 13]), (4_000, 5, [10, 11, 12, 13, 5])]
        {
            let mut queue = fq(|params| {
                params.quantum = Bytes::new(2_000);
                params.initial_quantum = Bytes::new(initial);
            });
            let mut log = Log::default();
            (0..9).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
            // All of the initial quantum, and half of the turn that follows.
            serve(&mut queue, Time::ZERO, before);
            (10..19).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 1, 1_000), &mut log));
            assert_eq!(serve(&mut queue, Time::ZERO, 5), expected, "{initial}");
        }
    }

    #[test]
    fn memory_is_as_stated() {
        for flows in [1_000, 4_096, 5_000, 100_000] {
            let mut queue = fq(|params| {
                params.maxrate = Some(Rate::from_mbit(8));
                params.limit = Some(Limit::Packets(Packets::new(2 * u64::from(flows) - 1)).into());
            });
            let mut log = Log::default();
            for flow in (0..flows).map(FlowId) {
                queue.set_flow(flow, FlowSetting::Weight(Weight::ONE));
            }
            // The second of each flow is held back, and one is pushed out.
            (0..flows).for_each(|flow| queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log));
            (0..flows).for_each(|flow| queue.enqueue(Time::ZERO, packet(1, flow, 1_000), &mut log));
            assert_eq!(
                (serve(&mut queue, Time::ZERO, usize::MAX).len(), log.dropped.len()),
                (flows as usize, 1)
            );
            let bytes = queue.flows.capacity() * size_of::<Flow>()
                + queue.held_back.bytes()
                + queue.occupancy.bytes();
            assert!(bytes <= 190 * flows as usize, "{flows}: {bytes}");
        }
    }

    #[test]
    fn a_flow_fills_no_more_than_its_limit() {
        let mut queue = fq(|params| params.flow_limit = Packets::new(2));
        let mut log = Log::default();
        (0..4).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
        queue.enqueue(Time::ZERO, packet(9, 1, 1_000), &mut log);
        assert_eq!(log.dropped.iter().map(|&(_, id, _)| id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(queue.backlog().packets, Packets::new(3));
    }

    #[test]
    fn weights_of_1_to_100_divide_the_link() {
        let mut queue = fq(|_| {});
        queue.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(100.0).unwrap()));
        let mut log = Log::default();
        let mut served = [0u32; 2];
        (0..20).for_each(|id| queue.enqueue(Time::ZERO, packet(id, id % 2, 1_000), &mut log));
        for _ in 0..101_000 {
            let sent = queue.dequeue(Time::ZERO, &mut log).unwrap();
            served[sent.flow.index()] += 1;
            queue.enqueue(Time::ZERO, packet(0, sent.flow.0, 1_000), &mut log);
        }
        assert!((950..=1_050).contains(&served[0]), "{served:?}");
    }

    #[test]
    fn a_full_buffer_drops_from_the_longest_for_its_weight() {
        // Flow 1 may hold three times as much as flow 0. Of five packets of each and room for eight, flow 0
        // loses its last.
        let mut queue = fq(|params| params.limit = Some(Limit::Packets(Packets::new(8)).into()));
        queue.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(3.0).unwrap()));
        let mut log = Log::default();
        (0..5).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
        (10..15).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 1, 1_000), &mut log));
        // Its own arrival, as long as it is the longest.
        queue.enqueue(Time::ZERO, packet(5, 0, 1_000), &mut log);
        let dropped: Vec<_> = log.dropped.iter().map(|&(_, id, reason)| (id, reason)).collect();
        assert_eq!(dropped, [4, 3, 5].map(|id| (id, DropReason::PushOut)));
    }

    #[test]
    fn a_flow_that_is_pushed_out_while_held_back_needs_no_wakeup() {
        let mut queue = fq(|params| {
            params.maxrate = Some(Rate::from_mbit(8));
            params.quantum = Bytes::new(1_000);
            params.limit = Some(Limit::Bytes(Bytes::new(2_000)).into());
        });
        let mut log = Log::default();
        (0..2).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
        assert_eq!(serve(&mut queue, Time::ZERO, 9), [0]);
        // 1000 B of flow 0 and 1500 B of flow 1 are too many: the longer flow loses its packet, and then flow
        // 0 alone waits.
        queue.set_limit(Limit::Bytes(Bytes::new(900)));
        queue.enqueue(Time::ZERO, packet(9, 1, 500), &mut log);
        assert_eq!(log.dropped.iter().map(|&(_, id, _)| id).collect::<Vec<_>>(), [1]);
        assert_eq!((serve(&mut queue, Time::ZERO, 9), queue.next_wakeup()), (Vec::from([9]), None));
    }
}
