//! `pie-queue-disc-test-suite.cc`: the suite has one case with 16 numbered tests.
//!
//! Packets of 1,000 bytes arrive each 10 ms, 400 of them, and leave each 12, 14 or 15 ms.

use apportion_core::{DropReason, Ecn};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, none};

pub fn cases() -> Vec<Case> {
    let inside = "it writes the sum of probabilities into the queue: a test beside the algorithm does so";
    let always = "PIE is always active; RFC 8033 section 5.3 is optional";
    vec![
        agrees("pie 1, enqueue and dequeue", in_order),
        agrees("pie 2, early drops", early_drops),
        agrees("pie 3, longer target", longer_target),
        agrees("pie 4, slower service", slower_service),
        agrees("pie 5, longer period", longer_period),
        none(
            "pie 6, dequeue rate",
            "the delay is measured by timestamps (RFC 8033 section 4.3), not from a rate",
        ),
        none("pie 7, steps without a cap", "steps are always capped (RFC 8033 section 5.5)"),
        agrees("pie 8, capped steps", capped_steps),
        agrees("pie 9, packets that are not ECN-capable", || marks("ecn=true mark_ecnth=0.3", Ecn::NotEct)),
        agrees("pie 10, a queue without ECN", || marks("ecn=false", Ecn::Ect0)),
        agrees("pie 11, marks below the threshold, drops above", marks_and_drops),
        agrees("pie 12, derandomised", derandomised),
        none("pie 13, never below the lower sum", inside),
        none("pie 14, always from the upper sum", inside),
        none("pie 15, not active", always),
        none("pie 16, soon active", always),
    ]
}

/// The suite's settings for tests 2 to 5, and in the middle what a test changes.
const SET: &str = "max_burst=100ms mean_pktsize=1000B derandomize=false";
/// The seeds over which drops are added up.
const SEEDS: u64 = 20;

/// The early drops with these keys and departures each `served` ms; none is forced.
fn drops(keys: &str, served: f64) -> usize {
    let of = |unit: &str, seed| {
        let mut bench = Bench::seeded(&format!("pie limit=300{unit} {SET} {keys}"), seed);
        bench.run(400, 10.0, served, Ecn::NotEct);
        assert_eq!(bench.drops(), bench.dropped(DropReason::Early), "{keys}");
        bench.drops()
    };
    (0..SEEDS).map(|seed| of("p", seed) + of("kB", seed)).sum()
}

fn in_order() {
    for limit in ["300p", "300kB"] {
        let mut bench = Bench::new(&format!("pie limit={limit}"));
        bench.burst(ms(0.0), 8, 1_000, Ecn::NotEct);
        assert_eq!(bench.held(), 8);
        (0..8).for_each(|i| assert_eq!(bench.depart(ms(0.0)), Some(i)));
        assert_eq!(bench.depart(ms(0.0)), None);
    }
}

fn early_drops() {
    assert!(drops("tupdate=30ms target=20ms", 12.0) > 0);
}

fn longer_target() {
    assert!(drops("tupdate=30ms target=80ms", 12.0) < drops("tupdate=30ms target=20ms", 12.0));
}

fn slower_service() {
    assert!(drops("tupdate=30ms target=20ms", 15.0) > drops("tupdate=30ms target=20ms", 12.0));
}

fn longer_period() {
    assert!(drops("tupdate=90ms target=20ms", 15.0) < drops("tupdate=30ms target=20ms", 15.0));
}

/// From a probability of 0.1 on, it rises by at most 0.02 from one arrival to the next.
fn capped_steps() {
    let mut bench = Bench::new("pie limit=300p mean_pktsize=1000B derandomize=false");
    let (mut before, mut largest) = (0.0, 0.0f64);
    bench.run_watched(400, 10.0, 14.0, Ecn::NotEct, |bench| {
        let p = bench.statistic("drop_prob");
        if before > 0.1 {
            largest = largest.max(p - before);
        }
        before = p;
    });
    assert!(largest > 0.0 && largest < 0.020_000_000_1, "{largest}");
    assert!(bench.drops() > 0 && bench.drops() == bench.dropped(DropReason::Early));
}

/// No marks, but drops.
fn marks(keys: &str, ecn: Ecn) {
    let mut bench = Bench::new(&format!("pie limit=300p mean_pktsize=1000B derandomize=false {keys}"));
    bench.run(400, 10.0, 14.0, ecn);
    assert!(bench.marks() == 0 && bench.drops() > 0);
}

fn marks_and_drops() {
    let mut bench = Bench::new("pie limit=300p mean_pktsize=1000B derandomize=false ecn=true mark_ecnth=0.3");
    let mut largest = 0.0f64;
    bench
        .run_watched(400, 10.0, 14.0, Ecn::Ect0, |bench| largest = largest.max(bench.statistic("drop_prob")));
    assert!(bench.marks() > 0 && bench.drops() > 0 && largest > 0.3, "{largest}");
}

/// Drops, and none before the probabilities since the one before add up to 0.85.
fn derandomised() {
    let mut bench = Bench::new("pie limit=300p mean_pktsize=1000B derandomize=true");
    let (mut sum, mut drops) = (0.0, 0);
    bench.run_watched(400, 10.0, 14.0, Ecn::NotEct, |bench| {
        sum += bench.statistic("drop_prob");
        if bench.drops() > drops {
            assert!(sum >= 0.85, "{sum}");
            (sum, drops) = (0.0, bench.drops());
        }
    });
    assert!(drops > 0);
}
