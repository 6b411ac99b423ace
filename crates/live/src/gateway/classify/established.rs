//! Established flows, and flows with hosts of their own; see [`establishment`](super::super::establishment).

use apportion_core::packet::FlowId;
use apportion_core::units::{Span, Time};

use super::{Classifier, FIRST, Flow, Key};
use crate::frame::FlowTuple;

impl Classifier {
    /// Handles the [first packet](super::Found::is_first) of the flow `tuple` that qualifies. `opposite` are
    /// the flows of the other direction: if a packet of the answer came before, both flows are established,
    /// and the networks that they belong to.
    pub fn note_qualified(&mut self, tuple: &FlowTuple, opposite: &mut Self) {
        let back = tuple.reversed();
        if opposite.known(&back).is_some_and(|(_, answer)| answer.establishment.has_qualified()) {
            self.establish(tuple);
            opposite.establish(&back);
        }
    }

    fn establish(&mut self, tuple: &FlowTuple) {
        let Some((own, flow)) = self.known(tuple) else { return };
        let id = flow.id;
        for at in [own, id].map(|id| id.0.checked_sub(FIRST)).into_iter().flatten() {
            self.flows[at as usize].establishment.answered();
            self.table.keep(FlowId(FIRST + at));
        }
        self.has_answers = true;
    }

    /// Whether the flow `tuple` is established.
    pub fn is_established(&mut self, now: Time, tuple: &FlowTuple) -> bool {
        let Some((own, flow)) = self.known(tuple) else { return false };
        let establishment = flow.establishment;
        let silence = self.table.last_seen(own).map_or(Span::ZERO, |last_seen| now.since(last_seen));
        establishment.is_established(now, silence)
    }

    /// Whether the flow or network with this number has hosts of its own, because it was answered. A sender
    /// of forged packets can wait for any time, so age counts only where no flow is answered, which means
    /// that the gateway sees one direction only. The operator named the aggregates of rules, so these always
    /// have hosts.
    pub(super) fn has_hosts(&self, now: Time, id: FlowId) -> bool {
        let Some(at) = id.0.checked_sub(FIRST) else { return true };
        let establishment = self.flows[at as usize].establishment;
        establishment.is_answered() || !self.has_answers && establishment.is_established(now, Span::ZERO)
    }

    /// The flow `tuple` and its number, if it has one.
    fn known(&mut self, tuple: &FlowTuple) -> Option<(FlowId, &mut Flow)> {
        let own = self.table.find(&Key::Tuple(*tuple))?;
        Some((own, self.flows.get_mut((own.0 - FIRST) as usize)?))
    }
}
