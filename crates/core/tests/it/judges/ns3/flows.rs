//! `fq-codel-queue-disc-test-suite.cc`, `fq-pie-queue-disc-test-suite.cc` and
//! `fq-cobalt-queue-disc-test-suite.cc`.

use apportion_core::{DropReason, Ecn};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, differs, none};
use super::NO_CE_THRESHOLD;

pub fn cases() -> Vec<Case> {
    let filters =
        "a packet has the number of its flow; gateways and captures classify by addresses and ports";
    let ways = "among the disciplines here only `cake` has a set-associative hash";
    let whole =
        "the last MTU is exempt by the backlog of all queues, as in the kernel; ns-3 counts each queue";
    let tail = "`fq_pie` drops arrivals of the longest queue, one by one, so that PIE sees the delay";
    let no_cobalt =
        "there is no flow queueing with COBALT but `cake`, which has tins, hosts and a shaper as well";
    vec![
        none("fq_codel, no suitable filter", filters),
        agrees("fq_codel, flows and limit", fq_codel_at_the_limit),
        agrees("fq_codel, credits", || turns("fq_codel quantum=90B")),
        none("fq_codel, TCP ports", filters),
        none("fq_codel, UDP ports", filters),
        differs("fq_codel, ECN marking 1", whole, fq_codel_signals),
        none("fq_codel, ECN marking 2", NO_CE_THRESHOLD),
        none("fq_codel, ECN marking 3", NO_CE_THRESHOLD),
        none("fq_codel, set-associative hash", ways),
        none("fq_codel, L4S mode 1", NO_CE_THRESHOLD),
        none("fq_codel, L4S mode 2", NO_CE_THRESHOLD),
        none("fq_pie, no suitable filter", filters),
        differs("fq_pie, flows and limit", tail, fq_pie_at_the_limit),
        agrees("fq_pie, credits", || turns("fq_pie quantum=90B")),
        none("fq_pie, TCP ports", filters),
        none("fq_pie, UDP ports", filters),
        none("fq_pie, set-associative hash", ways),
        none("fq_pie, L4S mode 1", NO_CE_THRESHOLD),
        none("fq_pie, L4S mode 2", NO_CE_THRESHOLD),
        none("fq_cobalt, no suitable filter", filters),
        none("fq_cobalt, flows and limit", no_cobalt),
        none("fq_cobalt, credits", no_cobalt),
        none("fq_cobalt, TCP ports", filters),
        none("fq_cobalt, UDP ports", filters),
        none("fq_cobalt, ECN marking 1", no_cobalt),
        none("fq_cobalt, ECN marking 2", NO_CE_THRESHOLD),
        none("fq_cobalt, set-associative hash", no_cobalt),
        none("fq_cobalt, L4S mode 1", NO_CE_THRESHOLD),
        none("fq_cobalt, L4S mode 2", NO_CE_THRESHOLD),
    ]
}

/// Three packets of a flow and one of another fill the buffer; the packets that remain after one more, by
/// flow.
fn after_the_fifth(table: &str) -> (Bench, [usize; 2]) {
    let mut bench = Bench::new(table);
    [0, 0, 0, 1].into_iter().for_each(|flow| bench.arrive(ms(0.0), flow, 120, Ecn::NotEct));
    assert_eq!((bench.held(), bench.drops()), (4, 0));
    bench.arrive(ms(0.0), 1, 120, Ecn::NotEct);
    let held = bench.held();
    (0..held).for_each(|_| {
        bench.depart(ms(0.0)).expect("a packet");
    });
    let left = [0, 1].map(|flow| bench.sent.iter().filter(|sent| sent.1.flow.0 == flow).count());
    (bench, left)
}

/// The longer queue loses half of its backlog: two packets, from its head.
fn fq_codel_at_the_limit() {
    let (bench, left) = after_the_fifth("fq_codel limit=4p quantum=1500B");
    assert_eq!((left, bench.dropped(DropReason::PushOut)), ([1, 2], 2));
    assert!(bench.log.dropped.iter().map(|drop| drop.1).eq([0, 1]));
}

/// The longer queue loses its last packet.
fn fq_pie_at_the_limit() {
    let (bench, left) = after_the_fifth("fq_pie limit=4p quantum=1500B");
    assert_eq!((left, bench.dropped(DropReason::PushOut)), ([2, 2], 1));
    assert_eq!(bench.log.dropped[0].1, 2);
}

/// Packets of 120 bytes and turns of 90: a queue in debt gets a turn and passes it on, and empty queues leave
/// the round.
fn turns(table: &str) {
    let mut bench = Bench::new(table);
    let lists = |bench: &Bench| (bench.statistic("new_flows"), bench.statistic("old_flows"));
    bench.arrive(ms(0.0), 0, 120, Ecn::NotEct);
    assert_eq!(lists(&bench), (1.0, 0.0));
    assert_eq!(bench.depart(ms(0.0)), Some(0));
    // The first flow has credits of -30, and is still new.
    [0, 0, 1, 1].into_iter().for_each(|flow| bench.arrive(ms(0.0), flow, 120, Ecn::NotEct));
    assert_eq!(lists(&bench), (2.0, 0.0));
    // The second flow goes first, since the first is in debt: 60 and -30, then -60 and 60, then 30 and -60,
    // and at last -90 and 30.
    for (packet, lists_then) in [(3, (1.0, 1.0)), (1, (0.0, 2.0)), (4, (0.0, 2.0)), (2, (0.0, 2.0))] {
        assert_eq!(bench.depart(ms(0.0)), Some(packet));
        assert_eq!(lists(&bench), lists_then, "after packet {packet}");
    }
    assert_eq!(bench.depart(ms(0.0)), None);
    assert_eq!(lists(&bench), (0.0, 0.0));
}

/// Five flows of 20 packets of 120 bytes, 60 departures, one each 110 ms: the kernel's rule exempts no queue
/// while all together hold more than an MTU. In ns-3 a queue of at most 1,500 bytes is exempt, so that each
/// of three ECN-capable flows has 6 marks and each of the others 4 drops.
fn fq_codel_signals() {
    let mut bench = Bench::new("fq_codel limit=10240p");
    for flow in 0..5 {
        (0..20).for_each(|_| {
            bench.arrive(ms(0.0), flow, 120, if flow < 3 { Ecn::Ect0 } else { Ecn::NotEct });
        });
    }
    (1..=60).for_each(|i| {
        bench.depart(ms(f64::from(i) * 110.0));
    });
    let of = |numbers: &mut dyn Iterator<Item = u32>| {
        let mut counts = [0; 5];
        numbers.for_each(|number| counts[number as usize / 20] += 1);
        counts
    };
    let marks = of(&mut bench.log.marked.iter().map(|mark| mark.1));
    let drops = of(&mut bench.log.dropped.iter().map(|drop| drop.1));
    assert_eq!((&marks[3..], &drops[..3]), (&[0; 2][..], &[0; 3][..]));
    assert!(marks[..3].iter().all(|marks| *marks > 6), "{marks:?}");
    assert!(drops[3..].iter().all(|drops| *drops > 4), "{drops:?}");
}
