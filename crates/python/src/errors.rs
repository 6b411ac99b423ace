//! Errors of the library as exceptions of Python.

use apportion::{Place, Problem};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::{create_exception, types::PyTuple};

create_exception!(
    apportion,
    ScenarioError,
    PyValueError,
    "A scenario that makes no sense. The message has a line for each problem, with the key and what to write instead;\n\
     `problems` has them as pairs of key path and message."
);
create_exception!(
    apportion,
    RunError,
    PyException,
    "A run that was refused, or that failed; or results that cannot be written."
);

/// Form of a scenario, and so the places that messages can refer to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// Text or file, which has lines.
    Text,
    /// Values, which have only keys.
    Values,
}

/// Exception for a scenario that cannot be loaded.
pub fn of_scenario(py: Python<'_>, error: &apportion::ScenarioError, given: Given) -> PyErr {
    let apportion::ScenarioError::Problems(problems) = error else {
        return of_keys(py, &[(String::new(), error.to_string())], error.to_string());
    };
    let lines: Vec<String> = problems.iter().map(|problem| line(problem, given)).collect();
    let pairs: Vec<_> =
        problems.iter().map(|problem| (problem.path.clone(), problem.message.clone())).collect();
    of_keys(py, &pairs, lines.join("\n"))
}

/// Exception for one key.
pub fn of_key(py: Python<'_>, path: &str, message: &str) -> PyErr {
    of_keys(py, &[(path.to_owned(), message.to_owned())], format!("{path}: {message}"))
}

fn of_keys(py: Python<'_>, problems: &[(String, String)], message: String) -> PyErr {
    let error = ScenarioError::new_err(message);
    let set = PyTuple::new(py, problems).and_then(|all| error.value(py).setattr("problems", all));
    set.err().unwrap_or(error)
}

/// Formats a problem with its place in the user's input: a line of a text, or a key alone.
fn line(problem: &Problem, given: Given) -> String {
    match (problem.place, given) {
        (Place::Line(_), Given::Text) => problem.to_string(),
        _ if problem.path.is_empty() => problem.message.clone(),
        _ => format!("{}: {}", problem.path, problem.message),
    }
}

/// Exception for a run that failed, or results that cannot be written.
pub fn of_run(error: impl std::fmt::Display) -> PyErr {
    RunError::new_err(error.to_string())
}
