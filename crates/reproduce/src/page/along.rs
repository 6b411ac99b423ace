//! Figures with a curve per run, along a sweep and over time.

use apportion_report::figure::{Curve, Plot, XAxis, curves};
use apportion_report::mbps;
use apportion_report::statistics::{Estimate, number};
use apportion_runtime::outcome::Outcome;

use crate::figure::{RunningMean, SweepFigure};
use crate::measure::flows::Flows;
use crate::runs::{Basis, RunOutcomes, Runs, at_point, sweep_of};

use super::card::{BINS, Card};

/// A plot, with its numbers in a folded table.
pub(super) fn over_sweep(figure: &SweepFigure, runs: &Runs<'_, RunOutcomes>, seeds: usize) -> Option<Card> {
    let sweep = sweep_of(runs).ok()?;
    // (series, point)
    let estimates: Vec<Vec<Option<Estimate>>> = figure
        .series
        .iter()
        .map(|series| {
            let point = |k: usize| {
                let runs = at_point(runs, k);
                let seed = |seed| series.measure.evaluate(&runs, Basis::Seed(seed))?.first().copied();
                Estimate::of(&(0..seeds).map(seed).collect::<Option<Vec<f64>>>()?)
            };
            (0..sweep.at.len()).map(point).collect()
        })
        .collect();
    let curve = |(key, estimates): (usize, &Vec<Option<Estimate>>)| {
        let mut curve = Curve::empty(Some(key));
        for (x, estimate) in sweep.at.iter().zip(estimates) {
            let Some(Estimate { mean, ci95, .. }) = *estimate else { continue };
            let half = ci95.unwrap_or(0.0);
            curve.line.push((*x, mean));
            curve.band.push((*x, mean - half, mean + half));
        }
        curve
    };
    let all: Vec<Curve> = estimates.iter().enumerate().map(curve).collect();
    let ends = || all.iter().flat_map(|curve| &curve.band);
    let low = ends().map(|end| end.1).fold(f64::INFINITY, f64::min);
    let high = ends().map(|end| end.2).fold(f64::NEG_INFINITY, f64::max);
    let (first, last) = (sweep.at.first().copied().unwrap_or(0.0), sweep.at.last().copied().unwrap_or(1.0));
    // Differences are small compared with the values: the axis does not begin at zero.
    let margin = 0.05 * (high - low);
    let plot = Plot {
        x: XAxis::Number { low: first, high: last },
        y_min: if low.is_finite() { low - margin } else { 0.0 },
        y_max: high + margin,
        levels: Vec::new(),
    };
    let names: Vec<String> = figure.series.iter().map(|series| series.label.clone()).collect();
    let caption = format!("{} over {}; bands: 95 % intervals.", figure.y, sweep.axis);
    let heads = [std::slice::from_ref(&sweep.axis), names.as_slice()].concat();
    let row = |(k, x): (usize, &f64)| {
        let shown = |estimates: &Vec<Option<Estimate>>| {
            estimates.get(k).copied().flatten().map_or_else(|| "–".to_owned(), fine)
        };
        [vec![number(*x)], estimates.iter().map(shown).collect()].concat()
    };
    let rows: Vec<Vec<String>> = sweep.at.iter().enumerate().map(row).collect();
    Some(Card {
        title: figure.title.clone(),
        caption,
        names,
        dashed: None,
        drawing: curves(&plot, &all),
        numbers: Some((heads, rows)),
    })
}

/// A mean with enough digits to show differences between schemes.
fn fine(Estimate { mean, ci95, .. }: Estimate) -> String {
    ci95.map_or_else(|| format!("{mean:.5}"), |half| format!("{mean:.5} ± {half:.5}"))
}

/// Throughput since the start of the run: the mean over flows, a curve per run.
pub(super) fn running_mean(figure: &RunningMean, runs: &Runs<'_, RunOutcomes>) -> Card {
    let found: Vec<(&str, Vec<(f64, f64)>)> = figure
        .series
        .iter()
        .filter_map(|series| {
            let flows = Flows::of(runs, &series.run, &series.of)?;
            Some((series.label.as_str(), since_start(&flows)))
        })
        .collect();
    let end = found.iter().filter_map(|(_, line)| Some(line.last()?.0)).fold(0.0, f64::max);
    let top = found.iter().flat_map(|(_, line)| line).map(|point| point.1).fold(0.0, f64::max);
    let names: Vec<String> = found.iter().map(|(label, _)| (*label).to_owned()).collect();
    let curve = |(key, (_, line))| Curve { key: Some(key), line, band: Vec::new() };
    let all: Vec<Curve> = found.into_iter().enumerate().map(curve).collect();
    let plot =
        Plot { x: XAxis::Time { end, warm_up: 0.0 }, y_min: 0.0, y_max: top * 1.05, levels: Vec::new() };
    let caption = "Throughput of a connection since the start, Mb/s, mean over connections and seeds.";
    Card {
        title: figure.title.clone(),
        caption: caption.to_owned(),
        names,
        dashed: None,
        drawing: curves(&plot, &all),
        numbers: None,
    }
}

fn since_start(flows: &Flows<'_>) -> Vec<(f64, f64)> {
    let RunOutcomes { scenario, outcomes } = flows.run();
    let samples = scenario.stop.as_nanos().div_ceil(scenario.sample.as_nanos().max(1)) as usize;
    let step = samples.div_ceil(BINS).max(1);
    let count = (outcomes.len() * flows.indices().len()).max(1) as f64;
    let rate = |end: usize| -> (f64, f64) {
        let of_flow = |outcome: &Outcome, at: &usize| {
            let series = outcome.flows.get(*at).map_or(&[][..], |flow| &flow.series);
            mbps(series.iter().take(end).copied().sum(), scenario.sample * end as u64)
        };
        let of_seed = |outcome: &Outcome| flows.indices().iter().map(|at| of_flow(outcome, at)).sum::<f64>();
        let y = outcomes.iter().map(of_seed).sum::<f64>() / count;
        (scenario.sample.as_secs_f64() * end as f64, y)
    };
    (1..=samples / step).map(|k| rate(k * step)).collect()
}
