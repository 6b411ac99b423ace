//! What disciplines know of a flow, as it changes while a link runs.

use apportion_core::packet::{CustomerId, FillTarget, FlowClass, FlowId, HostPair, Packet};
use apportion_core::system::LinkQueue;
use apportion_core::units::{Rate, Span, Weight};

/// The parameter of one flow that disciplines know, with its new value.
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
    /// Changes what `queue` knows of `flow`; nothing if it has no use for it. Whether packets that it held back may now go.
    pub(crate) fn apply<P: Packet>(&self, flow: FlowId, queue: &mut LinkQueue<P>) -> bool {
        match *self {
            Self::Weight(weight) => queue.set_weight(flow, weight),
            Self::Guarantee(guarantee, rtt) => queue.set_guarantee(flow, guarantee, rtt),
            Self::Rtt(rtt) => queue.set_rtt(flow, rtt),
            Self::Customer(customer) => queue.set_customer(flow, customer),
            Self::Hosts(hosts) => queue.set_hosts(flow, hosts),
            Self::Target(target) => queue.set_target(flow, target),
            Self::Class(class) => return queue.set_class(flow, class),
        };
        false
    }
}
