//! One connection: its timers, and the events of its sockets.

use std::net::SocketAddr;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::sync::Arc;

use apportion_core::queue::Overload;
use apportion_core::units::{Bytes, Rate, Time};
use apportion_linux::tcp::{TcpInfo, tcp_info};
use apportion_runtime::connections::Workload;
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::{Completion, TcpSample};
use apportion_scenario::tcp::TcpParams;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::socket::{
    MsgFlags, Shutdown, SockaddrStorage, connect, getsockopt, recv, send, shutdown, sockopt,
};

use super::{Failure, abandon};
use crate::lab::tcp;

/// Maximum bytes that one call writes or discards.
const CHUNK: usize = 1 << 20;
/// Maximum of datagrams that are read before other sockets get their turn.
const DATAGRAMS: usize = 64;
/// Bytes of UDP's header with that of IPv4 and of IPv6 (RFC 768, 791, 8200).
const UDP_V4: u64 = 28;
const UDP_V6: u64 = 48;

/// The transport of a connection.
#[derive(Debug)]
pub(super) enum TransportState {
    Tcp(Arc<TcpParams>),
    Udp {
        /// Wire size of the largest datagram.
        packet: u64,
        /// Bytes of its headers, as the kernel writes them.
        headers: u64,
    },
}

impl TransportState {
    /// UDP with datagrams of at most `packet` on the wire.
    pub(super) fn udp(packet: Bytes, is_v4: bool) -> Self {
        // The smallest datagram has no payload.
        let headers = if is_v4 { UDP_V4 } else { UDP_V6 };
        Self::Udp { packet: packet.get().max(headers), headers }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before its start.
    Waiting,
    /// TCP: no answer to the SYN yet.
    Connecting,
    Open,
    /// TCP: all data are written and the end is announced.
    Shut,
    Ended,
}

/// State that connections share.
#[derive(Debug)]
pub(super) struct Tools {
    pub epoll: Epoll,
    /// The buffer to write from.
    pub zeros: Vec<u8>,
    /// The buffer for discarded input; TCP never fills it.
    pub trash: Vec<u8>,
    pub failures: Vec<Failure>,
    pub unsent: u64,
    pub lateness: Histogram,
    pub knows_timeouts: bool,
}

impl Tools {
    pub(super) fn new(epoll: Epoll) -> Self {
        Self {
            epoll,
            zeros: vec![0; CHUNK],
            trash: vec![0; CHUNK],
            failures: Vec::new(),
            unsent: 0,
            lateness: Histogram::default(),
            knows_timeouts: true,
        }
    }
}

/// The socket and connection of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Source(u32),
    Sink(u32),
    Listener(u32),
    Bell,
}

impl From<Token> for u64 {
    fn from(token: Token) -> Self {
        match token {
            Token::Source(number) => Self::from(number) << 2,
            Token::Sink(number) => Self::from(number) << 2 | 1,
            Token::Listener(number) => Self::from(number) << 2 | 2,
            Token::Bell => 3,
        }
    }
}

impl From<u64> for Token {
    fn from(code: u64) -> Self {
        let number = (code >> 2) as u32;
        match code & 3 {
            0 => Self::Source(number),
            1 => Self::Sink(number),
            2 => Self::Listener(number),
            _ => Self::Bell,
        }
    }
}

/// A connection.
#[derive(Debug)]
pub(super) struct Driven {
    pub flow: u32,
    /// Payload that the sink has read.
    pub delivered: u64,
    number: u32,
    start: Time,
    stop: Time,
    transport: TransportState,
    workload: Workload,
    to: SocketAddr,
    phase: Phase,
    /// TCP: bytes to write that the socket has not taken yet.
    left: u64,
    /// TCP: whether the end follows these bytes.
    closing: bool,
    /// TCP: whether the source waits for room in its socket.
    watched: bool,
    /// TCP: whether the sink's window has been clamped again, see [`tcp::clamp_window`].
    clamped: bool,
    completed: bool,
    source: Option<OwnedFd>,
    sink: Option<OwnedFd>,
    /// The kernel's counts when they were last read.
    retransmits: u64,
    timeouts: u64,
}

impl Driven {
    pub(super) fn new(
        flow: u32,
        (start, stop): (Time, Time),
        transport: TransportState,
        workload: Workload,
        to: SocketAddr,
        (source, sink): (Option<OwnedFd>, Option<OwnedFd>),
    ) -> Self {
        Self {
            flow,
            delivered: 0,
            number: 0,
            start,
            stop,
            transport,
            workload,
            to,
            phase: Phase::Waiting,
            left: 0,
            closing: false,
            watched: false,
            clamped: false,
            completed: false,
            source,
            sink,
            retransmits: 0,
            timeouts: 0,
        }
    }

    /// Sets the connection's number, and polls the sink, if it exists from the beginning.
    pub(super) fn register(&mut self, number: u32, tools: &Tools) -> Result<(), Errno> {
        self.number = number;
        match &self.sink {
            Some(sink) => tools.epoll.add(sink, self.event(Token::Sink, EpollFlags::EPOLLIN)),
            None => Ok(()),
        }
    }

    fn event(&self, of: fn(u32) -> Token, flags: EpollFlags) -> EpollEvent {
        EpollEvent::new(flags, of(self.number).into())
    }

    pub(super) fn is_tcp(&self) -> bool {
        matches!(self.transport, TransportState::Tcp(_))
    }
}

/// Timers.
impl Driven {
    /// Time to call [`act`](Self::act) next.
    pub(super) fn next(&self) -> Time {
        if matches!(self.phase, Phase::Shut | Phase::Ended) {
            return Time::MAX;
        }
        if self.phase == Phase::Waiting {
            return self.start;
        }
        let stop = if self.closing { Time::MAX } else { self.stop };
        match &self.workload {
            Workload::Writes(writes) => writes.pending.map_or(stop, |write| write.at.min(stop)),
            _ => stop,
        }
    }

    /// Handles the earliest event due by `now`.
    pub(super) fn act(&mut self, now: Time, tools: &mut Tools) {
        if self.phase == Phase::Waiting {
            self.begin(now, tools);
        } else if let Workload::Writes(writes) = &mut self.workload
            && let Some(write) = writes.pending.take_if(|write| write.at <= now)
        {
            tools.lateness.record(now.since(write.at));
            self.next_write();
            match self.transport {
                TransportState::Tcp(_) => {
                    self.left = self.left.saturating_add(write.size.get());
                    self.push(now, tools);
                }
                TransportState::Udp { packet, headers } => {
                    self.send_datagrams(now, write.size, (packet, headers), tools);
                }
            }
        } else if now >= self.stop && !self.closing {
            self.closing = true;
            if matches!(self.workload, Workload::Greedy) {
                self.left = 0;
            }
            match self.transport {
                TransportState::Tcp(_) => self.push(now, tools),
                TransportState::Udp { .. } => self.phase = Phase::Ended,
            }
        }
    }

    fn begin(&mut self, now: Time, tools: &mut Tools) {
        self.next_write();
        match self.workload {
            Workload::Greedy => self.left = u64::MAX,
            Workload::File(size) => (self.left, self.closing) = (size.get(), true),
            // The lab refuses players, calls and web pages.
            Workload::Writes(_) | Workload::Media(_) | Workload::Web(_) | Workload::Arrived => (),
        }
        self.phase = Phase::Open;
        if !self.is_tcp() {
            return;
        }
        self.phase = Phase::Connecting;
        let Some(source) = &self.source else { return };
        let connected = connect(source.as_raw_fd(), &SockaddrStorage::from(self.to));
        self.watched = true;
        let flags = EpollFlags::EPOLLOUT | EpollFlags::EPOLLRDHUP;
        let watched = tools.epoll.add(source, self.event(Token::Source, flags));
        match (connected, watched) {
            (Ok(()) | Err(Errno::EINPROGRESS), Ok(())) => (),
            (Err(error), Ok(())) | (_, Err(error)) => self.fail(now, "connect", error, tools),
        }
    }

    /// Takes the next write from the generator.
    fn next_write(&mut self) {
        if let Workload::Writes(writes) = &mut self.workload {
            writes.pending = writes.generator.next();
        }
    }

    fn send_datagrams(&mut self, now: Time, size: Bytes, (packet, headers): (u64, u64), tools: &mut Tools) {
        let Some(source) = self.source.as_ref().map(AsRawFd::as_raw_fd) else { return };
        let mut left = size.get();
        while left > 0 {
            let part = left.min(packet);
            left -= part;
            let payload = part.saturating_sub(headers) as usize;
            match send(source, &tools.zeros[..payload.min(CHUNK)], MsgFlags::MSG_DONTWAIT) {
                Ok(_) => (),
                Err(Errno::EAGAIN | Errno::ENOBUFS | Errno::EINTR) => tools.unsent += 1,
                Err(error) => return self.fail(now, "send a datagram", error, tools),
            }
        }
    }

    /// Writes as many of the remaining bytes as the socket takes, and announces the end after the last one.
    fn push(&mut self, now: Time, tools: &mut Tools) {
        if self.phase != Phase::Open {
            return;
        }
        let Some(source) = &self.source else { return };
        if self.left > 0 {
            let chunk = self.left.min(CHUNK as u64) as usize;
            let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
            match send(source.as_raw_fd(), &tools.zeros[..chunk], flags) {
                // An endless transfer stays endless.
                Ok(_) if self.left == u64::MAX => (),
                Ok(taken) => self.left = self.left.saturating_sub(taken as u64),
                Err(Errno::EAGAIN | Errno::EINTR) => (),
                Err(error) => return self.fail(now, "write", error, tools),
            }
        }
        if self.left == 0 && self.closing {
            self.phase = Phase::Shut;
            if let Err(error) = shutdown(source.as_raw_fd(), Shutdown::Write) {
                return self.fail(now, "close", error, tools);
            }
        }
        self.watch(now, tools);
    }

    /// Polls for room in the socket if bytes remain for it.
    fn watch(&mut self, now: Time, tools: &mut Tools) {
        let wanted = self.left > 0;
        if wanted == self.watched {
            return;
        }
        self.watched = wanted;
        let room = if wanted { EpollFlags::EPOLLOUT } else { EpollFlags::empty() };
        let mut event = self.event(Token::Source, room | EpollFlags::EPOLLRDHUP);
        let modified = self.source.as_ref().map(|source| tools.epoll.modify(source, &mut event));
        if let Some(Err(error)) = modified {
            self.fail(now, "watch", error, tools);
        }
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        let Workload::Writes(writes) = &mut self.workload else { return };
        writes.generator.set_rate(now, rate);
        if rate == Rate::ZERO {
            writes.pending = None;
        }
        // A pending write stays; before the start no write is taken.
        if writes.pending.is_none() && matches!(self.phase, Phase::Connecting | Phase::Open) && !self.closing
        {
            self.next_write();
        }
    }

    pub(super) fn on_overload(&mut self, now: Time, overload: &Overload) {
        if let Workload::Writes(writes) = &mut self.workload {
            writes.generator.on_overload(now, overload);
        }
    }
}

/// Events of sockets.
impl Driven {
    /// Handles an event of a TCP source.
    pub(super) fn on_source(&mut self, now: Time, flags: EpollFlags, tools: &mut Tools) {
        let Some(source) = &self.source else { return };
        let over = EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP | EpollFlags::EPOLLRDHUP;
        if self.phase == Phase::Connecting {
            match getsockopt(source, sockopt::SocketError) {
                Ok(0) => self.phase = Phase::Open,
                Ok(error) => return self.fail(now, "connect", Errno::from_raw(error), tools),
                Err(error) => return self.fail(now, "connect", error, tools),
            }
        } else if flags.intersects(over) {
            return match getsockopt(source, sockopt::SocketError) {
                Ok(0) if self.phase == Phase::Shut => self.end(tools),
                Ok(0) => self.fail(now, "keep", Errno::ECONNRESET, tools),
                Ok(error) => self.fail(now, "keep", Errno::from_raw(error), tools),
                Err(error) => self.fail(now, "keep", error, tools),
            };
        }
        self.push(now, tools);
    }

    /// Takes the accepted socket of the sink.
    pub(super) fn accept(&mut self, now: Time, sink: OwnedFd, tools: &mut Tools) {
        let flags = EpollFlags::EPOLLIN;
        if self.phase == Phase::Ended || self.sink.is_some() {
            return;
        }
        match tools.epoll.add(&sink, self.event(Token::Sink, flags)) {
            Ok(()) => self.sink = Some(sink),
            Err(error) => self.fail(now, "accept", error, tools),
        }
    }

    /// Handles input at the sink. Returns whether it completes a file.
    pub(super) fn on_sink(&mut self, now: Time, tools: &mut Tools) -> Option<Completion> {
        let sink = self.sink.as_ref()?.as_raw_fd();
        let flags = MsgFlags::MSG_TRUNC | MsgFlags::MSG_DONTWAIT;
        if !self.is_tcp() {
            for _ in 0..DATAGRAMS {
                match recv(sink, &mut tools.trash[..1], flags) {
                    Ok(length) => self.delivered += length as u64,
                    Err(_) => break,
                }
            }
            return None;
        }
        match recv(sink, &mut tools.trash, flags) {
            Ok(0) => {
                // Answers the other end's FIN with ours.
                self.sink = None;
                None
            }
            Ok(length) => {
                self.delivered += length as u64;
                self.clamp();
                self.completion(now)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => None,
            Err(error) => {
                self.fail(now, "read", error, tools);
                None
            }
        }
    }

    /// Clamps the window again: the kernel knows by now how much room a segment takes.
    fn clamp(&mut self) {
        if let (TransportState::Tcp(params), Some(sink), false) = (&self.transport, &self.sink, self.clamped)
            && self.delivered > params.segment.get()
        {
            self.clamped = true;
            // The first call succeeded.
            let _ = tcp::clamp_window(sink.as_fd(), params);
        }
    }

    fn completion(&mut self, now: Time) -> Option<Completion> {
        let Workload::File(size) = self.workload else { return None };
        (self.delivered >= size.get() && !std::mem::replace(&mut self.completed, true)).then(|| Completion {
            start: self.start,
            took: now.since(self.start),
            size,
        })
    }

    fn fail(&mut self, at: Time, what: &'static str, error: Errno, tools: &mut Tools) {
        tools.failures.push(Failure { flow: self.flow, at, what, error });
        self.abandon(tools);
    }

    /// Reads the kernel's counters, and closes.
    pub(super) fn end(&mut self, tools: &mut Tools) {
        self.count(tools);
        self.phase = Phase::Ended;
        self.source = None;
    }

    /// Ends the connection at once, with a reset.
    pub(super) fn abandon(&mut self, tools: &mut Tools) {
        [&self.source, &self.sink].into_iter().flatten().for_each(abandon);
        self.end(tools);
        self.sink = None;
    }
}

/// Measurements.
impl Driven {
    fn is_under_way(&self) -> bool {
        self.is_tcp() && matches!(self.phase, Phase::Connecting | Phase::Open | Phase::Shut)
    }

    fn info(&self) -> Option<TcpInfo> {
        let source = self.source.as_ref().filter(|_| self.is_under_way())?;
        tcp_info(source.as_fd()).ok()
    }

    /// Numbers of retransmitted segments and timeouts so far.
    pub(super) fn count(&mut self, tools: &mut Tools) -> (u64, u64) {
        if let Some(info) = self.info() {
            self.retransmits = info.retransmits().into();
            tools.knows_timeouts &= info.timeouts().is_some();
            self.timeouts = info.timeouts().unwrap_or(0).into();
        }
        (self.retransmits, self.timeouts)
    }

    pub(super) fn sample(&self) -> TcpSample {
        let sample = |info: TcpInfo| TcpSample { window: info.window().into(), srtt: info.srtt() };
        self.info().map(sample).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_which_socket_it_is_of() {
        for token in [Token::Source(0), Token::Sink(9_999), Token::Listener(u32::MAX), Token::Bell] {
            assert_eq!(Token::from(u64::from(token)), token);
        }
    }

    #[test]
    fn wire_sizes_count_the_headers_of_the_family() {
        let sizes = |packet, is_v4| match TransportState::udp(Bytes::new(packet), is_v4) {
            TransportState::Udp { packet, headers } => (packet, headers),
            TransportState::Tcp(_) => (0, 0),
        };
        assert_eq!((sizes(1_000, true), sizes(1_000, false)), ((1_000, 28), (1_000, 48)));
        // No datagram is smaller than its headers.
        assert_eq!(sizes(40, false), (48, 48));
    }
}
