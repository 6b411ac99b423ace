//! Scenarios.

use std::path::PathBuf;

use apportion::{Retain, ScenarioBuilder, ScenarioError};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::catalogue::catalog;
use crate::errors::{Given, of_key, of_scenario};
use crate::events::Callbacks;
use crate::parts::{self, Cache, Packed};
use crate::results::Results;
use crate::run::{self, Options};
use crate::values;

/// A checked scenario.
#[pyclass(frozen, module = "apportion._native")]
pub struct Scenario {
    pub(crate) inner: apportion::Scenario,
    given: Given,
}

impl Scenario {
    /// Wraps a scenario given as text.
    pub const fn of_text(inner: apportion::Scenario) -> Self {
        Self { inner, given: Given::Text }
    }

    fn load(py: Python<'_>, builder: ScenarioBuilder, given: Given) -> PyResult<Self> {
        // The builder may read files, for example traces.
        let builder = builder.catalog(&catalog());
        let loaded = py.detach(|| builder.load());
        match loaded {
            Ok(inner) => Ok(Self { inner, given }),
            Err(error) => Err(of_scenario(py, &error, given)),
        }
    }
}

#[pymethods]
impl Scenario {
    #[staticmethod]
    fn from_file(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Self::load(py, ScenarioBuilder::from_file(path), Given::Text)
    }

    /// `origin` is the path in messages; files are relative to its folder.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str, origin: Option<PathBuf>) -> PyResult<Self> {
        let builder = ScenarioBuilder::from_text(text);
        Self::load(py, origin.into_iter().fold(builder, ScenarioBuilder::origin), Given::Text)
    }

    #[staticmethod]
    fn from_values(py: Python<'_>, values: &Bound<'_, PyDict>, origin: Option<PathBuf>) -> PyResult<Self> {
        let builder = ScenarioBuilder::from_values(&values::table(values)?);
        let builder = builder.map_err(|error: ScenarioError| of_scenario(py, &error, Given::Values))?;
        Self::load(py, origin.into_iter().fold(builder, ScenarioBuilder::origin), Given::Values)
    }

    #[staticmethod]
    fn from_example(py: Python<'_>, name: &str) -> PyResult<Self> {
        let builder = ScenarioBuilder::example(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        Self::load(py, builder, Given::Text)
    }

    /// Packs the scenario for workers of a cluster.
    fn pack<'py>(&self, py: Python<'py>) -> PyResult<Packed<'py>> {
        parts::pack(py, &self.inner).map_err(|error| of_scenario(py, &error, self.given))
    }

    #[staticmethod]
    fn unpack(py: Python<'_>, packed: Packed<'_>) -> PyResult<Self> {
        match parts::unpack(packed) {
            Ok(inner) => Ok(Self::of_text(inner)),
            Err(error) => Err(of_scenario(py, &error, Given::Text)),
        }
    }

    /// Whether a queue or a congestion control is registered in Python.
    #[getter]
    fn has_own_code(&self) -> bool {
        self.inner.has_own_code()
    }

    /// Whether results with this number of replications per point hold outcomes.
    fn holds_outcomes(&self, seeds: u64) -> bool {
        run::retain(&self.inner, seeds) == Retain::Full
    }

    /// Returns the scenario with values replaced.
    fn set(&self, py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut builder = self.inner.edit();
        for (path, value) in settings {
            let Ok(path) = path.cast::<PyString>() else {
                return Err(of_key(
                    py,
                    &path.repr()?.to_string(),
                    "a key path is text, such as `link.x.rate`",
                ));
            };
            let path = path.to_str()?;
            let value = values::value(path, &value, 0)?;
            builder = builder.set(path, value);
        }
        Self::load(py, builder, self.given)
    }

    /// Runs the scenario. Returns the results, and whether an interrupt ended it early.
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    #[pyo3(signature = (*, seeds, jobs, phase_check, force, progress, folder, callbacks=None, cache=None, only_cached=false))]
    fn run(
        &self,
        py: Python<'_>,
        seeds: u64,
        jobs: usize,
        phase_check: Option<bool>,
        force: bool,
        progress: Option<Bound<'_, PyAny>>,
        folder: Option<PathBuf>,
        callbacks: Option<Callbacks>,
        cache: Option<&Cache>,
        only_cached: bool,
    ) -> PyResult<(Results, bool)> {
        let cache = cache.map(|cache| &cache.inner);
        let callbacks = callbacks.unwrap_or_default();
        let options =
            Options { seeds, jobs, phase_check, force, progress, callbacks, folder, cache, only_cached };
        let (results, interrupted) = run::simulate(py, &self.inner, options)?;
        Ok((Results::new(results), interrupted))
    }

    #[getter]
    fn title(&self) -> &str {
        self.inner.title()
    }

    /// Path in messages.
    #[getter]
    fn origin(&self) -> PathBuf {
        self.inner.origin().to_owned()
    }

    #[getter]
    fn canonical(&self) -> &str {
        self.inner.canonical()
    }

    /// 16 hexadecimal digits.
    #[getter]
    fn hash(&self) -> String {
        format!("{:016x}", self.inner.hash())
    }

    /// Points of the sweep: labels with settings.
    #[getter]
    fn points(&self) -> Vec<(String, Vec<(String, String)>)> {
        let points = self.inner.points().iter();
        points.map(|point| (point.label.clone(), point.settings.clone())).collect()
    }
}
