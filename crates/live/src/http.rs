//! A minimal HTTP/1.0 (RFC 1945) for metrics and commands: one request and one answer per connection.
//!
//! [`Clients`] serves several connections and never blocks: a slow or silent client delays no other. Each has
//! `TO_ASK` to send its request, of at most `MAX_BYTES` bytes, and `TO_TAKE` to take the answer. Beyond
//! `MAX_CLIENTS` connections the one that has waited longest is closed, first among those that have not sent
//! their request yet. An answer that is not yet known is given later, and delays no other client either. A
//! body has a `Content-Length` of at most `MAX_BODY`; a longer or chunked one is refused. The client then
//! gets its answer and the end of the stream, and for `TO_DRAIN` its further input is read and discarded, at
//! most `MAX_DRAIN` bytes.

use std::fmt::Debug;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

use apportion_core::units::{Span, Time};
use nix::poll::PollFlags;
use nix::sys::socket::{Shutdown, shutdown};

/// Maximum of bytes of the head of a request. Chosen: browsers send several hundred.
const MAX_BYTES: usize = 4_096;
/// Maximum of bytes of the body. Chosen: the table of a queue with a hundred classes takes 10 kB, and all
/// clients together 4 MB.
const MAX_BODY: usize = 64 << 10;
/// Maximum time for a client to send its request. Chosen: a program on a busy machine needs some 100 ms.
const TO_ASK: Span = Span::from_secs(5);
/// Maximum time for a client to read the answer, once that is known. Chosen: as long as the clients of this
/// program wait.
const TO_TAKE: Span = Span::from_secs(20);
/// Maximum of clients at once. Chosen: a scrape and a command, and many that misbehave; two thirds of the
/// descriptors that a process has by default stay free.
const MAX_CLIENTS: usize = 64;
/// Limits of time and bytes for reading a refused body, so that the answer arrives: closing a connection with
/// unread input resets it, and the reset can overtake the answer (RFC 9112 section 9.6). Chosen: some round
/// trips, and several times the bytes that a network has in flight.
const TO_DRAIN: Span = Span::from_secs(2);
const MAX_DRAIN: usize = 1 << 20;
/// Maximum of bytes of an answer that a client reads. Chosen: the longest configuration has some hundred kB.
const MAX_ANSWER: u64 = 16 << 20;

#[derive(Debug)]
pub struct Answer {
    /// Status code (RFC 1945 section 9).
    pub status: u16,
    /// Content type of the body.
    pub kind: &'static str,
    /// Content security policy, for answers that a browser runs.
    pub policy: Option<&'static str>,
    pub body: String,
}

impl Answer {
    /// An answer with this text and status.
    #[must_use]
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", policy: None, body: body.into() }
    }

    #[must_use]
    pub const fn json(body: String) -> Self {
        Self { status: 200, kind: "application/json", policy: None, body }
    }

    /// The answer with its head, as it is sent.
    fn with_head(&self) -> Vec<u8> {
        let Self { status, kind, policy, body } = self;
        let policy =
            policy.map(|policy| format!("Content-Security-Policy: {policy}\r\n")).unwrap_or_default();
        let reason = match status {
            200 => "OK",
            400 => "Bad Request",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "Not Found",
            405 => "Method Not Allowed",
            409 => "Conflict",
            411 => "Length Required",
            413 => "Content Too Large",
            415 => "Unsupported Media Type",
            421 => "Misdirected Request",
            429 => "Too Many Requests",
            503 => "Service Unavailable",
            _ => "Internal Server Error",
        };
        // RFC 9110 section 11.6.1.
        let asks = if *status == 401 { "WWW-Authenticate: Bearer\r\n" } else { "" };
        let head = format!(
            "HTTP/1.0 {status} {reason}\r\nContent-Type: {kind}\r\n{policy}{asks}X-Content-Type-Options: nosniff\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), body.as_bytes()].concat()
    }
}

/// A complete request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The method, for example `GET`.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// The first line and the fields.
    head: &'a str,
    /// The body; empty if there is none.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The value of a field, without blanks around it; the first one of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a str> {
        fields(self.head, name).next()
    }
}

/// The values of the fields with this name.
fn fields<'a>(head: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let value = move |line: &'a str| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    };
    head.lines().skip(1).take_while(|line| !line.is_empty()).filter_map(value)
}

/// A non-blocking connection.
pub trait Stream: Read + Write + AsFd + Debug + Send {}
impl<S: Read + Write + AsFd + Debug + Send> Stream for S {}

/// The connections of one listener.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

/// One connection.
#[derive(Debug)]
struct Client {
    stream: Box<dyn Stream>,
    /// Time at which the client is dropped; [`Time::MAX`] while it waits for its answer.
    deadline: Time,
    state: State,
}

/// What the server expects of a client.
#[derive(Debug)]
enum State {
    /// The rest of its request. Holds the bytes so far.
    Asking(Vec<u8>),
    /// Nothing: the answer is not known yet.
    Waiting,
    /// To read the rest of the answer.
    Taking(Taking),
    /// To end its input, which is discarded. Holds the bytes that are still read.
    Draining(usize),
}

/// An answer under way.
#[derive(Debug)]
struct Taking {
    answer: Vec<u8>,
    /// Bytes sent.
    taken: usize,
    /// Whether the client sends a body that was refused.
    is_sending: bool,
}

impl Clients {
    /// Adds a connection that was accepted at `now` and serves it as [`serve`](Self::serve) does. The
    /// connection must not block.
    pub fn add(
        &mut self,
        now: Time,
        stream: impl Stream + 'static,
        mut answer: impl FnMut(&Request<'_>) -> Option<Answer>,
    ) {
        let state = State::Asking(Vec::new());
        let mut client = Client { stream: Box::new(stream), deadline: now + TO_ASK, state };
        // Most clients have sent their request by now, and need no place.
        if !client.stays(now, &mut answer) {
            return;
        }
        if self.0.len() >= MAX_CLIENTS {
            // Clients that have their answer are closed first. Clients that have sent their request delay
            // only themselves, and come last.
            let rank = |state: &State| match state {
                State::Draining(_) => 0,
                State::Asking(_) => 1,
                State::Waiting | State::Taking(_) => 2,
            };
            let waits = |client: &Client| (rank(&client.state), client.deadline);
            let longest = (0..self.0.len()).min_by_key(|&at| waits(&self.0[at]));
            longest.map(|at| self.0.remove(at));
            tracing::debug!("a client was dropped: there are too many");
        }
        self.0.push(client);
    }

    /// Descriptors to poll, with the events to wait for.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.0.iter().filter_map(|client| {
            let flags = match client.state {
                State::Asking(_) | State::Draining(_) => PollFlags::POLLIN,
                // The poll would report a client that has gone again and again.
                State::Waiting => return None,
                State::Taking(_) => PollFlags::POLLOUT,
            };
            Some((client.stream.as_fd(), flags))
        })
    }

    /// Time at which the next client times out.
    pub fn deadline(&self) -> Option<Time> {
        self.0.iter().map(|client| client.deadline).min()
    }

    /// Reads and writes as far as possible without blocking, and drops clients that are done, failed or too
    /// slow. `answer` gets each complete request; if it returns none,
    /// [`answer_waiting`](Self::answer_waiting) answers later.
    pub fn serve(&mut self, now: Time, mut answer: impl FnMut(&Request<'_>) -> Option<Answer>) {
        self.0.retain_mut(|client| client.stays(now, &mut answer));
    }

    /// Answers the clients that wait for their answer.
    pub fn answer_waiting(&mut self, now: Time, answer: &Answer) {
        self.0.retain_mut(|client| {
            if !matches!(client.state, State::Waiting) {
                return true;
            }
            client.give(now, answer, false);
            client.stays(now, &mut |_| None)
        });
    }
}

impl Client {
    /// Gives the client this answer, which it must take within a time that begins at `now`.
    fn give(&mut self, now: Time, answer: &Answer, is_sending: bool) {
        self.deadline = now + TO_TAKE;
        self.state = State::Taking(Taking { answer: answer.with_head(), taken: 0, is_sending });
    }

    /// Proceeds as far as possible without blocking. Returns whether the client stays.
    fn stays(&mut self, now: Time, answer: &mut impl FnMut(&Request<'_>) -> Option<Answer>) -> bool {
        match self.advance(now, answer) {
            Ok(()) => false,
            Err(error) if error.kind() == ErrorKind::WouldBlock && now < self.deadline => true,
            Err(error) => {
                tracing::debug!(%error, "a client was dropped");
                false
            }
        }
    }

    /// Proceeds until the client has its answer.
    ///
    /// # Errors
    /// If the stream fails or would block, or the request is too long.
    fn advance(
        &mut self,
        now: Time,
        answer: &mut impl FnMut(&Request<'_>) -> Option<Answer>,
    ) -> io::Result<()> {
        if let State::Asking(request) = &mut self.state {
            read_request(&mut self.stream, request)?;
            match asked(request, answer) {
                Some(answer) => {
                    let is_sending = is_refused(request);
                    self.give(now, &answer, is_sending);
                }
                None => (self.state, self.deadline) = (State::Waiting, Time::MAX),
            }
        }
        if let State::Taking(taking) = &mut self.state {
            taking.write(&mut self.stream)?;
            if !taking.is_sending {
                return Ok(());
            }
            shutdown(self.stream.as_fd().as_raw_fd(), Shutdown::Write)?;
            (self.state, self.deadline) = (State::Draining(MAX_DRAIN), now + TO_DRAIN);
        }
        match &mut self.state {
            State::Draining(left) => drain(&mut self.stream, left),
            _ => Err(ErrorKind::WouldBlock.into()),
        }
    }
}

impl Taking {
    /// Writes the rest of the answer.
    ///
    /// # Errors
    /// If the stream fails or would block.
    fn write(&mut self, stream: &mut impl Write) -> io::Result<()> {
        while self.taken < self.answer.len() {
            match stream.write(&self.answer[self.taken..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.taken += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads and discards up to the end, or `left` bytes.
///
/// # Errors
/// If the stream fails or would block.
fn drain(stream: &mut impl Read, left: &mut usize) -> io::Result<()> {
    let mut buffer = [0; 4_096];
    while *left > 0 {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => *left = left.saturating_sub(count),
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether `request` has a body that is refused.
fn is_refused(request: &[u8]) -> bool {
    let head = head_length(request).and_then(|length| request.get(..length));
    head.is_some_and(|head| body_length(&String::from_utf8_lossy(head)).is_err())
}

/// The answer to `request`; none if it is not known yet.
fn asked(request: &[u8], answer: impl FnOnce(&Request<'_>) -> Option<Answer>) -> Option<Answer> {
    let (head, body) = request.split_at(head_length(request).unwrap_or(request.len()));
    let head = &*String::from_utf8_lossy(head);
    let mut words = head.lines().next().unwrap_or_default().split_ascii_whitespace();
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Some(Answer::text(400, "this is no HTTP request\n"));
    };
    if is_of_another_site(head) && !ANY_HOST.contains(&target) {
        return Some(Answer::text(421, "ask for this address by its number or as localhost\n"));
    }
    match body_length(head) {
        Ok(length) if length > body.len() => {
            Some(Answer::text(400, "the body ends before its Content-Length\n"))
        }
        Ok(length) => answer(&Request { method, target, head, body: &body[..length] }),
        Err(refused) => Some(refused),
    }
}

/// The length of the head in bytes, with the empty line that ends it; none if the head is not complete.
fn head_length(request: &[u8]) -> Option<usize> {
    request.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// The length of the body in bytes, by this head.
///
/// # Errors
/// The answer that refuses the body.
fn body_length(head: &str) -> Result<usize, Answer> {
    if fields(head, "transfer-encoding").next().is_some() {
        return Err(Answer::text(411, "send the body in one piece, with its Content-Length\n"));
    }
    let mut lengths = fields(head, "content-length");
    let Some(length) = lengths.next() else { return Ok(0) };
    // RFC 9112 section 6.3: two lengths that differ are an attack on intermediaries.
    if lengths.any(|other| other != length)
        || length.is_empty()
        || !length.bytes().all(|byte| byte.is_ascii_digit())
    {
        return Err(Answer::text(400, "Content-Length: write one number\n"));
    }
    let length = length.parse().unwrap_or(usize::MAX);
    if length > MAX_BODY {
        return Err(Answer::text(
            413,
            format!("the body is longer than {MAX_BODY} bytes; set fewer keys at once\n"),
        ));
    }
    Ok(length)
}

/// Paths that are served under any host name: their answers name no hosts of the network.
const ANY_HOST: [&str; 2] = ["/metrics", "/healthz"];

/// Whether a browser sends this request for a page of another site that made its name point to this machine
/// (DNS rebinding): that page could read the answer. Browsers always name the host (RFC 9112 section 3.2); a
/// request without a host is not from a browser.
fn is_of_another_site(head: &str) -> bool {
    let mut hosts = fields(head, "host");
    hosts.any(|host| {
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        !name.eq_ignore_ascii_case("localhost") && !number.is_ok_and(|number| number.is_loopback())
    })
}

/// Appends to `request` until it is complete, or the client's input ends.
///
/// # Errors
/// If the stream fails or would block, or the head is too long.
fn read_request(stream: &mut impl Read, request: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 1_024];
    loop {
        // A refused body is not waited for.
        let whole = head_length(request)
            .map(|head| head + body_length(&String::from_utf8_lossy(&request[..head])).unwrap_or(0));
        match whole {
            Some(whole) if request.len() >= whole => return Ok(()),
            None if request.len() > MAX_BYTES => break,
            _ => (),
        }
        let count = match stream.read(&mut buffer) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            count => count?,
        };
        if count == 0 {
            return Ok(());
        }
        request.extend(&buffer[..count]);
    }
    Err(io::Error::new(ErrorKind::InvalidData, "the request is too long"))
}

/// Sends a request on `stream`, as a client. Returns the status and the body.
///
/// # Errors
/// If the stream fails, or the answer is not HTTP.
pub fn request(mut stream: impl Read + Write, method: &str, path: &str) -> io::Result<(u16, String)> {
    write!(stream, "{method} {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut answer)?;
    let bad = || io::Error::new(ErrorKind::InvalidData, "the answer is not HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(bad)?, body.to_owned()))
}

#[cfg(test)]
mod tests;
