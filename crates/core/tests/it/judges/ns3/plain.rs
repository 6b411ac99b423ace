//! The suites of queues without an AQM: `fifo`, `prio`, `tbf`, `queue-disc-traces`, `tc-flow-control` under
//! `src/traffic-control/test`, and `pfifo-fast` under `src/test/ns3tc`.

use apportion_core::units::Span;
use apportion_core::{DropReason, Ecn, Queue};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, none};

pub fn cases() -> Vec<Case> {
    let internal = "a queue has no internal queue with a limit of its own";
    let map = "classes are of customers; there is no map from priorities or TOS to bands";
    let device = "there is no queue between a discipline and its link, which takes packet by packet";
    let mut cases = vec![
        agrees("fifo 1, a limit before the start", fifo),
        agrees("fifo 2, a limit that is set later", fifo_set_later),
        none("fifo 3, the limit of the internal queue", internal),
        none("fifo 4, the same, set later", internal),
        none("prio 1, priority map", map),
        agrees("prio 2, each priority has its queue", prio_classifies),
        none("prio 3, a filter that does not apply", map),
        none("prio 4, a filter that applies", map),
        none("prio 5, a filter beyond the bands", map),
        agrees("prio 6, the highest priority first", prio_order),
        agrees("tbf 1, a full bucket", full_bucket),
        agrees("tbf 2, data at the rate of tokens", at_the_rate),
        agrees("tbf 3, data beyond the rate of tokens", beyond_the_rate),
        agrees("tbf 4, peak rate", peak_rate),
        agrees("queue-disc-traces", child_and_root),
        none("pfifo_fast, TOS", map),
        none("pfifo_fast, DSCP", map),
        none("pfifo_fast, overflow", map),
        none("pfifo_fast, no priority", map),
    ];
    let flow_control = [
        "1p, 10",
        "5p, 10",
        "9p, 10",
        "10p, 10",
        "11p, 10",
        "15p, 10",
        "1p, 1",
        "2p, 1",
        "5p, 1",
        "5000B, 10",
    ];
    cases.extend(flow_control.map(|_| none("tc-flow-control", device)));
    cases
}

/// Ten packets fit, an eleventh does not, and they leave in order.
fn fill_and_empty(mut bench: Bench) {
    bench.burst(ms(0.0), 10, 1_000, Ecn::NotEct);
    assert_eq!((bench.held(), bench.drops()), (10, 0));
    bench.burst(ms(0.0), 1, 1_000, Ecn::NotEct);
    assert_eq!((bench.held(), bench.dropped(DropReason::Overflow)), (10, 1));
    (0..10).for_each(|i| assert_eq!(bench.depart(ms(0.0)), Some(i)));
    assert_eq!(bench.depart(ms(0.0)), None);
}

fn fifo() {
    ["fifo limit=10p", "fifo limit=10kB"].into_iter().for_each(|table| fill_and_empty(Bench::new(table)));
}

fn fifo_set_later() {
    for table in ["fifo limit=10p", "fifo limit=10kB"] {
        let mut bench = Bench::new("fifo");
        bench.queue.set_limit(Bench::new(table).queue.limit().expect("a limit"));
        fill_and_empty(bench);
    }
}

/// Four classes with a flow each, the highest priority first.
fn four_bands() -> Bench {
    Bench::new("prio class.a.prio=0 class.b.prio=1 class.c.prio=2 class.d.prio=3").with_classes(4)
}

fn prio_classifies() {
    let mut bench = four_bands();
    for flow in 0..4 {
        bench.arrive(ms(0.0), flow, 100, Ecn::NotEct);
        assert_eq!(bench.held(), u64::from(flow) + 1);
    }
}

fn prio_order() {
    let mut bench = four_bands();
    (0..16).for_each(|i| bench.arrive(ms(0.0), (i * 7 + 3) % 4, 100, Ecn::NotEct));
    (0..16).for_each(|_| {
        bench.depart(ms(0.0)).expect("a packet");
    });
    let order: Vec<_> = bench.sent.iter().map(|sent| (sent.1.flow.0, sent.1.id)).collect();
    assert!(order.is_sorted(), "{order:?}");
}

/// Four packets take all tokens of a bucket of 6,000 bytes at once, and the next waits for its own.
fn full_bucket() {
    for limit in ["4p", "6kB"] {
        let table = format!("fifo limit={limit} shaper=token_bucket rate=48kbit burst=6000B");
        let mut bench = Bench::new(&table);
        bench.burst(ms(0.0), 5, 1_500, Ecn::NotEct);
        assert_eq!((bench.held(), bench.dropped(DropReason::Overflow)), (4, 1));
        (0..4).for_each(|i| assert_eq!(bench.depart(ms(0.0)), Some(i)));
        bench.burst(ms(0.0), 1, 1_500, Ecn::NotEct);
        assert_eq!(bench.depart(ms(0.0)), None);
        // 1,500 B at 6,000 B/s.
        assert_eq!(bench.queue.next_wakeup(), Some(ms(250.0)));
    }
}

/// The departures of ten packets of 1,000 bytes at these times, in ms: whether one is held back.
fn held_back(table: &str, arrivals: f64, departures: f64) -> Vec<bool> {
    let mut bench = Bench::new(table);
    let mut arrivals = (2..=11).map(|i| f64::from(i) * arrivals).peekable();
    let departures = (2..=11).map(|i| f64::from(i) * departures);
    let each = departures.map(|now| {
        while let Some(arrival) = arrivals.next_if(|arrival| *arrival <= now) {
            bench.arrive(ms(arrival), 0, 1_000, Ecn::NotEct);
        }
        let sent = bench.depart(ms(now));
        assert_eq!(sent.is_none(), bench.queue.next_wakeup().is_some(), "a packet that waits has a time");
        sent.is_none()
    });
    each.collect()
}

fn at_the_rate() {
    let table = "fifo limit=10p shaper=token_bucket rate=80kbit burst=10000B peak=800kbit peak_burst=1000B";
    assert_eq!(held_back(table, 90.0, 100.0), [false; 10]);
}

fn beyond_the_rate() {
    let table = "fifo limit=10p shaper=token_bucket rate=40kbit burst=5000B peak=800kbit peak_burst=1000B";
    let mut expected = [false; 10];
    expected[9] = true;
    assert_eq!(held_back(table, 90.0, 100.0), expected);
}

/// Packets 40 ms apart, and a peak rate that needs 50 ms for each: every second one waits for 10 ms.
fn peak_rate() {
    let table = "fifo limit=10p shaper=token_bucket rate=120kbit burst=15000B peak=160kbit peak_burst=1000B";
    let mut bench = Bench::new(table);
    for pair in 0..5 {
        let start = 100.0 + 100.0 * f64::from(pair);
        for (arrival, is_sent) in [(start, true), (start + 40.0, false)] {
            bench.burst(ms(arrival), 1, 1_000, Ecn::NotEct);
            assert_eq!(bench.depart(ms(arrival)).is_some(), is_sent, "at {arrival} ms");
        }
        // A full bucket may hold the tokens of a nanosecond more, the rest of a departure that was rounded up.
        let wakeup = bench.queue.next_wakeup().expect("a packet that waits has a time");
        assert!(ms(start + 50.0).since(wakeup) <= Span::from_nanos(1), "{wakeup:?}");
        assert!(bench.depart(ms(start + 50.0)).is_some());
    }
}

/// A child that drops arrivals, and packets while its next one is taken to learn its size: the packet that
/// the root holds back counts, what the child dropped does not.
fn child_and_root() {
    let mut bench = Bench::new("codel limit=40p mtu=1B shaper=token_bucket rate=8kbit burst=1000B");
    bench.burst(ms(0.0), 41, 1_000, Ecn::NotEct);
    assert_eq!((bench.held(), bench.dropped(DropReason::Overflow)), (40, 1));
    assert_eq!(bench.depart(ms(0.0)), Some(0));
    let mut early = 0;
    for second in 1..40 {
        let held = bench.held();
        let is_sent = bench.depart(ms(f64::from(second) * 500.0)).is_some();
        let dropped = bench.dropped(DropReason::Early) - early;
        early += dropped;
        assert_eq!(bench.held(), held - u64::from(is_sent) - dropped as u64);
        assert_eq!(bench.held_bytes(), bench.held() * 1_000);
    }
    assert!(early > 1);
}
