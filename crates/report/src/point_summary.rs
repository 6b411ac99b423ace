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
    /// Flows in the scenario's order.
    pub(crate) flows: Vec<FlowSummary>,
    /// Replications that are not valid, by seed, with the reason.
    pub(crate) faults: Vec<(u64, String)>,
    /// Numbers to compare with perturbed copies, in the order of the replications; empty if there are none.
    pub(crate) samples: Vec<Sample>,
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
