//! A simulation is not repeated, also after a kill, unless something has changed.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apportion_testing::child::{self, Running};
use tempfile::TempDir;

use crate::common::{self, Run, apportion_with_cache};

const SCENARIO: &str = r#"
title = "test"
seed = 3
stop = "30s"
link.bottleneck = { from = "a", to = "b", rate = "4Mbit", delay = "5ms", queue = ["fifo", "red"], watch = true }
flow.tcp = { count = 2, from = "a", to = "b", tcp = "rfc" }
"#;

/// Makes a folder with the scenario, and an empty one for a cache.
fn folders() -> [TempDir; 2] {
    let folders = [(); 2].map(|()| TempDir::new().unwrap());
    fs::write(folders[0].path().join("x.toml"), SCENARIO).unwrap();
    folders
}

fn run([folder, cache]: &[TempDir; 2], out: &str, more: &[&str]) -> Run {
    let arguments = [&["run", "x.toml", "--no-phase-check", "--out", out], more].concat();
    apportion_with_cache(cache.path(), folder.path(), &arguments)
}

/// Number of runs taken from the cache, according to the command.
fn reused(run: &Run) -> u64 {
    assert_eq!(run.status, 0, "{}", run.err);
    common::reused(run)
}

fn table(folder: &TempDir, out: &str, name: &str) -> String {
    fs::read_to_string(folder.path().join(out).join("1").join(name)).unwrap()
}

/// Files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn a_run_that_was_killed_goes_on_where_it_was() {
    let folders = folders();
    let [folder, cache] = &folders;
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .args(["run", "x.toml", "--no-phase-check", "--seeds", "20", "--jobs", "1", "--out", "killed"])
        .current_dir(folder.path())
        .env("APPORTION_CACHE_DIR", cache.path())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    // A line for each tenth of the 40 runs.
    let mut lines = BufReader::new(child.stderr()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "4/40 runs done");
    child.kill();
    // A record cut short in the middle of a write is simulated again, with those that the process wrote after
    // it.
    let [file] = &files(&cache.path().join("2"))[..] else { panic!("one process, one point") };
    let length = file.metadata().unwrap().len();
    fs::File::options().write(true).open(file).unwrap().set_len(length - 1).unwrap();

    let resumed = run(&folders, "resumed", &["--seeds", "20"]);
    assert!((3..40).contains(&reused(&resumed)), "{}", resumed.err);
    let anew = run(&folders, "anew", &["--seeds", "20", "--no-cache"]);
    assert_eq!(reused(&anew), 0);
    for name in ["flows.csv", "links.csv", "statistics.csv", "report.html"] {
        assert!(table(folder, "resumed", name) == table(folder, "anew", name), "{name}");
    }
    assert_eq!(reused(&run(&folders, "again", &["--seeds", "20"])), 40);
}

#[test]
fn only_what_has_changed_is_simulated() {
    let folders = folders();
    let reused = |out: &str, more: &[&str]| reused(&run(&folders, out, more));
    assert_eq!(reused("one", &["--seeds", "2"]), 0);
    // More seeds; another name; one more queue; the same queues at another rate; perturbed copies; no
    // replication of another seed.
    assert_eq!(reused("more", &["--seeds", "3"]), 4);
    assert_eq!(reused("title", &["--seeds", "3", "--set", "title=other"]), 6);
    let queues = r#"link.bottleneck.queue=["drr", "red", "fifo"]"#;
    assert_eq!(reused("queues", &["--seeds", "3", "--set", queues]), 6);
    assert_eq!(reused("rate", &["--seeds", "3", "--set", "link.bottleneck.rate=5Mbit"]), 0);
    assert_eq!(reused("back", &["--seeds", "3", "--set", "link.bottleneck.rate=4000kbit"]), 6);
    assert_eq!(reused("copies", &["--seeds", "3", "--phase-check"]), 6);
    assert_eq!(reused("both", &["--seeds", "3", "--phase-check"]), 12);
    assert_eq!(reused("seed", &["--seeds", "3", "--set", "seed=4"]), 0);
}

#[test]
fn what_a_file_holds_counts() {
    let folders = folders();
    let trace = folders[0].path().join("frames.txt");
    fs::write(&trace, "1000\n2000\n").unwrap();
    let video =
        r#"flow.video={ from = "a", to = "b", source = { kind = "video", file = "frames.txt", fps = 25 } }"#;
    let once = |out: &str| run(&folders, out, &["--set", video]);
    assert_eq!([reused(&once("one")), reused(&once("two"))], [0, 2]);
    fs::write(&trace, "1000\n2001\n").unwrap();
    assert_eq!(reused(&once("three")), 0);
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning() {
    let folders = folders();
    let file = folders[0].path().join("file");
    fs::write(&file, "mine").unwrap();
    let run = apportion_with_cache(&file, folders[0].path(), &["run", "x.toml", "--quiet"]);
    assert_eq!(run.status, 0);
    assert!(run.err.starts_with("warning: the cache at `") && run.err.lines().count() == 1, "{}", run.err);
    assert_eq!(fs::read(file).unwrap(), b"mine");
}

#[cfg(feature = "stacks")]
#[test]
fn a_cache_that_is_asked_for_and_cannot_be_used_is_a_warning() {
    let folders = folders();
    let said = |options: &[&str]| {
        let set = ["--set", "flow.tcp.tcp=false", "--set", "flow.tcp.transport=quinn", "--set", "stop=1s"];
        let run = run(&folders, "out", &[&set[..], &["--quiet"], options].concat());
        assert_eq!(reused(&run), 0);
        run.err
    };
    let warning = "warning: --cache: runs with a registered queue, congestion control or transport stack are not cached\n";
    assert_eq!([said(&[]), said(&["--cache"]), said(&["--no-cache"])], ["", warning, ""]);
    assert!(files(folders[1].path()).is_empty());
    let pairs = |options: &[&str]| {
        let stack = "[flow.q]\ntransport = \"smoltcp\"\n";
        fs::write(folders[0].path().join("q.toml"), stack).unwrap();
        let of =
            ["pairs", "--services", "q.toml", "--disciplines", "fifo", "--rates", "1Mbit", "--length", "5s"];
        let run = apportion_with_cache(
            folders[1].path(),
            folders[0].path(),
            &[&of[..], &["--seeds", "1", "--quiet"], options].concat(),
        );
        assert_eq!(run.status, 0, "{}", run.err);
        run.err
    };
    assert_eq!([pairs(&[]), pairs(&["--cache"])], ["", warning]);
}

#[test]
fn a_relative_xdg_cache_home_is_ignored() {
    let [folder, home] = folders();
    let place = |xdg: &Path| {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
        command.args(["cache", "show"]).current_dir(folder.path()).env_remove("APPORTION_CACHE_DIR");
        let output = child::output(
            command.env("XDG_CACHE_HOME", xdg).envs([("HOME", home.path()), ("LOCALAPPDATA", home.path())]),
        );
        String::from_utf8(output.stdout).unwrap()
    };
    let (xdg, home) = (
        folder.path().join("xdg"),
        home.path().join(if cfg!(windows) { "apportion\\cache" } else { ".cache/apportion" }),
    );
    assert!(place(&xdg).contains(&xdg.join("apportion").display().to_string()), "{}", place(&xdg));
    for relative in ["xdg", "./xdg", ""] {
        let shown = place(Path::new(relative));
        assert!(shown.contains(&home.display().to_string()), "{relative}: {shown}");
    }
}

#[test]
fn it_is_shown_pruned_and_verified() {
    let folders = folders();
    let cache = |arguments: &[&str]| {
        apportion_with_cache(folders[1].path(), folders[0].path(), &[&["cache"], arguments].concat())
    };
    let show = || cache(&["show"]).out;
    assert!(show().contains("0.0 of at most 2147 MB, 0 points, 0 files"), "{}", show());
    run(&folders, "one", &[]);
    assert!(show().contains("2 points, 2 files"), "{}", show());
    assert_eq!(cache(&["verify"]).status, 0);
    let file = files(&folders[1].path().join("2")).remove(0);
    fs::write(&file, "no entry").unwrap();
    let verify = cache(&["verify"]);
    assert_eq!((verify.status, verify.out.lines().count()), (2, 1), "{}", verify.out);
    assert!(verify.out.starts_with(&file.display().to_string().replace('\\', "/")), "{}", verify.out);
    assert!(verify.err.starts_with("error: 1 file is damaged; delete them with --delete"), "{}", verify.err);
    assert_eq!(cache(&["verify", "--delete"]).status, 0);
    assert!(show().contains("1 points, 1 files"), "{}", show());
    assert_eq!(cache(&["prune"]).out, "left: 0.0 of at most 2147 MB, 0 points, 0 files\n");
}
