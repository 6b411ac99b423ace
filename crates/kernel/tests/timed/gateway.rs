//! A gateway in the kernel between two hosts, and the same one in user space.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use apportion_core::units::Time;
use apportion_kernel::gateway::{KernelGateway, Program, plan};
use apportion_kernel::htb::MAJOR;
use apportion_linux::namespace::Namespace;
use apportion_linux::netlink::Netlink;
use apportion_live::gateway::snapshot::Reloads;
use apportion_scenario::gateway::classifier::Prefix;
use apportion_testing::skip;

use crate::common::hosts::{Hosts, config, host, hosts, start, start_by};
use crate::common::{alone, is_possible};

const SINK: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 9_000);
/// Last bytes of the addresses of the inside host.
const NEAR: [u8; 4] = [11, 12, 17, 99];
/// Payload of the IP packets; the header of UDP and IPv4 takes 28 B.
const PAYLOAD: usize = 972;
/// Size of an IP packet with its Ethernet header.
const FRAME: f64 = 1_014.0;

const CLASSES: &str = "\
inside = \"near\"
outside = \"far\"
plans = \"plans.csv\"
[up]
rate = \"8Mbit\"
queue = { kind = \"htb\", discipline = \"fifo\", plans = \"up\" }
[down]
rate = \"20Mbit\"
queue = { kind = \"fifo\", drop = \"tail\" }
";

/// Assured rates are close to each other, since HTB shares spare capacity by quanta, which then are short
/// compared with the measurement. Two masts of 3 and 4 Mb/s under a site of 6; the second customer of the
/// first mast has a ceiling.
const PLANS: &str = include_str!("../common/plans.csv");

/// A single customer of 1 Mb/s.
const SLOWER: &str = "\
name,   parent, addresses, down,  up
first,  ,       10.0.0.11, 20Mbit,1Mbit
others, ,       ,          20Mbit,1Mbit
";

/// Sends datagrams from each address at its rate, in Mb/s of frames, until it is stopped.
fn sender(near: &Namespace, flows: &[(u8, f64)], ends: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (flows, ends) = (flows.to_vec(), Arc::clone(ends));
    let send = move || {
        let open = |last: u8| {
            let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, last), 0)).unwrap();
            socket.connect(SINK).unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let mut flows: Vec<_> = flows.iter().map(|(last, rate)| (open(*last), *rate, 0u32)).collect();
        let begin = Instant::now();
        while !ends.load(Ordering::Relaxed) {
            let now = begin.elapsed().as_secs_f64();
            for (socket, rate, sent) in &mut flows {
                while f64::from(*sent) * FRAME * 8e-6 < now * *rate {
                    // Packets that the device does not accept are lost as well.
                    let _ = socket.send(&[7; PAYLOAD]);
                    *sent += 1;
                }
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    };
    near.spawn("sender", send).unwrap()
}

/// Returns the Mb/s of frames that arrive from each address during `seconds`, after a second.
fn arriving(far: &Namespace, seconds: u64) -> JoinHandle<BTreeMap<u8, f64>> {
    let receive = move || {
        let socket = UdpSocket::bind(SINK).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (begin, mut counted) = (Instant::now(), BTreeMap::new());
        let (from, to) = (Duration::from_secs(1), Duration::from_secs(1 + seconds));
        while begin.elapsed() < to {
            match socket.recv_from(&mut [0; 2_048]) {
                Ok((_, source)) if begin.elapsed() >= from => {
                    let IpAddr::V4(source) = source.ip() else { continue };
                    *counted.entry(source.octets()[3]).or_insert(0.0) += FRAME * 8e-6 / seconds as f64;
                }
                Ok(_) => (),
                Err(error) => {
                    assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
                }
            }
        }
        counted
    };
    far.spawn("receiver", receive).unwrap()
}

/// Returns the rates at which these flows arrive while they send.
fn carried(hosts: &Hosts, flows: &[(u8, f64)], seconds: u64) -> BTreeMap<u8, f64> {
    let ends = Arc::new(AtomicBool::new(false));
    let sends = sender(&hosts.near.namespace, flows, &ends);
    let arrived = arriving(&hosts.far.namespace, seconds).join().unwrap();
    ends.store(true, Ordering::Relaxed);
    sends.join().unwrap();
    arrived
}

/// Frames cross only while the gateway is up, and it leaves nothing behind.
#[test]
fn what_a_gateway_sets_up_goes_with_it() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let config = config(CLASSES, PLANS);
    let Some(arrived) = hosts.by_kernel(&config, || carried(&hosts, &[(11, 1.0)], 1)) else { return };
    assert!((0.9..1.1).contains(&arrived[&11]), "{arrived:?}");
    let without = hosts.middle.run(|| carried(&hosts, &[(11, 1.0)], 1)).unwrap();
    assert!(without.is_empty(), "{without:?}");
    let left = || {
        let mut netlink = Netlink::open().unwrap();
        ["near", "far"].map(|name| {
            let device = netlink.index_of(name).unwrap();
            netlink.delete_queue(device, MAJOR).unwrap()
        })
    };
    assert_eq!(hosts.middle.run(left).unwrap(), [false; 2]);
}

/// Assured rates, ceilings on three levels, and the customers without a plan, in both backends.
#[test]
fn plans_divide_in_the_kernel_as_in_user_space() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let config = config(CLASSES, PLANS);
    for flows in [
        &[(11, 4.0), (12, 4.0), (17, 4.0), (99, 4.0)][..],
        &[(12, 4.0), (17, 8.0)],
        &[(11, 4.0), (17, 1.0), (99, 0.05)],
    ] {
        let Some(kernel) = hosts.by_kernel(&config, || carried(&hosts, flows, 4)) else { return };
        let user_space = hosts.by_user_space(&config, || carried(&hosts, flows, 4));
        println!("kernel {kernel:.3?}, user space {user_space:.3?}");
        for (address, rate) in user_space {
            let own = kernel.get(&address).copied().unwrap_or(0.0);
            assert!((own - rate).abs() < 0.05 * rate.max(0.5), "{address}: {own} and {rate}");
        }
    }
}

/// A reload sets up its changes, and an interface that is created anew is taken again.
#[test]
fn another_configuration_and_another_interface_are_taken_up() {
    let _alone = alone();
    let Some(mut hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let flows = [(11, 4.0)];
    let (before, after) = (config(CLASSES, PLANS), config(CLASSES, SLOWER));
    let middle = hosts.middle.try_clone().unwrap();
    let run = || {
        let mut gateway = match start(&before) {
            Err(error) if error.to_string().contains("ENOENT") => return skip::because(error),
            gateway => gateway.unwrap(),
        };
        let arrives = |hosts: &Hosts| carried(hosts, &flows, 2).get(&11).copied().unwrap_or(0.0);
        let first = arrives(&hosts);
        gateway.apply(after.clone(), plan(&after).unwrap()).unwrap();
        let reloaded = arrives(&hosts);
        // The interface disappears with its host.
        drop(std::mem::replace(&mut hosts.far, host("spare", &[3])));
        while Netlink::open().unwrap().index_of("far").is_ok() {
            std::thread::sleep(Duration::from_millis(10));
        }
        gateway.mend();
        hosts.far = host("far", &[2]);
        let lost = arrives(&hosts);
        gateway.mend();
        let again = arrives(&hosts);
        println!("{first:.3} {reloaded:.3} {lost:.3} {again:.3}");
        assert!((2.8..3.2).contains(&first) && (0.9..1.1).contains(&reloaded), "{first} {reloaded}");
        assert!(lost == 0.0 && (0.9..1.1).contains(&again), "{lost} {again}");
    };
    middle.run(run).unwrap();
}

/// A class that another program removes is set up again by itself: the backlog of the others stays.
#[test]
fn a_class_that_is_taken_away_alone_is_set_up_again() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let config = config(CLASSES, PLANS);
    let tree = plan(&config).unwrap()[0].tree.clone();
    let minors = ["first", "second"].map(|name| tree.class_of(name).unwrap() as u16);
    let run = || {
        let mut gateway = match start(&config) {
            Err(error) if error.to_string().contains("ENOENT") => return skip::because(error),
            gateway => gateway.unwrap(),
        };
        let mut netlink = Netlink::open().unwrap();
        let far = netlink.index_of("far").unwrap();
        let mut classes = || {
            let all = netlink.class_statistics(far, MAJOR).unwrap();
            all.into_iter().map(|class| (class.minor, class.packets)).collect::<BTreeMap<_, _>>()
        };
        carried(&hosts, &[(11, 1.0), (12, 1.0)], 1);
        let before = classes();
        assert!(minors.iter().all(|minor| before[minor] > 50), "{before:?}");
        assert!(Netlink::open().unwrap().delete_class(far, MAJOR, minors[0]).unwrap());
        assert_eq!(classes().len(), before.len() - 1);
        gateway.mend();
        let after = classes();
        assert_eq!(after.keys().collect::<Vec<_>>(), before.keys().collect::<Vec<_>>());
        // The new class has counted nothing, and the other one continues.
        assert!(after[&minors[0]] == 0 && after[&minors[1]] >= before[&minors[1]], "{before:?} {after:?}");
        let limited = carried(&hosts, &[(11, 6.0)], 2).get(&11).copied().unwrap_or(0.0);
        assert!((2.8..3.2).contains(&limited), "{limited}");
    };
    hosts.middle.run(run).unwrap();
}

/// Another program removes a class, then the whole queue. Their counters restart from 0 when they are set up
/// again, and the displayed totals continue.
#[test]
fn totals_go_on_where_a_queue_is_taken_away() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let config = config(CLASSES, PLANS);
    let leaf = plan(&config).unwrap()[0].tree.class_of("first").unwrap() as u16;
    // Packets of the customer and in total, in the direction up.
    let sent = |gateway: &mut KernelGateway| {
        let json = gateway.statistics(Time::from_secs(1)).json(&Reloads::default());
        let up = &json["directions"]["up"];
        [&up["customers"]["first"], up].map(|of| of["sent_packets"].as_u64().unwrap())
    };
    let run = || {
        let mut gateway = match start(&config) {
            Err(error) if error.to_string().contains("ENOENT") => return skip::because(error),
            gateway => gateway.unwrap(),
        };
        let mut netlink = Netlink::open().unwrap();
        let far = netlink.index_of("far").unwrap();
        let mut before = [0; 2];
        for step in ["at first", "a class", "the queue"] {
            match step {
                "a class" => assert!(netlink.delete_class(far, MAJOR, leaf).unwrap()),
                "the queue" => assert!(netlink.delete_queue(far, MAJOR).unwrap()),
                _ => (),
            }
            let without = sent(&mut gateway);
            gateway.mend();
            let again = sent(&mut gateway);
            carried(&hosts, &[(11, 1.0), (12, 0.5)], 1);
            let later = sent(&mut gateway);
            println!("{step}: {before:?} {without:?} {again:?} {later:?}");
            let grows =
                |from: [u64; 2], to: [u64; 2], by| from.iter().zip(to).all(|(from, to)| to >= from + by);
            assert!(
                grows(before, without, 0) && grows(without, again, 0) && grows(again, later, 100),
                "{step}"
            );
            before = later;
        }
    };
    hosts.middle.run(run).unwrap();
}

/// Packets without a class are dropped, and counted with the reason.
#[test]
fn packets_of_no_class_are_counted() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let config = config(CLASSES, PLANS);
    // A file must have a class for the others; a library need not.
    let mut plans = plan(&config).unwrap();
    let Program::Prefixes { of, .. } = &mut plans[0].program else { panic!("no prefixes") };
    of.push((Prefix::around(IpAddr::from([10, 0, 0, 99]), 32), 0));
    let run = || {
        let mut gateway = match start_by(&config, plans.clone()) {
            Err(error) if error.to_string().contains("ENOENT") => return skip::because(error),
            gateway => gateway.unwrap(),
        };
        let arrived = carried(&hosts, &[(11, 1.0), (99, 1.0)], 1);
        let count = |gateway: &mut KernelGateway| {
            let statistics = gateway.statistics(Time::from_secs(1));
            let text = statistics.prometheus(&Reloads::default());
            let line = "apportion_gateway_dropped_packets_total{direction=\"up\",reason=\"policy\"} ";
            let shown: u64 = text.lines().find_map(|found| found.strip_prefix(line)?.parse().ok()).unwrap();
            let json = statistics.json(&Reloads::default());
            assert_eq!(json["directions"]["up"]["dropped_packets"]["policy"].as_u64(), Some(shown));
            shown
        };
        let counted = count(&mut gateway);
        println!("{arrived:?}, {counted} are counted");
        assert!(!arrived.contains_key(&99) && counted >= 200, "{arrived:?} {counted}");
        // Includes the counts of a removed program.
        let mut netlink = Netlink::open().unwrap();
        let far = netlink.index_of("far").unwrap();
        assert!(netlink.delete_queue(far, MAJOR).unwrap());
        gateway.mend();
        assert!(count(&mut gateway) >= counted);
    };
    hosts.middle.run(run).unwrap();
}

/// Returns how many of 60 waiting datagrams arrive, at 3 Mb/s, while another configuration is applied.
fn arriving_while(hosts: &Hosts, plans: &'static str) -> Option<usize> {
    let (before, after) = (config(CLASSES, PLANS), config(CLASSES, plans));
    let run = || {
        let mut gateway = match start(&before) {
            Err(error) if error.to_string().contains("ENOENT") => return None,
            gateway => gateway.unwrap(),
        };
        let receiver = hosts.far.namespace.run(|| UdpSocket::bind(SINK).unwrap()).unwrap();
        receiver.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        let send = || {
            let socket = UdpSocket::bind((Ipv4Addr::new(10, 0, 0, 11), 0)).unwrap();
            (0..60).for_each(|_| drop(socket.send_to(&[7; PAYLOAD], SINK)));
        };
        hosts.near.namespace.run(send).unwrap();
        gateway.apply(after.clone(), plan(&after).unwrap()).unwrap();
        Some(std::iter::from_fn(|| receiver.recv(&mut [0; 2_048]).ok()).count())
    };
    hosts.middle.run(run).unwrap()
}

/// Changed numbers of the same classes are applied in place, so that nothing is lost; other classes are set
/// up anew.
#[test]
fn what_waits_stays_while_only_numbers_change() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    // Neighbours are resolved first.
    if hosts.by_kernel(&config(CLASSES, PLANS), || carried(&hosts, &[(11, 1.0)], 1)).is_none() {
        return skip::because("the kernel has no HTB; load the module sch_htb");
    }
    let numbers = Box::leak(PLANS.replace("2Mbit,", "1Mbit,").replace("4Mbit", "5Mbit").into_boxed_str());
    let classes = Box::leak(format!("{PLANS}more, site, 10.0.0.77, , 1Mbit,\n").into_boxed_str());
    let [changed, anew] = [numbers, classes].map(|plans| arriving_while(&hosts, plans).unwrap());
    println!("{changed} and {anew}");
    assert!(changed == 60 && anew < 30, "{changed} {anew}");
}

/// A core drops packets without a label, which shows that packets pass the program.
#[test]
fn a_core_is_in_front_of_its_direction_only() {
    let _alone = alone();
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let text = |up: &str, down: &str| {
        let core = "queue = { kind = \"csfq\", role = \"core\", target_delay = \"0s\", egress = true }\n\
                    labels = { reads = true }\n";
        let fifo = "queue = { kind = \"fifo\", drop = \"tail\" }\n";
        let of = |kind: &str| if kind == "core" { core } else { fifo };
        format!(
            "inside = \"near\"\noutside = \"far\"\n[up]\nrate = \"2Mbit\"\n{}[down]\nrate = \"2Mbit\"\n{}",
            of(up),
            of(down)
        )
    };
    let arrives = |up, down| {
        let config = config(&text(up, down), "");
        hosts
            .by_kernel(&config, || carried(&hosts, &[(11, 4.0)], 1))
            .map(|arrived| arrived.get(&11).copied().unwrap_or(0.0))
    };
    let (Some(core), Some(fifo)) = (arrives("core", "fifo"), arrives("fifo", "core")) else { return };
    assert!(core == 0.0 && (1.85..2.15).contains(&fifo), "{core} {fifo}");
}

/// The kernel limits each queue separately, and no limit in the file does not mean unlimited memory.
#[test]
fn queues_that_may_hold_too_much_together_are_refused() {
    let plan_of = |customers: usize, ceil: u64, limit: &str| {
        let all =
            (0..customers).map(|i| format!("c{i}, , 10.{}.{}.1, 1Mbit, {ceil}Mbit\n", i / 256, i % 256));
        let plans = format!(
            "name, parent, addresses, down, up\n{}others, , , 1Mbit, 1Mbit\n",
            all.collect::<String>()
        );
        let text = CLASSES
            .replace("\"8Mbit\"", "\"10Gbit\"")
            .replace("plans = \"up\"", &format!("plans = \"up\"{limit}"));
        plan(&config(&text, plans.leak()))
    };
    assert!(plan_of(999, 100, "").is_ok());
    let problems = plan_of(1_001, 100, "").unwrap_err().join("\n");
    assert!(problems.contains("up.queue") && problems.contains("limit = \"1000kB\""), "{problems}");
    assert!(plan_of(1_001, 100, ", limit = \"1000kB\"").is_ok());
    assert!(plan_of(1_001, 100, ", limit = \"2000p\"").is_err());
}

/// Each problem names its key and an alternative.
#[test]
fn what_the_kernel_cannot_do_is_refused_by_its_key() {
    let refusal = |old: &str, new: &str| {
        assert!(CLASSES.contains(old), "{old}");
        plan(&config(&CLASSES.replace(old, new), PLANS)).unwrap_err().join("\n")
    };
    for (old, new, expected) in [
        ("discipline = \"fifo\", plans", "discipline = \"fq_codel\", plans", "up.queue: "),
        ("[down]\n", "[down]\noverhead = \"38B\"\n", "down.overhead: must be \"14B\""),
        ("[down]\n", "[down]\ndelay = \"5ms\"\n", "down.delay: "),
        ("[down]\n", "[down]\nloss = 0.1\n", "down.loss: "),
        ("kind = \"fifo\", drop = \"tail\"", "kind = \"cake\"", "down.queue: "),
        ("kind = \"fifo\", drop = \"tail\"", "kind = \"drr\", drop = \"tail\"", "down.queue: "),
        (
            "[down]\n",
            "[[rule]]\nname = \"calls\"\nfrom_port = 7\ncustomer = \"first\"\n[down]\n",
            "rule `calls`: the kernel backend has no `customer`",
        ),
    ] {
        let refusal = refusal(old, new);
        assert!(refusal.contains(expected), "{expected}: {refusal}");
    }
}
