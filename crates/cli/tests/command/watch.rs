//! `apportion run --watch` as people meet it: a page during the run and after it, the same results, and its
//! refusals.

#![cfg(target_os = "linux")]

use std::net::TcpListener;

use crate::common::apportion;
use crate::common::watched::Watched;

const SCENARIO: &str = r#"seed = 3
stop = "20s"
measure_from = "5s"
sample = "100ms"
[link.bottleneck]
from = "a"
to = "b"
rate = "2Mbit"
delay = "5ms"
queue = ["fifo", "drr"]
watch = true
[flow.tcp]
count = 3
from = "a"
to = "b"
tcp = "rfc"
[flow.udp]
from = "a"
to = "b"
source = { kind = "cbr", rate = "1Mbit" }
"#;

#[test]
fn the_page_of_a_run_shows_its_results_until_an_interrupt_and_changes_none() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    let mut watched =
        Watched::start(folder.path(), &["run", "x.toml", "--out", "seen", "--watch", "127.0.0.1:0"]);
    assert!(watched.get("/").contains("<title>Apportion</title>"));
    watched.line_with("1/2 runs done");
    assert!(["running", "ended"].contains(&watched.stats("")["state"].as_str().unwrap()));
    watched.line_with("its page stays at");
    let all = watched.stats("");
    assert_eq!((&all["state"], &all["course"]["point"]), (&"ended".into(), &"queue=drr".into()));
    // The files are written while the page is still served.
    let csv = apportion(folder.path(), &["export", "seen", "flows"]).out;
    let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let column = |name: &str| head.iter().position(|of| *of == name).unwrap();
    let (point, name, rate) = (column("point"), column("flow"), column("throughput_mbps"));
    let rows: Vec<(String, String, f64)> =
        lines.map(|row| (row[point].to_owned(), row[name].to_owned(), row[rate].parse().unwrap())).collect();
    assert_eq!(rows.len(), 8);
    for (number, point) in [(1, "queue=fifo"), (2, "queue=drr")] {
        let course = &watched.stats(&format!("?course={number}"))["course"];
        let flows = course["link"]["flows"].as_array().unwrap();
        assert_eq!((&course["point"], flows.len()), (&point.into(), 4));
        let of_point = || rows.iter().filter(|row| row.0 == point);
        let total: f64 = of_point().map(|row| row.2).sum();
        for flow in flows {
            let (_, _, mbps) = of_point().find(|row| flow["flow"] == *row.1).unwrap();
            let (mean, share) = (
                flow["measured_bytes_per_second"].as_f64().unwrap(),
                flow["measured_share"].as_f64().unwrap(),
            );
            assert!((mean * 8e-6 - mbps).abs() < 1e-5, "{flow}: {mbps} Mbit/s");
            assert!((share - mbps / total).abs() < 2e-6, "{flow}: {mbps} of {total} Mbit/s");
        }
    }
    // Both sides of the data fit: a terminal shows the same numbers.
    let top = apportion(folder.path(), &["top", watched.address(), "--once"]);
    assert_eq!((top.status, top.err.as_str()), (0, ""));
    assert!(
        top.out
            .contains("the run has ended; 2 of 2 replications done; 20.0 s of 20.0 s; queue=drr, seed 3\n"),
        "{}",
        top.out
    );
    let of_udp: Vec<&str> =
        top.out.lines().find(|line| line.starts_with("udp ")).unwrap().split_whitespace().collect();
    // Four flows share the link; DRR gives each a quarter.
    assert_eq!(&of_udp[5..7], ["500.0", "kb/s"], "{of_udp:?}");
    let share: f64 = of_udp[7].parse().unwrap();
    assert!((95.0..105.0).contains(&share), "{of_udp:?}");
    let of_link: Vec<&str> = top.out.lines().last().unwrap().split_whitespace().collect();
    assert_eq!((of_link[0], &of_link[3..5]), ("bottleneck", &["2.00", "Mb/s"][..]), "{of_link:?}");
    let (status, out) = watched.interrupt();
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("queue=drr") && out.ends_with("report: seen/1/report.html\n"), "{out}");

    let plain = apportion(folder.path(), &["run", "x.toml", "--out", "plain", "--no-cache"]);
    assert_eq!((plain.status, plain.out.replace("plain/1", "seen/1")), (0, out));
    for table in ["flows", "links", "series", "completions", "statistics", "allocations"] {
        let read = |out| apportion(folder.path(), &["export", out, table]).out;
        assert!(read("seen") == read("plain") && read("seen").lines().count() > 0, "{table}");
    }
}

#[test]
fn an_interrupt_of_the_run_ends_it_and_its_page() {
    let folder = tempfile::tempdir().unwrap();
    // The run would take a minute or more.
    let long = SCENARIO.replace("20s", "100000s").replace("100ms", "1s");
    std::fs::write(folder.path().join("x.toml"), long).unwrap();
    let watched =
        Watched::start(folder.path(), &["run", "x.toml", "--force", "--quiet", "--watch", "localhost:0"]);
    // Progress is visible, in points that become longer.
    let at = || watched.stats("")["course"]["at_seconds"].as_f64().unwrap_or_default();
    let begun = at();
    while at() < begun + 2_000.0 {}
    let course = &watched.stats("")["course"];
    assert_eq!(course["state"], "running");
    let points = course["link"]["sent_kbit_per_second"].as_array().unwrap().len();
    assert!(points < 1_200 && course["point_seconds"].as_f64().unwrap() >= 2.0, "{points}");
    assert_eq!(watched.interrupt().0, 1);
}

#[test]
fn an_address_that_cannot_be_is_refused_with_what_to_write() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    for (address, says) in [
        ("0.0.0.0:9618", "error: no page at 0.0.0.0:9618: other machines could reach it, and it has no password; write an address of \
          this machine alone, such as 127.0.0.1:9618, and from another machine use `ssh -L`\n".to_owned()),
        (&*taken, format!("error: no page at {taken}: Address already in use (os error 98); write 127.0.0.1:0 for a free port\n")),
    ] {
        let run = apportion(folder.path(), &["run", "x.toml", "--watch", address]);
        assert_eq!((run.status, run.err), (2, says));
        assert!(run.out.is_empty() && !folder.path().join("results").exists());
    }
    let run = apportion(folder.path(), &["run", "--watch", "x.toml"]);
    assert_eq!(run.status, 2);
    assert!(
        run.err.contains("'x.toml'") && run.err.contains("or --watch alone behind the scenario"),
        "{}",
        run.err
    );
    let run = apportion(folder.path(), &["run", "x.toml", "--watch", "--estimate"]);
    assert_eq!(run.status, 2, "{}", run.err);
}

#[test]
fn a_page_that_would_stay_blank_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO.replace("watch = true\n", "")).unwrap();
    let run = apportion(folder.path(), &["run", "x.toml", "--watch", "127.0.0.1:0"]);
    let expected = "error: --watch shows the links with `watch = true`, and the scenario has none; add for example --set \
                    link.bottleneck.watch=true\n";
    assert_eq!((run.status, run.err.as_str()), (2, expected));
    assert!(!folder.path().join("results").exists());
}
