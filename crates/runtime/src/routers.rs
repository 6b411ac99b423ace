//! Routers that exchange reports about their links: which routers of a scenario do, and how they reach each
//! other.
//!
//! A router takes part if the queue of an output link does, or will after a change. Routers are addressed by
//! the numbers of their nodes, flows by their ids, ports by the numbers of links. The backend carries the
//! messages: it has packets, and a table of paths. Paths between routers are found when the first message
//! needs them.
//!
//! Cost: for each router a call per interval and link that takes part.

use std::collections::BTreeMap;

use apportion_core::aqm::sffc::Sffc;
use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};

use self::exits::Exits;
use crate::connections::Numbers;
use crate::outcome::Count;
use crate::sffc::message::is_towards_source;
use crate::sffc::{
    Destination, FlowKey, FlowReport, Forwarding, Handled, Manager, ManagerParams, Port, RouterId, Transmit,
};
use apportion_scenario::model::{LinkId, NodeId, Scenario, Setting};
use apportion_scenario::routing::Routing;

mod exits;

/// Interval at which a router checks whether a queue has begun to take part. Chosen: rare compared with
/// intervals of 50 ms.
const CHECK_INTERVAL: Span = Span::from_secs(1);
/// RFC 791 section 3.1, without options.
const IPV4_HEADER: u64 = 20;

/// The size that a message is charged: its bytes with an IPv4 header.
#[must_use]
pub const fn charged(message: &[u8]) -> Bytes {
    Bytes::new(IPV4_HEADER + message.len() as u64)
}

/// The links of a backend, by their numbers.
pub trait Links {
    /// The part of a link's discipline that exchanges reports with other routers, if it has one.
    fn reporter(&self, link: u32) -> Option<&Sffc>;
    /// Like [`reporter`](Self::reporter), to change it.
    fn reporter_mut(&mut self, link: u32) -> Option<&mut Sffc>;
    /// The packets that a link sent, and the number that its discipline dropped; none if there is no such link.
    fn counts(&self, link: u32) -> Option<(Count, u64)>;
}

/// Adds a path from one router to another to the table of the backend, and returns where it begins; none if
/// the table is full.
pub type Add<'a> = dyn FnMut(&[LinkId]) -> Option<u32> + 'a;

/// All routers that take part.
#[derive(Debug)]
pub struct Routers<'a> {
    scenario: &'a Scenario,
    all: Vec<Router>,
    /// The router at each node, if it takes part.
    at: Vec<Option<u32>>,
    routing: Routing<'a>,
    exits: Exits,
    /// Starts of the paths found so far in the table of the backend.
    paths: BTreeMap<(NodeId, NodeId), Option<u32>>,
}

#[derive(Debug)]
struct Router {
    node: NodeId,
    manager: Manager,
    /// Output links of the router that take part, or will after a change.
    links: Vec<u32>,
    /// Starts of the paths to its neighbours in the table of the backend.
    neighbours: Vec<u32>,
}

/// The output links of a router, as its manager sees them.
struct Outputs<'a, L>(&'a mut L);

impl<L: Links> Forwarding for Outputs<'_, L> {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        FlowKey::from_bytes(&flow.0.to_be_bytes())
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        Some(FlowId(u32::from_be_bytes(key.as_bytes().try_into().ok()?)))
    }
    fn carries(&self, port: Port, flow: FlowId) -> bool {
        self.0.reporter(port.0).is_some_and(|reporter| reporter.carries(flow))
    }
    fn on_report(&mut self, port: Port, report: FlowReport) {
        if let Some(reporter) = self.0.reporter_mut(port.0) {
            reporter.on_report(report);
        }
    }
}

impl<'a> Routers<'a> {
    /// The routers of `scenario`, with `seed`; none if no queue takes part.
    pub fn new(scenario: &'a Scenario, seed: u64, add: &mut Add<'_>) -> Option<Self> {
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
        for (link, of) in (0..).map(LinkId).zip(&scenario.links) {
            out[of.from.index()].push(link);
        }
        let (mut all, mut at) = (Vec::new(), vec![None; scenario.nodes.len()]);
        for (node, leaving) in (0..).map(NodeId).zip(&out) {
            let taking_part = leaving.iter().filter(|link| intervals[link.index()].is_some());
            let links: Vec<u32> = taking_part.map(|link| link.0).collect();
            if !links.is_empty() {
                let name = &scenario.nodes[node.index()].name;
                let random = Stream::new(seed, &format!("node.{name}.manager"));
                let manager = Manager::new(RouterId(u128::from(node.0)), &params, None, random);
                let neighbours = leaving.iter().filter_map(|&link| add(&[link])).collect();
                at[node.index()] = Some(all.len() as u32);
                all.push(Router { node, manager, links, neighbours });
            }
        }
        let routing = Routing::new(scenario.nodes.len(), &scenario.links);
        let exits = Exits::new(scenario, |link| intervals[link.index()].is_some());
        Some(Self { scenario, all, at, routing, exits, paths: BTreeMap::new() })
    }

    /// The number of routers.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.all.len() as u32
    }

    /// The node of a router.
    #[must_use]
    pub fn node(&self, router: u32) -> NodeId {
        self.all[router as usize].node
    }

    /// Handles due events of a router: an interval of a link has ended, or a timer of its manager has
    /// expired. Returns the time of the next call, which is later than `now`. The router may have messages to
    /// [send](Self::transmit).
    pub fn manage(&mut self, now: Time, router: u32, numbers: &Numbers, links: &mut impl Links) -> Time {
        let Router { manager, links: own, .. } = &mut self.all[router as usize];
        // A queue may begin to take part later.
        let mut next = now + CHECK_INTERVAL;
        for &link in &*own {
            let Some(reporter) = links.reporter_mut(link) else { continue };
            let interval_ends = reporter.interval_ends();
            reporter.advance(now);
            next = next.min(reporter.interval_ends());
            let has_ended = reporter.interval_ends() > interval_ends;
            let reports = reporter.take_reports();
            if !reports.is_empty() {
                manager.report(now, &reports, &Outputs(links));
            }
            if has_ended {
                self.exits.limit(now, link, self.scenario, numbers, links);
            }
        }
        if manager.next_timer().is_some_and(|due| due <= now) {
            manager.on_timer(now, &Outputs(links));
        }
        manager.next_timer().map_or(next, |due| due.min(next))
    }

    /// Handles a message that has reached the end of `link`, which is the end of its path or a router on its
    /// way. Returns the router that read it, which may have messages to [send](Self::transmit), and whether
    /// the message goes on.
    pub fn receive(
        &mut self,
        now: Time,
        link: u32,
        is_end: bool,
        message: &[u8],
        links: &mut impl Links,
    ) -> (Option<u32>, Handled) {
        let link = &self.scenario.links[link as usize];
        if let Some(router) = self.at[link.to.index()]
            && let Some(back) = link.other_way
            && (is_end || is_towards_source(message))
        {
            let manager = &mut self.all[router as usize].manager;
            let handled = manager.receive(now, Port(back.0), message, &mut Outputs(links));
            (Some(router), if is_end { Handled::Taken } else { handled })
        } else {
            (None, if is_end { Handled::Taken } else { Handled::Pass })
        }
    }

    /// The next message of a router; `None` if there is none.
    pub fn transmit(&mut self, router: u32) -> Option<Transmit> {
        self.all[router as usize].manager.transmit()
    }

    /// The node that a message goes to; none if it goes to each neighbour, or if there is no such node.
    #[must_use]
    pub fn end(&self, to: Destination, numbers: &Numbers) -> Option<NodeId> {
        match to {
            Destination::Neighbours => None,
            Destination::TowardsSource(flow) => {
                let first = self.scenario.flows.get(numbers.flow_of(flow)?)?.path.first()?;
                Some(self.scenario.links[first.index()].from)
            }
            Destination::Router(RouterId(node)) => {
                let node = u32::try_from(node).ok().map(NodeId)?;
                (node.index() < self.scenario.nodes.len()).then_some(node)
            }
        }
    }

    /// Start of the paths of a router's message to `to`.
    pub fn paths(&mut self, router: u32, to: Destination, numbers: &Numbers, add: &mut Add<'_>) -> Vec<u32> {
        let Router { node, neighbours, .. } = &self.all[router as usize];
        if to == Destination::Neighbours {
            return neighbours.clone();
        }
        let from = *node;
        let end = self.end(to, numbers);
        end.and_then(|end| self.path(from, end, add)).into_iter().collect()
    }

    /// Start of the path between two nodes; none if there is no path, or the table is full.
    fn path(&mut self, from: NodeId, to: NodeId, add: &mut Add<'_>) -> Option<u32> {
        if let Some(begin) = self.paths.get(&(from, to)) {
            return *begin;
        }
        let path = self.routing.path(from, to).filter(|path| !path.is_empty());
        let begin = path.and_then(|path| add(&path));
        self.paths.insert((from, to), begin);
        begin
    }

    /// Reports the counters of the router that sends over `link`, if this is the first of its links that take
    /// part.
    pub fn statistics(&self, link: u32, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(router) = self.all.iter().find(|router| router.links.first() == Some(&link)) {
            router.manager.statistics(show);
        }
    }
}

/// Parameters for reports that come every `shortest` to `longest`. Reports may come twice as often, if one
/// was delayed and the next one was not.
#[must_use]
pub fn manager_params(shortest: Span, longest: Span) -> ManagerParams {
    let default = ManagerParams::default();
    ManagerParams {
        min_interval: default.min_interval.min(shortest.div(2)),
        longest_interval: default.longest_interval.max(longest),
        ..default
    }
}
