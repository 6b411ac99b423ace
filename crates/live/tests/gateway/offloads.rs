//! Hosts whose devices offer segmentation, as virtual ones do by default.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use apportion_core::units::Span;
use apportion_linux::clock::Clock;
use apportion_linux::host::{Host, INTERFACE};
use apportion_linux::netlink::{Netlink, Offloads};
use apportion_live::gateway::Gateway;
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};

use crate::common::{enter, host, judge_by_time, open, snapshot, start};

const RATE: f64 = 20e6;
const CONFIG: &str = "inside = \"near\"\noutside = \"far\"\nup.rate = \"20Mbit\"\ndown.rate = \"20Mbit\"\n";
/// Duration of a transfer, and of the unmeasured part at its start.
const LASTS: Span = Span::from_secs(3);
const STARTS: Span = Span::from_millis(500);

/// Hosts with the offloads of a new veth, and a gateway between them while `run` runs.
fn between(run: impl FnOnce(&Host, &Host)) -> Gateway {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    for (host, outer) in [(&near, "near"), (&far, "far")] {
        let restore = |name: &str| {
            let mut netlink = Netlink::open().unwrap();
            let before = netlink.offloads(name).unwrap();
            let default = Offloads { tso: true, gso: true, ..before };
            netlink.restore(name, &default, 65_535).unwrap();
        };
        host.namespace.run(|| restore(INTERFACE)).unwrap();
        restore(outer);
    }
    let running = start(open(CONFIG), |_| ());
    run(&near, &far);
    running.stop()
}

/// Goodput of one TCP connection from `near` to `far` at `to`, in bytes per second.
fn goodput(near: &Host, far: &Host, to: IpAddr) -> f64 {
    let address = SocketAddr::new(to, 5_001);
    let listener = far.namespace.run(|| TcpListener::bind(address).unwrap()).unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (clock, mut buffer, mut measured) = (Clock::start(), vec![0; 1 << 16], 0);
        let mut from = None;
        loop {
            let length = stream.read(&mut buffer).unwrap();
            let now = clock.now();
            match from {
                _ if length == 0 || now.as_nanos() > LASTS.as_nanos() => break,
                None if now.as_nanos() > STARTS.as_nanos() => from = Some(now),
                None => (),
                Some(_) => measured += length,
            }
        }
        measured as f64 / clock.now().since(from.unwrap()).as_secs_f64()
    });
    let mut stream = near.namespace.run(|| TcpStream::connect(address).unwrap()).unwrap();
    let chunk = vec![7; 1 << 18];
    // Until the receiver has enough.
    while stream.write_all(&chunk).is_ok() {}
    receiver.join().unwrap()
}

fn fills_the_link(to: IpAddr) {
    judge_by_time();
    let headers = if to.is_ipv4() { 20 } else { 40 } + 32;
    let mut gateway = between(|near, far| {
        // The payload of each frame of 1514 bytes.
        let most = RATE / 8.0 * f64::from(1_500 - headers) / 1_514.0;
        let goodput = goodput(near, far, to);
        assert!(goodput > 0.95 * most, "{goodput} of {most}");
    });
    let [inside, _] = snapshot(&mut gateway).ports;
    assert!(inside.segmented > 50 && inside.super_packets == 0, "{inside:?}");
    assert_eq!(inside.oversize, 0);
}

pub fn tcp_in_ipv4_fills_the_link() {
    fills_the_link([10, 0, 0, 12].into());
}

pub fn tcp_in_ipv6_fills_the_link() {
    fills_the_link([0xfd00, 0, 0, 0, 0, 0, 0, 12].into());
}

pub fn segments_of_udp_arrive_as_datagrams_and_so_do_fragments() {
    let gateway = between(|near, far| {
        for (from, to) in [
            (IpAddr::from([10, 0, 0, 11]), IpAddr::from([10, 0, 0, 12])),
            ([0xfd00, 0, 0, 0, 0, 0, 0, 11].into(), IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 12])),
        ] {
            let receiver = far.namespace.run(|| UdpSocket::bind((to, 5_002)).unwrap()).unwrap();
            receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let sender = near.namespace.run(|| UdpSocket::bind((from, 0)).unwrap()).unwrap();
            setsockopt(&sender, UdpGsoSegment, &1_000).unwrap();
            let sent: Vec<u8> = (0..9_300).map(|at: u32| (at * 7 % 251) as u8).collect();
            sender.send_to(&sent, (to, 5_002)).unwrap();
            let mut buffer = [0; 10_000];
            for expected in sent.chunks(1_000) {
                let length = receiver.recv(&mut buffer).unwrap();
                assert_eq!(buffer[..length], *expected);
            }
            // Without the option the host makes fragments, which are no super-packets.
            setsockopt(&sender, UdpGsoSegment, &0).unwrap();
            sender.send_to(&sent, (to, 5_002)).unwrap();
            let length = receiver.recv(&mut buffer).unwrap();
            assert_eq!(buffer[..length], *sent);
        }
    });
    let [inside, _] = snapshot(&mut { gateway }).ports;
    assert_eq!((inside.segmented, inside.super_packets), (2, 0), "{inside:?}");
}
