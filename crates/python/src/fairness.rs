//! Indices and entitlements.

use apportion::apportion_core::fairness::{self, Claim};
use apportion::statistics;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

#[pyfunction]
pub fn jain(shares: Vec<f64>) -> f64 {
    fairness::jain(&shares)
}

/// Flows are given by their links, weight, guarantee and demand.
#[pyfunction]
pub fn max_min(
    py: Python<'_>,
    capacities: Vec<f64>,
    flows: Vec<(Vec<usize>, f64, f64, Option<f64>)>,
) -> PyResult<Vec<f64>> {
    let claim = |(links, weight, guarantee, demand)| Claim { links, weight, guarantee, demand };
    let claims: Vec<Claim> = flows.into_iter().map(claim).collect();
    let shares = py.detach(|| fairness::max_min(&capacities, &claims));
    shares.map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The mean of independent samples and the half width of its 95 % interval; a single sample has no interval.
#[pyfunction]
pub fn interval(samples: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    let estimate = statistics::Estimate::of(&samples);
    let estimate = estimate.ok_or_else(|| PyValueError::new_err("there are no samples"))?;
    Ok((estimate.mean, estimate.ci95))
}
