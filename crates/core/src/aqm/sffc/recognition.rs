//! Recognition of adaptive flows by their behaviour: section 6 of the paper.
//!
//! Three methods: [`answers`](crate::estimate::answers) watches the losses that a flow has anyway, which works
//! where the discipline gives flows their shares; [`responsiveness`](crate::estimate::responsiveness) drops
//! packets for a test; [`pattern`](crate::estimate::pattern) watches inter-arrival times, duration and
//! throughput. A flow's record outlives its place among the active flows, so that a pause does not
//! erase it; 120 bytes for each flow number up to the largest.

use alloc::vec::Vec;

use crate::estimate::answers::Answers;
use crate::estimate::pattern::Pattern;
use crate::estimate::responsiveness::{EPOCH, Responsiveness};
use crate::packet::FlowId;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Span, Time};

/// The silence after which a flow is forgotten. Chosen: longer than any timeout of TCP (RFC 6298: 60 s or
/// more).
const MEMORY: Span = Span::from_secs(60);

/// The method of recognition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Method {
    /// By losses that flows have anyway.
    Losses,
    /// By drops for a test.
    Tests,
    /// By inter-arrival times, duration and throughput.
    Pattern,
}

/// The behaviour of one flow.
#[derive(Clone, Debug)]
enum Conduct {
    Seen(Answers),
    Tested(Responsiveness),
    Watched(Pattern),
}

impl Conduct {
    fn is_adaptive(&self) -> bool {
        match self {
            Self::Seen(flow) => flow.is_adaptive(),
            Self::Tested(flow) => flow.is_adaptive(),
            Self::Watched(flow) => flow.is_adaptive(),
        }
    }

    /// Whether there is a verdict beyond the flow's declaration.
    fn is_known(&self) -> bool {
        match self {
            Self::Seen(flow) => flow.is_known(),
            Self::Tested(_) => true,
            Self::Watched(flow) => flow.is_known(),
        }
    }

    fn end_epoch(&mut self, fair: Bytes, random: &mut Stream) {
        match self {
            Self::Seen(flow) => flow.end_epoch(),
            Self::Tested(flow) => flow.end_epoch(fair, random),
            Self::Watched(flow) => flow.end_epoch(fair),
        }
    }
}

/// The record of one flow.
#[derive(Clone, Debug)]
struct Record {
    last: Time,
    conduct: Conduct,
    /// The time of the last change of the verdict.
    changed: Option<Time>,
}

/// The records of a link's flows.
#[derive(Clone, Debug)]
pub(super) struct Recognition {
    /// The records by slot of the flow.
    records: Vec<Option<Record>>,
    epoch_ends: Time,
    method: Method,
    random: Stream,
}

impl Recognition {
    pub(super) const fn new(method: Method, random: Stream) -> Self {
        Self { records: Vec::new(), epoch_ends: Time::ZERO, method, random }
    }

    /// Counts a packet of the flow `id`. Returns whether the flow is adaptive, at first by its declaration,
    /// and whether there is a verdict.
    pub(super) fn arrived(&mut self, id: FlowId, now: Time, size: Bytes, says_adaptive: bool) -> [bool; 2] {
        if id.slot() >= self.records.len() {
            self.records.resize(id.slot() + 1, None);
        }
        let method = self.method;
        let record = self.records[id.slot()].get_or_insert_with(|| Record {
            last: now,
            conduct: match method {
                Method::Losses => Conduct::Seen(Answers::new(says_adaptive)),
                Method::Tests => Conduct::Tested(Responsiveness::new(says_adaptive)),
                Method::Pattern => Conduct::Watched(Pattern::new(says_adaptive)),
            },
            changed: None,
        });
        record.last = now;
        match &mut record.conduct {
            Conduct::Seen(flow) => flow.arrived(),
            Conduct::Tested(flow) => flow.arrived(size),
            Conduct::Watched(flow) => flow.arrived(now, size),
        }
        [record.conduct.is_adaptive(), record.conduct.is_known()]
    }

    /// Whether the packet is to be dropped for a test.
    pub(super) fn tests(&mut self, id: FlowId) -> bool {
        let dose = match self.get_mut(id) {
            Some(Conduct::Tested(flow)) => flow.dose(),
            Some(Conduct::Seen(_) | Conduct::Watched(_)) | None => 0.0,
        };
        dose > 0.0 && self.random.chance(dose)
    }

    pub(super) fn lost(&mut self, id: FlowId) {
        match self.get_mut(id) {
            Some(Conduct::Tested(flow)) => flow.lost(),
            Some(Conduct::Seen(flow)) => flow.lost(),
            Some(Conduct::Watched(flow)) => flow.lost(),
            None => {}
        }
    }

    /// Notes that another router has reported losses of the flow.
    pub(super) fn reported(&mut self, id: FlowId) {
        if let Some(Conduct::Seen(flow)) = self.get_mut(id) {
            flow.reported();
        }
    }

    fn get_mut(&mut self, id: FlowId) -> Option<&mut Conduct> {
        Some(&mut self.records.get_mut(id.slot())?.as_mut()?.conduct)
    }

    /// Ends an interval, and perhaps an epoch, for which each flow's fair share comes from `fair`.
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
                let before = record.conduct.is_adaptive();
                record.conduct.end_epoch(fair, &mut self.random);
                if record.conduct.is_adaptive() != before {
                    record.changed = Some(now);
                }
            }
        }
    }

    /// Reports for each flow with a verdict whether it is adaptive, and the time, in s, at which the verdict
    /// last changed, if it ever did.
    pub(super) fn statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        for (slot, record) in self.records.iter().enumerate() {
            let Some(record) = record else { continue };
            let id = FlowId(slot as u32);
            show(id, "adaptive", f64::from(u8::from(record.conduct.is_adaptive())));
            if let Some(changed) = record.changed {
                show(id, "recognised_at_s", changed.as_secs_f64());
            }
        }
    }
}
