//! One direction of a link: a queue discipline, a transmitter and a wire, moved along by whoever has a clock.
//!
//! It does no I/O. [`next`](Link::next) says when something happens and [`handle`](Link::handle) does it, for
//! the time at which it was due: a caller that comes late makes nothing else late, because the next departure
//! follows from the last one and not from the clock.
//!
//! The packet in transmission is not in the queue. A wire is first in, first out.
//!
//! Cost: O(1) per packet beside the discipline's.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use apportion_core::Packet as _;
use apportion_core::aqm::sffc::Sffc;
use apportion_core::counted::Counted;
use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::CustomerId;
use apportion_core::packet::{FlowClass, FlowId, LabelKind};
use apportion_core::queue::{Backlog, DropReason, Overload, Queue as _, Sink};
use apportion_core::random::Stream;
use apportion_core::system::Discipline;
use apportion_core::units::{Rate, Ratio, Span, TicketRate, Time, Weight};
use apportion_linux::pool::Pool;
use apportion_runtime::probe::{Counters, LinkCounts, LinkProbe};

use crate::pace::Pace;
use crate::packet::Packet;

/// What links share: buffers, and the books by flow.
#[derive(Debug)]
pub struct Books {
    /// Where frames lie.
    pub pool: Pool,
    /// By [account](Packet::account), which most worlds number as flows.
    pub flows: Vec<Counters>,
    /// What disciplines of links, by their number, told of flows, until somebody fetches it; the latest of at
    /// most [`MAX_EXCEPTIONS`](Self::MAX_EXCEPTIONS).
    pub exceptions: VecDeque<(Time, u32, Overload)>,
    /// Sees every packet on every link, for logs.
    pub witness: Option<Box<dyn Witness>>,
}

/// Is told what becomes of packets on links, by the number of the link, as it happens.
pub trait Witness: std::fmt::Debug + Send {
    /// A packet comes to the queue.
    fn entered(&mut self, now: Time, link: u32, packet: &Packet);
    /// A packet is gone: the discipline dropped it, or it was lost on the wire.
    fn gone(&mut self, now: Time, link: u32, packet: &Packet);
    /// A packet has reached the end of the wire.
    fn arrived(&mut self, now: Time, link: u32, packet: &Packet);
    /// It is over.
    ///
    /// # Errors
    /// If what it was told could not be written.
    fn finish(self: Box<Self>, now: Time) -> std::io::Result<()>;
}

impl Books {
    /// Most exceptions that are kept for whoever fetches them.
    pub const MAX_EXCEPTIONS: usize = 1_024;

    /// Empty books for accounts with numbers below `flows`.
    #[must_use]
    pub fn new(pool: Pool, flows: usize) -> Self {
        Self { pool, flows: vec![Counters::default(); flows], exceptions: VecDeque::new(), witness: None }
    }

    /// The counts of an account. Numbers beyond the last share its counts.
    pub fn account(&mut self, number: u32) -> Option<&mut Counters> {
        let last = self.flows.len().checked_sub(1)?;
        self.flows.get_mut((number as usize).min(last))
    }
}

/// What the transmitter does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transmitter {
    /// Nothing; it has asked the discipline in vain.
    Idle,
    /// Sends until then, when it asks again.
    Busy(Time),
    /// Nothing, though packets wait: until then, when the discipline lets them go, or until the rate changes.
    Held(Option<Time>),
}

/// What a link is made of.
#[derive(Debug)]
pub struct LinkParts {
    /// Its number, which word of its discipline carries.
    pub number: u32,
    /// Its discipline, empty.
    pub queue: Discipline<Packet>,
    /// Of the transmitter.
    pub pace: Pace,
    /// Of the wire.
    pub delay: Span,
    /// Of each packet on the wire.
    pub loss: Ratio,
    /// Decides about `loss`.
    pub loss_stream: Stream,
    /// What exchanges labels between the routers at its ends, with the kind of label.
    pub exchanges: Vec<(LabelKind, CurrencyExchange)>,
    /// The link that goes the other way, which exchanges tickets for those that acknowledgements bring here.
    pub other_way: Option<u32>,
}

impl LinkParts {
    /// A link whose wire has no delay and loses nothing, and that exchanges no labels.
    #[must_use]
    pub fn new(number: u32, queue: Discipline<Packet>, pace: Pace, loss_stream: Stream) -> Self {
        let (delay, loss, exchanges, other_way) = (Span::ZERO, Ratio::ZERO, Vec::new(), None);
        Self { number, queue, pace, delay, loss, loss_stream, exchanges, other_way }
    }
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    number: u32,
    transmitter: Transmitter,
    pace: Pace,
    delay: Span,
    loss: Ratio,
    loss_stream: Stream,
    exchanges: Vec<(LabelKind, CurrencyExchange)>,
    other_way: Option<u32>,
    /// The rate of tickets that acknowledgements bring, until somebody fetches it.
    told: Option<TicketRate>,
    queue: Counted<Discipline<Packet>>,
    wire: VecDeque<(Time, Packet)>,
    /// When the packet that was sent last arrives; no later packet arrives before.
    last_arrival: Time,
    /// Spent on what was sent.
    busy: Span,
    counts: LinkCounts,
    probe: LinkProbe,
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(parts: LinkParts) -> Self {
        let LinkParts { number, queue, pace, delay, loss, loss_stream, exchanges, other_way } = parts;
        Self {
            number,
            transmitter: Transmitter::Idle,
            pace,
            delay,
            loss,
            loss_stream,
            exchanges,
            other_way,
            told: None,
            queue: Counted::new(queue),
            wire: VecDeque::new(),
            last_arrival: Time::ZERO,
            busy: Span::ZERO,
            counts: LinkCounts::default(),
            probe: LinkProbe::default(),
        }
    }

    /// Takes a packet into the queue, and sends if the transmitter is free.
    pub fn enter(&mut self, now: Time, mut packet: Packet, books: &mut Books) {
        packet.queued = now;
        if let Some(witness) = &mut books.witness {
            witness.entered(now, self.number, &packet);
        }
        for (kind, exchange) in &mut self.exchanges {
            let rate = exchange.arrive(now, &packet);
            if *kind == LabelKind::AckTickets {
                self.told = rate.or(self.told);
            }
        }
        self.probe.before_change(now, self.queue.backlog());
        self.queue.enqueue(now, packet, &mut Report { number: self.number, link: &mut self.counts, books });
        if !matches!(self.transmitter, Transmitter::Busy(_)) {
            self.ask(now, books);
        }
    }

    /// What acknowledgements told this link to issue to the one that goes the other way, since it was last
    /// asked; and which that is.
    pub fn take_told(&mut self) -> Option<(u32, TicketRate)> {
        self.other_way.zip(self.told.take())
    }

    /// When [`handle`](Link::handle) is next to be called; never if nothing is under way.
    #[must_use]
    pub fn next(&self) -> Time {
        let transmitter = match self.transmitter {
            Transmitter::Busy(until) => until,
            Transmitter::Held(Some(until)) => until,
            Transmitter::Idle | Transmitter::Held(None) => Time::MAX,
        };
        self.wire.front().map_or(transmitter, |(arrival, _)| transmitter.min(*arrival))
    }

    /// Does what is due at `now`, which is [`next`](Link::next), and hands over a packet that has reached the
    /// end of the wire. Call it until `next` is later.
    pub fn handle(&mut self, now: Time, books: &mut Books) -> Option<Packet> {
        match self.transmitter {
            Transmitter::Busy(until) | Transmitter::Held(Some(until)) if until <= now => {
                self.ask(until, books);
            }
            _ => (),
        }
        if self.wire.front().is_none_or(|(arrival, _)| *arrival > now) {
            return None;
        }
        let (arrival, packet) = self.wire.pop_front()?;
        if let Some(witness) = &mut books.witness {
            witness.arrived(arrival, self.number, &packet);
        }
        Some(packet)
    }

    /// Asks the discipline for a packet and sends it.
    fn ask(&mut self, now: Time, books: &mut Books) {
        if self.pace.mean() == Rate::ZERO {
            self.transmitter = Transmitter::Held(None);
            return;
        }
        self.probe.before_change(now, self.queue.backlog());
        let mut report = Report { number: self.number, link: &mut self.counts, books };
        match self.queue.dequeue(now, &mut report) {
            Some(packet) => self.send(now, packet, books),
            None if self.queue.backlog().is_empty() => self.transmitter = Transmitter::Idle,
            None => self.transmitter = Transmitter::Held(self.queue.next_wakeup()),
        }
    }

    fn send(&mut self, now: Time, mut packet: Packet, books: &mut Books) {
        let sent = self.pace.send(now, packet.size()).unwrap_or(now);
        self.transmitter = Transmitter::Busy(sent);
        self.busy += sent.since(now);
        self.counts.sent.add(packet.size());
        self.probe.transmitted(now.since(packet.queued));
        for (_, exchange) in &mut self.exchanges {
            exchange.exchange(now, &mut packet);
        }
        if self.loss > Ratio::ZERO && self.loss_stream.chance(self.loss.get()) {
            self.counts.lost += 1;
            if let Some(flow) = books.account(packet.account()) {
                flow.lost += 1;
            }
            if let Some(witness) = &mut books.witness {
                witness.gone(now, self.number, &packet);
            }
            books.pool.give_back(packet.buffer);
            return;
        }
        let arrival = (sent + self.delay).max(self.last_arrival);
        self.last_arrival = arrival;
        self.wire.push_back((arrival, packet));
    }
}

/// Changes while it runs. None of them loses a packet; a packet in transmission finishes as it began.
impl Link {
    /// Another pace from `now` on. Rate zero holds packets in the queue.
    pub fn set_pace(&mut self, now: Time, pace: Pace, books: &mut Books) {
        self.counts = self.counts(now);
        self.queue.inner_mut().set_link_rate(pace.mean());
        self.pace = pace;
        if matches!(self.transmitter, Transmitter::Held(_)) {
            self.ask(now, books);
        }
    }

    /// The delay of packets that are sent from now on; none overtakes an earlier one.
    pub fn set_delay(&mut self, delay: Span) {
        self.delay = delay;
    }

    /// The random loss.
    pub fn set_loss(&mut self, loss: Ratio) {
        self.loss = loss;
    }

    /// Another discipline. What waits moves into it in the order in which it would have been sent.
    pub fn set_queue(&mut self, now: Time, mut queue: Discipline<Packet>, books: &mut Books) {
        queue.set_link_rate(self.pace.mean());
        self.probe.allocations.replace();
        self.probe.before_change(now, self.queue.backlog());
        let mut old = std::mem::replace(&mut self.queue, Counted::new(queue));
        while let Some(packet) = old.inner_mut().drain(now) {
            self.queue.enqueue(
                now,
                packet,
                &mut Report { number: self.number, link: &mut self.counts, books },
            );
        }
        if !matches!(self.transmitter, Transmitter::Busy(_)) {
            self.ask(now, books);
        }
    }

    /// What the discipline knows of a flow from now on.
    pub fn set_flow(&mut self, now: Time, flow: FlowId, to: &FlowSetting, books: &mut Books) {
        let queue = self.queue.inner_mut();
        let released = match *to {
            FlowSetting::Weight(weight) => {
                queue.set_weight(flow, weight);
                false
            }
            FlowSetting::Guarantee(guarantee, rtt) => {
                queue.set_guarantee(flow, guarantee, rtt);
                false
            }
            FlowSetting::Rtt(rtt) => {
                queue.set_rtt(flow, rtt);
                false
            }
            FlowSetting::Customer(customer) => {
                queue.set_customer(flow, customer);
                false
            }
            FlowSetting::Class(class) => queue.set_class(flow, class),
        };
        if released && matches!(self.transmitter, Transmitter::Held(_)) {
            self.ask(now, books);
        }
    }

    /// Others exchange tickets from now on.
    pub fn set_exchanges(&mut self, exchanges: Vec<(LabelKind, CurrencyExchange)>) {
        self.exchanges = exchanges;
    }

    /// What the router at its end issues to it, or for acknowledgements the one at its beginning.
    pub fn issue(&mut self, now: Time, kind: LabelKind, tickets: TicketRate) {
        for (_, exchange) in self.exchanges.iter_mut().filter(|(of, _)| *of == kind) {
            exchange.issue(now, tickets);
        }
    }
}

/// What a discipline can know of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowSetting {
    /// Its weight.
    Weight(Weight),
    /// What it is guaranteed, with its round-trip time.
    Guarantee(Rate, Span),
    /// Its round-trip time without queueing; zero if unknown.
    Rtt(Span),
    /// Whose it is.
    Customer(CustomerId),
    /// Its class.
    Class(FlowClass),
}

/// What it measures and shows.
impl Link {
    /// Counts from the start to `now`.
    #[must_use]
    pub fn counts(&self, now: Time) -> LinkCounts {
        self.counts.until(now, self.pace.mean())
    }

    /// The time in which what it sent was in transmission, to the end of the last packet: that of a trace
    /// includes the wait for an opportunity.
    #[must_use]
    pub const fn busy(&self) -> Span {
        self.busy
    }

    /// What waits in its queue.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Its rate, the mean one of a trace.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.pace.mean()
    }

    /// Of its wire.
    #[must_use]
    pub const fn delay(&self) -> Span {
        self.delay
    }

    /// The random loss on its wire.
    #[must_use]
    pub const fn loss(&self) -> Ratio {
        self.loss
    }

    /// Its discipline.
    #[must_use]
    pub const fn queue(&self) -> &Discipline<Packet> {
        self.queue.inner()
    }

    /// What exchanges labels at its ends, with the kind of label.
    #[must_use]
    pub fn exchanges(&self) -> &[(LabelKind, CurrencyExchange)] {
        &self.exchanges
    }

    /// Its statistics.
    pub fn probe_mut(&mut self) -> &mut LinkProbe {
        &mut self.probe
    }

    /// A sample interval ends: takes note of what waits, what was sent, and what each flow is allocated where
    /// the discipline infers what flows need. `member` says which flow of the outcome a number belongs to.
    pub fn sample(&mut self, now: Time, member: &dyn Fn(FlowId) -> Option<u32>, books: &mut Books) {
        let allocations = &mut self.probe.allocations;
        let mut show = |flow: FlowId, share| {
            if let Some(member) = member(flow) {
                allocations.tell(member, share);
            }
        };
        let mut report = Report { number: self.number, link: &mut self.counts, books };
        self.queue.inner_mut().shares(now, &mut report, &mut show);
        self.probe.allocations.end_round();
        self.probe.sample(self.queue.backlog(), self.counts.sent.bytes);
    }

    /// Shows numbers by name that its discipline knows of itself.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.queue.inner().statistics(show);
    }

    /// Shows numbers by name that its discipline knows of flows.
    pub fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        self.queue.inner().flow_statistics(show);
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
}

/// Writes into the books what a discipline does to packets.
struct Report<'a> {
    number: u32,
    link: &'a mut LinkCounts,
    books: &'a mut Books,
}

impl Sink<Packet> for Report<'_> {
    fn dropped(&mut self, now: Time, packet: Packet, reason: DropReason) {
        self.link.dropped[reason as usize] += 1;
        if let Some(flow) = self.books.account(packet.account()) {
            flow.dropped[reason as usize] += 1;
        }
        if let Some(witness) = &mut self.books.witness {
            witness.gone(now, self.number, &packet);
        }
        self.books.pool.give_back(packet.buffer);
    }
    fn marked(&mut self, _now: Time, packet: &Packet) {
        self.link.marked += 1;
        if let Some(flow) = self.books.account(packet.account()) {
            flow.marked += 1;
        }
    }
    fn overload(&mut self, now: Time, exception: Overload) {
        if self.books.exceptions.len() == Books::MAX_EXCEPTIONS {
            self.books.exceptions.pop_front();
        }
        self.books.exceptions.push_back((now, self.number, exception));
    }
}
