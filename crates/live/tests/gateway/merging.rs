//! Segments that leave as super-packets: what arrives, and the shares of flows.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread::JoinHandle;

use apportion_core::units::Span;
use apportion_linux::clock::Clock;
use apportion_linux::host::Host;
use apportion_linux::netlink::{Netlink, Offloads};
use apportion_linux::port::PortCounts;
use apportion_live::gateway::Gateway;

use crate::common::{enter, host, judge_by_time, metrics, open, pause, snapshot, start};

/// Bytes of a transfer.
const LENGTH: usize = 30_000_000;
/// Duration of two connections that share the link, and of the unmeasured part at their start.
const LASTS: Span = Span::from_secs(3);
const STARTS: Span = Span::from_millis(500);

fn config(rate: &str, rest: &str) -> String {
    format!("inside = \"near\"\noutside = \"far\"\nup.rate = \"{rate}\"\ndown.rate = \"{rate}\"\n{rest}")
}

/// Two hosts that send segment by segment, and a gateway between them while `run` runs. Its interfaces
/// segment, like a new veth, or do not.
fn between(config: &str, segments: bool, run: impl FnOnce(&Host, &Host)) -> Gateway {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    for name in ["near", "far"] {
        let mut netlink = Netlink::open().unwrap();
        let before = netlink.offloads(name).unwrap();
        if segments {
            netlink.restore(name, &Offloads { tso: true, gso: true, ..before }, 65_535).unwrap();
        }
        assert_eq!(netlink.offloads(name).unwrap().tso, segments);
    }
    // The gateway is late now and then, as on a busy machine: segments of a slow link are merged where
    // several leave at once.
    let running = start(open(config), |_| pause(2));
    run(&near, &far);
    running.stop()
}

/// The byte at this offset of a transfer.
fn byte(at: usize) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 13) as u8
}

/// Transfers [`LENGTH`] bytes, which must arrive as they were sent.
fn transfer(near: &Host, far: &Host, to: IpAddr) {
    let address = SocketAddr::new(to, 5_001);
    let listener = far.namespace.run(|| TcpListener::bind(address).unwrap()).unwrap();
    let receiver = std::thread::spawn(move || {
        let mut bytes = Vec::with_capacity(LENGTH);
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes
    });
    let sent: Vec<u8> = (0..LENGTH).map(byte).collect();
    let mut stream = near.namespace.run(|| TcpStream::connect(address).unwrap()).unwrap();
    stream.write_all(&sent).unwrap();
    drop(stream);
    assert!(receiver.join().unwrap() == sent);
}

fn both(near: &Host, far: &Host) {
    for to in [IpAddr::from([10, 0, 0, 12]), [0xfd00, 0, 0, 0, 0, 0, 0, 12].into()] {
        transfer(near, far, to);
    }
}

/// Checks that no frame was lost or sent twice. Frames that end the connections may still be in flight.
fn assert_all_left(near: PortCounts, far: PortCounts) {
    let waiting = near.received.checked_sub(far.sent);
    assert!(far.unsent == 0 && waiting.is_some_and(|waiting| waiting <= 4), "{near:?} {far:?}");
}

/// The least number of segments in the transfers.
const SEGMENTS: u64 = 2 * (LENGTH / 1_448) as u64;

pub fn segments_leave_as_super_packets_and_arrive_as_they_were() {
    let mut gateway = between(&config("5Gbit", ""), true, both);
    let [near, far] = snapshot(&mut gateway).ports;
    assert!(far.sent > SEGMENTS && far.merged > 100, "{far:?}");
    // Counts are of frames on the wire.
    assert_all_left(near, far);
    let text = metrics(&mut gateway);
    let line =
        format!("apportion_gateway_port_sent_super_packets_total{{interface=\"far\"}} {}\n", far.merged);
    assert!(text.contains(&line), "{line}{text}");
}

pub fn they_leave_one_by_one_where_the_device_does_not_segment() {
    let mut gateway = between(&config("5Gbit", ""), false, both);
    let [near, far] = snapshot(&mut gateway).ports;
    assert!(far.sent > SEGMENTS && far.merged == 0, "{far:?}");
    assert_all_left(near, far);
}

/// Opens a connection from `near` to this port of `far`. Returns its bytes in the measured part.
fn stream(near: &Host, far: &Host, port: u16) -> [JoinHandle<usize>; 2] {
    let address = SocketAddr::new([10, 0, 0, 12].into(), port);
    let listener = far.namespace.run(|| TcpListener::bind(address).unwrap()).unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (clock, mut buffer, mut measured) = (Clock::start(), vec![0; 1 << 16], 0);
        loop {
            let length = stream.read(&mut buffer).unwrap();
            let now = clock.now().as_nanos();
            if length == 0 || now > LASTS.as_nanos() {
                return measured;
            }
            measured += if now > STARTS.as_nanos() { length } else { 0 };
        }
    });
    let mut stream = near.namespace.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let sender = std::thread::spawn(move || {
        let (chunk, mut sent) = (vec![7; 1 << 16], 0);
        // Until the receiver has enough.
        while stream.write_all(&chunk).is_ok() {
            sent += chunk.len();
        }
        sent
    });
    [receiver, sender]
}

pub fn two_connections_have_their_shares_though_their_segments_are_merged() {
    judge_by_time();
    let rest = "up.queue = \"stfq\"\n[[rule]]\nto_port = 5002\nweight = 3\n";
    let mut gateway = between(&config("50Mbit", rest), true, |near, far| {
        let streams = [5_001, 5_002].map(|port| stream(near, far, port));
        let [one, three] = streams.map(|[receiver, sender]| {
            let came = receiver.join().unwrap();
            assert!(sender.join().unwrap() >= came);
            came as f64
        });
        // The shares are those without merging, at a rate at which both flows always have a backlog.
        assert!((three / one / 3.0 - 1.0).abs() < 0.05, "{three} / {one}");
        let rate = (one + three) / LASTS.saturating_sub(STARTS).as_secs_f64();
        assert!(rate > 0.9 * 50e6 / 8.0 * 1_448.0 / 1_514.0, "{rate}");
    });
    let [_, far] = snapshot(&mut gateway).ports;
    assert!(far.merged > 50 && far.unsent == 0, "{far:?}");
}

pub fn labelled_packets_are_not_merged() {
    // The rates of a flow are in the identifications of its packets, which are therefore not consecutive.
    let rest = "up.queue = \"csfq\"\nup.labels = { writes = true }\n";
    let mut gateway = between(&config("5Gbit", rest), true, |near, far| {
        transfer(near, far, [10, 0, 0, 12].into());
    });
    let [near, far] = snapshot(&mut gateway).ports;
    assert!(far.sent > SEGMENTS / 2, "{far:?}");
    // A few labels may be consecutive by chance.
    assert!(far.merged * 20 < far.sent, "{far:?} {near:?}");
}
