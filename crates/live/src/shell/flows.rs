//! Shares of flows behind a shell's link: time series of the first flows, and the largest ones at the end.

use apportion_core::packet::FlowId;
use apportion_core::units::Bytes;
use apportion_runtime::outcome::FlowOutcome;
use apportion_runtime::probe::{Counters, FlowProbe};

use super::Addresses;
use crate::bridge::Bridge;
use crate::frame::FlowTuple;
use crate::link::SharedState;

/// Maximum of flows with a series. Chosen: 74 MB in an hour at 0.1 s.
const WITH_SERIES: usize = 256;
/// Maximum of flows that results name; all others of a direction are one.
const NAMED: usize = 20;

/// Throughput of flows in each sample interval.
#[derive(Debug, Default)]
pub struct FlowSeries {
    /// Probes by flow number.
    probes: Vec<FlowProbe>,
    samples: usize,
}

impl FlowSeries {
    /// Ends a sample interval.
    pub fn sample(&mut self, bridge: &Bridge, shared: &SharedState) {
        let count = (bridge.flows().len() + 1).min(WITH_SERIES);
        while self.probes.len() < count {
            // A flow that begins later had no throughput before.
            let mut probe = FlowProbe::default();
            probe.series.resize(self.samples, Bytes::ZERO);
            self.probes.push(probe);
        }
        for (probe, counters) in self.probes.iter_mut().zip(&shared.flows) {
            probe.sample(counters.delivered.bytes);
        }
        self.samples += 1;
    }

    /// Number of intervals so far.
    pub const fn samples(&self) -> usize {
        self.samples
    }

    /// The largest flows, named by their addresses, and all others.
    pub fn outcomes(
        mut self,
        bridge: &Bridge,
        shared: &SharedState,
        addresses: &Addresses,
    ) -> Vec<FlowOutcome> {
        let named = shared.flows.iter().enumerate().filter(|(_, counters)| counters.sent.packets.get() > 0);
        let mut flows: Vec<(usize, &Counters)> = named.collect();
        flows.sort_by_key(|(number, counters)| (std::cmp::Reverse(counters.delivered.bytes), *number));
        let mut outcomes = Vec::new();
        let mut others: [Option<FlowOutcome>; 2] = [None, None];
        for (place, (number, counters)) in flows.into_iter().enumerate() {
            let tuple = bridge.flows().key(FlowId(number as u32));
            let is_up = tuple.is_none_or(|tuple| addresses.is_near(tuple.source()));
            let group = if is_up { "up" } else { "down" };
            let mut single = FlowOutcome::default();
            let outcome = if place < NAMED {
                single.name = tuple.map_or_else(|| "no IP".to_owned(), FlowTuple::to_string);
                single.series =
                    self.probes.get_mut(number).map(|p| std::mem::take(&mut p.series)).unwrap_or_default();
                &mut single
            } else {
                others[usize::from(!is_up)]
                    .get_or_insert_with(|| FlowOutcome { name: format!("others {group}"), ..single.clone() })
            };
            outcome.group = group.to_owned();
            counters.add_since(&Counters::default(), outcome);
            if place < NAMED {
                outcomes.push(single);
            }
        }
        outcomes.extend(others.into_iter().flatten());
        outcomes
    }
}
