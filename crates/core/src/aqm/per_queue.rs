//! An AQM on each queue: the common part of CoDel, PIE and COBALT, whether they control one queue or many.
//!
//! A delay-based AQM controls a queue whose packets wait for each other. Behind a FIFO this is the whole
//! buffer. Behind a scheduler with per-flow queues it is the queue of the flow, as in RFC 8290: the delays of
//! flows then differ, and a common state would take a fast flow's short delay for the end of a slow flow's
//! standing queue.
//!
//! [`Control`] is an algorithm. `dequeue` runs it for a discipline that holds the queues itself (FQ-CoDel,
//! FQ-PIE, CAKE), and [`PerQueue`] is the buffer policy. Behind a scheduler with per-flow queues the policy
//! has a state for each flow, and a full buffer pushes out of the queue that is longest for its weight, as
//! longest queue drop does: tail drop would let one flow fill the buffer.
//!
//! Cost behind such a scheduler: O(log flows) per packet, mostly O(1); the state of the algorithm and at most
//! 55 bytes per flow.

use alloc::vec::Vec;
use core::fmt::Debug;

use super::occupancy::{Choice, Occupancy, Thresholds, Ties};
use super::{Admission, BufferPolicy, Victim};
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{Ecn, FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{End, Queued, Scheduler};
use crate::units::{Bytes, Rate, Span, Time};

/// The maximum number of drops in one call. Chosen: a batch like RFC 8290's 64, far more than a control law
/// requires in a packet time.
pub const MAX_DROPS_PER_DEQUEUE: u32 = 64;

/// The state of a queue's head, as its control sees it.
#[derive(Clone, Copy, Debug)]
pub struct Head {
    /// The sojourn time of the packet.
    pub sojourn: Span,
    /// The ECN field of the packet.
    pub ecn: Ecn,
    /// The bytes behind the packet in its queue.
    pub behind: Bytes,
    /// The bytes behind the packet in all queues of the link.
    pub waiting: Bytes,
}

/// The decision on the packet at the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Sends the packet.
    Send,
    /// Marks the packet CE and sends it.
    Mark,
    /// Drops the packet.
    Drop,
}

/// An AQM algorithm for one queue. The value holds its parameters.
pub trait Control: Clone + Debug {
    /// The state for one queue.
    type State: Clone + Debug + Default;

    /// The end from which an overflowing queue loses packets.
    const OVERFLOW: End = End::Head;

    /// The algorithm with its time parameters adapted to a link of `rate`.
    #[must_use]
    fn at(&self, _rate: Rate) -> Self {
        self.clone()
    }

    /// Decides on an arrival at a queue that holds `backlog` without it.
    fn admit<P: Packet>(
        &self,
        _state: &mut Self::State,
        _now: Time,
        _packet: &P,
        _backlog: Backlog,
        _random: &mut Stream,
    ) -> Admission {
        Admission::Accept
    }

    /// Decides on the packet at the head when the link could send it.
    fn judge(&self, _state: &mut Self::State, _now: Time, _head: Head, _random: &mut Stream) -> Verdict {
        Verdict::Send
    }

    /// Notes the departure of a packet after `sojourn`; `is_last` if its queue is empty then.
    fn departed(&self, _state: &mut Self::State, _now: Time, _sojourn: Span, _is_last: bool) {}

    /// Notes that the queue is empty when the link could send a packet of it.
    fn found_empty(&self, _state: &mut Self::State) {}

    /// Notes that the queue loses a packet because the buffer is full.
    fn overflowed(&self, _state: &mut Self::State, _now: Time) {}

    /// Reports named counters and gauges of a queue.
    fn statistics(_state: &Self::State, _show: &mut dyn FnMut(&'static str, f64)) {}
}

/// A queue from which an algorithm takes packets.
pub trait Source<P> {
    /// Removes and returns the head.
    fn pop(&mut self) -> Option<Queued<P>>;
    /// The bytes in this queue.
    fn behind(&self) -> Bytes;
    /// The bytes in all queues of the link.
    fn waiting(&self) -> Bytes {
        self.behind()
    }
}

/// Decides on an arrival. The buffer of `limit` holds the first backlog, and the packet's own queue the
/// second.
#[inline(always)]
fn admit<P: Packet, C: Control>(
    control: &C,
    state: &mut C::State,
    limit: Limit,
    now: Time,
    packet: &P,
    [whole, held]: [Backlog; 2],
    random: &mut Stream,
) -> Admission {
    if !limit.admits(packet, whole) {
        control.overflowed(state, now);
        return Admission::Drop(DropReason::Overflow);
    }
    control.admit(state, now, packet, held, random)
}

/// Removes and returns the next packet of a queue; may drop others first.
#[inline(always)]
pub(crate) fn dequeue<P: Packet, C: Control>(
    control: &C,
    state: &mut C::State,
    now: Time,
    source: &mut impl Source<P>,
    random: &mut Stream,
    sink: &mut dyn Sink<P>,
) -> Option<Queued<P>> {
    dequeue_after(0, control, state, now, source, random, sink)
}

/// Dequeues as [`dequeue`] does, after a number of drops.
#[inline(always)]
fn dequeue_after<P: Packet, C: Control>(
    drops: u32,
    control: &C,
    state: &mut C::State,
    now: Time,
    source: &mut impl Source<P>,
    random: &mut Stream,
    sink: &mut dyn Sink<P>,
) -> Option<Queued<P>> {
    let Some(mut queued) = source.pop() else {
        control.found_empty(state);
        return None;
    };
    let head = head(&queued, now, source.behind(), source.waiting());
    match control.judge(state, now, head, random) {
        Verdict::Drop if drops < MAX_DROPS_PER_DEQUEUE => {
            sink.dropped(now, queued.packet, DropReason::Early);
            return dequeue_after_drop(drops + 1, control, state, now, source, random, sink);
        }
        Verdict::Mark => mark(&mut queued, now, sink),
        Verdict::Send | Verdict::Drop => {}
    }
    control.departed(state, now, head.sojourn, head.behind == Bytes::ZERO);
    Some(queued)
}

/// Dequeues as `dequeue_after` does; the two call each other at most [`MAX_DROPS_PER_DEQUEUE`] times. Not
/// inlined: with a loop in `dequeue`, each packet pays for its registers.
#[inline(never)]
fn dequeue_after_drop<P: Packet, C: Control>(
    drops: u32,
    control: &C,
    state: &mut C::State,
    now: Time,
    source: &mut impl Source<P>,
    random: &mut Stream,
    sink: &mut dyn Sink<P>,
) -> Option<Queued<P>> {
    dequeue_after(drops, control, state, now, source, random, sink)
}

fn head<P: Packet>(queued: &Queued<P>, now: Time, behind: Bytes, waiting: Bytes) -> Head {
    Head { sojourn: queued.sojourn(now), ecn: queued.packet.ecn(), behind, waiting }
}

fn mark<P: Packet>(queued: &mut Queued<P>, now: Time, sink: &mut dyn Sink<P>) {
    queued.packet.set_ce();
    sink.marked(now, &queued.packet);
}

/// The buffer policy that controls each queue of a scheduler by `C`.
#[derive(Clone, Debug)]
pub struct PerQueue<C: Control> {
    params: C,
    /// The parameters at the rate of the link.
    control: C,
    limit: LinkLimit,
    /// One state for the whole buffer or, with `flows`, one for each flow.
    pub(super) states: Vec<C::State>,
    /// The backlog of each flow, behind a scheduler with per-flow queues.
    flows: Option<Occupancy>,
    random: Stream,
}

impl<C: Control> PerQueue<C> {
    /// Controls the whole buffer, unless [per-flow queues](BufferPolicy::control_each_flow) are announced.
    /// `limit` is the size of the buffer; if it is not set, the size follows `link_rate`.
    #[must_use]
    pub fn new(limit: Option<BufferSize>, params: &C, link_rate: Rate, random: Stream) -> Self {
        Self {
            params: params.clone(),
            control: params.at(link_rate),
            limit: LinkLimit::new(limit, link_rate),
            states: alloc::vec![C::State::default()],
            flows: None,
            random,
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, flow: usize) {
        self.states.resize(flow + 1, C::State::default());
    }

    /// Dequeues as `dequeue` does, from per-flow queues.
    fn dequeue_from_flows<P: Packet, S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let Self { control, states, flows, random, .. } = self;
        let flows = flows.as_mut()?;
        // After a drop the scheduler may turn to another flow: a dropped packet is not charged.
        for drops in 0.. {
            let next = scheduler.front()?;
            let (flow, size) = (next.packet.flow(), next.packet.size());
            let state = &mut states[flow.slot()];
            let held = flows.held_by(flow).bytes;
            let head = head(next, now, held - size, scheduler.backlog().bytes - size);
            let verdict = control.judge(state, now, head, random);
            let is_dropped = verdict == Verdict::Drop && drops < MAX_DROPS_PER_DEQUEUE;
            let taken =
                if is_dropped { scheduler.push_out(now, flow, End::Head) } else { scheduler.pop(now) };
            let mut queued = taken?;
            flows.remove(flow, &queued.packet);
            if head.behind == Bytes::ZERO {
                control.found_empty(state);
            }
            if is_dropped {
                sink.dropped(now, queued.packet, DropReason::Early);
                continue;
            }
            if verdict == Verdict::Mark {
                mark(&mut queued, now, sink);
            }
            control.departed(state, now, head.sojourn, head.behind == Bytes::ZERO);
            return Some(queued);
        }
        None
    }
}

/// A whole scheduler as one queue.
struct Whole<'a, S> {
    scheduler: &'a mut S,
    now: Time,
}

impl<P: Packet, S: Scheduler<P>> Source<P> for Whole<'_, S> {
    fn pop(&mut self) -> Option<Queued<P>> {
        self.scheduler.pop(self.now)
    }
    fn behind(&self) -> Bytes {
        self.scheduler.backlog().bytes
    }
}

impl<P: Packet, C: Control> BufferPolicy<P> for PerQueue<C> {
    fn control_each_flow(&mut self) {
        let occupancy = Occupancy::new(self.limit.get(), Thresholds::Weights, Choice::Ratio, &[]);
        self.flows = Some(occupancy.with_ties(Ties::Random, self.random.clone()));
    }

    #[inline]
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let Self { control, limit, states, random, .. } = self;
        admit(control, &mut states[0], limit.get(), now, packet, [backlog; 2], random)
    }

    fn admit_to_flow(&mut self, now: Time, packet: &mut P, _backlog: Backlog) -> Admission {
        let at = packet.flow().slot();
        if at >= self.states.len() {
            self.grow(at);
        }
        let Self { control, limit, states, flows, random, .. } = self;
        let Some(flows) = flows else { return Admission::Accept };
        // In a buffer with other packets, a packet that fits alone pushes others out.
        let backlogs = [Backlog::EMPTY, flows.held_by(packet.flow())];
        let verdict = admit(control, &mut states[at], limit.get(), now, packet, backlogs, random);
        if !matches!(verdict, Admission::Drop(_)) {
            flows.add(packet);
        }
        verdict
    }

    #[inline]
    fn victim<S: Scheduler<P>>(&mut self, now: Time, scheduler: &S) -> Option<Victim> {
        // With a FIFO the compiler drops the access to `flows`.
        if !scheduler.keeps_flows_apart() {
            return None;
        }
        let flows = self.flows.as_mut().filter(|flows| flows.is_exceeded(scheduler.backlog()))?;
        let flow = flows.choose(|| 0.0)?;
        self.control.overflowed(&mut self.states[flow.slot()], now);
        Some(Victim { flow, end: C::OVERFLOW, reason: DropReason::PushOut })
    }

    fn pushed_out(&mut self, packet: &P) {
        self.taken_out(packet);
    }

    fn taken_out(&mut self, packet: &P) {
        if let Some(flows) = &mut self.flows {
            flows.remove(packet.flow(), packet);
        }
    }

    #[inline]
    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        if scheduler.keeps_flows_apart() {
            return self.dequeue_from_flows(now, scheduler, sink);
        }
        let Self { control, states, random, .. } = self;
        dequeue(control, states.first_mut()?, now, &mut Whole { scheduler, now }, random, sink)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        match &self.flows {
            None => self.states.iter().for_each(|state| C::statistics(state, show)),
            Some(flows) => show("active_flows", flows.active() as f64),
        }
    }

    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        if self.flows.is_some() {
            for (flow, state) in (0..).map(FlowId).zip(&self.states) {
                C::statistics(state, &mut |name, value| show(flow, name, value));
            }
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
        if let Some(flows) = &mut self.flows {
            flows.set_limit(limit);
        }
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.control = self.params.at(rate);
        self.limit.set_link_rate(rate);
        if let Some(flows) = &mut self.flows {
            flows.set_limit(self.limit.get());
        }
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        match (setting, &mut self.flows) {
            (FlowSetting::Weight(weight), Some(flows)) => flows.set_weight(flow, weight),
            _ => false,
        }
    }
}
