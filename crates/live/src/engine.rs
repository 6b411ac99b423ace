//! Moves frames by the clock: they enter at ports, pass through links, and leave by ports.
//!
//! Events are handled in the order of their times and with those times, however late the system runs the
//! process; frames that arrived meanwhile enter after them. A departure therefore follows from the model of
//! the link, not from "now", and lateness shifts single packets by microseconds but never adds up.
//! [`lateness`](Engine::lateness) measures how late packets left.
//!
//! A `World` classifies and routes frames: the shell, the lab, the gateway. A frame is parsed once, when it
//! enters; a message between routers once more at the end of each link.
//!
//! Cost: four system calls per batch of frames; O(log links) per packet and link. Idle ports cost nothing.

mod port_backlog;
mod world;

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use apportion_core::Packet as _;
use apportion_core::packet::Protocol;
use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::frame_io::{FrameIo, Ports};
use apportion_linux::pool::{HEAD, Pool};
use apportion_linux::port::{BATCH, PortCounts, Received, has_unfinished_checksum};
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::Count;
use nix::errno::Errno;

use crate::frame::{self, Malformed, Parsed};
use crate::link::{Link, SharedState};
use crate::packet::{Description, Packet};
use crate::timer_heap::TimerHeap;
use port_backlog::PortBacklog;

pub(crate) use world::{Arrival, ControlFrame, Disposition, Hop, LinkStates, Outgoing, Place, World};

/// The owner of buffers of the engine's own packets. Other buffers belong to the port by which their frame
/// entered.
const OWN: u16 = u16::MAX;
/// Maximum of frames that wait for a device that is full; then the oldest are dropped. Chosen: a usual
/// transmit queue of a device.
const MAX_HELD: usize = 1_024;
/// Free buffers at which a port that had none is watched again. Chosen: half a batch, since otherwise every buffer that comes
/// back would cost three system calls.
const ENOUGH: usize = BATCH / 2;
/// The frames of one call last at most this long at the rates of the links, not counting the first packet: a
/// port may merge them, and a device then sends them back to back. A call takes more only where the gateway
/// is late. Chosen: the time up to which CAKE leaves super-packets whole (T. Høiland-Jørgensen, D. Täht and
/// J. Morton, "Piece of CAKE" (2018), section III-A).
const BURST: Span = Span::from_millis(1);
/// Interval after which a full device is tried again. Chosen: eight full frames at 1 Gbit/s.
const RETRY: Span = Span::from_micros(100);
/// A device that stays full is tried again after this fraction (1/8) of the time for which it has taken
/// nothing, and after [`LONGEST_PAUSE`] at most. One that is busy for a millisecond is thus tried as often as
/// frames come, and one without a carrier costs little. Chosen: the device idles for an eighth longer than it
/// has to.
const PAUSE: u64 = 8;
/// The longest pause between trials of a full device. Chosen: a hundred trials a second cost next to nothing.
const LONGEST_PAUSE: Span = Span::from_millis(10);

/// Why [`Engine::run`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The deadline has come, and all events before it are handled.
    Deadline,
    /// The watched descriptor is readable.
    Woken,
}

/// Why packets can no longer be moved.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A socket failed for good.
    #[error("port {port}: cannot {what} frames: {source}")]
    Port {
        /// The number of the port.
        port: u32,
        /// "receive" or "send".
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// There are too many ports.
    #[error("there are {0} ports; the engine takes 65534 at most")]
    Ports(usize),
    /// Waiting for frames failed.
    #[error("cannot wait for frames: {0}")]
    Wait(Errno),
}

/// Links between ports, with a world that classifies their frames.
#[derive(Debug)]
pub struct Engine<W, I = Ports> {
    /// Classifies frames.
    pub world: W,
    /// State that all links share.
    pub shared: SharedState,
    io: I,
    tx_queues: Vec<TxQueue>,
    links: Vec<Link>,
    routes: Vec<Hop>,
    /// The next event of each link.
    timers: TimerHeap,
    /// Ports that may have frames, and ports with frames that leave.
    ready: Vec<u32>,
    leaving: Vec<u32>,
    /// Ports that are not watched because no buffer is free.
    starved: Vec<u32>,
    backlogs: Vec<PortBacklog>,
    /// Links to be [tried again](Engine::retry_on); those numbers follow the numbers of ports.
    retried: Vec<u32>,
    /// Number of waits so far.
    round: u64,
    received: Vec<Received>,
    malformed: [u64; Malformed::ALL.len()],
    lateness: Histogram,
}

/// The transmit queue of a port.
#[derive(Debug)]
struct TxQueue {
    /// Frames that leave, with their departure times.
    outbox: Vec<Received>,
    due: Vec<Time>,
    /// While the device is full: since when, and when it is tried again.
    full: Option<(Time, Time)>,
    carried: Count,
}

impl TxQueue {
    /// Notes that the device was offered frames at `now`, how many it sent, and whether some are left.
    fn note(&mut self, now: Time, sent: usize, is_left: bool) {
        let since = self.full.filter(|_| sent == 0).map_or(now, |(since, _)| since);
        let pause = now.since(since).div(PAUSE).min(LONGEST_PAUSE);
        self.full = is_left.then_some((since, now + pause));
    }

    /// Whether to offer the device frames at `now`.
    fn is_due(&self, now: Time) -> bool {
        self.full.is_none_or(|(_, again)| again <= now)
    }
}

impl<W: World, I: FrameIo> Engine<W, I> {
    /// An engine that moves the frames of `io`. `routes` is the routing table of packets.
    ///
    /// # Errors
    /// If there are too many ports.
    pub fn new(
        io: I,
        links: Vec<Link>,
        routes: Vec<Hop>,
        shared: SharedState,
        world: W,
    ) -> Result<Self, EngineError> {
        let ports = io.port_count();
        if ports >= usize::from(OWN) {
            return Err(EngineError::Ports(ports));
        }
        let tx_queue = || TxQueue {
            outbox: Vec::with_capacity(BATCH),
            due: Vec::with_capacity(BATCH),
            full: None,
            carried: Count::default(),
        };
        Ok(Self {
            world,
            shared,
            io,
            ready: Vec::new(),
            leaving: Vec::new(),
            starved: Vec::new(),
            backlogs: vec![PortBacklog::default(); ports],
            retried: Vec::new(),
            round: 0,
            tx_queues: std::iter::repeat_with(tx_queue).take(ports).collect(),
            timers: TimerHeap::new(links.len()),
            links,
            routes,
            received: Vec::with_capacity(BATCH),
            malformed: [0; Malformed::ALL.len()],
            lateness: Histogram::default(),
        })
    }

    /// Moves packets until `deadline`, or until `wake` is readable.
    ///
    /// # Errors
    /// If a socket or the wait fails for good.
    pub fn run(&mut self, deadline: Time, wake: Option<BorrowedFd<'_>>) -> Result<Stop, EngineError> {
        loop {
            let now = self.io.now().min(deadline);
            self.advance(now);
            self.flush()?;
            // At the deadline it polls without waiting, so that ports are read however late it is.
            let until = if now == deadline { now } else { self.next().min(deadline) };
            let is_woken = self.wait(until, wake)?;
            self.receive(deadline)?;
            // Reading took time, in which packets fell due.
            self.flush()?;
            if is_woken {
                return Ok(Stop::Woken);
            }
            if now == deadline {
                return Ok(Stop::Deadline);
            }
        }
    }

    /// Sends a packet to the next hop of its route.
    pub fn dispatch(&mut self, now: Time, packet: Packet) {
        match self.routes.get(packet.hop as usize) {
            Some(&Hop::Link(link)) => {
                let entered = &mut self.links[link as usize];
                entered.enter(now, packet, &mut self.shared);
                if let Some((other, tickets)) = entered.take_ack_ticket_rate()
                    && let Some(other) = self.links.get_mut(other as usize)
                {
                    other.state.set_tickets(now, tickets);
                }
                self.schedule(link);
            }
            Some(&Hop::Port(port)) => self.queue_xmit(now, port, &packet),
            // Only messages end at the world, which has received them already.
            Some(Hop::World) | None => self.shared.pool.give_back(packet.buffer),
        }
    }

    /// Sends a frame of the engine's own, which entered by no port. It is dropped if no buffer is free or the
    /// frame fits none.
    pub fn originate(&mut self, now: Time, frame: &[u8], description: &Description, hop: u32) {
        let Some(length) =
            u16::try_from(frame.len()).ok().filter(|_| frame.len() <= self.shared.pool.longest())
        else {
            return;
        };
        let Some(buffer) = self.shared.pool.take(OWN) else { return };
        let bytes = self.shared.pool.bytes_mut(buffer);
        // Packet sockets would read old bytes there as metadata of the frame.
        bytes[..HEAD].fill(0);
        bytes[HEAD..HEAD + frame.len()].copy_from_slice(frame);
        let ip = frame::parse(frame).ok().and_then(|parsed| parsed.ip());
        let description = Description { ip, ..*description };
        self.dispatch(now, Packet::new((buffer, HEAD as u8, length), &description, hop, now));
    }

    /// Delivers a message between routers to the world, sends the world's own messages, and forwards this one
    /// if the world says so.
    fn deliver_control(&mut self, now: Time, place: Place, packet: Packet, parsed: Option<&Parsed>) {
        let is_end = matches!(self.routes.get(packet.hop as usize), Some(Hop::World));
        let buffer = self.shared.pool.bytes_mut(packet.buffer);
        let is_unfinished = has_unfinished_checksum(buffer);
        let frame = &mut buffer[packet.range()];
        let reread = if parsed.is_none() { frame::parse(frame).ok() } else { None };
        let goes_on = parsed.or(reread.as_ref()).is_some_and(|parsed| {
            let control = ControlFrame { place, is_end, frame, parsed, is_unfinished };
            self.world.on_control(now, control, &mut LinkStates(&mut self.links)) && !is_end
        });
        if !goes_on {
            self.shared.pool.give_back(packet.buffer);
        }
        self.send_messages(now);
        if goes_on {
            self.dispatch(now, packet);
        }
    }

    /// Sends the messages that the world has queued.
    fn send_messages(&mut self, now: Time) {
        while let Some(Outgoing { frame, description, hop }) = self.world.poll_transmit(&mut self.routes) {
            self.originate(now, &frame, &description, hop);
        }
    }

    /// The time of the next event.
    fn next(&mut self) -> Time {
        self.timers.next().min(self.world.next_timer())
    }

    fn schedule(&mut self, link: u32) {
        self.timers.set(link, self.links[link as usize].next());
    }

    /// Handles all events up to `now`, each at its time.
    fn advance(&mut self, now: Time) {
        loop {
            let at = self.next();
            if at > now {
                return;
            }
            if self.world.next_timer() <= at {
                self.world.on_timer(at, &mut LinkStates(&mut self.links));
                self.send_messages(at);
                continue;
            }
            let Some(link) = self.timers.take(at) else { return };
            let arrived = self.links[link as usize].on_timer(at, &mut self.shared);
            self.schedule(link);
            if let Some(mut packet) = arrived {
                packet.hop += 1;
                self.forward(at, Place::Link(link), packet, None);
            }
        }
    }

    /// Sends a packet on from `place`; a message between routers only if the world lets it pass. `parsed` is
    /// given if the packet was just parsed.
    fn forward(&mut self, now: Time, place: Place, packet: Packet, parsed: Option<&Parsed>) {
        match packet.protocol() {
            Protocol::Control => self.deliver_control(now, place, packet, parsed),
            Protocol::Tcp | Protocol::Udp => self.dispatch(now, packet),
        }
    }

    /// Queues a packet at its last port, due at `at`.
    fn queue_xmit(&mut self, at: Time, port: u32, packet: &Packet) {
        let Packet { buffer, start, length, .. } = *packet;
        if packet.counts()
            && let Some(flow) = self.shared.account(packet.account())
        {
            flow.delivered.add(packet.size());
        }
        let frame = &mut self.shared.pool.bytes_mut(buffer)[packet.range()];
        if packet.was_marked() {
            frame::set_ce(frame, packet.ip());
        }
        self.world.egress(at, port, packet, frame);
        let queue = &mut self.tx_queues[port as usize];
        queue.carried.add(packet.size());
        if queue.outbox.is_empty() {
            self.leaving.push(port);
        }
        queue.outbox.push(Received { buffer, start, length });
        queue.due.push(at);
    }

    /// Sends frames that have left their last link. Frames for which a device has no room stay, and are tried
    /// again.
    fn flush(&mut self) -> Result<(), EngineError> {
        let (io, pool) = (&mut self.io, &mut self.shared.pool);
        let mut result = Ok(());
        self.leaving.retain(|&port| {
            let queue = &mut self.tx_queues[port as usize];
            let now = io.now();
            let mut done = 0;
            if queue.is_due(now) {
                done = send_bursts(io, port, pool, (&queue.outbox, &queue.due)).unwrap_or_else(|source| {
                    result = Err(EngineError::Port { port, what: "send", source });
                    0
                });
                queue.note(now, done, done < queue.outbox.len());
            }
            let TxQueue { outbox, due, .. } = queue;
            due.drain(..done).for_each(|due| self.lateness.record(now.since(due)));
            let excess = (outbox.len() - done).saturating_sub(MAX_HELD);
            if excess > 0 {
                io.give_up(port, excess as u64);
                due.drain(..excess);
                done += excess;
            }
            outbox.drain(..done).for_each(|frame| pool.give_back(frame.buffer));
            !outbox.is_empty()
        });
        result
    }

    /// Reads a batch of frames at each ready port, as of now or of `latest`.
    fn receive(&mut self, latest: Time) -> Result<(), EngineError> {
        let mut received = std::mem::take(&mut self.received);
        while let Some(number) = self.ready.pop() {
            if let Some(&link) = self.retried.get((number as usize).wrapping_sub(self.tx_queues.len())) {
                let now = self.io.now().min(latest);
                self.advance(now);
                self.change(link as usize, |link, shared| link.retry(now, shared));
                continue;
            }
            let is_left = self
                .io
                .receive(number, &mut self.shared.pool, &mut received)
                .map_err(|source| EngineError::Port { port: number, what: "receive", source })?;
            // Events that were due before the frames arrived come first.
            let now = self.io.now().min(latest);
            self.advance(now);
            let backlog = &mut self.backlogs[number as usize];
            backlog.note(now, self.round, is_left);
            let port_lags = backlog.lags(now);
            for frame in received.drain(..) {
                self.ingress(now, number, frame, port_lags);
            }
            if self.io.room(number, &self.shared.pool) == 0 {
                // A starved port stays readable, which would end every wait at once.
                self.io.watch(number, false).map_err(EngineError::Wait)?;
                self.starved.push(number);
            }
        }
        self.received = received;
        Ok(())
    }

    /// Handles a frame that entered by `port`.
    fn ingress(&mut self, now: Time, port: u32, received: Received, port_lags: bool) {
        let Received { buffer, start, length } = received;
        let range = usize::from(start)..usize::from(start) + usize::from(length);
        let frame = &mut self.shared.pool.bytes_mut(buffer)[range];
        let parsed = match frame::parse(frame) {
            Ok(parsed) => parsed,
            Err(malformed) => {
                self.malformed[malformed as usize] += 1;
                self.shared.pool.give_back(buffer);
                return;
            }
        };
        match self.world.classify(now, Arrival { port, frame, parsed: &parsed, port_lags, received }) {
            Disposition::Forward(packet) => {
                self.apply_flow_updates(now);
                if packet.counts()
                    && let Some(flow) = self.shared.account(packet.account())
                {
                    flow.sent.add(packet.size());
                }
                self.forward(now, Place::Port(port), packet, Some(&parsed));
            }
            Disposition::Consume => self.shared.pool.give_back(buffer),
        }
    }

    /// Applies the world's updates of flows to links.
    pub fn apply_flow_updates(&mut self, now: Time) {
        while let Some((number, flow, setting)) = self.world.poll_flow_update() {
            self.change(number as usize, |link, shared| {
                link.set_flow(now, flow, setting, shared);
            });
        }
    }

    /// Waits until `until`, or until a port has frames. Returns whether `wake` is readable.
    fn wait(&mut self, mut until: Time, wake: Option<BorrowedFd<'_>>) -> Result<bool, EngineError> {
        let now = self.io.now();
        self.round += 1;
        for number in std::mem::take(&mut self.starved) {
            self.backlogs[number as usize].note(now, self.round, true);
            if self.io.room(number, &self.shared.pool) >= ENOUGH {
                self.io.watch(number, true).map_err(EngineError::Wait)?;
            } else {
                self.starved.push(number);
            }
        }
        let again = |port: &u32| self.tx_queues[*port as usize].full.map_or(now, |(_, again)| again);
        if let Some(again) = self.leaving.iter().map(again).min() {
            until = until.min(again.max(now + RETRY));
        }
        let span = (until < Time::MAX).then(|| until.since(now));
        self.io.wait(span, wake, &mut self.ready).map_err(EngineError::Wait)
    }
}

/// Number of the first of these ascending times that are within [`BURST`] of the first one; 0 if there are
/// none.
fn burst(due: &[Time]) -> usize {
    let count = due.first().map_or(0, |first| due.partition_point(|at| *at < *first + BURST));
    count.max(due.len().min(1))
}

/// Sends frames in [`BURST`]s; their departure times ascend. Returns how many are done with.
fn send_bursts(
    io: &mut impl FrameIo,
    port: u32,
    pool: &mut Pool,
    (frames, due): (&[Received], &[Time]),
) -> io::Result<usize> {
    let mut done = 0;
    while done < frames.len() {
        let count = burst(&due[done..]);
        let sent = io.send(port, pool, &frames[done..done + count])?;
        done += sent;
        if sent < count {
            break;
        }
    }
    Ok(done)
}

impl<W> Engine<W> {
    /// Makes a link ask its queue again each time `arrivals` becomes readable: an external queue delivers its
    /// packets elsewhere.
    ///
    /// # Errors
    /// If the descriptor cannot be polled.
    pub fn retry_on(&mut self, link: u32, arrivals: OwnedFd) -> Result<(), EngineError> {
        self.io.watch_arrivals(arrivals).map_err(EngineError::Wait)?;
        self.retried.push(link);
        Ok(())
    }

    /// The engine's clock, for other components that share its time.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.io.clock()
    }
}

/// Measurements, and changes between runs.
impl<W, I: FrameIo> Engine<W, I> {
    /// Gives a port another socket, or none while its interface is absent: frames for it are then dropped and
    /// counted.
    ///
    /// # Errors
    /// If the socket cannot be polled.
    pub fn replace_port(&mut self, number: u32, socket: Option<I::Socket>) -> Result<(), EngineError> {
        if let Some(queue) = self.tx_queues.get_mut(number as usize) {
            queue.full = None;
        }
        self.io.replace(number, socket, &mut self.shared.pool).map_err(EngineError::Wait)
    }

    /// The time on its clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.io.now()
    }

    /// The frame I/O.
    #[cfg(test)]
    pub fn io_mut(&mut self) -> &mut I {
        &mut self.io
    }

    #[must_use]
    pub fn link(&self, number: usize) -> Option<&Link> {
        self.links.get(number)
    }

    /// The counters of a port, and the charged sizes of packets that it sent.
    pub fn port_counts(&mut self, number: usize) -> Option<(PortCounts, Count)> {
        let carried = self.tx_queues.get(number)?.carried;
        Some((self.io.counts(number as u32), carried))
    }

    /// Malformed frames, by reason.
    pub fn malformed(&self) -> impl Iterator<Item = (Malformed, u64)> {
        Malformed::ALL.into_iter().zip(self.malformed)
    }

    /// Lateness of packets that left.
    #[must_use]
    pub const fn lateness(&self) -> &Histogram {
        &self.lateness
    }

    /// Resets the measurement of lateness.
    pub fn forget_lateness(&mut self) {
        self.lateness = Histogram::default();
    }
}

impl<W: World, I: FrameIo> Engine<W, I> {
    /// Handles all events up to now and returns that time. Call it before changes.
    pub fn catch_up(&mut self) -> Time {
        let now = self.io.now();
        self.advance(now);
        now
    }

    /// Changes a link and reschedules its next event.
    pub fn change(&mut self, number: usize, change: impl FnOnce(&mut Link, &mut SharedState)) {
        if let Some(link) = self.links.get_mut(number) {
            change(link, &mut self.shared);
            self.schedule(number as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_less_than_a_millisecond_and_is_never_empty() {
        let due: Vec<Time> = (0..100).map(|at| Time::ZERO + Span::from_micros(120) * at).collect();
        // 0 to 960 us; frames of 1500 bytes at 100 Mbit/s.
        assert_eq!(burst(&due), 9);
        assert_eq!(burst(&[Time::ZERO; 3_000]), 3_000);
        // At 1 Mbit/s.
        assert_eq!(burst(&[Time::ZERO, Time::ZERO + Span::from_millis(12)]), 1);
        assert_eq!((burst(&[]), burst(&due[99..])), (0, 1));
        // Links give no descending times, but such times must not stop the engine.
        assert!(burst(&[Time::ZERO + Span::from_millis(5), Time::ZERO]) >= 1);
    }
}
