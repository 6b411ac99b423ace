//! Sizes of buffers in time and in bandwidth-delay products.

use apportion_core::units::Rate;
use apportion_scenario::model::{Scenario, Setting};

use crate::common::{errors, gateway, link, scenario, suite, survives, try_load};

/// Two flows over 10 Mbit/s, with round trips of 2 × (1 + 8 + 1) and 2 × (1 + 8 + 11) ms.
const TEXT: &str = r#"
seed = 1
stop = "10s"
[topology]
kind = "dumbbell"
pairs = 2
bottleneck = { rate = "10Mbit", delay = "8ms", queue = { kind = "fifo", limit = "1bdp" } }
[link.right-r2]
delay = "11ms"
[flow.a]
from = "l1"
to = "r1"
source = { kind = "greedy" }
[flow.b]
from = "l2"
to = "r2"
source = { kind = "greedy" }
"#;

/// The size of the queue of the link `name`.
fn holds(scenario: &Scenario, name: &str) -> String {
    let link = link(scenario, name);
    link.queue.limit_at(link.rate).unwrap().to_string()
}

/// `TEXT` with another limit.
fn with(limit: &str) -> String {
    TEXT.replace("\"1bdp\"", limit)
}

#[test]
fn a_bdp_is_the_rate_times_the_longest_round_trip() {
    // 40 ms of 10 Mbit/s.
    assert_eq!(holds(&scenario(TEXT), "bottleneck"), "50kB");
    assert_eq!(holds(&scenario(&with("\"25%\"").replace("25%", "0.25bdp")), "bottleneck"), "12500B");
    // Without the flow with the longer round trip: 20 ms.
    let alone = TEXT.split("[flow.b]").next().unwrap();
    assert_eq!(holds(&scenario(alone), "bottleneck"), "25kB");
    survives(&suite(TEXT));
}

#[test]
fn every_path_that_a_flow_may_take_has_its_bdp() {
    let group = r#"
        seed = 1
        stop = "3s"
        link.x = { from = "a", to = "b", rate = "5Mbit", delay = "20ms", count = 2, queue = { kind = "fifo", limit = "1bdp" } }
        flow.u = { count = 4, from = "a", to = "b" }
    "#;
    let group = scenario(group);
    assert_eq!(["x.1", "x.2"].map(|name| holds(&group, name)), ["25kB", "25kB"]);
    let leaves = r#"
        seed = 1
        stop = "1s"
        topology = { kind = "leaf_spine", leaves = 3, spines = 2, hosts = 2, link = { rate = "10Mbit", delay = "1ms", queue = { kind = "fifo", limit = "1bdp" } } }
        flow.f = { count = 30, from = "h1", to = "h5" }
    "#;
    let leaves = scenario(leaves);
    assert_eq!(holds(&leaves, "leaf1-spine1"), holds(&leaves, "leaf1-spine2"));
}

#[test]
fn sizes_are_swept_with_rates_and_delays() {
    let text = with(r#"["0.5bdp", "2bdp", "10ms..20ms step 10ms"]"#)
        .replace(r#""10Mbit", delay = "8ms""#, r#"["10Mbit", "20Mbit"], delay = ["8ms", "48ms"]"#);
    let suite = suite(&text);
    let found: Vec<_> = suite.points.iter().map(|point| holds(&point.scenario, "bottleneck")).collect();
    // Round trips of 40 and 120 ms.
    let of_10 = [["25kB", "100kB", "12500B", "25kB"], ["75kB", "300kB", "12500B", "25kB"]];
    let of_20 = [["50kB", "200kB", "25kB", "50kB"], ["150kB", "600kB", "25kB", "50kB"]];
    assert_eq!(found, [of_10, of_20].as_flattened().as_flattened());
    assert!(suite.points[0].label.ends_with("limit=0.5bdp"), "{}", suite.points[0].label);
    survives(&suite);
}

#[test]
fn defaults_overrides_and_changes_have_sizes_of_their_links() {
    let text = with("\"9p\"")
        + r#"
[defaults.link]
back = { queue = { kind = "codel", limit = "1bdp" } }
[[change]]
at = "3s"
set = "link.bottleneck.queue"
to = { kind = "drr", limit = "2bdp" }
"#;
    let scenario = scenario(&text);
    assert_eq!(holds(&scenario, "bottleneck.back"), "50kB");
    // The round trip of the only flow there, 20 ms.
    assert_eq!(holds(&scenario, "l1-left.back"), "250kB");
    let Setting::LinkQueue(_, queue) = &scenario.changes[0].to else { panic!("{:?}", scenario.changes) };
    assert_eq!(queue.limit_at(Rate::from_mbit(10)).unwrap().to_string(), "100kB");
    let set = [("topology.bottleneck.queue.limit", "3bdp")];
    assert_eq!(holds(&try_load(TEXT, &set).unwrap().points[0].scenario, "bottleneck"), "150kB");
}

#[test]
fn classes_have_sizes_in_time_of_the_link() {
    let classes =
        r#"{ kind = "prio", class = { x = { prio = 1, limit = "1bdp" }, y = { prio = 2, others = true } } }"#;
    let text = TEXT.replace(r#"{ kind = "fifo", limit = "1bdp" }"#, classes);
    let scenario = scenario(&text);
    let limits = link(&scenario, "bottleneck").queue.byte_limits(Rate::from_mbit(10));
    let of_class = limits.iter().find(|limit| limit.class.is_some()).unwrap();
    assert_eq!(of_class.size.to_string(), "50kB");
    survives(&suite(&text));
}

#[test]
fn what_has_no_round_trip_has_no_bdp() {
    let still = TEXT.replace("8ms", "0s").replace("[link.right-r2]\ndelay = \"11ms\"", "");
    let still = still.replace("pairs = 2", "pairs = 2\naccess = { delay = \"0s\" }");
    let found = errors(&still);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("queue.limit") && found[0].contains("write a time"), "{found:?}");
    assert!(
        found[0].contains("no flow that crosses link `bottleneck` has a way back with a delay"),
        "{found:?}"
    );
    let thresholds = with("\"50p\"").replace("kind = \"fifo\"", "kind = \"red\", min_th = \"1bdp\"");
    assert!(errors(&thresholds)[0].contains("is not a level in packets or bytes"));
}

#[test]
fn gateways_have_sizes_in_time_alone() {
    let up =
        |limit: &str| gateway::minimal("", &format!("queue = {{ kind = \"drr\", limit = \"{limit}\" }}"), "");
    let queue = gateway::load(&up("40ms")).up.queue.params.clone();
    assert_eq!(queue.limit_at(Rate::from_mbit(10)).unwrap().to_string(), "50kB");
    let error = gateway::error(&up("1bdp"));
    assert!(
        error.contains("up.queue.limit") && error.contains("needs the round-trip times of flows"),
        "{error}"
    );
}
