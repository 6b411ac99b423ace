//! Buffer dimensioning for flows that answer to loss: whose round-trip times thresholds follow.
//!
//! A threshold in proportion to the round-trip time lets a TCP over a long path open its window (Srinivasan, Vaidyanathan,
//! Baras, section 5.3). A flood over a long path gains as much, and only its own losses say that it has no window: its queue
//! is as long as its threshold, and TCP over short paths starves. So a flow counts with its own round-trip time while it
//! sends no more than TCP would with its losses ([`TcpFriendly`]), and else with the shortest that is known.

use alloc::vec::Vec;

use super::occupancy::Thresholds;
use crate::estimate::tcp_friendly::TcpFriendly;
use crate::mutant::Mutant;
use crate::packet::FlowId;
use crate::param::{Kind, Param};
use crate::units::{Span, Time};

/// Whose round-trip times thresholds follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RttOf {
    /// Those of flows that send no more than TCP would with their losses.
    Friendly,
    /// Those of all flows.
    All,
}

/// The parameter `rtt_of` of a policy.
pub(crate) const RTT_OF: Param = Param::new(
    "rtt_of",
    "–",
    Kind::Choice(&["friendly", "all"]),
    "friendly",
    "the paper: of all, which a flood over a long round trip exploits",
    "With `thresholds = \"rtt\"`: whose round-trip time counts, that of flows which send no more than TCP would with their \
     losses, or of all. Other flows count with the shortest that is known.",
)
.in_paper("all");

impl RttOf {
    /// From the value in the catalogue.
    pub(crate) fn of(word: &str) -> Self {
        if word == "all" { Self::All } else { Self::Friendly }
    }
}

/// The round-trip times of flows, and whether each may count.
#[derive(Clone, Debug)]
pub(crate) struct Dimensioning {
    /// By flow; zero, or beyond the end: unknown.
    rtts: Vec<Span>,
    /// The shortest known one.
    shortest: Span,
    /// What stands for one that is unknown.
    mean: Span,
    flows: Vec<TcpFriendly>,
    /// When a packet arrived last: all that is dropped is dropped then.
    now: Time,
}

impl Dimensioning {
    /// Nothing, where round-trip times do not decide or those of all flows count.
    pub fn new(thresholds: Thresholds, rtt_of: RttOf, rtts: &[Span]) -> Option<Self> {
        let known = || rtts.iter().filter(|rtt| **rtt > Span::ZERO);
        let shortest = *known().min()?;
        let sum: u128 = known().map(|rtt| u128::from(rtt.as_nanos())).sum();
        let mean = Span::from_nanos((sum / known().count() as u128) as u64);
        let is_used = thresholds == Thresholds::Rtt && rtt_of == RttOf::Friendly;
        is_used.then(|| Self { rtts: rtts.to_vec(), shortest, mean, flows: Vec::new(), now: Time::ZERO })
    }

    /// A packet of `flow` arrives. The round-trip time that the flow counts with from now on, if another one.
    pub fn arrived(&mut self, now: Time, flow: FlowId) -> Option<Span> {
        let slot = flow.slot();
        if slot >= self.flows.len() {
            self.flows.resize(slot + 1, TcpFriendly::new(now));
        }
        self.now = now;
        let rtt = self.known(slot);
        let flow = &mut self.flows[slot];
        let was_friendly = flow.is_friendly();
        flow.arrived(now, rtt.unwrap_or(self.mean));
        match (was_friendly, flow.is_friendly()) {
            (true, false) if !Mutant::PfdRttOfAll.is_on() => Some(self.shortest),
            // Zero: unknown, as it was.
            (false, true) => Some(rtt.unwrap_or(Span::ZERO)),
            _ => None,
        }
    }

    /// A packet of `flow` is dropped.
    pub fn dropped(&mut self, flow: FlowId) {
        let rtt = self.known(flow.slot()).unwrap_or(self.mean);
        if let Some(flow) = self.flows.get_mut(flow.slot()) {
            flow.dropped(self.now, rtt);
        }
    }

    /// The round-trip time of a flow, if it is known.
    fn known(&self, slot: usize) -> Option<Span> {
        self.rtts.get(slot).copied().filter(|rtt| *rtt > Span::ZERO)
    }

    /// The round-trip time of `flow` is `rtt` from now on, zero if it is unknown. The one that it counts with.
    pub fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> Span {
        let slot = flow.slot();
        self.rtts.resize(self.rtts.len().max(slot + 1), Span::ZERO);
        self.rtts[slot] = rtt;
        if rtt > Span::ZERO {
            self.shortest = self.shortest.min(rtt);
        }
        let is_friendly = self.flows.get(slot).is_none_or(TcpFriendly::is_friendly);
        if is_friendly { rtt } else { self.shortest }
    }

    /// Flows that send more than TCP would.
    pub fn unfriendly(&self) -> usize {
        self.flows.iter().filter(|flow| !flow.is_friendly()).count()
    }
}
