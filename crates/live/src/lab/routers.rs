//! Routers of the laboratory that exchange reports about their links: their messages are packets of the
//! engine.
//!
//! A message is a UDP datagram in IPv4 from router to router, as on any network. It passes the queues and
//! wires of the scenario, which may drop it like other packets. Disciplines see it as in the simulator: its
//! bytes with an IPv4 header.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use apportion_core::packet::{Ecn, FlowId, Protocol};
use apportion_core::units::Time;
use apportion_runtime::connections::Numbers;
use apportion_runtime::routers::{Routers, charged};
use apportion_runtime::sffc::{Destination, Handled, Transmit};
use apportion_scenario::model::{LinkId, NodeId, Scenario};

use crate::engine::{ControlFrame, Hop, LinkStates, Outgoing, Place};
use crate::packet::Description;
use crate::router::frames::{self, Envelope, Hardware};

/// Maximum of entries in the table of routes. Chosen: 8 MB; the paths between 300 routers in a row.
const MAX_HOPS: usize = 1 << 20;
/// The hardware address in their frames, which reach no interface.
const NO_HARDWARE: Hardware = [0; 6];

/// All routers with such links.
#[derive(Debug)]
pub struct LabRouters<'a> {
    shared: Routers<'a>,
    numbers: Numbers,
    /// The flow of messages that disciplines see.
    id: FlowId,
    /// Times at which routers are due, and the earliest of these times.
    due: Vec<Time>,
    next: Time,
    /// The router that may have messages to send.
    sender: Option<u32>,
    /// Messages to send, with the indices of their routes.
    outbox: VecDeque<(u32, Vec<u8>, Description)>,
}

impl<'a> LabRouters<'a> {
    /// The routers of `scenario` with `seed`; none if no queue reports.
    #[must_use]
    pub fn new(scenario: &'a Scenario, seed: u64, numbers: &Numbers, routes: &mut Vec<Hop>) -> Option<Self> {
        let shared = Routers::new(scenario, seed, &mut |path| add(routes, path))?;
        Some(Self {
            id: FlowId(numbers.id_count() as u32),
            numbers: numbers.clone(),
            due: vec![Time::ZERO; shared.count() as usize],
            next: Time::ZERO,
            shared,
            sender: None,
            outbox: VecDeque::new(),
        })
    }

    /// Receives a message. Returns whether to forward it.
    pub fn on_control(&mut self, now: Time, control: &ControlFrame<'_>, links: &mut LinkStates<'_>) -> bool {
        let Place::Link(link) = control.place else { return false };
        let Some(message) = frames::read(control.frame, control.parsed) else { return false };
        let (sender, handled) = self.shared.receive(now, link, control.is_end, message, links);
        self.sender = sender;
        handled == Handled::Pass
    }

    /// Time at which the next router is due.
    #[must_use]
    pub const fn next_timer(&self) -> Time {
        self.next
    }

    /// Manages a router that is due.
    pub fn on_timer(&mut self, now: Time, links: &mut LinkStates<'_>) {
        let Some(router) = self.due.iter().position(|due| *due <= now) else { return };
        self.due[router] = self.shared.manage(now, router as u32, &self.numbers, links);
        self.sender = Some(router as u32);
        self.next = self.due.iter().copied().min().unwrap_or(Time::MAX);
    }

    /// The next frame to send.
    pub fn poll_transmit(&mut self, routes: &mut Vec<Hop>) -> Option<Outgoing> {
        while self.outbox.is_empty() {
            let router = self.sender?;
            match self.shared.transmit(router) {
                Some(message) => self.send(router, &message, routes),
                None => self.sender = None,
            }
        }
        let (hop, frame, description) = self.outbox.pop_front()?;
        Some(Outgoing { frame, description, hop })
    }

    fn send(&mut self, router: u32, message: &Transmit, routes: &mut Vec<Hop>) {
        let Transmit { to, bytes } = message;
        let source = address(self.shared.node(router));
        let destination = match to {
            Destination::Neighbours => frames::neighbours(source),
            _ => match self.shared.end(*to, &self.numbers) {
                Some(node) => address(node),
                None => return,
            },
        };
        let envelope = Envelope { from: NO_HARDWARE, to: NO_HARDWARE, source, destination };
        let Some(frame) = frames::write(&envelope, bytes) else { return };
        let description = Description {
            flow: self.id,
            size: charged(bytes),
            protocol: Protocol::Control,
            ecn: Ecn::NotEct,
            label: None,
            account: self.id.0,
            counts: false,
            ip: None,
            acknowledgement: 0,
        };
        let ways = self.shared.paths(router, *to, &self.numbers, &mut |path| add(routes, path));
        self.outbox.extend(ways.into_iter().map(|hop| (hop, frame.clone(), description)));
    }

    /// Reports the counters of the router that sends over `link`, if this is the first of its links that
    /// report.
    pub fn statistics(&self, link: u32, show: &mut dyn FnMut(&'static str, f64)) {
        self.shared.statistics(link, show);
    }
}

/// The address of the router at a node: after those of hosts, from 10.2.0.1 on.
fn address(node: NodeId) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(u32::from_be_bytes([10, 2, 0, 1]).wrapping_add(node.0)))
}

/// Adds a route for messages to the table; none if it is full.
fn add(routes: &mut Vec<Hop>, path: &[LinkId]) -> Option<u32> {
    if routes.len() + path.len() >= MAX_HOPS {
        return None;
    }
    let begin = routes.len() as u32;
    routes.extend(path.iter().map(|link| Hop::Link(link.0)));
    routes.push(Hop::World);
    Some(begin)
}
