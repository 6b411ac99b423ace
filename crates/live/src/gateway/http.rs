//! A minimal HTTP/1.0 (RFC 1945) for metrics and commands: one request and one answer on each connection.
//!
//! [`Clients`] serves several connections at once and never waits for any: a slow or silent client delays no other. Each has
//! `TO_ASK` to send its request, of at most `MAX_BYTES` bytes, and `TO_TAKE` to take the answer. Of more than
//! `MAX_CLIENTS` the one that has waited longest is closed, first among those that have not sent their request yet. An answer
//! that is not known yet is given later, and delays no other client either. A body has a `Content-Length` of at most
//! `MAX_BODY`; one that is longer or comes in chunks is not read.

use std::fmt::Debug;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use apportion_core::units::{Span, Time};
use nix::poll::PollFlags;

/// Maximum of bytes of the head of a request. Chosen: browsers send some hundred.
const MAX_BYTES: usize = 4_096;
/// Maximum of bytes of its body. Chosen: the table of a queue with a hundred classes takes 10 kB, and all clients together 4 MB.
const MAX_BODY: usize = 64 << 10;
/// How long a client may take to send its request. Chosen: a program on a busy machine needs some 100 ms.
const TO_ASK: Span = Span::from_secs(5);
/// How long it may take to read the answer, once that is known. Chosen: as the clients of this program wait.
const TO_TAKE: Span = Span::from_secs(20);
/// Clients that are served at once. Chosen: a scrape and a command, and many that misbehave; two descriptors in three of those
/// that a process has by default stay free.
const MAX_CLIENTS: usize = 64;
/// Maximum of bytes of an answer that a client takes: the longest configuration has some hundred kB.
const MAX_ANSWER: u64 = 16 << 20;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status code (RFC 1945 section 9).
    pub status: u16,
    /// Content type of the body.
    pub kind: &'static str,
    /// Content security policy, of what a browser runs.
    pub policy: Option<&'static str>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Text with this status.
    #[must_use]
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", policy: None, body: body.into() }
    }

    /// JSON.
    #[must_use]
    pub const fn json(body: String) -> Self {
        Self { status: 200, kind: "application/json", policy: None, body }
    }

    /// What is sent.
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

/// A request that is complete.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// Path and query.
    pub target: &'a str,
    /// Its first line and fields.
    head: &'a str,
    /// What follows.
    pub body: &'a [u8],
}

impl<'a> Request<'a> {
    /// The value of a field, without blanks around it; the first of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'a str> {
        fields(self.head, name).next()
    }
}

/// The values of the fields of this name.
fn fields<'a>(head: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let value = move |line: &'a str| {
        let (own, value) = line.split_once(':')?;
        own.eq_ignore_ascii_case(name).then(|| value.trim())
    };
    head.lines().skip(1).take_while(|line| !line.is_empty()).filter_map(value)
}

/// A connection whose calls do not block.
pub trait Stream: Read + Write + AsFd + Debug + Send {}
impl<S: Read + Write + AsFd + Debug + Send> Stream for S {}

/// The connections of one listener.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

/// One connection.
#[derive(Debug)]
struct Client {
    stream: Box<dyn Stream>,
    /// When it is dropped; [`Time::MAX`] while it waits for its answer.
    deadline: Time,
    state: State,
}

/// What is awaited of a client.
#[derive(Debug)]
enum State {
    /// The rest of its request.
    Asking(Vec<u8>),
    /// Nothing: its answer is not known yet.
    Waiting,
    /// That it takes the rest of the answer, from this byte on.
    Taking(Vec<u8>, usize),
}

impl Clients {
    /// Serves a connection that was accepted at `now`, as [`serve`](Self::serve) does. Its calls must not block.
    pub fn add(
        &mut self,
        now: Time,
        stream: impl Stream + 'static,
        mut answer: impl FnMut(&Request<'_>) -> Option<Answer>,
    ) {
        let state = State::Asking(Vec::new());
        let mut client = Client { stream: Box::new(stream), deadline: now + TO_ASK, state };
        // Most have asked by now, and need no place.
        if !client.stays(now, &mut answer) {
            return;
        }
        if self.0.len() >= MAX_CLIENTS {
            // Those that have asked delay only themselves, and come last.
            let waits = |client: &Client| (!matches!(client.state, State::Asking(_)), client.deadline);
            let longest = (0..self.0.len()).min_by_key(|&at| waits(&self.0[at]));
            longest.map(|at| self.0.remove(at));
            tracing::debug!("a client was dropped: there are too many");
        }
        self.0.push(client);
    }

    /// What to wait for, of each client.
    pub fn interests(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        self.0.iter().filter_map(|client| {
            let flags = match client.state {
                State::Asking(_) => PollFlags::POLLIN,
                // One that has gone would be reported again and again.
                State::Waiting => return None,
                State::Taking(..) => PollFlags::POLLOUT,
            };
            Some((client.stream.as_fd(), flags))
        })
    }

    /// When a client is dropped next.
    pub fn deadline(&self) -> Option<Time> {
        self.0.iter().map(|client| client.deadline).min()
    }

    /// Reads and writes what can be at once, and drops clients that are done, failed or too slow. `answer` is given
    /// each request that is complete; if it returns none, [`answer_waiting`](Self::answer_waiting) answers later.
    pub fn serve(&mut self, now: Time, mut answer: impl FnMut(&Request<'_>) -> Option<Answer>) {
        self.0.retain_mut(|client| client.stays(now, &mut answer));
    }

    /// Answers the clients that wait for their answer.
    pub fn answer_waiting(&mut self, now: Time, answer: &Answer) {
        self.0.retain_mut(|client| {
            if !matches!(client.state, State::Waiting) {
                return true;
            }
            client.give(now, answer);
            client.stays(now, &mut |_| None)
        });
    }
}

impl Client {
    /// Lets it take this answer from `now` on.
    fn give(&mut self, now: Time, answer: &Answer) {
        self.deadline = now + TO_TAKE;
        self.state = State::Taking(answer.with_head(), 0);
    }

    /// Does what can be done at once. Whether something is left to do.
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

    /// Goes on until it has its answer.
    ///
    /// # Errors
    /// If the stream fails, the request is too long, or nothing can be done at once.
    fn advance(
        &mut self,
        now: Time,
        answer: &mut impl FnMut(&Request<'_>) -> Option<Answer>,
    ) -> io::Result<()> {
        if let State::Asking(request) = &mut self.state {
            read_request(&mut self.stream, request)?;
            match asked(request, answer) {
                Some(answer) => self.give(now, &answer),
                None => (self.state, self.deadline) = (State::Waiting, Time::MAX),
            }
        }
        let State::Taking(answer, taken) = &mut self.state else { return Err(ErrorKind::WouldBlock.into()) };
        while *taken < answer.len() {
            match self.stream.write(&answer[*taken..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => *taken += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
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

/// The bytes of the head, with the empty line that ends it; none if it is not complete.
fn head_length(request: &[u8]) -> Option<usize> {
    request.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// The bytes of the body behind this head.
///
/// # Errors
/// The answer to a body that is not read.
fn body_length(head: &str) -> Result<usize, Answer> {
    if fields(head, "transfer-encoding").next().is_some() {
        return Err(Answer::text(411, "send the body in one piece, with its Content-Length\n"));
    }
    let mut lengths = fields(head, "content-length");
    let Some(length) = lengths.next() else { return Ok(0) };
    // RFC 9112 section 6.3: two that differ are an attack on what is in between.
    if lengths.any(|other| other != length) || !length.bytes().all(|byte| byte.is_ascii_digit()) {
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

/// What may be asked for under any name: it names no host.
const ANY_HOST: [&str; 2] = ["/metrics", "/healthz"];

/// Whether a browser asks for a page of another site, whose name points to this machine for the moment: that page could read
/// what it gets. Browsers name the host always (RFC 9112 section 3.2); what names none is no browser.
fn is_of_another_site(head: &str) -> bool {
    let mut hosts = fields(head, "host");
    hosts.any(|host| {
        let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
        let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |(name, _)| name);
        let number = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        !name.eq_ignore_ascii_case("localhost") && !number.is_ok_and(|number| number.is_loopback())
    })
}

/// Adds to `request` until it is complete, or the client sends no more.
///
/// # Errors
/// If the stream fails or has nothing yet, or the head is too long.
fn read_request(stream: &mut impl Read, request: &mut Vec<u8>) -> io::Result<()> {
    let mut buffer = [0; 1_024];
    loop {
        // A body that is refused is not waited for.
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
/// If the stream fails, or the answer is none.
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
mod tests {
    use super::*;

    use std::os::unix::net::UnixStream;

    /// What a client sends, in pieces of this size.
    struct Sender(Vec<u8>, usize);

    impl Read for Sender {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn answered(request: &[u8], piece: usize) -> io::Result<String> {
        let mut read = Vec::new();
        read_request(&mut Sender(request.to_vec(), piece), &mut read)?;
        let answer = asked(&read, answer).unwrap();
        Ok(String::from_utf8(answer.with_head()).unwrap())
    }

    /// A new client of `clients`.
    fn client(clients: &mut Clients, now: Time) -> UnixStream {
        let (client, server) = UnixStream::pair().unwrap();
        server.set_nonblocking(true).unwrap();
        client.set_nonblocking(true).unwrap();
        clients.add(now, server, answer);
        client
    }

    /// What has arrived at a client; none if the connection is open and silent.
    fn received(client: &mut UnixStream) -> Option<String> {
        let mut all = String::new();
        match client.read_to_string(&mut all) {
            Err(error) if error.kind() == ErrorKind::WouldBlock && all.is_empty() => None,
            _ => Some(all),
        }
    }

    const REQUEST: &[u8] = b"GET /x HTTP/1.0\r\n\r\n";

    fn answer(request: &Request<'_>) -> Option<Answer> {
        let Request { method, target, body, .. } = request;
        let body =
            if body.is_empty() { String::new() } else { format!(" with {}", String::from_utf8_lossy(body)) };
        Some(Answer::text(200, format!("{method} of {target}{body}")))
    }

    #[test]
    fn a_client_that_asks_is_answered_at_once_however_many_are_silent_or_drip() {
        let (mut clients, now) = (Clients::default(), Time::from_secs(7));
        let mut slow: Vec<_> = (0..200).map(|_| client(&mut clients, now)).collect();
        for slow in &mut slow[150..] {
            slow.write_all(b"GET").unwrap();
        }
        let mut good = client(&mut clients, now);
        good.write_all(REQUEST).unwrap();
        clients.serve(now, answer);
        assert!(received(&mut good).unwrap().ends_with("GET of /x"));
        // The bound holds, and those that came last are still served.
        assert_eq!(clients.0.len(), MAX_CLIENTS - 1);
        assert_eq!(received(&mut slow[0]).as_deref(), Some(""), "it has given way");
        slow[199].write_all(&REQUEST[3..]).unwrap();
        clients.serve(now + TO_ASK - Span::from_nanos(1), answer);
        assert!(received(&mut slow[199]).unwrap().ends_with("GET of /x"));
    }

    #[test]
    fn a_client_that_does_not_ask_in_time_is_dropped() {
        let (mut clients, now) = (Clients::default(), Time::from_secs(7));
        let mut silent = client(&mut clients, now);
        assert_eq!(clients.deadline(), Some(now + TO_ASK));
        clients.serve(now + TO_ASK - Span::from_nanos(1), answer);
        assert_eq!(received(&mut silent), None);
        // A drip is no reprieve.
        silent.write_all(b"GET").unwrap();
        clients.serve(now + TO_ASK, answer);
        assert_eq!((received(&mut silent).as_deref(), clients.0.len()), (Some(""), 0));
    }

    #[test]
    fn a_client_that_does_not_read_is_dropped_and_one_that_reads_slowly_gets_all() {
        let long = "x".repeat(4 << 20);
        let (mut clients, now) = (Clients::default(), Time::from_secs(7));
        let [mut idle, mut slow] = [(), ()].map(|()| client(&mut clients, now));
        idle.write_all(REQUEST).unwrap();
        slow.write_all(REQUEST).unwrap();
        let (mut all, mut asked) = (Vec::new(), 0);
        let last = now + TO_TAKE - Span::from_nanos(1);
        for at in [now, last].into_iter().chain(std::iter::repeat_n(last, 1_000)) {
            clients.serve(at, |_| {
                asked += 1;
                Some(Answer::text(200, long.as_str()))
            });
            let mut buffer = vec![0; 100_000];
            while let Ok(count @ 1..) = slow.read(&mut buffer) {
                all.extend(&buffer[..count]);
            }
        }
        assert!(all.ends_with(long.as_bytes()) && asked == 2, "{} of {}", all.len(), long.len());
        assert_eq!(clients.0.len(), 1);
        clients.serve(now + TO_TAKE, answer);
        assert_eq!(clients.0.len(), 0);
        drop(idle);
    }

    #[test]
    fn those_that_have_asked_do_not_give_way_to_those_that_have_not() {
        let (mut clients, now) = (Clients::default(), Time::from_secs(7));
        let long = "x".repeat(4 << 20);
        let mut taking = client(&mut clients, now);
        taking.write_all(REQUEST).unwrap();
        clients.serve(now, |_| Some(Answer::text(200, long.as_str())));
        let _slow: Vec<_> = (0..200).map(|_| client(&mut clients, now)).collect();
        assert!(matches!(clients.0[0].state, State::Taking(..)) && clients.0.len() == MAX_CLIENTS);
    }

    #[test]
    fn a_client_whose_answer_is_not_known_yet_waits_and_delays_no_other() {
        let (mut clients, now) = (Clients::default(), Time::from_secs(7));
        let [mut waiting, mut gone, mut other] = [(), (), ()].map(|()| client(&mut clients, now));
        waiting.write_all(REQUEST).unwrap();
        gone.write_all(REQUEST).unwrap();
        clients.serve(now, |_| None);
        drop(gone);
        // Longer than any client may take to ask or to take its answer; nothing of it is watched meanwhile.
        let later = now + TO_TAKE + TO_TAKE;
        clients.serve(now + TO_ASK - Span::from_nanos(1), answer);
        assert_eq!(clients.interests().count(), 1);
        other.write_all(REQUEST).unwrap();
        clients.serve(now + TO_ASK - Span::from_nanos(1), answer);
        assert!(received(&mut other).unwrap().ends_with("GET of /x"));
        clients.serve(later, answer);
        assert_eq!((received(&mut waiting), clients.0.len(), clients.deadline()), (None, 2, Some(Time::MAX)));
        clients.answer_waiting(later, &Answer::text(409, "no"));
        assert!(received(&mut waiting).unwrap().starts_with("HTTP/1.0 409 Conflict\r\n"));
        assert_eq!(clients.0.len(), 0);
    }

    #[test]
    fn a_request_in_pieces_is_answered_once() {
        let answer = answered(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 7).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.contains("Content-Length: 15\r\n"));
        assert!(answer.ends_with("\r\n\r\nGET of /metrics"), "{answer}");
    }

    #[test]
    fn a_page_of_another_site_reads_nothing_but_metrics() {
        let status = |path: &str, host: &str| {
            let answer = answered(format!("GET {path} HTTP/1.1\r\n{host}\r\n\r\n").as_bytes(), 100).unwrap();
            answer[9..12].to_owned()
        };
        for own in ["Host: 127.0.0.1:9617", "host:localhost", "HOST: [::1]:9617", "Host: 127.0.0.1", "X: y"] {
            assert_eq!(status("/history", own), "200", "{own}");
        }
        for other in [
            "Host: example.com:9617",
            "Host: 192.0.2.1",
            "Host: localhost.example.com",
            "Host: ",
            "host : x\r\nHost: y",
        ] {
            assert_eq!(status("/history?flow=1", other), "421", "{other}");
            assert_eq!(status("/metrics", other), "200", "{other}");
        }
    }

    #[test]
    fn what_is_no_request_is_answered_with_400() {
        assert!(answered(b"\r\n\r\n", 100).unwrap().starts_with("HTTP/1.0 400 "));
        assert!(answered(b"", 100).unwrap().starts_with("HTTP/1.0 400 "));
        assert!(answered(&[0xff; 100], 100).unwrap().starts_with("HTTP/1.0 400 "));
    }

    #[test]
    fn a_request_without_end_is_dropped() {
        assert!(answered(&[b'x'; 10_000], 1_024).is_err());
        assert!(answered(&[b'x'; 10_000], 1).is_err());
    }

    #[test]
    fn a_body_is_read_to_its_length_and_one_that_is_too_long_or_in_chunks_is_refused() {
        let post = |fields: &str, body: &str| {
            let request = format!("POST /x HTTP/1.1\r\n{fields}\r\n\r\n{body}");
            [1, 7, 1_000].map(|piece| answered(request.as_bytes(), piece).unwrap()[9..].to_owned())
        };
        let ok = |answer: &String| answer.starts_with("200 ") && answer.ends_with("POST of /x with four");
        assert!(post("Content-Length: 4", "four").iter().all(ok));
        assert!(post("a: b\r\ncontent-length:4 ", "four more").iter().all(ok));
        for (fields, body, status) in [
            ("Content-Length: 5", "four", "400 "),
            ("Content-Length: 4x", "four", "400 "),
            ("Content-Length: 4\r\nContent-Length: 3", "four", "400 "),
            ("Content-Length: 65537", "", "413 "),
            ("Content-Length: 99999999999999999999999999", "", "413 "),
            ("Transfer-Encoding: chunked", "4\r\nfour\r\n0\r\n\r\n", "411 "),
        ] {
            assert!(post(fields, body).iter().all(|answer| answer.starts_with(status)), "{fields}");
        }
        let most = "x".repeat(MAX_BODY);
        let answer =
            answered(format!("POST /x HTTP/1.1\r\nContent-Length: {MAX_BODY}\r\n\r\n{most}").as_bytes(), 999);
        assert!(answer.unwrap().ends_with(&most));
    }
}
