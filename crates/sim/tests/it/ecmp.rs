//! Equal-cost paths in the simulator: the paths of packets, and the throughput of flows.

use std::collections::BTreeSet;

use apportion_runtime::due::dues;

use crate::common::{flow, link, run_with, scenarios, scenarios_with_jitter, throughput};

/// Four paths of 12 Mb/s through routers m1 to m4 between two others, and further text.
fn network(rest: &str) -> String {
    let ways: String = (1..=4)
        .map(|k| {
            format!(
                "link.r-m{k} = {{ from = \"r\", to = \"m{k}\", rate = \"12Mbit\", delay = \"1ms\", queue = \"drr\" }}\n\
                 link.m{k}-s = {{ from = \"m{k}\", to = \"s\", rate = \"12Mbit\", delay = \"1ms\" }}\n"
            )
        })
        .collect();
    format!(
        "seed = 1\nstop = \"6s\"\nmeasure_from = \"1s\"\n\
         link.in = {{ from = \"a\", to = \"r\", rate = \"1Gbit\", delay = \"1ms\" }}\n{ways}\
         link.out = {{ from = \"s\", to = \"b\", rate = \"1Gbit\", delay = \"1ms\" }}\n{rest}\n"
    )
}

#[test]
fn the_packets_of_a_connection_take_one_path_and_stay_in_order() {
    let text = network("flow.f = { from = \"a\", to = \"b\", source = { kind = \"file\", size = \"2MB\" } }")
        .replace("measure_from = \"1s\"\n", "")
        .replace("\"drr\"", "{ kind = \"fifo\", limit = \"9000p\" }");
    let scenario = scenarios(&text).pop().unwrap();
    let mut ways = BTreeSet::new();
    for seed in 0..24 {
        let outcome = run_with(&scenario, seed);
        let used = |end: &str| -> Vec<usize> {
            (1..=4).filter(|k| link(&outcome, &format!("r-m{k}{end}")).sent.packets.get() > 0).collect()
        };
        let (there, back) = (used(""), used(".back"));
        assert_eq!((there.len(), back.len()), (1, 1), "{there:?} {back:?}");
        let file = flow(&outcome, "f");
        assert_eq!((file.completions.len(), file.delivered.packets), (1, file.sent.packets));
        assert_eq!(file.retransmits, Some(0));
        ways.insert((there[0], back[0]));
    }
    // 24 flows take 12.6 of 16 ways on average, ± 1.3; the two directions are independent.
    assert!(ways.len() >= 8 && ways.iter().any(|(there, back)| there != back), "{ways:?}");
}

#[test]
fn flows_have_what_they_are_due_on_the_paths_that_they_take() {
    let text = network(
        "flow.f = { count = 5, from = \"a\", to = \"b\", source = { kind = \"cbr\", rate = \"20Mbit\" } }",
    );
    for (text, idle) in [(text.clone(), 4..=20), (format!("routing = \"single\"\n{text}"), 36..=36)] {
        let scenario = scenarios(&text).pop().unwrap();
        let mut unused = 0;
        for seed in 0..12 {
            let outcome = run_with(&scenario, seed);
            let due = dues(&scenario, &outcome).unwrap();
            for (of, due) in outcome.flows.iter().zip(&due.flows) {
                let (got, due) = (throughput(&outcome, &of.name) / 1e6, due.measured.as_mbit_f64());
                // At most one packet more or less in 5 s: 1.6 kb/s.
                assert!((got - due).abs() < 0.01, "{got} {due} of {}", of.name);
            }
            unused += (1..=4).filter(|k| link(&outcome, &format!("r-m{k}")).sent.packets.get() == 0).count();
        }
        // All five flows avoid a given path with a probability of 0.75^5 = 0.237: 11.4 of 48.
        assert!(idle.contains(&unused), "{unused}");
    }
}

#[test]
fn hosts_with_several_links_use_all_and_wait_as_long_on_each() {
    // The jitter of hosts must not depend on a link that others do not use.
    let text = "seed = 3\nstop = \"2s\"\n\
         link.x = { from = \"a\", to = \"b\", rate = \"8Mbit\", delay = \"1ms\" }\n\
         link.y = { from = \"a\", to = \"b\", rate = \"8Mbit\", delay = \"1ms\" }\n\
         flow.u = { count = 20, from = \"a\", to = \"b\", source = { kind = \"cbr\", rate = \"300kbit\", packet = \"1000B\" } }";
    let outcome = run_with(&scenarios_with_jitter(text).pop().unwrap(), 3);
    let sent = ["x", "y"].map(|name| link(&outcome, name).sent.packets.get());
    // 37 or 38 packets of each flow; a link has at least 3 of 20 with a probability of .9998.
    assert!(sent.iter().all(|&sent| sent >= 3 * 70), "{sent:?}");
}
