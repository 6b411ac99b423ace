//! Events of a run agree with the counts in its tables.

use std::collections::BTreeMap;
use std::sync::Mutex;

use apportion::apportion_core::DropReason;
use apportion::{Cache, Run, Scenario};

const SCENARIO: &str = r#"
    seed = 1
    stop = "4s"
    measure_from = "1s"
    link.x = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", loss = "1%", queue = ["red", "fifo"] }
    flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "2Mbit" } }
"#;

#[test]
fn drops_are_counted_as_in_tables_also_when_there_is_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::at(folder.path());
    let scenario = Scenario::from_text(SCENARIO).unwrap();
    let run = || Run::new(&scenario).seeds(3).cache(&cache, Cache::MOST);
    let plain = run().simulate().unwrap();
    let drops = Mutex::new(BTreeMap::new());
    let observed = run().on_drop(|drop| {
        if drop.at.as_secs_f64() >= 1.0 {
            let key = (drop.point.to_owned(), drop.seed, drop.flow.unwrap().to_owned(), drop.reason);
            *drops.lock().unwrap().entry(key).or_insert(0) += 1;
        }
    });
    let results = observed.simulate().unwrap();
    assert!(results.flows().eq(plain.flows()) && results.reused() == 0);
    let drops = drops.lock().unwrap();
    for row in results.flows() {
        let count = |reason| {
            drops.get(&(row.point.clone(), row.seed, row.flow.clone(), reason)).copied().unwrap_or_default()
        };
        assert_eq!(count(None), row.lost_packets);
        assert_eq!(count(Some(DropReason::Early)), row.drops_early);
        assert_eq!(count(Some(DropReason::Overflow)), row.drops_overflow);
    }
    assert!(drops.keys().any(|(.., reason)| *reason == Some(DropReason::Early)));
}

#[test]
fn samples_are_the_series() {
    let scenario = Scenario::from_text(SCENARIO).unwrap();
    let seen = Mutex::new(Vec::new());
    let run = Run::new(&scenario).jobs(1).on_sample(|sample| {
        let flows = sample.flows.iter().map(|flow| (flow.name, flow.throughput));
        let links = sample.links.iter().map(|link| (link.name, link.throughput));
        for (name, rate) in flows.chain(links) {
            let (point, name) = (sample.point.to_owned(), name.to_owned());
            seen.lock().unwrap().push((point, sample.at.as_nanos(), name, rate.as_bit()));
        }
    });
    let results = run.simulate().unwrap();
    let bits = |mbps: f64| (mbps * 1e6).round() as u64;
    let rows =
        results.series().map(|row| (row.point, bits(row.t_s * 1e3), row.name, bits(row.throughput_mbps)));
    let (mut rows, mut seen): (Vec<_>, _) = (rows.collect(), seen.lock().unwrap().clone());
    assert!(seen.is_sorted_by_key(|(point, at, ..)| (point != "queue=red", *at)));
    rows.sort();
    seen.sort();
    assert_eq!(rows, seen);
}
