//! Changes of a gateway's configuration by a reload, and changes that it refuses.

use apportion_scenario::gateway::{Direction, Setting};

use crate::common::gateway::{EVERYTHING, load, minimal};

fn changes(from: &str, to: &str) -> String {
    load(from).difference(&load(to)).unwrap_or_else(|pinned| panic!("{pinned:?}")).to_string()
}

#[test]
fn a_difference_is_listed_key_by_key() {
    assert_eq!(changes(EVERYTHING, EVERYTHING), "");
    for (from, to, expected) in [
        ("metrics = \"[::1]:9617\"\n", "", "metrics: [::1]:9617 -> none\n"),
        ("control = false", "control = true", "control: false -> true\n"),
        (
            "/etc/apportion/control-token",
            "/run/token",
            "control_token: /etc/apportion/control-token -> /run/token\n",
        ),
        ("2001:db8::1", "192.0.2.1", "address: 2001:db8::1 -> 192.0.2.1\n"),
        ("0011", "1100", "report_key: a key -> another key\n"),
        ("flow_idle = \"90s\"", "", "flow_idle: 90s -> 60s\n"),
        ("rate = \"18Mbit\"", "rate = \"20Mbit\"", "up.rate: 18Mbit -> 20Mbit\n"),
        ("overhead = \"22B\"", "", "up.overhead: 22B -> 14B\n"),
        ("delay = \"5ms\"", "", "up.delay: 5ms -> 0s\n"),
        ("loss = \"1%\"", "loss = 0.02", "up.loss: 0.01 -> 0.02\n"),
        ("tickets = 1000", "tickets = 2000", "up.tickets: 1000.0 -> 2000.0\n"),
        (
            "tickets = 1000\nexchange = { window = \"3s\" }\nlabels = { reads = true, writes = true }",
            "labels = { reads = [\"10.0.0.0/8\"], writes = true }",
            "",
        ),
        ("dscp = \"ef\"", "dscp = 8", "rule.voice.dscp: 46 -> 8\n"),
        ("rtt = \"50ms\"\n", "", "rule.voice.rtt: 50ms -> none\n"),
        ("[customer.alice]\nweight = 2", "", "customer.alice.weight: 2.0 -> 1.0\n"),
    ] {
        assert!(EVERYTHING.contains(from), "{from}");
        let found = changes(EVERYTHING, &EVERYTHING.replacen(from, to, 1));
        if expected.is_empty() {
            let paths: Vec<_> = found.lines().map(|line| line.split(": ").next().unwrap()).collect();
            assert_eq!(paths, ["up.labels", "up.tickets", "up.exchange"], "{found}");
        } else {
            assert_eq!(found, expected);
        }
    }
    let queue = changes(
        &minimal("", "queue = \"fifo\"", ""),
        &minimal("", "queue = { kind = \"fifo\", limit = \"9p\" }", ""),
    );
    assert_eq!(
        queue,
        "up.queue: { kind = \"fifo\", drop = \"tail\" } -> { kind = \"fifo\", drop = \"tail\", limit = \"9p\" }\n"
    );
}

#[test]
fn a_difference_of_rules_names_those_that_come_and_go_and_their_order() {
    let [one, other] =
        ["[[rule]]\nname = \"a\"\nprotocol = 6\n", "[[rule]]\nname = \"b\"\nprotocol = 17\nweight = 3\n"];
    let file = |rules: &[&str]| minimal("", "", &rules.concat());
    assert_eq!(
        changes(&file(&[one]), &file(&[one, other])),
        "rule.b: none -> { name = \"b\", protocol = \"udp\", class = \"greedy\", weight = 3.0, guarantee = \"0bit\", flows = \
         \"each\" }\nrule: a -> a, b\n"
    );
    assert_eq!(
        changes(&file(&[one]), &file(&[])),
        "rule.a: { name = \"a\", protocol = \"tcp\", class = \"greedy\", weight = 1.0, guarantee = \"0bit\", flows = \"each\" } \
         -> none\nrule: a -> none\n"
    );
    assert_eq!(changes(&file(&[one, other]), &file(&[other, one])), "rule: a, b -> b, a\n");
    let difference = load(&file(&[one])).difference(&load(&file(&[other]))).unwrap();
    assert!(difference.has(Setting::Rules) && !difference.has(Setting::Rate(Direction::Up)));
}

#[test]
fn what_cannot_change_while_running_is_refused_all_at_once() {
    let new = EVERYTHING
        .replace("title = \"everything\"", "title = \"all\"")
        .replace("seed = 7", "seed = 8")
        .replace("wan.7", "eth0")
        .replace("eth1", "lan")
        .replace("flows = 1_000", "flows = 2000")
        .replace("18Mbit", "20Mbit");
    let pinned = load(EVERYTHING).difference(&load(&new)).unwrap_err();
    let mend = ", which cannot change while the gateway runs; restart the gateway, or write the old value";
    let messages: Vec<_> = pinned.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            format!("title: everything -> all{mend}"),
            format!("seed: 7 -> 8{mend}"),
            format!("inside: eth1 -> lan{mend}"),
            format!("outside: wan.7 -> eth0{mend}"),
            format!("flows: 1000 -> 2000{mend}")
        ]
    );
}
