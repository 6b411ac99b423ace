//! The host proxy: programs behind the emulated link reach the host's network and its loopback services.
//!
//! ```text
//! near namespace          here                far namespace               host's namespace
//! command ---- eth0 === link === eth0 ---- listening sockets
//!                                          proxy thread  -- unix socket -- helper process -- network
//! ```
//!
//! Source: ip(7), ipv6(7) and tcp(7); RFC 1122 section 4.2 for the halves of a connection. The far namespace
//! takes every address for its own ("AnyIP": a local route to everywhere). [`ListenerGate`] opens a listening
//! socket there for each destination port. The proxy carries bytes and datagrams between those sockets and
//! sockets that the [`Helper`] opens in the host's namespace. The proxy thus needs no device and no rule in
//! the host's namespace, and no rights beyond the caller's.
//!
//! The proxy splits each connection in two: the emulated link lies in the first, whose sender on this side is
//! the far namespace's TCP. The proxy reads each half only as fast as the other half takes bytes, so that
//! backpressure from the network behind reaches the TCP on the link.
//!
//! Limits: only TCP and UDP cross; the far namespace answers ICMP itself, so `ping` measures the link alone.
//! Packets outside have the host's source address. A refused connection is accepted first, then reset.
//! Unreachable UDP ports cause no ICMP errors. `docs/shell-outside.md` is the page for users.
//!
//! Cost: a thread, which copies each byte twice; a table lookup for each SYN and datagram that goes up.

mod dns;
mod listener_gate;
mod proxy;
mod tcp;
mod udp;

pub use dns::{ResolvConfError, bind_resolv_conf, host_nameserver};
pub use listener_gate::{ListenerCounts, ListenerGate};

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use apportion_linux::host::INTERFACE;
use apportion_linux::namespace::{Namespace, NamespaceError, SysctlError, set_sysctl};
use apportion_linux::netlink::{Netlink, NetlinkError, Route, Table};
use apportion_linux::socket_helper::{Helper, Transport};
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::resource::{Resource, getrlimit};

use proxy::Proxy;

/// Maximum of listeners, connections and sessions, each; fewer where the system gives few descriptors.
const MAX_ENTRIES: u64 = 4_096;
/// Descriptors left to the rest of the process.
const SPARE: u64 = 128;
/// Maximum of updates of listeners that the proxy has not handled yet.
const MAX_UPDATES: usize = 256;
/// Bytes unsent in the far namespace's TCP up to which it takes more (`TCP_NOTSENT_LOWAT`). Chosen: above the
/// bytes of one read, and little enough that the host's side does not run seconds ahead of a slow link.
const UNSENT: &str = "131072";

/// Addresses on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Addresses<'a> {
    /// The addresses of the near namespace. The far one drops packets with other sources.
    pub near: &'a [IpAddr],
    /// Addresses that stand for the host's loopback address of the same family, and at port 53 for its
    /// nameserver.
    pub gateway: &'a [IpAddr],
    /// The host's nameserver.
    pub nameserver: Option<SocketAddr>,
}

/// Why a connection or datagram does not reach the host's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The host's resolv.conf names no server.
    NoNameserver,
    /// The address is not that of a single other host.
    NotUnicast,
    /// The other end refused.
    Refused,
    /// No route leads to the address.
    Unreachable,
    /// No answer came in time.
    TimedOut,
    /// The maximum of connections is reached.
    TooMany,
    /// The helper process does not answer.
    Helper,
    /// Another error of the system.
    Other,
}

impl Refusal {
    /// Every reason, in the order in which results list them.
    pub const ALL: [Self; 8] = [
        Self::NoNameserver,
        Self::NotUnicast,
        Self::Refused,
        Self::Unreachable,
        Self::TimedOut,
        Self::TooMany,
        Self::Helper,
        Self::Other,
    ];

    /// The reason's name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoNameserver => "no_nameserver",
            Self::NotUnicast => "not_unicast",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::TooMany => "too_many",
            Self::Helper => "helper",
            Self::Other => "other",
        }
    }

    const fn of(errno: Errno) -> Self {
        match errno {
            Errno::ECONNREFUSED => Self::Refused,
            Errno::ENETUNREACH | Errno::EHOSTUNREACH | Errno::EADDRNOTAVAIL | Errno::EAFNOSUPPORT => {
                Self::Unreachable
            }
            Errno::ETIMEDOUT => Self::TimedOut,
            Errno::EPIPE | Errno::EAGAIN => Self::Helper,
            _ => Self::Other,
        }
    }

    /// The reason for an error of a socket on the host's side.
    fn of_socket(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPIPE | Errno::EAGAIN) | None => Self::Other,
            Some(errno) => Self::of(errno),
        }
    }
}

/// Counts by direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpDown {
    /// Bytes from the command to the host.
    pub up: u64,
    /// Bytes from the host to the command.
    pub down: u64,
}

/// Counters of the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections opened outside.
    pub connections: u64,
    /// Connections that one of the ends, or the network, broke off.
    pub broken_off: u64,
    /// Bytes of connections.
    pub bytes: UpDown,
    /// Sessions: pairs of a sender and a destination of datagrams.
    pub sessions: u64,
    /// Datagrams forwarded.
    pub datagrams: UpDown,
    /// Datagrams that the system did not take.
    pub datagrams_lost: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Counts {
    /// Connections and datagrams that did not get outside, by reason.
    pub fn refused(&self) -> impl Iterator<Item = (Refusal, u64)> {
        Refusal::ALL.into_iter().zip(self.refused)
    }
}

/// Why the proxy cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum HostProxyError {
    /// The far namespace cannot be entered.
    #[error("cannot open the path to the host's network: {0}")]
    Namespace(#[from] NamespaceError),
    /// The far namespace cannot take all addresses.
    #[error("cannot open the path to the host's network: {0}")]
    Netlink(#[from] NetlinkError),
    /// The far namespace cannot be set up.
    #[error("cannot open the path to the host's network: {0}")]
    Sysctl(#[from] SysctlError),
    /// Descriptors are missing.
    #[error("cannot open the path to the host's network: cannot {what}: {errno}")]
    System {
        /// The step that failed.
        what: &'static str,
        /// The error of the system call.
        errno: Errno,
    },
}

/// A running proxy. Dropping it ends the proxy and all its connections.
#[derive(Debug)]
pub struct HostProxy {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    wake: Arc<EventFd>,
}

/// State that the proxy's thread shares with others.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    counts: Mutex<Counts>,
}

impl Shared {
    /// After a panic of the other thread the counters are still good enough.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostProxy {
    /// Opens the proxy with `helper`, from `far`, the namespace of a [`apportion_linux::host::Host`]. The
    /// gate must see each frame that goes there ([`crate::bridge::Bridge::set_listener_gate`]).
    ///
    /// # Errors
    /// [`HostProxyError`]: rights or descriptors are missing, or the kernel has no IPv6.
    pub fn open(
        helper: Helper,
        far: &Namespace,
        addresses: &Addresses<'_>,
    ) -> Result<(Self, ListenerGate), HostProxyError> {
        let failed = |what| move |errno| HostProxyError::System { what, errno };
        far.run(|| take_all_addresses(addresses.near))??;
        let most = max_entries().map_err(failed("read the limit of descriptors"))?;
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let wake = Arc::new(EventFd::from_flags(flags).map_err(failed("make an event descriptor"))?);
        let (updates, received) = sync_channel(MAX_UPDATES);
        let listener_gate = ListenerGate::new(far.try_clone()?, most, updates, Arc::clone(&wake));
        let shared = Arc::new(Shared::default());
        let connector = Connector::new(helper, addresses);
        let proxy = Proxy::new(connector, most, received, Arc::clone(&wake), Arc::clone(&shared))
            .map_err(failed("watch descriptors"))?;
        let thread = Some(far.spawn("outside", move || proxy.run())?);
        Ok((Self { thread, shared, wake }, listener_gate))
    }

    /// The counters, at most some milliseconds old.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.shared.counts()
    }

    /// Ends the proxy, with all connections and the helper, and returns the counters.
    #[must_use]
    pub fn close(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // A full counter means that the thread is awake already; the panic hook has reported any panic there.
        let _ = self.wake.write(1);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for HostProxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// The limit of listeners, connections and sessions, each. A listener and a session take one descriptor, a
/// connection two.
fn max_entries() -> Result<usize, Errno> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok((soft.saturating_sub(SPARE) / 4).clamp(1, MAX_ENTRIES) as usize)
}

/// Makes the calling thread's namespace take every address except those of the near side for its own.
fn take_all_addresses(near: &[IpAddr]) -> Result<(), HostProxyError> {
    let mut netlink = Netlink::open()?;
    let (loopback, device) = (netlink.index_of("lo")?, netlink.index_of(INTERFACE)?);
    for any in [IpAddr::from(Ipv4Addr::UNSPECIFIED), Ipv6Addr::UNSPECIFIED.into()] {
        if near.iter().any(|address| address.is_ipv4() == any.is_ipv4()) {
            netlink.add_local_route(any, 0, loopback)?;
        }
    }
    for &destination in near {
        let length = if destination.is_ipv4() { 32 } else { 128 };
        netlink.add_route(&Route { destination, length, device, gateway: None, table: Table::Local })?;
    }
    Ok(set_sysctl("net/ipv4/tcp_notsent_lowat", UNSENT)?)
}

/// Opens sockets on the host's side.
#[derive(Debug)]
struct Connector {
    helper: Helper,
    gateway: Vec<IpAddr>,
    nameserver: Option<SocketAddr>,
    counts: Counts,
}

impl Connector {
    fn new(helper: Helper, addresses: &Addresses<'_>) -> Self {
        let Addresses { gateway, nameserver, .. } = *addresses;
        Self { helper, gateway: gateway.to_vec(), nameserver, counts: Counts::default() }
    }

    /// A socket to the address outside for which the destination `to` stands.
    fn open(&mut self, transport: Transport, to: SocketAddr) -> Result<OwnedFd, Refusal> {
        let opened = stands_for(to, &self.gateway, self.nameserver)
            .and_then(|to| self.helper.open(transport, to).map_err(Refusal::of));
        opened.inspect_err(|&refusal| self.refuse(refusal))
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.counts.refused[refusal as usize] += 1;
    }
}

/// The address outside for which a destination inside stands.
fn stands_for(
    to: SocketAddr,
    gateway: &[IpAddr],
    nameserver: Option<SocketAddr>,
) -> Result<SocketAddr, Refusal> {
    let address = to.ip().to_canonical();
    if gateway.contains(&address) {
        let loopback =
            if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        return match to.port() {
            dns::PORT => nameserver.ok_or(Refusal::NoNameserver),
            port => Ok(SocketAddr::new(loopback, port)),
        };
    }
    let is_of_one_host = !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && match address {
            IpAddr::V4(address) => !address.is_broadcast(),
            // A link-local address does not say on which link.
            IpAddr::V6(address) => !address.is_unicast_link_local(),
        };
    if is_of_one_host { Ok(SocketAddr::new(address, to.port())) } else { Err(Refusal::NotUnicast) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gateway_is_the_hosts_loopback_and_its_nameserver() {
        let gateway = ["100.64.0.1".parse().unwrap(), "fd00::1".parse().unwrap()];
        let server = "127.0.0.53:53".parse().unwrap();
        let of = |to: &str| stands_for(to.parse().unwrap(), &gateway, Some(server)).map(|to| to.to_string());
        assert_eq!(of("100.64.0.1:80"), Ok("127.0.0.1:80".into()));
        // The form in which a socket for both families shows the address.
        assert_eq!(of("[::ffff:100.64.0.1]:80"), Ok("127.0.0.1:80".into()));
        assert_eq!(of("[fd00::1]:80"), Ok("[::1]:80".into()));
        assert_eq!(of("100.64.0.1:53"), Ok("127.0.0.53:53".into()));
        assert_eq!(of("[fd00::1]:53"), Ok("127.0.0.53:53".into()));
        assert_eq!(of("198.51.100.7:53"), Ok("198.51.100.7:53".into()));
        assert_eq!(of("[::ffff:198.51.100.7]:443"), Ok("198.51.100.7:443".into()));
        for bad in ["127.0.0.1:80", "0.0.0.0:80", "255.255.255.255:67", "224.0.0.251:5353", "[fe80::1]:80"] {
            assert_eq!(of(bad), Err(Refusal::NotUnicast), "{bad}");
        }
        let none = stands_for("100.64.0.1:53".parse().unwrap(), &gateway, None);
        assert_eq!(none, Err(Refusal::NoNameserver));
    }

    #[test]
    fn reasons_are_counted_under_their_names() {
        for (at, reason) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at, "{}", reason.name());
        }
    }
}
