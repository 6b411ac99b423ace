//! Namespaces, devices and commands on the kernel of this machine, as an ordinary user or as root.
//!
//! A process enters a user namespace only while it has a single thread, and cannot leave it. So each test
//! runs in a process of its own: this program, executed again. It prints what libtest prints. Tests are
//! skipped, with the reason, only where the system forbids user namespaces.
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "this is the test's main")]

mod commands;
mod common;
mod devices;
mod spaces;

use std::env;
use std::process::{Command, ExitCode};

/// Names the case that the process is to run.
pub const CASE: &str = "APPORTION_NAMESPACE_CASE";
/// The status of a process that the system does not let into a user namespace.
pub const SKIPPED: u8 = 77;
/// No case takes longer, in seconds: SIGALRM ends it.
const LIMIT: u32 = 30;

type Case = (&'static str, fn());

macro_rules! cases {
    ($($module:ident: $($name:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name),)+)+]
    };
}

const CASES: &[Case] = cases! {
    commands: a_command_is_ended_at_its_limit_with_its_whole_group,
        a_dropped_command_is_killed,
        a_signal_is_forwarded,
        a_command_dies_with_the_process_that_started_it,
        status_and_signal_are_told_apart,
        a_command_runs_in_its_namespace,
        a_program_that_is_not_there_is_named;
    devices: datagrams_and_streams_cross_a_pair,
        offloads_read_back_as_off,
        no_frame_is_larger_than_the_mtu,
        checksums_are_complete_once_they_are_not_offloaded,
        equal_hardware_addresses_need_no_arp_and_nothing_else_is_sent,
        every_address_is_accepted,
        a_device_runs_once_both_ends_are_up,
        refusals_come_with_the_kernels_words;
    spaces: a_panic_leaves_the_thread_at_home,
        a_thread_is_spawned_inside,
        settings_belong_to_one_namespace,
        user_namespaces_nest,
        a_limit_of_zero_is_named,
        a_caller_keeps_their_user,
        a_file_lies_over_another,
        nothing_is_left_of_a_process_that_was_killed;
};

/// What other processes of a test run, by the same variable; not tests.
const PARTS: &[Case] = &[("hold_a_pair", spaces::hold_a_pair), ("hold_a_command", commands::hold_a_command)];

fn main() -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        nix::unistd::alarm::set(LIMIT);
        let case = CASES.iter().chain(PARTS).find(|case| case.0 == name).unwrap();
        (case.1)();
        return ExitCode::SUCCESS;
    }
    let arguments: Vec<String> = env::args().skip(1).collect();
    let filters: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    let is_asked = |name: &str| {
        let fits = |filter: &&String| if is_exact { name == *filter } else { name.contains(filter.as_str()) };
        filters.is_empty() || filters.iter().any(fits)
    };
    let chosen: Vec<&Case> = CASES.iter().filter(|case| is_asked(case.0)).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.0));
        return ExitCode::SUCCESS;
    }
    // None is marked as ignored.
    if arguments.iter().any(|argument| argument == "--ignored") {
        return ExitCode::SUCCESS;
    }
    run(&chosen)
}

fn run(chosen: &[&Case]) -> ExitCode {
    println!("\nrunning {} tests", chosen.len());
    let (mut failed, mut skipped) = (Vec::new(), 0);
    for (name, _) in chosen {
        let output = Command::new(env::current_exe().unwrap()).env(CASE, name).output().unwrap();
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match output.status.code() {
            Some(0) => println!("test {name} ... ok"),
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
