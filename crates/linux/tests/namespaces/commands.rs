//! Commands inside namespaces, and their ends.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_linux::command::{End, Group, Running, Signals, kill_with_parent, start};
use apportion_linux::namespace::Namespace;
use nix::sys::signal::{Signal, raise};

use crate::common::{bare_pair, part};
use apportion_testing::processes::enter;

const LONG: Option<Span> = Some(Span::from_secs(10));

fn shell(script: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
    command
}

fn started(script: &str, group: Group) -> Running {
    start(shell(script), &Namespace::current().unwrap(), group).unwrap()
}

/// Reads the first line of the command's output.
fn first_line(running: &mut Running) -> (String, impl Read + use<>) {
    let mut reader = BufReader::new(running.child().stdout.take().unwrap());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    (line, reader)
}

/// Reads until every writer has ended, or the case has taken too long.
fn is_alone(mut reader: impl Read) {
    reader.read_to_end(&mut Vec::new()).unwrap();
}

pub fn a_command_is_ended_at_its_limit_with_its_whole_group() {
    enter();
    let mut running = started("sleep 300 & echo ready; wait", Group::Own);
    let (line, reader) = first_line(&mut running);
    assert_eq!(line, "ready\n");
    assert_eq!(running.wait(Some(Span::from_millis(50)), None).unwrap(), End::TimedOut);
    is_alone(reader);
    // Processes that outlive their leader end as well.
    let mut running = started("sleep 300 & echo ready", Group::Own);
    let (_, reader) = first_line(&mut running);
    assert_eq!(running.wait(LONG, None).unwrap(), End::Exited(0));
    is_alone(reader);
}

pub fn a_dropped_command_is_killed() {
    enter();
    for group in [Group::Own, Group::Callers] {
        let mut running = started("echo ready; exec sleep 300", group);
        let (_, reader) = first_line(&mut running);
        assert!(!running.has_ended(Some(Span::ZERO), None).unwrap());
        drop(running);
        is_alone(reader);
    }
}

pub fn a_signal_is_forwarded() {
    enter();
    let signals = Signals::interrupts().unwrap();
    let script = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.02; done";
    let mut running = started(script, Group::Own);
    assert_eq!(first_line(&mut running).0, "ready\n");
    assert_eq!(signals.next().unwrap(), None);
    raise(Signal::SIGTERM).unwrap();
    assert_eq!(running.wait(LONG, Some(&signals)).unwrap(), End::Exited(7));
}

/// The other process of the next test: it starts a command and waits to be killed.
pub fn hold_a_command() {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "echo ready; exec sleep 300"]);
    let _running = start(command, &Namespace::current().unwrap(), Group::Own).unwrap();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

pub fn a_command_dies_with_the_process_that_started_it() {
    enter();
    let mut child = part("hold_a_command");
    let mut reader = BufReader::new(child.stdout());
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child.kill();
    is_alone(reader);
}

pub fn a_child_dies_with_the_thread_that_started_it() {
    let start = || {
        let mut command = shell("echo ready; exec sleep 300");
        kill_with_parent(&mut command);
        let mut child = command.spawn().unwrap();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
        child
    };
    let mut child = std::thread::spawn(start).join().unwrap();
    // Without a writer's end of its own, so that a child that stays is not waited for.
    let clock = Clock::start();
    let status = loop {
        match child.try_wait().unwrap() {
            None if clock.now() < Time::from_secs(5) => pause(Span::from_millis(10)),
            status => break status,
        }
    };
    child.kill().unwrap();
    assert_eq!(status.and_then(|status| status.signal()), Some(9));
    // While the thread exists, so does the child.
    let mut child = start();
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

pub fn status_and_signal_are_distinguished() {
    enter();
    let end = |script| started(script, Group::Own).wait(LONG, None).unwrap();
    assert_eq!(end("exit 0"), End::Exited(0));
    assert_eq!(end("exit 3"), End::Exited(3));
    assert_eq!(end("kill -TERM $$"), End::Signalled(15));
    assert_eq!(end("kill -TERM $$").to_string(), "was ended by SIGTERM");
    assert!(end("exit 0").is_success() && !end("exit 3").is_success());
}

pub fn a_command_runs_in_its_namespace() {
    enter();
    let pair = bare_pair();
    let mut running = start(shell("cat /proc/self/net/dev"), &pair.a, Group::Own).unwrap();
    let mut said = String::new();
    running.child().stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(said.contains("a0:") && !said.contains("b0:"), "{said}");
    assert_eq!(running.wait(LONG, None).unwrap(), End::Exited(0));
}

pub fn a_program_that_is_not_there_is_named() {
    enter();
    let mut command = Command::new("no-such-program");
    // Otherwise an unreadable directory in the caller's PATH could be the reason.
    command.env("PATH", "/usr/bin:/bin");
    let error = start(command, &Namespace::current().unwrap(), Group::Own).unwrap_err().to_string();
    assert!(error.contains("`no-such-program`") && error.contains("in PATH?"), "{error}");
}
