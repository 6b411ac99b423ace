//! smoltcp, TCP/IP for embedded systems in Rust: the crate `smoltcp` 0.12.0, unmodified.
//!
//! Each end is an interface of IPv4 packets with one TCP socket. It is an example of a weak stack: the window
//! is the peer's, since this version compares the congestion window with what the peer's window leaves, not
//! with what is in flight, so that it never limits; the sender ignores SACK, the receiver keeps 4 gaps, nothing
//! is paced, and there is no ECN. The retransmission timeout is 10 ms or more, so that queueing causes
//! retransmissions.
//!
//! The stack counts neither losses nor timeouts and does not show its window. Its clock has microseconds.

use std::collections::VecDeque;
use std::fmt;

use apportion_core::packet::{Ecn, Protocol};
use apportion_core::param::{Entry, EntryArgs, Param, ParamError, Role, Traits};
use apportion_core::stack::{Command, Counts, Datagram, Endpoint, Ends, Progress, Sizes, Stack};
use apportion_core::units::{Bytes, Time};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer, State};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr};

/// The description of the stack.
pub static ENTRY: Entry = Entry {
    name: "smoltcp",
    role: Role::Stack,
    summary: "smoltcp, TCP of embedded systems in Rust, unmodified: a fixed window, no SACK at the sender, no pacing, no ECN.",
    reference: "smoltcp 0.12.0, https://github.com/smoltcp-rs/smoltcp",
    cost: "some 1 µs per packet, two buffers per connection and end",
    params: SmoltcpParams::PARAMS,
    traits: Traits::NONE,
};

apportion_core::params! {
    /// The parameters of smoltcp that scenarios can set.
    pub struct SmoltcpParams {
        /// Size of the receive buffer, and of the send buffer, which is the window. At most 1 MB.
        buffer: Bytes = Param::of("65535B", "chosen: the largest window without scaling"),
    }
    check: |params: &Self, _| match params.buffer.get() {
        MIN_BUFFER..=MAX_BUFFER => Ok(()),
        _ => Err(ParamError::new("buffer", "a buffer has between 1460 B and 1 MB; write for example \"100kB\"")),
    }
}

const MIN_BUFFER: u64 = 1_460;
/// Chosen: far more than embedded systems have, and a burst that a run can send.
const MAX_BUFFER: u64 = 1_000_000;
const MTU: u16 = 1_500;
/// Headers of IPv4 and TCP without options.
const HEADERS: u16 = 40;
const PORT: u16 = 50_000;

/// smoltcp with its parameters.
#[derive(Debug)]
pub struct Smoltcp(SmoltcpParams);

impl Smoltcp {
    /// Reads the parameters.
    ///
    /// # Errors
    /// When smoltcp cannot run with them.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        SmoltcpParams::from_args(args).map(Self)
    }

    fn end(&self, seed: u64, is_source: bool) -> End {
        let mut device = Wire::default();
        let mut config = Config::new(HardwareAddress::Ip);
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        // An interface has room for two addresses by default.
        interface.update_ip_addrs(|addresses| addresses.extend([IpCidr::new(address(is_source), 24)]));
        let buffer = || SocketBuffer::new(vec![0; self.0.buffer.get() as usize]);
        let socket = Socket::new(buffer(), buffer());
        let mut sockets = SocketSet::new(Vec::new());
        let socket = sockets.add(socket);
        End {
            is_source,
            device,
            interface,
            sockets,
            socket,
            left: 0,
            is_closed: false,
            delivered: 0,
            has_begun: false,
            has_ended: false,
        }
    }
}

impl Stack for Smoltcp {
    fn sizes(&self) -> Sizes {
        let [packet, payload, ack] = [MTU, MTU - HEADERS, HEADERS].map(|size| Bytes::new(size.into()));
        Sizes { packet, payload, ack, memory: Bytes::new(4 * self.0.buffer.get()) }
    }
    fn counts(&self) -> Counts {
        Counts { lost: false, timeouts: false, reductions: false }
    }
    fn protocol(&self) -> Protocol {
        Protocol::Tcp
    }
    fn offers_ecn(&self) -> bool {
        false
    }
    fn connect(&self, ends: &Ends) -> [Box<dyn Endpoint>; 2] {
        [Box::new(self.end(ends.seeds[0], true)), Box::new(self.end(ends.seeds[1], false))]
    }
}

fn address(is_source: bool) -> IpAddress {
    IpAddress::v4(10, 0, 0, if is_source { 1 } else { 2 })
}

fn instant(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1_000) as i64)
}

/// One end of a connection.
struct End {
    is_source: bool,
    device: Wire,
    interface: Interface,
    sockets: SocketSet<'static>,
    socket: SocketHandle,
    /// Bytes that are supplied and not written.
    left: u64,
    is_closed: bool,
    delivered: u64,
    /// Whether the connection was requested or listened for.
    has_begun: bool,
    /// Whether all data have arrived: the source's FIN was acknowledged, or reached the sink.
    has_ended: bool,
}

impl End {
    fn state(&self) -> State {
        self.sockets.get::<Socket<'_>>(self.socket).state()
    }

    fn tcp(&mut self) -> &mut Socket<'static> {
        self.sockets.get_mut(self.socket)
    }

    /// Lets the stack and the application act until neither has anything to do.
    fn settle(&mut self, now: Time) {
        let mut has_moved = true;
        while has_moved {
            let polled = self.interface.poll(instant(now), &mut self.device, &mut self.sockets);
            has_moved = polled != PollResult::None;
            has_moved |= if self.is_source { self.write() } else { self.read() };
        }
        self.has_ended |= match self.is_source {
            true => matches!(self.state(), State::FinWait2 | State::TimeWait),
            false => self.state() == State::LastAck,
        };
    }

    /// Writes what the send buffer takes; after the last byte, ends the connection. Returns whether anything
    /// was written.
    fn write(&mut self) -> bool {
        let (left, is_closed) = (self.left, self.is_closed);
        let socket = self.tcp();
        if !socket.may_send() {
            return false;
        }
        let room = |room: &mut [u8]| {
            let part = left.min(room.len() as u64);
            (part as usize, part)
        };
        let written = socket.send(room).unwrap_or(0);
        if is_closed && left == written {
            socket.close();
        }
        self.left -= if left == u64::MAX { 0 } else { written };
        written > 0
    }

    fn read(&mut self) -> bool {
        let socket = self.tcp();
        let read = socket.recv(|data| (data.len(), data.len() as u64)).unwrap_or(0);
        if socket.state() == State::CloseWait {
            socket.close();
        }
        self.delivered += read;
        read > 0
    }
}

impl Endpoint for End {
    fn command(&mut self, now: Time, command: Command) {
        self.has_begun |= command == Command::Start;
        match command {
            Command::Start if self.is_source => {
                let context = self.interface.context();
                let socket = self.sockets.get_mut::<Socket<'_>>(self.socket);
                // A socket without a connection connects to any port.
                let _ = socket.connect(context, (address(false), PORT), PORT);
            }
            Command::Start => {
                let _ = self.tcp().listen(PORT);
            }
            Command::Supply(bytes) => self.left = self.left.saturating_add(bytes),
            Command::SupplyUnlimited => self.left = u64::MAX,
            Command::Close => {
                self.is_closed = true;
                if self.left == u64::MAX {
                    self.left = 0;
                }
            }
        }
        self.settle(now);
    }

    fn receive(&mut self, now: Time, _: Ecn, payload: Vec<u8>) {
        self.device.arrived.push_back(payload);
        self.settle(now);
    }

    fn transmit(&mut self, _: Time, payload: &mut Vec<u8>) -> Option<Datagram> {
        *payload = self.device.sent.pop_front()?;
        Some(Datagram { size: payload.len() as u16, ecn: Ecn::NotEct })
    }

    fn next_timer(&mut self) -> Option<Time> {
        // Zero stands for the present time, which the host makes of it.
        let at = self.interface.poll_at(Instant::ZERO, &self.sockets)?;
        Some(Time::from_nanos(at.total_micros().max(0) as u64 * 1_000))
    }

    fn on_timer(&mut self, now: Time) {
        self.settle(now);
    }

    fn progress(&self) -> Progress {
        Progress { delivered: self.delivered, ..Progress::default() }
    }

    fn is_done(&self) -> bool {
        self.is_closed && self.has_ended
    }

    // A socket returns to this state after the end, or when the peer resets the connection.
    fn failure(&self) -> Option<&str> {
        (self.has_begun && !self.has_ended && self.state() == State::Closed).then_some("reset by the peer")
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End")
            .field("left", &self.left)
            .field("delivered", &self.delivered)
            .finish_non_exhaustive()
    }
}

/// A device of two queues.
#[derive(Default)]
struct Wire {
    arrived: VecDeque<Vec<u8>>,
    sent: VecDeque<Vec<u8>>,
}

struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct Sent<'a>(&'a mut VecDeque<Vec<u8>>);

impl TxToken for Sent<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut packet = vec![0; length];
        let result = write(&mut packet);
        self.0.push_back(packet);
        result
    }
}

impl Device for Wire {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Sent<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Sent<'_>)> {
        Some((Arrived(self.arrived.pop_front()?), Sent(&mut self.sent)))
    }
    fn transmit(&mut self, _: Instant) -> Option<Sent<'_>> {
        Some(Sent(&mut self.sent))
    }
    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = MTU.into();
        capabilities
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time::from_nanos(1_000_000);

    /// Passes what one end sends to the other.
    fn pass(from: &mut dyn Endpoint, to: &mut dyn Endpoint) {
        let mut packet = Vec::new();
        while from.transmit(NOW, &mut packet).is_some() {
            to.receive(NOW, Ecn::NotEct, std::mem::take(&mut packet));
        }
    }

    #[test]
    fn a_reset_is_a_failure_and_the_end_of_a_file_is_none() {
        for (listens, due) in [(true, None), (false, Some("reset by the peer"))] {
            let stack = Smoltcp(SmoltcpParams { buffer: Bytes::new(65_535) });
            let [mut source, mut sink] = stack.connect(&Ends { number: 0, seeds: [1, 2] });
            if listens {
                sink.command(NOW, Command::Start);
            }
            for command in [Command::Start, Command::Supply(100_000), Command::Close] {
                source.command(NOW, command);
            }
            for _ in 0..100 {
                pass(&mut *source, &mut *sink);
                pass(&mut *sink, &mut *source);
            }
            assert_eq!((source.failure(), sink.failure()), (due, None));
            assert_eq!((source.is_done(), sink.delivered()), (listens, if listens { 100_000 } else { 0 }));
        }
    }
}
