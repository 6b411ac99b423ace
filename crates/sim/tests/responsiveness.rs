//! Which flows SF-FC takes for adaptive ones if it goes by behaviour. The scenario is that of the table in
//! `papers/sffc-beyond`.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod common;

use std::path::Path;

use apportion_scenario::model::Scenario;
use apportion_scenario::outcome::Outcome;
use common::{link, run_with, throughput};

const KINDS: &str = include_str!("../../../papers/sffc-beyond/recognition.toml");

fn scenario(set: &[(&str, &str)]) -> Scenario {
    let set: Vec<_> = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let suite =
        apportion_scenario::load(KINDS, Path::new("recognition.toml"), &set, &|path| std::fs::read(path));
    suite.unwrap_or_else(|problems| panic!("{problems:?}")).points.remove(0).scenario
}

fn of_flow(outcome: &Outcome, flow: usize, name: &str) -> Option<f64> {
    let all = &link(outcome, "narrow").flow_statistics;
    all.iter().find(|&&(at, known, _)| at == flow && known == name).map(|&(.., value)| value)
}

#[test]
#[ignore = "prints"]
fn table() {
    let seeds: u64 = std::env::var("SEEDS").map_or(3, |s| s.parse().unwrap());
    let stop = std::env::var("STOP").unwrap_or("30s".to_owned());
    for recognise in ["protocol", "behaviour"] {
        let scenario = scenario(&[("link.narrow.queue.recognise", recognise), ("stop", &stop)]);
        let outcomes: Vec<_> = (1..=seeds).map(|seed| run_with(&scenario, seed)).collect();
        let util = outcomes.iter().map(|o| link(o, "narrow").utilisation).sum::<f64>() / seeds as f64;
        println!("{recognise}: utilisation {util:.3}");
        for (at, flow) in scenario.flows.iter().enumerate() {
            let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / seeds as f64;
            let adaptive = mean(&|o| of_flow(o, at, "adaptive").unwrap_or(f64::NAN));
            let mbps = mean(&|o| throughput(o, &flow.name) / 1e6);
            let times: Vec<_> = outcomes
                .iter()
                .map(|o| of_flow(o, at, "recognised_at_s").map_or("-".into(), |t| format!("{t:.0}")))
                .collect();
            println!("  {:14} adaptive {adaptive:.2} {mbps:.3} Mb/s  {}", flow.name, times.join(" "));
        }
    }
}
