//! Random sequences of steps, and the laws that are checked after each step.

use std::collections::BTreeMap;

use apportion_core::label::Label;
use apportion_core::limit::Limit;
use apportion_core::system::Discipline;
use apportion_core::units::{Bytes, Packets, Rate, Span, Time, Weight};
use apportion_core::{
    Backlog, Colour, DropReason, Ecn, FlowId, FlowSetting, LabelKind, Packet as _, Queue, SimplePacket, Sink,
};
use proptest::prelude::*;

use crate::{Law, Laws, MAX_PAUSE};

/// A step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A packet arrives; its number is the number of the step.
    Enqueue {
        /// The flow of the packet.
        flow: u32,
        /// The size of the packet, in bytes.
        size: u64,
        /// Whether the packet is ECN-capable; packets of L4S flows always are.
        capable: bool,
    },
    /// The link asks for a packet.
    Dequeue,
    /// Time passes, in nanoseconds.
    Advance(u64),
    /// The limit becomes this number of packets. This step and the next two occur only in the sequences of
    /// [`verify_changes`](crate::Laws::verify_changes).
    SetLimit(u64),
    /// The weight of a flow changes.
    SetWeight {
        /// The flow.
        flow: u32,
        /// The new weight.
        weight: u8,
    },
    /// The rate of the link becomes this number of Mb/s.
    SetLinkRate(u64),
}

/// Operations beyond [`Queue`]: the changes of a `Discipline`, and draining its packets when it is replaced.
pub struct Beyond<Q> {
    /// Applies a change; ignores other steps.
    pub change: fn(&mut Q, Op),
    /// Removes the next packet; if absent, the packets that wait at the end are dequeued.
    pub drain: Option<fn(&mut Q, Time) -> Option<SimplePacket>>,
}

impl<Q> Beyond<Q> {
    /// No changes, and no drain.
    pub const NOTHING: Self = Self { change: |_, _| (), drain: None };
}

impl<Q: Discipline<SimplePacket>> Beyond<Q> {
    /// The operations that every system supports.
    pub const SYSTEM: Self = Self {
        change: |queue, op| match op {
            Op::SetLimit(limit) => queue.set_limit(Limit::Packets(Packets::new(limit))),
            Op::SetWeight { flow, weight } => {
                let weight = Weight::new(f64::from(weight)).unwrap_or_default();
                queue.set_flow(FlowId(flow), FlowSetting::Weight(weight));
            }
            Op::SetLinkRate(rate) => queue.set_link_rate(Rate::from_mbit(rate)),
            Op::Enqueue { .. } | Op::Dequeue | Op::Advance(_) => (),
        },
        drain: Some(Q::drain),
    };
}

impl Op {
    /// Describes the step in words; `step` is its number.
    pub(crate) fn describe(self, step: usize) -> String {
        match self {
            Self::Enqueue { flow, size, capable } => {
                let ecn = match codepoint(flow, capable) {
                    Ecn::Ect1 => ", L4S",
                    Ecn::Ect0 => ", ECN-capable",
                    _ => "",
                };
                format!("enqueue packet {step} of flow {flow}, {size}B{ecn}")
            }
            Self::Dequeue => "dequeue".to_owned(),
            Self::Advance(nanos) => format!("{} pass", Span::from_nanos(nanos)),
            Self::SetLimit(limit) => format!("the limit becomes {limit}p"),
            Self::SetWeight { flow, weight } => format!("the weight of flow {flow} becomes {weight}"),
            Self::SetLinkRate(rate) => format!("the rate of the link becomes {rate}Mbit"),
        }
    }
}

/// The size of the largest packet.
const LARGEST: Bytes = Bytes::new(1_500);

pub fn ops() -> impl Strategy<Value = Vec<Op>> {
    let enqueue = (0u32..5, 40..=LARGEST.get(), any::<bool>());
    let op = prop_oneof![
        4 => enqueue.prop_map(|(flow, size, capable)| Op::Enqueue { flow, size, capable }),
        3 => Just(Op::Dequeue),
        2 => (0..MAX_PAUSE.as_nanos()).prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..200)
}

/// Generates sequences as [`ops`] does, with changes.
pub fn ops_with_changes() -> impl Strategy<Value = Vec<Op>> {
    let change = prop_oneof![
        (1u64..30).prop_map(Op::SetLimit),
        (0u32..5, 1u8..=10).prop_map(|(flow, weight)| Op::SetWeight { flow, weight }),
        (1u64..100).prop_map(Op::SetLinkRate),
    ];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), change), 1..10);
    (ops(), changes).prop_map(|(mut ops, changes)| {
        changes.into_iter().for_each(|(at, change)| ops.insert(at.index(ops.len()), change));
        ops
    })
}

/// Returns the ECN codepoint of a packet. Every fourth flow is an L4S flow with all its packets: a discipline
/// may serve L4S flows separately.
const fn codepoint(flow: u32, capable: bool) -> Ecn {
    match capable {
        _ if flow % 4 == 3 => Ecn::Ect1,
        true => Ecn::Ect0,
        false => Ecn::NotEct,
    }
}

/// Creates a packet that may be marked, is in profile half of the time, and mostly has tickets.
fn arrival(id: u32, flow: u32, size: u64, capable: bool) -> SimplePacket {
    let ecn = codepoint(flow, capable);
    let colour = if size.is_multiple_of(2) { Colour::Green } else { Colour::Red };
    let new = SimplePacket::new(id, FlowId(flow), Bytes::new(size));
    let mut packet = SimplePacket { ecn, colour, ..new };
    if !size.is_multiple_of(5) {
        packet.set_label(LabelKind::Tickets, Label::new((size / 20) as f64));
    }
    packet
}

/// A violation of a law.
#[derive(Debug)]
pub struct Broken {
    pub law: Law,
    pub step: usize,
    pub what: String,
}

/// All departures, drops and marks of a discipline, in order.
#[derive(Clone, Debug, PartialEq)]
enum Event {
    Left(u32),
    Dropped(u32, DropReason),
    Marked(u32),
}

/// The packets that entered and left.
#[derive(Default)]
struct Ledger {
    waiting: BTreeMap<u32, SimplePacket>,
    marked: Vec<u32>,
    events: Vec<Event>,
    reorders: bool,
    wrong: Option<(Law, String)>,
}

impl Ledger {
    fn blame(&mut self, law: Law, what: String) {
        self.wrong.get_or_insert((law, what));
    }

    /// Records that `packet` left or was dropped.
    fn gone(&mut self, packet: &SimplePacket, how: &str) {
        let id = packet.id;
        match self.waiting.remove(&id) {
            None => self.blame(Law::Conservation, format!("packet {id} was {how}, but does not wait")),
            Some(came) if (came.flow, came.size) != (packet.flow, packet.size) => {
                self.blame(Law::Conservation, format!("packet {id} was {how} with another flow or size"));
            }
            Some(_) => (),
        }
    }

    fn left(&mut self, packet: &SimplePacket) {
        let came = self.waiting.get(&packet.id).copied();
        self.gone(packet, "delivered");
        self.events.push(Event::Left(packet.id));
        let earlier = self.waiting.values().find(|other| other.flow == packet.flow && other.id < packet.id);
        if let Some(earlier) = earlier.filter(|_| !self.reorders) {
            let what =
                format!("packet {} of flow {} left before packet {}", packet.id, packet.flow.0, earlier.id);
            self.blame(Law::Order, what);
        }
        let marked = self.marked.contains(&packet.id);
        if marked && packet.ecn != Ecn::Ce {
            self.blame(Law::Marking, format!("packet {} was marked, and left without the mark", packet.id));
        }
        if let Some(came) = came.filter(|came| !marked && came.ecn != packet.ecn) {
            let what = format!(
                "packet {} came with the ECN field {:?} and left with {:?}, but was not reported as marked",
                packet.id, came.ecn, packet.ecn
            );
            self.blame(Law::Marking, what);
        }
    }
}

impl Sink<SimplePacket> for Ledger {
    fn dropped(&mut self, _: Time, packet: SimplePacket, reason: DropReason) {
        self.gone(&packet, "dropped");
        self.events.push(Event::Dropped(packet.id, reason));
    }
    fn marked(&mut self, _: Time, packet: &SimplePacket) {
        let id = packet.id;
        self.marked.push(id);
        self.events.push(Event::Marked(id));
        if !self.waiting.get(&id).is_some_and(|came| came.ecn.is_capable()) {
            self.blame(
                Law::Marking,
                format!("packet {id} was marked, but does not wait or is not ECN-capable"),
            );
        }
    }
}

struct Run<'a, Q> {
    queue: Q,
    beyond: &'a Beyond<Q>,
    ledger: Ledger,
    now: Time,
    limit: Option<Limit>,
    holds_back: bool,
    /// The time that the discipline named when it refused the last request, unless a packet arrived or a
    /// setting changed since.
    refused_until: Option<Time>,
    /// The backlog after the last step.
    before: Backlog,
}

impl<Q: Queue<SimplePacket>> Run<'_, Q> {
    fn change(&mut self, op: Op) {
        self.refused_until = None;
        (self.beyond.change)(&mut self.queue, op);
        if let (Some(old), Op::SetLimit(limit)) = (&mut self.limit, op) {
            *old = Limit::Packets(Packets::new(limit));
        }
    }

    fn enqueue(&mut self, packet: SimplePacket) {
        self.refused_until = None;
        self.ledger.waiting.insert(packet.id, packet);
        self.queue.enqueue(self.now, packet, &mut self.ledger);
    }

    /// Requests a packet. Returns the time of the next attempt if the discipline refuses.
    fn dequeue(&mut self) -> Option<Time> {
        let waited = !self.ledger.waiting.is_empty();
        let refused_until = std::mem::take(&mut self.refused_until);
        let sent = self.queue.dequeue(self.now, &mut self.ledger);
        if let Some(packet) = sent {
            self.ledger.left(&packet);
            if let Some(at) = refused_until.filter(|at| self.now < *at) {
                let what = format!("a packet came at {}, before {at}, the time that it had named", self.now);
                self.ledger.blame(Law::WakeUp, what);
            }
            return None;
        }
        let waits = self.ledger.waiting.len();
        // A discipline may drop its whole backlog during a request.
        if waits == 0 || !waited {
            return None;
        }
        if !self.holds_back {
            self.ledger.blame(Law::WorkConservation, format!("no packet came, though {waits} wait"));
            return None;
        }
        let (now, wakeup) = (self.now, self.queue.next_wakeup());
        match wakeup {
            None => {
                self.ledger.blame(Law::WakeUp, format!("no packet came, {waits} wait, and no time is named"));
            }
            Some(at) if at <= now => {
                self.ledger.blame(
                    Law::WakeUp,
                    format!("no packet came, and the time named, {at}, is not after {now}"),
                );
            }
            Some(_) => (),
        }
        self.refused_until = wakeup;
        wakeup
    }

    /// The part of the backlog that the limit counts: without the packet that a shaper holds.
    fn reached(&self, packets: Packets, bytes: Bytes) -> Backlog {
        match self.holds_back {
            true => Backlog {
                packets: Packets::new(packets.get().saturating_sub(1)),
                bytes: bytes.saturating_sub(LARGEST),
            },
            false => Backlog { packets, bytes },
        }
    }

    /// Checks the laws that hold after every step.
    fn settle(&mut self, step: usize) -> Result<(), Broken> {
        let claimed = self.queue.backlog();
        let packets = Packets::new(self.ledger.waiting.len() as u64);
        let bytes = Bytes::new(self.ledger.waiting.values().map(|packet| packet.size.get()).sum());
        if (claimed.packets, claimed.bytes) != (packets, bytes) {
            let what = format!(
                "its backlog is {} with {}, but {packets} with {bytes} arrived and neither left nor were dropped",
                claimed.packets, claimed.bytes
            );
            self.ledger.blame(Law::Conservation, what);
        }
        // A buffer whose limit was reduced drains, and may exchange packets meanwhile.
        let before = std::mem::replace(&mut self.before, Backlog { packets, bytes });
        let grew = |limit: &Limit| match limit {
            Limit::Packets(_) => packets > before.packets,
            Limit::Bytes(_) => bytes > before.bytes,
        };
        if let Some(limit) =
            self.limit.filter(|limit| grew(limit) && limit.is_exceeded_by(self.reached(packets, bytes)))
        {
            self.ledger.blame(Law::Limit, format!("{packets} with {bytes} wait, and the limit is {limit}"));
        }
        match self.ledger.wrong.take() {
            Some((law, what)) => Err(Broken { law, step, what }),
            None => Ok(()),
        }
    }

    /// Removes the packets that wait.
    fn empty(&mut self, step: usize) -> Result<(), Broken> {
        while let Some(packet) = self.beyond.drain.and_then(|drain| drain(&mut self.queue, self.now)) {
            self.ledger.left(&packet);
            self.settle(step)?;
        }
        if self.beyond.drain.is_some() && !self.ledger.waiting.is_empty() {
            let what = format!("drain gave no packet, though {} wait", self.ledger.waiting.len());
            self.ledger.blame(Law::Conservation, what);
            self.settle(step)?;
        }
        while !self.ledger.waiting.is_empty() {
            let before = self.ledger.waiting.len();
            let wakeup = self.dequeue();
            self.settle(step)?;
            if let Some(at) = wakeup {
                self.now = at;
                if self.dequeue() == Some(at) || self.ledger.waiting.len() == before {
                    let what = format!("no packet came at {at}, the time that it had named");
                    self.ledger.blame(Law::WakeUp, what);
                }
                self.settle(step)?;
            }
        }
        // One more request, as a link makes it.
        if self.queue.dequeue(self.now, &mut self.ledger).is_some() {
            self.ledger.blame(Law::Conservation, "a packet came though none waits".to_owned());
        }
        self.settle(step)
    }
}

/// Removes steps from `ops` and assigns the packets to one flow, as long as the same law is broken.
pub fn shortest(
    mut broken: Broken,
    mut ops: Vec<Op>,
    run: &impl Fn(&[Op]) -> Result<(), Broken>,
) -> (Broken, Vec<Op>) {
    let mut take = |ops: &mut Vec<Op>, shorter: Vec<Op>| match run(&shorter) {
        Err(found) if found.law == broken.law => {
            (broken, *ops) = (found, shorter);
            true
        }
        _ => false,
    };
    let in_one_flow = ops.iter().map(|op| match *op {
        Op::Enqueue { size, capable, .. } => Op::Enqueue { flow: 0, size, capable },
        other => other,
    });
    let in_one_flow = in_one_flow.collect();
    take(&mut ops, in_one_flow);
    // A step that was needed may become unnecessary once another one is removed.
    while (0..ops.len()).rev().any(|at| {
        let mut shorter = ops.clone();
        shorter.remove(at);
        take(&mut ops, shorter)
    }) {}
    (broken, ops)
}

/// Checks every law on `ops`.
pub fn check<Q: Queue<SimplePacket>>(
    new: &impl Fn() -> Q,
    beyond: &Beyond<Q>,
    ops: &[Op],
    Laws { limit, holds_back, reorders, .. }: Laws,
) -> Result<(), Broken> {
    let once = || -> Result<Vec<Event>, Broken> {
        let ledger = Ledger { reorders, ..Ledger::default() };
        let (now, refused_until, before) = (Time::ZERO, None, Backlog::EMPTY);
        let mut run = Run { queue: new(), beyond, ledger, now, limit, holds_back, refused_until, before };
        for (step, op) in ops.iter().enumerate() {
            match *op {
                Op::Enqueue { flow, size, capable } => run.enqueue(arrival(step as u32, flow, size, capable)),
                Op::Dequeue => drop(run.dequeue()),
                Op::Advance(nanos) => run.now += Span::from_nanos(nanos),
                Op::SetLimit(_) | Op::SetWeight { .. } | Op::SetLinkRate(_) => run.change(*op),
            }
            run.settle(step)?;
        }
        run.empty(ops.len())?;
        Ok(run.ledger.events)
    };
    let first = once()?;
    if first != once()? {
        let what = "two runs with one seed differ".to_owned();
        return Err(Broken { law: Law::Determinism, step: ops.len(), what });
    }
    let [through, by] = [false, true].map(|bypass| passing(new(), beyond, ops, bypass));
    if through != by {
        let at = through.iter().zip(&by).take_while(|(through, by)| through == by).count();
        let step = through.get(at).or(by.get(at)).map_or(ops.len(), |event| event.0);
        let what =
            "it claims to be transparent, but a packet that bypassed it changed later results".to_owned();
        return Err(Broken { law: Law::Transparency, step, what });
    }
    Ok(())
}

/// Records what a run did at each step, where a request follows most arrivals at once. With `bypass`, packets
/// that arrive while a transparent discipline is empty bypass it.
fn passing<Q: Queue<SimplePacket>>(
    mut queue: Q,
    beyond: &Beyond<Q>,
    ops: &[Op],
    bypass: bool,
) -> Vec<(usize, Event)> {
    let (mut events, mut now) = (Vec::new(), Time::ZERO);
    for (step, op) in ops.iter().enumerate() {
        let mut ledger = Ledger::default();
        let sent = match *op {
            Op::Advance(nanos) => {
                now += Span::from_nanos(nanos);
                None
            }
            Op::Enqueue { flow, size, capable } => {
                let packet = arrival(step as u32, flow, size, capable);
                let goes_by = bypass && queue.backlog().is_empty() && queue.is_transparent();
                // Some packets stay, so that the discipline is not always empty.
                let stays = size.is_multiple_of(3);
                if goes_by && !stays {
                    Some(packet)
                } else {
                    queue.enqueue(now, packet, &mut ledger);
                    if stays { None } else { queue.dequeue(now, &mut ledger) }
                }
            }
            Op::Dequeue => queue.dequeue(now, &mut ledger),
            Op::SetLimit(_) | Op::SetWeight { .. } | Op::SetLinkRate(_) => {
                (beyond.change)(&mut queue, *op);
                None
            }
        };
        let left = sent.map(|packet| Event::Left(packet.id));
        events.extend(ledger.events.into_iter().chain(left).map(|event| (step, event)));
    }
    events
}
