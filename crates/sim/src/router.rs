//! Routers that exchange reports about their links, by messages that are simulated packets.
//!
//! A message has the size of its bytes with an IPv4 header, passes queues and wires, is dropped there like
//! others, and is decoded at its end. Every participating router on the way sees a query towards the source
//! of a flow.

use apportion_core::aqm::sffc::Sffc;
use apportion_core::packet::{Ecn, FlowId, Protocol};
use apportion_core::units::Time;
use apportion_runtime::outcome::Count;
use apportion_runtime::routers::{self, Links, charged};
use apportion_runtime::sffc::{Handled, Transmit};
use apportion_scenario::model::{LinkId, Scenario};

use crate::events::Event;
use crate::link::Link;
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::{ROUTER, Simulation};

/// The largest route table: the range of a packet's hop.
const MAX_HOPS: usize = crate::packet::MAX_PLACE as usize;

/// All participating routers.
#[derive(Debug)]
pub(crate) struct Routers<'a> {
    shared: routers::Routers<'a>,
    /// The flow id of messages.
    pub id: FlowId,
}

/// All links of a simulation.
struct All<'a>(&'a mut [Link]);

impl Links for All<'_> {
    fn reporter(&self, link: u32) -> Option<&Sffc> {
        self.0.get(link as usize).and_then(|link| link.state.reporter())
    }
    fn reporter_mut(&mut self, link: u32) -> Option<&mut Sffc> {
        self.0.get_mut(link as usize).and_then(|link| link.state.reporter_mut())
    }
    fn counts(&self, link: u32) -> Option<(Count, u64)> {
        self.0.get(link as usize).map(|link| link.state.sent_and_dropped())
    }
}

impl<'a> Routers<'a> {
    /// The routers of `scenario`; `None` if no queue participates. `id` is the flow id of messages, `table`
    /// the table of routes.
    pub fn new(scenario: &'a Scenario, seed: u64, id: FlowId, table: &mut Vec<u32>) -> Option<Box<Self>> {
        let shared = routers::Routers::new(scenario, seed, &mut |path| add(table, path))?;
        Some(Box::new(Self { shared, id }))
    }

    /// The number of routers.
    pub fn count(&self) -> u32 {
        self.shared.count()
    }

    /// Reports the counters of the router that sends over `link`, if this is the first of its participating
    /// links.
    pub fn statistics(&self, link: u32, show: &mut dyn FnMut(&'static str, f64)) {
        self.shared.statistics(link, show);
    }
}

/// Adds a route for messages to the table; none if it is full.
fn add(table: &mut Vec<u32>, path: &[LinkId]) -> Option<u32> {
    let begin = table.len();
    table.extend(path.iter().map(|link| link.0));
    table.push(ROUTER);
    if table.len() > MAX_HOPS {
        table.truncate(begin);
        return None;
    }
    Some(begin as u32)
}

impl Simulation<'_> {
    /// Runs a router's work that is due.
    pub(crate) fn manage(&mut self, now: Time, router: u32) {
        let Some(routers) = &mut self.routers else { return };
        let next = routers.shared.manage(now, router, &self.numbers, &mut All(&mut self.links));
        self.shared.events.schedule(now, next, Event::Router(router));
        self.send_messages(now, router);
    }

    /// A message arrives over `link` at the end of its path, or passes a participating router.
    pub(crate) fn receive_message(&mut self, now: Time, link: u32, packet: Packet, is_end: bool) {
        let Some(routers) = &mut self.routers else { return };
        let bytes = self.shared.store.message(packet.body());
        let (router, handled) = routers.shared.receive(now, link, is_end, bytes, &mut All(&mut self.links));
        if let Some(router) = router {
            self.send_messages(now, router);
        }
        if handled == Handled::Pass {
            self.enter(now, self.routes[packet.hop() as usize], packet);
        } else {
            self.shared.store.remove(packet.body());
        }
    }

    /// Sends the messages of a router.
    fn send_messages(&mut self, now: Time, router: u32) {
        while let Some((hops, bytes)) = self.next_message(router) {
            for hop in hops {
                self.send_message(now, hop, &bytes);
            }
        }
    }

    /// The places in the table of routes at which the paths of the next message begin, and its bytes.
    fn next_message(&mut self, router: u32) -> Option<(Vec<u32>, Vec<u8>)> {
        let (routers, table) = (&mut self.routers.as_mut()?.shared, &mut self.routes);
        let Transmit { to, bytes } = routers.transmit(router)?;
        Some((routers.paths(router, to, &self.numbers, &mut |path| add(table, path)), bytes))
    }

    fn send_message(&mut self, now: Time, hop: u32, bytes: &[u8]) {
        let Some(routers) = &self.routers else { return };
        let body = Body { sent: now, queued: now, connection: routers.id.0, header: Header::Message };
        let body = self.shared.store.insert_with(body, bytes.to_vec());
        let packet = Packet::new(body, routers.id, hop, charged(bytes), Ecn::NotEct, Direction::Forward);
        self.enter(now, self.routes[hop as usize], packet.carrying(Protocol::Control));
    }
}
