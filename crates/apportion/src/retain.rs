//! The parts of each replication that results retain.

use apportion_report::Contents;

/// The parts of each replication that [results](crate::Results) retain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// The outcome with its time series, from which tables and the details of the report are made.
    Full,
    /// The rows of its tables, which take a tenth of the memory or less; the tables over time only if the run
    /// has [series](crate::Run::series).
    Rows,
    /// The metrics only: tables are only in the [folder](crate::Run::folder).
    Metrics,
}

impl Retain {
    /// Returns the parts that a run of this number of replications, over all points, retains if its tables
    /// are wanted: outcomes of up to [a thousand](Contents::LONG).
    #[must_use]
    pub const fn of(replications: u64) -> Self {
        if replications <= Contents::LONG { Self::Full } else { Self::Rows }
    }
}
