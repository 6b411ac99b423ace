//! The state that the links of a simulation share.

use apportion_core::Packet as _;
use apportion_core::packet::FlowId;
use apportion_core::queue::{DropReason, Overload};
use apportion_core::units::Time;
use apportion_runtime::link::LinkBackend;
use apportion_runtime::probe::{FlowCounts, PacketEvent};

use crate::capture::LinkCapture;
use crate::events::Events;
use crate::observer::Observed;
use crate::packet::{Header, Packet, Store};
use crate::wire::HandedOver;

/// The state that links share: the event queue, the bodies of packets, and the counters of flows.
#[derive(Debug)]
pub struct SharedState<'a> {
    /// Future events.
    pub events: Events,
    /// The bodies of packets in flight.
    pub store: Store,
    /// The counters of flows, by id.
    pub counters: FlowCounts,
    /// The flow of the scenario by id; empty if allocations are not measured.
    pub flow_of_id: Vec<u32>,
    /// Overload notifications of disciplines, with their time and the index of the link, until they are sent
    /// to the sources.
    pub overloads: Vec<(Time, u32, Overload)>,
    /// Captures by the index of links; `None` where packets are not captured.
    pub captures: Vec<Option<Box<LinkCapture>>>,
    /// The observer of drops and marks, if there is one.
    pub observed: Option<Box<Observed<'a>>>,
    /// Packets whose transmission has begun and whose next link may take them at once, with the index of
    /// their present link.
    pub handed_over: Vec<HandedOver>,
}

impl SharedState<'_> {
    /// A state without packets, flows or captures, with these events.
    #[must_use]
    pub fn new(events: Events) -> Self {
        Self {
            events,
            store: Store::default(),
            counters: FlowCounts::default(),
            flow_of_id: Vec::new(),
            overloads: Vec::new(),
            captures: Vec::new(),
            observed: None,
            handed_over: Vec::new(),
        }
    }
}

impl LinkBackend<Packet> for SharedState<'_> {
    fn count(&mut self, packet: &Packet, event: PacketEvent) {
        self.counters.count(packet.flow(), event);
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
    fn supersedes(&self, newer: &Packet, older: &Packet) -> bool {
        let [(newer, way), (older, older_way)] =
            [newer, older].map(|packet| (self.store.get(packet.body()), packet.direction()));
        match (&newer.header, &older.header) {
            (Header::Tcp(newer_segment), Header::Tcp(older_segment)) => {
                (newer.connection, way) == (older.connection, older_way)
                    && newer_segment.supersedes(older_segment)
            }
            _ => false,
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
            capture.packet(now, packet, self.store.get(packet.body()), self.store.message(packet.body()));
        }
    }
    fn flow_of(&self, id: FlowId) -> Option<u32> {
        self.flow_of_id.get(id.index()).copied()
    }
}
