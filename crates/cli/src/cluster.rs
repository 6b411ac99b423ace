//! Simulations on a cluster, into the cache of this user.

use anyhow::{Error, bail};
use apportion::{Cancel, Scenario};

use crate::interrupt;

/// What a cluster is to simulate.
#[derive(Clone, Copy, Debug)]
pub struct OnCluster<'a> {
    /// Address of its scheduler.
    pub address: &'a str,
    pub scenarios: &'a [Scenario],
    /// Replications of each point.
    pub seeds: u64,
    /// Whether each has a perturbed copy.
    pub phase_check: bool,
    /// Whether [outcomes are held](apportion::Run::retain).
    pub hold: bool,
    /// Whether it may be too large.
    pub force: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
}

/// Simulates on a cluster into the cache of the user. Whether all of it has ended; false after an interrupt.
pub type Cluster<'a> = &'a dyn Fn(&OnCluster<'_>) -> Result<bool, String>;

/// Simulates it. The token of [`interrupt::listen`], which an interrupt has cancelled already if one came.
///
/// # Errors
/// What the cluster says; if there is no `cluster`.
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
