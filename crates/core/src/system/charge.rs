//! The cost of a packet in virtual bytes, for disciplines that stamp packets when they arrive.

use alloc::vec::Vec;

use crate::packet::FlowId;
use crate::units::{Bytes, Weight};

/// A byte of a flow of the smallest weight, in the fixed point of virtual bytes: as in `schedule/tags.rs`, 2^-24 bytes.
pub(super) const BYTE: u64 = 1 << 24;

/// The virtual time at which numbers are reduced. So far below 2^63 that no stamp ahead of it overflows.
pub(super) const HORIZON: u64 = 1 << 62;

/// The cost of a byte, by flow. Flows without a configured weight have no state.
#[derive(Clone, Debug)]
pub(super) struct Charges {
    smallest: Weight,
    /// The cost in 2^-40 bytes, for flows up to the last one with a configured weight.
    per_byte: Vec<u64>,
    /// The cost for the other flows, whose weight is 1.
    of_others: u64,
}

impl Charges {
    /// Charges in which virtual bytes are those of a flow of weight `smallest`.
    pub fn new(smallest: Weight) -> Self {
        Self { smallest, per_byte: Vec::new(), of_others: per_byte(smallest, Weight::ONE) }
    }

    /// The charge for a packet of this size; at most 2^48.
    #[inline]
    pub fn of(&self, flow: FlowId, size: Bytes) -> u64 {
        let per_byte = self.per_byte.get(flow.slot()).copied().unwrap_or(self.of_others);
        (size.get().saturating_mul(per_byte) >> 16).max(1)
    }

    /// Sets the weight of the flow from its next packet on.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        if flow.slot() >= self.per_byte.len() {
            self.per_byte.resize(flow.slot() + 1, self.of_others);
        }
        self.per_byte[flow.slot()] = per_byte(self.smallest, weight);
    }
}

/// The clamps keep a charge below 2^48.
fn per_byte(smallest: Weight, weight: Weight) -> u64 {
    let byte = (BYTE << 16) as f64;
    libm::round(byte * (smallest.get() / weight.get())).clamp(16_384.0, byte * 65_536.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_costs_the_inverse_of_the_weight() {
        let weight = |value| Weight::new(value).unwrap();
        let mut charges = Charges::new(weight(0.5));
        charges.set_weight(FlowId(1), weight(0.5));
        charges.set_weight(FlowId(3), weight(50.0));
        let of = |flow| charges.of(FlowId(flow), Bytes::new(1_000));
        // Flows 0, 2 and 9 have weight 1, twice the smallest.
        assert_eq!([0, 1, 2, 3, 9].map(of), [500 * BYTE, 1_000 * BYTE, 500 * BYTE, 10 * BYTE, 500 * BYTE]);
    }
}
