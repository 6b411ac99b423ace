//! TCP through the same configuration in both backends, within the budget of `docs/parity.md`: 15 % of
//! throughput, and 25 % or 3 ms of the median and the 95th percentile of delay.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use apportion_linux::namespace::Namespace;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};

use crate::common::hosts::{Hosts, behind, config, hosts};
use crate::common::{alone, is_possible};

const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const BULK: u16 = 9_001;
const PROBES: u16 = 9_002;

/// Limits in bytes: the same delay in both backends, however packets are counted.
const CLASSES: &str = "\
inside = \"near\"
outside = \"far\"
plans = \"plans.csv\"
[up]
rate = \"8Mbit\"
queue = { kind = \"htb\", discipline = \"fifo\", plans = \"up\", limit = \"15kB\" }
[down]
rate = \"50Mbit\"
queue = { kind = \"fifo\", drop = \"tail\", limit = \"100kB\" }
";

/// The measurements of a customer.
#[derive(Debug, Default)]
struct Had {
    /// Throughput of TCP in Mb/s.
    rate: f64,
    /// Median and 95th percentile of the one-way delay of probes, in ms.
    delay: [f64; 2],
}

/// Measures a greedy TCP connection from each of these addresses, and a probe from each every 10 ms.
fn measured(hosts: &Hosts, source: &Namespace, addresses: &[u8], window: &Window) -> BTreeMap<u8, Had> {
    let begin = Instant::now();
    let ends: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let sinks = hosts.far.namespace.run(|| listen(begin, addresses.len(), window)).unwrap();
    let senders: Vec<_> = addresses
        .iter()
        .map(|last| {
            let last = *last;
            let bulk = source.spawn("bulk", move || send_bulk(last, ends)).unwrap();
            let probes = source.spawn("probes", move || send_probes(last, begin, ends)).unwrap();
            [bulk, probes]
        })
        .collect();
    std::thread::sleep(window.end);
    ends.store(true, Ordering::Relaxed);
    senders.into_iter().flatten().for_each(|sender| sender.join().unwrap());
    let (bulk, probes) = sinks;
    let mut delays: BTreeMap<u8, Vec<f64>> = probes.join().unwrap();
    let rates: BTreeMap<u8, f64> = bulk.join().unwrap();
    rates
        .into_iter()
        .map(|(last, rate)| {
            let own = delays.entry(last).or_default();
            own.sort_by(f64::total_cmp);
            let at = |share: f64| own.get((share * own.len() as f64) as usize).copied().unwrap_or(f64::NAN);
            (last, Had { rate, delay: [at(0.5), at(0.95)] })
        })
        .collect()
}

/// The measurement interval, relative to the start of the flows.
type Window = std::ops::Range<Duration>;
type Sinks = (JoinHandle<BTreeMap<u8, f64>>, JoinHandle<BTreeMap<u8, Vec<f64>>>);

/// Receives this number of connections, and the probes.
fn listen(begin: Instant, connections: usize, window: &Window) -> Sinks {
    let (listener, socket) =
        (TcpListener::bind((FAR, BULK)).unwrap(), UdpSocket::bind((FAR, PROBES)).unwrap());
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let (window, inside) = (window.clone(), window.clone());
    let bulk = move || {
        let each = (0..connections).map(|_| {
            let (stream, from) = listener.accept().unwrap();
            let inside = inside.clone();
            (last_of(from), std::thread::spawn(move || received(stream, begin, &inside)))
        });
        let each: Vec<_> = each.collect();
        each.into_iter().map(|(last, thread)| (last, thread.join().unwrap())).collect()
    };
    let probes = move || {
        let (mut delays, mut buffer) = (BTreeMap::<u8, Vec<f64>>::new(), [0; 64]);
        while begin.elapsed() < window.end {
            let Ok((8.., from)) = socket.recv_from(&mut buffer) else { continue };
            let now = begin.elapsed();
            let sent = Duration::from_nanos(u64::from_be_bytes(*buffer.first_chunk().unwrap()));
            if window.contains(&now) {
                delays.entry(last_of(from)).or_default().push((now - sent).as_secs_f64() * 1e3);
            }
        }
        delays
    };
    (std::thread::spawn(bulk), std::thread::spawn(probes))
}

fn last_of(from: SocketAddr) -> u8 {
    match from.ip() {
        IpAddr::V4(own) => own.octets()[3],
        IpAddr::V6(_) => 0,
    }
}

/// Returns the Mb/s received during the measurement interval.
fn received(mut stream: TcpStream, begin: Instant, window: &Window) -> f64 {
    let (mut buffer, mut counted) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return counted as f64 * 8e-6 / (window.end - window.start).as_secs_f64(),
            Ok(length) if window.contains(&begin.elapsed()) => counted += length,
            Ok(_) => (),
        }
    }
}

fn send_bulk(last: u8, ends: &AtomicBool) {
    let own = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(own.as_raw_fd(), &SockaddrIn::new(10, 0, 0, last, 0)).unwrap();
    connect(own.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(FAR, BULK))).unwrap();
    let mut stream = TcpStream::from(own);
    // A larger socket buffer would go on sending after the end.
    nix::sys::socket::setsockopt(&stream, nix::sys::socket::sockopt::SndBuf, &(256 << 10)).unwrap();
    while !ends.load(Ordering::Relaxed) {
        stream.write_all(&[7; 4_096]).unwrap();
    }
}

fn send_probes(last: u8, begin: Instant, ends: &AtomicBool) {
    let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, last), 0)).unwrap();
    while !ends.load(Ordering::Relaxed) {
        let now = begin.elapsed().as_nanos() as u64;
        let _ = socket.send_to(&now.to_be_bytes(), (FAR, PROBES));
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns the measurements of each customer in the kernel and in user space, averaged over `runs`
/// alternating runs of each; none, with a message, if the kernel lacks a feature.
fn both(addresses: &[u8], runs: u32, window: &Window) -> Option<BTreeMap<u8, [Had; 2]>> {
    let hosts = hosts(&[1]).filter(|_| is_possible())?;
    let source = behind(&hosts, addresses);
    let config = config(CLASSES, include_str!("../common/plans.csv"));
    let mut sums = BTreeMap::<u8, [Had; 2]>::new();
    for _ in 0..runs {
        let kernel = hosts.by_kernel(&config, || measured(&hosts, &source, addresses, window))?;
        let user_space = hosts.by_user_space(&config, || measured(&hosts, &source, addresses, window));
        println!("kernel {kernel:.2?}\nuser space {user_space:.2?}");
        for (at, had) in [kernel, user_space].into_iter().enumerate() {
            for (address, had) in had {
                let sum = &mut sums.entry(address).or_default()[at];
                sum.rate += had.rate / f64::from(runs);
                sum.delay.iter_mut().zip(had.delay).for_each(|(sum, own)| *sum += own / f64::from(runs));
            }
        }
    }
    Some(sums)
}

fn assert_rates(had: &BTreeMap<u8, [Had; 2]>) {
    let mean = had.values().map(|[_, user_space]| user_space.rate).sum::<f64>() / had.len() as f64;
    for (address, [kernel, user_space]) in had {
        assert!(
            (kernel.rate - user_space.rate).abs() < 0.15 * mean,
            "{address}: {kernel:?} and {user_space:?}"
        );
    }
}

#[test]
fn tcp_of_customers_has_the_same_rates() {
    let _alone = alone();
    let window = Duration::from_secs(3)..Duration::from_secs(9);
    both(&[11, 12, 17, 99], 1, &window).iter().for_each(assert_rates);
}

/// The delays of a single run vary by a fourth.
#[test]
#[ignore = "takes 4 minutes"]
fn tcp_of_customers_has_the_same_rates_and_delays() {
    let _alone = alone();
    let window = Duration::from_secs(6)..Duration::from_secs(18);
    for addresses in [&[11, 12, 17, 99][..], &[12, 17]] {
        let Some(had) = both(addresses, 3, &window) else { return };
        println!("means: {had:.2?}");
        assert_rates(&had);
        for (address, [kernel, user_space]) in &had {
            for (own, expected) in kernel.delay.iter().zip(user_space.delay) {
                assert!(
                    (own - expected).abs() < (0.25 * expected).max(3.0),
                    "{address}: {own} and {expected} ms"
                );
            }
        }
    }
}
