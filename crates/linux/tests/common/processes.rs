//! Tests that each run in a process of their own: this program, executed again.
//!
//! A process enters a user namespace only while it has a single thread, and cannot leave it. What is printed
//! is what libtest prints, with `--show-output` also what tests say that pass. Tests are skipped, with the reason, only where the system forbids user namespaces.
#![allow(clippy::print_stdout, reason = "this is the test's main")]
#![allow(dead_code, reason = "each program of tests uses some of it")]

use std::env;
use std::num::NonZero;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio, exit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use apportion_linux::namespace::{Identity, Isolation, Why, enter_user_namespace};
use nix::unistd::alarm;

/// Names the case that the process is to run.
const CASE: &str = "APPORTION_NAMESPACE_CASE";
/// The status of a process that the system does not let into a user namespace.
const SKIPPED: u8 = 77;
/// No case takes longer, in seconds: SIGALRM ends it.
const LIMIT: u32 = 90;

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
    run_main(cases, &[], parts)
}

/// The same; those of `ignored` only run by `--ignored`, and then alone and one after another, since they measure.
pub fn main_with_ignored(cases: &[Case], ignored: &[Case]) -> ExitCode {
    run_main(cases, ignored, &[])
}

fn run_main(cases: &[Case], ignored: &[Case], parts: &[Case]) -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        alarm::set(LIMIT);
        let case = cases.iter().chain(ignored).chain(parts).find(|case| case.0 == name).unwrap();
        (case.1)();
        return ExitCode::SUCCESS;
    }
    let arguments = Arguments::sort(env::args().skip(1));
    let measures = arguments.has("--ignored");
    let of = if measures { ignored } else { cases };
    let chosen: Vec<&Case> = of.iter().filter(|case| arguments.chooses(case.0)).collect();
    if arguments.has("--list") {
        chosen.iter().for_each(|case| println!("{}: test", case.0));
        return ExitCode::SUCCESS;
    }
    if measures {
        return if chosen.is_empty() { ExitCode::SUCCESS } else { run(&chosen, 1, true) };
    }
    // They wait most of the time.
    let at_once = || 2 * thread::available_parallelism().map_or(1, NonZero::get);
    run(&chosen, arguments.threads.unwrap_or_else(at_once), arguments.has("--show-output"))
}

fn run(chosen: &[&Case], at_once: usize, shows: bool) -> ExitCode {
    println!("\nrunning {} tests", chosen.len());
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some((name, _)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = Outcome::of(name);
            outcome.print(shows);
            outcomes.lock().unwrap().push(outcome);
        }
    };
    thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let outcomes = outcomes.into_inner().unwrap();
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_failure()).collect();
    let skipped = outcomes.iter().filter(|outcome| outcome.is_skipped()).count();
    for Outcome { name, status, said } in &failed {
        println!("\n---- {name} ({status}) ----\n{said}");
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    let passed = chosen.len() - failed.len() - skipped;
    println!("\ntest result: {word}. {passed} passed; {} failed; {skipped} ignored\n", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How the process of a case ended.
struct Outcome {
    name: &'static str,
    status: ExitStatus,
    said: String,
}

impl Outcome {
    /// Runs the case of this name.
    fn of(name: &'static str) -> Self {
        let output = Command::new(env::current_exe().unwrap()).env(CASE, name).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Self { name, status: output.status, said: text.concat() }
    }

    fn is_skipped(&self) -> bool {
        self.status.code() == Some(SKIPPED.into())
    }

    fn is_failure(&self) -> bool {
        !self.status.success() && !self.is_skipped()
    }

    /// One line, and all that a case said that passed if that is to be shown.
    fn print(&self, shows: bool) {
        let Self { name, said, .. } = self;
        if self.is_skipped() {
            println!("test {name} ... ignored, {}", said.trim());
        } else if self.is_failure() {
            println!("test {name} ... FAILED");
        } else {
            println!("test {name} ... ok{}{}", if shows { "\n" } else { "" }, if shows { said } else { "" });
        }
    }
}

/// What the arguments ask for, as libtest takes them.
#[derive(Default)]
struct Arguments {
    filters: Vec<String>,
    skipped: Vec<String>,
    flags: Vec<String>,
    /// Cases that run at once. Default: twice the number of cores.
    threads: Option<usize>,
}

impl Arguments {
    /// Flags with values that mean nothing here are left out.
    fn sort(mut arguments: impl Iterator<Item = String>) -> Self {
        let mut sorted = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--skip" => sorted.skipped.extend(arguments.next()),
                "--test-threads" => sorted.threads = arguments.next().and_then(|count| count.parse().ok()),
                "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                flag if flag.starts_with('-') => sorted.flags.push(argument),
                _ => sorted.filters.push(argument),
            }
        }
        sorted
    }

    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|it| it == flag)
    }

    fn chooses(&self, name: &str) -> bool {
        let fits = |filter: &String| {
            if self.has("--exact") { name == filter } else { name.contains(filter.as_str()) }
        };
        (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skipped.iter().any(fits)
    }
}
