//! What the schedulers by tags share: virtual time, the queues of the flows, and a tag for each flow; and
//! what those that serve the smallest tag share in addition.
//!
//! **Head-of-line tags.** The papers stamp a packet when it arrives. Here a packet gets its tags when it
//! becomes the head of its flow: S = F of the flow's last packet served if the flow was backlogged then, else
//! the larger of that and the virtual time. Where nothing is pushed out both give the same tags. Where heads
//! are pushed out, tags stamped at arrival charge a flow for packets that were never sent; these do not.
//!
//! One number per flow therefore does: the start tag of its head while it is backlogged, the finish tag of
//! its last packet served while it is idle. An idle flow whose number is not above the virtual time carries
//! no information, and counts as never seen.
//!
//! **Numbers.** Virtual time counts bytes for a flow of the smallest weight, in integers of 2^-24 bytes, so
//! sums are exact and only differences matter. A packet's length in virtual time is rounded once, to 2^-24
//! bytes: for 64 bytes and a weight a million times the smallest, by less than 0.1 %. When virtual time
//! reaches 2^62, that is after 275 GB for each unit of the smallest weight, all numbers are moved down
//! together, which changes no difference: O(flows), once in more than 10^8 packets.
//!
//! **Ties.** Flows whose tags are equal, as those of all that send packets of one size are time and again, are served in the order in which
//! their heads came to the head: by their numbers, those with high ones would wait longer and lose more packets for it. Tags that differ
//! by less than 2^-14 bytes count as equal there, and for nothing else; beyond a thousand equal tags the order of two may be the other.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{End, Queued, Scheduler};
use crate::flow_setting::FlowSetting;
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::queue::Backlog;
use crate::smallest::Smallest;
use crate::units::{Bytes, Time, Weight};

/// Where the numbers are moved down. Below 2^63 by more than any tag can be ahead of virtual time.
const HORIZON: u64 = 1 << 62;

/// The part of a place among all flows that is not the tag but its turn among equal ones.
const TURN: u64 = (1 << 10) - 1;

/// What a byte costs at the smallest weight, in virtual time times 2^16.
const BYTE: f64 = (1_u64 << 40) as f64;

/// A flow: its queue, weight and tag. Two share a line of the cache and none lies across two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Flow {
    pub queue: PacketQueue,
    /// What a byte costs it in virtual time, times 2^16: 2^40 at the smallest weight.
    per_byte: u64,
    /// S of its head while backlogged, else F of its last packet served.
    pub tag: u64,
    /// Its turn among equal tags.
    turn: u64,
}

impl Flow {
    /// The length of a packet in virtual time. At most 2^48: 16 MB at the smallest weight.
    pub fn length(&self, size: Bytes) -> u64 {
        (size.get().saturating_mul(self.per_byte) >> 16).max(1)
    }

    /// Its weight: 2^16 is the smallest. Rounded up, so that a sum of weights is never too small, nor a virtual time that rises
    /// by its inverse ahead; but what exceeds a whole number by less than 2^-10 is the rounding of `per_byte`.
    pub fn share(&self) -> u64 {
        ((1_u64 << 56) - (self.per_byte >> 10)).div_ceil(self.per_byte)
    }
}

/// The flows and their packets.
#[derive(Clone, Debug)]
pub(super) struct Flows<P> {
    flows: Vec<Flow>,
    packets: Pool<P>,
    pub backlog: Backlog,
    smallest: Weight,
}

impl<P: Packet> Flows<P> {
    /// None yet. Weights are counted in units of `smallest`; a lower one that comes later is exact down to a
    /// 256th of it for packets of 64 kB.
    pub const fn new(smallest: Weight) -> Self {
        Self { flows: Vec::new(), packets: Pool::new(), backlog: Backlog::EMPTY, smallest }
    }

    #[inline]
    pub fn get(&mut self, index: usize) -> &mut Flow {
        if index >= self.flows.len() {
            self.grow(index + 1);
        }
        &mut self.flows[index]
    }

    // Apart: with it, each call of `get` saves all registers.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, flows: usize) {
        let per_byte = self.per_byte(Weight::ONE);
        self.flows.resize(flows, Flow { queue: PacketQueue::EMPTY, per_byte, tag: 0, turn: 0 });
    }

    /// Takes a packet in. Says whether it is the head of its flow.
    #[inline]
    pub fn push(&mut self, now: Time, packet: P) -> bool {
        self.backlog.add(&packet);
        let index = packet.flow().slot();
        if index >= self.flows.len() {
            self.grow(index + 1);
        }
        let queue = &mut self.flows[index].queue;
        let is_head = queue.is_empty();
        queue.push(&mut self.packets, Queued { packet, arrived: now });
        is_head
    }

    /// Takes out a packet of a flow, if it has one.
    pub fn take(&mut self, index: usize, end: End) -> Option<Queued<P>> {
        let queued = self.flows.get_mut(index)?.queue.pop(&mut self.packets, end)?;
        self.backlog.remove(&queued.packet);
        Some(queued)
    }

    /// A flow's head.
    pub fn head(&self, index: usize) -> Option<&Queued<P>> {
        self.flows.get(index)?.queue.front(&self.packets)
    }

    /// The finish tag of a flow's head; none without a head.
    pub fn finish(&self, index: usize) -> Option<u64> {
        let flow = self.flows.get(index)?;
        Some(flow.tag + flow.length(self.head(index)?.packet.size()))
    }

    /// The memory that flows take in addition to their packets, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Flow>()
    }

    /// From the flow's next packet on that gets tags.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        self.get(flow.slot()).per_byte = self.per_byte(weight);
    }

    /// The clamps keep a length below 2^48, and the sum of all shares within 64 bits.
    fn per_byte(&self, weight: Weight) -> u64 {
        libm::round(BYTE * (self.smallest.get() / weight.get())).clamp(16_384.0, BYTE * 65_536.0) as u64
    }

    /// If `now`, the virtual time, has come to the horizon: moves the tags down and says by how much the rest
    /// has to follow.
    pub fn rebase(&mut self, now: u64) -> Option<u64> {
        if now < HORIZON {
            return None;
        }
        let backlogged = self.flows.iter().filter(|flow| !flow.queue.is_empty()).map(|flow| flow.tag);
        // No tag is then ahead of its place among all.
        let by = backlogged.fold(now, u64::min) & !TURN;
        // The tag of an idle flow may be below: it carries no information, and neither does zero.
        self.flows.iter_mut().for_each(|flow| flow.tag = flow.tag.saturating_sub(by));
        Some(by)
    }
}

/// The tag of a head by which flows are served.
pub trait Tag {
    /// Whether it is S, the start of its service in virtual time. Else it is F, the finish.
    const IS_START: bool;
}

/// Serves the flow whose head has the smallest tag `T`; virtual time is that tag of the packet in service.
#[derive(Clone, Debug)]
pub struct ByTag<P, T> {
    flows: Flows<P>,
    /// The backlogged flows by the tag of their head.
    order: Smallest,
    /// Virtual time: the tag of the packet served last.
    pub(super) v: u64,
    /// The largest F of a packet served.
    latest: u64,
    /// Packets that have come to the head of their flow.
    heads: u64,
    tag: PhantomData<T>,
}

impl<P: Packet, T: Tag> ByTag<P, T> {
    /// Without packets. `smallest` is the smallest weight of a flow.
    #[must_use]
    pub fn new(smallest: Weight) -> Self {
        Self {
            flows: Flows::new(smallest),
            order: Smallest::new(),
            v: 0,
            latest: 0,
            heads: 0,
            tag: PhantomData,
        }
    }

    /// Gives a packet that has come to the head of its flow its tag, behind those that are equal.
    fn take_turn(&mut self, index: usize) {
        self.heads = self.heads.wrapping_add(1);
        self.flows.get(index).turn = self.heads;
        self.tag(index);
    }

    /// Gives the head of a flow its tag, or takes the flow out if it has none.
    fn tag(&mut self, index: usize) {
        let flow = self.flows.get(index);
        let tag = match T::IS_START {
            true => (!flow.queue.is_empty()).then_some(flow.tag),
            false => self.flows.finish(index),
        };
        match tag {
            Some(tag) => self.order.set(index, tag & !TURN | self.flows.get(index).turn & TURN),
            None => self.order.remove(index),
        }
    }

    fn rebase(&mut self) {
        if let Some(by) = self.flows.rebase(self.v) {
            self.order.shift(by);
            self.v -= by;
            self.latest = self.latest.saturating_sub(by);
        }
    }
}

#[cfg(test)]
impl<P: Packet, T: Tag> ByTag<P, T> {
    /// The memory that flows take in addition to their packets, in bytes.
    pub fn bytes(&self) -> usize {
        self.flows.bytes() + self.order.bytes()
    }
}

impl<P: Packet, T: Tag> Scheduler<P> for ByTag<P, T> {
    fn push(&mut self, now: Time, packet: P) {
        let index = packet.flow().slot();
        if self.flows.push(now, packet) {
            // Goyal97 eq. (4); the same in Golestani94, section 3.
            let flow = self.flows.get(index);
            flow.tag = flow.tag.max(self.v);
            self.take_turn(index);
        }
    }

    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let Some((_, index)) = self.order.first() else {
            self.v = self.v.max(self.latest);
            return None;
        };
        let queued = self.flows.take(index, End::Head)?;
        let flow = self.flows.get(index);
        let start = flow.tag;
        // Goyal97 eq. (5); the next packet of the flow starts where this one finishes.
        flow.tag += flow.length(queued.packet.size());
        let finish = flow.tag;
        self.v = self.v.max(if T::IS_START { start } else { finish });
        self.latest = self.latest.max(finish);
        self.take_turn(index);
        self.rebase();
        Some(queued)
    }

    fn push_out(&mut self, _now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let index = flow.slot();
        let queued = self.flows.take(index, end)?;
        // The packet behind has the same S: what is not served is not charged.
        self.tag(index);
        Some(queued)
    }

    #[inline]
    fn next_flow(&self) -> Option<FlowId> {
        self.order.first().map(|(_, index)| FlowId(index as u32))
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.flows.head(self.order.first()?.1)
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        self.flows.set_weight(flow, weight);
        true
    }
}
