//! What disciplines know of a flow, as it changes while a link runs.

use crate::packet::{CustomerId, FillTarget, FlowClass, HostPair};
use crate::units::{Rate, Span, Weight};

/// A parameter of one flow that disciplines may know, with its new value.
///
/// From a link down to the scheduler and the buffer policy, `set_flow` takes it and returns whether it was heeded: false
/// says that the parameter has no part in what is decided there, whatever its value. A setting holds from the next packet
/// of the flow on, a weight from its next turn on, and drops no packet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FlowSetting {
    /// Its weight. Default: 1.
    Weight(Weight),
    /// Its guaranteed rate, default 0, with its round-trip time without queueing.
    Guarantee(Rate, Span),
    /// Its round-trip time without queueing; zero if unknown, the default.
    Rtt(Span),
    /// The customer that it belongs to. Default: [`CustomerId::OTHERS`].
    Customer(CustomerId),
    /// The hosts at its ends. Default: number 0 at both.
    Hosts(HostPair),
    /// Its class. Default: greedy.
    Class(FlowClass),
    /// What its queue should hold while it is real-rate; none, the default: what the discipline is configured for.
    Target(Option<FillTarget>),
}

impl FlowSetting {
    /// Whether packets that were held back may go once it is heeded, so that a backend that was refused one asks again: a flow
    /// that becomes greedy takes along what waits of it.
    #[must_use]
    pub const fn may_release(&self) -> bool {
        matches!(self, Self::Class(_))
    }

    /// What kind of setting it is.
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

/// What a discipline may heed of flows: the kind of a [`FlowSetting`].
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
