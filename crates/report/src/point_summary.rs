//! The summary of a point's replications: everything that the report needs of them except curves over time.
//! It grows by some numbers with each replication, while an outcome has thousands.

use apportion_core::units::{Rate, Span, Time};

use crate::due::Worst;
use crate::link_use::LinkUses;
use crate::metrics::Metrics;
use crate::replication_rows::ReplicationRows;
use crate::rows::FlowRow;
use crate::sample::Sample;
use crate::statistics::mean;

/// The summary of a point.
#[derive(Clone, Debug, Default)]
pub struct PointSummary {
    /// Seeds of the replications, in order.
    pub(crate) seeds: Vec<u64>,
    /// The length of the measured part, once there is a replication.
    pub(crate) measured: Option<Span>,
    pub(crate) metrics: Metrics,
    pub(crate) links: LinkUses,
    /// The largest share of full tags, with the flow or link that wrote them; none if no tag was full.
    pub(crate) full_tags: Option<FullTags>,
    /// The first flow of each group with a connection that failed, in the order of the replications.
    pub(crate) failures: Vec<Failure>,
    /// Flows in the scenario's order.
    pub(crate) flows: Vec<FlowSummary>,
    /// Replications that are not valid, by seed, with the reason.
    pub(crate) faults: Vec<(u64, String)>,
    /// Numbers to compare with perturbed copies, in the order of the replications; empty if there are none.
    pub(crate) samples: Vec<Sample>,
}

/// The share of a writer's packets that had more tickets than their tags hold.
#[derive(Clone, Debug, PartialEq)]
pub struct FullTags {
    /// The flow or link.
    pub writer: String,
    /// Whether the writer is a link that exchanges tickets.
    pub is_link: bool,
    /// The share of its packets, 0 to 1, in one replication.
    pub share: f64,
}

/// A flow with connections that failed in one replication.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The flow.
    pub flow: String,
    /// Its group.
    pub group: String,
    /// The number of its connections that failed.
    pub connections: u64,
    /// The time of the first failure, s from the start of the run.
    pub first_s: f64,
    /// Its reason.
    pub reason: String,
}

/// A flow over all replications.
#[derive(Clone, Debug)]
pub(crate) struct FlowSummary {
    pub(crate) name: String,
    pub(crate) group: String,
    /// Throughput in each replication, Mb/s.
    pub(crate) throughput: Vec<f64>,
    /// Entitlement in each replication in which it was not zero, Mb/s.
    pub(crate) entitlement: Vec<f64>,
    /// The worst second of all replications.
    pub(crate) worst: Option<Worst>,
}

impl PointSummary {
    /// Adds a replication.
    pub fn add(&mut self, rows: &ReplicationRows) {
        self.seeds.push(rows.seed);
        self.measured.get_or_insert(rows.measured);
        self.metrics.add(rows);
        self.links.add(&rows.links);
        self.full_tags = self.full_tags.take().into_iter().chain(full_tags(rows)).reduce(FullTags::larger);
        for failure in rows.flows.iter().filter_map(Failure::of) {
            if self.failures.iter().all(|known| known.group != failure.group) {
                self.failures.push(failure);
            }
        }
        for (at, row) in rows.flows.iter().enumerate() {
            match self.flows.get_mut(at) {
                Some(flow) => flow.add(row),
                None => self.flows.push(FlowSummary::of(row)),
            }
        }
        self.faults.extend(rows.fault.clone().map(|fault| (rows.seed, fault)));
        self.samples.extend(rows.sample.clone());
    }

    /// The mean entitlement of a flow, by its index, in the measured part over replications; `None` unless it
    /// was above zero in each.
    #[must_use]
    pub fn entitlement(&self, flow: usize) -> Option<Rate> {
        let mbps = self.flows.get(flow)?.entitlement()?;
        Some(Rate::from_bit((mbps * 1e6).round() as u64))
    }
}

/// The writers of full tags in a replication.
fn full_tags(rows: &ReplicationRows) -> impl Iterator<Item = FullTags> {
    let of = |writer: &str, is_link, full: f64, sent: u64| FullTags {
        writer: writer.to_owned(),
        is_link,
        share: (full / sent.max(1) as f64).min(1.0),
    };
    let flows = rows
        .flows
        .iter()
        .filter_map(move |row| Some(of(&row.flow, false, row.full_tags? as f64, row.sent_packets)));
    let links = rows.statistics.iter().filter_map(move |row| {
        let link = rows.links.iter().find(|link| link.link == row.link)?;
        let is_full = ["full_tags", "full_ack_tags"].contains(&row.statistic.as_str());
        is_full.then(|| of(&row.link, true, row.value, link.sent_packets))
    });
    flows.chain(links)
}

impl FullTags {
    fn larger(self, other: Self) -> Self {
        if other.share > self.share { other } else { self }
    }
}

impl Failure {
    fn of(row: &FlowRow) -> Option<Self> {
        Some(Self {
            flow: row.flow.clone(),
            group: row.group.clone(),
            connections: row.failed_connections?,
            first_s: row.failure_s?,
            reason: row.failure.clone()?,
        })
    }
}

impl FlowSummary {
    fn of(row: &FlowRow) -> Self {
        let mut flow = Self {
            name: row.flow.clone(),
            group: row.group.clone(),
            throughput: Vec::new(),
            entitlement: Vec::new(),
            worst: None,
        };
        flow.add(row);
        flow
    }

    fn add(&mut self, row: &FlowRow) {
        self.throughput.push(row.throughput_mbps);
        self.entitlement.extend(row.entitlement_mbps);
        if let (Some(share), Some(from)) = (row.worst_second_share, row.worst_second_s)
            && self.worst.is_none_or(|worst| share < worst.share)
        {
            self.worst = Some(Worst { share, from: Time::ZERO + Span::from_secs_f64(from) });
        }
    }

    /// The mean entitlement over replications, Mb/s.
    pub(crate) fn entitlement(&self) -> Option<f64> {
        mean(&self.entitlement).filter(|_| self.entitlement.len() == self.throughput.len())
    }
}
