//! A table of any view: its columns in order of importance, its rows in the chosen order, and as text.

use std::cmp::Ordering;
use std::ops::Range;

use super::format::{BAR, UNKNOWN, bar, clip, count, percent, rate, time, weight, width};
use super::model::Known;

/// A value in a column.
#[derive(Clone, Copy, Debug)]
pub enum Cell<'a> {
    Text(&'a str),
    Rate(Known),
    Time(Known),
    Count(Known),
    Percent(Known),
    Weight(Known),
    /// A fraction as a bar.
    Bar(Known),
}

impl Cell<'_> {
    const fn number(&self) -> Known {
        match *self {
            Self::Text(_) => None,
            Self::Rate(number)
            | Self::Time(number)
            | Self::Count(number)
            | Self::Percent(number)
            | Self::Weight(number)
            | Self::Bar(number) => number,
        }
    }

    fn text(&self) -> String {
        let of = |number: Known, text: fn(f64) -> String| number.map_or_else(|| UNKNOWN.to_owned(), text);
        match *self {
            Self::Text(text) => text.to_owned(),
            Self::Rate(number) => of(number, rate),
            Self::Time(number) => of(number, time),
            Self::Count(number) => of(number, count),
            Self::Percent(number) => of(number, percent),
            Self::Weight(number) => of(number, weight),
            Self::Bar(number) => of(number, |part| bar(part, BAR)),
        }
    }

    /// Columns that values of its kind take; none of a text, which takes what is left.
    const fn columns(&self) -> Option<usize> {
        Some(match self {
            Self::Text(_) => return None,
            Self::Rate(_) => 11,
            Self::Time(_) => 10,
            Self::Count(_) | Self::Weight(_) => 8,
            Self::Percent(_) => 8,
            Self::Bar(_) => BAR + 2,
        })
    }

    /// Whether there is no value.
    fn is_empty(&self) -> bool {
        match self {
            Self::Text(text) => text.is_empty(),
            _ => self.number().is_none(),
        }
    }
}

/// The title of a column, and its rank: those with the highest go first where there is no room. A column
/// without a title is not sorted by.
pub type Column = (&'static str, u8);

/// A cell and its text, padded to its column.
pub type Padded<'a> = (Cell<'a>, String);

/// The order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    pub title: &'static str,
    /// Whether the usual order, of names from A and of numbers from the largest, is reversed.
    pub is_reversed: bool,
}

/// A table. The first column has the names of its rows.
#[derive(Debug)]
pub struct Sheet<'a> {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell<'a>>>,
}

/// Columns between two columns of the table.
const GAP: usize = 2;
/// The widest column of texts other than names. Chosen: so is the widest of numbers.
const WIDEST: usize = 14;
/// Names have half of the width, and at least this. Chosen: most can be told apart.
const NARROWEST: usize = 8;

impl<'a> Sheet<'a> {
    /// The table without columns that are empty in all rows.
    pub fn new(columns: &[Column], rows: Vec<Vec<Cell<'a>>>) -> Self {
        let is_kept =
            |at: &usize| *at == 0 || rows.iter().any(|row| row.get(*at).is_some_and(|cell| !cell.is_empty()));
        let kept: Vec<usize> = (0..columns.len()).filter(is_kept).collect();
        let pick = |row: Vec<Cell<'a>>| kept.iter().filter_map(|at| row.get(*at).copied()).collect();
        let columns = kept.iter().map(|at| columns[*at]).collect();
        Self { columns, rows: rows.into_iter().map(pick).collect() }
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The name of a row.
    pub fn name(&self, row: usize) -> Option<&'a str> {
        match self.rows.get(row)?.first()? {
            Cell::Text(name) => Some(name),
            _ => None,
        }
    }

    /// Titles of columns that this width shows and that can be sorted by.
    pub fn titles(&self, available: usize) -> Vec<&'static str> {
        let titles = self.layout(available).into_iter().map(|(at, _)| self.columns[at].0);
        titles.filter(|title| !title.is_empty()).collect()
    }

    /// The title of the column that the rows are sorted by, with its sign, if this width does not show it.
    pub fn hidden(&self, available: usize, order: Order) -> Option<String> {
        let at = self.column(order)?;
        let is_shown = self.layout(available).iter().any(|(shown, _)| *shown == at);
        (!is_shown).then(|| format!("{}{}", order.title, self.sign(at, order)))
    }

    /// Leaves the rows whose name contains a text, whatever its case.
    pub fn filter(&mut self, text: &str) {
        let text = text.to_lowercase();
        self.rows.retain(
            |row| matches!(row.first(), Some(Cell::Text(name)) if name.to_lowercase().contains(&text)),
        );
    }

    /// Sorts the rows; equal ones, and all if there is no such column, stay in their order. Unknown numbers
    /// are last.
    pub fn sort(&mut self, order: Order) {
        let Some(at) = self.column(order) else { return };
        let turn = |ordering: Ordering| if order.is_reversed { ordering.reverse() } else { ordering };
        self.rows.sort_by(|one, other| match (&one[at], &other[at]) {
            (Cell::Text(one), Cell::Text(other)) => turn(one.cmp(other)),
            (one, other) => match (one.number(), other.number()) {
                (Some(one), Some(other)) => turn(other.total_cmp(&one)),
                (one, other) => other.is_some().cmp(&one.is_some()),
            },
        });
    }

    /// The column that this order is about.
    fn column(&self, order: Order) -> Option<usize> {
        self.columns.iter().position(|(title, _)| !title.is_empty() && *title == order.title)
    }

    fn is_text(&self, at: usize) -> bool {
        at == 0 || self.rows.first().is_some_and(|row| matches!(row[at], Cell::Text(_)))
    }

    /// The direction of this order of a column: names ascend, and numbers descend.
    fn sign(&self, at: usize, order: Order) -> &'static str {
        if order.is_reversed == self.is_text(at) { "↓" } else { "↑" }
    }

    /// The columns that fit this width, and their widths, in order.
    fn layout(&self, available: usize) -> Vec<(usize, usize)> {
        let longest = |at: usize| {
            let names = self.rows.iter().filter_map(|row| match row[at] {
                Cell::Text(text) => Some(width(text)),
                _ => None,
            });
            names.max().unwrap_or(0)
        };
        let own = |at: usize| {
            // A sign of the order stands behind the title.
            let title = if self.columns[at].0.is_empty() { 0 } else { width(self.columns[at].0) + 1 };
            let cells = self.rows.first().map_or(Some(0), |row| row[at].columns());
            title.max(cells.unwrap_or_else(|| longest(at).min(if at == 0 { usize::MAX } else { WIDEST })))
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(own).collect();
        let mut kept: Vec<usize> = (1..self.columns.len()).collect();
        let name = widths[0].min(NARROWEST.max(available / 2));
        let taken = |kept: &[usize]| kept.iter().map(|at| widths[*at] + GAP).sum::<usize>();
        while name + taken(&kept) > available {
            let Some(least) = (0..kept.len()).max_by_key(|at| self.columns[kept[*at]].1) else { break };
            kept.remove(least);
        }
        let left = available.saturating_sub(taken(&kept));
        let names = (0, widths[0].min(left));
        [names].into_iter().chain(kept.into_iter().map(|at| (at, widths[at]))).collect()
    }

    /// The titles and the rows in `range`, in at most this width if that has room for a name.
    pub fn lines(
        &self,
        available: usize,
        order: Order,
        range: Range<usize>,
    ) -> (String, Vec<Vec<Padded<'a>>>) {
        let layout = self.layout(available);
        let place = |text: &str, at: usize, columns: usize, is_text: bool| {
            let text = clip(text, columns);
            let pad = " ".repeat(columns - width(&text));
            let gap = " ".repeat(if at == 0 { 0 } else { GAP });
            if is_text { format!("{gap}{text}{pad}") } else { format!("{gap}{pad}{text}") }
        };
        let sorted = self.column(order);
        let title = |&(at, columns): &(usize, usize)| {
            let own = self.columns[at].0;
            let sign = if sorted == Some(at) { self.sign(at, order) } else { "" };
            place(&format!("{own}{sign}"), at, columns, self.is_text(at))
        };
        let row = |row: &Vec<Cell<'a>>| {
            layout
                .iter()
                .map(|&(at, columns)| (row[at], place(&row[at].text(), at, columns, self.is_text(at))))
                .collect()
        };
        let shown = self.rows.get(range).unwrap_or_default();
        (layout.iter().map(title).collect(), shown.iter().map(row).collect())
    }
}
