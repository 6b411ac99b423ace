//! Drop from front: an arriving packet joins a full buffer, and the packet that would be served next is
//! dropped.
//!
//! Lakshman, Neidhardt, Ott, "The drop from front strategy in TCP and in TCP over ATM", INFOCOM 1996. The
//! sender learns of the loss a queueing delay earlier than with tail drop. Deviation: a packet larger than
//! the whole buffer is dropped as overflow; otherwise it would empty the buffer and still not fit.
//!
//! Cost: O(1) per packet, no state. Parameters: [`ENTRY`].

use super::{Admission, BufferPolicy, Victim};
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::Packet;
use crate::param::{Entry, Inside, LIMIT, Role, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason};
use crate::schedule::{End, Scheduler};
use crate::units::{Rate, Time};

/// Drop from front in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "head",
    role: Role::Policy,
    summary: "Drop from front: a full buffer drops the packet at its head.",
    reference: "Lakshman, Neidhardt, Ott 1996",
    cost: "O(1) per packet, no state",
    params: HeadDropParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        limits: "Behind a fair scheduler a flood fills the buffer: use `lqd`, `pfd`, `codel` or `pie` there.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`HeadDrop`].
    pub struct HeadDropParams {
        limit: Option<BufferSize> = LIMIT,
    }
}

/// Drop from front at a limit.
#[derive(Clone, Debug)]
pub struct HeadDrop {
    limit: LinkLimit,
}

impl HeadDrop {
    /// Drops from the front beyond the limit.
    #[must_use]
    pub fn new(params: &HeadDropParams, link_rate: Rate) -> Self {
        Self { limit: LinkLimit::new(params.limit, link_rate) }
    }
}

impl<P: Packet> BufferPolicy<P> for HeadDrop {
    fn admit(&mut self, _now: Time, packet: &mut P, _backlog: Backlog) -> Admission {
        if self.limit.get().admits(packet, Backlog::EMPTY) {
            Admission::Accept
        } else {
            Admission::Drop(DropReason::Overflow)
        }
    }

    fn victim<S: Scheduler<P>>(&mut self, _now: Time, scheduler: &S) -> Option<Victim> {
        if !self.limit.get().is_exceeded_by(scheduler.backlog()) {
            return None;
        }
        Some(Victim { flow: scheduler.next_flow()?, end: End::Head, reason: DropReason::PushOut })
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
    use crate::buffer::Buffer;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Bytes;

    #[test]
    fn the_front_makes_room_and_a_packet_that_can_never_fit_is_dropped_alone() {
        let params = HeadDropParams { limit: Some(Limit::Bytes(Bytes::new(300)).into()) };
        let mut queue = Buffer::new(Fifo::new(), HeadDrop::new(&params, Rate::from_mbit(10)));
        let mut log = Log::default();
        for (id, size) in [(1, 100), (2, 100), (3, 100), (4, 150), (5, 301)] {
            queue.enqueue(Time::ZERO, packet(id, id, size), &mut log);
        }
        // 100 + 100 + 100 + 150 = 450: two heads must be dropped to fit 300. Packet 5 alone exceeds the
        // buffer.
        let push_out = DropReason::PushOut;
        let dropped = [(1, push_out), (2, push_out), (5, DropReason::Overflow)];
        assert_eq!(log.dropped, dropped.map(|(id, reason)| (Time::ZERO, id, reason)));
        assert_eq!(queue.dequeue(Time::ZERO, &mut log).map(|p| p.id), Some(3));
    }
}
