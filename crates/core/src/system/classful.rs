//! What disciplines with classes are made of: a FIFO queue for each leaf, and a [`ClassScheduler`] that chooses among them.

use super::classes::{Classes, Leaves};
use super::context::LinkContext;
use super::contract::System;
use crate::limit::Limit;
use crate::packet::{CustomerId, FlowId, Packet};
use crate::queue::{Backlog, Queue, Sink};
use crate::units::{Bytes, Rate, Time};

/// Chooses the class that is served. Classes are those of the leaves, by their position in [`Classes::all`].
pub trait ClassScheduler {
    /// What it remembers of a choice until the packet is charged.
    type Turn;

    /// A class whose queue was empty has a packet of this size.
    fn activate(&mut self, now: Time, class: usize, size: Bytes);

    /// The class that is served at `now`; none if none has packets, or all of them must wait.
    fn choose(&mut self, now: Time) -> Option<(usize, Self::Turn)>;

    /// A packet of the class that was chosen left; the size of its next one.
    fn served(&mut self, now: Time, class: usize, turn: &Self::Turn, size: Bytes, next: Option<Bytes>);

    /// A packet of a class was taken out without being served; the size of its next one.
    fn taken(&mut self, now: Time, class: usize, next: Option<Bytes>);

    /// Goes on to the first time at which a class can be served, after it chose none. By default there is no such time.
    fn look_ahead(&mut self) -> Option<Time> {
        None
    }

    /// Takes back what the look ahead did, at `now` before its time.
    fn look_back(&mut self, _now: Time) {}
}

/// A discipline with classes.
#[derive(Clone, Debug)]
pub struct Classful<S, P> {
    leaves: Leaves<P>,
    scheduler: S,
    /// When the next packet can leave, after a request was refused.
    next: Option<Time>,
}

impl<S: ClassScheduler, P: Packet> Classful<S, P> {
    /// Empty queues for `classes`, each of the size of its class, else `limit`.
    #[must_use]
    pub fn new<T>(classes: &Classes<T>, limit: Option<Limit>, scheduler: S, link: &LinkContext<'_>) -> Self {
        Self { leaves: Leaves::new(classes, limit, link), scheduler, next: None }
    }

    fn look_back(&mut self, now: Time) {
        self.next = None;
        self.scheduler.look_back(now);
    }
}

impl<S: ClassScheduler, P: Packet> Queue<P> for Classful<S, P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let size = packet.size();
        if let Some(class) = self.leaves.admit(now, packet, sink) {
            self.look_back(now);
            self.scheduler.activate(now, class, size);
        }
    }

    fn dequeue(&mut self, now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        if self.next.is_some_and(|next| now < next) {
            return None;
        }
        let Some((class, turn)) = self.scheduler.choose(now) else {
            self.next = self.scheduler.look_ahead();
            return None;
        };
        self.next = None;
        let packet = self.leaves.pop(class)?;
        self.scheduler.served(now, class, &turn, packet.size(), self.leaves.head(class));
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.next
    }

    fn backlog(&self) -> Backlog {
        self.leaves.backlog()
    }
}

impl<S: ClassScheduler, P: Packet> System<P> for Classful<S, P> {
    /// First those that may leave at `now`, then those that would have to wait, by class.
    fn drain(&mut self, now: Time) -> Option<P> {
        self.look_back(now);
        let chosen = self.scheduler.choose(now).map(|(class, _)| class);
        let class = chosen.or_else(|| self.leaves.first_waiting())?;
        let packet = self.leaves.pop(class);
        self.scheduler.taken(now, class, self.leaves.head(class));
        packet
    }

    fn take(&mut self, now: Time, flow: FlowId) -> Option<P> {
        let (class, packet) = self.leaves.take(flow)?;
        self.look_back(now);
        self.scheduler.taken(now, class, self.leaves.head(class));
        Some(packet)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.leaves.limit())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.leaves.set_limit(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.leaves.set_link_rate(rate);
    }

    fn set_customer(&mut self, flow: FlowId, customer: CustomerId) -> bool {
        self.leaves.set_customer(flow, customer);
        true
    }
}
