//! Child processes of a test on systems other than Linux. They are killed when their guard is dropped; a wait for one has no
//! limit.

use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Output, Stdio};

/// A running child, which is killed when this is dropped.
#[derive(Debug)]
pub struct Running(Option<Child>);

impl Running {
    /// Starts a child.
    ///
    /// # Panics
    /// The child cannot be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        Self(Some(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"))))
    }

    fn child(&mut self) -> &mut Child {
        self.0.as_mut().unwrap_or_else(|| panic!("the child has ended"))
    }

    /// Kills the child. Returns its status.
    pub fn kill(&mut self) -> ExitStatus {
        let _ = self.child().kill();
        self.wait()
    }

    /// Waits until the child ends.
    ///
    /// # Panics
    /// The system refuses.
    pub fn wait(&mut self) -> ExitStatus {
        self.child().wait().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Waits until the child ends, and takes its output from its pipes.
    ///
    /// # Panics
    /// A pipe cannot be read.
    #[must_use]
    pub fn output(mut self) -> Output {
        let child = self.0.take().unwrap_or_else(|| panic!("the child has ended"));
        child.wait_with_output().unwrap_or_else(|error| panic!("{error}"))
    }

    /// Pipe from the standard output.
    ///
    /// # Panics
    /// There is no such pipe, or it was taken.
    #[must_use]
    pub fn stdout(&mut self) -> ChildStdout {
        self.child().stdout.take().unwrap_or_else(|| panic!("no pipe from its standard output"))
    }

    /// Pipe from the standard error.
    ///
    /// # Panics
    /// There is no such pipe, or it was taken.
    #[must_use]
    pub fn stderr(&mut self) -> ChildStderr {
        self.child().stderr.take().unwrap_or_else(|| panic!("no pipe from its standard error"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs a command to its end, without input. Returns its status and output.
///
/// # Panics
/// The command cannot be started.
#[must_use]
pub fn output(command: &mut Command) -> Output {
    Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())).output()
}
