//! Runs under way, and the processes and namespaces that they leave.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use apportion_testing::child::{Limited, Running};
use nix::sys::signal::Signal;

use crate::place::wait_for;

/// The lab at work, in its own process group.
pub struct UnderWay {
    pub child: Running,
    pub err: BufReader<Limited<ChildStderr>>,
    /// Namespaces of the run by name, for example `net:[4026532000]`. Held so that no other process gets
    /// their numbers.
    pub namespaces: BTreeMap<PathBuf, File>,
}

/// Targets of the links in this folder below `/proc`; empty once a process has ended.
fn links(folder: &str) -> Vec<(PathBuf, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter_map(|entry| Some((entry.path(), fs::read_link(entry.path()).ok()?))).collect()
}

/// User and network namespaces that a process is in or holds: links to them, and their names.
fn namespaces(process: u32) -> Vec<(PathBuf, PathBuf)> {
    let all = ["ns", "fd"].into_iter().flat_map(|folder| links(&format!("/proc/{process}/{folder}")));
    let is_namespace = |name: &str| name.starts_with("net:[") || name.starts_with("user:[");
    all.filter(|(_, name)| name.to_str().is_some_and(is_namespace)).collect()
}

impl UnderWay {
    /// Starts a command, and waits for the applications of the run that follows `said`.
    pub fn start(folder: &Path, arguments: &[&str], said: &str) -> Self {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
        command
            .current_dir(folder)
            .args(arguments)
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = Running::start(&mut command);
        let mut err = BufReader::new(child.stderr());
        let mut text = String::new();
        while !text.ends_with(said) {
            assert!(err.read_line(&mut text).unwrap() > 0, "{text}");
        }
        // The applications start last.
        let tasks = format!("/proc/{}/task", child.id());
        wait_for("no run is under way", || {
            let mut tasks = fs::read_dir(&tasks).unwrap().filter_map(Result::ok);
            tasks.any(|task| {
                fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "applications\n")
            })
        });
        let own: Vec<_> = namespaces(std::process::id()).into_iter().map(|(_, name)| name).collect();
        let all = namespaces(child.id().as_raw().cast_unsigned())
            .into_iter()
            .filter(|(_, name)| !own.contains(name));
        let namespaces = all.map(|(link, name)| (name, File::open(link).unwrap())).collect();
        Self { child, err, namespaces }
    }

    /// Processes of its group, other processes in one of its namespaces or holding one, and mounts that hold
    /// one.
    pub fn left(&self) -> Vec<String> {
        let group = self.child.id().to_string();
        let mut left = Vec::new();
        let all = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        for process in all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            let Ok(status) = fs::read_to_string(format!("/proc/{process}/stat")) else { continue };
            // The fields after the name: state, parent, group.
            let after_name = status.rsplit(')').next().unwrap_or_default();
            let is_of_group = after_name.split_whitespace().nth(2) == Some(&group);
            let is_inside = || namespaces(process).iter().any(|(_, name)| self.namespaces.contains_key(name));
            if is_of_group || process != std::process::id() && is_inside() {
                left.push(status);
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let is_mounted = |name: &&PathBuf| mounts.contains(name.to_str().unwrap());
        left.extend(self.namespaces.keys().filter(is_mounted).map(|name| name.display().to_string()));
        left
    }

    /// Waits until no process uses its namespaces, so that the kernel removes them with their devices.
    pub fn is_gone(&self) {
        wait_for("something is left", || self.left().is_empty());
    }

    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }
}
