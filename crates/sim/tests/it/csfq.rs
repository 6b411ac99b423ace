//! CSFQ on whole links, against the shares that its paper promises.

mod dynamics;
mod guarantees;

use apportion_runtime::outcome::Outcome;

use crate::common::{link, run, throughput};

/// Returns a statistic of the queue of a link.
fn statistic(outcome: &Outcome, of: &str, name: &str) -> f64 {
    let statistics = &link(outcome, of).statistics;
    statistics.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Throughput of `count` UDP flows over one link of 10 Mb/s, in Mb/s. The first two seconds, before a share
/// is known, are left out.
fn shares(queue: &str, count: u32, rate: &str, weight: &str) -> Vec<f64> {
    let outcome = run(&format!(
        r#"
            stop = 42s, measure_from = 2s
            link wire: a -> b, rate = 10Mbit, delay = 1ms, queue = {{ {queue}, limit = 64p }}, watch = true
            flow udp: a -> b, count = {count}, weight = "{weight}",
                source = {{ kind = cbr, rate = "{rate}", packet = 1000B, jitter = 5% }}
        "#
    ));
    // Floods of 16 times the link leave it idle at times: over 40 seeds the mean is 0.990, with a deviation of 0.002.
    assert!(link(&outcome, "wire").utilisation > 0.98, "{}", link(&outcome, "wire").utilisation);
    (1..=count).map(|i| throughput(&outcome, &format!("udp.{i}")) / 1e6).collect()
}

#[test]
fn flows_that_send_up_to_32_shares_get_one_share_each() {
    // Stoica98, the single congested link: flow i sends i times its share of 10/32 Mb/s, which is 1562
    // packets in 40 s. Each packet is dropped by chance, so what a flow gets has a deviation of up to
    // sqrt(1562) packets, 2.5 %: four of them are 10 %.
    let fair = 10.0 / 32.0;
    let off = |shares: &[f64]| shares.iter().map(|share| (share / fair - 1.0).abs()).fold(0.0, f64::max);
    let csfq = shares("kind = \"csfq\"", 32, "312.5kbit * i", "1");
    assert!(off(&csfq) < 0.1, "{} in {csfq:?}", off(&csfq));
    // Labels of 8 bits, off by a sixteenth at most, add little to chance.
    let narrow = shares("kind = \"csfq\", bits = 8", 32, "312.5kbit * i", "1");
    assert!(off(&narrow) < 0.1, "{} in {narrow:?}", off(&narrow));
    // A FIFO divides by sending rates: the last flow gets twice its share.
    let fifo = shares("kind = \"fifo\"", 32, "312.5kbit * i", "1");
    assert!(off(&fifo) > 0.8, "{} in {fifo:?}", off(&fifo));
}

#[test]
fn datagrams_are_divided_by_weights_from_1_to_30() {
    // 10 Mb/s over 465: 0.0215 Mb/s for a weight of 1. All send 1 Mb/s, more than the largest share of 0.645.
    let ideal: Vec<f64> = (1..=30).map(|i| 10.0 * f64::from(i) / 465.0).collect();
    let r2 = |shares: &[f64]| {
        let mean = 10.0 / 30.0;
        let residual: f64 = shares.iter().zip(&ideal).map(|(share, ideal)| (share - ideal).powi(2)).sum();
        let total: f64 = ideal.iter().map(|ideal| (ideal - mean).powi(2)).sum();
        1.0 - residual / total
    };
    let csfq = shares("kind = \"csfq\"", 30, "1Mbit", "i");
    assert!(r2(&csfq) >= 0.98, "{} for {csfq:?}", r2(&csfq));
    let fifo = shares("kind = \"fifo\"", 30, "1Mbit", "i");
    assert!(r2(&fifo) < 0.1, "{} for {fifo:?}", r2(&fifo));
}
