//! RAMP in the simulator: in the sending host, in front of the interface.

mod common;

use common::{flow, run, throughput};

/// A 10 Mb/s interface with RAMP, and 20 Mb/s of UDP beside what `flow` says.
fn sender(queue: &str, flows: &str) -> String {
    format!(
        r#"
seed = 1
stop = "20s"
measure_from = "5s"
sample = "100ms"
[link.interface]
from = "host"
to = "receiver"
rate = "10Mbit"
delay = "1ms"
queue = {queue}
watch = true
back.queue = {{ kind = "fifo", limit = "1000p" }}
[flow.greedy]
from = "host"
to = "receiver"
source = {{ kind = "cbr", rate = "20Mbit", packet = "1400B", jitter = 0.5 }}
{flows}
"#
    )
}

/// UDP of a rate.
fn steady(name: &str, rate: &str, class: &str) -> String {
    format!(
        r#"
[flow.{name}]
from = "host"
to = "receiver"
class = "{class}"
source = {{ kind = "cbr", rate = "{rate}", packet = "1000B" }}
"#
    )
}

#[test]
fn a_real_rate_flow_gets_what_it_needs_and_a_greedy_one_what_is_left() {
    let of = |class: &str| {
        let outcome = run(&sender(r#""ramp""#, &steady("call", "1Mbit", class)));
        (throughput(&outcome, "call"), throughput(&outcome, "greedy"))
    };
    let (call, greedy) = of("real_rate");
    assert!((call / 1e6 - 1.0).abs() < 0.01 && (greedy / 1e6 - 9.0).abs() < 0.05, "{call} {greedy}");
    // Among greedy flows it has its part of what arrives: 1 of 21, of 10 Mb/s.
    let (call, _) = of("greedy");
    assert!((call / 1e6 - 0.476).abs() < 0.05, "{call}");
}

#[test]
fn a_change_of_class_moves_a_flow_while_the_run_goes_on() {
    let change = |from: &str, to: &str| {
        let flows = steady("call", "1Mbit", from);
        let change = format!("[[change]]\nat = \"10s\"\nset = \"flow.call.class\"\nto = \"{to}\"\n");
        let outcome = run(&sender(r#""ramp""#, &(flows + &change)));
        let call = &flow(&outcome, "call").series;
        let mbps = |part: std::ops::Range<usize>| {
            call[part.clone()].iter().map(|bytes| bytes.bits()).sum::<u64>() as f64 / part.len() as f64 / 1e5
        };
        (mbps(50..100), mbps(150..200))
    };
    let (before, after) = change("greedy", "real_rate");
    assert!(before < 0.55 && (after - 1.0).abs() < 0.02, "{before} {after}");
    let (before, after) = change("real_rate", "greedy");
    assert!((before - 1.0).abs() < 0.02 && after < 0.55, "{before} {after}");
}

#[test]
fn a_queue_that_comes_later_knows_the_classes_too() {
    let change = "[[change]]\nat = \"2s\"\nset = \"link.interface.queue\"\nto = \"ramp\"\n";
    let outcome = run(&sender(r#""fifo""#, &(steady("call", "1Mbit", "real_rate") + change)));
    let call = throughput(&outcome, "call");
    assert!((call / 1e6 - 1.0).abs() < 0.01, "{call}");
}
