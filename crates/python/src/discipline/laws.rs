//! Laws of every discipline.

use std::sync::Arc;

use apportion::units::Packets;
use apportion_laws::Laws;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::host::Host;
use super::session::Session;
use super::spec::Spec;

/// Checks a class against the laws; returns the violation with the shortest sequence found.
#[pyfunction]
pub fn check_laws(
    class: Py<PyType>,
    name: &str,
    scheduler: Option<String>,
    parameters: Vec<(String, String)>,
    limit: Option<u64>,
    holds_back: bool,
    cases: u32,
) -> PyResult<Option<String>> {
    let spec = Arc::new(Spec::new(class, name, "", scheduler, &parameters)?);
    let arguments = spec.defaults();
    let laws =
        limit.into_iter().fold(Laws::default().cases(cases), |laws, limit| laws.limit(Packets::new(limit)));
    let laws = if holds_back { laws.holds_back() } else { laws };
    let session = Session::default();
    let verdict = session.during(|| laws.verify(|link| Host::new(&spec, &arguments, link)));
    match (session.failure(), verdict) {
        (Some(error), _) => Err(error),
        (None, Err(violation)) => Ok(Some(violation.to_string())),
        (None, Ok(())) => Ok(None),
    }
}
