//! The errors of a run.

use std::io;
use std::path::PathBuf;

use apportion_report::WriteError;
use apportion_scenario::Estimate;
use apportion_sim::replicate::ReplicateError;

#[cfg(all(feature = "live", target_os = "linux"))]
use crate::results::Results;

/// The reason why a run has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The run would take too long, or too much memory.
    #[error(
        "{}: it would take {estimate}, which is more than a day or 2 GB: reduce the rates, the time, the flows, the links with \
         `watch`, the points or the seeds, {}or run it all the same with --force",
        scenario.display(),
        if *checks_phases { "leave out perturbed copies with --no-phase-check, " } else { "" }
    )]
    TooLarge {
        /// The name of the scenario.
        scenario: PathBuf,
        /// The estimated cost.
        estimate: Estimate,
        /// Whether the cost includes [perturbed copies](crate::Run::phase_check).
        checks_phases: bool,
    },
    /// The lab would take too long.
    #[error(
        "{}: the lab would take {:.1} days in real time, which is more than a day: reduce the time, the points or the seeds, or run it all the \
         same with --force",
        scenario.display(),
        seconds / 86_400.0
    )]
    TooLong {
        /// The name of the scenario.
        scenario: PathBuf,
        /// The time that it would take, in seconds.
        seconds: f64,
    },
    /// The simulator refused or failed.
    #[error("{}: {cause}", scenario.display())]
    Simulator {
        /// The name of the scenario.
        scenario: PathBuf,
        /// The reason.
        cause: ReplicateError,
    },
    /// There is no simulation of this number.
    #[error("there is no simulation {number}: there are {count}, from 0")]
    NoSimulation {
        /// The number.
        number: usize,
        /// The number of simulations.
        count: usize,
    },
    /// The result of a simulation cannot be encoded.
    #[error("cannot encode what was simulated: {0}")]
    Encode(io::Error),
    /// A capture cannot be written.
    #[error("cannot write the capture `{}`: {cause}", path.display())]
    Capture {
        /// The file of the capture.
        path: PathBuf,
        /// The error.
        cause: io::Error,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The lab finished, but its results cannot be written.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error("{cause}")]
    Unwritten {
        /// The error.
        cause: WriteError,
        /// The results of the lab, which took real time.
        finished: Box<Results>,
    },
    /// The lab refused or failed.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error("{}: {cause}", scenario.display())]
    Lab {
        /// The name of the scenario.
        scenario: PathBuf,
        /// The reason.
        cause: Box<apportion_live::lab::LabError>,
        /// The replications finished before; they were written if there was a folder. None if nothing was
        /// run.
        finished: Option<Box<Results>>,
    },
}
