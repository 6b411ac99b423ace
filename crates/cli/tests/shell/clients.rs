//! Programs for measuring networks in `apportion shell`: iperf3, irtt and Flent.
//!
//! Tests are skipped, with the reason, where a program is missing or the system forbids user namespaces.

use apportion_testing::skip;
use serde_json::Value;
use tempfile::TempDir;

use super::common::{Run, apportion};

/// Output of a command behind 10 Mb/s and 20 ms each way, with `far` at the other end; none if the test is to
/// be skipped.
fn behind_a_link(programs: &[&str], far: &str, command: &str) -> Option<(TempDir, Run)> {
    let folder = tempfile::tempdir().unwrap();
    if !skip::unless_found(programs) {
        return None;
    }
    let link = ["--rate", "10Mbit", "--delay", "20ms", "--time-limit", "60s", "--far", far];
    let run = apportion(folder.path(), &[&["shell"], &link[..], &["--", "sh", "-c", command]].concat());
    if run.status == 2 && run.err.contains("cannot make a") {
        skip::because(&run.err);
        return None;
    }
    assert_eq!(run.status, 0, "{}", run.err);
    Some((folder, run))
}

pub fn iperf3_has_the_rate_of_the_link() {
    let command = "iperf3 -c $APPORTION_FAR -t 4 -O 1 -J";
    let Some((_, run)) = behind_a_link(&["iperf3"], "iperf3 -s", command) else { return };
    let said: Value = serde_json::from_str(&run.out).unwrap();
    let mbps = said["end"]["sum_received"]["bits_per_second"].as_f64().unwrap() / 1e6;
    // 1448 of 1514 bytes are payload: 9.56 Mb/s.
    assert!((9.2..9.7).contains(&mbps), "{mbps}");
}

pub fn irtt_has_the_round_trip_of_the_link() {
    let command = "irtt client -i 10ms -d 2s -Q -o - $APPORTION_FAR";
    let Some((_, run)) = behind_a_link(&["irtt"], "irtt server", command) else { return };
    let said: Value = serde_json::from_str(&run.out).unwrap();
    let median = said["stats"]["rtt"]["median"].as_f64().unwrap() / 1e6;
    assert!((40.0..42.0).contains(&median), "{median} ms");
    assert_eq!(said["stats"]["packets_received"], said["stats"]["packets_sent"]);
}

pub fn flent_measures_it_too() {
    let command = "HOME=$PWD flent -H $APPORTION_FAR -l 3 -D . ping";
    let Some((folder, run)) = behind_a_link(&["flent", "irtt", "fping"], "irtt server", command) else {
        return;
    };
    let row = run.out.lines().find(|line| line.trim_start().starts_with("Ping (ms) UDP"));
    let row = row.unwrap_or_else(|| panic!("{}\n{}", run.out, run.err));
    let mean: f64 = row.split_whitespace().find_map(|word| word.parse().ok()).unwrap();
    assert!((40.0..42.5).contains(&mean), "{row}");
    let mut files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name());
    assert!(files.any(|name| name.to_string_lossy().ends_with(".flent.gz")));
}
