//! PPV, per packet value: a FIFO that drops the packet of least value when it holds too much.
//!
//! Nádas, Turányi, Rácz, "Per packet value: a practical concept for network resource sharing", GLOBECOM 2016, after the
//! published sources: the paper's text was not at hand. The edge writes values ([`value`](crate::mark::value)); a node
//! that keeps what is worth most knows neither flows nor policies.
//!
//! A system rather than a buffer policy, because a policy sees no packets inside a scheduler.
//!
//! Readings:
//! - The packets that are not marked hold at most `target`. While an arrival exceeds it, the packet of least value
//!   among those and the arrival is the victim: an ECN-capable one is marked and counts no longer, another is dropped. Of
//!   equal values the youngest is the victim. Packets that arrive with CE do not count.
//! - All packets hold at most `limit`, which the published program does not bound. Beyond it, ECN-capable victims are
//!   dropped as well, and marked packets when there are no others.
//! - Packets have values by their rates, acknowledgements too. The published program gives nearly the highest value to
//!   packets below 500 B.
//!
//! Cost: O(log packets) per packet, mostly O(1), 40 bytes per packet in the queue; no state per flow in the core.
//! Parameters: [`ENTRY`].

use alloc::vec::Vec;

use super::discipline::Discipline;
use crate::aqm::value_edge::{TRAITS, ValueEdge, ValueEdgeParams};
use crate::flow_setting::FlowSetting;
use crate::label::Label;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::list::{Link, Linked, List};
use crate::packet::{Ecn, FlowId, Packet};
use crate::param::{Entry, LIMIT, Param, Role};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::smallest::Smallest;
use crate::units::{Bytes, Rate, Span, Time};

/// PPV in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "ppv",
    role: Role::System,
    summary: "Per packet value: drops the packet of least value, by a label that the edge wrote on it.",
    reference: "Nádas, Turányi, Rácz 2016",
    cost: "O(log packets) per packet, no state per flow in the core; at the edge 40 bytes per flow, 128 more per guarantee",
    params: PpvParams::PARAMS,
    traits: TRAITS,
};

/// The time of the link that unmarked packets hold.
const TARGET: Span = Span::from_millis(15);
/// The least that they hold.
const LEAST: Bytes = Bytes::new(8 * 1_500);

params! {
    /// Parameters of [`Ppv`].
    pub struct PpvParams {
        limit: Option<BufferSize> = LIMIT,
        /// Size of what waits without a mark; if not set 15 ms of the link, at least 12 kB.
        target: Option<BufferSize> = Param::unset("chosen: with one packet TCP halves its window at once; the published program: 190 kB at 100 Mb/s")
            .in_paper("15ms"),
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = Param::of("true", "published program"),
        /// Values of packets.
        ..edge: ValueEdgeParams,
    }
}

/// A packet in the queue, or a free place.
#[derive(Clone, Debug)]
struct Node<P> {
    link: Link,
    packet: Option<P>,
}

impl<P> Linked for Node<P> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The order in which packets are victims: unmarked ones first, then the least value, then the youngest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u64);

impl Key {
    /// Bits of the age.
    const AGE: u32 = 46;
    const MARKED: u64 = 1 << 63;

    fn new(label: Label, number: u64, is_marked: bool) -> Self {
        let youth = !number & ((1 << Self::AGE) - 1);
        Self(if is_marked { Self::MARKED } else { 0 } | u64::from(label.code()) << Self::AGE | youth)
    }

    const fn is_marked(self) -> bool {
        self.0 & Self::MARKED != 0
    }

    fn value(self) -> Label {
        Label::from_code((self.0 >> Self::AGE) as u32)
    }
}

/// The state of a PPV queue.
#[derive(Clone, Debug)]
pub struct Ppv<P> {
    limit: LinkLimit,
    target: LinkLimit,
    ecn: bool,
    edge: ValueEdge,
    nodes: Vec<Node<P>>,
    free: Vec<usize>,
    order: List,
    victims: Smallest,
    keys: Vec<Key>,
    backlog: Backlog,
    /// The part of `backlog` without a mark.
    unmarked: Backlog,
    arrivals: u64,
    /// The value of the last victim.
    ctv: Label,
}

impl<P: Packet> Ppv<P> {
    /// An empty queue for a link of `link_rate`. The stream draws the values of flows that enter here.
    #[must_use]
    pub fn new(params: &PpvParams, link_rate: Rate, random: Stream) -> Self {
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            target: LinkLimit::of_time(params.target, link_rate, TARGET, LEAST),
            ecn: params.ecn,
            edge: ValueEdge::new(&params.edge, random),
            nodes: Vec::new(),
            free: Vec::new(),
            order: List::EMPTY,
            victims: Smallest::new(),
            keys: Vec::new(),
            backlog: Backlog::EMPTY,
            unmarked: Backlog::EMPTY,
            arrivals: 0,
            ctv: Label::ZERO,
        }
    }

    fn push(&mut self, packet: P, label: Label, is_marked: bool) {
        self.backlog.add(&packet);
        if !is_marked {
            self.unmarked.add(&packet);
        }
        let index = self.free.pop().unwrap_or(self.nodes.len());
        let node = Node { link: Link::NONE, packet: Some(packet) };
        let key = Key::new(label, self.arrivals, is_marked);
        if index < self.nodes.len() {
            (self.nodes[index], self.keys[index]) = (node, key);
        } else {
            self.nodes.push(node);
            self.keys.push(key);
        }
        self.order.push_back(&mut self.nodes, index);
        self.victims.set(index, key.0);
    }

    fn remove(&mut self, index: usize) -> Option<P> {
        self.order.remove(&mut self.nodes, index);
        self.victims.remove(index);
        self.free.push(index);
        let packet = self.nodes[index].packet.take()?;
        self.backlog.remove(&packet);
        if !self.keys[index].is_marked() {
            self.unmarked.remove(&packet);
        }
        Some(packet)
    }

    /// Marks a packet of the queue, which counts no longer.
    fn mark(&mut self, now: Time, index: usize, sink: &mut dyn Sink<P>) {
        let Some(packet) = &mut self.nodes[index].packet else { return };
        packet.set_ce();
        sink.marked(now, packet);
        self.unmarked.remove(packet);
        self.keys[index].0 |= Key::MARKED;
        self.victims.set(index, self.keys[index].0);
    }

    /// Whether `packet` exceeds the target.
    fn exceeds(&self, packet: &P) -> bool {
        !self.unmarked.is_empty() && !self.target.get().admits(packet, self.unmarked)
    }

    fn front(&mut self) -> Option<P> {
        let front = self.order.front()?;
        self.remove(front)
    }
}

impl<P: Packet> Queue<P> for Ppv<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) {
        let Some(label) = self.edge.label(now, &mut packet) else {
            return sink.dropped(now, packet, DropReason::Policy);
        };
        if !self.limit.get().admits(&packet, Backlog::EMPTY) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        self.arrivals += 1;
        let mut is_marked = self.ecn && packet.ecn() == Ecn::Ce;
        loop {
            let is_full = !self.limit.get().admits(&packet, self.backlog);
            if !is_full && (is_marked || !self.exceeds(&packet)) {
                break;
            }
            let can_mark = |packet: &P| self.ecn && !is_full && packet.ecn().is_capable();
            let least = self.victims.first().map(|(_, index)| index);
            let victim = least.filter(|&index| self.keys[index].value() < label);
            self.ctv = victim.map_or(label, |index| self.keys[index].value());
            match victim {
                Some(index) if self.nodes[index].packet.as_ref().is_some_and(can_mark) => {
                    self.mark(now, index, sink);
                }
                Some(index) => {
                    if let Some(dropped) = self.remove(index) {
                        sink.dropped(now, dropped, DropReason::PushOut);
                    }
                }
                None if can_mark(&packet) => {
                    packet.set_ce();
                    sink.marked(now, &packet);
                    is_marked = true;
                }
                None => {
                    let reason = if is_full { DropReason::Overflow } else { DropReason::Early };
                    return sink.dropped(now, packet, reason);
                }
            }
        }
        self.push(packet, label, is_marked);
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.front()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for Ppv<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.front()
    }
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let mut at = self.order.front();
        while let Some(index) = at {
            if self.nodes[index].packet.as_ref().is_some_and(|packet| packet.flow().slot() == flow.slot()) {
                return self.remove(index);
            }
            at = self.order.behind(&mut self.nodes, index);
        }
        None
    }
    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }
    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.target.set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.edge.set_flow(flow, setting)
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("ctv", self.ctv.value());
    }
    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{LabelKind, SimplePacket};
    use crate::system::catalog::Selection;
    use crate::testing::{Log, packet};
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    fn ppv(pairs: &[(&str, &str)]) -> Ppv<SimplePacket> {
        let mut selection = Selection::new("ppv", None, None).unwrap();
        for (key, value) in pairs {
            selection.set(key, value).unwrap();
        }
        let params = PpvParams::from_args(&selection.kind_args()).unwrap();
        Ppv::new(&params, Rate::from_mbit(10), Stream::new(1, "ppv"))
    }

    fn valued(id: u32, size: u64, value: u32, ecn: Ecn) -> SimplePacket {
        let mut packet = SimplePacket { ecn, ..packet(id, 0, size) };
        packet.set_label(LabelKind::Value, Label::from_code(value));
        packet
    }

    /// The rule by search: number, size, value and mark of what waits.
    #[derive(Default)]
    struct Slow(Vec<(u32, u64, u32, bool, bool)>);

    impl Slow {
        fn enqueue(&mut self, id: u32, size: u64, value: u32, capable: bool) {
            let mut arrival = (id, size, value, capable, false);
            loop {
                let unmarked: u64 = self.0.iter().filter(|waits| !waits.4).map(|waits| waits.1).sum();
                let all: u64 = self.0.iter().map(|waits| waits.1).sum();
                let is_full = all + size > 9_000;
                if !is_full && (arrival.4 || unmarked == 0 || unmarked + size <= 5_000) {
                    return self.0.push(arrival);
                }
                let least = (0..self.0.len()).min_by_key(|at| {
                    let (id, _, value, _, marked) = self.0[*at];
                    (marked, value, u32::MAX - id)
                });
                match least.filter(|at| self.0[*at].2 < value) {
                    Some(at) if self.0[at].3 && !is_full => self.0[at].4 = true,
                    Some(at) => drop(self.0.remove(at)),
                    None if capable && !is_full => arrival.4 = true,
                    None => return,
                }
            }
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_victim_is_that_of_a_search(
            ops in prop::collection::vec(prop::option::weighted(0.7, (40u64..1_500, 0u32..40, any::<bool>())), 1..200),
        ) {
            let mut ours = ppv(&[("target", "5000B"), ("limit", "9000B")]);
            let (mut slow, mut log) = (Slow::default(), Log::default());
            for (id, op) in (0..).zip(ops) {
                match op {
                    Some((size, value, capable)) => {
                        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
                        ours.enqueue(Time::ZERO, valued(id, size, value, ecn), &mut log);
                        slow.enqueue(id, size, value, capable);
                    }
                    None => {
                        let sent = ours.dequeue(Time::ZERO, &mut log).map(|sent| (sent.id, sent.ecn == Ecn::Ce));
                        let wanted = (!slow.0.is_empty()).then(|| slow.0.remove(0)).map(|sent| (sent.0, sent.4));
                        prop_assert_eq!(sent, wanted);
                    }
                }
                prop_assert_eq!(ours.backlog.packets.get() as usize, slow.0.len());
            }
        }
    }

    #[test]
    fn a_label_stays_and_a_core_wants_one() {
        let mut log = Log::default();
        let mut ppv = ppv(&[("role", "core")]);
        ppv.enqueue(Time::ZERO, packet(1, 0, 500), &mut log);
        assert_eq!(log.dropped.pop().map(|(_, id, reason)| (id, reason)), Some((1, DropReason::Policy)));
        ppv.enqueue(Time::ZERO, valued(2, 500, 77, Ecn::NotEct), &mut log);
        let left = ppv.dequeue(Time::ZERO, &mut log).unwrap();
        assert_eq!(left.label(LabelKind::Value).map(Label::code), Some(77));
    }
}
