//! The proxy's thread: it waits for descriptors and serves them in turn.
//!
//! Source: epoll(7), edge-triggered. A turn is bounded; a descriptor with more to do is served again after
//! the others. Numbers of connections and sessions are never reused, so a late event finds none.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use apportion_linux::clock::Clock;
use apportion_linux::socket_helper::Transport;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::eventfd::EventFd;
use std::os::fd::AsFd;

use super::listener_gate::{Listener, ListenerUpdate};
use super::tcp::Tcp;
use super::udp::Udp;
use super::{Connector, Shared};

/// Maximum of events of one wait.
const EVENTS: usize = 256;
/// Interval of searches for silent sessions, in milliseconds.
const SWEEP: u16 = 1_000;

/// The owner of a polled descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Watched {
    /// The descriptor by which others wake the thread.
    Wake,
    /// A listening socket, by port.
    TcpListener(u16),
    /// A socket for datagrams, by port.
    UdpListener(u16),
    /// Either side of a connection, by number.
    Connection(u64),
    /// The host's side of a session, by number.
    Session(u64),
}

impl Watched {
    /// Numbers are shifted by these bits; there are 2^61 of them.
    const NUMBER: u32 = 3;

    fn token(self) -> u64 {
        let (kind, number) = match self {
            Self::Wake => (0, 0),
            Self::TcpListener(port) => (1, port.into()),
            Self::UdpListener(port) => (2, port.into()),
            Self::Connection(number) => (3, number),
            Self::Session(number) => (4, number),
        };
        number << Self::NUMBER | kind
    }

    fn of(token: u64) -> Self {
        let number = token >> Self::NUMBER;
        match token & ((1 << Self::NUMBER) - 1) {
            0 => Self::Wake,
            1 => Self::TcpListener(number as u16),
            2 => Self::UdpListener(number as u16),
            3 => Self::Connection(number),
            _ => Self::Session(number),
        }
    }
}

/// Descriptors that are polled until they are closed.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: Epoll,
}

impl Watch {
    /// Polls a descriptor for each change of readability or writability.
    pub(super) fn add(&self, fd: impl AsFd, whose: Watched) -> Result<(), Errno> {
        let all = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.epoll.add(fd, EpollEvent::new(all, whose.token()))
    }
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Proxy {
    watch: Watch,
    connector: Connector,
    tcp: Tcp,
    udp: Udp,
    updates: Receiver<ListenerUpdate>,
    wake: Arc<EventFd>,
    shared: Arc<Shared>,
    /// Owners with more to do.
    again: BTreeSet<Watched>,
}

impl Proxy {
    pub(super) fn new(
        connector: Connector,
        most: usize,
        updates: Receiver<ListenerUpdate>,
        wake: Arc<EventFd>,
        shared: Arc<Shared>,
    ) -> Result<Self, Errno> {
        let watch = Watch { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)? };
        watch.add(&*wake, Watched::Wake)?;
        let (tcp, udp) = (Tcp::new(most), Udp::new(most));
        Ok(Self { watch, connector, tcp, udp, updates, wake, shared, again: BTreeSet::new() })
    }

    /// Runs until it is stopped.
    pub(super) fn run(mut self) {
        let clock = Clock::start();
        let mut events = vec![EpollEvent::empty(); EVENTS];
        while !self.shared.stop.load(Ordering::Acquire) {
            let timeout = if !self.again.is_empty() {
                EpollTimeout::ZERO
            } else if self.udp.is_idle() {
                EpollTimeout::NONE
            } else {
                EpollTimeout::from(SWEEP)
            };
            let count = match self.watch.epoll.wait(&mut events, timeout) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                // No other error is possible with a valid descriptor.
                Err(_) => return,
            };
            let now = clock.now();
            let mut turns = std::mem::take(&mut self.again);
            for event in &events[..count] {
                let whose = Watched::of(event.data());
                if let Watched::Connection(number) = whose
                    && event.events().contains(EpollFlags::EPOLLERR)
                {
                    self.tcp.fail(number, &mut self.connector);
                } else {
                    turns.insert(whose);
                }
            }
            for whose in turns {
                let Self { watch, connector, tcp, udp, .. } = &mut self;
                let has_more = match whose {
                    Watched::Wake => {
                        self.update_listeners();
                        false
                    }
                    Watched::TcpListener(port) => tcp.accept(port, connector, watch),
                    Watched::Connection(number) => tcp.carry(number, connector),
                    Watched::UdpListener(port) => udp.carry_up(now, port, connector, watch),
                    Watched::Session(number) => udp.carry_down(now, number, connector),
                };
                if has_more {
                    self.again.insert(whose);
                }
            }
            self.udp.forget_silent(now);
            *self.shared.counts() = self.connector.counts;
        }
    }

    /// Handles the updates of the listener gate.
    fn update_listeners(&mut self) {
        // An empty counter is no error: the updates were handled already.
        let _ = self.wake.read();
        while let Ok(update) = self.updates.try_recv() {
            // A listener that cannot be polled is closed at once, and its port stays closed until it is the
            // least recently used.
            match update {
                ListenerUpdate::Open((_, port), Listener::Tcp(listener)) => {
                    if self.watch.add(&listener, Watched::TcpListener(port)).is_ok() {
                        self.tcp.open(port, listener);
                    }
                }
                ListenerUpdate::Open((_, port), Listener::Udp(socket)) => {
                    if self.watch.add(&socket, Watched::UdpListener(port)).is_ok() {
                        self.udp.open(port, socket);
                    }
                }
                ListenerUpdate::Close((Transport::Tcp, port)) => self.tcp.close(port),
                ListenerUpdate::Close((Transport::Udp, port)) => self.udp.close(port),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is() {
        let all = [
            Watched::Wake,
            Watched::TcpListener(80),
            Watched::UdpListener(u16::MAX),
            Watched::Connection((1 << 61) - 1),
            Watched::Session(0),
        ];
        for whose in all {
            assert_eq!(Watched::of(whose.token()), whose);
        }
    }
}
