//! The CSFQ core at the egress of a router in this machine's kernel, in real time.

use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use apportion_core::aqm::csfq::CsfqParams;
use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_core::system::any::PolicyParams;
use apportion_core::system::{BufferParams, Catalog, DisciplineKind, DisciplineParams};
use apportion_core::units::{Bytes, Rate, Span};
use apportion_kernel::program::Core;
use apportion_kernel::settings::CoreSettings;
use apportion_linux::namespace::{Namespace, silence_ipv6};
use apportion_linux::netlink::{Netlink, Route, Table, VethEnd};
use apportion_live::{frame, wire_label};
use apportion_testing::skip;
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn};
use nix::sys::socket::{sendto, setsockopt, socket};

use crate::common::{alone, frame_v4, is_possible};

const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const SINK: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const PORT: u16 = 9_000;

/// A sending host, a router, and a receiving host; the router's devices are `left` and `right`.
struct Line {
    source: Namespace,
    router: Namespace,
    sink: Namespace,
}

impl Line {
    /// Creates the line; none, with a message, if namespaces cannot be created here.
    fn new() -> Option<Self> {
        let made = [Namespace::create(), Namespace::create(), Namespace::create()];
        if let Some(error) = made.iter().find_map(|made| made.as_ref().err()) {
            skip::because(error);
            return None;
        }
        let [source, router, sink] = made.map(Result::unwrap);
        let end =
            |name, namespace| VethEnd { name, mac: [2, 0, 0, 0, 0, 1], mtu: Bytes::new(1_500), namespace };
        let mut netlink = Netlink::open().unwrap();
        netlink.add_veth(&end("near", source.as_fd()), &end("left", router.as_fd())).unwrap();
        netlink.add_veth(&end("right", router.as_fd()), &end("far", sink.as_fd())).unwrap();
        let set_up = |name: &str, address: [u8; 4], route: bool| {
            let mut netlink = Netlink::open().unwrap();
            silence_ipv6(name).unwrap();
            let device = netlink.index_of(name).unwrap();
            netlink.set_no_arp(device).unwrap();
            netlink.set_up(device).unwrap();
            netlink.add_address(device, IpAddr::from(address), 24).unwrap();
            let destination = IpAddr::from([0; 4]);
            if route {
                let route = Route { destination, length: 0, device, gateway: None, table: Table::Main };
                netlink.add_route(&route).unwrap();
            }
        };
        source.run(|| set_up("near", SOURCE.octets(), true)).unwrap();
        sink.run(|| set_up("far", SINK.octets(), true)).unwrap();
        let route = || {
            set_up("left", [10, 0, 0, 2], false);
            set_up("right", [10, 0, 1, 1], false);
            std::fs::write("/proc/sys/net/ipv4/ip_forward", "1").unwrap();
        };
        router.run(route).unwrap();
        let wait = |name| Netlink::open().unwrap().wait_until_running(name, Span::from_secs(5)).unwrap();
        source.run(|| wait("near")).unwrap();
        router.run(|| wait("right")).unwrap();
        Some(Self { source, router, sink })
    }

    fn core(&self, settings: &CoreSettings) -> Core {
        let mut core = Core::load(settings).unwrap();
        self.router.run(|| core.attach("right").unwrap()).unwrap();
        core
    }
}

/// Opens a socket that accepts whole IPv4 packets.
fn raw(line: &Line) -> OwnedFd {
    let open =
        || socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw).unwrap();
    line.source.run(open).unwrap()
}

/// Builds a UDP packet of `size` bytes with a label, without the Ethernet header; the flow is its source
/// port.
fn packet(size: usize, flow: u16, label: Label) -> Vec<u8> {
    let mut bytes = frame_v4(0x4000, 17, 0);
    bytes.resize(14 + size, 7);
    bytes[16..18].copy_from_slice(&(size as u16).to_be_bytes());
    bytes[26..30].copy_from_slice(&SOURCE.octets());
    bytes[30..34].copy_from_slice(&SINK.octets());
    bytes[34..36].copy_from_slice(&flow.to_be_bytes());
    bytes[36..38].copy_from_slice(&PORT.to_be_bytes());
    bytes[38..40].copy_from_slice(&((size - 20) as u16).to_be_bytes());
    let ip = frame::parse(&bytes).unwrap().ip();
    assert!(wire_label::write(&mut bytes, ip, LabelKind::Rate, label));
    bytes.split_off(14)
}

fn send(socket: &OwnedFd, packet: &[u8]) {
    let to = SockaddrIn::from(std::net::SocketAddrV4::new(SINK, 0));
    // A packet that is dropped on the way is reported as an error here.
    let _ = sendto(socket.as_raw_fd(), packet, &to, MsgFlags::empty());
}

/// The parameters of CSFQ's core as in the paper.
fn params() -> CsfqParams {
    let mut selection = Catalog::default().select("csfq", None, None).unwrap();
    for (key, value) in [("role", "core"), ("target_delay", "0s"), ("limit", "64kB")] {
        selection.set(key, value).unwrap();
    }
    match DisciplineParams::from_args(&selection).unwrap().kind {
        DisciplineKind::Buffered(BufferParams { drop: PolicyParams::Csfq(params), .. }) => params,
        other => panic!("{other:?}"),
    }
}

/// Returns the bytes of each flow that reach the sink during `time`, after 1 s; flows send at these rates,
/// which are their labels.
fn received(line: &Line, rates: [u64; 3], time: Duration) -> [u64; 3] {
    let sink = line.sink.run(|| UdpSocket::bind((SINK, PORT)).unwrap()).unwrap();
    setsockopt(&sink, RcvBufForce, &(8 << 20)).unwrap();
    sink.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let socket = raw(line);
    let packets = [0, 1, 2].map(|flow| packet(986, 1_000 + flow as u16, Label::new(rates[flow] as f64)));
    // With the Ethernet header a packet has 1000 B.
    let gaps = rates.map(|rate| Duration::from_secs_f64(8_000.0 / rate as f64));
    let (begin, mut due) = (Instant::now(), [Duration::ZERO; 3]);
    let mut counted = [0; 3];
    let mut buffer = [0; 2_048];
    sink.set_nonblocking(true).unwrap();
    loop {
        let now = begin.elapsed();
        for flow in 0..3 {
            if due[flow] <= now {
                send(&socket, &packets[flow]);
                due[flow] += gaps[flow];
            }
        }
        while let Ok((_, from)) = sink.recv_from(&mut buffer) {
            if now >= Duration::from_secs(1) {
                counted[usize::from(from.port() - 1_000)] += 1_000;
            }
        }
        if now >= Duration::from_secs(1) + time {
            return counted;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

#[test]
fn flows_that_cross_a_router_get_the_fair_share() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    let Some(line) = Line::new() else { return };
    let rates = [1_000_000, 4_000_000, 8_000_000];
    let mbit = |bytes: [u64; 3]| bytes.map(|bytes| bytes as f64 * 8.0 / 4e6);
    let plain = mbit(received(&line, rates, Duration::from_secs(4)));
    let mut core = line.core(&CoreSettings::new(&params(), Rate::from_mbit(5)).unwrap());
    let fair = mbit(received(&line, rates, Duration::from_secs(4)));
    println!("without a core {plain:.2?} Mb/s, behind 5 Mb/s {fair:.2?}, {:?}", core.state().unwrap());
    assert!(plain[2] > 7.0 && plain[1] > 3.6, "{plain:?}");
    // 1, and 2 each: 4 sigma of 2000 and 4000 arrivals, of which 1/2 and 1/4 pass, are 9 and 11 %.
    for (rate, (wanted, band)) in fair.iter().zip([(1.0, 0.05), (2.0, 0.18), (2.0, 0.22)]) {
        assert!((rate - wanted).abs() < band, "{fair:?}");
    }
    let counts = core.counts().unwrap();
    // 13 Mb/s for 5 s are 8125 packets, of which 5 of 13 pass.
    assert!(counts.early > 4_500 && counts.relabelled > 0 && counts.unlabelled == 0, "{counts:?}");
    core.set(&CoreSettings::new(&params(), Rate::from_mbit(50)).unwrap()).unwrap();
    let free = mbit(received(&line, rates, Duration::from_secs(4)));
    assert!(free[2] > 7.0, "constants are read anew: {free:?}");
    drop(core);
    let again = mbit(received(&line, rates, Duration::from_secs(1)));
    assert!(again[2] * 4.0 > 7.0, "it ends with what holds it: {again:?}");
}

/// Run by `cargo test -p apportion-kernel --features bpf --test timed route:: -- --ignored --show-output`.
#[test]
#[ignore = "a measurement: its figures depend on the machine"]
fn what_the_core_adds_to_a_route() {
    let _alone = alone();
    if !is_possible() {
        return;
    }
    const PACKETS: u32 = 40_000;
    let Some(line) = Line::new() else { return };
    let _sink = line.sink.run(|| UdpSocket::bind((SINK, PORT)).unwrap()).unwrap();
    let (socket, packet) = (raw(&line), packet(200, 1_000, Label::new(1e6)));
    // The packet crosses both devices within the system call that sends it.
    let once = || {
        let begin = Instant::now();
        (0..PACKETS).for_each(|_| send(&socket, &packet));
        begin.elapsed().as_nanos() as f64 / f64::from(PACKETS)
    };
    // Taken in turn, so that other load affects both alike.
    let (mut plain, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..41 {
        let without = once();
        let core = line.core(&CoreSettings::new(&params(), Rate::from_mbit(100_000)).unwrap());
        let more = once();
        let counts = core.counts().unwrap();
        assert_eq!((counts.packets, counts.early + counts.overflow), (PACKETS.into(), 0), "{counts:?}");
        plain.push(without);
        with.push(more);
        ratios.push(more / without);
    }
    let quartile = |all: &mut Vec<f64>, quarters: usize| {
        all.sort_unstable_by(f64::total_cmp);
        all[all.len() * quarters / 4]
    };
    let [low, median, high] = [1, 2, 3].map(|quarters| 100.0 * (quartile(&mut ratios, quarters) - 1.0));
    println!(
        "a packet: {:.0} ns by the plain route, {:.0} ns with the core; of 41 ratios the median is {median:.1} % more, half lie \
         between {low:.1} and {high:.1} %",
        quartile(&mut plain, 2),
        quartile(&mut with, 2),
    );
}
