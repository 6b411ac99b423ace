//! A listener with the clients that it accepted.

use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;

use apportion_core::units::{Span, Time};
use nix::poll::PollFlags;

use crate::http::Clients;
pub use crate::http::{Answer, Request, Stream};

/// Maximum of connections that are accepted before signals and other clients get their turn.
const ACCEPTS: usize = 128;
/// Pause of a listener that cannot accept, for example because no descriptors are free: it stays readable
/// meanwhile.
const REST: Span = Span::from_millis(100);

/// A non-blocking listener.
pub trait Listener: AsFd {
    /// The next connection, which does not block either.
    ///
    /// # Errors
    /// The system's error; `WouldBlock` if there is no connection.
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

/// A listener, if any, and its clients. Clients of other listeners take none of its places.
#[derive(Debug)]
pub struct Endpoint<L> {
    listener: Option<L>,
    /// Time until which the listener accepts no connections.
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

    /// The source of new clients.
    #[must_use]
    pub const fn listener(&self) -> Option<&L> {
        self.listener.as_ref()
    }

    /// Takes new clients from this listener instead, and keeps the present ones.
    pub fn replace(&mut self, listener: Option<L>) {
        self.listener = listener;
    }

    /// Descriptors to poll, with the events to wait for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let listener = self.listener.iter().filter(|_| self.rests.is_none());
        let listener = listener.map(|listener| (listener.as_fd(), PollFlags::POLLIN));
        listener.chain(self.clients.interests())
    }

    /// Time at which the next client times out, or the listener accepts again.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.clients.deadline().into_iter().chain(self.rests).min()
    }

    /// Accepts, reads and writes as far as possible without blocking. `answer` gets each complete request; if
    /// it returns none, [`answer_waiting`](Self::answer_waiting) answers later.
    pub fn serve(&mut self, now: Time, mut answer: impl FnMut(&Request<'_>) -> Option<Answer>) {
        self.rests = self.rests.filter(|until| *until > now);
        let accepts = if self.rests.is_some() { 0 } else { ACCEPTS };
        for _ in 0..accepts {
            let Some(next) = self.listener.as_ref().map(Listener::next) else { break };
            match next {
                Ok(stream) => self.clients.add(now, stream, &mut answer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // The client may have gone; any other cause does not pass at once.
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
