//! SCFQ, self-clocked fair queueing: the packet whose service would finish first in virtual time is served
//! next, and virtual time is read off the packet in service.
//!
//! Golestani, "A self-clocked fair queueing scheme for broadband applications", INFOCOM 1994, section 3. Each
//! packet has a service tag F = l/r + max(F of the packet before it in its flow, v); the smallest F is
//! served; v is the F of the packet in service.
//!
//! Readings:
//! - Tags are those of heads of line, not of arrivals; `tags.rs` says why, and what integers they are.
//! - Once the link is idle the paper sets v and all tags to zero. Here nothing has to be done: v is then the
//!   largest F served, so no flow owes anything.
//! - Equal tags, which the paper breaks at will: the lower flow number goes first.
//! - A large head that was pushed out may leave a small packet whose F is below v. It is served next, and v
//!   stays where it is: virtual time does not go back.
//!
//! Fairness (Theorem 1): over any interval in which flows f and m are backlogged, |W_f/r_f - W_m/r_m| <=
//! l_f/r_f + l_m/r_m, with l the largest packet of the flow. A packet may wait for one of each other flow,
//! whatever its weight: the price for so simple a v.
//!
//! Cost: O(log flows) per packet; at most 78 bytes per flow. Parameters: none.

use super::tags::Flows;
use super::{End, Queued, Scheduler};
use crate::catalog::{Entry, Role};
use crate::packet::{FlowId, Packet};
use crate::queue::Backlog;
use crate::smallest::Smallest;
use crate::units::{Time, Weight};

/// SCFQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "scfq",
    role: Role::Scheduler,
    summary: "Self-clocked fair queueing: smallest virtual finish of service first.",
    reference: "Golestani 1994",
    cost: "O(log flows) per packet, at most 78 bytes per flow",
    params: &[],
};

/// Self-clocked fair queueing over flows.
#[derive(Clone, Debug)]
pub struct Scfq<P> {
    flows: Flows<P>,
    /// The backlogged flows by F of their head.
    finish: Smallest,
    /// Virtual time: F of the packet served last.
    v: u64,
}

impl<P: Packet> Scfq<P> {
    /// Without packets. `smallest` is the smallest weight of a flow.
    #[must_use]
    pub fn new(smallest: Weight) -> Self {
        Self { flows: Flows::new(smallest), finish: Smallest::new(), v: 0 }
    }

    /// Gives the head of a flow its F, or takes the flow out if it has none.
    fn tag(&mut self, index: usize) {
        match self.flows.finish(index) {
            Some(finish) => self.finish.set(index, finish),
            None => self.finish.remove(index),
        }
    }
}

impl<P: Packet> Scheduler<P> for Scfq<P> {
    fn push(&mut self, now: Time, packet: P) {
        let index = packet.flow().slot();
        if self.flows.push(now, packet) {
            let flow = self.flows.get(index);
            flow.tag = flow.tag.max(self.v);
            self.tag(index);
        }
    }

    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let (finish, index) = self.finish.first()?;
        let queued = self.flows.take(index, End::Head)?;
        self.v = self.v.max(finish);
        self.flows.get(index).tag = finish;
        self.tag(index);
        if let Some(by) = self.flows.rebase(self.v) {
            self.finish.shift(by);
            self.v -= by;
        }
        Some(queued)
    }

    fn push_out(&mut self, _now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let queued = self.flows.take(flow.slot(), end)?;
        self.tag(flow.slot());
        Some(queued)
    }

    fn next_flow(&self) -> Option<FlowId> {
        self.finish.first().map(|(_, index)| FlowId(index as u32))
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        self.flows.set_weight(flow, weight);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::testing::{TestPacket, packet};

    /// Flows of these weights, the smallest 1.
    fn scfq(weights: &[f64]) -> Scfq<TestPacket> {
        let mut scfq = Scfq::new(Weight::ONE);
        for (flow, &weight) in (0..).zip(weights) {
            scfq.set_weight(FlowId(flow), Weight::new(weight).unwrap());
        }
        scfq
    }

    /// Pushes packets of these flows and sizes, numbered on.
    fn push(scfq: &mut Scfq<TestPacket>, first: u32, packets: &[(u32, u64)]) {
        for (id, &(flow, size)) in (first..).zip(packets) {
            scfq.push(Time::ZERO, packet(id, flow, size));
        }
    }

    fn serve(scfq: &mut Scfq<TestPacket>, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| scfq.pop(Time::ZERO)).map(|queued| queued.packet.id).collect()
    }

    #[test]
    fn packets_leave_by_their_finish_tags() {
        // Flow 0, weight 1: 300 B with F = 300; 100 B with F = 400; 100 B with F = 500.
        // Flow 1, weight 2, 200 B each: F = 100, 200, 300, 400, 500.
        let mut scfq = scfq(&[1.0, 2.0]);
        push(&mut scfq, 1, &[(0, 300), (0, 100), (0, 100), (1, 200), (1, 200), (1, 200), (1, 200), (1, 200)]);
        // By F, and the lower flow first: 4 (100), 5 (200), 1 (300), 6 (300), 2 (400), 7 (400), 3, 8.
        assert_eq!(serve(&mut scfq, 9), [4, 5, 1, 6, 2, 7, 3, 8]);
    }

    #[test]
    fn a_flow_that_comes_late_starts_at_the_finish_of_the_packet_in_service() {
        let mut scfq = scfq(&[1.0; 3]);
        push(&mut scfq, 1, &[(0, 1_000), (0, 1_000), (1, 1_500)]);
        assert_eq!(serve(&mut scfq, 1), [1]);
        // v = 1000: flow 2 has F = 1000 + 400, before 3 (1500) and 2 (2000). With start-time's v = 0 a packet
        // of 600 bytes would come before 3 too; here it has F = 2000 after 1400.
        push(&mut scfq, 4, &[(2, 400), (2, 600)]);
        assert_eq!(serve(&mut scfq, 9), [4, 3, 2, 5]);
    }

    #[test]
    fn a_packet_pushed_out_is_not_charged_and_virtual_time_does_not_go_back() {
        let mut scfq = scfq(&[1.0; 2]);
        push(&mut scfq, 1, &[(0, 1_500), (0, 100), (0, 1_000), (1, 700), (1, 700), (1, 700)]);
        // F: packet 1 at 1500; 4, 5, 6 at 700, 1400, 2100.
        assert_eq!(serve(&mut scfq, 2), [4, 5]);
        // v = 1400; now packet 2 heads flow 0 with S = 0 and F = 100, then packet 3 with F = 1100, 6 with
        // 2100.
        assert_eq!(scfq.push_out(Time::ZERO, FlowId(0), End::Head).map(|queued| queued.packet.id), Some(1));
        assert_eq!(serve(&mut scfq, 1), [2]);
        assert_eq!(scfq.v >> 24, 1_400);
        assert_eq!(serve(&mut scfq, 9), [3, 6]);
        assert_eq!(scfq.push_out(Time::ZERO, FlowId(0), End::Tail), None);
        assert!(scfq.backlog().is_empty());
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, (1_u64 << 62) - 20_000].map(|v| {
            let mut scfq = scfq(&[1.0, 3.0, 7.0]);
            scfq.v = v;
            push(&mut scfq, 0, &[(0, 900), (1, 333), (2, 40), (0, 40), (1, 1_500), (2, 77)].repeat(20));
            let mut order = serve(&mut scfq, 60);
            push(&mut scfq, 120, &[(1, 800), (2, 10)]);
            order.extend(serve(&mut scfq, 99));
            assert!(scfq.v < 1 << 62);
            order
        });
        assert_eq!(orders[0].len(), 122);
        assert_eq!(orders[0], orders[1]);
    }
}
