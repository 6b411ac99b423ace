//! What each customer got, at every point.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::figure::Bar;
use crate::html::table;
use crate::record::{PointRecord, Run};
use crate::rows::FlowRow;
use crate::shares::customer_shares;
use crate::statistics::{Estimate, mean, number};
use crate::tables::Table;

/// Chosen: more customers of a point are read from the CSV file.
const MAX_CUSTOMERS: usize = 30;
/// Chosen: as in the table of points.
const MAX_ROWS: usize = 200;

/// One customer over all replications of a point.
#[derive(Default)]
struct Customer {
    flows: usize,
    throughput: Vec<f64>,
    entitlement: Vec<f64>,
    shares: Vec<f64>,
}

/// The table of customers, the one with the smallest share first; empty if no flow has a customer.
pub(super) fn section(run: &Run) -> String {
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
        let _ =
            writeln!(out, "<p class=\"note\">{left_out} more customers are in <code>flows.csv</code>.</p>");
    }
    out
}

/// The customers of a point as bars, the one with the smallest share first.
pub(super) fn bars(point: &PointRecord) -> Vec<Bar> {
    let bar = |(name, customer): &(String, Customer)| {
        let value = mean(&customer.throughput)?;
        Some(Bar {
            label: name.clone(),
            key: 0,
            value,
            whisker: None,
            entitlement: mean(&customer.entitlement),
            note: number(value),
        })
    };
    customers(point).iter().take(MAX_CUSTOMERS).filter_map(bar).collect()
}

fn cells(run: &Run, point: &PointRecord, (name, customer): &(String, Customer)) -> Vec<String> {
    let shown = |samples: &[f64]| match samples {
        [one] => number(*one),
        _ => Estimate::of(samples).map_or("–".to_owned(), |estimate| estimate.to_string()),
    };
    let due = mean(&customer.entitlement).map_or("–".to_owned(), number);
    let mut cells = vec![
        name.clone(),
        customer.flows.to_string(),
        due,
        shown(&customer.throughput),
        shown(&customer.shares),
    ];
    if run.points.len() > 1 {
        cells.insert(0, point.name().to_owned());
    }
    cells
}

/// Those of a point, by share and name.
fn customers(point: &PointRecord) -> Vec<(String, Customer)> {
    let rows: Vec<FlowRow> = FlowRow::of_point(point).collect();
    let mut by_seed: BTreeMap<u64, Vec<&FlowRow>> = BTreeMap::new();
    for row in &rows {
        by_seed.entry(row.seed).or_default().push(row);
    }
    let mut customers: BTreeMap<String, Customer> = BTreeMap::new();
    for flows in by_seed.values() {
        for share in customer_shares(flows) {
            let customer = customers.entry(share.label().to_owned()).or_default();
            customer.flows = share.flows;
            customer.throughput.push(share.throughput);
            customer.entitlement.extend(share.entitlement);
            customer.shares.extend(share.share());
        }
    }
    let mut customers: Vec<(String, Customer)> = customers.into_iter().collect();
    let share = |customer: &Customer| mean(&customer.shares).unwrap_or(f64::INFINITY);
    customers.sort_by(|(_, a), (_, b)| share(a).total_cmp(&share(b)));
    customers
}
