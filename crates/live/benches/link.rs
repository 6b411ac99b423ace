//! Time that a packet takes on its way through a link, in nanoseconds, as the engine moves it: into the
//! queue, out of it, through the transmitter and off the wire, with its buffer. The queue holds 1,000 flows
//! with two packets each.
//!
//! `cargo bench -p apportion-live --bench link`. The cost of a discipline is the difference from the FIFO in
//! the same table, plus the cost of the FIFO itself, which the benches of the core measure.
#![allow(clippy::unwrap_used, reason = "a bench's panic is its message")]

use apportion_core::packet::{Ecn, FlowClass, FlowId, Protocol};
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Rate, Time};
use apportion_linux::pool::{HEAD, Pool};
use apportion_live::link::{Link, SharedState};
use apportion_live::pace::Pace;
use apportion_live::packet::{Description, Packet};
use apportion_runtime::link::LinkParts;
use criterion::{Criterion, criterion_group, criterion_main};

const FLOWS: u32 = 1_000;
const SIZE: Bytes = Bytes::new(1_500);

/// A kind of queue, its buffer policy, and other keys with values.
type Case = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

/// Kinds of queues and their parameters. Their buffers hold all 2,000 packets, so that no packet is dropped.
const QUEUES: &[Case] = &[
    ("fifo", None, &[("limit", "10000p")]),
    ("red", None, &[("limit", "10000p"), ("min_th", "10p"), ("max_th", "9000p")]),
    ("rio", None, &[("limit", "10000p"), ("out_max_th", "9000p")]),
    ("fred", None, &[("limit", "10000p"), ("min_th", "10p"), ("max_th", "9000p")]),
    ("sred", None, &[("limit", "10000p")]),
    ("bred", None, &[("limit", "10000p"), ("w_m", "10000p")]),
    ("choke", None, &[("limit", "10000p"), ("max_th", "9000p")]),
    ("tred", None, &[("limit", "10000p"), ("min_th", "10p"), ("max_th", "9000p")]),
    ("codel", None, &[("limit", "10000p"), ("target", "1s"), ("interval", "10s")]),
    ("fq_codel", None, &[("limit", "10000p"), ("flows", "2000"), ("target", "1s"), ("interval", "10s")]),
    ("rr", None, &[("limit", "10000p")]),
    ("drr", None, &[("limit", "10000p")]),
    ("scfq", None, &[("limit", "10000p")]),
    ("wf2q_plus", None, &[("limit", "10000p")]),
    ("stfq", Some("tail"), &[("limit", "10000p")]),
    ("stfq", Some("lqd"), &[("limit", "10000p")]),
    ("stfq", Some("random_drop"), &[("limit", "10000p")]),
    ("stfq", Some("pfd"), &[("limit", "10000p")]),
    ("csfq", None, &[("role", "any"), ("limit", "10000p")]),
    ("mcsfq", None, &[("role", "any"), ("limit", "10000p")]),
    ("hcsfq", None, &[("limit", "10000p")]),
    ("sffc", None, &[("limit", "10000p")]),
    ("nbq", None, &[("limit", "10000p")]),
    ("ramp", None, &[]),
];

fn queue(kind: &str, drop: Option<&str>, keys: &[(&str, &str)]) -> LinkQueue<Packet> {
    let mut selection = Selection::new(kind, drop, None).unwrap();
    keys.iter().for_each(|(key, value)| selection.set(key, value).unwrap());
    let classes = vec![FlowClass::RealRate; if kind == "ramp" { FLOWS as usize } else { 0 }];
    let setup = LinkContext { classes: &classes, ..LinkContext::new(Rate::from_mbit(1_000), 1, "bench") };
    DisciplineParams::from_args(&selection).unwrap().build(&setup)
}

/// A link that is never idle, with the packets that keep it busy.
struct Busy {
    link: Link,
    shared: SharedState,
    now: Time,
    count: u32,
}

impl Busy {
    fn new(queue: LinkQueue<Packet>) -> Self {
        let pace = Pace::rate(Rate::from_mbit(1_000));
        let link = Link::new(LinkParts::new(0, queue, pace.mean()), pace, None);
        let shared = SharedState::new(Pool::new(16 * FLOWS, 1_514), FLOWS as usize);
        let mut busy = Self { link, shared, now: Time::ZERO, count: 0 };
        (0..2 * FLOWS).for_each(|_| busy.enter());
        busy
    }

    /// Queues the next packet; the flows take turns in a scattered order.
    fn enter(&mut self) {
        let flow = FlowId((self.count.wrapping_mul(0x9e37_79b1) >> 7) % FLOWS);
        self.count += 1;
        let described = Description {
            flow,
            size: SIZE,
            protocol: Protocol::Udp,
            ecn: Ecn::NotEct,
            label: None,
            account: flow.0,
            counts: true,
            ip: None,
            acknowledgement: 0,
        };
        let buffer = self.shared.pool.take(0).unwrap();
        let packet = Packet::new((buffer, HEAD as u8, 1_514), &described, 0, self.now);
        self.link.enter(self.now, packet, &mut self.shared);
    }

    /// Lets one packet arrive, and queues packets in place of it and of those that were dropped.
    fn step(&mut self) {
        while self.link.state.backlog().packets.get() < u64::from(2 * FLOWS) {
            self.enter();
        }
        loop {
            self.now = self.link.next();
            if let Some(packet) = self.link.on_timer(self.now, &mut self.shared) {
                self.shared.pool.give_back(packet.buffer);
                return;
            }
        }
    }
}

fn link(c: &mut Criterion) {
    let mut group = c.benchmark_group("link");
    for (kind, drop, keys) in QUEUES {
        let name = drop.map_or((*kind).to_owned(), |drop| format!("{kind}+{drop}"));
        let mut busy = Busy::new(queue(kind, *drop, keys));
        group.bench_function(name, |b| b.iter(|| busy.step()));
    }
}

criterion_group!(benches, link);
criterion_main!(benches);
