//! RAMP's greedy class: its own queue, or a discipline that divides among its flows.
//!
//! Li, Walpole, McNamee, Pu, Steere 2001, section 3.1, give all greedy flows one queue. There a responsive
//! flow gets nothing next to an unresponsive one; so any discipline may replace the queue.
//!
//! A flow that becomes real-rate moves its own packets in their order; packets of others keep their places.
//! The packets of a flow that becomes greedy move to the class's own queue. If there is a discipline they
//! join it with the next call, as arrivals, so that its rules and its size apply to them; no change of a
//! class drops a packet.

use alloc::boxed::Box;

use crate::limit::Limit;
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued};
use crate::system::discipline::Discipline;
use crate::units::Time;

/// The greedy class.
#[derive(Clone, Debug)]
pub(super) struct Greedy<P, G: ?Sized> {
    packets: Pool<P>,
    /// The queue of the class; with a discipline, the packets that will join it.
    queue: PacketQueue,
    in_queue: Backlog,
    divided: Option<Box<G>>,
}

impl<P: Packet, G: Discipline<P> + ?Sized> Greedy<P, G> {
    /// An empty class. Without a discipline its packets leave in the order in which they arrived.
    pub fn new(divided: Option<Box<G>>) -> Self {
        Self { packets: Pool::new(), queue: PacketQueue::EMPTY, in_queue: Backlog::EMPTY, divided }
    }

    /// The backlog of the class.
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

    /// Adds a packet. If the discipline does not know its part of the limit (`divides`), or there is none,
    /// `limit` applies to the class, and `ahead` counts too.
    pub fn enqueue(
        &mut self,
        queued: Queued<P>,
        (limit, divides): (Limit, bool),
        ahead: Backlog,
        sink: &mut dyn Sink<P>,
    ) {
        let now = queued.arrived;
        self.join(now, sink);
        let is_limited = divides && self.divided.is_some();
        if !is_limited && !limit.admits(&queued.packet, self.backlog().plus(ahead)) {
            return sink.dropped(now, queued.packet, DropReason::Overflow);
        }
        match &mut self.divided {
            Some(divided) => divided.enqueue(now, queued.packet, sink),
            None => self.push(queued),
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

    /// Moves packets that flows brought along into the discipline.
    fn join(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        while self.divided.is_some()
            && let Some(queued) = self.pop()
            && let Some(divided) = &mut self.divided
        {
            divided.enqueue(now, queued.packet, sink);
        }
    }

    /// Removes and returns the next packet to send.
    pub fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.join(now, sink);
        match &mut self.divided {
            Some(divided) => divided.dequeue(now, sink),
            None => self.pop().map(|queued| queued.packet),
        }
    }

    /// Removes and returns the next packet, without drops.
    pub fn drain(&mut self, now: Time) -> Option<P> {
        match self.pop() {
            Some(queued) => Some(queued.packet),
            None => self.divided.as_mut()?.drain(now),
        }
    }

    /// Hands over the packets of `flow` in their order.
    pub fn leave(&mut self, flow: FlowId, now: Time, mut take: impl FnMut(Queued<P>)) {
        while let Some(divided) = &mut self.divided
            && let Some(packet) = divided.take(now, flow)
        {
            take(Queued { packet, arrived: now });
        }
        // Each packet goes around once, in its order.
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
