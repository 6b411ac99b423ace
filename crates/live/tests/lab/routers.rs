//! Routers that exchange reports, as packets.

use apportion_runtime::outcome::Outcome;

use crate::common::{flow, link, run};

/// The discipline reports every drop of a flow, so that reports do not stop once they have an effect, and it
/// reports at once: with a FIFO there is no wait until a flow is known to ignore losses.
const SFFC: &str = r#"{ kind = "sffc", discipline = "fifo", report_discards = 0.1 }"#;
const SILENT: &str = r#"{ kind = "sffc", discipline = "fifo", reports = false }"#;

/// Datagrams of 10 Mb/s over three hops of 10 Mb/s, each with two TCP flows, to a link of 1 Mb/s.
fn chain(queue: &str) -> String {
    format!(
        r#"
        seed = 1
        stop = "6s"
        measure_from = "2s"
        [topology]
        kind = "parking_lot"
        hops = 3
        link = {{ rate = "10Mbit", delay = "1ms", queue = {queue} }}
        access = {{ rate = "100Mbit", delay = "1ms" }}
        [link.last]
        from = "n4"
        to = "end"
        rate = "1Mbit"
        delay = "1ms"
        queue = {queue}
        [flow.tcp]
        count = 6
        from = "in{{ceil(i / 2)}}"
        to = "out{{ceil(i / 2)}}"
        tcp = "rfc"
        [flow.udp]
        from = "src"
        to = "end"
        source = {{ kind = "cbr", rate = "10Mbit", packet = "1000B", jitter = "5%" }}
    "#
    )
}

/// Datagrams of 10 Mb/s and two TCP flows over `hop1` of 10 Mb/s; behind a router without reports datagrams
/// get 1 Mb/s. `more` are keys of the link between the routers with reports.
fn asked_past(more: &str) -> String {
    format!(
        r#"
        seed = 1
        stop = "6s"
        measure_from = "2s"
        link.in = {{ from = "src", to = "r1", rate = "100Mbit", delay = "1ms" }}
        link.hop1 = {{ from = "r1", to = "plain", rate = "10Mbit", delay = "1ms", queue = {SFFC} }}
        link.hop2 = {{ from = "plain", to = "r2", rate = "100Mbit", delay = "1ms", {more} }}
        link.out = {{ from = "r2", to = "out", rate = "100Mbit", delay = "1ms" }}
        link.last = {{ from = "r2", to = "end", rate = "1Mbit", delay = "1ms", queue = {SFFC} }}
        [flow.tcp]
        count = 2
        from = "src"
        to = "out"
        tcp = "rfc"
        [flow.udp]
        from = "src"
        to = "end"
        source = {{ kind = "cbr", rate = "10Mbit", packet = "1000B", jitter = "5%" }}
    "#
    )
}

fn statistic(outcome: &Outcome, of: &str, name: &str) -> f64 {
    let found = link(outcome, of).statistics.iter().find(|(known, _)| *known == name);
    found.map_or(0.0, |&(_, value)| value)
}

/// Throughput of the datagrams at the first hop and at the end, in Mb/s.
fn first_and_last(outcome: &Outcome) -> [f64; 2] {
    let delivered = |name: &str| flow(outcome, name).delivered.bytes.bits() as f64;
    let first = link(outcome, "hop1").sent.bytes.bits() as f64 - delivered("tcp.1") - delivered("tcp.2");
    [first, delivered("udp")].map(|bits| bits / outcome.measured.as_secs_f64() / 1e6)
}

pub fn what_the_last_link_loses_is_discarded_at_the_first() {
    let outcome = run(&chain(SFFC));
    let [first, last] = first_and_last(&outcome);
    // The last link can use 1 of 10 Mb/s.
    assert!(first < 2.0, "{first}");
    assert!(last > 0.6, "{last}");
    // Each router gets reports of the next one; the last has no next one, and the first has no router to
    // report to.
    for (link, receives, sends) in
        [("hop1", true, false), ("hop2", true, true), ("hop3", true, true), ("last", false, true)]
    {
        let [reports, sent] = ["heard", "reports_sent"].map(|name| statistic(&outcome, link, name));
        assert_eq!(
            (reports > 5.0, sent > 5.0),
            (receives, sends),
            "{link} received {reports} and sent {sent}"
        );
    }
    assert!(statistic(&outcome, "hop1", "answers_sent") > 0.0);
    assert!(statistic(&outcome, "hop1", "searches_without_answer") > 0.0, "the source takes no part");
}

pub fn without_reports_it_is_not() {
    let outcome = run(&chain(SILENT));
    let [first, last] = first_and_last(&outcome);
    // A third of the first hop, or more where TCP is slow.
    assert!(first > 3.0, "{first}");
    assert!(last > 0.9, "{last}");
    assert_eq!(statistic(&outcome, "hop1", "heard"), 0.0);
}

pub fn a_query_passes_a_router_that_takes_no_part() {
    let outcome = run(&asked_past(""));
    let [first, last] = first_and_last(&outcome);
    assert!(first < 2.0 && last > 0.6, "{first} {last}");
    assert!(statistic(&outcome, "hop1", "heard") > 20.0);
}

pub fn messages_are_packets_that_a_link_can_lose() {
    let outcome = run(&asked_past("back = { loss = 1 }"));
    assert_eq!(statistic(&outcome, "hop1", "heard"), 0.0);
    assert!(statistic(&outcome, "last", "queries_sent") > 1.0);
    assert!(link(&outcome, "hop2.back").lost > 1, "{}", link(&outcome, "hop2.back").lost);
}
