//! The command as people and scripts meet it: output, messages and exit status.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apportion_testing::child::Running;
#[cfg(target_os = "linux")]
use nix::sys::signal::Signal;
use tempfile::TempDir;

use crate::common::{apportion, apportion_with_cache, needs_linux};

const SCENARIO: &str = r#"seed = 3
stop = "2s"
[link.bottleneck]
from = "a"
to = "b"
rate = "1Mbit"
delay = "5ms"
queue = ["fifo", "drr"]
watch = true
[flow.tcp]
count = 2
from = "a"
to = "b"
tcp = "rfc"
"#;

/// End of the messages of a run of `runs` simulations.
fn end(runs: &str) -> String {
    format!(
        "{runs} runs done\nwarning: only 2 s are measured, of which chance and slow start decide much; write a later \
         `stop`, for 10 s or more\n"
    )
}

fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    folder
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn a_run_writes_results_where_it_says_and_exits_with_0() {
    let folder = folder();
    let run = apportion(folder.path(), &["run", "x.toml", "--seeds", "2"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.contains("queue=drr"), "{}", run.out);
    assert!(run.out.ends_with("report: results/x/1/report.html\n"), "{}", run.out);
    assert!(run.err.ends_with(&end("8/8")), "{}", run.err);
    for name in ["run.json", "flows.csv", "links.csv", "series.parquet", "report.html"] {
        assert!(folder.path().join("results/x/1").join(name).is_file(), "{name}");
    }
}

#[test]
fn an_option_that_was_renamed_leads_to_the_one_in_its_place() {
    let run = apportion(folder().path(), &["run", "x.toml", "--no-resume"]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("tip: '--no-resume' is called '--no-cache'\n"), "{}", run.err);
}

#[test]
fn twins_are_run_by_default_with_several_seeds_and_change_no_other_table() {
    let folder = folder();
    let run = |out: &str, more: &[&str]| {
        let set = ["run", "x.toml", "--out", out, "--set", "link.bottleneck.queue=fifo"];
        let run = apportion(folder.path(), &[&set[..], more].concat());
        assert_eq!(run.status, 0, "{}", run.err);
        let read = |name: &str| apportion(folder.path(), &["export", out, name]).out;
        (run, ["flows", "links", "series", "completions"].map(read), read("phase_sensitivity"))
    };
    let (with, tables, phases) = run("with", &["--seeds", "3"]);
    let (without, same, none) = run("without", &["--seeds", "3", "--no-phase-check"]);
    assert!(tables == same);
    assert!(phases.lines().count() > 1 && none.lines().count() == 1, "{phases}");
    assert!(with.err.ends_with(&end("6/6")) && without.err.ends_with(&end("3/3")));
    assert!(with.out.contains("moved by 1 µs") && !without.out.contains("1 µs"), "{}", with.out);
    let (one, _, phases) = run("one", &["--phase-check"]);
    assert!(one.err.ends_with(&end("2/2")) && phases.lines().count() > 1, "{}", one.err);
    assert!(one.out.contains("Several seeds would show"), "{}", one.out);
    let (json, ..) = run("json", &["--seeds", "3", "--json"]);
    assert!(json.out.lines().last().unwrap().starts_with(r#"{"phase_sensitivity":{"#), "{}", json.out);
}

#[cfg(feature = "stacks")]
#[test]
fn a_connection_that_its_stack_closes_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let run = |window: &str, out: &str| {
        // The measured part begins after the failure.
        let text = format!(
            "seed = 1\nstop = \"400ms\"\nmeasure_from = \"300ms\"\n\
             link.wire = {{ from = \"a\", to = \"b\", rate = \"1Gbit\", delay = \"5ms\", watch = true, \
             queue = {{ kind = \"fifo\", limit = \"20ms\" }} }}\n\
             flow.download = {{ from = \"a\", to = \"b\", transport = {{ kind = \"quinn\", window = \"{window}\" }} }}\n"
        );
        std::fs::write(folder.path().join("x.toml"), text).unwrap();
        let run = apportion(folder.path(), &["run", "x.toml", "--out", out]);
        assert_eq!(run.status, 0, "{}", run.err);
        (run.err, apportion(folder.path(), &["export", out, "flows"]).out)
    };
    let (said, flows) = run("20MB", "closed");
    let warning = said.lines().find(|line| line.contains("failed")).unwrap();
    assert!(warning.starts_with("warning: a connection of flow `download` failed at 0."), "{said}");
    assert!(warning.contains("too many gaps in stream buffer"), "{said}");
    assert!(flows.contains("too many gaps in stream buffer"), "{flows}");
    let (said, flows) = run("2MB", "open");
    assert!(!said.contains("failed") && !flows.contains("gaps"), "{said}{flows}");
}

#[test]
fn the_number_of_jobs_does_not_move_a_byte() {
    let folder = folder();
    for (jobs, out) in [("1", "one"), ("4", "four")] {
        let run = apportion(
            folder.path(),
            &["run", "x.toml", "--seeds", "3", "--jobs", jobs, "--out", out, "--quiet"],
        );
        assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (0, "", ""));
    }
    for name in [
        "flows.parquet",
        "links.parquet",
        "series.parquet",
        "allocations.parquet",
        "completions.parquet",
        "media.parquet",
        "phase_sensitivity.parquet",
        "responses.parquet",
        "statistics.parquet",
        "report.html",
    ] {
        let read = |out: &str| std::fs::read(folder.path().join(out).join("1").join(name)).unwrap();
        assert!(read("one") == read("four"), "{name}");
    }
}

#[test]
fn json_has_standard_output_to_itself() {
    let folder = folder();
    let run = apportion(folder.path(), &["run", "x.toml", "--json"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let lines: Vec<serde_json::Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.len() > 2 && lines.iter().all(serde_json::Value::is_object), "{}", run.out);
    let warnings = lines[0]["warnings"].as_array().unwrap();
    assert!(warnings.len() == 1 && end("").contains(warnings[0].as_str().unwrap()), "{warnings:?}");
}

#[test]
fn every_problem_of_a_scenario_is_an_error_and_exits_with_2() {
    let folder = folder();
    let bad = SCENARIO.replace("1Mbit", "10kbps").replace("stop", "stopp");
    std::fs::write(folder.path().join("bad.toml"), bad).unwrap();
    let run = apportion(folder.path(), &["run", "bad.toml"]);
    assert_eq!((run.status, run.out.as_str()), (2, ""));
    assert_eq!(
        run.err,
        "error: bad.toml:1: stop: missing; write for example stop = \"20ms\"\n\
         error: bad.toml:2: stopp: unknown key (did you mean `stop`?); known here: title, seed, stop, measure_from, \
         sample, topology, routing, sweep, defaults, link, flow, customer, agreement, plans, change\n\
         error: bad.toml:6: link.bottleneck.rate: `10kbps` is not a rate: `bps` is ambiguous: bits or bytes?; \
         write for example \"10Mbit\"\n"
    );
    assert!(!folder.path().join("results").exists());
}

#[test]
fn bad_usage_exits_with_2_and_says_what_to_write() {
    let folder = folder();
    let error = |arguments: &[&str]| {
        let run = apportion(folder.path(), arguments);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{arguments:?}: {}", run.err);
        run.err
    };
    assert_eq!(
        error(&["run", "gone.toml"]),
        format!(
            "error: gone.toml: cannot read the scenario: {}; name a TOML file, or an example of `apportion list \
             scenarios`\n",
            std::io::Error::from_raw_os_error(2)
        )
    );
    assert!(error(&["run", "quikstart"]).contains(" (did you mean `quickstart`?); name a TOML file"));
    assert!(error(&["run", "x.toml", "--set", "stop"]).contains("there is no `=`"));
    assert_eq!(
        error(&["run", "x.toml", "--set", "stop=60"]),
        "error: x.toml: --set: stop: `60` is not a time: the unit is missing; write for example \"20ms\"\n"
    );
    for seeds in ["0", "abc"] {
        assert!(error(&["run", "x.toml", "--seeds", seeds]).contains("write a whole number from 1 to 10000"));
    }
    assert!(error(&["run", "x.toml", "--jobs=-1"]).contains("write a whole number, 0 for one per core"));
    assert!(
        error(&["explain", "fq_coddle"]).contains("no explanation of `fq_coddle` (did you mean `fq_codel`?)")
    );
    assert!(error(&["compare", "one"]).contains("2"));
    assert!(error(&["compare", "one", "two"]).starts_with("error: cannot read results from `one`: "));
    // Options of a run, where none is made.
    for option in ["--backend=kernel", "--seeds=1", "--set=stop=1s", "--retries=0", "--force"] {
        let name = option.split('=').next().unwrap();
        let said = error(&["compare", "one", "two", option]);
        let refusal = format!(
            "error: nothing is run when results are compared: leave out {name}, or name a scenario with --parity\n"
        );
        assert!(said == refusal || needs_linux(&said), "{said}");
    }
    std::fs::write(folder.path().join("mine"), "dear").unwrap();
    assert!(error(&["run", "x.toml", "--out", "mine"]).contains("choose another folder with --out DIR"));
}

#[test]
fn what_show_config_prints_runs_as_the_same_scenario() {
    let folder = folder();
    let set = ["--set", "link.bottleneck.rate=2Mbit"];
    let shown = apportion(folder.path(), &["run", "x.toml", "--show-config", set[0], set[1]]);
    assert_eq!(shown.status, 0, "{}", shown.err);
    assert!(shown.out.contains("rate = \"2Mbit\""), "{}", shown.out);
    std::fs::write(folder.path().join("y.toml"), &shown.out).unwrap();
    let again = apportion(folder.path(), &["run", "y.toml", "--show-config"]);
    assert_eq!(again.out, shown.out);
    let json = |file: &str, more: &[&str]| {
        let run = apportion(folder.path(), &[&["run", file, "--json"], more].concat());
        assert_eq!(run.status, 0, "{}", run.err);
        run.out
    };
    assert_eq!(json("x.toml", &set), json("y.toml", &[]));
}

#[test]
fn an_estimate_says_what_a_run_takes_and_runs_nothing() {
    let (folder, cache) = (folder(), tempfile::tempdir().unwrap());
    let estimate = |more: &[&str]| {
        let arguments = ["run", "x.toml", "--estimate"];
        let run = apportion_with_cache(cache.path(), folder.path(), &[&arguments[..], more].concat());
        assert_eq!((run.status, run.err), (0, String::new()));
        run.out
    };
    let before = estimate(&["--seeds", "3"]);
    assert!(before.starts_with("12 simulations, 0 of them in the cache. All of them take "), "{before}");
    assert!(before.contains(" of CPU time (") && before.ends_with(" MB of memory.\n"), "{before}");
    assert!(!folder.path().join("results").exists());
    assert!(estimate(&["--seeds", "3", "--no-phase-check"]).starts_with("6 simulations"));
    let long = estimate(&["--set", "stop=10000000s", "--seeds", "1000"]);
    assert!(long.ends_with(" of memory.\nToo much: only --force runs it.\n"), "{long}");
    let arguments = ["run", "x.toml", "--seeds", "3", "--quiet"];
    assert_eq!(apportion_with_cache(cache.path(), folder.path(), &arguments).status, 0);
    assert!(estimate(&["--seeds", "3"]).starts_with("12 simulations, 12 of them in the cache."));
}

#[test]
fn runs_are_compared_by_their_folders() {
    let folder = folder();
    apportion(folder.path(), &["run", "x.toml", "--out", "one"]);
    apportion(folder.path(), &["run", "x.toml", "--out", "two", "--set", "link.bottleneck.rate=2Mbit"]);
    let run = apportion(folder.path(), &["compare", "one", "two"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.contains("[2] - [1]"), "{}", run.out);
    let page = apportion(folder.path(), &["compare", "one", "two", "--out", "page.html"]);
    assert_eq!((page.status, page.out), (0, run.out + "page: page.html\n"));
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(page.contains("link.bottleneck.rate") && page.contains("<svg"), "{page}");
    for (out, message) in
        [("page.html", "is there already; overwrite it with --force"), ("page", "does not end in .html")]
    {
        let refused = apportion(folder.path(), &["compare", "one", "two", "--out", out]);
        assert!(refused.status == 2 && refused.err.contains(message), "{}", refused.err);
    }
    let json = apportion(folder.path(), &["compare", "one", "two", "--json"]);
    assert!(json.out.lines().count() > 2);
    json.out
        .lines()
        .for_each(|line| assert!(serde_json::from_str::<serde_json::Value>(line).unwrap().is_object()));
}

#[test]
fn a_comparison_fails_on_metrics_that_moved() {
    let folder = folder();
    let run = |out: &str, more: &[&str]| {
        let words = [&["run", "x.toml", "--quiet", "--out", out], more].concat();
        assert_eq!(apportion(folder.path(), &words).status, 0);
    };
    run("one", &["--seeds", "3"]);
    run("two", &["--seeds", "3", "--set", "link.bottleneck.rate=2Mbit"]);
    run("single", &[]);
    let compare = |other: &str, metrics: &str| {
        let done = apportion(folder.path(), &["compare", "one", other, "--fail-on", metrics]);
        (done.status, done.err)
    };
    assert_eq!(compare("one", "worst_share,delay_p95_ms"), (0, String::new()));
    let (status, moved) = compare("two", "throughput_mbps");
    assert!(status == 1 && moved.starts_with("moved: throughput_mbps of queue=fifo: "), "{moved}");
    let (status, refused) = compare("two", "delay");
    assert!(status == 2 && refused.contains("no metric `delay`"), "{refused}");
    let (status, refused) = compare("single", "throughput_mbps");
    assert!(status == 2 && refused.contains("has no interval"), "{refused}");
}

#[test]
fn a_table_is_exported() {
    let folder = folder();
    assert_eq!(apportion(folder.path(), &["run", "x.toml", "--out", "one", "--quiet"]).status, 0);
    let flows = std::fs::read_to_string(folder.path().join("one/1/flows.csv")).unwrap();
    assert_eq!(apportion(folder.path(), &["export", "one", "flows"]).out, flows);
    let to_file = |more: &[&str]| {
        let words = [&["export", "one/1", "flows", "--out", "own.csv"], more].concat();
        let export = apportion(folder.path(), &words);
        (export.status, export.err)
    };
    assert_eq!(to_file(&[]), (0, String::new()));
    let own = folder.path().join("own.csv");
    assert_eq!(std::fs::read_to_string(&own).unwrap(), flows);
    std::fs::write(&own, "mine").unwrap();
    let there = "error: `own.csv` is there already; overwrite it with --force\n";
    assert_eq!(to_file(&[]), (2, there.to_owned()));
    assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine");
    assert_eq!(to_file(&["--force"]), (0, String::new()));
    assert_eq!(std::fs::read_to_string(&own).unwrap(), flows);
    let wrong = apportion(folder.path(), &["export", "one", "flow", "--out", "none.csv"]);
    assert_eq!((wrong.status, wrong.err.lines().count()), (2, 1), "{}", wrong.err);
    assert!(
        wrong.err.starts_with("error: `flow` is no table (did you mean `flows`?); the tables are flows, "),
        "{}",
        wrong.err
    );
    assert!(!folder.path().join("none.csv").exists());
}

#[test]
fn captures_are_written_for_the_first_replication_of_each_point() {
    let folder = folder();
    let run = apportion(
        folder.path(),
        &["run", "x.toml", "--seeds", "2", "--out", "out", "--set", "link.bottleneck.pcap=true"],
    );
    assert_eq!(run.status, 0, "{}", run.err);
    for name in ["1-bottleneck.pcap", "2-bottleneck.pcap"] {
        let capture = std::fs::read(folder.path().join("out/1").join(name)).unwrap();
        // 24 bytes of file header; 2 s at 1 Mb/s are some 160 packets.
        assert!(capture.len() > 24 + 100 * 16, "{name}: {} bytes", capture.len());
    }
}

#[test]
fn everything_listed_is_explained() {
    let folder = folder();
    let mut names = 0;
    for what in ["disciplines", "markers", "tcp", "sources", "topologies"] {
        let list = apportion(folder.path(), &["list", what]);
        assert_eq!(list.status, 0);
        for line in list.out.lines() {
            let name = line.split_whitespace().next().unwrap();
            let explained = apportion(folder.path(), &["explain", name]);
            assert!(explained.out.contains(&format!("{name}: ")) && explained.status == 0, "{name}");
            names += 1;
        }
    }
    assert!(names > 20, "{names}");
    let all = apportion(folder.path(), &["list"]).out;
    assert!(
        [
            "Disciplines\n",
            "\nMarkers and exchanges\n",
            "\nTCP profiles\n",
            "\nTCP algorithms\n",
            "\nQUIC\n",
            "\nSources\n",
            "\nTopologies\n"
        ]
        .iter()
        .all(|part| all.contains(part))
    );
    assert_eq!(
        apportion(folder.path(), &["explain", "newreno"]).out,
        "newreno: TCP algorithm\n\
         Reno whose fast recovery lasts until all data sent before the loss is acknowledged.\n\
         Source: RFC 6582\n\
         Use: tcp = { profile = \"rfc\", algorithm = \"newreno\" }, or with another profile; or quic = \"newreno\"\n"
    );
    let red = apportion(folder.path(), &["explain", "red"]).out;
    for part in ["min_th", "default", "Paper: ", "Limits: Behind a fair scheduler"] {
        assert!(red.contains(part), "{part}: {red}");
    }
}

#[test]
fn the_schema_is_json_and_completions_are_scripts() {
    let folder = folder();
    let schema: serde_json::Value = serde_json::from_str(&apportion(folder.path(), &["schema"]).out).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    for shell in ["bash", "zsh", "fish"] {
        assert!(apportion(folder.path(), &["completions", shell]).out.contains("apportion"), "{shell}");
    }
}

#[cfg(not(target_os = "linux"))]
#[test]
fn what_needs_linux_is_refused() {
    let folder = folder();
    for arguments in [&["lab", "x.toml"][..], &["gateway", "--help"], &["run", "x.toml", "--watch"]] {
        let run = apportion(folder.path(), arguments);
        assert_eq!((run.status, run.err.lines().count()), (2, 1), "{arguments:?}: {}", run.err);
        assert!(needs_linux(&run.err), "{}", run.err);
    }
    assert!(!apportion(folder.path(), &["--help"]).out.contains("gateway "));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    let mut child = Running::start(command.arg("schema").stdout(Stdio::piped()).stderr(Stdio::piped()));
    drop(child.stdout());
    let output = child.output();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_keeps_what_is_finished_and_exits_with_1() {
    use std::io::BufRead as _;

    let folder = folder();
    // The second run would take hours.
    let scenario = SCENARIO
        .replace("stop = \"2s\"", "stop = [\"2s\", \"1000000s\"]")
        .replace("[\"fifo\", \"drr\"]", "\"fifo\"");
    std::fs::write(
        folder.path().join("long.toml"),
        scenario + "[[change]]\nat = \"3s\"\nset = \"link.bottleneck.rate\"\nto = \"1Gbit\"\n",
    )
    .unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .current_dir(folder.path())
        .args(["run", "long.toml", "--jobs", "1", "--out", "out", "--no-cache"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut errors = std::io::BufReader::new(child.stderr());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "1/2 runs done\n");
    child.signal(Signal::SIGINT);
    let output = child.output();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stdout).unwrap().contains("interrupted"));
    let run = std::fs::read_to_string(folder.path().join("out/1/run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["complete"], false);
    assert_eq!(run["points"][0]["seeds_done"], serde_json::json!(["3"]));
    assert_eq!(run["points"][1]["seeds_done"], serde_json::json!([]));
}

/// Runs a scenario that would take hours, with the settings, and interrupts it after `moments` of 10 ms.
/// Returns the folder with `out`.
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "a test of a process waits for it")]
fn interrupted(moments: u32, settings: &[&str]) -> (TempDir, std::process::Output) {
    use std::time::{Duration, Instant};

    let folder = folder();
    let scenario =
        SCENARIO.replace("stop = \"2s\"", "stop = \"1000000s\"").replace("[\"fifo\", \"drr\"]", "\"fifo\"");
    std::fs::write(folder.path().join("long.toml"), scenario).unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .current_dir(folder.path())
        .env("APPORTION_CACHE_DIR", folder.path().join("cache"))
        .args(["run", "long.toml", "--force", "--out", "out"])
        .args(settings.iter().flat_map(|set| ["--set", set]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let child = Running::start(&mut command);
    // Once the folder to be published exists, the command listens to interrupts.
    let entries = || std::fs::read_dir(folder.path().join("out")).map_or(0, Iterator::count);
    let begun = Instant::now();
    while entries() == 0 {
        assert!(begun.elapsed() < Duration::from_secs(60) && !child.has_ended());
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(10) * moments);
    child.signal(Signal::SIGINT);
    (folder, child.output())
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_in_the_warm_up_leaves_no_folder() {
    let (folder, output) = interrupted(50, &["measure_from=900000s"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    let when =
        " of 1000000 s of simulated time, before the measurement begins at 900000s: there is nothing to keep";
    assert!(said.contains("interrupted at ") && said.contains(when), "{said}");
    assert_eq!(std::fs::read_dir(folder.path().join("out")).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_replication_keeps_what_it_measured() {
    let (folder, output) = interrupted(100, &["measure_from=1ms"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(" of 1000000 s of simulated time: results are partial)"), "{said}");
    let run = std::fs::read_to_string(folder.path().join("out/1/run.json")).unwrap();
    let run: serde_json::Value = serde_json::from_str(&run).unwrap();
    let point = &run["points"][0];
    let (at, measured) = (point["cut_s"][0].as_f64().unwrap(), point["measured_s"].as_f64().unwrap());
    assert_eq!((&run["complete"], point["cut_s"][1].as_f64()), (&false.into(), Some(1e6)));
    assert!(at > 1.0 && (at - measured - 1e-3).abs() < 1e-6, "{point}");
    let page = std::fs::read_to_string(folder.path().join("out/1/report.html")).unwrap();
    assert!(page.contains("Results are partial: the replication was cut at "));
    // The flows got their share of the link: their entitlement covers the measured part.
    let flows = std::fs::read_to_string(folder.path().join("out/1/flows.csv")).unwrap();
    assert!(flows.lines().count() > 1, "{flows}");
    let compared = apportion(folder.path(), &["compare", "out/1", "out/1"]);
    assert!(compared.out.contains("(interrupted: partial, cut at "), "{}{}", compared.out, compared.err);
    // The cache holds nothing of the run.
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command.current_dir(folder.path()).env("APPORTION_CACHE_DIR", folder.path().join("cache"));
    let again =
        command.args(["run", "long.toml", "--force", "--set", "measure_from=1ms", "--estimate"]).output();
    let again = String::from_utf8(again.unwrap().stdout).unwrap();
    assert!(again.starts_with("1 simulations, 0 of them in the cache"), "{again}");
}

#[test]
fn short_versions_of_all_examples_run() {
    let folder = folder();
    for entry in std::fs::read_dir(examples()).unwrap() {
        let path = entry.unwrap().path();
        // Folders hold configurations of gateways, and scenarios in real time.
        if path.is_dir() {
            continue;
        }
        let file = path.to_str().unwrap();
        let run = apportion(
            folder.path(),
            &["run", file, "--quiet", "--out", "out", "--set", "stop=2s", "--set", "measure_from=1s"],
        );
        assert_eq!((run.status, run.err.as_str()), (0, ""), "{file}");
    }
}

#[test]
fn a_sweep_says_what_it_needs() {
    let folder = tempfile::tempdir().unwrap();
    let alone = apportion(folder.path(), &["sweep", "quickstart"]);
    assert_eq!(
        (alone.status, alone.err.as_str()),
        (
            2,
            "error: name a cluster, such as --cluster tcp://node1:8786; on this machine alone `apportion run` does the same\n"
        )
    );
    let without = apportion(folder.path(), &["sweep", "quickstart", "--cluster", "tcp://node1:8786"]);
    assert_eq!(
        (without.status, without.err.as_str()),
        (
            2,
            "error: only the `apportion` of the Python package can use a cluster: pip install 'apportion[cluster]'\n"
        )
    );
}
