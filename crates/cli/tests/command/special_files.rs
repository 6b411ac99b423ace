//! A file that is not regular, or too long, ends a command at once with a message.

#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;

use apportion_testing::child;

use crate::common::apportion;

/// Commands, each with the file that it is to read.
const COMMANDS: [(&str, &[&str]); 9] = [
    ("x.toml", &["run", "x.toml"]),
    ("x.toml", &["lab", "x.toml"]),
    ("x.toml", &["gateway", "check", "x.toml"]),
    ("trace", &["shell", "--trace", "trace", "--", "true"]),
    ("expect.toml", &["reproduce", "expect.toml"]),
    ("video.txt", &["run", "video.toml"]),
    ("x.pcap", &["run", "capture.toml"]),
    ("done/1/run.json", &["compare", "done", "done"]),
    ("done/1/flows.parquet", &["compare", "done", "done"]),
];

const LINK: &str =
    "seed = 1\nstop = \"1s\"\nlink.x = { from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\" }\n";

/// Makes a folder with all files but the bad one.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let flow = |source: &str| format!("{LINK}flow.y = {{ from = \"a\", to = \"b\", source = {source} }}\n");
    write("done.toml", &flow("{ kind = \"cbr\", rate = \"100kbit\", packet = \"500B\" }"));
    write("video.toml", &flow("{ kind = \"video\", fps = 25, file = \"video.txt\", packet = \"500B\" }"));
    write("capture.toml", &flow("{ kind = \"replay\", file = \"x.pcap\" }"));
    let done = apportion(folder.path(), &["run", "done.toml", "--out", "done", "--quiet"]);
    assert_eq!(done.status, 0, "{}", done.err);
    folder
}

/// Replaces each file with something bad and checks the message of its command.
fn refused(put: impl Fn(&Path), why: &str) {
    for (name, arguments) in COMMANDS {
        let folder = folder();
        let path = folder.path().join(name);
        let _ = fs::remove_file(&path);
        put(&path);
        let run = apportion(folder.path(), arguments);
        assert_eq!(run.status, 2, "{arguments:?}: {}", run.err);
        assert!(run.err.contains(name) && run.err.contains(why), "{arguments:?}: {}", run.err);
    }
}

#[test]
fn a_device_is_refused() {
    refused(|path| symlink("/dev/zero", path).unwrap(), "not a regular file");
}

#[test]
fn a_pipe_is_refused() {
    let make = |path: &Path| nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    refused(make, "not a regular file");
}

#[test]
fn a_file_that_is_too_long_is_refused_before_it_is_read() {
    // The file is sparse.
    refused(|path| File::create(path).unwrap().set_len(3 << 30).unwrap(), "it is longer than ");
}

#[test]
fn what_would_eat_the_machine_is_refused_with_an_estimate() {
    let folder = folder();
    let flow = |keys: &str| format!("{LINK}flow.y = {{ from = \"a\", to = \"b\", {keys} }}\n");
    let cbr = flow("source = { kind = \"cbr\", rate = \"900000000Gbit\", packet = \"500B\" }");
    let many = flow("count = 900000, tcp = \"rfc\"");
    for (text, part) in [(cbr, " days of CPU time ("), (many, " GB of memory")] {
        fs::write(folder.path().join("x.toml"), text).unwrap();
        let run = apportion(folder.path(), &["run", "x.toml"]);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        assert!(run.err.contains(part) && run.err.contains("with --force"), "{}", run.err);
    }
    // The sum of all seeds counts, and a forced run is run: 3 s at 2 Gb/s take 1.5 million writes.
    let long = flow("source = { kind = \"cbr\", rate = \"2Gbit\", packet = \"500B\" }");
    fs::write(folder.path().join("x.toml"), long).unwrap();
    let set = ["run", "x.toml", "--set", "stop=10h", "--seeds", "50"];
    assert!(apportion(folder.path(), &set).err.contains(" days of CPU time"));
    let short = apportion(folder.path(), &["run", "x.toml", "--set", "stop=100ms", "--force", "--quiet"]);
    assert_eq!((short.status, short.err.as_str()), (0, ""));
}

#[test]
fn a_limit_of_file_sizes_is_a_message() {
    let folder = folder();
    fs::write(folder.path().join("x.toml"), format!("{LINK}flow.y = {{ from = \"a\", to = \"b\" }}\n"))
        .unwrap();
    let program = assert_cmd::cargo::cargo_bin("apportion");
    // The shell's blocks have 512 or 1024 bytes.
    let limited =
        format!("ulimit -f 4; exec '{}' run x.toml --out out --no-cache --quiet", program.display());
    let mut shell = std::process::Command::new("/bin/sh");
    let run = child::output(shell.args(["-c", &limited]).current_dir(folder.path()));
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(run.status.code(), Some(2), "{said}");
    assert!(
        said.contains("cannot write")
            && said.contains("File too large")
            && said.contains("raise the limit of file sizes"),
        "{said}"
    );
    assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 0);
}
