//! A GET of HTTP/1.0 (RFC 1945) with limits of time and size: what answers may be any program.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::address::Address;
use super::answer::{self, clean};
use super::model::Seen;
use crate::progress::now;

/// Maximum time to connect, and from then on until the end of the answer. Chosen: a busy machine needs some
/// 100 ms.
const TO_CONNECT: Duration = Duration::from_secs(2);
const TO_ANSWER: Duration = Duration::from_secs(5);
/// Maximum of bytes of an answer. Chosen: several times the statistics of ten thousand customers.
const MAX_ANSWER: usize = 32 << 20;

/// Asks the page for its data, of the link with this index if it is that of a run.
///
/// # Errors
/// Why there is none.
pub fn ask(address: &Address, link: usize) -> Result<Seen, String> {
    let answer = get(address, &format!("/stats.json?link={link}"))?;
    answer::read(body(&answer)?).map(Seen::from)
}

/// The answer with its head.
fn get(address: &Address, path: &str) -> Result<Vec<u8>, String> {
    let mut failure = None;
    for socket in &address.sockets {
        match exchange(*socket, &address.host, path) {
            Ok(answer) => return Ok(answer),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    Err(failure.map_or_else(|| "no address".to_owned(), |error| in_words(&error)))
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "nothing listens there".to_owned(),
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            format!("no answer within {} s", TO_ANSWER.as_secs())
        }
        _ => error.to_string(),
    }
}

fn exchange(socket: SocketAddr, host: &str, path: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&socket, TO_CONNECT)?;
    let deadline = now() + TO_ANSWER;
    stream.set_write_timeout(Some(TO_ANSWER))?;
    stream.write_all(
        format!("GET {path} HTTP/1.0\r\nHost: {host}\r\nAccept: application/json\r\n\r\n").as_bytes(),
    )?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 16 << 10]);
    loop {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(answer),
            Ok(count) if answer.len() + count > MAX_ANSWER => {
                return Err(io::Error::other(format!("its answer is longer than {} MiB", MAX_ANSWER >> 20)));
            }
            Ok(count) => answer.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
}

/// The body of an answer.
fn body(answer: &[u8]) -> Result<&[u8], String> {
    let no_page = || "its answer is not HTTP".to_owned();
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").ok_or_else(no_page)?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let body = &answer[end + 4..];
    let mut lines = head.lines();
    let status = lines.next().filter(|line| line.starts_with("HTTP/1.")).ok_or_else(no_page)?;
    let status: u16 =
        status.split_ascii_whitespace().nth(1).and_then(|status| status.parse().ok()).ok_or_else(no_page)?;
    match status {
        200 => (),
        300..=399 => return Err(format!("it redirects ({status}), so it is no page of a run or a gateway")),
        _ => {
            let said = String::from_utf8_lossy(body);
            let line = clean(said.lines().next().unwrap_or_default());
            return Err(format!("it answers {status}: {line}"));
        }
    }
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|(_, value)| value.trim().parse::<usize>().ok());
    if length.is_some_and(|length| length > body.len()) {
        return Err("its answer was cut short".to_owned());
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The answer to a client of a server that says these words and closes, or keeps silent.
    fn asked(words: Option<Vec<u8>>) -> Result<Seen, String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The request comes in one piece; closing before it is read would reset the connection.
            let mut request = [0; 1 << 10];
            let count = stream.read(&mut request).unwrap();
            assert!(request[..count].starts_with(b"GET /stats.json?link=3 HTTP/1.0\r\nHost: "));
            match words {
                // The client may hang up first.
                Some(words) => drop(stream.write_all(&words)),
                None => drop(stream.read(&mut request)),
            }
        });
        let answer = ask(&Address { host: socket.to_string(), sockets: vec![socket] }, 3);
        server.join().unwrap();
        answer
    }

    fn refused(words: &str) -> String {
        asked(Some(words.as_bytes().to_vec())).unwrap_err()
    }

    #[test]
    fn what_is_no_page_is_a_message() {
        for (words, said) in [
            ("", "its answer is not HTTP"),
            ("SSH-2.0-OpenSSH\r\n\r\n", "its answer is not HTTP"),
            ("HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\n{}", "its answer was cut short"),
            (
                "HTTP/1.0 302 Found\r\nLocation: http://example.com/\r\n\r\n",
                "it redirects (302), so it is no page of a run or a gateway",
            ),
            ("HTTP/1.0 500 X\r\n\r\nthe \x1b[2Jgateway\nis", "it answers 500: the \u{fffd}[2Jgateway"),
            ("HTTP/1.0 200 OK\r\n\r\n{}", "it is no page of a run or a gateway"),
            (
                "HTTP/1.0 200 OK\r\n\r\n<html>",
                "its answer is not JSON of a run or a gateway: expected value at line 1 column 1",
            ),
        ] {
            assert_eq!(refused(words), said);
        }
        let deep = format!("HTTP/1.0 200 OK\r\n\r\n{{\"x\":{}", "[".repeat(1 << 20));
        assert!(refused(&deep).starts_with("its answer is not JSON of a run or a gateway: EOF"));
    }

    #[test]
    fn a_page_without_end_and_a_silent_one_are_left() {
        let mut endless = b"HTTP/1.0 200 OK\r\n\r\n".to_vec();
        endless.resize(MAX_ANSWER + (1 << 20), b' ');
        assert_eq!(asked(Some(endless)).unwrap_err(), "its answer is longer than 32 MiB");
        assert_eq!(asked(None).unwrap_err(), "no answer within 5 s");
    }

    #[test]
    fn a_port_without_a_page_is_a_message() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = listener.local_addr().unwrap();
        drop(listener);
        let said = ask(&Address { host: socket.to_string(), sockets: vec![socket] }, 0).unwrap_err();
        assert!(cfg!(windows) || said == "nothing listens there", "{said}");
    }
}
