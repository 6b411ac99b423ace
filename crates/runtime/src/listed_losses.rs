//! Packets of a flow that a wire loses, by ordinal.

use apportion_core::packet::FlowId;

/// The listed losses of one flow id.
#[derive(Debug)]
pub struct ListedLosses {
    flow: FlowId,
    seen: u64,
    /// Ordinals still to come, the next one last.
    ahead: Vec<u64>,
}

impl ListedLosses {
    /// Loses the packets of `flow` with these ordinals, counted from 1.
    #[must_use]
    pub fn new(flow: FlowId, mut packets: Vec<u64>) -> Self {
        packets.sort_unstable_by(|a, b| b.cmp(a));
        Self { flow, seen: 0, ahead: packets }
    }

    /// Counts a packet of `flow`. Returns whether it is lost.
    pub(crate) fn hits(&mut self, flow: FlowId) -> bool {
        if flow != self.flow {
            return false;
        }
        self.seen += 1;
        let hit = self.ahead.last() == Some(&self.seen);
        if hit {
            self.ahead.pop();
        }
        hit
    }
}
