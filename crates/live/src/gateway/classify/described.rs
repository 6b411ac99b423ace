//! Descriptions of flows by their number: their packets, and their terms by the rules.

use std::sync::Arc;

use apportion_core::packet::{CustomerId, FlowId};

use super::{Classifier, FIRST, Given, Key};
use crate::gateway::traffic::Terms;
use crate::notifications::FlowPackets;

impl Classifier {
    /// The rule of a flow, if one matched, and its packets.
    #[must_use]
    pub fn packets(&self, flow: FlowId) -> (Option<usize>, FlowPackets) {
        match self.table.key(flow) {
            Some(Key::Tuple(tuple)) => {
                let known = self.flows.get((flow.0 - FIRST) as usize);
                (known.and_then(|known| known.rule).map(usize::from), FlowPackets::Tuple(*tuple))
            }
            Some(Key::Network(rule, network)) => (Some(usize::from(*rule)), FlowPackets::Network(*network)),
            None => (flow.index().checked_sub(1), FlowPackets::Rule),
        }
    }

    /// The packets of a flow, its terms by its rule, and the account of the rule if one matched.
    #[must_use]
    pub fn terms(&self, flow: FlowId) -> (FlowPackets, Terms, Option<u32>) {
        let (rule, packets) = self.packets(flow);
        let account = rule.and_then(|rule| self.more.get(rule)).map(|more| more.account);
        let Given { weight, guarantee, customer, .. } =
            self.slots.get(flow.index()).map(|slot| slot.given).unwrap_or_default();
        (packets, Terms { weight, guarantee, customer }, account)
    }

    /// The customer of a flow.
    #[must_use]
    pub fn customer(&self, flow: FlowId) -> CustomerId {
        self.slots.get(flow.index()).map(|slot| slot.given.customer).unwrap_or_default()
    }

    /// The name of a customer; empty for flows without one.
    #[must_use]
    pub fn customer_name(&self, customer: CustomerId) -> Arc<str> {
        self.customer_names.get(customer.0 as usize).map_or_else(Arc::default, |name| name.as_str().into())
    }
}
