//! SCFQ, self-clocked fair queueing: the packet whose service would finish first in virtual time is served
//! next, and virtual time is the tag of the packet in service.
//!
//! Golestani, "A self-clocked fair queueing scheme for broadband applications", INFOCOM 1994, section 3. Each
//! packet has a service tag F = l/r + max(F of the packet before it in its flow, v); the smallest F is
//! served; v is the F of the packet in service.
//!
//! Readings:
//! - Tags belong to heads of line, not to arrivals; `tags.rs` gives the reason, and the integer form of tags.
//! - Once the link is idle the paper sets v and all tags to zero. Here no reset is needed: v is then the
//!   largest F served, so no flow owes anything.
//! - The paper leaves open which of several equal tags goes first. Here it is the packet that became a head
//!   of line first.
//! - A large head that was pushed out may leave a small packet whose F is below v. This packet is served
//!   next, and v keeps its value: virtual time never decreases.
//!
//! Fairness (Theorem 1): over any interval in which flows f and m are backlogged, |W_f/r_f - W_m/r_m| <=
//! l_f/r_f + l_m/r_m, with l the largest packet of the flow. A packet may wait for one packet of each other
//! flow, whatever its weight: the price of the simple v.
//!
//! Cost: O(log flows) per packet; at most 87 bytes per flow, as start-time fair queueing. Parameters: none.

use super::tags::{ByTag, Tag};
use crate::param::{Entry, Heeds, Inside, Role, Shares, Traits};

/// SCFQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "scfq",
    role: Role::Scheduler,
    summary: "Self-clocked fair queueing: smallest virtual finish of service first.",
    reference: "Golestani 1994",
    cost: "O(log flows) per packet, at most 87 bytes per flow",
    params: &[],
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "Weights span a factor of 2^26.",
        ..Traits::NONE
    },
};

/// Self-clocked fair queueing over flows.
pub type Scfq<P> = ByTag<P, Finish>;

/// Serves the smallest F.
#[derive(Clone, Copy, Debug)]
pub enum Finish {}

impl Tag for Finish {
    const IS_START: bool = false;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;
    use crate::packet::SimplePacket;
    use crate::schedule::testing::{order, push, serve, weighted};
    use crate::schedule::{End, Scheduler};
    use crate::units::{Time, Weight};

    /// A scheduler with flows of these weights; the smallest is 1.
    fn scfq(weights: &[f64]) -> Scfq<SimplePacket> {
        weighted(Scfq::new(Weight::ONE), weights)
    }

    #[test]
    fn packets_leave_by_their_finish_tags() {
        // Flow 0, weight 1: 300 B with F = 300; 100 B with F = 400; 100 B with F = 500.
        // Flow 1, weight 2, 200 B each: F = 100, 200, 300, 400, 500.
        let mut scfq = scfq(&[1.0, 2.0]);
        push(&mut scfq, 1, &[(0, 300), (0, 100), (0, 100), (1, 200), (1, 200), (1, 200), (1, 200), (1, 200)]);
        // In the order of F, then of arrival at the head: 4 (100), 5 (200), 1 (300), 6 (300), 2 (400), 7
        // (400), 3, 8.
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
        // v = 1400; packet 2 heads flow 0 with S = 0 and F = 100, then packet 3 with F = 1100, 6 with 2100.
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
            let order = order(&mut scfq);
            assert!(scfq.v < 1 << 62);
            order
        });
        assert_eq!(orders[0], orders[1]);
    }
}
