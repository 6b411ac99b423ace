//! Disciplines that approximate fair queueing, in `scenarios/approximate-fairness.toml` and on separate
//! settings.

use crate::common::{run, throughput};

/// Twelve TCP flows and a flood of 20 Mb/s over 20 Mb/s, behind `queue`: the smallest and the largest share
/// of a flow, and the flood's.
fn beside_a_flood(queue: &str) -> [f64; 3] {
    let text = include_str!("../../../../scenarios/approximate-fairness.toml");
    let (head, rest) = text.split_once("queue = [").unwrap();
    let (_, tail) = rest.split_once("\n]\n").unwrap();
    let outcome = run(&format!("{head}queue = {queue}\n{tail}"));
    let due = 20e6 / 13.0;
    let tcp = (1..=12).map(|i| throughput(&outcome, &format!("tcp.{i}")) / due);
    let (least, most) = tcp.fold((f64::INFINITY, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
    [least, most, throughput(&outcome, "udp") / due]
}

#[test]
fn afq_with_a_cell_for_each_flow_keeps_a_flood_to_its_part() {
    let [least, most, flood] = beside_a_flood(r#""afq""#);
    assert!(least > 0.9 && most < 1.1 && flood < 1.1, "{least} {most} {flood}");
    let [least, ..] = beside_a_flood(r#"{ kind = "afq", rows = 1, columns = 1 }"#);
    assert!(least < 0.5, "{least}");
}

#[test]
fn sfq_with_many_buckets_keeps_a_flood_to_a_turn() {
    // Packets of 1000 B take turns with packets of 1500 B: the flood gets about two thirds of its due. In
    // this many buckets no two of 13 flows collide; in 1024 a pair does occasionally.
    let [least, _, flood] = beside_a_flood(r#"{ kind = "sfq", buckets = 65536 }"#);
    assert!(least > 0.9 && (0.6..0.8).contains(&flood), "{least} {flood}");
    let [paired, ..] = beside_a_flood(r#""sfq""#);
    assert!(paired > 0.5 && paired < least, "{paired} {least}");
    let [least, ..] = beside_a_flood(r#"{ kind = "sfq", buckets = 1 }"#);
    assert!(least < 0.5, "{least}");
}

/// The smallest share of four floods, each due a quarter of the link, hashed into four buckets.
fn least_of_a_pair(perturb: &str) -> f64 {
    let outcome = run(&format!(
        "
            seed = 2, stop = 65s, measure_from = 5s
            link wire: source -> sink, rate = 2Mbit, delay = 1ms,
                queue = {{ kind = sfq, buckets = 4, perturb = {perturb} }}
            flow load: source -> sink, count = 4, source = {{ kind = cbr, rate = 2Mbit, packet = 1000B, jitter = 5% }}
        "
    ));
    let rates = (1..=4).map(|i| throughput(&outcome, &format!("load.{i}")) / 0.5e6);
    rates.fold(f64::INFINITY, f64::min)
}

#[test]
fn a_hash_that_changes_shares_the_bad_luck() {
    let (never, often) = (least_of_a_pair("0s"), least_of_a_pair("1s"));
    assert!(never < 0.7 && often > never + 0.1, "{never} {often}");
}

#[test]
fn sp_pifo_beside_a_flood_leaves_tcp_most_of_its_due() {
    // The flood's excess is capacity that TCP does not use: the queues are eighths of the buffer.
    let [least, ..] = beside_a_flood(r#""sp_pifo""#);
    let [alone, ..] = beside_a_flood(r#"{ kind = "sp_pifo", queues = 1 }"#);
    assert!(least > 0.5 && alone < 0.1, "{least} {alone}");
}

#[test]
fn aifo_that_admits_by_rank_keeps_a_flood_near_its_part() {
    let [least, _, flood] = beside_a_flood(r#""aifo""#);
    assert!(least > 0.9 && flood < 1.2, "{least} {flood}");
    let [least, ..] = beside_a_flood(r#"{ kind = "aifo", headroom = 0.99 }"#);
    assert!(least < 0.2, "{least}");
}

#[test]
fn packs_sorts_and_admits_and_leaves_tcp_most_of_its_due() {
    let [least, _, flood] = beside_a_flood(r#""packs""#);
    assert!(least > 0.65 && flood < 4.5, "{least} {flood}");
    let [least, ..] = beside_a_flood(r#"{ kind = "packs", queues = 1, headroom = 0.99 }"#);
    assert!(least < 0.2, "{least}");
}

#[test]
fn rifo_holds_a_flood_back_and_not_as_it_was_published() {
    let [least, _, flood] = beside_a_flood(r#""rifo""#);
    assert!(least > 0.6 && flood < 4.5, "{least} {flood}");
    let [least, _, flood] = beside_a_flood(r#"{ kind = "rifo", preset = "paper" }"#);
    assert!(least < 0.2 && flood > 10.0, "{least} {flood}");
}

#[test]
fn ahab_with_a_cell_for_each_flow_keeps_a_flood_near_its_part() {
    let [least, _, flood] = beside_a_flood(r#""ahab""#);
    assert!(least > 0.85 && flood < 1.3, "{least} {flood}");
    let [_, _, flood] = beside_a_flood(r#"{ kind = "ahab", rows = 1, columns = 1 }"#);
    assert!(flood > 5.0, "{flood}");
}

/// Returns the fairness of 15 Vegas flows and a CUBIC flow at 100 Mb/s behind `queue`: Jain's index, and the
/// share of CUBIC.
fn bold_among_shy(queue: &str) -> [f64; 2] {
    let outcome = run(&format!(
        r#"
        seed = 4
        stop = "60s"
        measure_from = "20s"
        link.wire = {{ from = "l", to = "r", rate = "100Mbit", delay = "10ms", queue = {queue} }}
        defaults.flow.start = {{ between = ["0s", "1s"] }}
        flow.shy = {{ count = 15, from = "l", to = "r", tcp = "vegas" }}
        flow.bold = {{ from = "l", to = "r", tcp = "cubic" }}
        "#
    ));
    let all: Vec<f64> = (1..=15)
        .map(|i| format!("shy.{i}"))
        .chain(["bold".to_owned()])
        .map(|flow| throughput(&outcome, &flow))
        .collect();
    let (sum, squares) = (all.iter().sum::<f64>(), all.iter().map(|rate| rate * rate).sum::<f64>());
    [sum * sum / (16.0 * squares), all[15] / sum]
}

#[test]
fn cebinae_with_a_tax_takes_from_the_bold_what_the_shy_leave() {
    let [even, bold] = bold_among_shy(r#"{ kind = "cebinae", limit = "250p", interval = "50ms" }"#);
    let [fifo, first] = bold_among_shy(r#"{ kind = "fifo", limit = "250p" }"#);
    assert!(even > fifo + 0.1 && bold < first - 0.05, "{even} {fifo} {bold} {first}");
    let [untaxed, _] = bold_among_shy(r#"{ kind = "cebinae", limit = "250p", interval = "50ms", tax = 0 }"#);
    assert!(untaxed < even - 0.1, "{untaxed} {even}");
}
