//! One direction of a link: a queue discipline, a transmitter and a wire.
//!
//! The packet in transmission is not in the queue. A packet's arrival is known when its transmission starts,
//! and a wire is first in, first out, so each wire needs one pending event, for its head. A transmitter that
//! sends its last waiting packet needs no event either: the discipline's call at the end of that transmission
//! is made later, with the right time, when the next packet arrives.
//!
//! A link may have one event for the transmissions that end within a *slack*, and runs transmissions that
//! were due earlier whenever it is used. A packet may be [handed over](Link::takes_early) to its next link
//! when its transmission begins, without an event for its arrival. `fast_path.rs` has the conditions.
//!
//! The rate of a recorded link is in its trace: a transmission ends at the opportunity that carries the
//! packet's last byte.
//!
//! A link that aggregates takes several packets from the queue at once, and all of them arrive when the last
//! of their bytes does ([`Aggregation`]).
//!
//! On a wire whose jitter lets packets overtake others, each packet has an event of its own.
//!
//! Cost: O(1) per packet besides the discipline's; at most one event per packet, and one for each slack, or
//! each packet of a link without slack, while packets wait.

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::packet::FlowId;
use apportion_core::system::LinkQueue;
use apportion_core::transmission::Transmission;
use apportion_core::units::{Rate, Ratio, Span, Time};
use apportion_core::{FlowSetting, Packet as _};
use apportion_runtime::link::{LinkBackend as _, LinkParts, LinkState, WireFate};
use apportion_runtime::outcome::Count;
use apportion_runtime::probe::LinkCounts;

use crate::aggregation::Aggregation;
use crate::events::Event;
use crate::packet::Packet;
use crate::shared_state::SharedState;
use crate::wire::{HandedOver, OnWire, Wire};

/// State of the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transmitter {
    /// Idle: the last dequeue returned `None` from an empty queue that has nothing to report.
    Idle,
    /// Sends until `free_at`; nothing waits and no event is pending.
    Draining,
    /// Sends until `free_at`, when it asks again: packets wait, or the discipline has something to report. An
    /// event is pending, at `free_at` or up to the slack later.
    Busy,
    /// Sends nothing until the time for which the discipline asked, which holds packets back or has something
    /// to report, or while the rate is zero.
    Held,
}

/// How a link sends, independent of single packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TxMode {
    /// The link has no rate.
    Stopped,
    /// A packet that finds the transmitter free is sent at once, in the time of its size, and only counted.
    Bypass,
    /// Packets are sent one by one, in the times of their sizes.
    Queued,
    /// Packets are sent at transmission opportunities: the link has a trace or aggregates.
    Opportunities,
}

/// One direction of a link. Fields that every packet touches come first, in two cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    pub(crate) transmitter: Transmitter,
    /// Whether an event for the end of a transmission is pending.
    ready_is_pending: bool,
    /// Whether the next link may take its packets early.
    is_feeder: bool,
    pub(crate) tx_mode: TxMode,
    /// Packets on the way from the feeding link that were not handed over early.
    pub(crate) expected: u32,
    /// The beginning and the end of the last transmission.
    begun: Time,
    pub(crate) free_at: Time,
    times: Transmission,
    wire: Wire,
    /// The state without the transmitter and the packets on the wire. Changes that affect the transmitter are
    /// methods of the link.
    pub state: LinkState<Packet>,
    /// The time at which the discipline asked to be woken, if that event is pending.
    wakeup_at: Option<Time>,
    /// The maximum delay of the event for the end of a transmission.
    slack: Span,
    /// Whether the previous link may hand packets over early.
    pub(crate) is_fed: bool,
    /// The link over which hosts at its end answer, and the time until which they do so early; none if they
    /// may not.
    answers: Option<(u32, Time)>,
    /// The transmission opportunities of a recorded link.
    pub(crate) trace: Option<Box<DeliveryTrace>>,
    /// The aggregation of packets.
    pub(crate) aggregation: Option<Box<Aggregation>>,
}

/// The queue begins with the third cache line, 32 bytes after the flags of the state, where pointers have 8 bytes.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(std::mem::offset_of!(Link, state) == 96);

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(parts: LinkParts<Packet>) -> Self {
        let mut link = Self {
            transmitter: Transmitter::Idle,
            ready_is_pending: false,
            is_feeder: false,
            tx_mode: TxMode::Bypass,
            expected: 0,
            begun: Time::ZERO,
            free_at: Time::ZERO,
            times: Transmission::new(parts.rate),
            wire: Wire::default(),
            state: LinkState::new(parts),
            wakeup_at: None,
            slack: Span::ZERO,
            is_fed: false,
            answers: None,
            trace: None,
            aggregation: None,
        };
        link.find_tx_mode();
        link
    }

    /// Must follow each change of a condition of the mode.
    fn find_tx_mode(&mut self) {
        self.tx_mode = self.fastest_tx_mode();
    }

    /// Makes it send at the opportunities of `trace`, whose mean is its rate.
    pub fn set_trace(&mut self, trace: DeliveryTrace) {
        self.trace = Some(Box::new(trace));
        self.find_tx_mode();
    }

    /// Makes it send several packets at a time.
    pub fn aggregate(&mut self, aggregation: Aggregation) {
        self.aggregation = Some(Box::new(aggregation));
        self.find_tx_mode();
    }

    /// Lets one event stand for the transmissions that end within a [slack](self).
    pub fn enable_batching(&mut self) {
        self.slack = self.state.delay();
    }

    /// Lets the previous link [hand packets over early](Self::takes_early).
    pub const fn set_fed(&mut self) {
        self.is_fed = true;
    }

    /// Lets it hand packets over early.
    pub const fn set_feeder(&mut self) {
        self.is_feeder = true;
    }

    /// Hosts at its end answer over the link `answers`, and may receive early packets that arrive before
    /// `until`.
    pub const fn set_answers(&mut self, answers: u32, until: Time) {
        self.answers = Some((answers, until));
        self.is_feeder = true;
    }

    /// The value of [`set_answers`](Self::set_answers).
    #[must_use]
    #[inline]
    pub const fn answers(&self) -> Option<(u32, Time)> {
        self.answers
    }

    /// Gives each transmission's end and each arrival an event of its own, so that all links act in the order
    /// of time.
    pub const fn disable_batching(&mut self) {
        (self.slack, self.is_feeder, self.is_fed, self.answers) = (Span::ZERO, false, false, None);
    }

    /// Takes a packet into the queue and sends if the transmitter is free.
    #[inline(always)]
    pub fn receive(&mut self, now: Time, packet: Packet, shared: &mut SharedState) {
        if self.can_bypass(now) {
            let sent = self.bypass(now, packet);
            self.propagate(sent, shared);
        } else {
            self.join(now, packet, shared);
        }
    }

    /// Receives as [`receive`](Self::receive) does, for a packet that [bypasses the queue](Self::can_bypass):
    /// returns it instead of putting it on the wire.
    #[inline(always)]
    pub fn bypass(&mut self, now: Time, packet: Packet) -> OnWire {
        (self.begun, self.free_at) = (now, now + self.times.time(packet.size()));
        self.state.count_sent(&packet);
        self.transmitter = Transmitter::Draining;
        self.on_wire(packet)
    }

    /// Receives as [`receive`](Self::receive) does, in the general case. Not inlined: the disciplines take
    /// more registers than the direct path.
    #[inline(never)]
    fn join(&mut self, now: Time, mut packet: Packet, shared: &mut SharedState) {
        if self.transmitter == Transmitter::Busy && self.free_at <= now {
            self.catch_up(shared);
        }
        self.state.before_queue(now, &mut packet, shared);
        if self.skips_queue(now) {
            self.send(now, packet, shared);
            self.transmitter = Transmitter::Draining;
            return;
        }
        if self.transmitter == Transmitter::Draining && self.free_at <= now {
            self.find_empty(shared);
        }
        self.state.enqueue(now, packet, shared);
        // Not a `match` of four, which would compile to a table.
        if self.transmitter == Transmitter::Busy {
            return;
        }
        if self.transmitter == Transmitter::Draining {
            self.schedule_tx_done(shared);
        } else {
            self.start_next(now, shared);
        }
    }

    /// Handles the event for the ends of transmissions.
    pub fn ready(&mut self, shared: &mut SharedState) {
        self.ready_is_pending = false;
        self.catch_up(shared);
        if self.transmitter == Transmitter::Busy {
            self.schedule_tx_done(shared);
        }
    }

    /// Begins the transmissions that are due by now.
    pub fn catch_up(&mut self, shared: &mut SharedState) {
        let event = Event::Ready(self.state.index());
        // Terminates: each transmission takes a packet from the queue.
        while self.transmitter == Transmitter::Busy && shared.events.is_due(self.begun, self.free_at, event) {
            self.start_next(self.free_at, shared);
        }
    }

    /// Begins the transmissions that are due before `at`; no packet arrives here until then.
    pub fn transmit_until(&mut self, at: Time, shared: &mut SharedState) {
        // Terminates: each transmission takes a packet from the queue.
        while self.transmitter == Transmitter::Busy && self.free_at < at && self.tx_mode == TxMode::Bypass {
            self.start_next(self.free_at, shared);
        }
    }

    /// Packets wait while it sends: schedules an event for the end of the transmission, if none is pending.
    fn schedule_tx_done(&mut self, shared: &mut SharedState) {
        self.transmitter = Transmitter::Busy;
        if !self.ready_is_pending {
            self.ready_is_pending = true;
            shared.events.schedule(self.begun, self.free_at + self.slack, Event::Ready(self.state.index()));
        }
    }

    /// Handles the time for which the discipline asked.
    pub fn wakeup(&mut self, now: Time, shared: &mut SharedState) {
        if self.wakeup_at == Some(now) {
            self.wakeup_at = None;
        }
        self.start_if_held(now, shared);
    }

    /// Removes the arriving packet from the wire.
    #[inline(always)]
    pub fn take_arrival(&mut self, shared: &mut SharedState) -> Option<Packet> {
        let OnWire { packet, .. } = self.wire.pop()?;
        self.await_arrival(shared);
        Some(packet)
    }

    /// Removes the first packet from the wire; the caller then [awaits](Self::await_arrival) the next one,
    /// unless each has an event of its own.
    pub fn take_off_wire(&mut self) -> Option<OnWire> {
        self.wire.pop()
    }

    /// The packet that arrives next.
    #[must_use]
    pub fn first_on_wire(&self) -> Option<&OnWire> {
        self.wire.get(0)
    }

    /// The packet that arrives after `others` others.
    #[must_use]
    #[inline]
    pub fn on_wire_after(&self, others: u32) -> Option<&OnWire> {
        self.wire.get(others)
    }

    /// Schedules the arrival of the packet that has become the first on the wire.
    #[inline(always)]
    pub fn await_arrival(&self, shared: &mut SharedState) {
        if let Some(next) = self.wire.get(0) {
            shared.events.schedule_next(next.begun, next.at, self.state.index());
        }
    }

    /// Makes the discipline's call that was due at the end of the last transmission, when nothing waited.
    #[inline(never)]
    fn find_empty(&mut self, shared: &mut SharedState) {
        let found = self.state.dequeue(self.free_at, shared);
        debug_assert!(found.is_none(), "the queue was empty");
        self.transmitter = Transmitter::Idle;
    }

    /// Asks the discipline for a packet and sends it.
    fn start_next(&mut self, now: Time, shared: &mut SharedState) {
        match self.tx_mode {
            TxMode::Stopped => self.transmitter = Transmitter::Held,
            TxMode::Opportunities if self.aggregation.is_some() => self.start_aggregate(now, shared),
            _ => match self.state.dequeue(now, shared) {
                Some(packet) => {
                    self.send(now, packet, shared);
                    self.await_end(shared);
                }
                None => self.wait(now, shared),
            },
        }
    }

    /// Asks the discipline for the packets of an aggregate and sends it. Cold, as the following functions:
    /// few links aggregate.
    #[cold]
    #[inline(never)]
    fn start_aggregate(&mut self, now: Time, shared: &mut SharedState) {
        let rate = self.rate();
        let Some(mut aggregation) = self.aggregation.take() else { return };
        let state = &mut self.state;
        aggregation.fill(now, rate, self.trace.as_deref(), &mut || state.dequeue(now, shared));
        let is_empty = aggregation.is_empty();
        if !is_empty {
            self.begun = now;
            self.free_at = aggregation.end(now, &mut self.times, self.trace.as_deref_mut());
            aggregation.drain().for_each(|packet| self.cross(now, packet, shared));
        }
        let keeps_one = aggregation.keeps_one();
        self.aggregation = Some(aggregation);
        if is_empty {
            self.wait(now, shared);
        } else if keeps_one {
            self.schedule_tx_done(shared);
        } else {
            self.await_end(shared);
        }
    }

    fn start_if_held(&mut self, now: Time, shared: &mut SharedState) {
        if self.transmitter == Transmitter::Held {
            self.start_next(now, shared);
        }
    }

    /// Transmits a packet.
    #[inline(always)]
    fn send(&mut self, now: Time, packet: Packet, shared: &mut SharedState) {
        (self.begun, self.free_at) = (now, self.sent_at(now, packet));
        self.cross(now, packet, shared);
    }

    /// Puts a packet whose transmission has begun on the wire.
    #[inline(always)]
    fn cross(&mut self, now: Time, mut packet: Packet, shared: &mut SharedState) {
        match self.state.transmit(now, &mut packet, shared) {
            WireFate::InOrder => {
                let sent = self.on_wire(packet);
                self.propagate(sent, shared);
            }
            WireFate::Lost => shared.discard(now, self.state.index(), packet, None),
            WireFate::Overtaking => self.propagate_apart(packet, shared),
        }
    }

    /// The end of the transmission of `packet` that begins at `now`.
    #[inline(always)]
    fn sent_at(&mut self, now: Time, packet: Packet) -> Time {
        if self.tx_mode == TxMode::Opportunities {
            self.end_by_opportunities(now, packet)
        } else {
            now + self.times.time(packet.size())
        }
    }

    // Cold: few links are recorded or aggregate.
    #[cold]
    #[inline(never)]
    fn end_by_opportunities(&mut self, now: Time, packet: Packet) -> Time {
        let trace = self.trace.as_deref_mut();
        match (&mut self.aggregation, trace) {
            (Some(aggregation), trace) => aggregation.end_of_one(now, packet, &mut self.times, trace),
            (None, Some(trace)) => trace.send(now, packet.size()),
            (None, None) => now + self.times.time(packet.size()),
        }
    }

    /// Determines the action at the end of a transmission that has begun.
    #[inline(always)]
    fn await_end(&mut self, shared: &mut SharedState) {
        // An empty discipline may still have to be asked: RAMP itself reports that an overload has ended.
        let is_asked = || self.tx_mode != TxMode::Bypass && self.state.next_wakeup().is_some();
        if self.state.backlog().is_empty() && !is_asked() {
            self.transmitter = Transmitter::Draining;
        } else {
            self.schedule_tx_done(shared);
        }
    }

    /// Handles a discipline without a packet: it is empty or holds packets back.
    #[inline(never)]
    fn wait(&mut self, now: Time, shared: &mut SharedState) {
        let wakeup = self.state.next_wakeup();
        if wakeup.is_none() && self.state.backlog().is_empty() {
            self.transmitter = Transmitter::Idle;
            return;
        }
        self.transmitter = Transmitter::Held;
        if let Some(at) = wakeup.filter(|_| wakeup != self.wakeup_at) {
            self.wakeup_at = wakeup;
            shared.events.schedule(now, at, Event::Wakeup(self.state.index()));
        }
    }

    /// The packet in transmission, with its times.
    #[inline(always)]
    fn on_wire(&mut self, packet: Packet) -> OnWire {
        OnWire { begun: self.begun, at: self.state.arrival(self.free_at), packet }
    }

    #[inline(always)]
    fn propagate(&mut self, sent: OnWire, shared: &mut SharedState) {
        if self.is_feeder {
            shared.handed_over.push(HandedOver { sent, link: self.state.index() });
        } else {
            self.put_on_wire(sent, shared);
        }
    }

    /// Puts a packet on a wire where it may overtake others. Cold: few links reorder.
    #[cold]
    #[inline(never)]
    fn propagate_apart(&mut self, packet: Packet, shared: &mut SharedState) {
        let sent = self.on_wire(packet);
        shared.events.schedule(sent.begun, sent.at, Event::Overtaking(self.state.index()));
        // The wire is in the order of events.
        self.wire.insert(sent);
    }

    /// Puts a packet on the wire.
    #[inline(always)]
    pub fn put_on_wire(&mut self, sent: OnWire, shared: &mut SharedState) {
        if self.wire.is_empty() {
            shared.events.schedule(sent.begun, sent.at, Event::Arrival(self.state.index()));
        }
        self.wire.push(sent);
    }

    /// Notes the arrival of a packet that was not handed over early.
    #[inline(always)]
    pub const fn note_arrived(&mut self) {
        self.expected = self.expected.saturating_sub(1);
    }

    /// Counts from the start of the run to `now`, without packets that were taken early and whose
    /// transmission begins at `from` or later.
    #[must_use]
    pub fn counts(&self, now: Time, from: Time) -> LinkCounts {
        let mut counts = self.state.counts(now);
        counts.sent = counts.sent - self.early(from) - self.waiting(now);
        counts
    }

    /// Takes those packets back as not sent: the run ends before `from`.
    pub fn take_back_early(&mut self, now: Time, from: Time) {
        self.state.take_back(self.early(from));
        self.state.take_back(self.waiting(now));
    }

    fn early(&self, from: Time) -> Count {
        let mut count = Count::default();
        let later = self.wire.last_to_first().take_while(|sent| sent.begun >= from);
        later.for_each(|sent| count.add(sent.packet.size()));
        count
    }

    /// The packets that have not left by `now` although their transmission has begun, if they wait for an
    /// opportunity of a recorded link; less than a packet's time does not count.
    fn waiting(&self, now: Time) -> Count {
        let mut count = Count::default();
        let is_recorded = self.trace.is_some() && self.aggregation.is_none();
        let last =
            self.wire.last_to_first().next().filter(|last| last.begun == self.begun && last.begun <= now);
        if let Some(last) = last.filter(|_| is_recorded && self.free_at > now) {
            count.add(last.packet.size());
        }
        count
    }

    /// The rate of its transmitter.
    pub(crate) fn rate(&self) -> Rate {
        self.times.rate()
    }
}

/// Changes that affect the transmitter.
impl Link {
    /// Changes the rate from `now` on. A packet in transmission finishes at the old rate.
    pub fn set_rate(&mut self, now: Time, rate: Rate, shared: &mut SharedState) {
        self.catch_up(shared);
        self.state.set_rate(now, rate, shared);
        self.times = Transmission::new(rate);
        self.find_tx_mode();
        self.start_if_held(now, shared);
    }

    /// Changes the probability that the wire loses a packet. A changed link has no slack: there are no
    /// deferred transmissions.
    pub fn set_loss(&mut self, loss: Ratio) {
        self.state.set_loss(loss);
        self.find_tx_mode();
    }

    /// Replaces the discipline; see [`LinkState::set_queue`].
    pub fn set_queue(&mut self, now: Time, queue: LinkQueue<Packet>, shared: &mut SharedState) {
        self.catch_up(shared);
        self.state.set_queue(now, queue, shared);
        self.find_tx_mode();
        if matches!(self.transmitter, Transmitter::Idle | Transmitter::Held) {
            self.start_next(now, shared);
        }
    }

    /// Changes a setting of a flow. Returns whether it is heeded; held packets may then leave.
    pub fn set_flow(
        &mut self,
        now: Time,
        flow: FlowId,
        setting: FlowSetting,
        shared: &mut SharedState,
    ) -> bool {
        self.catch_up(shared);
        let is_heeded = self.state.set_flow(now, flow, setting, shared);
        if is_heeded && setting.may_release() {
            self.start_if_held(now, shared);
        }
        is_heeded
    }
}
