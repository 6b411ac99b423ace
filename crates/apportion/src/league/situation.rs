//! The situations of a league: scenario files in which a discipline replaces the queue.

use std::ops::Range;

use apportion_core::system::Catalog;
use apportion_report::file_name;
use apportion_report::league::Around;
use toml::de::{DeTable, DeValue};

use super::built_in::{built_in, files_of, text_of};
use super::discipline::Discipline;
use super::error::LeagueError;
use crate::scenario::{Scenario, ScenarioBuilder, ScenarioError};

/// The names of the situations with the texts of their files.
const SITUATIONS: &[(&str, &str)] = built_in! {
    "league":
    "home-uplink" "customers-50" "customers-500" "satellite" "varying-rate" "floods" "round-trips" "mixed-tcp" "mixed-l4s" "video-and-calls"
    "video-calls"
    "media-overload" "short-flows" "web-pages" "core" "partial" "pushback" "guarantees" "guarantees-radio" "weights" "weighted-l4s" "tickets"
    "unknown-rate" "losses-downstream"
};

/// The situations whose routers may keep no per-flow state, which a scenario file cannot express.
const STATELESS: [&str; 2] = ["core", "tickets"];

/// Returns the situations of a league: names with the texts of their scenario files.
///
/// ```
/// assert!(apportion::situations().any(|(name, text)| name == "floods" && text.contains("[flow.tcp]")));
/// ```
pub fn situations() -> impl Iterator<Item = (&'static str, &'static str)> {
    SITUATIONS.iter().copied()
}

/// A situation in which disciplines run.
pub(super) struct Situation {
    pub name: String,
    /// The description at the top of its file.
    pub about: String,
    /// The scenario as in its file.
    pub base: Scenario,
    pub is_stateless: bool,
    /// The path of the key that the discipline replaces.
    queue: String,
}

impl Situation {
    /// Returns the scenario with this queue, or with this list of queues.
    pub fn with(&self, queue: &str) -> Result<Scenario, ScenarioError> {
        self.base.set(&self.queue, queue)
    }

    /// Returns the scenario with this discipline.
    pub fn with_discipline(&self, discipline: &Discipline) -> Result<Scenario, ScenarioError> {
        self.with(discipline.queue_where(self.has_marks()))
    }

    /// Returns the text of the scenario around the queue: as it was written, unless values were set.
    pub fn around(&self) -> Option<Around> {
        let text = match self.base.source() {
            (text, []) => text,
            _ => self.base.canonical(),
        };
        let place = queues(text).ok()?.into_iter().find(|place| place.path == self.queue)?;
        let part = |part: &str| part.replace("\r\n", "\n");
        let (before, after) = (part(text.get(..place.span.start)?), part(text.get(place.span.end..)?));
        Some(Around { before, after, marks: self.has_marks() })
    }

    /// Whether a flow responds to marks, so that marking is enabled in queues that can mark.
    pub fn has_marks(&self) -> bool {
        let mut flows = self.base.points().iter().flat_map(|point| &point.scenario.flows);
        flows.any(|flow| flow.settings.transport.offers_ecn())
    }
}

/// Returns the named situations, then the caller's own; if there are neither, all built-in ones.
pub(super) fn all(
    names: &[String],
    own: &[(String, Scenario)],
    catalog: &Catalog,
) -> Result<Vec<Situation>, LeagueError> {
    let built_in = || situations().map(|(name, _)| name.to_owned());
    let wanted: Vec<String> = match names.is_empty() && own.is_empty() {
        true => built_in().collect(),
        false => names.iter().flat_map(|name| files_of(name)).collect(),
    };
    let named = wanted.iter().map(|name| (name, read(name, catalog)));
    let own = own.iter().map(|(name, scenario)| (name, of_scenario(name, scenario, catalog)));
    let mut all: Vec<Situation> = Vec::new();
    for (name, situation) in named.chain(own) {
        let situation = situation?;
        match all.iter().find(|other| other.name == situation.name) {
            Some(other) if other.base.canonical() == situation.base.canonical() => (),
            Some(_) => {
                let cause = "another situation has this name; rename the file".to_owned();
                return Err(LeagueError::Situation { name: name.clone(), cause });
            }
            None => all.push(situation),
        }
    }
    Ok(all)
}

fn read(name: &str, catalog: &Catalog) -> Result<Situation, LeagueError> {
    let refuse = |cause: String| LeagueError::Situation { name: name.to_owned(), cause };
    let (text, short, is_known) = text_of(name, "situation", SITUATIONS, "league").map_err(refuse)?;
    let builder = match is_known {
        true => ScenarioBuilder::from_text(text.clone()).origin(format!("{name}.toml")),
        false => ScenarioBuilder::from_file(name),
    };
    let base = builder.catalog(catalog).load().map_err(Box::new)?;
    let queue = place(&text, &[]).map_err(|cause| refuse(cause.to_owned()))?;
    let is_stateless = is_known && STATELESS.contains(&name);
    Ok(Situation { name: short, about: about(&text), base, is_stateless, queue })
}

/// Creates a situation from the caller's scenario, which may have been created before a discipline of the
/// league was registered.
pub(super) fn of_scenario(
    name: &str,
    scenario: &Scenario,
    catalog: &Catalog,
) -> Result<Situation, LeagueError> {
    let refuse = |cause: &str| LeagueError::Situation { name: name.to_owned(), cause: cause.to_owned() };
    let is_file_name = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.starts_with('.') || !name.chars().all(is_file_name) || file_name(name) != name
    {
        return Err(refuse("its name is one of a folder: letters, digits, `_`, `-` and `.` within it"));
    }
    let (text, settings) = scenario.source();
    let queue = place(text, settings).map_err(refuse)?;
    let base = scenario.edit().catalog(catalog).load().map_err(Box::new)?;
    Ok(Situation { name: name.to_owned(), about: about(text), base, is_stateless: false, queue })
}

/// Returns the path of the key that holds the disciplines: the only list of queues, or the only queue, of a
/// text with these values set.
fn place(text: &str, settings: &[(String, String)]) -> Result<String, &'static str> {
    let mut found: Vec<_> = queues(text)?.into_iter().map(|queue| (queue.path, queue.is_list)).collect();
    for (path, value) in settings.iter().filter(|(path, _)| path.ends_with(".queue")) {
        found.retain(|(known, _)| known != path);
        found.push((path.clone(), value.trim_start().starts_with('[')));
    }
    let lists: Vec<&String> = found.iter().filter(|(_, is_list)| *is_list).map(|(path, _)| path).collect();
    match (lists.as_slice(), found.as_slice()) {
        ([only], _) => Ok((*only).clone()),
        ([], [(only, _)]) => Ok(only.clone()),
        ([], []) => Err("it has no key `queue`; write queue = \"fifo\" where the disciplines belong"),
        ([], _) => Err(
            "it has several queues; write a list, such as queue = [\"fifo\", \"drr\"], where the disciplines belong",
        ),
        _ => Err("it has several lists of queues; leave one where the disciplines belong"),
    }
}

/// A value of a key `queue`.
struct Queue {
    path: String,
    /// Where the value is in the text, in bytes.
    span: Range<usize>,
    is_list: bool,
}

/// Returns the queues of a text.
fn queues(text: &str) -> Result<Vec<Queue>, &'static str> {
    let table = DeTable::parse(text).map_err(|_| "it is no TOML")?;
    let mut found = Vec::new();
    find(table.get_ref(), "", &mut found);
    Ok(found)
}

fn find(table: &DeTable<'_>, path: &str, found: &mut Vec<Queue>) {
    for (key, value) in table {
        let key = key.get_ref();
        let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
        match value.get_ref() {
            of if key == "queue" => found.push(Queue { path, span: value.span(), is_list: of.is_array() }),
            DeValue::Table(inner) => find(inner, &path, found),
            _ => (),
        }
    }
}

/// Returns the comment at the top of a file, as one line.
pub(super) fn about(text: &str) -> String {
    let lines = text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
    lines.collect::<Vec<_>>().join(" ").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_situation_of_the_folder_is_built_in() {
        assert_eq!(super::super::built_in::sorted(SITUATIONS), super::super::built_in::files("league"));
    }

    #[test]
    fn a_folder_stands_for_its_files() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios/rfc7928");
        let names = [folder.display().to_string(), "floods".to_owned()];
        let names =
            all(&names, &[], &Catalog::default()).unwrap().into_iter().map(|situation| situation.name);
        let names: Vec<_> = names.collect();
        assert_eq!((names.len(), &*names[0], &*names[24]), (25, "10-several-queues", "floods"));
        assert_eq!(files_of("floods"), ["floods"]);
        let empty = tempfile::tempdir().unwrap();
        let empty = empty.path().display().to_string();
        assert_eq!(files_of(&empty), std::slice::from_ref(&empty));
    }

    #[test]
    fn flows_heed_marks_where_senders_offer_it() {
        let names = ["floods", "mixed-tcp", "mixed-l4s"].map(str::to_owned);
        let all = all(&names, &[], &Catalog::default()).unwrap();
        assert_eq!(all.iter().map(Situation::has_marks).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn the_text_around_a_queue_gives_the_scenario_of_every_cell() {
        let catalog = Catalog::default();
        let disciplines = super::super::discipline::all(&catalog, &[]).unwrap();
        let mut cells = 0;
        for situation in all(&[], &[], &catalog).unwrap() {
            let around = situation.around().unwrap();
            let origin = format!("{}.toml", situation.name);
            for discipline in &disciplines {
                let Ok(expected) = situation.with_discipline(discipline) else { continue };
                let text = around.with(&discipline.entrant());
                let found = ScenarioBuilder::from_text(text).origin(&origin).load().unwrap();
                assert_eq!(found.canonical(), expected.canonical());
                cells += 1;
            }
        }
        assert!(cells > 20 * 40, "{cells}");
        // Values that were set are in the text.
        let text = "seed = 1\nstop = \"1s\"\r\nlink.l = { from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"5ms\", queue = \"fifo\" }\n\
            flow.x = { from = \"a\", to = \"b\" }";
        let scenario = Scenario::from_text(text).unwrap().set("stop", "3s").unwrap();
        let own = of_scenario("own", &scenario, &catalog).unwrap();
        let found = Scenario::from_text(own.around().unwrap().with(&disciplines[1].entrant())).unwrap();
        assert_eq!(found.canonical(), own.with_discipline(&disciplines[1]).unwrap().canonical());
    }

    #[test]
    fn disciplines_take_the_place_of_the_only_list_or_of_the_only_queue() {
        assert_eq!(place("[link.a]\nqueue = \"fifo\"", &[]).unwrap(), "link.a.queue");
        let list = "[topology]\nlink = { queue = \"fifo\" }\n[link.b]\nqueue = [\"fifo\"]";
        assert_eq!(place(list, &[]).unwrap(), "link.b.queue");
        assert!(
            place("[link.a]\nqueue = \"fifo\"\n[link.b]\nqueue = \"fifo\"", &[])
                .unwrap_err()
                .contains("several queues")
        );
        let settings = [("link.a.queue".to_owned(), "[\"fifo\", \"drr\"]".to_owned())];
        assert_eq!(
            place("[link.a]\nqueue = \"fifo\"\n[link.b]\nqueue = \"fifo\"", &settings).unwrap(),
            "link.a.queue"
        );
        assert!(place("[link.a]\nrate = \"1Mbit\"", &[]).unwrap_err().contains("no key"));
    }
}
