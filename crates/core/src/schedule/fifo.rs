//! FIFO: packets leave in the order in which they came, whatever their flow.
//!
//! Cost: O(1) per packet; [`push_out`](Scheduler::push_out) searches the queue from the given end. No state
//! per flow.

use alloc::collections::VecDeque;

use super::{End, Queued, Scheduler};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Inside, Role, Traits};
use crate::queue::Backlog;
use crate::units::Time;

/// FIFO in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "fifo",
    role: Role::Scheduler,
    summary: "First in, first out.",
    reference: "–",
    cost: "O(1) per packet, no state per flow",
    params: &[],
    traits: Traits { inside: Inside::Part, ..Traits::NONE },
};

/// A first-in-first-out queue.
#[derive(Clone, Debug)]
pub struct Fifo<P> {
    queue: VecDeque<Queued<P>>,
    backlog: Backlog,
}

impl<P> Fifo<P> {
    /// An empty queue.
    #[must_use]
    pub const fn new() -> Self {
        Self { queue: VecDeque::new(), backlog: Backlog::EMPTY }
    }
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P: Packet> Scheduler<P> for Fifo<P> {
    #[inline(always)]
    fn push(&mut self, now: Time, packet: P) {
        self.backlog.add(&packet);
        self.queue.push_back(Queued { packet, arrived: now });
    }

    #[inline(always)]
    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let queued = self.queue.pop_front()?;
        self.backlog.remove(&queued.packet);
        Some(queued)
    }

    fn push_out(&mut self, _now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let is_victim = |queued: &Queued<P>| queued.packet.flow().slot() == flow.slot();
        let position = match end {
            End::Head => self.queue.iter().position(is_victim),
            End::Tail => self.queue.iter().rposition(is_victim),
        }?;
        let queued = self.queue.remove(position)?;
        self.backlog.remove(&queued.packet);
        Some(queued)
    }

    fn next_flow(&self) -> Option<FlowId> {
        self.queue.front().map(|queued| queued.packet.flow())
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.queue.front()
    }

    fn keeps_flows_apart(&self) -> bool {
        false
    }

    fn upcoming(&self, others: usize) -> Option<&P> {
        Some(&self.queue.get(others)?.packet)
    }

    #[inline(always)]
    fn is_transparent(&self) -> bool {
        true
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::testing::packet;

    #[test]
    fn order_is_kept_and_a_victim_is_taken_from_the_end_asked_for() {
        let mut fifo = Fifo::new();
        for (id, flow) in [(1, 0), (2, 1), (3, 0), (4, 1)] {
            fifo.push(Time::ZERO, packet(id, flow, 100));
        }
        assert_eq!(fifo.push_out(Time::ZERO, FlowId(1), End::Tail).map(id), Some(4));
        assert_eq!(fifo.push_out(Time::ZERO, FlowId(0), End::Head).map(id), Some(1));
        assert_eq!(fifo.push_out(Time::ZERO, FlowId(9), End::Head).map(id), None);
        assert_eq!(fifo.backlog().bytes.get(), 200);
        let upcoming = [0, 1, 2].map(|others| fifo.upcoming(others).map(|packet| packet.id));
        assert_eq!(upcoming, [Some(2), Some(3), None]);
        assert_eq!(fifo.pop(Time::ZERO).map(id), Some(2));
        assert_eq!(fifo.pop(Time::ZERO).map(id), Some(3));
        assert_eq!(fifo.pop(Time::ZERO).map(id), None);
    }

    fn id(queued: Queued<SimplePacket>) -> u32 {
        queued.packet.id
    }
}
