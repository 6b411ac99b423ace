//! The metrics of a run, common to tables, the summary, JSON lines and comparisons.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::queue::DropReason;
use serde::Serialize;

use crate::recorded::Recorded;
use crate::rows::{FlowRow, LinkRow};
use crate::statistics::{Estimate, jain, judged, mean, nearest_rank, number, r2_of_entitlements, sigma};

/// The name of Jain's index.
const JAIN: &str = "jain";

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

/// All metrics of one point, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    all: Vec<Metric>,
    /// Their places in `all`, by name.
    places: BTreeMap<String, usize>,
}

impl Metrics {
    /// Adds the samples of one replication.
    pub(crate) fn add(&mut self, of: &Recorded) {
        self.add_flows(&of.flows);
        self.add_links(&of.links);
        self.add_completions(of);
        crate::media::metrics(of).into_iter().for_each(|(name, unit, value)| self.push(name, unit, value));
        self.add_statistics(of);
    }

    /// All of them, but for reasons for which nothing was dropped or marked in any replication: these would bury the others.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Metric> {
        self.all.iter().filter(|metric| is_shown(metric))
    }

    /// The metric called `name`, if it is shown.
    fn shown(&self, name: &str) -> Option<&Metric> {
        self.places.get(name).map(|&at| &self.all[at]).filter(|metric| is_shown(metric))
    }

    /// The metric called `name`, if it was measured.
    pub(crate) fn get(&self, name: &str) -> Option<Estimate> {
        self.shown(name)?.estimate()
    }

    /// The metric called `name` as text; counts of a single replication are whole numbers.
    pub(crate) fn show(&self, name: &str) -> Option<String> {
        let metric = self.shown(name)?;
        let estimate = metric.estimate()?;
        Some(match estimate.ci95 {
            None if metric.unit != "packets" => number(estimate.mean),
            _ => estimate.to_string(),
        })
    }

    /// The metrics whose names begin so: the rest of the name, a group or link, and the samples.
    pub(crate) fn by_name(&self, quantity: &str) -> impl Iterator<Item = (&str, &[f64])> {
        let of = move |metric| {
            let Metric { name, samples, .. }: &Metric = metric;
            Some((name.strip_prefix(quantity)?, samples.as_slice()))
        };
        self.iter().filter_map(of)
    }

    /// The links that are watched.
    pub(crate) fn watched_links(&self) -> impl Iterator<Item = &str> {
        self.by_name("utilisation/").map(|(link, _)| link)
    }

    /// The groups of which finite transfers have completed.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = &str> {
        self.by_name("completion_p95_s/").map(|(group, _)| group)
    }

    /// The groups that measure round trips.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &str> {
        self.by_name("rpm/").map(|(group, _)| group)
    }

    /// The samples of the metric called `name`; none if it was not measured.
    pub(crate) fn samples(&self, name: &str) -> &[f64] {
        self.places.get(name).map_or(&[], |&at| &self.all[at].samples)
    }

    /// Leaves Jain's index to [`add_shares`](Self::add_shares), where it is over fewer flows.
    pub(crate) fn forget_jain(&mut self) {
        if let Some(&at) = self.places.get(JAIN) {
            self.all[at].samples.clear();
        }
    }

    /// One replication's flows, in the numbers that a league compares: what the worst-off and the best-off flow got of what they were due,
    /// how far shares are in proportion to entitlements, and the packets that were lost. Finite `transfers` are judged by their times; if
    /// there are any, Jain's index is over the others.
    pub(crate) fn add_shares(&mut self, flows: &[FlowRow], transfers: &[String]) {
        let due = |flow: &FlowRow| flow.entitlement_mbps.filter(|due| *due > 0.0);
        let judged = flows.iter().filter(|flow| !transfers.contains(&flow.group));
        let points: Vec<(f64, f64)> =
            judged.filter_map(|flow| Some((due(flow)?, flow.throughput_mbps))).collect();
        let shares = || points.iter().map(|(due, got)| got / due);
        self.push("worst_share".into(), "", shares().min_by(f64::total_cmp));
        self.push("best_share".into(), "", shares().max_by(f64::total_cmp));
        if !transfers.is_empty() {
            self.push(JAIN.into(), "", jain(&shares().collect::<Vec<_>>()));
        }
        self.push("r2".into(), "", r2_of_entitlements(&points));
        let sent: u64 = flows.iter().map(|flow| flow.sent_packets).sum();
        let lost: u64 = flows.iter().map(|flow| flow.drops().saturating_add(flow.lost_packets)).sum();
        self.push("lost".into(), "", (sent > 0).then(|| lost as f64 / sent as f64));
    }

    fn push(&mut self, name: String, unit: &'static str, value: Option<f64>) {
        let Some(value) = value else { return };
        match self.places.get(&name) {
            Some(&at) => self.all[at].samples.push(value),
            None => {
                self.places.insert(name.clone(), self.all.len());
                self.all.push(Metric { name, unit, samples: vec![value] });
            }
        }
    }

    /// One replication's flows.
    fn add_flows(&mut self, flows: &[FlowRow]) {
        let throughputs: Vec<f64> = flows.iter().map(|f| f.throughput_mbps).collect();
        self.push("throughput_mbps".into(), "Mb/s", Some(throughputs.iter().sum()));
        self.push(JAIN.into(), "", jain(&shares(flows)));
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
            self.push(format!("rpm/{group}"), "1/min", of(|f| f.rpm));
            for reason in DropReason::ALL {
                let count = members.iter().map(|f| f.drops_by(reason) as f64).sum();
                self.push(format!("drops_{}_packets/{group}", reason.name()), "packets", Some(count));
            }
            let marked = members.iter().map(|f| f.marked_packets as f64).sum();
            self.push(format!("marked_packets/{group}"), "packets", Some(marked));
        }
    }

    /// One replication's links.
    fn add_links(&mut self, links: &[LinkRow]) {
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
    fn add_statistics(&mut self, replication: &Recorded) {
        let watched: BTreeSet<&str> =
            replication.links.iter().filter(|link| link.watched).map(|link| link.link.as_str()).collect();
        for row in &replication.statistics {
            if watched.contains(row.link.as_str()) {
                self.push(format!("queue_{}/{}", row.statistic, row.link), "", Some(row.value));
            }
        }
    }

    /// One replication's finite transfers, by group.
    fn add_completions(&mut self, replication: &Recorded) {
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
            self.push(format!("completion_mean_s/{group}"), "s", mean(&took));
            self.push(format!("completions/{group}"), "", Some(took.len() as f64));
        }
    }
}

/// A watched link that stands for all that are watched at some points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowestLink<'a> {
    pub(crate) name: &'a str,
    /// Whether it is the only watched link, so that its name says nothing new.
    pub(crate) is_only: bool,
}

impl<'a> SlowestLink<'a> {
    /// The watched link with the largest 95th percentile of queue delay at any of these points, as a mean over replications; of
    /// equal ones the first.
    pub(crate) fn of(points: impl Iterator<Item = &'a Metrics> + Clone) -> Option<Self> {
        let mut delays: BTreeMap<&str, f64> = BTreeMap::new();
        for link in points.clone().flat_map(Metrics::watched_links) {
            delays.entry(link).or_default();
        }
        for (link, samples) in points.flat_map(|metrics| metrics.by_name("queue_delay_p95_ms/")) {
            if let (Some(longest), Some(delay)) = (delays.get_mut(link), mean(samples)) {
                *longest = longest.max(delay);
            }
        }
        let is_only = delays.len() == 1;
        // The last of equal ones is the first in reverse order.
        let (name, _) = delays.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Self { name, is_only })
    }
}

/// Whether a metric is of interest: counts by reason that are zero in all replications are not.
fn is_shown(metric: &Metric) -> bool {
    !is_by_reason(&metric.name) || metric.samples.iter().any(|count| *count > 0.0)
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

/// The values of Jain's index: the ratio of throughput to entitlement of the flows that have one, or the throughput
/// of all flows if none has.
fn shares(flows: &[FlowRow]) -> Vec<f64> {
    judged(flows.iter().map(|f| f.entitlement_mbps))
        .map(|(i, entitlement)| flows[i].throughput_mbps / entitlement.unwrap_or(1.0))
        .collect()
}

/// What the flows without a customer are called.
pub(crate) const NO_CUSTOMER: &str = "(no customer)";

/// What a customer got in one replication.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CustomerShare<'a> {
    /// None: all flows without one, which are one customer together.
    pub(crate) name: Option<&'a str>,
    pub(crate) flows: usize,
    /// Of all its flows, Mb/s.
    pub(crate) throughput: f64,
    /// Of all its flows, Mb/s; none if one has none.
    pub(crate) entitlement: Option<f64>,
}

impl CustomerShare<'_> {
    /// Its name, for people.
    pub(crate) fn label(&self) -> &str {
        self.name.unwrap_or(NO_CUSTOMER)
    }

    /// Throughput over entitlement.
    pub(crate) fn share(&self) -> Option<f64> {
        self.entitlement.filter(|&due| due > 0.0).map(|due| self.throughput / due)
    }
}

/// The customers of the flows of one replication, by name; none if no flow has one.
pub(crate) fn customer_shares(flows: &[FlowRow]) -> Vec<CustomerShare<'_>> {
    let mut customers: BTreeMap<Option<&str>, Vec<&FlowRow>> = BTreeMap::new();
    for flow in flows {
        customers.entry(flow.customer.as_deref()).or_default().push(flow);
    }
    if customers.keys().all(Option::is_none) {
        return Vec::new();
    }
    let mut shares = Vec::with_capacity(customers.len());
    for (name, flows) in customers {
        shares.push(CustomerShare {
            name,
            flows: flows.len(),
            throughput: flows.iter().map(|flow| flow.throughput_mbps).sum(),
            entitlement: flows.iter().map(|flow| flow.entitlement_mbps).sum(),
        });
    }
    shares
}
