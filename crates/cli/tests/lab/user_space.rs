//! Queues in user space.

use std::fs;
use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use apportion_testing::skip;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::watched::Watched;
use crate::common::{Run, apportion};
use crate::place::{PATIENCE, Place, wait_for};
use crate::under_way::UnderWay;

/// Two TCP flows and one of datagrams over 2 Mb/s.
const SCENARIO: &str = r#"
seed = 3
stop = "1500ms"
measure_from = "400ms"
sample = "100ms"
link.wire = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = "drr", watch = true }
[flow.tcp]
count = 2
from = "a"
to = "b"
tcp = { profile = "rfc", algorithm = "cubic" }
[flow.udp]
from = "a"
to = "b"
source = { kind = "cbr", rate = "500kbit", packet = "500B" }
"#;

/// Makes a place with a scenario in it, unless the test is to be skipped.
fn place(scenario: &str) -> Option<Place> {
    let place = Place::new();
    let run = apportion(place.path(), &["shell", "--", "true"]);
    if run.status == 2 && run.err.contains("cannot make a") {
        skip::because(&run.err);
        return None;
    }
    fs::write(place.path().join("x.toml"), scenario).unwrap();
    Some(place)
}

fn run_json(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("run.json")).unwrap()).unwrap()
}

#[test]
fn a_run_writes_results_and_a_report_where_it_says() {
    let Some(place) = place(SCENARIO) else { return };
    let run = apportion(place.path(), &["lab", "x.toml", "--retries", "0"]);
    let is_valid = !run.out.contains("NOT VALID: ");
    assert_eq!(run.status, i32::from(!is_valid), "{}", run.err);
    assert!(run.out.contains("tcp p95 ms") && run.out.contains("udp p95 ms"), "{}", run.out);
    assert!(run.out.ends_with("report: results/x-lab/1/report.html\n"), "{}", run.out);
    assert!(run.err.starts_with("in real time: this takes 2 s, and more"), "{}", run.err);
    assert!(run.err.contains("tcp.delayed_ack is not supported by the kernel"), "{}", run.err);
    assert!(run.err.contains("\n1/1 runs done\nwarning: only 1.1 s are measured, "), "{}", run.err);
    let results = place.path().join("results/x-lab/1");
    let json = run_json(&results);
    assert_eq!((&json["complete"], &json["points"][0]["measured_s"]), (&true.into(), &1.1.into()));
    let report = fs::read_to_string(results.join("report.html")).unwrap();
    // The output says how late packets were; on a busy machine, that the run does not count.
    let says_how_late =
        |text: &str| text.contains("In real time: packets left") != text.contains("NOT VALID: ");
    assert!(says_how_late(&run.out) && says_how_late(&report), "{}", run.out);
    // The fields that a script reads.
    assert_eq!((&json["valid"], json["faults"] == Value::Array(Vec::new())), (&is_valid.into(), is_valid));
    assert!(json["versions"]["kernel"].is_string() && json["versions"]["apportion"].is_string(), "{json}");
    let kept = &json["points"][0]["in_real_time"][0];
    assert_eq!((&kept["valid"], &kept["attempts"]), (&is_valid.into(), &1.into()));
    // The one-way delay is 11 ms; a quarter of it is below 3 ms.
    assert_eq!(kept["limit_p99_ms"], 3.0);
    assert!(kept["lateness_p99_ms"].is_number() && kept["limit_mean_ms"].is_number(), "{kept}");
    assert!(kept["cpu"]["stolen"].is_number() && kept["real_time_scheduling"].is_boolean(), "{kept}");
    // Where the kernel counts it, each thread ran part of the time, and may have waited for a core.
    if Path::new("/proc/thread-self/schedstat").exists() {
        for thread in ["packets", "applications"] {
            let [ran, waited] = ["ran", "waited"].map(|share| kept[thread][share].as_f64().unwrap());
            assert!(ran > 0.0 && waited >= 0.0 && ran + waited < 1.2, "{kept}");
        }
    }
    assert_eq!(kept["cause"].is_null(), is_valid, "{kept}");
    for table in ["flows.csv", "links.csv"] {
        let text = fs::read_to_string(results.join(table)).unwrap();
        let valid: Vec<_> = text.lines().map(|line| line.rsplit(',').next().unwrap()).collect();
        let of_runs = if is_valid { "true" } else { "false" };
        assert!(valid[0] == "valid" && valid[1..].iter().all(|cell| *cell == of_runs), "{table}: {valid:?}");
    }
}

/// A round trip of 2 µs.
const LATE: &str = r#"
seed = 3
stop = "300ms"
link.wire = { from = "a", to = "b", rate = "10Gbit", delay = "1us" }
[flow.tcp]
from = "a"
to = "b"
tcp = { profile = "rfc", algorithm = "cubic", window = "14600B" }
"#;

#[test]
fn what_is_not_valid_is_repeated_and_refused_unless_it_is_allowed() {
    // A hand-over between the kernel and the engine always takes a fraction of the round trip.
    let Some(place) = place(LATE) else { return };
    let run = apportion(place.path(), &["lab", "x.toml", "--retries", "2", "--out", "late"]);
    assert_eq!(run.status, 1, "{}", run.err);
    let fault = "ms late on average, and 0.00 ms is the limit";
    assert!(run.out.contains("NOT VALID: ") && run.out.contains(fault), "{}", run.out);
    assert!(
        run.out.contains("no better in 3 attempts")
            && run.out.contains("the hypervisor ")
            && run.out.contains("the thread of packets waited "),
        "{}",
        run.out
    );
    let late = place.path().join("late/1");
    let json = run_json(&late);
    assert_eq!(
        (&json["valid"], &json["points"][0]["in_real_time"][0]["attempts"]),
        (&false.into(), &3.into())
    );
    assert!(json["faults"][0].as_str().unwrap().starts_with("this run, seed 3: "), "{json}");
    assert!(!keys(&late, "flows.csv", 40)[1].contains("true"));

    let silent = ["lab", "x.toml", "--retries", "0", "--json", "--out", "late"];
    let run = apportion(place.path(), &silent);
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.err.starts_with("NOT VALID: this run, seed 3: "), "{}", run.err);
    assert!(run.out.starts_with("{\"run\":\"x\"") && run.out.contains("\"valid\":false"), "{}", run.out);
    let run = apportion(place.path(), &[&silent[..], &["--allow-late"]].concat());
    assert_eq!((run.status, run.err.as_str()), (0, ""));

    let compared = ["compare", "late", "late"];
    let run = apportion(place.path(), &compared);
    assert_eq!((run.status, run.out.as_str()), (2, ""));
    assert!(run.err.contains("`late/3` are not valid") && run.err.contains("--allow-late"), "{}", run.err);
    assert_eq!(apportion(place.path(), &[&compared[..], &["--allow-late"]].concat()).status, 0);

    let parity = ["compare", "--parity", "x.toml", "--retries", "0"];
    let run = apportion(place.path(), &parity);
    assert_eq!((run.status, run.out.as_str()), (1, ""));
    assert!(run.err.contains("NOT VALID: ") && run.err.contains("nothing is compared"), "{}", run.err);
    let run = apportion(place.path(), &[&parity[..], &["--allow-late"]].concat());
    assert!(run.out.contains("\nNOT VALID: ") && run.out.contains("throughput, Mb/s"), "{}", run.out);
}

/// Lines of a table of results, each with its key cells only.
fn keys(folder: &Path, name: &str, cells: usize) -> Vec<String> {
    let text = fs::read_to_string(folder.join(name)).unwrap();
    let (head, lines) = text.split_once('\n').unwrap();
    let key = |line: &str| line.split(',').take(cells).collect::<Vec<_>>().join(",");
    [head.to_owned()].into_iter().chain(lines.lines().map(key)).collect()
}

#[test]
fn results_are_those_of_a_simulation_line_by_line() {
    let Some(place) = place(SCENARIO) else { return };
    let [lab, sim] = ["lab", "run"].map(|command| {
        let allowed = if command == "lab" { &["--retries", "0", "--allow-late"][..] } else { &[] };
        let run =
            apportion(place.path(), &[&[command, "x.toml", "--json", "--out", command], allowed].concat());
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{command}");
        let of = |line: &str| -> Value { serde_json::from_str(line).unwrap() };
        // Reasons without drops are left out, and that depends on chance.
        let is_by_reason = |name: &str| name.contains("drops_") && name.contains('/');
        let mut of: Vec<String> = run.out.lines().map(|line| of(line)["metric"].to_string()).collect();
        of.retain(|name| !is_by_reason(name));
        (place.path().join(command).join("1"), of)
    });
    let files = |folder: &Path| {
        let mut names: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(files(&lab.0), files(&sim.0));
    assert_eq!(lab.1, sim.1);
    // Keys: point, seed, name; for flows also the group and the entitlement, for links whether they are
    // watched and the rate, for series the kind and the time: 15 samples of 3 flows and a link.
    for folder in [&lab.0, &sim.0] {
        let export = ["export", folder.to_str().unwrap(), "series", "--out", "series.csv"];
        assert_eq!(apportion(folder, &export).status, 0);
    }
    for (name, cells, lines) in [("flows.csv", 5, 3), ("links.csv", 5, 2), ("series.csv", 5, 60)] {
        let (lab, sim) = (keys(&lab.0, name, cells), keys(&sim.0, name, cells));
        assert_eq!((lab.len(), &lab), (1 + lines, &sim), "{name}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is() {
    let Some(place) = place(&SCENARIO.replace("watch = true", "pcap = true")) else { return };
    let begun = Instant::now();
    let refused = |arguments: &[&str], part: &str| {
        let run = apportion(place.path(), arguments);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.starts_with("error: x.toml: ") && run.err.contains(part), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    };
    let captures = "x.toml: link.wire.pcap: captures are for `apportion run`; leave `pcap` out";
    for command in [&["lab"][..], &["compare", "--parity"]] {
        refused(&[command, &["x.toml", "--set", "stop=60s"]].concat(), captures);
    }
    // The simulator's BBR needs the record of RACK; without an early check the refusal would come after a
    // minute.
    let bbr = SCENARIO.replace("cubic", "bbr").replace("1500ms", "60s");
    fs::write(place.path().join("x.toml"), bbr).unwrap();
    refused(
        &["compare", "--parity", "x.toml"],
        "the simulator has `bbr` with `sack_recovery = \"rack\"` only",
    );
    for folder in ["x-lab", "x-parity/lab", "x-parity/sim"] {
        let files = fs::read_dir(place.path().join("results").join(folder)).unwrap();
        assert_eq!(files.count(), 0, "{folder}");
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

/// A build without the kernel backend refuses at once.
#[cfg(not(feature = "bpf"))]
#[test]
fn the_kernel_backend_is_refused_where_it_is_not_built() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    for command in [&["lab"][..], &["compare", "--parity"]] {
        let run = apportion(folder.path(), &[command, &["x.toml", "--backend", "kernel"]].concat());
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.contains("no kernel backend; build it with `--features bpf`"), "{}", run.err);
        assert_eq!(run.err.lines().count(), 1, "{}", run.err);
    }
}

/// A scenario of two points; the second would take a minute.
fn long() -> String {
    SCENARIO.replace("stop = \"1500ms\"", "stop = [\"500ms\", \"60s\"]")
}

/// Starts the lab and waits for the second point of [`long`].
fn start(folder: &Path, arguments: &[&str]) -> UnderWay {
    UnderWay::start(folder, arguments, "1/2 runs done\n")
}

#[test]
fn an_interrupt_ends_a_run_at_once_and_keeps_what_is_finished() {
    let Some(place) = place(&long()) else { return };
    let mut lab = start(place.path(), &["lab", "x.toml", "--out", "out"]);
    lab.signal(Signal::SIGINT);
    let begun = Instant::now();
    let status = lab.child.wait();
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    // Same status as `apportion run`.
    assert_eq!(status.code(), Some(1));
    lab.is_gone();
    let mut said = String::new();
    lab.child.stdout().read_to_string(&mut said).unwrap();
    assert!(said.contains("interrupted"), "{said}");
    let json = run_json(&place.path().join("out/1"));
    let done = [0, 1].map(|point| json["points"][point]["seeds_done"].as_array().unwrap().len());
    assert_eq!((&json["complete"], done), (&false.into(), [1, 0]));
}

#[test]
fn what_was_measured_is_shown_if_it_cannot_be_written() {
    let Some(place) = place(&long()) else { return };
    let mut lab = start(place.path(), &["lab", "x.toml", "--out", "out"]);
    // The path was a folder before the run, and is a file after it.
    fs::remove_dir(place.path().join("out")).unwrap();
    fs::write(place.path().join("out"), "").unwrap();
    lab.signal(Signal::SIGINT);
    assert_eq!(lab.child.wait().code(), Some(2));
    let (mut out, mut err) = (String::new(), String::new());
    lab.child.stdout().read_to_string(&mut out).unwrap();
    lab.err.read_to_string(&mut err).unwrap();
    assert!(out.contains("tcp p95 ms") && !out.contains("report: "), "{out}");
    assert!(err.contains("error: cannot write results to `out`: it is a file"), "{err}");
}

#[test]
fn nothing_is_compared_after_an_interrupt() {
    let Some(place) = place(&long()) else { return };
    let mut lab = start(place.path(), &["compare", "--parity", "x.toml", "--out", "out"]);
    lab.signal(Signal::SIGINT);
    assert_eq!(lab.child.wait().code(), Some(1));
    lab.is_gone();
    let (mut out, mut err) = (String::new(), String::new());
    lab.child.stdout().read_to_string(&mut out).unwrap();
    lab.err.read_to_string(&mut err).unwrap();
    assert_eq!(out, "");
    assert!(err.contains("interrupted before all runs were done: nothing is compared"), "{err}");
}

#[test]
fn nothing_is_left_of_a_lab_that_was_killed() {
    let Some(place) = place(&long()) else { return };
    let mut lab = start(place.path(), &["lab", "x.toml"]);
    // A user namespace, one for the engine, and one for each of three hosts: datagrams need no TCP settings.
    assert!(lab.namespaces.len() >= 5, "{:?}", lab.namespaces);
    assert_eq!(lab.left().len(), 1, "it is one process: {:?}", lab.left());
    // The devices are in these namespaces, and none is here.
    let devices = fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("host0:"), "{devices}");
    assert_eq!(lab.child.kill().signal(), Some(9));
    lab.is_gone();
}

/// Runs `scenario` in the simulator and in the lab.
fn parity(scenario: &str, more: &[&str]) -> Option<(Place, Run)> {
    let place = place(scenario)?;
    let always = ["compare", "--parity", "x.toml", "--allow-late"];
    let run = apportion(place.path(), &[&always[..], more].concat());
    Some((place, run))
}

#[test]
fn datagrams_behind_a_fair_queue_get_the_same_in_both_backends() {
    // Three sources of 1 Mb/s each over 2 Mb/s: a third of the packets is dropped, whichever source sends
    // them.
    let scenario = r#"
        seed = 3
        stop = "2s"
        measure_from = "500ms"
        link.wire = { from = "a", to = "b", rate = "2Mbit", delay = "20ms", queue = { kind = "drr", limit = "30p" } }
        [flow.udp]
        count = 3
        from = "a"
        to = "b"
        source = { kind = "cbr", rate = "1Mbit", packet = "500B", jitter = "5%" }
    "#;
    let Some((place, run)) = parity(scenario, &[]) else { return };
    let rows = |flow: &str| run.out.lines().filter(|line| line.trim_start().starts_with(flow)).count();
    assert_eq!((rows("udp.1 "), rows("udp.2 "), rows("udp.3 ")), (5, 5, 5), "{}", run.out);
    let verdict = run.out.lines().last().unwrap();
    // On a busy machine a run does not count, whatever its results.
    if run.out.contains("\nNOT VALID: ") {
        println!("not valid: {}", run.out);
    } else {
        let all = "15 differences: 15 within tolerance, 0 beyond it, 0 not comparable";
        assert_eq!((verdict, run.status), (all, 0), "{}", run.out);
    }
    let done = |world: &str| {
        let folder = place.path().join("results/x-parity").join(world).join("1");
        assert!(folder.join("report.html").is_file());
        run_json(&folder)["points"][0]["seeds_done"].as_array().unwrap().len()
    };
    assert_eq!((done("lab"), done("sim")), (1, 10));
}

#[test]
fn what_differs_is_beyond_and_the_status_is_1() {
    // Linux has no setting for the initial slow-start threshold: it fills the link in half a second. A window
    // that begins with two segments and grows by one per round trip of 100 ms has about 12 of 83 after a
    // second.
    let scenario = r#"
        seed = 3
        stop = "2s"
        link.wire = { from = "a", to = "b", rate = "10Mbit", delay = "50ms" }
        [flow.tcp]
        from = "a"
        to = "b"
        tcp = { profile = "rfc", algorithm = "sack", initial_window = "2p", initial_ssthresh = "2p" }
    "#;
    let Some((_place, run)) = parity(scenario, &["--json"]) else { return };
    assert_eq!(run.status, 1, "{}", run.err);
    let rows: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), 5, "{}", run.out);
    assert_eq!((&rows[0]["metric"], &rows[0]["verdict"]), (&"throughput, Mb/s".into(), &"beyond".into()));
    let number = |name: &str| rows[0][name].as_f64().unwrap();
    assert!(number("lab") > 2.0 * number("sim"), "{}", run.out);
    assert!((number("difference") - (number("lab") - number("sim"))).abs() < 1e-9);
    assert!(number("difference") > number("allowed") + number("chance"));
    // The only flow has the whole link, in either world.
    assert_eq!((&rows[1]["metric"], &rows[1]["verdict"]), (&"share, %".into(), &"within".into()));
}

#[test]
fn experiments_of_papers_run_over_the_tcp_of_this_machine() {
    let Some(place) = place(SCENARIO) else { return };
    let paper = r#"
title = "DRR"
paper = "Shreedhar and Varghese 1995"
[[experiment]]
id = "drr/datagrams"
source = "Fig. 1"
summary = "datagrams below their share arrive"
[experiment.run.main]
scenario = "x.toml"
[[experiment.metric]]
name = "udp_mbps"
unit = "Mb/s"
kind = "derived"
op = "ge"
value = 0.4
measure = { kind = "throughput", of = ["udp"] }
"#;
    fs::write(place.path().join("expect.toml"), paper).unwrap();
    let arguments =
        ["reproduce", "expect.toml", "--world", "lab", "--seeds", "1", "--retries", "0", "--allow-late"];
    let run = apportion(place.path(), &arguments);
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    assert!(
        run.err.contains("in real time: this takes 2 s") && run.err.ends_with("1/1 runs done\n"),
        "{}",
        run.err
    );
    assert!(run.out.contains("1 of 1 claims hold"), "{}", run.out);
    let pages = place.path().join("results/reproduce");
    let mut pages = fs::read_dir(&pages).unwrap().map(|entry| entry.unwrap().path());
    let page = pages.find(|path| path.to_string_lossy().ends_with("-lab.html")).unwrap();
    assert!(fs::read_to_string(page).unwrap().contains("--seeds 1 --world lab"));
    // The lab refuses what it cannot do before anything runs.
    let scenario = SCENARIO.replace("algorithm = \"cubic\"", "segment = \"40kB\"");
    fs::write(place.path().join("x.toml"), scenario).unwrap();
    let run = apportion(place.path(), &arguments);
    assert_eq!(run.status, 2, "{}{}", run.out, run.err);
}

#[test]
fn a_page_shows_a_run_in_real_time_and_its_results_until_an_interrupt() {
    let Some(place) = place(SCENARIO) else { return };
    let mut lab = Watched::start(
        place.path(),
        &["lab", "x.toml", "--allow-late", "--retries", "0", "--watch", "127.0.0.1:0"],
    );
    // The page shows progress in real time.
    let is_under_way = || lab.stats("")["course"]["at_seconds"].as_f64().is_some_and(|at| at >= 0.3);
    wait_for("nothing is seen", is_under_way);
    let during = lab.stats("");
    assert_eq!((&during["state"], &during["course"]["link"]["name"]), (&"running".into(), &"wire".into()));
    lab.line_with("its page stays at");
    let after = lab.stats("");
    assert_eq!((&after["state"], &after["course"]["state"]), (&"ended".into(), &"ended".into()));
    assert_eq!(after["course"]["at_seconds"], 1.5);
    let rates = after["course"]["link"]["rate_kbit_per_second"].as_array().unwrap();
    assert!(rates.len() == 15 && rates.iter().all(|rate| *rate == 2_000.0), "{rates:?}");
    let csv = apportion(place.path(), &["export", "results/x-lab", "flows"]).out;
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let column = |name: &str| head.iter().position(|of| *of == name).unwrap();
    let (name, bytes) = (column("flow"), column("delivered_bytes"));
    let rows: Vec<(&str, f64)> = rows.map(|row| (row[name], row[bytes].parse().unwrap())).collect();
    let all: f64 = rows.iter().map(|row| row.1).sum();
    let flows = after["course"]["link"]["flows"].as_array().unwrap();
    assert_eq!(flows.len(), rows.len());
    for flow in flows {
        let (_, own) = rows.iter().find(|(name, _)| flow["flow"] == *name).unwrap();
        let share = flow["measured_share"].as_f64().unwrap();
        assert!((share - own / all).abs() < 1e-6, "{flow}: {own} of {all} bytes");
    }
    let (status, out) = lab.interrupt();
    assert!(status == 0 && out.ends_with("report: results/x-lab/1/report.html\n"), "{out}");
}
