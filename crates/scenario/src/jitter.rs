//! The time that hosts take for the packets that they send.

use apportion_core::units::Span;

use crate::model::{Flow, Scenario};

impl Scenario {
    /// The longest time that the source of `flow` takes for a packet, and its sink for an acknowledgement.
    #[must_use]
    pub fn jitter(&self, flow: &Flow) -> [Span; 2] {
        [flow.jitter.unwrap_or_default(); 2]
    }
}
