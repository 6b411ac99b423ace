//! A minimal HTTP/1.0 (RFC 1945) for metrics and commands: one request and one answer on each connection.
//!
//! A client that is slow or asks for too much is dropped: a request has at most `MAX_BYTES` bytes in
//! `MAX_CALLS` reads, all of them within `LIMIT`, and its answer has as long once it is known. Bodies of
//! requests are not read.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Maximum of bytes of a request. Chosen: browsers send some hundred.
const MAX_BYTES: usize = 4_096;
/// Maximum of calls that read a request.
const MAX_CALLS: usize = 64;
/// Maximum duration of all reads of a connection, and of all writes. Chosen: signals wait no longer than two connections,
/// and clients are on this machine.
const LIMIT: Span = Span::from_millis(150);
/// Maximum of bytes of an answer that a client takes: the longest configuration has some hundred kB.
const MAX_ANSWER: u64 = 16 << 20;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Status code (RFC 1945 section 9).
    pub status: u16,
    /// Content type of the body.
    pub kind: &'static str,
    /// The body.
    pub body: String,
}

impl Answer {
    /// Text with this status.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Calls on a connection that together take no longer than [`LIMIT`].
struct Limited<'a, S> {
    stream: &'a S,
    clock: Clock,
}

impl<'a, S: AsFd> Limited<'a, S> {
    fn new(stream: &'a S) -> Self {
        Self { stream, clock: Clock::start() }
    }

    /// Waits until the next call will not.
    fn wait(&self, until: PollFlags) -> io::Result<()> {
        // Rounded up, and below the limit, which fits.
        let left = self.clock.until(Time::ZERO + LIMIT).as_nanos().div_ceil(1_000_000) as u16;
        match poll(&mut [PollFd::new(self.stream.as_fd(), until)], PollTimeout::from(left))? {
            0 => Err(io::Error::new(io::ErrorKind::TimedOut, "the client is too slow")),
            _ => Ok(()),
        }
    }
}

impl<'a, S: AsFd> Read for Limited<'a, S>
where
    &'a S: Read,
{
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.wait(PollFlags::POLLIN)?;
        let mut stream = self.stream;
        stream.read(buffer)
    }
}

impl<'a, S: AsFd> Write for Limited<'a, S>
where
    &'a S: Write,
{
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.wait(PollFlags::POLLOUT)?;
        let mut stream = self.stream;
        stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Answers the request on `stream`, whose calls do not block. `answer` is given method and path.
///
/// # Errors
/// If the stream fails or is too slow; nothing is to be done about that.
pub fn serve<'a, S: AsFd>(stream: &'a S, answer: impl FnOnce(&str, &str) -> Answer) -> io::Result<()>
where
    &'a S: Read + Write,
{
    let request = read_request(&mut Limited::new(stream))?;
    Limited::new(stream).write_all(&reply(&request, answer))
}

/// The answer to `request`, with its head.
fn reply(request: &str, answer: impl FnOnce(&str, &str) -> Answer) -> Vec<u8> {
    let mut words = request.lines().next().unwrap_or_default().split_ascii_whitespace();
    let answer = match (words.next(), words.next()) {
        (Some(method), Some(path)) => answer(method, path),
        _ => Answer::text(400, "this is no HTTP request\n"),
    };
    let Answer { status, kind, body } = answer;
    let reason = match status {
        200 => "OK",
        400 => "Bad Request",
        404 => "Not Found",
        405 => "Method Not Allowed",
        409 => "Conflict",
        _ => "Internal Server Error",
    };
    let head = format!(
        "HTTP/1.0 {status} {reason}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head, body].concat().into_bytes()
}

/// The head of a request.
fn read_request(stream: &mut impl Read) -> io::Result<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 1_024];
    for _ in 0..MAX_CALLS {
        let count = stream.read(&mut buffer)?;
        request.extend(&buffer[..count]);
        let is_whole = request.windows(4).any(|four| four == b"\r\n\r\n");
        if is_whole || count == 0 {
            return Ok(String::from_utf8_lossy(&request).into_owned());
        }
        if request.len() > MAX_BYTES {
            break;
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long or too slow"))
}

/// Sends a request on `stream`, as a client. Returns the status and the body.
///
/// # Errors
/// If the stream fails, or the answer is none.
pub fn request(mut stream: impl Read + Write, method: &str, path: &str) -> io::Result<(u16, String)> {
    write!(stream, "{method} {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut answer)?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(bad)?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::net::UnixStream;

    /// What a client sends, in pieces of this size.
    struct Client(Vec<u8>, usize);

    impl Read for Client {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    fn answered(request: &[u8], piece: usize) -> io::Result<String> {
        let request = read_request(&mut Client(request.to_vec(), piece))?;
        let answer = reply(&request, |method, path| Answer::text(200, format!("{method} of {path}")));
        Ok(String::from_utf8(answer).unwrap())
    }

    /// The result of serving a connection with this answer, and how long it took.
    fn served(server: &UnixStream, body: &str) -> (io::Result<()>, Span) {
        server.set_nonblocking(true).unwrap();
        let clock = Clock::start();
        let served = serve(server, |_, _| Answer::text(200, body));
        (served, clock.now().since(Time::ZERO))
    }

    #[test]
    fn a_client_that_is_silent_or_drips_is_dropped_after_one_limit() {
        let (_client, server) = UnixStream::pair().unwrap();
        let (outcome, took) = served(&server, "");
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took >= LIMIT && took < LIMIT + LIMIT, "{took}");

        let (mut client, server) = UnixStream::pair().unwrap();
        // One byte each 10 ms: 64 of them would take 640 ms.
        let dripping = std::thread::spawn(move || {
            while client.write_all(b"x").is_ok() {
                poll(&mut [], PollTimeout::from(10_u8)).unwrap();
            }
        });
        let (outcome, took) = served(&server, "");
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took < LIMIT + LIMIT, "{took}");
        drop(server);
        dripping.join().unwrap();
    }

    #[test]
    fn a_client_that_does_not_read_is_dropped_and_one_that_does_gets_all() {
        let long = "x".repeat(4 << 20);
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        let (outcome, took) = served(&server, &long);
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(took < LIMIT + LIMIT, "{took}");

        let (client, server) = UnixStream::pair().unwrap();
        let asking = std::thread::spawn(move || request(client, "GET", "/").unwrap());
        served(&server, &long).0.unwrap();
        drop(server);
        let (status, body) = asking.join().unwrap();
        assert_eq!((status, body.len()), (200, long.len()));
    }

    #[test]
    fn a_request_in_pieces_is_answered_once() {
        let answer = answered(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 7).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.contains("Content-Length: 15\r\n"));
        assert!(answer.ends_with("\r\n\r\nGET of /metrics"), "{answer}");
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
}
