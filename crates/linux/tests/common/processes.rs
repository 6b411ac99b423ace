//! Tests that each run in a process of their own: this program, executed again.
//!
//! A process enters a user namespace only while it has a single thread, and cannot leave it. What is printed
//! is what libtest prints, with `--show-output` also what tests say that pass. Tests are skipped, with the reason, only where the system forbids user namespaces.
#![allow(clippy::print_stdout, reason = "this is the test's main")]
#![allow(dead_code, reason = "each program of tests uses some of it")]

use std::env;
use std::process::{Child, Command, ExitCode, Stdio, exit};

use apportion_linux::namespace::{Identity, Isolation, Why, enter_user_namespace};
use nix::unistd::alarm;

/// Names the case that the process is to run.
const CASE: &str = "APPORTION_NAMESPACE_CASE";
/// The status of a process that the system does not let into a user namespace.
const SKIPPED: u8 = 77;
/// No case takes longer, in seconds: SIGALRM ends it.
const LIMIT: u32 = 30;

/// A test's name, and the test.
pub type Case = (&'static str, fn());

/// Lists functions with their names.
macro_rules! cases {
    ($($module:ident: $($name:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn()),)+)+]
    };
}
pub(crate) use cases;

/// Enters user, network and mount namespaces, or ends the process with a reason to skip the test.
pub fn enter_as(identity: Identity) {
    if let Err(error) = enter_user_namespace(Isolation { identity, network: true, mounts: true }) {
        // These are not the system's doing.
        assert!(!matches!(error.why, Why::Unknown | Why::Threads(_)), "{error}");
        println!("{error}");
        exit(SKIPPED.into());
    }
}

/// The same as root inside.
pub fn enter() {
    enter_as(Identity::Root);
}

/// This program once more, for `part` of a test, with pipes to talk by.
pub fn part(part: &str) -> Child {
    Command::new(env::current_exe().unwrap())
        .env(CASE, part)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs the case that the environment names, or else what the arguments ask for, each in a process of its
/// own.
pub fn main(cases: &[Case], parts: &[Case]) -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        alarm::set(LIMIT);
        let case = cases.iter().chain(parts).find(|case| case.0 == name).unwrap();
        (case.1)();
        return ExitCode::SUCCESS;
    }
    let (filters, skipped, flags) = sort_arguments(env::args().skip(1));
    let has = |flag: &str| flags.iter().any(|it| it == flag);
    let is_asked = |name: &str| {
        let fits = |filter: &String| {
            if has("--exact") { name == filter } else { name.contains(filter.as_str()) }
        };
        (filters.is_empty() || filters.iter().any(fits)) && !skipped.iter().any(fits)
    };
    let chosen: Vec<&Case> = cases.iter().filter(|case| is_asked(case.0)).collect();
    if has("--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.0));
        return ExitCode::SUCCESS;
    }
    // None is marked as ignored.
    if has("--ignored") {
        return ExitCode::SUCCESS;
    }
    run(&chosen, has("--show-output"))
}

fn run(chosen: &[&Case], shows: bool) -> ExitCode {
    println!("\nrunning {} tests", chosen.len());
    let (mut failed, mut skipped) = (Vec::new(), 0);
    for (name, _) in chosen {
        let output = Command::new(env::current_exe().unwrap()).env(CASE, name).output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match output.status.code() {
            Some(0) => println!(
                "test {name} ... ok{}{}",
                if shows { "\n" } else { "" },
                if shows { &said } else { "" }
            ),
            Some(code) if code == i32::from(SKIPPED) => {
                skipped += 1;
                println!("test {name} ... ignored, {}", said.trim());
            }
            _ => {
                println!("test {name} ... FAILED");
                failed.push((name, output.status, said));
            }
        }
    }
    for (name, status, said) in &failed {
        println!("\n---- {name} ({status}) ----\n{said}");
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    let passed = chosen.len() - failed.len() - skipped;
    println!("\ntest result: {word}. {passed} passed; {} failed; {skipped} ignored\n", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Filters, what is to be skipped, and flags, as libtest takes them. Flags with values that mean nothing here are left out.
fn sort_arguments(arguments: impl Iterator<Item = String>) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (mut filters, mut skipped, mut flags) = (Vec::new(), Vec::new(), Vec::new());
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--skip" => skipped.extend(arguments.next()),
            "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
            flag if flag.starts_with('-') => flags.push(argument),
            _ => filters.push(argument),
        }
    }
    (filters, skipped, flags)
}
