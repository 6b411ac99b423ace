//! A run that is cut has the same measurements as a run that ends at that time.

use std::sync::atomic::{AtomicBool, Ordering};

use apportion_core::units::Time;
use apportion_runtime::outcome::{FlowOutcome, LinkOutcome, Outcome};
use apportion_scenario::model::Scenario;
use apportion_sim::{Detail, Ending, Simulation};

use crate::common;

const TEXT: &str = r#"
seed = 5
stop = "60s"
measure_from = "1s"
sample = "500ms"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck = { rate = "40Mbit", delay = "7ms", queue = "fq_codel" }
[flow.bulk]
count = 3
from = "l{i}"
to = "r{i}"
source = { kind = "greedy" }
[flow.udp]
from = "l1"
to = "r1"
source = { kind = "poisson", rate = "3Mbit" }
[flow.web]
from = "l2"
to = "r2"
source = { kind = "short_flows", per_second = 5, mean_size = "20kB" }
"#;

fn simulation(scenario: &Scenario) -> Simulation<'_> {
    Simulation::new(scenario, scenario.seed, Detail::Full, &mut |_| None).unwrap()
}

/// The throughput of flows and the drops of links, without packets sent at the last instant.
fn text(outcome: &Outcome) -> String {
    let flow = |flow: &FlowOutcome| {
        let sent = Default::default();
        format!("{:?}", FlowOutcome { sent, ..flow.clone() })
    };
    let link = |link: &LinkOutcome| format!("{} {:?} {:?}", link.name, link.dropped, link.marked);
    outcome.flows.iter().map(flow).chain(outcome.links.iter().map(link)).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_cut_run_is_the_run_that_ends_there() {
    let scenario = common::scenarios(TEXT).remove(0);
    for from in [1_500, 15_000, 30_000] {
        let mut cut = simulation(&scenario);
        let cancel = AtomicBool::new(false);
        let reached = |now: Time| cancel.store(now >= Time::from_millis(from), Ordering::Relaxed);
        let Ending::Cut(at) = cut.run_with(&cancel, &reached, &|_| true) else { panic!("it is whole") };
        assert!(at >= Time::from_millis(from) && at < scenario.stop, "{at}");
        let shorter = Scenario { stop: at, ..scenario.clone() };
        let mut whole = simulation(&shorter);
        assert!(whole.run(&AtomicBool::new(false)));
        let (cut, whole) = (cut.outcome(), whole.outcome());
        assert_eq!(cut.measured, at.since(Time::from_secs(1)));
        assert_eq!(text(&cut), text(&whole), "at {at}");
        for (cut, whole) in cut.flows.iter().zip(&whole.flows) {
            let (cut, whole) = (cut.sent.packets.get(), whole.sent.packets.get());
            assert!(cut.abs_diff(whole) <= 1, "{cut} and {whole} at {at}");
        }
    }
}

#[test]
fn a_cancelled_run_that_is_not_cut_has_nothing() {
    let scenario = common::scenarios(TEXT).remove(0);
    let cancel = AtomicBool::new(true);
    assert_eq!(simulation(&scenario).run_with(&cancel, &|_| (), &|_| false), Ending::Cancelled);
}
