//! The sockets of a scenario, opened inside the namespaces of its hosts.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use apportion_linux::host::Host;
use apportion_runtime::connections::Workload;
use apportion_scenario::model::Transport;
use apportion_scenario::tcp::TcpParams;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, listen, setsockopt, socket,
    sockopt,
};

use super::connection::{Driven, TransportState};
use super::{Connection, Driver, DriverError, MAX_CONNECTIONS, Plan};
use crate::lab::tcp;

/// Descriptors for other uses: ports of the engine, namespaces, files.
const OTHERS: u64 = 1_024;
/// Receive buffer of a UDP sink in bytes, so that a driver that is late by some milliseconds loses no
/// datagrams; the system grants at most `net.core.rmem_max`.
const UDP_BUFFER: usize = 4 << 20;

/// A listener for TCP connections.
#[derive(Debug)]
pub(super) struct Listener {
    pub socket: TcpListener,
    /// Numbers of the connections, by their source addresses.
    pub expected: BTreeMap<SocketAddr, u32>,
}

/// See [`Driver::open`].
pub(super) fn open(hosts: &[Host], connections: Vec<Connection>, plan: Plan) -> Result<Driver, DriverError> {
    if connections.len() > MAX_CONNECTIONS {
        return Err(DriverError::TooMany(connections.len()));
    }
    check(hosts, &connections, plan)?;
    raise_limit(descriptors(&connections) + OTHERS)?;
    let mut opened: Vec<Sockets> = connections.iter().map(|_| Sockets::default()).collect();
    let mut listeners = BTreeMap::new();
    for (number, host) in hosts.iter().enumerate() {
        let here = || connections.iter().enumerate().filter(|(_, it)| it.is_at(number));
        let settings = tcp::settings(&here().filter_map(|(_, it)| it.params()).collect::<Vec<_>>())
            .map_err(|conflict| DriverError::Conflict { host: number, conflict })?;
        host.namespace.run(|| -> Result<(), DriverError> {
            tcp::configure_namespace(&settings)?;
            for (index, connection) in here() {
                open_at(number, index as u32, connection, &mut opened[index], &mut listeners)?;
            }
            Ok(())
        })??;
    }
    let driven = connections.into_iter().zip(opened);
    let connections =
        driven.map(|(connection, Sockets { source, sink })| driven_by(connection, source, sink));
    Ok(Driver { plan, connections: connections.collect(), listeners: listeners.into_values().collect() })
}

/// The sockets of a connection; a TCP sink gets its socket when the connection is accepted.
#[derive(Debug, Default)]
struct Sockets {
    source: Option<OwnedFd>,
    sink: Option<OwnedFd>,
}

impl Connection {
    fn is_at(&self, host: usize) -> bool {
        self.source.host == host || self.sink.host == host
    }

    fn params(&self) -> Option<&TcpParams> {
        match &self.transport {
            Transport::Tcp(params) => Some(params),
            Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => None,
        }
    }

    fn error(&self, what: &'static str, address: SocketAddr) -> impl Fn(Errno) -> DriverError + use<> {
        let flow = self.flow;
        move |error| DriverError::Socket { flow, what, address, error }
    }
}

fn check(hosts: &[Host], connections: &[Connection], plan: Plan) -> Result<(), DriverError> {
    for connection in connections {
        let Connection { flow, source, sink, transport, workload, .. } = connection;
        let wrong = if source.host >= hosts.len() || sink.host >= hosts.len() {
            "it has no host"
        } else if *flow as usize >= plan.flows {
            "there is no such flow"
        } else if source.address.is_ipv4() != sink.address.is_ipv4() {
            "one end has an address of IPv4 and the other one of IPv6"
        } else if matches!(
            (transport, workload),
            (Transport::Udp { .. }, Workload::Greedy | Workload::File(_))
        ) {
            "UDP has no feedback: it carries neither greedy sources nor files"
        } else if matches!(transport, Transport::Quic(_)) {
            "Linux has no QUIC"
        } else if matches!(transport, Transport::Stack(_)) {
            "a stack from outside runs in the simulator"
        } else {
            continue;
        };
        return Err(DriverError::Connection { flow: *flow, what: wrong });
    }
    Ok(())
}

/// Descriptors that are needed: two for each connection, and one for each listener.
fn descriptors(connections: &[Connection]) -> u64 {
    let tcp = connections.iter().filter(|connection| connection.params().is_some());
    let listeners: BTreeSet<_> =
        tcp.map(|connection| (connection.sink.host, connection.sink.address)).collect();
    (2 * connections.len() + listeners.len()) as u64
}

/// Raises the process's limit of descriptors to `needed`.
fn raise_limit(needed: u64) -> Result<(), DriverError> {
    let refused = |error: Errno| DriverError::Start(error.into());
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(refused)?;
    if hard < needed {
        return Err(DriverError::Descriptors { needed, limit: hard });
    }
    if soft < needed { setrlimit(Resource::RLIMIT_NOFILE, hard, hard).map_err(refused) } else { Ok(()) }
}

/// Opens the sockets of a connection at a host, in whose namespace the thread is.
fn open_at(
    host: usize,
    index: u32,
    connection: &Connection,
    opened: &mut Sockets,
    listeners: &mut BTreeMap<(usize, SocketAddr), Listener>,
) -> Result<(), DriverError> {
    let Connection { source, sink, .. } = connection;
    if let Some(params) = connection.params() {
        if source.host == host {
            opened.source = Some(bound(connection, source.address, SockType::Stream, Some(params))?);
        }
        if sink.host == host {
            let listener = match listeners.entry((host, sink.address)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => {
                    let socket = bound(connection, sink.address, SockType::Stream, Some(params))?;
                    listen(&socket, Backlog::MAXCONN).map_err(connection.error("listen at", sink.address))?;
                    entry.insert(Listener { socket: TcpListener::from(socket), expected: BTreeMap::new() })
                }
            };
            listener.expected.insert(source.address, index);
        }
        return Ok(());
    }
    for (end, other, place) in [(source, sink, &mut opened.source), (sink, source, &mut opened.sink)] {
        if end.host == host {
            let socket = bound(connection, end.address, SockType::Datagram, None)?;
            let to = SockaddrStorage::from(other.address);
            connect(socket.as_raw_fd(), &to).map_err(connection.error("send to", other.address))?;
            *place = Some(socket);
        }
    }
    Ok(())
}

/// A non-blocking socket at `address`.
fn bound(
    connection: &Connection,
    address: SocketAddr,
    kind: SockType,
    params: Option<&TcpParams>,
) -> Result<OwnedFd, DriverError> {
    let refused = |what| connection.error(what, address);
    let family = if address.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let fd = socket(family, kind, flags, None).map_err(refused("open a socket for"))?;
    // UDP sinks share their port, and closed connections keep theirs for a while.
    setsockopt(&fd, sockopt::ReuseAddr, &true).map_err(refused("share"))?;
    match params {
        Some(params) => tcp::configure_socket(fd.as_fd(), params)
            .map_err(|error| DriverError::Option { flow: connection.flow, error })?,
        None => setsockopt(&fd, sockopt::RcvBuf, &UDP_BUFFER).map_err(refused("get a buffer for"))?,
    }
    bind(fd.as_raw_fd(), &SockaddrStorage::from(address)).map_err(refused("bind"))?;
    Ok(fd)
}

fn driven_by(connection: Connection, source: Option<OwnedFd>, sink: Option<OwnedFd>) -> Driven {
    let Connection { flow, source: from, sink: to, start, stop, transport, workload } = connection;
    let transport = match transport {
        Transport::Tcp(params) => TransportState::Tcp(params),
        // QUIC was refused before.
        Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => {
            TransportState::udp(transport.packet(), from.address.is_ipv4())
        }
    };
    Driven::new(flow, (start, stop), transport, workload, to.address, (source, sink))
}
