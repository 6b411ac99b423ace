//! Classful disciplines: [`ClassQueues`], a FIFO queue or a discipline for each leaf, and a
//! [`ClassScheduler`] that chooses among them.

use super::classes::{Classes, Members};
use super::context::LinkContext;
use super::discipline::Discipline;
use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::units::{Bytes, Rate, Time};

mod disciplines;
mod fifos;

pub use disciplines::Disciplines;
pub use fifos::Fifos;

/// Chooses the class that is served. Classes are leaves, by their position in [`Classes::all`].
pub trait ClassScheduler {
    /// Whether all classes with packets may have to wait.
    const HOLDS_BACK: bool;

    /// The state of a choice until its packet is charged.
    type Turn;

    /// Notes that a class whose queue was empty has a packet of this size.
    fn activate(&mut self, now: Time, class: usize, size: Bytes);

    /// The class that is served at `now`; none if none has packets, or all of them must wait.
    fn choose(&mut self, now: Time) -> Option<(usize, Self::Turn)>;

    /// Notes the departure of a packet of the chosen class, and the size of its next one.
    fn served(&mut self, now: Time, class: usize, turn: &Self::Turn, size: Bytes, next: Option<Bytes>);

    /// Notes that a packet of a class was removed without service, and the size of its next one.
    fn taken(&mut self, now: Time, class: usize, next: Option<Bytes>);

    /// Advances to the first time at which a class can be served, after it chose none. Default: no such time.
    fn advance_to_eligible(&mut self) -> Option<Time> {
        None
    }

    /// Takes [`advance_to_eligible`](Self::advance_to_eligible) back, at `now` before its time.
    fn rewind(&mut self, _now: Time) {}
}

/// The effect of an arrival on the queue of its class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The class has packets, and had none.
    First,
    /// The class has no packets left: CHOKe drops the last one together with the arriving one.
    Emptied,
    /// Any other effect.
    Other,
}

/// The queues of classes, by position in [`Classes::all`]. Queues of inner classes are unused.
pub trait ClassQueues<P: Packet> {
    /// Whether the class has no packets.
    fn is_empty(&self, class: usize) -> bool;

    /// The size of the class's next packet, if it has one; zero if the choice is made later.
    fn head(&self, class: usize) -> Option<Bytes>;

    /// Queues a packet of the class, or drops it or others of the class.
    fn enqueue(&mut self, now: Time, class: usize, packet: P, sink: &mut dyn Sink<P>) -> Arrival;

    /// Removes and returns the next packet of the class; none if it has none, or drops all.
    fn dequeue(&mut self, now: Time, class: usize, sink: &mut dyn Sink<P>) -> Option<P>;

    /// Dequeues as [`dequeue`](Self::dequeue) does, without drops.
    fn drain(&mut self, now: Time, class: usize) -> Option<P>;

    /// Removes and returns the first packet of `flow`, out of turn.
    fn take(&mut self, now: Time, class: usize, flow: FlowId) -> Option<P>;

    /// The backlog of all classes.
    fn backlog(&self) -> Backlog;

    /// The size of queues without a size of their own.
    fn limit(&self) -> Limit;

    /// Sets the size of queues without a size of their own.
    fn set_limit(&mut self, limit: Limit);

    /// Sets the rate of the link.
    fn set_link_rate(&mut self, rate: Rate);

    /// Changes a setting of `flow` within its class. Returns whether it is heeded there.
    fn set_flow(&mut self, _flow: FlowId, _setting: FlowSetting) -> bool {
        false
    }
}

/// A discipline with classes.
#[derive(Debug)]
pub struct Classful<S, Q> {
    members: Members,
    queues: Q,
    scheduler: S,
    /// The number of classes, to search for one with packets.
    classes: usize,
    /// The time at which the next packet can leave, after a refused request.
    next: Option<Time>,
}

impl<S: ClassScheduler, Q> Classful<S, Q> {
    /// Empty `queues` of `classes`.
    #[must_use]
    pub fn new<T>(classes: &Classes<T>, queues: Q, scheduler: S, link: &LinkContext<'_>) -> Self {
        let members = Members::new(classes, link);
        Self { members, queues, scheduler, classes: classes.all().len(), next: None }
    }

    fn rewind(&mut self, now: Time) {
        self.next = None;
        self.scheduler.rewind(now);
    }

    /// The next packet after a discipline dropped all packets of `class`.
    #[cold]
    fn dequeue_others<P: Packet>(&mut self, now: Time, mut class: usize, sink: &mut dyn Sink<P>) -> Option<P>
    where
        Q: ClassQueues<P>,
    {
        loop {
            self.scheduler.taken(now, class, None);
            let Some((other, turn)) = self.scheduler.choose(now) else {
                self.next = self.scheduler.advance_to_eligible();
                return None;
            };
            if let Some(packet) = self.queues.dequeue(now, other, sink) {
                self.scheduler.served(now, other, &turn, packet.size(), self.queues.head(other));
                return Some(packet);
            }
            class = other;
        }
    }
}

impl<S: ClassScheduler, Q: ClassQueues<P>, P: Packet> Queue<P> for Classful<S, Q> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let Some(class) = self.members.class_of(packet.flow()) else {
            return sink.dropped(now, packet, DropReason::Policy);
        };
        let size = packet.size();
        match self.queues.enqueue(now, class, packet, sink) {
            Arrival::First => {
                self.rewind(now);
                self.scheduler.activate(now, class, size);
            }
            Arrival::Emptied => {
                self.rewind(now);
                self.scheduler.taken(now, class, None);
            }
            Arrival::Other => {}
        }
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        let Some((class, turn)) = self.scheduler.choose(now) else {
            self.next = self.scheduler.advance_to_eligible();
            return None;
        };
        self.next = None;
        let packet = self.queues.dequeue(now, class, sink);
        match &packet {
            Some(sent) => self.scheduler.served(now, class, &turn, sent.size(), self.queues.head(class)),
            None => return self.dequeue_others(now, class, sink),
        }
        packet
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.next
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }
}

impl<S: ClassScheduler, Q: ClassQueues<P>, P: Packet> Discipline<P> for Classful<S, Q> {
    /// Packets that may leave at `now` first, then those that would have to wait, by class.
    fn drain(&mut self, now: Time) -> Option<P> {
        self.rewind(now);
        let chosen = self.scheduler.choose(now).map(|(class, _)| class);
        let class = chosen.or_else(|| (0..self.classes).find(|&class| !self.queues.is_empty(class)))?;
        let packet = self.queues.drain(now, class);
        self.scheduler.taken(now, class, self.queues.head(class));
        packet
    }

    fn take(&mut self, now: Time, flow: FlowId) -> Option<P> {
        let class = self.members.class_of(flow)?;
        let packet = self.queues.take(now, class, flow)?;
        self.rewind(now);
        self.scheduler.taken(now, class, self.queues.head(class));
        Some(packet)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.queues.limit())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.queues.set_limit(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.queues.set_link_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Customer(customer) = setting else { return self.queues.set_flow(flow, setting) };
        self.members.set_customer(flow, customer);
        true
    }

    fn allows_deferred_dequeue(&self) -> bool {
        !S::HOLDS_BACK
    }
}
