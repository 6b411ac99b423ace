//! The throughput of flows behind a fair queue, their entitlements, and a number computed by hand: all within
//! 5 %.

use std::fmt::Write as _;

use apportion_runtime::due::dues;

use crate::common::{run_with, scenarios, throughput};

/// Asserts that the entitlements and throughputs of flows, in the order of their names, are `expected`, in
/// Mb/s.
#[track_caller]
fn check(text: &str, expected: &[f64]) {
    let scenario = scenarios(text).pop().unwrap();
    let outcome = run_with(&scenario, scenario.seed);
    let dues = dues(&scenario, &outcome).unwrap();
    assert_eq!(dues.flows.len(), expected.len());
    for ((flow, due), expected) in outcome.flows.iter().zip(&dues.flows).zip(expected) {
        let (got, due) = (throughput(&outcome, &flow.name) / 1e6, due.measured.as_mbit_f64());
        let is_close = |a: f64, b: f64| (a / b - 1.0).abs() < 0.05;
        assert!(is_close(due, *expected), "{}: due {due}, by hand {expected}", flow.name);
        assert!(is_close(got, due), "{}: got {got}, due {due}", flow.name);
    }
}

/// Writes a file of delivery opportunities: phases of seconds and Mb/s.
fn trace(name: &str, phases: &[(u64, f64)]) -> String {
    let path = std::env::temp_dir().join(format!("apportion-{}-{name}", std::process::id()));
    let (mut text, mut start) = (String::new(), 0);
    for &(seconds, mbps) in phases {
        let count = (seconds as f64 * mbps * 1e6 / (8.0 * 1_504.0)).round() as u64;
        for k in 1..=count {
            writeln!(text, "{}", start + k * 1_000 * seconds / count).unwrap();
        }
        start += 1_000 * seconds;
    }
    std::fs::write(&path, text).unwrap();
    format!("{{ trace = \"{}\" }}", path.display())
}

/// Flows over a link, each with this packet size in bytes and this rate in Mb/s.
fn over(link: &str, queue: &str, seconds: [u64; 2], flows: &[(u64, f64)]) -> String {
    let [from, to] = seconds;
    let mut text = format!(
        "stop = {to}s, measure_from = {from}s
         link x: r -> d, rate = {link}, delay = 5ms, queue = {queue}\n"
    );
    for (k, (packet, rate)) in flows.iter().enumerate() {
        let source = format!("{{ kind = cbr, rate = {}kbit, packet = {packet}B, jitter = 20% }}", rate * 1e3);
        text += &format!(
            "link s{k}: s{k} -> r, rate = 100Gbit, delay = 100us\nflow f{k}: s{k} -> d, source = {source}\n"
        );
    }
    text
}

#[test]
fn a_shaper_before_a_recorded_link_counts_at_each_time() {
    // 5 Mb/s for one second and 2 for three: (5 + 3 · 2) / 4 / 2 each, while the link has (40 + 6) / 4 on
    // average.
    let link = trace("shaper", &[(1, 40.0), (3, 2.0)]);
    for queue in ["{ kind = drr, shaper = token_bucket, rate = 5Mbit }", "{ kind = cake, bandwidth = 5Mbit }"]
    {
        check(&over(&link, queue, [0, 40], &[(1500, 30.0), (1500, 30.0)]), &[1.375; 2]);
    }
}

#[test]
fn a_slow_part_of_a_recorded_link_bounds_a_small_demand() {
    // 2.5 and 0.25 Mb/s for equal times, while the mean of 2.625 would suffice for all. The buffer holds 0.77
    // Mb of 27.5.
    let link = trace("demand", &[(10, 5.0), (10, 0.25)]);
    check(&over(&link, "drr", [0, 60], &[(1500, 2.5)]), &[1.375]);
    // A second flow gets the rest: 2.5 and 0.125.
    check(&over(&link, "drr", [0, 60], &[(1500, 2.5), (1500, 30.0)]), &[1.3125; 2]);
}

#[test]
fn what_a_queue_smooths_is_due_on_average() {
    // Twenty milliseconds at 20 Mb/s and twenty without capacity: the buffer holds a hundred milliseconds.
    let path = std::env::temp_dir().join(format!("apportion-{}-smooth", std::process::id()));
    let times: Vec<String> = (1..=34).map(|k| (k * 20 / 34).to_string()).chain(["40".to_owned()]).collect();
    std::fs::write(&path, times.join("\n")).unwrap();
    let link = format!("{{ trace = \"{}\" }}", path.display());
    check(&over(&link, "drr", [1, 11], &[(1500, 4.0), (1500, 30.0)]), &[4.0, 6.528]);
    // A slow link with one or two opportunities in 100 ms does not matter either.
    let slow = trace("slow", &[(10, 0.18)]);
    check(&over(&slow, "drr", [10, 60], &[(500, 0.15)]), &[0.15]);
}

#[test]
fn behind_cake_flows_are_due_what_framing_leaves() {
    let both = [(100, 9.0), (1500, 9.0)];
    let cake = |keys: &str| over("10Mbit", &format!("{{ kind = cake, {keys} }}"), [4, 14], &both);
    // 2 Mb/s each on the wire: 100 of 200 bytes and 1500 of 1600; 100 and 1500 of 1000 and 1500; of 3 and 32
    // cells of 53.
    check(&cake("bandwidth = 4Mbit, overhead = 100B"), &[1.0, 1.875]);
    check(&cake("bandwidth = 4Mbit, mpu = 1000B"), &[0.2, 2.0]);
    check(&cake("bandwidth = 4Mbit, framing = atm"), &[2.0 * 100.0 / 159.0, 2.0 * 1500.0 / 1696.0]);
    // Without a bandwidth 10 Mb/s of packets, in proportion 1 : 1.875.
    check(&cake("overhead = 100B"), &[10.0 / 2.875, 18.75 / 2.875]);
    // The result is the same with a bandwidth above the rate of the link.
    check(&cake("bandwidth = 30Mbit, overhead = 100B"), &[10.0 / 2.875, 18.75 / 2.875]);
    // Half of the demand is charged twice: 1 Mb/s of 4, and 3 of packets of 1500.
    let modest = "{ kind = cake, bandwidth = 4Mbit, overhead = 100B }";
    check(&over("10Mbit", modest, [4, 14], &[(100, 0.5), (1500, 9.0)]), &[0.5, 2.8125]);
    check(
        &over("10Mbit", "{ kind = cake, overhead = 100B }", [4, 14], &[(100, 0.5), (1500, 19.0)]),
        &[0.5, 9.5],
    );
}

#[test]
fn no_flow_is_due_more_than_fq_lets_it_have() {
    let fq = |flows: &[(u64, f64)]| over("10Mbit", "{ kind = fq, maxrate = 2Mbit }", [4, 14], flows);
    check(&fq(&[(1500, 9.0), (1500, 9.0)]), &[2.0; 2]);
    check(&fq(&[(1500, 0.5), (1500, 9.0)]), &[0.5, 2.0]);
    // If the link limits the flows, `maxrate` does not matter.
    check(&fq(&[(1500, 9.0); 8]), &[1.25; 8]);
    // The rate of this link limits no flow.
    let wide = over("1Gbit", "{ kind = fq, maxrate = 2Mbit }", [4, 14], &[(1500, 9.0), (1500, 9.0)]);
    let narrow = "link y: d -> e, rate = 10Mbit, delay = 1ms\n";
    check(&(wide.replace("-> d, source", "-> e, source") + narrow), &[2.0; 2]);
}
