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
//! | [`ahab`] | thresholds by epochs and a sketch of rates | MacDavid, Chen, Rexford 2023 |
//! | [`sffc`] | soft fair flow control; its predecessor NBQ | Tamura, Tobe, Tokuda 2000, 1999 |
//! | [`codel`] | controlled delay | RFC 8289 |
//! | [`pie`] | proportional integral controller | RFC 8033 |
//! | [`pvpie`] | per packet value with PIE | Laki, Gombos, Nádas, Turányi 2017 |
//! | [`cobalt`] | CoDel with BLUE | Palmei et al. 2019 |
//!
//! `l4s.rs` is shared by the disciplines that mark L4S packets instead of dropping them. [`detection`],
//! `average.rs` and `drop_curve.rs` are shared by RED and its relatives, [`occupancy`], [`push_out`] and
//! [`dimensioning`] by LQD and its relatives, and [`per_queue`] by CoDel, PIE and COBALT.
//!
//! A policy sees packets at three moments, and each policy uses the moments that its paper describes: before
//! a packet joins the buffer ([`admit`](BufferPolicy::admit): tail drop, RED), after it has joined a buffer
//! that may now be too full ([`victim`](BufferPolicy::victim): head drop, longest queue drop) and when the
//! link asks for a packet ([`dequeue`](BufferPolicy::dequeue): CoDel; RED notes the start of idle time).

pub mod ahab;
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
mod l4s_lane;
pub mod longest_queue;
pub mod occupancy;
pub mod per_queue;
pub mod pfd;
pub(crate) mod pfd_auto;
pub(crate) mod pfd_l4s;
pub mod pie;
pub mod push_out;
pub mod pvpie;
pub mod random_drop;
pub mod red;
mod reserve;
pub mod rio;
pub mod sffc;
pub mod sred;
pub mod tail;
pub mod tred;
pub mod value_edge;

use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued, Scheduler, Turn};
use crate::units::{Rate, Time};

/// The decision on an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The packet joins the buffer.
    Accept,
    /// The packet is marked CE and joins. Only for ECN-capable packets.
    Mark,
    /// The packet is dropped.
    Drop(DropReason),
}

/// The packet that is pushed out of a buffer that holds too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Victim {
    /// The flow that loses a packet. It must have one in the buffer.
    pub flow: FlowId,
    /// The end of the flow's queue.
    pub end: End,
    /// The reason in reports.
    pub reason: DropReason,
}

/// A buffer policy, independent of the scheduler with which it is combined.
pub trait BufferPolicy<P: Packet> {
    /// Decides on `packet` before it joins a buffer that holds `backlog` without it. A packet that is
    /// accepted or marked joins, with any label that the policy has written.
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission;

    /// Decides as [`admit`](BufferPolicy::admit) does, if the scheduler has a queue for each flow. Default:
    /// the same decision.
    #[inline(always)]
    fn admit_to_flow(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.admit(now, packet, backlog)
    }

    /// How the packet that was admitted last joins a scheduler that has [turns](crate::schedule::turns). Default: with its flow.
    #[inline(always)]
    fn turn(&self) -> Turn {
        Turn::Flow
    }

    /// Selects the packet to push out after an arrival has joined `scheduler`, if the buffer holds too much
    /// or as an early signal to the sender. Called again after each victim until it returns `None`.
    fn victim<S: Scheduler<P>>(&mut self, _now: Time, _scheduler: &S) -> Option<Victim> {
        None
    }

    /// Called with the packet that was pushed out as a [`victim`](BufferPolicy::victim).
    fn pushed_out(&mut self, _packet: &P) {}

    /// Called before the first packet if the scheduler has a queue for each flow: an AQM that controls the
    /// delay of a queue then controls each of them. Default: no effect.
    fn control_each_flow(&mut self) {}

    /// Called with a packet that left the buffer without being served or dropped.
    fn taken_out(&mut self, _packet: &P) {}

    /// Removes and returns the next packet of `scheduler` for transmission. A policy that drops at the head
    /// of the queue drops others into `sink`.
    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        scheduler.pop(now)
    }

    /// Whether a packet of any size that arrives at the empty buffer and leaves at once is admitted and
    /// leaves no trace.
    fn is_transparent(&self) -> bool {
        false
    }

    /// Reports named counters and gauges.
    fn statistics(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Reports named counters and gauges of flows.
    fn flow_statistics(&self, _show: &mut dyn FnMut(FlowId, &'static str, f64)) {}

    /// The present size of the buffer; none if the policy does not report it.
    fn limit(&self) -> Option<Limit> {
        None
    }

    /// Sets the size of the buffer. A buffer above the new size drains, or the next arrivals push packets
    /// out.
    fn set_limit(&mut self, limit: Limit);

    /// Sets the rate of the link, for policies whose decisions depend on it.
    fn set_link_rate(&mut self, _rate: Rate) {}

    /// Changes a setting of `flow`. Returns whether it is [heeded](FlowSetting). Default: no.
    fn set_flow(&mut self, _flow: FlowId, _setting: FlowSetting) -> bool {
        false
    }

    /// Returns the part that exchanges reports with other routers, if any.
    fn reporter(&self) -> Option<&sffc::Sffc> {
        None
    }

    /// Returns the part as [`reporter`](Self::reporter) does, for changes.
    fn reporter_mut(&mut self) -> Option<&mut sffc::Sffc> {
        None
    }
}
