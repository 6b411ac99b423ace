//! Measures how much one core forwards between two namespaces, and compares it with the kernel, which routes
//! through an HTB. The load is frames of 64 and 1514 bytes from a packet socket, as many as it takes, and TCP
//! in segments of the MTU.
//!
//! `cargo bench -p apportion-live --bench forwarding` runs all; `-- frames` or `-- tcp` runs one part.
//! `alone` uses interfaces that do not segment, so that segments leave one by one. The bench needs two cores:
//! one sends, one forwards. The kernel forwards within the call that sends, on the sender's core. The bench
//! also prints the processor time of each thread. The largest bounds the rate where each thread has a core to
//! itself, their sum where all share one. The kernel is left out where ip(8), tc(8) or HTB is missing.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and a panic is its message")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext};
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_linux::host::Host;
use apportion_linux::namespace::{Identity, Isolation, enter_user_namespace, set_sysctl};
use apportion_linux::netlink::{Netlink, Offloads, Route, Table};
use apportion_linux::pool::Pool;
use apportion_linux::port::{Port, Received, RingSize};
use apportion_live::bridge::{Bridge, ETHERNET};
use apportion_live::engine::Engine;
use apportion_live::link::Link;
use apportion_live::pace::Pace;
use apportion_runtime::link::LinkParts;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt};

const RATE: Rate = Rate::from_mbit(100_000);
/// The length of each measurement.
const LENGTH: Duration = Duration::from_secs(2);
const PORT: u16 = 5_001;
/// The argument for interfaces that do not segment.
const ALONE: &str = "alone";
/// The argument for ports without memory shared with the kernel.
const SOCKETS: &str = "sockets";
/// Hardware addresses: one of every interface, and one of no interface.
const ROUTER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const UNKNOWN: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn link(number: u32, kind: &str) -> Link {
    let mut selection = Selection::new(kind, None, None).unwrap();
    if kind == "fifo" {
        selection.set("limit", "10000p").unwrap();
    }
    let queue = DisciplineParams::from_args(&selection).unwrap().build(&LinkContext::new(RATE, 1, "bench"));
    Link::new(LinkParts::new(number, queue, RATE), Pace::rate(RATE), None)
}

/// Two hosts. Each measurement has addresses of its own, because the kernel removes devices asynchronously.
struct Hosts {
    near: Host,
    far: Host,
    addresses: [Ipv4Addr; 2],
    /// Destination of the frames. Its hardware address is not the far host's, which therefore drops them at
    /// first sight: the bench does not measure what hosts do with frames, and they would do it on the core
    /// that hands the frames over.
    nowhere: Ipv4Addr,
}

impl Hosts {
    fn new(number: u8) -> Self {
        let addresses = [1, 2].map(|last| Ipv4Addr::new(10, 0, number, last));
        let make =
            |name: &str, address: Ipv4Addr| Host::create(name, &[address.into()], Bytes::new(1_500)).unwrap();
        let nowhere = Ipv4Addr::new(10, 1, number, 1);
        let [near, far] = ["near", "far"].map(|name| format!("{name}{number}"));
        let hosts =
            Self { near: make(&near, addresses[0]), far: make(&far, addresses[1]), addresses, nowhere };
        if !std::env::args().any(|word| word == ALONE) {
            [near, far].iter().for_each(|port| let_segment(port));
        }
        hosts
    }

    fn engine(&self, queue: &str) -> Engine<Bridge> {
        let open = |port| match std::env::args().any(|word| word == SOCKETS) {
            true => Port::open(port).unwrap(),
            false => Port::open_with_ring(port, RingSize::of(Bytes::new(1_522))).unwrap(),
        };
        let ports = [self.near.port, self.far.port].map(open);
        Bridge::between(ports, [link(0, queue), link(1, queue)], ETHERNET).unwrap()
    }

    /// Lets the kernel route between the hosts, with an HTB in front of the far one. Returns whether the
    /// kernel can.
    fn route(&self, number: u8) -> bool {
        set_sysctl("net/ipv4/ip_forward", "1").unwrap();
        let mut netlink = Netlink::open().unwrap();
        let [near, far] = self.addresses;
        for (device, address) in [(self.near.port, near), (self.far.port, far), (self.far.port, self.nowhere)]
        {
            let route =
                Route { destination: address.into(), length: 32, device, gateway: None, table: Table::Main };
            netlink.add_route(&route).unwrap();
        }
        let done = |command: String| {
            let mut words = command.split_whitespace();
            let mut command = Command::new(words.next().unwrap());
            command.args(words).status().is_ok_and(|status| status.success())
        };
        let nowhere = self.nowhere;
        done(format!("ip neigh replace {nowhere} lladdr 02:00:00:00:00:09 dev far{number}"))
            && done(format!("tc qdisc add dev far{number} root handle 1: htb default 1"))
            && done(format!(
                "tc class add dev far{number} parent 1: classid 1:1 htb rate 100gbit quantum 60000"
            ))
    }

    /// Sends frames from the near host as fast as it can.
    fn blast(&self, mac: [u8; 6], length: usize, flows: u16) -> std::thread::JoinHandle<Blast> {
        let (from, to) = (self.addresses[0], self.nowhere);
        let far = self.far.namespace.try_clone().unwrap();
        let sender = move || {
            let index = Netlink::open().unwrap().index_of("eth0").unwrap();
            let mut port = Port::open(index).unwrap();
            let before = far.run(received).unwrap();
            let (start, busy) = (Instant::now(), processor_time());
            let sent = send_frames(&mut port, &|bytes, at| frame(bytes, mac, at % flows, (from, to)), length);
            let (took, busy) = (start.elapsed().as_secs_f64(), processor_time() - busy);
            sleep(Duration::from_millis(50));
            let came = far.run(received).unwrap() - before;
            Blast { sent: sent as f64, came: came as f64, took, busy }
        };
        self.near.namespace.spawn("sender", sender).unwrap()
    }

    /// Opens a connection with CUBIC from the near host to the far one.
    fn tcp(&self) -> std::thread::JoinHandle<Transfer> {
        let to = (self.addresses[1], PORT);
        let listener = self.far.namespace.run(|| TcpListener::bind(to).unwrap()).unwrap();
        let receive = move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut buffer, start, mut read) = (vec![0; 1 << 18], Instant::now(), 0);
            while let Ok(count) = stream.read(&mut buffer)
                && count > 0
            {
                read += count;
            }
            (read as f64, start.elapsed().as_secs_f64(), processor_time())
        };
        let receiver = std::thread::spawn(receive);
        let sender = move || {
            // Set before the connection opens: one that began with BBR would go on to pace.
            let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::empty(), None).unwrap();
            setsockopt(&fd, sockopt::TcpCongestion, &"cubic".into()).unwrap();
            connect(fd.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(to.0, to.1))).unwrap();
            let mut stream = TcpStream::from(fd);
            let (bytes, start) = (vec![0; 1 << 18], Instant::now());
            while start.elapsed() < LENGTH {
                stream.write_all(&bytes).unwrap();
            }
            drop(stream);
            processor_time()
        };
        let sender = self.near.namespace.spawn("sender", sender).unwrap();
        std::thread::spawn(move || {
            let ((bytes, took, receiver), sender) = (receiver.join().unwrap(), sender.join().unwrap());
            Transfer { bytes, took, sender, receiver }
        })
    }
}

/// Frames sent and frames received by the far host, the time that this took, and the processor time of the
/// sender, in seconds.
struct Blast {
    sent: f64,
    came: f64,
    took: f64,
    busy: f64,
}

impl Blast {
    /// Prints the result, with the processor time of the thread that forwards, if there is one.
    fn print(&self, name: &str, length: usize, flows: u16, forwarder: f64, rest: &str) {
        let Self { sent, came, took, busy } = self;
        let [offered, rate, bits] = [sent / took, came / took, came * length as f64 * 8.0 / took / 1e9];
        let [sender, forwarder] = [busy * 1e9 / sent, forwarder * 1e9 / came.max(1.0)];
        println!(
            "{name:12} {length:5} B {flows:5} flows  {rate:8.0} frames/s of {offered:8.0}  {bits:5.2} Gb/s  \
             ns/frame: sender {sender:5.0}, forwarder {forwarder:5.0}{rest}"
        );
    }
}

/// Bytes that a connection transferred, and the processor time of its ends, in seconds.
struct Transfer {
    bytes: f64,
    took: f64,
    sender: f64,
    receiver: f64,
}

impl Transfer {
    /// Prints the result, with the processor time of the thread that forwards, if there is one.
    fn print(&self, name: &str, forwarder: f64, rest: &str) {
        let Self { bytes, took, sender, receiver } = self;
        let [sender, forwarder, receiver] = [*sender, forwarder, *receiver].map(|time| time * 1e9 / bytes);
        let rate = 8.0 * bytes / took / 1e9;
        println!(
            "{name:12} TCP {rate:34.2} Gb/s  s/GB: sender {sender:.2}, forwarder {forwarder:.2}, receiver {receiver:.2}{rest}"
        );
    }
}

/// Seconds that the calling thread has run (proc(5), schedstat).
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Turns segmentation on again, which hosts do without: interfaces have it where a gateway runs and where the
/// kernel routes. The hosts still send segment by segment.
fn let_segment(port: &str) {
    let mut netlink = Netlink::open().unwrap();
    let before = netlink.offloads(port).unwrap();
    netlink.restore(port, &Offloads { tso: true, gso: true, ..before }, 65_535).unwrap();
}

/// Frames received by this thread's only device.
fn received() -> u64 {
    let devices = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = devices.lines().find_map(|line| line.trim().strip_prefix("eth0:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A UDP frame from one of many ports.
fn frame(bytes: &mut [u8], mac: [u8; 6], flow: u16, (from, to): (Ipv4Addr, Ipv4Addr)) {
    bytes[..6].copy_from_slice(&mac);
    bytes[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 8, 0]);
    let length = (bytes.len() - 14) as u16;
    let ip = &mut bytes[14..];
    ip[..12].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[12..16].copy_from_slice(&from.octets());
    ip[16..20].copy_from_slice(&to.octets());
    let sum: u32 = ip[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    ip[20..22].copy_from_slice(&(1_000 + flow).to_be_bytes());
    ip[22..24].copy_from_slice(&9_u16.to_be_bytes());
    ip[24..26].copy_from_slice(&(length - 20).to_be_bytes());
}

/// Sends frames of `length` bytes as fast as it can, and returns how many.
fn send_frames(port: &mut Port, fill: &dyn Fn(&mut [u8], u16), length: usize) -> u64 {
    let mut pool = Pool::new(128, 1_522);
    let frames: Vec<_> = (0..64)
        .map(|at| {
            let buffer = pool.take(0).unwrap();
            fill(&mut pool.bytes_mut(buffer)[16..16 + length], at);
            Received { buffer, start: 16, length: length as u16 }
        })
        .collect();
    let start = Instant::now();
    while start.elapsed() < LENGTH {
        port.send(&mut pool, &frames).unwrap();
    }
    port.counts().sent
}

/// Time until which the engine runs: the senders are done then.
fn deadline() -> Time {
    Time::ZERO + Span::from_millis(LENGTH.as_millis() as u64 + 200)
}

fn forward_frames(number: u8, queue: &str, length: usize, flows: u16) {
    let hosts = Hosts::new(number);
    let mut engine = hosts.engine(queue);
    let (sender, before) = (hosts.blast(UNKNOWN, length, flows), processor_time());
    engine.run(deadline(), None).unwrap();
    let forwarder = processor_time() - before;
    let lost = engine.port_counts(0).unwrap().0.missed;
    sender.join().unwrap().print(queue, length, flows, forwarder, &format!("; {lost} missed"));
}

fn forward_tcp(number: u8, queue: &str) {
    let hosts = Hosts::new(number);
    let mut engine = hosts.engine(queue);
    let (transfer, before) = (hosts.tcp(), processor_time());
    engine.run(deadline(), None).unwrap();
    let forwarder = processor_time() - before;
    let (counts, _) = engine.port_counts(1).unwrap();
    drop(engine);
    drop(hosts);
    let rest = format!("; {} frames, {} super-packets", counts.sent, counts.merged);
    transfer.join().unwrap().print(queue, forwarder, &rest);
}

fn kernel_frames(number: u8, length: usize) {
    let hosts = Hosts::new(number);
    if !hosts.route(number) {
        println!("kernel, HTB: left out, ip(8), tc(8) or its HTB is missing");
        return;
    }
    hosts.blast(ROUTER, length, 1).join().unwrap().print("kernel, HTB", length, 1, 0.0, "");
}

fn kernel_tcp(number: u8) {
    let hosts = Hosts::new(number);
    if hosts.route(number) {
        hosts.tcp().join().unwrap().print("kernel, HTB", 0.0, "");
    }
}

fn main() {
    // Cargo adds `--bench`.
    let is_part = |word: &String| !word.starts_with("--") && word != ALONE && word != SOCKETS;
    let words: Vec<String> = std::env::args().skip(1).filter(is_part).collect();
    let is_wanted = |what: &str| words.is_empty() || words.iter().any(|word| word == what);
    enter_user_namespace(Isolation { identity: Identity::Root, network: true, mounts: false }).unwrap();
    if is_wanted("frames") {
        let fifo = [64, 1_514].map(|length| ("fifo", length, 1));
        let others = ["fifo", "fq_codel", "drr", "stfq"].map(|queue| (queue, 1_514, 64));
        for (number, (queue, length, flows)) in (0..).zip(fifo.into_iter().chain(others)) {
            forward_frames(number, queue, length, flows);
        }
        (20..).zip([64, 1_514]).for_each(|(number, length)| kernel_frames(number, length));
    }
    if is_wanted("tcp") {
        (10..).zip(["fifo", "stfq"]).for_each(|(number, queue)| forward_tcp(number, queue));
        kernel_tcp(22);
    }
}
