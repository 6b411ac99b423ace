//! The views: flows, links, and customers of a gateway.

use super::format::count;
use super::model::{Customer, Flow, Link, Seen};
use super::sheet::{Cell, Column, Order, Sheet};

/// What the table lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Flows,
    Links,
    Customers,
}

/// The columns of each view, and their ranks.
const FLOWS: [Column; 10] = [
    ("FLOW", 0),
    ("DIR", 4),
    ("RATE", 2),
    ("MEAN", 5),
    ("ENTITLED", 3),
    ("SHARE", 1),
    ("", 6),
    ("OF LINK", 7),
    ("WEIGHT", 9),
    ("RULE", 8),
];
const LINKS: [Column; 13] = [
    ("LINK", 0),
    ("SENT", 3),
    ("CAPACITY", 8),
    ("USE", 1),
    ("", 9),
    ("BACKLOG", 7),
    ("SOJOURN", 2),
    ("SOJOURN P50", 6),
    ("SOJOURN P95", 2),
    ("DROPS", 4),
    ("LOST", 11),
    ("MARKS", 5),
    ("FLOWS", 10),
];
const CUSTOMERS: [Column; 13] = [
    ("CUSTOMER", 0),
    ("DOWN", 1),
    ("D.PLAN", 8),
    ("D.ENTITLED", 9),
    ("D.SHARE", 3),
    ("", 7),
    ("UP", 2),
    ("U.PLAN", 10),
    ("U.ENTITLED", 11),
    ("U.SHARE", 4),
    ("", 12),
    ("DROPS", 5),
    ("MARKS", 6),
];

impl View {
    /// The views of this run or gateway.
    pub fn of(seen: &Seen) -> &'static [Self] {
        if seen.customers.is_empty() {
            &[Self::Flows, Self::Links]
        } else {
            &[Self::Flows, Self::Links, Self::Customers]
        }
    }

    /// The order at first: the largest flows and customers first, links as they are listed.
    pub const fn order(self, seen: &Seen) -> Order {
        let title = match self {
            Self::Flows if seen.is_gateway => "RATE",
            Self::Flows => "MEAN",
            Self::Links => "",
            Self::Customers => "DOWN",
        };
        Order { title, is_reversed: false }
    }

    /// Its title, and the number of its rows.
    pub fn title(self, seen: &Seen) -> String {
        match self {
            Self::Flows => {
                let over = seen.link.as_ref().map_or_else(String::new, |link| format!(" over {link}"));
                let (listed, all) = (seen.flows.len(), count(seen.flow_count));
                let listed = if seen.flow_count > listed as f64 {
                    format!("{listed} largest of ")
                } else {
                    String::new()
                };
                format!("Flows{over}: {listed}{all}")
            }
            Self::Links if seen.is_gateway => "Directions".to_owned(),
            Self::Links => format!("Links: {}", seen.links.len()),
            Self::Customers => format!("Customers: {}", seen.customers.len()),
        }
    }

    /// Its table.
    pub fn sheet(self, seen: &Seen) -> Sheet<'_> {
        match self {
            Self::Flows => Sheet::new(&FLOWS, seen.flows.iter().map(flow).collect()),
            Self::Links => {
                let mut columns = LINKS;
                if seen.is_gateway {
                    columns[0].0 = "DIRECTION";
                }
                Sheet::new(&columns, seen.links.iter().map(link).collect())
            }
            Self::Customers => Sheet::new(&CUSTOMERS, seen.customers.iter().map(customer).collect()),
        }
    }
}

fn flow(flow: &Flow) -> Vec<Cell<'_>> {
    vec![
        Cell::Text(&flow.name),
        Cell::Text(&flow.direction),
        Cell::Rate(flow.rate),
        Cell::Rate(flow.mean),
        Cell::Rate(flow.entitled),
        Cell::Percent(flow.share),
        Cell::Bar(flow.share),
        Cell::Percent(flow.of_link),
        Cell::Weight(flow.weight),
        Cell::Text(&flow.rule),
    ]
}

fn link(link: &Link) -> Vec<Cell<'_>> {
    vec![
        Cell::Text(&link.name),
        Cell::Rate(link.sent),
        Cell::Rate(link.capacity),
        Cell::Percent(link.used()),
        Cell::Bar(link.used()),
        Cell::Count(link.backlog),
        Cell::Time(link.mean),
        Cell::Time(link.median),
        Cell::Time(link.high),
        Cell::Count(link.drops),
        Cell::Count(link.lost),
        Cell::Count(link.marks),
        Cell::Count(link.flows),
    ]
}

fn customer(customer: &Customer) -> Vec<Cell<'_>> {
    let sides = customer.sides.iter().flat_map(|side| {
        [
            Cell::Rate(side.rate),
            Cell::Rate(side.plan),
            Cell::Rate(side.entitled),
            Cell::Percent(side.share()),
            Cell::Bar(side.share()),
        ]
    });
    let ends = [Cell::Count(customer.drops), Cell::Count(customer.marks)];
    [Cell::Text(&customer.name)].into_iter().chain(sides).chain(ends).collect()
}
