//! Registered classes as entries of the catalogue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apportion::Catalog;
use apportion::apportion_core::congestion::{self, ControlEntry, Marks, Pacing};
use apportion::apportion_core::system::catalog::RegisterError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::host::Host;
use crate::discipline::{Session, leak};

/// A class that is a congestion control.
struct Spec {
    class: Py<PyType>,
    entry: &'static ControlEntry,
}

/// Attributes of a class under the names of [`ControlEntry`]; `paces` tells that its segments leave at a
/// rate.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Attributes {
    reference: String,
    paces: bool,
    needs_rack: bool,
    one_way_delay: bool,
    quic: bool,
    marks: String,
}

impl Attributes {
    fn marks(&self) -> PyResult<Marks> {
        match &*self.marks {
            "one" => Ok(Marks::One),
            "echoed" => Ok(Marks::Echoed),
            "counted" => Ok(Marks::Counted),
            other => Err(PyValueError::new_err(format!("marks is `{other}`; write one, echoed or counted"))),
        }
    }
}

/// Classes by name. A second registration of a name replaces the first, as with disciplines.
static REGISTERED: Mutex<BTreeMap<String, Arc<Spec>>> = Mutex::new(BTreeMap::new());

fn registered() -> MutexGuard<'static, BTreeMap<String, Arc<Spec>>> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds the registered congestion controls.
pub fn add_to(catalog: &mut Catalog) {
    for spec in registered().values() {
        // Registration has refused a class that cannot be added.
        let _ = add(catalog, spec);
    }
}

fn add(catalog: &mut Catalog, spec: &Arc<Spec>) -> Result<(), RegisterError> {
    let made = Arc::clone(spec);
    catalog.register_control(spec.entry, move |connection| Host::new(&made.class, connection, false))
}

/// Registers a class as a congestion control.
#[pyfunction]
pub fn register_control(
    class: Py<PyType>,
    name: &str,
    summary: &str,
    attributes: Attributes,
) -> PyResult<()> {
    let marks = attributes.marks()?;
    let Attributes { reference, paces, needs_rack, one_way_delay, quic, .. } = attributes;
    let named = ControlEntry::new(leak(name), leak(summary), leak(&reference));
    let pacing = if paces { Pacing::AtRate } else { Pacing::None };
    let entry = ControlEntry { pacing, needs_rack, one_way_delay, quic, marks, ..named };
    let spec = Arc::new(Spec { class, entry: Box::leak(Box::new(entry)) });
    let refused = add(&mut Catalog::default(), &spec);
    refused.map_err(|error| PyValueError::new_err(error.to_string()))?;
    // Drop the replaced class without the lock: that may call Python.
    let replaced = registered().insert(name.to_owned(), spec);
    drop(replaced);
    Ok(())
}

/// Checks a class against the laws; returns the violation with the shortest sequence found.
#[pyfunction]
pub fn check_control_laws(class: Py<PyType>) -> PyResult<Option<String>> {
    let session = Session::default();
    let build = |connection: &congestion::Connection| Box::new(Host::new(&class, connection, true));
    let verdict = session.during(|| apportion_laws::verify_control(build));
    match (session.failure(), verdict) {
        (Some(error), _) => Err(error),
        (None, Err(violation)) => Ok(Some(violation.to_string())),
        (None, Ok(())) => Ok(None),
    }
}
