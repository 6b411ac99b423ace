//! What the command writes: the same bytes for the same run, captures that others read, and nothing by
//! halves.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::apportion;

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
const FILES: [&str; 11] = [
    "allocations.csv",
    "bottleneck.pcap",
    "completions.csv",
    "flows.csv",
    "links.csv",
    "phases.csv",
    "report.html",
    "responses.csv",
    "run.json",
    "series.csv",
    "statistics.csv",
];

/// Every file of a folder by its name, hidden ones included. Of what is no plain file, only the name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let name_and_bytes = |entry: std::fs::DirEntry| {
        let plain = entry.file_type().unwrap().is_file();
        let bytes = if plain { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
        (entry.file_name().into_string().unwrap(), bytes)
    };
    std::fs::read_dir(folder).unwrap().map(|entry| name_and_bytes(entry.unwrap())).collect()
}

/// A folder with the scenario in it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), HEAD.to_owned() + &BLOCKS.concat()).unwrap();
    folder
}

/// The error of a run into `out` that fails.
fn refusal(folder: &Path, out: &str, more: &[&str]) -> String {
    let run = apportion(folder, &[&["run", "x.toml", "--quiet", "--out", out], more].concat());
    assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
    // One message of one line, which says what to do.
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
        files(&folder.path().join(out))
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
    // Another seed shows in every file with rows: no queue here allocates anything, and nothing happens.
    let other = written("x.toml", "seed", &["--set", "seed=4"]);
    for name in FILES.into_iter().filter(|name| !["allocations.csv", "responses.csv"].contains(name)) {
        assert!(one[name] != other[name], "{name}");
    }
}

#[test]
fn tshark_reads_a_capture_and_finds_nothing_wrong() {
    let folder = folder();
    let run = apportion(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]);
    assert_eq!(run.status, 0, "{}", run.err);
    let tshark = |arguments: &[&str]| {
        let path = folder.path().join("out/bottleneck.pcap");
        let output = match Command::new("tshark").arg("-r").arg(path).args(arguments).output() {
            Ok(output) => output,
            Err(error) => {
                assert!(std::env::var("CI").as_deref() != Ok("true"), "CI must have tshark: {error}");
                println!(
                    "SKIPPED: tshark cannot be run here ({error}); the capture was not checked against it"
                );
                return None;
            }
        };
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !complaint.contains("cut short"), "{complaint}");
        Some(String::from_utf8(output.stdout).unwrap())
    };
    // The link is captured where its packets leave the queue: as many as the table of links counts.
    let links = std::fs::read_to_string(folder.path().join("out/links.csv")).unwrap();
    let mut rows = links.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let column = |row: &[&str], name: &str| row.iter().position(|title| *title == name).unwrap();
    let head = rows.next().unwrap();
    let (name, packets) = (column(&head, "link"), column(&head, "sent_packets"));
    let sent = rows.find(|row| row[name] == "bottleneck").unwrap()[packets].to_owned();
    let Some(all) = tshark(&["-T", "fields", "-e", "ip.proto"]) else { return };
    assert_eq!(all.lines().count().to_string(), sent);
    assert!(all.lines().count() > 500 && all.lines().all(|protocol| protocol == "6"));
    // Checksums are right as far as what is captured shows them: those of IP headers, which are whole.
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

    std::fs::create_dir(folder.path().join("mine")).unwrap();
    std::fs::write(folder.path().join("mine/flows.csv"), "mine").unwrap();
    assert!(refusal(folder.path(), "mine", &[]).contains("no run.json of an earlier run"));
    assert_eq!(
        files(&folder.path().join("mine")),
        BTreeMap::from([("flows.csv".to_owned(), b"mine".to_vec())])
    );
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
        println!(
            "SKIPPED: the superuser may write everywhere; that a locked folder is refused was not checked"
        );
    } else {
        let message = "make it writable or choose another folder";
        assert!(refusal(folder.path(), "locked", &[]).contains(message));
        assert!(refusal(folder.path(), "locked/below", &[]).contains(message));
    }
    std::fs::set_permissions(&locked, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// `/dev/full` fails every write for lack of space.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_leaves_nothing_by_halves() {
    use std::os::unix::fs::symlink;

    let folder = folder();
    let out = folder.path().join("out");
    // Without an earlier run the folder stays empty, and with one it stays what it was, whichever file comes
    // to grief.
    std::fs::create_dir(&out).unwrap();
    for earlier in [false, true] {
        for name in ["run.json", "series.csv", "report.html"] {
            if earlier {
                let run = apportion(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]);
                assert_eq!(run.status, 0, "{}", run.err);
            }
            let before = files(&out);
            symlink("/dev/full", out.join(format!(".{name}.partial"))).unwrap();
            let message =
                refusal(folder.path(), "out", &["--set", "seed=4", "--set", "link.bottleneck.pcap=false"]);
            assert!(message.contains("No space left on device"), "{message}");
            assert!(files(&out) == before, "{name}: {:?} {:?}", before.keys(), files(&out).keys());
        }
    }
}

/// A run whose capture cannot be written to its end has no results, and leaves those of an earlier one alone.
#[cfg(unix)]
#[test]
fn a_disk_too_full_for_a_capture_leaves_nothing_by_halves() {
    let folder = folder();
    let out = folder.path().join("out");
    std::fs::create_dir(&out).unwrap();
    for earlier in [false, true] {
        if earlier {
            let run = apportion(folder.path(), &["run", "x.toml", "--quiet", "--out", "out"]);
            assert_eq!(run.status, 0, "{}", run.err);
        }
        let before = files(&out);
        // No file may grow beyond 16 blocks, of 512 or 1024 bytes; the capture would have some 70 kB. An
        // error, and not a signal, is what a write beyond that gets if the signal is ignored.
        let limited = "trap '' XFSZ; ulimit -f 16; exec \"$APPORTION\" run x.toml --quiet --no-resume --out out --set seed=4";
        let output = Command::new("sh")
            .args(["-c", limited])
            .env("APPORTION", assert_cmd::cargo::cargo_bin("apportion"))
            .current_dir(folder.path())
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.starts_with("error: ") && err.contains("capture") && err.lines().count() == 1, "{err}");
        let after = files(&out);
        assert!(after == before, "{:?} became {:?}", before.keys(), after.keys());
    }
}
