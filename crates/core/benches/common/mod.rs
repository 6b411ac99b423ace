//! Packets and loads of the benches.

use std::hint::black_box;

use apportion_core::label::Label;
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_core::{DropReason, FlowClass, FlowId, HostPair, LabelKind, Packet, Queue, Sink};

/// A packet of 16 bytes, so that copies do not dominate.
#[derive(Clone, Copy)]
pub struct Small {
    pub flow: FlowId,
    pub size: u32,
    pub label: u32,
    pub id: u32,
}

impl Packet for Small {
    fn flow(&self) -> FlowId {
        self.flow
    }
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn label(&self, _: LabelKind) -> Option<Label> {
        Some(Label::from_code(self.label))
    }
    fn set_label(&mut self, _: LabelKind, label: Label) {
        self.label = label.code();
    }
}

pub struct Discard;
impl Sink<Small> for Discard {
    fn dropped(&mut self, _: Time, packet: Small, _: DropReason) {
        black_box(packet.id);
    }
    fn marked(&mut self, _: Time, _: &Small) {}
}

/// Packets with scattered flow numbers, made before the measurement: a power of two, and at least two for
/// each flow.
pub fn packets(flows: u32) -> Vec<Small> {
    let scattered = |i: u32| (i.wrapping_mul(0x9e37_79b1) >> 7) % flows;
    (0..(2 * flows).next_power_of_two().max(1 << 18))
        .map(|i| Small { flow: FlowId(scattered(i)), size: 1_000, label: 30 + i % 20, id: i })
        .collect()
}

/// Ends of flows: ten sources, each with flows to the same five destinations.
pub fn host(flow: u32) -> HostPair {
    HostPair { source: flow % 10, destination: flow / 10 % 5 }
}

/// A discipline of the catalogue on a link of 1 Gb/s.
pub fn build(kind: &str, drop: Option<&str>, pairs: &[(&str, &str)]) -> LinkQueue<Small> {
    let mut selection = Selection::new(kind, drop, None).expect("known");
    for (key, value) in pairs {
        selection.set(key, value).expect("valid");
    }
    // Hosts are unused without `isolate`.
    let hosts: Vec<HostPair> = (0..1_000).map(host).collect();
    let setup = LinkContext { hosts: &hosts, ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench") };
    DisciplineParams::from_args(&selection).expect("valid").build(&setup)
}

/// A queue with a permanent backlog.
pub struct StandingBacklog {
    queue: LinkQueue<Small>,
    packets: Vec<Small>,
    now: Time,
    i: usize,
}

impl StandingBacklog {
    /// Fills the queue with `waiting` of `packets`. The number of packets must be a power of two; they
    /// repeat.
    pub fn new(queue: LinkQueue<Small>, packets: Vec<Small>, waiting: u32) -> Self {
        let mut load = Self { queue, packets, now: Time::ZERO, i: 0 };
        (0..waiting).for_each(|_| load.arrive());
        load
    }

    /// A packet in and a packet out.
    pub fn pass(&mut self) {
        self.now += Span::from_nanos(10);
        self.arrive();
        black_box(self.queue.dequeue(self.now, &mut Discard));
    }

    fn arrive(&mut self) {
        self.queue.enqueue(self.now, self.packets[self.i & (self.packets.len() - 1)], &mut Discard);
        self.i = self.i.wrapping_add(1);
    }
}

/// A RAMP whose flows are all real-rate, on a link of 1 Gb/s that carries their allocations.
pub struct RealRates {
    queue: LinkQueue<Small>,
    packets: Vec<Small>,
    now: Time,
    i: usize,
}

impl RealRates {
    /// A RAMP with `flows` flows.
    pub fn new(flows: u32) -> Self {
        let classes = vec![FlowClass::RealRate; flows as usize];
        let selection = Selection::new("ramp", None, None).expect("known");
        let setup = LinkContext { classes: &classes, ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench") };
        let queue = DisciplineParams::from_args(&selection).expect("valid").build(&setup);
        Self { queue, packets: packets(flows), now: Time::ZERO, i: 0 }
    }

    /// A packet in and a packet out.
    pub fn pass(&mut self) {
        // 1000 bytes at 0.9 Gb/s: the maximum for real-rate flows, minus capacity to drain queues.
        self.now += Span::from_nanos(8_889);
        self.queue.enqueue(self.now, self.packets[self.i & (self.packets.len() - 1)], &mut Discard);
        self.i = self.i.wrapping_add(1);
        black_box(self.queue.dequeue(self.now, &mut Discard));
    }
}

/// A link of 1 Gb/s with twice its load, in packets of 1000 bytes.
pub struct TwiceTheLoad {
    queue: LinkQueue<Small>,
    packets: Vec<Small>,
    now: Time,
    i: usize,
}

impl TwiceTheLoad {
    /// A load of `packets`, a power of two of them, which repeat.
    pub fn new(queue: LinkQueue<Small>, packets: Vec<Small>) -> Self {
        Self { queue, packets, now: Time::ZERO, i: 0 }
    }

    /// A packet in, and every second time one out. Always inlined, so that the number of callers does not
    /// change the counts.
    #[inline(always)]
    pub fn arrive(&mut self) {
        self.now += Span::from_micros(4);
        self.queue.enqueue(self.now, self.packets[self.i & (self.packets.len() - 1)], &mut Discard);
        self.i = self.i.wrapping_add(1);
        if self.i.is_multiple_of(2) {
            black_box(self.queue.dequeue(self.now, &mut Discard));
        }
    }
}

/// A router of core-stateless fair queueing: in the core, where packets have labels, or at the edge, which estimates
/// the rate of each flow.
pub struct CoreStateless {
    pub name: &'static str,
    kind: &'static str,
    settings: &'static [(&'static str, &'static str)],
    guaranteed: bool,
}

impl CoreStateless {
    /// The router under twice its load. Every second packet is dropped for its label, every other one
    /// relabelled and sent.
    pub fn load(&self, flows: u32) -> TwiceTheLoad {
        let mut selection = Selection::new(self.kind, None, None).expect("known");
        for (key, value) in [("limit", "1000p")].iter().chain(self.settings) {
            selection.set(key, value).expect("valid");
        }
        // Guarantees of half of each flow's rate.
        let guarantees = vec![Rate::from_bit(500_000_000 / u64::from(flows)); flows as usize];
        let setup = LinkContext {
            guarantees: if self.guaranteed { &guarantees } else { &[] },
            ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench")
        };
        let queue = DisciplineParams::from_args(&selection).expect("valid").build(&setup);
        let mut packets = packets(flows);
        let label = Label::new(2e9 / f64::from(flows)).code();
        packets.iter_mut().for_each(|packet| packet.label = label);
        TwiceTheLoad::new(queue, packets)
    }
}

/// The number of packets after which the averages and the share have settled.
pub const SETTLED: u32 = 400_000;

const fn case(
    name: &'static str,
    kind: &'static str,
    settings: &'static [(&'static str, &'static str)],
) -> CoreStateless {
    CoreStateless { name, kind, settings, guaranteed: false }
}

/// Routers whose known share applies from the first packet on.
pub const CORE_STATELESS: [CoreStateless; 6] = [
    case("csfq core", "csfq", &[("role", "core"), ("initial", "1Gbit")]),
    case("mcsfq core", "mcsfq", &[("role", "core"), ("initial", "1Gbit")]),
    case("csfq core, paper", "csfq", &[("preset", "paper"), ("role", "core"), ("initial", "1Gbit")]),
    case("csfq edge", "csfq", &[("role", "edge"), ("initial", "1Gbit")]),
    CoreStateless {
        guaranteed: true,
        ..case("mcsfq edge, guarantees", "mcsfq", &[("role", "edge"), ("initial", "1Gbit")])
    },
    case("hcsfq core", "hcsfq", &[("role", "core")]),
];
