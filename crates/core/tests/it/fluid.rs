//! Schedulers with virtual time against the fluid that they follow (GPS), packet by packet.

use apportion_core::Queue as _;
use apportion_core::random::Stream;
use apportion_core::units::Time;
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, build, packet};
use crate::reference::gps::Gps;

/// The time of a byte on the link of the tests, 10 Mb/s.
const BYTE: u64 = 800;
/// In bytes, for virtual time in integers.
const ROUNDING: f64 = 0.01;

/// Packets of flows by their time, in nanoseconds.
#[derive(Clone, Debug)]
struct Traffic {
    weights: Vec<f64>,
    arrivals: Vec<(u64, u32, u64)>,
}

/// What happened to a packet, in bytes of the link's time.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: usize,
    begun: f64,
    left: f64,
}

impl Traffic {
    fn fluid(&self) -> Gps {
        let of = |&(at, flow, size): &(u64, u32, u64)| (at as f64 / BYTE as f64, flow as usize, size as f64);
        Gps::new(&self.weights, &self.arrivals.iter().map(of).collect::<Vec<_>>())
    }

    /// Sends all packets behind `kind`.
    fn send(&self, kind: &str) -> Vec<Sent> {
        let mut queue = build(kind, &["limit=100000p"], &self.weights);
        let (mut log, mut sent, mut next, mut now) = (Log::default(), Vec::new(), 0, 0);
        while sent.len() < self.arrivals.len() {
            while let Some(&(at, flow, size)) = self.arrivals.get(next).filter(|arrival| arrival.0 <= now) {
                queue.enqueue(Time::from_nanos(at), packet(next as u32, flow, size), &mut log);
                next += 1;
            }
            let Some(packet) = queue.dequeue(Time::from_nanos(now), &mut log) else {
                now = self.arrivals[next].0;
                continue;
            };
            let begun = now as f64 / BYTE as f64;
            now += packet.size.get() * BYTE;
            sent.push(Sent { id: packet.id as usize, begun, left: now as f64 / BYTE as f64 });
        }
        sent
    }

    fn largest(&self) -> f64 {
        self.arrivals.iter().map(|arrival| arrival.2).max().unwrap_or(0) as f64
    }

    /// The most that a packet leaves after the fluid has served it, in units of the largest packet.
    fn late(&self, sent: &[Sent], fluid: &Gps) -> f64 {
        let late = sent.iter().map(|sent| sent.left - fluid.served[sent.id].finish);
        late.fold(f64::NEG_INFINITY, f64::max) / self.largest()
    }

    /// The most that a flow is ahead of the fluid, in units of (1 - r_i/r) of its largest packet.
    fn ahead(&self, sent: &[Sent], fluid: &Gps) -> f64 {
        let sum: f64 = self.weights.iter().sum();
        let mut got = vec![0.0; self.weights.len()];
        let mut most = 0.0_f64;
        for sent in sent {
            let (_, flow, size) = self.arrivals[sent.id];
            let own = self.arrivals.iter().filter(|arrival| arrival.1 == flow).map(|arrival| arrival.2).max();
            let flow = flow as usize;
            got[flow] += size as f64;
            let ahead = got[flow] - fluid.got(flow, sent.left) - ROUNDING;
            most = most.max(ahead / (own.unwrap_or(0) as f64 * (1.0 - self.weights[flow] / sum)));
        }
        most
    }
}

/// Two to ten flows with bursts and pauses, at about the rate of the link.
fn traffic() -> impl Strategy<Value = Traffic> {
    let burst = (0u64..6_000_000, 0u32..10, 1usize..12, 40u64..=1_500);
    (prop::collection::vec(1u8..20, 2..10), prop::collection::vec(burst, 1..40)).prop_map(
        |(weights, bursts)| {
            let (mut at, mut arrivals) = (0, Vec::new());
            for (gap, flow, n, size) in bursts {
                at += gap;
                let flow = flow % weights.len() as u32;
                arrivals.extend((0..n).map(|i| (at, flow, (size * (1 + i as u64 * 7 % 5) / 3).max(40))));
            }
            Traffic { weights: weights.into_iter().map(f64::from).collect(), arrivals }
        },
    )
}

proptest! {
    #![proptest_config(cases(300))]

    /// The order of finishes in the fluid does not depend on later arrivals (Parekh, Gallager 1993, lemma 1), so
    /// that the fluid of all arrivals gives it.
    #[test]
    fn wfq_and_wf2q_follow_the_fluid_packet_by_packet(traffic in traffic()) {
        let fluid = traffic.fluid();
        for kind in ["wfq", "wf2q"] {
            let sent = traffic.send(kind);
            for (i, now) in sent.iter().enumerate() {
                let begun = |id: usize, slack: f64| kind == "wfq" || fluid.served[id].start <= now.begun + slack;
                prop_assert!(begun(now.id, ROUNDING), "{} serves {} before the fluid", kind, now.id);
                let arrived = |id: usize| traffic.arrivals[id].0 as f64 / BYTE as f64 <= now.begun;
                for later in sent[i..].iter().filter(|later| arrived(later.id) && begun(later.id, -ROUNDING)) {
                    let [first, second] = [now, later].map(|sent| fluid.served[sent.id].finish);
                    prop_assert!(first <= second + ROUNDING, "{}: {} before {}", kind, now.id, later.id);
                }
            }
        }
    }

    /// Parekh, Gallager 1993, theorem 1, and Bennett, Zhang 1996, theorem 1.
    #[test]
    fn wfq_and_wf2q_are_a_packet_late_and_wf2q_one_ahead(traffic in traffic()) {
        let fluid = traffic.fluid();
        for kind in ["wfq", "wf2q"] {
            let sent = traffic.send(kind);
            let late = traffic.late(&sent, &fluid);
            prop_assert!(late <= 1.0 + 1e-4, "{} is {} packets late", kind, late);
            let ahead = traffic.ahead(&sent, &fluid);
            prop_assert!(kind == "wfq" || ahead <= 1.0 + 1e-9, "{} packets ahead", ahead);
        }
    }
}

/// Over random traffic of eleven flows, of which one has half of the weight: WFQ runs ahead of the fluid, WF2Q+
/// is later than a packet because it stamps what arrives during a transmission late, and WF2Q is neither.
#[test]
fn wfq_wf2q_and_wf2q_plus_differ_as_their_papers_say() {
    let mut random = Stream::new(7, "traffic");
    let weights: Vec<f64> = [10.0].into_iter().chain([1.0; 10]).collect();
    let [mut late, mut ahead] = [[0.0_f64; 3]; 2];
    for _ in 0..100 {
        let mut arrivals: Vec<(u64, u32, u64)> = Vec::new();
        for flow in 0..11 {
            let n = if flow == 0 { 12 } else { 1 + random.below(2) };
            let at = random.below(2 * 1_000 * BYTE);
            arrivals.extend((0..n).map(|_| (at, flow, 1_000)));
        }
        arrivals.sort_unstable();
        let traffic = Traffic { weights: weights.clone(), arrivals };
        let fluid = traffic.fluid();
        for (i, kind) in ["wfq", "wf2q", "wf2q_plus"].into_iter().enumerate() {
            let sent = traffic.send(kind);
            late[i] = late[i].max(traffic.late(&sent, &fluid));
            ahead[i] = ahead[i].max(traffic.ahead(&sent, &fluid));
        }
    }
    assert!(late[0] <= 1.0001 && late[1] <= 1.0001 && late[2] > 1.1, "late {late:?}");
    // In units of half a packet: flow 0 has half of the link.
    assert!(ahead[0] > 8.0 && ahead[1] <= 1.0 && ahead[2] < 2.5, "ahead {ahead:?}");
}
