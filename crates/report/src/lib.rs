//! Results of a run: files, metrics and an HTML report.
//!
//! Output depends only on the input: the same run gives the same bytes.
//!
//! | module | holds |
//! |---|---|
//! | [`run_results`] | a run, the input of this crate |
//! | `replication`, `replication_rows` | one replication, and its rows |
//! | `point_summary` | the summary of a point's replications |
//! | [`store`] | the results folder: written whole or not at all, and read back |
//! | [`mod@compare`] | comparison of stored runs |
//! | [`parity`] | comparison of the simulator with the lab |
//! | [`mod@summary`] | a run as plain text and as JSON lines |
//! | [`metrics`], [`quantities`] | the metrics of a run; definitions of their quantities |
//! | [`statistics`] | means, intervals, fairness, distributions |
//! | [`rows`] | the tables: their columns, with units and measurement |
//! | `units` | numbers of results in the units of rows and pages |
//! | [`phase_sensitivity`], `sample` | whether results depend on phases: replications against their perturbed copies |
//! | [`link_use`] | utilisation of links, and whether their queues rejected packets |
//! | `due` | shares of flows over time |
//! | `shares` | throughput and entitlement of flows and groups |
//! | `headline`, `page` | the report: its sentences, and its sections |
//! | [`explore`] | the scripts of pages: values, zoom, legends, contents; for other crates too |
//! | `sweep`, `panels` | the parameters of a sweep, and the figures over them |
//! | [`playground`] | links that open the scenario of a page in the playground |
//! | [`flent`] | a run as a data file of Flent |
//! | [`plot`] | figures of stored runs as files: SVG, PDF, and their numbers |
//! | [`mod@league`] | disciplines in situations: rows, text, a page, and figures and tables for papers |
//! | [`pairs`] | pairs of services on one link: scores, rows, text, a page |
//! | [`figure`], [`html`], [`latex`] | figures, and text for pages and papers: for other crates too |

#![forbid(unsafe_code)]
#![warn(missing_docs)]
#![cfg_attr(
    all(target_family = "wasm", target_os = "unknown"),
    allow(
        unreachable_code,
        unused_mut,
        unused_variables,
        reason = "there are no files, so what writes them is no code"
    )
)]

pub mod compare;
mod due;
pub mod explore;
pub mod figure;
pub mod flent;
mod headline;
pub mod html;
pub mod latex;
pub mod league;
pub mod link_use;
pub mod metrics;
mod page;
pub mod pairs;
mod panels;
pub mod parity;
pub mod phase_sensitivity;
pub mod playground;
pub mod plot;
mod point_summary;
pub mod quantities;
mod replication;
mod replication_rows;
pub mod rows;
pub mod run_results;
mod sample;
mod shares;
pub mod statistics;
pub mod store;
pub mod summary;
mod sweep;
mod units;

pub use compare::{Comparison, compare};
pub use page::{document, page};
pub use point_summary::{Failure, FullTags, PointSummary};
pub use replication::{FlowInfo, Replication};
pub use replication_rows::ReplicationRows;
pub use run_results::{Cut, PointResults, RunResults, Table};
pub use store::{
    Contents, Folder, LoadError, Provenance, StoredRun, WriteError, Writer, check, export, file_name, find,
    load, read, write,
};
pub use summary::{json_lines, summary};
pub use units::mbps;
