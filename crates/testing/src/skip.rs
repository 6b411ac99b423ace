//! Skipped tests: one line each, with what is missing and how to get it.
//!
//! libtest hides the output of passing tests, so each line is also appended to the file that
//! `APPORTION_SKIPPED` names (`.cargo/config.toml`). Scripts list that file at their end.
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::env;
use std::fmt::Display;
use std::fs::{self, File, Metadata};
use std::io::Write as _;
use std::path::Path;

/// Start of a line.
pub const BEGIN: &str = "skipped: ";
/// Environment variable with the file that lines are appended to.
pub const FILE: &str = "APPORTION_SKIPPED";
/// Set on a machine where nothing else runs.
const REAL_TIME: &str = "APPORTION_REAL_TIME";
/// Environment variable with the test, or part of a test, in a program that runs each in its own process.
pub const CASE: &str = "APPORTION_NAMESPACE_CASE";

/// Debian packages whose name differs from the program's.
const PACKAGES: [(&str, &str); 7] = [
    ("cc", "gcc"),
    ("ip", "iproute2"),
    ("nginx", "nginx-light"),
    ("nft", "nftables"),
    ("ping", "iputils-ping"),
    ("promtool", "prometheus"),
    ("unshare", "util-linux"),
];

/// Reports that the calling test is skipped, and why: what is missing, and what to do.
pub fn because(reason: impl Display) {
    say(&reason.to_string());
}

/// Like [`because`], for a case that failed because the machine was busy.
#[cfg(all(feature = "namespaces", target_os = "linux"))]
pub(crate) fn busy(case: &str, lateness: &crate::lateness::Lateness) {
    say_of(case, &format!("it failed on a busy machine: {lateness}"));
}

/// Whether all of these programs are in PATH; else the calling test is skipped, naming the missing ones.
#[must_use]
pub fn unless_found(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_in_path(program)).collect();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|program| package(program)).collect();
        say(&format!("there is no {} in PATH (package {})", missing.join(", no "), packages.join(", ")));
    }
    missing.is_empty()
}

/// Whether to judge bounds on times: where `APPORTION_REAL_TIME` is set, on a machine without other load.
/// Otherwise the calling test, or this part of it, is skipped.
#[must_use]
pub fn unless_judged_by_the_clock() -> bool {
    let is_judged = judges_by_the_clock();
    if !is_judged {
        say(&format!(
            "its bounds are times, which other work exceeds; {REAL_TIME}=1 on an idle machine, as .ci/full has it"
        ));
    }
    is_judged
}

/// Like [`unless_judged_by_the_clock`], without a line.
pub(crate) fn judges_by_the_clock() -> bool {
    env::var_os(REAL_TIME).is_some()
}

/// Debian package of a program.
fn package(program: &str) -> &str {
    PACKAGES.iter().find(|(of, _)| *of == program).map_or(program, |(_, package)| package)
}

/// Whether PATH has an executable file of this name.
#[must_use]
pub fn is_in_path(program: &str) -> bool {
    let name = format!("{program}{}", env::consts::EXE_SUFFIX);
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(&name).metadata().is_ok_and(|of| is_executable(&of)))
}

#[cfg(unix)]
fn is_executable(of: &Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    of.is_file() && of.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(of: &Metadata) -> bool {
    of.is_file()
}

fn say(reason: &str) {
    say_of(&test(), reason);
}

fn say_of(test: &str, reason: &str) {
    let line = format!("{BEGIN}{test}: {}", reason.trim().replace('\n', " "));
    println!("{line}");
    if let Some(path) = env::var_os(FILE) {
        let path = Path::new(&path);
        let _ = path.parent().map(fs::create_dir_all);
        // A single write, so that lines of concurrent programs stay whole.
        let file = File::options().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| println!("{FILE} names {}: {error}", path.display()));
    }
}

/// Name of the calling test. libtest gives it to the test's thread, unless it runs one test at a time.
fn test() -> String {
    let of_thread = || {
        let thread = std::thread::current();
        thread.name().filter(|name| *name != "main").map(str::to_owned)
    };
    let of_program = || {
        let path = env::current_exe().unwrap_or_default();
        path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
    };
    env::var(CASE).ok().or_else(of_thread).unwrap_or_else(of_program)
}
