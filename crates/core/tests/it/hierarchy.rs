//! Classful disciplines: shares against the fluid that they approximate, priorities, delays, and the laws of
//! all.

use apportion_core::packet::CustomerId;
use apportion_core::random::Stream;
use apportion_core::system::LinkQueue;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_core::{FlowId, FlowSetting, Queue};
use apportion_laws::Laws;
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, Whole, packet, read, setup};
use crate::reference::hfsc::{Class as SlowClass, Hfsc as SlowHfsc};
use crate::reference::htb::{self, Class};
use crate::reference::prio::Prio as SlowPrio;

/// The discipline with these keys of classes, with flow i in the i-th leaf of the table.
fn of_classes(kind: &str, keys: &[String], leaves: u32) -> LinkQueue<SimplePacket> {
    let keys: Vec<&str> = keys.iter().flat_map(|keys| keys.split_whitespace()).collect();
    let params = read(kind, &keys).expect("valid classes");
    let mut queue = params.build_simple(&setup(&[]));
    (0..leaves)
        .for_each(|leaf| assert!(queue.set_flow(FlowId(leaf), FlowSetting::Customer(CustomerId(leaf + 1)))));
    queue
}

/// The keys of one class.
fn class(name: &str, keys: &str) -> String {
    keys.split_whitespace().map(|key| format!("class.{name}.{key} ")).collect()
}

/// Bytes that leave over a link of `rate` in `time`, by flow, counted from a quarter of the time on. Flows
/// with a size always have two packets of it waiting.
fn shares(queue: &mut LinkQueue<SimplePacket>, rate: Rate, time: Span, sizes: &[Option<u64>]) -> Vec<f64> {
    let (mut now, mut log, mut sent) = (Time::ZERO, Log::default(), vec![0.0; sizes.len()]);
    let (from, end) = (Time::ZERO + time.div(4), Time::ZERO + time);
    let arrive = |queue: &mut LinkQueue<SimplePacket>, now, flow: u32, log: &mut Log| {
        if let Some(size) = sizes[flow as usize] {
            queue.enqueue(now, packet(0, flow, size), log);
        }
    };
    (0..sizes.len() as u32).for_each(|flow| (0..2).for_each(|_| arrive(queue, now, flow, &mut log)));
    while now < end {
        match queue.dequeue(now, &mut log) {
            Some(packet) => {
                if now >= from {
                    sent[packet.flow.index()] += packet.size.get() as f64;
                }
                now += rate.time_for(packet.size);
                arrive(queue, now, packet.flow.0, &mut log);
            }
            None => now = queue.next_wakeup().expect("a time at which a packet leaves"),
        }
    }
    assert!(log.dropped.is_empty());
    sent
}

/// Rates in Mbit/s.
fn rates(sent: &[f64], time: Span) -> Vec<f64> {
    sent.iter().map(|bytes| 8e-6 * bytes / (0.75 * time.as_secs_f64())).collect()
}

fn assert_near(measured: &[f64], expected: &[f64], link: f64) {
    for (leaf, (measured, expected)) in measured.iter().zip(expected).enumerate() {
        let error = (measured - expected).abs();
        assert!(
            error <= 0.02 * expected + 1e-4 * link,
            "leaf {leaf} gets {measured:.4} Mbit/s and not {expected:.4}"
        );
    }
}

/// Three levels: four roots, which share the link of 100 Mbit/s, ten inner classes and 40 leaves, with random
/// rates, ceilings and sizes. With priorities no ceiling binds. Returns the measured rates, and those of the
/// fluid.
fn random_tree(seed: u64, priorities: u64) -> (Vec<f64>, Vec<f64>) {
    let mut random = Stream::new(seed, "tree");
    let mut classes: Vec<Class> = Vec::new();
    let binds = priorities == 1;
    let mut add = |parent: Option<usize>, rate: u64, ceil: u64, prio, demands| {
        let (rate, ceil) = (rate as f64, ceil as f64);
        classes.push(Class { parent, rate, ceil, prio, quantum: rate, demands });
        classes.len() - 1
    };
    let split = |random: &mut Stream, total: u64, n: u64| {
        let parts: Vec<u64> = (0..n).map(|_| 20 + random.below(80)).collect();
        let sum: u64 = parts.iter().sum();
        parts.into_iter().map(|part| total * part / sum).collect::<Vec<_>>()
    };
    let mut sizes = Vec::new();
    let (mut inner, mut leaves) = (Vec::new(), Vec::new());
    for rate in split(&mut random, 100_000, 4) {
        let root = add(None, rate, rate, 0, false);
        let assured = rate * (70 + random.below(30)) / 100;
        for rate in split(&mut random, assured, 2 + u64::from(root % 2 == 0)) {
            inner.push((root, rate));
        }
    }
    for (root, rate) in inner {
        let ceil = if binds { rate * (100 + random.below(150)) / 100 } else { 100_000 };
        let at = add(Some(root), rate, ceil, 0, false);
        leaves.push((at, rate));
    }
    for (at, rate) in leaves {
        let assured = rate * (60 + random.below(40)) / 100;
        for rate in split(&mut random, assured, 4) {
            let demands = random.below(4) > 0;
            let ceil = if binds { rate * (100 + random.below(400)) / 100 } else { 100_000 };
            add(Some(at), rate, ceil, random.below(priorities), demands);
            sizes.push(demands.then(|| 200 + random.below(1_300)));
        }
    }
    let keys: Vec<String> = (classes.iter().enumerate())
        .map(|(at, own)| {
            let parent = own.parent.map(|parent| format!("parent=c{parent}")).unwrap_or_default();
            let Class { rate, ceil, prio, .. } = own;
            class(&format!("c{at}"), &format!("{parent} rate={rate}kbit ceil={ceil}kbit prio={prio}"))
        })
        .collect();
    let mut queue = of_classes("htb", &keys, sizes.len() as u32);
    let time = Span::from_secs(40);
    let measured = rates(&shares(&mut queue, Rate::from_mbit(100), time, &sizes), time);
    let fluid = htb::rates(&classes, 100_000.0);
    let first = classes.len() - sizes.len();
    (measured, fluid[first..].iter().map(|rate| rate / 1e3).collect())
}

#[test]
fn htb_divides_as_the_fluid_does() {
    for seed in 1..=6 {
        for priorities in [1, 3] {
            let (measured, fluid) = random_tree(seed, priorities);
            assert_near(&measured, &fluid, 100.0);
        }
    }
}

/// Two leaves below one parent, over a link of 100 Mbit/s.
fn two(kind: &str, parent: &str, first: &str, second: &str) -> Vec<f64> {
    let leaves = [class("x", &format!("parent=p {first}")), class("y", &format!("parent=p {second}"))];
    let mut queue = of_classes(kind, &[vec![class("p", parent)], leaves.to_vec()].concat(), 2);
    let time = Span::from_secs(20);
    rates(&shares(&mut queue, Rate::from_mbit(100), time, &[Some(1_500), Some(1_000)]), time)
}

#[test]
fn htb_lends_by_rates_1_to_100_by_quantum_and_by_priority() {
    let [small, large] = ["rate=100kbit ceil=90Mbit", "rate=10Mbit ceil=90Mbit"];
    // 80 Mbit/s, 0.1 + 69.9/101 and 10 + 100 × 69.9/101.
    assert_near(&two("htb", "rate=80Mbit", small, large), &[0.792, 79.208], 80.0);
    // By quantum 1 : 3: 0.1 + 69.9/4 and 10 + 3 × 69.9/4.
    let [own, other] = [format!("{small} quantum=1500B"), format!("{large} quantum=4500B")];
    assert_near(&two("htb", "rate=80Mbit", &own, &other), &[17.575, 62.425], 80.0);
    // A higher priority borrows the whole rest, up to its ceiling.
    let [high, low] = ["rate=1Mbit ceil=30Mbit prio=1", "rate=2Mbit ceil=80Mbit prio=2"];
    assert_near(&two("htb", "rate=80Mbit", high, low), &[30.0, 50.0], 80.0);
    assert_near(&two("htb", "rate=20Mbit", high, low), &[18.0, 2.0], 20.0);
}

#[test]
fn htb_divides_a_link_that_is_too_slow_for_its_rates_by_priority_and_quantum() {
    let flat = |keys: [&str; 3]| {
        let keys: Vec<_> = ["x", "y", "z"].iter().zip(keys).map(|(name, keys)| class(name, keys)).collect();
        let time = Span::from_secs(20);
        let mut queue = of_classes("htb", &keys, 3);
        rates(&shares(&mut queue, Rate::from_mbit(100), time, &[Some(1_500), Some(700), Some(300)]), time)
    };
    assert_near(&flat(["rate=100Mbit", "rate=60Mbit", "rate=40Mbit"]), &[50.0, 30.0, 20.0], 100.0);
    assert_near(
        &flat(["rate=90Mbit prio=2", "rate=60Mbit", "rate=20Mbit prio=1"]),
        &[20.0, 60.0, 20.0],
        100.0,
    );
}

#[test]
fn a_leaf_that_wakes_up_is_served_before_the_time_that_was_named() {
    for kind in ["htb", "hfsc"] {
        let keys = match kind {
            "htb" => ["rate=80kbit burst=1000B", "rate=8Mbit burst=1000B"],
            _ => ["ls_m2=80kbit ul_m2=80kbit", "ls_m2=8Mbit ul_m2=8Mbit"],
        };
        let mut queue = of_classes(kind, &[class("x", keys[0]), class("y", keys[1])], 2);
        let mut log = Log::default();
        (0..4).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
        let mut sent = 0;
        while queue.dequeue(Time::ZERO, &mut log).is_some() {
            sent += 1;
        }
        assert!((1..3).contains(&sent), "{kind} {sent}");
        let named = queue.next_wakeup().expect("a time");
        // 100 ms for each packet at 80 kbit/s.
        assert_eq!(named, Time::from_millis(100), "{kind}");
        let now = Time::from_millis(30);
        queue.enqueue(now, packet(9, 1, 1_000), &mut log);
        assert_eq!(queue.dequeue(now, &mut log).map(|packet| packet.id), Some(9), "{kind}");
        assert_eq!(queue.dequeue(now, &mut log), None, "{kind}");
        assert_eq!(queue.next_wakeup(), Some(named), "{kind}");
        assert!(queue.dequeue(named, &mut log).is_some(), "{kind}");
    }
}

#[test]
fn hfsc_shares_by_curves_on_each_level_up_to_limits() {
    let keys = [
        class("a", "ls_m2=30Mbit"),
        class("b", "ls_m2=70Mbit"),
        class("a1", "parent=a ls_m2=100kbit"),
        class("a2", "parent=a ls_m2=10Mbit"),
        class("b1", "parent=b ls_m2=5Mbit ul_m2=7Mbit"),
        class("b2", "parent=b ls_m2=5Mbit"),
        class("b3", "parent=b ls_m2=20Mbit"),
    ];
    let of = |b3: Option<u64>| {
        let time = Span::from_secs(20);
        let mut queue = of_classes("hfsc", &keys, 5);
        let sizes = [Some(1_500), Some(1_000), Some(300), Some(800), b3];
        rates(&shares(&mut queue, Rate::from_mbit(100), time, &sizes), time)
    };
    // a: 30 by 1 : 100. b: 70, of which b1 takes 7, and the rest by 1 : 4.
    assert_near(&of(Some(1_200)), &[0.297, 29.703, 7.0, 12.6, 50.4], 100.0);
    // b3 is idle.
    assert_near(&of(None), &[0.297, 29.703, 7.0, 63.0, 0.0], 100.0);
}

/// The longest time from an arrival to the end of the transmission of a packet of leaf 0, of 160 bytes each
/// 20 ms, while leaf 1 has packets of 1500 bytes waiting, over a link of 10 Mbit/s.
fn audio_delay(audio: &str, flood: &str) -> Span {
    let mut queue = of_classes("hfsc", &[class("audio", audio), class("flood", flood)], 2);
    let (mut now, mut log, rate) = (Time::ZERO, Log::default(), Rate::from_mbit(10));
    let (mut next, mut longest, mut came) = (Time::from_millis(3), Span::ZERO, Time::ZERO);
    (0..3).for_each(|_| queue.enqueue(now, packet(0, 1, 1_500), &mut log));
    while now < Time::from_secs(20) {
        if next <= now {
            queue.enqueue(next, packet(0, 0, 160), &mut log);
            came = next;
            next += Span::from_millis(20);
        }
        let sent = queue.dequeue(now, &mut log).expect("the flood has packets");
        now += rate.time_for(sent.size);
        match sent.flow.0 {
            0 => longest = longest.max(now.since(came)),
            _ => queue.enqueue(now, packet(0, 1, 1_500), &mut log),
        }
    }
    longest
}

/// Section V: a session of packets of u = 160 bytes, a delay of 5 ms and 64 kbit/s has the curve m1 = u/d = 256 kbit/s, d = 5 ms and
/// m2 = 64 kbit/s. A straight curve couples them: 64 kbit/s send 160 bytes in 20 ms.
#[test]
fn hfsc_decouples_delay_and_bandwidth() {
    let within = |delay: u64| Span::from_millis(delay) + Rate::from_mbit(10).time_for(Bytes::new(1_500));
    let concave =
        audio_delay("rt_m1=256kbit rt_d=5ms rt_m2=64kbit", "rt_m1=9744kbit rt_d=5ms rt_m2=9936kbit");
    assert!(concave <= within(5), "{concave:?}");
    let straight = audio_delay("rt_m2=64kbit", "rt_m2=9936kbit");
    assert!((Span::from_millis(15)..=within(20)).contains(&straight), "{straight:?}");
}

/// The bytes of a service curve, with slopes in bits per second, after `t`.
fn served((m1, d, m2): (u64, Span, u64), t: Span) -> u64 {
    let first = if t < d { t } else { d };
    Rate::from_bit(m1).bytes_in(first).get() + Rate::from_bit(m2).bytes_in(t.saturating_sub(d)).get()
}

/// Section II: for each time at which a leaf has packets, there is a time at which it became active since
/// which it got the service of its curve, except the packet in transmission and one of its own that has not
/// left yet.
#[test]
fn hfsc_gives_each_leaf_its_curve_within_a_largest_packet() {
    const LEAVES: usize = 8;
    for seed in 1..=10 {
        let mut random = Stream::new(seed, "curves");
        let mut split = || {
            let parts: Vec<u64> = (0..LEAVES).map(|_| 1 + random.below(40)).collect();
            let sum: u64 = parts.iter().sum();
            parts.into_iter().map(|part| 10_000_000 * part / sum).collect::<Vec<_>>()
        };
        let (first, then) = (split(), split());
        let d = Span::from_millis(20);
        let keys: Vec<String> = (0..LEAVES)
            .map(|i| {
                class(
                    &format!("c{i}"),
                    &format!("rt_m1={}bit rt_d=20ms rt_m2={}bit ls_m2=1Mbit", first[i], then[i]),
                )
            })
            .collect();
        let mut queue = of_classes("hfsc", &keys, LEAVES as u32);
        let (rate, mut log, mut now) = (Rate::from_mbit(10), Log::default(), Time::ZERO);
        let largest = rate.time_for(Bytes::new(1_500));
        // Bursts at random times, three quarters of the link on average.
        let mut next = [Time::ZERO; LEAVES];
        let (mut waits, mut got) = ([0u32; LEAVES], [0u64; LEAVES]);
        let mut starts: [Vec<(Time, u64)>; LEAVES] = Default::default();
        let mut tested = 0;
        while now < Time::from_secs(30) {
            for i in 0..LEAVES {
                while next[i] <= now {
                    if waits[i] == 0 {
                        starts[i].push((now, got[i]));
                    }
                    let burst = 1 + random.below(30) as u32;
                    waits[i] += burst;
                    (0..burst).for_each(|_| {
                        queue.enqueue(now, packet(0, i as u32, 300 + 170 * i as u64), &mut log);
                    });
                    next[i] += Span::from_micros(
                        1 + random.below(2 * 15_500 * (300 + 170 * i as u64) * 8 * 8 / 7_500),
                    );
                }
            }
            let Some(sent) = queue.dequeue(now, &mut log) else {
                now = next.into_iter().min().unwrap_or(now);
                continue;
            };
            now += rate.time_for(sent.size);
            got[sent.flow.index()] += sent.size.get();
            waits[sent.flow.index()] -= 1;
            for i in (0..LEAVES).filter(|&i| waits[i] > 0) {
                let curve = (first[i], d, then[i]);
                let has = |&(from, before): &(Time, u64)| {
                    let due = served(curve, now.since(from).saturating_sub(largest));
                    got[i] - before + 300 + 170 * i as u64 >= due
                };
                tested += 1;
                assert!(starts[i].iter().rev().any(has), "seed {seed}: leaf {i} is late at {now}");
            }
        }
        assert!(tested > 10_000 && log.dropped.is_empty(), "{tested}");
    }
}

/// Section V: a leaf whose curve becomes steeper is served before its deadlines require it, so that a leaf
/// that starts with a steep piece finds the link free. A flood takes the rest by link-sharing.
#[test]
fn hfsc_serves_a_convex_leaf_ahead_of_what_is_to_come() {
    let curves = [(9_500_000, Span::from_millis(10), 4_900_000), (0, Span::from_millis(10), 5_000_000)];
    let keys = [
        class("steep", "rt_m1=9500kbit rt_d=10ms rt_m2=4900kbit ls_m2=1kbit"),
        class("late", "rt_m1=0bit rt_d=10ms rt_m2=5Mbit ls_m2=1kbit"),
        class("flood", "ls_m2=1Gbit"),
    ];
    let mut queue = of_classes("hfsc", &keys, 3);
    let (mut now, mut log, rate) = (Time::ZERO, Log::default(), Rate::from_mbit(10));
    let largest = rate.time_for(Bytes::new(1_500));
    [1, 1, 2, 2].into_iter().for_each(|flow| queue.enqueue(now, packet(0, flow, 1_000), &mut log));
    let (start, mut started, mut got) = (Time::from_millis(100), false, [0; 3]);
    while now < Time::from_millis(130) {
        if now >= start && !started {
            started = true;
            (0..30).for_each(|_| queue.enqueue(start, packet(0, 0, 1_000), &mut log));
        }
        let sent = queue.dequeue(now, &mut log).expect("the flood has packets");
        now += rate.time_for(sent.size);
        got[sent.flow.index()] += sent.size.get();
        if sent.flow.0 > 0 {
            queue.enqueue(now, packet(0, sent.flow.0, 1_000), &mut log);
        }
        for (leaf, from) in [(0, start), (1, Time::ZERO)] {
            let due = served(curves[leaf], now.since(from).saturating_sub(largest));
            assert!(
                got[leaf] >= 30_000 || got[leaf] + 1_000 >= due,
                "leaf {leaf} has {} of {due} at {now}",
                got[leaf]
            );
        }
    }
}

#[test]
fn disciplines_with_classes_keep_the_laws() {
    let trees = [
        ("prio", vec![class("a", "prio=3"), class("b", "prio=1"), class("c", "prio=2 others=true")], false),
        (
            "htb",
            vec![
                class("p", "rate=4Mbit ceil=6Mbit"),
                class("a", "parent=p rate=1Mbit ceil=3Mbit"),
                class("b", "parent=p rate=500kbit ceil=6Mbit prio=1 burst=100B"),
                class("q", "rate=1Mbit"),
                class("c", "parent=q rate=100kbit ceil=900kbit others=true"),
            ],
            true,
        ),
        (
            "hfsc",
            vec![
                class("p", "ls_m2=4Mbit ul_m1=9Mbit ul_d=3ms ul_m2=1Mbit"),
                class("a", "parent=p rt_m1=3Mbit rt_d=2ms rt_m2=100kbit"),
                class("b", "parent=p ls_m2=1Mbit ul_m2=300kbit"),
                class("c", "rt_m1=0bit rt_d=4ms rt_m2=1Mbit ls_m2=2Mbit ul_m2=200kbit others=true"),
            ],
            true,
        ),
    ];
    for (kind, keys, holds_back) in trees {
        let laws = if holds_back { Laws::default().holds_back() } else { Laws::default() };
        laws.check_changes(|_| Whole(of_classes(kind, &keys, 2)));
    }
}

#[test]
fn a_packet_of_no_class_is_dropped_and_each_class_has_its_limit() {
    let mut queue = of_classes("prio", &[class("a", "prio=1 limit=2p"), class("b", "prio=0 limit=3p")], 2);
    let mut log = Log::default();
    for flow in [0, 1, 2] {
        (0..5).for_each(|_| queue.enqueue(Time::ZERO, packet(flow, flow, 100), &mut log));
    }
    let of = |flow| log.dropped.iter().filter(|dropped| dropped.1 == flow).count();
    assert_eq!([0, 1, 2].map(of), [3, 2, 5]);
}

#[test]
fn trees_that_make_no_sense_are_refused() {
    let refused = |kind: &str, keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|keys| format!("class.{keys}")).collect();
        read(kind, &keys.iter().map(String::as_str).collect::<Vec<_>>()).expect_err("no sense")
    };
    let starts = |message: String, start: &str| assert!(message.starts_with(start), "{message}");
    starts(refused("htb", &["a.rate=1Mbit", "a.parent=b"]), "`class.a.parent`: there is no class `b`");
    starts(refused("htb", &["a.rate=2Mbit", "a.ceil=1Mbit"]), "`class.a.ceil`: it is below the rate, 2Mbit");
    starts(refused("htb", &["a.ceil=1Mbit"]), "`class.a.rate`: it must be set");
    starts(refused("htb", &["a.rate=1Mbit", "b.rate=2Mbit", "b.parent=a"]), "`class.a.ceil`: its children");
    starts(
        refused("htb", &["a.rate=1Mbit", "a.others=true", "b.rate=1Mbit", "b.parent=a"]),
        "`class.a.others`",
    );
    starts(refused("prio", &["a.prio=1", "b.prio=1"]), "`class.b.prio`: class `a` has this priority");
    starts(refused("prio", &["a.prio=1", "b.prio=2", "b.parent=a"]), "`class.b.parent`");
    starts(refused("hfsc", &["a.rt_m1=1Mbit", "a.rt_d=1ms"]), "`class.a.rt_m2`: missing");
    starts(refused("hfsc", &["a.ul_m2=1Mbit"]), "`class.a.ls_m2`: a class needs a curve");
    starts(
        refused("hfsc", &["a.rt_m2=1Mbit", "b.parent=a", "b.ls_m2=1Mbit"]),
        "`class.a.rt_m2`: only classes",
    );
    starts(refused("drr", &["a.rate=1Mbit"]), "`class.a.rate`: `drr` has no classes");
}

/// An arrival at a leaf with its size in pairs of bytes, or a departure, and the time to the next in pairs of nanoseconds.
type Op = (Option<(usize, u64)>, u64);

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let arrival = (0usize..4, 20u64..800).prop_map(Some);
    let one = prop_oneof![3 => arrival, 3 => Just(None)];
    let gap = prop_oneof![3 => 0u64..300, 1 => 0u64..4_000];
    prop::collection::vec((one, gap), 1..300)
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn prio_is_its_transcript(ops in ops()) {
        let keys: Vec<_> = (0..4).map(|i| class(&format!("c{i}"), &format!("prio={} limit=9p", [7, 1, 900, 4][i]))).collect();
        let (mut ours, mut slow, mut log) = (of_classes("prio", &keys, 4), SlowPrio::new(4, 9), Log::default());
        for (id, (op, _)) in (0..).zip(ops) {
            match op {
                Some((leaf, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, leaf as u32, size), &mut log);
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue([2, 0, 3, 1][leaf], id));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    // Slopes of 1 and 2 bytes per nanosecond and even sizes and times: no rounding.
    #[test]
    fn hfsc_is_the_paper_s(ops in ops(), shapes in prop::array::uniform4((0usize..3, 0usize..4, 1u64..400))) {
        const CURVES: [(u64, u64); 3] = [(1, 1), (2, 2), (2, 1)];
        let curve = |shape: usize, d: u64| (CURVES[shape].0, if shape == 2 { 2 * d } else { 0 }, CURVES[shape].1);
        let text = |of: &str, (m1, d, m2): (u64, u64, u64)| {
            format!("{of}_m1={}Gbit {of}_d={d}ns {of}_m2={}Gbit ", 8 * m1, 8 * m2)
        };
        let mut slow = vec![SlowClass { parent: None, rt: None, ls: (2, 60, 1) }];
        let mut keys = vec![class("p", &text("ls", (2, 60, 1)))];
        for (i, (ls, rt, d)) in shapes.into_iter().enumerate() {
            let parent = (i >= 2).then_some(0);
            let rt = (rt < 3).then(|| curve(rt, d));
            let ls = curve(ls, d + 7);
            slow.push(SlowClass { parent, rt, ls });
            let mut text = text("ls", ls) + &rt.map(|rt| text("rt", rt)).unwrap_or_default();
            text += if i >= 2 { "parent=p" } else { "" };
            keys.push(class(&format!("c{i}"), &text));
        }
        let (mut ours, mut slow, mut log) = (of_classes("hfsc", &keys, 4), SlowHfsc::new(slow), Log::default());
        let mut now = 0;
        for (id, (op, gap)) in (0..).zip(ops) {
            now += 2 * gap;
            let at = Time::from_nanos(now);
            match op {
                Some((leaf, size)) => {
                    ours.enqueue(at, packet(id, leaf as u32, 2 * size), &mut log);
                    slow.enqueue(now, 1 + leaf, id, 2 * size);
                }
                None => prop_assert_eq!(ours.dequeue(at, &mut log).map(|sent| sent.id), slow.dequeue(now)),
            }
        }
    }
}
