//! Tests that are skipped: one line each, which names what is missing and how to get it.
//!
//! libtest hides what passing tests print, so each line is also appended to the file that `APPORTION_SKIPPED` names (`.cargo/config.toml`),
//! which scripts list at their end.
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]

use std::env;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// What a line begins with.
pub const BEGIN: &str = "skipped: ";
/// Names the file that each line is appended to.
pub const FILE: &str = "APPORTION_SKIPPED";
/// Set where nothing else runs.
const REAL_TIME: &str = "APPORTION_REAL_TIME";
/// Names the test, or the part of one, in a program that runs each of them in a process of its own.
pub const CASE: &str = "APPORTION_NAMESPACE_CASE";

/// Packages of Debian that are not called as the program that they bring.
const PACKAGES: [(&str, &str); 4] =
    [("cc", "gcc"), ("nginx", "nginx-light"), ("nft", "nftables"), ("promtool", "prometheus")];

/// Says that the calling test is skipped, and why: what it lacks, and what to do.
pub fn because(reason: impl Display) {
    say(&reason.to_string());
}

/// The same of a case that failed because the machine was busy.
#[cfg(feature = "namespaces")]
pub(crate) fn busy(case: &str, lateness: &crate::lateness::Lateness) {
    say_of(case, &format!("it failed on a busy machine: {lateness}"));
}

/// Whether all of these programs are in PATH; else the calling test is skipped for want of those that are not.
#[must_use]
pub fn unless_found(programs: &[&str]) -> bool {
    let missing: Vec<&str> = programs.iter().copied().filter(|program| !is_in_path(program)).collect();
    if !missing.is_empty() {
        let packages: Vec<&str> = missing.iter().map(|program| package(program)).collect();
        say(&format!("there is no {} in PATH (package {})", missing.join(", no "), packages.join(", ")));
    }
    missing.is_empty()
}

/// Whether bounds on the time that something takes are to be judged: where `APPORTION_REAL_TIME` is set, on a machine that does nothing
/// else. Else the calling test is skipped, or in part.
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

/// The same, without a word.
pub(crate) fn judges_by_the_clock() -> bool {
    env::var_os(REAL_TIME).is_some()
}

/// The package of Debian that brings a program.
fn package(program: &str) -> &str {
    PACKAGES.iter().find(|(of, _)| *of == program).map_or(program, |(_, package)| package)
}

/// Whether somebody may run a file of this name in a folder of PATH.
#[must_use]
pub fn is_in_path(program: &str) -> bool {
    let is_program = |path: std::path::PathBuf| {
        path.metadata().is_ok_and(|of| of.is_file() && of.permissions().mode() & 0o111 != 0)
    };
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| is_program(folder.join(program)))
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
        // At once, so that lines of programs that run side by side stay whole.
        let file = File::options().append(true).create(true).open(path);
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| println!("{FILE} names {}: {error}", path.display()));
    }
}

/// The name of the test that calls. libtest gives it to the test's thread, unless it runs one test at a time.
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
