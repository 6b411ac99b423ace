//! FQ-PIE: flows take turns as in FQ-CoDel, and each has its own PIE.
//!
//! Ramakrishnan, Bhasi, Tahiliani, "FQ-PIE queue discipline in the Linux kernel", IEEE LCN Symposium 2019:
//! the flow queueing of RFC 8290 section 4 with the controller of RFC 8033 on each queue. PIE's readings are
//! in `pie.rs`, those of flow queueing in `fq_codel.rs`, whose code it shares.
//!
//! Readings:
//! - PIE's "at most two packets" applies to the queue of the flow, like its delay. Flows with two packets
//!   each thus have no early drops, however many flows there are.
//! - Beyond `limit` the longest queue loses its last packet: the arrival, if it belongs to that queue.
//!   Linux's fq_pie, which drops "during enqueue only", drops the arrival, whatever its queue, so that a
//!   flood could fill the buffer before PIE limits it. A batch from the head, as in FQ-CoDel, would empty the
//!   queue below half of the target each time, and a drop from the head shortens the delay of later packets:
//!   PIE, which measures this delay, would see no congestion in either case.
//! - A queue's missed updates run when a packet of it arrives or leaves: an idle queue costs nothing, and
//!   decays.
//!
//! Cost: O(1) per packet plus the updates, O(log queues) per cut; 160 bytes per queue, kept while it is idle. Parameters:
//! [`ENTRY`].

use super::flow_queueing::{FlowQueues, FlowQueuesParams};
use crate::aqm::pie::PieControl;
use crate::param::{Entry, Heeds, Inside, Param, Role, Shares, Traits};
use crate::params;

/// FQ-PIE in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "fq_pie",
    role: Role::System,
    summary: "Flow queueing with PIE: DRR that serves sparse flows first, PIE on every queue.",
    reference: "Ramakrishnan, Bhasi, Tahiliani 2019; RFC 8290, RFC 8033",
    cost: "O(1) per packet, O(log queues) per cut, 160 bytes per queue",
    params: FqPieParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "Behind a scheduler the queue of a flood waits longer than the target (275 ms if it sends twice \
            the link's rate): set `derandomize = false` (33 ms), or use CoDel.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`FqPie`].
    pub struct FqPieParams {
        /// The queues and their division of the link.
        ..queues: FlowQueuesParams where {
            drop_batch: Param::of("1", "Linux's fq_pie: an arrival at the limit is dropped; RFC 8290's batch is FQ-CoDel's"),
        },
        /// The control loop of each queue.
        ..control: PieControl,
    }
}

/// Flow queueing with PIE on each queue.
pub type FqPie<P> = FlowQueues<P, PieControl>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aqm::pie::PieState;
    use crate::limit::Limit;
    use crate::packet::{Ecn, SimplePacket};
    use crate::param::EntryArgs;
    use crate::queue::{DropReason, Queue};
    use crate::random::Stream;
    use crate::testing::{Log, packet};
    use crate::units::{Bytes, Rate, Time, Weight};

    fn fq_pie(change: impl FnOnce(&mut FqPieParams)) -> FqPie<SimplePacket> {
        let mut params = FqPieParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.queues.limit = Some(Limit::Bytes(Bytes::new(2_000_000)).into());
        change(&mut params);
        FqPie::new(
            &params.queues,
            &params.control,
            Rate::from_mbit(10),
            Weight::ONE,
            Stream::new(1, "fq_pie"),
        )
    }

    /// Flow 0 sends two packets a millisecond, of which one passes; flow 1 sends a small one.
    fn overload(queue: &mut FqPie<SimplePacket>) -> Log {
        let mut log = Log::default();
        for ms in 0..600 {
            let now = Time::from_millis(ms);
            for i in 0..2 {
                let id = 2 * ms as u32 + i;
                let ecn = if i == 0 { Ecn::Ect0 } else { Ecn::NotEct };
                queue.enqueue(now, SimplePacket { ecn, ..packet(id, 0, 1_000) }, &mut log);
            }
            queue.enqueue(now, packet(100_000 + ms as u32, 1, 100), &mut log);
            queue.dequeue(now, &mut log);
            queue.dequeue(now, &mut log);
        }
        log
    }

    #[test]
    fn only_the_flow_whose_own_queue_stands_loses_packets() {
        let log = overload(&mut fq_pie(|_| {}));
        assert!(log.dropped.len() >= 20, "{}", log.dropped.len());
        assert!(log.dropped.iter().all(|&(_, id, reason)| id < 100_000 && reason == DropReason::Early));
        assert_eq!(log.marked, []);
        let off =
            overload(&mut fq_pie(|params| (params.control.law.alpha, params.control.law.beta) = (0.0, 0.0)));
        assert_eq!(off.dropped, []);
    }

    #[test]
    fn capable_packets_are_marked_while_the_probability_is_low() {
        let log = overload(&mut fq_pie(|params| params.control.ecn = true));
        assert!(!log.marked.is_empty() && log.marked.iter().all(|&(_, id)| id % 2 == 0));
    }

    #[test]
    fn a_queue_is_not_larger_than_stated() {
        assert!(size_of::<crate::system::flow_queueing::FlowQueue<PieState>>() <= 160);
    }
}
