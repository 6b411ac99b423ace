//! `fq-codel-queue-disc-test-suite.cc`, `fq-pie-queue-disc-test-suite.cc` and
//! `fq-cobalt-queue-disc-test-suite.cc`.

use apportion_core::{DropReason, Ecn};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, differs, none};
use super::NO_COBALT_THRESHOLD;

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
        agrees("fq_codel, ECN marking 2", fq_codel_threshold),
        differs("fq_codel, ECN marking 3", whole, fq_codel_threshold_and_signals),
        none("fq_codel, set-associative hash", ways),
        agrees("fq_codel, L4S mode 1", || fq_codel_l4s(1, [0.0, 0.0], 0.5, 66)),
        agrees("fq_codel, L4S mode 2", || fq_codel_l4s(0, [-0.5, 0.0], 1.0, 68)),
        none("fq_pie, no suitable filter", filters),
        differs("fq_pie, flows and limit", tail, fq_pie_at_the_limit),
        agrees("fq_pie, credits", || turns("fq_pie quantum=90B")),
        none("fq_pie, TCP ports", filters),
        none("fq_pie, UDP ports", filters),
        none("fq_pie, set-associative hash", ways),
        none("fq_pie, L4S mode 1", NO_COBALT_THRESHOLD),
        none("fq_pie, L4S mode 2", NO_COBALT_THRESHOLD),
        none("fq_cobalt, no suitable filter", filters),
        none("fq_cobalt, flows and limit", no_cobalt),
        none("fq_cobalt, credits", no_cobalt),
        none("fq_cobalt, TCP ports", filters),
        none("fq_cobalt, UDP ports", filters),
        none("fq_cobalt, ECN marking 1", no_cobalt),
        none("fq_cobalt, ECN marking 2", NO_COBALT_THRESHOLD),
        none("fq_cobalt, set-associative hash", no_cobalt),
        none("fq_cobalt, L4S mode 1", NO_COBALT_THRESHOLD),
        none("fq_cobalt, L4S mode 2", NO_COBALT_THRESHOLD),
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

/// Five flows of 20 packets of 120 bytes, and 60 departures, one each `every` ms. The first three flows are
/// ECN-capable. Returns the marks, drops and departures of each flow.
fn five_flows(table: &str, every: f64) -> [[usize; 5]; 3] {
    let mut bench = Bench::new(table);
    for flow in 0..5 {
        (0..20).for_each(|_| {
            bench.arrive(ms(0.0), flow, 120, if flow < 3 { Ecn::Ect0 } else { Ecn::NotEct });
        });
    }
    (1..=60).for_each(|i| {
        bench.depart(ms(f64::from(i) * every));
    });
    let of = |numbers: &mut dyn Iterator<Item = u32>| {
        let mut counts = [0; 5];
        numbers.for_each(|number| counts[number as usize / 20] += 1);
        counts
    };
    [
        of(&mut bench.log.marked.iter().map(|mark| mark.1)),
        of(&mut bench.log.dropped.iter().map(|drop| drop.1)),
        of(&mut bench.sent.iter().map(|sent| sent.1.id)),
    ]
}

/// The kernel's rule exempts no queue while all together hold more than an MTU. In ns-3 a queue of at most
/// 1,500 bytes is exempt, so that each of three ECN-capable flows has 6 marks and each of the others 4 drops.
fn fq_codel_signals() {
    let [marks, drops, _] = five_flows("fq_codel limit=10240p", 110.0);
    assert_eq!((&marks[3..], &drops[..3]), (&[0; 2][..], &[0; 3][..]));
    assert!(marks[..3].iter().all(|marks| *marks > 6), "{marks:?}");
    assert!(drops[3..].iter().all(|drops| *drops > 4), "{drops:?}");
}

/// A flow sends 13 packets in a turn. From the 21st departure on, packets have waited more than 2 ms.
fn fq_codel_threshold() {
    let [marks, drops, _] = five_flows("fq_codel limit=10240p quantum=1514B ce_threshold=2ms", 0.1);
    assert_eq!((marks, drops), ([0, 6, 13, 0, 0], [0; 5]));
}

/// Each departure of an ECN-capable packet is marked. The others are dropped as without a threshold.
fn fq_codel_threshold_and_signals() {
    let [marks, drops, sent] = five_flows("fq_codel limit=10240p quantum=1514B ce_threshold=2ms", 110.0);
    assert_eq!((&marks[..3], &marks[3..], &drops[..3]), (&sent[..3], &[0; 2][..], &[0; 3][..]));
    assert!(drops[3..].iter().all(|drops| *drops > 4), "{drops:?}");
}

/// 70 packets of ECT(1) of flow 0 and as many of ECT(0) of flow `classic` arrive, one each `every` ms, shifted by
/// `start` ms; 140 departures, one each ms. Those of ECT(1) that waited more than 2 ms are marked, and CoDel
/// signals to the others alone.
fn fq_codel_l4s(classic: u32, start: [f64; 2], every: f64, marked: usize) {
    let mut bench = Bench::new("fq_codel limit=10240p quantum=1514B ce_threshold=2ms l4s=true");
    let kinds = [(0, Ecn::Ect1, start[0]), (classic, Ecn::Ect0, start[1])];
    let arrivals =
        (1..=70).flat_map(|i| kinds.map(|(flow, ecn, start)| (start + f64::from(i) * every, flow, ecn)));
    let mut arrivals: Vec<_> = arrivals.collect();
    arrivals.sort_by(|a, b| a.0.total_cmp(&b.0));
    let ecn = |number: u32| arrivals[number as usize].2;
    let mut arriving = arrivals.iter().peekable();
    for at in (1..=140).map(f64::from) {
        while let Some(&(time, flow, ecn)) = arriving.next_if(|arrival| arrival.0 <= at) {
            bench.arrive(ms(time), flow, 120, ecn);
        }
        bench.depart(ms(at));
    }
    let of = |kind| bench.log.marked.iter().filter(|mark| ecn(mark.1) == kind).count();
    assert_eq!((of(Ecn::Ect1), of(Ecn::Ect0), bench.drops()), (marked, 1, 0));
}
