//! One direction of a link: a queue discipline, a transmitter and a wire, driven by a caller with a clock.
//!
//! A link does no I/O. [`next`](Link::next) returns the time of its next event, and
//! [`on_timer`](Link::on_timer) handles the event as of that time. A caller that comes late delays no other
//! event, because the next departure follows from the last one and not from the clock.
//!
//! The packet in transmission is not in the queue. A wire is first in, first out, unless its jitter lets packets overtake others.
//!
//! Cost: O(1) per packet, plus the cost of the discipline.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use apportion_core::packet::FlowId;
use apportion_core::queue::{DropReason, Overload};
use apportion_core::system::LinkQueue;
use apportion_core::units::{Rate, Span, TicketRate, Time};
use apportion_core::{FlowSetting, Packet as _};
use apportion_linux::pool::Pool;
use apportion_runtime::link::{LinkBackend, LinkParts, LinkState, WireFate};
use apportion_runtime::probe::{Counters, PacketEvent};

use crate::acks;
use crate::pace::Pace;
use crate::packet::Packet;

/// State that links share: the buffers of frames, and the counters of flows.
#[derive(Debug)]
pub struct SharedState {
    /// The buffers of frames.
    pub pool: Pool,
    /// Counters by [account](Packet::account); most worlds number accounts as flows.
    pub flows: Vec<Counters>,
    /// The flow of the results by id; empty if allocations are not measured, the default.
    pub flow_of_id: Vec<u32>,
    /// Overload notifications of disciplines, with their time and the number of the link, until they are
    /// taken out; at most the latest [`MAX_OVERLOADS`](Self::MAX_OVERLOADS).
    pub overloads: VecDeque<(Time, u32, Overload)>,
    /// Sees every packet on every link, for logs. Default: none.
    pub observer: Option<Box<dyn Observer>>,
}

/// Sees events of packets on links as they happen, by the number of the link.
pub trait Observer: std::fmt::Debug + Send {
    /// A packet comes to the queue.
    fn entered(&mut self, now: Time, link: u32, packet: &Packet);
    /// A packet is gone: the discipline dropped it, or it was lost on the wire.
    fn gone(&mut self, now: Time, link: u32, packet: &Packet);
    /// A packet has reached the end of the wire.
    fn arrived(&mut self, now: Time, link: u32, packet: &Packet);
    /// The run has ended.
    ///
    /// # Errors
    /// If events could not be written.
    fn finish(self: Box<Self>, now: Time) -> std::io::Result<()>;
}

impl SharedState {
    /// Maximum of overload notifications that wait to be taken out. Chosen: many more than one round of a
    /// discipline issues.
    pub const MAX_OVERLOADS: usize = 1_024;

    /// Counters of zero for accounts with numbers below `flows`.
    #[must_use]
    pub fn new(pool: Pool, flows: usize) -> Self {
        Self {
            pool,
            flows: vec![Counters::default(); flows],
            flow_of_id: Vec::new(),
            overloads: VecDeque::new(),
            observer: None,
        }
    }

    /// The counters of an account. Numbers beyond the last account share its counters.
    #[inline]
    pub fn account(&mut self, number: u32) -> Option<&mut Counters> {
        let last = self.flows.len().checked_sub(1)?;
        self.flows.get_mut((number as usize).min(last))
    }
}

impl LinkBackend<Packet> for SharedState {
    fn count(&mut self, packet: &Packet, event: PacketEvent) {
        if let Some(counters) = self.account(packet.account()) {
            counters.count(event);
        }
    }
    #[inline]
    fn discard(&mut self, now: Time, link: u32, packet: Packet, _reason: Option<DropReason>) {
        if let Some(observer) = &mut self.observer {
            observer.gone(now, link, &packet);
        }
        self.pool.give_back(packet.buffer);
    }
    fn supersedes(&self, newer: &Packet, older: &Packet) -> bool {
        let [newer, older] = [newer, older].map(|packet| &self.pool.bytes(packet.buffer)[packet.range()]);
        acks::supersedes(newer, older)
    }
    fn notify(&mut self, now: Time, link: u32, overload: Overload) {
        if self.overloads.len() == Self::MAX_OVERLOADS {
            self.overloads.pop_front();
        }
        self.overloads.push_back((now, link, overload));
    }
    #[inline]
    fn set_queued(&mut self, now: Time, packet: &mut Packet) {
        packet.queued = now;
    }
    #[inline]
    fn queued(&self, packet: &Packet) -> Time {
        packet.queued
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
    /// Busy until this time; then it asks for the next packet.
    Busy(Time),
    /// Sends nothing although packets wait, or the discipline has an event of its own: until this time, when
    /// the discipline releases packets or handles the event, or until the rate changes.
    Held(Option<Time>),
}

/// One direction of a link.
#[derive(Debug)]
pub struct Link {
    transmitter: Transmitter,
    pace: Pace,
    wire: VecDeque<(Time, Packet)>,
    /// Time spent on packets sent.
    busy: Span,
    other_way: Option<u32>,
    /// Everything but the transmitter and the packets on the wire. Changes that concern the transmitter are
    /// methods of the link.
    pub state: LinkState<Packet>,
}

impl Link {
    /// An idle link with this pace, whose mean becomes the rate of the link's state. `other_way` is the
    /// number of the link of the opposite direction, which is issued the tickets that acknowledgements bring
    /// here; `None` if there is none.
    #[must_use]
    pub fn new(parts: LinkParts<Packet>, pace: Pace, other_way: Option<u32>) -> Self {
        let state = LinkState::new(LinkParts { rate: pace.mean(), ..parts });
        let (transmitter, wire, busy) = (Transmitter::Idle, VecDeque::new(), Span::ZERO);
        Self { transmitter, pace, wire, busy, other_way, state }
    }

    /// Queues a packet, and sends if the transmitter is free.
    pub fn enter(&mut self, now: Time, mut packet: Packet, shared: &mut SharedState) {
        if let Some(observer) = &mut shared.observer {
            observer.entered(now, self.state.index(), &packet);
        }
        self.state.before_queue(now, &mut packet, shared);
        self.state.enqueue(now, packet, shared);
        if !matches!(self.transmitter, Transmitter::Busy(_)) {
            self.start_next(now, shared);
        }
    }

    /// The link of the opposite direction, and the rate of tickets that acknowledgements have brought here
    /// for it since the last call; `None` if they brought none.
    pub fn take_ack_ticket_rate(&mut self) -> Option<(u32, TicketRate)> {
        self.other_way.zip(self.state.take_ack_ticket_rate())
    }

    /// Time to call [`on_timer`](Link::on_timer) next; never if no packet is queued or in flight.
    #[must_use]
    pub fn next(&self) -> Time {
        let transmitter = match self.transmitter {
            Transmitter::Busy(until) => until,
            Transmitter::Held(Some(until)) => until,
            Transmitter::Idle | Transmitter::Held(None) => Time::MAX,
        };
        self.wire.front().map_or(transmitter, |(arrival, _)| transmitter.min(*arrival))
    }

    /// Handles the events due at `now`, which is [`next`](Link::next), and returns a packet that has reached
    /// the end of the wire. Call it until `next` is later.
    pub fn on_timer(&mut self, now: Time, shared: &mut SharedState) -> Option<Packet> {
        match self.transmitter {
            Transmitter::Busy(until) | Transmitter::Held(Some(until)) if until <= now => {
                self.start_next(until, shared);
            }
            _ => (),
        }
        if self.wire.front().is_none_or(|(arrival, _)| *arrival > now) {
            return None;
        }
        let (arrival, packet) = self.wire.pop_front()?;
        if let Some(observer) = &mut shared.observer {
            observer.arrived(arrival, self.state.index(), &packet);
        }
        Some(packet)
    }

    /// Takes a packet from the discipline and sends it.
    fn start_next(&mut self, now: Time, shared: &mut SharedState) {
        if self.state.rate() == Rate::ZERO {
            self.transmitter = Transmitter::Held(None);
            return;
        }
        match self.state.dequeue(now, shared) {
            Some(packet) => self.send(now, packet, shared),
            None => {
                let wakeup = self.state.next_wakeup();
                let is_idle = wakeup.is_none() && self.state.backlog().is_empty();
                self.transmitter = if is_idle { Transmitter::Idle } else { Transmitter::Held(wakeup) };
            }
        }
    }

    /// Asks a queue again that held packets back, as it may release them now.
    pub fn retry(&mut self, now: Time, shared: &mut SharedState) {
        self.start_if_held(now, shared);
    }

    fn start_if_held(&mut self, now: Time, shared: &mut SharedState) {
        if matches!(self.transmitter, Transmitter::Held(_)) {
            self.start_next(now, shared);
        }
    }

    fn send(&mut self, now: Time, mut packet: Packet, shared: &mut SharedState) {
        let sent = self.pace.send(now, packet.size()).unwrap_or(now);
        self.transmitter = Transmitter::Busy(sent);
        self.busy += sent.since(now);
        match self.state.transmit(now, &mut packet, shared) {
            WireFate::Lost => shared.discard(now, self.state.index(), packet, None),
            WireFate::InOrder => self.wire.push_back((self.state.arrival(sent), packet)),
            WireFate::Overtaking => {
                let at = self.state.arrival(sent);
                let place = self.wire.partition_point(|(arrival, _)| *arrival <= at);
                self.wire.insert(place, (at, packet));
            }
        }
    }

    /// The transmission time of packets sent, to the end of the last one; on a trace it includes the wait for
    /// an opportunity.
    #[must_use]
    pub const fn busy(&self) -> Span {
        self.busy
    }
}

/// Changes that concern the transmitter. None of them loses a packet that fits; a packet in transmission
/// finishes at its old rate.
impl Link {
    /// Changes the pace from `now` on. Rate zero holds packets in the queue.
    pub fn set_pace(&mut self, now: Time, pace: Pace, shared: &mut SharedState) {
        self.state.set_rate(now, pace.mean(), shared);
        self.pace = pace;
        self.start_if_held(now, shared);
    }

    /// Replaces the discipline; see [`LinkState::set_queue`].
    pub fn set_queue(&mut self, now: Time, queue: LinkQueue<Packet>, shared: &mut SharedState) {
        self.state.set_queue(now, queue, shared);
        if !matches!(self.transmitter, Transmitter::Busy(_)) {
            self.start_next(now, shared);
        }
    }

    /// Changes a setting of a flow. Returns whether the discipline supports it; packets that were held back
    /// may then go.
    pub fn set_flow(
        &mut self,
        now: Time,
        flow: FlowId,
        setting: FlowSetting,
        shared: &mut SharedState,
    ) -> bool {
        let is_heeded = self.state.set_flow(now, flow, setting, shared);
        if is_heeded && setting.may_release() {
            self.start_if_held(now, shared);
        }
        is_heeded
    }
}
