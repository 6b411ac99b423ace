//! Frame I/O: ports, a clock, and a wait for either.
//!
//! [`FrameIo`] is the system as an engine uses it. [`Ports`] implements it for this machine; tests use a
//! simulated machine, whose ports fail and whose clock jumps.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use apportion_core::units::{Span, Time};
use nix::errno::Errno;

use crate::clock::Clock;
use crate::pool::Pool;
use crate::port::{Port, PortCounts, Received};
use crate::readiness::Readiness;

/// The socket of a port.
pub trait Socket {
    /// The hardware address of the interface.
    fn hardware(&self) -> [u8; 6];

    /// Whether frames enter by memory shared with the kernel.
    fn has_ring(&self) -> bool;
}

impl Socket for Port {
    fn hardware(&self) -> [u8; 6] {
        self.hardware()
    }
    fn has_ring(&self) -> bool {
        self.has_ring()
    }
}

/// Ports by number, and a clock.
pub trait FrameIo {
    /// The socket of a port.
    type Socket: Socket;

    /// The time; never earlier than that of the previous call.
    fn now(&self) -> Time;

    /// The number of ports.
    fn port_count(&self) -> usize;

    /// Reads a batch of the frames that wait at a port into buffers of `pool`; none if its interface has
    /// gone. Returns whether more may wait.
    ///
    /// # Errors
    /// If the port fails for good. An interface that is down is no such failure.
    fn receive(&mut self, port: u32, pool: &mut Pool, frames: &mut Vec<Received>) -> io::Result<bool>;

    /// Sends frames in order. Returns how many are done with: sent, or counted as unsent. The caller retries
    /// the others soon, because the interface takes no more for now.
    ///
    /// # Errors
    /// If the port fails for good. An interface that is down or has gone is no such failure.
    fn send(&mut self, port: u32, pool: &mut Pool, frames: &[Received]) -> io::Result<usize>;

    /// Counts frames that the caller gives up as unsent.
    fn give_up(&mut self, port: u32, frames: u64);

    /// Number of frames that the port could read now, by its buffers.
    fn room(&self, port: u32, pool: &Pool) -> usize;

    /// The counters of the port since the start, over all its interfaces.
    fn counts(&mut self, port: u32) -> PortCounts;

    /// Gives a port another socket, or none while its interface is absent. The counters continue.
    ///
    /// # Errors
    /// If the socket cannot be polled.
    fn replace(&mut self, port: u32, socket: Option<Self::Socket>, pool: &mut Pool) -> Result<(), Errno>;

    /// Sets whether [`wait`](FrameIo::wait) reports a port when it has frames; on by default.
    ///
    /// # Errors
    /// If the system cannot poll it.
    fn watch(&mut self, port: u32, watched: bool) -> Result<(), Errno>;

    /// Waits until a watched port has frames or `wake` is readable, at most for `span`; for ever without one.
    /// Adds the ports that have frames to `ready`, and for other descriptors the numbers after those of the
    /// ports. Returns whether `wake` is readable.
    ///
    /// # Errors
    /// If waiting fails.
    fn wait(
        &mut self,
        span: Option<Span>,
        wake: Option<BorrowedFd<'_>>,
        ready: &mut Vec<u32>,
    ) -> Result<bool, Errno>;
}

/// The packet sockets of this machine, and a clock.
#[derive(Debug)]
pub struct Ports {
    clock: Clock,
    readiness: Readiness,
    slots: Vec<Slot>,
    /// Other descriptors that are polled.
    others: Vec<OwnedFd>,
}

/// A port, whose interface may have gone.
#[derive(Debug)]
struct Slot {
    port: Option<Port>,
    is_watched: bool,
    /// Counters of its earlier sockets.
    before: PortCounts,
}

impl Ports {
    /// These ports, in the order of their numbers, with the time of `clock`.
    ///
    /// # Errors
    /// The ports cannot be polled.
    pub fn new(clock: Clock, ports: Vec<Port>) -> Result<Self, Errno> {
        let (slots, others) = (Vec::with_capacity(ports.len()), Vec::new());
        let mut all = Self { clock, readiness: Readiness::new()?, slots, others };
        for (number, port) in (0..).zip(ports) {
            all.slots.push(Slot { port: Some(port), is_watched: false, before: PortCounts::default() });
            all.watch(number, true)?;
        }
        Ok(all)
    }

    /// Reports arrivals at another descriptor too. The first one gets the number after the last port, and so
    /// on.
    ///
    /// # Errors
    /// If the descriptor cannot be polled.
    pub fn watch_arrivals(&mut self, descriptor: OwnedFd) -> Result<(), Errno> {
        let number = (self.slots.len() + self.others.len()) as u32;
        self.readiness.add_arrivals(number, descriptor.as_fd())?;
        self.others.push(descriptor);
        Ok(())
    }

    /// The clock, for other components that share its time.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    fn port(&mut self, number: u32) -> Option<&mut Port> {
        self.slots.get_mut(number as usize)?.port.as_mut()
    }
}

impl FrameIo for Ports {
    type Socket = Port;

    fn now(&self) -> Time {
        self.clock.now()
    }

    fn port_count(&self) -> usize {
        self.slots.len()
    }

    fn receive(&mut self, port: u32, pool: &mut Pool, frames: &mut Vec<Received>) -> io::Result<bool> {
        // Port numbers are below 2^16; see `Engine::new`.
        self.port(port).map_or(Ok(false), |open| open.receive(port as u16, pool, frames))
    }

    fn send(&mut self, port: u32, pool: &mut Pool, frames: &[Received]) -> io::Result<usize> {
        if let Some(open) = self.port(port) {
            return open.send(pool, frames);
        }
        self.give_up(port, frames.len() as u64);
        Ok(frames.len())
    }

    fn give_up(&mut self, port: u32, frames: u64) {
        if let Some(slot) = self.slots.get_mut(port as usize) {
            slot.before.unsent += frames;
        }
    }

    fn room(&self, port: u32, pool: &Pool) -> usize {
        let open = self.slots.get(port as usize).and_then(|slot| slot.port.as_ref());
        open.map_or(usize::MAX, |open| open.room(port as u16, pool))
    }

    fn counts(&mut self, port: u32) -> PortCounts {
        let Some(slot) = self.slots.get_mut(port as usize) else { return PortCounts::default() };
        let mut counts = slot.before;
        counts += slot.port.as_mut().map(Port::counts).unwrap_or_default();
        counts
    }

    fn replace(&mut self, port: u32, socket: Option<Port>, pool: &mut Pool) -> Result<(), Errno> {
        let Some(slot) = self.slots.get_mut(port as usize) else { return Ok(()) };
        if let Some(mut old) = slot.port.take() {
            slot.before += old.counts();
            if std::mem::take(&mut slot.is_watched) {
                self.readiness.remove(old.as_fd())?;
            }
            old.close(pool);
        }
        slot.port = socket;
        self.watch(port, true)
    }

    fn watch(&mut self, port: u32, watched: bool) -> Result<(), Errno> {
        let Some(slot) = self.slots.get_mut(port as usize) else { return Ok(()) };
        let Some(open) = &slot.port else { return Ok(()) };
        match (slot.is_watched, watched) {
            (false, true) => self.readiness.add(port, open.as_fd())?,
            (true, false) => self.readiness.remove(open.as_fd())?,
            _ => (),
        }
        slot.is_watched = watched;
        Ok(())
    }

    fn wait(
        &mut self,
        span: Option<Span>,
        wake: Option<BorrowedFd<'_>>,
        ready: &mut Vec<u32>,
    ) -> Result<bool, Errno> {
        self.readiness.wait(span, wake, ready)
    }
}
