//! The errors of a league.

use apportion_report::WriteError;
use apportion_scenario::Estimate;

use crate::run_error::RunError;
use crate::scenario::ScenarioError;

/// The reason why a league has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeagueError {
    /// A discipline is unknown, or its parts do not fit together.
    #[error("discipline `{name}`: {cause}")]
    Discipline {
        /// The name as given.
        name: String,
        /// The reason.
        cause: String,
    },
    /// A situation is unknown, or is not a valid situation.
    #[error("situation `{name}`: {cause}")]
    Situation {
        /// The name as given.
        name: String,
        /// The reason.
        cause: String,
    },
    /// A service of pairs is unknown, or is not a valid service.
    #[error("service `{name}`: {cause}")]
    Service {
        /// The name as given.
        name: String,
        /// The reason.
        cause: String,
    },
    /// The scenario of a situation is invalid.
    #[error(transparent)]
    Scenario(#[from] Box<ScenarioError>),
    /// The league would take too long, or too much memory.
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
    /// A stored league contains nothing of this name.
    #[error(transparent)]
    Missing(#[from] apportion_report::league::Missing),
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The league was cancelled before all simulations had ended.
    #[error("interrupted before all was simulated: nothing is written")]
    Cancelled,
}
