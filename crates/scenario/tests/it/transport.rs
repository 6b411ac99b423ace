//! The TCP or QUIC of a flow.

use std::path::Path;

use apportion_core::Ecn;
use apportion_core::packet::Protocol;
use apportion_core::units::Bytes;
use apportion_scenario::load;
use apportion_scenario::model::Transport;
use apportion_scenario::quic::{QuicParams, words};
use apportion_scenario::tcp::TcpParams;

/// The TCP of a flow with these lines, `None` for UDP, or the first error.
fn transport(lines: &str) -> Result<Option<TcpParams>, String> {
    let text = format!(
        "seed = 1\nstop = \"1s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[flow.x]\n\
         from = \"a\"\nto = \"b\"\n{lines}\n"
    );
    let suite = load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let suite = suite.map_err(|problems| problems[0].to_string())?;
    Ok(match &suite.points[0].scenario.flows[0].transport {
        Transport::Tcp(params) => Some(TcpParams::clone(params)),
        Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => None,
    })
}

fn tcp(profile: &str, changes: &[(&str, &str)]) -> Option<TcpParams> {
    let mut params = TcpParams::profile(profile).unwrap();
    for (name, value) in changes {
        params.set(name, value).unwrap();
    }
    Some(params)
}

#[test]
fn a_source_without_a_rate_has_the_tcp_of_linux_and_one_with_a_rate_has_none() {
    let file = "source = { kind = \"file\", size = \"1MB\" }";
    let short = "source = { kind = \"short_flows\", per_second = 1, mean_size = \"10kB\" }";
    for lines in ["", "source = \"greedy\"", file, short] {
        assert_eq!(transport(lines).unwrap(), tcp("linux", &[]), "{lines}");
    }
    let cbr = "source = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }";
    assert_eq!(transport(cbr).unwrap(), None);
}

#[test]
fn a_congestion_control_or_a_parameter_alone_changes_the_tcp_of_linux() {
    for name in ["reno", "newreno", "sack", "cubic"] {
        let expected = tcp("linux", &[("algorithm", name)]);
        assert_eq!(transport(&format!("tcp = \"{name}\"")).unwrap(), expected);
        assert_eq!(transport(&format!("tcp = {{ algorithm = \"{name}\" }}")).unwrap(), expected);
    }
    let window = "tcp = { window = \"64kB\", algorithm = \"reno\" }";
    assert_eq!(transport(window).unwrap(), tcp("linux", &[("window", "64kB"), ("algorithm", "reno")]));
    assert_eq!(transport("tcp = \"ns2-235\"").unwrap(), tcp("ns2-235", &[]));
}

#[test]
fn false_takes_a_default_back() {
    let cbr = "source = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }";
    let defaults = |key: &str, value: &str| format!("[defaults.flow]\n{key} = \"{value}\"");
    let of_tcp = defaults("tcp", "rfc");
    assert_eq!(transport(&format!("{cbr}\n{of_tcp}")).unwrap(), tcp("rfc", &[]));
    assert_eq!(transport(&format!("tcp = false\n{cbr}\n{of_tcp}")).unwrap(), None);
    let of_quic = defaults("quic", "cubic");
    assert!(quic(&format!("{cbr}\n{of_quic}")).is_ok());
    assert_eq!(transport(&format!("quic = false\n{cbr}\n{of_quic}")).unwrap(), None);
    // A greedy source needs a transport: TCP.
    assert_eq!(transport(&format!("quic = false\n{of_quic}")).unwrap(), tcp("linux", &[]));
}

#[test]
fn a_control_that_works_by_marks_has_ecn() {
    let error = transport("tcp = { algorithm = \"prague\", ecn = false }").unwrap_err();
    assert!(error.contains("flow.x.tcp.ecn") && error.contains("leave `ecn` out"), "{error}");
    assert!(transport("tcp = { algorithm = \"dctcp\" }").unwrap().unwrap().offers_ecn());
}

#[test]
fn what_cannot_be_names_its_place() {
    let message = transport("tcp = \"tahoe\"").unwrap_err();
    assert!(
        message.contains("x.toml:11: flow.x.tcp: `tahoe` is not a TCP profile or congestion control"),
        "{message}"
    );
    let message = transport("tcp = { algorithm = \"tahoe\" }").unwrap_err();
    assert!(message.contains("choose another profile, such as \"rfc\""), "{message}");
    let message = transport("tcp = { profile = \"reno\" }").unwrap_err();
    assert!(message.contains("flow.x.tcp.profile: `reno` is not a TCP profile"), "{message}");
}

#[test]
fn datagrams_have_the_ecn_field_that_is_set_and_other_packets_refuse_it() {
    let cbr = "source = { kind = \"cbr\", rate = \"1Mbit\", packet = \"500B\" }";
    let ecn = |lines: &str| {
        let text = format!(
            "seed = 1\nstop = \"1s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[flow.x]\n\
             from = \"a\"\nto = \"b\"\n{lines}\n"
        );
        let suite = load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        suite.points[0].scenario.flows[0].ecn
    };
    assert_eq!(ecn(cbr), Ecn::NotEct);
    for (word, field) in [("not_ect", Ecn::NotEct), ("ect0", Ecn::Ect0), ("ect1", Ecn::Ect1)] {
        assert_eq!(ecn(&format!("ecn = \"{word}\"\n{cbr}")), field);
    }
    for lines in ["ecn = \"ect1\"", "ecn = \"ect1\"\ntcp = \"prague\""] {
        let message = transport(lines).unwrap_err();
        assert!(
            message.contains("flow.x.ecn: it is for datagrams; write it as a parameter of `tcp`"),
            "{message}"
        );
    }
    let message = transport("ecn = \"ect1\"\nsource = \"voice\"").unwrap_err();
    assert!(message.contains("flow.x.ecn: a source `voice` has datagrams of its own"), "{message}");
    let message = transport(&format!("ecn = \"ce\"\n{cbr}")).unwrap_err();
    assert!(message.contains("flow.x.ecn"), "{message}");
}

/// The QUIC of a flow with these lines, or the first error.
fn quic(lines: &str) -> Result<QuicParams, String> {
    let text = format!(
        "seed = 1\nstop = \"1s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[flow.x]\n\
         from = \"a\"\nto = \"b\"\n{lines}\n"
    );
    let suite = load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let suite = suite.map_err(|problems| problems[0].to_string())?;
    let flow = &suite.points[0].scenario.flows[0];
    let Transport::Quic(params) = &flow.transport else { return Err("no QUIC".to_owned()) };
    assert_eq!(flow.protocol, Protocol::Udp);
    Ok(QuicParams::clone(params))
}

#[test]
fn quic_is_a_congestion_control_or_a_table_and_udp_for_queues() {
    for name in words() {
        let expected = QuicParams::with_algorithm(name).unwrap();
        assert_eq!(quic(&format!("quic = \"{name}\"")).unwrap(), expected);
        assert_eq!(quic(&format!("quic = {{ algorithm = \"{name}\" }}")).unwrap(), expected);
    }
    let expected = QuicParams { ecn: true, segment: Bytes::new(1_200), ..QuicParams::default() };
    assert_eq!(quic("quic = { ecn = true, segment = \"1200B\" }").unwrap(), expected);
    // A flow's own key replaces a default.
    let lent = |default: &str, own: &str| quic(&format!("{own}\n[defaults.flow]\n{default}"));
    assert_eq!(lent("quic = \"bbr\"", "").unwrap().algorithm.to_string(), "bbr");
    assert_eq!(lent("tcp = \"rfc\"", "quic = \"newreno\"").unwrap().algorithm.to_string(), "newreno");
    assert_eq!(lent("quic = \"bbr\"", "tcp = \"rfc\"").unwrap_err(), "no QUIC");
}

#[test]
fn what_quic_cannot_be_names_its_place() {
    let file = "source = { kind = \"call\" }";
    let known = format!("known: {}", words().collect::<Vec<_>>().join(", "));
    let cases = [
        ("quic = \"vegas\"", "x.toml:11: flow.x.quic: `vegas` is not a congestion control of QUIC here"),
        ("quic = \"vegas\"", &*known),
        ("quic = { algorithm = \"ledbat\" }", "flow.x.quic.algorithm: `ledbat`: is for TCP"),
        ("quic = { profile = \"linux\" }", "unknown QUIC parameter; known here: algorithm, "),
        ("quic = \"cubic\"\ntcp = \"rfc\"", "flow.x.quic: `tcp` says what carries the flow"),
        (&format!("quic = \"cubic\"\n{file}"), "a source `call` sends datagrams; leave `quic` out"),
        ("quic = \"cubic\"\nsource = \"web\"", "opens TCP connections, as HTTP/1.1 does; leave `quic` out"),
    ];
    for (lines, expected) in cases {
        let message = quic(lines).unwrap_err();
        assert!(message.contains(expected), "{lines}: {message}");
    }
}
