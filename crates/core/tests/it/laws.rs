//! Laws that hold for any discipline of the catalogue, and the fairness that fair ones promise.

use apportion_core::fairness::{Claim, jain, max_min};
use apportion_core::label::Label;
use apportion_core::system::{Catalog, LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Packets, Rate, Span, Time, Weight};
use apportion_core::{Colour, Ecn, FlowClass, FlowId, FlowSetting, LabelKind, Packet as _, Queue};
use apportion_laws::{Laws, Op};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, Whole, build, combinations, keys, packet, read, serve_backlogged};

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let enqueue = (0u32..5, 40u64..1_500, any::<bool>());
    let op = prop_oneof![
        4 => enqueue.prop_map(|(flow, size, capable)| Op::Enqueue { flow, size, capable }),
        3 => Just(Op::Dequeue),
        2 => (0u64..60_000_000).prop_map(Op::Advance),
    ];
    prop::collection::vec(op, 1..300)
}

/// A packet that may be marked, half of the time is within its profile, and mostly has tickets.
fn arrival(id: u32, flow: u32, size: u64, capable: bool) -> SimplePacket {
    let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
    let colour = if size.is_multiple_of(2) { Colour::Green } else { Colour::Red };
    let mut packet = SimplePacket { ecn, colour, ..packet(id, flow, size) };
    if !size.is_multiple_of(5) {
        packet.set_label(LabelKind::Tickets, Label::new((size / 20) as f64));
    }
    packet
}

#[test]
fn every_discipline_keeps_the_laws_of_all() {
    for (kind, drop) in combinations() {
        for shaper in [None, Some(["shaper=token_bucket", "rate=1Mbit"])] {
            for limit in [6, 20] {
                let keys = keys(kind, drop, limit);
                let pairs: Vec<&str> =
                    keys.iter().map(String::as_str).chain(shaper.into_iter().flatten()).collect();
                let laws = Laws::default().cases(16).limit(Packets::new(limit));
                let laws = if shaper.is_some() { laws.holds_back() } else { laws };
                // Queues in strict priority that sort by rank.
                let laws = if ["packs", "sp_pifo"].contains(&kind) { laws.reorders() } else { laws };
                let tried = laws.verify_changes(|_| Whole(build(kind, &pairs, &[1.0, 2.0])));
                tried.unwrap_or_else(|violation| panic!("{kind} {pairs:?}: {violation}"));
            }
        }
    }
}

#[test]
fn schedulers_that_promise_a_bound_keep_it() {
    for (kind, quantum) in [("drr", 1_500), ("stfq", 0), ("scfq", 0), ("rcs", 0)] {
        let params = read(kind, &["limit=100000p"]).expect("a valid table");
        let tried =
            Laws::default().cases(8).fair(Bytes::new(quantum)).verify(|link| params.build_simple(link));
        tried.unwrap_or_else(|violation| panic!("{kind}: {violation}"));
    }
}

/// The departures, in order. With `spurious` an empty queue is asked once more each time.
fn run(mut queue: LinkQueue<SimplePacket>, ops: &[Op], spurious: bool) -> Vec<u32> {
    let (mut log, mut left, mut now) = (Log::default(), Vec::new(), Time::ZERO);
    for (id, op) in (0..).zip(ops) {
        match *op {
            Op::Advance(ns) => now += Span::from_nanos(ns),
            Op::Enqueue { flow, size, capable } => {
                queue.enqueue(now, arrival(id, flow, size, capable), &mut log);
            }
            Op::Dequeue => left.extend(queue.dequeue(now, &mut log).map(|packet| packet.id)),
            Op::SetLimit(_) | Op::SetWeight { .. } | Op::SetLinkRate(_) => (),
        }
        if spurious && queue.backlog().is_empty() {
            assert_eq!(queue.dequeue(now, &mut log), None, "spurious dequeue");
        }
    }
    left
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn requests_to_an_empty_queue_change_nothing(ops in ops()) {
        // RED and its relatives learn of idle time by these calls, as do schedulers whose debts end with it,
        // and FQ and FQ-CoDel update their rounds. SF-FC contains FQ-CoDel, Confucius start-time FQ. CSFQ measures the last transmission.
        let uses_idle_time = [
            "red", "rio", "tred", "fred", "choke", "fq", "fq_codel", "fq_pie", "cake", "stfq", "confucius", "rcs", "wfq", "wf2q", "wf2q_plus", "sffc", "csfq", "mcsfq", "hcsfq",
        ];
        for (kind, drop) in combinations() {
            if [Some(kind), drop].iter().flatten().any(|part| uses_idle_time.contains(part)) {
                continue;
            }
            for shaper in [None, Some(["shaper=token_bucket", "rate=1Mbit"])] {
                let keys = keys(kind, drop, 20);
                let pairs: Vec<&str> = keys.iter().map(String::as_str).chain(shaper.into_iter().flatten()).collect();
                let [asked, unasked] = [true, false].map(|spurious| run(build(kind, &pairs, &[1.0, 2.0]), &ops, spurious));
                prop_assert_eq!(asked, unasked, "{} {:?}", kind, pairs);
            }
        }
    }

    #[test]
    fn drr_serves_backlogged_flows_within_its_bound(
        sizes in prop::collection::vec(40u64..1_500, 2..8),
        weights in prop::collection::vec(1u8..10, 8),
        services in 1u64..2_000,
    ) {
        let flows = sizes.len() as u32;
        let weights: Vec<f64> = weights[..sizes.len()].iter().map(|&weight| f64::from(weight)).collect();
        let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let mut queue = build("drr", &["limit=100000p", "quantum=1500B"], &weights);
        let served = serve_backlogged(&mut queue, flows, |flow| sizes[flow as usize], services);
        // Theorem 2: |W_i/w_i - W_j/w_j| <= Q + Max/w_i + Max/w_j, with Q the quantum of weight 1; here per
        // smallest.
        for (a, wa) in served.iter().zip(&weights) {
            for (b, wb) in served.iter().zip(&weights) {
                let apart = (a / wa - b / wb).abs() * smallest;
                let bound = 1_500.0 + 1_500.0 * smallest / wa + 1_500.0 * smallest / wb;
                prop_assert!(apart <= bound, "{apart} > {bound}");
            }
        }
    }

    #[test]
    fn fair_queueing_holds_its_bound_over_any_interval(traffic in traffic()) {
        // Start-time FQ theorem 1, SCFQ theorem 1: over any interval in which f and m are backlogged,
        // |W_f/r_f - W_m/r_m| <= l_f/r_f + l_m/r_m.
        let (f, m) = (traffic.weights[0], traffic.weights[1]);
        let bound = traffic.largest / f + traffic.largest / m;
        for kind in ["stfq", "scfq"] {
            let (mut least, mut most) = (0.0_f64, 0.0_f64);
            for w in traffic.serve(kind) {
                least = least.min(w[0] / f - w[1] / m);
                most = most.max(w[0] / f - w[1] / m);
            }
            prop_assert!(most - least <= bound + ROUNDING, "{}: {} > {}", kind, most - least, bound);
        }
    }

    #[test]
    fn wf2q_plus_is_worst_case_fair(traffic in traffic()) {
        // Bennett, Zhang 1997, theorem 4: from any time on at which i is backlogged until one of its packets
        // leaves, W_i >= r_i/r W - L_i - (L - L_i) r_i/r, with r the sum of all rates.
        let sum: f64 = traffic.weights.iter().sum();
        let served = traffic.serve("wf2q_plus");
        for flow in 0..2 {
            let share = traffic.weights[flow] / sum;
            let (mut least, mut before) = (0.0_f64, 0.0);
            for w in &served {
                let behind = share * w.iter().sum::<f64>() - w[flow];
                least = least.min(behind);
                let index = behind - least;
                prop_assert!(w[flow] == before || index <= traffic.largest + ROUNDING, "{index}");
                before = w[flow];
            }
        }
    }

    #[test]
    fn wf2q_plus_stays_within_its_bound_of_the_fluid_that_serves_the_same_backlogs(
        sizes in prop::collection::vec(40u64..1_500, 2..8),
        weights in prop::collection::vec(1u8..10, 8),
        services in 1u64..500,
    ) {
        // WF2Q theorems 1 and 2: a packet leaves at most a largest packet after the fluid would have finished
        // it, W_i >= fluid - L; and no flow is more than L_i (1 - r_i/r) ahead.
        let weights: Vec<f64> = weights[..sizes.len()].iter().map(|&weight| f64::from(weight)).collect();
        let largest = *sizes.iter().max().unwrap() as f64;
        let sum: f64 = weights.iter().sum();
        let mut queue = build("wf2q_plus", &["limit=100000p"], &weights);
        let served = serve_backlogged(&mut queue, sizes.len() as u32, |flow| sizes[flow as usize], services);
        let fluid: f64 = served.iter().sum();
        for ((got, weight), &size) in served.iter().zip(&weights).zip(&sizes) {
            let ahead = got - fluid * weight / sum;
            prop_assert!(ahead >= -largest - ROUNDING, "{ahead} behind");
            prop_assert!(ahead <= size as f64 * (1.0 - weight / sum) + ROUNDING, "{ahead} ahead");
        }
    }
}

/// Weights of 9/2 and 3/2 of the smallest, which make rounded virtual time run ahead by two parts in a
/// million.
#[test]
fn wf2q_plus_serves_no_packet_early_however_long_the_busy_period() {
    let sizes = [1_005, 815, 806, 1_343, 292, 637, 814];
    let weights = [5.0, 5.0, 5.0, 2.0, 3.0, 9.0, 6.0];
    let sum: f64 = weights.iter().sum();
    for services in [492, 100_000, 1_000_000] {
        let mut queue = build("wf2q_plus", &["limit=100000p"], &weights);
        let served = serve_backlogged(&mut queue, 7, |flow| sizes[flow as usize], services);
        let fluid: f64 = served.iter().sum();
        for ((got, weight), &size) in served.iter().zip(&weights).zip(&sizes) {
            let ahead = got - fluid * weight / sum;
            assert!(ahead <= size as f64 * (1.0 - weight / sum) + ROUNDING, "{ahead} after {services}");
            assert!(ahead >= -1_343.0 - ROUNDING, "{ahead} after {services}");
        }
    }
}

/// The tolerance of a bound in bytes for integers of virtual time.
const ROUNDING: f64 = 1e-3;

/// Flows 0 and 1 are always backlogged; others come and go.
#[derive(Clone, Debug)]
struct Traffic {
    weights: Vec<f64>,
    /// The largest packet.
    largest: f64,
    /// Before each service: flows and sizes that arrive.
    arrivals: Vec<Vec<(u32, u64)>>,
    /// Sizes of the packets of flows 0 and 1, in turn.
    sizes: Vec<u64>,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let weights = prop::collection::vec(1u8..20, FLOWS);
    let burst = prop::collection::vec((2..FLOWS as u32, 40u64..=1_500), 0..40);
    let bursts = prop::collection::vec((burst, 0usize..40), 1..20);
    (weights, bursts, prop::collection::vec(40u64..=1_500, 1..30)).prop_map(|(weights, bursts, sizes)| {
        let lull = |(burst, services)| [vec![burst], vec![vec![]; services]].concat();
        Traffic {
            // Flow 0 is heavy: among many light flows it is the one at risk of waiting.
            weights: (0..)
                .zip(weights)
                .map(|(i, w)| f64::from(w) * if i == 0 { 10.0 } else { 1.0 })
                .collect(),
            largest: 1_500.0,
            arrivals: bursts.into_iter().flat_map(lull).collect(),
            sizes,
        }
    })
}

const FLOWS: usize = 12;

impl Traffic {
    /// Bytes served by flow after each service.
    fn serve(&self, kind: &str) -> Vec<[f64; FLOWS]> {
        let mut queue = build(kind, &["limit=100000p"], &self.weights);
        let mut log = Log::default();
        let mut sizes = self.sizes.iter().cycle();
        let mut served = [0.0; FLOWS];
        for flow in [0, 1, 0, 1] {
            queue.enqueue(Time::ZERO, packet(0, flow, *sizes.next().expect("a cycle")), &mut log);
        }
        let mut serve = |arrivals: &Vec<(u32, u64)>| {
            for &(flow, size) in arrivals {
                queue.enqueue(Time::ZERO, packet(0, flow, size), &mut log);
            }
            let sent = queue.dequeue(Time::ZERO, &mut log).expect("work conservation");
            served[sent.flow.index()] += sent.size.get() as f64;
            if sent.flow.0 < 2 {
                queue.enqueue(Time::ZERO, packet(0, sent.flow.0, *sizes.next().expect("a cycle")), &mut log);
            }
            served
        };
        self.arrivals.iter().map(&mut serve).collect()
    }
}

/// The schedulers that divide by weights.
const FAIR: [&str; 7] = ["rr", "drr", "stfq", "scfq", "wfq", "wf2q", "wf2q_plus"];

#[test]
fn backlogged_flows_are_served_evenly_however_many_they_are() {
    for kind in FAIR {
        for flows in [10, 1_000, 10_000] {
            let mut queue = build(kind, &["limit=1000000p"], &[]);
            // Sizes differ by flow: shares of bytes must be equal, not of packets, except with turns of
            // packets.
            let size = |flow| if kind == "rr" { 1_000 } else { 500 + 100 * u64::from(flow % 10) };
            let served = serve_backlogged(&mut queue, flows, size, 150 * u64::from(flows));
            assert!(jain(&served) >= 0.9999, "{kind}, {flows} flows: {}", jain(&served));
        }
    }
}

#[test]
fn fq_codel_is_even_among_a_thousand_backlogged_flows_and_hashing_is_not() {
    let mut exact = build("fq_codel", &["limit=10240p"], &[]);
    let served = serve_backlogged(&mut exact, 1_000, |_| 1_000, 100_000);
    assert!(jain(&served) >= 0.999, "exact: {}", jain(&served));
    // A bucket's share is split among its k flows, k - 1 Poisson with mean 0.976: the mean of 1/k is 0.639
    // and that of 1/k² 0.493, so 0.639²/0.493 = 0.83 is expected.
    let mut hashed = build("fq_codel", &["limit=10240p", "classify=hashed"], &[]);
    let served = serve_backlogged(&mut hashed, 1_000, |_| 1_000, 100_000);
    let index = jain(&served);
    assert!((0.80..0.90).contains(&index), "hashed: {index}");
}

#[test]
fn weights_hold_to_a_packet_saturated_and_after_any_number_of_drains() {
    // In 20 rounds of w + 1 services the heavy flow gets 20 w and the light one 20. DRR and FQ-CoDel, whose
    // turn of flow 0 is a packet, may be within the heavy flow's turn when it ends.
    for kind in FAIR.into_iter().chain(["fq_codel"]) {
        for (weight, drains) in [(10, 200), (1_000, 10)] {
            let turn = if ["drr", "fq_codel"].contains(&kind) { "quantum=1000B" } else { "" };
            let mut queue = build(kind, &["limit=1000p", turn], &[1.0, weight as f64]);
            let mut log = Log::default();
            for drain in 0..drains {
                let served = serve_backlogged(&mut queue, 2, |_| 1_000, 20 * (weight + 1));
                assert!((served[0] - 20_000.0).abs() <= 1_000.0, "{kind}, drain {drain}: {served:?}");
                while queue.dequeue(Time::ZERO, &mut log).is_some() {}
            }
        }
    }
}

#[test]
fn a_flow_that_comes_back_finds_its_weight_while_the_other_stays_backlogged() {
    // Flow 1, weight 10, sends 20 packets, runs empty for five services and comes back. While it is
    // backlogged flow 0 is due 2 services, give or take 1 + 1/10 of its packets with tag-based schedulers and
    // a quantum and two packets, 3, in rounds: a flow has neither debt nor credit for its time alone.
    for kind in FAIR {
        let turn = if kind == "drr" { "quantum=1000B" } else { "" };
        let band = if ["rr", "drr"].contains(&kind) { 3.0 } else { 1.1 };
        let mut queue = build(kind, &["limit=1000p", turn], &[1.0, 10.0]);
        let mut log = Log::default();
        for cycle in 0..200 {
            for (flow, n) in [(0, if cycle == 0 { 50 } else { 7 }), (1, 20)] {
                (0..n).for_each(|_| queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log));
            }
            let mut served = [0.0_f64; 2];
            while served[1] < 20.0 {
                served[queue.dequeue(Time::ZERO, &mut log).unwrap().flow.index()] += 1.0;
            }
            assert!((served[0] - 2.0).abs() <= band, "{kind}, cycle {cycle}: {served:?}");
            (0..5).for_each(|_| assert_eq!(queue.dequeue(Time::ZERO, &mut log).unwrap().flow.0, 0));
        }
        assert!(log.dropped.is_empty());
    }
}

#[test]
fn weights_hold_when_a_greedy_flow_fills_the_shared_buffer() {
    // Flow 0 sends twenty packets for each that flow 1 sends; the buffer holds 40. Flow 1 is due ten
    // elevenths of the link and wants half: it gets all it sends.
    for kind in FAIR {
        let mut queue = build(kind, &["limit=40p"], &[1.0, 10.0]);
        let mut log = Log::default();
        let mut served = [0u32; 2];
        for _ in 0..2_000 {
            for flow in [0; 20] {
                queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log);
            }
            queue.enqueue(Time::ZERO, packet(1, 1, 1_000), &mut log);
            for _ in 0..2 {
                let sent = queue.dequeue(Time::ZERO, &mut log).unwrap();
                served[sent.flow.index()] += 1;
            }
        }
        assert!(
            log.dropped.iter().all(|dropped| dropped.1 == 0),
            "{kind}: only the greedy flow loses packets"
        );
        assert!(served[1] >= 1_995, "{kind}: {served:?}");
    }
}

#[test]
fn push_out_from_a_shared_buffer_leaves_shares_even_under_unequal_load() {
    // Tags given at arrival result in 39.5 : 60.5. Flow 0 offers four packets a service, flow 1 one.
    for kind in FAIR.into_iter().chain(["fq_codel"]) {
        let mut queue = build(kind, &["limit=20p"], &[]);
        let mut log = Log::default();
        let mut served = [0.0; 2];
        for _ in 0..20_000 {
            for flow in [0, 0, 0, 0, 1] {
                queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log);
            }
            let sent = queue.dequeue(Time::ZERO, &mut log).unwrap();
            served[sent.flow.index()] += 1.0;
        }
        let share: f64 = served[0] / 20_000.0;
        assert!((share - 0.5).abs() < 0.005, "{kind}: {share}");
    }
}

#[test]
fn constant_rates_get_what_weighted_max_min_gives_them() {
    // 10 Mb/s, packets of 1000 B: one every 0.8 ms. Flow 0 wants less than its share of 10/21 and flow 1 a
    // little more than its share of the rest; the others overload the link by far.
    let weights = [10.0, 2.0, 1.0, 3.0, 5.0];
    let gaps = [10_000_000_u64, 4_000_000, 400_000, 900_000, 300_000];
    let claim = |(&gap, &weight): (&u64, &f64)| Claim {
        links: vec![0],
        weight,
        guarantee: 0.0,
        demand: Some(800_000.0 / gap as f64),
    };
    let claims: Vec<Claim> = gaps.iter().zip(&weights).map(claim).collect();
    let entitled = max_min(&[1.0], &claims).unwrap();
    for kind in FAIR {
        let mut queue = build(kind, &["limit=200p"], &weights);
        let mut log = Log::default();
        let mut served = [0.0; 5];
        let mut next = [0, 1_000, 2_000, 3_000, 4_000].map(Span::from_nanos);
        let services = 100_000;
        for service in 0..services {
            let now = Span::from_nanos(service * 800_000);
            for flow in 0..5 {
                while next[flow] <= now {
                    queue.enqueue(Time::ZERO + now, packet(0, flow as u32, 1_000), &mut log);
                    next[flow] += Span::from_nanos(gaps[flow]);
                }
            }
            if let Some(sent) = queue.dequeue(Time::ZERO + now, &mut log) {
                served[sent.flow.index()] += 1.0 / services as f64;
            }
        }
        for (got, due) in served.iter().zip(&entitled) {
            assert!((got - due).abs() < 0.002, "{kind}: {served:?} against {entitled:?}");
        }
    }
}

#[test]
fn a_weight_changed_on_a_backlogged_flow_holds_from_the_next_turns() {
    for kind in FAIR.into_iter().chain(["fq_codel"]) {
        let mut queue = build(kind, &["limit=1000p"], &[1.0, 1.0]);
        serve_backlogged(&mut queue, 2, |_| 1_000, 100);
        assert!(queue.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(5.0).unwrap())));
        let served = serve_backlogged(&mut queue, 2, |_| 1_000, 6_000);
        let ratio = served[1] / served[0];
        assert!((ratio - 5.0).abs() < 0.05, "{kind}: {ratio}");
    }
    let mut fifo = build("fifo", &[], &[]);
    assert!(
        !fifo.set_flow(FlowId(1), FlowSetting::Weight(Weight::ONE)),
        "a FIFO says that it has no use for weights"
    );
}

#[test]
fn a_guarantee_changed_on_a_running_flow_holds_from_its_next_packets() {
    for kind in ["csfq", "mcsfq"] {
        let mut queue = build(kind, &[], &[]);
        let mut log = Log::default();
        let mut clock = 0;
        // 10 Mb/s from either flow into a link of the same rate, a packet each every 0.8 ms; in Mb/s over the
        // last of 12 s.
        let mut rates = |queue: &mut LinkQueue<SimplePacket>| {
            let mut served = [0.0; 2];
            for slot in 0..15_000 {
                clock += 800;
                let now = Time::from_nanos(1_000 * clock);
                for flow in [0, 1] {
                    queue.enqueue(now, packet(0, flow, 1_000), &mut log);
                }
                if let Some(sent) = queue.dequeue(now, &mut log).filter(|_| slot >= 2_500) {
                    served[sent.flow.index()] += 8e-3 / 10.0;
                }
            }
            served
        };
        // With 12500 random drops the deviation for a flow is ± sqrt(0.25·12500) = 56, and four times that is
        // 0.18 Mb/s.
        let is = |[a, b]: [f64; 2], to: [f64; 2]| (a - to[0]).abs() < 0.25 && (b - to[1]).abs() < 0.25;
        let before = rates(&mut queue);
        assert!(is(before, [5.0, 5.0]), "{kind}: {before:?}");
        // Flow 1 gets 6 Mb/s, and half of the rest.
        assert!(queue.set_flow(FlowId(1), FlowSetting::Guarantee(Rate::from_mbit(6), Span::from_millis(10))));
        let with = rates(&mut queue);
        assert!(is(with, [2.0, 8.0]), "{kind}: {with:?}");
        assert!(queue.set_flow(FlowId(1), FlowSetting::Guarantee(Rate::ZERO, Span::ZERO)));
        let after = rates(&mut queue);
        assert!(is(after, [5.0, 5.0]), "{kind}: {after:?}");
    }
    for kind in ["fifo", "fq_codel"] {
        let knows =
            build(kind, &[], &[]).set_flow(FlowId(1), FlowSetting::Guarantee(Rate::from_mbit(6), Span::ZERO));
        assert!(!knows, "{kind} has no use for guarantees and says so");
    }
}

#[test]
fn a_second_bottleneck_divides_fairly_only_what_the_first_has_relabelled() {
    // 15 and 7.5 Mb/s over two links of 10, and 10 over the second alone: 3.33 each there. With the labels of
    // their arrival, a share S passes S/15 and S/7.5 of the 5 Mb/s that is left of either flow, and S/10 of
    // 10: the sum is 2 S = 10 Mb/s, or 1.67, 3.33 and 5.
    let second = |forget: bool| {
        let (mut first, mut second) = (build("csfq", &[], &[]), build("csfq", &[], &[]));
        let mut log = Log::default();
        let mut served = [0.0; 3];
        // A packet of 1000 B takes either link 0.8 ms: 1.5 packets of flow 0 arrive in that time, 0.75 of
        // flow 1, 1 of flow 2.
        for slot in 0..60_000_u64 {
            let now = Time::from_nanos(800_000 * (slot + 1));
            let mut enter = |flow: u32, count: u64| {
                for _ in 0..count {
                    first.enqueue(now, packet(flow, flow, 1_000), &mut log);
                }
            };
            enter(0, 1 + slot % 2);
            enter(1, 3 * (slot + 1) / 4 - 3 * slot / 4);
            if let Some(mut passed) = first.dequeue(now, &mut log) {
                if forget {
                    let came_with = [15e6, 7.5e6][passed.flow.index()];
                    passed.set_label(LabelKind::Rate, Label::new(came_with));
                }
                second.enqueue(now, passed, &mut log);
            }
            second.enqueue(now, packet(2, 2, 1_000), &mut log);
            if let Some(sent) = second.dequeue(now, &mut log).filter(|_| slot >= 10_000) {
                served[sent.flow.index()] += 10.0 / 50_000.0;
            }
        }
        served
    };
    // Some 50000 packets a link pass at random, ± sqrt(0.25·50000) = 112: four times that are 0.09 Mb/s.
    let is = |served: [f64; 3], due: [f64; 3]| served.iter().zip(due).all(|(a, b)| (a - b).abs() < 0.25);
    assert!(is(second(false), [10.0 / 3.0; 3]), "{:?}", second(false));
    assert!(is(second(true), [5.0 / 3.0, 10.0 / 3.0, 5.0]), "{:?}", second(true));
}

#[test]
fn a_limit_and_a_shaper_rate_change_while_packets_wait() {
    let mut log = Log::default();
    for (kind, drop) in combinations() {
        let keys = keys(kind, drop, 30);
        let pairs: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut queue = build(kind, &pairs, &[]);
        queue.set_limit("5p".parse().unwrap());
        for id in 0..10 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        assert!(queue.backlog().packets.get() <= 5, "{kind} {pairs:?}");
    }
    let mut shaped = build("fifo", &["shaper=token_bucket", "rate=8kbit", "burst=1000B"], &[]);
    for id in 0..2 {
        shaped.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        shaped.dequeue(Time::ZERO, &mut log);
    }
    assert!(shaped.set_shaper_rate(Time::ZERO, Rate::from_kbit(80)));
    assert_eq!(shaped.next_wakeup(), Some(Time::from_millis(100)));
    assert!(!build("fifo", &[], &[]).set_shaper_rate(Time::ZERO, Rate::ZERO));
}

#[test]
fn behind_a_shaper_a_discipline_computes_with_the_slower_rate() {
    let params = read("ramp", &["shaper=token_bucket", "rate=4Mbit"]).expect("a valid table");
    let classes = [FlowClass::RealRate];
    let link = LinkContext { classes: &classes, ..LinkContext::new(Rate::from_mbit(1_000), 1, "link") };
    let mut queue: LinkQueue<SimplePacket> = params.build_simple(&link);
    // The floor of a new flow: 2 % of the rate.
    let is_for = |queue: &mut LinkQueue<SimplePacket>, mbit: u64| {
        let mut allocation = Rate::ZERO;
        queue.shares(Time::ZERO, &mut Log::default(), &mut |_, share| allocation = share.allocation);
        assert_eq!(allocation, Rate::from_bit(mbit * 20_000));
    };
    is_for(&mut queue, 4);
    queue.set_link_rate(Rate::from_mbit(3));
    is_for(&mut queue, 3);
    assert!(queue.set_shaper_rate(Time::ZERO, Rate::from_mbit(2)));
    is_for(&mut queue, 2);
    queue.set_link_rate(Rate::from_mbit(1_000));
    is_for(&mut queue, 2);
}

#[test]
fn every_entry_of_the_catalogue_is_under_these_laws() {
    let words: Vec<_> = combinations().into_iter().flat_map(|(kind, drop)| [Some(kind), drop]).collect();
    for entry in Catalog::default().disciplines() {
        assert!(words.contains(&Some(entry.name)) || entry.name == "token_bucket", "{}", entry.name);
    }
}
