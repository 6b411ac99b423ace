//! Measured round-trip times; see [`round_trip`](super::super::round_trip).
//!
//! Only flows that are a single connection are measured: an aggregate of a rule has many round-trip times.

use apportion_core::packet::FlowId;
use apportion_core::units::{Span, Time};

use super::{Classifier, FIRST, Given, Key, Settings};
use crate::frame::{FlowTuple, Segment, Timestamps};

impl Given {
    /// The round-trip time for the queue: that of a rule takes precedence over the measured one.
    pub(super) fn rtt_for_queue(&self) -> Span {
        if self.rtt > Span::ZERO { self.rtt } else { self.measured_rtt }
    }
}

impl Classifier {
    /// Whether its queue divides its buffer by round-trip times.
    pub const fn uses_rtts(&self) -> bool {
        self.uses_rtts
    }

    /// Number of flows with a measured round-trip time, including silent ones, and the mean; zero if there is
    /// none.
    pub fn measured_rtts(&self) -> (usize, Span) {
        self.round_trips.known()
    }

    /// Notes a segment of the connection `tuple`, a packet of `flow`, that left at `now`.
    pub fn departed(
        &mut self,
        now: Time,
        flow: FlowId,
        tuple: &FlowTuple,
        segment: Segment,
        stamps: Option<Timestamps>,
    ) {
        // The number may have passed to another flow meanwhile.
        let is_own = self.table.key(flow).is_some_and(|key| *key == Key::Tuple(*tuple));
        let half = self.connection(flow).filter(|_| is_own);
        if let Some(half) = half.and_then(|at| self.round_trips.half(at, self.flows.len())) {
            half.departed(now, segment, stamps);
        }
    }

    /// Handles a segment of the connection `tuple` that arrived at `now` in the other direction. Returns
    /// whether it yielded a sample.
    pub fn answered(
        &mut self,
        now: Time,
        tuple: &FlowTuple,
        segment: Segment,
        stamps: Option<Timestamps>,
    ) -> bool {
        let at = self.table.find(&Key::Tuple(*tuple)).and_then(|flow| self.connection(flow));
        let half = at.and_then(|at| self.round_trips.half(at, self.flows.len()));
        half.is_some_and(|half| half.answered(now, segment, stamps))
    }

    /// The shortest half of the connection `tuple`, on the side towards which it leaves, if it is known.
    pub fn shortest_half(&mut self, now: Time, tuple: &FlowTuple) -> Option<Span> {
        let at = self.connection(self.table.find(&Key::Tuple(*tuple))?)?;
        self.round_trips.shortest(now, at)
    }

    /// Sets the sum of both halves of the connection `tuple`.
    pub fn confirm_rtt(&mut self, now: Time, tuple: &FlowTuple, halves: Span, settings: &mut Settings) {
        let at = self.table.find(&Key::Tuple(*tuple)).and_then(|flow| self.connection(flow));
        if let Some(at) = at.filter(|at| self.round_trips.confirm(now, *at, halves)) {
            self.give_measured(at, settings);
        }
    }

    /// Forgets the round-trip time of a flow if it is too old.
    pub fn expire_rtt(&mut self, now: Time, flow: FlowId, settings: &mut Settings) {
        if let Some(at) = self.connection(flow).filter(|at| self.round_trips.expire(now, *at)) {
            self.give_measured(at, settings);
        }
    }

    fn give_measured(&mut self, at: usize, settings: &mut Settings) {
        let id = FlowId(FIRST + at as u32);
        let given = self.slots[id.index()].given;
        self.give(id, Given { measured_rtt: self.round_trips.rtt(at), ..given }, settings);
    }

    /// The index of a flow in the table, if queues know it by its own number.
    fn connection(&self, flow: FlowId) -> Option<usize> {
        let at = flow.0.checked_sub(FIRST)? as usize;
        self.flows.get(at).is_some_and(|it| it.id == flow).then_some(at)
    }
}
