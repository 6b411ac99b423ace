//! All experiments of probabilistic packet scheduling exist, under the names that scripts rely on.

use std::path::{Path, PathBuf};

use apportion_core::units::Rate;
use apportion_reproduce::expect::{self, Op};
use apportion_reproduce::{Files, Paper, Plan, Scope};

use crate::common::{self, check_names};

/// Ids with their metrics, in the order of the file.
const EXPERIMENTS: &[(&str, &[&str])] = &[
    (
        "pps/fig4-onehop",
        &[
            "link_utilisation",
            "slope_mbps_per_ticket_rate",
            "r2_throughput_vs_tickets",
            "tickets_per_packet_mean",
            "r2_with_factor_disabled",
        ],
    ),
    (
        "pps/fig6-multihop",
        &["link_utilisation", "sum_A_over_sum_B", "throughput_mbps/A", "throughput_mbps/B"],
    ),
    (
        "pps/fig7-unused",
        &["link_utilisation", "throughput_mbps/limited", "throughput_mbps/A1-5", "throughput_mbps/B1-5"],
    ),
    (
        "pps/fig8-arrival",
        &["throughput_mbps/before/B_C", "throughput_mbps/after/A_B_C", "convergence_time_s"],
    ),
    ("pps/fig1-cbr", &["throughput_mbps/A_B_C", "ratio_A_C_when_B_silent"]),
    (
        "pps/fig9-tickets",
        &["throughput_mbps/before/A_B_C", "throughput_mbps/after/A_B_C", "relative_change_of_C"],
    ),
    (
        "pps/fig9-cause",
        &[
            "throughput_mbps/A_100s_to_103s/as-is",
            "throughput_mbps/A_100s_to_103s/no-policing",
            "throughput_mbps/A_100s_to_103s/no-filter",
            "throughput_mbps/A_100s_to_103s/tred-1s",
            "throughput_mbps/A_100s_to_103s/n-1",
            "throughput_mbps/A_100s_to_103s/factor-off",
            "throughput_mbps/A_100s_to_103s/marker-1s",
            "throughput_mbps/A_100s_to_103s/marker-02s",
        ],
    ),
    ("pps/fig2-receiver", &["throughput_mbps/A_B_C"]),
    (
        "pps/table1-sender",
        &["throughput_mbps/A_B_C_D", "expected_mbps/A_B_C_D", "utilisation/S7-S9", "utilisation/S4-S6"],
    ),
    ("pps/table1-receiver", &["throughput_mbps/A_B_C_D"]),
    (
        "pps/table2-sender",
        &["throughput_mbps/A_B_C_D", "expected_mbps/A_B_C_D", "utilisation/S7-S9", "utilisation/S4-S6"],
    ),
    ("pps/table2-receiver", &["throughput_mbps/A_B_C_D"]),
    (
        "pps/table3-rtt",
        &[
            "fair_share_mbps",
            "sigma/pps/same_rtt",
            "sigma/reno/same_rtt",
            "sigma/pps/var_rtt",
            "sigma/reno/var_rtt",
            "throughput_mbps/pps/rtt300..30",
            "throughput_mbps/reno/rtt300..30",
            "throughput_mbps/pps/rtt30",
            "throughput_mbps/reno/rtt30",
            "sigma_ratio_pps_over_reno/var_rtt",
            "sigma_ratio_pps_over_reno/same_rtt",
            "loglog_slope_throughput_vs_rtt/pps",
            "loglog_slope_throughput_vs_rtt/reno",
            "jain/pps_var_rtt",
            "jain/reno_var_rtt",
        ],
    ),
    ("pps/fig4-onehop-receiver", &["slope_mbps_per_ticket_rate", "r2_throughput_vs_tickets"]),
    ("pps/fig6-multihop-receiver", &["sum_A_over_sum_B", "throughput_mbps/A", "throughput_mbps/B"]),
    ("pps/fig7-unused-receiver", &["throughput_mbps/A1-5", "throughput_mbps/B1-5"]),
    (
        "pps/fig8-arrival-receiver",
        &["throughput_mbps/before/B_C", "throughput_mbps/after/A_B_C", "convergence_time_s"],
    ),
    ("pps/fig1-cbr-receiver", &["throughput_mbps/A_B_C", "ratio_A_C_when_B_silent"]),
    ("pps/fig9-tickets-receiver", &["throughput_mbps/before/A_B_C", "throughput_mbps/after/A_B_C"]),
    (
        "pps/table3-rtt-receiver",
        &[
            "sigma/pps/same_rtt",
            "sigma/pps/var_rtt",
            "throughput_mbps/pps/rtt300..30",
            "throughput_mbps/pps/rtt30",
            "sigma_ratio_pps_over_reno/var_rtt",
            "sigma_ratio_pps_over_reno/same_rtt",
            "loglog_slope_throughput_vs_rtt/pps",
            "jain/pps_var_rtt",
        ],
    ),
    ("pps/fig11-rtt-share-receiver", &["relative_loss_flow10_minus_flow1"]),
    ("pps/table4-diffserv-receiver", &["pps_mbps/all_cases/A_B_C"]),
    ("pps/fig12-wcsfq-receiver", &["r2_pps_minus_r2_wcsfq"]),
    ("pps/bits-receiver", &["r2_17bit_minus_r2_4bit"]),
    ("pps/fig11-rtt-share", &["relative_loss_flow10_minus_flow1"]),
    (
        "pps/table4-diffserv",
        &[
            "diffserv_mbps/underbooked/A_B_C",
            "diffserv_mbps/overbooked/A_B_C",
            "diffserv_mbps/matched/A_B_C",
            "pps_mbps/all_cases/A_B_C",
            "total_mbps",
        ],
    ),
    ("pps/fig12-wcsfq", &["r2_pps_minus_r2_wcsfq", "r2_wcsfq_udp"]),
    ("pps/bits", &["r2_17bit_minus_r2_4bit"]),
];

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers/pps/expect.toml")
}

fn paper() -> Paper {
    common::paper("pps")
}

#[test]
fn every_experiment_and_metric_is_there_by_its_name() {
    check_names(&paper(), EXPERIMENTS);
}

#[test]
fn every_experiment_says_what_its_mechanism_is_needed_for() {
    // The sign of Fig. 11 does not depend on the mechanism, and refuted claims cannot show it.
    let silent: Vec<String> = paper()
        .content
        .experiments
        .into_iter()
        .filter(|experiment| experiment.metrics.iter().all(|metric| metric.breaks.is_empty()))
        .filter(|experiment| experiment.metrics.iter().all(|metric| metric.refuted.is_none()))
        .map(|experiment| experiment.id)
        .collect();
    assert_eq!(silent, ["pps/fig11-rtt-share-receiver", "pps/fig11-rtt-share"]);
}

#[test]
fn shares_sum_to_what_the_links_carry() {
    // Table I: A + C + D on 0.9 Mb/s and A + B on 1.2 Mb/s; Table II: 1.8 and 1.2 Mb/s. This detects a slip
    // of a digit.
    let paper = paper();
    let value = |id: &str| {
        let experiment = paper.content.experiments.iter().find(|experiment| experiment.id == id).unwrap();
        let metric = experiment.metrics.iter().find(|metric| metric.op == Op::Approx).unwrap();
        metric.value.as_ref().unwrap().all().to_vec()
    };
    for (id, last) in [("pps/table1-sender", 0.9), ("pps/table2-sender", 1.8)] {
        let [a, b, c, d] = value(id)[..] else { panic!("{id}") };
        assert!((a + c + d - last).abs() < 0.02 && (a + b - 1.2).abs() < 0.02, "{id}");
    }
}

#[test]
fn every_scenario_loads_as_it_is_and_with_the_mechanism_off() {
    let plan = |scope| Plan::new(vec![paper()], &[], scope).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan(Scope::Usual).papers[0].experiments.len(), EXPERIMENTS.len());
    // Each experiment has two controls: the ticket factor off, and a FIFO.
    assert_eq!(plan(Scope::Ablated).papers[0].experiments.len(), 2 * EXPERIMENTS.len());
}

#[test]
fn every_variant_can_be_run_and_the_one_of_packet_sizes_is_in_every_run() {
    let names = |scope| -> Vec<String> {
        let plan = Plan::new(vec![paper()], &[], scope).unwrap_or_else(|error| panic!("{error}"));
        plan.papers[0].variants.iter().map(|planned| planned.variant.name.clone()).collect()
    };
    assert_eq!(names(Scope::Usual), ["1000-byte packets"]);
    assert_eq!(names(Scope::Variants(&[])).len(), paper().content.variants.len());
    assert!(names(Scope::Ablated).is_empty());
}

#[test]
fn what_goes_beyond_the_paper_is_a_paper_of_its_own() {
    let path = file().with_file_name("../pps-extensions/expect.toml");
    let beyond = expect::read(&path, Files::Disk).unwrap_or_else(|error| panic!("{error}"));
    let plan = Plan::new(vec![paper(), beyond], &["pps".to_owned()], Scope::Usual).unwrap();
    assert_eq!(plan.papers.len(), 1);
    let beyond = expect::read(&path, Files::Disk).unwrap();
    assert!(Plan::new(vec![beyond], &[], Scope::Usual).is_ok());
}

#[test]
fn stress_tests_have_a_paper_of_their_own_with_plain_kinds() {
    let path = file().with_file_name("../pps-stress/expect.toml");
    let stress = expect::read(&path, Files::Disk).unwrap_or_else(|error| panic!("{error}"));
    assert!(Plan::new(vec![stress], &[], Scope::Ablated).is_ok());
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let file = file.unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        let is_scenario = file.extension().is_some_and(|end| end == "toml") && !file.ends_with("expect.toml");
        assert!(!is_scenario || !text.contains("preset"), "{}", file.display());
    }
}

#[test]
fn entitlements_are_the_expected_column_of_the_tables() {
    let shares = |name: &str, set: &[(&str, &str)]| -> Vec<f64> {
        let path = file().with_file_name(name);
        let set: Vec<_> = set.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
        let text = std::fs::read_to_string(&path).unwrap();
        let suite = apportion_scenario::load(&text, &path, &set, &|path| std::fs::read(path)).unwrap();
        suite.points[0].scenario.entitlements().unwrap().into_iter().map(Rate::as_mbit_f64).collect()
    };
    let near = |shares: &[f64], expected: &[f64]| {
        shares.len() == expected.len() && shares.iter().zip(expected).all(|(a, b)| (a / b - 1.0).abs() < 0.01)
    };
    // The paper prints two digits: 0.67 and 0.33 are 2/3 and 1/3.
    let first = [0.6, 0.6, 0.2, 0.1];
    let second = [0.8, 0.4, 2.0 / 3.0, 1.0 / 3.0];
    for (name, link) in [("table1.toml", "link.S7-S9.rate"), ("table1-receiver.toml", "link.S9-S7.rate")] {
        assert!(near(&shares(name, &[]), &first), "{name}: {:?}", shares(name, &[]));
        let wide = shares(name, &[(link, "1.8Mbit")]);
        assert!(near(&wide, &second), "{name}: {wide:?}");
    }
    for name in ["fig1.toml", "fig2.toml"] {
        assert!(near(&shares(name, &[]), &[0.5, 0.25, 0.25]), "{name}");
    }
    let limited = [("flow.B.source", "{ kind = \"cbr\", rate = \"0.16Mbit\", packet = \"500B\" }")];
    assert!(near(&shares("fig1.toml", &limited), &[0.56, 0.16, 0.28]));
}
