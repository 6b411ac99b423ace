//! What moves frames: ports, the time, and a wait for either.
//!
//! [`FrameIo`] is what an engine needs of a system. [`Ports`] is this machine; a test puts a simulated one in its
//! place, whose ports fail and whose clock jumps.

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
    /// The hardware address of its interface.
    fn hardware(&self) -> [u8; 6];

    /// Whether its frames come in by memory shared with the kernel.
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
    /// What a port reads and writes by.
    type Socket: Socket;

    /// The time. Never earlier than that of the call before.
    fn now(&self) -> Time;

    /// How many ports there are.
    fn port_count(&self) -> usize;

    /// Reads a batch of the frames that wait at a port into buffers of `pool`; nothing if its interface has gone. Whether
    /// more may wait.
    ///
    /// # Errors
    /// If the port fails for good. That its interface is down is no such failure.
    fn receive(&mut self, port: u32, pool: &mut Pool, frames: &mut Vec<Received>) -> io::Result<bool>;

    /// Sends frames in order. How many are done with: sent, or counted as unsent. The others are to be tried again
    /// soon, because the interface takes no more for now.
    ///
    /// # Errors
    /// If the port fails for good. That its interface is down or has gone is no such failure.
    fn send(&mut self, port: u32, pool: &mut Pool, frames: &[Received]) -> io::Result<usize>;

    /// Counts frames as unsent that are given up.
    fn give_up(&mut self, port: u32, frames: u64);

    /// How many frames the port could read now, for want of buffers.
    fn room(&self, port: u32, pool: &Pool) -> usize;

    /// What the port has counted since the start, over all interfaces that it had.
    fn counts(&mut self, port: u32) -> PortCounts;

    /// Gives a port another socket, or none as long as its interface is not there. The counters go on.
    ///
    /// # Errors
    /// If the socket cannot be watched.
    fn replace(&mut self, port: u32, socket: Option<Self::Socket>, pool: &mut Pool) -> Result<(), Errno>;

    /// Whether a port is reported by [`wait`](FrameIo::wait) when it has frames; the default.
    ///
    /// # Errors
    /// If the system cannot watch it.
    fn watch(&mut self, port: u32, watched: bool) -> Result<(), Errno>;

    /// Waits until a watched port has frames or `wake` is readable, at most for `span`; for ever without one. Puts the
    /// ports that have frames into `ready`, and numbers behind those of the ports for what else is watched. Whether `wake` is readable.
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

/// The packet sockets of this machine.
#[derive(Debug)]
pub struct Ports {
    clock: Clock,
    readiness: Readiness,
    slots: Vec<Slot>,
    /// What else is watched.
    others: Vec<OwnedFd>,
}

/// A port, whose interface may have gone.
#[derive(Debug)]
struct Slot {
    port: Option<Port>,
    is_watched: bool,
    /// Of the sockets that it had before.
    before: PortCounts,
}

impl Ports {
    /// These ports, in the order of their numbers, with the time of `clock`.
    ///
    /// # Errors
    /// If they cannot be watched.
    pub fn new(clock: Clock, ports: Vec<Port>) -> Result<Self, Errno> {
        let (slots, others) = (Vec::with_capacity(ports.len()), Vec::new());
        let mut all = Self { clock, readiness: Readiness::new()?, slots, others };
        for (number, port) in (0..).zip(ports) {
            all.slots.push(Slot { port: Some(port), is_watched: false, before: PortCounts::default() });
            all.watch(number, true)?;
        }
        Ok(all)
    }

    /// Reports arrivals at another descriptor too: the first by the number behind that of the last port, and so on.
    ///
    /// # Errors
    /// If it cannot be watched.
    pub fn watch_arrivals(&mut self, descriptor: OwnedFd) -> Result<(), Errno> {
        let number = (self.slots.len() + self.others.len()) as u32;
        self.readiness.add_arrivals(number, descriptor.as_fd())?;
        self.others.push(descriptor);
        Ok(())
    }

    /// Its clock, for other components with the same time.
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
        // Ports are numbered below 2^16; see `Ports::new` of the engine.
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
