//! A gateway in the kernel with TRED and a ticket exchange as its queue, between two hosts, in real time.

use apportion_core::packet::LabelKind;
use apportion_core::units::Time;
use apportion_kernel::gateway::{Program, plan};
use apportion_live::gateway::snapshot::Reloads;
use apportion_testing::skip;

use crate::common::hosts::{config, hosts, start};
use crate::common::labelled::{Flow, carried};
use crate::common::{alone, is_possible};

const TEXT: &str = "\
inside = \"near\"
outside = \"far\"
[up]
rate = \"5Mbit\"
queue = { kind = \"tred\", window = \"1s\" }
tickets = 30000
exchange = { kind = \"currency\", window = \"1s\", policing_window = \"1s\", issue_window = \"0s\" }
labels = { reads = true, writes = true }
[down]
rate = \"5Mbit\"
queue = { kind = \"fifo\", drop = \"tail\" }
";

/// Unresponsive flows get rates in proportion to their tickets, and leave with tickets that the next router
/// issued, in the same proportion; after a reload with those of the new issue rate.
#[test]
fn flows_have_their_tickets_and_leave_with_the_next_currency() {
    let _alone = alone();
    let Some(hosts) = hosts(&[11, 12, 13]).filter(|_| is_possible()) else { return };
    let (before, after) = (config(TEXT, ""), config(&TEXT.replace("tickets = 30000", "tickets = 12000"), ""));
    // Issued by 1 : 2 : 4, per packet at 8 Mb/s: 1000 per second.
    let flow = |last, tickets| Flow { last, port: 1, rate: 8.0, label: Some((LabelKind::Tickets, tickets)) };
    let flows = [flow(11, 20.0), flow(12, 40.0), flow(13, 80.0)];
    let run = || {
        let mut gateway = match start(&before) {
            Err(error) if error.to_string().contains("ENOENT") => return skip::because(error),
            gateway => gateway.unwrap(),
        };
        let first = carried(&hosts, &flows, 4.0, 4.0);
        let json = gateway.statistics(Time::from_secs(1)).json(&Reloads::default());
        gateway.apply(after.clone(), plan(&after).unwrap()).unwrap();
        let second = carried(&hosts, &flows, 4.0, 4.0);
        let statistics = gateway.statistics(Time::from_secs(2));
        let (text, later) =
            (statistics.prometheus(&Reloads::default()), statistics.json(&Reloads::default()));
        println!("{first:.2?}, then {second:.2?}\n{:#}", later["directions"]["up"]);
        for (carried, issued) in [(&first, 30_000.0), (&second, 12_000.0)] {
            let all: f64 = [11, 12, 13].into_iter().map(|last| carried.of(last)).sum();
            assert!((4.5..5.2).contains(&all), "{carried:?}");
            for (last, part) in [(11, 1.0 / 7.0), (12, 2.0 / 7.0), (13, 4.0 / 7.0)] {
                assert!((carried.of(last) / all / part - 1.0).abs() < 0.2, "{last}: {carried:?}");
            }
            let labels: f64 = carried.labels.values().sum();
            assert!((labels / issued - 1.0).abs() < 0.1, "{labels} of {issued}");
            for (last, part) in [(11, 1.0 / 7.0), (12, 2.0 / 7.0), (13, 4.0 / 7.0)] {
                assert!(
                    (carried.labels[&(last, 1)] / labels / part - 1.0).abs() < 0.25,
                    "{last}: {carried:?}"
                );
            }
        }
        let received =
            |json: &serde_json::Value| json["directions"]["up"]["core"]["labelled_packets"].as_f64().unwrap();
        // No counter started anew.
        assert!(received(&json) > 5_000.0 && received(&later) > 1.8 * received(&json), "{later:#}");
        for name in
            ["core_average_queue_seconds", "core_issued_tickets_per_second", "core_relabelled_packets_total"]
        {
            assert!(text.contains(&format!("apportion_gateway_{name}{{direction=\"up\"}}")), "{text}");
        }
        assert!(text.contains("reason=\"forced\""), "{text}");
    };
    hosts.middle.run(run).unwrap();
}

#[test]
fn the_gateway_s_plan_has_the_exchange_of_the_file() {
    let planned = |text: &str| plan(&config(text, "")).map(|[up, _]| up.program);
    let exchanges = |text: &str| match planned(text) {
        Ok(Program::Tickets(settings)) => settings.exchanges(),
        other => panic!("{other:?}"),
    };
    assert!(exchanges(TEXT));
    let alone: String =
        TEXT.lines().filter(|line| !line.contains("tickets =")).map(|line| format!("{line}\n")).collect();
    let alone = alone.replace("exchange = {", "#");
    assert!(!exchanges(&alone));
    let acknowledged = TEXT.replace("tickets = 30000", "ack_tickets = 100");
    let acknowledged = planned(&format!("{acknowledged}labels = {{ reads = true, writes = true }}\n"));
    assert!(acknowledged.unwrap_err().join("\n").contains("up.ack_tickets: only the user-space backend"));
    let bare = alone.replace("writes = true", "writes = false");
    assert!(planned(&bare).unwrap_err().join("\n").contains("up.labels: tred in the kernel"));
    for (old, new, expected) in [
        ("window = \"1s\" }", "n = 2.5 }", "up.queue: the kernel backend cannot run"),
        ("reads = true", "reads = [\"10.0.0.0/24\"]", "up.labels: tred in the kernel"),
        ("tickets = 30000", "tickets = 3e9", "`tickets` must"),
        ("policing_window", "bits = 9, form = \"floating\", policing_window", "`exchange.form` must"),
        (
            "kind = \"tred\", window = \"1s\"",
            "kind = \"fifo\", drop = \"tail\"",
            "up.tickets: in the kernel only a queue `tred`",
        ),
    ] {
        let text = TEXT.replacen(old, new, 1);
        assert_ne!(text, TEXT, "{old}");
        let problems = planned(&text).unwrap_err().join("\n");
        assert!(problems.contains(expected), "{expected}: {problems}");
    }
}
