//! The tables over time: flows and links, and the allocations of links to flows, in each sample interval.

use apportion_core::units::{Bytes, Rate};
use apportion_runtime::outcome::TcpSample;
use serde::{Deserialize, Serialize};

use super::column::{Cell, Column, Field, Row};
use crate::replication::Replication;
use crate::units::{mbps, ms, round6};

row! {
    /// One sample interval of one flow or watched link, from the start of the run.
    SeriesRow of "series" from SampleAt<'_> as at {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = at.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = at.replication.outcome.seed;
        /// `flow` or `link`.
        kind: String, "" = at.kind.to_owned();
        /// The flow or link.
        name: String, "" = at.name.to_owned();
        /// The end of the interval, s from the start of the run.
        t_s: f64, "s" = end_of(at.replication, at.number);
        /// Throughput in the interval, as in the tables `flows` and `links`.
        throughput_mbps: f64, "Mb/s" = mbps(at.bytes, at.replication.sample);
        /// Flows: mean entitlement in the interval; missing without one.
        due_mbps: Option<f64>, "Mb/s" = at.due.map(Rate::as_mbit_f64);
        /// Throughput over entitlement; missing also where it is 0.
        share: Option<f64>, "" = Self::due_mbps(at).filter(|&due| due > 0.0).map(|due| round6(Self::throughput_mbps(at)) / due);
        /// Links: backlog in packets at the end of the interval.
        backlog_packets: Option<u64>, "packets" = at.backlog;
        /// TCP flows of one connection: congestion window at the end of the interval.
        window_segments: Option<f64>, "segments" = at.tcp.map(|tcp| tcp.window);
        /// TCP flows of one connection: smoothed round-trip time at the end of the interval, ms.
        srtt_ms: Option<f64>, "ms" = at.tcp.and_then(|tcp| tcp.srtt).map(ms);
    }
}

/// One sample interval of a flow or link.
pub(crate) struct SampleAt<'a> {
    replication: Replication<'a>,
    kind: &'a str,
    name: &'a str,
    /// Index of the interval, from 0.
    number: usize,
    bytes: Bytes,
    due: Option<Rate>,
    backlog: Option<u64>,
    tcp: Option<TcpSample>,
}

/// Flows first, then watched links.
pub(crate) fn series(replication: Replication<'_>) -> impl Iterator<Item = SeriesRow> {
    let Replication { outcome, dues, .. } = replication;
    let dues = dues.map_or(&[][..], |dues| &dues.flows);
    let flows = outcome.flows.iter().enumerate().flat_map(move |(place, flow)| {
        let due = dues.get(place).map_or(&[][..], |due| &due.series);
        flow.series.iter().enumerate().map(move |(number, &bytes)| SampleAt {
            replication,
            kind: "flow",
            name: &flow.name,
            number,
            bytes,
            due: due.get(number).copied(),
            backlog: None,
            tcp: flow.tcp.get(number).copied(),
        })
    });
    let links = outcome.links.iter().flat_map(move |link| {
        link.series.iter().enumerate().map(move |(number, &bytes)| SampleAt {
            replication,
            kind: "link",
            name: &link.name,
            number,
            bytes,
            due: None,
            backlog: link.backlog.get(number).copied(),
            tcp: None,
        })
    });
    flows.chain(links).map(|at| SeriesRow::measured(&at))
}

row! {
    /// Allocation of a watched link to one flow, and backlog of that flow, in one sample interval.
    AllocationRow of "allocations" from AllocationAt<'_> as at {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = at.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = at.replication.outcome.seed;
        /// The link.
        link: String, "" = at.link.to_owned();
        /// The flow.
        flow: String, "" = at.flow.to_owned();
        /// The end of the interval, s from the start of the run.
        t_s: f64, "s" = end_of(at.replication, at.number);
        /// The mean allocation in the interval, Mb/s.
        allocation_mbps: f64, "Mb/s" = mbps(at.bytes, at.replication.sample);
        /// Bytes of the flow in the queue at the end of the interval.
        fill_bytes: u64, "bytes" = at.fill.get();
    }
}

/// One sample interval of a link's allocation to a flow.
pub(crate) struct AllocationAt<'a> {
    replication: Replication<'a>,
    link: &'a str,
    flow: &'a str,
    number: usize,
    bytes: Bytes,
    fill: Bytes,
}

/// The rows of a replication by link and flow.
pub(crate) fn allocations(replication: Replication<'_>) -> impl Iterator<Item = AllocationRow> {
    let outcome = replication.outcome;
    let all = outcome.links.iter().flat_map(|link| link.allocations.iter().map(move |of| (link, of)));
    all.flat_map(move |(link, of)| {
        let flow = outcome.flows.get(of.flow).map_or("", |flow| &flow.name);
        of.series.iter().zip(&of.fill).enumerate().map(move |(number, (&bytes, &fill))| {
            let link = &link.name;
            AllocationRow::measured(&AllocationAt { replication, link, flow, number, bytes, fill })
        })
    })
}

/// The end of the sample interval with this number, s.
fn end_of(replication: Replication<'_>, number: usize) -> f64 {
    (replication.sample * (number as u64 + 1)).as_secs_f64()
}
