//! What people saw and heard of video and calls: rows, metrics, and a table of the report.

use std::collections::BTreeMap;

use apportion_core::units::{Rate, Span};
use apportion_runtime::outcome::{CallQuality, MediaOutcome, Playback};

use crate::recorded::Recorded;
use crate::replication::Replication;
use crate::rows::MediaRow;
use crate::statistics::mean;
use crate::tables::{ms, round6};

/// By flow; none of flows without video or voice.
pub(crate) fn rows(of: Replication<'_>) -> impl Iterator<Item = MediaRow> {
    let Replication { point, outcome, .. } = of;
    let valid = outcome.fault().is_none();
    outcome.flows.iter().filter_map(move |flow| {
        let row = MediaRow {
            point: point.to_owned(),
            seed: outcome.seed,
            flow: flow.name.clone(),
            group: flow.group.clone(),
            valid,
            ..MediaRow::default()
        };
        Some(match flow.media.as_ref()? {
            MediaOutcome::Playback(seen) => playback(row, seen),
            MediaOutcome::Call(heard) => call(row, heard),
        })
    })
}

fn seconds(span: Span) -> f64 {
    round6(span.as_secs_f64())
}

fn playback(row: MediaRow, seen: &Playback) -> MediaRow {
    let watched = seen.played + seen.stalled;
    let ratio = (watched > Span::ZERO).then(|| seen.stalled.as_secs_f64() / watched.as_secs_f64());
    MediaRow {
        bitrate_mbps: seen.rate.map(|rate| round6(rate.as_mbit_f64())),
        startup_s: seen.startup.map(seconds),
        played_s: Some(seconds(seen.played)),
        stalls: Some(seen.stalls),
        stalled_s: Some(seconds(seen.stalled)),
        stall_ratio: ratio.map(round6),
        switches: Some(seen.switches),
        ..row
    }
}

fn call(row: MediaRow, heard: &CallQuality) -> MediaRow {
    MediaRow {
        bitrate_mbps: Some(heard.rate)
            .filter(|&rate| rate > Rate::ZERO)
            .map(|rate| round6(rate.as_mbit_f64())),
        mouth_to_ear_ms: heard.mouth_to_ear.map(ms),
        lost_share: heard.lost.map(round6),
        r_factor: heard.r.map(round6),
        mos: heard.mos.map(round6),
        ..row
    }
}

/// A number of a row.
type Cell = fn(&MediaRow) -> Option<f64>;

/// What is shown of a group, as the mean over its flows: the name of the metric, its unit, and its cell.
const SHOWN: [(&str, &str, Cell); 7] = [
    ("bitrate_mbps", "Mb/s", |row| row.bitrate_mbps),
    ("startup_s", "s", |row| row.startup_s),
    ("stalls", "", |row| row.stalls.map(|count| count as f64)),
    ("stall_ratio", "", |row| row.stall_ratio),
    ("switches", "", |row| row.switches.map(|count| count as f64)),
    ("mouth_to_ear_ms", "ms", |row| row.mouth_to_ear_ms),
    ("mos", "", |row| row.mos),
];

/// The metrics of one replication, by group: name, unit and value.
pub(crate) fn metrics(of: &Recorded) -> Vec<(String, &'static str, Option<f64>)> {
    let mut groups: BTreeMap<&str, Vec<&MediaRow>> = BTreeMap::new();
    for row in &of.media {
        groups.entry(&row.group).or_default().push(row);
    }
    let of_group = |(group, rows): (&str, Vec<&MediaRow>)| {
        SHOWN.map(|(name, unit, cell)| {
            let cells: Vec<f64> = rows.iter().filter_map(|row| cell(row)).collect();
            (format!("{name}/{group}"), unit, mean(&cells))
        })
    };
    groups.into_iter().flat_map(of_group).collect()
}
