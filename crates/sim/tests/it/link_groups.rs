//! Groups of equal links in the simulator: the links of packets, and the throughput of flows.

use std::collections::BTreeSet;

use apportion_runtime::due::dues;
use apportion_runtime::outcome::Outcome;

use crate::common::{flow, link, run, run_with, scenarios, throughput};

/// Links of 12 Mb/s between two routers, each with its own queue, and further text.
fn network(core: &str, rest: &str) -> String {
    format!(
        "seed = 1\nstop = \"6s\"\nmeasure_from = \"1s\"\n\
         link.in = {{ from = \"a\", to = \"r\", rate = \"1Gbit\", delay = \"1ms\" }}\n\
         link.core = {{ from = \"r\", to = \"s\", rate = \"12Mbit\", delay = \"2ms\", queue = \"drr\"{core} }}\n\
         link.out = {{ from = \"s\", to = \"b\", rate = \"1Gbit\", delay = \"1ms\" }}\n{rest}\n"
    )
}

/// Returns the links of the group that carried packets in one direction.
fn used(outcome: &Outcome, end: &str) -> BTreeSet<usize> {
    (1..=4).filter(|k| link(outcome, &format!("core.{k}{end}")).sent.packets.get() > 0).collect()
}

#[test]
fn the_packets_of_a_connection_take_one_link_and_stay_in_order() {
    let text = network(
        ", count = 4",
        "flow.f = { from = \"a\", to = \"b\", source = { kind = \"file\", size = \"2MB\" } }",
    )
    .replace("measure_from = \"1s\"\n", "")
    .replace("\"drr\"", "{ kind = \"fifo\", limit = \"9000p\" }");
    let scenario = scenarios(&text).pop().unwrap();
    let mut ways = BTreeSet::new();
    for seed in 0..24 {
        let outcome = run_with(&scenario, seed);
        let (there, back) = (used(&outcome, ""), used(&outcome, ".back"));
        assert_eq!((there.len(), back.len()), (1, 1), "{there:?} {back:?}");
        ways.insert((there.first().copied(), back.first().copied()));
        let file = flow(&outcome, "f");
        // Nothing is lost or reordered, so nothing is retransmitted.
        assert_eq!((file.completions.len(), file.delivered.packets), (1, file.sent.packets));
        assert_eq!(file.retransmits, Some(0));
    }
    // 24 flows use 12.6 of 16 links on average, ± 1.3; the two directions are independent.
    assert!(ways.len() >= 8 && ways.iter().any(|(there, back)| there != back), "{ways:?}");
}

#[test]
fn flows_have_the_links_that_they_are_due() {
    let text = network(
        ", count = 4",
        "flow.f = { count = 5, from = \"a\", to = \"b\", source = { kind = \"cbr\", rate = \"20Mbit\" } }",
    );
    let scenario = scenarios(&text).pop().unwrap();
    let (mut most, mut idle) = (0, 0);
    for seed in 0..12 {
        let outcome = run_with(&scenario, seed);
        let due = dues(&scenario, &outcome).unwrap();
        for (of, due) in outcome.flows.iter().zip(&due.flows) {
            let (got, due) = (throughput(&outcome, &of.name) / 1e6, due.measured.as_mbit_f64());
            // At most one packet more or less in 5 s: 1.6 kb/s.
            assert!((got - due).abs() < 0.01, "{got} {due} of {}", of.name);
            let sharing = 12.0 / due;
            assert!((sharing - sharing.round()).abs() < 1e-3, "{due}");
            most = most.max(sharing.round() as u32);
        }
        idle += 4 - used(&outcome, "").len();
    }
    // All five flows avoid a given link with a probability of 0.75^5 = 0.237: 11.4 of 48, and flows share
    // links.
    assert!((4..=20).contains(&idle) && most >= 2, "{idle} {most}");
}

#[test]
fn tcp_flows_that_collide_have_half_of_a_link_each() {
    let text = network(", count = 2", "flow.f = { count = 2, from = \"a\", to = \"b\", tcp = \"rfc\" }");
    let scenario = scenarios(&text).pop().unwrap();
    let (mut together, mut apart) = (0, 0);
    for seed in 0..8 {
        let outcome = run_with(&scenario, seed);
        let rates = ["f.1", "f.2"].map(|name| throughput(&outcome, name) / 12e6);
        let collided = (1..=2).any(|k| link(&outcome, &format!("core.{k}")).sent.packets.get() == 0);
        let due = if collided { 0.5 } else { 1.0 };
        assert!(rates.iter().all(|rate| (rate - due).abs() < 0.05), "{rates:?} {collided}");
        together += u32::from(collided);
        apart += u32::from(!collided);
    }
    assert!(together > 0 && apart > 0, "{together} {apart}");
}

#[test]
fn connections_and_short_flows_spread_over_the_links() {
    let text = network(
        ", count = 4",
        "flow.many = { from = \"a\", to = \"b\", connections = 12, tcp = \"rfc\" }\n\
         flow.short = { from = \"a\", to = \"b\", source = { kind = \"short_flows\", per_second = 40, mean_size = \"20kB\" } }",
    );
    let outcome = run(&text);
    assert_eq!(used(&outcome, ""), (1..=4).collect());
    assert!((1..=4).all(|k| link(&outcome, &format!("core.{k}")).utilisation > 0.9));
    assert!(throughput(&outcome, "many") > 30e6);
    assert!(flow(&outcome, "short").completions.len() > 150);
}

#[test]
fn a_run_repeats_and_a_group_of_one_is_a_link() {
    let rest = "flow.f = { count = 6, from = \"a\", to = \"b\", tcp = \"rfc\" }";
    let bytes = |core: &str| format!("{:?}", run(&network(core, rest)));
    assert_eq!(bytes(", loss = \"1%\", count = 1"), bytes(", loss = \"1%\""));
    assert_eq!(bytes(", count = 4"), bytes(", count = 4"));
}

#[test]
fn a_member_that_is_down_holds_its_flows_alone() {
    // Static routes: no flow moves away from the link.
    let text = network(
        ", count = 2",
        "flow.f = { count = 8, from = \"a\", to = \"b\", source = { kind = \"cbr\", rate = \"1Mbit\" } }\n\
         change = [{ at = \"1s\", set = \"link.core.2.rate\", to = \"0Mbit\" }]",
    );
    let outcome = run(&text);
    let stopped = (1..=8).filter(|k| throughput(&outcome, &format!("f.{k}")) < 1e4).count();
    let full = (1..=8).filter(|k| throughput(&outcome, &format!("f.{k}")) > 0.99e6).count();
    assert!(stopped > 0 && full > 0 && stopped + full == 8, "{stopped} {full}");
    let all = run(&text.replace("core.2.rate", "core.rate"));
    assert!((1..=8).all(|k| throughput(&all, &format!("f.{k}")) < 1e4));
}
