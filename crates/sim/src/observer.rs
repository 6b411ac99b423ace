//! Observers: a program's view of a run in progress.

use std::fmt;

use apportion_core::packet::FlowId;
use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::probe::Samples;

/// Receives the events of a run in progress, in the order of time. Links and flows have their places in the
/// scenario; messages between routers have no flow.
pub trait Observer: Sync {
    /// The discipline of `link` dropped a packet; without a reason its wire lost it.
    fn dropped(&self, at: Time, link: usize, flow: Option<usize>, size: Bytes, reason: Option<DropReason>);
    /// The discipline of `link` marked a packet.
    fn marked(&self, at: Time, link: usize, flow: Option<usize>, size: Bytes);
    /// A sample interval ended.
    fn sampled(&self, samples: &Samples<'_>);
}

/// An observer, with the flows of packets.
pub struct Observed<'a> {
    /// The observer.
    pub observer: &'a dyn Observer,
    /// The flow of the scenario by id.
    pub flow_of_id: Vec<u32>,
}

impl Observed<'_> {
    /// The place of the flow with this id.
    #[must_use]
    pub fn flow_of(&self, id: FlowId) -> Option<usize> {
        self.flow_of_id.get(id.index()).map(|flow| *flow as usize)
    }
}

impl fmt::Debug for Observed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").finish_non_exhaustive()
    }
}
