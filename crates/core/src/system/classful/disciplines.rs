//! A discipline for each class, which divides its part among its flows.
//!
//! A discipline has tables by flow number. With a discipline in each of a thousand classes these tables must
//! not be as long as the table of all flows: a discipline sees only the flows of its class, numbered in the
//! order of their first packets. A flow that moves to another class leaves its number to the next flow, as
//! soon as none of its packets waits.
//!
//! The discipline sees each packet as a [`SimplePacket`]; its marks, colours and labels are copied to the
//! packet.
//!
//! Cost: the discipline's, and a virtual call per packet; 24 bytes per flow, and per class the discipline
//! with its state for flows.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use super::{Arrival, ClassQueues};
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{Customers, FlowId, Packet, SimplePacket};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::rcs::Rights;
use crate::system::classes::{Class, Classes};
use crate::system::context::LinkContext;
use crate::system::discipline::Discipline;
use crate::units::{Bytes, Rate, Span, Time, Weight};

/// The discipline that divides within a class.
type Inner = Box<dyn Discipline<SimplePacket> + Send>;

/// No class.
const NONE: u32 = u32::MAX;

/// The place of a flow, and the settings passed to a discipline when the flow joins it.
#[derive(Clone, Copy, Debug)]
struct Place {
    class: u32,
    number: u32,
    weight: Weight,
    rtt: Span,
}

impl Place {
    const NOWHERE: Self = Self { class: NONE, number: 0, weight: Weight::ONE, rtt: Span::ZERO };
}

/// The flows of a class by their numbers.
#[derive(Debug, Default)]
struct Numbers {
    flows: Vec<Numbered>,
    /// The numbers of flows that have left.
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Numbered {
    /// The number of packets that wait.
    packets: u32,
    has_left: bool,
}

impl Numbers {
    /// Gives a number to a flow that joins.
    fn give(&mut self) -> u32 {
        let number = self.free.pop().unwrap_or(self.flows.len() as u32);
        match self.flows.get_mut(number as usize) {
            Some(flow) => *flow = Numbered::default(),
            None => self.flows.push(Numbered::default()),
        }
        number
    }

    /// Notes that the flow with this number moves to another class.
    fn leave(&mut self, number: u32) {
        self.flows[number as usize].has_left = true;
        self.free_if_gone(number);
    }

    /// Notes that the flow with this number has one packet less.
    fn served(&mut self, number: u32) {
        self.flows[number as usize].packets -= 1;
        self.free_if_gone(number);
    }

    fn free_if_gone(&mut self, number: u32) {
        let Numbered { packets, has_left } = self.flows[number as usize];
        if has_left && packets == 0 {
            self.free.push(number);
        }
    }
}

/// The packets of all classes, by the numbers under which disciplines see them.
#[derive(Debug)]
struct Waiting<P> {
    packets: Vec<Option<P>>,
    free: Vec<u32>,
    backlog: Backlog,
}

impl<P: Packet> Waiting<P> {
    /// Stores `packet`, and returns the packet that the discipline sees.
    fn keep(&mut self, packet: P, number: u32, numbers: &mut Numbers) -> SimplePacket {
        let id = self.free.pop().unwrap_or(self.packets.len() as u32);
        let seen = SimplePacket { flow: FlowId(number), ..SimplePacket::standing_for(&packet, id) };
        self.backlog.add(&packet);
        match self.packets.get_mut(id as usize) {
            Some(place) => *place = Some(packet),
            None => self.packets.push(Some(packet)),
        }
        numbers.flows[number as usize].packets += 1;
        seen
    }

    /// Removes and returns the packet that a discipline returns as `seen`.
    fn take(&mut self, seen: &SimplePacket, numbers: &mut Numbers) -> Option<P> {
        let mut packet = self.packets.get_mut(seen.id as usize)?.take()?;
        self.free.push(seen.id);
        self.backlog.remove(&packet);
        numbers.served(seen.flow.0);
        seen.write_onto(&mut packet);
        Some(packet)
    }
}

/// A leaf class.
struct Leaf {
    discipline: Inner,
    numbers: Numbers,
    /// The limit of the class, if it sets one.
    limit: Option<LinkLimit>,
    /// The maximum rate of the class.
    ceiling: Rate,
}

/// Translates a discipline's reports about the packets that it sees to the original packets.
struct Bridge<'a, P> {
    waiting: &'a mut Waiting<P>,
    numbers: &'a mut Numbers,
    sink: &'a mut dyn Sink<P>,
}

impl<P: Packet> Sink<SimplePacket> for Bridge<'_, P> {
    fn dropped(&mut self, now: Time, seen: SimplePacket, reason: DropReason) {
        if let Some(packet) = self.waiting.take(&seen, self.numbers) {
            self.sink.dropped(now, packet, reason);
        }
    }
    fn marked(&mut self, now: Time, seen: &SimplePacket) {
        if let Some(Some(packet)) = self.waiting.packets.get_mut(seen.id as usize) {
            seen.write_onto(packet);
            self.sink.marked(now, packet);
        }
    }
}

/// The disciplines of all leaves.
pub struct Disciplines<P> {
    limit: LinkLimit,
    /// The leaves by class; none for inner classes.
    leaves: Vec<Option<Leaf>>,
    /// The places of flows, by slot.
    places: Vec<Place>,
    waiting: Waiting<P>,
    /// Whether the disciplines heed weights of flows.
    heeds_weights: bool,
    heeds_rtts: bool,
}

impl<P: Packet> Disciplines<P> {
    /// Empty disciplines, each from `build`, with the size of its class, else `limit`. They serve flows like
    /// those of `link`, of which a class gets at most `ceiling`.
    #[must_use]
    pub fn new<T>(
        classes: &Classes<T>,
        limit: Option<BufferSize>,
        link: &LinkContext<'_>,
        ceiling: impl Fn(&T) -> Rate,
        build: impl Fn(&LinkContext<'_>) -> Inner,
    ) -> Self {
        let limit = LinkLimit::new(limit, link.link_rate);
        let weights = [link.smallest_weight()];
        let leaf = |class: &Class<T>| {
            let ceiling = ceiling(&class.params);
            let inside = LinkContext {
                link_rate: link.link_rate.min(ceiling),
                weights: &weights,
                smallest_weight: None,
                rtts: &[],
                guarantees: &[],
                classes: &[],
                targets: &[],
                customers: Customers::default(),
                rights: Rights::default(),
                hosts: &[],
                layer2: link.layer2,
                seed: link.seed,
                name: &format!("{}.{}", link.name, class.name),
            };
            let mut discipline = build(&inside);
            let own = class.queue.limit.map(|own| LinkLimit::new(Some(own), link.link_rate));
            discipline.set_limit(own.unwrap_or(limit).get());
            Leaf { discipline, numbers: Numbers::default(), limit: own, ceiling }
        };
        let mut leaves: Vec<_> =
            classes.all().iter().map(|class| class.is_leaf.then(|| leaf(class))).collect();
        // All are of one kind. The values are the defaults of a flow until it gets the number 0.
        let mut heeds = |setting| {
            let mut leaves = leaves.iter_mut().flatten();
            leaves.next().is_some_and(|leaf| leaf.discipline.set_flow(FlowId(0), setting))
        };
        let heeds_weights = heeds(FlowSetting::Weight(Weight::ONE));
        let heeds_rtts = heeds(FlowSetting::Rtt(Span::ZERO));
        let mut disciplines = Self {
            limit,
            leaves,
            places: Vec::new(),
            waiting: Waiting { packets: Vec::new(), free: Vec::new(), backlog: Backlog::EMPTY },
            heeds_weights,
            heeds_rtts,
        };
        for (flow, &weight) in (0..).map(FlowId).zip(link.weights) {
            disciplines.place(flow).weight = weight;
        }
        for (flow, &rtt) in (0..).map(FlowId).zip(link.rtts) {
            disciplines.place(flow).rtt = rtt;
        }
        disciplines
    }

    fn place(&mut self, flow: FlowId) -> &mut Place {
        let slot = flow.slot();
        if slot >= self.places.len() {
            self.places.resize(slot + 1, Place::NOWHERE);
        }
        &mut self.places[slot]
    }

    /// The number of `flow` in `class`, which the flow may join with this call; none if the class is no leaf.
    fn number(&mut self, flow: FlowId, class: usize) -> Option<u32> {
        let place = *self.place(flow);
        if place.class == class as u32 {
            return Some(place.number);
        }
        let Leaf { discipline, numbers, .. } = self.leaves.get_mut(class)?.as_mut()?;
        let number = numbers.give();
        discipline.set_flow(FlowId(number), FlowSetting::Weight(place.weight));
        discipline.set_flow(FlowId(number), FlowSetting::Rtt(place.rtt));
        if let Some(Some(left)) = self.leaves.get_mut(place.class as usize) {
            left.numbers.leave(place.number);
        }
        *self.place(flow) = Place { class: class as u32, number, ..place };
        Some(number)
    }

    /// The leaf of `flow`, and its number there, if it has had a packet.
    fn seat(&mut self, flow: FlowId) -> Option<(&mut Leaf, FlowId)> {
        let place = *self.places.get(flow.slot())?;
        let leaf = self.leaves.get_mut(place.class as usize)?.as_mut()?;
        Some((leaf, FlowId(place.number)))
    }
}

impl<P: Packet> ClassQueues<P> for Disciplines<P> {
    fn is_empty(&self, class: usize) -> bool {
        self.leaves[class].as_ref().is_none_or(|leaf| leaf.discipline.backlog().is_empty())
    }

    fn head(&self, class: usize) -> Option<Bytes> {
        (!self.is_empty(class)).then_some(Bytes::ZERO)
    }

    fn enqueue(&mut self, now: Time, class: usize, packet: P, sink: &mut dyn Sink<P>) -> Arrival {
        let number = self.number(packet.flow(), class);
        let (Some(number), Some(leaf)) = (number, &mut self.leaves[class]) else {
            sink.dropped(now, packet, DropReason::Policy);
            return Arrival::Other;
        };
        let was_empty = leaf.discipline.backlog().is_empty();
        let (waiting, numbers) = (&mut self.waiting, &mut leaf.numbers);
        let seen = waiting.keep(packet, number, numbers);
        leaf.discipline.enqueue(now, seen, &mut Bridge { waiting, numbers, sink });
        match (was_empty, leaf.discipline.backlog().is_empty()) {
            (true, false) => Arrival::First,
            (false, true) => Arrival::Emptied,
            _ => Arrival::Other,
        }
    }

    fn dequeue(&mut self, now: Time, class: usize, sink: &mut dyn Sink<P>) -> Option<P> {
        let Leaf { discipline, numbers, .. } = self.leaves[class].as_mut()?;
        let seen = discipline.dequeue(now, &mut Bridge { waiting: &mut self.waiting, numbers, sink })?;
        self.waiting.take(&seen, numbers)
    }

    fn drain(&mut self, now: Time, class: usize) -> Option<P> {
        let Leaf { discipline, numbers, .. } = self.leaves[class].as_mut()?;
        self.waiting.take(&discipline.drain(now)?, numbers)
    }

    fn take(&mut self, now: Time, class: usize, flow: FlowId) -> Option<P> {
        let place = self.places.get(flow.slot()).filter(|place| place.class == class as u32)?;
        let Leaf { discipline, numbers, .. } = self.leaves[class].as_mut()?;
        self.waiting.take(&discipline.take(now, FlowId(place.number))?, numbers)
    }

    fn backlog(&self) -> Backlog {
        self.waiting.backlog
    }

    fn limit(&self) -> Limit {
        self.limit.get()
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
        let own = self.leaves.iter_mut().flatten().filter(|leaf| leaf.limit.is_none());
        own.for_each(|leaf| leaf.discipline.set_limit(limit));
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        for leaf in self.leaves.iter_mut().flatten() {
            leaf.discipline.set_link_rate(rate.min(leaf.ceiling));
            if let Some(limit) = &mut leaf.limit {
                limit.set_link_rate(rate);
            }
            leaf.discipline.set_limit(leaf.limit.unwrap_or(self.limit).get());
        }
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let heeds = match setting {
            FlowSetting::Weight(weight) => {
                self.place(flow).weight = weight;
                self.heeds_weights
            }
            FlowSetting::Rtt(rtt) => {
                self.place(flow).rtt = rtt;
                self.heeds_rtts
            }
            _ => return false,
        };
        self.seat(flow).map_or(heeds, |(leaf, number)| leaf.discipline.set_flow(number, setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::catalog::Selection;
    use crate::system::{DisciplineKind, htb};
    use crate::testing::{Log, packet};
    use crate::units::Rate;

    #[test]
    fn flows_that_go_from_class_to_class_leave_their_numbers() {
        let mut selection = Selection::new("htb", None, None).unwrap();
        for class in ["a", "b", "c"] {
            selection.set_of_class(class, "rate", "1Mbit").unwrap();
        }
        let classes = htb::HtbParams::from_args(&selection.kind_args()).unwrap().class;
        let link = LinkContext::new(Rate::from_mbit(10), 1, "link");
        let drr = DisciplineKind::of_name("drr").unwrap();
        let mut queues: Disciplines<SimplePacket> =
            Disciplines::new(&classes, None, &link, |class| class.ceil, |link| drr.build(link));
        let mut log = Log::default();
        // Ten flows circulate; a packet left behind is served only when its flow is two classes further.
        for round in 0..300usize {
            for flow in 0..10 {
                queues.enqueue(Time::ZERO, round % 3, packet(flow, flow, 100), &mut log);
            }
            for _ in 0..if round == 0 { 0 } else { 10 } {
                let sent = queues.dequeue(Time::ZERO, (round + 2) % 3, &mut log).unwrap();
                assert_eq!(sent.id, sent.flow.0);
            }
        }
        assert_eq!((queues.backlog().packets.get(), log.dropped.len()), (10, 0));
        assert_eq!(queues.waiting.packets.len(), 20);
        for leaf in queues.leaves.iter().flatten() {
            assert!(leaf.numbers.flows.len() <= 10, "{}", leaf.numbers.flows.len());
        }
    }
}
