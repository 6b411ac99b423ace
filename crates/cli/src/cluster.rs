//! Simulations on a cluster, into this user's cache.

use anyhow::{Error, bail};
use apportion::{Cancel, Scenario};

use crate::interrupt;

/// A request to a cluster.
#[derive(Clone, Copy, Debug)]
pub struct OnCluster<'a> {
    /// Address of the scheduler.
    pub address: &'a str,
    pub scenarios: &'a [Scenario],
    /// Replications of each point.
    pub seeds: u64,
    /// Whether each replication has a perturbed copy.
    pub phase_check: bool,
    /// Whether [outcomes are held](apportion::Run::retain).
    pub hold: bool,
    /// Whether the run may exceed the limits of an estimate.
    pub force: bool,
    /// Whether progress is hidden.
    pub quiet: bool,
}

/// Simulates on a cluster into the user's cache. Returns whether all of it has ended: false after an
/// interrupt.
pub type Cluster<'a> = &'a dyn Fn(&OnCluster<'_>) -> Result<bool, String>;

/// Simulates `wanted`. Returns the token of [`interrupt::listen`], cancelled already if an interrupt came.
///
/// # Errors
/// The cluster's error; or there is no `cluster`.
pub fn simulate(wanted: &OnCluster<'_>, cluster: Option<Cluster<'_>>) -> anyhow::Result<Cancel> {
    let is_whole = available(cluster)?(wanted).map_err(Error::msg)?;
    let cancel = interrupt::listen()?;
    if !is_whole {
        cancel.cancel();
    }
    Ok(cancel)
}

/// # Errors
/// If there is no way to use a cluster.
pub fn available(cluster: Option<Cluster<'_>>) -> anyhow::Result<Cluster<'_>> {
    let Some(cluster) = cluster else {
        bail!(
            "only the `apportion` of the Python package can use a cluster: pip install 'apportion[cluster]'"
        );
    };
    Ok(cluster)
}
