//! The metrics of a run, common to tables, the summary, JSON lines and comparisons.

use std::collections::BTreeMap;

use apportion_core::queue::DropReason;
use serde::Serialize;

use crate::record::PointRecord;
use crate::rows::{CompletionRow, FlowRow, LinkRow, StatisticRow};
use crate::shares::customer_shares;
use crate::statistics::{Estimate, jain, mean, nearest_rank, number, sigma};
use crate::tables::Rows;

/// A number measured once per replication.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// Its name, such as `throughput_mbps/tcp`: the quantity, then the group or link unless it is over all.
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

/// The metrics of one point of a run, in the order in which they are shown.
#[must_use]
pub fn of(point: &PointRecord) -> Vec<Metric> {
    Metrics::of(point).0
}

/// All metrics of one point, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(pub(crate) Vec<Metric>);

impl Metrics {
    /// Those of a point of a run.
    pub(crate) fn of(point: &PointRecord) -> Self {
        Self::of_rows(&Rows::of(point))
    }

    /// Those of the rows of one point.
    pub(crate) fn of_rows(rows: &Rows) -> Self {
        let mut by_seed: BTreeMap<u64, Replication<'_>> = BTreeMap::new();
        for row in &rows.flows {
            by_seed.entry(row.seed).or_default().flows.push(row);
        }
        for row in &rows.links {
            by_seed.entry(row.seed).or_default().links.push(row);
        }
        for row in &rows.completions {
            by_seed.entry(row.seed).or_default().completions.push(row);
        }
        for row in &rows.statistics {
            by_seed.entry(row.seed).or_default().statistics.push(row);
        }
        let mut all = Self::default();
        for replication in by_seed.values() {
            all.add_flows(&replication.flows);
            all.add_links(&replication.links);
            all.add_completions(replication);
            all.add_statistics(replication);
        }
        // Reasons for which nothing was dropped or marked in any replication would bury the others.
        all.0.retain(|metric| !is_by_reason(&metric.name) || metric.samples.iter().any(|count| *count > 0.0));
        all
    }

    /// The metric called `name`, if it was measured.
    pub(crate) fn get(&self, name: &str) -> Option<Estimate> {
        self.0.iter().find(|m| m.name == name)?.estimate()
    }

    /// The metric called `name` as text; counts of a single replication are whole numbers.
    pub(crate) fn show(&self, name: &str) -> Option<String> {
        let metric = self.0.iter().find(|m| m.name == name)?;
        let estimate = metric.estimate()?;
        Some(match estimate.ci95 {
            None if metric.unit != "packets" => number(estimate.mean),
            _ => estimate.to_string(),
        })
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

        for customer in customer_shares(flows) {
            let of = customer.label();
            self.push(format!("customer_mbps/{of}"), "Mb/s", Some(customer.throughput));
            self.push(format!("customer_share/{of}"), "", customer.share());
        }
        let mut groups: BTreeMap<&str, Vec<&FlowRow>> = BTreeMap::new();
        for flow in flows {
            groups.entry(&flow.group).or_default().push(flow);
        }
        for (group, members) in &groups {
            let of = |field: fn(&FlowRow) -> Option<f64>| {
                mean(&members.iter().filter_map(|f| field(f)).collect::<Vec<_>>())
            };
            self.push(format!("throughput_mbps/{group}"), "Mb/s", of(|f| Some(f.throughput_mbps)));
            self.push(format!("share/{group}"), "", share(members));
            self.push(format!("goodput_mbps/{group}"), "Mb/s", of(|f| f.goodput_mbps));
            self.push(format!("delay_p50_ms/{group}"), "ms", of(|f| f.delay_p50_ms));
            self.push(format!("delay_p95_ms/{group}"), "ms", of(|f| f.delay_p95_ms));
            for reason in DropReason::ALL {
                let count = members.iter().map(|f| f.drops_by(reason) as f64).sum();
                self.push(format!("drops_{}_packets/{group}", reason.name()), "packets", Some(count));
            }
            let marked = members.iter().map(|f| f.marked_packets as f64).sum();
            self.push(format!("marked_packets/{group}"), "packets", Some(marked));
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
            for reason in DropReason::ALL {
                let count = link.drops_by(reason) as f64;
                self.push(format!("link_drops_{}_packets/{name}", reason.name()), "packets", Some(count));
            }
            self.push(format!("link_marked_packets/{name}"), "packets", Some(link.marked_packets as f64));
        }
        let sum = |field: fn(&LinkRow) -> u64| links.iter().map(|l| field(l) as f64).sum::<f64>();
        self.push("drops_packets".into(), "packets", Some(sum(LinkRow::drops)));
        self.push("marked_packets".into(), "packets", Some(sum(|l| l.marked_packets)));
    }

    /// The statistics that the queues of one replication's watched links report.
    fn add_statistics(&mut self, replication: &Replication<'_>) {
        for row in &replication.statistics {
            if replication.links.iter().any(|link| link.watched && link.link == row.link) {
                self.push(format!("queue_{}/{}", row.statistic, row.link), "", Some(row.value));
            }
        }
    }

    /// One replication's finite transfers, by group.
    fn add_completions(&mut self, replication: &Replication<'_>) {
        let group_of: BTreeMap<&str, &str> =
            replication.flows.iter().map(|f| (f.flow.as_str(), f.group.as_str())).collect();
        let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for row in &replication.completions {
            let Some(group) = group_of.get(row.flow.as_str()) else { continue };
            times.entry(group).or_default().push(row.took_s);
        }
        for (group, mut took) in times {
            took.sort_by(f64::total_cmp);
            for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
                self.push(format!("completion_{name}_s/{group}"), "s", nearest_rank(&took, share));
            }
        }
    }
}

/// Whether a metric counts the packets of a group or link that were dropped for one reason, or marked.
fn is_by_reason(name: &str) -> bool {
    let prefixes = ["drops_", "marked_packets/", "link_drops_", "link_marked_packets/"];
    name.contains('/') && prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Throughput over entitlement of these flows together; `None` if one of them has no entitlement.
fn share(flows: &[&FlowRow]) -> Option<f64> {
    let due: f64 = flows.iter().map(|flow| flow.entitlement_mbps).sum::<Option<f64>>()?;
    (due > 0.0).then(|| flows.iter().map(|flow| flow.throughput_mbps).sum::<f64>() / due)
}

/// The rows of one replication.
#[derive(Default)]
struct Replication<'a> {
    flows: Vec<&'a FlowRow>,
    links: Vec<&'a LinkRow>,
    completions: Vec<&'a CompletionRow>,
    statistics: Vec<&'a StatisticRow>,
}

/// The values of Jain's index: the ratio of throughput to entitlement of the flows that have one, or the throughput
/// of all flows if none has.
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
