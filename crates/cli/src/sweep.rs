//! `apportion sweep`: a run whose simulations a cluster does.

use anyhow::{Context as _, Error, bail};
use apportion::{Cache, Run, Scenario};

use crate::arguments;
use crate::cache;
use crate::interrupt;
use crate::output;
use crate::run;
use crate::status::Status;

/// What a cluster is to simulate.
#[derive(Clone, Copy, Debug)]
pub struct OnCluster<'a> {
    /// Address of its scheduler.
    pub address: &'a str,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Replications of each point.
    pub seeds: u64,
    /// Whether each has a twin.
    pub perturb: bool,
    /// Whether [outcomes are held](Run::hold).
    pub hold: bool,
    /// Whether it may be too large.
    pub force: bool,
    /// Whether no progress is shown.
    pub quiet: bool,
}

/// Simulates on a cluster into the cache of the user. Whether all of it has ended; false after an interrupt.
pub type Cluster<'a> = &'a dyn Fn(&OnCluster<'_>) -> Result<bool, String>;

/// # Errors
/// If there is no cluster; what the cluster or the run says.
pub fn sweep(arguments: &arguments::Sweep, cluster: Option<Cluster<'_>>) -> anyhow::Result<Status> {
    let arguments::Sweep { wanted, cluster: address, twins, force } = arguments;
    let Some(address) = address else {
        bail!(
            "name a cluster, such as --cluster tcp://node1:8786; on this machine alone `apportion run` does the same"
        );
    };
    let Some(cluster) = cluster else {
        bail!(
            "only the `apportion` of the Python package can use a cluster: pip install 'apportion[cluster]'"
        );
    };
    let scenario = run::load(wanted)?;
    if wanted.show_config {
        output::print(scenario.canonical())?;
        return Ok(Status::SUCCESS);
    }
    let cache = cache::default().context(cache::NO_PLACE)?;
    let (folder, perturb) = (wanted.folder(""), twins.of(wanted.seeds));
    apportion::check_folder(&folder)?;
    let (seeds, hold, force) = (wanted.seeds, wanted.is_short(&scenario), *force);
    let on_cluster =
        OnCluster { address, scenario: &scenario, seeds, perturb, hold, force, quiet: wanted.is_silent() };
    let is_whole = cluster(&on_cluster).map_err(Error::msg)?;
    let cancel = interrupt::listen()?;
    if !is_whole {
        cancel.cancel();
    }
    // All of it is in the cache, as far as it was simulated.
    let run = Run::new(&scenario).seeds(seeds).perturb(perturb).hold(hold).force(force);
    let results = run.cache(&cache, Cache::MOST).cancel(&cancel).folder(&folder).simulate()?;
    cache.prune(Cache::MOST)?;
    run::print_results(&results, wanted)
}
