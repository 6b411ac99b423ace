//! Disciplines against slow transcripts of their papers: the same operations, the same fate for every packet.

use apportion_core::aqm::red::{self, RedParams};
use apportion_core::label::Label;
use apportion_core::param::EntryArgs;
use apportion_core::random::Stream;
use apportion_core::schedule::drr::{Drr, DrrParams};
use apportion_core::schedule::round_robin::RoundRobin;
use apportion_core::schedule::scfq::Scfq;
use apportion_core::schedule::start_time_fq::StartTimeFq;
use apportion_core::schedule::wf2q_plus::Wf2qPlus;
use apportion_core::schedule::{End, Scheduler};
use apportion_core::units::{Bytes, Rate, Span, Time, Weight};
use apportion_core::{Colour, DropReason, FlowId, FlowSetting, LabelKind, Packet, Queue};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, SimplePacket, build, packet, read, setup};
use crate::reference::bucket::Bucket;
use crate::reference::codel::Codel;
use crate::reference::csfq::{Arrival, Csfq as SlowCsfq, Outcome as CsfqOutcome, Params as SlowCsfqParams};
use crate::reference::drr::Drr as SlowDrr;
use crate::reference::fred::{Fred as SlowFred, Outcome as Fate, Params as SlowFredParams};
use crate::reference::pie::Pie;
use crate::reference::red::{Outcome, Params as SlowRedParams, Red as SlowRed};
use crate::reference::rio::{Params as SlowRioParams, Ramp, Rio as SlowRio};
use crate::reference::round_robin::RoundRobin as SlowRoundRobin;
use crate::reference::scfq::Scfq as SlowScfq;
use crate::reference::start_time_fq::StartTimeFq as SlowStartTimeFq;
use crate::reference::wf2q_plus::Wf2qPlus as SlowWf2qPlus;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue(u32, u64),
    Dequeue,
    PushOut(u32, bool),
    Advance(u64),
}

/// Bursts and pauses, so that queues both build up and run dry.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        5 => (0u32..4, 40u64..1_500).prop_map(|(flow, size)| vec![Op::Enqueue(flow, size)]),
        3 => Just(vec![Op::Dequeue]),
        1 => (0u32..4, any::<bool>()).prop_map(|(flow, head)| vec![Op::PushOut(flow, head)]),
        2 => (0u64..20_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        1 => (1usize..30, 100u64..1_500).prop_map(|(n, size)| vec![Op::Enqueue(0, size); n]),
        1 => (1usize..30, 0u64..2_000_000).prop_map(|(n, ns)| [Op::Dequeue, Op::Advance(ns)].repeat(n)),
    ];
    prop::collection::vec(one, 1..150).prop_map(|all| all.concat())
}

/// A transcript of a scheduler.
trait Slow {
    fn enqueue(&mut self, flow: usize, id: u32, size: u64);
    fn dequeue(&mut self) -> Option<u32>;
    fn push_out(&mut self, flow: usize, head: bool) -> Option<u32>;
}

macro_rules! slow {
    ($($scheduler:ty: $it:ident, $flow:ident, $id:ident, $size:ident => $enqueue:expr;)*) => { $(
        impl Slow for $scheduler {
            #[allow(unused_variables, reason = "turns by packets have no use for sizes")]
            fn enqueue(&mut self, $flow: usize, $id: u32, $size: u64) {
                let $it = self;
                $enqueue
            }
            fn dequeue(&mut self) -> Option<u32> {
                Self::dequeue(self)
            }
            fn push_out(&mut self, flow: usize, head: bool) -> Option<u32> {
                Self::push_out(self, flow, head)
            }
        }
    )* };
}
slow! {
    SlowDrr: it, flow, id, size => it.enqueue(flow, id, size as f64);
    SlowRoundRobin: it, flow, id, size => it.enqueue(flow, id);
    SlowStartTimeFq: it, flow, id, size => it.enqueue(flow, id, size as f64);
    SlowScfq: it, flow, id, size => it.enqueue(flow, id, size as f64);
    SlowWf2qPlus: it, flow, id, size => it.enqueue(flow, id, size);
}

/// Runs the same operations on both and compares every departing packet.
fn same_fates(
    ours: &mut impl Scheduler<SimplePacket>,
    slow: &mut impl Slow,
    ops: &[Op],
) -> Result<(), TestCaseError> {
    for (id, op) in (0..).zip(ops) {
        match *op {
            Op::Enqueue(flow, size) => {
                ours.push(Time::ZERO, packet(id, flow, size));
                slow.enqueue(flow as usize, id, size);
            }
            Op::Dequeue => {
                let next = ours.next_flow();
                let sent = ours.pop(Time::ZERO).map(|queued| queued.packet);
                prop_assert_eq!(sent.map(|packet| packet.id), slow.dequeue());
                prop_assert_eq!(sent.map(|packet| packet.flow), next);
            }
            Op::PushOut(flow, head) => {
                let end = if head { End::Head } else { End::Tail };
                let lost = ours.push_out(Time::ZERO, FlowId(flow), end).map(|queued| queued.packet.id);
                prop_assert_eq!(lost, slow.push_out(flow as usize, head));
            }
            Op::Advance(_) => {}
        }
    }
    Ok(())
}

fn smallest(weights: &[f64]) -> Weight {
    Weight::new(weights.iter().copied().fold(f64::INFINITY, f64::min)).expect("a weight")
}

fn weigh(ours: &mut impl Scheduler<SimplePacket>, weights: &[f64]) {
    for (flow, &weight) in (0..).zip(weights) {
        ours.set_flow(FlowId(flow), FlowSetting::Weight(Weight::new(weight).expect("a weight")));
    }
}

fn reason(outcome: Outcome) -> Option<DropReason> {
    match outcome {
        Outcome::Enqueue => None,
        Outcome::Early => Some(DropReason::Early),
        Outcome::Forced => Some(DropReason::Forced),
        Outcome::Overflow => Some(DropReason::Overflow),
    }
}

fn fred_params(w_q: f64, min_q: f64, many_flows: bool) -> SlowFredParams {
    SlowFredParams {
        limit: 25,
        min_th: 5.0,
        max_th: 14.0,
        max_p: 0.2,
        w_q,
        min_q,
        many_flows,
        packets_per_second: 10e6 / 8.0 / 500.0,
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn drr_is_the_paper_s(
        ops in ops(),
        quantum in prop_oneof![1u64..50, 50u64..3_000],
        weights in prop::array::uniform4(1u8..6),
    ) {
        let weights = weights.map(f64::from);
        let least = smallest(&weights).get();
        let params = DrrParams { quantum: Bytes::new(quantum) };
        let mut ours = Drr::<SimplePacket>::new(&params, smallest(&weights));
        weigh(&mut ours, &weights);
        // Rounded to the fixed point of the counters, so that a third of a quantum is the same on both sides.
        let quanta = weights.map(|w| (quantum as f64 * 65_536.0 / least * w).round() / 65_536.0);
        same_fates(&mut ours, &mut SlowDrr::new(quanta.to_vec()), &ops)?;
    }

    #[test]
    fn round_robin_is_its_transcript_s(ops in ops(), weights in prop::array::uniform4(1u8..6)) {
        let weights = weights.map(f64::from);
        let mut ours = RoundRobin::<SimplePacket>::new(smallest(&weights));
        weigh(&mut ours, &weights);
        let least = smallest(&weights).get();
        // Rounded to the fixed point of the counters, 2^-26 packets.
        let turn = |w: &f64| (w / least * 67_108_864.0).round() / 67_108_864.0;
        same_fates(&mut ours, &mut SlowRoundRobin::new(weights.iter().map(turn).collect()), &ops)?;
    }

    // Weights that are powers of two, so that every tag is exact on both sides.

    #[test]
    fn start_time_fair_queueing_is_the_paper_s(ops in ops(), weights in prop::array::uniform4(0u32..5)) {
        let weights = weights.map(|exponent| f64::from(1_u32 << exponent));
        let mut ours = StartTimeFq::<SimplePacket>::new(smallest(&weights));
        weigh(&mut ours, &weights);
        same_fates(&mut ours, &mut SlowStartTimeFq::new(weights.to_vec()), &ops)?;
    }

    #[test]
    fn self_clocked_fair_queueing_is_the_paper_s(ops in ops(), weights in prop::array::uniform4(0u32..5)) {
        let weights = weights.map(|exponent| f64::from(1_u32 << exponent));
        let mut ours = Scfq::<SimplePacket>::new(smallest(&weights));
        weigh(&mut ours, &weights);
        same_fates(&mut ours, &mut SlowScfq::new(weights.to_vec()), &ops)?;
    }

    #[test]
    fn wf2q_plus_is_the_paper_s(ops in ops(), weights in prop::array::uniform4(0u32..5)) {
        let weights = weights.map(|exponent| f64::from(1_u32 << exponent));
        let mut ours = Wf2qPlus::<SimplePacket>::new(Weight::ONE);
        weigh(&mut ours, &weights);
        // The unit of virtual time, so that V is rounded alike.
        let mut slow = SlowWf2qPlus::new(weights.map(|weight| weight as u64).to_vec(), 1 << 24);
        same_fates(&mut ours, &mut slow, &ops)?;
    }

    #[test]
    fn red_is_the_paper_s(ops in ops(), switches in prop::array::uniform4(any::<bool>()), w_q in 1u8..100) {
        let [gentle, wait, bytes, queue_in_bytes] = switches;
        let w_q = format!("w_q={}", f64::from(w_q) / 100.0);
        let switch = |name: &str, on: bool| format!("{name}={on}");
        let switches = [switch("gentle", gentle), switch("wait", wait), switch("bytes", bytes)];
        let (min_th, max_th) = if queue_in_bytes { ("4kB", "12kB") } else { ("5p", "15p") };
        let levels = [format!("min_th={min_th}"), format!("max_th={max_th}"), "limit=25p".to_owned(), w_q];
        let pairs: Vec<&str> = switches.iter().chain(&levels).map(String::as_str).collect();

        let mut ours = read("red", &pairs).unwrap().build::<SimplePacket>(&setup(&[]));
        let mut slow = SlowRed::new(SlowRedParams {
            limit: 25.0,
            min_th: if queue_in_bytes { 4_000.0 } else { 5.0 },
            max_th: if queue_in_bytes { 12_000.0 } else { 15.0 },
            w_q: levels[3]["w_q=".len()..].parse().unwrap(),
            max_p: 0.1,
            gentle,
            wait,
            bytes,
            queue_in_bytes,
            mean_pktsize: 500.0,
            bandwidth: 10e6 / 8.0,
        });
        let mut random = Stream::new(1, "link");
        let (mut now, mut log) = (Time::ZERO, Log::default());
        let mut queue: Vec<(u32, u64)> = Vec::new();
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    let waiting = queue.iter().map(|packet| packet.1 as f64).sum();
                    let (at, q) = (now.as_nanos(), queue.len() as f64);
                    let outcome = slow.arrive(at, size as f64, q, waiting, || random.uniform());
                    let expected = reason(outcome).map(|reason| (now, id, reason));
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    prop_assert_eq!(log.dropped.pop(), expected);
                    if expected.is_none() {
                        queue.push((id, size));
                    }
                }
                Op::Dequeue => {
                    let expected = (!queue.is_empty()).then(|| queue.remove(0).0);
                    if expected.is_none() {
                        slow.empty(now.as_nanos());
                    }
                    prop_assert_eq!(ours.dequeue(now, &mut log).map(|packet| packet.id), expected);
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
                Op::PushOut(..) => {}
            }
        }
    }

    #[test]
    fn rio_is_the_paper_s(ops in ops(), switches in prop::array::uniform3(any::<bool>()), w_q in 1u8..100) {
        let [gentle, wait, stale_out] = switches;
        let w_q = f64::from(w_q) / 100.0;
        let keys = format!(
            "limit=25p in_min_th=4p in_max_th=10p in_max_p=0.1 out_min_th=3p out_max_th=12p out_max_p=0.3 \
             w_q={w_q} gentle={gentle} wait={wait} stale_out={stale_out}"
        );
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let mut ours = read("rio", &keys).unwrap().build::<SimplePacket>(&setup(&[]));
        let mut slow = SlowRio::new(SlowRioParams {
            limit: 25,
            input: Ramp { min_th: 4.0, max_th: 10.0, max_p: 0.1 },
            output: Ramp { min_th: 3.0, max_th: 12.0, max_p: 0.3 },
            w_q,
            gentle,
            wait,
            packets_per_second: 10e6 / 8.0 / 500.0,
            stale_out,
        });
        let mut random = Stream::new(1, "link");
        let (mut now, mut log) = (Time::ZERO, Log::default());
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    let is_in = (u64::from(flow) + size) % 2 == 0;
                    let colour = if is_in { Colour::Green } else { Colour::Yellow };
                    let outcome = slow.arrive(now.as_nanos(), id, is_in, || random.uniform());
                    ours.enqueue(now, SimplePacket { colour, ..packet(id, flow, size) }, &mut log);
                    prop_assert_eq!(log.dropped.pop(), reason(outcome).map(|reason| (now, id, reason)));
                }
                Op::Dequeue => {
                    let expected = slow.leave(now.as_nanos());
                    prop_assert_eq!(ours.dequeue(now, &mut log).map(|packet| packet.id), expected);
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
                Op::PushOut(..) => {}
            }
        }
    }

    #[test]
    fn csfq_is_the_paper_s(
        ops in ops(),
        weights in prop::array::uniform4(1u8..20),
        core in 0u32..3,
        k_c in 1u64..80,
    ) {
        // Flows below `core` come labelled with a rate that follows from their size.
        let weights = weights.map(|weight| f64::from(weight) / 4.0);
        let k_c = format!("k_c={k_c}ms");
        // The paper of 1998 has no guarantees: a label of 0 counts like any other.
        let plain = ["aggregate_guarantee=false", "reserve=0"];
        let pairs = ["preset=paper", "limit=20p", "threshold=0.2", "k=20ms", "k_alpha=30ms", &k_c, plain[0], plain[1]];
        let mut ours = build("csfq", &pairs, &weights);
        let mut slow = SlowCsfq::new(SlowCsfqParams {
            limit: 20,
            threshold: 4,
            k: 0.02,
            k_alpha: 0.03,
            k_c: k_c["k_c=".len()..k_c.len() - 2].parse::<u64>().unwrap() * 1_000_000,
            c: 10e6,
            weights: weights.to_vec(),
        });
        let (mut random, mut now, mut log) = (Stream::new(1, "link"), Time::ZERO, Log::default());
        let mut queue: Vec<(u32, f64)> = Vec::new();
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    let mut packet = packet(id, flow, size);
                    if flow < core {
                        packet.set_label(LabelKind::Rate, Label::new((size % 7) as f64 * 1e6));
                    }
                    let label = packet.label(LabelKind::Rate).map(Label::value);
                    let write = |value| Label::new(value).value();
                    let arrival = Arrival {
                        now: now.as_nanos(),
                        flow: flow as usize,
                        bits: 8.0 * size as f64,
                        label,
                        q: queue.len() as u64,
                    };
                    let (outcome, label) = slow.arrive(arrival, write, random.uniform());
                    ours.enqueue(now, packet, &mut log);
                    let expected = match outcome {
                        CsfqOutcome::Enqueue => None,
                        CsfqOutcome::Early => Some((now, id, DropReason::Early)),
                        CsfqOutcome::Overflow => Some((now, id, DropReason::Overflow)),
                    };
                    prop_assert_eq!(log.dropped.pop(), expected);
                    if expected.is_none() {
                        queue.push((id, label));
                    }
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(now, &mut log);
                    let expected = (!queue.is_empty()).then(|| queue.remove(0));
                    prop_assert_eq!(sent.map(|packet| packet.id), expected.map(|expected| expected.0));
                    if let (Some(sent), Some((_, label))) = (sent, expected) {
                        let written = sent.label(LabelKind::Rate).unwrap().value();
                        // Averages of the same arrivals differ by rounding, which may pass a step of a label.
                        let apart = (written - label).abs();
                        prop_assert!(apart <= label / 4_096.0, "{} against {}", written, label);
                    }
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
                Op::PushOut(..) => {}
            }
        }
    }

    #[test]
    fn fred_is_the_paper_s(ops in ops(), many_flows in any::<bool>(), w_q in 1u8..100, min_q in 1u8..6) {
        let w_q = f64::from(w_q) / 100.0;
        let keys = format!(
            "limit=25p min_th=5p max_th=14p max_p=0.2 w_q={w_q} min_q={min_q}p many_flows={many_flows}"
        );
        let keys: Vec<&str> = keys.split_whitespace().collect();
        let mut ours = read("fred", &keys).unwrap().build::<SimplePacket>(&setup(&[]));
        let mut slow = SlowFred::new(fred_params(w_q, f64::from(min_q), many_flows));
        let mut random = Stream::new(1, "link");
        let (mut now, mut log) = (Time::ZERO, Log::default());
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    let fate = slow.arrive(now.as_nanos(), id, flow, || random.uniform());
                    let expected = match fate {
                        Fate::Enqueue => None,
                        Fate::NonAdaptive => Some((now, id, DropReason::Policy)),
                        Fate::Random => Some((now, id, DropReason::Early)),
                        Fate::DropTail => Some((now, id, DropReason::Forced)),
                        Fate::Full => Some((now, id, DropReason::Overflow)),
                    };
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    prop_assert_eq!(log.dropped.pop(), expected);
                }
                Op::Dequeue => {
                    let expected = slow.leave(now.as_nanos());
                    prop_assert_eq!(ours.dequeue(now, &mut log).map(|packet| packet.id), expected);
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
                Op::PushOut(..) => {}
            }
        }
    }

    #[test]
    fn codel_is_the_rfc_s(ops in ops(), slow_link in 1u64..20) {
        let mut ours = build("codel", &["limit=100000p", "target=5ms", "interval=20ms"], &[]);
        let mut slow = Codel::new(5_000_000, 20_000_000, 1_514);
        let mut log = Log::default();
        let mut now = Time::from_secs(1);
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    slow.queue.push((id, size, now.as_nanos()));
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(now, &mut log).map(|packet| packet.id);
                    prop_assert_eq!(sent, slow.dequeue(now.as_nanos()));
                    let dropped: Vec<u32> = log.dropped.drain(..).map(|dropped| dropped.1).collect();
                    prop_assert_eq!(&dropped, &slow.dropped);
                    slow.dropped.clear();
                }
                Op::Advance(ns) => now += Span::from_nanos(ns / slow_link),
                Op::PushOut(..) => {}
            }
        }
    }

    #[test]
    fn pie_is_the_rfc_s(ops in ops(), slow_link in 1u64..20) {
        // Short times and small packets, so that a sequence reaches high probabilities.
        let pairs = ["limit=100000p", "target=1ms", "tupdate=100us", "max_burst=1ms", "mean_pktsize=50B"];
        let params = read("pie", &pairs).unwrap();
        let mut ours = params.build_simple(&setup(&[]));
        let mut slow = Pie::new(1_000_000, 100_000, 1_000_000, 50);
        let mut random = setup(&[]).stream();
        let mut log = Log::default();
        let mut now = Time::from_secs(1);
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    let joins = slow.enque(now.as_nanos(), id, size, || random.uniform());
                    prop_assert_eq!(log.dropped.drain(..).count(), usize::from(!joins));
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(now, &mut log).map(|packet| packet.id);
                    prop_assert_eq!(sent, slow.deque(now.as_nanos()));
                }
                Op::Advance(ns) => now += Span::from_nanos(ns / slow_link),
                Op::PushOut(..) => {}
            }
        }
    }

    #[test]
    fn a_token_bucket_lets_packets_out_when_a_real_valued_one_does(
        arrivals in prop::collection::vec((0u64..3_000_000, 40u64..1_500), 1..200),
        kbit in 100u64..20_000,
        burst in 200u64..6_000,
    ) {
        let pairs = [format!("rate={kbit}kbit"), format!("burst={burst}B")];
        let mut ours = build("fifo", &["shaper=token_bucket", "limit=100000p", &pairs[0], &pairs[1]], &[]);
        let mut slow = Bucket::new(Rate::from_kbit(kbit).as_bit() as f64 / 8.0, burst as f64);
        let mut log = Log::default();
        let (mut now, mut arrives) = (Time::ZERO, Time::ZERO);
        for (id, (gap, size)) in (0..).zip(arrivals) {
            arrives += Span::from_nanos(gap);
            now = now.max(arrives);
            ours.enqueue(now, packet(id, 0, size), &mut log);
            while ours.dequeue(now, &mut log).is_none() {
                now = ours.next_wakeup().unwrap();
            }
            let expected = slow.leave(arrives.as_secs_f64(), size as f64);
            // Ours is rounded up to a nanosecond; the rest is the rounding of seconds as f64.
            let late = now.as_secs_f64() - expected;
            prop_assert!((-1e-8..2e-8).contains(&late), "{late} s late");
        }
    }
}

#[test]
fn codel_is_the_rfc_s_through_many_relapses() {
    // A packet leaves each millisecond. Load comes and goes in spells of about 200 ms, so that the dropping
    // state is left and entered again well within 16 intervals of 20 ms, with counts above 1.
    let mut ours = build("codel", &["limit=100000p", "target=5ms", "interval=20ms"], &[]);
    let mut slow = Codel::new(5_000_000, 20_000_000, 1_514);
    let (mut log, mut random) = (Log::default(), Stream::new(1, "load"));
    let (mut id, mut load, mut drops) = (0, 0.0, 0);
    for ms in 1_000..31_000 {
        let now = Time::from_millis(ms);
        if random.chance(0.005) {
            load = 0.5 + 1.5 * random.uniform();
        }
        for _ in 0..4 {
            if random.chance(load / 4.0) {
                ours.enqueue(now, packet(id, 0, 1_000), &mut log);
                slow.queue.push((id, 1_000, now.as_nanos()));
                id += 1;
            }
        }
        let sent = ours.dequeue(now, &mut log).map(|packet| packet.id);
        assert_eq!(sent, slow.dequeue(now.as_nanos()), "at {now}");
        let dropped: Vec<u32> = log.dropped.drain(..).map(|dropped| dropped.1).collect();
        assert_eq!(dropped, slow.dropped, "at {now}");
        drops += dropped.len();
        slow.dropped.clear();
    }
    assert!(drops > 500, "{drops}");
}

#[test]
fn the_transcripts_are_put_through_every_branch() {
    // The differential test of RED requires that ramp, force and overflow all occur at its settings.
    let params = RedParams::from_args(&EntryArgs::defaults(&red::ENTRY)).unwrap();
    let mut slow = SlowRed::new(SlowRedParams {
        limit: 25.0,
        min_th: 5.0,
        max_th: 15.0,
        w_q: 0.1,
        max_p: params.detection.max_p.get(),
        gentle: false,
        wait: true,
        bytes: false,
        queue_in_bytes: false,
        mean_pktsize: 500.0,
        bandwidth: 1.25e6,
    });
    let mut random = Stream::new(1, "branches");
    let mut seen = Vec::new();
    for (q, arrivals) in [(3, 50), (10, 200), (24, 30), (25, 1)] {
        for _ in 0..arrivals {
            let outcome = slow.arrive(0, 500.0, f64::from(q), 500.0 * f64::from(q), || random.uniform());
            if !seen.contains(&outcome) {
                seen.push(outcome);
            }
        }
    }
    assert_eq!(seen, [Outcome::Enqueue, Outcome::Early, Outcome::Forced, Outcome::Overflow]);

    // So does the test of FRED: nine flows, of which flow 0 sends a third of all packets, three arrivals a
    // departure, and occasionally more room than arrivals.
    let mut fates = Vec::new();
    for many_flows in [false, true] {
        let mut slow = SlowFred::new(fred_params(0.05, 2.0, many_flows));
        for id in 0..20_000 {
            let flow = if random.chance(0.3) { 0 } else { random.below(9) as u32 };
            let fate = slow.arrive(0, id, flow, || random.uniform());
            if !fates.contains(&fate) {
                fates.push(fate);
            }
            if random.chance(0.5) {
                slow.leave(0);
            }
        }
    }
    for fate in [Fate::Enqueue, Fate::NonAdaptive, Fate::Random, Fate::DropTail] {
        assert!(fates.contains(&fate), "{fate:?} never happened");
    }
}

#[test]
fn csfq_s_transcript_drops_early_and_late_and_changes_its_mind() {
    // The settings of the differential test, with three times the load of the link, then a third of it.
    let mut slow = SlowCsfq::new(SlowCsfqParams {
        limit: 20,
        threshold: 4,
        k: 0.02,
        k_alpha: 0.03,
        k_c: 20_000_000,
        c: 10e6,
        weights: vec![1.0; 3],
    });
    let (mut random, mut q, mut now) = (Stream::new(1, "branches"), 0.0_f64, 0);
    let mut counts = [0; 3];
    let mut states = Vec::new();
    for i in 0..3_000 {
        let gap = if i < 1_500 { 266_667 } else { 2_400_000 };
        now += gap;
        q = (q - gap as f64 / 800_000.0).max(0.0);
        let (outcome, _) = slow.arrive(
            Arrival { now, flow: i % 3, bits: 8_000.0, label: None, q: q as u64 },
            |x| x,
            random.uniform(),
        );
        counts[outcome as usize] += 1;
        q += f64::from(u8::from(outcome == CsfqOutcome::Enqueue));
        let state = (slow.congested, slow.alpha > 0.0);
        if !states.contains(&state) {
            states.push(state);
        }
    }
    assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    assert!(states.contains(&(true, true)) && states.contains(&(false, false)), "{states:?}");
}

#[test]
fn pie_s_transcript_climbs_drops_and_decays() {
    // Two arrivals a departure, then none: the probability passes each step of the table and returns to 0.
    let mut slow = Pie::new(1_000_000, 100_000, 1_000_000, 50);
    let mut random = Stream::new(1, "branches");
    let (mut dropped, mut highest) = (0, 0.0_f64);
    for id in 0..20_000 {
        let now = u64::from(id) * 10_000;
        dropped += u32::from(!slow.enque(now, id, 100, || random.uniform()));
        if id % 2 == 0 {
            slow.deque(now);
        }
        highest = highest.max(slow.drop_prob);
    }
    assert!(dropped > 1_000 && highest > 0.1, "{dropped} {highest}");
    while slow.deque(200_000_000).is_some() {}
    slow.advance(60_000_000_000);
    assert_eq!(slow.drop_prob, 0.0);
}
