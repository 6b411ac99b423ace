//! Runs a user's command inside a network namespace, with a time limit, and leaves no process behind.
//!
//! Source: setns(2), `PR_SET_PDEATHSIG` of prctl(2), `pidfd_open(2)`, `timerfd_create(2)`, signalfd(2),
//! kill(2). A wait polls at most three descriptors, for the end of the command, the limit and signals,
//! without a clock and without a polling loop. By default the command leads a process group, which is killed
//! as a whole when the command ends or is dropped: before the command is reaped, because the group's number
//! could be reused afterwards. Processes that a command puts into another group or session ("daemons")
//! survive, unless all are inside a [`Processes`](crate::namespace::Processes).
#![expect(unsafe_code, reason = "what happens between fork and exec is unsafe in std; nix has no pidfd_open")]

mod terminal;

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use apportion_core::units::Span;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{Pid, getpgrp, getppid};

use crate::namespace::{Namespace, mount_own_proc};
use terminal::{Foreground, set_foreground};

/// Maximum time for a killed command to end. Only one that hangs inside the kernel takes longer.
const AFTER_KILL: Span = Span::from_secs(2);
/// Maximum of wake-ups of one wait before its end: by signals, and by interruptions of other handlers.
const MAX_WAKEUPS: usize = 1_000_000;

/// Why a command cannot be started or waited for.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The command cannot be started.
    #[error("cannot start `{}` in its network namespace: {error}{}", .program.display(), remedy(.error))]
    Start {
        program: OsString,
        /// The error of the system call.
        error: io::Error,
    },
    /// The command cannot be waited for; it was killed.
    #[error("cannot wait for the command: {0}")]
    Wait(Errno),
    /// The command was killed and does not end.
    #[error("process {0} was killed and does not end: it hangs inside the kernel")]
    Hangs(Pid),
    /// Signals cannot be received.
    #[error("cannot receive signals: {0}")]
    Signals(Errno),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "; is it installed, and in PATH?",
        io::ErrorKind::PermissionDenied => "; is it executable, and the namespace one's own?",
        _ => "",
    }
}

/// The process group that a command joins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A group of its own, which ends as a whole. A terminal's keys do not reach it: forward its signals.
    Own,
    /// A group of its own, in the foreground of the terminal that is the standard input, if the caller's
    /// group is: for a shell. The caller's group gets the foreground back when the command has ended.
    /// Meanwhile it stops and continues with the command, if its signals are [`Signals::with_stops`].
    Foreground,
    /// The caller's group: for a command of a pipeline in the foreground of the terminal. Only the command
    /// itself is killed when it is dropped.
    Callers,
}

/// Outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended by itself with this status; 0 is success.
    Exited(i32),
    /// A signal ended the command.
    Signalled(i32),
    /// The time limit came first: the command was killed.
    TimedOut,
}

impl End {
    /// Whether the command ended by itself with status 0.
    #[must_use]
    pub const fn is_success(self) -> bool {
        matches!(self, Self::Exited(0))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "ended with status {status}"),
            Self::Signalled(number) => match Signal::try_from(*number) {
                Ok(signal) => write!(f, "was ended by {signal}"),
                Err(_) => write!(f, "was ended by signal {number}"),
            },
            Self::TimedOut => f.write_str("was killed at its time limit"),
        }
    }
}

/// Signals that are read from a descriptor, instead of ending the process or interrupting a thread.
#[derive(Debug)]
pub struct Signals {
    fd: SignalFd,
}

impl Signals {
    /// Blocks SIGINT and SIGTERM in the calling thread, and so in the threads that it starts from now on, and
    /// delivers them here. Call it before the first thread is started: a thread that does not block them
    /// would receive them.
    ///
    /// # Errors
    /// [`CommandError::Signals`] if the system has no descriptor left.
    pub fn interrupts() -> Result<Self, CommandError> {
        Self::of(&[Signal::SIGINT, Signal::SIGTERM])
    }

    /// Like [`interrupts`](Self::interrupts), plus SIGCHLD, which reports that a command was stopped from the
    /// terminal ([`Group::Foreground`]).
    ///
    /// # Errors
    /// [`CommandError::Signals`] if the system has no descriptor left.
    pub fn with_stops() -> Result<Self, CommandError> {
        Self::of(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGCHLD])
    }

    fn of(signals: &[Signal]) -> Result<Self, CommandError> {
        let set: SigSet = signals.iter().copied().collect();
        set.thread_block().map_err(CommandError::Signals)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(Self { fd: SignalFd::with_flags(&set, flags).map_err(CommandError::Signals)? })
    }

    /// The next signal that has come; none if there is none.
    ///
    /// # Errors
    /// [`CommandError::Signals`] if signals cannot be read.
    pub fn next(&self) -> Result<Option<Signal>, CommandError> {
        Ok(self.next_of()?.map(|(signal, _)| signal))
    }

    /// The next signal, and whether a terminal sent it, to its whole foreground group.
    fn next_of(&self) -> Result<Option<(Signal, bool)>, CommandError> {
        let info = self.fd.read_signal().map_err(CommandError::Signals)?;
        Ok(info.and_then(|info| {
            Some((Signal::try_from(info.ssi_signo as i32).ok()?, info.ssi_code == libc::SI_KERNEL))
        }))
    }
}

impl AsFd for Signals {
    /// Readable when a signal has come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A running command. When dropped, it is killed and reaped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pidfd: OwnedFd,
    group: Group,
    is_reaped: bool,
    /// Taken after the command was reaped.
    foreground: Option<Foreground>,
}

/// Starts `command` inside `namespace`, with no signal blocked. The command is killed when the calling
/// *thread* ends, even by SIGKILL: start it from a thread that outlives it.
///
/// # Errors
/// [`CommandError::Start`] if there is no such program or the namespace may not be entered.
pub fn start(mut command: Command, namespace: &Namespace, group: Group) -> Result<Running, CommandError> {
    let program = command.get_program().to_owned();
    let failed = |error| CommandError::Start { program: program.clone(), error };
    let there = namespace.as_fd().try_clone_to_owned().map_err(failed)?;
    let parent = Pid::this();
    if group != Group::Callers {
        command.process_group(0);
    }
    let foreground = if group == Group::Foreground { Foreground::of_input() } else { None };
    let terminal = foreground.as_ref().map_or(Ok(None), Foreground::to_command).map_err(failed)?;
    let between = move || {
        // Before it runs: a shell that finds itself in the background stops.
        if let Some(terminal) = &terminal {
            set_foreground(terminal, getpgrp())?;
        }
        setns(&there, CloneFlags::CLONE_NEWNET)?;
        set_pdeathsig(Signal::SIGKILL)?;
        match getppid().as_raw() {
            // The parent is outside this process namespace, whose first process watches it.
            0 => mount_own_proc()?,
            // A parent that died before the call above sends no signal any more.
            other if other != parent.as_raw() => return Err(Errno::ESRCH.into()),
            _ => (),
        }
        // A blocked signal stays blocked over exec: the command would not get the signals that `Signals`
        // reads.
        SigSet::empty().thread_set_mask()?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure only makes system calls that are safe there. It allocates
    // nothing (an `io::Error` of an `Errno` does not) and takes no lock, and it owns `there` and `terminal`.
    unsafe { command.pre_exec(between) };
    let mut child = command.spawn().map_err(failed)?;
    match pidfd_of(Pid::from_raw(child.id().cast_signed())) {
        Ok(pidfd) => Ok(Running { child, pidfd, group, is_reaped: false, foreground }),
        Err(errno) => {
            // The kernel is older than Linux 5.3. A killed child ends at once.
            let _ = child.kill();
            let _ = child.wait();
            Err(failed(errno.into()))
        }
    }
}

/// Makes the kernel kill the process of `command` when the *thread* that starts it ends, even by SIGKILL: for
/// callers that wait for the command themselves. A command that gains rights as it starts, by a set-user-ID
/// bit or capabilities of its file, outlives the thread (prctl(2)).
pub fn kill_with_parent(command: &mut Command) {
    let parent = Pid::this();
    let between = move || {
        set_pdeathsig(Signal::SIGKILL)?;
        // A parent that died before the call above sends no signal any more.
        if getppid() == parent { Ok(()) } else { Err(Errno::ESRCH.into()) }
    };
    // SAFETY: between fork and exec the closure makes two system calls that are safe there, and allocates
    // nothing.
    unsafe { command.pre_exec(between) };
}

/// A descriptor that becomes readable when the process has ended.
fn pidfd_of(child: Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: the call takes two integers. The child is not reaped, so its number is not reused.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, child.as_raw(), 0) })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just created this descriptor, and nothing else owns it. It closes on exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Running {
    /// The number of the command's process, and of its group if that is its own.
    #[must_use]
    pub fn id(&self) -> Pid {
        Pid::from_raw(self.child.id().cast_signed())
    }

    /// The command's process, with the standard streams that are pipes.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends `signal` to the command, and to its group if that is its own. Does nothing if the command has
    /// ended.
    ///
    /// # Errors
    /// The error of the system call; `EPERM` for a program that took another user's rights.
    pub fn signal(&self, signal: Signal) -> Result<(), Errno> {
        if self.is_reaped {
            return Ok(());
        }
        match self.group {
            Group::Own | Group::Foreground => killpg(self.id(), signal),
            Group::Callers => kill(self.id(), signal),
        }
    }

    /// Waits until the command ends, and kills it after `limit`. Forwards signals that come to `signals`
    /// meanwhile. The rest of the command's group is killed in each case.
    ///
    /// # Errors
    /// [`CommandError::Wait`]; the command is killed then.
    pub fn wait(mut self, limit: Option<Span>, signals: Option<&Signals>) -> Result<End, CommandError> {
        if self.has_ended(limit, signals)? {
            // The command's end was seen before the group is killed: a zombie takes no signal.
            let status = self.reap()?;
            return Ok(status
                .code()
                .map_or_else(|| End::Signalled(status.signal().unwrap_or_default()), End::Exited));
        }
        self.reap()?;
        Ok(End::TimedOut)
    }

    /// Whether the command has ended within `limit`.
    ///
    /// # Errors
    /// [`CommandError::Wait`].
    pub fn has_ended(&self, limit: Option<Span>, signals: Option<&Signals>) -> Result<bool, CommandError> {
        if self.is_reaped {
            return Ok(true);
        }
        let timer = limit.map(timer).transpose().map_err(CommandError::Wait)?;
        let mut watched = vec![PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        watched.extend(timer.iter().map(|timer| PollFd::new(timer.as_fd(), PollFlags::POLLIN)));
        watched.extend(signals.map(|signals| PollFd::new(signals.fd.as_fd(), PollFlags::POLLIN)));
        for _ in 0..MAX_WAKEUPS {
            match poll(&mut watched, PollTimeout::NONE) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(CommandError::Wait(errno)),
            }
            let is_ready = |at: usize| watched.get(at).and_then(PollFd::any).unwrap_or(false);
            if is_ready(0) {
                return Ok(true);
            }
            if timer.is_some() && is_ready(1) {
                return Ok(false);
            }
            signals.map_or(Ok(()), |signals| self.forward(signals))?;
        }
        Err(CommandError::Wait(Errno::EINTR))
    }

    /// Forwards the signals that have come to `signals`, except those that a terminal has sent to the command
    /// itself. If a key has stopped the command, the caller's group stops until it is continued, and the
    /// command continues with it.
    ///
    /// # Errors
    /// [`CommandError::Wait`] if the system refuses.
    pub fn forward(&self, signals: &Signals) -> Result<(), CommandError> {
        while let Some((signal, by_terminal)) = signals.next_of()? {
            if signal == Signal::SIGCHLD {
                self.stop_along();
            } else if self.group != Group::Callers || !by_terminal {
                self.signal(signal).map_err(CommandError::Wait)?;
            }
        }
        Ok(())
    }

    /// Stops the caller's group if the command is stopped, as one job: the shell that started both is
    /// notified and gets the terminal. SIGTSTP does not stop a group that no shell could continue (POSIX:
    /// "orphaned").
    fn stop_along(&self) {
        let Some(foreground) = &self.foreground else { return };
        let stopped = waitid(Id::Pid(self.id()), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
        if matches!(stopped, Ok(WaitStatus::Stopped(..))) {
            foreground.take_back();
            // The call returns when the group continues.
            let _ = killpg(getpgrp(), Signal::SIGTSTP);
            foreground.give(self.id());
            let _ = self.signal(Signal::SIGCONT);
        }
    }

    /// Kills the rest of the command and its group, and reads its status.
    fn reap(&mut self) -> Result<ExitStatus, CommandError> {
        // A group without a living process is no error worth a message; nor is one of another user, which is
        // out of reach.
        let _ = self.signal(Signal::SIGKILL);
        if !self.has_ended(Some(AFTER_KILL), None)? {
            return Err(CommandError::Hangs(self.id()));
        }
        let status = self
            .child
            .wait()
            .map_err(|error| CommandError::Wait(Errno::from_raw(error.raw_os_error().unwrap_or_default())))?;
        self.is_reaped = true;
        Ok(status)
    }
}

impl AsFd for Running {
    /// Readable when the command has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_reaped {
            let _ = self.reap();
        }
    }
}

/// A timer that expires once after `span`; for a span of zero, as soon as a timer can.
fn timer(span: Span) -> Result<TimerFd, Errno> {
    let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_CLOEXEC)?;
    let span = std::time::Duration::from_nanos(span.as_nanos().max(1));
    timer.set(Expiration::OneShot(TimeSpec::from_duration(span)), TimerSetTimeFlags::empty())?;
    Ok(timer)
}
