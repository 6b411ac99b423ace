//! Shared parts of the tag-based schedulers: virtual time, the queues of the flows, a tag for each flow, and
//! [`ByTag`], which serves the smallest tag.
//!
//! **Head-of-line tags.** The papers stamp a packet when it arrives. Here a packet gets its tags when it
//! becomes the head of its flow: S = F of the flow's last packet served if the flow was backlogged then, else
//! the larger of that F and the virtual time. Without push-out both methods give the same tags. If heads are
//! pushed out, tags stamped at arrival charge a flow for packets that were never sent; head-of-line tags do
//! not.
//!
//! One number per flow is therefore enough: the start tag of its head while it is backlogged, the finish tag
//! of its last packet served while it is idle. An idle flow whose number is not above the virtual time
//! carries no information, and is treated as new.
//!
//! **Numbers.** Virtual time counts bytes for a flow of the smallest weight, in integers of 2^-24 bytes, so
//! sums are exact and only differences matter. A packet's length in virtual time is rounded once, to 2^-24
//! bytes: for 64 bytes and a weight a million times the smallest, by less than 0.1 %. When virtual time
//! reaches 2^62, after 275 GB for each unit of the smallest weight, all numbers are reduced together, which
//! changes no difference: O(flows), once in more than 10^8 packets.
//!
//! **Ties.** Tags are often equal, for example if all flows send packets of one size. Flows with equal tags
//! are served in the order in which their heads became heads of line. In the order of flow numbers, flows
//! with high numbers would wait longer and lose more packets. Tags that differ by less than 2^-14 bytes count
//! as equal in this order, and nowhere else; beyond a thousand equal tags the order of two may be reversed.

use alloc::vec::Vec;
use core::marker::PhantomData;

use super::{End, Queued, Scheduler};
use crate::flow_setting::FlowSetting;
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::queue::Backlog;
use crate::smallest::Smallest;
use crate::units::{Bytes, Time, Weight};

/// The virtual time at which numbers are reduced. It is so far below 2^63 that no tag ahead of virtual time
/// exceeds 2^63.
const HORIZON: u64 = 1 << 62;

/// The bits of a flow's place in the order that hold its turn among equal tags.
const TURN: u64 = (1 << 10) - 1;

/// The cost of a byte at the smallest weight, in virtual time times 2^16.
const BYTE: f64 = (1_u64 << 40) as f64;

/// A flow: its queue, weight and tag. Two flows share a cache line and none lies across two.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Flow {
    pub queue: PacketQueue,
    /// The cost of a byte in virtual time, times 2^16: 2^40 at the smallest weight.
    per_byte: u64,
    /// S of the head while backlogged, else F of the last packet served.
    pub tag: u64,
    /// The turn among equal tags.
    turn: u64,
}

impl Flow {
    /// The length of a packet in virtual time. At most 2^48: 16 MB at the smallest weight.
    pub fn length(&self, size: Bytes) -> u64 {
        (size.get().saturating_mul(self.per_byte) >> 16).max(1)
    }

    /// The weight, 2^16 for the smallest. Rounded up, so that a sum of weights is never too small and a
    /// virtual time that rises by its inverse never ahead. An excess over a whole number below 2^-10 is the
    /// rounding error of `per_byte`, and is dropped.
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
    /// An empty set. Weights are counted in units of `smallest`; a lower weight that comes later is exact
    /// down to a 256th of `smallest` for packets of 64 kB.
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

    // Not inlined: otherwise each call of `get` saves all registers.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, flows: usize) {
        let per_byte = self.per_byte(Weight::ONE);
        self.flows.resize(flows, Flow { queue: PacketQueue::EMPTY, per_byte, tag: 0, turn: 0 });
    }

    /// Adds a packet. Returns whether it is the head of its flow.
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

    /// Removes a packet of a flow, if it has one.
    pub fn take(&mut self, index: usize, end: End) -> Option<Queued<P>> {
        let queued = self.flows.get_mut(index)?.queue.pop(&mut self.packets, end)?;
        self.backlog.remove(&queued.packet);
        Some(queued)
    }

    /// The head of a flow.
    pub fn head(&self, index: usize) -> Option<&Queued<P>> {
        self.flows.get(index)?.queue.front(&self.packets)
    }

    /// All packets, in no order.
    pub fn packets_mut(&mut self) -> impl Iterator<Item = &mut P> {
        self.packets.iter_mut().map(|queued| &mut queued.packet)
    }

    /// The finish tag of a flow's head; none if the flow is empty.
    pub fn finish(&self, index: usize) -> Option<u64> {
        let flow = self.flows.get(index)?;
        Some(flow.tag + flow.length(self.head(index)?.packet.size()))
    }

    /// The memory of the flows without their packets, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.flows.capacity() * size_of::<Flow>()
    }

    /// Sets the weight of a flow for tags given from here on.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        self.get(flow.slot()).per_byte = self.per_byte(weight);
    }

    /// The clamps keep a length below 2^48, and the sum of all shares within 64 bits.
    fn per_byte(&self, weight: Weight) -> u64 {
        libm::round(BYTE * (self.smallest.get() / weight.get())).clamp(16_384.0, BYTE * 65_536.0) as u64
    }

    /// If `now`, the virtual time, has reached the horizon: reduces the tags and returns the reduction, which
    /// the caller applies to the rest.
    pub fn rebase(&mut self, now: u64) -> Option<u64> {
        if now < HORIZON {
            return None;
        }
        let backlogged = self.flows.iter().filter(|flow| !flow.queue.is_empty()).map(|flow| flow.tag);
        // A multiple of the turn's range: each tag keeps its place in the order.
        let by = backlogged.fold(now, u64::min) & !TURN;
        // The tag of an idle flow may be below `by`: it carries no information, and neither does zero.
        self.flows.iter_mut().for_each(|flow| flow.tag = flow.tag.saturating_sub(by));
        Some(by)
    }
}

/// The tag of a head of line by which flows are served.
pub trait Tag {
    /// Whether the tag is S, the start of service in virtual time; else it is F, the finish.
    const IS_START: bool;
}

/// Serves the flow whose head has the smallest tag `T`; virtual time is the tag `T` of the packet in service.
#[derive(Clone, Debug)]
pub struct ByTag<P, T> {
    flows: Flows<P>,
    /// The backlogged flows by the tag of their heads.
    order: Smallest,
    /// Virtual time: the tag of the last packet served.
    pub(super) v: u64,
    /// The largest F of any packet served.
    latest: u64,
    /// The number of packets that became heads of line.
    heads: u64,
    tag: PhantomData<T>,
}

impl<P: Packet, T: Tag> ByTag<P, T> {
    /// An empty scheduler. `smallest` is the smallest weight of a flow.
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

    /// Inserts a new head of line by its tag, behind equal tags.
    fn take_turn(&mut self, index: usize) {
        self.heads = self.heads.wrapping_add(1);
        self.flows.get(index).turn = self.heads;
        self.tag(index);
    }

    /// Inserts the head of a flow by its tag, or removes the flow if it is empty.
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

    /// Sets the weight of a flow, and scales what its tag is ahead of virtual time with it: the flow is due next
    /// as if it had always had this weight.
    pub(super) fn reweigh(&mut self, flow: FlowId, weight: Weight) {
        let (index, per_byte) = (flow.slot(), self.flows.per_byte(weight));
        let flow = self.flows.get(index);
        let before = core::mem::replace(&mut flow.per_byte, per_byte);
        if before == per_byte || flow.tag <= self.v {
            return;
        }
        let ahead = u128::from(flow.tag - self.v) * u128::from(per_byte) / u128::from(before);
        flow.tag = self.v + u64::try_from(ahead).unwrap_or(u64::MAX).min(1 << 48);
        self.tag(index);
    }

    /// Whether packets of `flow` wait.
    pub(super) fn holds(&self, flow: FlowId) -> bool {
        self.flows.head(flow.slot()).is_some()
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
    /// The memory of the flows without their packets, in bytes.
    pub fn bytes(&self) -> usize {
        self.flows.bytes() + self.order.bytes()
    }
}

impl<P: Packet, T: Tag> Scheduler<P> for ByTag<P, T> {
    fn push(&mut self, now: Time, packet: P) {
        let index = packet.flow().slot();
        if self.flows.push(now, packet) {
            // Goyal97 eq. (4); Golestani94 section 3 has the same rule.
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
        // The packet behind gets the same S: a flow is charged for its service only.
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
