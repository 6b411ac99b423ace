//! Why a run failed.

use std::io;
use std::path::PathBuf;

use apportion_report::WriteError;
use apportion_scenario::Estimate;
use apportion_sim::replicate::ReplicateError;

#[cfg(all(feature = "live", target_os = "linux"))]
use crate::results::Results;

/// Why a run has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// It would take too long, or too much memory.
    #[error(
        "{}: it would take {estimate}, which is more than a day or 2 GB: reduce the rates, the time, the flows, the links with \
         `watch`, the points or the seeds, {}or run it all the same with --force",
        scenario.display(),
        if *checks_phases { "leave out perturbed copies with --no-phase-check, " } else { "" }
    )]
    TooLarge {
        /// What the scenario is called.
        scenario: PathBuf,
        /// What it would take.
        estimate: Estimate,
        /// Whether a part of that is [perturbed copies](crate::Run::phase_check).
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
        /// What the scenario is called.
        scenario: PathBuf,
        /// How long it would take, s.
        seconds: f64,
    },
    /// The simulator refused or failed.
    #[error("{}: {cause}", scenario.display())]
    Simulator {
        /// What the scenario is called.
        scenario: PathBuf,
        /// Why.
        cause: ReplicateError,
    },
    /// There is no simulation of this number.
    #[error("there is no simulation {number}: there are {count}, from 0")]
    NoSimulation {
        /// The number.
        number: usize,
        /// How many there are.
        count: usize,
    },
    /// What a simulation gave cannot be encoded.
    #[error("cannot encode what was simulated: {0}")]
    Encode(io::Error),
    /// A capture cannot be written.
    #[error("cannot write the capture `{}`: {cause}", path.display())]
    Capture {
        /// Its file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// Results cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The lab ran it, and its results cannot be written.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error("{cause}")]
    Unwritten {
        /// Why.
        cause: WriteError,
        /// What the lab measured: it took its time.
        finished: Box<Results>,
    },
    /// The lab refused or failed.
    #[cfg(all(feature = "live", target_os = "linux"))]
    #[error("{}: {cause}", scenario.display())]
    Lab {
        /// What the scenario is called.
        scenario: PathBuf,
        /// Why.
        cause: Box<apportion_live::lab::LabError>,
        /// What was finished before; it was written if there was a folder. None if nothing was run.
        finished: Option<Box<Results>>,
    },
}
