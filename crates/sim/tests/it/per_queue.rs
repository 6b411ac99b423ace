//! AQMs in schedulers that divide among flows: each flow gets the delay of the AQM, and its share.

use crate::common::{flow, link, sweep, throughput};
use apportion_core::DropReason;

const SCHEDULERS: [&str; 7] = ["drr", "rr", "stfq", "scfq", "wfq", "wf2q", "wf2q_plus"];
const AQMS: [&str; 3] = ["codel", "pie", "cobalt"];

/// Four TCP flows, and a flow that sends a tenth of the link in full packets, since round robin counts
/// packets.
fn scenario(queue: &str, mbit: u64) -> String {
    format!(
        r#"
        seed = 1
        stop = "20s"
        measure_from = "5s"
        [topology]
        kind = "dumbbell"
        pairs = 5
        access = {{ rate = "10Gbit", delay = "1ms" }}
        bottleneck = {{ rate = "{mbit}Mbit", delay = "5ms", queue = {queue} }}
        [flow.bulk]
        count = 4
        from = "l{{i}}"
        to = "r{{i}}"
        [flow.thin]
        from = "l5"
        to = "r5"
        source = {{ kind = "cbr", rate = "{}kbit", packet = "1500B" }}
    "#,
        mbit * 100
    )
}

fn queues(aqm: &str) -> String {
    let of = |kind: &str| format!("{{ kind = \"{kind}\", drop = \"{aqm}\" }}");
    ["fifo"].into_iter().chain(SCHEDULERS).map(of).collect::<Vec<_>>().join(", ")
}

#[test]
fn an_aqm_behind_a_fair_scheduler_keeps_the_delay_that_it_keeps_behind_a_fifo() {
    for aqm in AQMS {
        // Below, a turn of five flows takes longer than the targets.
        for mbit in [10, 50] {
            let outcomes = sweep(&scenario(&format!("[{}]", queues(aqm)), mbit));
            let p95 = |at: usize| link(&outcomes[at], "bottleneck").queue_delay.quantile(0.95).unwrap();
            for (at, scheduler) in (1..).zip(SCHEDULERS) {
                let name = format!("{scheduler} with {aqm} at {mbit} Mb/s");
                assert!(p95(at) < p95(0) * 2, "{name}: {}, FIFO {}", p95(at), p95(0));
                let drops = &link(&outcomes[at], "bottleneck").dropped;
                assert!(drops.get(&DropReason::Early).is_some_and(|&early| early > 20), "{name}: {drops:?}");
                // The thin flow is within its share, so it loses almost nothing.
                let share = throughput(&outcomes[at], "thin") / (mbit as f64 * 1e5);
                assert!(share > 0.98, "{name}: {share}");
            }
        }
    }
}

#[test]
fn a_flood_at_an_aqm_behind_a_fair_scheduler_costs_the_others_nothing() {
    for aqm in AQMS {
        let text = scenario(&format!("[{}]", queues(aqm)), 10)
            + "[flow.flood]\nfrom = \"l5\"\nto = \"r5\"\n\
               source = { kind = \"cbr\", rate = \"40Mbit\", packet = \"1500B\" }\n";
        let outcomes = sweep(&text);
        let flood = |at: usize| flow(&outcomes[at], "flood").delivered.bytes.get() as f64 * 8.0 / 15.0;
        assert!(flood(0) > 6e6, "behind a FIFO {}", flood(0));
        for (at, scheduler) in (1..).zip(SCHEDULERS) {
            let (name, outcome) = (format!("{scheduler} with {aqm}"), &outcomes[at]);
            assert!(throughput(outcome, "thin") > 0.97e6, "{name}: {}", throughput(outcome, "thin"));
            // 1.8 Mb/s are due to each of five. TCP halves windows of a few packets and leaves some of that
            // unused, most with COBALT.
            assert!((1.7e6..3.0e6).contains(&flood(at)), "{name}: {}", flood(at));
        }
    }
}
