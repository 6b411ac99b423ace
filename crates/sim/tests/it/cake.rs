//! COBALT and CAKE in `scenarios/household.toml` and on settings of their own.

use apportion_runtime::outcome::Outcome;

use crate::common::{dropped, flow, link, run, throughput};

/// The household with one queue.
fn household(queue: &str) -> Outcome {
    let text = include_str!("../../../../scenarios/household.toml");
    let (head, rest) = text.split_once("queue = [").unwrap();
    let (_, tail) = rest.split_once("\n]\n").unwrap();
    run(&format!("{head}queue = {queue}\n{tail}"))
}

/// The shares of three hosts due a third of 12 Mb/s each, with 1, 7 and 40 flows, averaged over four seeds;
/// up: they send, down: they receive.
fn parts(queue: &str, up: bool) -> [f64; 3] {
    let of_seeds = (1..=4).map(|seed| parts_of(queue, up, seed));
    of_seeds.fold([0.0; 3], |sums, parts| [0, 1, 2].map(|host| sums[host] + parts[host] / 4.0))
}

fn parts_of(queue: &str, up: bool, seed: u64) -> [f64; 3] {
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
        seed = {seed}
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
        // Quanta of a packet, as above 50 Mb/s: with shorter ones the flow of a single-flow host gets 2 %
        // less.
        let cake = parts("{ kind = \"cake\", quantum = \"1514B\" }", up);
        // A single TCP flow leaves some of its part unused each time its window is halved.
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
    // A quarter each of the capacity that the call leaves.
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

/// The losses of a call of real-rate flows in 45 s beside a CUBIC flow.
fn lost_of_call(queue: &str, rate: &str, codec: &str, calls: u32) -> f64 {
    let outcome = run(&format!(
        r#"
        seed = 601
        stop = "60s"
        measure_from = "15s"
        topology = {{ kind = "dumbbell", pairs = 2, bottleneck = {{ rate = "{rate}", delay = "18ms", queue = {queue} }}, access = {{ rate = "1Gbit", delay = "1ms" }} }}
        [flow.voice]
        count = {calls}
        from = "l1"
        to = "r1"
        start = {{ between = ["0s", "1s"] }}
        source = {{ kind = "voice", codec = "{codec}" }}
        class = "real_rate"
        [flow.bulk]
        count = 1
        from = "l2"
        to = "r2"
        start = {{ between = ["0s", "1s"] }}
        "#
    ));
    let calls = outcome.flows.iter().filter(|flow| flow.group == "voice");
    let [sent, lost] = calls
        .fold([0, 0], |[sent, lost], flow| [sent + flow.sent.packets.get(), lost + dropped(&flow.dropped)]);
    lost as f64 / sent as f64
}

#[test]
fn a_call_that_fits_a_fair_share_loses_nothing_on_slow_and_fast_links() {
    for rate in ["0.2Mbit", "0.5Mbit", "1Mbit", "5Mbit", "20Mbit"] {
        for codec in ["g729a", "g711"] {
            assert_eq!(lost_of_call("\"cake\"", rate, codec, 1), 0.0, "{rate} {codec}");
        }
    }
}

/// The goodput of a download over 25 Mb/s in Mb/s while its ACKs share 0.5 Mb/s with an upload; segments lost
/// on the wire, retransmissions and timeouts; and ACKs dropped by the filter. No queue overflows on the way
/// down.
fn download(filter: &str, profile: &str, loss: &str) -> (f64, [u64; 3], f64) {
    let outcome = run(&format!(
        r#"
        seed = 3
        stop = "30s"
        measure_from = "10s"
        [link.neck]
        from = "a"
        to = "b"
        rate = "25Mbit"
        delay = "20ms"
        loss = "{loss}"
        queue = {{ kind = "fifo", limit = "1000p" }}
        back = {{ rate = "0.5Mbit", loss = 0, queue = {{ kind = "cake", ack_filter = "{filter}" }} }}
        [flow.down]
        from = "a"
        to = "b"
        tcp = {{ profile = "{profile}", window = "200kB" }}
        [flow.up]
        from = "b"
        to = "a"
        "#
    ));
    let down = flow(&outcome, "down");
    let statistics = outcome.links.iter().flat_map(|link| &link.statistics);
    let left_out = statistics.filter(|(name, _)| name == "ack_drops").map(|(_, value)| value).sum();
    let recovered = [down.lost, down.retransmits.unwrap(), down.timeouts.unwrap()];
    (throughput(&outcome, "down") / 1e6, recovered, left_out)
}

#[test]
fn the_ack_filter_speeds_up_a_download_over_a_slow_way_back() {
    for profile in ["linux", "rfc"] {
        let (without, recovered, left_out) = download("none", profile, "0%");
        assert!(without < 20.0 && left_out == 0.0, "{profile} {without} {left_out}");
        assert_eq!(recovered, [0; 3]);
        for filter in ["conservative", "aggressive"] {
            let (with, recovered, left_out) = download(filter, profile, "0%");
            assert!(with > 24.5 && left_out > 10_000.0, "{profile} {filter} {with} {left_out}");
            assert_eq!(recovered, [0; 3], "{profile} {filter}");
        }
    }
}

#[test]
fn the_ack_filter_leaves_recovery_what_it_needs() {
    for profile in ["linux", "rfc"] {
        for filter in ["none", "conservative", "aggressive"] {
            let (_, [lost, again, timeouts], _) = download(filter, profile, "0.3%");
            // A segment may be lost before the measured part and retransmitted within it, or the reverse.
            assert!(
                lost > 15 && again.abs_diff(lost) <= 1 && timeouts == 0,
                "{profile} {filter} {lost} {again} {timeouts}"
            );
        }
    }
}
