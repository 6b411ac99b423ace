//! Figures and tables of an experiment.

use apportion_report::figure::{Curve, Level, Plot, Scatter, XAxis, curves, scatter};
use apportion_report::html::{escape, table};
use apportion_report::mbps;
use apportion_report::statistics::{Estimate, number};

use crate::figure::{Column, Figure};
use crate::judge::Claim;
use crate::measure::flows::Flows;
use crate::plan::{PlannedExperiment, Results};
use crate::runs::{Attribute, Basis, RunOutcomes};
use crate::value::plain;

use super::card::{BINS, Card, level};
use super::{along, bars, course};

/// A figure or table as HTML; empty if there is nothing to show.
pub(super) fn figure(
    figure: &Figure,
    planned: &PlannedExperiment,
    results: &Results,
    claims: &[&Claim],
) -> String {
    match tabled(figure, planned, claims) {
        Some((title, head, rows)) => {
            format!("<section><h3>{}</h3>\n{}</section>\n", escape(title), table(&head, &rows))
        }
        None => drawn(figure, planned, results).map_or_else(String::new, |card| card.html()),
    }
}

/// A figure; none for a table, or if there is nothing to show.
pub(super) fn drawn(figure: &Figure, planned: &PlannedExperiment, results: &Results) -> Option<Card> {
    let runs = planned.runs(results);
    match figure {
        Figure::Shares { title, on, series } => {
            let found: Vec<(&str, Scatter)> = (0..)
                .zip(series)
                .filter_map(|(key, one)| {
                    Some((one.label.as_str(), marks(&Flows::of(&runs, &one.run, &one.of)?, *on, key)))
                })
                .collect();
            let names = found.iter().map(|(label, _)| (*label).to_owned()).collect();
            let entitled = found.iter().any(|(_, one)| !one.ideal.is_empty());
            let all: Vec<Scatter> = found.into_iter().map(|(_, one)| one).collect();
            Some(Card {
                title: title.clone(),
                caption: "Throughput, Mb/s; thin lines: 95 % intervals.".to_owned(),
                names,
                dashed: entitled.then_some("entitlement"),
                drawing: scatter(&all, on.label()),
                numbers: None,
            })
        }
        Figure::OverTime { title, run, of, levels } => {
            let flows = Flows::of(&runs, run, of)?;
            let scenario = &flows.run().scenario;
            let end = scenario.stop.as_secs_f64();
            let levels: Vec<Level> = levels.iter().map(|one| level(one, 0.0, end)).collect();
            let all = over_time(&flows);
            let top = all.iter().flat_map(|curve| &curve.line).map(|point| point.1).fold(0.0, f64::max);
            let top = levels.iter().map(|level| level.at).fold(top, f64::max);
            let names = flows
                .indices()
                .iter()
                .filter_map(|at| scenario.flows.get(*at))
                .map(|f| f.name.clone())
                .collect();
            let dashed = (!levels.is_empty()).then_some("target");
            let plot = Plot { x: XAxis::Time { end, warm_up: 0.0 }, y_min: 0.0, y_max: top * 1.1, levels };
            Some(Card {
                title: title.clone(),
                caption: "Throughput, Mb/s, mean over seeds.".to_owned(),
                names,
                dashed,
                drawing: curves(&plot, &all),
                numbers: None,
            })
        }
        Figure::OverSweep(figure) => along::over_sweep(figure, &runs, results.seeds),
        Figure::Bars(figure) => Some(bars::bars(figure, &runs, results.seeds)),
        Figure::RunningMean(figure) => Some(along::running_mean(figure, &runs)),
        Figure::Course(figure) => course::course(figure, &runs, results.seeds),
        Figure::AccumulatedDifference(figure) => Some(course::difference(figure, &runs, results.seeds)),
        Figure::Table { .. } => None,
    }
}

/// Title, heads and rows of a table.
pub(super) type Tabled<'a> = (&'a str, Vec<String>, Vec<Vec<String>>);

/// A figure that is a table; none for others.
pub(super) fn tabled<'a>(
    figure: &'a Figure,
    planned: &PlannedExperiment,
    claims: &[&Claim],
) -> Option<Tabled<'a>> {
    let Figure::Table { title, head, rows, columns, foot } = figure else { return None };
    let (head, rows) = columns_of(planned, claims, head, rows, columns, foot.as_deref());
    Some((title, head, rows))
}

/// A mark per flow.
fn marks(flows: &Flows<'_>, on: Attribute, key: usize) -> Scatter {
    let xs = flows.attributes(on).unwrap_or_default();
    let seeds: Vec<Vec<f64>> = (0..flows.run().outcomes.len())
        .filter_map(|seed| flows.throughputs(Basis::Seed(seed), None, None))
        .collect();
    let mark = |(k, x): (usize, &f64)| {
        let samples: Vec<f64> = seeds.iter().filter_map(|all| all.get(k)).copied().collect();
        let estimate = Estimate::of(&samples)?;
        Some((*x, estimate.mean, estimate.ci95))
    };
    let due = flows.throughputs(Basis::Entitlements, None, None).unwrap_or_default();
    let mut ideal: Vec<_> = xs.iter().copied().zip(due).collect();
    ideal.sort_by(|a, b| a.0.total_cmp(&b.0));
    Scatter { key, marks: xs.iter().enumerate().filter_map(mark).collect(), ideal, names: Vec::new() }
}

/// A curve per flow, averaged over seeds.
fn over_time(flows: &Flows<'_>) -> Vec<Curve> {
    let RunOutcomes { scenario, outcomes, .. } = flows.run();
    let samples = scenario.stop.as_nanos().div_ceil(scenario.sample.as_nanos().max(1)) as usize;
    let size = samples.div_ceil(BINS).max(1);
    let step = scenario.sample.as_secs_f64() * size as f64;
    let curve = |(key, at): (usize, &usize)| {
        let rate = |bin: usize| -> f64 {
            let bytes = |outcome: &apportion_runtime::outcome::Outcome| {
                let series = outcome.flows.get(*at).map_or(&[][..], |flow| &flow.series);
                mbps(series.iter().skip(bin * size).take(size).copied().sum(), scenario.sample * size as u64)
            };
            outcomes.iter().map(bytes).sum::<f64>() / outcomes.len().max(1) as f64
        };
        // An incomplete last bin would show too low a rate.
        let line = (0..samples / size).map(|bin| ((bin as f64 + 0.5) * step, rate(bin))).collect();
        Curve { key: Some(key), line, band: Vec::new() }
    };
    flows.indices().iter().enumerate().map(curve).collect()
}

/// Claims as columns.
fn columns_of(
    planned: &PlannedExperiment,
    claims: &[&Claim],
    head: &str,
    rows: &[String],
    columns: &[Column],
    foot: Option<&str>,
) -> (Vec<String>, Vec<Vec<String>>) {
    let find = |column: &Column, metric: &str| -> Option<&Claim> {
        let id = column.experiment.as_ref().unwrap_or(&planned.experiment.id);
        let is_it = |claim: &&&Claim| {
            claim.experiment == *id && claim.metric.name == *metric && claim.control == planned.control
        };
        claims.iter().find(is_it).copied()
    };
    let shown: Vec<(&Column, &Claim)> =
        columns.iter().filter_map(|column| Some((column, find(column, &column.metric)?))).collect();
    let mut heads = vec![head.to_owned()];
    for (column, claim) in &shown {
        heads.push(format!("{}: published", column.label));
        if has_ideal(claim) {
            heads.push("entitlement".to_owned());
        }
        heads.push("measured".to_owned());
    }
    let cells = |claim: &Claim, k: usize, ideal: bool| -> Vec<String> {
        let element = claim.representatives().get(k).copied();
        let mut cells = vec![element.and_then(|e| e.published).map_or_else(String::new, plain)];
        if ideal {
            cells.push(element.and_then(|e| e.ideal).map_or_else(|| "–".to_owned(), number));
        }
        cells.push(element.map_or_else(String::new, crate::judge::Element::shown));
        cells
    };
    let row = |(k, name): (usize, &String)| {
        let mut row = vec![name.clone()];
        shown.iter().for_each(|(_, claim)| row.extend(cells(claim, k, has_ideal(claim))));
        row
    };
    let mut body: Vec<Vec<String>> = rows.iter().enumerate().map(row).collect();
    if let Some(foot) = foot {
        let mut row = vec![foot.to_owned()];
        for (column, claim) in &shown {
            let ideal = has_ideal(claim);
            match column.foot.as_ref().and_then(|metric| find(column, metric)) {
                Some(last) => row.extend(cells(last, 0, ideal)),
                None => row.extend(vec![String::new(); if ideal { 3 } else { 2 }]),
            }
        }
        body.push(row);
    }
    (heads, body)
}

fn has_ideal(claim: &Claim) -> bool {
    claim.elements.iter().any(|element| element.ideal.is_some())
}
