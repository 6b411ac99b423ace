//! Hosts and gateways in a line: the near host, the edge, the core, the far host.

use std::thread::JoinHandle;

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::host::Host;
use apportion_live::frame;
use apportion_live::gateway::Gateway;
use apportion_live::wire_label;
use etherparse::{IpHeaders, Ipv4Header, Ipv6Header, PacketBuilder, ip_number};

use crate::common::{Running, Wire, enter, host, judge_by_time, metrics, open, start, wire_between};

/// The version of IP, and with it the field of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// Labels are in identifications of atomic packets.
    V4,
    /// Labels are in flow labels.
    V6,
}

impl Ip {
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// Headers without a label, from the first host to the second.
    fn headers(self, protocol: etherparse::IpNumber) -> IpHeaders {
        match self {
            Self::V4 => {
                let mut header = Ipv4Header::new(0, 64, protocol, [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
                header.dont_fragment = true;
                IpHeaders::Ipv4(header, Default::default())
            }
            Self::V6 => {
                let address = |last| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
                let (source, destination) = (address(1), address(2));
                let header = Ipv6Header { hop_limit: 64, source, destination, ..Ipv6Header::default() };
                IpHeaders::Ipv6(header, Default::default())
            }
        }
    }

    /// A datagram between these ports whose IP packet has `length` bytes.
    pub fn datagram(self, ports: (u16, u16), length: usize) -> Vec<u8> {
        let payload = vec![0; length - 8 - if self == Self::V4 { 20 } else { 40 }];
        let mut frame = Vec::new();
        ethernet()
            .ip(self.headers(ip_number::UDP))
            .udp(ports.0, ports.1)
            .write(&mut frame, &payload)
            .unwrap();
        frame
    }

    /// A segment between these ports with this acknowledgement number.
    pub fn segment(self, ports: (u16, u16), number: u32, length: usize) -> Vec<u8> {
        let mut frame = Vec::new();
        ethernet()
            .ip(self.headers(ip_number::TCP))
            .tcp(ports.0, ports.1, 0, 9_999)
            .ack(number)
            .write(&mut frame, &vec![0; length])
            .unwrap();
        frame
    }
}

/// The frame with swapped addresses, which leaves checksums right.
pub fn turned(mut frame: Vec<u8>) -> Vec<u8> {
    let [source, destination, end] = if frame[12..14] == [8, 0] { [26, 30, 34] } else { [22, 38, 54] };
    let (left, right) = frame[source..end].split_at_mut(destination - source);
    left.swap_with_slice(right);
    frame
}

fn ethernet() -> etherparse::PacketBuilderStep<etherparse::Ethernet2Header> {
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1])
}

/// The frame with this label.
pub fn labelled(mut frame: Vec<u8>, kind: LabelKind, value: f64) -> Vec<u8> {
    let parsed = frame::parse(&frame).unwrap();
    assert!(wire_label::write(&mut frame, parsed.ip(), kind, Label::new(value)));
    frame
}

/// The label of a frame.
pub fn label(frame: &[u8]) -> Option<(LabelKind, f64)> {
    let found = wire_label::read(frame, frame::parse(frame).unwrap().ip());
    found.map(|(kind, label)| (kind, label.value()))
}

/// Frames that left a line in the second half of the time.
pub struct Outcome {
    /// Frames at the far host, and the seconds in which they came.
    pub far: Vec<Vec<u8>>,
    pub near: Vec<Vec<u8>>,
    pub seconds: f64,
    /// The metrics of the gateways.
    pub metrics: [String; 2],
}

/// Source and destination port of a frame.
pub fn ports(frame: &[u8]) -> Option<(u16, u16)> {
    frame::parse(frame).unwrap().headers?.ports
}

/// The frames with this source port.
pub fn from_port(frames: &[Vec<u8>], port: u16) -> impl Iterator<Item = &Vec<u8>> {
    frames.iter().filter(move |frame| ports(frame).is_some_and(|(from, _)| from == port))
}

/// Numbers of frames by source port.
pub fn counts<const N: usize>(frames: &[Vec<u8>], ports: [u16; N]) -> [u64; N] {
    ports.map(|port| from_port(frames, port).count() as u64)
}

impl Outcome {
    /// Label values of this kind per second on frames to the far host, by port.
    pub fn labels<const N: usize>(&self, frames: &[Vec<u8>], kind: LabelKind, ports: [u16; N]) -> [f64; N] {
        let of_kind = |frame: &Vec<u8>| label(frame).filter(|(of, _)| *of == kind).map_or(0.0, |it| it.1);
        ports.map(|port| from_port(frames, port).map(of_kind).sum::<f64>() / self.seconds)
    }
}

/// Two hosts with two running gateways between them.
pub struct Line {
    pub near: Host,
    pub far: Host,
    gateways: [Running; 2],
}

impl Line {
    /// A line with these configurations.
    pub fn new(edge: &str, core: &str) -> Self {
        Self::changing(edge, core, |_| ())
    }

    /// A line with these configurations, and `change` called on the core every 20 ms.
    pub fn changing(edge: &str, core: &str, change: impl FnMut(&mut Gateway) + Send + 'static) -> Self {
        enter();
        let (near, far) = (host("near", 11), host("far", 12));
        wire_between();
        Self { near, far, gateways: [start(open(edge), |_| ()), start(open(core), change)] }
    }

    /// The metrics of the gateways at the end.
    pub fn stop(self) -> [String; 2] {
        self.gateways.map(|gateway| metrics(&mut gateway.stop()))
    }
}

/// Runs a line in which both hosts send these frames, each of them every `gap`.
pub fn run(edge: &str, core: &str, [up, down]: [Vec<Vec<u8>>; 2], gap: Span, milliseconds: u64) -> Outcome {
    judge_by_time();
    let line = Line::new(edge, core);
    let hosts =
        [(&line.near, up), (&line.far, down)].map(|(host, frames)| play(host, frames, gap, milliseconds));
    let [near, far] = hosts.map(|thread| thread.join().unwrap());
    Outcome { far, near, seconds: milliseconds as f64 / 2_000.0, metrics: line.stop() }
}

/// Plays a host that sends and receives. Returns the frames that it received in the second half. It sends in
/// a random order; otherwise the same frame would always find the last place of a full queue.
fn play(host: &Host, frames: Vec<Vec<u8>>, gap: Span, milliseconds: u64) -> JoinHandle<Vec<Vec<u8>>> {
    let thread = host.namespace.spawn("host", move || {
        let (mut wire, clock) = (Wire::open(), Clock::start());
        let [half, end] = [milliseconds / 2, milliseconds].map(Time::from_millis);
        let (mut due, mut came, mut random) = (Time::ZERO, Vec::new(), Stream::new(1, "order"));
        while clock.until(end) > Span::ZERO {
            while clock.until(due) == Span::ZERO {
                let (last, first) = frames.split_at(random.below(frames.len().max(1) as u64) as usize);
                first.iter().chain(last).for_each(|frame| wire.send(frame));
                due += gap;
            }
            while let Some(frame) = wire.next(0) {
                if clock.until(half) == Span::ZERO {
                    came.push(frame);
                }
            }
        }
        came
    });
    thread.unwrap()
}
