//! RAMP's patience, beyond the paper: a packet that has waited for too long is useless to its flow, and is
//! dropped.
//!
//! In overload the queue of a flow that gets less than it wants grows, in the paper to the size of a socket
//! buffer. A packet of a call or a video that is seconds late is no longer played; it takes link capacity
//! from the packets behind it, which are late in turn. Therefore packets are dropped at the head of a queue
//! after `patience`, or after twice the target of their flow if that is more: a flow that asks for a queue
//! gets it. A delay that the link alone causes does not count as late: the time of a packet of `mtu`, of the
//! interface queue, of one packet of the greedy minimum and of the packet before it. The last packet of a
//! queue stays, however long it has waited.

use super::Ramp;
use crate::packet::{FillTarget, Packet};
use crate::queue::{DropReason, Sink};
use crate::schedule::End;
use crate::system::discipline::Discipline;
use crate::units::Bytes;

impl<P: Packet, G: Discipline<P> + ?Sized> Ramp<P, G> {
    /// Drops late packets from the queue of flow `index`.
    pub(super) fn drop_late(&mut self, index: usize, sink: &mut dyn Sink<P>) {
        let Some(patience) = self.params.patience else { return };
        let before = Bytes::new(
            self.params.mtu.get().saturating_mul(self.params.interface_queue.get().saturating_add(3)),
        );
        let patience = patience.max(self.link_rate.time_for(before));
        let flow = &mut self.flows[index];
        let own = self.targets.get(flow.id.slot()).copied().flatten();
        let (longest, held) = match self.controller.target(own) {
            FillTarget::Delay(delay) => (patience.max(delay * 2), Bytes::ZERO),
            FillTarget::Size(size) => (patience, Bytes::new(size.get().saturating_mul(2))),
        };
        // Terminates: each pass removes a packet.
        while flow.queue.has_several()
            && flow.fill.bytes > held
            && flow.queue.front(&self.packets).is_some_and(|first| first.sojourn(self.clock) > longest)
            && let Some(late) = flow.queue.pop(&mut self.packets, End::Head)
        {
            flow.fill.remove(&late.packet);
            self.in_flows.remove(&late.packet);
            sink.dropped(self.clock, late.packet, DropReason::Early);
        }
    }
}
