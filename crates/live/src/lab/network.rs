//! The network of a scenario as the laboratory builds it: which nodes are hosts, and the routes of packets.
//!
//! Only the ends of flows are hosts with a kernel of their own. One engine runs everything between them, the
//! links with their queues, so a packet crosses between kernel and engine twice, whatever the number of
//! links; routers need no TCP.
//!
//! The kernel has one set of TCP parameters for each host, so flows at a node with different parameters have
//! separate hosts there. Links still belong to the node, not to hosts.
//!
//! A connection is identified by a port of its own at its source, [`FIRST_PORT`] plus its number, without a
//! lookup. Its sink listens at a port of the flow, because a listener has one TCP for all its connections.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use apportion_core::packet::FlowId;
use apportion_core::system::LinkQueue;
use apportion_core::units::Bytes;
use apportion_linux::host::Host;
use apportion_linux::port::Port;
use apportion_runtime::connections::{Numbers, Planned};
use apportion_runtime::flow_tables::FlowTables;
use apportion_scenario::model::{LinkId, NodeId, Scenario, Transport};

use super::driver::{Connection, End, MAX_CONNECTIONS};
use super::error::LabError;
use super::external::{External, ExternalQueue};
use super::tcp::{Setting, settings};
use crate::engine::Hop;
use crate::link::Link;
use crate::pace::Pace;
use apportion_runtime::link::LinkParts;

/// Port of the first connection's source; above the ports of sinks.
pub const FIRST_PORT: u16 = SINK_PORT + MAX_CONNECTIONS as u16;
/// Port of the first flow's sink. The ports below are the system's.
pub const SINK_PORT: u16 = 5_000;
/// Maximum of hosts. Chosen: each takes a namespace and two devices, some 10 ms to make.
pub const MAX_HOSTS: usize = 1_000;
/// MTU of interfaces for smaller packets.
const USUAL_MTU: Bytes = Bytes::new(1_500);

/// The route of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionRoute {
    /// The flow of the scenario.
    pub flow: u32,
    /// The number that disciplines see.
    pub id: FlowId,
    /// The source host, which is also the number of that host's port.
    pub source: u32,
    /// The sink host.
    pub sink: u32,
    /// Start of the route of its packets in the table of routes.
    pub forth: u32,
    /// Start of the route of its acknowledgements.
    pub back: u32,
}

/// Hosts and routes.
#[derive(Debug, Default)]
pub struct Network {
    /// The node of each host, and the settings of its namespace.
    hosts: Vec<(NodeId, Vec<Setting>)>,
    pub connections: Vec<ConnectionRoute>,
    /// The table of routes.
    pub routes: Vec<Hop>,
}

impl Network {
    /// The network of `scenario` with these connections.
    ///
    /// # Errors
    /// If there are more hosts or connections than the maximum.
    pub fn new(scenario: &Scenario, planned: &[Planned]) -> Result<Self, LabError> {
        if planned.len() > MAX_CONNECTIONS {
            return Err(LabError::TooMany {
                what: "connections",
                count: planned.len(),
                most: MAX_CONNECTIONS,
            });
        }
        if scenario.flows.len() > MAX_CONNECTIONS {
            let count = scenario.flows.len();
            return Err(LabError::TooMany { what: "flows", count, most: MAX_CONNECTIONS });
        }
        let mut network = Self::default();
        // By flow: the connections of a flow follow each other.
        let mut routes: Vec<Option<ConnectionRoute>> = vec![None; scenario.flows.len()];
        for connection in planned {
            let route = match routes[connection.flow as usize] {
                Some(route) => route,
                None => network.connection_route(scenario, connection),
            };
            routes[connection.flow as usize] = Some(route);
            network.connections.push(ConnectionRoute { id: connection.id, ..route });
        }
        if network.hosts.len() > MAX_HOSTS {
            return Err(LabError::TooMany { what: "hosts", count: network.hosts.len(), most: MAX_HOSTS });
        }
        Ok(network)
    }

    fn connection_route(&mut self, scenario: &Scenario, connection: &Planned) -> ConnectionRoute {
        let flow = &scenario.flows[connection.flow as usize];
        let (path, back) = (&flow.path, &flow.back);
        let link = |id: &LinkId| &scenario.links[id.index()];
        // A flow has a path of one link at least.
        let from = path.first().map_or(NodeId(0), |id| link(id).from);
        let to = path.last().map_or(NodeId(0), |id| link(id).to);
        let settings = match &flow.transport {
            // The settings of a single flow never conflict.
            Transport::Tcp(tcp) => settings(&[tcp]).unwrap_or_default(),
            Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => Vec::new(),
        };
        let (source, sink) = (self.host(from, &settings), self.host(to, &settings));
        let (forth, back) = (self.route(path, sink), self.route(back, source));
        ConnectionRoute { flow: connection.flow, id: connection.id, source, sink, forth, back }
    }

    fn host(&mut self, node: NodeId, settings: &[Setting]) -> u32 {
        let known = self.hosts.iter().position(|(of, known)| *of == node && known == settings);
        known.unwrap_or_else(|| {
            self.hosts.push((node, settings.to_vec()));
            self.hosts.len() - 1
        }) as u32
    }

    fn route(&mut self, path: &[LinkId], port: u32) -> u32 {
        let begin = self.routes.len() as u32;
        self.routes.extend(path.iter().map(|link| Hop::Link(link.0)));
        self.routes.push(Hop::Port(port));
        begin
    }

    /// The connections that the driver plays.
    #[must_use]
    pub fn connections(&self, scenario: &Scenario, planned: Vec<Planned>) -> Vec<Connection> {
        let connection = |(number, (planned, route)): (u16, (Planned, &ConnectionRoute))| {
            let end =
                |host: u32, port| End { host: host as usize, address: SocketAddr::new(address(host), port) };
            Connection {
                flow: planned.flow,
                source: end(route.source, FIRST_PORT + number),
                // There are no more flows than connections.
                sink: end(route.sink, SINK_PORT + planned.flow as u16),
                start: planned.start,
                stop: planned.stop,
                transport: scenario.flows[planned.flow as usize].transport.clone(),
                workload: planned.workload,
            }
        };
        (0..).zip(planned.into_iter().zip(&self.connections)).map(connection).collect()
    }

    /// Creates the hosts, and opens the ports of the engine, in the calling thread's namespace.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn make_hosts(&self, scenario: &Scenario) -> Result<(Vec<Host>, Vec<Port>), LabError> {
        let mtu = mtu(scenario);
        let (mut hosts, mut ports) = (Vec::new(), Vec::new());
        for number in 0..self.hosts.len() as u32 {
            let host = Host::create(&format!("host{number}"), &[address(number)], mtu)?;
            ports.push(Port::open(host.port)?);
            hosts.push(host);
        }
        Ok((hosts, ports))
    }
}

/// The address of a host: in 10.0.0.0/8, from 10.1.0.1 on.
#[must_use]
pub fn address(host: u32) -> IpAddr {
    // There are at most MAX_HOSTS.
    IpAddr::V4(Ipv4Addr::from_bits(u32::from_be_bytes([10, 1, 0, 1]) + host))
}

/// The MTU of hosts: the largest packet of any flow.
#[must_use]
pub fn mtu(scenario: &Scenario) -> Bytes {
    let largest = scenario.flows.iter().map(|flow| match &flow.transport {
        // Timestamps take 12 bytes more than the headers.
        Transport::Tcp(tcp) => tcp.segment + TCP_HEADER.max(tcp.header),
        other => other.packet(),
    });
    largest.fold(USUAL_MTU, Bytes::max)
}

/// IPv4 and TCP headers without options.
pub const TCP_HEADER: Bytes = Bytes::new(40);

/// The links of a scenario, idle. Links in `queues` have external queues, which are taken out of it.
#[must_use]
pub fn links(
    scenario: &Scenario,
    (tables, numbers): (&FlowTables, &Numbers),
    seed: u64,
    queues: &mut BTreeMap<LinkId, Box<dyn ExternalQueue>>,
) -> Vec<Link> {
    let mut link = |index| {
        let of: &apportion_scenario::model::Link = &scenario.links[index];
        let mut parts = LinkParts::of_scenario(scenario, index, tables, numbers, seed);
        if let Some(queue) = queues.remove(&LinkId(index as u32)) {
            parts.queue = LinkQueue::external(&of.queue, Box::new(External::new(queue)));
        }
        Link::new(parts, Pace::of(of), of.other_way.map(|other| other.0))
    };
    (0..scenario.links.len()).map(&mut link).collect()
}
