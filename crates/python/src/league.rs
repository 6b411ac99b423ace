//! Leagues.

use std::path::PathBuf;

use apportion::{Cancel, LeagueError};
use pyo3::prelude::*;

use crate::discipline::{self, Session};
use crate::errors::of_run;
use crate::parts::Cache;
use crate::run::{Counts, watched};
use crate::scenario::Scenario;
use crate::table::Table;

/// Disciplines in situations.
#[pyclass(frozen, module = "apportion._native")]
pub struct League {
    disciplines: Vec<String>,
    situations: Vec<String>,
    own: Vec<(String, Py<Scenario>)>,
    seeds: u64,
    phase_check: Option<bool>,
}

impl League {
    fn all<'a>(&self) -> apportion::League<'a> {
        let league = apportion::League::new()
            .catalog(&discipline::catalog())
            .disciplines(self.disciplines.clone())
            .situations(self.situations.clone())
            .seeds(self.seeds);
        let league = self.phase_check.into_iter().fold(league, apportion::League::phase_check);
        self.own.iter().fold(league, |league, (name, own)| league.situation(name, &own.get().inner))
    }
}

#[pymethods]
impl League {
    #[new]
    const fn new(
        disciplines: Vec<String>,
        situations: Vec<String>,
        own: Vec<(String, Py<Scenario>)>,
        seeds: u64,
        phase_check: Option<bool>,
    ) -> Self {
        Self { disciplines, situations, own, seeds, phase_check }
    }

    /// Scenarios that the league simulates.
    fn scenarios(&self, py: Python<'_>) -> PyResult<Vec<Scenario>> {
        let scenarios = py.detach(|| self.all().scenarios()).map_err(of_run)?;
        Ok(scenarios.into_iter().map(Scenario::of_text).collect())
    }

    /// Plays the league.
    fn play(
        &self,
        py: Python<'_>,
        jobs: usize,
        force: bool,
        progress: Option<Bound<'_, PyAny>>,
        folder: Option<PathBuf>,
        cache: Option<&Cache>,
    ) -> PyResult<LeagueResults> {
        let cancel = Cancel::new();
        let counts = Counts::default();
        let scenarios = py.detach(|| self.all().scenarios()).map_err(of_run)?;
        // Like a run: a second thread would only wait for the interpreter's lock.
        let in_python = scenarios.iter().any(apportion::Scenario::has_own_code);
        let league = self.all().jobs(if in_python { 1 } else { jobs }).force(force).cancel(&cancel);
        let league = folder.into_iter().fold(league, apportion::League::folder);
        let most = apportion::Cache::MOST;
        let league = cache.into_iter().fold(league, |league, cache| league.cache(&cache.inner, most));
        let league = league.progress(|progress| counts.set(progress));
        let session = Session::new(&cancel);
        let work = || match in_python {
            true => Python::attach(|py| py.detach(|| session.during(|| league.run()))),
            false => league.run(),
        };
        let (result, stopped) = watched(py, &cancel, || counts.report(progress.as_ref()), work);
        if let Some(error) = session.failure() {
            return Err(error);
        }
        match (result, stopped) {
            (Err(LeagueError::Cancelled), Some(stop)) => Err(stop.into()),
            (result, _) => Ok(LeagueResults { inner: result.map_err(of_run)? }),
        }
    }
}

/// Results of a league.
#[pyclass(frozen, module = "apportion._native")]
pub struct LeagueResults {
    inner: apportion::LeagueResults,
}

#[pymethods]
impl LeagueResults {
    #[getter]
    fn cells(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.inner.record_batch()).map(|batch| Table::new("cells", batch)).map_err(of_run)
    }

    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.inner.folder().map(Into::into)
    }

    #[getter]
    const fn reused(&self) -> u64 {
        self.inner.reused()
    }

    #[getter]
    fn cache_failure(&self) -> Option<String> {
        self.inner.cache_failure().map(ToOwned::to_owned)
    }

    #[getter]
    fn faults(&self) -> Vec<String> {
        self.inner.faults().to_vec()
    }

    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.text())
    }

    fn page(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.page())
    }
}

/// Names of the built-in situations.
#[pyfunction]
pub fn situations() -> Vec<&'static str> {
    apportion::situations().map(|(name, _)| name).collect()
}
