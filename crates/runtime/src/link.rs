//! One direction of a link, without its transmitter and the packets on its wire: a queue discipline, label
//! exchanges, random and listed loss, counts and samples. Every change of a link is implemented here, so that
//! it means the same in the simulator and on real packets.
//!
//! For each packet a backend calls [`before_queue`](LinkState::before_queue) and
//! [`enqueue`](LinkState::enqueue) when it arrives, [`dequeue`](LinkState::dequeue) when the transmitter is
//! free, and [`transmit`](LinkState::transmit) when it is sent.
//!
//! Cost: O(1) per packet, plus the cost of the discipline; a link without instruments pays two branches.

use apportion_core::aqm::sffc::Sffc;
use apportion_core::counted::Counted;
use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::mark::currency_exchange::CurrencyExchange;
use apportion_core::packet::{FlowId, LabelKind};
use apportion_core::queue::{Backlog, DropReason, Overload, Queue as _, Sink};
use apportion_core::system::LinkQueue;
use apportion_core::units::{Rate, Ratio, Span, TicketRate, Time};
use apportion_core::{FlowSetting, Packet};
use apportion_scenario::model::Loss;

pub use crate::link_parts::LinkParts;
pub use crate::listed_losses::ListedLosses;
use crate::loss::RandomLoss;
use crate::outcome::{Count, LinkOutcome};
use crate::probe::{LinkCounts, LinkProbe, LinkSample, PacketEvent};
use crate::wire_jitter::WireJitter;

/// The services of a backend for its links: the storage of packets, counters of flows, and a place for
/// notifications.
pub trait LinkBackend<P> {
    /// Counts an event of `packet` for its flow.
    fn count(&mut self, packet: &P, event: PacketEvent);
    /// Frees `packet`, which the discipline of `link` dropped at `now`, or, without a reason, its wire lost.
    fn discard(&mut self, now: Time, link: u32, packet: P, reason: Option<DropReason>);
    /// The discipline of `link` marked `packet` at `now`. Ignored unless overridden.
    fn marked(&mut self, _now: Time, _link: u32, _packet: &P) {}
    /// Whether the TCP ACK `older` may be dropped when `newer` follows it: see [`Sink::supersedes`].
    fn supersedes(&self, newer: &P, older: &P) -> bool;
    /// Keeps an overload notification of the discipline of `link`, to be delivered to the sources of the flow.
    fn notify(&mut self, now: Time, link: u32, overload: Overload);
    /// Notes that `packet` joins a queue at `now`.
    fn set_queued(&mut self, now: Time, packet: &mut P);
    /// Time at which `packet` joined the queue that it was in last.
    fn queued(&self, packet: &P) -> Time;
    /// The transmission of `packet` over `link` begins at `now`. Only links made with
    /// [`captured`](LinkParts::captured) call it.
    fn capture(&mut self, _now: Time, _link: u32, _packet: &P) {}
    /// The index of the flow with this id in the results, for its allocations; `None` if they are not
    /// measured.
    fn flow_of(&self, id: FlowId) -> Option<u32>;
}

/// The effect of a wire on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireFate {
    /// It arrives after all packets sent before.
    InOrder,
    /// It arrives, possibly before some packets sent before.
    Overtaking,
    /// It does not arrive.
    Lost,
}

/// One direction of a link, without its transmitter and the packets on its wire. Fields that every packet
/// touches come first.
#[derive(Debug)]
#[repr(C)]
pub struct LinkState<P: Packet> {
    index: u32,
    /// Whether `instruments` are idle.
    plain: bool,
    /// Whether the discipline [is transparent](apportion_core::queue::Queue::is_transparent).
    transparent: bool,
    /// The delay of the next packet.
    delay: Span,
    /// Time at which the last packet sent arrives; no later packet arrives before, unless it may overtake.
    last_arrival: Time,
    instruments: Box<Instruments>,
    queue: Counted<LinkQueue<P>>,
    /// Counts since the start of the run.
    counts: LinkCounts,
    rate: Rate,
}

/// Features that most links do not use.
#[derive(Debug)]
struct Instruments {
    /// The jitter of the wire, and the delay without it.
    jitter: Option<(WireJitter, Span)>,
    loss: RandomLoss,
    listed: Vec<ListedLosses>,
    probe: Option<LinkProbe>,
    captured: bool,
    exchanges: Vec<(LabelKind, CurrencyExchange)>,
    /// The rate of tickets on the acknowledgements that arrive, until it is taken.
    ack_ticket_rate: Option<TicketRate>,
    trace: Option<DeliveryTrace>,
}

impl Instruments {
    fn are_idle(&self) -> bool {
        self.jitter.is_none()
            && self.loss.is_none()
            && self.listed.is_empty()
            && self.probe.is_none()
            && !self.captured
            && self.exchanges.is_empty()
    }

    // Not inlined, because few links are watched.
    #[inline(never)]
    fn before_change(&mut self, now: Time, backlog: Backlog) {
        if let Some(probe) = &mut self.probe {
            probe.before_change(now, backlog);
        }
    }

    /// Whether the wire loses `packet`.
    fn loses(&mut self, packet: &impl Packet) -> bool {
        // Both kinds count every packet.
        let by_chance = self.loss.hits();
        self.listed.iter_mut().fold(by_chance, |lost, listed| listed.hits(packet.flow()) || lost)
    }
}

/// Packets on their way through the link.
impl<P: Packet> LinkState<P> {
    /// An idle link.
    #[must_use]
    pub fn new(parts: LinkParts<P>) -> Self {
        let LinkParts {
            index,
            queue,
            rate,
            trace,
            delay,
            jitter,
            loss,
            listed,
            watched,
            captured,
            exchanges,
        } = parts;
        let (probe, ack_ticket_rate) = (watched.then(LinkProbe::default), None);
        let jitter = jitter.map(|jitter| (jitter, delay));
        let instruments =
            Instruments { jitter, loss, listed, probe, captured, exchanges, ack_ticket_rate, trace };
        Self {
            index,
            plain: instruments.are_idle(),
            transparent: queue.is_transparent(),
            delay,
            last_arrival: Time::ZERO,
            instruments: Box::new(instruments),
            queue: Counted::new(queue),
            counts: LinkCounts::default(),
            rate,
        }
    }

    /// Handles a packet that arrives in front of the queue.
    #[inline]
    pub fn before_queue<B: LinkBackend<P>>(&mut self, now: Time, packet: &mut P, backend: &mut B) {
        if self.plain {
            return;
        }
        backend.set_queued(now, packet);
        let Instruments { exchanges, ack_ticket_rate, .. } = &mut *self.instruments;
        for (kind, exchange) in exchanges {
            let rate = exchange.arrive(now, packet);
            if *kind == LabelKind::AckTickets {
                *ack_ticket_rate = rate.or(*ack_ticket_rate);
            }
        }
    }

    /// Queues a packet, after [`before_queue`](LinkState::before_queue).
    #[inline(always)]
    pub fn enqueue<B: LinkBackend<P>>(&mut self, now: Time, packet: P, backend: &mut B) {
        self.before_change(now);
        let mut sink = LinkSink { link: self.index, counts: &mut self.counts, backend };
        self.queue.enqueue(now, packet, &mut sink);
    }

    /// The next packet to transmit; `None` if the queue is empty or holds its packets back.
    // Inlined, because a call would take as long as the body.
    #[inline(always)]
    pub fn dequeue<B: LinkBackend<P>>(&mut self, now: Time, backend: &mut B) -> Option<P> {
        self.before_change(now);
        self.queue.dequeue(now, &mut LinkSink { link: self.index, counts: &mut self.counts, backend })
    }

    /// Begins the transmission of a packet: counts it, exchanges its labels, and returns the effect of the
    /// wire. The next call is [`arrival`](Self::arrival), or [`discard`](LinkBackend::discard) if the packet
    /// is lost.
    #[inline]
    #[must_use]
    pub fn transmit<B: LinkBackend<P>>(&mut self, now: Time, packet: &mut P, backend: &mut B) -> WireFate {
        self.count_sent(packet);
        if self.plain { WireFate::InOrder } else { self.transmit_measured(now, packet, backend) }
    }

    /// Like [`transmit`](Self::transmit), for a link that [is plain](Self::is_plain).
    #[inline]
    pub fn count_sent(&mut self, packet: &P) {
        self.counts.sent.add(packet.size());
    }

    fn transmit_measured<B: LinkBackend<P>>(
        &mut self,
        now: Time,
        packet: &mut P,
        backend: &mut B,
    ) -> WireFate {
        let instruments = &mut *self.instruments;
        for (_, exchange) in &mut instruments.exchanges {
            exchange.exchange(now, packet);
        }
        if let Some(probe) = &mut instruments.probe {
            probe.transmitted(now.since(backend.queued(packet)));
        }
        if instruments.captured {
            backend.capture(now, self.index, packet);
        }
        if instruments.loses(packet) {
            self.counts.lost += 1;
            backend.count(packet, PacketEvent::Lost);
            return WireFate::Lost;
        }
        let Some((jitter, delay)) = &mut instruments.jitter else { return WireFate::InOrder };
        self.delay = *delay + jitter.draw();
        if !jitter.reorders() {
            return WireFate::InOrder;
        }
        self.last_arrival = Time::ZERO;
        WireFate::Overtaking
    }

    /// Time at which a packet arrives whose transmission ends at `sent`. It overtakes no earlier one, unless
    /// [`transmit`](Self::transmit) returned that it may.
    #[inline]
    pub fn arrival(&mut self, sent: Time) -> Time {
        self.last_arrival = (sent + self.delay).max(self.last_arrival);
        self.last_arrival
    }

    /// Must precede each change of the queue.
    #[inline]
    fn before_change(&mut self, now: Time) {
        if !self.plain {
            self.instruments.before_change(now, self.queue.backlog());
        }
    }

    /// The latest rate of tickets on acknowledgements that arrived since the last call; `None` if none
    /// brought any. [Issue](LinkState::issue) it to the link of the opposite direction.
    pub fn take_ack_ticket_rate(&mut self) -> Option<TicketRate> {
        self.instruments.ack_ticket_rate.take()
    }
}

/// Changes while it runs. None of them loses a packet that fits.
impl<P: Packet> LinkState<P> {
    /// Lets a discipline with a clock handle what was due until `now`, and records its allocations.
    pub fn catch_up<B: LinkBackend<P>>(&mut self, now: Time, backend: &mut B) {
        let mut shares = Vec::new();
        let mut sink = LinkSink { link: self.index, counts: &mut self.counts, backend };
        let mut show = |id, share| shares.push((id, share));
        self.queue.call(&mut sink, |queue, sink| queue.shares(now, sink, &mut show));
        let Some(LinkProbe { allocations, .. }) = &mut self.instruments.probe else { return };
        for (id, share) in shares {
            if let Some(flow) = backend.flow_of(id) {
                allocations.add(flow, share);
            }
        }
        allocations.end_round();
    }

    /// Changes the rate from `now` on. The transmitter of the backend must change too, and start if it was
    /// held.
    pub fn set_rate<B: LinkBackend<P>>(&mut self, now: Time, rate: Rate, backend: &mut B) {
        self.catch_up(now, backend);
        self.counts = self.counts(now);
        self.rate = rate;
        self.queue.inner_mut().set_link_rate(rate);
    }

    /// Changes the delay of packets sent from now on.
    pub const fn set_delay(&mut self, to: Span) {
        match &mut self.instruments.jitter {
            Some((_, delay)) => *delay = to,
            None => self.delay = to,
        }
    }

    /// Changes the probability that the wire loses a packet.
    pub fn set_loss(&mut self, loss: Ratio) {
        self.instruments.loss.set(Loss::Chance(loss));
        self.plain = self.instruments.are_idle();
    }

    /// Replaces the discipline. Waiting packets move into the new one in the order in which the old one would
    /// have sent them; it drops those that do not fit. A transmitter that was idle or held has to try again.
    pub fn set_queue<B: LinkBackend<P>>(&mut self, now: Time, mut queue: LinkQueue<P>, backend: &mut B) {
        queue.set_link_rate(self.rate);
        self.catch_up(now, backend);
        if let Some(probe) = &mut self.instruments.probe {
            probe.allocations.replace();
        }
        self.before_change(now);
        self.transparent = queue.is_transparent();
        let mut old = std::mem::replace(&mut self.queue, Counted::new(queue));
        let mut sink = LinkSink { link: self.index, counts: &mut self.counts, backend };
        while let Some(packet) = old.inner_mut().drain(now) {
            self.queue.enqueue(now, packet, &mut sink);
        }
    }

    /// Changes a setting of a flow. Returns whether the discipline supports it. A transmitter that was held
    /// then has to try again if the setting [may release](FlowSetting::may_release) packets.
    pub fn set_flow<B: LinkBackend<P>>(
        &mut self,
        now: Time,
        flow: FlowId,
        setting: FlowSetting,
        backend: &mut B,
    ) -> bool {
        if setting.may_release() {
            self.catch_up(now, backend);
        }
        self.queue.inner_mut().set_flow(flow, setting)
    }

    /// Replaces the exchanges of labels.
    pub fn set_exchanges(&mut self, exchanges: Vec<(LabelKind, CurrencyExchange)>) {
        self.instruments.exchanges = exchanges;
        self.plain = self.instruments.are_idle();
    }

    /// Changes the rate of tickets that the router at its end issues to the link; for acknowledgements, the
    /// router at its beginning.
    pub fn issue(&mut self, now: Time, kind: LabelKind, tickets: TicketRate) {
        for (_, exchange) in self.instruments.exchanges.iter_mut().filter(|(of, _)| *of == kind) {
            exchange.issue(now, tickets);
        }
    }

    /// Receiver-based tickets: sets the rate of tickets that acknowledgements bring to the other direction.
    pub fn set_tickets(&mut self, now: Time, tickets: TicketRate) {
        for (_, exchange) in self.instruments.exchanges.iter_mut().filter(|(of, _)| *of == LabelKind::Tickets)
        {
            exchange.follow(now, tickets);
        }
    }
}

/// Measurements.
impl<P: Packet> LinkState<P> {
    /// Begins the measured part of the run.
    pub fn begin_measuring<B: LinkBackend<P>>(&mut self, now: Time, backend: &mut B) {
        if self.instruments.probe.is_some() {
            self.catch_up(now, backend);
        }
        if let Some(probe) = &mut self.instruments.probe {
            probe.restart(now);
        }
    }

    /// Ends a sample interval: records the backlog, the bytes sent, and the allocations of flows. Does
    /// nothing if the link is not watched.
    pub fn sample<B: LinkBackend<P>>(&mut self, now: Time, backend: &mut B) {
        if self.instruments.probe.is_some() {
            self.catch_up(now, backend);
        }
        let counts = self.counts(now);
        if let Some(probe) = &mut self.instruments.probe {
            probe.sample(self.queue.backlog(), counts);
        }
    }

    /// The last sample interval; `None` before the first, and if the link is not watched.
    #[must_use]
    pub fn last_sample(&self) -> Option<LinkSample> {
        self.instruments.probe.as_ref()?.last_sample()
    }

    /// The results at `now` of the last `measured`, without a name. `before` are the counts at its beginning.
    /// `flow_of` returns the flow of an id. Takes the series out.
    pub fn outcome<B: LinkBackend<P>>(
        &mut self,
        now: Time,
        before: &LinkCounts,
        measured: Span,
        flow_of: &dyn Fn(FlowId) -> Option<usize>,
        backend: &mut B,
    ) -> LinkOutcome {
        let mut outcome = self.counts(now).since(before, measured);
        outcome.watched = self.instruments.probe.is_some();
        outcome.fault = self.queue.inner().fault().map(ToString::to_string);
        self.statistics(&mut |name, value| outcome.statistics.push((name.into(), value)));
        self.queue.inner().flow_statistics(&mut |id, name, value| {
            if let Some(flow) = flow_of(id) {
                outcome.flow_statistics.push((flow, name.into(), value));
            }
        });
        if outcome.watched {
            self.catch_up(now, backend);
        }
        let backlog = self.queue.backlog();
        if let Some(probe) = &mut self.instruments.probe {
            outcome.queue_mean = probe.queue_mean(now, backlog, measured);
            outcome.queue_delay = probe.delay.distribution();
            outcome.backlog = std::mem::take(&mut probe.backlog);
            outcome.series = std::mem::take(&mut probe.series);
            outcome.allocations = probe.allocations.take();
        }
        outcome
    }

    /// Reports named counters and gauges of the discipline and of the exchanges.
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.queue.inner().statistics(show);
        for (kind, exchange) in &self.instruments.exchanges {
            let stats = exchange.stats();
            let [tickets_in, tickets_out, full_tags] = match kind {
                LabelKind::Tickets => ["tickets_in", "tickets_out", "full_tags"],
                LabelKind::AckTickets => ["ack_tickets_in", "ack_tickets_out", "full_ack_tags"],
                LabelKind::Rate | LabelKind::Value => continue,
            };
            show(tickets_in, stats.tickets_in);
            show(tickets_out, stats.tickets_out);
            if exchange.full_tags() > 0 {
                show(full_tags, exchange.full_tags() as f64);
            }
        }
    }

    /// Packets transmitted since the start of the run.
    #[must_use]
    pub const fn sent(&self) -> Count {
        self.counts.sent
    }

    /// Takes back transmissions that begin after the end of the run.
    pub fn take_back(&mut self, sent: Count) {
        self.counts.sent = self.counts.sent - sent;
    }

    /// Counts from the start of the run to `now`.
    #[must_use]
    pub fn counts(&self, now: Time) -> LinkCounts {
        match &self.instruments.trace {
            Some(trace) => self.counts.until_possible(now, trace.bytes_until(now)),
            None => self.counts.until(now, self.rate),
        }
    }

    /// The packets sent so far, and the number that the discipline dropped.
    #[must_use]
    pub fn sent_and_dropped(&self) -> (Count, u64) {
        (self.counts.sent, self.counts.dropped.iter().sum())
    }
}

/// Properties.
impl<P: Packet> LinkState<P> {
    /// The link's number in the backend.
    #[must_use]
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// The rate of the transmitter; the mean one of a trace.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The delay of the wire; the minimum if it varies.
    #[must_use]
    pub fn delay(&self) -> Span {
        self.instruments.jitter.as_ref().map_or(self.delay, |(_, delay)| *delay)
    }

    /// The random losses of the wire.
    #[must_use]
    pub const fn loss(&self) -> Loss {
        self.instruments.loss.get()
    }

    /// The discipline.
    #[must_use]
    pub const fn queue(&self) -> &LinkQueue<P> {
        self.queue.inner()
    }

    /// Whether a packet that arrives at the empty queue may be [transmitted](LinkState::transmit) without
    /// joining it.
    #[must_use]
    pub const fn is_transparent(&self) -> bool {
        self.transparent
    }

    /// Whether the link exchanges, measures, captures and loses nothing: a packet that it transmits is only
    /// counted.
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.plain
    }

    /// The backlog of the queue.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    /// Time at which a `dequeue` that returned nothing can succeed without another packet; `None` unless
    /// packets are held back.
    #[must_use]
    pub fn next_wakeup(&self) -> Option<Time> {
        self.queue.next_wakeup()
    }

    /// The exchanges of labels at its ends, by kind of label.
    #[must_use]
    pub fn exchanges(&self) -> &[(LabelKind, CurrencyExchange)] {
        &self.instruments.exchanges
    }

    /// The part of the discipline that exchanges reports with other routers, if there is one.
    #[must_use]
    pub fn reporter(&self) -> Option<&Sffc> {
        self.queue.inner().reporter()
    }

    /// The part of the discipline that exchanges reports with other routers, if there is one.
    pub fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        self.queue.inner_mut().reporter_mut()
    }
}

/// Counts the discipline's actions on packets, for the link and for their flows, and frees those that it
/// drops.
struct LinkSink<'a, B> {
    link: u32,
    counts: &'a mut LinkCounts,
    backend: &'a mut B,
}

impl<P, B: LinkBackend<P>> Sink<P> for LinkSink<'_, B> {
    fn dropped(&mut self, now: Time, packet: P, reason: DropReason) {
        self.counts.dropped[reason as usize] += 1;
        self.backend.count(&packet, PacketEvent::Dropped(reason));
        self.backend.discard(now, self.link, packet, Some(reason));
    }
    fn marked(&mut self, now: Time, packet: &P) {
        self.counts.marked += 1;
        self.backend.count(packet, PacketEvent::Marked);
        self.backend.marked(now, self.link, packet);
    }
    fn supersedes(&self, newer: &P, older: &P) -> bool {
        self.backend.supersedes(newer, older)
    }
    fn overload(&mut self, now: Time, overload: Overload) {
        self.backend.notify(now, self.link, overload);
    }
}
