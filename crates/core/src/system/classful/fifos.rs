//! A FIFO queue for each class, with tail drop.
//!
//! Cost: O(1) per packet; about 50 bytes per class.

use alloc::vec::Vec;

use super::{Arrival, ClassQueues};
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued};
use crate::system::classes::{Class, Classes};
use crate::system::context::LinkContext;
use crate::units::{Bytes, Rate, Time};

/// The queue of one class.
#[derive(Clone, Copy, Debug)]
struct Fifo {
    queue: PacketQueue,
    backlog: Backlog,
    /// The limit of the class, if it sets one.
    limit: Option<LinkLimit>,
}

/// The queues of all classes; queues of inner classes stay empty.
#[derive(Clone, Debug)]
pub struct Fifos<P> {
    limit: LinkLimit,
    queues: Vec<Fifo>,
    packets: Pool<P>,
    backlog: Backlog,
}

impl<P: Packet> Fifos<P> {
    /// Empty queues, each with the size of its class, else `limit`.
    #[must_use]
    pub fn new<T>(classes: &Classes<T>, limit: Option<BufferSize>, link: &LinkContext<'_>) -> Self {
        let fifo = |class: &Class<T>| Fifo {
            queue: PacketQueue::EMPTY,
            backlog: Backlog::EMPTY,
            limit: class.queue.limit.map(|limit| LinkLimit::new(Some(limit), link.link_rate)),
        };
        Self {
            limit: LinkLimit::new(limit, link.link_rate),
            queues: classes.all().iter().map(fifo).collect(),
            packets: Pool::new(),
            backlog: Backlog::EMPTY,
        }
    }

    #[inline(always)]
    fn pop(&mut self, class: usize) -> Option<P> {
        let fifo = &mut self.queues[class];
        let packet = fifo.queue.pop(&mut self.packets, End::Head)?.packet;
        fifo.backlog.remove(&packet);
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl<P: Packet> ClassQueues<P> for Fifos<P> {
    #[inline]
    fn is_empty(&self, class: usize) -> bool {
        self.queues[class].queue.is_empty()
    }

    #[inline(always)]
    fn head(&self, class: usize) -> Option<Bytes> {
        self.queues[class].queue.front(&self.packets).map(|queued| queued.packet.size())
    }

    #[inline(always)]
    fn enqueue(&mut self, now: Time, class: usize, packet: P, sink: &mut dyn Sink<P>) -> Arrival {
        let fifo = &mut self.queues[class];
        if !fifo.limit.unwrap_or(self.limit).get().admits(&packet, fifo.backlog) {
            sink.dropped(now, packet, DropReason::Overflow);
            return Arrival::Other;
        }
        let was_empty = fifo.queue.is_empty();
        fifo.backlog.add(&packet);
        self.backlog.add(&packet);
        fifo.queue.push(&mut self.packets, Queued { packet, arrived: now });
        if was_empty { Arrival::First } else { Arrival::Other }
    }

    #[inline(always)]
    fn dequeue(&mut self, _now: Time, class: usize, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.pop(class)
    }

    fn drain(&mut self, _now: Time, class: usize) -> Option<P> {
        self.pop(class)
    }

    fn take(&mut self, _now: Time, class: usize, flow: FlowId) -> Option<P> {
        let is_meant = |packet: &P| packet.flow().slot() == flow.slot();
        let fifo = &mut self.queues[class];
        let packet = fifo.queue.take_first(&mut self.packets, is_meant)?.packet;
        fifo.backlog.remove(&packet);
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
    fn limit(&self) -> Limit {
        self.limit.get()
    }
    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        let own = self.queues.iter_mut().filter_map(|fifo| fifo.limit.as_mut());
        own.chain([&mut self.limit]).for_each(|limit| limit.set_link_rate(rate));
    }
}
