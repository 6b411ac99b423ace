//! Why a league has no results.

use apportion_report::WriteError;
use apportion_scenario::Estimate;

use crate::run_error::RunError;
use crate::scenario::ScenarioError;

/// Why a league has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeagueError {
    /// A discipline is not known, or its parts do not fit.
    #[error("discipline `{name}`: {cause}")]
    Discipline {
        /// As it was named.
        name: String,
        /// Why.
        cause: String,
    },
    /// A situation is not known, or is none.
    #[error("situation `{name}`: {cause}")]
    Situation {
        /// As it was named.
        name: String,
        /// Why.
        cause: String,
    },
    /// The scenario of a situation is wrong.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// It would take too long, or too much memory.
    #[error(
        "the league would take {0}, which is more than a day or 2 GB: name fewer disciplines or situations, reduce the seeds, or run it \
         all the same with --force"
    )]
    TooLarge(Estimate),
    /// The simulator refused or failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A stored league cannot be read.
    #[error(transparent)]
    Stored(#[from] apportion_report::league::StoredError),
    /// A stored league has nothing of this name.
    #[error(transparent)]
    Missing(#[from] apportion_report::league::Missing),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// It was cancelled before all was simulated.
    #[error("interrupted before all was simulated: nothing is written")]
    Cancelled,
}
