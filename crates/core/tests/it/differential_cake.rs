//! COBALT and CAKE against slow transcripts.

use apportion_core::random::Stream;
use apportion_core::system::LinkContext;
use apportion_core::units::{Packets, Rate};
use apportion_core::units::{Span, Time};
use apportion_core::{FlowId, FlowSetting, HostPair, Queue};
use apportion_laws::Laws;
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, Whole, build, packet, read, setup};
use crate::reference::cake::Cake as SlowCake;
use crate::reference::cobalt::Cobalt as SlowCobalt;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue(u32, u64),
    Dequeue,
    Advance(u64),
}

/// Bursts and pauses, so that queues overflow, stand and run dry.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        4 => (0u32..6, 40u64..1_500).prop_map(|(flow, size)| vec![Op::Enqueue(flow, size)]),
        3 => Just(vec![Op::Dequeue]),
        2 => (0u64..50_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        1 => (1usize..30, 0u32..6, 100u64..1_500).prop_map(|(n, flow, size)| vec![Op::Enqueue(flow, size); n]),
        1 => (1usize..30, 0u64..5_000_000).prop_map(|(n, ns)| [Op::Dequeue, Op::Advance(ns)].repeat(n)),
    ];
    prop::collection::vec(one, 1..150).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn cobalt_is_its_transcript(ops in ops(), slow_link in 1u64..20) {
        let mut ours = build("cobalt", &["limit=40p", "target=5ms", "interval=20ms"], &[]);
        let mut slow = SlowCobalt::new(40, 5_000_000, 20_000_000);
        let mut random = setup(&[]).stream();
        let (mut log, mut now) = (Log::default(), Time::from_secs(1));
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    prop_assert_eq!(log.dropped.drain(..).count(), usize::from(!slow.enqueue(now.as_nanos(), id)));
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(now, &mut log).map(|packet| packet.id);
                    let lost: Vec<u32> = log.dropped.drain(..).map(|dropped| dropped.1).collect();
                    prop_assert_eq!((sent, lost), slow.dequeue(now.as_nanos(), || random.uniform()));
                }
                Op::Advance(ns) => now += Span::from_nanos(ns / slow_link),
            }
        }
    }

    #[test]
    fn cake_s_turns_are_its_transcript_s(
        ops in ops(),
        quantum in 300u64..3_000,
        hosts in prop::collection::vec((0usize..3, 0usize..3), 6),
    ) {
        // Times at which COBALT does nothing, and few enough flows that none collide.
        let quantum_key = format!("quantum={quantum}B");
        let keys = ["limit=100000p", "target=1000s", "interval=1000s", "increment=0", &quantum_key];
        let mut ours = build("cake", &keys, &[]);
        for (flow, &(source, destination)) in (0..).zip(&hosts) {
            ours.set_flow(FlowId(flow), FlowSetting::Hosts(HostPair { source: source as u32, destination: destination as u32 }));
        }
        let mut slow = SlowCake::new(quantum, &hosts);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    slow.enqueue(flow as usize, id, size);
                }
                Op::Dequeue => {
                    prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue());
                }
                Op::Advance(_) => {}
            }
        }
    }
}

#[test]
fn cake_keeps_the_laws_with_a_shaper_hosts_classes_and_collisions() {
    let keys = |more: &'static str| {
        ["limit=20p flows=4 ways=2 target=1us interval=2us increment=0.1 decrement=0.05", more].join(" ")
    };
    let laws = |text: &str, laws: Laws| {
        let pairs: Vec<&str> = text.split_whitespace().collect();
        let params = read("cake", &pairs).unwrap();
        laws.limit(Packets::new(20)).check_changes(|_| {
            let mut queue = params.build_simple(&LinkContext::new(Rate::from_mbit(10), 1, "link"));
            for flow in 0..5 {
                queue.set_flow(
                    FlowId(flow),
                    FlowSetting::Hosts(HostPair { source: flow % 2, destination: flow % 3 }),
                );
                let class = if flow == 3 {
                    apportion_core::FlowClass::RealRate
                } else {
                    apportion_core::FlowClass::Greedy
                };
                assert!(queue.set_flow(FlowId(flow), FlowSetting::Class(class)));
            }
            Whole(queue)
        });
    };
    laws(&keys(""), Laws::default());
    laws(&keys("bandwidth=3Mbit overhead=38B framing=atm"), Laws::default().holds_back());
    laws(&keys("bandwidth=30Mbit"), Laws::default().holds_back());
}

#[test]
fn cobalt_s_transcript_ramps_up_and_down_overflows_and_decays() {
    // Three arrivals each two departures, 1 ms each; a pause; then a repetition.
    let mut slow = SlowCobalt::new(40, 5_000_000, 20_000_000);
    let mut random = Stream::new(1, "branches");
    let (mut overflows, mut early, mut most) = (0, 0, (0, 0));
    for id in 0..6_000 {
        let now = u64::from(id) * 1_000_000 + 600_000_000 * u64::from(id / 3_000);
        overflows += u32::from(!slow.enqueue(now, id));
        if id % 3 > 0 {
            early += slow.dequeue(now, || random.uniform()).1.len();
        }
        most = (most.0.max(slow.count), most.1.max(slow.p));
    }
    assert!(overflows > 0 && early > 100 && most.0 > 10 && most.1 > 100, "{overflows} {early} {most:?}");
    for ms in 0..30_000 {
        slow.enqueue(7_000_000_000 + ms * 1_000_000, 0);
        while slow.dequeue(7_000_000_000 + ms * 1_000_000, || 1.0).0.is_some() {}
    }
    assert_eq!((slow.count, slow.p), (0, 0));
}
