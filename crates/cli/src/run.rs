//! `apportion run`: load, simulate, write, summarise.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, anyhow};
use apportion_report::{FlowInfo, PointRecord};
use apportion_runtime::outcome::Outcome;
use apportion_scenario::{Point, Suite, replication_seed};
use apportion_sim::Job;
use apportion_sim::capture::LinkCapture;

use crate::arguments::{Run, Wanted};
use crate::interrupt::{self, CANCEL};
use crate::output;
use crate::progress::Progress;

pub fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    let wanted = &arguments.wanted;
    let suite = load(wanted)?;
    if wanted.show_config {
        output::print(&suite.canonical)?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = wanted.folder("");
    apportion_report::check(&folder)?;
    // What is finished when an interrupt comes is kept.
    interrupt::listen()?;

    let seeds = seeds(&suite, wanted.seeds);
    let captures = Captures::new(&folder);
    let outcomes = simulate(&suite, &seeds, arguments, &captures)?;
    let run = record(&suite, &seeds, outcomes);
    apportion_report::write(&folder, &run)?;
    captures.publish()?;
    tell(&run, &folder, wanted)
}

impl Wanted {
    /// Where results go: where the user says, or to the folder of the scenario's name and `suffix`.
    pub fn folder(&self, suffix: &str) -> PathBuf {
        let name = self.scenario.file_stem().unwrap_or_default().to_string_lossy();
        self.out.clone().unwrap_or_else(|| Path::new("results").join(format!("{name}{suffix}")))
    }
}

/// The seeds of each point.
pub fn seeds(suite: &Suite, count: u64) -> Vec<Vec<u64>> {
    let seeds = |point: &Point| (0..count).map(|k| replication_seed(point.scenario.seed, k)).collect();
    suite.points.iter().map(seeds).collect()
}

/// Prints what came out of a run that has been written to `folder`.
pub fn tell(run: &apportion_report::Run, folder: &Path, wanted: &Wanted) -> anyhow::Result<ExitCode> {
    if wanted.json {
        output::print(&apportion_report::json_lines(run))?;
    } else if !wanted.quiet {
        let report = folder.join("report.html");
        output::print(&format!("{}report: {}\n", apportion_report::summary(run), report.display()))?;
    }
    Ok(if run.complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Reads a scenario file.
pub fn load(wanted: &Wanted) -> anyhow::Result<Suite> {
    let path = &wanted.scenario;
    let text = fs::read_to_string(path).map_err(|error| {
        anyhow!(
            "{}: cannot read the scenario: {error}; name a TOML file, such as scenarios/quickstart.toml",
            path.display()
        )
    })?;
    apportion_scenario::load(&text, path, &wanted.set, &|path| fs::read(path)).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow!(lines.join("\n"))
    })
}

/// Runs every point with each of its seeds; in the order of points, then of seeds.
fn simulate(
    suite: &Suite,
    seeds: &[Vec<u64>],
    arguments: &Run,
    captures: &Captures<'_>,
) -> anyhow::Result<Vec<Option<Outcome>>> {
    let openers: Vec<_> =
        suite.points.iter().enumerate().map(|(at, point)| captures.opener(at, point, suite)).collect();
    let mut jobs = Vec::new();
    for ((point, seeds), opener) in suite.points.iter().zip(seeds).zip(&openers) {
        for (k, seed) in seeds.iter().enumerate() {
            // One replication is captured: the others differ by chance alone and would fill the disk.
            let wanted = k == 0 && point.scenario.links.iter().any(|link| link.pcap);
            let captures = wanted.then_some(opener as &(dyn Fn(usize) -> _ + Sync));
            jobs.push(Job { scenario: &point.scenario, seed: *seed, captures });
        }
    }
    let progress = Progress::new(jobs.len(), arguments.wanted.quiet || arguments.wanted.json);
    let outcomes = apportion_sim::replicate(&jobs, arguments.jobs, &|_| progress.step(), &CANCEL);
    progress.finish();
    if let Some(error) = captures.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
        return Err(error);
    }
    outcomes.with_context(|| arguments.wanted.scenario.display().to_string())
}

/// Capture files in the folder of results. They are written beside their final place and get their names with
/// [`publish`](Self::publish) only, so that a run that fails leaves those of an earlier one as they were.
struct Captures<'a> {
    folder: &'a Path,
    /// Names of files under way.
    staged: Mutex<Vec<String>>,
    /// The first file that could not be opened.
    failed: Mutex<Option<anyhow::Error>>,
}

impl<'a> Captures<'a> {
    fn new(folder: &'a Path) -> Self {
        Self { folder, staged: Mutex::default(), failed: Mutex::default() }
    }

    /// Hidden, with the ending by which folders of results know what an interrupted write left.
    fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(format!(".{name}.partial"))
    }

    /// Gives all files their names.
    fn publish(&self) -> anyhow::Result<()> {
        for name in self.take_staged() {
            let path = self.folder.join(&name);
            fs::rename(self.partial(&name), &path)
                .with_context(|| format!("cannot write the capture `{}`", path.display()))?;
        }
        Ok(())
    }

    fn stage(&self, name: String) -> anyhow::Result<()> {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        anyhow::ensure!(!staged.contains(&name), "two links write to it; give one of them another name");
        staged.push(name);
        Ok(())
    }

    fn take_staged(&self) -> Vec<String> {
        std::mem::take(&mut *self.staged.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the captures of one point: `bottleneck.pcap`, or `2-bottleneck.pcap` for the second of several
    /// points.
    fn opener(
        &self,
        at: usize,
        point: &'a Point,
        suite: &Suite,
    ) -> impl Fn(usize) -> Option<Box<LinkCapture>> + Sync {
        let prefix = if suite.points.len() > 1 { format!("{}-", at + 1) } else { String::new() };
        move |link| {
            let link = point.scenario.links.get(link).filter(|link| link.pcap)?;
            let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
            let name: String = link.name.chars().map(safe).collect();
            let name = format!("{prefix}{name}.pcap");
            let path = self.folder.join(&name);
            let partial = self.partial(&name);
            let capture = self
                .stage(name)
                .and_then(|()| Ok(File::create(partial)?))
                .and_then(|file| Ok(LinkCapture::new(Box::new(BufWriter::new(file)))?));
            match capture {
                Ok(capture) => Some(Box::new(capture)),
                Err(error) => {
                    let error = error.context(format!("cannot write the capture `{}`", path.display()));
                    self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    None
                }
            }
        }
    }
}

impl Drop for Captures<'_> {
    /// Removes the files of a run that failed.
    fn drop(&mut self) {
        for name in self.take_staged() {
            // One that could not be created cannot be removed.
            let _ = fs::remove_file(self.partial(&name));
        }
    }
}

/// What the report is made from.
pub fn record(suite: &Suite, seeds: &[Vec<u64>], outcomes: Vec<Option<Outcome>>) -> apportion_report::Run {
    let complete = outcomes.iter().all(Option::is_some);
    let mut outcomes = outcomes.into_iter();
    let points = suite.points.iter().zip(seeds).map(|(point, seeds)| {
        let entitlements = point.scenario.entitlements();
        let flow = |(at, flow): (usize, &apportion_scenario::model::Flow)| FlowInfo {
            name: flow.name.clone(),
            group: flow.group.clone(),
            entitlement: entitlements.as_ref().and_then(|all| all.get(at).copied()),
        };
        PointRecord {
            label: point.label.clone(),
            settings: point.settings.clone(),
            measure_from: point.scenario.measure_from,
            sample: point.scenario.sample,
            flows: point.scenario.flows.iter().enumerate().map(flow).collect(),
            outcomes: outcomes.by_ref().take(seeds.len()).flatten().collect(),
        }
    });
    apportion_report::Run {
        title: suite.title.clone(),
        scenario: suite.canonical.clone(),
        hash: format!("{:016x}", suite.hash),
        versions: BTreeMap::from([("apportion".to_owned(), env!("CARGO_PKG_VERSION").to_owned())]),
        points: points.collect(),
        seeds: seeds.first().cloned().unwrap_or_default(),
        complete,
    }
}
