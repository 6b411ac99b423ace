use apportion_linux::tcp::{congestion, window_clamp};

use super::*;

fn params(profile: &str, changes: &[(&str, &str)]) -> TcpParams {
    let mut params = TcpParams::profile(profile).unwrap();
    changes.iter().for_each(|(name, text)| params.set(name, text).unwrap());
    params
}

fn value(settings: &[Setting], name: &str) -> String {
    settings.iter().find(|setting| setting.name == name).unwrap().value.clone()
}

#[test]
fn headers_of_40_bytes_are_headers_without_timestamps() {
    assert_eq!(value(&settings(&[&params("rfc", &[])]).unwrap(), "tcp_timestamps"), "0");
    assert_eq!(value(&settings(&[&params("rfc", &[("header", "52B")])]).unwrap(), "tcp_timestamps"), "1");
}

#[test]
fn buffers_are_for_the_largest_window_of_a_host() {
    let (small, large) = (params("rfc", &[("window", "100kB")]), params("rfc", &[("window", "1MB")]));
    // Eight times 1 MB.
    assert_eq!(value(&settings(&[&small, &large]).unwrap(), "tcp_rmem"), "4096 8000000 8000000");
    // The maximum of the setting is 2^31 - 1.
    let huge = params("rfc", &[("window", "1000MB")]);
    assert_eq!(value(&settings(&[&huge]).unwrap(), "tcp_rmem"), "4096 2147483647 2147483647");
}

#[test]
fn flows_of_one_host_cannot_differ_in_what_it_has_once() {
    let (plain, sack) = (params("rfc", &[]), params("rfc", &[("algorithm", "sack")]));
    let conflict = settings(&[&plain, &sack]).unwrap_err();
    assert_eq!((conflict.parameter, conflict.name), ("algorithm", "tcp_sack"));
    // Reno and NewReno are the same to the kernel.
    assert!(settings(&[&plain, &params("rfc", &[("algorithm", "reno")])]).is_ok());
}

#[test]
fn without_scaling_no_window_is_larger_than_its_field() {
    assert_eq!(window(&params("rfc", &[("window_scale", "false")])), 65_535);
    assert_eq!(window(&params("rfc", &[])), 4_000_000);
    // 20 segments of 1000 B.
    assert_eq!(window(&params("ns2-235", &[])), 20_000);
}

#[test]
fn every_profile_says_what_it_is_not() {
    let names = |params: &TcpParams| {
        unsupported(params).iter().map(|unsupported| unsupported.parameter).collect::<Vec<_>>().join(" ")
    };
    // Linux as it is: few parameters are left.
    let linux = [
        ("algorithm", "cubic"),
        ("initial_window", "10p"),
        ("halving", "window"),
        ("exit", "ssthresh"),
        ("min_rto", "200ms"),
    ];
    assert_eq!(names(&params("rfc", &linux)), "sack_recovery delayed_ack abc_limit hystart idle");
    assert_eq!(names(&params("linux", &[])), "");
    assert_eq!(names(&params("linux", &[("algorithm", "reno")])), "");
    let old = "algorithm header ack initial_window initial_ssthresh limited_transmit delayed_ack tick min_rto \
               initial_rto syn fin exit idle";
    assert_eq!(names(&params("ns2-2000", &[])), old);
    // Every listed name is a parameter.
    let known: Vec<_> = TcpParams::PARAMS.iter().map(|entry| entry.name).collect();
    assert!(
        unsupported(&params("ns2-2000", &[]))
            .iter()
            .all(|unsupported| known.contains(&unsupported.parameter))
    );
}

#[test]
fn a_socket_reads_back_the_options_that_were_set() {
    use std::os::fd::AsFd as _;

    use nix::sys::socket::{AddressFamily, SockFlag, SockType, getsockopt, socket};

    // Every user may have Reno.
    let params =
        params("rfc", &[("algorithm", "sack"), ("segment", "536B"), ("nagle", "false"), ("window", "50kB")]);
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    configure_socket(socket.as_fd(), &params).unwrap();
    assert_eq!(congestion(socket.as_fd()).unwrap(), "reno");
    assert_eq!(window_clamp(socket.as_fd()).unwrap(), 50_000);
    assert!(getsockopt(&socket, sockopt::TcpNoDelay).unwrap());
    let small = TcpParams { segment: Bytes::new(87), ..params };
    let error = configure_socket(socket.as_fd(), &small).unwrap_err().to_string();
    assert_eq!(error, "the kernel has no TCP segments of 87B: they have between 88 and 32755 bytes");
}
