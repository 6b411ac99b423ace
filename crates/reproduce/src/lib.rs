//! Paper against measured: what papers claim, as data, held against what the simulator measures.
//!
//! A paper is a file `papers/KEY/expect.toml` with its scenarios beside it. [`find()`] reads such files,
//! [`Plan::new`] checks them and what was asked for, [`Plan::execute`] simulates, and [`judge()`] says which
//! claims hold.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@expect`] | the file: experiments, their runs, claims and figures |
//! | [`mod@sweep`] | runs at several values of something, and measures along them |
//! | [`among`] | where one measure stands among several |
//! | [`series`] | measures of what flows got in each sample interval |
//! | [`over_time`] | measures of what changes in the course of a run, and figures of it |
//! | [`transfers`] | how long finite transfers take |
//! | [`measure`] | what can be measured, and what is wrong with a measure |
//! | `take` | measures computed from runs |
//! | [`mod@bars`] | figures with groups of bars |
//! | [`fit`] | straight lines through measurements |
//! | [`plan`] | which runs are needed; each is executed once |
//! | [`mod@judge`] | verdicts |
//! | [`text`] | verdicts as a table, and as JSON lines |
//! | [`mod@page`] | a page for each paper |
//! | [`variant`] | what is changed beside, and the columns of their table |
//! | [`beside`] | what variants measured |
//! | [`mod@write`] | the folder of results |

#![forbid(unsafe_code)]

pub mod among;
pub mod bars;
pub mod beside;
pub mod expect;
pub mod fit;
pub mod judge;
pub mod measure;
pub mod over_time;
pub mod page;
pub mod plan;
pub mod series;
pub mod sweep;
mod take;
pub mod text;
pub mod transfers;
pub mod variant;
pub mod write;

pub use expect::{Paper, find};
pub use judge::{Claim, Verdict, judge};
pub use plan::{Besides, Plan, Results};

/// Everything that is wrong with what was asked for, a line each: file, key path and mend.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);
