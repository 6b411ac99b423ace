//! `apportion run`: load, simulate, write, summarise.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context as _, anyhow};
use apportion_report::{FlowInfo, PointRecord};
use apportion_scenario::outcome::Outcome;
use apportion_scenario::{Point, Suite, replication_seed};
use apportion_sim::Job;
use apportion_sim::capture::LinkCapture;

use crate::arguments::Run;
use crate::output;
use crate::progress::Progress;

/// Set by an interrupt: runs under way stop, what is finished is kept.
static CANCEL: AtomicBool = AtomicBool::new(false);

pub fn run(arguments: &Run) -> anyhow::Result<ExitCode> {
    let suite = load(arguments)?;
    if arguments.show_config {
        output::print(&suite.canonical)?;
        return Ok(ExitCode::SUCCESS);
    }
    let folder = arguments.out.clone().unwrap_or_else(|| default_folder(&arguments.scenario));
    apportion_report::check(&folder)?;
    // A second interrupt ends the program at once.
    ctrlc::set_handler(|| {
        if CANCEL.swap(true, Ordering::Relaxed) {
            std::process::exit(1);
        }
    })
    .context("cannot listen for interrupts")?;

    let seeds =
        |point: &Point| (0..arguments.seeds).map(|k| replication_seed(point.scenario.seed, k)).collect();
    let seeds: Vec<Vec<u64>> = suite.points.iter().map(seeds).collect();
    let outcomes = simulate(&suite, &seeds, arguments, &folder)?;
    let run = record(&suite, &seeds, outcomes);
    apportion_report::write(&folder, &run)?;
    if arguments.json {
        output::print(&apportion_report::json_lines(&run))?;
    } else if !arguments.quiet {
        let report = folder.join("report.html");
        output::print(&format!("{}report: {}\n", apportion_report::summary(&run), report.display()))?;
    }
    Ok(if run.complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn load(arguments: &Run) -> anyhow::Result<Suite> {
    let path = &arguments.scenario;
    let text = std::fs::read_to_string(path).map_err(|error| {
        anyhow!(
            "{}: cannot read the scenario: {error}; name a TOML file, such as scenarios/quickstart.toml",
            path.display()
        )
    })?;
    apportion_scenario::load(&text, path, &arguments.set, &|path| std::fs::read(path)).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
        anyhow!(lines.join("\n"))
    })
}

fn default_folder(scenario: &Path) -> PathBuf {
    Path::new("results").join(scenario.file_stem().unwrap_or_default())
}

/// Runs every point with each of its seeds; in the order of points, then of seeds.
fn simulate(
    suite: &Suite,
    seeds: &[Vec<u64>],
    arguments: &Run,
    folder: &Path,
) -> anyhow::Result<Vec<Option<Outcome>>> {
    let captures = Captures { folder, failed: Mutex::new(None) };
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
    let progress = Progress::new(jobs.len(), arguments.quiet || arguments.json);
    let outcomes = apportion_sim::replicate(&jobs, arguments.jobs, &|_| progress.step(), &CANCEL);
    progress.finish();
    if let Some(error) = captures.failed.lock().ok().and_then(|mut failed| failed.take()) {
        return Err(error);
    }
    outcomes.with_context(|| arguments.scenario.display().to_string())
}

/// Opens capture files in the folder of results.
struct Captures<'a> {
    folder: &'a Path,
    /// The first file that could not be opened.
    failed: Mutex<Option<anyhow::Error>>,
}

impl Captures<'_> {
    /// Opens the captures of one point: `bottleneck.pcap`, or `2-bottleneck.pcap` for the second of several points.
    fn opener<'a>(
        &'a self,
        at: usize,
        point: &'a Point,
        suite: &Suite,
    ) -> impl Fn(usize) -> Option<Box<LinkCapture>> + Sync {
        let prefix = if suite.points.len() > 1 { format!("{}-", at + 1) } else { String::new() };
        move |link| {
            let link = point.scenario.links.get(link).filter(|link| link.pcap)?;
            let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
            let name: String = link.name.chars().map(safe).collect();
            let path = self.folder.join(format!("{prefix}{name}.pcap"));
            let capture = File::create(&path)
                .map_err(anyhow::Error::from)
                .and_then(|file| Ok(LinkCapture::new(Box::new(BufWriter::new(file)))?));
            match capture {
                Ok(capture) => Some(Box::new(capture)),
                Err(error) => {
                    let error = error.context(format!("cannot write the capture `{}`", path.display()));
                    if let Ok(mut failed) = self.failed.lock() {
                        failed.get_or_insert(error);
                    }
                    None
                }
            }
        }
    }
}

/// What the report is made from.
fn record(suite: &Suite, seeds: &[Vec<u64>], outcomes: Vec<Option<Outcome>>) -> apportion_report::Run {
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
