//! Leagues, and pairs of services.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use apportion::units::{Rate, Span};
use apportion::{Cancel, LeagueError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::catalogue::catalog;
use crate::discipline::Session;
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
            .catalog(&catalog())
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
        let scenarios = py.detach(|| self.all().scenarios()).map_err(of_run)?;
        let results = played(py, &scenarios, progress, |cancel, counts, in_python| {
            let league = self.all().jobs(if in_python { 1 } else { jobs }).force(force).cancel(cancel);
            let league = folder.iter().fold(league, apportion::League::folder);
            let most = apportion::Cache::MOST;
            let league = cache.iter().fold(league, |league, cache| league.cache(&cache.inner, most));
            league.progress(|progress| counts.set(progress)).run()
        })?;
        Ok(LeagueResults { inner: Results::Cells(results) })
    }
}

/// Services next to each other.
#[pyclass(frozen, module = "apportion._native")]
pub struct Pairs {
    services: Vec<String>,
    disciplines: Vec<String>,
    rates: Vec<Rate>,
    length: Option<Span>,
    seeds: u64,
}

impl Pairs {
    fn all<'a>(&self) -> apportion::Pairs<'a> {
        let mut pairs =
            apportion::Pairs::new().catalog(&catalog()).services(self.services.clone()).seeds(self.seeds);
        if !self.disciplines.is_empty() {
            pairs = pairs.disciplines(self.disciplines.clone());
        }
        if !self.rates.is_empty() {
            pairs = pairs.rates(self.rates.clone());
        }
        self.length.into_iter().fold(pairs, apportion::Pairs::length)
    }
}

#[pymethods]
impl Pairs {
    #[new]
    fn new(
        services: Vec<String>,
        disciplines: Vec<String>,
        rates: Vec<String>,
        length: Option<String>,
        seeds: u64,
    ) -> PyResult<Self> {
        let rates = rates.iter().map(|rate| read("rates", rate)).collect::<PyResult<_>>()?;
        let length = length.map(|length| read("length", &length)).transpose()?;
        Ok(Self { services, disciplines, rates, length, seeds })
    }

    /// Plays all pairs.
    fn play(
        &self,
        py: Python<'_>,
        jobs: usize,
        force: bool,
        progress: Option<Bound<'_, PyAny>>,
        folder: Option<PathBuf>,
        cache: Option<&Cache>,
    ) -> PyResult<LeagueResults> {
        let scenarios = py.detach(|| self.all().scenarios()).map_err(of_run)?;
        let results = played(py, &scenarios, progress, |cancel, counts, in_python| {
            let pairs = self.all().jobs(if in_python { 1 } else { jobs }).force(force).cancel(cancel);
            let pairs = folder.iter().fold(pairs, apportion::Pairs::folder);
            let most = apportion::Cache::MOST;
            let pairs = cache.iter().fold(pairs, |pairs, cache| pairs.cache(&cache.inner, most));
            pairs.progress(|progress| counts.set(progress)).run()
        })?;
        Ok(LeagueResults { inner: Results::Pairs(results) })
    }
}

/// Reads the value of a parameter.
fn read<T: FromStr<Err: Display>>(name: &str, text: &str) -> PyResult<T> {
    text.parse().map_err(|error| PyValueError::new_err(format!("{name}: {text:?}: {error}")))
}

/// Plays a league of these scenarios. `play` learns whether one has code in Python.
fn played<T: Send>(
    py: Python<'_>,
    scenarios: &[apportion::Scenario],
    progress: Option<Bound<'_, PyAny>>,
    play: impl Fn(&Cancel, &Counts, bool) -> Result<apportion::LeagueResults<T>, LeagueError> + Sync,
) -> PyResult<apportion::LeagueResults<T>> {
    let cancel = Cancel::new();
    let counts = Counts::default();
    // Like a run: a second thread would only wait for the interpreter's lock.
    let in_python = scenarios.iter().any(apportion::Scenario::has_own_code);
    let session = Session::new(&cancel);
    let run = || play(&cancel, &counts, in_python);
    let work = || match in_python {
        true => Python::attach(|py| py.detach(|| session.during(run))),
        false => run(),
    };
    let (result, stopped) = watched(py, &cancel, || counts.report(progress.as_ref()), work);
    if let Some(error) = session.failure() {
        return Err(error);
    }
    match (result, stopped) {
        (Err(LeagueError::Cancelled), Some(stop)) => Err(stop.into()),
        (result, _) => result.map_err(of_run),
    }
}

/// Results of a league or of pairs.
#[pyclass(frozen, module = "apportion._native")]
pub struct LeagueResults {
    inner: Results,
}

enum Results {
    Cells(apportion::LeagueResults),
    Pairs(apportion::PairsResults),
}

/// Calls the same methods of either.
macro_rules! either {
    ($results:expr, $of:ident => $value:expr) => {
        match &$results.inner {
            Results::Cells($of) => $value,
            Results::Pairs($of) => $value,
        }
    };
}

#[pymethods]
impl LeagueResults {
    #[getter]
    fn cells(&self, py: Python<'_>) -> PyResult<Table> {
        let batch = py.detach(|| either!(self, of => of.record_batch()));
        batch.map(|batch| Table::new("cells", batch)).map_err(of_run)
    }

    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        either!(self, of => of.folder()).map(Into::into)
    }

    #[getter]
    fn reused(&self) -> u64 {
        either!(self, of => of.reused())
    }

    #[getter]
    fn cache_failure(&self) -> Option<String> {
        either!(self, of => of.cache_failure()).map(ToOwned::to_owned)
    }

    #[getter]
    fn uncached(&self) -> Option<String> {
        either!(self, of => of.uncached()).map(ToOwned::to_owned)
    }

    #[getter]
    fn faults(&self) -> Vec<String> {
        either!(self, of => of.faults()).to_vec()
    }

    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| either!(self, of => of.text()))
    }

    fn page(&self, py: Python<'_>) -> String {
        py.detach(|| either!(self, of => of.page()))
    }
}

/// Names of the built-in services.
#[pyfunction]
pub fn services() -> Vec<&'static str> {
    apportion::services().map(|(name, _)| name).collect()
}

/// Names of the built-in situations.
#[pyfunction]
pub fn situations() -> Vec<&'static str> {
    apportion::situations().map(|(name, _)| name).collect()
}
