//! The contract between a queue discipline and the backend that runs it.

use alloc::boxed::Box;

use crate::packet::{FlowId, Packet};
use crate::units::{Bytes, Packets, Rate, Time};

/// A queue discipline for one link.
///
/// - `now` never decreases from call to call.
/// - Ownership in, ownership out: every packet given to [`enqueue`](Queue::enqueue) leaves by
///   [`dequeue`](Queue::dequeue) or through the sink with a reason. No packet is freed without a report.
/// - The packet in transmission is not in the queue and can no longer be dropped.
/// - A link that finishes a transmission always asks once more. A discipline therefore sees the start of an
///   idle period, which RED needs, as a `dequeue` that returns `None`.
/// - Calls at other times than [`next_wakeup`](Queue::next_wakeup) are harmless.
pub trait Queue<P: Packet> {
    /// Adds `packet`. May drop it or another packet into `sink`.
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>);

    /// Removes and returns the next packet to transmit. May drop packets first (CoDel does).
    ///
    /// `None` with a backlog means "not yet": ask again at [`next_wakeup`](Queue::next_wakeup).
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P>;

    /// Whether the queue, while empty, passes every packet on at once and unchanged, and keeps no trace of
    /// the packet or of a `dequeue` of an empty queue. An idle transmitter may then send an arriving packet
    /// without a call. Most packets of an uncongested link arrive at an idle transmitter.
    fn is_transparent(&self) -> bool {
        false
    }

    /// The earliest time at which a `dequeue` that returned `None` can succeed without a further `enqueue`.
    ///
    /// `None` unless the discipline holds packets back, or has to report to its sink at that time although it
    /// is empty.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// The backlog, packets held back included.
    fn backlog(&self) -> Backlog;

    /// The packet that leaves after `others` other packets if nothing else happens, if it is known without a
    /// search. A hint with which a backend prefetches the state of the packet's flow.
    fn upcoming(&self, _others: usize) -> Option<&P> {
        None
    }
}

impl<P: Packet, Q: Queue<P> + ?Sized> Queue<P> for Box<Q> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        (**self).enqueue(now, packet, sink);
    }
    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        (**self).dequeue(now, sink)
    }
    fn is_transparent(&self) -> bool {
        (**self).is_transparent()
    }
    fn next_wakeup(&self) -> Option<Time> {
        (**self).next_wakeup()
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn upcoming(&self, others: usize) -> Option<&P> {
        (**self).upcoming(others)
    }
}

/// The backlog of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// The number of packets.
    pub packets: Packets,
    /// The bytes of those packets on the wire.
    pub bytes: Bytes,
}

impl Backlog {
    /// No packets.
    pub const EMPTY: Self = Self { packets: Packets::ZERO, bytes: Bytes::ZERO };

    /// Adds `packet`.
    pub fn add<P: Packet>(&mut self, packet: &P) {
        self.packets += Packets::new(1);
        self.bytes += packet.size();
    }
    /// Subtracts `packet`.
    pub fn remove<P: Packet>(&mut self, packet: &P) {
        self.packets -= Packets::new(1);
        self.bytes -= packet.size();
    }
    /// The sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
    /// Whether there are no packets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == Packets::ZERO
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum DropReason {
    /// A random or timed congestion signal before the buffer is full (RED's ramp, CoDel).
    Early,
    /// A threshold that admits nothing above it (RED above its maximum).
    Forced,
    /// The buffer was full, and the arriving packet was dropped.
    Overflow,
    /// A rule for this flow or class, whatever the state of the buffer.
    Policy,
    /// Removed from the buffer to make room for another packet.
    PushOut,
}

impl DropReason {
    /// Every reason, in the order in which results list them.
    pub const ALL: [Self; 5] = [Self::Early, Self::Forced, Self::Overflow, Self::Policy, Self::PushOut];

    /// The name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Forced => "forced",
            Self::Overflow => "overflow",
            Self::Policy => "policy",
            Self::PushOut => "push_out",
        }
    }
}

/// Overload notification: the link can no longer carry a flow's required rate, or can again (Li, Walpole,
/// McNamee, Pu, Steere 2001, section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The flow.
    pub flow: FlowId,
    /// The rate that the flow seems to need.
    pub wanted: Rate,
    /// The rate that the flow gets.
    pub granted: Rate,
    /// Whether the overload of an earlier notification has ended.
    pub is_over: bool,
}

/// Receives a discipline's reports about packets and overloaded flows: the one event stream for tests, traces
/// and metrics.
pub trait Sink<P> {
    /// `packet` was dropped at `now`. The sink owns it.
    fn dropped(&mut self, now: Time, packet: P, reason: DropReason);
    /// `packet` was marked CE at `now` and stays in the queue or leaves it.
    fn marked(&mut self, now: Time, packet: &P);
    /// Whether the TCP acknowledgement `newer` makes `older` redundant: both have the same connection and
    /// direction, and `newer` repeats all that `older` says. Default: false, as for packets whose headers
    /// cannot be read.
    fn supersedes(&self, _newer: &P, _older: &P) -> bool {
        false
    }
    /// Since `now` the link cannot carry the rates that flows need, or can again. Called once for each flow
    /// concerned.
    fn overload(&mut self, _now: Time, _overload: Overload) {}
}
