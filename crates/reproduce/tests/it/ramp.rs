//! All experiments of RAMP, from the paper and beyond it, exist under the names that scripts rely on.

use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_reproduce::{Plan, Scope};
use apportion_scenario::model::{Cbr, Scenario, Setting, Source, Transport};

use crate::common::{check_names, folder, paper};

/// Ids with their metrics, in the order of the file.
const EXPERIMENTS: &[(&str, &[&str])] = &[
    (
        "ramp/fig4-isolation",
        &[
            "final_accumulated_error_ramp_fraction",
            "final_accumulated_error_fcfs_fraction",
            "over_allocation_ratio",
        ],
    ),
    ("ramp/fig5-track", &["mean_abs_allocation_error_fraction", "mean_fill_bytes"]),
    (
        "ramp/fig6-step",
        &[
            "response_time_ms",
            "settling_time_ms",
            "overshoot_fraction_of_step",
            "extra_device_delay_ms",
            "safe_load_factor",
        ],
    ),
    (
        "ramp/fig6-step-openloop",
        &[
            "response_time_ms",
            "settling_time_ms",
            "overshoot_fraction_of_step",
            "response_time_ms/as_printed",
            "settling_time_ms/as_printed",
            "overshoot_fraction_of_step/as_printed",
        ],
    ),
    (
        "ramp/fig78-cc",
        &[
            "rto_count",
            "cwnd_peak_ramp",
            "cwnd_peak_fcfs",
            "throughput_ratio_ramp_over_fcfs",
            "sawtooth_per_s_ramp",
            "sawtooth_per_s_fcfs",
            "sawtooth_ratio_ramp_over_fcfs",
            "rtt_increase_ms/2_1.5_0.5_mbps",
            "rtt_increase_0.5_over_2",
        ],
    ),
    ("ramp/flowctl", &["throughput_ratio_ramp_over_fcfs"]),
];

const EXTENSIONS: &[(&str, &[&str])] = &[
    ("ramp-extensions/silence", &["reach_ms", "reach_ms/keep_delayed_min-rto"]),
    (
        "ramp-extensions/overload",
        &["exceptions_within_200_ms", "exceptions_before", "throughput_mbps/call.1_call.2_greedy"],
    ),
    (
        "ramp-extensions/windows",
        &[
            "throughput_mbps_to_16_kb/printed",
            "throughput_mbps_to_16_kb/time",
            "throughput_mbps_to_16_kb/designed",
            "throughput_mbps_to_16_kb/both",
            "throughput_mbps_from_24_kb/printed",
        ],
    ),
    (
        "ramp-extensions/controller",
        &[
            "overshoot/designed_predictor-150",
            "settling_over_printed/designed_predictor-150",
            "response/each",
            "settling/each",
            "overshoot/each",
        ],
    ),
    ("ramp-extensions/delay", &["delay_ms/time", "delay_ms/designed", "delay_ms/bytes"]),
    (
        "ramp-extensions/interfaces",
        &[
            "accumulated_error/near",
            "accumulated_error/far_before",
            "throughput_mbps/greedy_far_overloaded",
            "exceptions/near_far",
        ],
    ),
    (
        "ramp-extensions/videos",
        &[
            "drops_adaptive_over_rigid",
            "throughput_mbps_total/rigid_adaptive",
            "jain/rigid_adaptive",
            "mean_fill_bytes/rigid_adaptive",
        ],
    ),
    (
        "ramp-extensions/periods",
        &[
            "fast_fill_bytes_max_less_min/equal_own",
            "slow_fill_bytes_max_less_min/equal_own",
            "throughput_mbps/fast_slow.1_own",
        ],
    ),
    ("ramp-extensions/loop", &["overshoot/printed_sum", "overshoot/filter", "fill_bytes_max/change"]),
    ("ramp-extensions/credit", &["fill_bytes_after_50_ms"]),
    ("ramp-extensions/slower-link", &["delay_ms/before_after"]),
];

#[test]
fn every_experiment_and_metric_is_there_by_its_name() {
    check_names(&paper("ramp"), EXPERIMENTS);
    check_names(&paper("ramp-extensions"), EXTENSIONS);
}

#[test]
fn every_scenario_loads_as_the_runs_and_variants_have_it() {
    let plan =
        |key: &str, scope| Plan::new(vec![paper(key)], &[], scope).unwrap_or_else(|error| panic!("{error}"));
    for (key, experiments) in [("ramp", EXPERIMENTS), ("ramp-extensions", EXTENSIONS)] {
        assert_eq!(plan(key, Scope::Usual).papers[0].experiments.len(), experiments.len());
        // All experiments but those without a mechanism to switch off.
        assert!(plan(key, Scope::Ablated).papers[0].experiments.len() >= 5);
    }
    assert!(!plan("ramp", Scope::Variants(&[])).papers[0].variants.is_empty());
}

#[test]
fn every_scenario_of_stress_settings_loads_as_the_runs_have_it() {
    let plan =
        |scope| Plan::new(vec![paper("ramp-stress")], &[], scope).unwrap_or_else(|error| panic!("{error}"));
    let experiments = plan(Scope::Usual).papers[0].experiments.len();
    // Each experiment has at least one mechanism to switch off, and a plan for each.
    assert!(plan(Scope::Ablated).papers[0].experiments.len() >= experiments);
}

fn scenario(name: &str) -> Scenario {
    let path = folder().join("ramp").join(name);
    let text = std::fs::read_to_string(&path).unwrap();
    apportion_scenario::load(&text, &path, &[], &|path| std::fs::read(path))
        .unwrap()
        .points
        .remove(0)
        .scenario
}

/// Rate of the only flow on the wire, in Mb/s, from its start and from each change on, with the times.
fn rates(scenario: &Scenario) -> Vec<(Time, f64)> {
    let [flow] = &scenario.flows[..] else { panic!("one flow") };
    let Source::Cbr(Cbr { rate, packet, .. }) = flow.source else { panic!("a constant rate") };
    // Over TCP a write is a full segment with 40 bytes of headers.
    let wire = match &flow.transport {
        Transport::Tcp(tcp) => {
            assert_eq!(tcp.segment, packet);
            packet + tcp.header
        }
        Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => packet,
    };
    let on_wire = |rate: Rate| {
        let mbit = rate.as_mbit_f64() * wire.get() as f64 / packet.get() as f64;
        (mbit * 1e5).round() / 1e5
    };
    let changes = scenario.changes.iter().map(|change| match change.to {
        Setting::FlowRate(_, rate) => (change.at, on_wire(rate)),
        _ => panic!("a rate"),
    });
    std::iter::once((Time::ZERO, on_wire(rate))).chain(changes).collect()
}

#[test]
fn the_benchmark_has_round_rates_on_the_wire() {
    let every_20_s = |rates: &[f64]| -> Vec<(Time, f64)> {
        rates.iter().enumerate().map(|(k, &rate)| (Time::from_secs(20 * k as u64), rate)).collect()
    };
    assert_eq!(rates(&scenario("track.toml")), every_20_s(&[0.4, 1.2, 2.4, 0.8, 0.4]));
    let step = every_20_s(&[0.4, 1.2, 0.4]);
    assert_eq!((rates(&scenario("step.toml")), rates(&scenario("datagrams.toml"))), (step.clone(), step));
}

#[test]
fn six_segments_fit_into_the_bottleneck_and_its_rate_changes_every_30_s() {
    let scenario = scenario("congestion.toml");
    let Transport::Tcp(tcp) = &scenario.flows[0].transport else { panic!("TCP") };
    assert_eq!(Bytes::new(6 * 1_024).get() / (tcp.segment + tcp.header).get(), 6);
    let times: Vec<_> = scenario.changes.iter().map(|change| change.at).collect();
    assert_eq!(times, [30, 60, 90, 120].map(Time::from_secs));
    assert_eq!(scenario.stop, Time::from_secs(150));
    // The samples resolve those of the controller.
    assert_eq!(scenario.sample, Span::from_millis(10));
}
