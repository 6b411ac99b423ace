//! A process namespace around commands, so that neither they nor their children outlive the process that
//! started them, however it ends.
//!
//! Source: pid_namespaces(7). When the first process of a namespace ends, the kernel kills all others, in any
//! group or session. The first process here only waits for the end of a pipe whose other end only the caller
//! has: the kernel closes that when the caller ends, even by SIGKILL. Commands are the caller's own children,
//! with the usual exit status and signals. They are numbered from 2 and see their own `/proc`, if the system
//! lets one be mounted (a container that hides parts of `/proc` does not).
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

/// The process namespace cannot be created.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot make a process namespace: {0}; enter a user namespace first, and see that \
     /proc/sys/user/max_pid_namespaces is not reached"
)]
pub struct ProcessesError(Errno);

/// The process namespace of the children that the caller starts from now on. When dropped, all processes in
/// it are killed.
#[derive(Debug)]
pub struct Processes {
    first: Pid,
    /// The pipe whose end the first process waits for.
    _pipe: OwnedFd,
}

impl Processes {
    /// Creates the namespace. The caller can start no threads from now on (`CLONE_NEWPID` in unshare(2)). Its
    /// other threads continue, and start processes in the namespace around, so the calling thread must start
    /// the commands.
    ///
    /// # Errors
    /// If the system forbids it.
    pub fn enclose() -> Result<Self, ProcessesError> {
        let (end, pipe) = pipe2(OFlag::O_CLOEXEC).map_err(ProcessesError)?;
        unshare(CloneFlags::CLONE_NEWPID).map_err(ProcessesError)?;
        // SAFETY: whatever threads the caller has, the child only makes system calls and never returns, so it
        // takes no lock that another thread might hold.
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
        // The process exists until it is waited for, and ends as soon as all others have.
        let _ = kill(self.first, Signal::SIGKILL);
        let _ = waitpid(self.first, None);
    }
}

/// Waits for the end of the pipe, and ends, and with it all others.
fn run_first_process(end: &OwnedFd) -> ! {
    // Orphans become its children; with the signal ignored they do not stay as zombies. SAFETY: no handler is
    // installed.
    let _ = unsafe { signal(Signal::SIGCHLD, SigHandler::SigIgn) };
    // A reader of the caller's output must not wait for this process.
    for stream in 0..=2 {
        if stream != end.as_raw_fd() {
            // SAFETY: nothing of Rust uses the standard streams in this process.
            unsafe { libc::close(stream) };
        }
    }
    while read(end, &mut [0]) == Err(Errno::EINTR) {}
    // SAFETY: the call ends the process without running any code of the caller.
    unsafe { libc::_exit(0) }
}

/// Mounts a `/proc` for the calling process, which is in a new process namespace and about to execute a
/// program. Makes only system calls. If the system forbids the mount, the outer `/proc` stays in place.
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
