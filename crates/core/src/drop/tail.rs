//! Tail drop: a packet that finds the buffer full is dropped.
//!
//! Cost: O(1) per packet, no state. Parameters: [`ENTRY`].

use super::{BufferPolicy, Limit, Verdict};
use crate::catalog::{Args, Entry, Kind, Param, ParamError, Role};
use crate::packet::Packet;
use crate::queue::{Backlog, DropReason};
use crate::units::{Bytes, Packets, Time};

/// What IPv4 allows (RFC 791 section 3.1).
const LARGEST_PACKET: Bytes = Bytes::new(65_535);

/// The size of the buffer: the one parameter that every policy has.
pub const LIMIT: Param = Param {
    name: "limit",
    symbol: "B",
    kind: Kind::Limit,
    default: Some("50p"),
    source: "ns-2's long-standing default",
    doc: "Size of the buffer, without the packet in transmission.",
};

/// Tail drop in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tail",
    role: Role::Policy,
    summary: "Tail drop: a packet that finds the buffer full is dropped.",
    reference: "–",
    cost: "O(1) per packet, no state",
    params: &[LIMIT],
};

/// Parameters of [`TailDrop`].
#[derive(Clone, Debug, PartialEq)]
pub struct TailDropParams {
    /// Size of the buffer.
    pub limit: Limit,
}

impl TailDropParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// None today.
    pub fn from_args(args: &Args) -> Result<Self, ParamError> {
        Ok(Self { limit: args.of(&ENTRY).limit("limit") })
    }
}

/// Tail drop at a limit.
#[derive(Clone, Debug)]
pub struct TailDrop {
    pub(crate) limit: Limit,
}

impl TailDrop {
    /// Drops arrivals beyond the limit.
    #[must_use]
    pub const fn new(params: &TailDropParams) -> Self {
        Self { limit: params.limit }
    }
}

impl<P: Packet> BufferPolicy<P> for TailDrop {
    #[inline]
    fn admit(&mut self, _now: Time, packet: &mut P, backlog: Backlog) -> Verdict {
        if self.limit.admits(packet, backlog) { Verdict::Accept } else { Verdict::Drop(DropReason::Overflow) }
    }

    fn is_transparent(&self) -> bool {
        match self.limit {
            Limit::Packets(limit) => limit > Packets::ZERO,
            Limit::Bytes(limit) => limit >= LARGEST_PACKET,
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
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
        let verdict = |limit, size| {
            TailDrop::new(&TailDropParams { limit }).admit(Time::ZERO, &mut packet(1, 0, size), held)
        };
        let overflow = Verdict::Drop(DropReason::Overflow);
        assert_eq!(verdict(Limit::Packets(Packets::new(3)), 100), Verdict::Accept);
        assert_eq!(verdict(Limit::Packets(Packets::new(2)), 100), overflow);
        assert_eq!(verdict(Limit::Bytes(Bytes::new(300)), 100), Verdict::Accept);
        assert_eq!(verdict(Limit::Bytes(Bytes::new(300)), 101), overflow);
    }
}
