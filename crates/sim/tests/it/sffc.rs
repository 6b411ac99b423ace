//! SF-FC over several routers: the effect of their reports, and how they find each other.

use apportion_runtime::outcome::Outcome;
use apportion_testing::net::net;

use crate::common::{flow, link, run, throughput};

/// Five TCP and five datagram flows of 2 to 10 Mb/s over r1 - r2, 10 Mb/s; behind it datagrams share 1 Mb/s.
fn narrow(queue: &str, more: &str) -> String {
    narrow_exit(queue, queue, more)
}

/// The same with another queue in front of the narrow link.
fn narrow_exit(queue: &str, exit: &str, more: &str) -> String {
    net(&format!(
        r#"
            stop = 15s
            link in_tcp: s1 -> r1, rate = 100Mbit, delay = 1ms
            link in_udp: s2 -> r1, rate = 100Mbit, delay = 1ms
            link out_tcp: r2 -> d1, rate = 100Mbit, delay = 1ms
            link middle: r1 -> r2, rate = 10Mbit, delay = 1ms, queue = {queue}
            link out_udp: r2 -> d2, rate = 1Mbit, delay = 1ms, queue = {exit}
            flow tcp: s1 -> d1, count = 5, tcp = {{ profile = ns2-full, window = 1000p }},
                start = {{ between = [0s, 1s] }}
            flow udp: s2 -> d2, count = 5, source = {{ kind = cbr, rate = "2Mbit * i", packet = 1000B, jitter = 5% }}
            {more}
        "#
    ))
}

const SFFC: &str = r#"{ kind = "sffc" }"#;
const SILENT: &str = r#"{ kind = "sffc", reports = false }"#;

/// Returns the throughput of all flows of a group in Mb/s.
fn total(outcome: &Outcome, group: &str) -> f64 {
    let flows = outcome.flows.iter().filter(|flow| flow.group == group);
    flows.map(|flow| throughput(outcome, &flow.name)).sum::<f64>() / 1e6
}

fn statistic(outcome: &Outcome, of: &str, name: &str) -> f64 {
    let found = link(outcome, of).statistics.iter().find(|(known, _)| *known == name);
    found.map_or(0.0, |&(_, value)| value)
}

#[test]
fn what_the_next_link_loses_is_left_to_flows_that_can_use_it() {
    // Datagrams can use 1 of 10 Mb/s; without reports they get half of it.
    let (reporting, silent) = (run(&narrow(SFFC, "")), run(&narrow(SILENT, "")));
    assert!(total(&reporting, "tcp") > 7.0, "{}", total(&reporting, "tcp"));
    assert!(total(&silent, "tcp") < 5.5, "{}", total(&silent, "tcp"));
    // It does not starve them.
    assert!(total(&reporting, "udp") > 0.9, "{}", total(&reporting, "udp"));
    assert!(statistic(&reporting, "middle", "heard") > 100.0);
    assert_eq!(statistic(&silent, "middle", "heard"), 0.0);
    // Reports without fairness: if nothing is lost behind the link, datagrams take all of it.
    let shared = |queue| run(&narrow(queue, "").replace("rate = \"1Mbit\"", "rate = \"10Mbit\""));
    assert!(total(&shared(SFFC), "tcp") > 3.5);
    assert!(total(&shared(r#"{ kind = "nbq" }"#), "tcp") < 0.5);
}

#[test]
fn counters_of_a_plain_exit_do_for_its_reports() {
    // The exit is narrow for a call, too, which sends less than its share, and for TCP.
    let more = "flow call: s2 -> d2, source = { kind = cbr, rate = 100kbit, packet = 200B }
            flow late: s1 -> d2, start = 1s";
    let blind = r#"{ kind = "sffc", counters = false }"#;
    for exit in ["fifo", "fq_codel"] {
        let [reads, blind] = [SFFC, blind].map(|queue| run(&narrow_exit(queue, exit, more)));
        assert!(total(&reads, "tcp") > 7.0, "{exit}: {}", total(&reads, "tcp"));
        assert!(total(&blind, "tcp") < 5.5, "{exit}: {}", total(&blind, "tcp"));
        // It cuts no flow below its fair share of the exit, and leaves nothing there unused.
        assert!(total(&reads, "call") > 0.085, "{exit}: {}", total(&reads, "call"));
        let at_exit: f64 = ["udp", "call", "late"].iter().map(|group| total(&reads, group)).sum();
        assert!(at_exit > 0.93, "{exit}: {at_exit}");
    }
    // TCP through a FIFO gets its share once the datagrams are cut; without, nothing.
    let late = |queue| total(&run(&narrow_exit(queue, "fifo", more)), "late");
    assert!(late(SFFC) > 0.08 && late(blind) < 0.02, "{} {}", late(SFFC), late(blind));
}

#[test]
fn an_exit_that_becomes_wider_is_noticed() {
    let more = "change 5s: link.out_udp.rate = 6Mbit";
    let outcome = run(&narrow_exit(SFFC, "fifo", more).replace("stop = \"15s\"", "stop = \"40s\""));
    assert!(total(&outcome, "udp") > 3.0, "{}", total(&outcome, "udp"));
}

#[test]
fn messages_are_packets_that_a_link_can_lose() {
    let lost = run(&narrow(SFFC, "").replace("[link.out_udp]", "back.loss = 1\n[link.out_udp]"));
    assert_eq!(statistic(&lost, "middle", "heard"), 0.0);
    assert!(statistic(&lost, "out_udp", "queries_sent") > 0.0);
    // The delay of a report is that of the links it crosses.
    let slow = narrow(SFFC, "").replace("[link.out_udp]", "back.delay = \"8s\"\n[link.out_udp]");
    assert_eq!(statistic(&run(&slow), "middle", "heard"), 0.0, "after the question, the answer is too late");
}

#[test]
fn a_query_passes_a_router_that_takes_no_part() {
    // r1 - plain - r2: the question towards the source passes `plain`, which is no neighbour that answers.
    let second =
        "[link.second]\nfrom = \"plain\"\nto = \"r2\"\nrate = \"100Mbit\"\ndelay = \"1ms\"\n[link.middle]";
    let text = narrow(SFFC, "").replace("[link.middle]", second);
    let text = text.replace("from = \"r1\"\nto = \"r2\"", "from = \"r1\"\nto = \"plain\"");
    let outcome = run(&text);
    assert!(statistic(&outcome, "middle", "heard") > 100.0, "{}", statistic(&outcome, "middle", "heard"));
    assert!(total(&outcome, "tcp") > 7.0, "{}", total(&outcome, "tcp"));
}

#[test]
fn a_source_that_takes_no_part_ends_the_search() {
    let outcome = run(&narrow(SFFC, ""));
    let (asked, in_vain) = ("queries_sent", "searches_without_answer");
    assert!(statistic(&outcome, "middle", in_vain) > 0.0);
    // Five flows, in 15 s: a few requests each and then a pause.
    assert!(statistic(&outcome, "middle", asked) < 150.0, "{}", statistic(&outcome, "middle", asked));
}

/// Datagrams at 10 Mb/s over three hops of 10 Mb/s, each with five TCP flows, to a link of 1 Mb/s.
fn chain(queue: &str, delay: &str) -> String {
    format!(
        "
            seed = 2, stop = 20s, measure_from = 5s
            [topology] kind = parking_lot, hops = 3, link = {{ rate = 10Mbit, delay = {delay}, queue = {queue} }},
                access = {{ rate = 100Mbit, delay = 1ms }}
            link last: n4 -> end, rate = 1Mbit, delay = 1ms, queue = {queue}
            flow tcp: in{{ceil(i / 5)}} -> out{{ceil(i / 5)}}, count = 15,
                tcp = {{ profile = ns2-full, window = 1000p }}, start = {{ between = [0s, 1s] }}
            flow udp: src -> end, source = {{ kind = cbr, rate = 10Mbit, packet = 1000B, jitter = 5% }}
        "
    )
}

/// Returns the throughput of the datagrams on the first hop, and at the sink, in Mb/s.
fn first_and_last(outcome: &Outcome) -> [f64; 2] {
    let tcp: u64 = (1..=5).map(|i| flow(outcome, &format!("tcp.{i}")).delivered.bytes.bits()).sum();
    let first = link(outcome, "hop1").sent.bytes.bits() - tcp;
    [first as f64 / outcome.measured.as_secs_f64() / 1e6, throughput(outcome, "udp") / 1e6]
}

#[test]
fn a_cut_travels_from_hop_to_hop() {
    let ([first, last], [silent, _]) =
        (first_and_last(&run(&chain(SFFC, "1ms"))), first_and_last(&run(&chain(SILENT, "1ms"))));
    // Without reports they get their share of the first hop, a sixth.
    assert!(first < 1.4 && silent > 1.6, "{first} with reports, {silent} without");
    assert!(last > 0.8, "{last}");
}

#[test]
fn reports_that_are_late_help_less_and_starve_no_flow() {
    // Over 20 ms reports are less than an interval late, over 200 ms four.
    let gain = |delay| {
        let (reporting, silent) = (run(&chain(SFFC, delay)), run(&chain(SILENT, delay)));
        let [_, last] = first_and_last(&reporting);
        assert!(last > 0.7, "{last} at the end of links of {delay}");
        (total(&reporting, "tcp") - total(&silent, "tcp")) / total(&silent, "tcp")
    };
    let [near, middle] = ["1ms", "20ms"].map(gain);
    assert!(near > 0.03 && middle > 0.01, "{near} {middle}");
    gain("200ms");
}

#[test]
fn datagrams_alone_share_fairly_without_messages() {
    // The TCP flow starts after the end.
    let alone = narrow(SILENT, "").replace("between = [\"0s\", \"1s\"]", "between = [\"15s\", \"16s\"]");
    let alone = alone.replace("rate = \"1Mbit\"", "rate = \"100Mbit\"");
    let outcome = run(&alone);
    assert_eq!(total(&outcome, "tcp"), 0.0);
    for i in 1..=5 {
        let rate = throughput(&outcome, &format!("udp.{i}")) / 1e6;
        assert!((1.8..2.2).contains(&rate), "udp.{i} has {rate}");
    }
}

#[test]
fn intervals_may_be_shorter_than_usual() {
    // Routers accept reports as often as their queues are configured to send them.
    let queue = r#"{ kind = "sffc", preset = "paper", interval = "10ms", active = "500ms" }"#;
    let outcome = run(&narrow(queue, ""));
    assert_eq!(statistic(&outcome, "middle", "refused_too_soon"), 0.0);
    assert!(statistic(&outcome, "middle", "heard") > 500.0, "{}", statistic(&outcome, "middle", "heard"));
}

#[test]
fn a_queue_that_begins_to_take_part_is_noticed() {
    let change = format!("[[change]]\nat = \"5s\"\nset = \"link.middle.queue\"\nto = {SFFC}");
    let text = narrow(SFFC, &change).replacen(&format!("queue = {SFFC}"), "queue = \"fifo\"", 1);
    assert!(statistic(&run(&text), "middle", "heard") > 100.0);
}

#[test]
fn the_same_seed_gives_the_same_messages() {
    let counts = || {
        let outcome = run(&narrow(SFFC, ""));
        (outcome.events, ["heard", "queries_sent"].map(|name| statistic(&outcome, "middle", name).to_bits()))
    };
    assert_eq!(counts(), counts());
}
