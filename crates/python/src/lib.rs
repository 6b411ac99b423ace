//! `apportion._native`: what the Python package of `python/apportion` is made of. It is a client of the library `apportion`,
//! and as thin as it can be: defaults, documentation and convenience are in Python.

#![forbid(unsafe_code)]
#![allow(clippy::needless_pass_by_value, reason = "arguments that come from Python are owned")]

mod catalogue;
mod discipline;
mod errors;
mod fairness;
mod results;
mod run;
mod scenario;
mod table;
mod values;

use std::ffi::OsString;

use pyo3::prelude::*;

/// The compiled part of the package `apportion`. Use `apportion`: names here may change.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::catalogue::{example_names, experiments, explain, names};
    #[pymodule_export]
    use crate::discipline::{Buffer, Link, Packet, check_laws, register};
    #[pymodule_export]
    use crate::errors::{RunError, ScenarioError};
    #[pymodule_export]
    use crate::fairness::{interval, jain, max_min};
    #[pymodule_export]
    use crate::main;
    #[pymodule_export]
    use crate::results::Results;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::table::Table;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}

/// The command `apportion`: its words, of which the first is the name of the program; returns the exit status.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<OsString>) -> u8 {
    py.detach(|| apportion_cli::main(words).into())
}
