//! The disciplines that approximate fair queueing against slow transcripts of their papers.

use apportion_core::Queue;
use apportion_core::units::{Span, Time};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{Log, build, packet};
use crate::reference::afq::Afq as SlowAfq;
use crate::reference::cebinae::Cebinae as SlowCebinae;
use crate::reference::sfq::Sfq as SlowSfq;
use crate::reference::start_tags::{
    Aifo as SlowAifo, Packs as SlowPacks, Rifo as SlowRifo, SpPifo as SlowSpPifo,
};

/// An arrival of a flow with its size, or a departure.
type Op = Option<(u32, u64)>;

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let one = prop_oneof![
        4 => (0u32..4, 40u64..1_500).prop_map(|arrival| vec![Some(arrival)]),
        3 => Just(vec![None]),
        1 => (1usize..30, 0u32..4, 100u64..1_500).prop_map(|(n, flow, size)| vec![Some((flow, size)); n]),
        1 => (1usize..30).prop_map(|n| vec![None; n]),
    ];
    prop::collection::vec(one, 1..150).prop_map(|all| all.concat())
}

fn powers(exponents: [u32; 4]) -> [f64; 4] {
    exponents.map(|exponent| f64::from(1_u32 << exponent))
}

/// The charge in eighths of a byte, in which every charge is a whole number.
fn slow_charge(exponents: [u32; 4], flow: u32, size: u64) -> u64 {
    let least = exponents.iter().min().copied().unwrap_or(0);
    (8 * size) >> (exponents[flow as usize] - least)
}

proptest! {
    #![proptest_config(cases(200))]

    // Four flows in 2 × 16384 cells have cells of their own.
    #[test]
    fn afq_is_the_paper_s(ops in ops(), queues in 1u64..9, bytes in 100u64..4_000, weights in prop::array::uniform4(0u32..4)) {
        let weights = weights.map(|exponent| f64::from(1_u32 << exponent));
        let least = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let keys = ["limit=25p".to_owned(), format!("queues={queues}"), format!("bpr={bytes}B")];
        let mut ours = build("afq", &keys.each_ref().map(String::as_str), &weights);
        // In eighths of a byte of the smallest weight every charge is a whole number.
        let mut slow = SlowAfq::new(queues, 8 * bytes, 25, 8 * 1_500);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    let charge = 8 * size / (weights[flow as usize] / least) as u64;
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue(flow, id, charge));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    // A bucket alone, and four flows in a million, which have one each.
    #[test]
    fn stochastic_fair_queueing_is_the_paper_s(ops in ops(), one in any::<bool>()) {
        let buckets = if one { "buckets=1" } else { "buckets=1048576" };
        let mut ours = build("sfq", &["limit=25p", "perturb=0s", buckets], &[]);
        let mut slow = SlowSfq::new(4, 25);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    let lost = log.dropped.pop().map(|(_, id, _)| id);
                    prop_assert_eq!(lost, slow.enqueue(if one { 0 } else { flow as usize }, id, lost));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    #[test]
    fn sp_pifo_is_the_paper_s(ops in ops(), queues in 1usize..9, weights in prop::array::uniform4(0u32..4)) {
        let mut ours = build("sp_pifo", &["limit=25p", &format!("queues={queues}")], &powers(weights));
        let mut slow = SlowSpPifo::new(queues, 25);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    let charge = slow_charge(weights, flow, size);
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue(flow, id, charge));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    #[test]
    fn aifo_is_the_paper_s(ops in ops(), window in 1usize..30, weights in prop::array::uniform4(0u32..4)) {
        let keys = ["limit=25p".to_owned(), format!("window={window}"), "headroom=0.25".to_owned()];
        let mut ours = build("aifo", &keys.each_ref().map(String::as_str), &powers(weights));
        let mut slow = SlowAifo::new(25, 0.25, window);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    let charge = slow_charge(weights, flow, size);
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue(flow, id, charge));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    #[test]
    fn packs_is_the_rule(
        ops in ops(), queues in 1usize..9, window in 1usize..30, total in any::<bool>(), weights in prop::array::uniform4(0u32..4),
    ) {
        let bound = if total { "bound=total" } else { "bound=ahead" };
        let keys = ["limit=25p".to_owned(), format!("queues={queues}"), format!("window={window}"), "headroom=0.25".to_owned(), bound.to_owned()];
        let mut ours = build("packs", &keys.each_ref().map(String::as_str), &powers(weights));
        let mut slow = SlowPacks::new(queues, 25, 0.25, window, total);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    let charge = slow_charge(weights, flow, size);
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue(flow, id, charge));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    #[test]
    fn rifo_is_the_rule(ops in ops(), reset in 2usize..40, published in any::<bool>(), weights in prop::array::uniform4(0u32..4)) {
        let admission = if published { "admission=published" } else { "admission=sound" };
        let keys = ["limit=25p".to_owned(), format!("reset={reset}"), "headroom=0.25".to_owned(), admission.to_owned()];
        let mut ours = build("rifo", &keys.each_ref().map(String::as_str), &powers(weights));
        let mut slow = SlowRifo::new(25, 0.25, reset, published);
        let mut log = Log::default();
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
                    let charge = slow_charge(weights, flow, size);
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue(flow, id, charge));
                }
                None => prop_assert_eq!(ours.dequeue(Time::ZERO, &mut log).map(|sent| sent.id), slow.dequeue()),
            }
        }
    }

    // Rounds of 10 ms, in which the link of 10 Mb/s sends 12.5 kB; a step is 1 ms. Four flows in 2^20 slots have slots of their own.
    #[test]
    fn cebinae_is_the_paper_s(ops in ops(), tax in 0usize..3, near in 0usize..3) {
        let (tax, near) = ([0.01, 0.1, 0.5][tax], [0.01, 0.1, 0.5][near]);
        let keys = [
            "limit=25p".to_owned(), "interval=10ms".to_owned(), format!("tax={tax}"), format!("delta_f={near}"), "slots=1048576".to_owned(),
        ];
        let mut ours = build("cebinae", &keys.each_ref().map(String::as_str), &[]);
        let mut slow = SlowCebinae::new(25, 10, 12_500, tax, near);
        let mut log = Log::default();
        let mut now = Time::ZERO;
        for (id, op) in (0..).zip(ops) {
            match op {
                Some((flow, size)) => {
                    ours.enqueue(now, packet(id, flow, size), &mut log);
                    prop_assert_eq!(log.dropped.pop().is_none(), slow.enqueue(flow, id, size));
                }
                None => {
                    prop_assert_eq!(ours.dequeue(now, &mut log).map(|sent| sent.id), slow.dequeue());
                    now += Span::from_millis(1);
                    slow.advance(1);
                }
            }
        }
    }
}
