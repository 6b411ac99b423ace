//! Compares the claims of papers with measurements: experiments as data.
//!
//! A paper is a file `papers/KEY/expect.toml` with its scenarios in the same folder. [`find()`] reads such
//! files, [`Plan::new`] checks them and the request. The caller runs the plan's
//! [replications](Plan::replications) in any way, [`Plan::results`] takes the outcomes, and [`judge()`] gives
//! each claim its verdict.
//!
//! | module | holds |
//! |---|---|
//! | [`mod@expect`] | the file: experiments, their runs and claims |
//! | `files`, `problems` | files of papers, on disk or in the program; errors in them and in requests |
//! | [`value`] | numbers and lengths of time in such a file |
//! | [`runs`] | the runs of an experiment, by name, with their flows, links and samples |
//! | [`measure`] | what can be measured, checked and evaluated |
//! | [`mod@figure`] | what figures show |
//! | [`variant`] | modified experiments, and the columns of their table |
//! | [`plan`] | which runs are needed, each once |
//! | [`mod@judge`] | verdicts |
//! | [`table`] | verdicts as a table, and as JSON lines |
//! | [`variant_table`] | measurements of variants as a table |
//! | [`mod@page`] | a page for each paper |
//! | [`mod@write`] | the folder of results |

#![forbid(unsafe_code)]

pub mod expect;
pub mod figure;
mod files;
pub mod judge;
pub mod measure;
pub mod page;
pub mod plan;
mod problems;
pub mod runs;
pub mod table;
pub mod value;
pub mod variant;
pub mod variant_table;
pub mod write;

pub use expect::{Paper, find};
pub use files::Files;
pub use judge::{Claim, Tally, Verdict, judge};
pub use plan::{Plan, Results, Scope};
pub use problems::Problems;
