//! COBALT and CAKE in `scenarios/household.toml` and on settings of their own.

use apportion_runtime::outcome::Outcome;

use crate::common::{flow, link, run, throughput};

/// The household with one queue.
fn household(queue: &str) -> Outcome {
    let text = include_str!("../../../../scenarios/household.toml");
    let (head, rest) = text.split_once("queue = [").unwrap();
    let (_, tail) = rest.split_once("\n]\n").unwrap();
    run(&format!("{head}queue = {queue}\n{tail}"))
}

/// What each of three hosts has of a third of 12 Mb/s, by 1, 7 and 40 flows; up: they send, down: they receive.
fn parts(queue: &str, up: bool) -> [f64; 3] {
    let ends = |host: u32| {
        if up { (format!("l{host}"), format!("r{host}")) } else { (format!("r{host}"), format!("l{host}")) }
    };
    let mut flows = String::new();
    for (host, count) in [(1, 1), (2, 7), (3, 40)] {
        let (from, to) = ends(host);
        flows += &format!(
            "flow.h{host} = {{ count = {count}, from = \"{from}\", to = \"{to}\", start = \"{}ms\" }}\n",
            100 * host
        );
    }
    let outcome = run(&format!(
        r#"
        seed = 4
        stop = "40s"
        measure_from = "10s"
        topology = {{ kind = "dumbbell", pairs = 3, bottleneck = {{ rate = "12Mbit", delay = "14ms", queue = {queue}, back = {{ queue = {queue} }} }}, access = {{ rate = "300Mbit", delay = "1ms" }} }}
        {flows}
        "#
    ));
    [1, 2, 3].map(|host| {
        let of = outcome.flows.iter().filter(|flow| flow.group == format!("h{host}"));
        of.map(|flow| throughput(&outcome, &flow.name)).sum::<f64>() / 4e6
    })
}

#[test]
fn hosts_of_1_7_and_40_tcp_flows_have_a_third_each_up_and_down() {
    for up in [true, false] {
        let cake = parts("\"cake\"", up);
        // A TCP flow by itself leaves some of its part each time that its window is halved.
        assert!(cake.iter().all(|part| (0.9..1.1).contains(part)), "{up} {cake:?}");
        let alone = parts("{ kind = \"cake\", hosts = \"none\" }", up);
        assert!(alone[0] < 0.2 && alone[2] > 2.0, "{up} {alone:?}");
    }
}

#[test]
fn a_household_shares_by_hosts_and_a_call_waits_for_hardly_a_packet() {
    let outcome = household("\"cake\"");
    let sum =
        |name: &str, count| (1..=count).map(|i| throughput(&outcome, &format!("{name}.{i}"))).sum::<f64>();
    let found =
        [throughput(&outcome, "one"), sum("seven", 7), sum("forty", 40), throughput(&outcome, "camera")];
    // A quarter each of what the call leaves.
    assert!(found.iter().all(|rate| (rate / 4.975e6 - 1.0).abs() < 0.03), "{found:?}");
    // 11 ms of propagation, and 0.6 ms for a full packet.
    let worst = |outcome: &Outcome| flow(outcome, "call").delay.quantile(1.0).unwrap().as_secs_f64() * 1e3;
    assert!(worst(&outcome) < 13.0, "{}", worst(&outcome));
    assert!(worst(&household("\"codel\"")) > 60.0);
}

#[test]
fn cobalt_holds_the_delay_of_a_flood_that_codel_does_not() {
    let late = |queue: &str| {
        let outcome = household(queue);
        link(&outcome, "bottleneck").queue_delay.quantile(0.95).unwrap().as_secs_f64() * 1e3
    };
    let [codel, cobalt, without] =
        ["\"codel\"", "\"cobalt\"", "{ kind = \"cobalt\", increment = 0 }"].map(late);
    assert!(cobalt < 30.0 && codel > 60.0 && without > 60.0, "{codel} {cobalt} {without}");
}
