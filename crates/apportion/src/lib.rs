//! Divides a link's bandwidth among the flows that share it, and measures the share of each: queue
//! disciplines of research papers and of the Internet, in a deterministic simulator, in a lab of real Linux
//! TCP, and on live traffic.
//!
//! A [`Scenario`] describes a network with its flows, a [`Run`] executes it, and [`Results`] hold the
//! measurements as tables of plain rows:
//!
//! ```
//! let scenario = apportion::Scenario::from_text(r#"
//!     seed = 1
//!     stop = "5s"
//!     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = ["fifo", "drr"] }
//!     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
//!     flow.udp = { from = "a", to = "b", source = { kind = "cbr", rate = "3Mbit" } }
//! "#)?;
//! let results = apportion::Run::new(&scenario).simulate()?;
//! for row in results.flows() {
//!     println!("{:12} {:4} {:.3} Mb/s", row.point, row.flow, row.throughput_mbps);
//! }
//! # let rate = |point, flow| results.flows().find(|row| row.point == point && row.flow == flow).unwrap().throughput_mbps;
//! # assert!(rate("queue=fifo", "tcp") < 0.2 && rate("queue=drr", "tcp") > 0.8);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate has no global state: a run takes its seeds, its threads, a [`Cancel`] token and a callback for
//! [`Progress`] as arguments, installs no signal handler and prints nothing. The same scenario with the same
//! seed gives the same results, bit for bit. The command `apportion` (package `apportion-cli`) is a client of
//! this crate.
//!
//! | to | use |
//! |---|---|
//! | read, check and vary a scenario | [`Scenario`], [`ScenarioBuilder`] |
//! | start from an example | [`examples()`], [`ScenarioBuilder::example`] |
//! | simulate it, or run it over the TCP of this machine | [`Run::simulate`], `Run::lab` |
//! | read results as rows, JSON lines, text, HTML; write them to a folder | [`Results`] |
//! | see drops, marks and samples while they happen | [`Run::on_drop`], [`Run::on_mark`], [`Run::on_sample`] |
//! | store simulations and reuse them | [`Cache`], [`Run::cache`] |
//! | divide simulations among processes and machines | [`Simulations`], [`PackedScenario`] |
//! | read results back | [`Results::read`] |
//! | compare them | [`load`], [`compare()`] |
//! | draw results for a paper | [`plot`] |
//! | compare the simulator with the TCP of this machine | `Run::parity` |
//! | reproduce the experiments of papers | [`Reproduction`] |
//! | compare all disciplines in all situations | [`League`] |
//! | run a discipline, a congestion control or a transport stack of your own | [`Catalog`], [`ScenarioBuilder::catalog`] |
//! | list and explain disciplines, TCP profiles, sources and topologies | [`catalogue`] |
//! | see a run in the browser while it goes on | `Watch`, `Run::watch` |
//! | run a command behind an emulated link | `shell` |
//! | run a gateway between two interfaces | `gateway` |
//! | convert configurations of other programs to scenarios and gateways | [`import`] |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `live` | yes | the modules `lab`, `shell` and `gateway`, `Watch`, `Run::lab` and `Run::parity`; Linux only, without effect elsewhere |
//! | `stacks` | no | transport stacks of other projects in scenarios: `transport = "quinn"` |
//! | `arrow` | no | tables as Arrow record batches: `Results::record_batch` |

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

#[cfg(feature = "arrow")]
pub mod arrow;
mod bottlenecks;
mod builders;
mod cache;
mod cached;
mod cancel;
mod captures;
pub mod catalogue;
mod collector;
pub mod events;
mod examples;
#[cfg(all(feature = "live", target_os = "linux"))]
pub mod gateway;
#[cfg(all(feature = "live", target_os = "linux"))]
pub mod lab;
mod league;
mod packed_scenario;
mod provenance;
mod reproduce;
mod results;
mod retain;
mod run;
mod run_error;
mod scenario;
#[cfg(all(feature = "live", target_os = "linux"))]
pub mod shell;
mod simulations;
mod size;
mod sources;
mod staged_run;
mod warnings;
#[cfg(all(feature = "live", target_os = "linux"))]
mod watch;
mod work_unit;

pub use apportion_core;
pub use apportion_core::system::Catalog;
pub use apportion_core::units;
pub use apportion_report::compare::NotJudged;
pub use apportion_report::flent::{FlentError, write as export_flent};
pub use apportion_report::latex::of_run as latex;
pub use apportion_report::league::{Cell as LeagueCell, League as LeagueTable};
pub use apportion_report::plot;
pub use apportion_report::rows;
pub use apportion_report::statistics;
pub use apportion_report::store::{ExportError, TABLES};
pub use apportion_report::{
    Comparison, Contents, Cut, LoadError, PointResults, Provenance, StoredRun, Table, WriteError, compare,
    export,
};
pub use apportion_scenario::import;
pub use apportion_scenario::{Estimate, FileError, Place, Point, Problem, TextError, renamed};
pub use cache::{Cache, CacheError, Damage, Frame, Usage};
pub use cancel::{Cancel, Progress};
pub use examples::examples;
#[cfg(all(feature = "live", target_os = "linux"))]
pub use lab::ParityResults;
pub use league::{League, LeagueError, LeagueResults, Pairs, PairsResults, services, situations};
pub use packed_scenario::PackedScenario;
pub use reproduce::{Experiment, ReproduceError, Reproduced, Reproduction, experiments};
pub use results::{PointMetric, Results, check_folder, load};
pub use retain::Retain;
pub use run::Run;
pub use run_error::RunError;
pub use scenario::{Scenario, ScenarioBuilder, ScenarioError};
pub use simulations::Simulations;
pub use sources::build;
pub use staged_run::StagedRun;
#[cfg(all(feature = "live", target_os = "linux"))]
pub use watch::{Watch, WatchError};
pub use work_unit::{KeepError, WorkUnit};

/// The code of `docs/extending.md`, which is compiled and run with the other examples.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/extending.md")]
struct Extending;

/// The example of the package's page, which is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
