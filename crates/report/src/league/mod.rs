//! A league: every discipline in every situation, as rows, as text and as a page.
//!
//! A cell holds the metrics of one point of a run. This module computes the metrics that only a league needs
//! from the same rows: the shares of the worst-off and of the best-off flow, R², and losses.
//!
//! | module | holds |
//! |---|---|
//! | `columns` | the columns of tables |
//! | `text` | the league for a terminal |
//! | `page` | the league as one HTML page |
//! | `kit` | the league for a paper: figures and tables in LaTeX |
//! | `stored` | the data of the page as a file, and back |

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metrics::SlowestLink;
use crate::quantities::LeagueFlows;
use crate::rows::{FlowRow, LeagueRow};
use crate::run_results::{PointResults, RunResults, Table};
use crate::statistics::Estimate;

mod columns;
mod kit;
mod page;
mod stored;
mod text;

pub use stored::{FILE, StoredError};

/// Every discipline in every situation.
#[derive(Clone, Debug)]
pub struct League {
    /// Number of replications of each cell.
    pub seeds: u64,
    /// The disciplines to compare.
    pub disciplines: Vec<Entrant>,
    /// The situations to compare them in.
    pub situations: Vec<Situation>,
    /// The command line that runs the league again.
    pub command: String,
    /// The commit of the program that ran it, with `+` if files were changed after it; empty if it is
    /// unknown.
    pub commit: String,
    /// Versions of everything that results depend on, by component.
    pub versions: BTreeMap<String, String>,
}

/// A discipline of a league.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrant {
    /// The name, for example `stfq+pfd`.
    pub name: String,
    /// The queue in the syntax of a scenario.
    pub queue: String,
    /// The same queue with marking enabled, if it can mark and does not by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marking: Option<String>,
    /// Behaviour, a sentence for each part of the discipline.
    pub summary: String,
    /// Time per packet and memory per flow of each of its parts.
    pub cost: String,
    /// Parameters that it needs besides the rate of its link; empty if none.
    pub needs: String,
    /// Counted costs.
    pub counted: Counted,
}

/// The costs of a discipline, as far as they were counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Instructions for a packet that comes and goes, with 1,000 flows, on x86-64.
    pub few: Option<u64>,
    /// Instructions for a packet that comes and goes, with 100,000 flows.
    pub many: Option<u64>,
    /// Bytes for one more flow, from 1,000 to 100,000 flows, with the same number of packets waiting.
    pub bytes: Option<u64>,
}

/// A situation of a league, with a cell for each discipline.
#[derive(Clone, Debug)]
pub struct Situation {
    /// The name, for example `floods`.
    pub name: String,
    /// The title of its scenario.
    pub title: String,
    /// A description for readers.
    pub about: String,
    /// Its scenario; none if it is unknown.
    pub scenario: Option<Around>,
    /// The link whose delays and utilisation are compared; none where no discipline ran.
    pub link: Option<String>,
    /// The groups of its flows, in the order of the scenario.
    pub groups: Vec<String>,
    /// Cells in the order of the disciplines.
    pub cells: Vec<Cell>,
}

/// The scenario of a situation around the queue that each discipline replaces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Around {
    /// The text before the queue.
    pub before: String,
    /// The text after it.
    pub after: String,
    /// Whether queues that can mark do, since flows respond to marks.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marks: bool,
}

/// The result of a discipline in a situation.
#[derive(Clone, Debug)]
pub enum Cell {
    /// The discipline cannot run there, for this reason.
    Empty(String),
    /// The discipline ran.
    Played(Played),
}

/// The measurements of a discipline in a situation.
#[derive(Clone, Debug)]
pub struct Played {
    measured: Vec<CellMetric>,
    /// Whether moving every delay by 1 µs changes its numbers by more than chance.
    pub depends_on_phases: bool,
    /// The page of this cell, relative to that of the league; none if it was not written.
    pub report: Option<String>,
}

/// A metric of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellMetric {
    /// The name, for example `delay_p95_ms/call`: the quantity, then the group or link unless it is over all.
    pub name: String,
    /// The unit; empty if there is none.
    pub unit: String,
    /// The mean and its interval.
    pub estimate: Estimate,
}

impl League {
    /// The cell of a discipline in a situation, by their names.
    #[must_use]
    pub fn cell(&self, discipline: &str, situation: &str) -> Option<&Cell> {
        let at = self.disciplines.iter().position(|entrant| entrant.name == discipline)?;
        self.situations.iter().find(|of| of.name == situation)?.cells.get(at)
    }

    /// The league with only these disciplines and situations, in this order; all if none are named.
    ///
    /// # Errors
    /// If the league has none of a name.
    pub fn only(self, disciplines: &[String], situations: &[String]) -> Result<Self, Missing> {
        let names: Vec<&str> = self.disciplines.iter().map(|entrant| entrant.name.as_str()).collect();
        let kept = places("discipline", &names, disciplines)?;
        let names: Vec<&str> = self.situations.iter().map(|situation| situation.name.as_str()).collect();
        let wanted = places("situation", &names, situations)?;
        let of = |situation: &Situation| Situation {
            cells: kept.iter().filter_map(|&at| situation.cells.get(at).cloned()).collect(),
            ..situation.clone()
        };
        Ok(Self {
            disciplines: kept.iter().map(|&at| self.disciplines[at].clone()).collect(),
            situations: wanted.iter().map(|&at| of(&self.situations[at])).collect(),
            ..self
        })
    }

    /// All metrics of all cells: by situation, then by discipline. An empty cell is a row without a metric.
    #[must_use]
    pub fn rows(&self) -> Vec<LeagueRow> {
        let mut rows = Vec::new();
        for situation in &self.situations {
            for (entrant, cell) in self.disciplines.iter().zip(&situation.cells) {
                let row = |metric: &str, unit: &str, measured: Option<Estimate>, reason| LeagueRow {
                    situation: situation.name.clone(),
                    discipline: entrant.name.clone(),
                    metric: metric.to_owned(),
                    unit: unit.to_owned(),
                    seeds: measured.map_or(0, |measured| measured.n as u64),
                    mean: measured.map(|measured| measured.mean),
                    half_width: measured.and_then(|measured| measured.ci95),
                    reason,
                };
                match cell {
                    Cell::Empty(reason) => rows.push(row("", "", None, Some(reason.clone()))),
                    Cell::Played(played) => {
                        rows.extend(
                            played.metrics().map(|of| row(&of.name, &of.unit, Some(of.estimate), None)),
                        );
                    }
                }
            }
        }
        rows
    }
}

/// The league has nothing of this name.
#[derive(Debug, thiserror::Error)]
#[error("the league has no {what} `{name}`; it has {known}")]
pub struct Missing {
    what: &'static str,
    name: String,
    known: String,
}

/// The indices of the wanted names, each once; all if there are none.
fn places(what: &'static str, names: &[&str], wanted: &[String]) -> Result<Vec<usize>, Missing> {
    if wanted.is_empty() {
        return Ok((0..names.len()).collect());
    }
    let mut places = Vec::new();
    for name in wanted {
        let missing = || Missing { what, name: name.clone(), known: names.join(", ") };
        let at = names.iter().position(|known| known == name).ok_or_else(missing)?;
        if !places.contains(&at) {
            places.push(at);
        }
    }
    Ok(places)
}

impl Situation {
    /// A situation that was run: `played` are the points of the run for the disciplines that can run, in
    /// their order; the others have a reason why they cannot.
    #[must_use]
    pub fn of(
        [name, title, about]: [String; 3],
        scenario: Option<Around>,
        obstacles: Vec<Option<String>>,
        played: &[PointResults],
    ) -> Self {
        let link = SlowestLink::of(played.iter().map(|point| &point.summary().metrics));
        let mut groups: Vec<String> = Vec::new();
        for flow in played.first().into_iter().flat_map(|point| &point.flows) {
            if !groups.contains(&flow.group) {
                groups.push(flow.group.clone());
            }
        }
        let mut points = played.iter();
        let missing = || Cell::Empty("it was not run".to_owned());
        let cell = |obstacle: Option<String>| match obstacle {
            Some(reason) => Cell::Empty(reason),
            None => points.next().map_or_else(missing, |point| Cell::Played(Played::of(point))),
        };
        let link = link.map(|link| link.name.to_owned());
        Self { name, title, about, scenario, link, groups, cells: obstacles.into_iter().map(cell).collect() }
    }
}

impl Around {
    /// The scenario of the cell of a discipline.
    #[must_use]
    pub fn with(&self, entrant: &Entrant) -> String {
        let Self { before, after, marks } = self;
        let queue = entrant.marking.as_ref().filter(|_| *marks).unwrap_or(&entrant.queue);
        format!("{before}{queue}{after}")
    }
}

impl Cell {
    /// The measurements; none for an empty cell.
    #[must_use]
    pub const fn played(&self) -> Option<&Played> {
        match self {
            Self::Empty(_) => None,
            Self::Played(played) => Some(played),
        }
    }

    /// Why the cell is empty; none if it is not.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Empty(reason) => Some(reason),
            Self::Played(_) => None,
        }
    }
}

impl Played {
    fn of(point: &PointResults) -> Self {
        let mut metrics = point.summary().metrics.clone();
        let transfers: Vec<String> = metrics.transfers().map(str::to_owned).collect();
        if !transfers.is_empty() {
            metrics.forget_jain();
        }
        let flows: Vec<FlowRow> = FlowRow::of_point(point).collect();
        for replication in flows.chunk_by(|a, b| a.seed == b.seed) {
            let of = LeagueFlows::new(replication, &transfers);
            if !transfers.is_empty() {
                metrics.add_jain(&of);
            }
            metrics.add_shares(&of);
        }
        let measured = metrics.iter().filter_map(|metric| {
            let estimate = metric.estimate()?;
            Some(CellMetric { name: metric.name.clone(), unit: metric.unit.to_owned(), estimate })
        });
        let depends_on_phases = point.phase_sensitivity.iter().any(|row| row.significant);
        Self { measured: measured.collect(), depends_on_phases, report: None }
    }

    /// The metrics: those of any run, then those of a league.
    pub fn metrics(&self) -> impl Iterator<Item = &CellMetric> {
        self.measured.iter()
    }

    fn measured(&self, name: &str) -> Option<&CellMetric> {
        self.measured.iter().find(|metric| metric.name == name)
    }

    /// The mean and interval of the metric called `name`, for example `worst_share` or `delay_p95_ms/call`;
    /// none if it was not measured.
    #[must_use]
    pub fn metric(&self, name: &str) -> Option<Estimate> {
        self.measured(name).map(|metric| metric.estimate)
    }
}

/// The results of one point as a run of its own, for a page.
#[must_use]
pub fn alone(
    run: &RunResults,
    at: usize,
    title: String,
    scenario: String,
    hash: String,
    warnings: Vec<String>,
) -> RunResults {
    RunResults {
        title,
        scenario,
        hash,
        versions: run.versions.clone(),
        seeds: run.seeds.clone(),
        complete: run.complete,
        warnings,
        points: run.points.get(at).cloned().into_iter().collect(),
    }
}
