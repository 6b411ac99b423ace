//! Figures of quantities with one value per replication.

use super::{Drawn, Numbers, Plotted, cell, cells};
use crate::figure::{DotRow, Panel, bars, dots};
use crate::panels::{MAX_BARS, Point, drop_panels, share_bars, sweep_panels};
use crate::quantities::{
    DELAY_P50, DELAY_P95, GROUP_DROPS, LINK_DROPS, QUEUE_DELAY_P50, QUEUE_DELAY_P95, QUEUE_DELAY_P99,
    Quantity, TOTAL_DROPS, TOTAL_MARKED,
};
use crate::shares::{Keys, natural};
use crate::statistics::Estimate;

/// Throughput and entitlement of each flow, or of each group if there are many.
pub(super) fn shares(points: &[Drawn<'_>], keys: &Keys) -> Plotted {
    let mut numbers =
        Numbers::new(points, &["flow", "group", "throughput_mbps", "ci95_mbps", "seeds", "entitlement_mbps"]);
    for drawn in points {
        for flow in &drawn.flows {
            let mut row = vec![flow.name.clone(), flow.group.clone()];
            row.extend(cells(&flow.throughput));
            row.push(flow.entitlement.map_or_else(String::new, cell));
            numbers.add(drawn, row);
        }
    }
    let by_group = points.iter().any(|drawn| drawn.flows.len() > MAX_BARS);
    let all: Vec<_> = points.iter().map(|drawn| share_bars(&drawn.flows, keys, by_group)).collect();
    let reach = |bar: &crate::figure::Bar| bar.value.max(bar.entitlement.unwrap_or(0.0));
    let max = all.iter().flatten().map(reach).fold(0.0, f64::max);
    let what = if by_group { "Mean throughput of a flow, Mb/s" } else { "Throughput, Mb/s" };
    let has_due = all.iter().flatten().any(|bar| bar.entitlement.is_some());
    let title = if has_due { format!("{what} (line: entitlement)") } else { what.to_owned() };
    let panel = |(drawn, rows): (&Drawn<'_>, &Vec<crate::figure::Bar>)| Panel {
        title: title.clone(),
        note: drawn.label.to_owned(),
        legend: Vec::new(),
        drawing: bars(rows, max),
    };
    let panels = points.iter().zip(&all).filter(|(_, rows)| !rows.is_empty()).map(panel).collect();
    Plotted { panels, numbers }
}

/// Each quantity over the parameters; only one metric, if it is named.
pub(super) fn sweep(points: &[Drawn<'_>], metric: Option<&str>) -> Plotted {
    let all: Vec<Point<'_>> = points.iter().map(|drawn| drawn.point).collect();
    let panels = sweep_panels(&all, metric).panels;
    Plotted { panels, numbers: metrics(points, |name| metric.is_none_or(|wanted| is_of(name, wanted))) }
}

/// Whether a metric is the wanted one, or that of a group or link.
fn is_of(name: &str, wanted: &str) -> bool {
    name.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Medians and 95th percentiles.
pub(super) fn delays(points: &[Drawn<'_>]) -> Plotted {
    let row = |drawn: &Drawn<'_>, (name, median): (&str, &[f64]), what: &str, high: Quantity| {
        let estimates = [Some(Estimate::of(median)?), drawn.point.metrics.get(&high.at(name))];
        let dots = estimates.iter().enumerate().filter_map(|(key, e)| e.map(|e| (key, e.mean, e.ci95)));
        Some(DotRow { label: format!("{what}{name}"), dots: dots.collect() })
    };
    let rows = |drawn: &Drawn<'_>| -> Vec<DotRow> {
        let rows = |median: Quantity, what: &str, high: Quantity| {
            let medians = drawn.point.metrics.of_each(median);
            let mut rows: Vec<DotRow> = medians.filter_map(|median| row(drawn, median, what, high)).collect();
            rows.sort_by(|a, b| natural(&a.label, &b.label));
            rows
        };
        let mut all = rows(DELAY_P50, "", DELAY_P95);
        all.extend(rows(QUEUE_DELAY_P50, "queue at ", QUEUE_DELAY_P95));
        all
    };
    let all: Vec<Vec<DotRow>> = points.iter().map(rows).collect();
    let reach = all.iter().flatten().flat_map(|row| &row.dots).map(|dot| dot.1).fold(0.0, f64::max);
    let legend = || vec![(0, "median".to_owned()), (1, "95th percentile".to_owned())];
    let panel = |(drawn, rows): (&Drawn<'_>, &Vec<DotRow>)| Panel {
        title: "One-way delay and time in the queue, ms".to_owned(),
        note: drawn.label.to_owned(),
        legend: legend(),
        drawing: dots(rows, reach * 1.06, None),
    };
    let panels = points.iter().zip(&all).filter(|(_, rows)| !rows.is_empty()).map(panel).collect();
    let delays = [DELAY_P50, DELAY_P95, QUEUE_DELAY_P50, QUEUE_DELAY_P95, QUEUE_DELAY_P99];
    Plotted { panels, numbers: metrics(points, |name| delays.iter().any(|of| is_of(name, of.name))) }
}

/// Drops by reason and marks.
pub(super) fn drops(points: &[Drawn<'_>]) -> Plotted {
    let all: Vec<(&str, _)> = points.iter().map(|drawn| (name_of(drawn), drawn.point.metrics)).collect();
    let counts = || GROUP_DROPS.iter().chain(&LINK_DROPS).chain(&[TOTAL_DROPS, TOTAL_MARKED]);
    let is_count = |name: &str| counts().any(|of| is_of(name, of.name));
    Plotted { panels: drop_panels(&all), numbers: metrics(points, is_count) }
}

fn name_of<'a>(drawn: &Drawn<'a>) -> &'a str {
    if drawn.label.is_empty() { "this run" } else { drawn.label }
}

/// The wanted metrics, one a row.
fn metrics(points: &[Drawn<'_>], is_wanted: impl Fn(&str) -> bool) -> Numbers {
    let mut numbers = Numbers::new(points, &["metric", "unit", "mean", "ci95", "seeds"]);
    for drawn in points {
        for metric in drawn.point.metrics.iter().filter(|metric| is_wanted(&metric.name)) {
            let Some(estimate) = metric.estimate() else { continue };
            let mut row = vec![metric.name.clone(), metric.unit.to_owned()];
            row.extend(cells(&estimate));
            numbers.add(drawn, row);
        }
    }
    numbers
}
