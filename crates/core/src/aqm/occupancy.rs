//! Who holds how much of a shared buffer, and who holds too much: what LQD, RND and PFD have in common.
//!
//! Each flow `i` holds q_i of the buffer B and has a *soft threshold* b_i, of which it may hold more while
//! there is room; the thresholds of all flows add up to B. Suter, Lakshman, Stiliadis, Choudhury 1998;
//! Srinivasan, Vaidyanathan, Baras, "Fair resource allocation in hybrid network gateways with per-flow
//! queueing", sections 3 to 5.3.
//!
//! Readings:
//! - q_i and B are in the unit of the limit, packets or bytes.
//! - `equal`: b_i = B/n with n the flows that hold a packet, the one that has just arrived included.
//! - `weights` and `rtt`: b_i = B s_i/Σ s. The sum runs over the flows that are configured or were seen once,
//!   whether they hold a packet or not, or every threshold would move with every packet. A flow of unknown
//!   round-trip time has the mean of those that are known.
//! - Round-trip times come from the backend, which may measure them: a gateway sees the headers of both directions. They are not
//!   measured here. A queue sees one direction and no header: the time
//!   from a drop to the retransmission needs sequence numbers, and the pauses between a window and the next,
//!   by which round-trip times have been read off one direction of a trace, are filled up where the flow has
//!   packets waiting, which is where thresholds matter. A packet would have to carry what its sender
//!   measured, or the queue to see acknowledgements or time stamps (RFC 7323) on their way back.
//! - Of flows that hold too much in equal measure, chance finds the victim ([`Ties::Random`]). None of the papers says which.
//!   Where flows hold two packets or fewer, most victims are found among equals, so any rule that goes by numbers of flows would
//!   starve some; with [`Ties::Arrival`] it is the flow that has just sent, if it is among them.
//! - With `equal`, q_i/b_i and q_i - b_i name the same victim, the longest queue.
//!
//! | victim | found by | cost |
//! |---|---|---|
//! | largest q_i/b_i or q_i - b_i | a tournament of the longest, `longest.rs` | O(log flows), mostly O(1) |
//! | drawn in proportion to q_i/b_i | a tree of sums | O(1) per packet, O(log flows) per push-out |
//! | drawn from q_i > b_i, equal thresholds | flows in the order of their lengths, `Ranked` | O(1) |
//! | drawn from q_i > b_i, other thresholds | the set of these flows, `Set` | O(1) |
//!
//! Nothing is kept in order before the first victim is asked for. A changed weight or a flow seen for the
//! first time changes Σ s and so moves every threshold, as does a changed limit. Where q_i/b_i decides, all
//! quotients change by one factor, which changes no order: the keys are q_i/s_i, and a weight costs what a
//! packet costs. With q_i - b_i, or q_i > b_i and unequal thresholds, it costs O(flows) with the next victim.
//! So does, with any rule, a limit that turns from packets to bytes or back. Memory: 16 bytes per flow, 8 if
//! it is configured, and up to 23 for the tournament, 21 for the sums, 12 for the order or 8 for the set;
//! what grows is made for up to twice as many.

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
    /// What the soft thresholds of the flows are in proportion to.
    pub enum Thresholds {
        /// Nothing: those of the flows that hold a packet are equal.
        Equal = "equal",
        /// The weights of the flows.
        Weights = "weights",
        /// Their round-trip times, as far as the backend knows them.
        Rtt = "rtt",
    }
}

choice! {
    /// How the flow that gives up a packet is found.
    pub enum Choice {
        /// The largest q_i/b_i.
        Ratio = "ratio",
        /// The largest q_i - b_i.
        Difference = "difference",
        /// At random, in proportion to q_i/b_i.
        Proportional = "proportional",
        /// At random from the flows with q_i > b_i, each as likely as the others.
        Uniform = "uniform",
    }
}

/// The parameter `thresholds` of a policy.
pub(crate) const THRESHOLDS: Param = Param::of("weights", "chosen: flows that may send more may hold more")
    .symbol("b_i")
    .doc("What soft thresholds are in proportion to; `rtt` is equal where no round-trip time is known.");

choice! {
    /// Which of several flows that hold too much in equal measure gives up a packet.
    pub enum Ties {
        /// One of them by chance.
        Random = "random",
        /// The one whose packet has just arrived if it is among them, else one of them by chance.
        Arrival = "arrival",
    }
}

/// What each flow holds of a shared buffer.
#[derive(Clone, Debug)]
pub(crate) struct Occupancy {
    measure: Measure,
    flows: Vec<Flow>,
    /// q_size.
    held: Backlog,
    /// n: the flows that hold a packet.
    active: u64,
    /// Whether thresholds have moved in a way that changes keys, and `index` is to be made anew.
    thresholds_moved: bool,
    index: Index,
    ties: Ties,
    /// Of the chance that decides between equals.
    seed: u64,
    /// The flow whose packet arrived last.
    arrived: usize,
    /// How often `index` was made anew.
    #[cfg(test)]
    rebuilds: u32,
}

/// How many times as long or as short the mean round-trip time may become before flows of unknown ones follow it. Chosen: well
/// within the range of round-trip times, which is thousands.
const DRIFT: f64 = 2.0;

/// q_i. All that a packet touches here of a flow that is not among the longest; none lies across two lines of
/// the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(16))]
struct Flow(Backlog);

/// How much a flow may hold, and how much is too much.
#[derive(Clone, Debug)]
struct Measure {
    limit: Limit,
    thresholds: Thresholds,
    choice: Choice,
    /// s_i of flows that have one, else 0: b_i = B s_i/Σ s.
    shares: Vec<f64>,
    /// The share of flows without one.
    default_share: f64,
    /// Σ s, unless thresholds have moved; for choices that depend on it.
    sum: f64,
    /// Whether all shares are equal; kept as `sum` is, but for all choices.
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
    /// In the unit of the limit.
    fn of(&self, held: Backlog) -> f64 {
        let q = match self.limit {
            Limit::Packets(_) => held.packets.get(),
            Limit::Bytes(_) => held.bytes.get(),
        };
        // Far below 2^63, and converted from a signed number at once.
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

    /// Sums up the shares of so many flows.
    fn sum_up(&mut self, flows: usize) {
        self.sum = (0..flows).map(|flow| self.share(flow)).sum();
        self.even = (0..self.shares.len()).all(|flow| self.share(flow) == self.default_share);
    }

    /// b_i.
    fn threshold(&self, flow: usize) -> f64 {
        self.capacity() / self.sum * self.share(flow)
    }

    /// Whether B/Σ s decides who is the victim: of q_i/b_i = q_i/s_i Σ s/B it is a common factor.
    const fn depends_on_sum(&self) -> bool {
        matches!(self.choice, Choice::Difference | Choice::Uniform)
    }

    /// By how much a flow that holds something is the longest; equal shares say nothing.
    fn excess(&self, flow: usize, held: Backlog) -> Option<f64> {
        let q = self.of(held);
        let excess = match self.choice {
            _ if self.even => q,
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
            measure: Measure { limit, thresholds, choice, shares, default_share, sum: 0.0, even: true },
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

    /// The same with this choice between equals, by a seed that `random` gives.
    pub fn with_ties(mut self, ties: Ties, mut random: Stream) -> Self {
        (self.ties, self.seed) = (ties, random.below(u64::MAX));
        self
    }

    /// Whether a packet that arrives fits into the empty buffer. One that does not is dropped, rather than emptying the buffer for nothing.
    #[inline]
    pub fn fits<P: Packet>(&self, packet: &P) -> bool {
        self.measure.limit.admits(packet, Backlog::EMPTY)
    }

    /// Counts in a packet that joins the buffer.
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

    /// Counts out a packet that has left `flow`.
    pub fn remove<P: Packet>(&mut self, flow: FlowId, packet: &P) {
        let flow = flow.slot();
        let Flow(held) = &mut self.flows[flow];
        let before = *held;
        held.remove(packet);
        self.active -= u64::from(held.is_empty());
        self.held.remove(packet);
        self.note(flow, before);
    }

    /// Whether the buffer, which holds `backlog`, holds too much.
    pub fn is_exceeded(&self, backlog: Backlog) -> bool {
        debug_assert_eq!(self.held, backlog, "the flows hold what the buffer holds");
        self.measure.limit.is_exceeded_by(self.held)
    }

    /// n: the flows that hold a packet.
    pub const fn active(&self) -> u64 {
        self.active
    }

    /// What `flow` holds.
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

    /// The flow that has to give up a packet, as chosen by `uniform`, a number in [0, 1), if chance decides.
    /// There is one whenever the buffer is exceeded: of numbers that add up to more than B = Σ b_i, one is
    /// above its b_i.
    // Apart: with it, each arrival saves all registers.
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
                // No key is above that of `one`.
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

    /// Whether there is use for weights.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        let is_used = self.measure.thresholds == Thresholds::Weights;
        if is_used {
            self.set_share(flow, weight.get());
        }
        is_used
    }

    /// The round-trip time of `flow` from now on, zero if it is unknown. Whether it is used.
    pub fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> bool {
        let is_used = self.measure.thresholds == Thresholds::Rtt;
        if is_used {
            self.set_share(flow, rtt.as_nanos() as f64);
        }
        is_used
    }

    /// What stands for unknown round-trip times from now on, for thresholds that follow them. It is taken over where it is off
    /// by more than [`DRIFT`]: that costs O(flows). Zero changes nothing.
    pub fn set_unknown_rtt(&mut self, rtt: Span) {
        let (old, new) = (self.measure.default_share, rtt.as_nanos() as f64);
        if new > 0.0 && (new > DRIFT * old || old > DRIFT * new) {
            self.measure.default_share = new;
            self.thresholds_moved = true;
        }
    }

    fn set_share(&mut self, flow: FlowId, share: f64) {
        let flow = self.find(flow);
        // Its key leaves with the old share and comes back with the new one.
        let held = core::mem::replace(&mut self.flows[flow], Flow(Backlog::EMPTY));
        self.note(flow, held.0);
        let measure = &mut self.measure;
        measure.shares.resize(measure.shares.len().max(flow + 1), 0.0);
        measure.shares[flow] = share;
        let differs = measure.share(flow) != measure.default_share;
        // A default of 1 divides nothing: the other keys are the same, even or not.
        let moved = measure.even && differs && measure.default_share != 1.0;
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
        // A further share makes the others smaller. Those that are alike say nothing.
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

    /// The memory that flows take.
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

    /// Brings the index up to date with a flow, which held `before`.
    #[inline]
    fn note(&mut self, flow: usize, before: Backlog) {
        // There is no index before the first packet has to go.
        if !self.thresholds_moved {
            self.note_change(flow, before);
        }
    }

    fn note_change(&mut self, flow: usize, before: Backlog) {
        let Index::Longest(longest) = &mut self.index else { return self.note_to_draw(flow) };
        let (Flow(held), measure) = (self.flows[flow], &self.measure);
        longest.change(flow, measure.excess(flow, before), measure.excess(flow, held));
    }

    // Apart: with it, the other index saves all registers for each packet.
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

/// The place `u`, in [0, 1), of a list; none if that is empty.
fn pick(flows: &[u32], u: f64) -> Option<usize> {
    let last = flows.len().checked_sub(1)?;
    Some(flows[((u * flows.len() as f64) as usize).min(last)] as usize)
}

/// Flows in the order of their lengths, the longest first. Lengths are packets, or cells of 64 bytes that a
/// queue in bytes has begun (chosen: the smallest Ethernet frame), so that the threshold in bytes is rounded
/// down to whole cells.
///
/// Those of equal length stand together, in no order, and the flows of at least each length are counted. A
/// flow that grows by one changes places with the first of its length, and then is the last of the next: one
/// exchange and one count, as in the bin sort of Batagelj, Zaversnik 2003. The flows above any threshold are
/// the first so many, wherever that moves.
#[derive(Clone, Debug, Default)]
struct Ranked {
    order: Vec<u32>,
    /// Where each flow stands in `order`, and its length.
    place: Vec<u32>,
    length: Vec<u32>,
    /// By length: the number of flows that are longer.
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

    /// Lets `flow` change places with the one at `place`.
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
    /// Where each flow stands in `members`.
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
