//! The experiments of probabilistic packet scheduling are all there, by the names that scripts rely on.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

use std::path::{Path, PathBuf};

use apportion_reproduce::Paper;
use apportion_reproduce::expect::{self, Op};

/// Ids with the names of their metrics, in the order of the file.
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
    expect::read(&file()).unwrap()
}

#[test]
fn every_experiment_and_metric_is_there_by_its_name() {
    let paper = paper();
    let found: Vec<(&str, Vec<&str>)> = paper
        .content
        .experiments
        .iter()
        .map(|e| (e.id.as_str(), e.metrics.iter().map(|metric| metric.name.as_str()).collect()))
        .collect();
    let expected: Vec<(&str, Vec<&str>)> =
        EXPERIMENTS.iter().map(|(id, names)| (*id, names.to_vec())).collect();
    assert_eq!(found, expected);
}

#[test]
fn every_experiment_but_two_says_what_its_mechanism_is_needed_for() {
    // The sign of Fig. 11, and that more bits are no worse, do not show the mechanism.
    let silent: Vec<String> = paper()
        .content
        .experiments
        .into_iter()
        .filter(|experiment| experiment.metrics.iter().all(|metric| !metric.breaks))
        .map(|experiment| experiment.id)
        .collect();
    assert_eq!(silent, ["pps/fig11-rtt-share", "pps/bits"]);
}

#[test]
fn shares_sum_to_what_the_links_carry() {
    // Table I: A + C + D on 0.9 Mb/s and A + B on 1.2 Mb/s; Table II: 1.8 and 1.2 Mb/s. A slip of a digit shows.
    let paper = paper();
    let value = |id: &str| {
        let experiment = paper.content.experiments.iter().find(|experiment| experiment.id == id).unwrap();
        experiment.metrics.iter().find(|metric| metric.op == Op::Approx).unwrap().value.all().to_vec()
    };
    for (id, last) in [("pps/table1-sender", 0.9), ("pps/table2-sender", 1.8)] {
        let [a, b, c, d] = value(id)[..] else { panic!("{id}") };
        assert!((a + c + d - last).abs() < 0.02 && (a + b - 1.2).abs() < 0.02, "{id}");
    }
}
