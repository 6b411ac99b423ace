//! Results of runs.

use std::path::PathBuf;

use apportion::rows::{
    AllocationRow, CompletionRow, FlowRow, LinkRow, MediaRow, PhaseSensitivityRow, ResponseRow, Row,
    SeriesRow, StatisticRow,
};
use apportion::{PointResults, statistics};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;

use crate::errors::of_run;
use crate::table::Table;

/// Results of a run.
#[pyclass(frozen, module = "apportion._native")]
pub struct Results {
    inner: apportion::Results,
    /// Whether the results were read from a folder, which has their report.
    is_read: bool,
}

impl Results {
    pub const fn new(inner: apportion::Results) -> Self {
        Self { inner, is_read: false }
    }

    fn of<R: Row + apportion::Table>(&self) -> Result<Table, arrow_schema::ArrowError> {
        self.inner.record_batch::<R>().map(|batch| Table::new(R::TABLE, batch))
    }
}

/// Settings of a point: key paths with values.
type Settings = Vec<(String, String)>;

/// Delays of a group at a point: its label, the group, and pairs of a fraction of packets and the delay in ms
/// that they do not exceed.
type Delays = (String, String, Vec<(f64, f64)>);

#[pymethods]
impl Results {
    /// Reads the results in a folder, or the last ones below it.
    #[staticmethod]
    fn read(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let inner = py.detach(|| apportion::Results::read(folder)).map_err(of_run)?;
        Ok(Self { inner, is_read: true })
    }

    /// Folder that the run wrote, or that the results were read from.
    #[getter]
    fn folder(&self) -> Option<PathBuf> {
        self.inner.folder().map(Into::into)
    }

    /// A table by the name of its CSV file.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let table = py.detach(|| {
            Some(match name {
                FlowRow::TABLE => self.of::<FlowRow>(),
                LinkRow::TABLE => self.of::<LinkRow>(),
                SeriesRow::TABLE => self.of::<SeriesRow>(),
                AllocationRow::TABLE => self.of::<AllocationRow>(),
                CompletionRow::TABLE => self.of::<CompletionRow>(),
                MediaRow::TABLE => self.of::<MediaRow>(),
                StatisticRow::TABLE => self.of::<StatisticRow>(),
                ResponseRow::TABLE => self.of::<ResponseRow>(),
                PhaseSensitivityRow::TABLE => self.of::<PhaseSensitivityRow>(),
                _ => return None,
            })
        });
        table.ok_or_else(|| PyKeyError::new_err(name.to_owned()))?.map_err(of_run)
    }

    #[getter]
    fn complete(&self) -> bool {
        self.inner.is_complete()
    }

    /// Simulated time at which an interrupt cut the replication, if one did.
    #[getter]
    fn cut(&self) -> Option<String> {
        self.inner.cut().map(|cut| cut.to_string())
    }

    /// Why simulations could not be kept in the cache, if so.
    #[getter]
    fn cache_failure(&self) -> Option<String> {
        self.inner.cache_failure().map(ToOwned::to_owned)
    }

    /// Why the cache was not used, if one was set.
    #[getter]
    fn uncached(&self) -> Option<String> {
        self.inner.uncached().map(ToOwned::to_owned)
    }

    #[getter]
    fn seeds(&self) -> Vec<u64> {
        self.inner.seeds().to_vec()
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.inner.warnings().to_vec()
    }

    #[getter]
    fn faults(&self) -> Vec<String> {
        self.inner.faults()
    }

    /// Points: label, settings, and number of finished replications.
    #[getter]
    fn points(&self) -> Vec<(String, Settings, usize)> {
        let points = self.inner.points().iter();
        points.map(|point| (point.label.clone(), point.settings.clone(), point.ended())).collect()
    }

    /// One-way delays of the packets of each group of flows.
    fn delays(&self, py: Python<'_>) -> PyResult<Vec<Delays>> {
        let points = self.inner.points();
        if points.iter().any(|point| point.outcomes.len() < point.ended()) {
            let message = "results of a folder, and of more than 1000 replications, do not have the distribution of delays; draw a \
                           column of `flows`, such as \"delay_p95_ms\", or run the scenario again, with fewer seeds";
            return Err(PyValueError::new_err(message));
        }
        Ok(py.detach(|| points.iter().flat_map(delays).collect()))
    }

    fn summary(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.summary())
    }

    fn json_lines(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.json_lines())
    }

    /// The report page, or the one in the folder that the results were read from.
    fn report(&self, py: Python<'_>) -> PyResult<String> {
        let page = self.inner.folder().filter(|_| self.is_read).map(|folder| folder.join("report.html"));
        py.detach(|| match page {
            Some(page) => std::fs::read_to_string(&page)
                .map_err(|error| of_run(format!("cannot read the report `{}`: {error}", page.display()))),
            None => Ok(self.inner.report()),
        })
    }

    fn write(&self, py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
        py.detach(|| self.inner.write(&folder)).map_err(of_run)
    }
}

fn delays(point: &PointResults) -> Vec<Delays> {
    let mut groups: Vec<&str> = Vec::new();
    for flow in &point.flows {
        if !groups.contains(&&*flow.group) {
            groups.push(&flow.group);
        }
    }
    let of_group = |group: &str| {
        let flows = point.outcomes.iter().flat_map(|outcome| outcome.flows.iter().zip(&point.flows));
        let parts: Vec<_> =
            flows.filter(|(_, info)| info.group == group).map(|(flow, _)| &flow.delay).collect();
        let merged = statistics::merge(&parts);
        let quantiles = merged.quantiles.iter().map(|(share, delay)| (*share, delay.as_secs_f64() * 1e3));
        (point.label.clone(), group.to_owned(), quantiles.collect())
    };
    groups.into_iter().map(of_group).collect()
}
