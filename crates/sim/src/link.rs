//! One direction of a link: a queue discipline, a transmitter and a wire.
//!
//! The packet in transmission is not in the queue. A packet's arrival is known when its transmission starts,
//! and a wire is first in, first out, so each wire needs one pending event, for its head. A transmitter that
//! sends its last waiting packet needs no event either: the call of the discipline at the end of that
//! transmission is made up for, with the right time, when the next packet comes.
//!
//! Cost: O(1) per packet besides the discipline's, one event per packet, a second one while packets wait.

use std::collections::VecDeque;

use apportion_core::Packet as _;
use apportion_core::packet::FlowId;
use apportion_core::queue::{DropReason, Overload};
use apportion_core::system::Discipline;
use apportion_core::transmission::Transmission;
use apportion_core::units::{Rate, Time};
use apportion_runtime::link::{FlowSetting, LinkBackend, LinkParts, LinkState};
use apportion_runtime::probe::Counters;

use crate::capture::LinkCapture;
use crate::events::{Event, Events};
use crate::observer::Observed;
use crate::packet::{Packet, Store};

/// What links share: the event queue, the bodies of packets, and the counters of flows.
#[derive(Debug)]
pub struct SharedState<'a> {
    /// Events to come.
    pub events: Events,
    /// The bodies of packets in flight.
    pub store: Store,
    /// By the id of flows.
    pub counters: Vec<Counters>,
    /// The flow of the scenario by id; empty if allocations are not measured.
    pub flow_of_id: Vec<u32>,
    /// Overload notifications of disciplines, with their time and the index of the link, until they are sent to
    /// the sources.
    pub overloads: Vec<(Time, u32, Overload)>,
    /// By the index of links; `None` where packets are not captured.
    pub captures: Vec<Option<Box<LinkCapture>>>,
    /// Who sees drops and marks, if anyone does.
    pub observed: Option<Box<Observed<'a>>>,
}

impl SharedState<'_> {
    /// No packets, flows or captures, with these events.
    #[must_use]
    pub fn new(events: Events) -> Self {
        Self {
            events,
            store: Store::default(),
            counters: Vec::new(),
            flow_of_id: Vec::new(),
            overloads: Vec::new(),
            captures: Vec::new(),
            observed: None,
        }
    }
}

impl LinkBackend<Packet> for SharedState<'_> {
    #[inline]
    fn counters(&mut self, packet: &Packet) -> Option<&mut Counters> {
        Some(&mut self.counters[packet.flow().index()])
    }
    #[inline]
    fn discard(&mut self, now: Time, link: u32, packet: Packet, reason: Option<DropReason>) {
        if let Some(observed) = &self.observed {
            let flow = observed.flow_of(packet.flow());
            observed.observer.dropped(now, link as usize, flow, packet.size(), reason);
        }
        self.store.remove(packet.body());
    }
    fn marked(&mut self, now: Time, link: u32, packet: &Packet) {
        if let Some(observed) = &self.observed {
            observed.observer.marked(now, link as usize, observed.flow_of(packet.flow()), packet.size());
        }
    }
    fn notify(&mut self, now: Time, link: u32, overload: Overload) {
        self.overloads.push((now, link, overload));
    }
    fn set_queued(&mut self, now: Time, packet: &mut Packet) {
        self.store.get_mut(packet.body()).queued = now;
    }
    fn queued(&self, packet: &Packet) -> Time {
        self.store.get(packet.body()).queued
    }
    fn capture(&mut self, now: Time, link: u32, packet: &Packet) {
        if let Some(Some(capture)) = self.captures.get_mut(link as usize) {
            capture.packet(now, packet, self.store.get(packet.body()));
        }
    }
    fn flow_of(&self, id: FlowId) -> Option<u32> {
        self.flow_of_id.get(id.index()).copied()
    }
}

/// State of the transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transmitter {
    /// Idle: the last dequeue returned `None` from an empty queue.
    Idle,
    /// Sends until `free_at`; nothing waits and no event is pending.
    Draining,
    /// Sends until `free_at`, when it asks again.
    Busy,
    /// Sends nothing although packets wait: the discipline holds them back or the rate is zero.
    Held,
}

/// A packet on a wire.
#[derive(Clone, Copy, Debug)]
struct OnWire {
    /// When its transmission began.
    begun: Time,
    /// When it arrives.
    at: Time,
    packet: Packet,
}

/// One direction of a link. What every packet touches comes first, in two cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct Link {
    transmitter: Transmitter,
    /// The last transmission: when it began, and when it ends.
    begun: Time,
    free_at: Time,
    times: Transmission,
    wire: VecDeque<OnWire>,
    /// All but the transmitter and the packets on the wire. Changes that concern the transmitter are methods of the
    /// link.
    pub state: LinkState<Packet>,
    /// When the discipline asked to be woken, if that event is pending.
    wakeup_at: Option<Time>,
}

/// The queue begins with the third cache line, 32 bytes after the flags of the state.
const _: () = assert!(std::mem::offset_of!(Link, state) == 96);

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(parts: LinkParts<Packet>) -> Self {
        Self {
            transmitter: Transmitter::Idle,
            begun: Time::ZERO,
            free_at: Time::ZERO,
            times: Transmission::new(parts.rate),
            wire: VecDeque::new(),
            state: LinkState::new(parts),
            wakeup_at: None,
        }
    }

    /// Takes a packet into the queue and sends if the transmitter is free.
    #[inline(always)]
    pub fn receive(&mut self, now: Time, mut packet: Packet, shared: &mut SharedState) {
        self.state.arrive(now, &mut packet, shared);
        if self.is_free(now) && self.state.is_transparent() && self.rate() > Rate::ZERO {
            self.send(now, packet, shared);
            self.transmitter = Transmitter::Draining;
        } else {
            self.join(now, packet, shared);
        }
    }

    /// A packet that has arrived joins the queue.
    // Apart: the disciplines take more registers than what goes straight through.
    #[inline(never)]
    fn join(&mut self, now: Time, packet: Packet, shared: &mut SharedState) {
        if self.transmitter == Transmitter::Draining && self.is_free(now) {
            self.find_empty(shared);
        }
        self.state.enqueue(now, packet, shared);
        match self.transmitter {
            Transmitter::Idle | Transmitter::Held => self.start_next(now, shared),
            Transmitter::Draining => {
                self.transmitter = Transmitter::Busy;
                shared.events.schedule(self.begun, self.free_at, Event::Ready(self.state.index()));
            }
            Transmitter::Busy => {}
        }
    }

    /// The transmission under way has ended, with packets waiting.
    pub fn ready(&mut self, now: Time, shared: &mut SharedState) {
        self.start_next(now, shared);
    }

    /// The time for which the discipline asked has come.
    pub fn wakeup(&mut self, now: Time, shared: &mut SharedState) {
        if self.wakeup_at == Some(now) {
            self.wakeup_at = None;
        }
        self.start_if_held(now, shared);
    }

    /// Takes the packet that arrives now off the wire.
    #[inline(always)]
    pub fn arrive(&mut self, shared: &mut SharedState) -> Option<Packet> {
        let OnWire { packet, .. } = self.wire.pop_front()?;
        if let Some(next) = self.wire.front() {
            shared.events.schedule(next.begun, next.at, Event::Arrival(self.state.index()));
        }
        Some(packet)
    }

    /// Makes the call of the discipline that was due at the end of the last transmission, when nothing waited.
    fn find_empty(&mut self, shared: &mut SharedState) {
        let found = self.state.dequeue(self.free_at, shared);
        debug_assert!(found.is_none(), "the queue was empty");
        self.transmitter = Transmitter::Idle;
    }

    /// Asks the discipline for a packet and sends it.
    fn start_next(&mut self, now: Time, shared: &mut SharedState) {
        if self.rate() == Rate::ZERO {
            self.transmitter = Transmitter::Held;
            return;
        }
        match self.state.dequeue(now, shared) {
            Some(packet) => {
                self.send(now, packet, shared);
                self.await_end(shared);
            }
            None => self.wait(now, shared),
        }
    }

    fn start_if_held(&mut self, now: Time, shared: &mut SharedState) {
        if self.transmitter == Transmitter::Held {
            self.start_next(now, shared);
        }
    }

    /// Transmits a packet.
    #[inline(always)]
    fn send(&mut self, now: Time, mut packet: Packet, shared: &mut SharedState) {
        (self.begun, self.free_at) = (now, now + self.times.time(packet.size()));
        if self.state.transmit(now, &mut packet, shared) {
            shared.discard(now, self.state.index(), packet, None);
        } else {
            self.propagate(packet, shared);
        }
    }

    /// A transmission has begun: what happens at its end.
    fn await_end(&mut self, shared: &mut SharedState) {
        if self.state.backlog().is_empty() {
            self.transmitter = Transmitter::Draining;
        } else {
            self.transmitter = Transmitter::Busy;
            shared.events.schedule(self.begun, self.free_at, Event::Ready(self.state.index()));
        }
    }

    /// The discipline gave no packet: it is empty or holds packets back.
    fn wait(&mut self, now: Time, shared: &mut SharedState) {
        if self.state.backlog().is_empty() {
            self.transmitter = Transmitter::Idle;
            return;
        }
        self.transmitter = Transmitter::Held;
        let wakeup = self.state.next_wakeup();
        if let Some(at) = wakeup.filter(|_| wakeup != self.wakeup_at) {
            self.wakeup_at = wakeup;
            shared.events.schedule(now, at, Event::Wakeup(self.state.index()));
        }
    }

    #[inline(always)]
    fn propagate(&mut self, packet: Packet, shared: &mut SharedState) {
        let at = self.state.arrival(self.free_at);
        if self.wire.is_empty() {
            shared.events.schedule(self.begun, at, Event::Arrival(self.state.index()));
        }
        self.wire.push_back(OnWire { begun: self.begun, at, packet });
    }

    /// Whether a packet that comes at `at`, before any other does, is [sent](Self::receive) at that time and never
    /// waits, and an early hand-over with that time has the same effect.
    #[must_use]
    pub fn sends_unnoticed(&self, at: Time) -> bool {
        self.is_free(at) && self.state.is_transparent() && self.state.is_plain() && self.rate() > Rate::ZERO
    }

    /// Whether the transmitter has nothing to send at `at`.
    fn is_free(&self, at: Time) -> bool {
        match self.transmitter {
            Transmitter::Idle => true,
            Transmitter::Draining => at >= self.free_at,
            Transmitter::Busy | Transmitter::Held => false,
        }
    }

    /// The rate of its transmitter.
    fn rate(&self) -> Rate {
        self.times.rate()
    }
}

/// Changes that concern the transmitter.
impl Link {
    /// Changes the rate from `now` on. A packet in transmission finishes at the old rate.
    pub fn set_rate(&mut self, now: Time, rate: Rate, shared: &mut SharedState) {
        self.state.set_rate(now, rate, shared);
        self.times = Transmission::new(rate);
        self.start_if_held(now, shared);
    }

    /// Replaces the discipline; see [`LinkState::set_queue`].
    pub fn set_queue(&mut self, now: Time, queue: Discipline<Packet>, shared: &mut SharedState) {
        self.state.set_queue(now, queue, shared);
        if matches!(self.transmitter, Transmitter::Idle | Transmitter::Held) {
            self.start_next(now, shared);
        }
    }

    /// Changes what the discipline knows of a flow. Packets that it held back may then go.
    pub fn set_flow(&mut self, now: Time, flow: FlowId, to: &FlowSetting, shared: &mut SharedState) {
        if self.state.set_flow(now, flow, to, shared) {
            self.start_if_held(now, shared);
        }
    }
}
