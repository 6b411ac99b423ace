//! The contents of the history, and for how long it keeps them.

use apportion_core::packet::CustomerId;
use apportion_core::units::{Bytes, Weight};
use apportion_runtime::histogram::Histogram;

use super::*;
use crate::gateway::Gateway;
use crate::gateway::attacks::{Bench, HARDWARE};
use crate::gateway::traffic::Terms;
use crate::notifications::FlowPackets;

const TEXT: &str = "up.rate = \"8Mbit\"\ndown.rate = \"8Mbit\"\n";

fn snapshot() -> Snapshot {
    let engine = Bench::new(TEXT).engine;
    let text = format!("inside = \"a\"\noutside = \"b\"\n{TEXT}");
    let config = apportion_scenario::gateway::GatewayConfig::load(&text, "x.toml".as_ref()).unwrap();
    let mut gateway = Gateway { config: config.clone(), engine, hardware: HARDWARE, left_out: [0; 2] };
    gateway.snapshot(Arc::new(config), &Histogram::default())
}

/// A second in which these flows sent these numbers of bytes up.
fn second(number: u64, flows: impl Iterator<Item = (u64, u64)>) -> Arc<Snapshot> {
    let terms = Terms { weight: Weight::default(), guarantee: Rate::ZERO, customer: CustomerId::OTHERS };
    let flow = |(name, bytes): (u64, u64)| FlowTraffic {
        rule: name.to_string().into(),
        packets: FlowPackets::Rule,
        terms,
        bytes: Bytes::new(bytes),
    };
    let mut snapshot = snapshot();
    snapshot.now = Time::from_secs(number + 1);
    let flows: Vec<FlowTraffic> = flows.map(flow).collect();
    let total = flows.iter().map(|flow| flow.bytes).sum();
    let active = flows.len();
    let traffic = Traffic { number, span: Span::from_secs(1), flows, active, total, ..Traffic::default() };
    snapshot.directions[0].traffic = Arc::new(traffic);
    snapshot.directions[1].traffic =
        Arc::new(Traffic { number, span: Span::from_secs(1), ..Traffic::default() });
    Arc::new(snapshot)
}

#[test]
fn a_flood_of_flows_takes_bounded_memory_and_the_history_of_no_flow_that_sends() {
    let mut history = History::default();
    history.hear(&Arc::new(snapshot()));
    for number in 0..40 {
        let first = 1_000 * (number + 1);
        let flood = (first..first + 255).map(|name| (name, 10));
        history.hear(&second(number, std::iter::once((7, 1_000_000)).chain(flood)));
    }
    let flows = &history.directions[0].flows;
    assert_eq!(flows.len(), MAX_KEPT);
    let steady = &flows[&("7".into(), "all".to_owned())];
    assert_eq!(steady.series.range(), 0..40);
    let rates = history.flow(steady.number).unwrap();
    assert_eq!(rates["bytes_per_second"], json!(vec![1_000_000; 40]));
    let shown = history.latest();
    assert_eq!(shown["up"]["flows"].as_array().unwrap().len(), SHOWN);
    assert_eq!(shown["up"]["active_flows"], 256);
}

#[test]
fn a_flow_is_forgotten_an_hour_after_it_fell_silent() {
    let mut history = History::default();
    history.hear(&Arc::new(snapshot()));
    history.hear(&second(0, std::iter::once((7, 100))));
    history.hear(&second(3_599, std::iter::empty()));
    assert!(history.flow(1).is_some());
    history.hear(&second(3_600, std::iter::empty()));
    assert_eq!(history.flow(1), None);
}

#[test]
fn interfaces_that_go_down_and_refused_guarantees_are_events() {
    let mut history = History::default();
    let before = snapshot();
    let mut after = before.clone();
    after.now = Time::from_secs(3);
    after.ports[0].down = 2;
    after.events[1].gone = 1;
    after.events[1].back = 1;
    after.directions[1].guarantees.refused = [0, 5, 0];
    history.hear(&Arc::new(before));
    history.hear(&Arc::new(after.clone()));
    after.now = Time::from_secs(4);
    history.hear(&Arc::new(after));
    let events = history.events(9);
    let found: Vec<String> = events.as_array().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(
        found,
        [
            r#"{"at":3.0,"count":2,"kind":"interface down","what":"a"}"#,
            r#"{"at":3.0,"count":1,"kind":"interface gone","what":"b"}"#,
            r#"{"at":3.0,"count":1,"kind":"interface back","what":"b"}"#,
            r#"{"at":3.0,"count":5,"kind":"guarantee refused","what":"down: limit of rule"}"#,
        ]
    );
}
