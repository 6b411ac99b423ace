//! Network namespaces, which threads create, enter and leave, and the user namespace that allows it.
//!
//! Source: namespaces(7), network_namespaces(7), setns(2), unshare(2). A network namespace belongs to a
//! thread, is inherited by the threads and processes that it starts, and ends with the last of them, the last
//! file descriptor and the last socket. So nothing remains, however a process ends. No names are created
//! under `/run/netns`, which would outlive the process.

mod mount;
mod processes;
mod sysctl;
mod user;

pub use mount::{MountError, bind_over, in_own_folder, make_mounts_private};
pub(crate) use processes::mount_own_proc;
pub use processes::{Processes, ProcessesError};
pub use sysctl::{SysctlError, set_sysctl, silence_ipv6, sysctl};
pub use user::{EnterError, Identity, Isolation, Settings, Step, Why, enter_user_namespace, why};

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread::{self, JoinHandle};

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};

/// The network namespace of the thread that opens it.
const OF_THIS_THREAD: &str = "/proc/thread-self/ns/net";

/// Why a network namespace is not available.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The thread's namespace cannot be opened.
    #[error("cannot open {OF_THIS_THREAD}: {0}; /proc must be mounted")]
    Open(io::Error),
    /// A new namespace cannot be created.
    #[error(
        "cannot make a network namespace: {0}; be root or enter a user namespace first, and see that \
             /proc/sys/user/max_net_namespaces is not reached"
    )]
    Create(Errno),
    /// The namespace cannot be entered.
    #[error(
        "cannot enter a network namespace: {0}; CAP_SYS_ADMIN is needed in the user namespace that owns it"
    )]
    Enter(Errno),
    /// A thread cannot be started.
    #[error("cannot start the thread `{name}`: {error}")]
    Thread {
        /// The thread's name.
        name: String,
        /// The error of the system call.
        error: io::Error,
    },
}

/// A network namespace, which lives at least as long as this value.
#[derive(Debug)]
pub struct Namespace {
    fd: OwnedFd,
}

impl AsFd for Namespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Namespace {
    /// The network namespace of the calling thread.
    ///
    /// # Errors
    /// [`NamespaceError::Open`] without `/proc`.
    pub fn current() -> Result<Self, NamespaceError> {
        Ok(Self { fd: File::open(OF_THIS_THREAD).map_err(NamespaceError::Open)?.into() })
    }

    /// A new network namespace with only a loopback device, which is down. The calling thread stays in its
    /// own: a short-lived thread creates the namespace and hands it over.
    ///
    /// # Errors
    /// [`NamespaceError::Create`] if it is forbidden.
    pub fn create() -> Result<Self, NamespaceError> {
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).map_err(NamespaceError::Create)?;
            Self::current()
        };
        join(start("new namespace", make)?)
    }

    /// A second handle of the same namespace.
    ///
    /// # Errors
    /// [`NamespaceError::Open`] without a descriptor left.
    pub fn try_clone(&self) -> Result<Self, NamespaceError> {
        Ok(Self { fd: self.fd.try_clone().map_err(NamespaceError::Open)? })
    }

    /// Moves the calling thread into this namespace. Its sockets stay where they were opened.
    ///
    /// # Errors
    /// [`NamespaceError::Enter`] if it is forbidden.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        setns(&self.fd, CloneFlags::CLONE_NEWNET).map_err(NamespaceError::Enter)
    }

    /// Runs `f` on the calling thread inside this namespace, and returns to the thread's own, even when `f`
    /// panics.
    ///
    /// # Errors
    /// [`NamespaceError::Enter`] if the namespace may not be entered, in which case `f` does not run; or if
    /// the thread may not return, in which case it is still inside.
    pub fn run<T>(&self, f: impl FnOnce() -> T) -> Result<T, NamespaceError> {
        let home = Self::current()?;
        self.enter()?;
        let done = catch_unwind(AssertUnwindSafe(f));
        let back = home.enter();
        match done {
            Ok(value) => back.map(|()| value),
            Err(panic) => resume_unwind(panic),
        }
    }

    /// Starts a thread called `name` that runs `f` inside this namespace.
    ///
    /// # Errors
    /// If no thread can start, or it may not enter; `f` does not run then.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        f: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, NamespaceError> {
        // A thread starts in the namespace of its creator.
        self.run(|| start(name, f))?
    }
}

fn start<T: Send + 'static>(
    name: &str,
    f: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, NamespaceError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(f)
        .map_err(|error| NamespaceError::Thread { name: name.to_owned(), error })
}

/// The result of the thread; a panic continues in the caller.
fn join<T>(handle: JoinHandle<T>) -> T {
    handle.join().unwrap_or_else(|panic| resume_unwind(panic))
}
