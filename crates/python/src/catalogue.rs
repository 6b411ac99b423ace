//! Names for scenarios.

use apportion::{Catalog, catalogue};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;

use crate::errors::of_run;
use crate::{congestion, discipline, stack};

/// The library's catalogue with the registered disciplines, congestion controls and transport stacks.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    discipline::add_to(&mut catalog);
    congestion::add_to(&mut catalog);
    stack::add_to(&mut catalog);
    catalog
}

#[pyfunction]
pub fn explain(name: &str) -> PyResult<String> {
    catalogue::explain(&catalog(), name).map_err(|error| PyKeyError::new_err(error.to_string()))
}

/// A list of names: its title, and entries of name, role and summary.
type List = (&'static str, Vec<(String, &'static str, String)>);

#[pyfunction]
pub fn names() -> Vec<List> {
    let lists = catalogue::list(&catalog()).into_iter();
    lists
        .map(|list| {
            let entries = list.entries.into_iter().map(|entry| (entry.name, entry.role, entry.summary));
            (list.title, entries.collect())
        })
        .collect()
}

#[pyfunction]
pub fn example_names() -> Vec<&'static str> {
    apportion::examples().map(|(name, _)| name).collect()
}

/// Names, sources and summaries.
#[pyfunction]
pub fn experiments() -> PyResult<Vec<(String, String, String)>> {
    let all = apportion::experiments().map_err(of_run)?;
    Ok(all.into_iter().map(|one| (one.id, one.source, one.summary)).collect())
}
