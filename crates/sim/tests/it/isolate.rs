//! Isolation of hosts on whole links, and a change of the queue to it while packets wait.

use crate::common::{run, sweep, throughput};

/// Two hosts behind a link of 10 Mb/s, one with one flow to u, one with ten to v1 and v2; all send 12 Mb/s.
fn scenario(queue: &str) -> String {
    let fast = [("x", "r"), ("y", "r"), ("s", "u"), ("s", "v1"), ("s", "v2")].map(|(from, to)| {
        format!(
            "link.{from}-{to} = {{ from = \"{from}\", to = \"{to}\", rate = \"1Gbit\", delay = \"1ms\" }}\n"
        )
    });
    format!(
        r#"
        seed = 1
        stop = "12s"
        measure_from = "2s"
        link.r-s = {{ from = "r", to = "s", rate = "10Mbit", delay = "1ms", queue = {queue} }}
        {}
        [defaults.flow]
        source = {{ kind = "cbr", rate = "12Mbit", packet = "1000B", jitter = "5%" }}
        [flow.one]
        from = "x"
        to = "u"
        [flow.many]
        count = 10
        from = "y"
        to = "v{{1 + i % 2}}"
    "#,
        fast.concat()
    )
}

/// Returns the throughput of the single flow, in Mb/s.
fn of_one(queues: &[&str]) -> Vec<f64> {
    let outcomes = sweep(&scenario(&format!("[{}]", queues.join(", "))));
    outcomes.iter().map(|outcome| throughput(outcome, "one") / 1e6).collect()
}

#[test]
fn hosts_are_the_nodes_at_the_ends_of_flows() {
    let queues = [
        "{ kind = \"drr\" }",
        "{ kind = \"drr\", isolate = \"source\" }",
        "{ kind = \"drr\", isolate = \"destination\" }",
        "{ kind = \"drr\", isolate = \"both\" }",
        "{ kind = \"csfq\", limit = \"64p\", isolate = \"source\" }",
        "{ kind = \"fq\", isolate = \"source\" }",
    ];
    // The link is divided by eleven flows, two sources, three destinations; with both ends the ten flows of
    // the other source share one part.
    for (got, due) in of_one(&queues).into_iter().zip([10.0 / 11.0, 5.0, 10.0 / 3.0, 5.0, 5.0, 5.0]) {
        assert!((got / due - 1.0).abs() < 0.03, "{got}, not {due}");
    }
}

#[test]
fn a_queue_that_isolates_hosts_takes_over_while_packets_wait() {
    let change =
        "[[change]]\nat = \"2s\"\nset = \"link.r-s.queue\"\nto = { kind = \"drr\", isolate = \"source\" }\n";
    let outcome = run(&(scenario("\"drr\"") + change));
    let got = throughput(&outcome, "one") / 1e6;
    assert!((got - 5.0).abs() < 0.15, "{got}");
}
