//! A page that shows a run while it goes on, and after it: a thread that answers browsers of this machine.
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | the page |
//! | `GET /stats.json` | the data of the page; the caller interprets the query after `?` |
//!
//! There is no password: other machines cannot reach the page, pages of other sites cannot read it (`http`),
//! and it can change nothing.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;

use apportion_core::units::Span;
use apportion_linux::clock::Clock;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::endpoint::Endpoint;
use crate::http::{Answer, Request};
use crate::page::Page;

const OWN: [&str; 3] = [
    include_str!("watch/page/page.html"),
    include_str!("watch/page/page.css"),
    include_str!("watch/page/page.js"),
];

static PAGE: LazyLock<Page> = LazyLock::new(|| {
    let [body, style, script] = OWN;
    Page::new("Apportion", body, style, script)
});

/// The longest wait for clients. Chosen: a poll a minute costs nothing, and fits the argument of poll(2).
const ROUND: Span = Span::from_secs(60);

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WatchError {
    /// Other machines could reach it.
    #[error(
        "no page at {0}: other machines could reach it, and it has no password; write an address of this machine alone, such as \
         127.0.0.1:{port}, and from another machine use `ssh -L`", port = .0.port()
    )]
    Reachable(SocketAddr),
    /// The address cannot be bound.
    #[error("no page at {address}: {cause}; write 127.0.0.1:0 for a free port")]
    Listen {
        address: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
    /// The thread cannot be started.
    #[error("no page: {0}")]
    Start(io::Error),
}

/// An address that accepts browsers, and does not answer them yet.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens at a loopback address; port 0 picks a free port.
    ///
    /// # Errors
    /// If the address is no loopback address, or cannot be bound.
    pub fn bind(address: SocketAddr) -> Result<Self, WatchError> {
        if !address.ip().is_loopback() {
            return Err(WatchError::Reachable(address));
        }
        let listen = || {
            let listener = TcpListener::bind(address)?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            Ok(Self { listener, address })
        };
        listen().map_err(|cause| WatchError::Listen { address, cause })
    }

    /// The address, with the port in use.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from now on, in a thread of its own. `stats` gets the query after `?`, and returns JSON.
    ///
    /// # Errors
    /// If the system starts no more threads.
    pub fn serve(self, stats: impl Fn(&str) -> String + Send + 'static) -> Result<Serving, WatchError> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let stop =
            EventFd::from_value_and_flags(0, flags).map_err(|error| WatchError::Start(error.into()))?;
        let stop = Arc::new(stop);
        let end = Arc::clone(&stop);
        let serve = move || serve(Endpoint::new(Some(self.listener)), &end, &stats);
        let thread = std::thread::Builder::new().name("page".to_owned()).spawn(serve);
        Ok(Serving { stop, thread: Some(thread.map_err(WatchError::Start)?) })
    }
}

/// The thread that answers; it ends when this value is dropped.
#[derive(Debug)]
pub struct Serving {
    stop: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        if self.stop.write(1).is_ok() {
            self.thread.take().map(JoinHandle::join);
        }
    }
}

/// Answers until `stop` is readable.
fn serve(mut browsers: Endpoint<TcpListener>, stop: &EventFd, stats: &impl Fn(&str) -> String) {
    let clock = Clock::start();
    loop {
        browsers.serve(clock.now(), |request| Some(answer(request, stats)));
        match wait(&browsers, stop, &clock) {
            Ok(true) | Err(Errno::EINTR) => (),
            Ok(false) | Err(_) => return,
        }
    }
}

/// Waits for browsers. Returns whether to go on.
fn wait(browsers: &Endpoint<TcpListener>, stop: &EventFd, clock: &Clock) -> Result<bool, Errno> {
    let all = std::iter::once((stop.as_fd(), PollFlags::POLLIN)).chain(browsers.interests());
    let mut watched: Vec<PollFd<'_>> = all.map(|(fd, flags)| PollFd::new(fd, flags)).collect();
    let until = browsers.deadline().map_or(ROUND, |deadline| clock.until(deadline).min(ROUND));
    // Rounded up; below the limit, so it fits.
    poll(&mut watched, PollTimeout::from(until.as_nanos().div_ceil(1_000_000) as u16))?;
    Ok(!watched[0].any().unwrap_or(true))
}

fn answer(request: &Request<'_>, stats: impl Fn(&str) -> String) -> Answer {
    let (path, query) = request.target.split_once('?').unwrap_or((request.target, ""));
    match (request.method, path) {
        ("GET", "/") => PAGE.answer(),
        ("GET", "/stats.json") => Answer::json(stats(query)),
        ("GET", _) => Answer::text(404, "there are / and /stats.json\n"),
        _ => Answer::text(405, "only GET is answered\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    fn asked(address: SocketAddr, head: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn the_page_is_one_small_file_that_asks_no_other_machine() {
        crate::page::check(&PAGE, OWN);
    }

    #[test]
    fn it_answers_this_machine_alone_until_it_is_dropped() {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.address();
        let serving = listener.serve(|query| format!("[{query:?}]")).unwrap();
        let page = asked(address, "GET / HTTP/1.0\r\n\r\n");
        assert!(page.contains("\r\nContent-Security-Policy: default-src 'none'; script-src 'sha256-"));
        assert!(page.ends_with(PAGE.html()));
        assert!(asked(address, "GET /stats.json?link=1 HTTP/1.0\r\n\r\n").ends_with("\r\n\r\n[\"link=1\"]"));
        assert!(asked(address, "GET /x HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404 "));
        assert!(asked(address, "POST / HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405 "));
        let other = "GET /stats.json HTTP/1.0\r\nHost: example.com\r\n\r\n";
        assert!(asked(address, other).starts_with("HTTP/1.0 421 "));
        drop(serving);
        assert!(TcpStream::connect(address).is_err());
    }

    #[test]
    fn an_address_that_others_reach_or_that_is_taken_is_refused_with_what_to_write() {
        for reachable in ["0.0.0.0:9618", "192.0.2.1:9618", "[::]:9618"] {
            let said = Listener::bind(reachable.parse().unwrap()).unwrap_err().to_string();
            assert!(said.contains(reachable) && said.contains("such as 127.0.0.1:9618"), "{said}");
        }
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let said = Listener::bind(taken.local_addr().unwrap()).unwrap_err().to_string();
        assert!(said.contains("in use") && said.ends_with("write 127.0.0.1:0 for a free port"), "{said}");
    }
}
