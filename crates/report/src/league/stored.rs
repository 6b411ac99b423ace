//! A league as a file with the data of its page: JSON lines. The first line has everything except the cells.
//! Then each situation has a line of its own, and below it one line for each discipline, in order: the reason
//! why it cannot run there, or its numbers in the order of the situation's metrics. A number is a mean of
//! five digits, half of its interval of four, and the number of seeds in which it was measured, if these are
//! not all.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use apportion_scenario::read_text_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::columns;
use super::{Around, Cell, CellMetric, Entrant, League, Played, Situation};
use crate::statistics::Estimate;
use crate::store::file_name;

/// The name of the file in the folder of a league.
pub const FILE: &str = "league.jsonl";
/// The format that this version writes and reads.
const FORMAT: &str = "apportion-league/1";
/// Maximum bytes of a file. Chosen: a hundred times a league of fifty disciplines in twenty situations.
const MAX_FILE: u64 = 32 << 20;

/// Why a stored league could not be read: where, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot read a league from `{}`: {cause}; name a folder that `apportion league` wrote, or its {FILE}", path.display())]
pub struct StoredError {
    path: std::path::PathBuf,
    cause: String,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: String,
    seeds: u64,
    command: String,
    commit: String,
    versions: BTreeMap<String, String>,
    disciplines: Vec<Entrant>,
    situations: usize,
}

#[derive(Serialize, Deserialize)]
struct Heading {
    name: String,
    title: String,
    about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scenario: Option<Around>,
    link: Option<String>,
    groups: Vec<String>,
    /// Names and units.
    metrics: Vec<(String, String)>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    Reason(String),
    Numbers {
        /// Whether results depend on phases.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        phase_sensitive: bool,
        /// The mean, half of the interval, and the seeds, shortened at the end; empty if it was not measured.
        numbers: Vec<Vec<Option<f64>>>,
    },
}

impl League {
    /// The data of the page, as JSON lines.
    #[must_use]
    pub fn stored(&self) -> String {
        let head = Head {
            format: FORMAT.to_owned(),
            seeds: self.seeds,
            command: self.command.clone(),
            commit: self.commit.clone(),
            versions: self.versions.clone(),
            disciplines: self.disciplines.clone(),
            situations: self.situations.len(),
        };
        let mut out = line(&head);
        for situation in &self.situations {
            let metrics: Vec<(String, String)> =
                columns::of(situation).into_iter().map(|column| unit_of(situation, column.metric)).collect();
            let cells: String = situation
                .cells
                .iter()
                .map(|cell| match cell {
                    Cell::Empty(reason) => line(&Line::Reason(reason.clone())),
                    Cell::Played(played) => {
                        let numbers =
                            metrics.iter().map(|(name, _)| number(played.metric(name), self.seeds)).collect();
                        line(&Line::Numbers { phase_sensitive: played.depends_on_phases, numbers })
                    }
                })
                .collect();
            let Situation { name, title, about, scenario, link, groups, .. } = situation.clone();
            out += &line(&Heading { name, title, about, scenario, link, groups, metrics });
            out += &cells;
        }
        out
    }

    /// Reads a league from its folder, or from the file that [`stored`](Self::stored) makes. Its cells have
    /// no pages.
    ///
    /// # Errors
    /// There is no league, or it is damaged or of another version.
    pub fn load(path: &Path) -> Result<Self, StoredError> {
        let path = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
        let fail = |cause: String| StoredError { path: path.clone(), cause };
        let text = read_text_file(&path, MAX_FILE).map_err(|error| fail(error.to_string()))?;
        of_text(&text).map_err(fail)
    }
}

fn line(of: &impl Serialize) -> String {
    // Names and finite numbers always encode, and numbers that are not finite become null.
    serde_json::to_string(of).unwrap_or_default() + "\n"
}

/// A metric with its unit in the first cell that has it.
fn unit_of(situation: &Situation, metric: String) -> (String, String) {
    let found = columns::played(&situation.cells).find_map(|played| played.measured(&metric));
    let unit = found.map_or_else(String::new, |found| found.unit.clone());
    (metric, unit)
}

/// A number of the file.
fn number(found: Option<Estimate>, seeds: u64) -> Vec<Option<f64>> {
    let Some(Estimate { mean, ci95, n }) = found else { return Vec::new() };
    let mut all = vec![Some(rounded(mean, 5)), ci95.map(|half| rounded(half, 4)), Some(n as f64)];
    if n as u64 == seeds {
        all.truncate(if ci95.is_some() { 2 } else { 1 });
    }
    all
}

/// Rounds to this many digits.
fn rounded(x: f64, digits: usize) -> f64 {
    format!("{x:.*e}", digits - 1).parse().unwrap_or(x)
}

fn of_text(text: &str) -> Result<League, String> {
    let mut lines = (1..).zip(text.lines());
    let head: Head = next(&mut lines)?;
    if head.format != FORMAT {
        return Err(format!("its format is `{}`, not `{FORMAT}`", head.format.escape_debug()));
    }
    if head.seeds == 0 {
        return Err("its `seeds` are 0".to_owned());
    }
    let mut situations = Vec::new();
    // Names of situations are file names in a kit.
    let mut names = BTreeSet::new();
    for _ in 0..head.situations {
        let Heading { name, title, about, scenario, link, groups, metrics } = next(&mut lines)?;
        if name.starts_with('.')
            || name.is_empty()
            || file_name(&name) != name
            || !names.insert(name.to_lowercase())
        {
            return Err(format!(
                "the situation `{}` has no name that a file can have, or another's",
                name.escape_debug()
            ));
        }
        let mut cells = Vec::new();
        for _ in &head.disciplines {
            cells.push(match next(&mut lines)? {
                Line::Reason(reason) => Cell::Empty(reason),
                Line::Numbers { phase_sensitive, numbers } => {
                    check(&numbers, metrics.len())
                        .map_err(|message| format!("`{}`: {message}", name.escape_debug()))?;
                    let measured = metrics.iter().zip(&numbers).filter_map(|((name, unit), number)| {
                        let estimate = estimate(number, head.seeds)?;
                        Some(CellMetric { name: name.clone(), unit: unit.clone(), estimate })
                    });
                    Cell::Played(Played {
                        measured: measured.collect(),
                        depends_on_phases: phase_sensitive,
                        report: None,
                    })
                }
            });
        }
        situations.push(Situation { name, title, about, scenario, link, groups, cells });
    }
    if lines.next().is_some() {
        return Err("it has more lines than its first one says".to_owned());
    }
    let Head { seeds, command, commit, versions, disciplines, .. } = head;
    Ok(League { seeds, disciplines, situations, command, commit, versions })
}

/// Checks that these are the numbers of `metrics` metrics, of a size that can be drawn.
fn check(numbers: &[Vec<Option<f64>>], metrics: usize) -> Result<(), String> {
    const LARGEST: f64 = 1e18;
    if numbers.len() != metrics {
        return Err(format!("{} numbers in place of {metrics}", numbers.len()));
    }
    let is_drawn = |number: &Vec<Option<f64>>| {
        let at = |place: usize| number.get(place).copied().flatten().unwrap_or(0.0);
        at(0).abs() <= LARGEST && (0.0..=LARGEST).contains(&at(1)) && at(2) >= 0.0
    };
    match numbers.iter().find(|number| !is_drawn(number)) {
        Some(number) => Err(format!("{number:?} is no mean with half of an interval")),
        None => Ok(()),
    }
}

/// Parses the next line.
fn next<'a, T: DeserializeOwned>(lines: &mut impl Iterator<Item = (usize, &'a str)>) -> Result<T, String> {
    let (number, line) = lines.next().ok_or("lines are missing at its end")?;
    serde_json::from_str(line).map_err(|error| format!("line {number}: {error}"))
}

fn estimate(number: &[Option<f64>], seeds: u64) -> Option<Estimate> {
    let at = |place: usize| number.get(place).copied().flatten().filter(|x| x.is_finite());
    let n = at(2).map_or(seeds as usize, |n| n as usize);
    Some(Estimate { mean: at(0)?, ci95: at(1), n })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_is_named_as_a_file_can_be_and_as_no_other() {
        let read = |names: &[&str]| {
            let count = names.len();
            let mut text = format!(
                r#"{{"format":"{FORMAT}","seeds":1,"command":"","commit":"","versions":{{}},"disciplines":[],"situations":{count}}}"#
            );
            for name in names {
                let rest = r#""title":"","about":"","link":null,"groups":[],"metrics":[]"#;
                text += &format!("\n{{\"name\":\"{name}\",{rest}}}");
            }
            of_text(&text).map(|league| league.situations.len())
        };
        assert_eq!(read(&["floods", "my office"]), Ok(2));
        assert!(check(&[vec![Some(1.0), Some(0.1)], vec![]], 2).is_ok());
        assert!(check(&[vec![Some(1.0)]], 2).is_err());
        for number in [[Some(-5e300), None], [Some(1.0), Some(-1.0)], [Some(f64::NAN), None]] {
            assert!(check(&[number.to_vec()], 1).is_err(), "{number:?}");
        }
        for names in [
            ["floods", "floods"],
            ["floods", "../x"],
            ["/tmp/x", "y"],
            ["x", ""],
            ["x", ".."],
            ["x", "a:b"],
            ["x", "X"],
        ] {
            let message = read(&names).unwrap_err();
            assert!(message.contains("has no name that a file can have"), "{message}");
        }
    }
}
