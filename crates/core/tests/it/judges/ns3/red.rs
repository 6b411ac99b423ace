//! `red-queue-disc-test-suite.cc`, one case with 13 numbered tests, and
//! `adaptive-red-queue-disc-test-suite.cc`, one with 10.
//!
//! 300 packets of 500 bytes arrive at once; the defaults of ns-3 are `gentle`, `wait` and a probability of
//! 1/50.

use apportion_core::units::Rate;
use apportion_core::{DropReason, Ecn};

use super::super::bench::{Bench, ms};
use super::super::{Case, agrees, none};

pub fn cases() -> Vec<Case> {
    let weight = "the weight of the average is set, not derived from the rate of the link";
    let thresholds = "thresholds are set, not derived from the rate of the link";
    vec![
        agrees("red 1, enqueue and dequeue", in_order),
        agrees("red 2, short queues lose nothing", || assert_eq!(drops("min_th=70 max_th=150"), 0)),
        agrees("red 3, a larger weight", || assert!(drops(&linear("")) > 0)),
        agrees("red 4, a lower maximum", || more("w_q=0.02 min_th=70 max_th=100")),
        agrees("red 5, a larger probability", || more(&linear("max_p=0.2"))),
        agrees("red 6, not gentle", || more(&linear("gentle=false"))),
        agrees("red 7, without wait", || more(&linear("wait=false"))),
        agrees("red 8, packets that are not ECN-capable", || marks(true, Ecn::NotEct, [false, true])),
        agrees("red 9, a queue without ECN", || marks(false, Ecn::Ect0, [false, true])),
        agrees("red 10, marks alone", || marks(true, Ecn::Ect0, [true, false])),
        agrees("red 11, a linear curve", || assert!(drops(WIDE) > 0)),
        none("red 12, Feng's adaptive RED", "no discipline here has it; `tred` moves its probability"),
        none("red 13, a nonlinear curve", "there is no nonlinear RED"),
        none("ared 1, weight for the default rate", weight),
        none("ared 2, weight for a slow link", weight),
        none("ared 3, weight -1 for the default rate", weight),
        none("ared 4, weight -1 for a slow link", weight),
        none("ared 5, weight -2 for the default rate", weight),
        none("ared 6, weight -2 for a slow link", weight),
        none("ared 7, thresholds for the default rate", thresholds),
        none("ared 8, thresholds for a fast link", thresholds),
        agrees("ared 9, RED by itself", red_by_itself),
        none("ared 10, adaptive RED", "`red` does not adapt its probability"),
    ]
}

/// The settings of tests 8 to 13.
const WIDE: &str = "min_th=30 max_th=90 max_p=0.5";
/// The seeds over which drops are added up.
const SEEDS: u64 = 20;

/// The settings of test 3, with these in addition.
fn linear(keys: &str) -> String {
    format!("w_q=0.02 min_th=70 max_th=150 {keys}")
}

/// The table for a queue in packets, or in bytes of as many packets. Keys that the test sets replace ns-3's
/// defaults.
fn table(keys: &str, in_bytes: bool) -> String {
    let mut table = "red".to_owned();
    let defaults = "limit=300 w_q=0.002 max_p=0.02 gentle=true wait=true mean_pktsize=500B";
    let is_set = |pair: &&str| !keys.split(' ').any(|set| set.split('=').next() == pair.split('=').next());
    for pair in defaults.split(' ').filter(is_set).chain(keys.split_whitespace()) {
        let (key, value) = pair.split_once('=').expect("a pair");
        table += &match (key, in_bytes) {
            ("limit" | "min_th" | "max_th", false) => format!(" {key}={value}p"),
            ("limit" | "min_th" | "max_th", true) => {
                format!(" {key}={}B", 500 * value.parse::<u64>().expect("a size"))
            }
            _ => format!(" {pair}"),
        };
    }
    table
}

/// The drops of 300 packets that arrive at once, in both units and over all seeds.
fn drops(keys: &str) -> usize {
    let of = |in_bytes, seed| {
        let mut bench = Bench::seeded(&table(keys, in_bytes), seed);
        bench.burst(ms(0.0), 300, 500, Ecn::NotEct);
        bench.drops()
    };
    (0..SEEDS).map(|seed| of(false, seed) + of(true, seed)).sum()
}

/// There are more drops than in test 3.
fn more(keys: &str) {
    let [these, those] = [keys, &linear("")].map(drops);
    assert!(these > those, "{keys}: {these}, {those}");
}

fn in_order() {
    for in_bytes in [false, true] {
        let mut bench = Bench::new(&table("limit=8 min_th=2 max_th=5", in_bytes));
        bench.burst(ms(0.0), 8, 500, Ecn::NotEct);
        assert_eq!(bench.held(), 8);
        (0..8).for_each(|i| assert_eq!(bench.depart(ms(0.0)), Some(i)));
        assert_eq!(bench.depart(ms(0.0)), None);
    }
}

/// Whether there are marks, and whether there are early drops.
fn marks(ecn: bool, packets: Ecn, expected: [bool; 2]) {
    for in_bytes in [false, true] {
        let mut bench = Bench::new(&table(&format!("{WIDE} ecn={ecn}"), in_bytes));
        bench.burst(ms(0.0), 300, 500, packets);
        assert_eq!([bench.marks() > 0, bench.dropped(DropReason::Early) > 0], expected);
    }
}

/// 300 packets, one each 10 ms, none of which leaves.
fn red_by_itself() {
    for in_bytes in [false, true] {
        let mut bench =
            Bench::at_rate(&table("min_th=5 max_th=15 max_p=0.5", in_bytes), Rate::from_bit(1_500_000));
        (1..=300).for_each(|i| bench.burst(ms(f64::from(i) * 10.0), 1, 500, Ecn::NotEct));
        assert!(bench.dropped(DropReason::Early) > 0);
    }
}
