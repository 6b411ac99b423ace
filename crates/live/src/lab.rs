//! The laboratory: a scenario over the kernel's real TCP.
//!
//! | module | holds |
//! |---|---|
//! | [`network`] | which nodes are hosts, and which way packets go |
//! | [`world`] | what the engine knows of packets |

pub mod network;
pub mod world;

use crate::host::HostError;
use crate::port::PortError;

/// Why a scenario cannot be run, or could not to its end.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// It is larger than can be.
    #[error("the scenario has {count} {what}; at most {most} can be run in the lab")]
    TooMany {
        /// Connections or hosts.
        what: &'static str,
        /// How many.
        count: usize,
        /// How many there can be.
        most: usize,
    },
    /// No host.
    #[error(transparent)]
    Host(#[from] HostError),
    /// No port.
    #[error(transparent)]
    Port(#[from] PortError),
}
