//! Processor time per packet in both backends.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use apportion_linux::namespace::Namespace;
use apportion_live::gateway::bypass;

use crate::common::hosts::{Hosts, behind, config, hosts};
use crate::common::{alone, is_possible};

const FAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const NEAR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 11);
/// The address of the host behind the router.
const SOURCE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 33);
/// The address of the router.
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const PORT: u16 = 9_000;
/// Packets per second: far below the capacity of any of them.
const LOAD: f64 = 20_000.0;
const MEASURED: Duration = Duration::from_secs(5);
const ROUNDS: usize = 5;

const FIFO: &str = "\
inside = \"near\"
outside = \"far\"
[up]
rate = \"1Gbit\"
queue = { kind = \"fifo\", drop = \"tail\" }
[down]
rate = \"1Gbit\"
queue = { kind = \"fifo\", drop = \"tail\" }
";

const PLANS: &str = "\
inside = \"near\"
outside = \"far\"
plans = \"plans.csv\"
[up]
rate = \"1Gbit\"
queue = { kind = \"htb\", discipline = \"fifo\", plans = \"up\" }
[down]
rate = \"1Gbit\"
queue = { kind = \"htb\", discipline = \"fifo\", plans = \"down\" }
";
const CUSTOMERS: &str = "\
name,   parent, addresses, down,    up
site,   ,       ,          900Mbit, 900Mbit
first,  site,   10.0.0.11, 800Mbit, 800Mbit
others, site,   ,          100Mbit, 100Mbit
";

/// Returns the seconds that all processors together have been idle since boot (proc_stat(5)).
fn idle() -> f64 {
    let all = std::fs::read_to_string("/proc/stat").unwrap();
    let words: Vec<f64> =
        all.lines().next().unwrap().split_whitespace().skip(1).flat_map(str::parse).collect();
    (words[3] + words[4]) / 100.0
}

/// Returns the microseconds of processor time for each packet that one host sends to another.
fn work(from: (&Namespace, Ipv4Addr), to: (&Namespace, Ipv4Addr)) -> f64 {
    let receiver = to.0.run(|| UdpSocket::bind((to.1, PORT)).unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let ends: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let counting = std::thread::spawn(move || {
        let mut count = 0_u64;
        while !ends.load(Ordering::Relaxed) {
            count += u64::from(receiver.recv(&mut [0; 2_048]).is_ok());
        }
        count
    });
    let (own, peer) = (from.1, to.1);
    let send = move || {
        let socket = UdpSocket::bind((own, 0)).unwrap();
        let (begin, mut sent) = (Instant::now(), 0_u32);
        while !ends.load(Ordering::Relaxed) {
            while f64::from(sent) < begin.elapsed().as_secs_f64() * LOAD {
                let _ = socket.send_to(&[7; 972], (peer, PORT));
                sent += 1;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let sending = from.0.spawn("sender", send).unwrap();
    let (begin, before) = (Instant::now(), idle());
    std::thread::sleep(MEASURED);
    let (time, idle) = (begin.elapsed().as_secs_f64(), idle() - before);
    ends.store(true, Ordering::Relaxed);
    sending.join().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get() as f64;
    // Packets sent before and after the measurement are less than a hundredth.
    (time * processors - idle) * 1e6 / counting.join().unwrap() as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Returns by configuration the microseconds beyond those of the hosts alone: with the redirection, in the
/// kernel, and in user space.
fn rounds(
    hosts: &Hosts,
    source: &Namespace,
    config: &apportion_scenario::gateway::GatewayConfig,
) -> Option<[f64; 3]> {
    let (near, far) = (&hosts.near.namespace, &hosts.far.namespace);
    let across = || work((near, NEAR), (far, FAR));
    let mut all = [(); 3].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        let alone = work((source, SOURCE), (near, ROUTER));
        hosts.middle.run(|| bypass::set(config, true).map(drop)).unwrap().unwrap();
        let redirected = across();
        hosts.middle.run(|| bypass::set(config, false).map(drop)).unwrap().unwrap();
        let kernel = hosts.by_kernel(config, across)?;
        let user_space = hosts.by_user_space(config, across);
        println!(
            "hosts {alone:.1}, redirected {redirected:.1}, kernel {kernel:.1}, user space {user_space:.1} us"
        );
        for (all, own) in all.iter_mut().zip([redirected, kernel, user_space]) {
            all.push(own - alone);
        }
    }
    Some(all.map(median))
}

/// Requires an otherwise idle machine.
#[test]
#[ignore = "takes 4 minutes of a quiet machine"]
fn a_packet_takes_a_third_of_the_time_of_user_space() {
    let _alone = alone();
    let Some(hosts) = hosts(&[11]).filter(|_| is_possible()) else { return };
    let source = behind(&hosts, &[33]);
    for (name, config) in [("fifo", config(FIFO, "")), ("plans", config(PLANS, CUSTOMERS))] {
        let Some([redirected, kernel, user_space]) = rounds(&hosts, &source, &config) else { return };
        println!(
            "{name}: over the hosts {redirected:.1}, {kernel:.1} and {user_space:.1} us: {:.2} of user space",
            kernel / user_space
        );
        assert!(3.0 * kernel <= user_space, "{kernel} and {user_space}");
    }
}
