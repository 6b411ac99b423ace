//! Runs as data files of Flent, and Flent's plots of them; their metrics as tables of LaTeX.
//!
//! Plots are skipped, with the reason, where there is no Flent.

#![allow(clippy::disallowed_methods, reason = "Flent is a program of its own")]

use std::path::Path;
use std::process::Command;

use apportion_testing::{child, skip};
use tempfile::TempDir;

use crate::common::apportion;

const SCENARIO: &str = "seed = 3\nstop = \"6s\"\n[topology]\nkind = \"dumbbell\"\npairs = 2\n[topology.bottleneck]\n\
                        rate = \"4Mbit\"\ndelay = \"10ms\"\nqueue = [\"fifo\", \"drr\"]\n[flow.a]\nfrom = \"l1\"\nto = \"r1\"\n\
                        [flow.b]\nfrom = \"l2\"\nto = \"r2\"\n";

fn run() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    assert_eq!(apportion(folder.path(), &["run", "x.toml", "--out", "out", "--quiet"]).status, 0);
    folder
}

#[test]
fn a_point_of_a_run_is_a_file_of_flent() {
    let folder = run();
    let export = |more: &[&str]| apportion(folder.path(), &[&["export", "out", "flent"], more].concat());
    let all = export(&[]);
    assert_eq!(all.status, 2);
    assert!(all.err.contains("it by --point: `queue=fifo`, `queue=drr`"), "{}", all.err);
    let none = export(&["--point", "queue=red"]);
    assert!(none.status == 2 && none.err.contains("the run has no point `queue=red`"), "{}", none.err);
    let drr = export(&["--point", "queue=drr"]);
    assert_eq!(drr.status, 0, "{}", drr.err);
    let file: serde_json::Value = serde_json::from_str(&drr.out).unwrap();
    assert_eq!(file["version"], 4);
    let sum: Vec<f64> = file["results"]["TCP upload sum"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(serde_json::Value::as_f64)
        .collect();
    let late = &sum[sum.len() / 2..];
    let mean = late.iter().sum::<f64>() / late.len() as f64;
    assert!((3.8..=4.0).contains(&mean), "{mean}");
    let table = apportion(folder.path(), &["export", "out", "flows", "--point", "queue=drr"]);
    assert!(table.status == 2 && table.err.contains("leave --point out"), "{}", table.err);
}

#[test]
fn metrics_of_a_run_are_a_table_of_latex() {
    let folder = run();
    let table = apportion(folder.path(), &["export", "out", "--latex"]);
    assert_eq!(table.status, 0, "{}", table.err);
    assert!(
        table
            .out
            .contains("metric & unit & queue=fifo & queue=drr \\\\\n\\midrule\nthroughput\\_mbps & Mb/s & "),
        "{}",
        table.out
    );
    for words in [&["export", "out", "flows", "--latex"][..], &["export", "out"]] {
        assert_eq!(apportion(folder.path(), words).status, 2, "{words:?}");
    }
}

#[test]
fn flent_draws_it() {
    if !skip::unless_found(&["flent"]) {
        return;
    }
    let folder = run();
    for queue in ["fifo", "drr"] {
        let (point, out) = (format!("queue={queue}"), format!("{queue}.flent"));
        let words = ["export", "out", "flent", "--point", &point, "--out", &out];
        assert_eq!(apportion(folder.path(), &words).status, 0);
    }
    for plot in ["totals", "upload", "upload_with_ping", "tcp_rtt", "box_totals"] {
        let picture = format!("{plot}.png");
        let mut flent = Command::new("flent");
        flent
            .args(["-f", "plot", "-p", plot, "-o", &picture, "fifo.flent", "drr.flent"])
            .current_dir(folder.path())
            .env("HOME", folder.path());
        let drawn = child::output(&mut flent);
        let said = String::from_utf8_lossy(&drawn.stderr);
        assert!(drawn.status.success() && size(&folder.path().join(&picture)) > 10_000, "{plot}: {said}");
    }
}

fn size(path: &Path) -> u64 {
    path.metadata().map_or(0, |found| found.len())
}
