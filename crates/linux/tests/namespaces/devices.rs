//! Pairs of devices, and frames that cross them.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use apportion_core::units::{Bytes, Span};
use apportion_linux::namespace::silence_ipv6;
use apportion_linux::netlink::{Netlink, NetlinkError, Offloads, Route, Table};
use apportion_linux::pool::{HEAD, Pool};
use apportion_linux::port::segment::{NEEDS_CHECKSUM, VNET_HEADER, VnetHeader};
use apportion_linux::port::{Port, PortCounts, Received, RingSize};
use apportion_linux::readiness::Readiness;
use etherparse::Ipv4Header;
use nix::errno::Errno;
use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::UdpGsoSegment;

use crate::common::{Capture, Pair, bare_pair, pair, v6};
use apportion_testing::child::Running;
use apportion_testing::processes::enter;
use apportion_testing::skip;

const LIMIT: Duration = Duration::from_secs(5);
const HEADER: usize = 14;

fn v4(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

/// `b` listens on `listen`; `a` connects to `to` and sends `length` bytes, all of which arrive.
fn stream(pair: &Pair, listen: IpAddr, to: IpAddr, port: u16, length: usize) {
    let listener = pair.b.run(|| TcpListener::bind((listen, port)).unwrap()).unwrap();
    let server = pair
        .b
        .spawn("server", move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let mut bytes = Vec::new();
            stream.read_to_end(&mut bytes).unwrap();
            (stream.local_addr().unwrap(), bytes.len())
        })
        .unwrap();
    let to = SocketAddr::new(to, port);
    let mut stream = pair.a.run(|| TcpStream::connect_timeout(&to, LIMIT).unwrap()).unwrap();
    stream.set_write_timeout(Some(LIMIT)).unwrap();
    stream.write_all(&vec![7; length]).unwrap();
    drop(stream);
    assert_eq!(server.join().unwrap(), (to, length));
}

/// A datagram of `length` bytes goes from `a` to `b` at `to`.
fn datagram(pair: &Pair, to: IpAddr, length: usize) {
    let any: IpAddr = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let receiver = pair.b.run(|| UdpSocket::bind((any, 4_000)).unwrap()).unwrap();
    receiver.set_read_timeout(Some(LIMIT)).unwrap();
    let sender = pair.a.run(|| UdpSocket::bind((any, 0)).unwrap()).unwrap();
    sender.send_to(&vec![7; length], (to, 4_000)).unwrap();
    assert_eq!(receiver.recv(&mut [0; 2_000]).unwrap(), length);
}

/// Both ends without segmentation offloads.
fn turn_off_segmentation(pair: &Pair) {
    for (namespace, name) in [(&pair.a, "a0"), (&pair.b, "b0")] {
        namespace.run(|| Netlink::open().unwrap().turn_off_segmentation(name).unwrap()).unwrap();
    }
}

pub fn datagrams_and_streams_cross_a_pair() {
    enter();
    let pair = pair();
    for (any, to) in
        [(IpAddr::from(Ipv4Addr::UNSPECIFIED), v4(2)), (IpAddr::from(Ipv6Addr::UNSPECIFIED), v6(2))]
    {
        datagram(&pair, to, 1_000);
        stream(&pair, any, to, 5_000, 100_000);
    }
}

pub fn offloads_read_back_as_off() {
    enter();
    let pair = bare_pair();
    let mut netlink = pair.a.run(|| Netlink::open().unwrap()).unwrap();
    let before = netlink.offloads("a0").unwrap();
    assert!(before.tso && before.gso && before.tx_checksum, "{before:?}");
    netlink.turn_off_segmentation("a0").unwrap();
    let checksums = Offloads { tso: false, gso: false, gro: false, lro: false, ..before };
    assert_eq!(netlink.offloads("a0").unwrap(), checksums);
    netlink.turn_off_checksums("a0").unwrap();
    assert_eq!(
        netlink.offloads("a0").unwrap(),
        Offloads { tx_checksum: false, rx_checksum: false, ..checksums }
    );
}

pub fn a_super_packet_is_cut_as_far_as_there_are_buffers() {
    enter();
    let pair = pair();
    let sender = pair.a.run(|| UdpSocket::bind((v4(1), 0)).unwrap()).unwrap();
    setsockopt(&sender, UdpGsoSegment, &1_000).unwrap();
    let sent: Vec<u8> = (0..10_000).map(|at: u32| (at * 7 % 251) as u8).collect();
    // One owner gets half of 140 buffers; 64 of these wait for frames, one of them for the super-packet.
    for (buffers, fit) in [(1_024, 10), (140, 7)] {
        let open = || Port::open(Netlink::open().unwrap().index_of("b0").unwrap()).unwrap();
        let mut port = pair.b.run(open).unwrap();
        let (mut pool, mut frames) = (Pool::new(buffers, HEADER + 1_500), Vec::new());
        sender.send_to(&sent, (v4(2), 4_001)).unwrap();
        port.receive(0, &mut pool, &mut frames).unwrap();
        let counts = port.counts();
        assert_eq!((counts.segmented, counts.received, counts.missed), (1, fit, 10 - fit), "{counts:?}");
        for (frame, chunk) in frames.iter().zip(sent.chunks(1_000)) {
            assert_eq!(frame.length, 1_042);
            assert_eq!(pool.bytes(frame.buffer)[usize::from(frame.start) + 42..][..1_000], *chunk);
        }
        assert_eq!(frames.len() as u64, fit);
        frames.into_iter().for_each(|frame| pool.give_back(frame.buffer));
        port.close(&mut pool);
        assert_eq!(pool.used(), 0);
    }
}

/// A TCP segment of this number behind `tags` VLAN tags, with 1000 bytes of payload; its checksum is left to
/// the device.
fn segment(tags: usize, is_ipv4: bool, number: u16) -> ([u8; VNET_HEADER], Vec<u8>) {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1];
    (0..tags).for_each(|_| frame.extend([0x81, 0, 0, 7]));
    let network = frame.len() + 2;
    if is_ipv4 {
        let ip = ipv4(9 + number, 1_020);
        frame.extend([8, 0]);
        frame.extend(ip.to_bytes());
    } else {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0x03, 0xfc, 6, 64]);
        [1, 2].map(v6).into_iter().for_each(|address| match address {
            IpAddr::V6(address) => frame.extend(address.octets()),
            IpAddr::V4(_) => (),
        });
    }
    let start = frame.len();
    frame.extend([0, 9, 0, 9]);
    frame.extend((u32::from(number) * 1_000).to_be_bytes());
    // The data offset, ACK, the window; the sum of the pseudo-header; no urgent data.
    frame.extend([0, 0, 0, 1, 0x50, 0x10, 4, 0, 0, 0, 0, 0]);
    let addresses = if is_ipv4 { network + 12 } else { network + 8 };
    let words = frame[addresses..start].chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1]));
    let sum = words.sum::<u32>() + 6 + 1_020;
    frame[start + 16..start + 18].copy_from_slice(&(((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    frame.extend((0..1_000_u16).map(|at| (at * 7 + number) as u8));
    let header = VnetHeader {
        flags: NEEDS_CHECKSUM,
        checksum_start: start as u16,
        checksum_offset: 16,
        ..VnetHeader::default()
    };
    (header.bytes(), frame)
}

fn ipv4(identification: u16, payload: u16) -> Ipv4Header {
    let protocol = etherparse::ip_number::TCP;
    let mut header = Ipv4Header::new(payload, 64, protocol, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
    (header.identification, header.dont_fragment) = (identification, true);
    header.header_checksum = header.calc_header_checksum();
    header
}

/// A frame with the header before it.
type Frame = ([u8; VNET_HEADER], Vec<u8>);

/// Sends these frames from `a0`. Returns the frames that reach `b0`, and the counters of both ports.
fn across(pair: &Pair, frames: &[Frame], ring: Option<RingSize>) -> (Vec<Vec<u8>>, [PortCounts; 2]) {
    let (mut a, mut b) = (port(pair, "a0", None), port(pair, "b0", ring));
    let mut pool = Pool::new(2_048, HEADER + 1_500 + 8);
    assert_eq!(send(&mut a, frames), frames.len());
    let came = receive(&mut b, &mut pool);
    (came, [a.counts(), b.counts()])
}

/// A port of an end of the pair.
fn port(pair: &Pair, name: &str, ring: Option<RingSize>) -> Port {
    let open = || {
        let index = Netlink::open().unwrap().index_of(name).unwrap();
        ring.map_or_else(|| Port::open(index), |size| Port::open_with_ring(index, size)).unwrap()
    };
    let port = if name == "a0" { pair.a.run(open) } else { pair.b.run(open) }.unwrap();
    assert_eq!(port.has_ring(), ring.is_some());
    port
}

/// Sends frames. Returns how many are done with.
fn send(port: &mut Port, frames: &[Frame]) -> usize {
    let mut pool = Pool::new(2 * frames.len() as u32 + 2, 4_000);
    let sent: Vec<_> = frames
        .iter()
        .map(|(header, frame)| {
            let buffer = pool.take(0).unwrap();
            let bytes = pool.bytes_mut(buffer);
            bytes[..VNET_HEADER].copy_from_slice(header);
            bytes[HEAD..HEAD + frame.len()].copy_from_slice(frame);
            Received { buffer, start: HEAD as u8, length: frame.len() as u16 }
        })
        .collect();
    port.send(&mut pool, &sent).unwrap()
}

/// All frames that wait.
fn receive(port: &mut Port, pool: &mut Pool) -> Vec<Vec<u8>> {
    let mut came = Vec::new();
    while port.receive(1, pool, &mut came).unwrap() {}
    let bytes = |frame: Received| {
        let bytes =
            pool.bytes(frame.buffer)[usize::from(frame.start)..][..usize::from(frame.length)].to_vec();
        pool.give_back(frame.buffer);
        bytes
    };
    came.into_iter().map(bytes).collect()
}

/// A ring of 1 MiB for frames of at most `longest` bytes.
const fn ring(longest: u64) -> Option<RingSize> {
    Some(RingSize { longest: Bytes::new(longest), memory: Bytes::new(1 << 20) })
}

pub fn segments_cross_as_super_packets_and_are_the_same_again() {
    enter();
    let pair = pair();
    for (tags, is_ipv4) in [(0, true), (0, false), (1, true), (1, false), (2, true), (2, false)] {
        let frames: Vec<_> = (0..100).map(|number| segment(tags, is_ipv4, number)).collect();
        for ring in [None, ring(1_522), ring(500), ring(65_000)] {
            let (came, [a, b]) = across(&pair, &frames, ring);
            assert!(came.iter().eq(frames.iter().map(|(_, frame)| frame)), "{tags} {is_ipv4} {a:?} {b:?}");
            // 64 and 36.
            assert_eq!((a.sent, a.merged, a.unsent, b.segmented), (100, 2, 0, 2), "{tags} {is_ipv4}");
            assert_eq!((b.received, b.missed, b.oversize), (100, 0, 0), "{ring:?}");
        }
    }
    // Without the sender's offload, whose kernel refuses super-packets.
    turn_off_segmentation(&pair);
    let frames: Vec<_> = (0..100).map(|number| segment(0, true, number)).collect();
    for ring in [None, ring(1_522)] {
        let (came, [a, b]) = across(&pair, &frames, ring);
        assert!(came.iter().eq(frames.iter().map(|(_, frame)| frame)));
        assert_eq!((a.sent, a.merged, a.unsent, b.segmented), (100, 0, 0, 0));
    }
}

/// A frame of an experimental type (IEEE 802) behind `tags` VLAN tags, with this payload.
fn plain(tags: usize, payload: &[u8]) -> Frame {
    let tags = [0x81, 0, 0, 5].repeat(tags);
    let frame = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1][..], &tags, &[0x88, 0xb5], payload].concat();
    ([0; VNET_HEADER], frame)
}

pub fn frames_come_in_order_by_slots_and_by_the_queue() {
    enter();
    let pair = pair();
    for (namespace, name) in [(&pair.a, "a0"), (&pair.b, "b0")] {
        let set_mtu = || {
            let mut netlink = Netlink::open().unwrap();
            let index = netlink.index_of(name).unwrap();
            netlink.set_mtu(index, Bytes::new(9_000)).unwrap();
        };
        namespace.run(set_mtu).unwrap();
    }
    // Frames of the queue among those of slots: a super-packet of many segments, and one that fits a slot of
    // 3000 bytes, which is two of 1040 bytes; and tags beside some frames.
    let mut frames = Vec::new();
    for round in 0..40_u8 {
        frames.extend((0..3).map(|tags| plain(tags, &[round; 100])));
        frames.extend((0..2 + 4 * u16::from(round % 2)).map(|number| segment(1, true, number)));
        frames.push(plain(1, &[round; 1_400]));
    }
    for longest in [64, 200, 1_522, 3_000] {
        let (came, [a, b]) = across(&pair, &frames, ring(longest));
        assert!(came.iter().eq(frames.iter().map(|(_, frame)| frame)), "{longest}: {a:?} {b:?}");
        assert_eq!((b.segmented, b.missed, b.oversize), (40, 0, 0), "{longest}");
    }
    // A frame longer than a buffer, in the middle; a slot holds it or does not.
    let frames = [plain(0, &[1; 100]), plain(1, &[2; 2_000]), plain(0, &[3; 100])];
    for ring in [None, ring(1_522), ring(3_000)] {
        let (came, [_, b]) = across(&pair, &frames, ring);
        assert_eq!(came, [&frames[0].1[..], &frames[2].1], "{ring:?}");
        assert_eq!((b.received, b.oversize, b.missed), (2, 1, 0), "{ring:?}");
    }
}

pub fn a_ring_that_is_full_counts_what_it_misses() {
    enter();
    let pair = pair();
    // One block, of 39 slots.
    let size = RingSize { longest: Bytes::new(1_522), memory: Bytes::new(1) };
    let (mut a, mut b) = (port(&pair, "a0", None), port(&pair, "b0", Some(size)));
    let mut pool = Pool::new(2_048, HEADER + 1_500 + 8);
    let frames: Vec<_> = (0..100).map(|number| plain(number % 2, &[number as u8; 60])).collect();
    for round in 1..=5 {
        assert_eq!(send(&mut a, &frames), 100);
        let came = receive(&mut b, &mut pool);
        assert!(came.iter().eq(frames[..39].iter().map(|(_, frame)| frame)), "{round}: {}", came.len());
        let counts = b.counts();
        assert_eq!((counts.received, counts.missed), (39 * round, 61 * round));
    }
    // Without buffers the frames wait in their slots.
    let (mut none, mut came) = (Pool::new(0, HEADER + 1_500), Vec::new());
    assert_eq!(send(&mut a, &frames[..10]), 10);
    assert!(b.receive(1, &mut none, &mut came).unwrap() && came.is_empty());
    assert_eq!(receive(&mut b, &mut pool).len(), 10);
    b.close(&mut pool);
    assert_eq!(pool.used(), 0);
}

pub fn frames_leave_in_order_by_slots_and_by_the_socket() {
    enter();
    let pair = pair();
    // Runs of frames for slots, few of them, super-packets between them, and frames that no slot holds: more
    // than there are slots.
    let mut frames = Vec::new();
    for round in 0..100_u8 {
        frames.extend((0..round % 9).map(|number| plain(usize::from(number % 3), &[round; 200])));
        frames.extend((0..u16::from(round % 4)).map(|number| segment(1, true, number)));
        frames.extend((round % 5 == 0).then(|| plain(0, &[round; 1_400])));
    }
    let (mut a, mut b) = (port(&pair, "a0", ring(1_100)), port(&pair, "b0", ring(1_522)));
    assert!(a.has_send_ring());
    let mut pool = Pool::new(8_192, HEADER + 1_500 + 8);
    for _ in 0..10 {
        assert_eq!(send(&mut a, &frames), frames.len());
        let came = receive(&mut b, &mut pool);
        assert!(came.iter().eq(frames.iter().map(|(_, frame)| frame)), "{:?} {:?}", a.counts(), b.counts());
    }
    let counts = a.counts();
    assert_eq!((counts.sent, counts.unsent), (10 * frames.len() as u64, 0));
    assert_eq!(counts.merged, 10 * 50);
}

pub fn what_slots_do_not_send_is_counted_and_not_sent_later() {
    enter();
    let pair = pair();
    let (mut a, mut b) = (port(&pair, "a0", ring(1_522)), port(&pair, "b0", ring(1_522)));
    let mut pool = Pool::new(2_048, HEADER + 1_500 + 8);
    let set = |is_up: bool| {
        pair.a
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                let index = netlink.index_of("a0").unwrap();
                if is_up { netlink.set_up(index) } else { netlink.set_down(index) }.unwrap();
                if is_up {
                    netlink.wait_until_running("a0", Span::from_secs(5)).unwrap();
                }
            })
            .unwrap();
    };
    let numbered = |from: u8| (from..from + 20).map(|number| plain(0, &[number; 60])).collect::<Vec<_>>();
    assert_eq!(send(&mut a, &numbered(0)), 20);
    set(false);
    assert_eq!(send(&mut a, &numbered(20)), 20);
    let counts = a.counts();
    assert_eq!((counts.sent, counts.unsent), (20, 20), "{counts:?}");
    set(true);
    assert_eq!(send(&mut a, &numbered(40)), 20);
    let came = receive(&mut b, &mut pool);
    let expected = [numbered(0), numbered(40)].concat();
    assert!(came.iter().eq(expected.iter().map(|(_, frame)| frame)), "{}", came.len());
    // Longer than the MTU, which the kernel does not check in slots.
    let index = pair.a.run(|| Netlink::open().unwrap().index_of("a0").unwrap()).unwrap();
    let mut netlink = pair.a.run(|| Netlink::open().unwrap()).unwrap();
    netlink.set_mtu(index, Bytes::new(1_000)).unwrap();
    let mut a = port(&pair, "a0", ring(1_522));
    let long: Vec<_> = (0..20).map(|number| plain(0, &[number; 1_001])).collect();
    assert_eq!(send(&mut a, &long), 20);
    assert_eq!((a.counts().sent, a.counts().unsent), (0, 20));
    assert!(receive(&mut b, &mut pool).is_empty());
}

pub fn a_ring_whose_interface_goes_down_is_not_readable_for_ever() {
    enter();
    let pair = pair();
    let mut b = port(&pair, "b0", ring(1_522));
    let mut readiness = Readiness::new().unwrap();
    readiness.add(0, b.as_fd()).unwrap();
    pair.b
        .run(|| {
            let mut netlink = Netlink::open().unwrap();
            let index = netlink.index_of("b0").unwrap();
            netlink.set_down(index).unwrap();
        })
        .unwrap();
    let mut pool = Pool::new(2_048, HEADER + 1_500 + 8);
    let mut ready = Vec::new();
    readiness.wait(Some(Span::from_secs(5)), None, &mut ready).unwrap();
    assert_eq!(ready, [0]);
    assert!(receive(&mut b, &mut pool).is_empty());
    assert_eq!(b.counts().down, 1);
    ready.clear();
    readiness.wait(Some(Span::from_millis(1)), None, &mut ready).unwrap();
    assert_eq!(ready, [0; 0]);
}

/// A frame of a kind that the header before frames cannot express, as virtual machines send, is lost, and the
/// kernel stops at it.
pub fn a_ring_goes_on_after_a_frame_that_it_cannot_describe() {
    const GUEST: &str = r#"
import fcntl, os, struct, sys
tap = os.open("/dev/net/tun", os.O_RDWR)
fcntl.ioctl(tap, 0x400454ca, struct.pack("16sH", b"guest", 0x5002))
payload = struct.pack(">HHHH", 1, 2, 1008, 0) + b"\7" * 1000
frame = b"\2" * 12 + b"\x08\0\x45\0" + struct.pack(">H", 1028) + b"\0\1\0\0\x40\x11\0\0\n\0\0\1\n\0\0\2" + payload
print("ready", flush=True)
for line in sys.stdin:
    # UFO: a datagram that is still to be cut into fragments.
    os.write(tap, (struct.pack("<BBHHHH", 1, 3, 42, 500, 34, 6) if line == "odd\n" else bytes(10)) + frame)
    print("sent", flush=True)
"#;
    enter();
    if !skip::unless_found(&["python3"]) {
        return;
    }
    let mut python = Command::new("python3");
    let mut guest = Running::start(python.args(["-c", GUEST]).stdin(Stdio::piped()).stdout(Stdio::piped()));
    let mut lines = BufReader::new(guest.stdout()).lines();
    if lines.next().is_none() {
        return skip::because(
            "there are no tap devices for this user; load the module tun, and allow /dev/net/tun",
        );
    }
    let mut netlink = Netlink::open().unwrap();
    let index = netlink.index_of("guest").unwrap();
    silence_ipv6("guest").unwrap();
    netlink.set_up(index).unwrap();
    let mut port =
        Port::open_with_ring(index, RingSize { longest: Bytes::new(1_522), memory: Bytes::new(1 << 17) })
            .unwrap();
    assert!(port.has_ring());
    let mut pool = Pool::new(256, HEADER + 1_500 + 8);
    let mut commands = guest.stdin();
    let mut come = |port: &mut Port, kinds: &[&str]| {
        for kind in kinds {
            writeln!(commands, "{kind}").unwrap();
            lines.next().unwrap().unwrap();
        }
        receive(port, &mut pool).len()
    };
    assert_eq!(come(&mut port, &["plain"; 5]), 5);
    port.counts();
    assert_eq!(come(&mut port, &["odd", "plain", "plain"]), 0, "this kernel goes on by itself");
    assert_eq!(port.counts().missed, 3);
    assert!(port.has_ring());
    assert_eq!(come(&mut port, &["plain"; 200]), 78, "all slots of two blocks");
    assert_eq!(come(&mut port, &["plain"; 5]), 5);
    drop(commands);
    guest.wait();
}

pub fn without_memory_for_a_ring_frames_come_by_the_queue() {
    enter();
    let pair = pair();
    // More slots than can be requested.
    let size = RingSize { longest: Bytes::new(1_522), memory: Bytes::new(1 << 47) };
    let index = pair.b.run(|| Netlink::open().unwrap().index_of("b0").unwrap()).unwrap();
    let mut b = pair.b.run(|| Port::open_with_ring(index, size).unwrap()).unwrap();
    assert!(!b.has_ring());
    let (mut a, mut pool) = (port(&pair, "a0", None), Pool::new(2_048, HEADER + 1_500 + 8));
    let frames: Vec<_> = (0..70).map(|number| plain(number % 3, &[number as u8; 60])).collect();
    assert_eq!(send(&mut a, &frames), 70);
    assert!(receive(&mut b, &mut pool).iter().eq(frames.iter().map(|(_, frame)| frame)));
}

pub fn what_is_longer_than_the_mtu_is_not_merged_either() {
    enter();
    let pair = pair();
    let mut netlink = pair.a.run(|| Netlink::open().unwrap()).unwrap();
    let index = netlink.index_of("a0").unwrap();
    // Each is a packet of 1040 bytes.
    for (mtu, sent, merged) in [(1_039, 0, 0), (1_040, 100, 2)] {
        netlink.set_mtu(index, Bytes::new(mtu)).unwrap();
        let frames: Vec<_> = (0..100).map(|number| segment(0, true, number)).collect();
        let (came, [a, _]) = across(&pair, &frames, None);
        assert_eq!((came.len() as u64, a.sent, a.unsent), (sent, sent, 100 - sent), "{a:?}");
        assert_eq!(a.merged, merged);
    }
}

pub fn no_frame_is_larger_than_the_mtu() {
    enter();
    let pair = pair();
    let largest = |send: &dyn Fn()| {
        let capture = Capture::of(&pair.b);
        send();
        std::iter::from_fn(|| capture.next(100)).map(|(_, length)| length).max()
    };
    let tcp = || stream(&pair, v4(2), v4(2), 5_000, 300_000);
    // Ten segments of 1000 B in one system call, as programs with QUIC send them.
    let udp = || {
        let sender = pair.a.run(|| UdpSocket::bind((v4(1), 0)).unwrap()).unwrap();
        setsockopt(&sender, UdpGsoSegment, &1_000).unwrap();
        sender.send_to(&[7; 10_000], (v4(2), 4_001)).unwrap();
    };
    // Otherwise the rest of the test proves nothing: 10,000 B behind 14 + 20 + 8 B of headers.
    assert!(largest(&tcp) > Some(HEADER + 1_500));
    assert_eq!(largest(&udp), Some(10_042));
    turn_off_segmentation(&pair);
    // A full TCP segment; 1000 B behind 42 B of headers.
    assert_eq!(largest(&tcp), Some(HEADER + 1_500));
    assert_eq!(largest(&udp), Some(1_042));
}

/// The sum over a UDP datagram over IPv4 and its pseudo-header, RFC 768: 0xffff with a good checksum.
fn udp_sum(frame: &[u8]) -> u32 {
    let udp = &frame[HEADER + 20..];
    let words = frame[HEADER + 12..]
        .chunks(2)
        .map(|word| u32::from(word[0]) << 8 | word.get(1).copied().map_or(0, u32::from));
    let mut sum = words.sum::<u32>() + 17 + udp.len() as u32;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum
}

pub fn checksums_are_complete_once_they_are_not_offloaded() {
    enter();
    let pair = pair();
    let capture = Capture::of(&pair.b);
    let sum = || {
        datagram(&pair, v4(2), 101);
        udp_sum(&capture.next(1_000).unwrap().0)
    };
    assert_ne!(sum(), 0xffff);
    pair.a.run(|| Netlink::open().unwrap().turn_off_checksums("a0").unwrap()).unwrap();
    assert_eq!(sum(), 0xffff);
}

pub fn equal_hardware_addresses_need_no_arp_and_nothing_else_is_sent() {
    enter();
    let pair = pair();
    let capture = Capture::of(&pair.b);
    datagram(&pair, v4(2), 100);
    datagram(&pair, v6(2), 100);
    // The kernel would report groups and solicit routers within the first second.
    let kinds: Vec<_> =
        std::iter::from_fn(|| capture.next(1_200)).map(|(frame, _)| frame[12..14].to_vec()).collect();
    assert_eq!(kinds, [vec![0x08, 0x00], vec![0x86, 0xdd]]);
}

pub fn every_address_is_accepted() {
    enter();
    let pair = pair();
    let unspecified: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let of_pair: [(IpAddr, u8); 2] = [([10, 0, 0, 0].into(), 24), (v6(0), 64)];
    for (any, (destination, length)) in unspecified.into_iter().zip(of_pair) {
        pair.a
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                let device = netlink.index_of("a0").unwrap();
                let route = Route { destination: any, length: 0, device, gateway: None, table: Table::Main };
                netlink.add_route(&route).unwrap();
            })
            .unwrap();
        pair.b
            .run(|| {
                let mut netlink = Netlink::open().unwrap();
                let (loopback, device) = (netlink.index_of("lo").unwrap(), netlink.index_of("b0").unwrap());
                netlink.add_local_route(any, 0, loopback).unwrap();
                netlink
                    .add_route(&Route { destination, length, device, gateway: None, table: Table::Local })
                    .unwrap();
            })
            .unwrap();
    }
    stream(&pair, unspecified[0], Ipv4Addr::new(203, 0, 113, 7).into(), 80, 10_000);
    stream(&pair, unspecified[1], "2001:db8::7".parse().unwrap(), 80, 10_000);
}

pub fn a_device_runs_once_both_ends_are_up() {
    enter();
    let pair = bare_pair();
    let mut a = pair.a.run(|| Netlink::open().unwrap()).unwrap();
    let mut b = pair.b.run(|| Netlink::open().unwrap()).unwrap();
    let device = a.device("a0").unwrap();
    assert!(!device.is_up && !device.is_running && !device.no_arp);
    a.set_up(device.index).unwrap();
    a.set_no_arp(device.index).unwrap();
    let device = a.device("a0").unwrap();
    assert!(device.is_up && !device.is_running && device.no_arp);
    let error = a.wait_until_running("a0", Span::from_millis(2)).unwrap_err().to_string();
    assert_eq!(error, "`a0` is not running after 2ms; both ends of a veth must be set up");
    let other = b.index_of("b0").unwrap();
    b.set_up(other).unwrap();
    a.wait_until_running("a0", Span::from_secs(5)).unwrap();
    // The other end is in another namespace.
    assert!(a.device("b0").is_err());
}

pub fn refusals_come_with_the_kernels_words() {
    enter();
    let pair = bare_pair();
    let mut netlink = pair.a.run(|| Netlink::open().unwrap()).unwrap();
    let index = netlink.index_of("a0").unwrap();
    let error = netlink.set_mtu(index, Bytes::new(100_000)).unwrap_err();
    let NetlinkError::Refused { errno: Errno::EINVAL, message, .. } = &error else { panic!("{error}") };
    assert_eq!(message, "mtu greater than device maximum");
    assert!(
        error.to_string().starts_with(&format!("cannot set the MTU of device {index} to 100kB: EINVAL")),
        "{error}"
    );
    netlink.set_mtu(index, Bytes::new(9_000)).unwrap();
    netlink.add_address(index, v4(1), 24).unwrap();
    let error = netlink.wait_until_local(v6(1), Span::from_millis(2)).unwrap_err().to_string();
    assert_eq!(error, "fd00::1 is not in use after 2ms; its device must be up");
    let error = netlink.add_address(index, v4(1), 24).unwrap_err();
    assert!(matches!(error, NetlinkError::Refused { errno: Errno::EEXIST, .. }), "{error}");
    let down = Route { destination: v4(0), length: 8, device: index, gateway: None, table: Table::Main };
    let error = netlink.add_route(&down).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot add the route to 10.0.0.0/8 by device {index}: ")), "{error}");
}
