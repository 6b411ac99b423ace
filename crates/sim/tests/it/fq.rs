//! FQ on a whole link: its maximum rate, and the division of the rest.

use crate::common::{link, run, throughput};

/// Returns the throughputs in Mb/s of a flow that sends 12 Mb/s and of `others` that send 4 Mb/s each, over
/// 10 Mb/s, and their total.
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
    // No other flow needs the link: it idles.
    let (flood, others, all) = shares(r#"{ kind = "fq", maxrate = "2Mbit" }"#, 1);
    assert!(is_near(flood, 2.0) && is_near(others[0], 2.0) && all < 4.1, "{flood} {others:?}");
    // Without a maximum rate the 12 Mb/s flow gets the rest.
    let (flood, others, _) = shares(r#""fq""#, 1);
    assert!(is_near(flood, 6.0) && is_near(others[0], 4.0), "{flood} {others:?}");
}

#[test]
fn flows_below_maxrate_have_even_parts() {
    // With and without room for `flow_limit` of each flow.
    for queue in [
        r#"{ kind = "fq", limit = "1000p" }"#,
        r#"{ kind = "fq", limit = "1000p", maxrate = "3Mbit" }"#,
        r#""fq""#,
        r#"{ kind = "fq", limit = "40p" }"#,
    ] {
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

/// Returns the throughputs, relative to their dues, of the flows of `text`, which all send more, over a link
/// of `mbit`; each with its weight.
fn parts(mbit: f64, queue: &str, flows: &[(&str, f64, f64)]) -> Vec<f64> {
    // Ten seconds at 10 Mb/s, and the same number of bytes at other rates.
    let stop = 100e3 / mbit;
    let mut text = format!(
        "
            seed = 1, stop = {stop}ms, measure_from = {}ms
            link wire: s -> b, rate = {mbit}Mbit, delay = 1ms, queue = {queue}
        ",
        (0.2 * stop).round()
    );
    for (i, (size, weight, share)) in flows.iter().enumerate() {
        let rate = (mbit * share * 1e3).round();
        text += &format!(
            "flow f{i}: s -> b, weight = {weight}, source = {{ kind = cbr, rate = {rate}kbit, packet = {size}, jitter = 5% }}\n"
        );
    }
    let outcome = run(&text);
    let sum: f64 = flows.iter().map(|(_, weight, _)| weight).sum();
    let due = |weight: f64| mbit * 1e6 * weight / sum;
    flows
        .iter()
        .enumerate()
        .map(|(i, &(_, weight, _))| throughput(&outcome, &format!("f{i}")) / due(weight))
        .collect()
}

#[test]
fn parts_follow_weights_alone_whatever_the_room() {
    for queue in [r#""fq""#, r#"{ kind = "fq", limit = "20p" }"#, r#"{ kind = "fq", limit = "1000p" }"#] {
        for mbit in [0.1, 10.0, 1_000.0] {
            let of_weights = [("1500B", 1.0, 0.8), ("1500B", 2.0, 0.8), ("1500B", 4.0, 0.8)];
            let of_sizes = [("9000B", 1.0, 0.9), ("1500B", 1.0, 0.9), ("100B", 1.0, 0.9)];
            let of_ten: Vec<_> = (0..10).map(|i| ("1500B", 1.0, if i == 0 { 0.5 } else { 0.9 })).collect();
            for flows in [&of_weights[..], &of_sizes, &of_ten] {
                // Packets of 100 B cannot fill a quantum with a limit of 20 packets.
                if queue.contains("20p") && flows == of_sizes {
                    continue;
                }
                let parts = parts(mbit, queue, flows);
                assert!(parts.iter().all(|part| is_near(*part, 1.0)), "{queue} {mbit} {parts:?}");
            }
        }
    }
}
