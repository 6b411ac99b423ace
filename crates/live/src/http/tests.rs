//! Clients that send right, wrong and slow requests.

use super::*;

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use nix::poll::{PollFd, poll};

/// The bytes of a client, sent in pieces of this size.
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

/// The bytes that arrived at a client; none if the connection is open and silent.
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
    // The bound holds, and the latest clients are still served.
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
    // A single byte extends no deadline.
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
    assert!(matches!(clients.0[0].state, State::Taking { .. }) && clients.0.len() == MAX_CLIENTS);
}

#[test]
fn a_client_whose_answer_is_not_known_yet_waits_and_delays_no_other() {
    let (mut clients, now) = (Clients::default(), Time::from_secs(7));
    let [mut waiting, mut gone, mut other] = [(), (), ()].map(|()| client(&mut clients, now));
    waiting.write_all(REQUEST).unwrap();
    gone.write_all(REQUEST).unwrap();
    clients.serve(now, |_| None);
    drop(gone);
    // Longer than any client may take to ask or to take its answer; the client has no deadline meanwhile.
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
        ("Content-Length:", "four", "400 "),
        ("Content-Length: +4", "four", "400 "),
        ("Content-Length: 4, 4", "four", "400 "),
        ("Content-Length: 4\r\nContent-Length:", "four", "400 "),
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

/// A client of `clients` over TCP, which the server has accepted.
fn tcp_client(clients: &mut Clients, now: Time, request: &[u8]) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.write_all(request).unwrap();
    let server = listener.accept().unwrap().0;
    // The request has arrived: its first byte can be read.
    server.peek(&mut [0]).unwrap();
    server.set_nonblocking(true).unwrap();
    clients.add(now, server, answer);
    client
}

/// All bytes that a client reads until the end.
fn read_to_end(client: &mut TcpStream) -> io::Result<String> {
    let mut all = String::new();
    client.read_to_string(&mut all)?;
    Ok(all)
}

const TOO_LONG: &str = "POST /x HTTP/1.1\r\nContent-Length: 200000\r\n\r\n";

#[test]
fn a_body_that_is_refused_is_drained_so_that_the_answer_arrives() {
    let (mut clients, now) = (Clients::default(), Time::from_secs(7));
    for (head, status) in
        [(TOO_LONG, "413"), ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411")]
    {
        let request = [head.as_bytes(), &[b'x'; 50_000]].concat();
        let mut client = tcp_client(&mut clients, now, &request);
        // More input follows the answer.
        client.write_all(&[b'x'; 50_000]).unwrap();
        clients.serve(now, answer);
        client.write_all(&[b'x'; 50_000]).unwrap();
        clients.serve(now, answer);
        assert!(read_to_end(&mut client).unwrap().starts_with(&format!("HTTP/1.0 {status} ")));
        client.shutdown(std::net::Shutdown::Write).unwrap();
        while !clients.0.is_empty() {
            let interests = clients.interests().map(|(client, flags)| PollFd::new(client, flags));
            assert!(poll(&mut interests.collect::<Vec<_>>(), 10_000_u16).unwrap() > 0);
            clients.serve(now, answer);
        }
    }
}

#[test]
fn a_body_that_is_refused_is_drained_for_a_while_and_up_to_a_bound() {
    let (mut clients, now) = (Clients::default(), Time::from_secs(7));
    let mut slow = tcp_client(&mut clients, now, TOO_LONG.as_bytes());
    assert_eq!((clients.0.len(), clients.deadline()), (1, Some(now + TO_DRAIN)));
    assert_eq!(clients.interests().map(|(_, flags)| flags).collect::<Vec<_>>(), [PollFlags::POLLIN]);
    assert!(read_to_end(&mut slow).unwrap().contains(" 413 "));
    clients.serve(now + TO_DRAIN - Span::from_nanos(1), answer);
    assert_eq!(clients.0.len(), 1);
    clients.serve(now + TO_DRAIN, answer);
    assert_eq!(clients.0.len(), 0);
    // This client sends without an end.
    let mut endless = tcp_client(&mut clients, now, TOO_LONG.as_bytes());
    endless.set_nonblocking(true).unwrap();
    let mut sent = 0;
    while !clients.0.is_empty() && sent < MAX_DRAIN * 20 {
        sent += endless.write(&[b'x'; 1_000]).unwrap_or(0);
        clients.serve(now, answer);
    }
    assert!(clients.0.is_empty() && sent >= MAX_DRAIN, "{sent}");
    // Drained clients have their answer, so they go before clients that are still asking.
    let drained = tcp_client(&mut clients, now, TOO_LONG.as_bytes());
    let asking: Vec<_> = (0..MAX_CLIENTS).map(|_| client(&mut clients, now)).collect();
    assert_eq!(clients.0.len(), MAX_CLIENTS);
    assert!(clients.0.iter().all(|client| matches!(client.state, State::Asking(_))));
    drop((drained, asking));
}
