//! Simulations in parts, for clusters: the work of a client and its workers.

use std::collections::BTreeMap;
use std::path::PathBuf;

use apportion::{Cancel, Frame, RunError, Simulations, WorkUnit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::of_run;
use crate::run::watched;
use crate::scenario::Scenario;

/// A cache of simulations.
#[pyclass(frozen, module = "apportion._native")]
pub struct Cache {
    pub inner: apportion::Cache,
}

#[pymethods]
impl Cache {
    /// The cache of the command.
    #[new]
    fn new() -> PyResult<Self> {
        let folder = apportion::Cache::default_folder()
            .ok_or_else(|| of_run("there is no place for a cache; set APPORTION_CACHE_DIR to a folder"))?;
        Ok(Self { inner: apportion::Cache::at(folder) })
    }

    /// Deletes the least recently used entries of a cache that is too large.
    fn prune(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.inner.prune(apportion::Cache::MOST)).map(|_| ()).map_err(of_run)
    }

    #[getter]
    fn folder(&self) -> PathBuf {
        self.inner.folder().to_owned()
    }
}

/// A part in transfer: point, key and frame.
type Sent<'py> = (usize, String, Bound<'py, PyBytes>);

/// A scenario in transfer: text, name in messages, settings and files.
pub type Packed<'py> = (String, PathBuf, Vec<(String, String)>, Vec<(PathBuf, Bound<'py, PyBytes>)>);

/// The simulations of scenarios.
#[pyclass(frozen, module = "apportion._native")]
pub struct Parts {
    scenarios: Vec<Py<Scenario>>,
    seeds: u64,
    phase_check: bool,
    hold: bool,
}

impl Parts {
    fn all(&self) -> Simulations<'_> {
        let scenarios = self.scenarios.iter().map(|scenario| &scenario.get().inner);
        Simulations::new(scenarios, self.seeds)
            .phase_check(self.phase_check)
            .retain_outcomes(self.hold)
            .jobs(1)
    }
}

#[pymethods]
impl Parts {
    #[new]
    const fn new(scenarios: Vec<Py<Scenario>>, seeds: u64, phase_check: bool, hold: bool) -> Self {
        Self { scenarios, seeds, phase_check, hold }
    }

    /// Number of simulations.
    #[getter]
    fn total(&self) -> usize {
        self.all().total()
    }

    /// Estimated CPU time of a simulation of each point, in s.
    #[getter]
    fn seconds(&self) -> Vec<f64> {
        self.all().estimates().iter().map(apportion::Estimate::seconds).collect()
    }

    /// Numbers of the simulations that the cache lacks.
    fn missing(&self, py: Python<'_>, cache: &Cache, force: bool) -> PyResult<Vec<usize>> {
        let all = self.all().cache(&cache.inner);
        py.detach(|| {
            if !force {
                all.check_size()?;
            }
            Ok(all.missing())
        })
        .map_err(|error: RunError| of_run(error))
    }

    /// Simulates the parts with these numbers, in one thread, until `stop` returns True.
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        numbers: Vec<usize>,
        stop: Bound<'py, PyAny>,
    ) -> PyResult<Vec<Sent<'py>>> {
        let cancel = Cancel::new();
        let all = self.all().cancel(&cancel);
        let look = || {
            if stop.call0()?.is_truthy()? {
                cancel.cancel();
            }
            Ok(())
        };
        let (parts, stopped) = watched(py, &cancel, look, || all.simulate(&numbers));
        if let Some(stop) = stopped {
            return Err(stop.into());
        }
        let sent = |WorkUnit { point, key, frame }| (point, key, PyBytes::new(py, frame.as_bytes()));
        Ok(parts.map_err(of_run)?.into_iter().map(sent).collect())
    }

    /// Adds a part to the cache.
    fn keep(&self, py: Python<'_>, cache: &Cache, point: usize, key: String, frame: Vec<u8>) -> PyResult<()> {
        let part = WorkUnit { point, key, frame: Frame::from_bytes(frame) };
        let all = self.all().cache(&cache.inner);
        py.detach(|| all.keep(&part)).map_err(of_run)
    }

    /// Compacts the additions to the cache.
    fn compact(&self, py: Python<'_>, cache: &Cache) -> PyResult<()> {
        let all = self.all().cache(&cache.inner);
        py.detach(|| all.compact()).map_err(of_run)
    }
}

/// Packs a scenario for transfer.
pub fn pack<'py>(
    py: Python<'py>,
    scenario: &apportion::Scenario,
) -> Result<Packed<'py>, apportion::ScenarioError> {
    let apportion::PackedScenario { text, origin, settings, files } = scenario.pack()?;
    let files = files.into_iter().map(|(path, content)| (path, PyBytes::new(py, &content))).collect();
    Ok((text, origin, settings, files))
}

/// Unpacks a scenario.
pub fn unpack(
    (text, origin, settings, files): Packed<'_>,
) -> Result<apportion::Scenario, apportion::ScenarioError> {
    let files: BTreeMap<_, _> =
        files.into_iter().map(|(path, content)| (path, content.as_bytes().to_vec())).collect();
    apportion::PackedScenario { text, origin, settings, files }.load()
}
