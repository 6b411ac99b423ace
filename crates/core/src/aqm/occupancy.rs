//! The backlog of each flow in a shared buffer, and the choice of a victim: the common part of LQD, RND and
//! PFD.
//!
//! Each flow `i` holds q_i of the buffer B and has a *soft threshold* b_i, which it may exceed while there is
//! room; the thresholds of all flows add up to B. Suter, Lakshman, Stiliadis, Choudhury 1998; Srinivasan,
//! Vaidyanathan, Baras, "Fair resource allocation in hybrid network gateways with per-flow queueing",
//! sections 3 to 5.3.
//!
//! Readings:
//! - q_i and B are in the unit of the limit, packets or bytes.
//! - `equal`: b_i = B/n with n the flows that hold a packet, including the flow of the arrival.
//! - `weights` and `rtt`: b_i = B s_i/Σ s. The sum runs over the flows that are configured or were seen once,
//!   whether they hold a packet or not; otherwise every threshold would change with every packet. A flow of
//!   unknown round-trip time has the mean of the known ones.
//! - Round-trip times come from the backend, which may measure them: a gateway sees the headers of both
//!   directions. They cannot be measured here. A queue sees one direction and no header. The time from a drop
//!   to the retransmission needs sequence numbers. The pauses between windows, which show round-trip times in
//!   one direction of a trace, are filled if the flow has packets waiting, and thresholds matter only then. A
//!   packet would have to carry its sender's measurement, or the queue to see acknowledgements or time stamps
//!   (RFC 7323) on their way back.
//! - Among flows that exceed their thresholds equally, the victim is random ([`Ties::Random`]). None of the
//!   papers specifies it. If flows hold two packets or fewer, most victims are found among equals, so any
//!   rule by flow numbers would starve some flows. With [`Ties::Arrival`] the victim is the flow of the
//!   arrival, if it is among them.
//! - With `equal`, q_i/b_i and q_i - b_i select the same victim, the longest queue.
//!
//! | victim | found by | cost |
//! |---|---|---|
//! | largest q_i/b_i or q_i - b_i | a tournament of the longest, `longest.rs` | O(log flows), mostly O(1) |
//! | drawn in proportion to q_i/b_i | a tree of sums | O(1) per packet, O(log flows) per push-out |
//! | drawn from q_i > b_i, equal thresholds | flows in the order of their lengths, `Ranked` | O(1) |
//! | drawn from q_i > b_i, other thresholds | the set of these flows, `Set` | O(1) |
//!
//! There is no index before the first victim is asked for. A changed weight or a flow seen for the first time
//! changes Σ s and so every threshold, as does a changed limit. With q_i/b_i, all quotients change by one
//! factor, which changes no order: the keys are q_i/s_i, and a weight costs as much as a packet. With q_i -
//! b_i, or q_i > b_i and unequal thresholds, it costs O(flows) with the next victim. So does, with any rule,
//! a limit that changes from packets to bytes or back. Memory: 16 bytes per flow, 8 if it is configured, and
//! up to 23 for the tournament, 21 for the sums, 12 for the order or 8 for the set; vectors that grow are
//! allocated for up to twice as many flows.

use alloc::vec::Vec;
use core::mem::discriminant;
use core::num::NonZeroU32;

use crate::choice;
use crate::limit::Limit;
use crate::longest::Longest;
use crate::packet::{FlowId, Packet};
use crate::param::Param;
use crate::queue::Backlog;
use crate::random::{Stream, mix};
use crate::tree::{Sum, Tree};
use crate::units::{Span, Weight};

choice! {
    /// The measure to which the soft thresholds of flows are proportional.
    pub enum Thresholds {
        /// None: the thresholds of flows that hold a packet are equal.
        Equal = "equal",
        /// The weights of the flows.
        Weights = "weights",
        /// Their round-trip times, if the backend knows them.
        Rtt = "rtt",
    }
}

choice! {
    /// The choice of the flow that loses a packet.
    pub enum Choice {
        /// The largest q_i/b_i.
        Ratio = "ratio",
        /// The largest q_i - b_i.
        Difference = "difference",
        /// At random, in proportion to q_i/b_i.
        Proportional = "proportional",
        /// At random from the flows with q_i > b_i, uniformly.
        Uniform = "uniform",
    }
}

/// The parameter `thresholds` of a policy.
pub(crate) const THRESHOLDS: Param = Param::of("weights", "chosen: flows that may send more may hold more")
    .symbol("b_i")
    .doc("What soft thresholds are in proportion to; `rtt` is equal where no round-trip time is known.");

choice! {
    /// The choice among flows that exceed their thresholds equally.
    pub enum Ties {
        /// One of them at random.
        Random = "random",
        /// The flow of the arrival if it is among them, else one of them at random.
        Arrival = "arrival",
    }
}

/// The backlog of each flow in a shared buffer.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    measure: Measure,
    flows: Vec<Flow>,
    /// q_size.
    held: Backlog,
    /// n, the number of flows that hold a packet.
    active: u64,
    /// Whether thresholds have changed in a way that changes keys, so that `index` must be rebuilt.
    thresholds_moved: bool,
    index: Index,
    ties: Ties,
    /// The seed of the random choice among equals.
    seed: u64,
    /// The flow whose packet arrived last.
    arrived: usize,
    /// The number of times that `index` was rebuilt.
    #[cfg(test)]
    rebuilds: u32,
}

/// The factor by which the mean round-trip time may change before flows of unknown ones follow it. Chosen:
/// small compared to the range of round-trip times, which is thousands.
const DRIFT: f64 = 2.0;

/// q_i. The only state here that a packet of a flow touches that is not among the longest; none lies across
/// two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Flow(Backlog);

/// The thresholds of flows, and the excess over them.
#[derive(Clone, Debug)]
struct Measure {
    limit: Limit,
    thresholds: Thresholds,
    choice: Choice,
    /// The number of packets of each flow that do not count in q_i/b_i.
    spared: u64,
    /// s_i of flows that have one, else 0: b_i = B s_i/Σ s.
    shares: Vec<f64>,
    /// The share of flows without one.
    default_share: f64,
    /// Σ s, unless thresholds have changed; kept for choices that depend on it.
    sum: f64,
    /// Whether all shares are equal; updated like `sum`, but for all choices.
    even: bool,
}

#[derive(Clone, Debug)]
enum Index {
    Longest(Longest),
    Wheel(Tree<Sum>),
    Ranked(Ranked),
    Set(Set),
}

impl Measure {
    /// A backlog in the unit of the limit.
    fn of(&self, held: Backlog) -> f64 {
        let q = match self.limit {
            Limit::Packets(_) => held.packets.get(),
            Limit::Bytes(_) => held.bytes.get(),
        };
        // Far below 2^63, so one signed conversion is enough.
        q as i64 as f64
    }

    /// B.
    fn capacity(&self) -> f64 {
        match self.limit {
            Limit::Packets(limit) => limit.get() as f64,
            Limit::Bytes(limit) => limit.get() as f64,
        }
    }

    fn share(&self, flow: usize) -> f64 {
        self.shares.get(flow).copied().filter(|share| *share > 0.0).unwrap_or(self.default_share)
    }

    /// Sums the shares of the first `flows` flows.
    fn sum_up(&mut self, flows: usize) {
        self.sum = (0..flows).map(|flow| self.share(flow)).sum();
        self.even = (0..self.shares.len()).all(|flow| self.share(flow) == self.default_share);
    }

    /// b_i.
    fn threshold(&self, flow: usize) -> f64 {
        self.capacity() / self.sum * self.share(flow)
    }

    /// Whether the victim depends on B/Σ s: in q_i/b_i = q_i/s_i Σ s/B it is a common factor.
    const fn depends_on_sum(&self) -> bool {
        matches!(self.choice, Choice::Difference | Choice::Uniform)
    }

    /// The key of a flow with a backlog in the order of victims; equal shares do not matter.
    fn excess(&self, flow: usize, held: Backlog) -> Option<f64> {
        let q = self.of(held);
        let packets = held.packets.get();
        let excess = match self.choice {
            _ if self.even => q,
            // Below all flows that hold more, in the order of q_i/b_i.
            Choice::Ratio if packets <= self.spared => -self.share(flow) / q,
            Choice::Ratio if self.spared > 0 => {
                q * (1.0 - self.spared as f64 / packets as f64) / self.share(flow)
            }
            Choice::Difference => q - self.threshold(flow),
            _ => q / self.share(flow),
        };
        (!held.is_empty()).then_some(excess)
    }
}

impl Occupancy {
    /// An empty buffer. `rtts` are round-trip times by flow, zero where unknown.
    pub fn new(limit: Limit, thresholds: Thresholds, choice: Choice, rtts: &[Span]) -> Self {
        let nanos = |rtt: &Span| rtt.as_nanos() as f64;
        let rtts = if thresholds == Thresholds::Rtt { rtts } else { &[] };
        let known: Vec<f64> = rtts.iter().map(nanos).filter(|&rtt| rtt > 0.0).collect();
        let by_rtt = !known.is_empty();
        let default_share = if by_rtt { known.iter().sum::<f64>() / known.len() as f64 } else { 1.0 };
        let share = |rtt: &Span| if *rtt > Span::ZERO { nanos(rtt) } else { 0.0 };
        let rtts = if by_rtt { rtts } else { &[] };
        let shares: Vec<f64> = rtts.iter().take(FlowId::SLOTS).map(share).collect();
        Self {
            flows: alloc::vec![Flow(Backlog::EMPTY); shares.len()],
            measure: Measure {
                limit,
                thresholds,
                choice,
                spared: 0,
                shares,
                default_share,
                sum: 0.0,
                even: true,
            },
            held: Backlog::EMPTY,
            active: 0,
            thresholds_moved: true,
            index: Index::Set(Set::default()),
            ties: Ties::Random,
            seed: 0,
            arrived: 0,
            #[cfg(test)]
            rebuilds: 0,
        }
    }

    /// Sets the choice among equals, with a seed drawn from `random`.
    pub fn with_ties(mut self, ties: Ties, mut random: Stream) -> Self {
        (self.ties, self.seed) = (ties, random.below(u64::MAX));
        self
    }

    /// Leaves `packets` of each flow out of q_i/b_i, unless all thresholds are equal: the longest is then the same.
    pub const fn sparing(mut self, packets: u64) -> Self {
        self.measure.spared = packets;
        self
    }

    /// Whether an arriving packet fits into the empty buffer. One that does not is dropped; otherwise it
    /// would empty the buffer and still not fit.
    #[inline]
    pub fn fits<P: Packet>(&self, packet: &P) -> bool {
        self.measure.limit.admits(packet, Backlog::EMPTY)
    }

    /// Adds a packet that joins the buffer.
    #[inline]
    pub fn add<P: Packet>(&mut self, packet: &P) {
        let flow = self.find(packet.flow());
        self.arrived = flow;
        let Flow(held) = &mut self.flows[flow];
        let before = *held;
        held.add(packet);
        self.active += u64::from(before.is_empty());
        self.held.add(packet);
        self.note(flow, before);
    }

    /// Subtracts a packet that has left `flow`.
    pub fn remove<P: Packet>(&mut self, flow: FlowId, packet: &P) {
        let flow = flow.slot();
        let Flow(held) = &mut self.flows[flow];
        let before = *held;
        held.remove(packet);
        self.active -= u64::from(held.is_empty());
        self.held.remove(packet);
        self.note(flow, before);
    }

    /// Whether `backlog`, the content of the buffer, exceeds the limit.
    pub fn is_exceeded(&self, backlog: Backlog) -> bool {
        debug_assert_eq!(self.held, backlog, "the flows hold what the buffer holds");
        self.measure.limit.is_exceeded_by(self.held)
    }

    /// n, the number of flows that hold a packet.
    pub const fn active(&self) -> u64 {
        self.active
    }

    /// The backlog of `flow`.
    pub fn held_by(&self, flow: FlowId) -> Backlog {
        self.flows.get(flow.slot()).map_or(Backlog::EMPTY, |flow| flow.0)
    }

    /// q_size.
    pub const fn held(&self) -> Backlog {
        self.held
    }

    /// B.
    pub const fn limit(&self) -> Limit {
        self.measure.limit
    }

    /// q_size/B.
    pub fn fill(&self) -> f64 {
        self.measure.limit.filled_by(self.held)
    }

    /// B, as a number.
    pub fn capacity(&self) -> f64 {
        self.measure.capacity()
    }

    /// The flow that loses a packet; a random choice uses `uniform`, a number in [0, 1). There is one
    /// whenever the buffer is exceeded: if numbers add up to more than B = Σ b_i, one is above its b_i. Not
    /// inlined: otherwise each arrival saves all registers.
    #[inline(never)]
    pub fn choose(&mut self, uniform: impl FnOnce() -> f64) -> Option<FlowId> {
        if self.thresholds_moved {
            self.make_index();
        }
        let Self { flows, measure, index, ties, arrived, .. } = self;
        let excess = |flow: usize| measure.excess(flow, flows[flow].0);
        let flow = match index {
            Index::Longest(longest) => {
                let one = longest.largest(flows.len(), excess);
                // No key exceeds that of `one`.
                let pays = |flow: &usize| *ties == Ties::Arrival && excess(*arrived) == excess(*flow);
                one.map(|flow| if pays(&flow) { *arrived } else { flow })
            }
            Index::Wheel(wheel) => wheel.at(uniform()),
            Index::Ranked(ranked) => pick(ranked.longer_than(measure.limit, self.active), uniform()),
            Index::Set(set) => pick(&set.members, uniform()),
        };
        flow.map(|flow| FlowId(flow as u32))
    }

    pub fn set_limit(&mut self, limit: Limit) {
        let is_other_unit = discriminant(&limit) != discriminant(&self.measure.limit);
        self.measure.limit = limit;
        self.thresholds_moved |= is_other_unit || self.measure.depends_on_sum();
    }

    /// Sets a weight. Returns whether weights are used.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        let is_used = self.measure.thresholds == Thresholds::Weights;
        if is_used {
            self.set_share(flow, weight.get());
        }
        is_used
    }

    /// Sets the round-trip time of `flow`, zero if it is unknown. Returns whether it is used.
    pub fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> bool {
        let is_used = self.measure.thresholds == Thresholds::Rtt;
        if is_used {
            self.set_share(flow, rtt.as_nanos() as f64);
        }
        is_used
    }

    /// Sets the value for unknown round-trip times, for thresholds that follow them. It takes effect if it
    /// differs by more than [`DRIFT`]: that costs O(flows). Zero changes nothing.
    pub fn set_unknown_rtt(&mut self, rtt: Span) {
        let (old, new) = (self.measure.default_share, rtt.as_nanos() as f64);
        if new > 0.0 && (new > DRIFT * old || old > DRIFT * new) {
            self.measure.default_share = new;
            self.thresholds_moved = true;
        }
    }

    fn set_share(&mut self, flow: FlowId, share: f64) {
        let flow = self.find(flow);
        // The flow's key is removed with the old share and added with the new one.
        let held = core::mem::replace(&mut self.flows[flow], Flow(Backlog::EMPTY));
        self.note(flow, held.0);
        let measure = &mut self.measure;
        measure.shares.resize(measure.shares.len().max(flow + 1), 0.0);
        measure.shares[flow] = share;
        let differs = measure.share(flow) != measure.default_share;
        // A default of 1 divides nothing: the other keys stay, even or not, if all packets count.
        let moved = measure.even && differs && (measure.default_share != 1.0 || measure.spared > 0);
        measure.even &= !differs;
        self.thresholds_moved |= moved || measure.depends_on_sum();
        self.flows[flow] = held;
        self.note(flow, Backlog::EMPTY);
    }

    #[inline]
    fn find(&mut self, flow: FlowId) -> usize {
        if flow.slot() >= self.flows.len() {
            self.grow(flow.slot() + 1);
        }
        flow.slot()
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, flows: usize) {
        self.flows.resize(flows, Flow(Backlog::EMPTY));
        // A further share makes the others smaller. Equal shares do not matter.
        self.thresholds_moved |= !self.measure.even && self.measure.depends_on_sum();
    }

    fn make_index(&mut self) {
        self.seed = mix(self.seed);
        self.measure.sum_up(self.flows.len());
        self.index = match self.measure.choice {
            Choice::Ratio | Choice::Difference => Index::Longest(Longest::new(self.seed)),
            Choice::Proportional => Index::Wheel(Tree::new()),
            Choice::Uniform if self.measure.even => Index::Ranked(Ranked::default()),
            Choice::Uniform => Index::Set(Set::default()),
        };
        self.thresholds_moved = false;
        #[cfg(test)]
        {
            self.rebuilds += 1;
        }
        if !matches!(self.index, Index::Longest(_)) {
            (0..self.flows.len()).for_each(|flow| self.note(flow, Backlog::EMPTY));
        }
    }

    /// The memory of the flows, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let u32s = |lists: &[&Vec<u32>]| lists.iter().map(|list| list.capacity() * size_of::<u32>()).sum();
        let index: usize = match &self.index {
            Index::Longest(longest) => longest.bytes(),
            Index::Wheel(wheel) => wheel.bytes(),
            Index::Ranked(Ranked { order, place, length, longer }) => u32s(&[order, place, length, longer]),
            Index::Set(Set { members, place }) => u32s(&[members]) + place.capacity() * size_of::<u32>(),
        };
        let shares = self.measure.shares.capacity() * size_of::<f64>();
        self.flows.capacity() * size_of::<Flow>() + shares + index
    }

    /// Updates the index for a flow that held `before`.
    #[inline]
    fn note(&mut self, flow: usize, before: Backlog) {
        // There is no index before the first victim.
        if !self.thresholds_moved {
            self.note_change(flow, before);
        }
    }

    fn note_change(&mut self, flow: usize, before: Backlog) {
        let Index::Longest(longest) = &mut self.index else { return self.note_to_draw(flow) };
        let (Flow(held), measure) = (self.flows[flow], &self.measure);
        longest.change(flow, measure.excess(flow, before), measure.excess(flow, held));
    }

    // Not inlined: with it, the other index saves all registers for each packet.
    #[inline(never)]
    fn note_to_draw(&mut self, flow: usize) {
        let (Flow(held), measure) = (self.flows[flow], &self.measure);
        match &mut self.index {
            Index::Longest(_) => {}
            Index::Wheel(wheel) => wheel.set(flow, Sum(measure.of(held) / measure.share(flow))),
            Index::Ranked(ranked) => ranked.set(flow, measure.limit, held),
            Index::Set(set) => set.put(flow, measure.of(held) > measure.threshold(flow)),
        }
    }
}

/// The element at the position `u`, in [0, 1), of a list; none if the list is empty.
fn pick(flows: &[u32], u: f64) -> Option<usize> {
    let last = flows.len().checked_sub(1)?;
    Some(flows[((u * flows.len() as f64) as usize).min(last)] as usize)
}

/// Flows in the order of their lengths, the longest first. Lengths are packets, or the number of cells of 64
/// bytes that a queue in bytes has begun (chosen: the smallest Ethernet frame), so that the threshold in
/// bytes is rounded down to whole cells.
///
/// Flows of equal length are adjacent, in no order, and the flows of at least each length are counted. A flow
/// that grows by one is exchanged with the first of its length, and then is the last of the next: one
/// exchange and one count, as in the bin sort of Batagelj, Zaversnik 2003. The flows above any threshold are
/// a prefix, wherever the threshold moves.
#[derive(Clone, Debug, Default)]
struct Ranked {
    order: Vec<u32>,
    /// The place of each flow in `order`, and its length.
    place: Vec<u32>,
    length: Vec<u32>,
    /// The number of flows that are longer, by length.
    longer: Vec<u32>,
}

const CELL: u64 = 64;

impl Ranked {
    fn set(&mut self, flow: usize, limit: Limit, held: Backlog) {
        for flow in self.order.len()..=flow {
            self.order.push(flow as u32);
            self.place.push(flow as u32);
            self.length.push(0);
        }
        let length = match limit {
            Limit::Packets(_) => held.packets.get(),
            Limit::Bytes(_) => held.bytes.get().div_ceil(CELL),
        };
        while u64::from(self.length[flow]) < length {
            let l = self.length[flow] as usize;
            if l == self.longer.len() {
                self.longer.push(0);
            }
            self.exchange(flow, self.longer[l]);
            self.longer[l] += 1;
            self.length[flow] += 1;
        }
        while u64::from(self.length[flow]) > length {
            self.length[flow] -= 1;
            let l = self.length[flow] as usize;
            self.longer[l] -= 1;
            self.exchange(flow, self.longer[l]);
        }
    }

    /// Exchanges `flow` with the flow at `place`.
    fn exchange(&mut self, flow: usize, place: u32) {
        let from = core::mem::replace(&mut self.place[flow], place);
        let other = core::mem::replace(&mut self.order[place as usize], flow as u32);
        self.order[from as usize] = other;
        self.place[other as usize] = from;
        self.place[flow] = place;
    }

    /// The flows with q_i > B/n.
    fn longer_than(&self, limit: Limit, n: u64) -> &[u32] {
        // For whole numbers, q > B/n if and only if q > ⌊B/n⌋.
        let level = match limit {
            Limit::Packets(limit) => limit.get() / n.max(1),
            Limit::Bytes(limit) => limit.get() / n.max(1) / CELL,
        };
        let longer = usize::try_from(level).ok().and_then(|level| self.longer.get(level));
        &self.order[..longer.map_or(0, |&count| count as usize)]
    }
}

/// A set of flows from which one can be drawn.
#[derive(Clone, Debug, Default)]
struct Set {
    members: Vec<u32>,
    /// The place of each flow in `members`.
    place: Vec<Option<NonZeroU32>>,
}

impl Set {
    fn put(&mut self, flow: usize, inside: bool) {
        if flow >= self.place.len() {
            self.place.resize(flow + 1, None);
        }
        match self.place[flow] {
            None if inside => {
                self.members.push(flow as u32);
                // Places count from 1.
                self.place[flow] = NonZeroU32::new(self.members.len() as u32);
            }
            Some(place) if !inside => {
                self.members.swap_remove(place.get() as usize - 1);
                if let Some(&moved) = self.members.get(place.get() as usize - 1) {
                    self.place[moved as usize] = Some(place);
                }
                self.place[flow] = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
