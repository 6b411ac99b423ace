//! Buffer policies: they decide which packets are dropped or marked.
//!
//! | file | policy | source |
//! |---|---|---|
//! | [`tail`] | tail drop | – |
//!
//! A policy sees packets at three moments, and each policy uses the moments that its paper describes: before a packet
//! joins the buffer ([`admit`](BufferPolicy::admit): tail drop, RED), after it has joined a buffer that is now too full
//! ([`victim`](BufferPolicy::victim): head drop, longest queue drop) and when the link asks for a packet
//! ([`dequeue`](BufferPolicy::dequeue): CoDel; RED notes the start of idle time).

pub mod tail;

use crate::packet::{FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued, Scheduler};
use crate::units::{Bytes, Packets, Time};

/// What becomes of a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
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
    /// The flow that gives up a packet. It must have one in the buffer.
    pub flow: FlowId,
    /// From which end.
    pub end: End,
}

/// A buffer policy, independent of the scheduler it is combined with.
pub trait BufferPolicy<P: Packet> {
    /// Judges `packet` before it joins a buffer that holds `backlog` without it.
    fn admit(&mut self, now: Time, packet: &P, backlog: Backlog) -> Verdict;

    /// After an arrival has joined `scheduler`: who has to go, if the buffer is now too full. Asked again after each
    /// victim until it answers `None`.
    fn victim<S: Scheduler<P>>(&mut self, _now: Time, _scheduler: &S) -> Option<Victim> {
        None
    }

    /// Told of the packet that was pushed out on its [`victim`](BufferPolicy::victim)'s account.
    fn pushed_out(&mut self, _packet: &P) {}

    /// Takes the next packet from `scheduler` for transmission, dropping others into `sink` where the policy drops at
    /// the head of the queue.
    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        scheduler.pop(now)
    }
}

/// The size of a buffer, in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many packets.
    Packets(Packets),
    /// At most this many bytes.
    Bytes(Bytes),
}

impl Limit {
    /// Whether `backlog` is above the limit.
    #[must_use]
    pub fn is_exceeded_by(self, backlog: Backlog) -> bool {
        match self {
            Self::Packets(limit) => backlog.packets > limit,
            Self::Bytes(limit) => backlog.bytes > limit,
        }
    }

    /// Whether `packet` still fits beside `backlog`.
    #[must_use]
    pub fn admits<P: Packet>(self, packet: &P, mut backlog: Backlog) -> bool {
        backlog.add(packet);
        !self.is_exceeded_by(backlog)
    }
}
