//! Files of the command: the same bytes for the same run, captures that other programs read, and no partial
//! results.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use apportion_testing::child::{self, Running};
use apportion_testing::skip;

use crate::common::apportion;

const HEAD: &str = "title = \"test\"\nseed = 3\nstop = \"5s\"\n";
const BLOCKS: [&str; 5] = [
    r#"
[link.bottleneck]
from = "a"
to = "b"
rate = "2Mbit"
delay = "5ms"
queue = "red"
loss = "1%"
watch = true
pcap = true
"#,
    r#"
[link.aside]
from = "c"
to = "b"
rate = "1Mbit"
delay = "2ms"
"#,
    r#"
[flow.tcp]
count = 2
from = "a"
to = "b"
tcp = { profile = "rfc", algorithm = "sack", ecn = true }
"#,
    r#"
[flow.web]
from = "a"
to = "b"
tcp = "rfc"
source = { kind = "short_flows", per_second = 3, mean_size = "10kB" }
"#,
    r#"
[flow.noise]
from = "c"
to = "b"
source = { kind = "poisson", rate = "500kbit" }
"#,
];
const FILES: [&str; 17] = [
    "allocations.parquet",
    "bottleneck.pcap",
    "completions.csv",
    "completions.parquet",
    "flows.csv",
    "flows.parquet",
    "links.csv",
    "links.parquet",
    "media.csv",
    "media.parquet",
    "phase_sensitivity.parquet",
    "report.html",
    "responses.parquet",
    "run.json",
    "series.parquet",
    "statistics.csv",
    "statistics.parquet",
];

/// Every file of a folder by name, hidden ones included. An entry that is no plain file has its name only.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let name_and_bytes = |entry: std::fs::DirEntry| {
        let plain = entry.file_type().unwrap().is_file();
        let bytes = if plain { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        (entry.file_name().into_string().unwrap(), bytes)
    };
    std::fs::read_dir(folder).unwrap().map(|entry| name_and_bytes(entry.unwrap())).collect()
}

/// Files of a run without those that say how it came about.
fn results(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = files(folder);
    let mut head: serde_json::Value = serde_json::from_slice(&files["run.json"]).unwrap();
    assert!(head["made"]["wall_s"].is_number() && head["made"]["command"][1] == "run", "{}", head["made"]);
    head.as_object_mut().unwrap().remove("made");
    files.insert("run.json".to_owned(), head.to_string().into_bytes());
    files
}

/// Makes a folder with the scenario in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), HEAD.to_owned() + &BLOCKS.concat()).unwrap();
    folder
}

/// Error of a run into `out` that fails.
fn refusal(folder: &Path, out: &str, more: &[&str]) -> String {
    let run = apportion(folder, &[&["run", "x.toml", "--quiet", "--out", out], more].concat());
    assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
    // One message of one line, with the mend.
    assert!(run.err.starts_with("error: ") && run.err.lines().count() == 1, "{}", run.err);
    run.err
}

#[test]
fn the_same_run_writes_the_same_bytes_however_it_is_written_down() {
    let folder = folder();
    let mut reversed = BLOCKS;
    reversed.reverse();
    std::fs::write(folder.path().join("reversed.toml"), HEAD.to_owned() + &reversed.concat()).unwrap();
    let written = |file: &str, out: &str, more: &[&str]| {
        let run = apportion(
            folder.path(),
            &[&["run", file, "--seeds", "2", "--out", out, "--quiet"], more].concat(),
        );
        assert_eq!((run.status, run.err.as_str()), (0, ""));
        results(&folder.path().join(out).join("1"))
    };
    let one = written("x.toml", "one", &["--jobs", "1"]);
    assert!(one.keys().eq(FILES), "{:?}", one.keys());
    for (file, out, more) in [
        ("x.toml", "again", &["--jobs", "1"][..]),
        ("x.toml", "threads", &["--jobs", "2"]),
        ("reversed.toml", "reversed", &[]),
    ] {
        let other = written(file, out, more);
        for name in FILES {
            assert!(one[name] == other[name], "{out}/{name}");
        }
    }
    // Another seed shows in every file with rows. These files have none: no queue here allocates, nobody
    // watches or listens, and no event occurs.
    const EMPTY: [&str; 4] = ["allocations.parquet", "media.csv", "media.parquet", "responses.parquet"];
    let other = written("x.toml", "seed", &["--set", "seed=4"]);
    for name in FILES.into_iter().filter(|name| !EMPTY.contains(name)) {
        assert!(one[name] != other[name], "{name}");
    }
}

#[test]
fn tshark_reads_a_capture_and_finds_nothing_wrong() {
    let folder = folder();
    let run = apportion(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let tshark = |arguments: &[&str]| {
        let path = folder.path().join("out/1/bottleneck.pcap");
        let may_be_skipped = std::env::var("CI").as_deref() != Ok("true");
        assert!(may_be_skipped || skip::is_in_path("tshark"), "CI must have tshark");
        if !skip::unless_found(&["tshark"]) {
            return None;
        }
        let output = child::output(Command::new("tshark").arg("-r").arg(path).args(arguments));
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !complaint.contains("cut short"), "{complaint}");
        Some(String::from_utf8(output.stdout).unwrap())
    };
    // The link is captured at the exit of its queue: as many packets as the table of links counts.
    let links = std::fs::read_to_string(folder.path().join("out/1/links.csv")).unwrap();
    let mut rows = links.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let column = |row: &[&str], name: &str| row.iter().position(|title| *title == name).unwrap();
    let head = rows.next().unwrap();
    let (name, packets) = (column(&head, "link"), column(&head, "sent_packets"));
    let sent = rows.find(|row| row[name] == "bottleneck").unwrap()[packets].to_owned();
    let Some(all) = tshark(&["-T", "fields", "-e", "ip.proto"]) else { return };
    assert_eq!(all.lines().count().to_string(), sent);
    assert!(all.lines().count() > 500 && all.lines().all(|protocol| protocol == "6"));
    // Checksums are right where the capture holds what they cover: those of IP headers.
    let wrong = "_ws.malformed || _ws.expert.severity == \"Error\" || ip.checksum.status == \"Bad\"";
    let wrong = tshark(&["-o", "ip.check_checksum:TRUE", "-Y", wrong]).unwrap();
    assert_eq!(wrong, "");
}

#[test]
fn two_links_that_would_write_one_capture_are_refused() {
    let folder = folder();
    let link = |name| {
        format!(
            "[link.\"{name}\"]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\npcap = true\n"
        )
    };
    let text = HEAD.to_owned() + &BLOCKS.concat() + &link("x y") + &link("x_y");
    std::fs::write(folder.path().join("x.toml"), text).unwrap();
    let message = refusal(folder.path(), "out", &[]);
    assert!(message.contains("x_y.pcap`: two links write to it; give one of them another name"), "{message}");
    assert_eq!(files(&folder.path().join("out")).len(), 0);
}

#[test]
fn an_output_that_cannot_be_a_folder_of_results_is_refused() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    assert!(refusal(folder.path(), "file", &[]).contains("`file`: it is a file, not a folder"));
    assert!(refusal(folder.path(), "file/below", &[]).contains("choose another folder with --out DIR"));
    assert_eq!(std::fs::read(folder.path().join("file")).unwrap(), b"mine");
}

#[test]
fn no_run_overwrites_another_one_or_what_else_is_there() {
    let folder = folder();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("flows.csv"), "mine").unwrap();
    let run = |seed: &str| {
        let run = apportion(folder.path(), &["run", "x.toml", "--quiet", "--out", "out", "--set", seed]);
        assert_eq!((run.status, run.err.as_str()), (0, ""));
    };
    run("seed=3");
    let first = files(&out.join("1"));
    run("seed=4");
    assert!(files(&out.join("1")) == first && files(&out.join("2")) != first);
    assert_eq!(std::fs::read(out.join("flows.csv")).unwrap(), b"mine");
    assert!(cfg!(windows) || results(&out.join("latest")) == results(&out.join("2")));
}

#[test]
fn two_runs_at_once_are_both_kept() {
    let folder = folder();
    let start = |seed: &str| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
        command
            .args(["run", "x.toml", "--quiet", "--no-cache", "--out", "out", "--set", seed])
            .current_dir(folder.path());
        Running::start(&mut command)
    };
    let mut both = [start("seed=3"), start("seed=4")];
    assert!(both.iter_mut().all(|run| run.wait().success()));
    let names: Vec<String> = files(&folder.path().join("out")).into_keys().collect();
    assert_eq!(names, ["1", "2", "latest"]);
    let out = |number: &str| results(&folder.path().join("out").join(number));
    assert!(out("1").keys().eq(FILES) && out("2").keys().eq(FILES) && out("1") != out("2"));
}

#[test]
fn a_long_run_writes_what_a_short_one_does_without_holding_it() {
    let folder = folder();
    let file = "seed = 3\nstop = \"20ms\"\nsample = \"1ms\"\n".to_owned()
        + "link.l = { from = \"a\", to = \"b\", rate = \"2Mbit\", delay = \"1ms\", watch = true, queue = [\"fifo\", \"drr\"] }\n"
        + "flow.udp = { count = 2, from = \"a\", to = \"b\", source = { kind = \"poisson\", rate = \"2Mbit\" } }\n";
    std::fs::write(folder.path().join("y.toml"), file).unwrap();
    let run = |out: &str, seeds: &str, more: &[&str]| {
        let run =
            apportion(folder.path(), &[&["run", "y.toml", "--out", out, "--seeds", seeds], more].concat());
        assert_eq!(run.status, 0, "{}", run.err);
        run.out
    };
    let export = |out: &str, table: &str| {
        let export = apportion(folder.path(), &["export", out, table]);
        assert_eq!((export.status, export.err.as_str()), (0, ""));
        export.out
    };
    // 1,002 replications in batches, 1,000 in one; the tables of the long run begin like those of the short
    // one.
    run("long", "501", &["--no-phase-check"]);
    run("short", "500", &["--no-phase-check"]);
    run("series", "501", &["--no-phase-check", "--series"]);
    let names: Vec<String> = files(&folder.path().join("long/1")).into_keys().collect();
    assert!(names.iter().all(|name| !name.ends_with(".csv")) && names.contains(&"flows.parquet".to_owned()));
    for table in ["flows", "links", "completions"] {
        let (long, short) = (export("long", table), export("short", table));
        assert_eq!(export("series", table), long);
        let of_fifo = |text: &str| {
            text.lines().filter(|line| line.starts_with("queue=fifo")).map(str::to_owned).collect::<Vec<_>>()
        };
        let (long, short) = (of_fifo(&long), of_fifo(&short));
        assert!(long.len() >= short.len() && long[..short.len()] == short, "{table}");
    }
    assert_eq!(export("long", "flows").lines().count(), 1 + 2 * 501 * 2);
    assert_eq!(export("long", "series").lines().count(), 1);
    assert!(export("series", "series").lines().count() > export("short", "series").lines().count());
    // The comparison is from the same numbers.
    let compared = apportion(folder.path(), &["compare", "long", "series"]);
    assert!(
        compared.out.contains("throughput_mbps/udp") && !compared.out.contains("no results"),
        "{}",
        compared.out
    );
    let page = std::fs::read_to_string(folder.path().join("long/1/report.html")).unwrap();
    assert!(page.contains("queue=drr") && page.contains("501 seeds"));
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_written_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder();
    let locked = folder.path().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o555)).unwrap();
    if std::fs::write(locked.join("probe"), "").is_ok() {
        skip::because("the superuser may write everywhere; run it as another user");
    } else {
        let message = "make it writable or choose another folder";
        assert!(refusal(folder.path(), "locked", &[]).contains(message));
        assert!(refusal(folder.path(), "locked/below", &[]).contains(message));
    }
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A run that cannot finish a file has no results, and leaves those of an earlier one alone.
#[cfg(unix)]
#[test]
fn a_disk_that_is_too_full_leaves_nothing_by_halves() {
    let folder = folder();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    for (earlier, what, set) in [
        (false, "capture", "seed=4"),
        (true, "capture", "seed=4"),
        (false, "results to `out/", "link.bottleneck.pcap=false"),
        (true, "results to `out/", "link.bottleneck.pcap=false"),
    ] {
        if earlier {
            let run = apportion(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]);
            assert_eq!(run.status, 0, "{}", run.err);
        }
        let before = files(&out);
        // No file may grow beyond a few kilobytes. With the signal ignored, a write beyond that fails with an
        // error.
        let limited = "trap '' XFSZ; ulimit -f 8; exec \"$APPORTION\" run x.toml --quiet --no-cache --out out --set \"$0\"";
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", limited, set])
            .env("APPORTION", assert_cmd::cargo::cargo_bin("apportion"))
            .current_dir(folder.path());
        let output = child::output(&mut shell);
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.starts_with("error: ") && err.contains(what) && err.lines().count() == 1, "{err}");
        let after = files(&out);
        assert!(after == before, "{:?} became {:?}", before.keys(), after.keys());
    }
}
