//! What results retain of each replication.

use apportion_report::Contents;

/// What [results](crate::Results) retain of each replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retain {
    /// Its outcome, with its time series: their tables are made of it, and the details of the report.
    Full,
    /// The rows of its tables, which take a tenth of the memory or less; those over time only if the run has [series](crate::Run::series).
    Rows,
    /// Its metrics: tables are in the [folder](crate::Run::folder) alone.
    Metrics,
}

impl Retain {
    /// What a run of so many replications, over all points, holds where its tables are wanted: outcomes of up to
    /// [a thousand](Contents::LONG).
    #[must_use]
    pub const fn of(replications: u64) -> Self {
        if replications <= Contents::LONG { Self::Full } else { Self::Rows }
    }
}
