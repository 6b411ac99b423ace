//! Adaptive flows are recognised by what they do: section 6 of the paper.
//!
//! The method is [`estimate::responsiveness`](crate::estimate::responsiveness). A flow's record outlives its
//! place among the active ones, so that it cannot be lost by a pause; 120
//! bytes for each flow number up to the largest.

use alloc::vec::Vec;

use crate::estimate::responsiveness::{EPOCH, Responsiveness};
use crate::packet::FlowId;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Span, Time};

/// Silence after which a flow is forgotten. Chosen: longer than any timeout of TCP (RFC 6298: 60 s or more).
const MEMORY: Span = Span::from_secs(60);

/// What is known of one flow.
#[derive(Clone, Debug)]
struct Record {
    last: Time,
    flow: Responsiveness,
    /// When it was last found to be of the other kind.
    changed: Option<Time>,
}

/// The flows of a link.
#[derive(Clone, Debug)]
pub(super) struct Recognition {
    /// By slot of the flow.
    records: Vec<Option<Record>>,
    epoch_ends: Time,
    random: Stream,
}

impl Recognition {
    pub(super) const fn new(random: Stream) -> Self {
        Self { records: Vec::new(), epoch_ends: Time::ZERO, random }
    }

    /// A packet of the flow `id` has arrived. Whether the flow is adaptive: at first, what it says.
    pub(super) fn arrived(&mut self, id: FlowId, now: Time, size: Bytes, says_adaptive: bool) -> bool {
        if id.slot() >= self.records.len() {
            self.records.resize(id.slot() + 1, None);
        }
        let record = self.records[id.slot()].get_or_insert_with(|| Record {
            last: now,
            flow: Responsiveness::new(says_adaptive),
            changed: None,
        });
        record.last = now;
        record.flow.arrived(size);
        record.flow.is_adaptive()
    }

    /// Whether the packet is to be dropped for a test.
    pub(super) fn tests(&mut self, id: FlowId) -> bool {
        let dose = self.get_mut(id).map_or(0.0, |flow| flow.dose());
        dose > 0.0 && self.random.chance(dose)
    }

    pub(super) fn lost(&mut self, id: FlowId) {
        if let Some(flow) = self.get_mut(id) {
            flow.lost();
        }
    }

    fn get_mut(&mut self, id: FlowId) -> Option<&mut Responsiveness> {
        Some(&mut self.records.get_mut(id.slot())?.as_mut()?.flow)
    }

    /// An interval has ended, and perhaps an epoch, of which each flow's fair share is one of `fair`.
    pub(super) fn advance(&mut self, now: Time, fair: Rate) {
        if now < self.epoch_ends {
            return;
        }
        self.epoch_ends = now + EPOCH;
        let fair = Bytes::new((fair.as_bit() as f64 / 8.0 * EPOCH.as_secs_f64()) as u64);
        for slot in &mut self.records {
            if slot.as_ref().is_some_and(|record| now.since(record.last) > MEMORY) {
                *slot = None;
            }
            if let Some(record) = slot {
                let before = record.flow.is_adaptive();
                record.flow.end_epoch(fair, &mut self.random);
                if record.flow.is_adaptive() != before {
                    record.changed = Some(now);
                }
            }
        }
    }

    /// Shows of each flow that is known whether it is adaptive, and when, in s, that was last found to have
    /// changed, if ever.
    pub(super) fn statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        for (slot, record) in self.records.iter().enumerate() {
            let Some(record) = record else { continue };
            let id = FlowId(slot as u32);
            show(id, "adaptive", f64::from(u8::from(record.flow.is_adaptive())));
            if let Some(changed) = record.changed {
                show(id, "recognised_at_s", changed.as_secs_f64());
            }
        }
    }
}
