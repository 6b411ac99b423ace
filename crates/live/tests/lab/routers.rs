//! Routers that exchange reports, as packets.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_live::lab;
use apportion_scenario::outcome::{LinkOutcome, Outcome};

use crate::processes::enter;

const SFFC: &str = r#"{ kind = "sffc" }"#;
const SILENT: &str = r#"{ kind = "sffc", reports = false }"#;

/// Datagrams of 10 Mb/s over three hops of 10 Mb/s, each with two TCP flows, to a link of 1 Mb/s.
fn chain(queue: &str, more: &str) -> String {
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
        {more}
        [flow.tcp]
        count = 6
        from = "in{{ceil(i / 2)}}"
        to = "out{{ceil(i / 2)}}"
        tcp = "linux"
        [flow.udp]
        from = "src"
        to = "end"
        source = {{ kind = "cbr", rate = "10Mbit", packet = "1000B", jitter = "5%" }}
    "#
    )
}

fn run(text: &str) -> Outcome {
    enter();
    let suite = apportion_scenario::load(text, Path::new("x.toml"), &[], &|path| panic!("{path:?}"));
    let suite = suite.unwrap_or_else(|problems| panic!("{problems:?}"));
    lab::run(&suite.points[0].scenario, 1, &AtomicBool::new(false)).unwrap().unwrap()
}

fn link<'a>(outcome: &'a Outcome, name: &str) -> &'a LinkOutcome {
    outcome.links.iter().find(|link| link.name == name).unwrap()
}

fn statistic(outcome: &Outcome, of: &str, name: &str) -> f64 {
    let found = link(outcome, of).statistics.iter().find(|(known, _)| *known == name);
    found.map_or(0.0, |&(_, value)| value)
}

/// What the first hop carries of the datagrams in Mb/s, and what arrives of them.
fn first_and_last(outcome: &Outcome) -> [f64; 2] {
    let delivered = |name: &str| {
        let flow = outcome.flows.iter().find(|flow| flow.name == name).unwrap();
        flow.delivered.bytes.bits() as f64
    };
    let first = link(outcome, "hop1").sent.bytes.bits() as f64 - delivered("tcp.1") - delivered("tcp.2");
    [first, delivered("udp")].map(|bits| bits / outcome.measured.as_secs_f64() / 1e6)
}

pub fn what_the_last_link_loses_is_discarded_at_the_first() {
    let outcome = run(&chain(SFFC, ""));
    let [first, last] = first_and_last(&outcome);
    for at in ["hop1", "hop2", "hop3", "last"] {
        eprintln!("{at}: {:?}", link(&outcome, at).statistics);
    }
    eprintln!("{first} {last}");
    panic!();
}

pub fn without_reports_it_is_not() {
    let outcome = run(&chain(SILENT, ""));
    let [first, last] = first_and_last(&outcome);
    eprintln!("{first} {last}");
    panic!();
}

pub fn a_router_that_takes_no_part_is_asked_past() {}

pub fn messages_are_packets_that_a_link_can_lose() {}
