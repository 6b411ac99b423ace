//! The tables of a run: one struct a table, whose fields are the columns. Each column is declared once: its
//! name, its type, its unit, its definition, and its computation.
//!
//! [`Outcome`](apportion_runtime::outcome::Outcome) -> rows -> [metrics](crate::metrics) and pages. A page
//! that shows one replication's numbers also gets them from the columns. A table is written as a CSV file of
//! the same columns, and [`Row::COLUMNS`] gives their units. A cell is missing where there was nothing to
//! measure. Times, rates and shares are rounded to six decimals: a bit per second of a Mb/s, a nanosecond of
//! a millisecond.

#[macro_use]
mod column;
mod compared;
mod flow;
mod link;
mod media;
mod over_time;

pub(crate) use column::Field;
pub use column::{Cell, Column, Kind, Row};
pub use compared::{LeagueRow, PairRow, PhaseSensitivityRow};
pub(crate) use flow::{CompletionAt, FlowAt};
pub use flow::{CompletionRow, FlowRow, ResponseRow};
pub(crate) use flow::{completions, flows, responses};
pub(crate) use link::LinkAt;
pub use link::{LinkRow, StatisticRow};
pub(crate) use link::{links, statistics};
pub use media::MediaRow;
pub(crate) use media::media;
pub use over_time::{AllocationRow, SeriesRow};
pub(crate) use over_time::{allocations, series};
