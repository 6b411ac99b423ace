//! Tests that each run in their own process: this program, executed again.
//!
//! A process can enter a user namespace only while it has a single thread, and cannot leave it. The output is
//! that of libtest; `--show-output` adds the output of passing tests. Tests are skipped, with the reason,
//! only where the system forbids user namespaces.
//!
//! A case that [judges rates or times](judge_by_time) and fails while the machine is
//! [busy](Lateness::is_busy) runs again when all others have ended, up to `TRIES` times. If the machine is
//! still busy it is skipped, except where `APPORTION_REAL_TIME` is set. Other failed cases do not run again.
//!
//! The process of a case leads a process group, which is killed when the case has ended in any way, or has
//! taken too long. Other processes that hold its output are not waited for.
#![expect(clippy::print_stdout, reason = "this is the test's main")]
#![expect(clippy::disallowed_methods, reason = "how long a case takes is real time")]

use std::env;
use std::num::NonZero;
use std::os::unix::process::CommandExt as _;
use std::panic::{catch_unwind, resume_unwind};
use std::process::{Command, ExitCode, ExitStatus, Stdio, exit};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use apportion_linux::namespace::{Identity, Isolation, Why, enter_user_namespace};

use crate::child::{Running, limit};
use crate::lateness::{Lateness, Watch};

use crate::skip;

/// Exit status where the system does not allow user namespaces.
const SKIPPED: u8 = 77;
/// Exit status of a failed case that judges rates or times (EX_TEMPFAIL of sysexits.h).
const TIMED: u8 = 75;
/// Number of times that such a case runs, alone, after it failed on a busy machine.
const TRIES: usize = 3;
/// Factor on the limit for the measurements that `--ignored` runs.
const MEASURING: u32 = 5;

/// Name and function of a test.
pub type Case = (&'static str, fn());

/// Lists functions with their names.
#[macro_export]
macro_rules! cases {
    ($($module:ident: $($name:ident),+;)+) => {
        &[$($((concat!(stringify!($module), "::", stringify!($name)), $module::$name as fn()),)+)+]
    };
}
pub use crate::cases;
pub use crate::skip::CASE;

/// Whether the case of this process judges rates or times.
static IS_TIMED: AtomicBool = AtomicBool::new(false);

/// Declares that the calling case judges rates or times: if it fails on a busy machine, it may run again.
pub fn judge_by_time() {
    IS_TIMED.store(true, Ordering::Relaxed);
}

/// Enters user, network and mount namespaces, or ends the process with a reason to skip the test.
///
/// # Panics
/// Entering fails by the test's own fault.
pub fn enter_as(identity: Identity) {
    if let Err(error) = enter_user_namespace(Isolation { identity, network: true, mounts: true }) {
        // The test, not the system, causes these.
        assert!(!matches!(error.why, Why::Unknown | Why::Threads(_)), "{error}");
        skip::because(error);
        exit(SKIPPED.into());
    }
}

/// Like [`enter_as`], with root inside.
///
/// # Panics
/// Like [`enter_as`].
pub fn enter() {
    enter_as(Identity::Root);
}

/// Command of this program for `part` of a test, with pipes to communicate.
///
/// # Panics
/// The program cannot be started.
#[must_use]
pub fn part(part: &str) -> Running {
    Running::start(this_program().env(CASE, part).stdin(Stdio::piped()).stdout(Stdio::piped()))
}

/// Command of this program without arguments yet, in an environment without a case.
///
/// # Panics
/// `/proc` is missing.
#[must_use]
pub fn this_program() -> Command {
    let path = env::current_exe().unwrap_or_else(|error| panic!("this program: {error}"));
    let mut command = Command::new(path);
    command.env_remove(CASE);
    command
}

/// Runs the case that the environment names, or else those that the arguments select, each in its own
/// process.
///
/// # Panics
/// The environment names an unknown case.
#[must_use]
pub fn main(cases: &[Case], parts: &[Case]) -> ExitCode {
    run_main(cases, &[], parts)
}

/// Like [`main`]. The cases of `ignored` run only by `--ignored`, one at a time, since they measure.
///
/// # Panics
/// Like [`main`].
#[must_use]
pub fn main_with_ignored(cases: &[Case], ignored: &[Case]) -> ExitCode {
    run_main(cases, ignored, &[])
}

fn run_main(cases: &[Case], ignored: &[Case], parts: &[Case]) -> ExitCode {
    if let Ok(name) = env::var(CASE) {
        let case = cases.iter().chain(ignored).chain(parts).find(|case| case.0 == name);
        run_case(case.unwrap_or_else(|| panic!("there is no case {name}")).1);
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
        return if chosen.is_empty() {
            ExitCode::SUCCESS
        } else {
            run(&chosen, 1, MEASURING * limit(), &arguments)
        };
    }
    // Cases mostly wait: 4 min of a gateway's cases take 23 s of CPU time.
    let at_once = 4 * thread::available_parallelism().map_or(1, NonZero::get);
    run(&chosen, arguments.threads.map_or(at_once, NonZero::get), limit(), &arguments)
}

/// Runs a case in this process, which ends if it fails.
fn run_case(case: fn()) {
    if let Err(panic) = catch_unwind(case) {
        if IS_TIMED.load(Ordering::Relaxed) {
            exit(TIMED.into());
        }
        resume_unwind(panic);
    }
}

fn run(chosen: &[&Case], at_once: usize, limit: Duration, arguments: &Arguments) -> ExitCode {
    println!("\nrunning {} tests", chosen.len());
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    let work = || {
        while let Some((name, _)) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = Outcome::of(name, limit);
            if outcome.was_busy() {
                println!("{name} failed on a busy machine and runs again at the end: {}", outcome.lateness);
            } else {
                outcome.print(arguments);
            }
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).push(outcome);
        }
    };
    thread::scope(|scope| (0..at_once).for_each(|_| drop(scope.spawn(work))));
    let mut outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    for outcome in outcomes.iter_mut().filter(|outcome| outcome.was_busy()) {
        *outcome = Outcome::alone(outcome.name, limit);
        outcome.print(arguments);
    }
    let failed: Vec<_> = outcomes.iter().filter(|outcome| outcome.is_failure()).collect();
    let skipped = outcomes.iter().filter(|outcome| outcome.is_skipped() || outcome.was_busy()).count();
    for Outcome { name, status, said, late, .. } in &failed {
        let late = late.map(|limit| format!("{name} took more than {} s\n", limit.as_secs_f64()));
        println!("\n---- {name} ({status}) ----\n{}{said}", late.unwrap_or_default());
    }
    let word = if failed.is_empty() { "ok" } else { "FAILED" };
    let passed = outcomes.len() - failed.len() - skipped;
    println!("\ntest result: {word}. {passed} passed; {} failed; {skipped} ignored\n", failed.len());
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Outcome of a case's process.
struct Outcome {
    name: &'static str,
    status: ExitStatus,
    said: String,
    /// The limit that it exceeded.
    late: Option<Duration>,
    took: Duration,
    lateness: Lateness,
}

impl Outcome {
    /// Runs the case of this name.
    fn of(name: &'static str, limit: Duration) -> Self {
        let mut command = this_program();
        command.env(CASE, name).process_group(0);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (begun, watch) = (Instant::now(), Watch::start());
        let (output, ended) = Running::start(&mut command).output_within(limit);
        let lateness = watch.end();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let late = (!ended).then_some(limit);
        Self { name, status: output.status, said: text.concat(), late, took: begun.elapsed(), lateness }
    }

    /// Runs a case that failed on a busy machine, until the machine is not busy.
    fn alone(name: &'static str, limit: Duration) -> Self {
        let mut outcome = Self::of(name, limit);
        for _ in 1..TRIES {
            if !outcome.was_busy() {
                break;
            }
            outcome = Self::of(name, limit);
        }
        if outcome.was_busy() {
            skip::busy(name, &outcome.lateness);
        }
        outcome
    }

    fn is_skipped(&self) -> bool {
        self.status.code() == Some(SKIPPED.into())
    }

    /// Whether the case failed because of the machine, as far as can be known.
    fn was_busy(&self) -> bool {
        let is_timed = self.late.is_none() && self.status.code() == Some(TIMED.into());
        is_timed && self.lateness.is_busy() && !skip::judges_by_the_clock()
    }

    fn is_failure(&self) -> bool {
        self.late.is_some() || !(self.status.success() || self.is_skipped() || self.was_busy())
    }

    /// Prints one line, with all output of a passed case if wanted; else what it did not test.
    fn print(&self, arguments: &Arguments) {
        let Self { name, said, took, .. } = self;
        let time = if arguments.has("--report-time") {
            format!(" <{:.3}s>", took.as_secs_f64())
        } else {
            String::new()
        };
        if self.is_skipped() {
            let line = said.lines().last().unwrap_or_default();
            let reason = line.strip_prefix(&format!("{}{name}: ", skip::BEGIN)).unwrap_or(line);
            println!("test {name} ... ignored, {reason}");
        } else if self.was_busy() {
            println!("test {name} ... ignored{time}, it failed on a busy machine: {}\n{said}", self.lateness);
        } else if self.is_failure() {
            println!("test {name} ... FAILED{time}");
        } else if arguments.has("--show-output") || arguments.has("--ignored") {
            println!("test {name} ... ok{time}\n{said}");
        } else {
            let skipped = said.lines().filter(|line| line.starts_with(skip::BEGIN));
            println!(
                "test {name} ... ok{time}{}",
                skipped.map(|line| format!("\n{line}")).collect::<String>()
            );
        }
    }
}

/// Selection by the arguments, with the flags of libtest.
#[derive(Default)]
struct Arguments {
    filters: Vec<String>,
    skipped: Vec<String>,
    flags: Vec<String>,
    /// Number of cases that run at once. Default: four times the number of cores.
    threads: Option<NonZero<usize>>,
}

impl Arguments {
    /// Drops flags, with their values, that have no meaning here.
    fn sort(arguments: impl Iterator<Item = String>) -> Self {
        let mut sorted = Self {
            threads: env::var("RUST_TEST_THREADS").ok().map(|count| threads(&count)),
            ..Self::default()
        };
        // `--flag=value` is `--flag value`.
        let mut arguments = arguments.flat_map(|argument| match argument.split_once('=') {
            Some((flag, value)) if flag.starts_with('-') => vec![flag.to_owned(), value.to_owned()],
            _ => vec![argument],
        });
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--skip" => sorted.skipped.extend(arguments.next()),
                "--test-threads" => sorted.threads = Some(threads(&arguments.next().unwrap_or_default())),
                "--format" | "--color" | "--logfile" | "-Z" => drop(arguments.next()),
                flag if flag.starts_with('-') => sorted.flags.push(argument),
                _ => sorted.filters.push(argument),
            }
        }
        // Running side by side, they would disturb each other's times.
        if skip::judges_by_the_clock() {
            sorted.threads = Some(NonZero::<usize>::MIN);
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

/// Parses the number of cases that run at once; ends the program if it is invalid.
fn threads(count: &str) -> NonZero<usize> {
    count.parse().unwrap_or_else(|_| {
        println!("`{count}` tests cannot run at once; write for example 4");
        exit(2)
    })
}
