//! Tail drop: a packet that finds the buffer full is dropped.
//!
//! Cost: O(1) per packet, no state.
//!
//! | here | symbol | unit | default | from |
//! |---|---|---|---|---|
//! | `limit` | B | packets or bytes | 50 packets | chosen: ns-2's long-standing default |

use super::{BufferPolicy, Limit, Verdict};
use crate::packet::Packet;
use crate::queue::{Backlog, DropReason};
use crate::units::Time;

/// Tail drop at a fixed limit.
#[derive(Clone, Copy, Debug)]
pub struct TailDrop {
    limit: Limit,
}

impl TailDrop {
    /// Drops arrivals beyond `limit`.
    #[must_use]
    pub const fn new(limit: Limit) -> Self {
        Self { limit }
    }
}

impl<P: Packet> BufferPolicy<P> for TailDrop {
    fn admit(&mut self, _now: Time, packet: &P, backlog: Backlog) -> Verdict {
        if self.limit.admits(packet, backlog) { Verdict::Accept } else { Verdict::Drop(DropReason::Overflow) }
    }
}
