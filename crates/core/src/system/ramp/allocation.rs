//! RAMP's allocations: what each real-rate flow has of the link, from one sample to the next.
//!
//! - Samples look at flows that are watched: with `feed_forward` those that sent within a second, want something or were
//!   notified of an overload that goes on. Others are at rest, have nothing, and are watched again with their next
//!   packet. Without it a silent flow keeps the floor, and all real-rate flows are watched.
//! - With `feed_forward` the floor is not what a flow needs: it is paid from what all that is wanted leaves, so that a
//!   hundred calls that fit the link make no overload by their floors. In an overload flows with a queue have the floor,
//!   and up to the common level what drains their queue within their target.

use alloc::vec::Vec;

use super::flow::FlowShare;
use super::overload::Cut;
use super::requirement::Requirement;
use super::{Ramp, part};
use crate::packet::{FlowId, Packet};
use crate::queue::{Overload, Sink};
use crate::system::discipline::Discipline;
use crate::units::{Bytes, Rate, Time};

impl<P: Packet, G: Discipline<P> + ?Sized> Ramp<P, G> {
    /// What real-rate flows may have together, in parts of the link.
    fn available(&self) -> f64 {
        1.0 - self.params.greedy_minimum.get()
    }

    pub(super) fn reserve_minimum(&mut self) {
        self.minimum.set(0, part(self.link_rate, 1.0 - self.available()));
    }

    /// Silent flows leave their part of it to the others.
    pub(super) fn floor(&mut self) -> f64 {
        let flows = self.watched.iter().map(|index| &self.flows[*index as usize]);
        self.awake = flows.filter(|flow| flow.is_awake(self.clock)).count();
        self.controller.floor_among(self.awake, self.available())
    }

    /// Flow `index` is new, or was at rest. It has the floor until the next sample.
    pub(super) fn wake(&mut self, index: usize) {
        self.watched.insert(index as u32);
        self.awake += 1;
        let floor = self.controller.floor_among(self.awake, self.available());
        let flow = &mut self.flows[index];
        flow.is_watched = true;
        flow.requirement = Requirement::new(&self.controller);
        flow.wanted = self.controller.least(floor);
        self.set_granted(index, part(self.link_rate, floor));
    }

    /// Flow `index` is greedy from now on.
    pub(super) fn forget(&mut self, index: usize) {
        self.watched.remove(&(index as u32));
        let flow = &mut self.flows[index];
        (flow.is_real_rate, flow.is_watched, flow.notified) = (false, false, None);
        self.set_granted(index, Rate::ZERO);
    }

    fn set_granted(&mut self, index: usize, granted: Rate) {
        let flow = &mut self.flows[index];
        // The next count takes what is granted then for all the time since the last one.
        let too_much = granted.as_bit() as f64 - flow.granted.as_bit() as f64;
        flow.allocated -= too_much * self.clock.since(self.counted).as_secs_f64();
        flow.granted = granted;
        self.reservations.set(index, granted);
    }

    /// The requirement monitor, the controller and what the overload policy makes of it.
    pub(super) fn sample(&mut self, sink: &mut dyn Sink<P>) {
        self.count();
        self.drop_all_late(sink);
        let floor = self.floor();
        let least = self.controller.least(floor);
        let mut wanted = Vec::new();
        for index in &self.watched {
            let flow = &mut self.flows[*index as usize];
            // A link that is down gives nothing, and asks for nothing more.
            let saturated = flow.granted < part(self.link_rate, flow.wanted) || self.link_rate == Rate::ZERO;
            let own = self.targets.get(flow.id.slot()).copied().flatten();
            let queue = (flow.fill.bytes, flow.arrived);
            flow.wanted = flow.requirement.sample(&self.controller, queue, own, least, saturated);
            flow.arrived = Bytes::ZERO;
            // What goes by on credit that was saved up finds its queue empty.
            if flow.wanted > least || !flow.fill.is_empty() || flow.sent {
                wanted.push(flow.wanted);
            }
            flow.sent = false;
        }
        let is_overloaded = self.grant(wanted, floor);
        self.updates += 1;
        self.next_sample += self.params.sample;
        self.notify_overloads(is_overloaded, sink);
        self.rest();
    }

    fn drop_all_late(&mut self, sink: &mut dyn Sink<P>) {
        if self.params.patience.is_some() && !self.in_flows.is_empty() {
            let watched = core::mem::take(&mut self.watched);
            watched.iter().for_each(|index| self.drop_late(*index as usize, sink));
            self.watched = watched;
        }
    }

    /// Allocates to all that are watched, of whom some want these parts. Whether that is more than there is.
    pub(super) fn grant(&mut self, wanted: Vec<f64>, floor: f64) -> bool {
        let available = self.available();
        let spare = available - wanted.iter().sum::<f64>();
        // With a feed-forward the floor is no part of what is wanted.
        let extra = floor - self.controller.least(floor);
        if extra > 0.0 && spare < 0.0 {
            let demands = self.watched.iter().map(|index| self.demand(*index as usize, floor)).collect();
            let cut = self.cut(demands);
            self.allocate(|ramp, index| cut.apply(ramp.demand(index, floor)));
            return cut != Cut::NONE;
        }
        let cut = self.cut(wanted);
        let least = extra.min(spare / self.awake.max(1) as f64);
        self.allocate(|ramp, index| cut.apply(ramp.flows[index].wanted).max(least));
        cut != Cut::NONE
    }

    fn cut(&self, demands: Vec<f64>) -> Cut {
        Cut::of(self.params.overload, demands, self.available())
    }

    fn allocate(&mut self, part_of: impl Fn(&Self, usize) -> f64) {
        // Away meanwhile: a search of the tree for each next flow costs more than its allocation.
        let watched = core::mem::take(&mut self.watched);
        for &index in &watched {
            let granted = part(self.link_rate, part_of(self, index as usize));
            self.flows[index as usize].granted = granted;
            self.reservations.set(index as usize, granted);
        }
        self.watched = watched;
    }

    /// What a flow may have in an overload, in parts of the link: what it wants, and what lets its queue drain within its
    /// target; at least the floor if it has a queue. By what comes in alone a flow with a small window would get as
    /// little as it gets: the queue that holds it back would be within the target.
    fn demand(&self, index: usize, floor: f64) -> f64 {
        let flow = &self.flows[index];
        if flow.fill.is_empty() {
            return flow.wanted;
        }
        let own = self.targets.get(flow.id.slot()).copied().flatten();
        let drain = self.controller.drain(self.controller.target(own), flow.fill.bytes, flow.wanted);
        (flow.wanted + drain).max(floor)
    }

    /// Flows that are silent and want nothing come to rest.
    fn rest(&mut self) {
        if !self.controller.feeds_forward() {
            return;
        }
        let (flows, reservations) = (&mut self.flows, &mut self.reservations);
        let (controller, clock) = (&self.controller, self.clock);
        self.watched.retain(|&index| {
            let flow = &mut flows[index as usize];
            flow.is_watched =
                flow.is_awake(clock) || flow.notified.is_some() || !flow.requirement.is_settled(controller);
            if !flow.is_watched {
                (flow.wanted, flow.granted) = (0.0, Rate::ZERO);
                reservations.rest(index as usize);
            }
            flow.is_watched
        });
    }

    /// Goes by the samples until `now` that would change nothing, so that a long silence costs little.
    pub(super) fn skip_idle_samples(&mut self, now: Time) {
        let feeds_forward = self.controller.feeds_forward();
        let is_idle = |index: &u32| {
            let flow = &self.flows[*index as usize];
            !feeds_forward && flow.fill.is_empty() && flow.requirement.is_settled(&self.controller)
        };
        if self.overloaded.is_some() || self.next_sample > now || !self.watched.iter().all(is_idle) {
            return;
        }
        let samples = now.since(self.next_sample).as_nanos() / self.params.sample.as_nanos();
        self.next_sample += self.params.sample * samples;
        self.updates += samples;
    }

    /// Notifies applications that have less than they want, at most once an interval, and of the end of the
    /// overload.
    fn notify_overloads(&mut self, is_overloaded: bool, sink: &mut dyn Sink<P>) {
        let (now, interval) = (self.clock, self.params.exception_interval);
        if is_overloaded {
            self.overloaded = Some(now);
        }
        let Some(overloaded) = self.overloaded else { return };
        let is_over = now.since(overloaded) >= interval;
        for index in &self.watched {
            let flow = &mut self.flows[*index as usize];
            let (wanted, granted) = (part(self.link_rate, flow.wanted), flow.granted);
            let is_short = granted < wanted && !flow.fill.is_empty();
            let is_news = match flow.notified {
                Some(notified) => is_over || (is_short && now.since(notified) >= interval),
                None => is_short,
            };
            if is_news {
                flow.notified = (!is_over).then_some(now);
                sink.overload(now, Overload { flow: flow.id, wanted, granted, is_over });
                flow.notifications += 1;
                self.notifications += 1;
            }
        }
        if is_over {
            self.overloaded = None;
        }
    }

    /// The sample that says that the overload is over, if there is no other before. An application that was told to send
    /// less may be silent, and all others too: nobody would ask then.
    pub(super) fn end_of_overload(&self) -> Option<Time> {
        let over = self.overloaded? + self.params.exception_interval;
        let samples = over.since(self.next_sample).as_nanos().div_ceil(self.params.sample.as_nanos());
        Some(self.next_sample + self.params.sample * samples)
    }

    /// Counts what the allocations amount to until now; those of flows at rest are nothing.
    pub(super) fn count(&mut self) {
        let seconds = self.clock.since(self.counted).as_secs_f64();
        self.counted = self.clock;
        for index in &self.watched {
            let flow = &mut self.flows[*index as usize];
            flow.allocated += flow.granted.as_bit() as f64 * seconds;
        }
    }

    /// Each real-rate flow, as of the last call that had a time.
    pub fn shares(&self) -> impl Iterator<Item = (FlowId, FlowShare)> {
        let seconds = self.clock.since(self.counted).as_secs_f64();
        let link_rate = self.link_rate;
        self.flows.iter().filter(|flow| flow.is_real_rate).map(move |flow| {
            let bits = flow.allocated + flow.granted.as_bit() as f64 * seconds;
            let share = FlowShare {
                allocation: flow.granted,
                requirement: part(link_rate, flow.wanted),
                fill: flow.fill.bytes,
                allocated: Bytes::new((bits / 8.0) as u64),
                notifications: flow.notifications,
            };
            (flow.id, share)
        })
    }
}
