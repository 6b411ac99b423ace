//! What is known of each flow that was active lately: SF-FC's estimator.

use alloc::vec::Vec;

use crate::packet::FlowId;
use crate::units::{Span, Time};

/// Intervals of which departures are remembered.
pub(super) const HISTORY: usize = 8;

/// One flow. Amounts are bytes of the current interval. What packets touch comes first, in one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Flow {
    pub id: FlowId,
    /// Whether it lowers its rate when packets are lost.
    pub adaptive: bool,
    /// Whether that is known, and not only said.
    pub known: bool,
    /// τ, when its last packet arrived.
    tau: Time,
    /// λ, what arrived.
    pub lambda: u64,
    /// Of that, what was discarded on arrival.
    pub discarded: u64,
    /// μ, what left.
    pub mu: u64,
    /// What was dropped in the queue.
    pub dropped: u64,
    /// What may pass in an interval by a cut of this router.
    pub held: f64,
    /// What of that may pass now; below zero after a packet that was larger.
    pub credit: f64,
    /// When that was computed.
    pub filled: Time,
    /// The discard rate.
    pub v: f64,
    /// What may pass of it, which is reported: `held` and what is fair.
    pub allowed: f64,
    /// The basic discard rate.
    pub bdr: f64,
    /// What reports leave of it in an interval.
    pub cap: f64,
    /// What arrives in an interval, usually.
    pub usual: f64,
    /// Intervals without a report.
    pub silent: u32,
    /// What left in the intervals before.
    pub left: History,
    /// What arrived at the next router in an interval and what left it, from its latest report in this interval.
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
    /// Of how much it is known whether it left, and what left. Where it is `divided` behind this, a packet that was accepted may
    /// be dropped in a later interval.
    pub fn passed(&self, divided: bool) -> (u64, u64) {
        if divided {
            (self.mu + self.dropped + self.discarded, self.mu)
        } else {
            (self.lambda, self.mu.min(self.lambda))
        }
    }

    /// It is taken for one that does not answer to losses, and starts anew if it was taken for one that does.
    pub fn become_non_adaptive(&mut self) {
        if self.adaptive {
            *self = Self { tau: self.tau, known: self.known, ..Self::new(self.id, false) };
        }
    }
}

/// Amounts of the last intervals in which something arrived.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct History {
    count: u32,
    /// The last one last; 4 GiB in an interval are as good as more.
    amounts: [u32; HISTORY],
}

impl History {
    pub(super) fn push(&mut self, amount: u64) {
        self.amounts.rotate_left(1);
        self.amounts[HISTORY - 1] = u32::try_from(amount).unwrap_or(u32::MAX);
        self.count = (self.count + 1).min(HISTORY as u32);
    }

    /// Over the last `intervals`, or as many as there were; 0 if none.
    pub(super) fn mean(&self, intervals: usize) -> f64 {
        let intervals = intervals.min(self.count as usize);
        let sum: u64 = self.amounts.iter().rev().take(intervals).map(|&amount| u64::from(amount)).sum();
        sum as f64 / intervals.max(1) as f64
    }
}

/// The flows that were active lately, in the order of their first packets but for those that took the places
/// of others.
#[derive(Clone, Debug, Default)]
pub(super) struct Flows {
    /// By slot of the flow: its place in `active` plus one, or 0.
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

    /// A packet of the flow `id` has arrived. A flow that was taken for one of the other kind starts anew.
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
