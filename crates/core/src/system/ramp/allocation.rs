//! RAMP's allocations: the part of the link that each real-rate flow gets, from one sample to the next.
//!
//! - Only watched flows are sampled: with `feed_forward` those that sent within a second, want something or
//!   were notified of an overload that continues. Others are at rest, get nothing, and are watched again with
//!   their next packet. Without `feed_forward` a silent flow keeps the floor, and all real-rate flows are
//!   watched.
//! - With `feed_forward` the floor is not part of a flow's requirement: it is paid from what requirements
//!   leave, so that a hundred calls that fit the link cause no overload by their floors. In an overload flows
//!   with a queue get the floor, and up to the common level the rate that drains their queue within their
//!   target.

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
    /// The part of the link that is available to all real-rate flows together.
    fn available(&self) -> f64 {
        1.0 - self.params.greedy_minimum.get()
    }

    pub(super) fn reserve_minimum(&mut self) {
        self.minimum.set(0, part(self.link_rate, 1.0 - self.available()));
    }

    /// The floor of each flow. Silent flows leave their part of it to the others.
    pub(super) fn floor(&mut self) -> f64 {
        let flows = self.watched.iter().map(|index| &self.flows[*index as usize]);
        self.awake = flows.filter(|flow| flow.is_awake(self.clock)).count();
        self.controller.floor_among(self.awake, self.available())
    }

    /// Watches flow `index`, which is new or was at rest. It gets the floor until the next sample.
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

    /// Forgets flow `index`, which has become greedy.
    pub(super) fn forget(&mut self, index: usize) {
        self.watched.remove(&(index as u32));
        let flow = &mut self.flows[index];
        (flow.is_real_rate, flow.is_watched, flow.notified) = (false, false, None);
        self.set_granted(index, Rate::ZERO);
    }

    fn set_granted(&mut self, index: usize, granted: Rate) {
        let flow = &mut self.flows[index];
        // The next count applies the rate granted then to all the time since the last one.
        let too_much = granted.as_bit() as f64 - flow.granted.as_bit() as f64;
        flow.allocated -= too_much * self.clock.since(self.counted).as_secs_f64();
        flow.granted = granted;
        self.reservations.set(index, granted);
    }

    /// Runs the requirement monitor, the controller and the overload policy.
    pub(super) fn sample(&mut self, sink: &mut dyn Sink<P>) {
        self.count();
        self.drop_all_late(sink);
        let floor = self.floor();
        let least = self.controller.least(floor);
        let mut wanted = Vec::new();
        for index in &self.watched {
            let flow = &mut self.flows[*index as usize];
            // A link that is down grants nothing, and must not increase requirements.
            let saturated = flow.granted < part(self.link_rate, flow.wanted) || self.link_rate == Rate::ZERO;
            let own = self.targets.get(flow.id.slot()).copied().flatten();
            let queue = (flow.fill.bytes, flow.arrived);
            flow.wanted = flow.requirement.sample(&self.controller, queue, own, least, saturated);
            flow.arrived = Bytes::ZERO;
            // A packet that passes on saved credit finds its queue empty.
            if flow.wanted > least || !flow.fill.is_empty() || flow.sent {
                wanted.push(flow.wanted);
            }
            flow.sent = false;
        }
        let is_overloaded = self.grant(wanted, floor);
        self.place_all();
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

    /// Finds the sparse flows anew after a change of the level.
    fn place_all(&mut self) {
        if !self.in_flows.is_empty() {
            let watched = core::mem::take(&mut self.watched);
            watched.iter().for_each(|index| self.place(*index as usize));
            self.watched = watched;
        }
    }

    /// Allocates to all watched flows, some of which want these parts. Returns whether they exceed the
    /// available part.
    pub(super) fn grant(&mut self, wanted: Vec<f64>, floor: f64) -> bool {
        let available = self.available();
        let spare = available - wanted.iter().sum::<f64>();
        // With a feed-forward the floor is not among the wanted parts.
        let extra = floor - self.controller.least(floor);
        if extra > 0.0 && spare < 0.0 {
            let demands = self.watched.iter().map(|index| self.demand(*index as usize, floor)).collect();
            let cut = self.cut(demands);
            self.level = cut.level();
            self.allocate(|ramp, index| cut.apply(ramp.demand(index, floor)));
            return cut != Cut::NONE;
        }
        let cut = self.cut(wanted);
        self.level = cut.level();
        let least = extra.min(spare / self.awake.max(1) as f64);
        self.allocate(|ramp, index| cut.apply(ramp.flows[index].wanted).max(least));
        cut != Cut::NONE
    }

    fn cut(&self, demands: Vec<f64>) -> Cut {
        Cut::of(self.params.overload, demands, self.available())
    }

    fn allocate(&mut self, part_of: impl Fn(&Self, usize) -> f64) {
        // Taken out for the loop: a search of the tree for each next flow costs more than its allocation.
        let watched = core::mem::take(&mut self.watched);
        for &index in &watched {
            let granted = part(self.link_rate, part_of(self, index as usize));
            self.flows[index as usize].granted = granted;
            self.reservations.set(index as usize, granted);
        }
        self.watched = watched;
    }

    /// The part of the link that a flow may have in an overload: its requirement plus the rate that drains
    /// its queue within its target; at least the floor if it has a queue. By arrivals alone a flow with a
    /// small window would stay slow: the queue that holds it back would be within the target.
    fn demand(&self, index: usize, floor: f64) -> f64 {
        let flow = &self.flows[index];
        if flow.fill.is_empty() {
            return flow.wanted;
        }
        let own = self.targets.get(flow.id.slot()).copied().flatten();
        let drain = self.controller.drain(self.controller.target(own), flow.fill.bytes, flow.wanted);
        (flow.wanted + drain).max(floor)
    }

    /// Puts silent flows without requirements to rest.
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

    /// Skips the samples until `now` that would change nothing, so that a long silence costs little.
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

    /// Notifies applications that get less than they want, at most once an interval, and of the end of the
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

    /// The time of the sample at which the overload ends, if no other sample comes before it. An application
    /// that was told to send less may be silent, and so may all others: then no packet would trigger a
    /// sample.
    pub(super) fn end_of_overload(&self) -> Option<Time> {
        let over = self.overloaded? + self.params.exception_interval;
        let samples = over.since(self.next_sample).as_nanos().div_ceil(self.params.sample.as_nanos());
        Some(self.next_sample + self.params.sample * samples)
    }

    /// Counts the allocations until now; those of flows at rest are zero.
    pub(super) fn count(&mut self) {
        let seconds = self.clock.since(self.counted).as_secs_f64();
        self.counted = self.clock;
        for index in &self.watched {
            let flow = &mut self.flows[*index as usize];
            flow.allocated += flow.granted.as_bit() as f64 * seconds;
        }
    }

    /// The share of each real-rate flow, as of the last call with a time.
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
