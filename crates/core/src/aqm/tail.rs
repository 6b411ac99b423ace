//! Tail drop: a packet that finds the buffer full is dropped.
//!
//! Cost: O(1) per packet, no state. Parameters: [`ENTRY`].

use super::{Admission, BufferPolicy};
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::Packet;
use crate::param::{Entry, LIMIT, Role, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason};
use crate::units::{Bytes, Packets, Rate, Time};

/// The largest packet of IPv4 (RFC 791 section 3.1).
const MAX_PACKET: Bytes = Bytes::new(65_535);

/// Tail drop in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tail",
    role: Role::Policy,
    summary: "Tail drop: a packet that finds the buffer full is dropped.",
    reference: "–",
    cost: "O(1) per packet, no state",
    params: TailDropParams::PARAMS,
    traits: Traits {
        limits: "Behind a fair scheduler a flood fills the buffer: use `lqd`, `pfd`, `codel` or `pie` there.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`TailDrop`].
    pub struct TailDropParams {
        limit: Option<BufferSize> = LIMIT,
    }
}

/// Tail drop at a limit.
#[derive(Clone, Debug)]
pub struct TailDrop {
    limit: LinkLimit,
}

impl TailDrop {
    /// Drops arrivals beyond the limit.
    #[must_use]
    pub fn new(params: &TailDropParams, link_rate: Rate) -> Self {
        Self { limit: LinkLimit::new(params.limit, link_rate) }
    }
}

impl<P: Packet> BufferPolicy<P> for TailDrop {
    #[inline]
    fn admit(&mut self, _now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        if self.limit.get().admits(packet, backlog) {
            Admission::Accept
        } else {
            Admission::Drop(DropReason::Overflow)
        }
    }

    fn is_transparent(&self) -> bool {
        match self.limit.get() {
            Limit::Packets(limit) => limit > Packets::ZERO,
            Limit::Bytes(limit) => limit >= MAX_PACKET,
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use crate::units::{Bytes, Packets};

    #[test]
    fn what_fills_the_buffer_exactly_is_admitted_and_the_next_is_not() {
        let held = Backlog { packets: Packets::new(2), bytes: Bytes::new(200) };
        let verdict = |limit: Limit, size| {
            let params = TailDropParams { limit: Some(limit.into()) };
            TailDrop::new(&params, Rate::from_mbit(10)).admit(Time::ZERO, &mut packet(1, 0, size), held)
        };
        let overflow = Admission::Drop(DropReason::Overflow);
        assert_eq!(verdict(Limit::Packets(Packets::new(3)), 100), Admission::Accept);
        assert_eq!(verdict(Limit::Packets(Packets::new(2)), 100), overflow);
        assert_eq!(verdict(Limit::Bytes(Bytes::new(300)), 100), Admission::Accept);
        assert_eq!(verdict(Limit::Bytes(Bytes::new(300)), 101), overflow);
    }
}
