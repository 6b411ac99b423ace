//! RAMP's greedy class: its own queue, or a discipline that divides among its flows.
//!
//! Li, Walpole, McNamee, Pu, Steere 2001, section 3.1, give all greedy flows one queue. There a flow that answers to losses
//! gets nothing next to one that does not; so any discipline may stand in its place.
//!
//! A flow that changes its class takes its packets along in order. What other flows have in a discipline then waits in
//! the class's own queue, in the order in which it would have been served, and goes first: no change drops a packet.

use alloc::boxed::Box;

use crate::limit::Limit;
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued};
use crate::system::contract::System;
use crate::units::Time;

/// The class.
#[derive(Clone, Debug)]
pub(super) struct Greedy<P, G> {
    packets: Pool<P>,
    queue: PacketQueue,
    in_queue: Backlog,
    divided: Option<Box<G>>,
}

impl<P: Packet, G: System<P>> Greedy<P, G> {
    /// An empty class; without a discipline its packets leave in the order in which they came.
    pub fn new(divided: Option<G>) -> Self {
        Self {
            packets: Pool::new(),
            queue: PacketQueue::EMPTY,
            in_queue: Backlog::EMPTY,
            divided: divided.map(Box::new),
        }
    }

    /// What the class holds.
    pub fn backlog(&self) -> Backlog {
        match &self.divided {
            Some(divided) => self.in_queue.plus(divided.backlog()),
            None => self.in_queue,
        }
    }

    /// The discipline, if there is one.
    pub fn divided(&mut self) -> Option<&mut G> {
        self.divided.as_deref_mut()
    }

    /// Takes a packet in, if it `divides` by its discipline. `limit` is that of the class's own queue, for which `ahead`
    /// counts too.
    pub fn enqueue(
        &mut self,
        queued: Queued<P>,
        (limit, divides): (Limit, bool),
        ahead: Backlog,
        sink: &mut dyn Sink<P>,
    ) {
        let (now, held) = (queued.arrived, self.backlog().plus(ahead));
        match &mut self.divided {
            Some(divided) if divides => divided.enqueue(now, queued.packet, sink),
            // Never ahead of what waits in the discipline: then so much is `ahead` that nothing is admitted.
            _ if limit.admits(&queued.packet, held) => self.push(queued),
            _ => sink.dropped(now, queued.packet, DropReason::Overflow),
        }
    }

    /// Puts a packet at the end of the class's own queue, whatever its size.
    pub fn push(&mut self, queued: Queued<P>) {
        self.in_queue.add(&queued.packet);
        self.queue.push(&mut self.packets, queued);
    }

    fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.queue.pop(&mut self.packets, End::Head)?;
        self.in_queue.remove(&queued.packet);
        Some(queued)
    }

    /// The next packet to send.
    pub fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        match self.pop() {
            Some(queued) => Some(queued.packet),
            None => self.divided.as_mut()?.dequeue(now, sink),
        }
    }

    /// The next packet, without drops.
    pub fn drain(&mut self, now: Time) -> Option<P> {
        match self.pop() {
            Some(queued) => Some(queued.packet),
            None => self.divided.as_mut()?.drain(now),
        }
    }

    /// Hands over the packets of `flow` in their order.
    pub fn leave(&mut self, flow: FlowId, now: Time, mut take: impl FnMut(Queued<P>)) {
        while let Some(packet) = self.divided.as_mut().and_then(|divided| divided.drain(now)) {
            self.push(Queued { packet, arrived: now });
        }
        // Each packet once around, in its order.
        for _ in 0..self.in_queue.packets.get() {
            let Some(queued) = self.pop() else { break };
            if queued.packet.flow().slot() == flow.slot() {
                take(queued);
            } else {
                self.push(queued);
            }
        }
    }
}
