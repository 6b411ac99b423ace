//! All experiments of soft fair flow control exist, under the names that scripts rely on.

use apportion_core::units::Time;
use apportion_reproduce::{Plan, Scope};
use apportion_scenario::model::Scenario;

use crate::common::{check_names, folder, paper};

/// Ids with their metrics, in the order of the file.
const EXPERIMENTS: &[(&str, &[&str])] = &[
    ("sffc/fig2", &["cbr_final_throughput_mbps", "cbr_measured_mbps/link1_2_3"]),
    (
        "sffc/fig7",
        &[
            "throughput_mbps_each/drr",
            "throughput_mbps/fifo",
            "jain/drr",
            "r2_throughput_vs_rate/fifo",
            "throughput_mbps_each/sffc",
        ],
    ),
    ("sffc/fig8", &["tcp_mbps/drr", "tcp_mbps/fifo", "tcp_mbps/sffc"]),
    (
        "sffc/fig9",
        &[
            "tcp_mean_fifo_over_drr",
            "tcp_mean_mbps/sffc",
            "udp_mean_mbps/sffc",
            "tcp_mean_fifo_over_sffc",
            "jain_drr_minus_sffc",
            "tcp_mean_mbps/nbq",
        ],
    ),
    (
        "sffc/fig10",
        &[
            "tcp_total_mbps/drr",
            "udp_total_mbps/drr",
            "udp_total_mbps/sffc",
            "udp_sffc_over_drr",
            "tcp_sffc_over_drr",
            "tcp_total_mbps_ideal/sffc_drr",
            "tcp_total_mbps/sffc",
            "tcp_total_mbps/nbq",
        ],
    ),
    (
        "sffc/fig12",
        &[
            "tcp_mean_drr_minus_fifo",
            "tcp_mean_mbps/drr",
            "tcp_mean_sffc_minus_drr",
            "tcp_mean_mbps_ideal/sffc_drr",
            "tcp_mean_reports_on_minus_off",
            "udp_at_first_link_mbps/sffc",
            "udp_at_sink_mbps/sffc",
            "udp_mbps/nbq_first_sink",
            "tcp_mean_mbps/nbq",
        ],
    ),
];

#[test]
fn every_experiment_and_metric_is_there_by_its_name() {
    check_names(&paper("sffc"), EXPERIMENTS);
}

#[test]
fn flows_of_stress_settings_are_due_what_their_texts_say() {
    // 10 - 20 · 0.064 Mb/s for two large and five TCP flows; 1 of 10 Mb/s for all datagrams.
    let needs = scenario("../sffc-stress/needs.toml", &[]);
    let level = (10.0f64 - 20.0 * 0.064) / 7.0;
    assert!(due(&needs, "tcp").iter().chain(&due(&needs, "large")).all(|rate| (rate - level).abs() < 1e-5));
    let many = scenario("../sffc-stress/many.toml", &[]);
    assert_eq!((due(&many, "tcp"), due(&many, "udp")), (vec![1.8; 5], vec![0.05; 20]));
}

#[test]
fn every_scenario_loads_as_the_runs_and_variants_have_it() {
    let plan = Plan::new(vec![paper("sffc")], &[], Scope::Usual).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan.papers[0].experiments.len(), EXPERIMENTS.len());
    let plan =
        Plan::new(vec![paper("sffc")], &[], Scope::Variants(&[])).unwrap_or_else(|error| panic!("{error}"));
    assert!(!plan.papers[0].variants.is_empty());
}

fn scenario(name: &str, set: &[(&str, &str)]) -> Scenario {
    let path = folder().join("sffc").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let set: Vec<_> = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    apportion_scenario::load(&text, &path, &set, &|path| std::fs::read(path))
        .unwrap()
        .points
        .remove(0)
        .scenario
}

/// Entitlements of the flows of a group in Mb/s, in their order.
fn due(scenario: &Scenario, group: &str) -> Vec<f64> {
    // From the time at which all have started.
    let all = scenario.entitlements_between(Time::from_secs(1), scenario.stop).unwrap();
    let flows = scenario.flows.iter().zip(all);
    let members = flows.filter(|(flow, _)| flow.name == group || flow.name.starts_with(&format!("{group}.")));
    members.map(|(_, rate)| (rate.as_mbit_f64() * 1e6).round() / 1e6).collect()
}

#[test]
fn flows_are_due_what_the_text_computes() {
    // Ten flows on 10 Mb/s; all datagrams on 1 Mb/s leave 9 to five TCP flows.
    let sharing = scenario("sharing.toml", &[]);
    assert_eq!((due(&sharing, "tcp"), due(&sharing, "udp")), (vec![1.0; 5], vec![1.0; 5]));
    let narrow = scenario("sharing.toml", &[("link.udp_sink.rate", "1Mbit")]);
    assert_eq!((due(&narrow, "tcp"), due(&narrow, "udp")), (vec![1.8; 5], vec![0.2; 5]));
    assert_eq!(due(&scenario("datagrams.toml", &[]), "udp"), [1.0; 10]);
    // 1 Mb/s at the end of the chain leaves 9 on each hop.
    let chain = scenario("chain.toml", &[]);
    assert_eq!((due(&chain, "tcp"), due(&chain, "udp")), (vec![1.8; 45], vec![1.0]));
    // The third link gives 1 Mb/s to each of six flows; the rest of the other links is for their TCP flows.
    let waste = scenario("waste.toml", &[]);
    let tcp = ["tcp1", "tcp2", "tcp3"].map(|group| due(&waste, group));
    assert_eq!(tcp, [vec![3.0; 3], vec![1.75; 4], vec![1.0; 5]]);
}

#[test]
fn the_datagrams_of_fig_2_are_due_less_on_each_link() {
    // One link at its rate, the others too fast to matter: 10 / 4, 8 / 5 and 6 / 6 (section 2). Bandwidth
    // that one link allocates and the next cannot carry is wasted, 1.5 Mb/s in all; the paper's formula has
    // the sign reversed.
    let rates = ["link.hop1.rate", "link.hop2.rate", "link.hop3.rate"];
    for (kept, share) in rates.iter().zip([2.5, 1.6, 1.0]) {
        let fast: Vec<_> = rates.iter().filter(|rate| *rate != kept).map(|rate| (*rate, "100Mbit")).collect();
        assert_eq!(due(&scenario("waste.toml", &fast), "udp"), [share], "{kept}");
    }
}

#[test]
fn every_hop_of_the_chain_has_five_tcp_flows_and_the_datagrams() {
    let chain = scenario("chain.toml", &[]);
    for hop in 1..=9 {
        let at = chain.links.iter().position(|link| link.name == format!("hop{hop}")).unwrap();
        let across = chain.flows.iter().filter(|flow| flow.path.iter().any(|id| id.index() == at));
        let names: Vec<_> = across.map(|flow| flow.name.clone()).collect();
        let first = 5 * hop - 4;
        let mut expected: Vec<_> = (first..first + 5).map(|i| format!("tcp.{i}")).collect();
        expected.push("udp".to_owned());
        let sorted = |mut names: Vec<String>| {
            names.sort();
            names
        };
        assert_eq!(sorted(names), sorted(expected), "hop{hop}");
    }
}
