//! Scenarios over the TCP of this machine, in real time.
//!
//! The lab needs network namespaces: a process calls [`enter`] once, while it has a single thread, and then
//! runs any number of scenarios. With [`Backend::Kernel`] the kernel implements the queues of watched links;
//! see `docs/kernel.md`.
//!
//! ```no_run
//! let scenario = apportion::Scenario::from_file("scenarios/quickstart.toml")?;
//! apportion::lab::check(&scenario)?;
//! apportion::lab::enter()?;
//! let results = apportion::Run::new(&scenario).lab()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::BTreeSet;

use apportion_core::units::Span;
use apportion_live::lab::external::QueueBackend;
use apportion_live::lab::{Extras, OnSample};
use apportion_report::parity::{Parity, TOLERANCES};
use apportion_runtime::outcome::Outcome;
use apportion_runtime::probe::Samples;
use apportion_scenario::model;
use apportion_sim::{Detail, Simulation};

use crate::cached::Measurement;
use crate::cancel::{Cancel, Counter};
use crate::collector::Collector;
use crate::provenance::{Begun, versions};
use crate::results::Results;
use crate::retain::Retain;
use crate::run::Run;
use crate::run_error::RunError;
use crate::scenario::Scenario;
use crate::size::MAX_SECONDS;
use crate::watch::{Follower, Stand};

pub use crate::gateway::Backend;
pub use apportion_live::lab::{LabError, Precision, enter};

/// The default number of retries of a replication that is not valid. Chosen: if two of three runs are late,
/// one in five is late four times.
pub const RETRIES: u64 = 3;

/// The minimum number of replications in the simulator for a comparison with the lab. Chosen: enough to
/// estimate the variance, in less time than one replication in the lab.
const SIMULATED: u64 = 10;

/// Checks that the lab can run every point of a scenario, without running it.
///
/// # Errors
/// The first feature that only the simulator supports.
pub fn check(scenario: &Scenario) -> Result<(), RunError> {
    scenario.points().iter().try_for_each(|point| {
        apportion_live::lab::check(&point.scenario).map_err(|cause| lab_failed(scenario, cause, None))
    })
}

/// Checks as [`check`] does, and also that the backend can implement the queues of watched links.
///
/// # Errors
/// The first feature that is not supported; for the kernel also that this build lacks the backend.
pub fn check_with(scenario: &Scenario, backend: Backend) -> Result<(), RunError> {
    check(scenario)?;
    let failed = |cause| lab_failed(scenario, cause, None);
    let Some(queues) = queues_of(backend).map_err(failed)? else { return Ok(()) };
    scenario.points().iter().try_for_each(|point| {
        apportion_live::lab::check_queues(&point.scenario, queues)
            .map_err(|cause| lab_failed(scenario, cause, None))
    })
}

/// Enters as [`enter`] does, for runs with this backend: for the kernel as root, since it accepts no programs
/// from a user namespace.
///
/// # Errors
/// If the system forbids it.
pub fn enter_with(backend: Backend) -> Result<(), LabError> {
    match backend {
        Backend::UserSpace => enter(),
        Backend::Kernel => apportion_live::lab::enter_as_root(),
    }
}

/// Returns the implementation of queues that replaces the engine, if any.
fn queues_of(backend: Backend) -> Result<Option<&'static dyn QueueBackend>, LabError> {
    match backend {
        Backend::UserSpace => Ok(None),
        #[cfg(feature = "bpf")]
        Backend::Kernel => Ok(Some(&apportion_kernel::lab::KernelQueues)),
        #[cfg(not(feature = "bpf"))]
        Backend::Kernel => Err(LabError::QueueFailed(crate::gateway::NO_KERNEL.to_owned())),
    }
}

fn lab_failed(scenario: &Scenario, cause: LabError, finished: Option<Results>) -> RunError {
    let (cause, finished) = (Box::new(cause), finished.map(Box::new));
    RunError::Lab { scenario: scenario.origin().to_owned(), cause, finished }
}

/// Checks that both the lab and the simulator can run every point of a scenario, without running it, so that
/// the simulator does not refuse the scenario after minutes of real time.
///
/// # Errors
/// The first feature that one of them does not support.
pub fn check_parity(scenario: &Scenario, backend: Backend) -> Result<(), RunError> {
    check_with(scenario, backend)?;
    scenario.points().iter().map(|point| &point.scenario).try_for_each(|point| {
        let built = Simulation::new(point, point.seed, Detail::Counts, &mut |_| None);
        built.map(|_| ()).map_err(|cause| RunError::Simulator {
            scenario: scenario.origin().to_owned(),
            cause: cause.into(),
        })
    })
}

/// Returns the parameters of a scenario's TCP for which the kernel has no setting, each once, with the
/// kernel's behaviour.
#[must_use]
pub fn unsupported(scenario: &Scenario) -> Vec<String> {
    let all: BTreeSet<String> = scenario
        .points()
        .iter()
        .flat_map(|point| apportion_live::lab::unsupported(&point.scenario))
        .collect();
    all.into_iter().collect()
}

impl Run<'_> {
    /// Sets how often the lab repeats a replication that is not [valid](Results::faults), because the machine
    /// was too busy. The first valid one counts, otherwise the least late. Default: [`RETRIES`].
    pub fn retries(mut self, count: u64) -> Self {
        self.retries = count;
        self
    }

    /// Sets the backend of the queues of watched links in the [lab](Self::lab): the engine or the kernel;
    /// call [`enter_with`] first. Default: the engine.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.backend = backend;
        self
    }

    /// Runs the scenario over the TCP of this machine, one replication after another in real time; call
    /// [`enter`] first. [`jobs`](Self::jobs) has no effect, nothing is captured, and no events are reported
    /// except to [the page](Self::watch), which shows each attempt anew.
    ///
    /// # Errors
    /// If the run is [too large](Self::force), or the lab cannot run the scenario or fails; the error
    /// contains the replications finished before, which are also in the folder. If the folder cannot be
    /// written, the error contains all results.
    pub fn lab(&self) -> Result<Results, RunError> {
        self.check_real_time()?;
        self.folder.as_deref().map(apportion_report::check).transpose()?;
        check_with(self.scenario, self.backend)?;
        self.events.begin(self.scenario.title(), self.scenario.points().len() * self.seeds as usize);
        let (results, failed) = self.in_real_time();
        self.events.end(failed.is_none() && results.is_complete());
        // The replications finished before a failure took real time: they are kept.
        let folder = self.folder.as_deref().filter(|_| !results.is_empty());
        let results = match folder.map(|folder| results.write(folder)).transpose() {
            Err(cause) => return Err(RunError::Unwritten { cause, finished: Box::new(results) }),
            Ok(None) => results,
            Ok(Some(folder)) => results.written(folder),
        };
        match failed {
            Some(cause) => Err(lab_failed(self.scenario, cause, Some(results))),
            None => Ok(results),
        }
    }

    /// Returns an error for a run of more than a day in real time, and for a run that would be too large for
    /// the simulator: in the lab packets take more time, and flows more memory.
    fn check_real_time(&self) -> Result<(), RunError> {
        let points = self.scenario.points().iter();
        let once: f64 = points.map(|point| point.scenario.stop.as_secs_f64()).sum();
        let seconds = once * self.seeds as f64;
        if seconds > MAX_SECONDS && !self.force {
            return Err(RunError::TooLong { scenario: self.scenario.origin().to_owned(), seconds });
        }
        self.check_size()
    }

    /// Returns the finished replications, and the failure that ended the run, if any.
    fn in_real_time(&self) -> (Results, Option<LabError>) {
        let seeds = self.seeds_of_points();
        let begun = Begun::now();
        let counter = Counter::new(self.progress.as_ref(), seeds.iter().map(Vec::len).sum());
        let mut collector = Collector::new(self.scenario, None, Retain::Full, false);
        let (queues, mut failed) = match queues_of(self.backend) {
            Ok(queues) => (queues, None),
            Err(cause) => (None, Some(cause)),
        };
        // Real time is not shared: two concurrent runs would disturb each other.
        for (at, (point, seeds)) in self.scenario.points().iter().zip(&seeds).enumerate() {
            for &seed in seeds {
                let is_over = failed.is_some() || self.cancel.is_cancelled();
                let follow = || self.events.watch.map(|watch| watch.follower(point, seed));
                let run = || until_valid(&point.scenario, seed, self.retries, &follow, queues, &self.cancel);
                let outcome = if is_over { Ok(None) } else { run() }.unwrap_or_else(|error| {
                    failed = Some(error);
                    None
                });
                if outcome.is_some() {
                    self.events.step();
                }
                let added =
                    collector.add(at, outcome.map(|outcome| Measurement::Outcome(Box::new(outcome))), None);
                debug_assert!(added.is_ok(), "nothing is written");
                counter.step(0.0);
            }
        }
        let (mut record, _) = collector.finish(seeds.into_iter().next().unwrap_or_default());
        record.versions = versions(true);
        if self.backend == Backend::Kernel {
            // The implementation of the disciplines depends on the kernel.
            record.versions.insert("queues of watched links by".to_owned(), "kernel".to_owned());
        }
        (Results::new(record, begun.end(0), None, None), failed)
    }

    /// Runs the scenario in the lab and, with at least ten seeds, in the simulator, and compares the two;
    /// call [`enter`] first. A [folder](Self::folder) gets the results of both, in `lab/` and `sim/`.
    ///
    /// # Errors
    /// As for [`lab`](Self::lab) and [`simulate`](Self::simulate).
    pub fn parity(&self) -> Result<ParityResults, RunError> {
        let seeds = self.seeds.max(SIMULATED);
        let sim =
            Run::new(self.scenario).seeds(seeds).phase_check(false).cancel(&self.cancel).force(self.force);
        // A run that is too large for the simulator must not take hours of real time first.
        self.check_real_time().and_then(|()| sim.check_size())?;
        let folder = |backend: &str| self.folder.as_ref().map(|folder| folder.join(backend));
        let folders = [folder("lab"), folder("sim")];
        folders.iter().flatten().try_for_each(|folder| apportion_report::check(folder))?;
        check_parity(self.scenario, self.backend)?;
        let (lab, failed) = self.in_real_time();
        if let Some(cause) = failed {
            return Err(lab_failed(self.scenario, cause, Some(lab)));
        }
        let sim = sim.simulate()?;
        for (folder, results) in folders.iter().zip([&lab, &sim]) {
            let folder = folder.as_deref().filter(|_| !results.is_empty());
            folder.map(|folder| results.write(folder)).transpose()?;
        }
        let is_complete = lab.is_complete() && sim.is_complete();
        let parity = is_complete.then(|| Parity::new(sim.record(), lab.record(), TOLERANCES));
        Ok(ParityResults { lab, sim, parity })
    }
}

/// Runs a replication until it is valid, with at most this number of retries; returns the least late one if
/// none is valid, and none if it was cancelled. A page shows each attempt anew, if `follow` says so.
pub(crate) fn until_valid<'f>(
    scenario: &model::Scenario,
    seed: u64,
    retries: u64,
    follow: &dyn Fn() -> Option<Follower<'f>>,
    queues: Option<&dyn QueueBackend>,
    cancel: &Cancel,
) -> Result<Option<Outcome>, LabError> {
    let mut best: Option<Outcome> = None;
    for attempt in 1..=retries.saturating_add(1) {
        let follower = follow();
        let sampled = |samples: &Samples<'_>| {
            if let Some(follower) = &follower {
                follower.sampled(samples);
            }
        };
        let on_sample = follower.is_some().then_some(&sampled as OnSample<'_>);
        let run = apportion_live::lab::run_with(scenario, seed, &Extras { on_sample, queues }, cancel.flag());
        let is_valid = matches!(&run, Ok(Some(outcome)) if outcome.fault().is_none());
        if let Some(follower) = &follower {
            follower.end(match &run {
                Ok(Some(_)) if is_valid || attempt > retries => Stand::Ended,
                Ok(Some(_)) => Stand::Late,
                _ => Stand::Cut,
            });
        }
        let Some(outcome) = run? else { return Ok(None) };
        if is_valid || best.as_ref().is_none_or(|best| late(&outcome) < late(best)) {
            best = Some(outcome);
        }
        if let Some(kept) = best.as_mut().and_then(|best| best.timekeeping.as_mut()) {
            kept.attempts = attempt;
        }
        if is_valid {
            break;
        }
    }
    Ok(best)
}

/// Returns the lateness that 1 % of the packets exceeded.
fn late(outcome: &Outcome) -> Option<Span> {
    outcome.timekeeping.as_ref()?.lateness.quantile(0.99)
}

/// The results of a scenario in the lab and in the simulator.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ParityResults {
    /// The results of the lab.
    pub lab: Results,
    /// The results of the simulator.
    pub sim: Results,
    /// The comparison, with the tolerances of `docs/parity.md`; none if the run was cancelled.
    pub parity: Option<Parity>,
}
