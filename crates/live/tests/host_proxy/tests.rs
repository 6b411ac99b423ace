//! Traffic that passes the proxy, and traffic that does not.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::namespace::{Identity, make_mounts_private};
use apportion_linux::socket_helper::{Helper, Transport};
use apportion_live::host_proxy::{Refusal, bind_resolv_conf};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;

use crate::services::{count_bytes, echo_datagrams, echo_streams, pour};
use crate::world::{DELAY, Done, GATEWAY, GATEWAY_6, RATE, datagrams, host, listener};
use apportion_testing::processes::{enter_as, part};

const LIMIT: Duration = Duration::from_secs(20);

fn connect(to: impl Into<SocketAddr>) -> TcpStream {
    let stream = TcpStream::connect_timeout(&to.into(), LIMIT).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream
}

fn asker(to: impl Into<SocketAddr>) -> UdpSocket {
    let to = to.into();
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).unwrap();
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    // A connected socket ignores answers from other addresses.
    socket.connect(to).unwrap();
    socket
}

/// Asks until an answer comes, because datagrams may be lost: four times, three of which wait for 2 s.
fn ask(to: impl Into<SocketAddr>, question: &[u8]) -> Vec<u8> {
    let socket = asker(to);
    socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    let mut answer = vec![0; 2_000];
    for _ in 0..4 {
        socket.send(question).unwrap();
        if let Ok(length) = socket.recv(&mut answer) {
            answer.truncate(length);
            return answer;
        }
    }
    panic!("no answer");
}

fn refused(done: &Done, reason: Refusal) -> u64 {
    done.0.refused().find(|(refusal, _)| *refusal == reason).unwrap().1
}

/// Bytes that do not repeat at the sizes of buffers.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Sends 2 MB to a service that echoes them, shuts down its direction, and reads to the end. Returns the
/// times of connecting, of an exchange of a byte, and of all.
fn echo(to: SocketAddr) -> [Span; 3] {
    const LENGTH: usize = 2_000_000;
    let clock = Clock::start();
    let mut stream = connect(to);
    let connected = clock.now();
    stream.set_nodelay(true).unwrap();
    stream.write_all(&[1]).unwrap();
    stream.read_exact(&mut [0]).unwrap();
    let exchanged = clock.now();
    let mut reader = stream.try_clone().unwrap();
    let received = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    });
    stream.write_all(&pattern(LENGTH)).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert!(received.join().unwrap() == pattern(LENGTH));
    let ended = clock.now();
    [connected.since(Time::ZERO), exchanged.since(connected), ended.since(exchanged)]
}

pub fn a_stream_crosses_the_link_both_ways() {
    let host = host();
    let (listener, port) = listener(Ipv4Addr::LOCALHOST);
    let world = host.build(None);
    echo_streams(listener);
    let ([connected, exchanged, ended], done) = world.run(move || echo((GATEWAY, port).into()));
    // Connecting and an exchange take a round trip of 2 x 20 ms each.
    assert!(connected >= DELAY * 2 && exchanged >= DELAY * 2, "{connected} {exchanged}");
    // 2 MB are 1370 packets of 1460 B each with 54 B of headers and more: 2.07 MB, which take over 1.6 s at
    // 10 Mb/s.
    assert!(ended >= Span::from_millis(1_600), "{ended} at {RATE}");
    // At most four times as long again, for slow start and acknowledgements.
    assert!(ended <= Span::from_millis(8_000), "{ended}");
    assert_eq!((done.0.connections, done.0.broken_off), (1, 0), "{done:?}");
    assert_eq!((done.0.bytes.up, done.0.bytes.down), (2_000_001, 2_000_001));
    assert_eq!((done.1.opened, done.1.failed), (1, 0));
}

pub fn the_end_of_a_direction_is_passed_on() {
    let host = host();
    let (listener, port) = listener(Ipv4Addr::LOCALHOST);
    let world = host.build(None);
    count_bytes(listener);
    let (said, done) = world.run(move || {
        let mut stream = connect((GATEWAY, port));
        stream.write_all(&[7; 10_000]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    });
    assert_eq!(said, "10000");
    assert_eq!(done.0.broken_off, 0, "{done:?}");
}

pub fn a_slow_reader_holds_up_the_sender() {
    let host = host();
    let (listener, port) = listener(Ipv4Addr::LOCALHOST);
    let world = host.build(None);
    let poured = pour(listener);
    let (sum, done) = world.run(move || {
        let _stream = connect((GATEWAY, port));
        // Nothing reads. The host's side counts as stuck when it has written nothing for half a second.
        std::iter::from_fn(|| poured.recv_timeout(Duration::from_millis(500)).ok()).sum::<usize>()
    });
    // The host's send buffer grows to 4 MB and the proxy's receive buffer to 6 MB at most (tcp(7), default
    // tcp_wmem and tcp_rmem); the rest waits in the proxy and in the command's receive buffer.
    assert!((1 << 14..20_000_000).contains(&sum), "{sum}");
    assert!(done.0.bytes.down < 10_000_000, "{done:?}");
}

pub fn an_answer_comes_from_the_address_that_was_asked() {
    let host = host();
    let (socket, port) = datagrams(Ipv4Addr::LOCALHOST);
    let world = host.build(None);
    echo_datagrams(socket, b"echo ");
    let (answer, done) = world.run(move || ask((GATEWAY, port), b"of this"));
    assert_eq!(answer, b"echo of this");
    assert_eq!((done.0.sessions, done.0.datagrams_lost), (1, 0), "{done:?}");
    assert_eq!((done.0.datagrams.up, done.0.datagrams.down), (1, 1));
}

/// A query for `example.org`, type A, class IN, ID 0x1234, recursion desired.
const QUERY: &[u8] = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x07example\x03org\0\0\x01\0\x01";

pub fn names_are_asked_of_the_hosts_nameserver() {
    let host = host();
    // The service does not listen at port 53, so an answer proves that the query was passed on.
    let (socket, port) = datagrams(Ipv4Addr::LOCALHOST);
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).unwrap();
    let world = host.build(Some((Ipv4Addr::LOCALHOST, port).into()));
    echo_datagrams(socket, b"answer to ");
    echo_streams(listener);
    make_mounts_private().unwrap();
    bind_resolv_conf(GATEWAY.into()).unwrap();
    let ((answer, by_stream), done) = world.run(move || {
        let text = std::fs::read_to_string("/etc/resolv.conf").unwrap();
        let server = text.lines().next().unwrap().strip_prefix("nameserver ").unwrap();
        let server = (server.parse::<Ipv4Addr>().unwrap(), 53);
        let (mut stream, mut by_stream) = (connect(server), Vec::new());
        stream.write_all(QUERY).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        stream.read_to_end(&mut by_stream).unwrap();
        (ask(server, QUERY), by_stream)
    });
    assert_eq!(answer, [b"answer to ", QUERY].concat());
    assert_eq!(by_stream, QUERY);
    assert_eq!((done.0.connections, done.0.datagrams.up), (1, 1), "{done:?}");
}

pub fn without_a_nameserver_queries_are_refused() {
    let (answer, done) = host().build(None).run(|| ask((GATEWAY, 53), QUERY));
    // The query as a response with RCODE 5.
    assert_eq!((&answer[..4], &answer[4..]), (&[0x12, 0x34, 0x81, 5][..], &QUERY[4..]));
    assert_eq!(refused(&done, Refusal::NoNameserver), 1, "{done:?}");
}

pub fn a_refused_port_is_an_error() {
    let host = host();
    // A port that was free a moment ago, on a loopback that no other process uses.
    let (listener, port) = listener(Ipv4Addr::LOCALHOST);
    drop(listener);
    let world = host.build(None);
    let (errors, done) = world.run(move || {
        // The second address has no route from a host with only a loopback.
        [(GATEWAY, port), (Ipv4Addr::new(192, 0, 2, 1), 80)].map(|to| {
            let mut stream = connect(to);
            stream.read(&mut [0]).unwrap_err().kind()
        })
    });
    assert_eq!(errors, [ErrorKind::ConnectionReset; 2]);
    assert_eq!((refused(&done, Refusal::Refused), refused(&done, Refusal::Unreachable)), (1, 1), "{done:?}");
    assert_eq!(done.0.connections, 0);
}

pub fn two_hundred_connections_are_carried_at_once() {
    let host = host();
    let (listener, port) = listener(Ipv4Addr::LOCALHOST);
    let world = host.build(None);
    echo_streams(listener);
    let (right, done) = world.run(move || {
        let begin = move || std::thread::spawn(move || connect((GATEWAY, port)));
        let all: Vec<_> = (0..200).map(|_| begin()).collect();
        let mut streams: Vec<TcpStream> = all.into_iter().map(|thread| thread.join().unwrap()).collect();
        // All streams exist at the same time.
        for (number, stream) in streams.iter_mut().enumerate() {
            stream.write_all(&pattern(number + 1)).unwrap();
        }
        let mut right = 0;
        for (number, stream) in streams.iter_mut().enumerate() {
            let mut bytes = vec![0; number + 1];
            stream.read_exact(&mut bytes).unwrap();
            right += usize::from(bytes == pattern(number + 1));
        }
        right
    });
    assert_eq!(right, 200);
    assert_eq!((done.0.connections, done.1.opened), (200, 1), "{done:?}");
}

pub fn ipv6_goes_the_same_way() {
    let host = host();
    assert!(host.has_no_ipv6());
    let (listener, port) = listener(Ipv6Addr::LOCALHOST);
    let (socket, datagram_port) = datagrams(Ipv6Addr::LOCALHOST);
    let world = host.build(None);
    echo_streams(listener);
    echo_datagrams(socket, b"echo ");
    let ((times, answer), done) =
        world.run(move || (echo((GATEWAY_6, port).into()), ask((GATEWAY_6, datagram_port), b"of this")));
    assert!(times[1] >= DELAY * 2, "{times:?}");
    assert_eq!(answer, b"echo of this");
    assert_eq!((done.0.connections, done.0.datagrams_lost), (1, 0), "{done:?}");
}

pub fn doors_are_closed_for_others() {
    // A quarter of the 32 descriptors that 160 leave beyond 128 spare ones: eight listeners.
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE).unwrap();
    nix::sys::resource::setrlimit(nix::sys::resource::Resource::RLIMIT_NOFILE, 160, hard).unwrap();
    let host = host();
    let (listener, port) = listener(Ipv4Addr::LOCALHOST);
    let world = host.build(None);
    echo_streams(listener);
    let (_, done) = world.run(move || {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        for port in 10_000..10_100 {
            socket.send_to(b"knock", (GATEWAY, port)).unwrap();
        }
        let mut stream = connect((GATEWAY, port));
        stream.write_all(b"x").unwrap();
        stream.read_exact(&mut [0]).unwrap();
    });
    // A hundred and one listeners for datagrams were opened, and eight are left.
    assert_eq!((done.1.opened, done.1.closed, done.1.failed), (101, 93, 0), "{done:?}");
}

pub fn a_helper_tells_what_the_system_said() {
    enter_as(Identity::Root);
    let helper = Helper::fork().unwrap();
    // Neither has a route, in a namespace without a device.
    let error = helper.open(Transport::Udp, (Ipv4Addr::new(192, 0, 2, 1), 9).into()).unwrap_err();
    assert_eq!(error, Errno::ENETUNREACH);
    assert!(!helper.has_ipv6());
    let process = helper.id();
    drop(helper);
    assert_eq!(waitpid(process, None), Err(Errno::ECHILD));
}

/// The other process of the next test: it has a helper, and waits to be killed.
pub fn hold_a_helper() {
    let helper = Helper::fork().unwrap();
    println!("{}", helper.id());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

pub fn nothing_is_left_when_the_parent_is_killed() {
    // A process that loses its parent becomes a child of this process.
    set_child_subreaper(true).unwrap();
    let mut child = part("hold_a_helper");
    let mut reader = BufReader::new(child.stdout());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let helper = Pid::from_raw(line.trim().parse().unwrap());
    child.kill();
    // The helper was killed, or found its socket closed. The case has a time limit.
    let end = waitpid(helper, None).unwrap();
    assert!(matches!(end, WaitStatus::Signaled(_, Signal::SIGKILL, _) | WaitStatus::Exited(_, 0)), "{end:?}");
    // The helper held none of its parent's files.
    reader.read_to_end(&mut Vec::new()).unwrap();
}
