//! What the replications of a point come to: all that the report needs of them but curves over time. It grows by some numbers with each
//! replication, where an outcome has thousands.

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
    /// Of the replications, in order.
    pub(crate) seeds: Vec<u64>,
    /// The length of the measured part, once there is a replication.
    pub(crate) measured: Option<Span>,
    pub(crate) metrics: Metrics,
    pub(crate) links: LinkUses,
    /// In the scenario's order.
    pub(crate) flows: Vec<FlowSummary>,
    /// Replications that do not count, by seed, and why.
    pub(crate) faults: Vec<(u64, String)>,
    /// What is compared with perturbed copies, in the order of the replications; empty if there are none.
    pub(crate) samples: Vec<Sample>,
}

/// A flow over all replications.
#[derive(Clone, Debug)]
pub(crate) struct FlowSummary {
    pub(crate) name: String,
    pub(crate) group: String,
    /// In each replication, Mb/s.
    pub(crate) throughput: Vec<f64>,
    /// In each replication in which it was due something, Mb/s.
    pub(crate) entitlement: Vec<f64>,
    /// Of all replications.
    pub(crate) worst: Option<Worst>,
}

impl PointSummary {
    /// Adds a replication.
    pub fn add(&mut self, rows: &ReplicationRows) {
        self.seeds.push(rows.seed);
        self.measured.get_or_insert(rows.measured);
        self.metrics.add(rows);
        self.links.add(&rows.links);
        for (at, row) in rows.flows.iter().enumerate() {
            match self.flows.get_mut(at) {
                Some(flow) => flow.add(row),
                None => self.flows.push(FlowSummary::of(row)),
            }
        }
        self.faults.extend(rows.fault.clone().map(|fault| (rows.seed, fault)));
        self.samples.extend(rows.sample.clone());
    }

    /// What a flow, by its place, was due in the measured part, as a mean over replications; `None` unless it was due something in
    /// each.
    #[must_use]
    pub fn entitlement(&self, flow: usize) -> Option<Rate> {
        let mbps = self.flows.get(flow)?.entitlement()?;
        Some(Rate::from_bit((mbps * 1e6).round() as u64))
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

    /// Mb/s, as a mean over replications.
    pub(crate) fn entitlement(&self) -> Option<f64> {
        mean(&self.entitlement).filter(|_| self.entitlement.len() == self.throughput.len())
    }
}
