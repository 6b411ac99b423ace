//! Attacks on a gateway between interfaces in memory, with a virtual clock: attacks take no real time and are
//! deterministic. Where a test says so, frames take time to receive and to send, and frames that are not
//! received in time are lost. `docs/threats.md` names these modules.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;

use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::pool::{HEAD, Pool};
use apportion_linux::port::{BATCH, Port, PortCounts, Received};
use apportion_scenario::gateway::{Direction, GatewayConfig};
use nix::errno::Errno;

use super::world::{DirectionState, GatewayWorld};
use super::{Gateway, TICK, buffers};
use crate::engine::Engine;
use crate::frame;
use apportion_linux::frame_io::FrameIo;

mod cake;
mod classes;
mod guarantees;
mod labels;
mod overload;
mod reports;
mod round_trips;

/// The ports of the gateway.
const INSIDE: u32 = 0;
const OUTSIDE: u32 = 1;
/// Hardware addresses of the hosts.
pub(super) const HARDWARE: [[u8; 6]; 2] = [[2, 0, 0, 0, 1, 0], [2, 0, 0, 0, 1, 1]];

/// Sends frames into a port at regular intervals.
struct Source {
    port: u32,
    next: Time,
    every: Span,
    end: Time,
    sent: u64,
    /// Makes the frame of this number.
    make: Box<dyn FnMut(u64) -> Vec<u8>>,
}

/// A frame that the gateway sent.
struct Sent {
    at: Time,
    port: u32,
    frame: Vec<u8>,
}

impl Sent {
    /// The source port of its packet.
    fn source_port(&self) -> Option<u16> {
        Some(frame::parse(&self.frame).ok()?.headers?.ports?.0)
    }
}

/// Two interfaces in memory.
pub(super) struct Memory {
    now: Time,
    sources: Vec<Source>,
    sent: Vec<Sent>,
    /// The time to receive a frame, and to send one.
    costs: [Span; 2],
    /// Maximum of frames that wait for a port; more are lost.
    most: u64,
    missed: u64,
    /// Until when each device takes nothing, how often frames were offered to full devices, and how many were
    /// given up.
    full: [Time; 2],
    offers: u64,
    given_up: u64,
}

impl FrameIo for Memory {
    type Socket = Port;

    fn now(&self) -> Time {
        self.now
    }

    fn port_count(&self) -> usize {
        2
    }

    fn receive(&mut self, port: u32, pool: &mut Pool, frames: &mut Vec<Received>) -> io::Result<bool> {
        self.lose_excess(port);
        for _ in 0..BATCH {
            let now = self.now;
            let due = |source: &&mut Source| source.port == port && source.waiting(now) > 0;
            let first = self.sources.iter_mut().filter(due).min_by_key(|source| source.next);
            let Some(source) = first else { break };
            let Some(buffer) = pool.take(port as u16) else { break };
            let frame = source.take();
            pool.bytes_mut(buffer)[..HEAD].fill(0);
            pool.bytes_mut(buffer)[HEAD..HEAD + frame.len()].copy_from_slice(&frame);
            frames.push(Received { buffer, start: HEAD as u8, length: frame.len() as u16 });
        }
        let is_left = self.waiting(port) > 0;
        self.now += self.costs[0] * frames.len() as u64;
        Ok(is_left)
    }

    fn send(&mut self, port: u32, pool: &mut Pool, frames: &[Received]) -> io::Result<usize> {
        if (self.full[0]..self.full[1]).contains(&self.now) {
            self.offers += 1;
            return Ok(0);
        }
        self.now += self.costs[1] * frames.len() as u64;
        for Received { buffer, start, length } in frames {
            let start = usize::from(*start);
            let frame = pool.bytes(*buffer)[start..start + usize::from(*length)].to_vec();
            self.sent.push(Sent { at: self.now, port, frame });
        }
        Ok(frames.len())
    }

    fn give_up(&mut self, _port: u32, frames: u64) {
        self.given_up += frames;
    }

    fn room(&self, _port: u32, _pool: &Pool) -> usize {
        BATCH
    }

    fn counts(&mut self, _port: u32) -> PortCounts {
        PortCounts { missed: self.missed, ..PortCounts::default() }
    }

    fn replace(&mut self, _port: u32, _socket: Option<Port>, _pool: &mut Pool) -> Result<(), Errno> {
        Ok(())
    }

    fn watch(&mut self, _port: u32, _watched: bool) -> Result<(), Errno> {
        Ok(())
    }

    fn wait(
        &mut self,
        span: Option<Span>,
        _wake: Option<BorrowedFd<'_>>,
        ready: &mut Vec<u32>,
    ) -> Result<bool, Errno> {
        let live = || self.sources.iter().filter(|source| source.next < source.end);
        let next = live().map(|source| source.next).min().unwrap_or(Time::MAX);
        let until = span.map_or(next, |span| next.min(self.now + span)).max(self.now);
        ready.extend(
            [INSIDE, OUTSIDE]
                .into_iter()
                .filter(|port| live().any(|source| source.port == *port && source.next <= until)),
        );
        self.now = until;
        Ok(false)
    }
}

impl Source {
    /// Number of waiting frames.
    fn waiting(&self, now: Time) -> u64 {
        let last = now.min(self.end);
        if self.next > now || self.next >= self.end {
            return 0;
        }
        1 + last.since(self.next).as_nanos() / self.every.as_nanos().max(1)
    }

    fn take(&mut self) -> Vec<u8> {
        self.next += self.every;
        self.sent += 1;
        (self.make)(self.sent - 1)
    }
}

impl Memory {
    fn waiting(&self, port: u32) -> u64 {
        let own = self.sources.iter().filter(|source| source.port == port);
        own.map(|source| source.waiting(self.now)).sum()
    }

    /// Loses waiting frames beyond the maximum of a port, from each source in proportion, as a buffer does
    /// that is full when frames come.
    fn lose_excess(&mut self, port: u32) {
        let waiting = self.waiting(port);
        let excess = waiting.saturating_sub(self.most);
        if excess == 0 {
            return;
        }
        for source in self.sources.iter_mut().filter(|source| source.port == port) {
            let lost = (source.waiting(self.now) * excess).div_ceil(waiting);
            (0..lost).for_each(|_| drop(source.take()));
            self.missed += lost;
        }
    }
}

/// A gateway in memory.
pub(super) struct Bench {
    pub(super) engine: Engine<GatewayWorld, Memory>,
}

impl Bench {
    pub(super) fn new(text: &str) -> Self {
        let text = format!("inside = \"a\"\noutside = \"b\"\n{text}");
        let config = GatewayConfig::load(&text, Path::new("x.toml"))
            .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"));
        Self::of(config)
    }

    pub(super) fn of(config: GatewayConfig) -> Self {
        let io = Memory {
            now: Time::ZERO,
            sources: Vec::new(),
            sent: Vec::new(),
            costs: [Span::ZERO; 2],
            most: u64::MAX,
            missed: 0,
            full: [Time::ZERO; 2],
            offers: 0,
            given_up: 0,
        };
        Self { engine: Gateway::over(config, io, HARDWARE, buffers(Bytes::new(1_500))).unwrap().engine }
    }

    /// Sends this frame into `port` from `start` to `end`, in ms, at a rate per second.
    fn play(
        &mut self,
        port: u32,
        [start, end]: [u64; 2],
        per_second: u64,
        make: impl FnMut(u64) -> Vec<u8> + 'static,
    ) {
        self.play_at(port, [start, end].map(Time::from_millis), per_second, make);
    }

    /// Like [`Self::play`], with times.
    fn play_at(
        &mut self,
        port: u32,
        [next, end]: [Time; 2],
        per_second: u64,
        make: impl FnMut(u64) -> Vec<u8> + 'static,
    ) {
        play(&mut self.engine, port, [next, end], per_second, make);
    }

    /// Runs until this time, in ms.
    fn run(&mut self, until: u64) {
        let until = Time::from_millis(until);
        while self.engine.now() < until {
            let tick = (self.engine.now() + TICK).min(until);
            self.engine.run(tick, None).unwrap();
            self.engine.world.tick(tick);
            self.engine.apply_flow_updates(tick);
        }
    }

    fn direction(&self, direction: Direction) -> &DirectionState {
        self.engine.world.direction(direction)
    }

    /// Number of frames from this source port that left by `port` between these times, in ms.
    fn count(&mut self, port: u32, from_port: u16, [start, end]: [u64; 2]) -> u64 {
        let [start, end] = [start, end].map(Time::from_millis);
        let is_counted = |sent: &&Sent| {
            sent.port == port && (start..end).contains(&sent.at) && sent.source_port() == Some(from_port)
        };
        self.engine.io_mut().sent.iter().filter(is_counted).count() as u64
    }
}

/// Sends this frame into `port` between these times, at a rate per second.
pub(super) fn play(
    engine: &mut Engine<GatewayWorld, Memory>,
    port: u32,
    [next, end]: [Time; 2],
    per_second: u64,
    make: impl FnMut(u64) -> Vec<u8> + 'static,
) {
    let every = Span::from_secs(1).div(per_second);
    engine.io_mut().sources.push(Source { port, next, every, end, sent: 0, make: Box::new(make) });
}

/// The address of an inside host, by its last number.
const fn inside(last: u16) -> [u8; 4] {
    [10, 0, (last >> 8) as u8, last as u8]
}

/// A server outside.
const SERVER: [u8; 4] = [198, 51, 100, 7];

/// A frame whose IPv4 packet has `length` bytes and begins with this transport header. The packet is atomic.
/// Checksums are zero, because the gateway does not verify them.
fn packet([source, destination]: [[u8; 4]; 2], protocol: u8, header: &[u8], length: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((length as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    frame.extend(source);
    frame.extend(destination);
    frame.extend(header);
    frame.resize(14 + length, 0);
    frame
}

/// A UDP datagram whose packet has `length` bytes.
pub(super) fn datagram(ends: [[u8; 4]; 2], ports: [u16; 2], length: usize) -> Vec<u8> {
    let mut header = ports.map(u16::to_be_bytes).concat();
    header.extend(((length - 20) as u16).to_be_bytes());
    header.extend([0, 0]);
    packet(ends, 17, &header, length)
}

/// A segment with these flags and this acknowledgement number.
fn segment(ends: [[u8; 4]; 2], ports: [u16; 2], (flags, number): (u8, u32), length: usize) -> Vec<u8> {
    let mut header = ports.map(u16::to_be_bytes).concat();
    header.extend([0; 4]);
    header.extend(number.to_be_bytes());
    header.extend([5 << 4, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet(ends, 6, &header, length)
}
