//! The labels of the routers of per packet value: PPV, PVPIE and VDQ-CSAQM.

use super::csfq::{EGRESS, ROLE, RouterRole};
use crate::flow_setting::{FlowSetting, Heeds};
use crate::label::Label;
use crate::mark::value::{ValueLabels, ValueParams};
use crate::packet::{FlowId, LabelKind, Packet};
use crate::param::{Inside, Shares, Traits};
use crate::params;
use crate::random::Stream;
use crate::units::Time;

/// The traits that the disciplines of per packet value share.
pub(crate) const TRAITS: Traits = Traits {
    heeds: &[Heeds::Weight, Heeds::Guarantee],
    writes: Some(LabelKind::Value),
    reads: Some(LabelKind::Value),
    inside: Inside::Queue,
    shares: Shares::Approximate,
    ..Traits::NONE
};

params! {
    /// Parameters of [`ValueEdge`].
    pub struct ValueEdgeParams {
        /// How values are found.
        ..value: ValueParams,
        role: RouterRole = ROLE,
        egress: bool = EGRESS,
    }
}

/// What a router does with value labels.
#[derive(Clone, Debug)]
pub struct ValueEdge {
    role: RouterRole,
    egress: bool,
    labels: ValueLabels,
}

impl ValueEdge {
    /// An edge without flows.
    #[must_use]
    pub fn new(params: &ValueEdgeParams, random: Stream) -> Self {
        let labels = ValueLabels::new(&params.value, random);
        Self { role: params.role, egress: params.egress, labels }
    }

    /// The value of `packet`, which it carries or gets; none for a core if it carries none. It leaves with it, unless
    /// this is an egress.
    #[inline]
    pub fn label<P: Packet>(&mut self, now: Time, packet: &mut P) -> Option<Label> {
        let carried = packet.label(LabelKind::Value).filter(|_| self.role != RouterRole::Edge);
        let label = match carried {
            Some(label) => label,
            None if self.role == RouterRole::Core => return None,
            None => self.labels.label(now, packet.flow(), packet.size()),
        };
        if self.egress {
            packet.clear_label(LabelKind::Value);
        } else if carried.is_none() {
            packet.set_label(LabelKind::Value, label);
        }
        Some(label)
    }

    /// Changes a setting of `flow`. Returns whether it is heeded.
    pub fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        match setting {
            _ if self.role == RouterRole::Core => return false,
            FlowSetting::Weight(weight) => self.labels.set_weight(flow, weight),
            FlowSetting::Guarantee(guarantee, rtt) => self.labels.set_guarantee(flow, guarantee, rtt),
            _ => return false,
        }
        true
    }
}
