//! A run as a data file of Flent, version 4, in the form of its test `tcp_nup`: for Flent's plots, next to
//! measurements of real networks.
//!
//! Source: files that Flent 2.1.1 writes and opens (flent.org); the format has no other description.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Map, Value, json};

use crate::rows::SeriesRow;
use crate::store::{LoadError, StoredRun, load, series};

/// Why there is no file, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum FlentError {
    /// The run cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The run has several points, or none with this label.
    #[error("{0}; a file of Flent has one: name it by --point: {1}")]
    Point(String, String),
    /// The run has no series of flows.
    #[error("the run has no series of flows; run it with --series")]
    Empty,
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Writes the first replication of a point of a run, or of the last of the runs in a folder. A run without a sweep has one point.
///
/// Series are `TCP upload::1` and so on, the throughput of each flow in Mb/s, with `sum` and `avg`;
/// `TCP upload::1::tcp_rtt`, its smoothed round-trip time in ms where TCP measures one; and `Ping (ms) ICMP`,
/// the mean of these. Plots know only these names; the note maps numbers to flows. Times are from the start
/// of the run, at the end of each interval.
///
/// # Errors
/// There is no such run or point, the run has no series, or a file cannot be read or written.
pub fn write(dir: &Path, point: Option<&str>, out: &mut dyn Write) -> Result<(), FlentError> {
    let run = load(dir)?;
    let label = only_point(&run, point)?;
    let rows = series(&run, &[label])?;
    let file = file(&run.title, label, &rows).ok_or(FlentError::Empty)?;
    serde_json::to_writer(&mut *out, &file).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

fn only_point<'a>(run: &'a StoredRun, wanted: Option<&str>) -> Result<&'a str, FlentError> {
    let labels = || run.points.iter().map(|point| point.label.as_str());
    let refuse = |why: String| {
        let known: Vec<String> = labels().take(20).map(|label| format!("`{label}`")).collect();
        FlentError::Point(why, known.join(", "))
    };
    match wanted {
        Some(wanted) => labels()
            .find(|label| *label == wanted)
            .ok_or_else(|| refuse(format!("the run has no point `{wanted}`"))),
        None if run.points.len() > 1 => Err(refuse(format!("the run has {} points", run.points.len()))),
        None => labels().next().ok_or(FlentError::Empty),
    }
}

/// A curve: values at some of the times.
struct Series {
    name: String,
    unit: &'static str,
    values: Vec<Option<f64>>,
}

/// The series of a flow, by time in microseconds.
#[derive(Default)]
struct Flow<'a> {
    name: &'a str,
    mbps: BTreeMap<u64, f64>,
    srtt_ms: BTreeMap<u64, f64>,
}

/// The flows in the order of their first rows.
fn flows(rows: &[SeriesRow]) -> Vec<Flow<'_>> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    let mut flows: Vec<Flow<'_>> = Vec::new();
    for row in rows.iter().filter(|row| row.kind == "flow") {
        let place = *places.entry(&row.name).or_insert_with(|| {
            flows.push(Flow { name: &row.name, ..Flow::default() });
            flows.len() - 1
        });
        let at = (row.t_s * 1e6).round() as u64;
        flows[place].mbps.insert(at, row.throughput_mbps);
        flows[place].srtt_ms.extend(row.srtt_ms.map(|srtt| (at, srtt)));
    }
    flows
}

/// The curves of `flows`, and curves of their sum and means.
fn all_series(flows: &[Flow<'_>], times: &[u64]) -> Vec<Series> {
    let sampled = |name: String, unit, value: &dyn Fn(&u64) -> Option<f64>| Series {
        name,
        unit,
        values: times.iter().map(value).collect(),
    };
    let mut series = Vec::new();
    for (number, flow) in (1..).zip(flows) {
        let name = format!("TCP upload::{number}");
        series.push(sampled(name.clone(), MBPS, &|at| flow.mbps.get(at).copied()));
        if !flow.srtt_ms.is_empty() {
            series.push(sampled(format!("{name}::tcp_rtt"), MS, &|at| flow.srtt_ms.get(at).copied()));
        }
    }
    let rates = |at: &u64| flows.iter().filter_map(|flow| flow.mbps.get(at).copied()).collect::<Vec<f64>>();
    let rtts = |at: &u64| flows.iter().filter_map(|flow| flow.srtt_ms.get(at).copied()).collect::<Vec<f64>>();
    let mean = |all: Vec<f64>| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
    series.push(sampled("TCP upload sum".to_owned(), MBPS, &|at| Some(rates(at).iter().sum())));
    series.push(sampled("TCP upload avg".to_owned(), MBPS, &|at| mean(rates(at))));
    series.push(sampled("Ping (ms) ICMP".to_owned(), MS, &|at| mean(rtts(at))));
    series
}

const MBPS: &str = "Mbits/s";
const MS: &str = "ms";

/// The file; none without flows.
fn file(title: &str, label: &str, rows: &[SeriesRow]) -> Option<Value> {
    let flows = flows(rows);
    let times: BTreeSet<u64> = flows.iter().flat_map(|flow| flow.mbps.keys()).copied().collect();
    let times: Vec<u64> = times.into_iter().collect();
    let series = all_series(&flows, &times);
    let seconds: Vec<f64> = times.iter().map(|at| *at as f64 / 1e6).collect();
    let (first, last) = (seconds.first()?, seconds.last()?);
    let raw = |series: &Series| {
        let points = seconds.iter().zip(&series.values);
        points.filter_map(|(t, value)| value.map(|val| json!({ "t": t, "val": val }))).collect::<Value>()
    };
    let by_name = |of: &dyn Fn(&Series) -> Value| {
        series.iter().map(|series| (series.name.clone(), of(series))).collect::<Map<String, Value>>()
    };
    let numbered: Vec<String> = (1..).zip(&flows).map(|(at, flow)| format!("{at} {}", flow.name)).collect();
    let heading = if label.is_empty() { title.to_owned() } else { format!("{title}, {label}") };
    // Simulated time has no date: it begins in 1970.
    let begin = "1970-01-01T00:00:00.000000Z";
    Some(json!({
        "version": 4,
        "x_values": seconds,
        "results": by_name(&|series| json!(series.values)),
        "raw_values": by_name(&raw),
        "metadata": {
            "NAME": "tcp_nup",
            "TITLE": heading,
            "TIME": begin,
            "T0": begin,
            "HOST": title,
            "HOSTS": [title],
            "LOCAL_HOST": "apportion",
            "LENGTH": last,
            "TOTAL_LENGTH": last,
            "STEP_SIZE": seconds.get(1).map_or(*first, |second| second - first),
            "TEST_PARAMETERS": { "upload_streams": flows.len().to_string() },
            "SERIES_META": by_name(&|series| json!({ "UNITS": series.unit })),
            "NOTE": format!("apportion {}; flows: {}", env!("CARGO_PKG_VERSION"), numbered.join(", ")),
        },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, t_s: f64, throughput_mbps: f64, srtt_ms: Option<f64>) -> SeriesRow {
        let kind = if name == "wire" { "link" } else { "flow" };
        SeriesRow {
            kind: kind.to_owned(),
            name: name.to_owned(),
            t_s,
            throughput_mbps,
            srtt_ms,
            ..SeriesRow::default()
        }
    }

    #[test]
    fn flows_are_numbered_and_gaps_are_null() {
        let rows = [
            row("wire", 0.1, 9.0, None),
            row("b", 0.1, 2.0, Some(20.0)),
            row("b", 0.2, 4.0, Some(30.0)),
            row("a", 0.2, 1.0, None),
        ];
        let file = file("x", "queue=red", &rows).unwrap();
        assert_eq!(file["x_values"], json!([0.1, 0.2]));
        assert_eq!(
            file["results"],
            json!({
                "TCP upload::1": [2.0, 4.0],
                "TCP upload::1::tcp_rtt": [20.0, 30.0],
                "TCP upload::2": [null, 1.0],
                "TCP upload sum": [2.0, 5.0],
                "TCP upload avg": [2.0, 2.5],
                "Ping (ms) ICMP": [20.0, 30.0],
            })
        );
        assert_eq!(file["raw_values"]["TCP upload::2"], json!([{ "t": 0.2, "val": 1.0 }]));
        let metadata = &file["metadata"];
        assert_eq!((&metadata["TITLE"], &metadata["STEP_SIZE"]), (&json!("x, queue=red"), &json!(0.1)));
        assert!(metadata["NOTE"].as_str().unwrap().ends_with("flows: 1 b, 2 a"), "{metadata}");
        assert!(super::file("x", "", &rows[..1]).is_none());
    }
}
