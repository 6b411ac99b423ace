//! Flows of labelled packets through a gateway between two hosts, in real time.
#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::disallowed_methods, reason = "what is measured here is the kernel, in real time")]

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_live::{frame, wire_label};
use nix::sys::socket::sockopt::RcvBufForce;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn};
use nix::sys::socket::{recv, sendto, setsockopt, socket};

use super::frame_v4;
use super::hosts::Hosts;

const SINK: (Ipv4Addr, u16) = (Ipv4Addr::new(10, 0, 0, 2), 9_000);

/// A flow of the inside host: the last byte of its address, its source port, its rate in Mb/s of frames, and
/// its labels.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub last: u8,
    pub port: u16,
    pub rate: f64,
    pub label: Option<(LabelKind, f64)>,
}

/// Builds an IPv4 packet with UDP, without the Ethernet header, with which it has 1000 B.
fn packet(flow: Flow) -> Vec<u8> {
    let mut bytes = frame_v4(0x4000, 17, 0);
    bytes.resize(1_000, 7);
    bytes[16..18].copy_from_slice(&986_u16.to_be_bytes());
    bytes[26..30].copy_from_slice(&[10, 0, 0, flow.last]);
    bytes[30..34].copy_from_slice(&SINK.0.octets());
    bytes[34..36].copy_from_slice(&flow.port.to_be_bytes());
    bytes[36..38].copy_from_slice(&SINK.1.to_be_bytes());
    bytes[38..40].copy_from_slice(&966_u16.to_be_bytes());
    let ip = frame::parse(&bytes).unwrap().ip();
    if let Some((kind, label)) = flow.label {
        assert!(wire_label::write(&mut bytes, ip, kind, Label::new(label)));
    }
    bytes.split_off(14)
}

/// Returns the address, port and label of an IPv4 packet that arrived at the sink.
fn arrival(packet: &[u8]) -> Option<((u8, u16), f64)> {
    let mut bytes = frame_v4(0, 0, 0);
    bytes.truncate(14);
    bytes.extend(packet);
    let ip = frame::parse(&bytes).ok()?.ip();
    let port = |at: usize| u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?).into();
    let port = |at| -> Option<u16> { port(at) };
    let label = wire_label::read(&bytes, ip).map_or(0.0, |(_, label)| label.value());
    (port(36)? == SINK.1).then_some(((bytes[29], port(34)?), label))
}

/// Measurements of each flow in the last seconds, by address and port.
#[derive(Debug, Default)]
pub struct Carried {
    /// The rate sent, in Mb/s.
    pub sent: BTreeMap<(u8, u16), f64>,
    pub arrived: BTreeMap<(u8, u16), f64>,
    /// The sum of labels in each second.
    pub labels: BTreeMap<(u8, u16), f64>,
}

impl Carried {
    /// Returns the rate received from all flows of an address.
    pub fn of(&self, last: u8) -> f64 {
        self.arrived.iter().filter(|((address, _), _)| *address == last).map(|(_, rate)| rate).sum()
    }
}

fn raw(protocol: SockProtocol) -> OwnedFd {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Inet, SockType::Raw, flags, protocol).unwrap()
}

/// Sends these flows for `wait` seconds, then for `seconds` seconds in which they are measured.
pub fn carried(hosts: &Hosts, flows: &[Flow], wait: f64, seconds: f64) -> Carried {
    // One socket holds the port, the other one sees whole packets.
    let open = || (UdpSocket::bind(SINK).unwrap(), raw(SockProtocol::Udp));
    let (_port, sink) = hosts.far.namespace.run(open).unwrap();
    setsockopt(&sink, RcvBufForce, &(8 << 20)).unwrap();
    let source = hosts.near.namespace.run(|| raw(SockProtocol::Raw)).unwrap();
    let to = SockaddrIn::from(std::net::SocketAddrV4::new(SINK.0, 0));
    let packets: Vec<_> = flows.iter().map(|flow| packet(*flow)).collect();
    let (begin, mut due, mut carried) = (Instant::now(), vec![0.0; flows.len()], Carried::default());
    loop {
        let now = begin.elapsed().as_secs_f64();
        let count = |rates: &mut BTreeMap<_, f64>, flow, amount: f64| {
            *rates.entry(flow).or_default() += if now >= wait { amount / seconds } else { 0.0 };
        };
        for ((packet, due), flow) in packets.iter().zip(&mut due).zip(flows) {
            let gap = 8e-3 / flow.rate;
            // A burst after a time in which other processes had the processor would fill the queue: it is
            // skipped.
            *due = f64::max(*due, now - 3.0 * gap);
            while *due <= now {
                // A packet that is dropped on the way is reported as an error here.
                let _ = sendto(source.as_raw_fd(), packet, &to, MsgFlags::empty());
                count(&mut carried.sent, (flow.last, flow.port), 8e-3);
                *due += gap;
            }
        }
        let mut buffer = [0; 2_048];
        while let Ok(length) = recv(sink.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
            if let Some((flow, label)) = arrival(&buffer[..length]) {
                count(&mut carried.arrived, flow, 8e-3);
                count(&mut carried.labels, flow, label);
            }
        }
        if now >= wait + seconds {
            return carried;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}
