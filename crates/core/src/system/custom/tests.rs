use std::string::ToString as _;
use std::vec::Vec;

use alloc::collections::VecDeque;

use super::*;
use crate::label::Label;
use crate::packet::{Colour, Ecn, LabelKind};
use crate::param::{LIMIT, Role, Traits};
use crate::system::catalog::Catalog;
use crate::system::{DisciplineParams, LinkQueue};
use crate::testing::{Log, packet};
use crate::units::Packets;

/// A FIFO that mishandles its second packet in one way, or not at all.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Defect {
    None,
    Loses,
    Invents,
    Duplicates,
    Miscounts,
    WakesInPast,
}

struct Fifo {
    queue: VecDeque<SimplePacket>,
    backlog: Backlog,
    limit: Packets,
    defect: Defect,
    is_marking: bool,
}

impl Queue<SimplePacket> for Fifo {
    fn enqueue(&mut self, now: Time, mut packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
        if self.is_marking {
            packet.set_ce();
            packet.set_colour(Colour::Yellow);
            packet.set_label(LabelKind::Rate, Label::new(77.0));
            sink.marked(now, &packet);
        }
        if self.backlog.packets >= self.limit {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        if packet.id == 1 && self.defect == Defect::Loses {
            return;
        }
        if packet.id != 1 || self.defect != Defect::Miscounts {
            self.backlog.add(&packet);
        }
        self.queue.push_back(packet);
    }
    fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        let next = *self.queue.front()?;
        match self.defect {
            Defect::Invents if next.id == 1 => return Some(SimplePacket { id: 99, ..next }),
            Defect::WakesInPast if next.id == 1 => return None,
            _ => (),
        }
        if next.id != 0 || self.defect != Defect::Duplicates {
            self.queue.pop_front();
        }
        if self.backlog.packets > Packets::ZERO {
            self.backlog.remove(&next);
        }
        Some(next)
    }
    fn next_wakeup(&self) -> Option<Time> {
        (self.defect == Defect::WakesInPast).then_some(Time::from_secs(1))
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Discipline<SimplePacket> for Fifo {
    fn drain(&mut self, now: Time) -> Option<SimplePacket> {
        self.dequeue(now, &mut Log::default())
    }
    fn set_limit(&mut self, limit: Limit) {
        if let Limit::Packets(limit) = limit {
            self.limit = limit;
        }
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("waiting", self.backlog.packets.get() as f64);
    }
}

static ENTRY: Entry = Entry {
    name: "outside",
    role: Role::System,
    summary: "A FIFO from outside.",
    reference: "–",
    cost: "O(1) per packet, no state",
    params: &[crate::param::Param { kind: crate::param::Kind::Packets, ..LIMIT }],
    traits: Traits::NONE,
};

fn catalog(defect: Defect, is_marking: bool) -> Catalog {
    let mut catalog = Catalog::default();
    let build = move |limit: &Packets, _: &LinkContext<'_>| Fifo {
        queue: VecDeque::new(),
        backlog: Backlog::EMPTY,
        limit: *limit,
        defect,
        is_marking,
    };
    catalog.register(&ENTRY, |args| Ok(args.packets("limit")), build).unwrap();
    catalog
}

fn params(catalog: &Catalog, limit: &str) -> DisciplineParams {
    let mut selection = catalog.select("outside", None, None).unwrap();
    selection.set("limit", limit).unwrap();
    DisciplineParams::from_args(&selection).unwrap()
}

fn build(defect: Defect, is_marking: bool) -> LinkQueue<SimplePacket> {
    params(&catalog(defect, is_marking), "5p").build(&LinkContext::new(Rate::from_mbit(10), 1, "link"))
}

#[test]
fn what_a_discipline_writes_reaches_the_packet_of_the_backend_and_its_number_does_not() {
    let mut queue = build(Defect::None, true);
    let mut log = Log::default();
    let sent = SimplePacket { ecn: Ecn::Ect0, ..packet(1_234, 7, 100) };
    queue.enqueue(Time::ZERO, sent, &mut log);
    assert_eq!(log.marked, [(Time::ZERO, 1_234)]);
    let left = queue.dequeue(Time::ZERO, &mut log).unwrap();
    let mut expected = SimplePacket { ecn: Ecn::Ce, colour: Colour::Yellow, ..sent };
    expected.set_label(LabelKind::Rate, Label::new(77.0));
    assert_eq!(left, expected);
    // A packet that is not ECN-capable stays so.
    queue.enqueue(Time::ZERO, packet(1_235, 7, 100), &mut log);
    assert_eq!(queue.dequeue(Time::ZERO, &mut log).unwrap().ecn, Ecn::NotEct);
}

#[test]
fn a_registered_discipline_is_limited_changed_shown_compared_and_replaced_like_any_other() {
    let outside = catalog(Defect::None, false);
    let [five, six] = ["5p", "6p"].map(|limit| params(&outside, limit));
    let link = LinkContext::new(Rate::from_mbit(10), 1, "link");
    let mut queue = five.build::<SimplePacket>(&link);
    assert!(queue.has_params(&five) && queue.has_params(&five.clone()) && !queue.has_params(&six));
    let mut log = Log::default();
    (0..6).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 100), &mut log));
    assert_eq!(log.dropped, [(Time::ZERO, 5, DropReason::Overflow)]);
    queue.set_limit("6p".parse().unwrap());
    queue.enqueue(Time::ZERO, packet(6, 0, 100), &mut log);
    assert_eq!(queue.backlog().packets.get(), 6);
    let mut shown = Vec::new();
    queue.statistics(&mut |name, value| shown.push((name, value)));
    assert_eq!(shown, [("waiting", 6.0)]);
    let moved: Vec<_> = core::iter::from_fn(|| queue.drain(Time::ZERO)).map(|packet| packet.id).collect();
    assert_eq!(moved, [0, 1, 2, 3, 4, 6]);
}

#[test]
fn a_discipline_that_gives_nothing_up_is_drained_in_the_order_of_arrival() {
    let mut queue = build(Defect::WakesInPast, false);
    let mut log = Log::default();
    // The second packet and those behind it never leave.
    (0..4).for_each(|id| queue.enqueue(Time::ZERO, packet(10 + id, 0, 100), &mut log));
    let moved: Vec<_> = core::iter::from_fn(|| queue.drain(Time::ZERO)).map(|packet| packet.id).collect();
    assert_eq!(moved, [10, 11, 12, 13]);
}

#[test]
fn a_discipline_that_breaks_the_contract_goes_out_of_service_and_says_why() {
    let held = |packets: u64| Backlog {
        packets: Packets::new(packets),
        bytes: crate::units::Bytes::new(100 * packets),
    };
    for (defect, expected) in [
        (Defect::Loses, FaultKind::Backlog { claimed: held(1), held: held(2) }),
        (Defect::Miscounts, FaultKind::Backlog { claimed: held(1), held: held(2) }),
        (Defect::Invents, FaultKind::NotHeld { id: 99 }),
        (Defect::Duplicates, FaultKind::NotHeld { id: 0 }),
        (Defect::WakesInPast, FaultKind::WakeupInPast { at: Time::from_secs(1) }),
    ] {
        let mut queue = build(defect, false);
        let mut log = Log::default();
        let at = Time::from_secs(3);
        (0..3).for_each(|id| queue.enqueue(at, packet(id, 0, 100), &mut log));
        let left: Vec<_> =
            (0..5).filter_map(|_| queue.dequeue(at, &mut log)).map(|packet| packet.id).collect();
        let fault = queue.fault().unwrap_or_else(|| panic!("{defect:?}"));
        assert_eq!((fault.at, fault.what), (at, expected), "{defect:?}: {fault}");
        // Every packet left or was dropped, once, and the queue is empty for good.
        queue.enqueue(at, packet(3, 0, 100), &mut log);
        let mut all: Vec<_> =
            left.iter().copied().chain(log.dropped.iter().map(|dropped| dropped.1)).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3], "{defect:?}");
        assert_eq!((queue.backlog(), queue.next_wakeup()), (Backlog::EMPTY, None));
        let mut shown = Vec::new();
        queue.statistics(&mut |name, value| shown.push((name, value)));
        assert!(shown.contains(&("contract_broken_at", 3.0)), "{defect:?}: {shown:?}");
    }
}

#[test]
fn numbers_that_come_around_pass_by_packets_that_still_wait() {
    let mut held = Held::new();
    held.next = u32::MAX;
    let ids = [5, 6, 7].map(|id| held.keep(packet(id, 0, 100)).id);
    assert_eq!(ids, [u32::MAX, 0, 1]);
    held.remove(0);
    held.next = u32::MAX;
    assert_eq!(held.keep(packet(8, 0, 100)).id, 0);
    let order: Vec<_> = core::iter::from_fn(|| held.oldest()).map(|packet| packet.id).collect();
    assert_eq!(order, [7, 5, 8]);
}

#[test]
fn what_cannot_be_registered_is_refused_with_the_reason() {
    use crate::param::{Kind, Param};
    let mut catalog = catalog(Defect::None, false);
    let mut refused = |entry: &'static Entry| {
        let fifo = |_: &(), _: &LinkContext<'_>| -> Fifo { unreachable!("it is not registered") };
        catalog.register(entry, |_| Ok(()), fifo).unwrap_err().to_string()
    };
    const fn entry(name: &'static str, role: Role, params: &'static [Param]) -> Entry {
        Entry { name, role, params, ..ENTRY_COPY }
    }
    const ENTRY_COPY: Entry = Entry {
        name: "new",
        role: Role::System,
        summary: "",
        reference: "–",
        cost: "",
        params: &[],
        traits: Traits::NONE,
    };
    const KIND: Param = Param::new("kind", "–", Kind::Count, "1", "chosen", "");
    const RATE: Param = Param::new("rate", "–", Kind::Count, "1", "chosen", "");
    const NONE: Param = Param::new("n", "–", Kind::Count, "one", "chosen", "");
    static TAKEN: Entry = entry("red", Role::System, &[]);
    static TWICE: Entry = entry("outside", Role::System, &[]);
    static POLICY: Entry = entry("new", Role::Policy, &[]);
    static SELECTOR: Entry = entry("new", Role::System, &[KIND]);
    static SHAPERS: Entry = entry("new", Role::System, &[RATE]);
    static REPEATED: Entry = entry("new", Role::System, &[LIMIT, LIMIT]);
    static DEFAULT: Entry = entry("new", Role::System, &[NONE]);
    let taken = "cannot be registered: another entry has this name";
    assert_eq!(refused(&TAKEN), std::format!("`red` {taken}"));
    assert_eq!(refused(&TWICE), std::format!("`outside` {taken}"));
    assert!(refused(&POLICY).ends_with("its role is Policy; register a whole discipline, Role::System"));
    assert!(refused(&SELECTOR).ends_with("another key of its table is called `kind`"));
    assert!(refused(&SHAPERS).ends_with("another key of its table is called `rate`"));
    assert!(refused(&REPEATED).ends_with("another key of its table is called `limit`"));
    assert!(refused(&DEFAULT).contains("its default does not parse: `n`: `one` is not a whole number"));
}
