//! `codel-queue-disc-test-suite.cc` and `cobalt-queue-disc-test-suite.cc`.

use apportion_core::{DropReason, Ecn};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, differs, none};
use super::NO_COBALT_THRESHOLD;

pub fn cases() -> Vec<Case> {
    let law = "the control law has an exact square root (RFC 8289 section 5.6); the kernel and ns-3 take one Newton \
               step for each signal, so that their second interval is 50 ms and not 70.7";
    let blue = "BLUE's probability rises when the buffer overflows, as in the paper, and not by sojourn time";
    vec![
        agrees("codel, enqueue and dequeue, packets", || fifo_order("codel limit=1500p")),
        agrees("codel, enqueue and dequeue, bytes", || fifo_order("codel limit=1500kB")),
        agrees("codel, overflow, packets", || overflow("codel limit=500p")),
        agrees("codel, overflow, bytes", || overflow("codel limit=500kB")),
        differs("codel, Newton step", law, the_law_is_exact),
        differs("codel, control law", law, the_law_is_exact),
        agrees("codel, drop, packets", || codel_signals("codel limit=500p", Ecn::NotEct)),
        agrees("codel, drop, bytes", || codel_signals("codel limit=500kB", Ecn::NotEct)),
        agrees("codel, mark 1, packets", || codel_signals("codel limit=500p ecn=true", Ecn::NotEct)),
        agrees("codel, mark 1, bytes", || codel_signals("codel limit=500kB ecn=true", Ecn::NotEct)),
        agrees("codel, mark 2, packets", || codel_signals("codel limit=500p ecn=true", Ecn::Ect0)),
        agrees("codel, mark 2, bytes", || codel_signals("codel limit=500kB ecn=true", Ecn::Ect0)),
        agrees("codel, mark 3, packets", || codel_threshold("codel limit=500p", 3)),
        agrees("codel, mark 3, bytes", || codel_threshold("codel limit=500kB", 3)),
        agrees("codel, mark 4, packets", || codel_threshold("codel limit=500p", 20)),
        agrees("codel, mark 4, bytes", || codel_threshold("codel limit=500kB", 20)),
        agrees("cobalt, enqueue and dequeue, packets", || fifo_order("cobalt limit=1500p")),
        agrees("cobalt, enqueue and dequeue, bytes", || fifo_order("cobalt limit=1500kB")),
        agrees("cobalt, drop", cobalt_overflows),
        agrees("cobalt, mark 1, packets", || cobalt_drops("cobalt limit=500p ecn=false")),
        agrees("cobalt, mark 1, bytes", || cobalt_drops("cobalt limit=500kB ecn=false")),
        agrees("cobalt, mark 2, packets", || cobalt_marks("cobalt limit=500p", 20)),
        agrees("cobalt, mark 2, bytes", || cobalt_marks("cobalt limit=500kB", 20)),
        agrees("cobalt, mark 3, packets", || cobalt_marks("cobalt limit=500p", 3)),
        agrees("cobalt, mark 3, bytes", || cobalt_marks("cobalt limit=500kB", 3)),
        none("cobalt, CE threshold, packets", NO_COBALT_THRESHOLD),
        none("cobalt, CE threshold, bytes", NO_COBALT_THRESHOLD),
        differs("cobalt, enhanced BLUE, packets", blue, || {
            cobalt_of_long_delays("cobalt limit=1000p ecn=false", 99);
        }),
        differs("cobalt, enhanced BLUE, bytes", blue, || {
            cobalt_of_long_delays("cobalt limit=1MB ecn=false", 99);
        }),
        agrees("cobalt, BLUE off, packets", || cobalt_of_long_delays("cobalt limit=1000p increment=0", 0)),
        agrees("cobalt, BLUE off, bytes", || cobalt_of_long_delays("cobalt limit=1MB increment=0", 0)),
    ]
}

/// Six packets pass in order, and the queue counts them.
fn fifo_order(table: &str) {
    let mut bench = Bench::new(table);
    for i in 1..=6 {
        bench.burst(ms(0.0), 1, 1_000, Ecn::NotEct);
        assert_eq!((bench.held(), bench.held_bytes()), (i, i * 1_000));
    }
    for i in 0..6 {
        assert_eq!(bench.depart(ms(0.0)), Some(i));
        assert_eq!(bench.held(), 5 - u64::from(i));
    }
    assert_eq!(bench.depart(ms(0.0)), None);
    assert_eq!(bench.drops(), 0);
}

/// Three packets more than the buffer holds are dropped as overflow.
fn overflow(table: &str) {
    let mut bench = Bench::new(table);
    bench.burst(ms(0.0), 503, 1_000, Ecn::NotEct);
    assert_eq!((bench.held(), bench.dropped(DropReason::Overflow), bench.drops()), (500, 3, 3));
}

/// The time from one signal to the next is the interval divided by the root of the count, also for the
/// second, where a Newton step from 1 yields 1/2.
fn the_law_is_exact() {
    let mut bench = Bench::new("codel limit=10000p");
    bench.burst(ms(0.0), 5_000, 1_000, Ecn::NotEct);
    (0..4_000).for_each(|i| {
        bench.depart(ms(f64::from(i)));
    });
    // The first is at 105 ms; each is at the first departure, in whole ms, at which it is due.
    let mut due = 105.0f64;
    for (count, &(at, ..)) in (1u32..).zip(&bench.log.dropped).take(50) {
        assert!((at.as_secs_f64() * 1e3 - due.ceil()).abs() < 1e-6, "signal {count}: {at:?}, {due}");
        due += 100.0 / f64::from(count).sqrt();
    }
    assert!(bench.drops() > 50);
}

/// 20 packets at 0, and departures at two targets, twice at two intervals more, and at twice that time. A
/// packet that cannot be marked is dropped, and the next one leaves.
fn codel_signals(table: &str, ecn: Ecn) {
    let mut bench = Bench::new(table);
    let is_marked = ecn.is_capable();
    let signals = |bench: &Bench| if is_marked { bench.marks() } else { bench.dropped(DropReason::Early) };
    bench.burst(ms(0.0), 20, 1_000, ecn);
    for (at, expected) in [(10.0, 0), (210.0, 1), (210.0, 1)] {
        bench.depart(ms(at)).expect("a packet");
        assert_eq!(signals(&bench), expected, "at {at} ms");
    }
    let (held, count) = (bench.held(), bench.statistic("count"));
    bench.depart(ms(420.0)).expect("a packet");
    let moves = (bench.statistic("count") - count) as usize;
    assert_eq!(signals(&bench), 1 + moves, "as many signals as the time of the next one moved");
    assert_eq!(bench.held(), held - 1 - if is_marked { 0 } else { moves as u64 });
    assert!(if is_marked { moves == 1 && bench.drops() == 0 } else { moves > 1 && bench.marks() == 0 });
}

/// 20 packets at 0, of which the first `capable` are ECN-capable, and a threshold of 2 ms: departures above it
/// are marked, by CoDel at 210 ms, and nothing is dropped before others are at the head.
fn codel_threshold(table: &str, capable: u32) {
    let mut bench = Bench::new(&format!("{table} ecn=true ce_threshold=2ms"));
    bench.burst(ms(0.0), capable, 1_000, Ecn::Ect0);
    bench.burst(ms(0.0), 20 - capable, 1_000, Ecn::NotEct);
    let times =
        if capable == 20 { [(1.0, 0), (3.0, 1), (10.0, 2)] } else { [(10.0, 1), (210.0, 2), (210.0, 3)] };
    for (at, marks) in times {
        let held = bench.held();
        bench.depart(ms(at)).expect("a packet");
        assert_eq!((bench.marks(), bench.drops(), bench.held()), (marks, 0, held - 1), "at {at} ms");
    }
    bench.depart(ms(420.0)).expect("a packet");
    assert_eq!(bench.drops() > 0, capable < 20);
}

/// 200 packets into a buffer of 100: the probability of BLUE rises.
fn cobalt_overflows() {
    for table in ["cobalt limit=100p", "cobalt limit=100kB"] {
        let mut bench = Bench::new(table);
        (1..=200).for_each(|i| bench.burst(ms(f64::from(i) * 10.0), 1, 1_000, Ecn::Ect0));
        assert_eq!(bench.dropped(DropReason::Overflow), 100);
        assert!(bench.statistic("drop_prob") > 0.0);
    }
}

/// Repeats `codel_signals` for COBALT: its second signal is due at once.
fn cobalt_drops(table: &str) {
    let mut bench = Bench::new(table);
    bench.burst(ms(0.0), 20, 1_000, Ecn::NotEct);
    bench.depart(ms(10.0));
    assert_eq!((bench.drops(), bench.held()), (0, 19));
    bench.depart(ms(210.0));
    assert!(bench.dropped(DropReason::Early) > 0 && bench.marks() == 0);
}

/// Sends 20 packets, of which the first `capable` are ECN-capable. Those are marked, one at each of the later
/// departures; the others are dropped.
fn cobalt_marks(table: &str, capable: u32) {
    let mut bench = Bench::new(table);
    bench.burst(ms(0.0), capable, 1_000, Ecn::Ect0);
    bench.burst(ms(0.0), 20 - capable, 1_000, Ecn::NotEct);
    for (at, marks) in [(10.0, 0), (210.0, 1), (210.0, 2)] {
        let held = bench.held();
        bench.depart(ms(at));
        assert_eq!((bench.marks(), bench.drops(), bench.held()), (marks, 0, held - 1), "at {at} ms");
    }
    bench.depart(ms(420.0));
    if capable == 20 {
        assert_eq!((bench.marks(), bench.drops()), (3, 0));
    } else {
        assert!(bench.marks() == 2 && bench.dropped(DropReason::Early) > 0);
    }
}

/// 200 ECN-capable packets of which 100 leave, one each 10 ms, so that the last wait a second. `drops` is
/// the greatest number of drops.
fn cobalt_of_long_delays(table: &str, drops: usize) {
    let mut bench = Bench::new(table);
    bench.burst(ms(0.0), 200, 1, Ecn::Ect0);
    (1..=100).for_each(|i| {
        bench.depart(ms(f64::from(i) * 10.0));
    });
    assert_eq!(bench.statistic("drop_prob"), 0.0);
    assert!(bench.drops() <= drops, "{}", bench.drops());
}
