//! Buffer policies: they decide which packets are dropped or marked.
//!
//! | file | policy | source |
//! |---|---|---|
//! | [`tail`] | tail drop | – |
//! | [`head`] | drop from front | Lakshman, Neidhardt, Ott 1996 |
//! | [`longest_queue`] | longest queue drop | Suter, Lakshman, Stiliadis, Choudhury 1998 |
//! | [`random_drop`] | random drop from a flow above its threshold | the same |
//! | [`pfd`] | probabilistic fair drop | Srinivasan, Vaidyanathan, Baras |
//! | [`red`] | random early detection | Floyd, Jacobson 1993 |
//! | [`rio`] | RED with IN and OUT | Clark, Fang 1998 |
//! | [`fred`] | flow random early drop | Lin, Morris 1997 |
//! | [`sred`] | stabilised RED | Ott, Lakshman, Wong 1999 |
//! | [`bred`] | balanced RED | Anjum, Tassiulas 1999 |
//! | [`tred`] | ticket-based RED | Zhang, Wang, Peterson, Krishnamurthy 2002 |
//! | [`csfq`] | core-stateless fair queueing: CSFQ, MCSFQ | Stoica et al. 1998; Pelsser, De Cnodder 2002 |
//! | [`hcsfq`] | hierarchical core-stateless fair queueing | Yu, Wu, Braverman, Stoica, Jin 2021 |
//! | [`sffc`] | soft fair flow control; its predecessor NBQ | Tamura, Tobe, Tokuda 2000, 1999 |
//! | [`codel`] | controlled delay | RFC 8289 |
//! | [`pie`] | proportional integral controller | RFC 8033 |
//! | [`cobalt`] | CoDel with BLUE | Palmei et al. 2019 |
//!
//! `l4s.rs` is what the disciplines share that mark L4S packets in place of drops. [`detection`], `average.rs` and `drop_curve.rs` are the
//! parts of RED that its relatives share, [`occupancy`], [`push_out`] and [`dimensioning`] are what LQD and its relatives share,
//! [`per_queue`] is what CoDel, PIE and COBALT share.
//!
//! A policy sees packets at three moments, and each policy uses the moments that its paper describes: before
//! a packet joins the buffer ([`admit`](BufferPolicy::admit): tail drop, RED), after it has joined a buffer
//! that may now be too full ([`victim`](BufferPolicy::victim): head drop, longest queue drop) and when the
//! link asks for a packet ([`dequeue`](BufferPolicy::dequeue): CoDel; RED notes the start of idle time).

pub(crate) mod average;
pub mod bred;
pub mod cobalt;
pub mod codel;
pub mod csfq;
pub mod detection;
pub mod dimensioning;
pub(crate) mod drop_curve;
pub mod fred;
pub mod hcsfq;
pub mod head;
pub(crate) mod l4s;
pub mod longest_queue;
pub mod occupancy;
pub mod per_queue;
pub mod pfd;
pub(crate) mod pfd_auto;
pub(crate) mod pfd_l4s;
pub mod pie;
pub mod push_out;
pub mod random_drop;
pub mod red;
mod reserve;
pub mod rio;
pub mod sffc;
pub mod sred;
pub mod tail;
pub mod tred;

use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued, Scheduler};
use crate::units::{Rate, Time};

/// The decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It joins the buffer.
    Accept,
    /// It is marked "congestion experienced" and joins. Only for packets whose ECN field allows it.
    Mark,
    /// It is dropped.
    Drop(DropReason),
}

/// The packet that is pushed out of a buffer that is too full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The flow that loses a packet. It must have one in the buffer.
    pub flow: FlowId,
    /// From which end.
    pub end: End,
    /// Why.
    pub reason: DropReason,
}

/// A buffer policy, independent of the scheduler it is combined with.
pub trait BufferPolicy<P: Packet> {
    /// Decides on `packet` before it joins a buffer that holds `backlog` without it. What is accepted or marked
    /// does join, with the label that the policy may have given it.
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission;

    /// As [`admit`](BufferPolicy::admit), where the scheduler has a queue for each flow. By default that makes no difference.
    #[inline(always)]
    fn admit_to_flow(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.admit(now, packet, backlog)
    }

    /// After an arrival has joined `scheduler`: the packet to push out, if the buffer is now too full or as an
    /// early signal to its sender. Called again after each victim until it returns `None`.
    fn victim<S: Scheduler<P>>(&mut self, _now: Time, _scheduler: &S) -> Option<Victim> {
        None
    }

    /// Called with the packet that was pushed out as a [`victim`](BufferPolicy::victim).
    fn pushed_out(&mut self, _packet: &P) {}

    /// Called before the first packet where the scheduler has a queue for each flow: what controls the delay of a queue then controls
    /// each of them. By default nothing changes.
    fn control_each_flow(&mut self) {}

    /// Called with a packet that left the buffer without being served or dropped.
    fn taken_out(&mut self, _packet: &P) {}

    /// Takes the next packet from `scheduler` for transmission, dropping others into `sink` where the policy
    /// drops at the head of the queue.
    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        scheduler.pop(now)
    }

    /// Whether a packet of any size that comes to the empty buffer and leaves at once is admitted and leaves
    /// no trace.
    fn is_transparent(&self) -> bool {
        false
    }

    /// Reports named counters and gauges.
    fn statistics(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Reports named counters and gauges of flows.
    fn flow_statistics(&self, _show: &mut dyn FnMut(FlowId, &'static str, f64)) {}

    /// The size of the buffer now; none if the policy does not say.
    fn limit(&self) -> Option<Limit> {
        None
    }

    /// Sets the size of the buffer. A fuller buffer drains, or is pushed out by the next arrivals.
    fn set_limit(&mut self, limit: Limit);

    /// Sets the rate of the link, for policies that compute with it.
    fn set_link_rate(&mut self, _rate: Rate) {}

    /// Changes what the policy knows of `flow`. Whether it was [heeded](FlowSetting); by default nothing is.
    fn set_flow(&mut self, _flow: FlowId, _setting: FlowSetting) -> bool {
        false
    }

    /// Its part in exchanging reports with other routers, if it has one.
    fn reporter(&self) -> Option<&sffc::Sffc> {
        None
    }

    /// The same, to change it.
    fn reporter_mut(&mut self) -> Option<&mut sffc::Sffc> {
        None
    }
}
