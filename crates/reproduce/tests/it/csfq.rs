//! All experiments of core-stateless fair queueing exist, under the names that scripts rely on.

use apportion_reproduce::{Plan, Scope};

use crate::common::{check_names, folder, paper};

/// Ids with their metrics, in the order of the file.
const EXPERIMENTS: &[(&str, &[&str])] = &[
    (
        "csfq/fig5-kc06",
        &[
            "udp_throughput_mbps",
            "tcp_mcsfq_minus_csfq_mbps",
            "tcp_taildrop_minus_mcsfq_mbps",
            "udp_drops/csfq_mcsfq",
            "tcp_mbps/csfq_mcsfq_taildrop",
        ],
    ),
    (
        "csfq/fig6-kc01",
        &[
            "tcp_csfq_mbps",
            "tcp_mcsfq_over_taildrop",
            "tcp_mcsfq_mbps",
            "utilisation/mcsfq",
            "udp_drops/mcsfq",
            "udp_drops/csfq",
            "udp_drops/taildrop",
        ],
    ),
    ("csfq/kc-sensitivity", &["tcp_range_mcsfq_over_range_csfq"]),
    (
        "csfq/fig9-gfc",
        &[
            "ideal_goodput_mbps/A_B_C_X_Y",
            "min_goodput_over_guarantee/csfq_mcsfq",
            "max_rel_diff_csfq_vs_mcsfq",
            "max_rel_deviation_from_ideal/csfq_mcsfq",
            "ratio_short_over_long_same_bottleneck/csfq_mcsfq",
            "max_rel_diff_A_Y/mcsfq",
            "min_AB_goodput_over_guarantee/taildrop",
            "max_AB_goodput_over_guarantee/taildrop",
        ],
    ),
    (
        "csfq/gfc-unequal",
        &[
            "min_goodput_over_guarantee/mcsfq_estimate",
            "min_goodput_over_guarantee/no_guarantees",
            "min_goodput_over_guarantee/literal",
            "min_goodput_over_guarantee/deterministic",
        ],
    ),
];

#[test]
fn every_experiment_and_metric_is_there_by_its_name() {
    check_names(&paper("csfq"), EXPERIMENTS);
}

#[test]
fn every_scenario_loads_as_it_is_with_the_mechanism_off_and_in_every_variant() {
    let plan = |key, scope| Plan::new(vec![paper(key)], &[], scope).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan("csfq", Scope::Usual).papers[0].experiments.len(), EXPERIMENTS.len());
    // Each experiment runs once per control.
    assert!(plan("csfq", Scope::Ablated).papers[0].experiments.len() > EXPERIMENTS.len());
    assert!(!plan("csfq", Scope::Variants(&[])).papers[0].variants.is_empty());
    let beyond = plan("csfq-extensions", Scope::Usual).papers[0].experiments.len();
    assert!(plan("csfq-extensions", Scope::Ablated).papers[0].experiments.len() >= beyond);
}

#[test]
fn the_network_divides_as_the_text_computes() {
    let path = folder().join("csfq/gfc.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    let suite = apportion_scenario::load(&text, &path, &[], &|path| std::fs::read(path)).unwrap();
    let scenario = &suite.points[0].scenario;
    let due = |name: &str| {
        let at = scenario.flows.iter().position(|flow| flow.name == name).unwrap();
        scenario.entitlements().unwrap()[at].as_mbit_f64()
    };
    // Link 1 carries 4·3 + 3.6, link 2 is half reserved and its excess goes 10 %, 30 %, 60 % to B, A, C,
    // link 3 carries 4·3 + 10.8 (section 4.1).
    for kind in ["short", "long"] {
        for (flow, mbit) in [("A", 5.7), ("B", 3.9), ("C", 8.4), ("X", 3.9), ("Y", 5.7)] {
            let found = due(&format!("{flow}-{kind}"));
            assert!((found - mbit).abs() < 1e-6, "{flow}-{kind}: {found}");
        }
    }
    // Six guarantees of 3 Mb/s are half of link 2 (section 4.1).
    let link = scenario.links.iter().position(|link| link.name == "R2-R3").unwrap();
    let across = scenario.flows.iter().filter(|flow| flow.path.iter().any(|id| id.index() == link));
    let reserved: f64 = across.map(|flow| flow.guarantee.as_mbit_f64()).sum();
    assert_eq!((reserved, scenario.links[link].rate.as_mbit_f64()), (18.0, 36.0));
    // 30 ms over one link with short access links, 20 ms more per further link, 64 ms more with long access
    // links.
    let rtt = |name: &str| {
        let flow = scenario.flows.iter().find(|flow| flow.name == name).unwrap();
        let wires = flow.path.iter().chain(flow.back.iter());
        wires.map(|id| scenario.links[id.index()].delay.as_secs_f64() * 1e3).sum::<f64>().round()
    };
    assert_eq!(["C-short", "A-short", "C-long", "A-long"].map(rtt), [30.0, 50.0, 94.0, 114.0]);
    assert!(scenario.flows.iter().all(|flow| flow.connections == 15));
}
