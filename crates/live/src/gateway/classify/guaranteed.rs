//! Guarantees of flows: earned, kept and given back.

use apportion_core::packet::FlowId;
use apportion_core::units::{Bytes, Rate, Span, Time};

use super::{Claim, Classifier, Given, Settings};

impl Classifier {
    /// Handles a packet of this size that arrived at `now`: a flow on trial may have earned its guarantee.
    pub fn arrived(&mut self, now: Time, id: FlowId, size: Bytes, settings: &mut Settings) {
        let Some(slot) = self.slots.get_mut(id.index()) else { return };
        if let Some(claim) = &mut slot.claim
            && claim.arrived(now, size)
            && self.guarantees.admit(now, id, claim)
        {
            let to = Given { guarantee: claim.rate(), ..slot.given };
            self.give(id, to, settings);
        }
    }

    /// Takes back the guarantee of a flow, if it has one.
    pub(super) fn take_back(&mut self, id: FlowId, settings: &mut Settings) {
        let Some(slot) = self.slots.get_mut(id.index()) else { return };
        if let Some(claim) = &mut slot.claim {
            self.guarantees.take_back(claim);
        }
        let to = Given { guarantee: Rate::ZERO, ..slot.given };
        self.give(id, to, settings);
    }

    /// The claim of the flow that got its guarantee as this ordinal, if it still holds it.
    pub(super) fn holder(&mut self, turn: u64, id: FlowId) -> Option<&mut Claim> {
        let claim = self.slots.get_mut(id.index())?.claim.as_deref_mut();
        claim.filter(|claim| claim.is_turn(turn))
    }

    /// Takes back guarantees that are not used. Call it every 100 ms.
    pub fn release(&mut self, now: Time, settings: &mut Settings) {
        let mut turns = self.guarantees.take_turns();
        turns.retain(|&(turn, id)| {
            let Some(claim) = self.holder(turn, id) else { return false };
            let is_kept = claim.is_kept(now);
            if !is_kept {
                self.guarantees.counts_mut().unused += 1;
                self.take_back(id, settings);
            }
            is_kept
        });
        self.guarantees.put_turns(turns);
    }

    /// Sets the rate against which guarantees are admitted, and the silence after which flows are forgotten.
    /// Guarantees that no longer fit are taken back, the latest first.
    pub fn set_limits(&mut self, rate: Rate, idle: Span, settings: &mut Settings) {
        self.guarantees.set_rate(rate);
        while let Some((turn, id)) = self.guarantees.pop_excess() {
            if self.holder(turn, id).is_some() {
                self.guarantees.counts_mut().withdrawn += 1;
                self.take_back(id, settings);
            }
        }
        self.table.set_idle(idle);
        if let Some(hosts) = &mut self.hosts {
            hosts.set_idle(idle);
        }
    }
}
