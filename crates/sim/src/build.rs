//! A simulation from a scenario: routes, links, connections and the first events.

use std::collections::BTreeMap;

use apportion_core::packet::{FlowId, Protocol};
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_runtime::connections::{Planned, connections};
use apportion_runtime::flow_tables::FlowTables;
use apportion_runtime::link::LinkParts;
use apportion_runtime::marks::marks;
use apportion_runtime::probe::{FlowCounts, FlowProbe};
use apportion_runtime::ways::Ways;
use apportion_scenario::model::{Flow, Link as LinkModel, LinkId, Scenario, Transport};
use apportion_scenario::tcp::SackRecovery;

use crate::aggregation::Aggregation;
use crate::capture::LinkCapture;
use crate::connection::{Connection, Quics, Stacks, Tcps, TransportState};
use crate::events::{Event, Events, MAX_INDEX, MAX_TIME};
use crate::hosts::Hosts;
use crate::link::Link;
use crate::pending_notices::PendingNotices;
use crate::router::Routers;
use crate::shared_state::SharedState;
use crate::simulation::{SINK, SOURCE, Simulation};
use crate::web_flow::web_flows;

/// The maximum number of flows for which delay distributions and time series are recorded per flow.
pub const DETAILED_FLOWS_MAX: usize = 2_000;

/// The extent of measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Counters only.
    Counts,
    /// Distributions and time series of watched links, and of flows up to [`DETAILED_FLOWS_MAX`].
    Full,
}

/// The reason why a scenario cannot be simulated.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The simulator numbers connections, links, changes and the places of links on routes in 28 bits.
    #[error("the scenario has {count} {what}; at most {MAX_INDEX} can be simulated")]
    TooMany {
        /// Connections, links, changes or places.
        what: &'static str,
        /// Their number.
        count: usize,
    },
    /// Simulated time is held in 56 bits of nanoseconds.
    #[error("stop: {0} is later than the simulator can count; at most {MAX_TIME}")]
    TooLong(Time),
    /// A congestion control that needs records which the kind of recovery does not keep.
    #[error(
        "flow `{flow}`: the simulator has `{algorithm}` with `sack_recovery = \"rack\"` only, as in the profile \"linux\""
    )]
    NeedsRack {
        /// The flow that has it.
        flow: String,
        /// The congestion control.
        algorithm: &'static str,
    },
}

/// Refuses settings that the simulator's TCP does not support.
fn check_tcp(scenario: &Scenario) -> Result<(), BuildError> {
    for flow in &scenario.flows {
        let Transport::Tcp(params) = &flow.transport else { continue };
        let (flow, algorithm) = (flow.name.clone(), params.algorithm.entry());
        if algorithm.needs_rack && params.sack_recovery != SackRecovery::Rack {
            return Err(BuildError::NeedsRack { flow, algorithm: algorithm.name });
        }
    }
    Ok(())
}

impl<'a> Simulation<'a> {
    /// A simulation at time zero. `captures` gives the writer of a link's capture by the link's index.
    ///
    /// # Errors
    /// If the scenario exceeds the simulator's numbering, or uses a feature that the simulator does not have.
    pub fn new(
        scenario: &'a Scenario,
        seed: u64,
        detail: Detail,
        captures: &mut dyn FnMut(usize) -> Option<Box<LinkCapture>>,
    ) -> Result<Self, BuildError> {
        check_tcp(scenario)?;
        let full = detail == Detail::Full;
        let (planned, numbers) = connections(scenario, seed);
        let mut simulation = Self {
            scenario,
            seed,
            links: Vec::with_capacity(scenario.links.len()),
            shared: SharedState::new(Events::new(0, Span::ZERO, 0.0)),
            routes: Vec::new(),
            connections: Vec::with_capacity(planned.len()),
            tcps: Tcps::default(),
            quics: Quics::default(),
            stacks: Stacks::default(),
            failures: BTreeMap::new(),
            ids_are_shared: numbers.are_shared(),
            tables: FlowTables::new(scenario, &numbers, seed),
            probes: Vec::new(),
            marks: marks(scenario, &planned, &numbers, seed),
            numbers,
            protocols: Vec::new(),
            routers: None,
            completions: Vec::new(),
            earlier: Vec::new(),
            webs: Vec::new(),
            baseline: None,
            notices: PendingNotices::default(),
            hosts: Hosts::default(),
            hosts_are_plain: false,
            answers_in_place: false,
            may_block: scenario
                .flows
                .iter()
                .any(|flow| matches!(&flow.transport, Transport::Tcp(tcp) if tcp.send_buffer.is_some())),
            prefetches: false,
            outbox: Vec::new(),
            next_sample: None,
            next_count: Time::ZERO,
            end: scenario.stop,
            events_handled: 0,
        };
        let ways = Ways::new(scenario, &simulation.numbers, seed);
        simulation.add_connections(planned, &ways);
        simulation.webs = web_flows(scenario, &simulation.numbers, seed);
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
        simulation.protocols = simulation.protocols();
        // The last flow is for messages between routers.
        let messages = FlowId(simulation.numbers.id_count() as u32);
        simulation.shared.counters = FlowCounts::new(simulation.numbers.id_count() + 1);
        simulation.routers = Routers::new(scenario, seed, messages, &mut simulation.routes);
        simulation.hosts = Hosts::new(scenario, &ways.all, seed, simulation.routers.is_some());
        simulation.find_plain_hosts();
        simulation.prefetches = simulation.has_many_connections();
        if full && scenario.flows.len() <= DETAILED_FLOWS_MAX {
            simulation.watch_flows();
        }
        for index in 0..scenario.links.len() {
            let (tables, numbers) = (&simulation.tables, &simulation.numbers);
            let parts = LinkParts::of_scenario(scenario, index, tables, numbers, seed);
            let capture = captures(index);
            let parts = LinkParts { watched: full && parts.watched, captured: capture.is_some(), ..parts };
            let mut link = Link::new(parts);
            scenario.links[index].trace.clone().into_iter().for_each(|trace| link.set_trace(trace));
            if let Some(aggregate) = scenario.links[index].aggregate {
                let random = Stream::new(seed, &format!("link.{}.retry", scenario.links[index].name));
                link.aggregate(Aggregation::new(aggregate, random));
            }
            simulation.links.push(link);
            simulation.shared.captures.push(capture);
        }
        simulation.find_fast_paths(&ways.all);
        let delivers_early = simulation.links.iter().any(|link| link.answers().is_some());
        simulation.shared.events = events_for(scenario, delivers_early);
        simulation.schedule_first_events(full);
        Ok(simulation)
    }

    fn watch_flows(&mut self) {
        self.probes.resize_with(self.scenario.flows.len(), FlowProbe::default);
        self.shared.flow_of_id = self.numbers.flows_by_id();
    }

    fn add_connections(&mut self, planned: Vec<Planned>, ways: &Ways) {
        let mut routes = Routes::default();
        // In the scenario's order, also for flows without connections.
        let routes_of: Vec<(u32, u32)> = ways
            .all
            .iter()
            .map(|way| (routes.insert(&way.path, SINK), routes.insert(&way.back, SOURCE)))
            .collect();
        let planned = planned.into_iter().zip(&ways.of_connection);
        self.connections.extend(planned.map(|(Planned { flow, id, start, workload, .. }, &way)| {
            let (route, back) = routes_of[way as usize];
            let transport = TransportState::new(&self.scenario.flows[flow as usize]);
            Connection { flow, id, route, back, start, workload, transport, armed: Time::MAX }
        }));
        self.routes = routes.table;
    }

    /// The protocol fields of packets, by id; empty if each field names the real transport.
    fn protocols(&self) -> Vec<Protocol> {
        let honest = |flow: &Flow| match flow.transport {
            Transport::Tcp(_) => flow.protocol == Protocol::Tcp,
            Transport::Stack(ref params) => flow.protocol == params.stack().protocol(),
            Transport::Quic(_) | Transport::Udp { .. } => flow.protocol == Protocol::Udp,
        };
        if self.scenario.flows.iter().all(honest) {
            Vec::new()
        } else {
            self.numbers.by_id(self.scenario, |flow| flow.protocol)
        }
    }

    fn schedule_first_events(&mut self, full: bool) {
        if full && self.scenario.sample > Span::ZERO {
            self.next_sample = Some(Time::ZERO + self.scenario.sample);
        }
        self.find_next_count();
        let events = &mut self.shared.events;
        // Changes come first, so that a change at the start of the run precedes the first packet.
        for (index, change) in self.scenario.changes.iter().enumerate() {
            events.schedule(Time::ZERO, change.at, Event::Change(index as u32));
        }
        if self.scenario.measure_from > Time::ZERO {
            events.schedule(Time::ZERO, self.scenario.measure_from, Event::Measure);
        }
        if let Some(at) = self.next_sample {
            events.schedule(Time::ZERO, at, Event::Sample);
        }
        for router in 0..self.routers.as_ref().map_or(0, |routers| routers.count()) {
            events.schedule(Time::ZERO, Time::ZERO, Event::Router(router));
        }
        for (index, connection) in self.connections.iter().enumerate() {
            events.schedule(Time::ZERO, connection.start, Event::Start(index as u32));
        }
    }
}

/// An event queue for the expected events of a scenario's links, with or without [early](crate::fast_path)
/// deliveries to hosts.
fn events_for(scenario: &Scenario, delivers_early: bool) -> Events {
    let full_packet = Bytes::new(1_500);
    let horizon = |link: &LinkModel| link.delay + link.rate.time_for(full_packet).min(MAX_TRANSMISSION);
    let horizon = scenario.links.iter().map(horizon).max().unwrap_or(Span::ZERO).min(MAX_HORIZON);
    // The acknowledgement of an early delivery begins its way before the data end theirs.
    let horizon = if delivers_early { horizon * 2 } else { horizon };
    // The fastest watched link carries most of the traffic, over some six links in both directions.
    let busiest = scenario.links.iter().filter(|link| link.watched).map(|link| link.rate).max();
    let slowest = scenario.links.iter().map(|link| link.rate).min();
    let rate = busiest.or(slowest).unwrap_or(Rate::ZERO);
    let packets_per_second = rate.as_bit() as f64 / full_packet.bits() as f64;
    Events::new(scenario.links.len(), horizon, 6.0 * packets_per_second)
}

/// The maximum horizon from a link in the event queue. Chosen: 1 s; slower links are rare and have few
/// events.
const MAX_HORIZON: Span = Span::from_secs(1);
const MAX_TRANSMISSION: Span = Span::from_millis(100);

/// The table of routes under construction; equal paths share one entry.
#[derive(Default)]
struct Routes<'a> {
    table: Vec<u32>,
    known: BTreeMap<(&'a [LinkId], u32), u32>,
}

impl<'a> Routes<'a> {
    /// The place in the table at which `path`, ended by `end`, begins.
    fn insert(&mut self, path: &'a [LinkId], end: u32) -> u32 {
        *self.known.entry((path, end)).or_insert_with(|| {
            let begin = self.table.len() as u32;
            self.table.extend(path.iter().map(|link| link.0));
            self.table.push(end);
            begin
        })
    }
}
