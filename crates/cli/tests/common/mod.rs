//! The command under test.

#![allow(dead_code, reason = "each program of tests uses some of it")]

#[cfg(target_os = "linux")]
pub mod watched;

use std::path::Path;
use std::process::Command;

use apportion_testing::child;

pub struct Run {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Runs the command in `folder`, with an empty cache.
pub fn apportion(folder: &Path, arguments: &[&str]) -> Run {
    let cache = tempfile::tempdir().unwrap();
    apportion_with_cache(cache.path(), folder, arguments)
}

/// Runs the command in `folder`, with the cache in `cache`.
pub fn apportion_with_cache(cache: &Path, folder: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    let output = child::output(command.current_dir(folder).env("APPORTION_CACHE_DIR", cache).args(arguments));
    Run { status: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

/// What the command said, with paths as on Unix. JSON and LaTeX have other backslashes.
fn text(said: Vec<u8>) -> String {
    let said = String::from_utf8(said).unwrap();
    if cfg!(windows) && !said.starts_with(['{', '%']) { said.replace('\\', "/") } else { said }
}

/// Whether this is another system, where the message says that the command or an option needs Linux.
pub fn needs_linux(said: &str) -> bool {
    !cfg!(target_os = "linux") && said.contains(" needs Linux (WSL2 or a virtual machine: ")
}

/// Number of runs taken from the cache, according to the command.
pub fn reused(run: &Run) -> u64 {
    let line = run.err.lines().find(|line| line.ends_with("runs are from the cache"));
    line.map_or(0, |line| line.split(' ').next().unwrap().parse().unwrap())
}
