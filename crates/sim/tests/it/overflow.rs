//! Losses of flows at a full buffer, on whole links.

use apportion_core::queue::DropReason;

use crate::common::{dropped, link, run, throughput};

/// Runs 120 TCP flows for three minutes over 6 Mb/s with a buffer of half a packet for each. Returns the
/// smallest share of a flow, and the mean of each sixth of the flows by number.
fn of_many(queue: &str) -> (f64, Vec<f64>) {
    let outcome = run(&format!(
        "
            seed = 308, stop = 210s, measure_from = 30s
            link neck: a -> b, rate = 6Mbit, delay = 20ms, queue = {queue}
            link in: s -> a, rate = 1Gbit, delay = 19ms
            link out: b -> d, rate = 1Gbit, delay = 0.5ms
            flow t: s -> d, count = 120, start = {{ between = [0s, 1s] }}
        "
    ));
    let parts: Vec<f64> = (1..=120).map(|i| throughput(&outcome, &format!("t.{i}")) / 50e3).collect();
    let sixths = parts.chunks(20).map(|sixth| sixth.iter().sum::<f64>() / 20.0).collect();
    (parts.into_iter().fold(f64::INFINITY, f64::min), sixths)
}

#[test]
fn of_equals_none_loses_for_its_number() {
    for queue in [
        "drr",
        "wfq",
        "wf2q",
        "wf2q_plus",
        "{ kind = stfq, drop = pfd }",
        "{ kind = stfq, drop = lqd }",
        "scfq",
        "fq",
        "fq_codel",
        "fq_pie",
        "cake",
        "{ kind = drr, isolate = source }",
    ] {
        let (least, sixths) = of_many(queue);
        assert!(least >= 0.85, "{queue} {least}");
        assert!(sixths.iter().all(|sixth| (0.97..1.03).contains(sixth)), "{queue} {sixths:?}");
    }
}

/// Runs FQ-PIE on a link with an unresponsive flow at `times` its rate. Returns the 95th percentile of the
/// sojourn time in ms, early drops and others.
fn flooded(rate: f64, times: f64, keys: &str) -> (f64, u64, u64) {
    let outcome = run(&format!(
        "
            seed = 1, stop = 60s, measure_from = 20s
            link wire: s -> b, rate = {rate}Mbit, delay = 5ms, queue = {{ kind = fq_pie{keys} }}, watch = true
            flow v: s -> b, source = {{ kind = cbr, rate = {}Mbit, packet = 1500B }}
        ",
        rate * times
    ));
    let wire = link(&outcome, "wire");
    let early = wire.dropped.get(&DropReason::Early).copied().unwrap_or(0);
    (wire.queue_delay.quantile(0.95).unwrap().as_secs_f64() * 1e3, early, dropped(&wire.dropped) - early)
}

#[test]
fn fq_pie_controls_a_flood_before_its_buffer_is_full() {
    for keys in ["", ", drop_batch = 1", ", preset = paper"] {
        let (p95, early, others) = flooded(10.0, 1.5, keys);
        assert!(p95 < 27.0 && early > 10_000 && others == 0, "{keys} {p95} {early} {others}");
    }
    for (rate, times) in [(2.0, 1.5), (10.0, 1.1), (10.0, 3.0), (10.0, 10.0), (100.0, 1.5)] {
        let (p95, early, others) = flooded(rate, times, "");
        assert!(p95 < 31.0 && early > 10 * others, "{rate} {times} {p95} {early} {others}");
    }
}

#[test]
fn those_beside_a_flood_keep_their_parts_under_fq_pie() {
    let outcome = run("
        seed = 1, stop = 20s, measure_from = 2s
        link wire: s -> b, rate = 10Mbit, delay = 5ms, queue = fq_pie
        flow flood: s -> b, source = { kind = cbr, rate = 100Mbit, packet = 1500B }
        flow call: s -> b, source = { kind = cbr, rate = 1Mbit, packet = 200B }
        flow tcp: s -> b
    ");
    let of = |name: &str| throughput(&outcome, name) / 1e6;
    let got = [of("call"), of("flood"), of("tcp")];
    let is_near = |(got, due): (f64, f64)| (got / due - 1.0).abs() < 0.02;
    assert!(got.into_iter().zip([1.0, 4.5, 4.5]).all(is_near), "{got:?}");
}
