//! `apportion top` reads the page of a gateway.

use std::fs;
use std::process::Command;

use apportion_testing::child;

use super::load::Busy;
use super::place::{eventually, place};

const PLANS: &str =
    "name,parent,addresses,down,up\nsite,,,8Mbit,8Mbit\nmill,site,10.0.0.1,,\nothers,site,,1Mbit,1Mbit\n";
const TEXT: &str = "title = \"village\"\ninside = \"near\"\noutside = \"far\"\nmetrics = \"127.0.0.1:9617\"\nplans = \"plans.csv\"\n\
    up = { rate = \"8Mbit\", queue = { kind = \"htb\", discipline = \"drr\", plans = \"up\" } }\n\
    down = { rate = \"8Mbit\", queue = { kind = \"htb\", discipline = \"drr\", plans = \"down\" } }\n\
    [[rule]]\nname = \"films\"\nto_port = \"5001\"\n";

/// What the command prints; it finds the gateway by its usual address.
fn top() -> String {
    let output = child::output(Command::new(env!("CARGO_BIN_EXE_apportion")).args(["top", "--once"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{text}");
    text
}

pub fn a_terminal_shows_the_directions_the_flows_and_the_customers() {
    let place = place();
    fs::write(place.folder.path().join("plans.csv"), PLANS).unwrap();
    let gateway = place.start(&place.write(TEXT));
    let flows =
        [5_001, 5_002].map(|port| ["10.0.0.1", "10.0.0.2"].map(|address| format!("{address}:{port}")));
    let _load = Busy::datagrams(&place.hosts[0], 4, flows.to_vec());
    let has_all = |text: &str| {
        let row = |start: &str, parts: &[&str]| {
            text.lines().any(|line| line.starts_with(start) && parts.iter().all(|part| line.contains(part)))
        };
        row("gateway \"village\": frames pass; up ", &[])
            && row("up ", &["8.00 Mb/s", "drops "])
            && row("udp 10.0.0.1:5001 > 10.0.0.2:5001", &["up", "Mb/s", "films"])
            && row("mill ", &["Mb/s", " %", "["])
    };
    assert!(eventually(|| has_all(&top())), "{}", top());
    gateway.stop();
}
