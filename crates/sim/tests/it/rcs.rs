//! Recursive congestion shares: an operator with two flows beside one with ten times as many.

use std::path::Path;

use crate::common::{run_with, throughput};

/// Throughput over entitlement of a flow of `few`, of `many` and of `other`, with this queue.
fn of_due(queue: &str) -> [f64; 3] {
    let text = format!(
        r#"
        seed = 1
        stop = "15s"
        measure_from = "5s"
        defaults.link = {{ rate = "1Gbit", delay = "5ms", queue = {queue} }}
        link.up = {{ from = "t", to = "u", rate = "20Mbit" }}
        link.down = {{ from = "u", to = "d" }}
        link.v = {{ from = "v", to = "t" }}
        link.a = {{ from = "a", to = "v" }}
        link.b = {{ from = "b", to = "v" }}
        link.few = {{ from = "few", to = "a" }}
        link.many = {{ from = "many", to = "b" }}
        link.other = {{ from = "other", to = "t" }}
        agreement.t = {{ payer = "t", provider = "u" }}
        agreement.v = {{ payer = "v", provider = "t" }}
        agreement.a = {{ payer = "a", provider = "v" }}
        agreement.b = {{ payer = "b", provider = "v" }}
        flow.few = {{ from = "few", to = "d", tcp = "reno", count = 2 }}
        flow.many = {{ from = "many", to = "d", tcp = "bbr", count = 20 }}
        flow.other = {{ from = "other", to = "d", tcp = "cubic" }}
        "#
    );
    let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let scenario = &suite.unwrap_or_else(|problems| panic!("{problems:?}")).points[0].scenario;
    // Half of the link to `other`; a quarter to the operator of `few`, and one to that of `many`.
    let due = scenario.entitlements().unwrap();
    let outcome = run_with(scenario, 1);
    ["few.1", "many.7", "other"].map(|name| {
        let at = scenario.flows.iter().position(|flow| flow.name == name).unwrap();
        throughput(&outcome, name) / due[at].as_bit() as f64
    })
}

#[test]
fn the_number_of_flows_of_an_operator_does_not_count() {
    let full = of_due("\"rcs\"");
    assert!(full.iter().all(|share| (0.9..=1.1).contains(share)), "{full:?}");
    // By one hop the flows below `v` share its half; by flows all of them share the link.
    let one_hop = of_due("{ kind = \"rcs\", levels = 1 }");
    assert!(one_hop[0] < 0.3 && (0.9..=1.1).contains(&one_hop[2]), "{one_hop:?}");
    let by_flows = of_due("\"drr\"");
    assert!(by_flows[0] < 0.4 && by_flows[2] < 0.2, "{by_flows:?}");
}
