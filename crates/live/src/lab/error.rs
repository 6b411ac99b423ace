//! Errors of the laboratory.

use apportion_linux::host::HostError;
use apportion_linux::namespace::{EnterError, NamespaceError};
use apportion_linux::port::PortError;

use nix::errno::Errno;

use super::driver::DriverError;
use crate::engine::EngineError;

/// Why a scenario cannot run, or a run failed.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The scenario is too large.
    #[error("the scenario has {count} {what}; at most {most} can be run in the lab")]
    TooMany {
        /// Connections or hosts.
        what: &'static str,
        /// Number in the scenario.
        count: usize,
        /// Maximum.
        most: usize,
    },
    /// The scenario needs a feature that only the simulator has.
    #[error("{path}: {message}")]
    Simulated {
        /// The path of the key in the scenario.
        path: String,
        /// The feature, and what to do.
        message: &'static str,
    },
    /// A queue that the backend cannot carry out.
    #[error("{path}: {message}")]
    Queue {
        /// The path of the key in the scenario.
        path: String,
        /// Why not, and what to do.
        message: String,
    },
    /// A queue outside the engine cannot be set up, or failed.
    #[error("{0}")]
    QueueFailed(String),
    /// A network namespace cannot be entered without a user namespace.
    #[error(
        "cannot enter a network namespace: {0}; run it as root, with CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
    )]
    Root(Errno),
    /// A user namespace cannot be entered.
    #[error(transparent)]
    Enter(#[from] EnterError),
    /// A network namespace cannot be created or entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A host cannot be set up.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A port of the engine cannot be opened.
    #[error(transparent)]
    Port(#[from] PortError),
    /// The applications cannot be started, or failed.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The thread of the applications accepts no more commands: it has ended, or is too late.
    #[error("the thread of the applications takes no more commands; reduce the load of the machine")]
    DriverStalled,
    /// Packets could no longer be moved.
    #[error(transparent)]
    Engine(#[from] EngineError),
}
