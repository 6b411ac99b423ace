//! Child processes of a test. They end with the test, however it ends, and each wait for them has a limit.
//!
//! A child is killed and reaped when its guard is dropped, also by a panic. The kernel kills it when the
//! thread that started it ends, even if the test program itself is killed.
#![expect(clippy::disallowed_methods, reason = "what is waited for is another process, in real time")]

use std::env;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use apportion_linux::command::kill_with_parent;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;

use crate::skip::CASE;

/// Environment variable with the limit in seconds, where two minutes are too few.
pub const LIMIT: &str = "APPORTION_TEST_LIMIT";
/// Interval of checks whether a child has ended.
const STEP_MS: u16 = 5;
/// Maximum number of bytes read from an ended child: more than a pipe holds, since another process may keep
/// writing to it.
const REST: usize = 2 << 20;

/// Maximum duration of a test, and of each wait for a child: 120 s. In a case of
/// [`processes`](crate::processes), which is itself waited for, a wait takes three quarters of that, so that
/// the hanging child is named before the case is ended.
///
/// # Panics
/// The limit in the environment is no number.
#[must_use]
pub fn limit() -> Duration {
    let seconds = env::var(LIMIT).map_or(120, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{LIMIT}: `{text}` is not a number of seconds; write for example 120"))
    });
    let limit = Duration::from_secs(seconds);
    if env::var_os(CASE).is_some() { limit * 3 / 4 } else { limit }
}

/// A running child. When dropped, or too late, it is killed and reaped, with the process group that it leads,
/// if any.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
    /// Status, once it has ended and was read.
    status: Option<ExitStatus>,
}

impl Running {
    /// Starts a child.
    ///
    /// # Panics
    /// The child cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let name = named(command);
        kill_with_parent(command);
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {name}: {error}"));
        Self { child, name, status: None }
    }

    /// Process id of the child.
    #[must_use]
    pub fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// Sends a signal to the child alone.
    ///
    /// # Panics
    /// The child was reaped, or belongs to another user.
    pub fn signal(&self, signal: Signal) {
        assert!(self.status.is_none(), "{} has ended", self.name);
        kill(self.id(), signal).unwrap_or_else(|error| panic!("{}: {error}", self.name));
    }

    /// Kills the child alone. Returns its status.
    pub fn kill(&mut self) -> ExitStatus {
        if self.status.is_none() {
            let _ = kill(self.id(), Signal::SIGKILL);
        }
        self.read_status()
    }

    /// Whether the child has ended by itself.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        self.status.is_some() || !matches!(waitid(Id::Pid(self.id()), flags), Ok(WaitStatus::StillAlive))
    }

    /// Waits until the child ends. The rest of its group stays.
    ///
    /// # Panics
    /// The wait exceeds the limit.
    pub fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + limit();
        while !self.has_ended() {
            assert!(Instant::now() < end, "{}", Late(&self.name, limit()));
            wait_for(&[], STEP_MS);
        }
        self.read_status()
    }

    /// Waits until the child ends, and takes its output from its pipes. Does not wait for other processes
    /// that hold them.
    ///
    /// # Panics
    /// The wait exceeds the limit.
    #[must_use]
    pub fn output(self) -> Output {
        let late = Late(&self.name, limit()).to_string();
        let (output, ended) = self.output_within(limit());
        assert!(ended, "{late}: {}{}", text(&output.stdout), text(&output.stderr));
        output
    }

    /// Like [`Self::output`], with whether the child ended within `limit` by itself; otherwise it is killed.
    ///
    /// # Panics
    /// A pipe cannot be read.
    #[must_use]
    pub fn output_within(mut self, limit: Duration) -> (Output, bool) {
        let (mut stdout, mut stderr) =
            (Pipe::of(self.child.stdout.take()), Pipe::of(self.child.stderr.take()));
        drop(self.child.stdin.take());
        let end = Instant::now() + limit;
        let ended = loop {
            let has_ended = self.has_ended();
            if has_ended || Instant::now() >= end {
                break has_ended;
            }
            stdout.read(REST);
            stderr.read(REST);
            wait_for(&[stdout.as_poll(), stderr.as_poll()], STEP_MS);
        };
        // First, so that nothing in its group writes any more.
        let status = self.reap();
        stdout.read(REST);
        stderr.read(REST);
        (Output { status, stdout: stdout.said, stderr: stderr.said }, ended)
    }

    /// Pipe to the standard input.
    ///
    /// # Panics
    /// There is no such pipe, or it was taken.
    #[must_use]
    pub fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap_or_else(|| panic!("{}: no pipe to its standard input", self.name))
    }

    /// Pipe from the standard output.
    ///
    /// # Panics
    /// There is no such pipe, or it was taken.
    #[must_use]
    pub fn stdout(&mut self) -> Limited<ChildStdout> {
        let pipe = self.child.stdout.take();
        let pipe = pipe.unwrap_or_else(|| panic!("{}: no pipe from its standard output", self.name));
        Limited::new(pipe, &self.name)
    }

    /// Pipe from the standard error.
    ///
    /// # Panics
    /// There is no such pipe, or it was taken.
    #[must_use]
    pub fn stderr(&mut self) -> Limited<ChildStderr> {
        let pipe = self.child.stderr.take();
        let pipe = pipe.unwrap_or_else(|| panic!("{}: no pipe from its standard error", self.name));
        Limited::new(pipe, &self.name)
    }

    /// Kills the rest of the child and of the group that it leads, and reads its status.
    fn reap(&mut self) -> ExitStatus {
        if self.status.is_none() {
            // The process id is valid until the child is reaped. No such group exists unless the child leads
            // it.
            let _ = killpg(self.id(), Signal::SIGKILL);
            let _ = kill(self.id(), Signal::SIGKILL);
        }
        self.read_status()
    }

    /// Reads the status of a child that has ended, or ends at once.
    fn read_status(&mut self) -> ExitStatus {
        if let Some(status) = self.status {
            return status;
        }
        let status = self.child.wait().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        *self.status.insert(status)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.reap();
    }
}

/// Runs a command to its end, without input. Returns its status and output.
///
/// # Panics
/// The command cannot be started, or exceeds the limit.
#[must_use]
pub fn output(command: &mut Command) -> Output {
    Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).output()
}

/// A pipe from a child, read for no longer than the limit.
#[derive(Debug)]
pub struct Limited<P> {
    pipe: P,
    name: String,
    end: Instant,
}

impl<P> Limited<P> {
    fn new(pipe: P, name: &str) -> Self {
        Self { pipe, name: name.to_owned(), end: Instant::now() + limit() }
    }
}

impl<P: Read + AsFd> Read for Limited<P> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while !wait_for(&[Some(PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN))], 1_000) {
            if Instant::now() >= self.end {
                return Err(io::Error::new(ErrorKind::TimedOut, Late(&self.name, limit()).to_string()));
            }
        }
        self.pipe.read(bytes)
    }
}

/// Output through a pipe that other processes may hold.
struct Pipe<P> {
    pipe: Option<P>,
    said: Vec<u8>,
}

impl<P: Read + AsFd> Pipe<P> {
    fn of(pipe: Option<P>) -> Self {
        if let Some(pipe) = &pipe {
            let flags = fcntl(pipe, FcntlArg::F_GETFL).map_or(OFlag::empty(), OFlag::from_bits_retain);
            // A blocking read until the end of the pipe has no limit.
            fcntl(pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))
                .unwrap_or_else(|error| panic!("a pipe: {error}"));
        }
        Self { pipe, said: Vec::new() }
    }

    /// Reads the available bytes, up to `most`.
    fn read(&mut self, most: usize) {
        let Some(pipe) = &mut self.pipe else { return };
        // The read also ends where nothing is available for now; earlier bytes are kept.
        match pipe.take(most as u64).read_to_end(&mut self.said) {
            Ok(length) if length < most => self.pipe = None,
            Ok(_) => (),
            Err(error) if error.kind() == ErrorKind::WouldBlock => (),
            Err(error) => panic!("a pipe: {error}"),
        }
    }

    fn as_poll(&self) -> Option<PollFd<'_>> {
        self.pipe.as_ref().map(|pipe| PollFd::new(pipe.as_fd(), PollFlags::POLLIN))
    }
}

/// Waits until one of these is readable or at its end, for at most `ms` milliseconds.
fn wait_for(watched: &[Option<PollFd<'_>>], ms: u16) -> bool {
    let mut watched: Vec<PollFd<'_>> = watched.iter().flatten().cloned().collect();
    poll(&mut watched, PollTimeout::from(ms)).is_ok_and(|ready| ready > 0)
}

/// The message for a wait that took too long.
struct Late<'a>(&'a str, Duration);

impl fmt::Display for Late<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} took more than {} s", self.0, self.1.as_secs_f64())
    }
}

/// File name of the program and arguments of a command.
fn named(command: &Command) -> String {
    let program = std::path::Path::new(command.get_program());
    let program = program.file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
