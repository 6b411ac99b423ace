//! One direction of a link: a queue discipline, a transmitter and a wire.
//!
//! The packet in transmission is not in the queue. A packet's arrival is known when its transmission starts,
//! and a wire is first in, first out, so each wire needs one pending event, for its head. A transmitter that
//! sends its last waiting packet needs no event either: that it then asks the discipline in vain is made up
//! for, at the right time, when the next packet comes.
//!
//! Cost: O(1) per packet beside the discipline's, one event per packet, a second one while packets wait.

use std::collections::VecDeque;

use apportion_core::Packet as _;
use apportion_core::aqm::sffc::Sffc;
use apportion_core::counted::Counted;
use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::{FlowClass, FlowId, LabelKind};
use apportion_core::queue::{Backlog, DropReason, Overload, Queue, Sink};
use apportion_core::random::Stream;
use apportion_core::system::Discipline;
use apportion_core::transmission::Transmission;
use apportion_core::units::{Rate, Ratio, Span, TicketRate, Time, Weight};
use apportion_runtime::outcome::Count;
use apportion_runtime::probe::{Counters, LinkCounts, LinkProbe};

use crate::capture::LinkCapture;
use crate::events::{Event, Events};
use crate::packet::{Packet, Store};

/// What links share: the event queue and the books.
#[derive(Debug)]
pub struct Shared {
    /// What happens next.
    pub events: Events,
    /// The bodies of packets under way.
    pub store: Store,
    /// Of each flow that disciplines keep apart.
    pub counters: Vec<Counters>,
    /// The flow of the scenario by id; empty if nobody wants to know what flows are allocated.
    pub flow_of_id: Vec<u32>,
    /// What disciplines of links by their index have told since when, until it goes on its way to sources.
    pub exceptions: Vec<(Time, u32, Overload)>,
}

impl Shared {
    /// Empty books, with what happens first.
    #[must_use]
    pub fn new(events: Events) -> Self {
        Self {
            events,
            store: Store::default(),
            counters: Vec::new(),
            flow_of_id: Vec::new(),
            exceptions: Vec::new(),
        }
    }
}

/// What the transmitter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transmitter {
    /// Nothing; it has asked the discipline in vain.
    Idle,
    /// Sends until `free_at`; nothing waits and no event is pending.
    Last,
    /// Sends until `free_at`, when it asks again.
    Busy,
    /// Nothing, though packets wait: the discipline holds them back or the rate is zero.
    Held,
}

/// One direction of a link. What every packet touches comes first, in two cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    index: u32,
    transmitter: Transmitter,
    /// Whether `extras` have nothing to do.
    plain: bool,
    /// Whether the discipline is.
    transparent: bool,
    free_at: Time,
    delay: Span,
    times: Transmission,
    wire: VecDeque<(Time, Packet)>,
    /// When the packet that was sent last arrives; no later packet arrives before.
    last_arrival: Time,
    extras: Box<Extras>,
    queue: Counted<Discipline<Packet>>,
    /// Counts since the start of the run.
    counts: LinkCounts,
    /// When the discipline asked to be woken, if that event is pending.
    wakeup_at: Option<Time>,
}

/// What most links do not use.
#[derive(Debug)]
struct Extras {
    loss: Ratio,
    loss_stream: Stream,
    listed: Vec<Listed>,
    probe: Option<LinkProbe>,
    capture: Option<Box<LinkCapture>>,
    exchanges: Vec<(LabelKind, CurrencyExchange)>,
    /// The rate of tickets on acknowledgements that arrive, as of the last one.
    ack_in_tkt_rate: Option<TicketRate>,
}

impl Extras {
    /// Whether there is nothing to do.
    fn is_idle(&self) -> bool {
        self.loss == Ratio::ZERO
            && self.listed.is_empty()
            && self.probe.is_none()
            && self.capture.is_none()
            && self.exchanges.is_empty()
    }

    /// Takes note of a packet that arrives in front of the queue.
    fn arrive(&mut self, now: Time, packet: Packet, store: &mut Store) {
        store.get_mut(packet.body()).queued = now;
        for (kind, exchange) in &mut self.exchanges {
            let rate = exchange.arrive(now, &packet);
            if *kind == LabelKind::AckTickets && rate.is_some() {
                self.ack_in_tkt_rate = rate;
            }
        }
    }

    fn before_change(&mut self, now: Time, backlog: Backlog) {
        if let Some(probe) = &mut self.probe {
            probe.before_change(now, backlog);
        }
    }

    /// Takes note of a packet whose transmission begins, and exchanges its labels. Whether the wire loses it.
    fn transmit(&mut self, now: Time, packet: &mut Packet, store: &Store) -> bool {
        for (_, exchange) in &mut self.exchanges {
            exchange.exchange(now, packet);
        }
        let body = store.get(packet.body());
        if let Some(probe) = &mut self.probe {
            probe.transmitted(now.since(body.queued));
        }
        if let Some(capture) = &mut self.capture {
            capture.packet(now, packet, body);
        }
        self.loses(packet.flow())
    }

    /// Whether the wire loses the next packet, one of `flow`.
    fn loses(&mut self, flow: FlowId) -> bool {
        // Both kinds count every packet.
        let by_chance = self.loss > Ratio::ZERO && self.loss_stream.chance(self.loss.get());
        self.listed.iter_mut().fold(by_chance, |lost, listed| listed.hits(flow) || lost)
    }
}

/// The listed losses of what disciplines see as one flow.
#[derive(Debug)]
pub struct Listed {
    flow: FlowId,
    seen: u64,
    /// Ordinals still to come, the next one last.
    ahead: Vec<u64>,
}

impl Listed {
    /// Loses the packets of `flow` with these ordinals, counted from 1.
    #[must_use]
    pub fn new(flow: FlowId, mut packets: Vec<u64>) -> Self {
        packets.sort_unstable_by(|a, b| b.cmp(a));
        Self { flow, seen: 0, ahead: packets }
    }

    fn hits(&mut self, flow: FlowId) -> bool {
        if flow != self.flow {
            return false;
        }
        self.seen += 1;
        let hit = self.ahead.last() == Some(&self.seen);
        if hit {
            self.ahead.pop();
        }
        hit
    }
}

/// What a link is made of.
#[derive(Debug)]
pub struct LinkParts {
    /// Its index, which its events carry.
    pub index: u32,
    /// Its discipline, empty.
    pub queue: Discipline<Packet>,
    /// Of the transmitter.
    pub rate: Rate,
    /// Of the wire.
    pub delay: Span,
    /// Of each packet on the wire.
    pub loss: Ratio,
    /// Decides about `loss`.
    pub loss_stream: Stream,
    /// Losses by ordinal.
    pub listed: Vec<Listed>,
    /// Statistics, if anybody wants them.
    pub probe: Option<LinkProbe>,
    /// Where to write its packets, if anybody wants them.
    pub capture: Option<Box<LinkCapture>>,
    /// What exchanges labels between the routers at its ends, with the kind of label.
    pub exchanges: Vec<(LabelKind, CurrencyExchange)>,
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(parts: LinkParts) -> Self {
        let LinkParts { index, queue, rate, delay, loss, loss_stream, listed, probe, capture, exchanges } =
            parts;
        let ack_in_tkt_rate = None;
        let extras =
            Box::new(Extras { loss, loss_stream, listed, probe, capture, exchanges, ack_in_tkt_rate });
        Self {
            index,
            transmitter: Transmitter::Idle,
            free_at: Time::ZERO,
            delay,
            times: Transmission::new(rate),
            wire: VecDeque::new(),
            last_arrival: Time::ZERO,
            plain: extras.is_idle(),
            transparent: queue.is_transparent(),
            extras,
            queue: Counted::new(queue),
            counts: LinkCounts::default(),
            wakeup_at: None,
        }
    }

    /// Takes a packet into the queue and sends if the transmitter is free.
    pub fn receive(&mut self, now: Time, packet: Packet, shared: &mut Shared) {
        if !self.plain {
            self.extras.arrive(now, packet, &mut shared.store);
        }
        let free = match self.transmitter {
            Transmitter::Idle => true,
            Transmitter::Last => now >= self.free_at,
            Transmitter::Busy | Transmitter::Held => false,
        };
        if free && self.transparent && self.rate() > Rate::ZERO {
            return self.send(now, packet, shared);
        }
        if free && self.transmitter == Transmitter::Last {
            self.find_nothing(shared);
        }
        if !self.plain {
            self.extras.before_change(now, self.queue.backlog());
        }
        self.queue.enqueue(now, packet, &mut Books::new(self.index, &mut self.counts, shared));
        match self.transmitter {
            Transmitter::Idle | Transmitter::Held => self.transmit(now, shared),
            Transmitter::Last => {
                self.transmitter = Transmitter::Busy;
                shared.events.schedule(self.free_at, Event::Ready(self.index));
            }
            Transmitter::Busy => {}
        }
    }

    /// The transmission under way has ended, with packets waiting.
    pub fn ready(&mut self, now: Time, shared: &mut Shared) {
        self.transmit(now, shared);
    }

    /// The time the discipline asked for has come.
    pub fn wakeup(&mut self, now: Time, shared: &mut Shared) {
        if self.wakeup_at == Some(now) {
            self.wakeup_at = None;
        }
        if self.transmitter == Transmitter::Held {
            self.transmit(now, shared);
        }
    }

    /// Takes the packet that arrives now off the wire.
    pub fn arrive(&mut self, shared: &mut Shared) -> Option<Packet> {
        let (_, packet) = self.wire.pop_front()?;
        if let Some(&(at, _)) = self.wire.front() {
            shared.events.schedule(at, Event::Arrival(self.index));
        }
        Some(packet)
    }

    /// Tells the discipline that the transmitter asked at the end of its last transmission and found nothing.
    fn find_nothing(&mut self, shared: &mut Shared) {
        let found = self.queue.dequeue(self.free_at, &mut Books::new(self.index, &mut self.counts, shared));
        debug_assert!(found.is_none(), "the queue was empty");
        self.transmitter = Transmitter::Idle;
    }

    fn transmit(&mut self, now: Time, shared: &mut Shared) {
        if self.rate() == Rate::ZERO {
            self.transmitter = Transmitter::Held;
            return;
        }
        if !self.plain {
            self.extras.before_change(now, self.queue.backlog());
        }
        match self.queue.dequeue(now, &mut Books::new(self.index, &mut self.counts, shared)) {
            Some(packet) => self.send(now, packet, shared),
            None => self.wait(shared),
        }
    }

    /// Transmits a packet.
    fn send(&mut self, now: Time, mut packet: Packet, shared: &mut Shared) {
        self.free_at = now + self.times.time(packet.size());
        self.counts.sent.add(packet.size());
        if !self.plain && self.extras.transmit(now, &mut packet, &shared.store) {
            self.counts.lost += 1;
            shared.counters[packet.flow().index()].lost += 1;
            shared.store.remove(packet.body());
        } else {
            self.propagate(packet, shared);
        }
        if self.queue.backlog().is_empty() {
            self.transmitter = Transmitter::Last;
        } else {
            self.transmitter = Transmitter::Busy;
            shared.events.schedule(self.free_at, Event::Ready(self.index));
        }
    }

    /// The discipline gave no packet: it is empty or holds packets back.
    fn wait(&mut self, shared: &mut Shared) {
        if self.queue.backlog().is_empty() {
            self.transmitter = Transmitter::Idle;
            return;
        }
        self.transmitter = Transmitter::Held;
        let wakeup = self.queue.next_wakeup();
        if let Some(at) = wakeup.filter(|_| wakeup != self.wakeup_at) {
            self.wakeup_at = wakeup;
            shared.events.schedule(at, Event::Wakeup(self.index));
        }
    }

    fn propagate(&mut self, packet: Packet, shared: &mut Shared) {
        let at = (self.free_at + self.delay).max(self.last_arrival);
        self.last_arrival = at;
        if self.wire.is_empty() {
            shared.events.schedule(at, Event::Arrival(self.index));
        }
        self.wire.push_back((at, packet));
    }

    /// Changes the rate from `now` on. A packet in transmission finishes at the old rate.
    pub fn set_rate(&mut self, now: Time, rate: Rate, shared: &mut Shared) {
        self.catch_up(now, shared);
        self.counts = self.counts(now);
        self.times = Transmission::new(rate);
        self.queue.inner_mut().set_link_rate(rate);
        if self.transmitter == Transmitter::Held {
            self.transmit(now, shared);
        }
    }

    /// Changes the delay for packets sent from now on; none overtakes an earlier one.
    pub fn set_delay(&mut self, delay: Span) {
        self.delay = delay;
    }

    /// Changes the random loss.
    pub fn set_loss(&mut self, loss: Ratio) {
        self.extras.loss = loss;
        self.plain = self.extras.is_idle();
    }

    /// Changes the class of a flow, where the discipline keeps classes apart. What it holds back may then go.
    pub fn set_class(&mut self, now: Time, flow: FlowId, class: FlowClass, shared: &mut Shared) {
        self.catch_up(now, shared);
        if self.queue.inner_mut().set_class(flow, class) && self.transmitter == Transmitter::Held {
            self.transmit(now, shared);
        }
    }

    /// Lets a discipline that infers what flows need do what was due until `now`, and notes what they have.
    pub fn catch_up(&mut self, now: Time, shared: &mut Shared) {
        let flow_of_id = std::mem::take(&mut shared.flow_of_id);
        let probe = self.extras.probe.as_mut();
        let mut allocations = probe.filter(|_| !flow_of_id.is_empty()).map(|probe| &mut probe.allocations);
        let mut show = |id: FlowId, share| {
            if let (Some(allocations), Some(&flow)) = (&mut allocations, flow_of_id.get(id.index())) {
                allocations.tell(flow, share);
            }
        };
        self.queue.inner_mut().shares(now, &mut Books::new(self.index, &mut self.counts, shared), &mut show);
        if let Some(allocations) = allocations {
            allocations.end_round();
        }
        shared.flow_of_id = flow_of_id;
    }

    /// Changes the weight of a flow, where the discipline knows weights.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        self.queue.inner_mut().set_weight(flow, weight);
    }

    /// Changes what a flow is guaranteed, where the discipline knows guarantees.
    pub fn set_guarantee(&mut self, flow: FlowId, guarantee: Rate, rtt: Span) {
        self.queue.inner_mut().set_guarantee(flow, guarantee, rtt);
    }

    /// What its queue shares with those of other routers, if it does.
    #[must_use]
    pub fn link_state(&self) -> Option<&Sffc> {
        self.queue.inner().link_state()
    }

    /// What its queue shares with those of other routers, if it does.
    pub fn link_state_mut(&mut self) -> Option<&mut Sffc> {
        self.queue.inner_mut().link_state_mut()
    }

    /// Changes what the router at its end issues to it, or for acknowledgements the one at its beginning.
    pub fn issue(&mut self, now: Time, kind: LabelKind, tickets: TicketRate) {
        for (of, exchange) in &mut self.extras.exchanges {
            if *of == kind {
                exchange.issue(now, tickets);
            }
        }
    }

    /// The rate of tickets on acknowledgements that arrive, as of the last one; none before, or if it does not
    /// exchange them.
    #[must_use]
    pub fn ack_in_tkt_rate(&self) -> Option<TicketRate> {
        self.extras.ack_in_tkt_rate
    }

    /// Replaces the discipline. What waits moves into the new one in the order in which it would have been
    /// sent.
    pub fn set_queue(&mut self, now: Time, mut queue: Discipline<Packet>, shared: &mut Shared) {
        queue.set_link_rate(self.rate());
        self.catch_up(now, shared);
        if let Some(probe) = &mut self.extras.probe {
            probe.allocations.replace();
        }
        if !self.plain {
            self.extras.before_change(now, self.queue.backlog());
        }
        self.transparent = queue.is_transparent();
        let mut old = std::mem::replace(&mut self.queue, Counted::new(queue));
        while let Some(packet) = old.inner_mut().drain(now) {
            self.queue.enqueue(now, packet, &mut Books::new(self.index, &mut self.counts, shared));
        }
        if matches!(self.transmitter, Transmitter::Idle | Transmitter::Held) {
            self.transmit(now, shared);
        }
    }

    /// A sample interval ends.
    pub fn sample(&mut self, now: Time, shared: &mut Shared) {
        if self.extras.probe.is_some() {
            self.catch_up(now, shared);
        }
        if let Some(probe) = &mut self.extras.probe {
            probe.sample(self.queue.backlog(), self.counts.sent.bytes);
        }
    }

    /// Shows numbers by name that its discipline knows of flows.
    pub fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        self.queue.inner().flow_statistics(show);
    }

    /// Shows numbers by name that say what its discipline and its exchanges have done or stand at.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.queue.inner().statistics(show);
        for (kind, exchange) in &self.extras.exchanges {
            let stats = exchange.stats();
            let [tickets_in, tickets_out] = match kind {
                LabelKind::Tickets => ["tickets_in", "tickets_out"],
                LabelKind::AckTickets => ["ack_tickets_in", "ack_tickets_out"],
                LabelKind::Rate => continue,
            };
            show(tickets_in, stats.tickets_in);
            show(tickets_out, stats.tickets_out);
        }
    }

    /// Of its transmitter.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.times.rate()
    }

    /// Of its wire.
    #[must_use]
    pub fn delay(&self) -> Span {
        self.delay
    }

    /// What waits in its queue.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Counts from the start of the run to `now`.
    #[must_use]
    pub fn counts(&self, now: Time) -> LinkCounts {
        self.counts.until(now, self.rate())
    }

    /// Transmitted since the start of the run.
    #[must_use]
    pub fn sent(&self) -> Count {
        self.counts.sent
    }

    /// Its statistics.
    pub fn probe_mut(&mut self) -> Option<&mut LinkProbe> {
        self.extras.probe.as_mut()
    }

    /// Takes its capture, to finish it.
    pub fn take_capture(&mut self) -> Option<Box<LinkCapture>> {
        self.extras.capture.take()
    }
}

/// Writes into the books what a discipline does to packets.
struct Books<'a> {
    index: u32,
    link: &'a mut LinkCounts,
    shared: &'a mut Shared,
}

impl<'a> Books<'a> {
    fn new(index: u32, link: &'a mut LinkCounts, shared: &'a mut Shared) -> Self {
        Self { index, link, shared }
    }
}

impl Sink<Packet> for Books<'_> {
    fn dropped(&mut self, _now: Time, packet: Packet, reason: DropReason) {
        self.link.dropped[reason as usize] += 1;
        self.shared.counters[packet.flow().index()].dropped[reason as usize] += 1;
        self.shared.store.remove(packet.body());
    }
    fn marked(&mut self, _now: Time, packet: &Packet) {
        self.link.marked += 1;
        self.shared.counters[packet.flow().index()].marked += 1;
    }
    fn overload(&mut self, now: Time, exception: Overload) {
        self.shared.exceptions.push((now, self.index, exception));
    }
}
