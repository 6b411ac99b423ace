//! A process namespace around the commands that are started, so that none of them, nor what they started,
//! outlives the one that started them, however it dies.
//!
//! Source: pid_namespaces(7). When the first process of a namespace ends, the kernel kills all others, whatever
//! group or session they are in. Ours does nothing but wait for the end of a pipe whose other end only the
//! caller has: the kernel closes that when the caller ends, also by SIGKILL. Commands are the caller's own
//! children, with their exit status and signals as ever; they are numbered from 2 and see a `/proc` of
//! their own, where the system lets one be mounted (a container that hides parts of `/proc` does not).
#![expect(unsafe_code, reason = "fork(2) without exec")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, pipe2, read};

/// A process namespace that cannot be had.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot make a process namespace: {0}; enter a user namespace first, and see that \
     /proc/sys/user/max_pid_namespaces is not reached"
)]
pub struct ProcessesError(Errno);

/// The process namespace of the children that the caller starts from now on. Dropped, all in it are killed.
#[derive(Debug)]
pub struct Processes {
    first: Pid,
    /// What the first process waits for the end of.
    _pipe: OwnedFd,
}

impl Processes {
    /// Makes it. The caller can start no thread from now on (`CLONE_NEWPID` in unshare(2)); those that it has
    /// go on, and start processes in the namespace around, so that commands are the calling thread's to start.
    ///
    /// # Errors
    /// If the system forbids it.
    pub fn enclose() -> Result<Self, ProcessesError> {
        let (end, pipe) = pipe2(OFlag::O_CLOEXEC).map_err(ProcessesError)?;
        unshare(CloneFlags::CLONE_NEWPID).map_err(ProcessesError)?;
        // SAFETY: whatever threads the caller has, the child only makes system calls and never returns, so that
        // it takes no lock that another of them might hold.
        match unsafe { fork() }.map_err(ProcessesError)? {
            ForkResult::Child => {
                drop(pipe);
                run_first_process(&end)
            }
            ForkResult::Parent { child } => Ok(Self { first: child, _pipe: pipe }),
        }
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // It is there until it is waited for, and ends as soon as all others have.
        let _ = kill(self.first, Signal::SIGKILL);
        let _ = waitpid(self.first, None);
    }
}

/// Waits for the end of the pipe, and ends: with it all others.
fn run_first_process(end: &OwnedFd) -> ! {
    // Orphans become its children; ignored, they are not kept as zombies.
    // SAFETY: no handler is installed.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    // A reader of the caller's output must not wait for this process.
    for stream in 0..=2 {
        if stream != end.as_raw_fd() {
            // SAFETY: nothing of Rust uses the standard streams in this process.
            unsafe { libc::close(stream) };
        }
    }
    while read(end, &mut [0]) == Err(Errno::EINTR) {}
    // SAFETY: ends the process without running anything of the caller's.
    unsafe { libc::_exit(0) }
}

/// Gives the calling process, which is in a new process namespace and about to execute a program, a `/proc` of
/// it. It makes system calls only. A system that forbids the mount leaves the `/proc` outside in place.
///
/// # Errors
/// Without a mount namespace.
pub(crate) fn mount_own_proc() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    match mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>) {
        Ok(()) | Err(Errno::EPERM | Errno::EBUSY | Errno::EACCES) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
