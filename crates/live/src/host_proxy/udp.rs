//! Datagrams: a session for each sender and destination, which is forgotten when it is silent.
//!
//! Source: udp(7), ipv6(7): `IPV6_RECVPKTINFO` gives the destination of a datagram, and `IPV6_PKTINFO` makes
//! it the source of the answers. A session ends after 30 s of silence, the shortest time of address
//! translators. RFC 4787 REQ-5 requires more of those on the Internet; here a sender that comes back gets a
//! new session. An unreachable port outside is counted and not reported back. A full table gives up its most
//! silent session.

use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use apportion_core::units::{Span, Time};
use apportion_linux::socket_helper::Transport;
use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn6, recvmsg, sendmsg};

use super::proxy::{Watch, Watched};
use super::{Connector, Refusal, dns};

/// Bytes of the buffer for a datagram, above the longest one.
const BUFFER: usize = 1 << 16;
/// Maximum of datagrams of a socket before others get their turn.
const TURN: usize = 64;
/// The silence after which a session is forgotten.
const SILENCE: Span = Span::from_secs(30);
/// Interval of searches for silent sessions.
const SWEEP: Span = Span::from_secs(1);

/// Sender and destination; IPv4 addresses are mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ends {
    /// The destination port, which is that of a listener.
    port: u16,
    destination: Ipv6Addr,
    sender: SocketAddrV6,
}

#[derive(Debug)]
struct Session {
    ends: Ends,
    socket: UdpSocket,
    last_seen: Time,
}

/// All sessions, and the sockets that receive datagrams.
#[derive(Debug)]
pub(super) struct Udp {
    listeners: BTreeMap<u16, UdpSocket>,
    sessions: BTreeMap<u64, Session>,
    numbers: BTreeMap<Ends, u64>,
    most: usize,
    next: u64,
    swept: Time,
    scratch: Vec<u8>,
}

impl Udp {
    pub(super) fn new(most: usize) -> Self {
        Self {
            listeners: BTreeMap::new(),
            sessions: BTreeMap::new(),
            numbers: BTreeMap::new(),
            most,
            next: 0,
            swept: Time::ZERO,
            scratch: vec![0; BUFFER],
        }
    }

    /// Whether there are no sessions.
    pub(super) fn is_idle(&self) -> bool {
        self.sessions.is_empty()
    }

    pub(super) fn open(&mut self, port: u16, socket: UdpSocket) {
        self.listeners.insert(port, socket);
    }

    /// Closes a listener and its sessions.
    pub(super) fn close(&mut self, port: u16) {
        self.listeners.remove(&port);
        self.sessions.retain(|_, session| session.ends.port != port);
        self.numbers.retain(|ends, _| ends.port != port);
    }

    /// Forwards datagrams of a listener to the host's side. Returns whether there may be more.
    pub(super) fn carry_up(
        &mut self,
        now: Time,
        port: u16,
        connector: &mut Connector,
        watch: &Watch,
    ) -> bool {
        for _ in 0..TURN {
            let Some(listener) = self.listeners.get(&port) else { return false };
            match receive(listener, port, &mut self.scratch) {
                Ok(Some((ends, length))) => self.send_up(now, ends, length, connector, watch),
                // The datagram's destination is unknown.
                Ok(None) => connector.counts.datagrams_lost += 1,
                Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn send_up(&mut self, now: Time, ends: Ends, length: usize, connector: &mut Connector, watch: &Watch) {
        let number = match self.numbers.get(&ends) {
            Some(&number) => number,
            None => match self.begin(now, ends, connector, watch) {
                Ok(number) => number,
                Err(refusal) => {
                    let answer = dns::refusal(&self.scratch[..length]);
                    if let (Refusal::NoNameserver, Some(answer)) = (refusal, answer) {
                        self.answer(&ends, &answer, connector);
                    }
                    return;
                }
            },
        };
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.last_seen = now;
        let datagram = &self.scratch[..length];
        let mut sent = session.socket.send(datagram);
        // The error is about an earlier datagram, and this one was not sent.
        if let Err(error) = &sent
            && error.kind() == ErrorKind::ConnectionRefused
        {
            connector.refuse(Refusal::Refused);
            sent = session.socket.send(datagram);
        }
        match sent {
            Ok(_) => connector.counts.datagrams.up += 1,
            Err(_) => connector.counts.datagrams_lost += 1,
        }
    }

    /// Begins a session.
    fn begin(
        &mut self,
        now: Time,
        ends: Ends,
        connector: &mut Connector,
        watch: &Watch,
    ) -> Result<u64, Refusal> {
        let to = SocketAddr::new(ends.destination.into(), ends.port);
        let socket = UdpSocket::from(connector.open(Transport::Udp, to)?);
        if self.sessions.len() >= self.most
            && let Some((&silent, _)) = self.sessions.iter().min_by_key(|(_, session)| session.last_seen)
        {
            self.forget(silent);
        }
        let number = self.next;
        self.next += 1;
        if watch.add(&socket, Watched::Session(number)).is_err() {
            connector.refuse(Refusal::Other);
            return Err(Refusal::Other);
        }
        self.sessions.insert(number, Session { ends, socket, last_seen: now });
        self.numbers.insert(ends, number);
        connector.counts.sessions += 1;
        Ok(number)
    }

    /// Forwards datagrams from outside. Returns whether there may be more.
    pub(super) fn carry_down(&mut self, now: Time, number: u64, connector: &mut Connector) -> bool {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut more = true;
        for _ in 0..TURN {
            let Some(session) = self.sessions.get_mut(&number) else { break };
            match session.socket.recv(&mut scratch) {
                Ok(length) => {
                    session.last_seen = now;
                    let ends = session.ends;
                    self.answer(&ends, &scratch[..length], connector);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    more = false;
                    break;
                }
                // An earlier datagram did not arrive.
                Err(error) => connector.refuse(Refusal::of_socket(&error)),
            }
        }
        self.scratch = scratch;
        more && self.sessions.contains_key(&number)
    }

    /// Sends to the sender of a session, from the destination of that sender.
    fn answer(&self, ends: &Ends, datagram: &[u8], connector: &mut Connector) {
        let Some(listener) = self.listeners.get(&ends.port) else { return };
        let address = libc::in6_addr { s6_addr: ends.destination.octets() };
        let source = libc::in6_pktinfo { ipi6_addr: address, ipi6_ifindex: 0 };
        let sent = sendmsg(
            listener.as_raw_fd(),
            &[IoSlice::new(datagram)],
            &[ControlMessage::Ipv6PacketInfo(&source)],
            MsgFlags::MSG_DONTWAIT,
            Some(&SockaddrIn6::from(ends.sender)),
        );
        match sent {
            Ok(_) => connector.counts.datagrams.down += 1,
            Err(_) => connector.counts.datagrams_lost += 1,
        }
    }

    /// Forgets sessions that have been silent for long enough.
    pub(super) fn forget_silent(&mut self, now: Time) {
        if now.since(self.swept) < SWEEP {
            return;
        }
        self.swept = now;
        let is_silent = |session: &Session| now.since(session.last_seen) >= SILENCE;
        let silent: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, session)| is_silent(session))
            .map(|(&number, _)| number)
            .collect();
        silent.into_iter().for_each(|number| self.forget(number));
    }

    fn forget(&mut self, number: u64) {
        if let Some(session) = self.sessions.remove(&number) {
            self.numbers.remove(&session.ends);
        }
    }
}

/// The next datagram at a listener, and its length; none if the kernel does not give its destination.
fn receive(listener: &UdpSocket, port: u16, scratch: &mut [u8]) -> Result<Option<(Ends, usize)>, Errno> {
    let mut control = nix::cmsg_space!(libc::in6_pktinfo);
    let mut vector = [IoSliceMut::new(scratch)];
    let message = recvmsg::<SockaddrIn6>(
        listener.as_raw_fd(),
        &mut vector,
        Some(&mut control),
        MsgFlags::MSG_DONTWAIT,
    )?;
    let Some(sender) = message.address else { return Ok(None) };
    let destination = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::Ipv6PacketInfo(info) => Some(Ipv6Addr::from(info.ipi6_addr.s6_addr)),
        _ => None,
    });
    let sender = SocketAddrV6::new(sender.ip(), sender.port(), 0, sender.scope_id());
    Ok(destination.map(|destination| (Ends { port, destination, sender }, message.bytes)))
}
