//! Programs for measuring networks, through a gateway.

use std::process::{Command, Stdio};

use apportion_linux::host::Host;
use apportion_testing::child::Running;
use apportion_testing::skip;
use serde_json::Value;

use super::place::{PLAIN, place};

/// Starts a program on a host.
fn start(host: &Host, command: &'static str) -> Running {
    let spawn = move || {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Running::start(&mut shell)
    };
    host.namespace.run(spawn).unwrap()
}

/// Runs a program on a host and parses its JSON output.
fn printed(host: &Host, command: &'static str) -> Value {
    let output = start(host, command).output();
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{command}: {why}: {text}"))
}

pub fn iperf3_has_the_rate_and_irtt_the_delay_of_a_gateway() {
    if !skip::unless_found(&["iperf3", "irtt"]) {
        return;
    }
    let place = place();
    let path =
        place.write(&format!("{PLAIN}up.delay = \"10ms\"\ndown.delay = \"5ms\"\nup.queue = \"fq_codel\"\n"));
    let gateway = place.start(&path);
    let [near, far] = &place.hosts;
    let _servers = [start(far, "exec iperf3 -s"), start(far, "exec irtt server")];
    // The client asks until the server answers; by then the other server listens too.
    let rtt = printed(near, "irtt client -i 10ms -d 1s -Q -o - 10.0.0.2");
    let median = rtt["stats"]["rtt"]["median"].as_f64().unwrap() / 1e6;
    assert!((15.0..17.0).contains(&median), "{median} ms");
    let upload = printed(near, "iperf3 -c 10.0.0.2 -t 4 -O 1 -J");
    let mbps = upload["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    assert!((9.2..9.7).contains(&mbps), "{mbps}");
    gateway.stop();
}
