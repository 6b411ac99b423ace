//! The flows that SF-FC recognises as adaptive by behaviour. The scenario is that of the table in
//! `papers/sffc-extensions`.

use std::path::Path;

use apportion_runtime::outcome::Outcome;
use apportion_scenario::model::Scenario;

use crate::common::{link, run_with, throughput};

const KINDS: &str = include_str!("../../../../papers/sffc-extensions/recognition.toml");

const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

/// Outcomes with adaptive flows recognised by `recognise`.
fn outcomes(recognise: &str) -> Vec<Outcome> {
    let set = [("link.narrow.queue.recognise".to_owned(), recognise.to_owned())];
    let suite = apportion_scenario::load(KINDS, Path::new("kinds.toml"), &set, &|path| std::fs::read(path));
    let scenario: Scenario =
        suite.unwrap_or_else(|problems| panic!("{problems:?}")).points.remove(0).scenario;
    SEEDS.map(|seed| run_with(&scenario, seed)).collect()
}

/// Returns the values of the link's statistic `name` for all flows of `kind`.
fn numbers(outcomes: &[Outcome], kind: &str, name: &str) -> Vec<f64> {
    let of_outcome = |outcome: &Outcome| -> Vec<f64> {
        let is_meant = |at: usize| outcome.flows[at].name.split('.').next() == Some(kind);
        let all = link(outcome, "narrow").flow_statistics.iter();
        all.filter(|(at, known, _)| *known == name && is_meant(*at)).map(|&(.., value)| value).collect()
    };
    outcomes.iter().flat_map(of_outcome).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

fn adaptive(outcomes: &[Outcome], kind: &str) -> f64 {
    mean(&numbers(outcomes, kind, "adaptive"))
}

fn mbps(outcomes: &[Outcome], flow: &str) -> f64 {
    mean(&outcomes.iter().map(|outcome| throughput(outcome, flow) / 1e6).collect::<Vec<_>>())
}

#[test]
fn behaviour_shows_what_the_protocol_field_does_not() {
    let [protocol, behaviour] = ["protocol", "behaviour"].map(outcomes);
    for kind in ["reno", "sack", "cubic", "app"] {
        assert!(adaptive(&behaviour, kind) >= 0.95, "{kind}: {}", adaptive(&behaviour, kind));
    }
    for kind in ["cbr", "poisson", "onoff", "video", "liar", "lyingvideo"] {
        assert!(adaptive(&behaviour, kind) <= 0.05, "{kind}: {}", adaptive(&behaviour, kind));
    }
    // Not all QUIC-like flows are recognised within 30 s: see `papers/sffc-extensions`.
    assert!(adaptive(&behaviour, "quic") >= 0.25, "{}", adaptive(&behaviour, "quic"));
    assert_eq!([adaptive(&protocol, "quic"), adaptive(&protocol, "liar")], [0.0, 1.0]);

    // Flows that only claim to be adaptive are detected in their first test: after 3 s of patience, 3 s of
    // test, and the start of up to 1 s.
    let caught = numbers(&behaviour, "liar", "recognised_at_s");
    assert_eq!(caught.len(), 2 * behaviour.len());
    assert!(caught.iter().all(|&at| at <= 8.0), "{caught:?}");

    // A flow that sends 2 Mb/s, with a share of 0.74, got nearly all of it.
    assert!(mbps(&protocol, "liar.2") > 1.9);
    assert!(mbps(&behaviour, "liar.2") < 1.5, "{}", mbps(&behaviour, "liar.2"));
    let tcp = |outcomes: &[Outcome]| -> f64 {
        let flows = ["sack.1", "sack.2", "sack.3", "cubic.1", "cubic.2", "cubic.3"];
        flows.iter().map(|flow| mbps(outcomes, flow)).sum()
    };
    assert!(tcp(&behaviour) > 1.1 * tcp(&protocol), "{} and {}", tcp(&behaviour), tcp(&protocol));
    // The total cost of testing for the link.
    let used = |outcome: &Outcome| link(outcome, "narrow").utilisation;
    assert!(behaviour.iter().map(used).all(|used| used > 0.98));
}
