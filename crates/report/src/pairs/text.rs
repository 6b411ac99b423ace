//! Pairs of services for a terminal.

use std::fmt::Write as _;

use super::{Grid, Pairs};
use crate::statistics::{mean, number};
use crate::summary::align;

impl Pairs {
    /// A grid of scores for each rate and discipline: incumbents in columns, contenders in rows.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::from(
            "Throughput of the incumbent (column) over its fair share next to the contender (row), median over seeds.\n\n",
        );
        for (number, service) in (1..).zip(&self.services) {
            let _ = writeln!(out, "{number:>3}  {}: {}", service.name, service.about);
        }
        for grid in &self.grids {
            let _ = writeln!(out, "\n{}\n", self.heading(grid));
            out.push_str(&align(&self.table(grid)));
            let _ = writeln!(out, "{}", self.summary(grid));
            if !grid.with_completions().is_empty() {
                let _ = writeln!(out, "\nMedian time of pages and files, s:\n");
                out.push_str(&align(&self.times(grid)));
            }
        }
        for (discipline, tau) in self.rank_correlations() {
            let _ = writeln!(
                out,
                "\n{discipline}: rank correlation of contentiousness at the first and the last rate, Kendall's τ: {tau:.2}"
            );
        }
        out
    }

    pub(super) fn heading(&self, grid: &Grid) -> String {
        format!("{} Mb/s, {}", number(grid.rate_mbps), grid.discipline)
    }

    /// The sentence about the pairs of different services.
    pub(super) fn summary(&self, grid: &Grid) -> String {
        let losers = grid.losers();
        let Some(&(least, loser, winner)) = losers.first() else { return String::new() };
        let scores: Vec<f64> = losers.iter().map(|(score, ..)| *score).collect();
        format!(
            "The lower score of a pair is {:.2} in the mean, and {least:.2} at least ({} next to {}).",
            mean(&scores).unwrap_or(1.0),
            self.services[loser].name,
            self.services[winner].name,
        )
    }

    /// The times of pages and files: incumbents that have such in columns, contenders in rows.
    pub(super) fn times(&self, grid: &Grid) -> Vec<Vec<String>> {
        let with = grid.with_completions();
        let show = |time: Option<f64>| time.map_or_else(|| "none ends".to_owned(), number);
        let row = |name: &str, cell: &dyn Fn(usize) -> String| -> Vec<String> {
            [name.to_owned()].into_iter().chain(with.iter().map(|at| cell(*at))).collect()
        };
        let mut rows = vec![row("Contender", &|at| self.services[at].name.clone())];
        rows.push(row("alone", &|at| show(grid.alone_completion_s[at])));
        for (contender, service) in self.services.iter().enumerate() {
            rows.push(row(&service.name, &|at| show(grid.cells[contender][at].completion_s)));
        }
        rows
    }

    fn table(&self, grid: &Grid) -> Vec<Vec<String>> {
        let all = 0..self.services.len();
        let show = |score: f64| format!("{score:.2}");
        let numbers = all.clone().map(|at| (at + 1).to_string());
        let head = ["Contender".to_owned()].into_iter().chain(numbers).chain(["leaves others".to_owned()]);
        let mut rows = vec![head.collect::<Vec<_>>()];
        for contender in all.clone() {
            let scores = all.clone().map(|incumbent| show(grid.score(contender, incumbent)));
            let name = [self.services[contender].name.clone()];
            rows.push(
                name.into_iter().chain(scores).chain([show(grid.contentiousness(contender))]).collect(),
            );
        }
        let row = |name: &str, of: &dyn Fn(usize) -> String| {
            let cells = all.clone().map(of);
            [name.to_owned()].into_iter().chain(cells).chain([String::new()]).collect()
        };
        rows.push(row("gets next to others", &|incumbent| show(grid.sensitivity(incumbent))));
        rows.push(row("alone, Mb/s", &|service| number(grid.alone_mbps[service])));
        rows
    }
}
