//! Links that run ahead of the others, or make up for what was due, give what links give that do each thing at its time.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::outcome::Outcome;
use apportion_runtime::probe::{FlowProbe, LinkSample};
use apportion_scenario::model::Scenario;
use apportion_sim::observer::Observer;
use apportion_sim::{Detail, Simulation};

/// Whoever observes a run sees everything in the order of time: no link runs ahead.
struct Silent;

impl Observer for Silent {
    fn dropped(&self, _: Time, _: usize, _: Option<usize>, _: Bytes, _: Option<DropReason>) {}
    fn marked(&self, _: Time, _: usize, _: Option<usize>, _: Bytes) {}
    fn sampled(&self, _: Time, _: &[FlowProbe], _: &[(usize, LinkSample)]) {}
}

fn outcome(scenario: &Scenario, in_order: bool) -> Outcome {
    let mut simulation = Simulation::new(scenario, scenario.seed, Detail::Full, &mut |_| None).unwrap();
    if in_order {
        simulation.observe(&Silent);
    }
    assert!(simulation.run(&AtomicBool::new(false)));
    simulation.outcome()
}

/// The scenarios of a file, short. None if they cannot be.
fn short(path: &Path, jitter: Option<&str>) -> Vec<Scenario> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut overrides = vec![("stop", "2300ms"), ("measure_from", "900ms")];
    overrides.extend(jitter.map(|jitter| ("defaults.flow.jitter", jitter)));
    let overrides: Vec<_> =
        overrides.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let suite = apportion_scenario::load(&text, path, &overrides, &|path| std::fs::read(path));
    suite.map(|suite| suite.points.into_iter().map(|point| point.scenario).collect()).unwrap_or_default()
}

/// The scenarios in a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// Where two outcomes differ, without the numbers of events.
fn difference(one: Outcome, other: Outcome) -> Option<(String, String)> {
    let [one, other] = [one, other].map(|outcome| format!("{:?}", Outcome { events: 0, ..outcome }));
    let at = one.bytes().zip(other.bytes()).position(|(one, other)| one != other)?;
    let around = |text: &str| text[at.saturating_sub(90)..text.len().min(at + 40)].to_owned();
    Some((around(&one), around(&other)))
}

#[test]
fn links_that_run_ahead_give_what_links_in_order_give() {
    let (mut compared, mut spared) = (0, 0);
    for path in ["scenarios", "papers/pps", "papers/csfq", "validation/theory"].into_iter().flat_map(files) {
        // Without jitter many events are at one time.
        for jitter in [None, Some("0s")] {
            for scenario in short(&path, jitter).iter().take(3) {
                let [ahead, in_order] = [false, true].map(|in_order| outcome(scenario, in_order));
                spared += u64::from(ahead.events < in_order.events);
                if let Some((ahead, in_order)) = difference(ahead, in_order) {
                    panic!("{} with jitter {jitter:?}: ahead {ahead}, in order {in_order}", path.display());
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 60 && spared > compared / 2, "{compared} compared, {spared} with fewer events");
}
