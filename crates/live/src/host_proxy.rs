//! The host proxy: programs behind the emulated link reach the host's network and its loopback services.
//!
//! ```text
//! near namespace          here                far namespace               host's namespace
//! command ---- eth0 === link === eth0 ---- listening sockets
//!                                          proxy thread  -- unix socket -- helper process -- network
//! ```
//!
//! Source: ip(7), ipv6(7) and tcp(7); RFC 1122 section 4.2 for what each half of a connection is. The far
//! namespace takes every address for its own ("AnyIP": a local route to everywhere); [`ListenerGate`] opens a
//! listening socket there for each port that packets go to; the proxy carries bytes and datagrams between
//! those and sockets that the [`Helper`] opens in the host's namespace. So there is no device in the host's
//! namespace, no rule, and no right beyond the caller's.
//!
//! A connection is two: the emulated link lies in the first, whose sender on this side is the far namespace's
//! TCP. Each is read only as fast as the other takes bytes, so that the link's TCP feels the way behind it.
//!
//! What it cannot: ICMP (the far namespace answers itself, so `ping` measures the link alone), protocols
//! other than TCP and UDP, source addresses (the host's own), a refusal before the connection (it is
//! accepted, then reset), ICMP errors of an unreachable port for UDP. `docs/shell-outside.md` is the page for users.
//!
//! Cost: a thread, which copies each byte twice; a look into a table for each SYN and datagram that goes up.

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
/// Bytes that the far namespace's TCP takes before the link has taken those before them. Chosen: above what
/// one reading hands over, and not so much that the host's side runs seconds ahead of a slow link.
const UNSENT: &str = "131072";

/// Addresses on both sides.
#[derive(Clone, Copy, Debug)]
pub struct Addresses<'a> {
    /// The addresses of the near namespace. Those of other sources are dropped by the far one.
    pub near: &'a [IpAddr],
    /// Stand for the host's loopback address of the same kind, and at port 53 for its nameserver.
    pub gateway: &'a [IpAddr],
    /// Where the host asks for names.
    pub nameserver: Option<SocketAddr>,
}

/// Why a connection or datagram does not reach the host's network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The host's resolv.conf names no server.
    NoNameserver,
    /// The address is not one of a single other host.
    NotUnicast,
    /// The other end refused.
    Refused,
    /// There is no route to it.
    Unreachable,
    /// No answer came in time.
    TimedOut,
    /// There are as many connections as there may be.
    TooMany,
    /// The helper process does not answer.
    Helper,
    /// The system said something else.
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

    /// Its name in results.
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

    /// Of an error of a socket of the host's side.
    fn of_socket(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EPIPE | Errno::EAGAIN) | None => Self::Other,
            Some(errno) => Self::of(errno),
        }
    }
}

/// Up, which is out, and down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpDown {
    /// From the command to the host.
    pub up: u64,
    /// From the host to the command.
    pub down: u64,
}

/// What the proxy did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Connections that were made outside.
    pub connections: u64,
    /// Connections that one of the ends, or the way, broke off.
    pub broken_off: u64,
    /// Bytes of connections.
    pub bytes: UpDown,
    /// Pairs of a sender and a destination of datagrams.
    pub sessions: u64,
    /// Datagrams handed on.
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
    /// No descriptors.
    #[error("cannot open the path to the host's network: cannot {what}: {errno}")]
    System {
        /// The step that failed.
        what: &'static str,
        /// The error of the system call.
        errno: Errno,
    },
}

/// A running proxy. When dropped, it ends, with all connections.
#[derive(Debug)]
pub struct HostProxy {
    thread: Option<JoinHandle<()>>,
    shared: Arc<Shared>,
    wake: Arc<EventFd>,
}

/// What the proxy's thread shares with others.
#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    counts: Mutex<Counts>,
}

impl Shared {
    /// A panic of the other thread leaves numbers, which are good enough.
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HostProxy {
    /// Opens the proxy with `helper`, from `far`, which is the namespace of a [`apportion_linux::host::Host`]. The
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

    /// What was done so far; some milliseconds old at most.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.shared.counts()
    }

    /// Ends it, with all connections and the helper. What was done.
    #[must_use]
    pub fn close(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // A full counter has woken the thread already; the panic hook has reported a panic there.
        let _ = self.wake.write(1);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for HostProxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// The limit of listeners, connections and sessions, each: a listener and a session take one descriptor, a connection two.
fn max_entries() -> Result<usize, Errno> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE)?;
    Ok((soft.saturating_sub(SPARE) / 4).clamp(1, MAX_ENTRIES) as usize)
}

/// Makes the calling thread's namespace take each address for its own, but those of the near side.
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

    /// A socket to what stands outside for the destination `to`.
    fn open(&mut self, transport: Transport, to: SocketAddr) -> Result<OwnedFd, Refusal> {
        let opened = stands_for(to, &self.gateway, self.nameserver)
            .and_then(|to| self.helper.open(transport, to).map_err(Refusal::of));
        opened.inspect_err(|&refusal| self.refuse(refusal))
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.counts.refused[refusal as usize] += 1;
    }
}

/// Where outside a destination of the inside is.
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
            // An address of a link says nothing about which.
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
        // As a socket for both kinds shows it.
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
