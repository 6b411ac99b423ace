//! Ports that have frames, by epoll(7), so that the cost depends on the ports with frames and not on all.
//!
//! The wait is ppoll(2) on the epoll descriptor, because epoll_wait(2) has no deadline in nanoseconds.

use std::os::fd::{AsFd as _, BorrowedFd};

use apportion_core::units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use crate::clock::timespec;

/// Maximum of descriptors that one wait reports; the next wait reports the others. Chosen: 3 kB.
const MAX_EVENTS: usize = 256;

/// Descriptors by number.
#[derive(Debug)]
pub struct Readiness {
    epoll: Epoll,
    events: Vec<EpollEvent>,
}

impl Readiness {
    /// No descriptors.
    ///
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new() -> Result<Self, Errno> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        Ok(Self { epoll, events: vec![EpollEvent::empty(); MAX_EVENTS] })
    }

    /// Polls `fd`, which is reported as `number`.
    ///
    /// # Errors
    /// If the system cannot poll it.
    pub fn add(&self, number: u32, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN, number.into()))
    }

    /// Polls `fd`, which is reported as `number` once for each arrival, whether it is read or not.
    ///
    /// # Errors
    /// If the system cannot poll it.
    pub fn add_arrivals(&self, number: u32, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.epoll.add(fd, EpollEvent::new(EpollFlags::EPOLLIN | EpollFlags::EPOLLET, number.into()))
    }

    /// Stops polling `fd`, including its errors, which would end every wait.
    ///
    /// # Errors
    /// The descriptor was not added.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        self.epoll.delete(fd)
    }

    /// Waits until a port has frames or `wake` is readable, at most for `span`; for ever without one. Adds
    /// the numbers of ports that have frames to `ready`. Returns whether `wake` is readable.
    ///
    /// # Errors
    /// If waiting fails. A signal is no failure.
    pub fn wait(
        &mut self,
        span: Option<Span>,
        wake: Option<BorrowedFd<'_>>,
        ready: &mut Vec<u32>,
    ) -> Result<bool, Errno> {
        ready.clear();
        let watched = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let ports = self.epoll.0.as_fd();
        let mut polled = [watched(ports), watched(wake.unwrap_or(ports))];
        match ppoll(&mut polled[..1 + usize::from(wake.is_some())], span.map(timespec), None) {
            Ok(_) => (),
            Err(Errno::EINTR) => return Ok(false),
            Err(error) => return Err(error),
        }
        let [has_frames, is_woken] = polled.map(|fd| fd.any().unwrap_or(false));
        if has_frames {
            let found = self.epoll.wait(&mut self.events, EpollTimeout::ZERO)?;
            // These are the numbers given above.
            ready.extend(self.events[..found].iter().map(|event| event.data() as u32));
        }
        Ok(wake.is_some() && is_woken)
    }
}
