//! All experiments of probabilistic fair drop exist, under the names that scripts rely on.

use apportion_reproduce::expect::Op;
use apportion_reproduce::runs::{Attribute, attributes_of};
use apportion_reproduce::{Plan, Scope};

use crate::common::{check_names, folder, paper};

/// Ids with their metrics, in the order of the file.
const EXPERIMENTS: &[(&str, &[&str])] = &[
    ("pfd/fig1", &["long_rtt_share_over_fair_share"]),
    (
        "pfd/fig2",
        &[
            "together_over_chance/rnd_above_chance",
            "distance_from_chance/lqd_rnd_minus_pfd",
            "cut_again/lqd_rnd_minus_pfd",
            "together_over_chance/pfd",
            "together_over_chance/lqd",
            "together_over_chance/rnd",
            "cut_again/pfd",
            "cut_again/lqd",
            "cut_again/rnd",
        ],
    ),
    (
        "pfd/locality",
        &[
            "distance_from_chance/lqd_rnd_minus_pfd",
            "cut_again/lqd_rnd_minus_pfd",
            "together_over_chance/pfd",
            "together_over_chance/lqd",
            "together_over_chance/rnd",
            "cut_again/pfd",
            "cut_again/lqd",
            "cut_again/rnd",
        ],
    ),
    ("pfd/fig5", &["goodput_pfd_minus_best_other", "goodput_mean_mbps/pfd"]),
    ("pfd/fig6", &["fraction_of_buffers_where_pfd_best", "jain/min_over_schemes"]),
    (
        "pfd/fig7",
        &[
            "goodput_rnd_minus_pfd/small_buffer",
            "jain_lqd_minus_rnd",
            "jain_pfd_minus_lqd",
            "goodput_red_rank",
            "jain_red",
            "jain10s_pfd_minus_lqd/b_ge_40",
        ],
    ),
    (
        "pfd/fig7-rate",
        &[
            "goodput_pfd_over_lqd/30p",
            "goodput_pfd_over_lqd/60p",
            "goodput_pfd_over_lqd/120p",
            "goodput_pfd_over_red/30p",
            "goodput_pfd_over_red/60p",
            "goodput_pfd_over_red/120p",
            "goodput_pfd_minus_rnd/10p",
            "goodput_pfd_minus_rnd/30p",
            "goodput_pfd_minus_rnd/60p",
            "goodput_pfd_minus_rnd/120p",
            "jain_lqd_minus_rnd/30p",
            "jain_pfd_minus_lqd/30p",
            "jain_red/30p",
            "jain_lqd_minus_rnd/60p",
            "jain_pfd_minus_lqd/60p",
            "jain_red/60p",
            "jain_lqd_minus_rnd/120p",
            "jain_pfd_minus_lqd/120p",
            "jain_red/120p",
        ],
    ),
    ("pfd/mix", &["jain_pfd_minus_rnd"]),
    (
        "pfd/fig8",
        &[
            "jain_dimensioned_minus_equal",
            "goodput_equal_minus_dimensioned",
            "goodput_change_longest_rtt",
            "slope_jain_vs_buffer",
            "jain_additive_minus_equal/b_ge_50",
        ],
    ),
    (
        "pfd/fig8-rate",
        &[
            "jain_dimensioned_minus_equal/30p/from_10mbit",
            "jain_dimensioned_minus_equal/30p/to_5mbit",
            "jain_dimensioned_minus_equal/60p/from_10mbit",
            "jain_dimensioned_minus_equal/60p/to_5mbit",
            "jain_dimensioned_minus_equal/120p/from_10mbit",
            "jain_dimensioned_minus_equal/120p/to_5mbit",
            "goodput_equal_minus_dimensioned/30p",
            "goodput_equal_minus_dimensioned/60p",
            "goodput_equal_minus_dimensioned/120p",
            "goodput_equal_minus_dimensioned/30p/20mbit",
            "goodput_change_longest_rtt/30p",
            "goodput_change_longest_rtt/60p",
            "goodput_change_longest_rtt/120p",
        ],
    ),
    (
        "pfd/fig8-10mbit",
        &[
            "jain_dimensioned_minus_equal/to_120p",
            "jain_dimensioned_minus_equal/from_200p",
            "slope_jain_vs_buffer/60p_to_240p",
            "slope_jain_vs_buffer/all",
        ],
    ),
    ("pfd/equivalence", &["differing_drop_events"]),
];

#[test]
fn every_experiment_and_metric_is_there_by_its_name() {
    check_names(&paper("pfd"), EXPERIMENTS);
}

#[test]
fn every_scenario_loads_as_it_is_with_the_mechanism_off_and_in_every_variant() {
    let plan = |key, scope| Plan::new(vec![paper(key)], &[], scope).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(plan("pfd", Scope::Usual).papers[0].experiments.len(), EXPERIMENTS.len());
    assert!(!plan("pfd", Scope::Variants(&[])).papers[0].variants.is_empty());
    // Each experiment runs once per control.
    assert!(plan("pfd", Scope::Ablated).papers[0].experiments.len() > EXPERIMENTS.len());
    plan("pfd-extensions", Scope::Usual);
    plan("pfd-stress", Scope::Ablated);
}

#[test]
fn what_is_beyond_the_paper_is_recorded_unless_it_follows_from_the_scenario() {
    let follows = ["front", "excess", "return", "bursts"].map(|name| format!("pfd-extensions/{name}"));
    for experiment in paper("pfd-extensions").content.experiments {
        let has_bounds = follows.contains(&experiment.id);
        assert!(
            experiment.metrics.iter().all(|metric| (metric.op != Op::Record) == has_bounds),
            "{}",
            experiment.id
        );
    }
}

#[test]
fn round_trips_are_those_of_the_figures() {
    let rtts = |name: &str| -> Vec<f64> {
        let path = folder().join("pfd").join(name);
        let text = std::fs::read_to_string(&path).unwrap();
        let suite = apportion_scenario::load(&text, &path, &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        // Flows are sorted by name, tcp.10 before tcp.2; the group keeps its own order.
        attributes_of(scenario, &(0..10).collect::<Vec<_>>(), Attribute::Rtt).unwrap()
    };
    let sorted = |name: &str| {
        let mut all: Vec<i64> = rtts(name).into_iter().map(|rtt| rtt.round() as i64).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(sorted("equal.toml"), [20; 10]);
    assert_eq!(sorted("spread.toml"), (1..=10).map(|i| 20 * i).collect::<Vec<_>>());
    assert_eq!(sorted("mix.toml"), [vec![20; 5], vec![200; 5]].concat());
    assert_eq!(sorted("long.toml"), [vec![20; 9], vec![200; 1]].concat());
}
