//! The parameters of a flow that disciplines use, which may change while a link runs.

use crate::packet::{CustomerId, FillTarget, FlowClass, HostPair};
use crate::units::{Rate, Span, Weight};

/// One parameter of a flow, with its new value.
///
/// `set_flow` passes a setting from the link down to the scheduler and the buffer policy and returns whether
/// it is heeded: false means that the parameter has no effect there, whatever its value. A setting applies
/// from the next packet of the flow on, a weight from its next turn on. A setting drops no packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowSetting {
    /// The weight. Default: 1.
    Weight(Weight),
    /// The guaranteed rate, default 0, and the round-trip time without queueing.
    Guarantee(Rate, Span),
    /// The round-trip time without queueing. Default: zero, which means unknown.
    Rtt(Span),
    /// The customer of the flow. Default: [`CustomerId::OTHERS`].
    Customer(CustomerId),
    /// The hosts at the ends of the flow. Default: number 0 at both.
    Hosts(HostPair),
    /// The class of the flow. Default: greedy.
    Class(FlowClass),
    /// The fill target of the flow's queue while the flow is real-rate. Default: none, and the target of the
    /// discipline applies.
    Target(Option<FillTarget>),
}

impl FlowSetting {
    /// Whether this setting can release packets that were held back: a flow that becomes greedy may send its
    /// backlog at once. A backend whose `dequeue` was refused must then ask again.
    #[must_use]
    pub const fn may_release(&self) -> bool {
        matches!(self, Self::Class(_))
    }

    /// The kind of this setting.
    #[must_use]
    pub const fn kind(&self) -> Heeds {
        match self {
            Self::Weight(_) => Heeds::Weight,
            Self::Guarantee(..) => Heeds::Guarantee,
            Self::Rtt(_) => Heeds::Rtt,
            Self::Customer(_) => Heeds::Customer,
            Self::Hosts(_) => Heeds::Hosts,
            Self::Class(_) => Heeds::Class,
            Self::Target(_) => Heeds::Target,
        }
    }
}

/// The kind of a [`FlowSetting`], such as the kinds that a discipline heeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Heeds {
    /// [`FlowSetting::Weight`].
    Weight,
    /// [`FlowSetting::Guarantee`].
    Guarantee,
    /// [`FlowSetting::Rtt`].
    Rtt,
    /// [`FlowSetting::Customer`].
    Customer,
    /// [`FlowSetting::Hosts`].
    Hosts,
    /// [`FlowSetting::Class`].
    Class,
    /// [`FlowSetting::Target`].
    Target,
}

impl Heeds {
    /// A setting of this kind, with its default.
    #[must_use]
    pub(crate) const fn default_setting(self) -> FlowSetting {
        match self {
            Self::Weight => FlowSetting::Weight(Weight::ONE),
            Self::Guarantee => FlowSetting::Guarantee(Rate::ZERO, Span::ZERO),
            Self::Rtt => FlowSetting::Rtt(Span::ZERO),
            Self::Customer => FlowSetting::Customer(CustomerId::OTHERS),
            Self::Hosts => FlowSetting::Hosts(HostPair { source: 0, destination: 0 }),
            Self::Class => FlowSetting::Class(FlowClass::Greedy),
            Self::Target => FlowSetting::Target(None),
        }
    }
}
