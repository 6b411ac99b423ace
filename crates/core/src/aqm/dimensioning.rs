//! Buffer dimensioning: the choice of flows whose round-trip times determine thresholds.
//!
//! A threshold in proportion to the round-trip time lets a TCP over a long path open its window (Srinivasan,
//! Vaidyanathan, Baras, section 5.3). A flood over a long path gains as much, and only its own losses show
//! that it has no window: its queue is as long as its threshold, and TCP over short paths starves. Therefore
//! a flow counts with its own round-trip time while it sends no more than TCP would with its losses
//! ([`TcpFriendly`]), and otherwise with the shortest that is known at present.
//!
//! A backend that measures round-trip times learns them while flows run, and forgets old ones. An unknown
//! round-trip time counts as the mean of those that are known at present.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use super::occupancy::Thresholds;
use crate::choice;
use crate::estimate::tcp_friendly::TcpFriendly;
use crate::packet::FlowId;
use crate::param::{EntryArgs, Param, ParamError};
use crate::units::{Span, Time};

choice! {
    /// The flows whose own round-trip times determine their thresholds.
    pub enum RttOf {
        /// Flows that send no more than TCP would with their losses.
        Friendly = "friendly",
        /// All flows.
        All = "all",
    }
}

/// The parameter `rtt_of` of a policy.
pub(crate) const RTT_OF: Param = Param::of("friendly", "the paper: of all, which a flood over a long round trip exploits")
    .in_paper("all")
    .doc(
        "With `thresholds = \"rtt\"`: whose round-trip time counts, that of flows which send no more than TCP would with their \
         losses, or of all. Other flows count with the shortest that is known.",
    );

/// Refuses [`RTT_OF`] if thresholds do not depend on round-trip times.
pub(crate) fn refuse_idle_rtt_of(thresholds: Thresholds, args: &EntryArgs<'_>) -> Result<(), ParamError> {
    let others = "it has no effect: only thresholds = \"rtt\" follows round-trip times";
    args.refuse_idle(&[("rtt_of", thresholds != Thresholds::Rtt, others)])
}

/// The round-trip times of flows, and the flows that may not use their own.
#[derive(Clone, Debug)]
pub(crate) struct Dimensioning {
    of: RttOf,
    /// The round-trip time by flow; zero, or beyond the end: unknown.
    rtts: Vec<Span>,
    /// The number of flows with each known round-trip time.
    known: BTreeMap<Span, u64>,
    /// Sum, in nanoseconds, and number of the known round-trip times.
    sum: (u128, u64),
    flows: Vec<TcpFriendly>,
    /// Slots of flows that send more than TCP would: they count with the shortest round-trip time.
    unfriendly: BTreeSet<usize>,
    /// The time of the last arrival, which is also the time of all drops.
    now: Time,
}

impl Dimensioning {
    /// None if thresholds do not depend on round-trip times.
    pub fn new(thresholds: Thresholds, of: RttOf, rtts: &[Span]) -> Option<Self> {
        (thresholds == Thresholds::Rtt).then(|| {
            let mut new = Self {
                of,
                rtts: Vec::new(),
                known: BTreeMap::new(),
                sum: (0, 0),
                flows: Vec::new(),
                unfriendly: BTreeSet::new(),
                now: Time::ZERO,
            };
            rtts.iter().enumerate().take(FlowId::SLOTS).for_each(|(slot, rtt)| new.note(slot, *rtt));
            new
        })
    }

    /// Counts a packet of `flow`. Returns the round-trip time with which the flow counts from here on, if it
    /// changes.
    pub fn arrived(&mut self, now: Time, flow: FlowId) -> Option<Span> {
        if self.of == RttOf::All {
            return None;
        }
        let slot = flow.slot();
        if slot >= self.flows.len() {
            self.flows.resize(slot + 1, TcpFriendly::new(now));
        }
        self.now = now;
        let rtt = self.known(slot);
        let assumed = rtt.unwrap_or_else(|| self.mean());
        let flow = &mut self.flows[slot];
        let was_friendly = flow.is_friendly();
        flow.arrived(now, assumed);
        match (was_friendly, flow.is_friendly()) {
            (true, false) => {
                self.unfriendly.insert(slot);
                Some(self.shortest())
            }
            (false, true) => {
                self.unfriendly.remove(&slot);
                // Zero: unknown, as before.
                Some(rtt.unwrap_or(Span::ZERO))
            }
            _ => None,
        }
    }

    /// Counts a drop of a packet of `flow`.
    pub fn dropped(&mut self, flow: FlowId) {
        let rtt = self.known(flow.slot()).unwrap_or_else(|| self.mean());
        if let Some(flow) = self.flows.get_mut(flow.slot()) {
            flow.dropped(self.now, rtt);
        }
    }

    /// The round-trip time of a flow, if it is known.
    fn known(&self, slot: usize) -> Option<Span> {
        self.rtts.get(slot).copied().filter(|rtt| *rtt > Span::ZERO)
    }

    /// The value for unknown round-trip times: the mean of the known ones, zero without any.
    pub fn mean(&self) -> Span {
        let (sum, count) = self.sum;
        Span::from_nanos((sum / u128::from(count.max(1))) as u64)
    }

    /// The shortest known round-trip time; zero without any.
    fn shortest(&self) -> Span {
        self.known.first_key_value().map_or(Span::ZERO, |(rtt, _)| *rtt)
    }

    /// Sets the round-trip time of `flow` to `rtt`, zero for unknown. Calls `count` for each flow that counts
    /// with another value from here on: this flow, or all unfriendly ones if the shortest changes.
    pub fn set_rtt(&mut self, flow: FlowId, rtt: Span, mut count: impl FnMut(FlowId, Span)) {
        let before = self.shortest();
        self.note(flow.slot(), rtt);
        if !self.unfriendly.contains(&flow.slot()) {
            count(flow, rtt);
        }
        let shortest = self.shortest();
        if shortest != before {
            self.unfriendly.iter().for_each(|&slot| count(FlowId(slot as u32), shortest));
        }
    }

    /// Replaces the round-trip time of the flow in this slot.
    fn note(&mut self, slot: usize, rtt: Span) {
        if let Some(before) = self.known(slot) {
            self.sum = (self.sum.0 - u128::from(before.as_nanos()), self.sum.1 - 1);
            if let Some(flows) = self.known.get_mut(&before) {
                *flows -= 1;
                if *flows == 0 {
                    self.known.remove(&before);
                }
            }
        }
        self.rtts.resize(self.rtts.len().max(slot + 1), Span::ZERO);
        self.rtts[slot] = rtt;
        if rtt > Span::ZERO {
            self.sum = (self.sum.0 + u128::from(rtt.as_nanos()), self.sum.1 + 1);
            *self.known.entry(rtt).or_default() += 1;
        }
    }

    /// The number of flows that send more than TCP would; none if all flows count alike.
    pub fn unfriendly(&self) -> Option<usize> {
        (self.of == RttOf::Friendly).then_some(self.unfriendly.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_counts_as_the_mean_of_what_is_known_now() {
        let ms = Span::from_millis;
        let mut of = Dimensioning::new(Thresholds::Rtt, RttOf::Friendly, &[]).unwrap();
        let mut after = |flow, rtt| {
            let mut counted = Vec::new();
            of.set_rtt(FlowId(flow), ms(rtt), |flow, rtt| counted.push((flow, rtt)));
            assert_eq!(counted, [(FlowId(flow), ms(rtt))]);
            [of.shortest(), of.mean()]
        };
        assert_eq!(after(3, 0), [ms(0), ms(0)]);
        assert_eq!(after(3, 10), [ms(10), ms(10)]);
        assert_eq!(after(0, 10), [ms(10), ms(10)]);
        assert_eq!(after(1, 70), [ms(10), ms(30)]);
        // The last flow with 10 ms gets another value, and then none.
        assert_eq!(after(3, 40), [ms(10), ms(40)]);
        assert_eq!(after(0, 100), [ms(40), ms(70)]);
        assert_eq!(after(3, 0), [ms(70), ms(85)]);
        assert!(Dimensioning::new(Thresholds::Equal, RttOf::Friendly, &[ms(1)]).is_none());
    }

    #[test]
    fn a_flood_counts_with_the_shortest_that_is_known_now() {
        let ms = Span::from_millis;
        let mut of = Dimensioning::new(Thresholds::Rtt, RttOf::Friendly, &[ms(100)]).unwrap();
        // Ten thousand packets a second, every second one lost: TCP over 100 ms would send some tens.
        let mut convicted = None;
        for i in 0..50_000 {
            convicted = convicted.or(of.arrived(Time::from_nanos(100_000 * i), FlowId(0)));
            if i % 2 == 0 {
                of.dropped(FlowId(0));
            }
        }
        assert_eq!((convicted, of.unfriendly()), (Some(ms(100)), Some(1)));
        let mut set = |flow, rtt| {
            let mut counted = Vec::new();
            of.set_rtt(FlowId(flow), ms(rtt), |flow, rtt| counted.push((flow.0, rtt)));
            counted
        };
        assert_eq!(set(1, 5), [(1, ms(5)), (0, ms(5))]);
        assert_eq!(set(2, 20), [(2, ms(20))]);
        assert_eq!(set(1, 0), [(1, ms(0)), (0, ms(20))]);
        // Its own round-trip time has no effect, unless it is the shortest.
        assert_eq!(set(0, 200), []);
        assert_eq!(set(0, 3), [(0, ms(3))]);
    }
}
