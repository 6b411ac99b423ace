//! `apportion._native`: the compiled part of the Python package in `python/apportion`. A thin client of the
//! library `apportion`: defaults, documentation and convenience are in Python.

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "arguments that come from Python are owned")]
#![warn(missing_docs)]

mod catalogue;
mod congestion;
mod discipline;
mod errors;
mod events;
mod fairness;
mod league;
mod parts;
mod results;
mod run;
mod scenario;
mod stack;
mod table;
mod values;

use std::ffi::OsString;

use apportion_cli::OnCluster;
use pyo3::prelude::*;

/// The compiled part of the package `apportion`. Use `apportion`: names here may change.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::catalogue::{example_names, experiments, explain, names};
    #[pymodule_export]
    use crate::congestion::{
        Ack, CongestionEvent, Connection, Feedback, Sent, Window, check_control_laws, register_control,
    };
    #[pymodule_export]
    use crate::discipline::{Buffer, Link, Packet, check_laws, register};
    #[pymodule_export]
    use crate::errors::{RunError, ScenarioError};
    #[pymodule_export]
    use crate::fairness::{interval, jain, max_min};
    #[pymodule_export]
    use crate::league::{League, LeagueResults, Pairs, services, situations};
    #[pymodule_export]
    use crate::parts::{Cache, Parts};
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::stack::{StackEnd, register_stack};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::{build, main};

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// Identifies the sources and the system that results depend on.
#[pyfunction]
fn build() -> String {
    apportion::build()
}

/// Runs the command `apportion` and returns its exit status. The first word is the name of the program.
/// `cluster` simulates on a cluster. Its arguments are the address, the scenarios, the seeds, and whether
/// there are perturbed copies, outcomes are held, the run may exceed the limits of an estimate, and progress
/// is hidden; it returns whether all of it has ended.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>, cluster: Py<PyAny>) -> u8 {
    let simulate = |wanted: &OnCluster<'_>| {
        Python::attach(|py| {
            let &OnCluster { address, scenarios, seeds, phase_check, hold, force, quiet } = wanted;
            let scenarios: Vec<_> = scenarios.iter().cloned().map(scenario::Scenario::of_text).collect();
            let ended = cluster.bind(py).call1((address, scenarios, seeds, phase_check, hold, force, quiet));
            ended.and_then(|ended| ended.extract()).map_err(|error| error.value(py).to_string())
        })
    };
    py.detach(|| apportion_cli::main_with(words, Some(&simulate)).into())
}
