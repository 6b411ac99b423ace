//! Routers that exchange reports about their links: whose queues take part in it are managed here.
//!
//! Messages are packets: they have the size of their bytes with an IPv4 header, go through queues and over
//! wires, are dropped there like others, and are read at their end as they were written. A query towards the
//! source of a flow is shown to every router on its way that takes part.
//!
//! Routers have the numbers of their nodes for addresses, flows those of their ids for keys, ports those of
//! links. Paths between routers are found when the first message needs them.
//!
//! Cost: for each router an event per interval and link that takes part.

use std::collections::BTreeMap;

use apportion_core::control::sffc::{
    Destination, FlowKey, FlowReport, Forwarding, Handled, Manager, ManagerParams, Port, RouterId, Transmit,
};
use apportion_core::packet::{Ecn, FlowId, Protocol};
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};
use apportion_scenario::model::{NodeId, Scenario, Setting};
use apportion_scenario::routing::Routing;

use crate::events::Event;
use crate::link::Link;
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::{ROUTER, Simulation};

/// How often a router looks whether a queue takes part by now. Chosen: rare beside intervals of 50 ms.
const LOOK: Span = Span::from_secs(1);
/// RFC 791 section 3.1, without options.
const IPV4_HEADER: u64 = 20;
/// The largest route table; what a packet can point at.
const MOST_HOPS: usize = crate::packet::MAX_PLACE as usize;

/// Every router that takes part, and how they reach each other.
#[derive(Debug)]
pub(crate) struct Routers<'a> {
    all: Vec<Router>,
    /// The router at each node, if it takes part.
    at: Vec<Option<u32>>,
    routing: Routing<'a>,
    /// Where paths found so far begin in the table of routes.
    paths: BTreeMap<(NodeId, NodeId), Option<u32>>,
    /// What queues know messages by.
    pub id: FlowId,
}

#[derive(Debug)]
struct Router {
    node: NodeId,
    manager: Manager,
    /// Its output links that take part, or will after a change.
    links: Vec<u32>,
    /// Where the paths to its neighbours begin in the table of routes.
    neighbours: Vec<u32>,
}

/// The output links of a router, as its manager sees them.
struct Outputs<'a>(&'a mut [Link]);

impl Forwarding for Outputs<'_> {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        FlowKey::from_bytes(&flow.0.to_be_bytes())
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        Some(FlowId(u32::from_be_bytes(key.as_bytes().try_into().ok()?)))
    }
    fn carries(&self, port: Port, flow: FlowId) -> bool {
        let state = self.0.get(port.0 as usize).and_then(Link::link_state);
        state.is_some_and(|state| state.carries(flow))
    }
    fn heard(&mut self, port: Port, report: FlowReport) {
        if let Some(state) = self.0.get_mut(port.0 as usize).and_then(Link::link_state_mut) {
            state.heard(report);
        }
    }
}

impl<'a> Routers<'a> {
    /// Those of `scenario`; none if no queue takes part. `id` is what queues will know messages by; `table`
    /// is that of routes.
    pub fn new(scenario: &'a Scenario, seed: u64, id: FlowId, table: &mut Vec<u32>) -> Option<Box<Self>> {
        let mut intervals: Vec<Option<Span>> =
            scenario.links.iter().map(|link| link.queue.report_interval()).collect();
        for change in &scenario.changes {
            if let Setting::LinkQueue(link, queue) = &change.to {
                let known = &mut intervals[link.index()];
                *known = known.iter().copied().chain(queue.report_interval()).min();
            }
        }
        let shortest = intervals.iter().copied().flatten().min()?;
        let params = manager_params(shortest, intervals.iter().copied().flatten().max()?);
        let mut out = vec![Vec::new(); scenario.nodes.len()];
        for (link, of) in (0..).zip(&scenario.links) {
            out[of.from.index()].push(link);
        }
        let (mut all, mut at) = (Vec::new(), vec![None; scenario.nodes.len()]);
        for (node, leaving) in (0..).map(NodeId).zip(&out) {
            let takes_part = |link: &u32| intervals[*link as usize].is_some();
            let links: Vec<u32> = leaving.iter().copied().filter(takes_part).collect();
            if !links.is_empty() {
                let name = &scenario.nodes[node.index()].name;
                let random = Stream::new(seed, &format!("node.{name}.manager"));
                let manager = Manager::new(RouterId(u128::from(node.0)), &params, None, random);
                let neighbours = leaving.iter().filter_map(|&link| add(table, [link].into_iter())).collect();
                at[node.index()] = Some(all.len() as u32);
                all.push(Router { node, manager, links, neighbours });
            }
        }
        let routing = Routing::new(scenario.nodes.len(), &scenario.links);
        Some(Box::new(Self { all, at, routing, paths: BTreeMap::new(), id }))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// Where the path between two nodes begins in the table of routes `table`, which it is added to; none if
    /// there is none, or no room.
    fn path(&mut self, from: NodeId, to: NodeId, table: &mut Vec<u32>) -> Option<u32> {
        if let Some(begin) = self.paths.get(&(from, to)) {
            return *begin;
        }
        let path = self.routing.path(from, to).filter(|path| !path.is_empty());
        let begin = path.and_then(|path| add(table, path.iter().map(|link| link.0)));
        self.paths.insert((from, to), begin);
        begin
    }

    /// Shows what the router that sends over `link` has done, if this is the first of its links that take
    /// part.
    pub fn statistics(&self, link: u32, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(router) = self.all.iter().find(|router| router.links.first() == Some(&link)) {
            router.manager.statistics(show);
        }
    }
}

/// What suits reports that come every `shortest` to `longest`: twice as often may be a report that was
/// delayed and the one after it.
fn manager_params(shortest: Span, longest: Span) -> ManagerParams {
    let default = ManagerParams::default();
    ManagerParams {
        min_interval: default.min_interval.min(shortest.div(2)),
        longest_interval: default.longest_interval.max(longest),
        ..default
    }
}

/// Adds a route for messages to the table; none if it is full.
fn add(table: &mut Vec<u32>, links: impl Iterator<Item = u32>) -> Option<u32> {
    let begin = table.len();
    table.extend(links);
    table.push(ROUTER);
    if table.len() > MOST_HOPS {
        table.truncate(begin);
        return None;
    }
    Some(begin as u32)
}

impl Simulation<'_> {
    /// The time of a router has come: an interval of a link has ended, or its manager waited for it.
    pub(crate) fn manage(&mut self, now: Time, index: u32) {
        let Some(routers) = &mut self.routers else { return };
        let router = &mut routers.all[index as usize];
        let mut next = Time::MAX;
        for &link in &router.links {
            let Some(state) = self.links[link as usize].link_state_mut() else { continue };
            state.advance(now);
            next = next.min(state.interval_ends());
            let reports = state.take_reports();
            if !reports.is_empty() {
                router.manager.report(now, &reports, &Outputs(&mut self.links));
            }
        }
        if router.manager.next_timer().is_some_and(|due| due <= now) {
            router.manager.on_timer(now, &Outputs(&mut self.links));
        }
        if let Some(due) = router.manager.next_timer() {
            next = next.min(due);
        }
        // A queue that joins later is looked for now and then.
        let latest = now + LOOK;
        self.shared.events.schedule(next.min(latest), Event::Router(index));
        self.send_messages(now, index);
    }

    /// A message arrives over `link` at the end of its path, or on its way past a router that takes part.
    pub(crate) fn receive_message(&mut self, now: Time, link: u32, packet: Packet, is_end: bool) {
        let node = self.scenario.links[link as usize].to;
        let back = self.scenario.links[link as usize].other_way;
        let header = self.shared.store.get(packet.body()).header;
        let router = self.routers.as_ref().and_then(|routers| routers.at[node.index()]);
        let mut handled = if is_end { Handled::Taken } else { Handled::Pass };
        if let (Some(router), Header::Message { query }, Some(back)) = (router, header, back)
            && (is_end || query)
            && let Some(routers) = &mut self.routers
        {
            let bytes = self.shared.store.message(packet.body());
            let manager = &mut routers.all[router as usize].manager;
            handled = manager.receive(now, Port(back.0), bytes, &mut Outputs(&mut self.links));
            self.send_messages(now, router);
        }
        if handled == Handled::Pass && !is_end {
            self.enter(now, self.routes[packet.hop() as usize], packet);
        } else {
            self.shared.store.remove(packet.body());
        }
    }

    /// Sends what the manager of a router has to say.
    fn send_messages(&mut self, now: Time, index: u32) {
        while let Some(Transmit { to, bytes }) = self.next_message(index) {
            let query = matches!(to, Destination::TowardsSource(_));
            for hop in self.routes_to(index, to) {
                self.send_message(now, hop, query, &bytes);
            }
        }
    }

    fn next_message(&mut self, index: u32) -> Option<Transmit> {
        self.routers.as_mut()?.all[index as usize].manager.transmit()
    }

    /// Where the paths of a message begin in the table of routes.
    fn routes_to(&mut self, index: u32, to: Destination) -> Vec<u32> {
        let Some(routers) = &mut self.routers else { return Vec::new() };
        let router = &routers.all[index as usize];
        let to = match to {
            Destination::Neighbours => return router.neighbours.clone(),
            Destination::TowardsSource(flow) => {
                let flow = self.numbers.flow_of(flow);
                let first = flow.and_then(|flow| self.scenario.flows.get(flow)?.path.first());
                first.map(|link| self.scenario.links[link.index()].from)
            }
            Destination::Router(RouterId(node)) => u32::try_from(node).ok().map(NodeId),
        };
        let from = router.node;
        to.and_then(|to| routers.path(from, to, &mut self.routes)).into_iter().collect()
    }

    fn send_message(&mut self, now: Time, hop: u32, query: bool, bytes: &[u8]) {
        let Some(routers) = &self.routers else { return };
        let size = Bytes::new(IPV4_HEADER + bytes.len() as u64);
        let body =
            Body { sent: now, queued: now, connection: routers.id.0, header: Header::Message { query } };
        let body = self.shared.store.insert_message(body, bytes);
        let packet = Packet::new(body, routers.id, hop, size, Ecn::NotEct, Direction::Forth);
        self.enter(now, self.routes[hop as usize], packet.carrying(Protocol::Control));
    }
}
