//! FQ-CoDel: flows take turns as in DRR, flows that have just become active go first, and each has its own
//! CoDel.
//!
//! Høiland-Jørgensen, McKenney, Täht, Gettys, Dumazet, RFC 8290, section 4. A system rather than a scheduler
//! with a policy: CoDel drops from the flow in turn while the turn continues, and an empty flow stays in the
//! round until its turn, so neither half works alone.
//!
//! Deviations:
//! - With `classify = "exact"`, the default, a flow's own number selects its queue, so no two flows below
//!   `flows` ever share one; the flows from `flows - 1` on share the last. "hashed" is the RFC's: `flows`
//!   buckets, by a hash with a salt drawn from the run's seed.
//! - Queues can have weights, which scale their quantum; the smallest weight has `quantum` itself. A bucket
//!   is shared by unrelated flows, so "hashed" has no weights.
//! - A tournament tree finds the fattest queue; the RFC searches all queues.
//! - CoDel's test for more than an MTU of backlog uses the whole backlog, not one queue: its purpose is to
//!   keep the link busy (RFC 8289 section 5.5), and a thousand flows with a packet each are a standing queue.
//!
//! Cost: O(1) per packet, O(log queues) per cut; 128 bytes per queue, kept while it is idle. Parameters:
//! [`ENTRY`].

use super::flow_queueing::{FlowQueues, FlowQueuesParams};
use crate::aqm::codel::CodelControl;
use crate::param::{Entry, Heeds, Inside, Role, Shares, Traits};
use crate::params;

/// FQ-CoDel in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "fq_codel",
    role: Role::System,
    summary: "Flow queueing with CoDel: DRR that serves sparse flows first, CoDel on every queue.",
    reference: "RFC 8290",
    cost: "O(1) per packet, O(log queues) per cut, 128 bytes per queue",
    params: FqCodelParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "It divides by weight only if the buffer holds a round, which is a `quantum` for the smallest \
            weight and in proportion for the others: lower `quantum` or raise `limit`.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`FqCodel`].
    pub struct FqCodelParams {
        /// The queues and their division of the link.
        ..queues: FlowQueuesParams,
        /// The control loop of each queue.
        ..control: CodelControl,
    }
}

/// Flow queueing with CoDel on each queue.
pub type FqCodel<P> = FlowQueues<P, CodelControl>;

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::flow_setting::FlowSetting;
    use crate::limit::Limit;
    use crate::packet::FlowId;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::{DropReason, Queue};
    use crate::random::Stream;
    use crate::system::Discipline;
    use crate::system::catalog::Selection;
    use crate::system::flow_queueing::Round;
    use crate::testing::{Log, packet};
    use crate::units::{Bytes, Rate, Time, Weight};

    fn fq_codel(change: impl FnOnce(&mut FqCodelParams)) -> FqCodel<SimplePacket> {
        let mut params = FqCodelParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        change(&mut params);
        FqCodel::new(
            &params.queues,
            &params.control,
            Rate::from_mbit(10),
            Weight::ONE,
            Stream::new(1, "fq_codel"),
        )
    }

    fn serve(queue: &mut FqCodel<SimplePacket>, n: usize) -> Vec<u32> {
        let mut log = Log::default();
        (0..n).map_while(|_| queue.dequeue(Time::ZERO, &mut log)).map(|packet| packet.id).collect()
    }

    #[test]
    fn a_flow_that_has_just_become_active_goes_first_for_a_quantum() {
        let mut queue = fq_codel(|params| params.queues.quantum = Bytes::new(1_000));
        let mut log = Log::default();
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        assert_eq!(serve(&mut queue, 2), [0, 1]);
        queue.enqueue(Time::ZERO, packet(10, 1, 100), &mut log);
        queue.enqueue(Time::ZERO, packet(11, 1, 100), &mut log);
        assert_eq!(serve(&mut queue, 9), [10, 11, 2, 3]);
    }

    #[test]
    fn a_new_flow_that_runs_empty_waits_behind_the_old_before_it_is_new_again() {
        let mut queue = fq_codel(|params| params.queues.quantum = Bytes::new(100));
        let mut log = Log::default();
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, 0, 100), &mut log);
        }
        queue.enqueue(Time::ZERO, packet(10, 1, 50), &mut log);
        // Flow 0 spends its quantum and becomes old; flow 1 sends and has 50 left.
        assert_eq!(serve(&mut queue, 2), [0, 10]);
        // Flow 1 is found empty while new, so it becomes old; flow 0 gets the turn.
        assert_eq!(serve(&mut queue, 1), [1]);
        queue.enqueue(Time::ZERO, packet(11, 1, 50), &mut log);
        assert_eq!(queue.queues[1].round, Round::Old, "it does not jump the queue again");
    }

    #[test]
    fn new_and_old_flows_and_rounds_are_shown() {
        let mut queue = fq_codel(|params| params.queues.quantum = Bytes::new(100));
        let mut log = Log::default();
        let shown = |queue: &FqCodel<SimplePacket>| {
            let mut shown = Vec::new();
            queue.statistics(&mut |name, value| shown.push((name, value)));
            shown
        };
        let are = |new, old, rounds| [("new_flows", new), ("old_flows", old), ("rounds", rounds)];
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, id % 2, 100), &mut log);
        }
        assert_eq!(shown(&queue), are(2.0, 0.0, 0.0));
        // A turn of one packet ends when the next one is asked for. Flow 0 becomes old first, so that its own
        // round ends before packet 3.
        let after = [are(2.0, 0.0, 0.0), are(1.0, 1.0, 0.0), are(0.0, 2.0, 0.0), are(0.0, 2.0, 1.0)];
        for (id, expected) in (0..).zip(after) {
            assert_eq!(serve(&mut queue, 1), [id]);
            assert_eq!(shown(&queue), expected, "after {id}");
        }
        // The round of flow 1 and flow 0, which is found empty, and the round of flow 1, which is empty too.
        assert_eq!(serve(&mut queue, 1), [0; 0]);
        assert_eq!(shown(&queue), are(0.0, 0.0, 3.0));
    }

    #[test]
    fn a_flow_that_comes_back_starts_with_a_quantum_whatever_it_owed() {
        let mut queue = fq_codel(|params| params.queues.quantum = Bytes::new(100));
        let mut log = Log::default();
        queue.enqueue(Time::ZERO, packet(0, 0, 1_000), &mut log);
        assert_eq!(serve(&mut queue, 9), [0]);
        assert_eq!((queue.queues[0].round, queue.queues[0].credits >> 16), (Round::Idle, 100));
        queue.queues[0].credits = -900 << 16;
        queue.enqueue(Time::ZERO, packet(1, 0, 1_000), &mut log);
        assert_eq!((queue.queues[0].round, queue.queues[0].credits >> 16), (Round::New, 100));
    }

    #[test]
    fn the_number_of_queues_defaults_by_how_flows_find_them() {
        let mut selection = Selection::new("fq_codel", None, None).unwrap();
        assert_eq!(FqCodelParams::from_args(&selection.args.of(&ENTRY)).unwrap().queues.flows(), 65_536);
        selection.set("classify", "hashed").unwrap();
        assert_eq!(FqCodelParams::from_args(&selection.args.of(&ENTRY)).unwrap().queues.flows(), 1_024);
    }

    #[test]
    fn overload_cuts_half_of_the_fattest_queue_up_to_a_batch() {
        for (drop_batch, cut) in [(64, 5), (3, 3)] {
            let mut queue = fq_codel(|params| {
                params.queues.limit = Some(Limit::Packets(crate::units::Packets::new(11)).into());
                params.queues.drop_batch = drop_batch;
            });
            let mut log = Log::default();
            for (id, flow) in [(0, 0), (1, 0), (2, 0)].into_iter().chain((3..12).map(|id| (id, 1))) {
                queue.enqueue(Time::ZERO, packet(id, flow, 100), &mut log);
            }
            // The twelfth packet finds flow 1 with nine: half of nine, rounded up, is five, from number 3 on.
            let ids: Vec<_> = log.dropped.iter().map(|&(_, id, _)| id).collect();
            assert_eq!(ids, (3..3 + cut).collect::<Vec<_>>());
        }
    }

    #[test]
    fn memory_limit_holds_in_bytes() {
        let mut queue = fq_codel(|params| params.queues.memory_limit = Some(Bytes::new(2_500)));
        let mut log = Log::default();
        for id in 0..3 {
            queue.enqueue(Time::ZERO, packet(id, id, 1_000), &mut log);
        }
        assert_eq!(queue.backlog().bytes.get(), 2_000);
    }

    #[test]
    fn flows_beyond_the_bound_share_the_last_queue_and_state_stays_bounded() {
        let mut queue = fq_codel(|params| params.queues.flows = Some(4));
        let mut log = Log::default();
        for flow in 0..1_000 {
            queue.enqueue(Time::ZERO, packet(flow, flow, 100), &mut log);
        }
        assert_eq!(queue.queues.len(), 4);
        assert_eq!(queue.queues[3].backlog.packets.get(), 997);
        assert!(
            queue.set_flow(FlowId(2), FlowSetting::Weight(Weight::ONE))
                && !queue.set_flow(FlowId(3), FlowSetting::Weight(Weight::ONE))
        );
    }

    #[test]
    fn only_the_flow_whose_own_queue_stands_loses_packets() {
        let mut queue = fq_codel(|params| {
            params.queues.limit = Some(Limit::Bytes(Bytes::new(2_000_000)).into());
            params.control.ecn = false;
        });
        let mut log = Log::default();
        for id in 0..1_000 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        for ms in 1..=300 {
            let now = Time::from_millis(ms);
            queue.enqueue(now, packet(100_000 + ms as u32, 1, 100), &mut log);
            queue.dequeue(now, &mut log);
            queue.dequeue(now, &mut log);
        }
        assert!(log.dropped.len() >= 2);
        assert!(log.dropped.iter().all(|&(_, id, reason)| id < 1_000 && reason == DropReason::Early));
    }
}
