//! Routers that exchange reports about their links: their messages are packets here.
//!
//! A message has the size of its bytes with an IPv4 header, goes through queues and over wires, is dropped
//! there like others, and is read at its end as it was written. A query towards the source of a flow is shown
//! to every router on its way that takes part.

use apportion_core::aqm::sffc::Sffc;
use apportion_core::packet::{Ecn, FlowId, Protocol};
use apportion_core::units::Time;
use apportion_runtime::routers::{self, Links, charged};
use apportion_runtime::sffc::{Handled, Transmit};
use apportion_scenario::model::{LinkId, Scenario};

use crate::events::Event;
use crate::link::Link;
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::{ROUTER, Simulation};

/// The largest route table; what a packet can point at.
const MAX_HOPS: usize = crate::packet::MAX_PLACE as usize;

/// Every router that takes part.
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
}

impl<'a> Routers<'a> {
    /// Those of `scenario`; `None` if no queue takes part. `id` is the flow id of messages, `table` that of routes.
    pub fn new(scenario: &'a Scenario, seed: u64, id: FlowId, table: &mut Vec<u32>) -> Option<Box<Self>> {
        let shared = routers::Routers::new(scenario, seed, &mut |path| add(table, path))?;
        Some(Box::new(Self { shared, id }))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.shared.count()
    }

    /// Reports the counters of the router that sends over `link`, if this is the first of its links that take
    /// part.
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
    /// Does what is due at a router.
    pub(crate) fn manage(&mut self, now: Time, router: u32) {
        let Some(routers) = &mut self.routers else { return };
        let next = routers.shared.manage(now, router, &mut All(&mut self.links));
        self.shared.events.schedule(now, next, Event::Router(router));
        self.send_messages(now, router);
    }

    /// A message arrives over `link` at the end of its path, or on its way past a router that takes part.
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

    /// Where the paths of the next message begin in the table of routes, and its bytes.
    fn next_message(&mut self, router: u32) -> Option<(Vec<u32>, Vec<u8>)> {
        let (routers, table) = (&mut self.routers.as_mut()?.shared, &mut self.routes);
        let Transmit { to, bytes } = routers.transmit(router)?;
        Some((routers.paths(router, to, &self.numbers, &mut |path| add(table, path)), bytes))
    }

    fn send_message(&mut self, now: Time, hop: u32, bytes: &[u8]) {
        let Some(routers) = &self.routers else { return };
        let body = Body { sent: now, queued: now, connection: routers.id.0, header: Header::Message };
        let body = self.shared.store.insert_message(body, bytes);
        let packet = Packet::new(body, routers.id, hop, charged(bytes), Ecn::NotEct, Direction::Forward);
        self.enter(now, self.routes[hop as usize], packet.carrying(Protocol::Control));
    }
}
