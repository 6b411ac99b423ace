//! Opens a listening socket in the far namespace for each port that packets go to, before they arrive.
//!
//! A namespace that takes every address for its own still needs a socket for each port (ip(7)); a socket for
//! all ports (`IP_TRANSPARENT` with a rule of the packet filter) needs modules that not every kernel has. The
//! gate sees frames on their way there, and opens the socket before they arrive. One socket serves IPv4 and
//! IPv6: IPv4 addresses are mapped (RFC 4291 section 2.5.5.2, ipv6(7)), so a kernel without IPv6 has no
//! proxy.
//!
//! Cost: a table lookup for a SYN or a datagram, nothing for other frames; 27 us (the median, measured on two
//! busy cores) for the first packet of a port, during which other packets wait.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use apportion_core::units::Time;
use apportion_linux::namespace::Namespace;
use apportion_linux::socket_helper::Transport;
use nix::errno::Errno;
use nix::sys::eventfd::EventFd;
use nix::sys::socket::sockopt::{IpFreebind, Ipv6RecvPacketInfo};
use nix::sys::socket::{Backlog, listen, setsockopt};

use crate::frame::{Fragment, Parsed, Segment, protocol};

/// A port of a protocol.
pub(super) type ListenPort = (Transport, u16);

/// A listening socket.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Updates for the proxy.
#[derive(Debug)]
pub(super) enum ListenerUpdate {
    Open(ListenPort, Listener),
    Close(ListenPort),
}

/// Listeners opened and closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerCounts {
    /// Listeners opened.
    pub opened: u64,
    /// Listeners closed to make room, least recently used first.
    pub closed: u64,
    /// Packets for which no listener could be opened: no descriptor was free, or the proxy was too far
    /// behind.
    pub failed: u64,
}

/// Sees frames on their way to the far namespace, and opens listeners there.
#[derive(Debug)]
pub struct ListenerGate {
    far: Namespace,
    /// The open ports, with the time of the last packet to each.
    ports: BTreeMap<ListenPort, Time>,
    most: usize,
    updates: SyncSender<ListenerUpdate>,
    wake: Arc<EventFd>,
    counts: ListenerCounts,
}

impl ListenerGate {
    pub(super) fn new(
        far: Namespace,
        most: usize,
        updates: SyncSender<ListenerUpdate>,
        wake: Arc<EventFd>,
    ) -> Self {
        Self { far, ports: BTreeMap::new(), most, updates, wake, counts: ListenerCounts::default() }
    }

    /// The counters.
    #[must_use]
    pub const fn counts(&self) -> ListenerCounts {
        self.counts
    }

    /// Opens a listener for this frame, which is on its way to the far namespace, unless there is one.
    pub fn see(&mut self, now: Time, parsed: &Parsed) {
        // Later fragments show no ports; the first one opens the listener for all.
        if parsed.fragment == Fragment::Later {
            return;
        }
        let Some(headers) = &parsed.headers else { return };
        let Some((_, port)) = headers.ports else { return };
        match headers.protocol {
            protocol::TCP if parsed.segment.is_some_and(Segment::is_syn) => {
                self.touch(now, (Transport::Tcp, port));
            }
            protocol::UDP => self.touch(now, (Transport::Udp, port)),
            _ => {}
        }
    }

    fn touch(&mut self, now: Time, port: ListenPort) {
        if let Some(last) = self.ports.get_mut(&port) {
            *last = now;
            return;
        }
        // No socket has port 0.
        if port.1 == 0 {
            return;
        }
        if self.open(now, port).is_err() {
            self.counts.failed += 1;
        }
    }

    fn open(&mut self, now: Time, port: ListenPort) -> io::Result<()> {
        if self.ports.len() >= self.most {
            self.close_the_least_used()?;
        }
        let listener = self.far.run(|| listener(port)).map_err(io::Error::other)??;
        self.send(ListenerUpdate::Open(port, listener))?;
        self.ports.insert(port, now);
        self.counts.opened += 1;
        Ok(())
    }

    fn close_the_least_used(&mut self) -> io::Result<()> {
        let Some((&port, _)) = self.ports.iter().min_by_key(|(_, last)| **last) else { return Ok(()) };
        self.send(ListenerUpdate::Close(port))?;
        self.ports.remove(&port);
        self.counts.closed += 1;
        Ok(())
    }

    /// May fail: the proxy has ended, or has as many updates waiting as allowed.
    fn send(&self, update: ListenerUpdate) -> io::Result<()> {
        self.updates.try_send(update).map_err(|_| io::Error::from(Errno::EAGAIN))?;
        self.wake.write(1)?;
        Ok(())
    }
}

/// Opens a listener at `port`, for every address of the calling thread's namespace.
fn listener(port: ListenPort) -> io::Result<Listener> {
    let here = (Ipv6Addr::UNSPECIFIED, port.1);
    match port.0 {
        Transport::Tcp => {
            let listener = TcpListener::bind(here)?;
            // The maximum; the standard library sets 128.
            listen(&listener, Backlog::MAXALLOWABLE)?;
            listener.set_nonblocking(true)?;
            Ok(Listener::Tcp(listener))
        }
        Transport::Udp => {
            let socket = UdpSocket::bind(here)?;
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
            // Otherwise an address of no device cannot be the source of an IPv6 datagram.
            setsockopt(&socket, IpFreebind, &true)?;
            socket.set_nonblocking(true)?;
            Ok(Listener::Udp(socket))
        }
    }
}
