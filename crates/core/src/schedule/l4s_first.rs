//! L4S packets first: a FIFO of their own, served before all others.
//!
//! De Schepper, Briscoe, White, RFC 9332: L4S packets (ECT(1) or CE, RFC 9331 section 5.1) wait for each other only, behind at most
//! one packet of the others. Priority alone would starve the others. The policy bounds the rate of L4S flows, as CSFQ does with a fair
//! share; until it knows its share, the others have a sixteenth of the link by weighted round robin (RFC 9332 appendix A.2).
//!
//! Cost: a branch more per packet; without L4S packets all is as in the inner scheduler.

use super::fifo::Fifo;
use super::{End, Queued, Scheduler, Turn};
use crate::flow_setting::FlowSetting;
use crate::packet::{FlowId, Packet};
use crate::queue::Backlog;
use crate::units::Time;

/// RFC 9332 appendix A.2: the others have a sixteenth of the link while both queues hold packets.
pub(crate) const LEAST: i64 = 16;

/// A FIFO for L4S packets before a scheduler `S` for all others.
#[derive(Clone, Debug)]
pub struct L4sFirst<P, S> {
    l4s: Fifo<P>,
    others: S,
    /// The bytes that the others may send before L4S packets, times `LEAST`.
    credit: i64,
}

impl<P, S> L4sFirst<P, S> {
    /// L4S packets before `others`, which must be empty.
    pub const fn new(others: S) -> Self {
        Self { l4s: Fifo::new(), others, credit: 0 }
    }
}

impl<P: Packet, S: Scheduler<P>> L4sFirst<P, S> {
    fn is_l4s_next(&self) -> bool {
        !self.l4s.backlog().is_empty() && (self.credit <= 0 || self.others.backlog().is_empty())
    }
}

impl<P: Packet, S: Scheduler<P>> Scheduler<P> for L4sFirst<P, S> {
    #[inline]
    fn push(&mut self, now: Time, packet: P) {
        if packet.ecn().is_l4s() { self.l4s.push(now, packet) } else { self.others.push(now, packet) }
    }

    #[inline]
    fn push_in_turn(&mut self, now: Time, packet: P, turn: Turn) {
        match packet.ecn().is_l4s() {
            true => self.l4s.push(now, packet),
            false => self.others.push_in_turn(now, packet, turn),
        }
    }

    #[inline]
    fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        if self.l4s.backlog().is_empty() {
            self.credit = 0;
            return self.others.pop(now);
        }
        if self.others.backlog().is_empty() {
            self.credit = 0;
            return self.l4s.pop(now);
        }
        let is_l4s = self.is_l4s_next();
        let queued = if is_l4s { self.l4s.pop(now) } else { self.others.pop(now) }?;
        let size = queued.packet.size().get() as i64;
        self.credit += if is_l4s { size } else { -size * (LEAST - 1) };
        Some(queued)
    }

    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        self.l4s.push_out(now, flow, end).or_else(|| self.others.push_out(now, flow, end))
    }

    fn next_flow(&self) -> Option<FlowId> {
        if self.is_l4s_next() { self.l4s.next_flow() } else { self.others.next_flow() }
    }

    fn front(&self) -> Option<&Queued<P>> {
        if self.is_l4s_next() { self.l4s.front() } else { self.others.front() }
    }

    fn keeps_flows_apart(&self) -> bool {
        self.others.keeps_flows_apart()
    }

    fn is_transparent(&self) -> bool {
        self.others.is_transparent()
    }

    fn upcoming(&self, others: usize) -> Option<&P> {
        let l4s = self.l4s.backlog();
        match (l4s.is_empty(), self.others.backlog().is_empty()) {
            (true, _) => self.others.upcoming(others),
            (false, true) => self.l4s.upcoming(others),
            (false, false) => None,
        }
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.l4s.backlog().plus(self.others.backlog())
    }

    #[inline]
    fn l4s_backlog(&self) -> Option<Backlog> {
        Some(self.l4s.backlog())
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.others.statistics(show);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.others.set_flow(flow, setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, SimplePacket};
    use crate::testing::packet;
    use std::vec::Vec;

    /// The ids that leave after `count` packets of each kind came, those of L4S from 100 on.
    fn order(count: u32) -> Vec<u32> {
        let mut queue = L4sFirst::new(Fifo::new());
        for id in 0..count {
            queue.push(Time::ZERO, packet(id, 0, 1_000));
            queue.push(Time::ZERO, SimplePacket { ecn: Ecn::Ect1, ..packet(100 + id, 1, 1_000) });
        }
        let mut ids = Vec::new();
        while let Some(front) = queue.front().map(|queued| (queued.packet.id, queued.packet.flow)) {
            assert_eq!(queue.next_flow(), Some(front.1));
            let id = queue.pop(Time::ZERO).unwrap().packet.id;
            assert_eq!(id, front.0);
            ids.push(id);
        }
        assert!(queue.backlog().is_empty());
        ids
    }

    #[test]
    fn l4s_packets_leave_first_and_others_get_a_sixteenth() {
        let ids = order(40);
        let classic: Vec<usize> = (0..40).filter(|&at| ids[at] < 100).collect();
        assert_eq!(classic, [1, 17, 33]);
        for first in [0, 100] {
            let of: Vec<u32> = ids.iter().copied().filter(|id| id / 100 == first / 100).collect();
            assert!(of.is_sorted() && of.len() == 40, "each kind keeps its order");
        }
    }

    #[test]
    fn a_victim_is_found_in_either_queue() {
        let mut queue = L4sFirst::new(Fifo::new());
        queue.push(Time::ZERO, packet(1, 0, 1_000));
        queue.push(Time::ZERO, SimplePacket { ecn: Ecn::Ce, ..packet(2, 1, 1_000) });
        assert_eq!(queue.upcoming(0), None);
        assert_eq!(queue.push_out(Time::ZERO, FlowId(1), End::Head).unwrap().packet.id, 2);
        assert_eq!(queue.upcoming(0).unwrap().id, 1);
        assert_eq!(queue.push_out(Time::ZERO, FlowId(0), End::Head).unwrap().packet.id, 1);
        assert!(queue.push_out(Time::ZERO, FlowId(0), End::Head).is_none());
    }
}
