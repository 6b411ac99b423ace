//! Congestion controls against the formulas of their sources.

mod bbr;
mod bbr3;
mod dctcp;
mod ledbat;
mod prague;
mod vegas;

use apportion_runtime::outcome::Outcome;
use apportion_scenario::tcp::{ALGORITHMS, Algorithm, TcpParams};
use apportion_sim::congestion::control::Control;

use crate::common;

/// One link from `a` to `b`, watched and measured from `from` to `stop` seconds, with this additional text.
fn run(link: &str, from: u64, stop: u64, flows: &str) -> Outcome {
    common::run(&format!(
        "seed = 3\nstop = \"{stop}s\"\nmeasure_from = \"{from}s\"\nsample = \"10ms\"\n\
         [link.wire]\nfrom = \"a\"\nto = \"b\"\nwatch = true\n{link}\n{flows}"
    ))
}

/// Flows `name` of these `keys`, all alike.
fn flows(name: &str, keys: &str) -> String {
    format!("[flow.{name}]\nfrom = \"a\"\nto = \"b\"\n{keys}\n")
}

/// The congestion windows of a flow from `from` seconds on.
fn windows(outcome: &Outcome, name: &str, from: usize) -> Vec<f64> {
    common::flow(outcome, name).tcp.iter().skip(100 * from).map(|sample| sample.window).collect()
}

#[test]
fn every_control_keeps_the_laws() {
    for entry in ALGORITHMS {
        let algorithm = Algorithm::named(entry.name).unwrap();
        // Full segments of these profiles have the size in the laws.
        for profile in ["linux", "rfc"] {
            let params = TcpParams { algorithm: algorithm.clone(), ..TcpParams::profile(profile).unwrap() };
            if let Err(broken) = apportion_laws::verify_control(|_| Control::new(&params)) {
                panic!("{algorithm} of {profile}: {broken}");
            }
        }
    }
}
