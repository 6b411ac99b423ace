//! FQ on a whole link: its maximum rate, and what the others do with the rest.

use crate::common::{link, run, throughput};

/// Throughputs in Mb/s of a flow that sends 12 Mb/s and of `others` that send 4 Mb/s each, over 10 Mb/s, and what the link carries.
fn shares(queue: &str, others: usize) -> (f64, Vec<f64>, f64) {
    let outcome = run(&format!(
        "
            seed = 3, stop = 22s, measure_from = 2s
            link wire: a -> b, rate = 10Mbit, delay = 1ms, queue = {queue}
            flow flood: a -> b, source = {{ kind = cbr, rate = 12Mbit, packet = 1000B, jitter = 5% }}
            flow other: a -> b, count = {others}, source = {{ kind = cbr, rate = 4Mbit, packet = 1000B, jitter = 5% }}
        "
    ));
    let of = |name: &str| throughput(&outcome, name) / 1e6;
    let names = outcome.flows.iter().filter(|flow| flow.group == "other").map(|flow| flow.name.clone());
    let others: Vec<f64> = names.map(|name| of(&name)).collect();
    let all = of("flood") + others.iter().sum::<f64>();
    assert!(link(&outcome, "wire").sent.packets.get() > 0);
    (of("flood"), others, all)
}

fn is_near(got: f64, due: f64) -> bool {
    (got / due - 1.0).abs() < 0.02
}

#[test]
fn maxrate_holds_a_flow_to_it_and_the_others_share_the_rest() {
    // No other flow wants the link: it idles.
    let (flood, others, all) = shares(r#"{ kind = "fq", maxrate = "2Mbit" }"#, 1);
    assert!(is_near(flood, 2.0) && is_near(others[0], 2.0) && all < 4.1, "{flood} {others:?}");
    // Without it the flood has what the other leaves.
    let (flood, others, _) = shares(r#""fq""#, 1);
    assert!(is_near(flood, 6.0) && is_near(others[0], 4.0), "{flood} {others:?}");
}

#[test]
fn flows_below_maxrate_have_even_parts() {
    // Room for `flow_limit` of each.
    for queue in
        [r#"{ kind = "fq", limit = "1000p" }"#, r#"{ kind = "fq", limit = "1000p", maxrate = "3Mbit" }"#]
    {
        let (flood, others, _) = shares(queue, 4);
        assert!(
            is_near(flood, 2.0) && others.iter().all(|&it| is_near(it, 2.0)),
            "{queue} {flood} {others:?}"
        );
    }
}

#[test]
fn a_tcp_flow_alone_has_maxrate() {
    let rate = |queue: &str| {
        let outcome = run(&format!(
            "
                seed = 3, stop = 22s, measure_from = 2s
                link wire: a -> b, rate = 10Mbit, delay = 10ms, queue = {queue}
                flow tcp: a -> b
            "
        ));
        throughput(&outcome, "tcp") / 1e6
    };
    let (held, free) = (rate(r#"{ kind = "fq", maxrate = "3Mbit" }"#), rate(r#""fq""#));
    assert!(is_near(held, 3.0) && free > 9.5, "{held} {free}");
}
