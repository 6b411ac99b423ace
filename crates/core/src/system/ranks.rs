//! Ranks of packets for schedulers that take any ranks: the start tags of start-time fair queueing, given at
//! arrival.
//!
//! Goyal, Vin, Cheng 1997, eq. 4 and 5, in the form of Sivaraman et al., "Programmable packet scheduling at
//! line rate", SIGCOMM 2016, figure 1: S = max(v, F of the flow's previous packet), F = S + l/r, and v is the
//! S of the packet that left last. Readings: a dropped packet is not charged, v never falls, and an idle link
//! does not change it.

use alloc::vec::Vec;

use super::charge::{Charges, HORIZON};
use crate::packet::FlowId;
use crate::units::{Bytes, Weight};

/// The state of start-time fair queueing per flow; 8 bytes for each, and as many for weights.
#[derive(Clone, Debug)]
pub(super) struct Ranks {
    pub charges: Charges,
    /// F of the flow's last admitted packet.
    finish: Vec<u64>,
    pub v: u64,
}

impl Ranks {
    pub fn new(smallest: Weight) -> Self {
        Self { charges: Charges::new(smallest), finish: Vec::new(), v: 0 }
    }

    /// S of an arriving packet of `flow`.
    #[inline]
    pub fn of(&self, flow: FlowId) -> u64 {
        self.finish.get(flow.slot()).map_or(self.v, |&finish| finish.max(self.v))
    }

    /// Counts a packet of `rank` as admitted.
    #[inline]
    pub fn admitted(&mut self, flow: FlowId, size: Bytes, rank: u64) {
        if flow.slot() >= self.finish.len() {
            self.finish.resize(flow.slot() + 1, 0);
        }
        self.finish[flow.slot()] = rank + self.charges.of(flow, size);
    }

    /// Notes the departure of a packet of `rank`. Returns the reduction if all numbers have to be reduced.
    #[inline]
    pub fn served(&mut self, rank: u64) -> Option<u64> {
        self.v = self.v.max(rank);
        (self.v >= HORIZON).then(|| self.rebase())
    }

    /// Half of the range, so that ranks behind v keep their order.
    #[cold]
    fn rebase(&mut self) -> u64 {
        let by = self.v / 2;
        self.finish.iter_mut().for_each(|finish| *finish = finish.saturating_sub(by));
        self.v -= by;
        by
    }
}
