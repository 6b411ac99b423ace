//! `apportion reproduce`: compares claims of papers with measurements.

use std::fmt::Write as _;

use anyhow::Context as _;
use apportion::{Cache, Cancel, ReproduceError, Reproduction};

use crate::arguments::{Reproduce, World};
use crate::cache;
use crate::cluster::{self, Cluster, OnCluster};
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use crate::status::Status;

pub fn reproduce(arguments: &Reproduce, cluster: Option<Cluster<'_>>) -> anyhow::Result<Status> {
    let in_lab = arguments.world == World::Lab;
    check(arguments, in_lab)?;
    #[cfg(target_os = "linux")]
    if in_lab {
        // A process with a second thread cannot enter a user namespace.
        apportion::lab::enter()?;
    }
    let mut reproduction = Reproduction::new(&arguments.experiments)
        .seeds(arguments.seeds)
        .jobs(arguments.jobs)
        .ablate(arguments.ablate)
        .force(arguments.force)
        .folder(&arguments.out)
        .kit(arguments.kit);
    if let Some(names) = &arguments.variants {
        reproduction = reproduction.variants(names);
    }
    let cache = arguments.cache.chosen();
    if let Some(cache) = &cache {
        reproduction = reproduction.cache(cache, Cache::MOST);
    }
    let cancel = match &arguments.cluster {
        Some(address) => on_cluster(&reproduction, address, arguments, cluster)?,
        None => interrupt::listen()?,
    };
    let bar = Bar::new(arguments.is_silent() || arguments.cluster.is_some());
    let reproduction = reproduction.cancel(&cancel).progress(|progress| bar.show(progress));
    #[cfg(target_os = "linux")]
    let reproduction = if in_lab { in_real_time(reproduction, arguments)? } else { reproduction };
    match claims(&reproduction, &bar, arguments) {
        Err(error) if matches!(error.downcast_ref(), Some(ReproduceError::Cancelled)) => {
            let is_kept = cache.is_some() && !in_lab;
            let kept = if is_kept { "; the same command resumes it" } else { "" };
            output::note(&format!("{error}{kept}"));
            Ok(Status::from(1))
        }
        other => other,
    }
}

impl Reproduce {
    /// Whether progress is hidden.
    fn is_silent(&self) -> bool {
        self.quiet || self.json
    }
}

/// Simulates the experiments on a cluster. Those that have ended are in the cache then.
fn on_cluster(
    reproduction: &Reproduction<'_>,
    address: &str,
    arguments: &Reproduce,
    cluster: Option<Cluster<'_>>,
) -> anyhow::Result<Cancel> {
    cluster::available(cluster)?;
    cache::default().context(cache::NO_PLACE)?;
    let scenarios = &reproduction.scenarios()?[..];
    let (seeds, quiet) = (arguments.seeds, arguments.is_silent());
    // The size was checked before.
    let wanted = OnCluster { address, scenarios, seeds, phase_check: false, hold: true, force: true, quiet };
    cluster::simulate(&wanted, cluster)
}

/// Runs the experiments in the lab, and says how long they take.
#[cfg(target_os = "linux")]
fn in_real_time<'a>(
    reproduction: Reproduction<'a>,
    arguments: &Reproduce,
) -> anyhow::Result<Reproduction<'a>> {
    let reproduction = reproduction.in_lab(arguments.late.retries());
    if !arguments.is_silent() {
        crate::lab::note_real_time(reproduction.real_seconds()?);
    }
    Ok(reproduction)
}

/// Refuses arguments that contradict each other.
fn check(arguments: &Reproduce, in_lab: bool) -> anyhow::Result<()> {
    let about_lab = arguments.late.retries.is_some() || arguments.late.allow_late;
    anyhow::ensure!(
        in_lab || !about_lab,
        "--retries and --allow-late are about runs of the lab: add --world lab, or leave them out"
    );
    anyhow::ensure!(
        !in_lab || arguments.cluster.is_none(),
        "the lab is on this machine: leave out --cluster or --world lab"
    );
    Ok(())
}

/// Runs the experiments and prints their claims. Exit status 1 if a claim fails.
fn claims(reproduction: &Reproduction<'_>, bar: &Bar, arguments: &Reproduce) -> anyhow::Result<Status> {
    let reproduced = reproduction.run();
    bar.clear();
    let reproduced = reproduced?;
    cache::note_failure(reproduced.cache_failure());
    if arguments.json {
        output::print(&reproduced.json_lines())?;
    } else if !arguments.quiet {
        let mut text = reproduced.text();
        for page in reproduced.pages() {
            writeln!(text, "page: {}", page.display())?;
        }
        output::print(&text)?;
    }
    let faults = reproduced.faults();
    if !faults.is_empty() && !arguments.late.allow_late {
        let late = faults.len();
        output::note(&format!(
            "{late} runs of the lab are not valid, which is no verdict on a claim: {}",
            faults[0]
        ));
        return Ok(Status::from(1));
    }
    Ok(if reproduced.holds() { Status::SUCCESS } else { Status::from(1) })
}
