//! A world from a scenario: routes, links, connections and the first events.

use std::collections::BTreeMap;

use apportion_core::drop::hcsfq::{CustomerId, Customers};
use apportion_core::exchange::currency::CurrencyExchange;
use apportion_core::packet::{FlowClass, FlowId, LabelKind, Protocol};
use apportion_core::random::Stream;
use apportion_core::system::{Discipline, DisciplineParams, Setup};
use apportion_core::units::{Bytes, Rate, Span, Time, Weight};
use apportion_scenario::model::{Flow, Link as LinkModel, LinkId, Scenario, Source, Start, Transport};
use apportion_scenario::probe::{Counters, FlowProbe, LinkProbe};
use apportion_scenario::source::short_flows::arrivals;
use apportion_scenario::tcp::Algorithm;

use crate::capture::LinkCapture;
use crate::connection::{Carrier, Connection, Load};
use crate::events::{Event, Events, MAX_INDEX, MAX_TIME};
use crate::link::{Link, LinkParts, Listed, Shared};
use crate::marks::Marks;
use crate::measure::Totals;
use crate::packet::Packet;
use crate::router::Routers;
use crate::simulation::{SINK, SOURCE, Simulation};
use crate::word::Word;

/// Flows up to which delay distributions and time series are kept for each flow.
pub const DETAILED_FLOWS_MAX: usize = 2_000;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Counts only.
    Counts,
    /// Distributions and time series of watched links, and of flows up to [`DETAILED_FLOWS_MAX`].
    Full,
}

/// Why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The simulator numbers connections, links, changes and the places of links on routes in 28 bits.
    #[error("the scenario has {count} {what}; at most {MAX_INDEX} can be simulated")]
    TooMany {
        /// Connections, links, changes or places.
        what: &'static str,
        /// How many.
        count: usize,
    },
    /// Simulated time is held in 56 bits of nanoseconds.
    #[error("stop: {0} is later than the simulator can count; at most {MAX_TIME}")]
    TooLong(Time),
    /// A congestion control that only the kernel has.
    #[error("flow `{flow}`: the simulator has no BBR; `apportion lab` runs it with the kernel's")]
    Bbr {
        /// The flow that asks for it.
        flow: String,
    },
}

fn refuse_bbr(scenario: &Scenario) -> Result<(), BuildError> {
    let asks = |flow: &&Flow| matches!(&flow.transport, Transport::Tcp(params) if params.algorithm == Algorithm::Bbr);
    match scenario.flows.iter().find(asks) {
        Some(flow) => Err(BuildError::Bbr { flow: flow.name.clone() }),
        None => Ok(()),
    }
}

impl<'a> Simulation<'a> {
    /// A world at time zero. Captures of links are written where `captures` says for the link's index.
    ///
    /// # Errors
    /// If the scenario is larger than the simulator can number, or asks for what it does not have.
    pub fn new(
        scenario: &'a Scenario,
        seed: u64,
        detail: Detail,
        captures: &mut dyn FnMut(usize) -> Option<Box<LinkCapture>>,
    ) -> Result<Self, BuildError> {
        refuse_bbr(scenario)?;
        let full = detail == Detail::Full;
        let mut simulation = Self {
            scenario,
            seed,
            links: Vec::with_capacity(scenario.links.len()),
            shared: Shared::new(events_for(scenario)),
            routes: Vec::new(),
            connections: Vec::with_capacity(scenario.flows.len()),
            first_connection: Vec::with_capacity(scenario.flows.len() + 1),
            first_id: Vec::with_capacity(scenario.flows.len() + 1),
            ids_are_shared: false,
            probes: Vec::new(),
            weights: Vec::new(),
            rtts: Vec::new(),
            classes: Vec::new(),
            guarantees: Vec::new(),
            customers: Vec::new(),
            customer_weights: scenario.customer_weights(),
            marks: Vec::new(),
            protocols: Vec::new(),
            routers: None,
            ended: Vec::new(),
            completions: vec![Vec::new(); scenario.flows.len()],
            baseline: None,
            word: Word::default(),
            outbox: Vec::new(),
            events_handled: 0,
        };
        simulation.add_connections();
        let connections = simulation.connections.len();
        for (what, count) in [
            ("connections", connections),
            ("links", scenario.links.len()),
            ("changes", scenario.changes.len()),
            ("links on routes", simulation.routes.len()),
        ] {
            if count > MAX_INDEX as usize {
                return Err(BuildError::TooMany { what, count });
            }
        }
        if scenario.stop > MAX_TIME {
            return Err(BuildError::TooLong(scenario.stop));
        }
        simulation.learn_flows();
        // The last one is of messages between routers.
        let messages = FlowId(simulation.id_count() as u32);
        simulation.shared.counters = vec![Counters::default(); simulation.id_count() + 1];
        simulation.routers = Routers::new(scenario, seed, messages, &mut simulation.routes);
        simulation.ended = vec![Totals::default(); connections];
        if full && scenario.flows.len() <= DETAILED_FLOWS_MAX {
            simulation.watch_flows();
        }
        for (index, link) in scenario.links.iter().enumerate() {
            let link = simulation.link(index, link, full && link.watched, captures(index));
            simulation.links.push(link);
        }
        simulation.schedule_first_events(full);
        Ok(simulation)
    }

    /// What disciplines ask of flows, by id.
    fn learn_flows(&mut self) {
        self.weights = self.weights();
        self.rtts = self.rtts();
        self.classes = self.classes();
        self.guarantees = self.guarantees();
        self.customers = self.customers();
        self.marks = self.marks();
        self.protocols = self.protocols();
    }

    fn watch_flows(&mut self) {
        self.probes.resize_with(self.scenario.flows.len(), FlowProbe::default);
        for flow in 0..self.scenario.flows.len() {
            self.shared.flow_of_id.resize(self.first_id[flow + 1] as usize, flow as u32);
        }
    }

    fn add_connections(&mut self) {
        let mut routes = Routes::default();
        for flow in &self.scenario.flows {
            self.first_connection.push(self.connections.len() as u32);
            self.first_id.push(self.id_count() as u32);
            let (route, back) = (routes.insert(&flow.path, SINK), routes.insert(&flow.back, SOURCE));
            self.add_flow(flow, route, back);
        }
        self.first_connection.push(self.connections.len() as u32);
        self.first_id.push(self.id_count() as u32);
        self.ids_are_shared = self.id_count() < self.connections.len();
        self.routes = routes.table;
    }

    /// What disciplines see as flows, as far as connections have been added.
    fn id_count(&self) -> usize {
        self.connections.last().map_or(0, |connection| connection.id.index() + 1)
    }

    fn add_flow(&mut self, flow: &Flow, route: u32, back: u32) {
        let seed = self.seed;
        // The first connection has the names that the only one of a flow has.
        let stream = |purpose: &str, member: u32| match member {
            0 => Stream::new(seed, &format!("flow.{}.{purpose}", flow.name)),
            _ => Stream::new(seed, &format!("flow.{}.{purpose}.{member}", flow.name)),
        };
        let stop = flow.stop.unwrap_or(self.scenario.stop);
        let start = |member: u32| match flow.start {
            Start::At(at) => at,
            Start::Between(from, to) => {
                let share = stream("start", member).uniform();
                from + Span::from_secs_f64(to.since(from).as_secs_f64() * share)
            }
        };
        let (number, first_id) = (self.first_connection.len() as u32 - 1, self.id_count() as u32);
        let connection = |id: u32, start: Time, load: Load| Connection {
            flow: number,
            id: FlowId(id),
            route,
            back,
            start,
            stop,
            load,
            carrier: Carrier::new(&flow.transport),
            armed: Time::MAX,
            completed: false,
        };
        if let &Source::ShortFlows { per_second, mean_size, sizes } = &flow.source {
            let starts = arrivals(per_second, mean_size, sizes, start(0), stop, stream("source", 0));
            let short = (first_id..).zip(starts);
            self.connections.extend(short.map(|(id, (at, size))| connection(id, at, Load::File(size))));
        } else {
            self.connections.extend((0..flow.connections).map(|member| {
                let start = start(member);
                let load = Load::new(&flow.source, start, stop, stream("source", member));
                connection(first_id, start, load)
            }));
        }
    }

    /// Of each id what its flow of the scenario has.
    fn by_id<T: Clone>(&self, of: impl Fn(&Flow) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.id_count());
        for (index, flow) in self.scenario.flows.iter().enumerate() {
            all.resize(self.first_id[index + 1] as usize, of(flow));
        }
        all
    }

    /// The weights by id; none if they are all equal, which spares every link a table.
    fn weights(&self) -> Vec<Weight> {
        let weights = self.by_id(|flow| flow.weight);
        if weights.iter().all(|&weight| weight == Weight::ONE) { Vec::new() } else { weights }
    }

    /// The round-trip times by id without queueing, zero where unknown.
    fn rtts(&self) -> Vec<Span> {
        self.by_id(|flow| self.scenario.base_rtt(flow).unwrap_or_default())
    }

    /// The classes by id; empty if all are greedy.
    fn classes(&self) -> Vec<FlowClass> {
        let classes = self.by_id(|flow| flow.class);
        if classes.iter().all(|&class| class == FlowClass::Greedy) { Vec::new() } else { classes }
    }

    /// The guarantees by id; empty if nothing is guaranteed anything.
    fn guarantees(&self) -> Vec<Rate> {
        let guarantees = self.by_id(|flow| flow.guarantee);
        if guarantees.iter().all(|&guarantee| guarantee == Rate::ZERO) { Vec::new() } else { guarantees }
    }

    /// Whose flows are, by id; empty if no flow names a customer.
    fn customers(&self) -> Vec<CustomerId> {
        if self.scenario.customers.is_empty() {
            return Vec::new();
        }
        self.by_id(|flow| self.scenario.customer_of(flow))
    }

    /// What marks packets, by id; empty if no flow is marked, so that nobody looks for it.
    fn marks(&self) -> Vec<Option<Box<Marks>>> {
        if self.scenario.flows.iter().all(|flow| flow.mark.is_none()) {
            return Vec::new();
        }
        let marks = |connections: &[Connection]| {
            let Connection { flow: number, id, .. } = connections[0];
            let flow = &self.scenario.flows[number as usize];
            let member = id.0 - self.first_id[number as usize];
            let stream =
                |purpose: &str| Stream::new(self.seed, &format!("flow.{}.{purpose}.{member}", flow.name));
            let first = connections.iter().map(|connection| connection.start).min();
            Marks::new(flow, first.unwrap_or_default(), &stream)
        };
        self.connections.chunk_by(|one, next| one.id == next.id).map(marks).collect()
    }

    /// What packets say they carry, by id; empty if each says what does carry it.
    fn protocols(&self) -> Vec<Protocol> {
        let honest = |flow: &Flow| match flow.transport {
            Transport::Tcp(_) => flow.protocol == Protocol::Tcp,
            Transport::Udp { .. } => flow.protocol == Protocol::Udp,
        };
        if self.scenario.flows.iter().all(honest) { Vec::new() } else { self.by_id(|flow| flow.protocol) }
    }

    /// What exchanges tickets on a link: for data if it is issued some, or is told by its acknowledgements; for
    /// acknowledgements if its other direction is.
    fn exchanges(&self, link: &LinkModel) -> Vec<(LabelKind, CurrencyExchange)> {
        let stream = |purpose: &str| Stream::new(self.seed, &format!("link.{}.{purpose}", link.name));
        let mut exchanges = Vec::new();
        if link.tickets.is_some() || link.ack_tickets.is_some() {
            let of_data =
                CurrencyExchange::new(&link.exchange, LabelKind::Tickets, link.tickets, stream("exchange"));
            exchanges.push((LabelKind::Tickets, of_data));
        }
        let other_way = link.other_way.map(|id| &self.scenario.links[id.index()]);
        if let Some(tickets) = other_way.and_then(|link| link.ack_tickets) {
            let of_acks = CurrencyExchange::new(
                &link.exchange,
                LabelKind::AckTickets,
                Some(tickets),
                stream("ack_exchange"),
            );
            exchanges.push((LabelKind::AckTickets, of_acks));
        }
        exchanges
    }

    fn link(&self, index: usize, link: &LinkModel, watched: bool, capture: Option<Box<LinkCapture>>) -> Link {
        let listed = link
            .lost
            .iter()
            .flat_map(|lost| self.ids(lost.flow).map(|id| Listed::new(FlowId(id), lost.packets.clone())));
        Link::new(LinkParts {
            index: index as u32,
            queue: self.discipline(link, &link.queue, link.rate),
            rate: link.rate,
            delay: link.delay,
            loss: link.loss,
            loss_stream: Stream::new(self.seed, &format!("link.{}.loss", link.name)),
            listed: listed.collect(),
            probe: watched.then(LinkProbe::default),
            capture,
            exchanges: self.exchanges(link),
        })
    }

    /// The discipline of a link.
    pub(crate) fn discipline(
        &self,
        link: &LinkModel,
        params: &DisciplineParams,
        link_rate: Rate,
    ) -> Discipline<Packet> {
        let name = format!("link.{}.queue", link.name);
        params.build(&Setup {
            link_rate,
            weights: &self.weights,
            rtts: &self.rtts,
            guarantees: &self.guarantees,
            classes: &self.classes,
            customers: Customers { of_flows: &self.customers, weights: &self.customer_weights },
            seed: self.seed,
            name: &name,
        })
    }

    fn schedule_first_events(&mut self, full: bool) {
        let events = &mut self.shared.events;
        // Changes come first, so that a change at the start of the run is there when the first packet comes.
        for (index, change) in self.scenario.changes.iter().enumerate() {
            events.schedule(change.at, Event::Change(index as u32));
        }
        if self.scenario.measure_from > Time::ZERO {
            events.schedule(self.scenario.measure_from, Event::Measure);
        }
        if full && self.scenario.sample > Span::ZERO {
            events.schedule(Time::ZERO + self.scenario.sample, Event::Sample);
        }
        for router in 0..self.routers.as_ref().map_or(0, |routers| routers.count()) {
            events.schedule(Time::ZERO, Event::Router(router));
        }
        for (index, connection) in self.connections.iter().enumerate() {
            events.schedule(connection.start, Event::Start(index as u32));
        }
    }
}

/// An event queue for the events that the links of a scenario can be expected to have.
fn events_for(scenario: &Scenario) -> Events {
    let full_packet = Bytes::new(1_500);
    let horizon = |link: &LinkModel| link.delay + link.rate.time_for(full_packet).min(LONGEST_TRANSMISSION);
    let horizon = scenario.links.iter().map(horizon).max().unwrap_or(Span::ZERO).min(LONGEST_HORIZON);
    // The fastest watched link carries most of the traffic, over some six links there and back.
    let busiest = scenario.links.iter().filter(|link| link.watched).map(|link| link.rate).max();
    let slowest = scenario.links.iter().map(|link| link.rate).min();
    let rate = busiest.or(slowest).unwrap_or(Rate::ZERO);
    let packets_per_second = rate.as_bit() as f64 / full_packet.bits() as f64;
    Events::new(scenario.links.len(), horizon, 6.0 * packets_per_second)
}

/// Of the links that decide how far ahead the event queue looks. Chosen: 1 s; slower ones are rare and have
/// few events.
const LONGEST_HORIZON: Span = Span::from_secs(1);
const LONGEST_TRANSMISSION: Span = Span::from_millis(100);

/// The table of routes under construction; equal paths share one entry.
#[derive(Default)]
struct Routes<'a> {
    table: Vec<u32>,
    known: BTreeMap<(&'a [LinkId], u32), u32>,
}

impl<'a> Routes<'a> {
    /// Where `path`, ended by `end`, begins in the table.
    fn insert(&mut self, path: &'a [LinkId], end: u32) -> u32 {
        *self.known.entry((path, end)).or_insert_with(|| {
            let begin = self.table.len() as u32;
            self.table.extend(path.iter().map(|link| link.0));
            self.table.push(end);
            begin
        })
    }
}
