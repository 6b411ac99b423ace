//! Pairs of services on one link: what each gets next to each other, over its fair share.
//!
//! The protocol of Prudentia (Philip et al., "Prudentia: Findings of an Internet Fairness Watchdog", SIGCOMM
//! 2024). With C the rate of the link and d the throughput of a service alone on it, the max-min fair share of
//! i next to j is f = min(d_i, max(C/2, C - d_j)). The *score* of the incumbent i next to the contender j is its
//! throughput over f; below 1 it loses. The *contentiousness* of j is the mean of the scores next to it, the
//! *sensitivity* of i the mean of its own.

use std::collections::BTreeMap;

use crate::rows::PairRow;
use crate::run_results::PointResults;
use crate::statistics::{mean, nearest_rank};

mod page;
mod text;

/// The prefixes of the names of flows, by the side on which a service is.
pub const SIDES: [&str; 2] = ["incumbent", "contender"];

/// Every pair of services, on links with these rates and disciplines.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// Number of replications of each pair.
    pub seeds: u64,
    /// The length of the part of each simulation that was measured, in seconds.
    pub measured_s: f64,
    /// The services.
    pub services: Vec<Service>,
    /// A grid for each rate and discipline.
    pub grids: Vec<Grid>,
    /// The command line that runs the pairs again.
    pub command: String,
    /// The commit of the program that ran them; empty if it is unknown.
    pub commit: String,
    /// Versions of everything that results depend on, by component.
    pub versions: BTreeMap<String, String>,
}

/// A service: what one side runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name, for example `five-bbr`.
    pub name: String,
    /// A description for readers.
    pub about: String,
    /// Its flows as TOML.
    pub flows: String,
}

/// All pairs on one link.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The rate of the link in Mb/s.
    pub rate_mbps: f64,
    /// The discipline, as it was named.
    pub discipline: String,
    /// What each service gets alone, in Mb/s: the median over replications.
    pub alone_mbps: Vec<f64>,
    /// The median time of pages and files of each service alone, in s: the median over replications. None of a service
    /// without such.
    pub alone_completion_s: Vec<Option<f64>>,
    /// What incumbents get, by contender, then by incumbent.
    cells: Vec<Vec<Cell>>,
}

/// What an incumbent gets next to a contender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Number of replications.
    pub seeds: usize,
    /// Its max-min fair share in Mb/s.
    pub fair_mbps: f64,
    /// Its throughput in Mb/s: median over replications.
    pub throughput_mbps: f64,
    /// The quartiles of throughput over fair share: first, median, third.
    pub score: [f64; 3],
    /// The median time of its pages and files in s: median over replications. None if none was finished.
    pub completion_s: Option<f64>,
    /// 95th percentile of the sojourn time at the link in ms: median over replications.
    pub queue_delay_p95_ms: f64,
}

/// What both sides got in a run, for each replication.
#[derive(Clone, Debug, Default)]
pub struct Meeting {
    /// The throughput of all flows of a side together in Mb/s, by side; empty for a side without flows.
    throughputs_mbps: [Vec<f64>; 2],
    /// The median time of the pages and files of a side in s; empty if none was finished.
    completions_s: [Vec<f64>; 2],
    /// The 95th percentile of the sojourn time at the link in ms.
    queue_delays_p95_ms: Vec<f64>,
}

impl Meeting {
    /// What both sides got at a point of a run.
    #[must_use]
    pub fn of(point: &PointResults) -> Self {
        let delays = point.metrics().find(|metric| metric.name.starts_with("queue_delay_p95_ms/"));
        Self {
            throughputs_mbps: SIDES.map(|side| throughputs(point, side)),
            completions_s: SIDES.map(|side| completions(point, side)),
            queue_delays_p95_ms: delays.map(|delays| delays.samples.clone()).unwrap_or_default(),
        }
    }
}

/// The sum of the throughputs of the flows of a side in Mb/s, for each replication.
fn throughputs(point: &PointResults, side: &str) -> Vec<f64> {
    let mut sums: Vec<f64> = Vec::new();
    for metric in point.metrics() {
        let Some(group) = metric.name.strip_prefix("throughput_mbps/") else { continue };
        if !is_of(group, side) {
            continue;
        }
        let flows = point.flows.iter().filter(|flow| flow.group == group).count() as f64;
        sums.resize(sums.len().max(metric.samples.len()), 0.0);
        sums.iter_mut().zip(&metric.samples).for_each(|(sum, sample)| *sum += sample * flows);
    }
    sums
}

/// The median time of the pages and files of a side in s, for each replication; of several groups, the longest.
fn completions(point: &PointResults, side: &str) -> Vec<f64> {
    let metrics = point.metrics().filter(|metric| {
        metric.name.strip_prefix("completion_p50_s/").is_some_and(|group| is_of(group, side))
    });
    let mut longest: Vec<f64> = Vec::new();
    for metric in metrics {
        longest.resize(longest.len().max(metric.samples.len()), 0.0);
        longest.iter_mut().zip(&metric.samples).for_each(|(of, sample)| *of = of.max(*sample));
    }
    longest
}

/// Whether a group of flows is of a side: `contender-file` is of `contender`.
fn is_of(group: &str, side: &str) -> bool {
    group.strip_prefix(side).is_some_and(|rest| rest.starts_with('-'))
}

/// First quartile, median and third quartile; zeros without samples.
fn quartiles(samples: &[f64]) -> [f64; 3] {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match sorted.len() % 2 {
        0 if middle > 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted.get(middle).copied().unwrap_or(0.0),
    };
    let rank = |share| nearest_rank(&sorted, share).unwrap_or(0.0);
    [rank(0.25), median, rank(0.75)]
}

/// The median; none without samples.
fn median(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| quartiles(samples)[1])
}

impl Grid {
    /// The grid of a link. `alone` has each service alone, as incumbent; `both(i, j)` has service i as incumbent
    /// and j as contender, for i <= j.
    pub fn of<'a>(
        rate_mbps: f64,
        discipline: String,
        alone: &[&Meeting],
        both: impl Fn(usize, usize) -> &'a Meeting,
    ) -> Self {
        let alone_mbps: Vec<f64> = alone.iter().map(|of| quartiles(&of.throughputs_mbps[0])[1]).collect();
        let alone_completion_s = alone.iter().map(|of| median(&of.completions_s[0])).collect();
        let cell = |contender: usize, incumbent: usize| {
            let meeting = both(incumbent.min(contender), incumbent.max(contender));
            // Both sides of a service next to itself count.
            let sides = match incumbent == contender {
                true => 0..2,
                false => usize::from(incumbent > contender)..1 + usize::from(incumbent > contender),
            };
            let of = |samples: &[Vec<f64>; 2]| samples[sides.clone()].concat();
            let got = of(&meeting.throughputs_mbps);
            let seeds = got.len() / sides.len();
            let rest = (rate_mbps - alone_mbps[contender]).max(rate_mbps / 2.0);
            let fair_mbps = alone_mbps[incumbent].min(rest);
            let scores: Vec<f64> = got.iter().map(|got| got / fair_mbps).collect();
            Cell {
                seeds,
                fair_mbps,
                throughput_mbps: quartiles(&got)[1],
                score: quartiles(&scores),
                completion_s: median(&of(&meeting.completions_s)),
                queue_delay_p95_ms: quartiles(&meeting.queue_delays_p95_ms)[1],
            }
        };
        let all = 0..alone.len();
        let cells = all.clone().map(|contender| all.clone().map(|i| cell(contender, i)).collect()).collect();
        Self { rate_mbps, discipline, alone_mbps, alone_completion_s, cells }
    }

    /// What the service `incumbent` gets next to `contender`, by their numbers.
    #[must_use]
    pub fn cell(&self, contender: usize, incumbent: usize) -> Option<&Cell> {
        self.cells.get(contender)?.get(incumbent)
    }

    /// The median score of an incumbent next to a contender.
    fn score(&self, contender: usize, incumbent: usize) -> f64 {
        self.cells[contender][incumbent].score[1]
    }

    /// The mean score of incumbents next to a contender: the lower, the more contentious it is.
    #[must_use]
    pub fn contentiousness(&self, contender: usize) -> f64 {
        mean(&self.others(contender).map(|i| self.score(contender, i)).collect::<Vec<_>>()).unwrap_or(1.0)
    }

    /// The mean score of an incumbent: the lower, the more sensitive it is.
    #[must_use]
    pub fn sensitivity(&self, incumbent: usize) -> f64 {
        mean(&self.others(incumbent).map(|j| self.score(j, incumbent)).collect::<Vec<_>>()).unwrap_or(1.0)
    }

    /// The other services; the service itself if it is the only one.
    fn others(&self, service: usize) -> impl Iterator<Item = usize> + use<> {
        let count = self.cells.len();
        (0..count).filter(move |other| *other != service || count == 1)
    }

    /// The services that have pages or files which end.
    fn with_completions(&self) -> Vec<usize> {
        (0..self.cells.len()).filter(|at| self.alone_completion_s[*at].is_some()).collect()
    }

    /// The pairs of different services by the lower of their two scores, lowest first: score, loser, winner.
    #[must_use]
    pub fn losers(&self) -> Vec<(f64, usize, usize)> {
        let count = self.cells.len();
        let pairs = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j)));
        let loser = |(i, j)| match self.score(j, i) <= self.score(i, j) {
            true => (self.score(j, i), i, j),
            false => (self.score(i, j), j, i),
        };
        let mut losers: Vec<(f64, usize, usize)> = pairs.map(loser).collect();
        losers.sort_by(|a, b| a.0.total_cmp(&b.0));
        losers
    }
}

impl Pairs {
    /// A row for each cell: by rate and discipline, contender, incumbent.
    #[must_use]
    pub fn rows(&self) -> Vec<PairRow> {
        let of = |grid: &Grid, contender: usize, incumbent: usize, cell: &Cell| PairRow {
            rate_mbps: grid.rate_mbps,
            discipline: grid.discipline.clone(),
            contender: self.services[contender].name.clone(),
            incumbent: self.services[incumbent].name.clone(),
            seeds: cell.seeds as u64,
            alone_mbps: grid.alone_mbps[incumbent],
            fair_mbps: cell.fair_mbps,
            throughput_mbps: cell.throughput_mbps,
            score_q1: cell.score[0],
            score: cell.score[1],
            score_q3: cell.score[2],
            alone_completion_p50_s: grid.alone_completion_s[incumbent],
            completion_p50_s: cell.completion_s,
            queue_delay_p95_ms: cell.queue_delay_p95_ms,
        };
        let rows = self.grids.iter().flat_map(|grid| {
            let cells = grid.cells.iter().enumerate();
            cells.flat_map(move |(contender, row)| {
                row.iter().enumerate().map(move |(incumbent, cell)| of(grid, contender, incumbent, cell))
            })
        });
        rows.collect()
    }

    /// For each discipline with two rates or more, Kendall's rank correlation τ of contentiousness at the first
    /// and at the last of them. 1: the order of services is the same; 0: it says nothing; -1: it is reversed.
    #[must_use]
    pub fn rank_correlations(&self) -> Vec<(&str, f64)> {
        let mut found: Vec<(&str, f64)> = Vec::new();
        for first in &self.grids {
            let same = |grid: &&Grid| grid.discipline == first.discipline;
            let last = self.grids.iter().rfind(same).unwrap_or(first);
            let is_new = found.iter().all(|(name, _)| *name != first.discipline);
            if is_new && last.rate_mbps.to_bits() != first.rate_mbps.to_bits() {
                let order = |grid: &Grid| -> Vec<f64> {
                    (0..self.services.len()).map(|service| grid.contentiousness(service)).collect()
                };
                found
                    .extend(kendall(&order(first), &order(last)).map(|tau| (first.discipline.as_str(), tau)));
            }
        }
        found
    }
}

/// Kendall's τ of two lists of the same length: concordant less discordant pairs, over all pairs; none for
/// fewer than two.
fn kendall(a: &[f64], b: &[f64]) -> Option<f64> {
    let mut sum = 0;
    let mut pairs = 0;
    for i in 0..a.len() {
        for j in 0..i {
            pairs += 1;
            sum += a[i].total_cmp(&a[j]) as i64 * b[i].total_cmp(&b[j]) as i64;
        }
    }
    (pairs > 0).then(|| sum as f64 / f64::from(pairs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(score: f64) -> Cell {
        Cell {
            seeds: 1,
            fair_mbps: 4.0,
            throughput_mbps: 4.0 * score,
            score: [score; 3],
            completion_s: None,
            queue_delay_p95_ms: 1.0,
        }
    }

    /// Service 1 takes from 0 and 2; 2 takes from 0.
    fn grid() -> Grid {
        let scores = [[1.0, 1.6, 1.2], [0.4, 1.0, 0.6], [0.8, 1.4, 1.0]];
        let cells = scores.iter().map(|row| row.iter().copied().map(cell).collect()).collect();
        Grid {
            rate_mbps: 8.0,
            discipline: "fifo".to_owned(),
            alone_mbps: vec![8.0; 3],
            alone_completion_s: vec![None; 3],
            cells,
        }
    }

    #[test]
    fn contenders_are_judged_by_what_they_leave_to_others() {
        let grid = grid();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(grid.contentiousness(1), 0.5) && near(grid.contentiousness(0), 1.4));
        assert!(near(grid.sensitivity(0), 0.6) && near(grid.sensitivity(1), 1.5));
        assert_eq!(grid.losers(), [(0.4, 0, 1), (0.6, 2, 1), (0.8, 0, 2)]);
    }

    #[test]
    fn quartiles_of_even_and_odd_counts() {
        assert_eq!(quartiles(&[]), [0.0; 3]);
        assert_eq!(quartiles(&[3.0]), [3.0; 3]);
        assert_eq!(quartiles(&[4.0, 1.0, 3.0, 2.0]), [1.0, 2.5, 3.0]);
    }

    #[test]
    fn kendall_counts_concordant_pairs() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), Some(1.0));
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), Some(-1.0));
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[1.0, 3.0, 2.0]), Some(1.0 / 3.0));
        assert_eq!(kendall(&[1.0], &[1.0]), None);
    }

    #[test]
    fn a_group_is_of_the_side_that_its_name_begins_with() {
        assert!(is_of("incumbent-file", "incumbent") && !is_of("incumbents-x", "incumbent"));
    }
}
