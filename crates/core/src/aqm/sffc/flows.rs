//! The state of each recently active flow: SF-FC's estimator.

use alloc::vec::Vec;

use crate::packet::FlowId;
use crate::units::{Span, Time};

/// The number of intervals whose departures are remembered.
pub(super) const HISTORY: usize = 8;

/// The state of one flow. Amounts are bytes of the current interval. Fields that packets use come first, in
/// one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Flow {
    pub id: FlowId,
    /// Whether the flow lowers its rate on losses.
    pub adaptive: bool,
    /// Whether `adaptive` is a verdict rather than the flow's declaration.
    pub known: bool,
    /// τ, the arrival time of its last packet.
    tau: Time,
    /// λ, the bytes that arrived.
    pub lambda: u64,
    /// The bytes of these that were discarded on arrival.
    pub discarded: u64,
    /// μ, the bytes that left.
    pub mu: u64,
    /// The bytes dropped in the queue.
    pub dropped: u64,
    /// The bytes that this router's cut lets pass in an interval.
    pub held: f64,
    /// The tokens left for them; below zero after a packet larger than the rest.
    pub credit: f64,
    /// The time at which `credit` was computed.
    pub filled: Time,
    /// v, the discard rate.
    pub v: f64,
    /// The bytes that may pass in an interval, as reported upstream: the smaller of `held` and the fair
    /// share.
    pub allowed: f64,
    /// BDR, the basic discard rate.
    pub bdr: f64,
    /// The bytes that reports leave to the flow in an interval.
    pub cap: f64,
    /// The usual arrivals in an interval.
    pub usual: f64,
    /// The number of intervals without a report.
    pub silent: u32,
    /// The departures in the intervals before.
    pub left: History,
    /// The arrivals and departures of an interval at the next router, from its latest report in this
    /// interval.
    pub report: Option<[f64; 2]>,
}

/// Three cache lines.
const _: () = assert!(size_of::<Flow>() == 192);

impl Flow {
    fn new(id: FlowId, adaptive: bool) -> Self {
        Self {
            id,
            adaptive,
            known: true,
            tau: Time::ZERO,
            lambda: 0,
            discarded: 0,
            mu: 0,
            dropped: 0,
            left: History::default(),
            bdr: 0.0,
            v: 0.0,
            cap: f64::INFINITY,
            allowed: f64::INFINITY,
            held: f64::INFINITY,
            credit: 0.0,
            filled: Time::ZERO,
            usual: 0.0,
            report: None,
            silent: 0,
        }
    }
}

impl Flow {
    /// The bytes whose fate is known, and those of them that left. If the link is `divided` behind the
    /// discarder, an accepted packet may be dropped in a later interval.
    pub fn passed(&self, divided: bool) -> (u64, u64) {
        if divided {
            (self.mu + self.dropped + self.discarded, self.mu)
        } else {
            (self.lambda, self.mu.min(self.lambda))
        }
    }

    /// Marks the flow as unresponsive. Its state starts anew if it counted as adaptive.
    pub fn become_non_adaptive(&mut self) {
        if self.adaptive {
            *self = Self { tau: self.tau, known: self.known, ..Self::new(self.id, false) };
        }
    }
}

/// Amounts of the last intervals with arrivals.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    count: u32,
    /// The latest amount last; an amount saturates at 4 GiB.
    amounts: [u32; HISTORY],
}

impl History {
    pub(super) fn push(&mut self, amount: u64) {
        self.amounts.rotate_left(1);
        self.amounts[HISTORY - 1] = u32::try_from(amount).unwrap_or(u32::MAX);
        self.count = (self.count + 1).min(HISTORY as u32);
    }

    /// The mean over the last `intervals`, or over as many as there are; 0 if there is none.
    pub(super) fn mean(&self, intervals: usize) -> f64 {
        let intervals = intervals.min(self.count as usize);
        let sum: u64 = self.amounts.iter().rev().take(intervals).map(|&amount| u64::from(amount)).sum();
        sum as f64 / intervals.max(1) as f64
    }
}

/// The recently active flows, in the order of their first packets, except that a flow may have taken the
/// place of another.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    /// The place of a flow in `active` plus one, or 0, by slot.
    places: Vec<u32>,
    active: Vec<Flow>,
}

impl Flows {
    pub(super) const fn is_empty(&self) -> bool {
        self.active.is_empty()
    }
    pub(super) const fn len(&self) -> usize {
        self.active.len()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.active.iter()
    }
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.active.iter_mut()
    }

    fn place(&self, id: FlowId) -> Option<usize> {
        (*self.places.get(id.slot())? as usize).checked_sub(1)
    }
    pub(super) fn get(&self, id: FlowId) -> Option<&Flow> {
        self.active.get(self.place(id)?)
    }
    pub(super) fn get_mut(&mut self, id: FlowId) -> Option<&mut Flow> {
        let place = self.place(id)?;
        self.active.get_mut(place)
    }

    /// Notes a packet of the flow `id`. A flow that counted as the other kind starts anew.
    pub(super) fn seen(&mut self, id: FlowId, now: Time, adaptive: bool) -> &mut Flow {
        let place = match self.place(id) {
            Some(place) => place,
            None => self.add(id, adaptive),
        };
        let flow = &mut self.active[place];
        if flow.adaptive != adaptive {
            *flow = Flow::new(flow.id, adaptive);
        }
        flow.tau = now;
        flow
    }

    fn add(&mut self, id: FlowId, adaptive: bool) -> usize {
        let slot = id.slot();
        if slot >= self.places.len() {
            self.places.resize(slot + 1, 0);
        }
        self.active.push(Flow::new(FlowId(slot as u32), adaptive));
        self.places[slot] = self.active.len() as u32;
        self.active.len() - 1
    }

    /// Forgets the flows that have been silent for longer than `most`.
    pub(super) fn forget_silent(&mut self, now: Time, most: Span) {
        let mut place = 0;
        while place < self.active.len() {
            if now.since(self.active[place].tau) <= most {
                place += 1;
                continue;
            }
            let gone = self.active.swap_remove(place);
            self.places[gone.id.slot()] = 0;
            if let Some(moved) = self.active.get(place) {
                self.places[moved.id.slot()] = place as u32 + 1;
            }
        }
    }
}
