//! `run.json`: what was run, and how.

use std::collections::BTreeMap;

use apportion_core::units::{Span, Time};
use apportion_runtime::outcome::{Cause, CpuUse, Outcome, ThreadUse};
use serde::{Deserialize, Serialize};

use crate::run_results::{Cut, RunResults, fault_of};
use crate::units::{self, round6};

/// Identifies the format of `run.json`; the number changes when an older reader would misread it.
pub(super) const FORMAT: &str = "apportion-run/7";

/// The circumstances of a run: the only part of the results that differs when it is repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of the program.
    pub version: String,
    /// The commit of its sources, with `+` if they were changed; empty if it was not built from a repository.
    pub commit: String,
    /// Hash of the sources that results depend on.
    pub build: String,
    /// The target and profile of its build, for example `x86_64-unknown-linux-gnu release`.
    pub target: String,
    /// The name of the machine.
    pub host: String,
    /// The kernel of the machine.
    pub kernel: String,
    /// The command line.
    pub command: Vec<String>,
    /// Simulations, perturbed copies included, that were taken from the cache.
    pub reused: u64,
    /// Time from the start to the end of the run, s.
    pub wall_s: f64,
    /// CPU time on all cores, s; null if the system does not report it.
    pub cpu_s: Option<f64>,
}

/// The content of `run.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) format: String,
    pub(super) title: String,
    pub(super) complete: bool,
    pub(super) valid: bool,
    pub(super) faults: Vec<String>,
    /// Runs of earlier versions have none.
    #[serde(default)]
    pub(super) warnings: Vec<String>,
    pub(super) hash: String,
    pub(super) versions: BTreeMap<String, String>,
    /// In decimal: numbers of JSON are exact to 53 bits in many readers.
    pub(super) seeds: Vec<String>,
    pub(super) points: Vec<HeadPoint>,
    pub(super) scenario: String,
    /// The SHA-256 of each table's file, in hexadecimal.
    pub(super) tables: BTreeMap<String, String>,
    pub(super) made: Provenance,
}

#[derive(Serialize, Deserialize)]
pub(super) struct HeadPoint {
    pub(super) label: String,
    pub(super) settings: Vec<(String, String)>,
    pub(super) seeds_done: Vec<String>,
    pub(super) measure_from_s: f64,
    pub(super) measured_s: f64,
    pub(super) sample_s: f64,
    /// The simulated time at which its only replication was cut, and when it would have ended; absent if it
    /// was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cut_s: Option<[f64; 2]>,
    /// Timekeeping of each replication in real time; empty for simulations.
    in_real_time: Vec<HeadTimekeeping>,
}

/// Timekeeping of a replication in real time.
#[derive(Serialize, Deserialize)]
struct HeadTimekeeping {
    seed: String,
    valid: bool,
    /// Number of attempts.
    attempts: u64,
    lateness_mean_ms: f64,
    lateness_p50_ms: Option<f64>,
    lateness_p99_ms: Option<f64>,
    /// Lateness of the writes of our applications.
    writes_p99_ms: Option<f64>,
    limit_mean_ms: Option<f64>,
    limit_p99_ms: f64,
    /// Shares of the time of all cores.
    cpu: Option<CpuUse>,
    /// Shares of the measured part, for the thread that moved packets and for that of our applications.
    packets: Option<ThreadUse>,
    applications: Option<ThreadUse>,
    /// The cause of lateness; null if it was not late.
    cause: Option<Cause>,
    real_time_scheduling: bool,
    locked_memory: bool,
}

impl HeadPoint {
    pub(super) const fn is_in_real_time(&self) -> bool {
        !self.in_real_time.is_empty()
    }

    /// The cut of the replication.
    pub(super) fn cut(&self) -> Option<Cut> {
        let [at, stop] = self.cut_s?.map(|seconds| Time::ZERO + Span::from_secs_f64(seconds.max(0.0)));
        Some(Cut { at, stop })
    }
}

impl Head {
    pub(super) fn of(run: &RunResults, tables: BTreeMap<String, String>, made: &Provenance) -> Self {
        let points = run.points.iter().map(|point| HeadPoint {
            label: point.label.clone(),
            settings: point.settings.clone(),
            seeds_done: point.summary().seeds.iter().map(u64::to_string).collect(),
            measure_from_s: point.measure_from.as_secs_f64(),
            measured_s: point.summary().measured.map_or(0.0, Span::as_secs_f64),
            sample_s: point.sample.as_secs_f64(),
            cut_s: point.cut.map(|cut| [cut.at, cut.stop].map(Time::as_secs_f64)),
            in_real_time: point.outcomes.iter().filter_map(HeadTimekeeping::of).collect(),
        });
        let faults = run.faults();
        Self {
            format: FORMAT.to_owned(),
            title: run.title.clone(),
            complete: run.complete,
            valid: faults.is_empty(),
            faults,
            warnings: run.warnings.clone(),
            hash: run.hash.clone(),
            versions: run.versions.clone(),
            seeds: run.seeds.iter().map(u64::to_string).collect(),
            points: points.collect(),
            scenario: run.scenario.clone(),
            tables,
            made: made.clone(),
        }
    }
}

impl Head {
    /// Why the replication of a point with this seed is not valid, if so.
    pub(super) fn fault(&self, label: &str, seed: &str) -> Option<String> {
        let of = fault_of(label, seed);
        self.faults.iter().find_map(|fault| fault.strip_prefix(&of)).map(ToOwned::to_owned)
    }
}

/// Milliseconds, rounded as in tables.
fn ms(span: Span) -> f64 {
    round6(units::ms(span))
}

impl HeadTimekeeping {
    fn of(outcome: &Outcome) -> Option<Self> {
        let kept = outcome.timekeeping.as_ref()?;
        Some(Self {
            seed: outcome.seed.to_string(),
            valid: outcome.fault().is_none(),
            attempts: kept.attempts,
            lateness_mean_ms: ms(kept.lateness.mean),
            lateness_p50_ms: kept.lateness.quantile(0.5).map(ms),
            lateness_p99_ms: kept.lateness.quantile(0.99).map(ms),
            writes_p99_ms: kept.writes.quantile(0.99).map(ms),
            limit_mean_ms: kept.mean_limit.map(ms),
            limit_p99_ms: ms(kept.limit),
            cpu: kept.cpu,
            packets: kept.packets,
            applications: kept.applications,
            cause: kept.cause(),
            real_time_scheduling: kept.real_time,
            locked_memory: kept.locked,
        })
    }
}

/// The part of `run.json` that identifies its format.
#[derive(Deserialize)]
pub(super) struct Marker {
    pub(super) format: String,
}
