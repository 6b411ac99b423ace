//! A listener with the clients that it has accepted.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;

use apportion_core::units::{Span, Time};
use nix::poll::PollFlags;

use crate::http::Clients;
pub use crate::http::{Answer, Request, Stream};

/// Connections that are accepted before signals and other clients have their turn.
const ACCEPTS: usize = 128;
/// How long a listener rests whose connections cannot be accepted, such as for want of descriptors: it stays readable meanwhile.
const REST: Span = Span::from_millis(100);

/// A listener whose calls do not block.
pub trait Listener: AsFd {
    /// The next connection, whose calls do not block either.
    ///
    /// # Errors
    /// The system's; `WouldBlock` if there is none.
    fn next(&self) -> io::Result<impl Stream + 'static>;
}

impl Listener for UnixListener {
    fn next(&self) -> io::Result<impl Stream + 'static> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true).map(|()| stream)
    }
}

impl Listener for TcpListener {
    fn next(&self) -> io::Result<impl Stream + 'static> {
        let (stream, _) = self.accept()?;
        stream.set_nonblocking(true).map(|()| stream)
    }
}

/// A listener, or none, and its clients, which those of another listener take no place from.
#[derive(Debug)]
pub struct Endpoint<L> {
    listener: Option<L>,
    /// Until when it accepts no connections.
    rests: Option<Time>,
    clients: Clients,
}

impl<L> Default for Endpoint<L> {
    fn default() -> Self {
        Self { listener: None, rests: None, clients: Clients::default() }
    }
}

impl<L: Listener> Endpoint<L> {
    /// The clients of this listener.
    #[must_use]
    pub fn new(listener: Option<L>) -> Self {
        Self { listener, ..Self::default() }
    }

    /// Where new clients come from.
    #[must_use]
    pub const fn listener(&self) -> Option<&L> {
        self.listener.as_ref()
    }

    /// Takes new clients from this listener instead. Those that are there stay.
    pub fn replace(&mut self, listener: Option<L>) {
        self.listener = listener;
    }

    /// What to wait for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listener = self.listener.iter().filter(|_| self.rests.is_none());
        let listener = listener.map(|listener| (listener.as_fd(), PollFlags::POLLIN));
        listener.chain(self.clients.interests())
    }

    /// When a client is dropped next, or connections are accepted again.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.clients.deadline().into_iter().chain(self.rests).min()
    }

    /// Accepts, reads and writes what can be at once. `answer` is given each request that is complete; if it returns none,
    /// [`answer_waiting`](Self::answer_waiting) answers later.
    pub fn serve(&mut self, now: Time, mut answer: impl FnMut(&Request<'_>) -> Option<Answer>) {
        self.rests = self.rests.filter(|until| *until > now);
        let accepts = if self.rests.is_some() { 0 } else { ACCEPTS };
        for _ in 0..accepts {
            let Some(next) = self.listener.as_ref().map(Listener::next) else { break };
            match next {
                Ok(stream) => self.clients.add(now, stream, &mut answer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The client may have gone; if it is something else, it does not pass at once.
                Err(_) => {
                    self.rests = Some(now + REST);
                    break;
                }
            }
        }
        self.clients.serve(now, answer);
    }

    /// Answers the clients that wait for their answer.
    pub fn answer_waiting(&mut self, now: Time, answer: &Answer) {
        self.clients.answer_waiting(now, answer);
    }
}
