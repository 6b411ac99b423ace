//! Opens doors: a listening socket in the far namespace for each port that somebody knocks at.
//!
//! A namespace that takes every address for its own still needs a socket for each port (ip(7)); a socket for
//! all ports (`IP_TRANSPARENT` with a rule of the packet filter) needs modules that not every kernel has. So
//! the one who sees frames on their way there opens the socket before they arrive. One socket serves IPv4 and
//! IPv6: IPv4 addresses are mapped (RFC 4291 section 2.5.5.2, ipv6(7)), so a kernel without IPv6 cannot have
//! this.
//!
//! Cost: a look into a table for a SYN or a datagram, nothing for other frames; 27 us (the median, measured
//! on two busy cores) for the first of a port, for which other packets wait.

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
pub(super) type Door = (Transport, u16);

/// What listens at a door.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// What the proxy is told.
#[derive(Debug)]
pub(super) enum ListenerUpdate {
    Open(Door, Listener),
    Close(Door),
}

/// What was done about doors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListenerCounts {
    /// Doors opened.
    pub opened: u64,
    /// Doors closed for others, least recently used first.
    pub closed: u64,
    /// Knocks without a door: no descriptor left, or too many doors at once for the proxy.
    pub failed: u64,
}

/// Sees frames on their way to the far namespace, and opens doors there.
#[derive(Debug)]
pub struct ListenerGate {
    far: Namespace,
    /// The doors that are open, with the last knock at each.
    doors: BTreeMap<Door, Time>,
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
        Self { far, doors: BTreeMap::new(), most, updates, wake, counts: ListenerCounts::default() }
    }

    /// What was done so far.
    #[must_use]
    pub const fn counts(&self) -> ListenerCounts {
        self.counts
    }

    /// Sees that a door is open for this frame, which is on its way to the far namespace, if it needs one.
    pub fn see(&mut self, now: Time, parsed: &Parsed) {
        // Later fragments show no ports; the first one knocks for all.
        if parsed.fragment == Fragment::Later {
            return;
        }
        let Some(headers) = &parsed.headers else { return };
        let Some((_, port)) = headers.ports else { return };
        match headers.protocol {
            protocol::TCP if parsed.segment.is_some_and(Segment::is_syn) => {
                self.knock(now, (Transport::Tcp, port));
            }
            protocol::UDP => self.knock(now, (Transport::Udp, port)),
            _ => {}
        }
    }

    fn knock(&mut self, now: Time, door: Door) {
        if let Some(last) = self.doors.get_mut(&door) {
            *last = now;
            return;
        }
        // No socket has port 0.
        if door.1 == 0 {
            return;
        }
        if self.open(now, door).is_err() {
            self.counts.failed += 1;
        }
    }

    fn open(&mut self, now: Time, door: Door) -> io::Result<()> {
        if self.doors.len() >= self.most {
            self.close_the_least_used()?;
        }
        let listener = self.far.run(|| listener(door)).map_err(io::Error::other)??;
        self.tell(ListenerUpdate::Open(door, listener))?;
        self.doors.insert(door, now);
        self.counts.opened += 1;
        Ok(())
    }

    fn close_the_least_used(&mut self) -> io::Result<()> {
        let Some((&door, _)) = self.doors.iter().min_by_key(|(_, last)| **last) else { return Ok(()) };
        self.tell(ListenerUpdate::Close(door))?;
        self.doors.remove(&door);
        self.counts.closed += 1;
        Ok(())
    }

    /// The update may fail: the proxy has ended, or is as many doors behind as it may be.
    fn tell(&self, update: ListenerUpdate) -> io::Result<()> {
        self.updates.try_send(update).map_err(|_| io::Error::from(Errno::EAGAIN))?;
        self.wake.write(1)?;
        Ok(())
    }
}

/// What listens at `door`, for every address of the calling thread's namespace.
fn listener(door: Door) -> io::Result<Listener> {
    let here = (Ipv6Addr::UNSPECIFIED, door.1);
    match door.0 {
        Transport::Tcp => {
            let listener = TcpListener::bind(here)?;
            // As many as may come at once; the standard library asks for 128.
            listen(&listener, Backlog::MAXALLOWABLE)?;
            listener.set_nonblocking(true)?;
            Ok(Listener::Tcp(listener))
        }
        Transport::Udp => {
            let socket = UdpSocket::bind(here)?;
            setsockopt(&socket, Ipv6RecvPacketInfo, &true)?;
            // Without, an address that no device has cannot be the source of an IPv6 datagram.
            setsockopt(&socket, IpFreebind, &true)?;
            socket.set_nonblocking(true)?;
            Ok(Listener::Udp(socket))
        }
    }
}
