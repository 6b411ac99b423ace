//! The numbers a run is judged by: one home for tables, the summary, JSON lines and comparisons.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::PointRecord;
use crate::rows::{self, FlowRow, LinkRow};
use crate::statistics::{Estimate, jain, mean, sigma};

/// A number measured once per replication.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Such as `throughput_mbps/tcp`: what, then of whom if not of all.
    pub name: String,
    /// Such as `Mb/s`.
    pub unit: &'static str,
    /// One per replication.
    pub samples: Vec<f64>,
}

impl Metric {
    /// Its mean and interval.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.samples)
    }
}

/// All metrics of one point, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(pub(crate) Vec<Metric>);

impl Metrics {
    /// Those of a point of a run.
    pub(crate) fn of(point: &PointRecord) -> Self {
        let flows: Vec<_> = rows::flows(point).collect();
        let links: Vec<_> = rows::links(point).collect();
        Self::of_rows(&flows, &links)
    }

    /// Those of the rows of one point.
    pub(crate) fn of_rows(flows: &[FlowRow], links: &[LinkRow]) -> Self {
        let mut by_seed: BTreeMap<u64, (Vec<&FlowRow>, Vec<&LinkRow>)> = BTreeMap::new();
        for row in flows {
            by_seed.entry(row.seed).or_default().0.push(row);
        }
        for row in links {
            by_seed.entry(row.seed).or_default().1.push(row);
        }
        let mut all = Self::default();
        for (flows, links) in by_seed.values() {
            all.add_flows(flows);
            all.add_links(links);
        }
        all
    }

    /// The metric called `name`, if it was measured.
    pub(crate) fn get(&self, name: &str) -> Option<Estimate> {
        self.0.iter().find(|m| m.name == name)?.estimate()
    }

    fn push(&mut self, name: String, unit: &'static str, value: Option<f64>) {
        let Some(value) = value else { return };
        match self.0.iter_mut().find(|m| m.name == name) {
            Some(metric) => metric.samples.push(value),
            None => self.0.push(Metric { name, unit, samples: vec![value] }),
        }
    }

    /// One replication's flows.
    fn add_flows(&mut self, flows: &[&FlowRow]) {
        let throughputs: Vec<f64> = flows.iter().map(|f| f.throughput_mbps).collect();
        self.push("throughput_mbps".into(), "Mb/s", Some(throughputs.iter().sum()));
        self.push("jain".into(), "", jain(&shares(flows)));
        self.push("sigma_mbps".into(), "Mb/s", sigma(&throughputs));

        let mut groups: BTreeMap<&str, Vec<&FlowRow>> = BTreeMap::new();
        for flow in flows {
            groups.entry(&flow.group).or_default().push(flow);
        }
        for (group, members) in &groups {
            let of = |field: fn(&FlowRow) -> f64| mean(&members.iter().map(|f| field(f)).collect::<Vec<_>>());
            self.push(format!("throughput_mbps/{group}"), "Mb/s", of(|f| f.throughput_mbps));
            self.push(format!("goodput_mbps/{group}"), "Mb/s", of(|f| f.goodput_mbps));
        }
        for (group, members) in &groups {
            for (name, field) in COMPLETION_TIMES {
                let times: Vec<f64> = members.iter().filter_map(|f| field(f)).collect();
                self.push(format!("{name}/{group}"), "s", mean(&times));
            }
        }
    }

    /// One replication's links.
    fn add_links(&mut self, links: &[&LinkRow]) {
        for link in links.iter().filter(|l| l.watched) {
            let name = &link.link;
            self.push(format!("utilisation/{name}"), "", Some(link.utilisation));
            self.push(format!("queue_delay_p50_ms/{name}"), "ms", link.queue_delay_p50_ms);
            self.push(format!("queue_delay_p95_ms/{name}"), "ms", link.queue_delay_p95_ms);
            self.push(format!("queue_delay_p99_ms/{name}"), "ms", link.queue_delay_p99_ms);
        }
        let sum = |field: fn(&LinkRow) -> u64| links.iter().map(|l| field(l)).sum::<u64>() as f64;
        self.push("drops_packets".into(), "packets", Some(sum(LinkRow::drops)));
        self.push("marked_packets".into(), "packets", Some(sum(|l| l.marked_packets)));
    }
}

type OfFlow = fn(&FlowRow) -> Option<f64>;

/// Means over a group's flows of each flow's quantile.
const COMPLETION_TIMES: [(&str, OfFlow); 2] =
    [("completion_p50_s", |f| f.completion_p50_s), ("completion_p95_s", |f| f.completion_p95_s)];

/// What Jain's index is taken of: throughput over entitlement of the flows that have one; throughput of all
/// flows if none has.
fn shares(flows: &[&FlowRow]) -> Vec<f64> {
    judged(flows.iter().map(|f| f.entitlement_mbps))
        .map(|(i, entitlement)| flows[i].throughput_mbps / entitlement.unwrap_or(1.0))
        .collect()
}

/// The flows that Jain's index is over: position and entitlement.
pub(crate) fn judged(
    entitlements: impl Iterator<Item = Option<f64>> + Clone,
) -> impl Iterator<Item = (usize, Option<f64>)> {
    let positive = entitlements.map(|e| e.filter(|&e| e > 0.0));
    let any = positive.clone().any(|e| e.is_some());
    positive.enumerate().filter(move |(_, e)| e.is_some() || !any)
}
