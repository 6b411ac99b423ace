//! The policies that push out of a shared buffer: LQD, RND and PFD, against transcripts and each other.

use apportion_core::aqm::dimensioning::RttOf;
use apportion_core::aqm::occupancy::{Choice, Thresholds};
use apportion_core::aqm::pfd::{End, Pfd, PfdParams};
use apportion_core::buffer::Buffer;
use apportion_core::packet::Customers;
use apportion_core::random::Stream;
use apportion_core::schedule::drr::{Drr, DrrParams};
use apportion_core::schedule::rcs::Rights;
use apportion_core::system::{LinkContext, LinkQueue, SCHEDULERS};
use apportion_core::units::{Bytes, Packets, Rate, Ratio, Span, Time, Weight};
use apportion_core::{DropReason, Queue};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, packet, read};
use crate::reference::pfd::{Params as SlowParams, Pfd as Slow, Victim};

const FLOWS: usize = 5;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue(u32, u64),
    Dequeue,
}

/// Bursts of one flow or of all, and pauses.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let flow = 0..FLOWS as u32;
    let one = prop_oneof![
        6 => (flow.clone(), 40u64..1_500).prop_map(|(flow, size)| vec![Op::Enqueue(flow, size)]),
        3 => Just(vec![Op::Dequeue]),
        1 => (flow, 1usize..30, 100u64..1_500).prop_map(|(flow, n, size)| vec![Op::Enqueue(flow, size); n]),
        1 => (1usize..30).prop_map(|n| vec![Op::Dequeue; n]),
    ];
    prop::collection::vec(one, 1..150).prop_map(|all| all.concat())
}

/// Shares in powers of two, so that flows that hold equally much for their share compare equal after any
/// rounding.
const SHARES: [f64; FLOWS] = [1.0, 4.0, 2.0, 1.0, 0.5];

fn build(keys: &str) -> LinkQueue<SimplePacket> {
    let (kind, keys) = keys.split_once(' ').unwrap_or((keys, ""));
    let pairs: Vec<&str> = keys.split_whitespace().collect();
    let weights = SHARES.map(|share| Weight::new(share).expect("a weight"));
    let rtts = SHARES.map(|share| Span::from_millis((20.0 * share) as u64));
    let setup = LinkContext {
        link_rate: Rate::from_mbit(10),
        weights: &weights,
        smallest_weight: None,
        rtts: &rtts,
        guarantees: &[],
        classes: &[],
        targets: &[],
        customers: Customers::default(),
        rights: Rights::default(),
        hosts: &[],
        seed: 1,
        layer2: Bytes::ZERO,
        name: "link",
    };
    read(kind, &pairs).expect("a valid table").build_simple(&setup)
}

fn shares(thresholds: &str) -> Option<Vec<f64>> {
    (thresholds != "equal").then(|| SHARES.to_vec())
}

/// The departures and the drops.
fn run(keys: &str, ops: &[Op]) -> Vec<(Option<u32>, Vec<u32>)> {
    let (mut queue, mut log) = (build(keys), Log::default());
    let step = |(id, op): (u32, &Op)| {
        let sent = match *op {
            Op::Enqueue(flow, size) => {
                queue.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                None
            }
            Op::Dequeue => queue.dequeue(Time::ZERO, &mut log).map(|packet| packet.id),
        };
        (sent, log.dropped.drain(..).map(|dropped| dropped.1).collect())
    };
    (0..).zip(ops).map(step).collect()
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn pfd_and_lqd_are_the_paper_s(
        ops in ops(),
        scheduler in prop::sample::select(vec!["fifo", "drr", "stfq"]),
        in_bytes in any::<bool>(),
        p in 0u8..=4,
        thresh in 0u8..=4,
        thresholds in prop::sample::select(vec!["equal", "weights", "rtt"]),
        victim in prop::sample::select(vec!["ratio", "difference", "proportional", "lqd"]),
    ) {
        let (p, thresh) = (f64::from(p) / 4.0, f64::from(thresh) / 4.0);
        let limit = if in_bytes { "12kB" } else { "16p" };
        let policy = match victim {
            "lqd" => "lqd victim=difference".to_owned(),
            _ => format!("pfd p={p} thresh={thresh} victim={victim}"),
        };
        let mut ours = build(&format!("{scheduler} limit={limit} thresholds={thresholds} drop={policy}"));
        let mut slow = Slow::new(SlowParams {
            b: if in_bytes { 12_000.0 } else { 16.0 },
            in_bytes,
            p,
            thresh: if victim == "lqd" { 1.0 } else { thresh },
            shares: shares(thresholds),
            victim: match victim {
                "ratio" => Victim::Ratio,
                "proportional" => Victim::Proportional,
                _ => Victim::Difference,
            },
            cell: None,
        }, FLOWS);
        let (mut random, mut log) = (Stream::new(1, "link"), Log::default());
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    // Among equals the victim of the tested policy.
                    let ours: Vec<u32> = log.dropped.iter().map(|dropped| dropped.1).collect();
                    let expected = slow.arrive(id, flow as usize, size, &ours, || random.uniform());
                    let reason = |early| if early { DropReason::Early } else { DropReason::PushOut };
                    let expected: Vec<_> =
                        expected.into_iter().map(|(id, early)| (Time::ZERO, id, reason(early))).collect();
                    prop_assert_eq!(std::mem::take(&mut log.dropped), expected);
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(Time::ZERO, &mut log);
                    let expected = sent.and_then(|packet| slow.take(packet.flow.index()));
                    prop_assert_eq!(sent.map(|packet| packet.id), expected);
                }
            }
            // q_i is the length of queue i, and q_size their sum: in debug builds each policy compares its
            // sum with its scheduler's, and departures come from the same queues on both sides.
            let q_size: usize = slow.queues.iter().map(Vec::len).sum();
            prop_assert_eq!(ours.backlog().packets, Packets::new(q_size as u64));
        }
    }

    #[test]
    fn rnd_drops_the_front_of_a_flow_above_its_threshold(
        ops in ops(),
        in_bytes in any::<bool>(),
        thresholds in prop::sample::select(vec!["equal", "weights", "rtt"]),
        new_limit in 5u64..20,
    ) {
        let limit = if in_bytes { "12kB" } else { "16p" };
        let mut ours = build(&format!("drr limit={limit} thresholds={thresholds} drop=random_drop"));
        let params = |b: u64, in_bytes: bool| SlowParams {
            b: b as f64,
            in_bytes,
            p: 0.0,
            thresh: 1.0,
            shares: shares(thresholds),
            victim: Victim::Ratio,
            cell: (in_bytes && thresholds == "equal").then_some(64.0),
        };
        let mut slow = Slow::new(params(if in_bytes { 12_000 } else { 16 }, in_bytes), FLOWS);
        let (mut log, half) = (Log::default(), ops.len() / 2);
        for (id, op) in (0..).zip(ops) {
            if id as usize == half {
                // The limit changes between packets and bytes, while packets wait.
                let queues = std::mem::take(&mut slow.queues);
                let b = if in_bytes { new_limit } else { new_limit * 1_000 };
                slow = Slow::new(params(b, !in_bytes), FLOWS);
                slow.queues = queues;
                ours.set_limit(if in_bytes { format!("{b}p") } else { format!("{b}B") }.parse().unwrap());
            }
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    slow.join(id, flow as usize, size);
                    for (_, dropped, _) in log.dropped.drain(..) {
                        prop_assert!(slow.is_full());
                        let front = |queue: &Vec<(u32, u64)>| queue.first().map(|packet| packet.0);
                        let victim = slow.queues.iter().position(|queue| front(queue) == Some(dropped));
                        prop_assert!(victim.is_some_and(|i| slow.above().contains(&i)), "{:?}", victim);
                        slow.take(victim.unwrap());
                    }
                    prop_assert!(!slow.is_full());
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(Time::ZERO, &mut log);
                    let expected = sent.and_then(|packet| slow.take(packet.flow.index()));
                    prop_assert_eq!(sent.map(|packet| packet.id), expected);
                }
            }
        }
    }

    #[test]
    fn pfd_that_never_drops_early_is_lqd_and_one_that_always_does_is_a_smaller_lqd(
        ops in ops(),
        scheduler in prop::sample::select(vec!["fifo", "drr", "stfq"]),
        limit in prop::sample::select(vec!["20p", "15kB"]),
        thresholds in prop::sample::select(vec!["equal", "weights", "rtt"]),
        victim in prop::sample::select(vec!["ratio", "difference"]),
    ) {
        let run = |limit, rest: &str| {
            run(&format!("{scheduler} thresholds={thresholds} victim={victim} limit={limit} {rest}"), &ops)
        };
        let lqd = run(limit, "drop=lqd");
        prop_assert_eq!(&run(limit, "drop=pfd p=0 thresh=0.3"), &lqd);
        prop_assert_eq!(&run(limit, "drop=pfd p=1 thresh=1"), &lqd);
        // In packets, and with the rule that does not depend on B: an arrival above 0.65·20 = 13 pushes one
        // packet out.
        if victim == "ratio" {
            prop_assert_eq!(run("20p", "drop=pfd p=1 thresh=0.65"), run("13p", "drop=lqd"));
        }
    }
}

#[test]
fn rnd_draws_each_flow_above_its_threshold_as_often_as_the_others() {
    // Nine flows send at random, three arrivals a service. Whenever exactly k of them are above b_i, each is
    // the victim with probability 1/k: the flow's place among them is counted.
    for limit in ["40p", "40kB"] {
        let mut ours = build(&format!("drr limit={limit} thresholds=equal drop=random_drop"));
        let b = if limit == "40p" { 40.0 } else { 40_000.0 };
        let mut slow = Slow::new(
            SlowParams {
                b,
                in_bytes: limit == "40kB",
                p: 0.0,
                thresh: 1.0,
                shares: None,
                victim: Victim::Ratio,
                cell: (limit == "40kB").then_some(64.0),
            },
            9,
        );
        let (mut random, mut log) = (Stream::new(7, "load"), Log::default());
        let mut counts = [[0.0_f64; 10]; 10];
        for id in 0..60_000 {
            let flow = random.below(9) as usize;
            ours.enqueue(Time::ZERO, packet(id, flow as u32, 1_000), &mut log);
            slow.join(id, flow, 1_000);
            for (_, dropped, _) in log.dropped.drain(..) {
                let above = slow.above();
                let is_victim = |i: &usize| slow.queues[*i][0].0 == dropped;
                let place = above.iter().position(is_victim).expect("a flow above its threshold");
                counts[above.len()][place] += 1.0;
                slow.take(above[place]);
            }
            if id % 3 == 0 {
                let sent = ours.dequeue(Time::ZERO, &mut log).unwrap();
                slow.take(sent.flow.index());
            }
        }
        let mut tried = 0;
        for (k, counts) in counts.iter().enumerate() {
            let trials: f64 = counts.iter().sum();
            if trials < 1_000.0 {
                continue;
            }
            tried += 1;
            let p = 1.0 / k as f64;
            let band = 4.0 * (p * (1.0 - p) / trials).sqrt();
            for (place, count) in counts[..k].iter().enumerate() {
                let share = count / trials;
                assert!((share - p).abs() <= band, "{limit}, {place} of {k}: {share} against {p} ± {band}");
            }
        }
        assert!(tried >= 3, "{counts:?}");
    }
}

/// Services of two flows, of which flow 0 offers four packets a service and flow 1 one.
fn overloaded(keys: &str) -> [f64; 2] {
    let (mut queue, mut log) = (build(keys), Log::default());
    let mut served = [0.0; 2];
    for _ in 0..20_000 {
        for flow in [0, 0, 0, 0, 3] {
            queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log);
        }
        let sent = queue.dequeue(Time::ZERO, &mut log).expect("work conservation");
        served[usize::from(sent.flow.0 != 0)] += 1.0;
    }
    served
}

#[test]
fn push_out_splits_an_overload_evenly_over_any_fair_scheduler_whichever_end_it_drops() {
    // Tags given at arrival result in 39.5 : 60.5. A victim drawn by occupancy sometimes takes the last
    // packet of the flow that sends less than twice its share, which then misses its turn.
    for scheduler in SCHEDULERS.iter().map(|known| known.entry.name).filter(|name| *name != "fifo") {
        for (policy, within) in [
            ("lqd", 0.01),
            ("random_drop", 0.01),
            ("pfd", 0.01),
            ("pfd end=tail", 0.01),
            ("pfd p=0.5", 0.01),
            ("pfd auto=true", 0.01),
            ("pfd victim=proportional", 0.02),
        ] {
            let served = overloaded(&format!("{scheduler} limit=20p thresholds=equal drop={policy}"));
            let share = served[0] / (served[0] + served[1]);
            assert!((share - 0.5).abs() < within, "{scheduler} {policy}: {share}");
        }
    }
}

/// The time after a drop until the receiver can see the gap: the number of services until the next packet of
/// the flow that arrived after the dropped one, averaged over the drops of flow 0.
fn services_until_the_gap_shows(end: End) -> f64 {
    let params = PfdParams {
        limit: Some("40p".parse().expect("a limit")),
        p: Ratio::clamped(0.1),
        thresh: Some(Ratio::clamped(0.5)),
        thresholds: Thresholds::Equal,
        rtt_of: RttOf::All,
        victim: Choice::Ratio,
        end,
        auto: false,
        l4s: false,
    };
    let policy = Pfd::new(&params, Rate::from_mbit(10), &[], Stream::new(1, "pfd"));
    let scheduler = Drr::new(&DrrParams { quantum: Bytes::new(1_500) }, Weight::ONE);
    let mut queue = Buffer::new(scheduler, policy);
    let (mut log, mut random) = (Log::default(), Stream::new(1, "load"));
    let (mut pending, mut waits): (Vec<(u32, u32)>, Vec<f64>) = (Vec::new(), Vec::new());
    for service in 0..20_000u32 {
        for sent in 0..2 {
            let (id, flow) = (2 * service + sent, random.below(2) as u32);
            queue.enqueue(Time::ZERO, packet(id, flow, 1_000), &mut log);
        }
        pending.extend(log.dropped.drain(..).map(|(_, id, _)| (id, service)));
        let left = queue.dequeue(Time::ZERO, &mut log).expect("work conservation");
        if left.flow.0 == 0 {
            pending.retain(|&(dropped, at)| {
                let shows = left.id > dropped;
                waits.extend(shows.then(|| f64::from(service - at)));
                !shows
            });
        }
    }
    assert!(waits.len() > 5_000);
    waits.iter().sum::<f64>() / waits.len() as f64
}

#[test]
fn a_drop_at_the_tail_is_seen_a_queue_later() {
    // Two flows share about 40 packets. With drops from the front, the flow's next packet shows the gap:
    // every second service is the flow's. From the tail, the 20 or so packets before it are served first, in
    // 40 services.
    let (front, tail) = (services_until_the_gap_shows(End::Front), services_until_the_gap_shows(End::Tail));
    assert!(front < 3.0, "{front}");
    assert!((30.0..45.0).contains(&tail), "{tail}");
}
