//! The key `connections`: its values, and its refusals.

use apportion_core::units::Rate;
use apportion_scenario::model::Scenario;

use crate::common::{errors, scenario, suite, survives, try_load};

/// A link of 10 Mb/s and a flow `f` with these lines, the first of which is line 11.
fn text(lines: &str) -> String {
    format!(
        "seed = 1\nstop = \"10s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"10Mbit\"\n\
         delay = \"1ms\"\n[flow.f]\nfrom = \"a\"\nto = \"b\"\n{lines}\n"
    )
}

fn connections(scenario: &Scenario) -> Vec<u32> {
    scenario.flows.iter().map(|flow| flow.connections).collect()
}

/// The one problem of `text`.
fn refused(text: &str) -> String {
    let errors = errors(text);
    assert_eq!(errors.len(), 1, "{errors:#?}");
    errors[0].strip_prefix("dir/x.toml:").unwrap().to_owned()
}

const TCP: &str = "tcp = \"rfc\"";
const WEB: &str = "tcp = \"rfc\"\nsource = { kind = \"short_flows\", per_second = 1, mean_size = \"9kB\" }";

#[test]
fn a_flow_has_as_many_connections_as_its_key_says() {
    let read = |lines: &str| connections(&scenario(&text(lines)));
    assert_eq!(read(TCP), [1]);
    assert_eq!(read(&format!("{TCP}\nconnections = 15")), [15]);
    assert_eq!(read(&format!("{TCP}\nconnections = 16384")), [16_384]);
    assert_eq!(read(&format!("{TCP}\ncount = 3\nconnections = \"10 * i - 9\"")), [1, 11, 21]);
    assert_eq!(read("connections = 2\nsource = { kind = \"cbr\", rate = \"1Mbit\" }"), [2]);
    assert_eq!(read(WEB), [1]);
    assert_eq!(read(&format!("{WEB}\nconnections = 1")), [1]);
    // Flows take it from the defaults, unless they set it.
    let with = |lines: &str| scenario(&format!("{}[defaults.flow]\nconnections = 4\n", text(lines)));
    assert_eq!(connections(&with(TCP)), [4]);
    assert_eq!(connections(&with(&format!("{WEB}\nconnections = 1"))), [1]);
}

#[test]
fn it_can_be_swept_and_set_and_survives_the_canonical_text() {
    let swept = suite(&text(&format!("{TCP}\nconnections = [1, 15]")));
    assert_eq!(swept.points.iter().map(|point| connections(&point.scenario)[0]).collect::<Vec<_>>(), [1, 15]);
    survives(&swept);
    survives(&suite(&text(&format!("{TCP}\ncount = 2\nconnections = \"3 * i\""))));
    let set = try_load(&text(TCP), &[("flow.f.connections", "7")]).unwrap();
    assert_eq!(connections(&set.points[0].scenario), [7]);
    // A file without the key keeps its text, and so its hash.
    assert!(!suite(&text(TCP)).canonical.contains("connections"));
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let with = |lines: &str| refused(&text(&format!("{TCP}\n{lines}")));
    assert_eq!(
        with("connections = 0"),
        "12: flow.f.connections: `0`: a whole number must be between 1 and 16384 here; write for example 10"
    );
    assert_eq!(
        with("connections = 16385"),
        "12: flow.f.connections: `16385`: a whole number must be between 1 and 16384 here; write for example \
         10"
    );
    assert_eq!(
        with("connections = 1.5"),
        "12: flow.f.connections: `1.5` is not a whole number from 1 to 16384; write for example 10"
    );
    assert_eq!(
        with("connections = \"2 - i\"\ncount = 3"),
        "12: flow.f.connections: `2 - i = 0 for i = 2`: a whole number must be between 1 and 16384 here; \
         write for example 10"
    );
    // 62 flows of 16,384 connections are 1,015,808; 61 of them 999,424.
    assert_eq!(scenario(&text(&format!("{TCP}\ncount = 61\nconnections = 16384"))).flows.len(), 61);
    assert_eq!(
        with("connections = 16384\ncount = 62"),
        "12: flow.f.connections: more than 1000000 connections in all"
    );
}

#[test]
fn short_flows_make_their_own() {
    let message = "flow.f.connections: a source `short_flows` opens its own connections, each a separate \
                   flow for queues; write connections = 1, or another source";
    assert_eq!(refused(&text(&format!("{WEB}\nconnections = 2"))), format!("13: {message}"));
    assert_eq!(refused(&text(&format!("{WEB}\ncount = 3\nconnections = \"i\""))), format!("14: {message}"));
    // If it comes from the defaults it is refused there.
    let defaults = format!("{}[defaults.flow]\nconnections = 4\n", text(WEB));
    assert_eq!(refused(&defaults), format!("14: {}", message.replace("flow.f", "defaults.flow")));
}

#[test]
fn a_flow_is_entitled_to_what_one_flow_is_and_wants_what_its_connections_want() {
    let shares = |lines: &str| -> Vec<f64> {
        let text = text(&format!("{lines}\n[flow.g]\nfrom = \"a\"\nto = \"b\"\n{TCP}"));
        scenario(&text).entitlements().unwrap().into_iter().map(Rate::as_mbit_f64).collect()
    };
    // Greedy: half of 10 Mb/s, for any number of connections.
    assert_eq!(shares(&format!("{TCP}\nconnections = 15")), [5.0, 5.0]);
    // Three times 1 Mb/s; the rest goes to the other flow. Six times are more than half.
    let cbr = |n: u32| format!("connections = {n}\nsource = {{ kind = \"cbr\", rate = \"1Mbit\" }}");
    assert_eq!(shares(&cbr(3)), [3.0, 7.0]);
    assert_eq!(shares(&cbr(6)), [5.0, 5.0]);
}
