//! Schedulers: they hold the packets and decide which flow is served next.
//!
//! | file | scheduler | source |
//! |---|---|---|
//! | [`fifo`] | first in, first out | – |
//! | [`round_robin`] | round robin, packet by packet | Nagle 1985 |
//! | [`drr`] | deficit round robin | Shreedhar, Varghese 1996 |
//! | [`start_time_fq`] | start-time fair queueing | Goyal, Vin, Cheng 1997 |
//! | [`scfq`] | self-clocked fair queueing | Golestani 1994 |
//! | [`confucius`] | fair queueing with shares that move gradually | Meng et al. 2024 |
//! | [`l4s_first`] | L4S packets before a scheduler for all others | RFC 9332 |
//! | [`rcs`] | recursive congestion shares | Brown et al. 2024 |
//! | [`wfq`] | WFQ and WF2Q, by the virtual time of a fluid | Demers et al. 1989; Bennett, Zhang 1996 |
//! | [`wf2q_plus`] | WF2Q+, worst-case fair weighted fair queueing | Bennett, Zhang 1997 |
//!
//! [`turns`] is the scheduler of CSFQ: turns by flow at an edge. `tags.rs` holds what the schedulers with virtual time share,
//! and `gps.rs` the fluid of WFQ and WF2Q.

pub mod confucius;
pub mod drr;
pub mod fifo;
mod gps;
pub mod l4s_first;
pub mod rcs;
pub mod round_robin;
pub mod scfq;
pub mod start_time_fq;
mod tags;
#[cfg(test)]
mod testing;
pub mod turns;
pub mod wf2q_plus;
pub mod wfq;

use crate::flow_setting::FlowSetting;
use crate::packet::{FlowId, Packet};
use crate::queue::Backlog;
use crate::units::{Rate, Span, Time, Weight};

/// A packet in a buffer, with the time it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued<P> {
    /// The packet.
    pub packet: P,
    /// The time of its `enqueue`.
    pub arrived: Time,
}

impl<P> Queued<P> {
    /// The sojourn time until `now`.
    #[must_use]
    pub fn sojourn(&self, now: Time) -> Span {
        now.since(self.arrived)
    }
}

/// One end of a flow's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The packet that would be served first.
    Head,
    /// The packet that arrived last.
    Tail,
}

/// How an admitted packet joins a scheduler that has [`turns`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Turn {
    /// Before all others, unless packets of its flow wait.
    First,
    /// In order of arrival.
    Arrival,
    /// With the other packets of its flow.
    Flow,
    /// With the other packets of its flow, whose weight is set to this one.
    Weighted(Weight),
}

/// A scheduler: the packets of a buffer and the order in which they leave.
///
/// A scheduler admits every packet; the [buffer policy](crate::aqm) has the limits. Packets of one flow leave
/// in the order in which they arrived.
pub trait Scheduler<P: Packet> {
    /// Adds a packet.
    fn push(&mut self, now: Time, packet: P);

    /// Adds a packet as the buffer policy says. Default: as [`push`](Scheduler::push) does.
    #[inline(always)]
    fn push_in_turn(&mut self, now: Time, packet: P, _turn: Turn) {
        self.push(now, packet);
    }

    /// Called when the link asks for a packet, before the packet is chosen: the last one has left. A scheduler
    /// whose order depends on what has been sent settles it here, and else in [`pop`](Scheduler::pop). Default: no effect.
    #[inline(always)]
    fn link_is_free(&mut self, _now: Time) {}

    /// Removes and returns the next packet to serve; `None` only if the backlog is empty.
    fn pop(&mut self, now: Time) -> Option<Queued<P>>;

    /// Removes one packet of `flow` without serving it; `None` if the flow has none. The flow is not charged
    /// for the packet.
    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>>;

    /// The flow that [`pop`](Scheduler::pop) would serve next; `None` only if the backlog is empty.
    fn next_flow(&self) -> Option<FlowId>;

    /// The packet that [`pop`](Scheduler::pop) would serve next; `None` only if the backlog is empty.
    fn front(&self) -> Option<&Queued<P>>;

    /// Whether a packet waits only for packets of its own flow and for turns of others, not for all packets
    /// that arrived before it.
    fn keeps_flows_apart(&self) -> bool {
        true
    }

    /// Whether a packet that arrives at the empty scheduler and leaves at once leaves no trace.
    fn is_transparent(&self) -> bool {
        false
    }

    /// The packet that [`pop`](Scheduler::pop) returns after `others` other packets, if it is known without a
    /// search; see [`Queue::upcoming`](crate::queue::Queue::upcoming).
    fn upcoming(&self, _others: usize) -> Option<&P> {
        None
    }

    /// All packets held.
    fn backlog(&self) -> Backlog;

    /// The L4S packets held, if they have a queue of their own that is served first.
    fn l4s_backlog(&self) -> Option<Backlog> {
        None
    }

    /// Sets the rate of the link, for schedulers whose order depends on it.
    fn set_link_rate(&mut self, _rate: Rate) {}

    /// Reports named counters and gauges.
    fn statistics(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Changes a setting of `flow`. Returns whether it is heeded: the schedulers of this crate heed only
    /// weights.
    fn set_flow(&mut self, _flow: FlowId, _setting: FlowSetting) -> bool {
        false
    }
}

/// A scheduler behind a virtual call. Each pair of a scheduler and a policy is code of its own, so those that no
/// run waits for share this one.
pub type BoxedScheduler<P> = alloc::boxed::Box<dyn Scheduler<P> + Send>;

/// A boxed scheduler.
pub(crate) fn boxed<P: Packet>(scheduler: impl Scheduler<P> + Send + 'static) -> BoxedScheduler<P> {
    alloc::boxed::Box::new(scheduler)
}

impl<P: Packet> Scheduler<P> for BoxedScheduler<P> {
    fn push(&mut self, now: Time, packet: P) {
        (**self).push(now, packet);
    }

    fn push_in_turn(&mut self, now: Time, packet: P, turn: Turn) {
        (**self).push_in_turn(now, packet, turn);
    }

    fn link_is_free(&mut self, now: Time) {
        (**self).link_is_free(now);
    }

    fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        (**self).pop(now)
    }

    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        (**self).push_out(now, flow, end)
    }

    fn next_flow(&self) -> Option<FlowId> {
        (**self).next_flow()
    }

    fn front(&self) -> Option<&Queued<P>> {
        (**self).front()
    }

    fn keeps_flows_apart(&self) -> bool {
        (**self).keeps_flows_apart()
    }

    fn is_transparent(&self) -> bool {
        (**self).is_transparent()
    }

    fn upcoming(&self, others: usize) -> Option<&P> {
        (**self).upcoming(others)
    }

    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }

    fn l4s_backlog(&self) -> Option<Backlog> {
        (**self).l4s_backlog()
    }

    fn set_link_rate(&mut self, rate: Rate) {
        (**self).set_link_rate(rate);
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        (**self).statistics(show);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        (**self).set_flow(flow, setting)
    }
}
