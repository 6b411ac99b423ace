//! A league for a paper: figures as SVG and PDF, and tables in LaTeX.

use super::columns::{self, COSTS, Column, Tradeoff, played};
use super::{Cell, League, Situation};
use crate::figure::{DotRow, Drawing, Panel, Scatter, compose, dots, scatter};
use crate::latex::Table;
use crate::quantities::WORST_SHARE;

impl League {
    /// The files by name. For each situation: the table of its page, the plane of delay and worst share, and
    /// the worst shares; then the worst share of each discipline in each situation, and the costs of
    /// disciplines.
    #[must_use]
    pub fn kit(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        for situation in self.situations.iter().filter(|of| played(&of.cells).next().is_some()) {
            let name = &situation.name;
            files.push((format!("{name}.tex"), self.table_of(situation).text().into_bytes()));
            for (what, panel) in [("front", self.front_of(situation)), ("shares", self.shares_of(situation))]
            {
                let Some(panel) = panel else { continue };
                let drawing = compose(&[panel]);
                files.push((format!("{name}-{what}.svg"), drawing.svg().into_bytes()));
                files.push((format!("{name}-{what}.pdf"), drawing.pdf()));
            }
        }
        files.push(("worst-shares.tex".to_owned(), self.worst_shares().text().into_bytes()));
        files.push(("costs.tex".to_owned(), self.costs_table().text().into_bytes()));
        files
    }

    /// A table with this comment above it.
    fn table(&self, about: &str, head: Vec<String>, rows: Vec<Vec<String>>) -> Table {
        let commit = if self.commit.is_empty() { String::new() } else { format!(", commit {}", self.commit) };
        let comment = vec![about.to_owned(), format!("`{}`{commit}", self.command)];
        Table { comment, ..Table::of_numbers(head, rows) }
    }

    /// The disciplines that run in a situation, with all columns of its page.
    fn table_of(&self, situation: &Situation) -> Table {
        let columns = columns::of(situation);
        let head = std::iter::once(String::new()).chain(columns.iter().map(|column| column.heading.clone()));
        let entrants = self.disciplines.iter().zip(&situation.cells);
        let rows = entrants.filter_map(|(entrant, cell)| {
            let played = cell.played()?;
            let shown =
                |column: &Column| column.of(played).map_or_else(String::new, |found| found.to_string());
            Some(std::iter::once(entrant.name.clone()).chain(columns.iter().map(shown)).collect())
        });
        let about = format!("{}. {} Means over seeds, 95 % intervals.", situation.title, situation.about);
        self.table(&about, head.collect(), rows.collect())
    }

    /// The plane of delay and worst share.
    fn front_of(&self, situation: &Situation) -> Option<Panel> {
        let all = columns::tradeoffs(self, situation);
        let name = |at: usize| self.disciplines.get(at).map_or("", |entrant| entrant.name.as_str());
        let front: Vec<_> = all.iter().filter(|one| one.is_on_front).collect();
        let names: Vec<&str> = front.iter().map(|one| name(one.at)).collect();
        (!all.is_empty()).then(|| Panel {
            title: format!("{}: worst share over delay in the queue", situation.title),
            note: format!("Front: {}", names.join(", ")),
            legend: vec![(1, "on the front".to_owned()), (0, "others".to_owned())],
            drawing: self.plane(&all),
        })
    }

    /// Draws each discipline as a dot with its name, and joins those on the front by a line.
    pub(super) fn plane(&self, all: &[Tradeoff]) -> Drawing {
        let name =
            |at: usize| self.disciplines.get(at).map_or("", |entrant| entrant.name.as_str()).to_owned();
        let marks = |key, of_front: bool| {
            let chosen = || all.iter().filter(|one| one.is_on_front == of_front);
            let line = chosen().filter(|_| of_front).map(|one| (one.delay, one.share.mean));
            Scatter {
                key,
                marks: chosen().map(|one| (one.delay, one.share.mean, one.share.ci95)).collect(),
                ideal: line.collect(),
                names: chosen().map(|one| name(one.at)).collect(),
            }
        };
        scatter(&[marks(0, false), marks(1, true)], "95 % of packets wait less, ms")
    }

    /// The worst share of each discipline, a row each.
    fn shares_of(&self, situation: &Situation) -> Option<Panel> {
        let entrants = self.disciplines.iter().zip(&situation.cells);
        let rows: Vec<DotRow> = entrants
            .filter_map(|(entrant, cell)| {
                let found = cell.played()?.metric(WORST_SHARE.name)?;
                Some(DotRow { label: entrant.name.clone(), dots: vec![(0, found.mean, found.ci95)] })
            })
            .collect();
        let most = rows.iter().flat_map(|row| &row.dots).map(|dot| dot.1).fold(1.0, f64::max);
        (!rows.is_empty()).then(|| Panel {
            title: format!("{}: worst share", situation.title),
            note: "Throughput over entitlement of the worst-off flow; lines: 95 % intervals".to_owned(),
            legend: Vec::new(),
            drawing: dots(&rows, most * 1.05, Some(1.0)),
        })
    }

    /// Disciplines down, situations across.
    fn worst_shares(&self) -> Table {
        let names = self.situations.iter().map(|situation| situation.name.clone());
        let rows = self.disciplines.iter().enumerate().map(|(at, entrant)| {
            let cell = |situation: &Situation| match situation.cells.get(at) {
                Some(Cell::Played(played)) => played
                    .metric(WORST_SHARE.name)
                    .map_or_else(String::new, |found| format!("{:.2}", found.mean)),
                _ => "–".to_owned(),
            };
            std::iter::once(entrant.name.clone()).chain(self.situations.iter().map(cell)).collect()
        });
        let about = "Throughput over entitlement of the worst-off flow, mean over seeds; – where a discipline cannot run.";
        let head = std::iter::once(String::new()).chain(names).collect();
        Table { is_upright: true, ..self.table(about, head, rows.collect()) }
    }

    fn costs_table(&self) -> Table {
        let head = std::iter::once(String::new()).chain(COSTS.map(|(heading, _)| heading.to_owned()));
        let counted = |count: Option<u64>| count.map_or_else(String::new, |count| count.to_string());
        let rows = self.disciplines.iter().map(|entrant| {
            let counts = COSTS.iter().map(|(_, of)| counted(of(&entrant.counted)));
            std::iter::once(entrant.name.clone()).chain(counts).collect()
        });
        let about = "Instructions on x86-64 for a packet that comes and goes; bytes that a flow takes with the same number of packets waiting.";
        self.table(about, head.collect(), rows.collect())
    }
}
