//! RAMP: a packet scheduler that gives each real-rate flow the bandwidth that it seems to need, and greedy
//! flows the rest.
//!
//! Li, Walpole, McNamee, Pu, Steere, "A rate-matching packet scheduler for real-rate applications", MMCN
//! 2001. A [monitor](requirement) samples the fill of a flow's queue, a controller converts it to a part of
//! the link, and a dispatcher enforces it with a reservation (`reservations.rs`). A system rather than a
//! scheduler with a policy: it holds packets back by the state of its queues.
//!
//! ```text
//! real-rate flow ── its queue ──┐ by budget, earliest deadline first
//!                               ├──> interface queue ──> link
//! greedy flows ─── their queue ─┘ what is left
//! ```
//!
//! Readings, where the paper leaves room:
//! - A real-rate flow never uses spare capacity. If it did, its queue would stay empty, and the controller
//!   would reduce its allocation to nothing.
//! - The greedy minimum is kept whether or not there is greedy traffic: allocations change with samples and
//!   greedy packets come at any time. Otherwise flows would be notified of overloads that come and go with an
//!   acknowledgement.
//! - In overload all allocations are scaled down alike (the paper leaves the policy open; `overload`). A
//!   silent flow does not count. An overload is over when there was none for `exception_interval`.
//! - All queues are sampled, then all allocations computed, then all applied. Samples are taken at whole
//!   multiples of `sample`, also without a call in between: the next call runs missed events in their order.
//! - The dispatcher runs whenever something can be dispatched, not every 0.1 ms; credits are still granted by
//!   periods.
//! - A queue's `limit` is the discipline's own; the paper's flows are limited by their socket buffers.
//!
//! Beyond the paper, and off with `preset = "paper"`:
//! - `leftover = "real_rate"`: unreserved capacity goes to real-rate flows first, beyond the greedy minimum.
//!   A burst of a video then leaves at once instead of over the time that its average takes; reservations
//!   matter only if real-rate flows want more than is available. With `feed_forward`, which does not need a
//!   queue.
//! - `greedy`: any discipline divides the rest among greedy flows, which share one queue in the paper.
//! - `overload = "max_min"`: in overload no flow gets more than a common level, and a flow that wants less
//!   gets what it wants. With a common factor, a call would lose as large a part of its rate as the flow that
//!   floods the link.
//! - `recognise`: flows without a class that behave as real-rate flows are real-rate; declared ones that do not
//!   are greedy (`recognise.rs`).
//! - Sparse flows, whose arrival rate is at most the level of an overload, go first, the shortest queue first:
//!   a frame of a call need not wait for reservations of films that send a large frame.
//! - `patience`: packets that waited for too long are dropped (`patience.rs`).
//! - The extensions listed in [`requirement`] and `allocation.rs`; and `period_control`, off unless set.
//!
//! Cost: O(log flows) per packet. Per sample O(real-rate flows that sent within the last second or so), in the paper
//! O(real-rate flows). 300 bytes per real-rate flow, 8 for each sample of control delay. Parameters: [`ENTRY`].

mod allocation;
mod flow;
mod greedy;
mod overload;
pub(super) mod params;
mod patience;
mod recognise;
pub mod requirement;
mod reservations;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

use self::flow::Flow;
pub use self::flow::FlowShare;
use self::greedy::Greedy;
pub use self::overload::OverloadPolicy;
pub use self::params::{ENTRY, RampParams};
use self::recognise::{Counting, Recogniser};
use self::requirement::Controller;
use self::reservations::Reservations;
use super::discipline::Discipline;
use crate::flow_setting::FlowSetting;
use crate::limit::{Limit, LinkLimit};
use crate::list::Pool;
use crate::packet::{FillTarget, FlowClass, FlowId, Packet};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::schedule::{End, Queued};
use crate::smallest::Smallest;
use crate::units::{Bytes, Rate, Time};

/// The entry of a greedy flow in the table of classes.
const GREEDY: u32 = u32::MAX;

/// Monitor, controller and dispatcher.
#[derive(Clone, Debug)]
pub struct Ramp<P, G: ?Sized> {
    params: RampParams,
    /// The size of a queue.
    limit: LinkLimit,
    link_rate: Rate,
    controller: Box<Controller>,
    /// The index of a flow by slot, or [`GREEDY`].
    classes: Vec<u32>,
    /// The targets that flows ask for, by slot; none beyond the end.
    targets: Vec<Option<FillTarget>>,
    flows: Vec<Flow>,
    /// Indices of the sampled flows, in their order, and the number of those that were awake at the last
    /// sample or have arrived since.
    watched: BTreeSet<u32>,
    awake: usize,
    reservations: Reservations,
    /// Sparse flows with packets, by the size of their queue; first those whose packets would soon be late.
    sparse: Smallest,
    /// The part of the link up to which a flow is sparse.
    level: f64,
    /// The reservation of all greedy flows: the greedy minimum.
    minimum: Reservations,
    packets: Pool<P>,
    greedy: Greedy<P, G>,
    /// None: declarations alone count.
    recogniser: Option<Box<Recogniser>>,
    interface: VecDeque<P>,
    /// The backlog of all real-rate flows.
    in_flows: Backlog,
    in_interface: Backlog,
    next_sample: Time,
    /// The latest time seen, up to which allocations are counted.
    clock: Time,
    counted: Time,
    /// The time at which the link last had less than real-rate flows wanted; none once the overload is over.
    overloaded: Option<Time>,
    updates: u64,
    notifications: u64,
}

impl<P: Packet, G: Discipline<P> + ?Sized> Ramp<P, G> {
    /// Empty queues for a link of `link_rate`; every flow is greedy. `greedy` divides the rest among greedy
    /// flows; none: they share one queue.
    #[must_use]
    pub fn new(params: &RampParams, link_rate: Rate, greedy: Option<Box<G>>) -> Self {
        let reservations = || Reservations::new(params.period, params.mtu, params.period_control);
        let mut minimum = reservations();
        minimum.add();
        let mut ramp = Self {
            limit: LinkLimit::new(Some(params.limit), link_rate),
            link_rate,
            controller: Box::new(Controller::new(params, link_rate)),
            classes: Vec::new(),
            targets: Vec::new(),
            flows: Vec::new(),
            watched: BTreeSet::new(),
            awake: 0,
            reservations: reservations(),
            sparse: Smallest::new(),
            level: f64::INFINITY,
            minimum,
            packets: Pool::new(),
            greedy: Greedy::new(greedy),
            recogniser: params.recognise.then(|| Box::new(Recogniser::new())),
            interface: VecDeque::new(),
            in_flows: Backlog::EMPTY,
            in_interface: Backlog::EMPTY,
            next_sample: Time::ZERO + params.sample,
            clock: Time::ZERO,
            counted: Time::ZERO,
            overloaded: None,
            updates: 0,
            notifications: 0,
            params: params.clone(),
        };
        ramp.reserve_minimum();
        ramp
    }

    /// Sets the size of the greedy discipline to its part of the limit.
    fn size_greedy(&mut self) {
        if let (Some(greedy), Some(limit)) =
            (self.greedy.divided(), self.params.greedy_limit(self.limit.get()))
        {
            greedy.set_limit(limit);
        }
    }

    fn make_real_rate(&mut self, id: FlowId) {
        let slot = id.slot();
        if slot >= self.classes.len() {
            self.classes.resize(slot + 1, GREEDY);
        }
        if self.classes[slot] == GREEDY {
            self.classes[slot] = self.flows.len() as u32;
            self.reservations.add();
            self.flows.push(Flow::new(id, &self.controller, self.clock));
        }
        let index = self.classes[slot] as usize;
        let flow = &mut self.flows[index];
        (flow.id, flow.is_real_rate, flow.notifications, flow.seen) = (id, true, 0, self.clock);
        self.wake(index);
        let (flow, packets, in_flows) = (&mut self.flows[index], &mut self.packets, &mut self.in_flows);
        let recogniser = &mut self.recogniser;
        self.greedy.leave(id, self.clock, |queued| {
            if let Some(recogniser) = recogniser {
                recogniser.left(id);
            }
            in_flows.add(&queued.packet);
            flow.fill.add(&queued.packet);
            flow.queue.push(packets, queued);
        });
        self.minimum.set_backlogged(0, !self.greedy.backlog().is_empty());
        self.reservations.set_backlogged(index, !self.flows[index].queue.is_empty());
        self.place(index);
    }

    fn make_greedy(&mut self, index: usize) {
        self.forget(index);
        self.reservations.set_backlogged(index, false);
        if let Some(recogniser) = &mut self.recogniser {
            let flow = &self.flows[index];
            recogniser.joined(flow.id, flow.fill.packets.get() as u32);
        }
        while let Some(queued) = self.flows[index].queue.pop(&mut self.packets, End::Head) {
            self.flows[index].fill.remove(&queued.packet);
            self.in_flows.remove(&queued.packet);
            self.greedy.push(queued);
            self.minimum.set_backlogged(0, true);
        }
        self.place(index);
    }

    /// The index of a real-rate flow.
    fn index(&self, flow: FlowId) -> Option<usize> {
        let index = *self.classes.get(flow.slot())? as usize;
        self.flows.get(index).filter(|flow| flow.is_real_rate).map(|_| index)
    }

    /// Runs all events that are due by `now`, in their order.
    pub fn advance(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        // Terminates: each pass takes one of finitely many samples until `now`, dispatches a packet whose
        // credit came, or finds the interface queue full.
        loop {
            let ready = self.reservations.ready().filter(|_| self.has_room());
            let is_sample = ready.is_none_or(|ready| self.next_sample <= ready);
            let due = if is_sample { self.next_sample } else { ready.unwrap_or(self.next_sample) };
            if due > now {
                break;
            }
            self.clock = due;
            self.let_pass(due);
            if is_sample {
                self.recognise();
                self.sample(sink);
                self.skip_idle_samples(now);
            }
            self.dispatch(sink);
        }
        // A link may report an empty queue late, after the shares have been read.
        self.clock = self.clock.max(now);
        self.let_pass(self.clock);
    }

    fn let_pass(&mut self, now: Time) {
        self.reservations.advance(now);
        self.minimum.advance(now);
    }

    /// The packet dispatcher: fills the interface queue with packets that may leave.
    fn dispatch(&mut self, sink: &mut dyn Sink<P>) {
        while self.has_room() {
            let Some(packet) = self.choose(sink) else { return };
            self.in_interface.add(&packet);
            self.interface.push_back(packet);
        }
    }

    /// The next packet: of a sparse flow, by a reservation, from the greedy minimum, then as `leftover` says.
    fn choose(&mut self, sink: &mut dyn Sink<P>) -> Option<P> {
        if let Some((_, index)) = self.sparse.first() {
            if self.minimum.next().is_some()
                && let Some(packet) = self.take_greedy(sink)
            {
                return Some(packet);
            }
            self.drop_late(index, sink);
            return self.take(index, Reservations::lend);
        }
        if let Some(index) = self.reservations.next() {
            self.drop_late(index, sink);
            return self.take(index, Reservations::charge);
        }
        if self.minimum.next().is_some()
            && let Some(packet) = self.take_greedy(sink)
        {
            return Some(packet);
        }
        match self.borrower() {
            Some(index) => {
                self.drop_late(index, sink);
                self.take(index, Reservations::lend)
            }
            None => self.take_greedy(sink),
        }
    }

    /// The real-rate flow that comes first for unreserved capacity.
    fn borrower(&self) -> Option<usize> {
        self.reservations.next_waiting().filter(|_| self.lends_to_real_rate())
    }

    /// Whether unreserved capacity goes to real-rate flows first.
    fn lends_to_real_rate(&self) -> bool {
        self.params.leftover == FlowClass::RealRate
    }

    fn has_room(&self) -> bool {
        self.in_interface.packets < self.params.interface_queue
    }

    /// The next packet of a real-rate flow, paid for by `pay`.
    fn take(&mut self, index: usize, pay: fn(&mut Reservations, usize, Bytes, bool)) -> Option<P> {
        let flow = &mut self.flows[index];
        let Queued { packet, .. } = flow.queue.pop(&mut self.packets, End::Head)?;
        flow.fill.remove(&packet);
        self.in_flows.remove(&packet);
        flow.sent = true;
        let is_empty = flow.queue.is_empty();
        pay(&mut self.reservations, index, packet.size(), !is_empty);
        self.place(index);
        Some(packet)
    }

    fn take_greedy(&mut self, sink: &mut dyn Sink<P>) -> Option<P> {
        let mut sink = Counting { sink, recogniser: self.recogniser.as_deref_mut() };
        let packet = self.greedy.dequeue(self.clock, &mut sink);
        if let (Some(packet), Some(recogniser)) = (&packet, &mut self.recogniser) {
            recogniser.left(packet.flow());
        }
        let is_left = !self.greedy.backlog().is_empty();
        self.minimum.charge(0, packet.as_ref().map_or(Bytes::ZERO, Packet::size), is_left);
        packet
    }

    fn enqueue_real_rate(&mut self, index: usize, queued: Queued<P>, sink: &mut dyn Sink<P>) {
        if !self.flows[index].is_watched {
            self.wake(index);
        }
        let flow = &mut self.flows[index];
        let packet = &queued.packet;
        flow.arrived += packet.size();
        if !self.limit.get().admits(packet, flow.fill) {
            return sink.dropped(queued.arrived, queued.packet, DropReason::Overflow);
        }
        let was_empty = flow.fill.is_empty();
        flow.seen = queued.arrived;
        flow.fill.add(packet);
        self.in_flows.add(packet);
        flow.queue.push(&mut self.packets, queued);
        if was_empty {
            self.reservations.set_backlogged(index, true);
        }
        self.place(index);
    }

    /// Moves flow `index` among the sparse flows, or out of them.
    fn place(&mut self, index: usize) {
        let flow = &self.flows[index];
        let is_sparse = self.lends_to_real_rate()
            && flow.requirement.arrival(&self.controller, flow.arrived) <= self.level;
        match flow.queue.front(&self.packets).filter(|_| is_sparse) {
            Some(first) => {
                let is_late =
                    self.params.patience.is_some_and(|patience| first.sojourn(self.clock) * 2 > patience);
                self.sparse.set(index, if is_late { 0 } else { flow.fill.bytes.get() });
            }
            None => self.sparse.remove(index),
        }
    }

    /// Changes the class of `flow`; its backlog moves to its new queue.
    fn set_class(&mut self, flow: FlowId, class: FlowClass) {
        let index = self.index(flow);
        if let Some(recogniser) = &mut self.recogniser {
            recogniser.declare(flow, class == FlowClass::RealRate);
        }
        match (class, index) {
            (FlowClass::RealRate, None) => self.make_real_rate(flow),
            (FlowClass::Greedy, Some(index)) => self.make_greedy(index),
            (FlowClass::RealRate, Some(_)) | (FlowClass::Greedy, None) => {}
        }
    }

    fn set_target(&mut self, flow: FlowId, target: Option<FillTarget>) {
        let slot = flow.slot();
        if slot >= self.targets.len() && target.is_some() {
            self.targets.resize(slot + 1, None);
        }
        if let Some(own) = self.targets.get_mut(slot) {
            *own = target;
        }
        if let Some(index) = self.index(flow) {
            self.flows[index].requirement.unsettle();
        }
    }
}

/// A part of a rate, rounded down.
fn part(rate: Rate, part: f64) -> Rate {
    Rate::from_bit((rate.as_bit() as f64 * part) as u64)
}

impl<P: Packet, G: Discipline<P> + ?Sized> Discipline<P> for Ramp<P, G> {
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        match setting {
            FlowSetting::Class(class) => self.set_class(flow, class),
            FlowSetting::Target(target) => self.set_target(flow, target),
            // Settings of greedy flows, such as weights and round-trip times, go to the greedy discipline.
            _ => return self.greedy.divided().is_some_and(|greedy| greedy.set_flow(flow, setting)),
        }
        true
    }

    fn drain(&mut self, now: Time) -> Option<P> {
        if let Some(packet) = self.interface.pop_front() {
            self.in_interface.remove(&packet);
            return Some(packet);
        }
        let held = || self.flows.iter().position(|flow| !flow.queue.is_empty());
        match self.reservations.next().or_else(held) {
            Some(index) => self.take(index, Reservations::charge),
            None => self.greedy.drain(now),
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
        self.size_greedy();
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.count();
        self.link_rate = rate;
        if let Some(greedy) = self.greedy.divided() {
            greedy.set_link_rate(rate);
        }
        self.limit.set_link_rate(rate);
        self.size_greedy();
        *self.controller = Controller::new(&self.params, rate);
        self.reserve_minimum();
        let wanted = self.watched.iter().map(|index| self.flows[*index as usize].wanted).collect();
        let floor = self.floor();
        self.grant(wanted, floor);
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let real_rate = || self.flows.iter().filter(|flow| flow.is_real_rate);
        show("real_rate_flows", real_rate().count() as f64);
        let link = self.link_rate.as_bit() as f64;
        show("requirement", real_rate().map(|flow| flow.wanted * link).sum());
        show("allocation", real_rate().map(|flow| flow.granted.as_bit() as f64).sum());
        show("updates", self.updates as f64);
        show("exceptions", self.notifications as f64);
    }

    fn advance(&mut self, now: Time, sink: &mut dyn Sink<P>) {
        Ramp::advance(self, now, sink);
    }

    fn shares(&self, show: &mut dyn FnMut(FlowId, FlowShare)) {
        Ramp::shares(self).for_each(|(flow, share)| show(flow, share));
    }
}

impl<P: Packet, G: Discipline<P> + ?Sized> Queue<P> for Ramp<P, G> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        self.advance(now, sink);
        self.see(now, &packet);
        let queued = Queued { packet, arrived: now };
        match self.index(queued.packet.flow()) {
            Some(index) => self.enqueue_real_rate(index, queued, sink),
            None => {
                let divides = self.params.greedy_limit(self.limit.get()).is_some();
                if let Some(recogniser) = &mut self.recogniser {
                    recogniser.joined(queued.packet.flow(), 1);
                }
                let mut sink = Counting { sink, recogniser: self.recogniser.as_deref_mut() };
                self.greedy.enqueue(queued, (self.limit.get(), divides), self.in_interface, &mut sink);
                self.minimum.set_backlogged(0, !self.greedy.backlog().is_empty());
            }
        }
        self.dispatch(sink);
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        self.advance(now, sink);
        self.dispatch(sink);
        let packet = self.interface.pop_front()?;
        self.in_interface.remove(&packet);
        self.dispatch(sink);
        Some(packet)
    }

    fn next_wakeup(&self) -> Option<Time> {
        let is_ready = self.reservations.next().or_else(|| self.borrower()).is_some();
        if !self.interface.is_empty() || is_ready || !self.greedy.backlog().is_empty() {
            return Some(self.clock);
        }
        if self.in_flows.is_empty() {
            return self.end_of_overload();
        }
        Some(self.reservations.ready().map_or(self.next_sample, |ready| ready.min(self.next_sample)))
    }

    fn backlog(&self) -> Backlog {
        self.in_flows.plus(self.in_interface).plus(self.greedy.backlog())
    }
}
