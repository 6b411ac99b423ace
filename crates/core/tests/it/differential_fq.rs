//! FQ against a slow transcript of its description, and the laws of all disciplines while it holds flows back.

use apportion_core::Queue;
use apportion_core::units::{Packets, Span, Time};
use apportion_laws::Laws;
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, Whole, build, packet, read};
use crate::reference::fq::Fq as SlowFq;

#[derive(Clone, Copy, Debug)]
enum Op {
    Enqueue(u32, u64),
    Dequeue,
    Advance(u64),
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        4 => (0u32..4, 40u64..1_500).prop_map(|(flow, size)| vec![Op::Enqueue(flow, size)]),
        3 => Just(vec![Op::Dequeue]),
        2 => (0u64..3_000_000).prop_map(|ns| vec![Op::Advance(ns)]),
        1 => (1usize..30, 0u32..4, 100u64..1_500).prop_map(|(n, flow, size)| vec![Op::Enqueue(flow, size); n]),
        1 => (0u64..100).prop_map(|ms| vec![Op::Advance(1_000_000 * ms)]),
        1 => (1usize..30, 0u64..500_000).prop_map(|(n, ns)| [Op::Dequeue, Op::Advance(ns)].repeat(n)),
    ];
    prop::collection::vec(one, 1..150).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn fq_is_as_described(
        ops in ops(),
        weights in prop::array::uniform4(0u32..4),
        (quantum, initial, flow_limit) in (200i64..4_000, 0i64..9_000, 1usize..30),
        // At 8 Mb/s a byte takes a microsecond.
        maxrate in prop::option::of(prop::sample::select(vec![("80Mbit", 100), ("8Mbit", 1_000), ("800kbit", 10_000)])),
    ) {
        let mut keys = vec!["limit=40p".to_owned(), format!("quantum={quantum}B"), format!("initial_quantum={initial}B")];
        keys.push(format!("flow_limit={flow_limit}p"));
        keys.extend(maxrate.map(|(rate, _)| format!("maxrate={rate}")));
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut ours = build("fq", &keys, &weights.map(|exponent| f64::from(1_u32 << exponent)));
        let least = weights.iter().min().unwrap();
        let quanta = weights.map(|exponent| quantum << (exponent - least));
        let mut slow = SlowFq::new(&quanta, initial, flow_limit, 40, maxrate.map(|(_, per_byte)| (per_byte, quantum)));
        let (mut now, mut log) = (Time::ZERO, Log::default());
        for (id, op) in (0..).zip(ops) {
            match op {
                Op::Enqueue(flow, size) => {
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    let gets_in = slow.enqueue(flow as usize, id, size as i64);
                    prop_assert_eq!(log.dropped.len(), slow.excess() + usize::from(!gets_in));
                    for (_, dropped, _) in log.dropped.drain(..) {
                        let is_right = if gets_in { slow.push_out(dropped) } else { dropped == id };
                        prop_assert!(is_right, "packet {} of {}", dropped, id);
                    }
                }
                Op::Dequeue => {
                    let sent = ours.dequeue(now, &mut log).map(|sent| sent.id);
                    prop_assert_eq!(sent, slow.dequeue(now.as_nanos() as i64));
                    let wakeup = ours.next_wakeup().map(|at| at.as_nanos() as i64);
                    prop_assert_eq!(wakeup, slow.wakeup());
                }
                Op::Advance(ns) => now += Span::from_nanos(ns),
            }
        }
    }
}

#[test]
fn the_laws_hold_while_flows_are_held_back() {
    for maxrate in ["100kbit", "1Mbit", "50Mbit"] {
        let maxrate = format!("maxrate={maxrate}");
        let laws = Laws::default().cases(64).limit(Packets::new(20)).holds_back();
        let keys = ["limit=20p", "quantum=1500B", &maxrate];
        let tried = laws.verify_changes(|_| Whole(build("fq", &keys, &[1.0, 2.0])));
        tried.unwrap_or_else(|violation| panic!("{maxrate}: {violation}"));
    }
}

#[test]
fn what_sends_nothing_is_refused() {
    for (key, value, why) in [
        ("flow_limit", "0p", "at least 1p"),
        ("quantum", "0B", "at least 1B"),
        ("initial_quantum", "5000MB", "at most"),
        ("maxrate", "0bit", "nothing is sent"),
    ] {
        let error = read("fq", &[&format!("{key}={value}")]).expect_err(key);
        assert!(error.contains(key) && error.contains(why), "{error}");
    }
}
