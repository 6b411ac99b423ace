//! Points with many flows: the distribution of throughput, and the flows with the least.

use crate::figure::histogram;
use crate::html::table;
use crate::run_results::PointResults;
use crate::shares::FlowShare;
use crate::statistics::number;

/// Number of flows in the table.
const WORST: usize = 10;

/// A histogram of the flows of a point, and the table of those with the smallest share of their entitlement, or with the smallest
/// throughput if one has no entitlement.
pub(super) fn crowd(point: &PointResults, flows: &[FlowShare]) -> String {
    let ratios: Option<Vec<f64>> = flows.iter().map(FlowShare::ratio).collect();
    let (what, values, level) = match ratios {
        Some(ratios) => ("throughput over entitlement", ratios, Some(1.0)),
        None => ("throughput, Mb/s", flows.iter().map(|flow| flow.throughput.mean).collect(), None),
    };
    let mut ranked: Vec<(f64, &FlowShare)> = values.iter().copied().zip(flows).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let has_customers = point.flows.iter().any(|flow| flow.customer.is_some());
    let customer = |name: &str| {
        let flow = point.flows.iter().find(|flow| flow.name == name);
        flow.and_then(|flow| flow.customer.clone()).unwrap_or_else(|| "–".to_owned())
    };
    let row = |(_, flow): &(f64, &FlowShare)| {
        let mut row = vec![flow.name.clone()];
        row.extend(has_customers.then(|| customer(&flow.name)));
        row.push(number(flow.throughput.mean));
        row.push(flow.entitlement.map_or_else(|| "–".to_owned(), number));
        row.push(flow.ratio().map_or_else(|| "–".to_owned(), |ratio| format!("{:.0} %", 100.0 * ratio)));
        row
    };
    let rows: Vec<Vec<String>> = ranked.iter().take(WORST).map(row).collect();
    let mut head = vec!["Worst flows"];
    head.extend(has_customers.then_some("Customer"));
    head.extend(["Mb/s", "Due", "Share"]);
    let head: Vec<String> = head.into_iter().map(str::to_owned).collect();
    format!(
        "<figure role=\"img\" aria-label=\"Flows by {what}\"><figcaption><b>{} flows by {what}</b></figcaption>\n{}</figure>\n{}",
        flows.len(),
        histogram(what, &values, level).html(),
        table(&head, &rows)
    )
}
