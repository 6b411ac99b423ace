//! Figures over time, of the first replication.

use std::collections::BTreeMap;

use super::{Drawn, Kind, Numbers, Plotted, cell};
use crate::figure::{COLOURS, Curve, Panel, Plot, XAxis, curves};
use crate::rows::SeriesRow;
use crate::shares::{Keys, in_order};

/// Maximum of bins. Chosen: a point for every two pixels of a figure; finer curves show the noise of single
/// packets.
const BINS: usize = 140;

/// Values over time: by the key of a flow or the index of a link, then by the end of the interval in
/// microseconds.
type Samples = BTreeMap<usize, BTreeMap<u64, Vec<f64>>>;

/// Throughput or windows of flows, the mean over those of a key with a band from the lowest to the highest; or packets in the queues of links.
pub(super) fn plot(kind: Kind, points: &[Drawn<'_>], keys: &Keys, series: &[SeriesRow]) -> Plotted {
    let links = in_order(series.iter().filter(|row| row.kind == "link").map(|row| row.name.clone()));
    let names = if kind == Kind::Queue { &links[..] } else { keys.names() };
    let (title, unit) = match kind {
        Kind::Queue => ("Packets in the queue", "packets"),
        Kind::Window => ("Congestion window, segments", "segments"),
        _ => ("Throughput of a flow, Mb/s", "mbps"),
    };
    let columns = ["seed".to_owned(), "of".to_owned(), "t_s".to_owned()];
    let values = ["mean", "low", "high"].map(|column| format!("{column}_{unit}"));
    let columns: Vec<&str> = columns.iter().chain(&values).map(String::as_str).collect();
    let mut numbers = Numbers::new(points, &columns);
    let mut all: Vec<(&Drawn<'_>, Vec<Curve>)> = Vec::new();
    for drawn in points {
        let rows = || series.iter().filter(|row| row.point == drawn.label);
        let Some(seed) = rows().next().map(|row| row.seed) else { continue };
        let found = curves_of(&samples(kind, drawn, rows(), keys, &links));
        for curve in &found {
            let of = curve.key.and_then(|key| names.get(key)).map_or("", String::as_str);
            for (&(t, mean), &(_, low, high)) in curve.line.iter().zip(&curve.band) {
                let cells = [seed.to_string(), of.to_owned(), cell(t)];
                numbers.add(drawn, cells.into_iter().chain([mean, low, high].map(cell)).collect());
            }
        }
        all.push((drawn, found));
    }
    all.retain(|(_, found)| !found.is_empty());
    let bands = || all.iter().flat_map(|(_, found)| found).flat_map(|curve| &curve.band);
    let y_max = bands().map(|band| band.2).fold(0.0, f64::max) * 1.06;
    let end = bands().map(|band| band.0).fold(0.0, f64::max);
    let legend: Vec<(usize, String)> = names.iter().take(COLOURS).cloned().enumerate().collect();
    let panel = |(drawn, found): (&Drawn<'_>, Vec<Curve>)| Panel {
        title: title.to_owned(),
        note: drawn.label.to_owned(),
        legend: legend.clone(),
        drawing: curves(
            &Plot {
                x: XAxis::Time { end, warm_up: drawn.measure_from_s.max(0.0) },
                y_min: 0.0,
                y_max,
                levels: Vec::new(),
            },
            &found,
        ),
    };
    Plotted { panels: all.into_iter().map(panel).collect(), numbers }
}

fn samples<'a>(
    kind: Kind,
    drawn: &Drawn<'_>,
    rows: impl Iterator<Item = &'a SeriesRow>,
    keys: &Keys,
    links: &[String],
) -> Samples {
    let flows: BTreeMap<&str, usize> =
        drawn.flows.iter().map(|flow| (flow.name.as_str(), keys.of_flow(&flow.name, &flow.group))).collect();
    let mut samples = Samples::new();
    for row in rows {
        let flow = || flows.get(row.name.as_str()).copied();
        let found = match kind {
            Kind::Queue => {
                links.iter().position(|link| *link == row.name).zip(row.backlog_packets.map(|p| p as f64))
            }
            Kind::Window => flow().zip(row.window_segments),
            _ => flow().map(|key| (key, row.throughput_mbps)),
        };
        let is_of = (row.kind == "link") == (kind == Kind::Queue);
        if let Some((key, value)) = found.filter(|(key, _)| is_of && *key < COLOURS) {
            let at = (row.t_s * 1e6).round().max(0.0) as u64;
            samples.entry(key).or_default().entry(at).or_default().push(value);
        }
    }
    samples
}

/// The mean of each bin, with the lowest and the highest value in it.
fn curves_of(samples: &Samples) -> Vec<Curve> {
    let curve = |(key, by_time): (&usize, &BTreeMap<u64, Vec<f64>>)| {
        let mut curve = Curve::empty(Some(*key));
        let all: Vec<(&u64, &Vec<f64>)> = by_time.iter().collect();
        for bin in all.chunks(all.len().div_ceil(BINS).max(1)) {
            let Some((end, _)) = bin.last() else { continue };
            let values = || bin.iter().flat_map(|(_, values)| *values).copied();
            let t = **end as f64 / 1e6;
            curve.line.push((t, values().sum::<f64>() / values().count().max(1) as f64));
            let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
            curve.band.push((t, low, high));
        }
        curve
    };
    samples.iter().map(curve).collect()
}
