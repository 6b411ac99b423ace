//! Tests of parameters and profiles.

use apportion_core::param::{ByName as _, ParamError};

use super::*;
use crate::params::tests::check_each_alone;

/// A value different from the default of `rfc` and `ns2-2000` for every parameter.
const OTHER: &[(&str, &str)] = &[
    ("algorithm", "tahoe"),
    ("sack_recovery", "pipe"),
    ("segment", "512B"),
    ("header", "52B"),
    ("ack", "52B"),
    ("sack_option", "2B"),
    ("window", "64p"),
    ("send_buffer", "64kB"),
    ("window_scale", "false"),
    ("initial_window", "10p"),
    ("initial_ssthresh", "17p"),
    ("dupack_threshold", "4"),
    ("limited_transmit", "false"),
    ("delayed_ack", "3 50ms aligned"),
    ("quick_acks", "8"),
    ("ack_gap_fill", "false"),
    ("delay_repeat", "true"),
    ("tick", "500ms"),
    ("min_rto", "300ms"),
    ("min_variance", "50ms"),
    ("max_rto", "120s"),
    ("initial_rto", "2s"),
    ("max_backoff", "16"),
    ("forget_srtt", "true"),
    ("stale_rto", "true"),
    ("ack_ends_backoff", "true"),
    ("timestamps", "true"),
    ("syn", "false"),
    ("linear_syns", "4"),
    ("fin", "false"),
    ("nagle", "false"),
    ("ecn", "true"),
    ("bug_fix", "false"),
    ("fast_again", "true"),
    ("inflate", "always"),
    ("recovery_burst", "4"),
    ("halving", "window"),
    ("truncate_ssthresh", "true"),
    ("truncate_cwnd", "true"),
    ("byte_counting", "false"),
    ("abc_limit", "2"),
    ("cubic", "linux"),
    ("hystart", "true"),
    ("pacing", "true"),
    ("exit", "grow"),
    ("idle", "timeout"),
];

#[test]
fn every_parameter_is_set_and_read_back_and_changes_nothing_else() {
    check_each_alone(&rfc(), OTHER);
}

#[test]
fn every_profile_is_possible_and_prints_what_it_reads() {
    for entry in PROFILES {
        let params = TcpParams::profile(entry.name).unwrap();
        assert_eq!(params.check(), Ok(()), "{}", entry.name);
        let mut copy = rfc();
        for param in TcpParams::PARAMS {
            copy.set(param.name, &params.get(param.name).unwrap()).unwrap();
        }
        assert_eq!(copy, params, "{}", entry.name);
    }
    assert_eq!(TcpParams::profile("vegas"), None);
}

#[test]
fn pacing_names_the_controls_that_always_pace() {
    let source = TcpParams::PARAMS.iter().find(|param| param.name == "pacing").unwrap().source;
    let named =
        source.split_once("; ").unwrap().1.strip_suffix(" always pace").unwrap().replace(" and ", ", ");
    let pacing: Vec<_> = ALGORITHMS.iter().filter(|entry| entry.paces()).map(|entry| entry.name).collect();
    assert_eq!(named.split(", ").collect::<Vec<_>>(), pacing);
}

#[test]
fn the_profiles_of_ns2_differ_where_its_defaults_changed() {
    let (then, now) = (ns2_2000(), ns2_235());
    let moved: Vec<_> =
        TcpParams::PARAMS.iter().filter(|p| then.get(p.name) != now.get(p.name)).map(|p| p.name).collect();
    let expected = "header initial_window limited_transmit ack_gap_fill tick min_rto max_rto initial_rto \
                    max_backoff stale_rto syn inflate truncate_cwnd";
    assert_eq!(moved.join(" "), expected);
}

#[test]
fn the_two_way_tcp_of_ns2_differs_from_the_one_way_one_in_what_its_traces_show() {
    let (one_way, two_way) = (ns2_2000(), ns2_full());
    let moved: Vec<_> = TcpParams::PARAMS
        .iter()
        .filter(|p| one_way.get(p.name) != two_way.get(p.name))
        .map(|p| p.name)
        .collect();
    let expected =
        "header delayed_ack ack_gap_fill delay_repeat ack_ends_backoff syn fast_again inflate idle";
    assert_eq!(moved.join(" "), expected);
}

#[test]
fn what_cannot_be_is_refused_with_a_reason_and_changes_nothing() {
    let known: Vec<_> = ALGORITHMS.iter().map(|entry| entry.name).collect();
    let none_of_these = format!("not one of {}", known.join(", "));
    let cases = [
        ("segments", "1000B", "unknown TCP parameter (did you mean `segment`?); known here: algorithm, "),
        ("segment", "1000", "the unit is missing"),
        ("segment", "0B", "at least 1 byte"),
        ("segment", "70kB", "at most 65535"),
        // 40 bytes of header are one too many.
        ("segment", "65496B", "at most 65535"),
        ("header", "18446744073709551615B", "at most 65535"),
        // 65535 - 4 - 24 = 65507.
        ("ack", "65508B", "at most 65535"),
        ("sack_option", "18446744073709551615B", "at most 65535"),
        ("window", "100B", "at least one full packet"),
        ("window", "2000MB", "2^30"),
        ("window", "many", "or \"20p\""),
        ("initial_window", "0p", "at least 1p"),
        ("initial_window", "735440p", "2^30"),
        ("initial_window", "two", "rfc5681"),
        ("initial_ssthresh", "none", "unlimited"),
        ("dupack_threshold", "0", "at least 1"),
        ("dupack_threshold", "-1", "`-1` is not a whole number from 0 to"),
        ("segment", "2GB", "unknown unit `GB` (known"),
        ("max_backoff", "0", "at least 1"),
        ("max_backoff", "some", "whole number"),
        ("recovery_burst", "0", "at least 1"),
        ("abc_limit", "0", "at least 1"),
        ("max_rto", "1ms", "min_rto <= max_rto"),
        ("min_rto", "100s", "min_rto <= max_rto"),
        ("initial_rto", "0s", "initial_rto > 0"),
        ("delayed_ack", "2", "as in"),
        ("delayed_ack", "0 10ms", "at least one packet"),
        ("delayed_ack", "2 0s", "more than no time"),
        ("delayed_ack", "2 10ms late", "as in"),
        ("algorithm", "westwood", &*none_of_these),
        ("ecn", "yes", "`yes` is neither true nor false"),
    ];
    for (name, text, reason) in cases {
        let mut params = rfc();
        let ParamError { key, message } = params.set(name, text).unwrap_err();
        assert_eq!(key, name);
        assert!(message.contains(reason), "{name} = {text}: {message}");
        assert_eq!(params, rfc(), "{name} = {text}");
    }
}

#[test]
fn parameters_without_effect_are_known() {
    let unused = |profile: &str| {
        let params = TcpParams::profile(profile).unwrap();
        let unused: Vec<_> =
            TcpParams::PARAMS.iter().map(|entry| entry.name).filter(|name| !params.uses(name)).collect();
        unused.join(" ")
    };
    assert_eq!(unused("rfc"), "hystart pacing");
    let of_rack = "limited_transmit stale_rto ack_ends_backoff bug_fix fast_again inflate recovery_burst truncate_cwnd exit";
    assert_eq!(unused("linux"), of_rack);
    assert!(UNUSED_BY_RACK.iter().all(|name| TcpParams::PARAMS.iter().any(|entry| entry.name == *name)));
}
