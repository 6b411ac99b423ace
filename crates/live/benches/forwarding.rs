//! How many frames a second one core forwards: from a packet socket in one namespace through a FIFO each way to
//! another namespace, at 64 and 1514 bytes, until nothing is lost.
//!
//! `cargo bench -p apportion-live --bench forwarding`. It needs two cores: one sends, one forwards.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and a panic is its message")]
#![allow(clippy::disallowed_methods, reason = "a bench measures time")]

use std::time::Instant;

use apportion_core::catalog::Selection;
use apportion_core::random::Stream;
use apportion_core::system::{DisciplineParams, Setup};
use apportion_core::units::{Bytes, Rate, Time};
use apportion_live::bridge::{Bridge, ETHERNET};
use apportion_live::engine::Engine;
use apportion_live::host::Host;
use apportion_live::link::{Link, LinkParts};
use apportion_live::namespace::{Identity, Isolation, enter_user_namespace};
use apportion_live::pace::Pace;
use apportion_live::pool::Pool;
use apportion_live::port::{Port, Received};

fn link(number: u32, kind: &str, rate: Rate) -> Link {
    let mut selection = Selection::new(kind, None, None).unwrap();
    if kind == "fifo" {
        selection.set("limit", "10000p").unwrap();
    }
    let queue = DisciplineParams::from_args(&selection).unwrap().build(&Setup::new(rate, 1, "bench"));
    Link::new(LinkParts::new(number, queue, Pace::rate(rate), Stream::new(1, "loss")))
}

/// A UDP frame of `length` bytes from one of `flows` ports.
fn frame(bytes: &mut [u8], flow: u16) {
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0]);
    let length = (bytes.len() - 14) as u16;
    let ip = &mut bytes[14..];
    ip[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[20..22].copy_from_slice(&(1_000 + flow).to_be_bytes());
    ip[22..24].copy_from_slice(&9_u16.to_be_bytes());
    ip[24..26].copy_from_slice(&(length - 20).to_be_bytes());
}

/// Sends frames of `length` bytes as fast as it can for `seconds` from inside a host.
fn blast(port: &mut Port, length: usize, flows: u16, seconds: f64) -> u64 {
    let mut pool = Pool::new(64, 1_522);
    let frames: Vec<_> = (0..64)
        .map(|at| {
            let buffer = pool.take(0).unwrap();
            frame(&mut pool.bytes_mut(buffer)[16..16 + length], at % flows);
            Received { buffer, start: 16, length: length as u16 }
        })
        .collect();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < seconds {
        port.send(&mut pool, &frames).unwrap();
    }
    port.counts().sent
}

fn measure(number: u32, queue: &str, length: usize, flows: u16) {
    // The kernel removes the devices of the measurement before in its own time.
    let make = |name: &str, address: [u8; 4]| {
        Host::create(&format!("{name}{number}"), &[address.into()], Bytes::new(1_500)).unwrap()
    };
    let (near, far) = (make("near", [10, 0, 0, 1]), make("far", [10, 0, 0, 2]));
    let rate = Rate::from_mbit(100_000);
    let ports = [Port::open(near.port).unwrap(), Port::open(far.port).unwrap()];
    let mut engine: Engine<Bridge> =
        Bridge::between(ports, [link(0, queue, rate), link(1, queue, rate)], ETHERNET).unwrap();
    let sender = near
        .namespace
        .spawn("sender", move || {
            let index = apportion_live::netlink::Netlink::open().unwrap().index_of("eth0").unwrap();
            blast(&mut Port::open(index).unwrap(), length, flows, 2.0)
        })
        .unwrap();
    let start = Instant::now();
    engine.run(Time::from_millis(2_200), None).unwrap();
    let took = start.elapsed().as_secs_f64().min(2.0);
    let offered = sender.join().unwrap();
    let (received, _) = engine.port_counts(0).unwrap();
    let (sent, _) = engine.port_counts(1).unwrap();
    println!(
        "{queue:10} {length:5} B {flows:5} flows: {:7.0} frames/s forwarded of {:7.0} offered ({:.2} Gbit/s); {received:?}; {}",
        sent.sent as f64 / took,
        offered as f64 / 2.0,
        sent.sent as f64 * length as f64 * 8.0 / took / 1e9,
        sent.unsent,
    );
}

fn main() {
    enter_user_namespace(Isolation { identity: Identity::Root, network: true, mounts: false }).unwrap();
    let fifo = [64, 1_514].map(|length| ("fifo", length, 1));
    let others = ["fifo", "fq_codel", "drr", "stfq"].map(|queue| (queue, 1_514, 64));
    for (number, (queue, length, flows)) in (0..).zip(fifo.into_iter().chain(others)) {
        measure(number, queue, length, flows);
    }
}
