//! The description of the link for which a discipline is built.

use crate::flow_setting::FlowSetting;
use crate::packet::{Customers, FillTarget, FlowClass, FlowId, HostPair};
use crate::random::Stream;
use crate::schedule::rcs::Rights;
use crate::units::{Bytes, Rate, Span, Weight};

/// The link for which a discipline is built, and the parameters of its flows.
#[derive(Clone, Copy, Debug)]
pub struct LinkContext<'a> {
    /// Rate of the link.
    pub link_rate: Rate,
    /// Weights by flow number. Flows beyond the end have weight 1.
    pub weights: &'a [Weight],
    /// The smallest weight of the flows that may use the link, if it is known. None: the smallest of
    /// `weights`.
    pub smallest_weight: Option<Weight>,
    /// Round-trip times without queueing, by flow number. Zero, or beyond the end: unknown.
    pub rtts: &'a [Span],
    /// Guaranteed rates by flow number. Flows beyond the end have none.
    pub guarantees: &'a [Rate],
    /// Classes by flow number. Flows beyond the end are greedy.
    pub classes: &'a [FlowClass],
    /// Target fills of real-rate flows' queues, by flow number. None, or beyond the end: as configured.
    pub targets: &'a [Option<FillTarget>],
    /// The customers of flows and their weights.
    pub customers: Customers<'a>,
    /// The rights to the link by agreements.
    pub rights: Rights<'a>,
    /// Hosts by flow number. Flows beyond the end have number 0 at both ends.
    pub hosts: &'a [HostPair],
    /// The part of packet sizes beyond the IP packet: zero in scenarios, the `overhead` of a gateway's
    /// direction.
    pub layer2: Bytes,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the queue's random stream, different from that of any other component.
    pub name: &'a str,
}

impl<'a> LinkContext<'a> {
    /// A link whose flows all have the default parameters: one weight, greedy, no guarantee, no customer, one host.
    #[must_use]
    pub fn new(link_rate: Rate, seed: u64, name: &'a str) -> Self {
        Self {
            link_rate,
            weights: &[],
            smallest_weight: None,
            rtts: &[],
            guarantees: &[],
            classes: &[],
            targets: &[],
            customers: Customers::default(),
            rights: Rights::default(),
            hosts: &[],
            layer2: Bytes::ZERO,
            seed,
            name,
        }
    }
}

impl LinkContext<'_> {
    /// The smallest weight of a flow, which earns one quantum in disciplines that serve in rounds.
    #[must_use]
    pub fn smallest_weight(&self) -> Weight {
        let of_all = || self.weights.iter().copied().reduce(Weight::min);
        self.smallest_weight.or_else(of_all).unwrap_or(Weight::ONE)
    }

    /// The settings of flows, except round-trip times and customers, which disciplines read here directly.
    pub(super) fn settings(&self) -> impl Iterator<Item = (FlowId, FlowSetting)> {
        let flows = || (0..).map(FlowId);
        let weights = flows().zip(self.weights).map(|(flow, &weight)| (flow, FlowSetting::Weight(weight)));
        let guarantees = flows().zip(self.guarantees).filter(|(_, guarantee)| **guarantee > Rate::ZERO);
        let guarantees = guarantees.map(|(flow, &guarantee)| {
            let rtt = self.rtts.get(flow.index()).copied().unwrap_or_default();
            (flow, FlowSetting::Guarantee(guarantee, rtt))
        });
        let classes = flows().zip(self.classes).map(|(flow, &class)| (flow, FlowSetting::Class(class)));
        let targets = flows().zip(self.targets).filter(|(_, target)| target.is_some());
        let targets = targets.map(|(flow, &target)| (flow, FlowSetting::Target(target)));
        let hosts = flows().zip(self.hosts).map(|(flow, &hosts)| (flow, FlowSetting::Hosts(hosts)));
        weights.chain(guarantees).chain(classes).chain(targets).chain(hosts)
    }

    /// The random stream of the discipline.
    #[must_use]
    pub fn stream(&self) -> Stream {
        Stream::new(self.seed, self.name)
    }

    /// A second stream, for decisions of another kind.
    #[must_use]
    pub fn stream_for(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &alloc::format!("{}.{purpose}", self.name))
    }
}
