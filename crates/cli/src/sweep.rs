//! `apportion sweep`: a run that simulates on a cluster.

use anyhow::{Context as _, bail};
use apportion::{Cache, Run};

use crate::arguments;
use crate::cache;
use crate::cluster::{self, Cluster, OnCluster};
use crate::output;
use crate::run;
use crate::status::Status;

/// # Errors
/// There is no cluster; or the error of the cluster or the run.
pub fn sweep(arguments: &arguments::Sweep, cluster: Option<Cluster<'_>>) -> anyhow::Result<Status> {
    let arguments::Sweep { wanted, cluster: address, phase_check, force } = arguments;
    let Some(address) = address else {
        bail!(
            "name a cluster, such as --cluster tcp://node1:8786; on this machine alone `apportion run` does the same"
        );
    };
    cluster::available(cluster)?;
    let scenario = run::load(wanted)?;
    if wanted.show_config {
        output::print(scenario.canonical())?;
        return Ok(Status::SUCCESS);
    }
    let cache = cache::default().context(cache::NO_PLACE)?;
    let (folder, phase_check) = (wanted.folder(""), phase_check.of(wanted.seeds));
    apportion::check_folder(&folder)?;
    let (seeds, hold, force) = (wanted.seeds, wanted.is_short(&scenario), *force);
    let scenarios = std::slice::from_ref(&scenario);
    let quiet = wanted.is_silent();
    let on_cluster = OnCluster { address, scenarios, seeds, phase_check, hold, force, quiet };
    let cancel = cluster::simulate(&on_cluster, cluster)?;
    // The cache holds everything that the cluster simulated.
    let run = Run::new(&scenario)
        .seeds(seeds)
        .phase_check(phase_check)
        .retain(wanted.retain(&scenario))
        .force(force);
    let results = run.cache(&cache, Cache::MOST).cancel(&cancel).folder(&folder).simulate()?;
    cache.prune(Cache::MOST)?;
    run::print_results(&results, wanted)
}
