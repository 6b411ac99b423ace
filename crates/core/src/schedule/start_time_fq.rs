//! Start-time fair queueing: the packet whose service would start first in virtual time is served next.
//!
//! Goyal, Vin, Cheng, "Start-time fair queueing: a scheduling algorithm for integrated services packet
//! switching networks", IEEE/ACM ToN 5(5), 1997, section II. Each packet has a start tag S = max(v, F of the
//! switching networks", IEEE/ACM ToN 5(5), 1997, section II. Each packet has a start tag S = max(v, F of the
//! flow's previous packet) (eq. 4) and a finish tag F = S + l/r (eq. 5). The smallest S is served; v is the S
//! of the packet in service and, when the link becomes idle, the largest F of any packet served. It is named
//! `stfq` because SFQ also means stochastic fair queueing (McKenney 1990), a different discipline.
//!
//! Readings:
//! - Tags belong to heads of line, not to arrivals; `tags.rs` gives the reason, and the integer form of tags.
//! - The paper leaves open which of several equal start tags goes first. Here it is the packet that became a
//!   head of line first.
//! - The link is idle when it asks and there is no packet.
//!
//! Fairness (Theorem 1): over any interval in which flows f and m are backlogged, |W_f/r_f - W_m/r_m| <=
//! l_f/r_f + l_m/r_m, with l the largest packet of the flow.
//!
//! Cost: O(log flows) per packet; at most 87 bytes per flow: records of 32, allocated for up to twice as many
//! flows, and 23 for the tournament. Parameters: none.

use super::tags::{ByTag, Tag};
use crate::param::{Entry, Heeds, Inside, Role, Shares, Traits};

/// Start-time fair queueing in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "stfq",
    role: Role::Scheduler,
    summary: "Start-time fair queueing: smallest virtual start of service first. Not stochastic FQ.",
    reference: "Goyal, Vin, Cheng 1997",
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

/// Start-time fair queueing over flows.
pub type StartTimeFq<P> = ByTag<P, Start>;

/// Serves the smallest S.
#[derive(Clone, Copy, Debug)]
pub enum Start {}

impl Tag for Start {
    const IS_START: bool = true;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::FlowId;
    use crate::packet::SimplePacket;
    use crate::schedule::testing::{order, push, serve, weighted};
    use crate::schedule::{End, Scheduler};
    use crate::testing::packet;
    use crate::units::{Time, Weight};

    /// A scheduler with flows of these weights; the smallest is 1.
    fn stfq(weights: &[f64]) -> StartTimeFq<SimplePacket> {
        weighted(StartTimeFq::new(Weight::ONE), weights)
    }

    #[test]
    fn packets_leave_by_their_start_tags() {
        // Flow 0, weight 1: 300 B at S = 0, F = 300; then 100 B at S = 300, F = 400; then 100 B at S = 400.
        // Flow 1, weight 2: 200 B at S = 0, F = 100; S = 100, 200, 300, 400.
        let mut stfq = stfq(&[1.0, 2.0]);
        push(&mut stfq, 1, &[(0, 300), (0, 100), (0, 100), (1, 200), (1, 200), (1, 200), (1, 200), (1, 200)]);
        // In the order of S, then of arrival at the head: 1 (0), 4 (0), 5 (100), 6 (200), 2 (300), 7 (300), 3
        // (400), 8 (400).
        assert_eq!(serve(&mut stfq, 9), [1, 4, 5, 6, 2, 7, 3, 8]);
    }

    #[test]
    fn a_flow_that_comes_late_starts_at_the_packet_in_service() {
        let mut stfq = stfq(&[1.0; 3]);
        push(&mut stfq, 1, &[(0, 100), (0, 100), (0, 100), (0, 100), (1, 250), (1, 100)]);
        // S: packets 1 to 4 at 0, 100, 200, 300; packets 5 and 6 at 0 and 250.
        assert_eq!(serve(&mut stfq, 4), [1, 5, 2, 3]);
        // v = 200, the S of packet 3. Flow 2 starts there, before 6 (250) and 4 (300).
        push(&mut stfq, 7, &[(2, 100)]);
        assert_eq!(serve(&mut stfq, 9), [7, 6, 4]);
    }

    #[test]
    fn nothing_is_owed_after_the_link_was_idle_and_something_is_after_it_was_only_empty() {
        for (idle, order) in [(true, [2, 3]), (false, [3, 2])] {
            let mut stfq = stfq(&[1.0; 2]);
            push(&mut stfq, 1, &[(0, 1_000)]);
            assert_eq!(serve(&mut stfq, 1), [1]);
            // Flow 0 has F = 1000. While its packet is in service v = 0; when the link falls idle v = 1000.
            if idle {
                assert_eq!(stfq.pop(Time::ZERO), None);
            }
            push(&mut stfq, 2, &[(0, 100), (1, 100)]);
            assert_eq!(serve(&mut stfq, 2), order);
        }
    }

    #[test]
    fn a_packet_pushed_out_is_not_charged() {
        let mut stfq = stfq(&[1.0; 2]);
        push(&mut stfq, 1, &[(0, 1_000), (0, 100), (0, 100), (1, 500), (1, 500)]);
        // Without packet 1, flow 0 has S = 0 and 100; stamped at arrival they would be 1000 and 1100.
        assert_eq!(stfq.push_out(Time::ZERO, FlowId(0), End::Head).map(|queued| queued.packet.id), Some(1));
        assert_eq!(serve(&mut stfq, 9), [2, 4, 3, 5]);
        push(&mut stfq, 6, &[(0, 900), (1, 100), (1, 100)]);
        // Flow 0 is idle again with F = 200 instead of 1000: it is behind v = 500 and starts there; flow 1
        // has F = 1000.
        assert_eq!(stfq.push_out(Time::ZERO, FlowId(0), End::Tail).map(|queued| queued.packet.id), Some(6));
        push(&mut stfq, 9, &[(0, 100)]);
        assert_eq!(serve(&mut stfq, 9), [7, 9, 8]);
        assert_eq!(stfq.push_out(Time::ZERO, FlowId(0), End::Head), None);
        assert!(stfq.backlog().is_empty());
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, (1_u64 << 62) - 20_000].map(|v| {
            let mut stfq = stfq(&[1.0, 3.0, 7.0]);
            stfq.v = v;
            let order = order(&mut stfq);
            assert!(stfq.v < 1 << 62);
            order
        });
        assert_eq!(orders[0], orders[1]);
    }

    #[test]
    fn flows_beyond_the_bound_share_state() {
        let mut stfq = stfq(&[1.0; 2]);
        for (id, flow) in [(1, 1), (2, u32::MAX), (3, FlowId::SLOTS as u32 + 1), (4, 0)] {
            stfq.push(Time::ZERO, packet(id, flow, 100));
        }
        // Packet 3 waits behind packet 1 in slot 1. The last flow number has a slot of its own, the last one.
        assert_eq!(serve(&mut stfq, 9), [1, 2, 4, 3]);
    }
}
