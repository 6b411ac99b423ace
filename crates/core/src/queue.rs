//! The contract between a queue discipline and the backend that runs it.

use alloc::boxed::Box;

use crate::packet::{FlowId, Packet};
use crate::units::{Bytes, Packets, Rate, Time};

/// A queue discipline in front of one link.
///
/// - `now` never decreases from call to call.
/// - Ownership in, ownership out: every packet given to [`enqueue`](Queue::enqueue) leaves by
///   [`dequeue`](Queue::dequeue) or through the sink with a reason. Nothing is freed in silence.
/// - The packet in transmission is not in the queue and can no longer be dropped.
/// - A link that finishes a transmission always asks once more, so that a discipline sees the start of an
///   idle period (RED needs it) as a `dequeue` that returns `None`.
/// - Calls at other times than asked for are harmless.
pub trait Queue<P: Packet> {
    /// Takes `packet` in. May drop it, or another one, into `sink`.
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>);

    /// The next packet to transmit. May drop some first (CoDel does).
    ///
    /// `None` with a backlog means "not yet": ask again at [`next_wakeup`](Queue::next_wakeup).
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P>;

    /// Whether a packet that comes to the empty queue and leaves at once always gets through and leaves no
    /// trace, nor does asking the empty queue. A transmitter that is free may then send such a packet, most
    /// of a link that is not congested, without asking.
    fn is_transparent(&self) -> bool {
        false
    }

    /// The earliest time at which a `dequeue` that was refused can succeed without a further `enqueue`.
    ///
    /// `None` unless the discipline holds packets back, or has to tell its sink something at that time although it is
    /// empty.
    fn next_wakeup(&self) -> Option<Time> {
        None
    }

    /// What it holds, packets held back included.
    fn backlog(&self) -> Backlog;

    /// The packet that leaves after `others` others if nothing else happens, where that is known without a search: a hint, so that a
    /// backend asks for the memory of its flow before it needs it.
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

/// What a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets.
    pub packets: Packets,
    /// Bytes on the wire of those packets.
    pub bytes: Bytes,
}

impl Backlog {
    /// Nothing.
    pub const EMPTY: Self = Self { packets: Packets::ZERO, bytes: Bytes::ZERO };

    /// Counts `packet` in.
    pub fn add<P: Packet>(&mut self, packet: &P) {
        self.packets += Packets::new(1);
        self.bytes += packet.size();
    }
    /// Counts `packet` out.
    pub fn remove<P: Packet>(&mut self, packet: &P) {
        self.packets -= Packets::new(1);
        self.bytes -= packet.size();
    }
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets == Packets::ZERO
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "snake_case"))]
pub enum DropReason {
    /// A random or timed signal of congestion, before the buffer was full (RED's ramp, CoDel).
    Early,
    /// A threshold that admits nothing above it (RED above its maximum).
    Forced,
    /// The buffer was full and this was the arriving packet.
    Overflow,
    /// A rule about this flow or class, whatever the state of the buffer.
    Policy,
    /// Removed from the buffer to make room for another packet.
    PushOut,
}

impl DropReason {
    /// Every reason, in the order in which results list them.
    pub const ALL: [Self; 5] = [Self::Early, Self::Forced, Self::Overflow, Self::Policy, Self::PushOut];

    /// Its name in results.
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

/// Overload notification: the link cannot carry a flow's required rate, or can again (Li, Walpole,
/// McNamee, Pu, Steere 2001, section 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overload {
    /// The flow.
    pub flow: FlowId,
    /// What it seems to need.
    pub wanted: Rate,
    /// What it has.
    pub granted: Rate,
    /// Whether the overload of an earlier notification has ended.
    pub is_over: bool,
}

/// Where a discipline reports what it did to packets and could not do for flows: the one event stream for
/// tests, traces and metrics.
pub trait Sink<P> {
    /// `packet` was dropped at `now`. The sink owns it from here.
    fn dropped(&mut self, now: Time, packet: P, reason: DropReason);
    /// `packet` was marked "congestion experienced" at `now` and goes on.
    fn marked(&mut self, now: Time, packet: &P);
    /// Whether the TCP ACK `older` may be left out when `newer` follows it: both are of one connection and one way, and whatever `older` says
    /// `newer` says too. False, as of packets whose headers cannot be read, unless overridden.
    fn supersedes(&self, _newer: &P, _older: &P) -> bool {
        false
    }
    /// The link cannot carry what flows need since `now`, or can again. Once for each flow concerned.
    fn overload(&mut self, _now: Time, _overload: Overload) {}
}
