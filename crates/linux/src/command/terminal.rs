//! The foreground of the terminal: the caller's process group, or that of a command.
//!
//! Source: tcsetpgrp(3), and "Job control" of POSIX (General Terminal Interface, 11.1.4). A command in
//! another process namespace cannot stay in the caller's group: it cannot see its number, and a shell that
//! does not know its own group cannot control jobs.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp};

/// The foreground of the terminal that is the standard input. When dropped, the caller's group gets it back.
#[derive(Debug)]
pub(super) struct Foreground {
    terminal: OwnedFd,
    caller: Pid,
    is_given: Cell<bool>,
}

impl Foreground {
    /// None if the standard input is not the caller's terminal.
    pub fn of_input() -> Option<Self> {
        let terminal = io::stdin().as_fd().try_clone_to_owned().ok()?;
        tcgetpgrp(&terminal).ok()?;
        Some(Self { terminal, caller: getpgrp(), is_given: Cell::new(false) })
    }

    /// The terminal, for a command that takes the foreground as it starts; none if the caller's group does
    /// not have it.
    pub fn to_command(&self) -> io::Result<Option<OwnedFd>> {
        self.is_given.set(tcgetpgrp(&self.terminal) == Ok(self.caller));
        self.is_given.get().then(|| self.terminal.try_clone()).transpose()
    }

    /// Gives the foreground to another group, if the caller's group has it.
    pub fn give(&self, group: Pid) {
        let has = tcgetpgrp(&self.terminal) == Ok(self.caller);
        self.is_given.set(has && set_foreground(&self.terminal, group).is_ok());
    }

    /// Takes the foreground back, if it was given.
    pub fn take_back(&self) {
        if self.is_given.replace(false) {
            // A closed terminal has no foreground.
            let _ = set_foreground(&self.terminal, self.caller);
        }
    }
}

impl Drop for Foreground {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// Puts `group` into the foreground, even when the caller is in the background. Makes only system calls.
pub(super) fn set_foreground(terminal: impl AsFd, group: Pid) -> Result<(), Errno> {
    // SIGTTOU would stop a caller in the background.
    let before = SigSet::from(Signal::SIGTTOU).thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let done = tcsetpgrp(terminal, group);
    before.thread_set_mask()?;
    done
}
