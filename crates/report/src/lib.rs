//! Results of a run: on disk, in numbers and as a page to look at.
//!
//! Everything here depends on its input alone: the same run gives the same bytes.
//!
//! | module | holds |
//! |---|---|
//! | [`record`] | a run as it is handed over |
//! | [`store`] | the results folder: written whole or not at all, and read back |
//! | [`mod@compare`] | several stored runs side by side |
//! | [`parity`] | one scenario in two worlds side by side |
//! | [`mod@summary`] | a run as plain text and as JSON lines |
//! | [`metrics`] | the numbers a run is judged by |
//! | [`statistics`] | means, intervals, fairness, distributions |
//! | [`rows`] | the rows and columns of the tables, with units |
//! | `tables`, `shares` | the rows of a run; who got what |
//! | `headline`, `page` | the report: what it says, and how it is built |
//! | [`figure`], [`html`] | figures as SVG, and HTML text: for other pages too |

#![forbid(unsafe_code)]

pub mod compare;
pub mod figure;
mod headline;
pub mod html;
pub mod metrics;
mod page;
pub mod parity;
pub mod record;
pub mod rows;
mod shares;
pub mod statistics;
pub mod store;
pub mod summary;
mod tables;

pub use compare::{Comparison, compare};
pub use page::{document, page};
pub use record::{FlowInfo, PointRecord, Run};
pub use store::{LoadError, StoredRun, WriteError, check, load, write};
pub use summary::{json_lines, summary};
pub use tables::{Table, mbps};
