//! A run depends only on its scenario and its seed.

use std::sync::atomic::AtomicBool;

use apportion_core::random::fnv1a;
use apportion_runtime::outcome::{Outcome, Timekeeping};
use apportion_scenario::replication_seed;
use apportion_sim::{Job, replicate};

use crate::common::{self, flow, run, run_with, scenarios, scenarios_with_jitter};

const HEAD: &str = "seed = 5\nstop = \"20s\"\nmeasure_from = \"2s\"\n";

/// Blocks that together use everything that draws random numbers or computes with fractions. They can stand
/// in any order.
const BLOCKS: [&str; 12] = [
    r#"
[link.red]
from = "a"
to = "b"
rate = "4Mbit"
delay = "55ms"
queue = { kind = "red", limit = "60p", min_th = "5p", max_th = "15p" }
loss = "0.2%"
watch = true
"#,
    r#"
[link.codel]
from = "b"
to = "c"
rate = "3Mbit"
delay = "13ms"
queue = { kind = "codel", limit = "1000p", ecn = true }
watch = true
"#,
    r#"
[link.fair]
from = "a"
to = "c"
rate = "5Mbit"
delay = "40ms"
queue = { kind = "fq_codel", limit = "10240p", memory_limit = "32MB", classify = "hashed" }
watch = true
"#,
    r#"
[flow.reno]
count = 3
from = "a"
to = "b"
tcp = "ns2-2000"
start = { between = ["0s", "1s"] }
"#,
    r#"
[flow.cubic]
count = 2
from = "b"
to = "c"
tcp = { profile = "rfc", algorithm = "cubic", ecn = true }
start = { between = ["0s", "1s"] }
"#,
    r#"
[flow.onoff]
from = "a"
to = "c"
path = ["fair"]
source = { kind = "on_off", rate = "2Mbit", on = "300ms", off = "500ms", shape = "pareto" }
"#,
    r#"
[flow.video]
from = "a"
to = "c"
path = ["fair"]
source = { kind = "video", mean = "1500kbit" }
"#,
    r#"
[flow.web]
from = "a"
to = "c"
tcp = "reno-1999"
source = { kind = "short_flows", per_second = 8, mean_size = "20kB" }
"#,
    r#"
[flow.poisson]
from = "a"
to = "b"
source = { kind = "poisson", rate = "500kbit", packet = "300B" }
"#,
    r#"
[[change]]
at = "8s"
set = "link.red.rate"
to = "7Mbit"
"#,
    r#"
[[change]]
at = "8s"
set = "flow.poisson.rate"
to = "900kbit"
"#,
    r#"
[[change]]
at = "12s"
set = "link.codel.loss"
to = "1%"
"#,
];

fn rich() -> String {
    HEAD.to_owned() + &BLOCKS.concat()
}

/// Every count, distribution and series. Fractions are written with all their digits.
fn text(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

#[test]
fn the_same_seed_gives_the_same_and_another_seed_does_not() {
    let scenario = scenarios(&rich()).pop().unwrap();
    assert_eq!(text(&run_with(&scenario, 5)), text(&run_with(&scenario, 5)));
    let (five, six) = (run_with(&scenario, 5), run_with(&scenario, 6));
    // Every flow is affected by randomness: none stays unchanged.
    for (one, other) in five.flows.iter().zip(&six.flows) {
        assert_ne!(format!("{one:?}"), format!("{other:?}"));
    }
}

#[test]
fn with_the_time_of_hosts_the_same_seed_gives_the_same() {
    let scenario = scenarios_with_jitter(&rich()).pop().unwrap();
    let outcome = text(&run_with(&scenario, 5));
    assert_eq!(outcome, text(&run_with(&scenario, 5)));
    assert_ne!(outcome, text(&run(&rich())));
}

#[test]
fn the_number_of_threads_and_other_runs_on_them_change_nothing() {
    let scenario = scenarios(&rich()).pop().unwrap();
    let jobs: Vec<Job<'_>> = (0..4).map(|k| Job::new(&scenario, replication_seed(5, k))).collect();
    let texts = |jobs: &[Job<'_>], threads| -> Vec<String> {
        let outcomes = replicate(jobs, threads, &|_| {}, &AtomicBool::new(false)).unwrap();
        outcomes.iter().map(|outcome| text(outcome.as_ref().unwrap())).collect()
    };
    let one = texts(&jobs, 1);
    assert_eq!(one, texts(&jobs, 2));
    let alone: Vec<String> = jobs.iter().flat_map(|job| texts(std::slice::from_ref(job), 1)).collect();
    assert_eq!(one, alone);
}

#[test]
fn the_order_of_declarations_changes_nothing() {
    let mut reversed = BLOCKS;
    reversed.reverse();
    let mut rotated = BLOCKS;
    rotated.rotate_left(5);
    let outcome = text(&run(&rich()));
    for blocks in [reversed, rotated] {
        assert_eq!(text(&run(&(HEAD.to_owned() + &blocks.concat()))), outcome);
    }
}

#[test]
fn a_renamed_flow_keeps_its_numbers_with_its_stream() {
    let outcome = text(&run(&rich()));
    let renamed = |with_stream: bool| {
        let mut text = rich();
        for (old, new) in [("reno", "renamed"), ("onoff", "only"), ("web", "webs")] {
            let stream = if with_stream { format!("\nstream = \"{old}\"") } else { String::new() };
            text = text.replace(&format!("[flow.{old}]"), &format!("[flow.{new}]{stream}"));
        }
        let renamed = self::text(&run(&text));
        renamed.replace("\"renamed", "\"reno").replace("\"only", "\"onoff").replace("\"webs", "\"web")
    };
    assert_eq!(renamed(true), outcome);
    assert_ne!(renamed(false), outcome);
}

#[test]
fn the_outcome_is_the_same_on_every_machine_and_in_every_profile() {
    // Golden: continuous integration runs this unoptimised; `cargo test --release -p apportion-sim --test
    // determinism` must find the same number. A deliberate change of the engine, of a discipline or of what
    // an outcome holds moves it, and says so in the change log.
    let outcome = run(&rich());
    // The purpose of the scenario is met.
    let sum = |count: &dyn Fn(&apportion_runtime::outcome::FlowOutcome) -> u64| -> u64 {
        outcome.flows.iter().map(count).sum()
    };
    assert!(sum(&|flow| common::dropped(&flow.dropped)) > 0 && sum(&|flow| flow.marked) > 0);
    assert!(sum(&|flow| flow.lost) > 0 && sum(&|flow| flow.timeouts.unwrap()) > 0);
    assert!(sum(&|flow| flow.completions.len() as u64) > 50);
    // The number of events that the engine processed is not a result, nor are the statistics of disciplines.
    let mut outcome = Outcome { events: 0, ..outcome };
    outcome.links.iter_mut().for_each(|link| link.statistics.clear());
    let hash = fnv1a(&text(&outcome));
    assert_eq!(hash, GOLDEN, "0x{hash:016x}");
}
const GOLDEN: u64 = 0x6d4a_bdd0_61fb_84dd;

#[test]
fn an_outcome_that_is_serialised_reads_back_as_it_was() {
    let mut outcome = run(&rich());
    outcome.flows[0].fast_retransmits = None;
    outcome.timekeeping = Some(Timekeeping { failures: vec!["one".to_owned()], ..Timekeeping::default() });
    let written = serde_json::to_string(&outcome).unwrap();
    let read: Outcome = serde_json::from_str(&written).unwrap();
    assert_eq!(text(&read), text(&outcome));
    // Integers in nanoseconds, bits per second and bytes, and names as results have them.
    let value: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(value["measured"], outcome.measured.as_nanos());
    assert_eq!(value["links"][0]["rate"], outcome.links[0].rate.as_bit());
    assert_eq!(value["flows"][0]["sent"]["bytes"], outcome.flows[0].sent.bytes.get());
    assert!(value["flows"][0]["fast_retransmits"].is_null());
    let drops: Vec<&str> =
        outcome.flows.iter().flat_map(|flow| flow.dropped.keys()).map(|it| it.name()).collect();
    assert!(!drops.is_empty() && drops.iter().all(|name| written.contains(&format!("\"{name}\":"))));
}

/// A pair of hosts with a link of its own, on which all is random: start, writes, loss, RED, and the phase of
/// clocks with ticks of 100 ms, which decides whether a round trip of 120 ms measures one tick or two.
fn isolated(name: &str, tcp: &str, source: &str) -> String {
    format!(
        r#"
[link.{name}]
from = "{name}-from"
to = "{name}-to"
rate = "500kbit"
delay = "60ms"
queue = {{ kind = "red", limit = "30p", min_th = "3p", max_th = "9p" }}
loss = "2%"
[flow.{name}]
from = "{name}-from"
to = "{name}-to"
start = {{ between = ["0s", "2s"] }}
{tcp}
{source}
"#
    )
}

#[test]
fn a_new_component_does_not_shift_the_draws_of_others() {
    let cases = [
        ("tcp = \"ns2-2000\"", ""),
        ("tcp = \"ns2-235\"", "source = { kind = \"short_flows\", per_second = 5, mean_size = \"20kB\" }"),
        ("tcp = { profile = \"rfc\", algorithm = \"cubic\" }", ""),
        (
            "",
            "source = { kind = \"on_off\", rate = \"3Mbit\", on = \"1s\", off = \"1s\", shape = \"pareto\" }",
        ),
        ("", "source = { kind = \"video\", mean = \"1Mbit\" }"),
        ("", "source = { kind = \"cbr\", rate = \"1Mbit\", jitter = \"20%\" }"),
    ];
    for (tcp, source) in cases {
        let pair = isolated("pair", tcp, source);
        // One component comes before the pair by name, another one after it, and links and flows get new
        // numbers.
        let others = isolated("before", "tcp = \"ns2-2000\"", "") + &isolated("zebra", "tcp = \"rfc\"", "");
        let alone = run(&(HEAD.to_owned() + &pair));
        let together = run(&(HEAD.to_owned() + &pair + &others));
        let text = |outcome: &Outcome| format!("{:?}", flow(outcome, "pair"));
        assert!(flow(&alone, "pair").lost > 0);
        assert_eq!(text(&alone), text(&together), "{tcp} {source}");
    }
}

#[test]
fn a_light_flow_elsewhere_does_not_change_the_turns_of_a_queue() {
    for queue in ["drr", "rr", "fq", "fq_codel", "fq_pie", "afq", "stfq", "scfq", "wfq", "wf2q", "wf2q_plus"]
    {
        let shared = format!(
            r#"
[link.x]
from = "a"
to = "b"
rate = "5Mbit"
delay = "5ms"
queue = "{queue}"
[flow.f]
count = 3
from = "a"
to = "b"
weight = "i"
tcp = "rfc"
"#
        );
        let light = isolated("light", "weight = 0.001", "source = { kind = \"cbr\", rate = \"10kbit\" }");
        let text = |outcome: &Outcome| format!("{:?}", flow(outcome, "f.2"));
        let alone = run(&(HEAD.to_owned() + &shared));
        let together = run(&(HEAD.to_owned() + &shared + &light));
        assert!(flow(&alone, "f.2").delivered.packets.get() > 0);
        assert_eq!(text(&alone), text(&together), "{queue}");
    }
}
