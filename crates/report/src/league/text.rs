//! A league for a terminal.

use super::columns::{self, Column};
use super::{Cell, League, Situation};
use crate::quantities::WORST_SHARE;
use crate::statistics::number;
use crate::summary::align;

impl League {
    /// The league for a terminal: the worst share of each discipline in each situation, or all columns of a single situation.
    #[must_use]
    pub fn text(&self) -> String {
        match self.situations.as_slice() {
            [only] => self.of_situation(only),
            all => self.matrix(all),
        }
    }

    fn matrix(&self, situations: &[Situation]) -> String {
        let mut out = String::from(
            "Throughput over entitlement of the worst-off flow, mean over seeds; - where a discipline cannot run.\n\n",
        );
        for (number, situation) in (1..).zip(situations) {
            out.push_str(&format!("{number:>3}  {}: {}\n", situation.name, situation.title));
        }
        let head = (1..=situations.len()).map(|number| number.to_string());
        let mut rows = vec![[String::new()].into_iter().chain(head).collect::<Vec<_>>()];
        for (at, entrant) in self.disciplines.iter().enumerate() {
            let cell = |situation: &Situation| match situation.cells.get(at).and_then(Cell::played) {
                Some(played) => {
                    played.metric(WORST_SHARE.name).map_or("?".to_owned(), |of| format!("{:.2}", of.mean))
                }
                None => "-".to_owned(),
            };
            rows.push([entrant.name.clone()].into_iter().chain(situations.iter().map(cell)).collect());
        }
        out + "\n" + &align(&rows)
    }

    fn of_situation(&self, situation: &Situation) -> String {
        let columns = columns::of(situation);
        let head = columns.iter().map(|column| column.heading.clone());
        let mut rows = vec![[String::new()].into_iter().chain(head).collect::<Vec<_>>()];
        let mut empty = String::new();
        for (entrant, cell) in self.disciplines.iter().zip(&situation.cells) {
            match cell {
                Cell::Empty(reason) => empty.push_str(&format!("{} cannot run: {reason}\n", entrant.name)),
                Cell::Played(played) => {
                    let show = |column: &Column| {
                        column.of(played).map_or("-".to_owned(), |estimate| number(estimate.mean))
                    };
                    rows.push([entrant.name.clone()].into_iter().chain(columns.iter().map(show)).collect());
                }
            }
        }
        format!("{}\n{}\n\n{}{empty}", situation.title, situation.about, align(&rows))
    }
}
