//! A gateway in the kernel whose queue is the core of HCSFQ, between two hosts, in real time.
#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "figures, and a test that is skipped, are printed")]
#![allow(clippy::disallowed_methods, reason = "what is measured here is the kernel, in real time")]

mod common;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_core::units::Time;
use apportion_kernel::gateway::{Program, plan};
use apportion_live::gateway::snapshot::Reloads;
use apportion_live::{frame, wire_label};
use common::hosts::{Hosts, config, hosts, start};
use common::{frame_v4, is_possible};
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn};
use nix::sys::socket::{sendto, setsockopt, socket};

const SINK: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 9_000);
/// Last bytes of the addresses of the host inside.
const NEAR: [u8; 3] = [11, 12, 99];

const TEXT: &str = "\
inside = \"near\"
outside = \"far\"
plans = \"plans.csv\"
[customer.second]
weight = 2
[up]
rate = \"5Mbit\"
queue = { kind = \"hcsfq\", role = \"core\", target_delay = \"0s\", credit = \"0s\" }
labels = { reads = true, writes = true }
[down]
rate = \"5Mbit\"
queue = { kind = \"fifo\", drop = \"tail\" }
";

const PLANS: &str = "\
name,   parent, addresses, down,  up
first,  ,       10.0.0.11, 5Mbit, 5Mbit
second, ,       10.0.0.12, 5Mbit, 5Mbit
others, ,       ,          5Mbit, 5Mbit
";

/// A flow of an address: its source port, and what it sends, in Mb/s of frames.
type Flow = (u8, u16, f64);

/// A labelled IPv4 packet with UDP, without the Ethernet header, with which it has 1000 B.
fn packet((last, port, rate): Flow) -> Vec<u8> {
    let mut bytes = frame_v4(0x4000, 17, 0);
    bytes.resize(1_000, 7);
    bytes[16..18].copy_from_slice(&986_u16.to_be_bytes());
    bytes[26..30].copy_from_slice(&[10, 0, 0, last]);
    bytes[30..34].copy_from_slice(&SINK.0.octets());
    bytes[34..36].copy_from_slice(&port.to_be_bytes());
    bytes[36..38].copy_from_slice(&SINK.1.to_be_bytes());
    bytes[38..40].copy_from_slice(&966_u16.to_be_bytes());
    let ip = frame::parse(&bytes).unwrap().ip();
    assert!(wire_label::write(&mut bytes, ip, LabelKind::Rate, Label::new(rate * 1e6)));
    bytes.split_off(14)
}

/// Mb/s of each flow in the last three of four seconds.
#[derive(Debug, Default)]
struct Carried {
    sent: BTreeMap<(u8, u16), f64>,
    arrived: BTreeMap<(u8, u16), f64>,
}

impl Carried {
    /// What arrives of all flows of an address.
    fn of(&self, last: u8) -> f64 {
        self.arrived.iter().filter(|((address, _), _)| *address == last).map(|(_, rate)| rate).sum()
    }

    /// The part of what the addresses 11 and 12 have that the first has.
    fn first(&self) -> f64 {
        self.of(11) / (self.of(11) + self.of(12))
    }
}

fn carried(hosts: &Hosts, flows: &[Flow]) -> Carried {
    let sink = hosts.far.namespace.run(|| UdpSocket::bind(SINK).unwrap()).unwrap();
    setsockopt(&sink, RcvBufForce, &(8 << 20)).unwrap();
    sink.set_nonblocking(true).unwrap();
    let open =
        || socket(AddressFamily::Inet, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::Raw).unwrap();
    let raw: OwnedFd = hosts.near.namespace.run(open).unwrap();
    let to = SockaddrIn::from(std::net::SocketAddrV4::new(SINK.0, 0));
    let packets: Vec<_> = flows.iter().map(|flow| packet(*flow)).collect();
    let (begin, mut due, mut carried) = (Instant::now(), vec![0.0; flows.len()], Carried::default());
    loop {
        let now = begin.elapsed().as_secs_f64();
        let count = |rates: &mut BTreeMap<_, f64>, flow| {
            *rates.entry(flow).or_default() += if now >= 1.0 { 8e-3 / 3.0 } else { 0.0 };
        };
        for ((packet, due), (last, port, rate)) in packets.iter().zip(&mut due).zip(flows) {
            let gap = 8e-3 / rate;
            // A burst after a time in which others had the processor would fill the queue: it is left out.
            *due = f64::max(*due, now - 3.0 * gap);
            while *due <= now {
                // A packet that is dropped on the way is an error here.
                let _ = sendto(raw.as_raw_fd(), packet, &to, MsgFlags::empty());
                count(&mut carried.sent, (*last, *port));
                *due += gap;
            }
        }
        while let Ok((_, SocketAddr::V4(from))) = sink.recv_from(&mut [0; 2_048]) {
            count(&mut carried.arrived, (from.ip().octets()[3], from.port()));
        }
        if now >= 4.0 {
            return carried;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// By 1 : 2, and in the part of the first among its flows; then by 1 : 1, without a break.
#[test]
fn customers_have_their_weights_and_flows_their_part_of_that() {
    let Some(hosts) = hosts(&NEAR).filter(|_| is_possible()) else { return };
    let (before, after) = (config(TEXT, PLANS), config(&TEXT.replace("weight = 2", "weight = 1"), PLANS));
    let flows = [(11, 1, 2.0), (11, 2, 6.0), (12, 1, 8.0), (99, 1, 0.5)];
    let run = || {
        let mut gateway = match start(&before) {
            Err(error) if error.to_string().contains("ENOENT") => return println!("skipped: {error}"),
            gateway => gateway.unwrap(),
        };
        let first = carried(&hosts, &flows);
        let text = gateway.statistics(Time::from_secs(1)).prometheus(&Reloads::default());
        let json = gateway.statistics(Time::from_secs(1)).json(&Reloads::default());
        gateway.apply(after.clone(), plan(&after).unwrap()).unwrap();
        let second = carried(&hosts, &flows);
        let later = gateway.statistics(Time::from_secs(2)).json(&Reloads::default());
        println!("{first:.2?}, then {second:.2?}\n{:#}", later["directions"]["up"]["core"]);
        // 4.5 by 1 : 2 once the others have their 0.5. 4 sigma of the drops of some 5000 packets are 4 to 8 %.
        for (carried, part) in [(&first, 1.0 / 3.0), (&second, 0.5)] {
            assert!((carried.first() / part - 1.0).abs() < 0.1, "{carried:?}");
            let all: f64 = NEAR.into_iter().map(|last| carried.of(last)).sum();
            assert!((4.3..5.2).contains(&all), "{carried:?}");
            // Below its part a customer has what it sends; a full queue takes some.
            assert!(carried.of(99) > 0.9 * carried.sent[&(99, 1)], "{carried:?}");
        }
        let [one, two] = [1, 2].map(|port| first.arrived[&(11, port)]);
        assert!((2.0 * one / (one + two) - 1.0).abs() < 0.15, "{first:?}");
        let core = |json: &serde_json::Value| json["directions"]["up"]["core"].clone();
        let received = |json, customer: &str| {
            core(json)["customers"][customer]["received_packets"].as_f64().unwrap() as u64
        };
        // Nothing has begun anew.
        for customer in ["first", "second", ""] {
            let [before, after] = [&json, &later].map(|json| received(json, customer));
            assert!(before > 150 && after * 10 > before * 18, "{customer}: {before} {after}");
        }
        let part = core(&later)["customers"]["first"]["part_bytes_per_second"].as_f64().unwrap();
        assert!((part * 8e-6 / 2.25 - 1.0).abs() < 0.2, "{part}");
        for name in ["received_bytes_total", "dropped_packets_total", "fair_share_bytes_per_second"] {
            let line =
                format!("apportion_gateway_core_customer_{name}{{direction=\"up\",customer=\"second\"}}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
    };
    hosts.middle.run(run).unwrap();
}

#[test]
fn the_gateway_s_plan_has_the_customers_of_the_file() {
    let planned = |text: &str, plans| plan(&config(text, plans)).map(|[up, _]| up.program);
    let Ok(Program::Hierarchy(plan)) = planned(TEXT, PLANS) else { panic!("no core") };
    let weights: Vec<_> = plan.settings.customers().iter().map(|weight| weight.get()).collect();
    assert_eq!(
        (plan.names.clone(), weights),
        (["", "first", "others", "second"].map(String::from).to_vec(), vec![1.0, 1.0, 1.0, 2.0])
    );
    let of: Vec<_> = plan.of.iter().map(|(prefix, number)| (prefix.to_string(), *number)).collect();
    assert_eq!(of, [("10.0.0.11".to_owned(), 1), ("10.0.0.12".to_owned(), 3)]);
    // Constants and weights are changed in place, other customers or addresses are not.
    let other = |text: &str, plans| match planned(text, plans) {
        Ok(Program::Hierarchy(other)) => other.has_the_customers_of(&plan),
        other => panic!("{other:?}"),
    };
    assert!(other(
        &TEXT.replace("weight = 2", "weight = 3").replace("credit = \"0s\"", "k_c = \"1s\""),
        PLANS
    ));
    let moved = Box::leak(PLANS.replace(".12", ".13").into_boxed_str());
    assert!(!other(TEXT, moved));
    let named = Box::leak(PLANS.replace("second,", "third,").into_boxed_str());
    assert!(!other(&TEXT.replace("second", "third"), named));
    for (old, new, expected) in [
        (
            "target_delay = \"0s\"",
            "target_delay = \"5ms\"",
            "up.queue: the kernel backend cannot carry out this core",
        ),
        ("weight = 2", "weight = 1e6", "`weight` of a customer must lie between"),
        ("writes = true", "writes = false", "up.labels: write { reads = true, writes = true }"),
        ("reads = true", "reads = [\"10.0.0.0/24\"]", "up.labels: the core in the kernel trusts all labels"),
    ] {
        let problems = planned(&TEXT.replace(old, new), PLANS).unwrap_err().join("\n");
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
}
