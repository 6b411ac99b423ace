//! The little of HTTP/1.0 (RFC 1945) that metrics and commands take: one request on a connection, one answer,
//! and the connection ends.
//!
//! A client that is slow or asks for too much is dropped: a request has at most [`MOST_BYTES`] bytes in
//! [`MOST_CALLS`] reads, and each call a limit of [`LIMIT`]. Bodies of requests are not read.

use std::io::{self, Read, Write};
use std::time::Duration;

/// Most bytes of a request. Chosen: browsers send some hundred.
const MOST_BYTES: usize = 4_096;
/// Most calls that read a request or write an answer, each of which may take [`LIMIT`].
const MOST_CALLS: usize = 64;
/// Of each call.
pub const LIMIT: Duration = Duration::from_millis(500);
/// Most bytes of an answer that a client takes: the longest configuration has some hundred kB.
const MOST_ANSWER: u64 = 16 << 20;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// As RFC 1945 section 9 numbers them.
    pub status: u16,
    /// What the body is.
    pub kind: &'static str,
    /// What is told.
    pub body: String,
}

impl Answer {
    /// Text with this status.
    pub fn text(status: u16, body: impl Into<String>) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: body.into() }
    }
}

/// Answers the request on `stream`, whose calls have the limit [`LIMIT`]. `answer` is given method and path.
///
/// # Errors
/// If the stream fails or is too slow; nothing is to be done about that.
pub fn serve(mut stream: impl Read + Write, answer: impl FnOnce(&str, &str) -> Answer) -> io::Result<()> {
    let request = read_request(&mut stream)?;
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
    write_all(&mut stream, &[head.into_bytes(), body.into_bytes()].concat())
}

/// The head of a request.
fn read_request(stream: &mut impl Read) -> io::Result<String> {
    let mut request = Vec::new();
    let mut buffer = [0; 1_024];
    for _ in 0..MOST_CALLS {
        let count = stream.read(&mut buffer)?;
        request.extend(&buffer[..count]);
        let is_whole = request.windows(4).any(|four| four == b"\r\n\r\n");
        if is_whole || count == 0 {
            return Ok(String::from_utf8_lossy(&request).into_owned());
        }
        if request.len() > MOST_BYTES {
            break;
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "the request is too long or too slow"))
}

fn write_all(stream: &mut impl Write, mut bytes: &[u8]) -> io::Result<()> {
    for _ in 0..MOST_CALLS {
        let count = stream.write(bytes)?;
        bytes = &bytes[count..];
        if bytes.is_empty() {
            return stream.flush();
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads too slowly"))
}

/// Asks on `stream`, as a client: the status and the body.
///
/// # Errors
/// If the stream fails, or the answer is none.
pub fn ask(mut stream: impl Read + Write, method: &str, path: &str) -> io::Result<(u16, String)> {
    write!(stream, "{method} {path} HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    stream.take(MOST_ANSWER).read_to_string(&mut answer)?;
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or_else(bad)?, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client sends, in pieces of this size, and what it is told.
    struct Client(Vec<u8>, usize, Vec<u8>);

    impl Read for Client {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    impl Write for Client {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.2.extend(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn told(request: &[u8], piece: usize) -> io::Result<String> {
        let mut client = Client(request.to_vec(), piece, Vec::new());
        serve(&mut client, |method, path| Answer::text(200, format!("{method} of {path}")))?;
        Ok(String::from_utf8(client.2).unwrap())
    }

    #[test]
    fn a_request_in_pieces_is_answered_once() {
        let answer = told(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 7).unwrap();
        assert!(answer.starts_with("HTTP/1.0 200 OK\r\n") && answer.contains("Content-Length: 15\r\n"));
        assert!(answer.ends_with("\r\n\r\nGET of /metrics"), "{answer}");
    }

    #[test]
    fn what_is_no_request_is_told_so() {
        assert!(told(b"\r\n\r\n", 100).unwrap().starts_with("HTTP/1.0 400 "));
        assert!(told(b"", 100).unwrap().starts_with("HTTP/1.0 400 "));
        assert!(told(&[0xff; 100], 100).unwrap().starts_with("HTTP/1.0 400 "));
    }

    #[test]
    fn a_request_without_end_is_dropped() {
        assert!(told(&[b'x'; 10_000], 1_024).is_err());
        assert!(told(&[b'x'; 10_000], 1).is_err());
    }
}
