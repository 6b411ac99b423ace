//! From text to checked scenarios.

use std::path::Path;

use apportion_core::random::mix;
use apportion_core::system::Catalog;

use crate::build::build;
use crate::files::{Files, ReadFile};
use crate::implied;
use crate::listed;
use crate::model::Scenario;
use crate::problem::{Place, Problem, Problems};
use crate::render;
use crate::sweep;
use crate::text::{self, Table};

/// Most flows and links of all points together (chosen: what memory holds).
const MAX_PARTS: usize = 10_000_000;

/// A scenario file: one scenario, or one for each point of its sweep.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The title.
    pub title: String,
    /// Points in the order of the grid: the first axis of the file varies slowest.
    pub points: Vec<Point>,
    /// The file as it was understood: overrides applied, defaults filled in, tables sorted. It loads back to
    /// the same suite. Comments at its end list the buffers of queues without a fixed `limit`.
    pub canonical: String,
    /// Hash of the canonical text without the title: equal for files that differ only in order, comments,
    /// titles and the spelling of values.
    pub hash: u64,
    /// The catalogue it was loaded with.
    catalog: Catalog,
    files: Vec<(String, u64)>,
}

/// One point of a sweep; the only one of a file without a sweep.
#[derive(Clone, Debug)]
pub struct Point {
    /// The label, for example `queue=red, rate=10Mbit`; empty without a sweep.
    pub label: String,
    /// Key paths that are swept, with their values at this point.
    pub settings: Vec<(String, String)>,
    /// The scenario to run.
    pub scenario: Scenario,
    /// The file with this point's values.
    root: Table,
}

impl Suite {
    /// Everything that the results of a replication of a point depend on besides its seed: the
    /// [canonical](Self::canonical) text of that point alone, with the hashes of the files that any point
    /// refers to, without title and seed. The moves of [perturbed copies](Scenario::perturbed) depend on the
    /// scenario's seed as well.
    #[must_use]
    pub fn inputs(&self, point: &Point) -> String {
        render::without(&["title", "seed"], &self.catalog, &point.root, &self.files)
    }

    /// The paths of the files that it refers to, relative to its folder.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.iter().map(|(path, _)| path.as_str())
    }
}

/// The seed of replication `k` of a scenario with `seed`. The first has the seed itself, so that a single run
/// is the run of that seed. Later ones have mixed seeds, so that scenarios with seeds 1 and 2 share no
/// replication.
#[must_use]
pub fn replication_seed(seed: u64, k: u64) -> u64 {
    if k == 0 { seed } else { mix(mix(seed).wrapping_add(k)) }
}

/// Reads and checks a scenario file.
///
/// `origin` is the path for messages, to which files of the scenario are relative; `overrides` are key paths
/// with values, applied before anything is checked; `read` opens the files that the scenario refers to.
///
/// # Errors
/// All problems of the file, in the order of its lines.
pub fn load(
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
    read: ReadFile<'_>,
) -> Result<Suite, Vec<Problem>> {
    load_with(&Catalog::default(), text, origin, overrides, read)
}

/// Like [`load`], with the disciplines of `catalog`: disciplines that a program has registered have their
/// names, keys and parameters in scenarios like all others.
///
/// # Errors
/// All problems of the file, in the order of its lines.
pub fn load_with(
    catalog: &Catalog,
    text: &str,
    origin: &Path,
    overrides: &[(String, String)],
    read: ReadFile<'_>,
) -> Result<Suite, Vec<Problem>> {
    let file = origin.display().to_string();
    let mut problems = Problems::default();
    let mut root = text::parse(text, &mut problems);
    if !problems.is_empty() {
        return Err(problems.into_vec(&file));
    }
    for (path, value) in overrides {
        sweep::set(&mut root, path, value, &mut problems);
    }
    let files = Files::new(origin, read);
    let name =
        origin.file_stem().map_or_else(|| "scenario".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let mut points = Vec::new();
    let mut parts = 0;
    for point in sweep::expand(catalog, &root, &mut problems) {
        let Some(scenario) = build(&point.root, &name, &files, catalog, &mut problems) else { continue };
        parts += scenario.links.len() + scenario.flows.len();
        if parts > MAX_PARTS {
            let message =
                format!("more than {MAX_PARTS} links and flows in all points of the sweep together");
            problems.add(Place::Line(1), "", message);
            break;
        }
        if problems.is_empty() {
            points.push(Point { label: point.label, settings: point.settings, scenario, root: point.root });
        }
    }
    if !problems.is_empty() {
        return Err(problems.into_vec(&file));
    }
    let title = points.first().map_or(name, |point| point.scenario.title.clone());
    let files = files.hashes();
    let (mut canonical, hash) = render::canonical(catalog, &root, &title, &files);
    canonical.push_str(&listed::listed(&points, implied::has_sample(&root)));
    Ok(Suite { title, points, canonical, hash, catalog: catalog.clone(), files })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replications_have_seeds_of_their_own() {
        assert_eq!(replication_seed(7, 0), 7);
        let mut seeds: Vec<_> =
            (1..=20).flat_map(|s| (0..100).map(move |k| replication_seed(s, k))).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 2_000);
    }
}
