//! Shares of customers, at every point.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::figure::Bar;
use crate::html::table;
use crate::quantities::{CUSTOMER_SHARE, CUSTOMER_THROUGHPUT, NO_CUSTOMER};
use crate::run_results::{PointResults, RunResults};
use crate::statistics::{Estimate, mean, number};

/// Maximum of customers of a point; others are in the CSV file.
const MAX_CUSTOMERS: usize = 30;
/// Maximum of rows, as in the table of points.
const MAX_ROWS: usize = 200;

/// One customer over all replications of a point.
struct Customer<'a> {
    name: &'a str,
    flows: usize,
    /// Entitlement, Mb/s.
    entitlement: Option<f64>,
    throughput: &'a [f64],
    shares: &'a [f64],
}

/// The table of customers, the one with the smallest share first; empty if no flow has a customer.
pub(super) fn section(run: &RunResults) -> String {
    let mut rows = Vec::new();
    let mut left_out = 0;
    for point in &run.points {
        let customers = customers(point);
        left_out += customers.len().saturating_sub(MAX_CUSTOMERS);
        rows.extend(customers.iter().take(MAX_CUSTOMERS).map(|customer| cells(run, point, customer)));
    }
    if rows.is_empty() {
        return String::new();
    }
    left_out += rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    let mut head =
        ["Customer", "Flows", "Due, Mb/s", "Throughput, Mb/s", "Share of due"].map(str::to_owned).to_vec();
    if run.points.len() > 1 {
        head.insert(0, "Point".to_owned());
    }
    let mut out = String::from("<h2 id=\"customers\">Customers</h2>\n");
    out.push_str(&table(&head, &rows));
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"note\">{left_out} more customers are in the table <code>flows</code>.</p>"
        );
    }
    out
}

/// The customers of a point as bars, the one with the smallest share first.
pub(super) fn bars(point: &PointResults) -> Vec<Bar> {
    let bar = |customer: &Customer<'_>| {
        let value = mean(customer.throughput)?;
        Some(Bar {
            label: customer.name.to_owned(),
            key: 0,
            value,
            whisker: None,
            entitlement: customer.entitlement,
            note: number(value),
        })
    };
    customers(point).iter().take(MAX_CUSTOMERS).filter_map(bar).collect()
}

fn cells(run: &RunResults, point: &PointResults, customer: &Customer<'_>) -> Vec<String> {
    let shown = |samples: &[f64]| match samples {
        [one] => number(*one),
        _ => Estimate::of(samples).map_or("–".to_owned(), |estimate| estimate.to_string()),
    };
    let mut cells = vec![
        customer.name.to_owned(),
        customer.flows.to_string(),
        customer.entitlement.map_or("–".to_owned(), number),
        shown(customer.throughput),
        shown(customer.shares),
    ];
    if run.points.len() > 1 {
        cells.insert(0, point.name().to_owned());
    }
    cells
}

/// The customers of a point, by share and name.
fn customers(point: &PointResults) -> Vec<Customer<'_>> {
    let summary = point.summary();
    // Number of flows and their total entitlement, by the customer's name.
    let mut dues: BTreeMap<&str, (usize, Option<f64>)> = BTreeMap::new();
    for (info, flow) in point.flows.iter().zip(&summary.flows) {
        let (flows, due) =
            dues.entry(info.customer.as_deref().unwrap_or(NO_CUSTOMER)).or_insert((0, Some(0.0)));
        *flows += 1;
        *due = due.zip(flow.entitlement()).map(|(sum, due)| sum + due);
    }
    let samples = |name: &str| summary.metrics.samples(name);
    let mut customers: Vec<Customer<'_>> = summary
        .metrics
        .of_each(CUSTOMER_THROUGHPUT)
        .map(|(name, throughput)| {
            let (flows, entitlement) = dues.get(name).copied().unwrap_or_default();
            let shares = samples(&CUSTOMER_SHARE.at(name));
            Customer { name, flows, entitlement, throughput, shares }
        })
        .collect();
    let share = |customer: &Customer<'_>| mean(customer.shares).unwrap_or(f64::INFINITY);
    customers.sort_by(|a, b| share(a).total_cmp(&share(b)));
    customers
}
