//! A router of two ports that exchanges reports with others, on real packets, without I/O.
//!
//! [`frames`] encodes messages as frames, and [`Manager`] interprets them. This module decides which frames
//! are for this router, and by which port and to which hardware address a message goes.
//!
//! - To neighbours: out of both ports, to a group that no host listens to.
//! - Towards the source of a flow: to that address, out of the port by which the flow arrives, and to the
//!   hardware address that sent its frames. The first router on the path that carries the flow takes the
//!   message out.
//! - To a router: to the address that it announced, out of the port and to the hardware address of its last
//!   message with a valid key.
//!
//! The router has an address but no host behind it: it takes messages to that address out of the frames that
//! pass, answers no ARP, and needs none of neighbours on the same Ethernet. It ignores messages that crossed
//! a router without these reports, and messages whose source is not the router that they name.
//!
//! Messages are sent without VLAN tags. No messages go towards sources of the other IP version than the
//! router's address; the routers there are found as neighbours only.
//!
//! Cost: O(1) for a frame that is no message; a message is authenticated twice, here to learn where its
//! sender is, and by its reader.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv6Addr};

use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::Time;
use apportion_runtime::sffc::message::{Key, Message, is_towards_source};
use apportion_runtime::sffc::{
    Destination, FlowKey, FlowReport, FlowRule, Forwarding, Handled, Manager, ManagerParams, Port, RouterId,
    Transmit,
};

use crate::frame::{FlowTuple, Parsed};
use frames::{Envelope, Hardware, NEIGHBOURS_4, NEIGHBOURS_6};

pub mod frames;

/// Maximum of routers whose port and hardware address are kept. Chosen: as many as a [`Manager`] answers by
/// default, on both sides.
const MAX_ROUTERS: usize = 128;
/// Number of ports: a frame that enters by one leaves by the other.
const PORTS: u32 = 2;

/// Access of a [`Router`] to the gateway around it. Flows are numbered separately at each port by which they
/// leave.
pub(crate) trait RouterContext {
    /// The addresses and ports of this flow; none if it is unknown, or an aggregate of flows.
    fn tuple(&self, port: u32, flow: FlowId) -> Option<FlowTuple>;
    /// The flow of these packets; none if none of its packets was seen lately.
    fn flow(&self, port: u32, tuple: &FlowTuple) -> Option<FlowId>;
    /// The hardware address that sent the last frame of the flow.
    fn sender(&self, port: u32, flow: FlowId) -> Option<Hardware>;
    /// Whether the flow leaves by the port now, as a non-adaptive flow that was seen lately.
    fn carries(&self, port: u32, flow: FlowId) -> bool;
    /// Handles a valid report of the next hop about packets that left by the port.
    fn on_report(&mut self, port: u32, report: FlowReport);
}

#[derive(Debug)]
pub(crate) struct Router {
    manager: Manager,
    key: Option<Key>,
    address: IpAddr,
    /// Hardware addresses of the interfaces.
    hardware: [Hardware; PORTS as usize],
    /// Places of routers: the time of the last message, its port, and the sender of its frame.
    places: BTreeMap<RouterId, (Time, u32, Hardware)>,
    outbox: VecDeque<(u32, Vec<u8>)>,
    /// Messages with a wrong checksum.
    damaged: u64,
    /// Messages from beyond the link.
    distant: u64,
    /// Messages with another source than the router that they name.
    disguised: u64,
    /// Messages without a known route.
    stuck: u64,
}

/// Numbers the flows of both ports for the manager, one number each.
struct Numbering<'a, A>(&'a mut A);

const fn number(port: u32, flow: FlowId) -> FlowId {
    FlowId(flow.0 * PORTS + port)
}

const fn at_port(flow: FlowId) -> (u32, FlowId) {
    (flow.0 % PORTS, FlowId(flow.0 / PORTS))
}

impl<A: RouterContext> Forwarding for Numbering<'_, A> {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        let (port, flow) = at_port(flow);
        self.0.tuple(port, flow)?.key()
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        let tuple = FlowTuple::from_key(key)?;
        let found = (0..PORTS).filter_map(|port| Some((port, self.0.flow(port, &tuple)?)));
        // Packets with a forged source may have come the wrong way.
        let best = found.max_by_key(|(port, flow)| self.0.carries(*port, *flow));
        best.map(|(port, flow)| number(port, flow))
    }
    fn carries(&self, port: Port, flow: FlowId) -> bool {
        let (leaves_by, flow) = at_port(flow);
        leaves_by == port.0 && self.0.carries(leaves_by, flow)
    }
    fn on_report(&mut self, port: Port, report: FlowReport) {
        let (_, flow) = at_port(report.flow);
        self.0.on_report(port.0, FlowReport { flow, ..report });
    }
}

impl Router {
    /// A router with this address and these interfaces. With `key`, which the routers share, messages are
    /// authenticated. `random` must come from a secret seed.
    #[must_use]
    pub fn new(
        address: IpAddr,
        hardware: [Hardware; PORTS as usize],
        params: &ManagerParams,
        key: Option<&[u8]>,
        random: Stream,
    ) -> Self {
        Self {
            manager: Manager::new(id(address), params, key, random),
            key: key.map(Key::new),
            address,
            hardware,
            places: BTreeMap::new(),
            outbox: VecDeque::new(),
            damaged: 0,
            distant: 0,
            disguised: 0,
            stuck: 0,
        }
    }

    /// Handles a frame that entered by `port`. Returns whether it was for this router, or is to be forwarded.
    /// `is_unfinished`: the frame comes from a host of this machine, and its transport checksum is not
    /// computed yet.
    pub fn on_frame(
        &mut self,
        now: Time,
        port: u32,
        frame: &[u8],
        parsed: &Parsed,
        is_unfinished: bool,
        context: &mut impl RouterContext,
    ) -> Handled {
        let Some(message) = frames::read(frame, parsed) else { return Handled::Pass };
        let Some(headers) = &parsed.headers else { return Handled::Pass };
        let is_ours = headers.destination == self.address
            || headers.destination == NEIGHBOURS_4
            || headers.destination == NEIGHBOURS_6;
        if !is_ours && !is_towards_source(message) {
            return Handled::Pass;
        }
        if !self.is_credible(frame, parsed, is_unfinished) {
            return if is_ours { Handled::Taken } else { Handled::Pass };
        }
        if !self.learn(now, port, frame, (message, headers.source)) {
            self.disguised += 1;
            return if is_ours { Handled::Taken } else { Handled::Pass };
        }
        let handled = self.manager.receive(now, Port(port), message, &mut Numbering(context));
        self.collect(context);
        if is_ours { Handled::Taken } else { handled }
    }

    /// Whether a frame with a message arrived intact, from a sender on the link; counts it if not.
    fn is_credible(&mut self, frame: &[u8], parsed: &Parsed, is_unfinished: bool) -> bool {
        let (is_intact, is_from_link) =
            (frames::is_intact(frame, parsed, is_unfinished), frames::is_from_link(frame, parsed));
        self.damaged += u64::from(!is_intact);
        self.distant += u64::from(is_intact && !is_from_link);
        is_intact && is_from_link
    }

    /// Notes where the sender of a message is, if the message has a valid key. Returns whether the source
    /// address can be that sender's.
    fn learn(&mut self, now: Time, port: u32, frame: &[u8], (message, source): (&[u8], IpAddr)) -> bool {
        let Ok(message) = Message::decode(message, self.key.as_ref()) else { return true };
        let Some(from) = frame.get(6..).and_then(<[u8]>::first_chunk) else { return true };
        let sender = message.sender();
        if sender != id(source) {
            return false;
        }
        if self.places.len() == MAX_ROUTERS
            && !self.places.contains_key(&sender)
            && let Some(oldest) = self.places.iter().min_by_key(|(_, (at, ..))| *at).map(|(id, _)| *id)
        {
            self.places.remove(&oldest);
        }
        self.places.insert(sender, (now, port, *from));
        true
    }

    /// Reports the last interval of flows on the link that leaves by `port`.
    pub fn report(&mut self, now: Time, port: u32, reports: &[FlowReport], context: &mut impl RouterContext) {
        let numbered = |report: &FlowReport| FlowReport { flow: number(port, report.flow), ..*report };
        let reports: Vec<FlowReport> = reports.iter().map(numbered).collect();
        self.manager.report(now, &reports, &Numbering(context));
        self.collect(context);
    }

    /// Time to call [`on_timer`](Self::on_timer) next.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        self.manager.next_timer()
    }

    /// Handles the event of [`next_timer`](Self::next_timer), whose time has come.
    pub fn on_timer(&mut self, now: Time, context: &mut impl RouterContext) {
        self.manager.on_timer(now, &Numbering(context));
        self.collect(context);
    }

    /// The next frame to send, and its port.
    pub fn transmit(&mut self) -> Option<(u32, Vec<u8>)> {
        self.outbox.pop_front()
    }

    /// The limits that routers before this one would have to set to flows, with the flows.
    pub fn rules(&mut self, now: Time) -> impl Iterator<Item = (FlowTuple, FlowRule)> {
        self.manager.rules(now).filter_map(|rule| Some((FlowTuple::from_key(&rule.key)?, rule)))
    }

    /// Reports counters: of the manager, of messages that were not read, and of messages without a route.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.manager.statistics(show);
        show("refused_checksum", self.damaged as f64);
        show("refused_hop_limit", self.distant as f64);
        show("refused_source", self.disguised as f64);
        show("unsent_no_way", self.stuck as f64);
    }

    /// Puts the manager's messages into frames, to be sent.
    fn collect(&mut self, context: &impl RouterContext) {
        while let Some(Transmit { to, bytes }) = self.manager.transmit() {
            let ways = self.ways(to, context);
            let frames: Vec<_> = ways
                .into_iter()
                .filter_map(|(port, to, destination)| {
                    let from = self.hardware[port as usize % self.hardware.len()];
                    let envelope = Envelope { from, to, source: self.address, destination };
                    Some((port, frames::write(&envelope, &bytes)?))
                })
                .collect();
            self.stuck += u64::from(frames.is_empty());
            self.outbox.extend(frames);
        }
    }

    /// The ports and addresses to which a message goes.
    fn ways(&self, to: Destination, context: &impl RouterContext) -> Vec<(u32, Hardware, IpAddr)> {
        match to {
            Destination::Neighbours => {
                let group = frames::neighbours(self.address);
                (0..PORTS).map(|port| (port, frames::multicast(group), group)).collect()
            }
            Destination::TowardsSource(flow) => {
                let (leaves_by, flow) = at_port(flow);
                let source = context.tuple(leaves_by, flow).map(|tuple| tuple.source());
                let way = source.zip(context.sender(leaves_by, flow));
                way.map(|(source, sender)| (PORTS - 1 - leaves_by, sender, source)).into_iter().collect()
            }
            Destination::Router(router) => {
                let place = self.places.get(&router);
                place.map(|(_, port, hardware)| (*port, *hardware, address(router))).into_iter().collect()
            }
        }
    }
}

/// The id of the router with this address: IPv4 as an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2).
#[must_use]
pub(crate) const fn id(address: IpAddr) -> RouterId {
    RouterId(match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    })
}

/// The address of this router.
#[must_use]
pub(crate) const fn address(router: RouterId) -> IpAddr {
    Ipv6Addr::from_bits(router.0).to_canonical()
}

#[cfg(test)]
mod tests;
