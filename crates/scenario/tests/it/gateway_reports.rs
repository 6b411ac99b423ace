//! Consistency of a gateway's keys about reports.

use apportion_core::aqm::sffc::Trust;

use crate::common::gateway::{load, minimal, refused};

#[test]
fn reports_say_whom_they_are_from_and_a_key_has_reports_to_authenticate() {
    let key = format!("report_key = \"{}\"", "ab".repeat(16));
    refused(
        &minimal(&key, "queue = \"sffc\"", ""),
        7,
        "address: missing: the queue of `up` sends reports, which carry the gateway's address; write for \
         example address = \"192.0.2.1\", or reports = false for the queue",
    );
    load(&minimal("", "queue = { kind = \"sffc\", reports = false }", ""));
    for (line, name) in [(key.as_str(), "report_key"), ("insecure = true", "insecure")] {
        for queue in ["", "queue = { kind = \"sffc\", reports = false }"] {
            let expected = format!(
                "{name}: no queue sends reports that this concerns; write for example queue = \"sffc\" for a \
                 direction, or leave `{name}` out"
            );
            refused(&minimal(line, queue, ""), 3, &expected);
        }
    }
}

#[test]
fn reports_without_a_key_must_be_asked_for_and_are_trusted_within_bounds() {
    let file = |line: &str, queue: &str| minimal(&format!("address = \"192.0.2.1\"\n{line}"), queue, "");
    let key = format!("report_key = \"{}\"", "ab".repeat(16));
    refused(
        &file("", "queue = \"sffc\""),
        8,
        "report_key: missing: the queue of `up` takes reports of others, which anybody can forge without a key; \
         write the same 16 to 64 random bytes in hexadecimal in all gateways, or reports = false for the queue, \
         or insecure = true",
    );
    refused(
        &file(&format!("{key}\ninsecure = true"), "queue = \"sffc\""),
        5,
        "insecure: reports have a key; leave `insecure` or `report_key` out",
    );
    let full = "queue = { kind = \"drr\", drop = \"nbq\", trust = \"full\" }";
    refused(
        &file("insecure = true", full),
        8,
        "up.queue: with insecure = true everybody on the link could starve flows; write trust = \"bounded\", or a \
         `report_key`",
    );
    let trust = |line: &str, queue: &str| load(&file(line, queue)).up.queue.params.report_trust();
    assert_eq!(trust(&key, full), Some(Trust::Full));
    for queue in ["queue = \"sffc\"", "queue = { drop = \"nbq\", kind = \"drr\" }"] {
        for line in [&key, "insecure = true"] {
            assert_eq!(trust(line, queue), Some(Trust::Bounded), "{queue}");
            let config = load(&file(line, queue));
            assert_eq!(load(&config.canonical()), config);
        }
    }
}

#[test]
fn a_gateway_reads_no_counters_of_other_routers() {
    let file = |queue: &str| minimal("address = \"192.0.2.1\"\ninsecure = true", queue, "");
    let reads = |queue: &str| load(&file(queue)).up.queue.params.reads_counters();
    assert!(!reads("queue = \"sffc\""));
    assert!(!reads("queue = { kind = \"sffc\", counters = false }"));
    refused(
        &file("queue = { kind = \"sffc\", counters = true }"),
        8,
        "up.queue.counters: a gateway reads no counters of other routers; leave `counters` out",
    );
}
