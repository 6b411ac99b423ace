//! BRED, balanced RED: the drop probability of a packet grows with the number of packets that its flow holds
//! in the buffer.
//!
//! Anjum, Tassiulas, "Fair bandwidth sharing among adaptive and non-adaptive flows in the Internet", INFOCOM
//! 1999; also "Balanced-RED", ISR technical report TR 99-17, University of Maryland. Three thresholds on the
//! packets of a flow: l1 < l2 < W_m, with probabilities p1 < p2 < 1. There is no average queue.
//!
//! Readings: the algorithm follows its outline in later literature, not the paper's own text.
//! - A flow that holds q packets, without the arriving one, has no drops for q < l1, p1 for l1 <= q < l2, p2
//!   for l2 <= q < W_m, and loses every packet from W_m on.
//! - `gap`: after a loss, a flow has no random drops until more of its packets were admitted than its
//!   threshold, so that a responsive flow is not hit twice for one window. Losses at W_m have no such
//!   exemption.
//! - The state of a flow is erased with its last packet.
//! - The defaults are this project's, for a buffer of 50 packets.
//!
//! Cost: O(1) per packet, 8 bytes per flow. Parameters: [`ENTRY`].

use alloc::format;
use alloc::vec::Vec;

use super::{Admission, BufferPolicy};
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, GoesBy, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Packets, Rate, Ratio, Time};

/// BRED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "bred",
    role: Role::Policy,
    summary: "Balanced RED: the drop probability of a flow rises with its backlog.",
    reference: "Anjum, Tassiulas 1999",
    cost: "O(1) per packet, 8 bytes per flow",
    params: BredParams::PARAMS,
    traits: Traits { goes_by: Some(GoesBy::Allowance), shares: Shares::Approximate, ..Traits::NONE },
};

params! {
    /// Parameters of [`Bred`].
    pub struct BredParams {
        limit: Option<BufferSize> = LIMIT,
        /// Packets of a flow from which its arrivals are dropped with `p1`.
        l1: Packets = Param::of("2p", "chosen: FRED's min_q for small buffers").symbol("l1"),
        /// Packets of a flow from which its arrivals are dropped with `p2`.
        l2: Packets = Param::of("4p", "chosen: FRED's min_q for large buffers").symbol("l2"),
        /// Packets of a flow from which all its arrivals are dropped.
        w_m: Packets = Param::of("12p", "chosen: FRED's max_q, a quarter of the buffer").symbol("W_m"),
        /// Probability from `l1`.
        p1: Ratio = Param::of("0.02", "chosen: FRED's max_p").symbol("p1"),
        /// Probability from `l2`.
        p2: Ratio = Param::of("0.1", "chosen: RED's max_p in ns-2").symbol("p2"),
        /// After a loss, exempt as many packets of the flow from random drops as its threshold says.
        gap: bool = Param::of("true", "chosen: the fuller outline").symbol("gap_i"),
    }
    check: |params: &Self, _| params.check()
}

impl BredParams {
    fn check(&self) -> Result<(), ParamError> {
        require(self.l1 < self.l2, "l2", &format!("{} must be above `l1`, which is {}", self.l2, self.l1))?;
        require(
            self.l2 < self.w_m,
            "w_m",
            &format!("{} must be above `l2`, which is {}", self.w_m, self.l2),
        )?;
        require(self.p1 < self.p2, "p2", &format!("{} must be above `p1`, which is {}", self.p2, self.p1))
    }
}

/// The state of a flow with packets in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Packets in the buffer.
    qlen: u32,
    /// Packets admitted since its last loss.
    gap: u32,
}

/// BRED's state.
#[derive(Clone, Debug)]
pub struct Bred {
    params: BredParams,
    limit: LinkLimit,
    flows: Vec<Flow>,
    random: Stream,
}

impl Bred {
    /// BRED without flows.
    #[must_use]
    pub fn new(params: &BredParams, link_rate: Rate, random: Stream) -> Self {
        let limit = LinkLimit::new(params.limit, link_rate);
        Self { params: params.clone(), limit, flows: Vec::new(), random }
    }

    fn flow(&mut self, flow: FlowId) -> &mut Flow {
        if flow.slot() >= self.flows.len() {
            self.flows.resize(flow.slot() + 1, Flow::default());
        }
        &mut self.flows[flow.slot()]
    }

    /// The probability of a random drop; 1 from W_m on.
    fn p(&self, flow: Flow) -> Ratio {
        let BredParams { l1, l2, w_m, p1, p2, .. } = self.params;
        let qlen = Packets::new(u64::from(flow.qlen));
        let (threshold, p) = match qlen {
            _ if qlen >= w_m => return Ratio::ONE,
            _ if qlen >= l2 => (l2, p2),
            _ if qlen >= l1 => (l1, p1),
            _ => return Ratio::ZERO,
        };
        let spared = self.params.gap && Packets::new(u64::from(flow.gap)) <= threshold;
        if spared { Ratio::ZERO } else { p }
    }
}

impl<P: Packet> BufferPolicy<P> for Bred {
    fn admit(&mut self, _now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let flow = *self.flow(packet.flow());
        let p = self.p(flow);
        let reason = if !self.limit.get().admits(packet, backlog) {
            Some(DropReason::Overflow)
        } else if p == Ratio::ONE {
            Some(DropReason::Policy)
        } else {
            self.random.chance(p.get()).then_some(DropReason::Early)
        };
        let flow = self.flow(packet.flow());
        if let Some(reason) = reason {
            flow.gap = 0;
            return Admission::Drop(reason);
        }
        flow.qlen += 1;
        flow.gap = flow.gap.saturating_add(1);
        Admission::Accept
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now)?;
        let flow = self.flow(queued.packet.flow());
        flow.qlen -= 1;
        if flow.qlen == 0 {
            *flow = Flow::default();
        }
        Some(queued)
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
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};

    fn bred(change: impl FnOnce(&mut BredParams)) -> Bred {
        let mut params = BredParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        change(&mut params);
        Bred::new(&params, Rate::from_mbit(10), Stream::new(1, "bred"))
    }

    fn ratio(p: f64) -> Ratio {
        Ratio::clamped(p)
    }

    #[test]
    fn the_probability_is_a_staircase_over_what_the_flow_holds() {
        let bred = bred(|params| params.gap = false);
        let p = [0, 1, 2, 3, 4, 11, 12].map(|qlen| bred.p(Flow { qlen, gap: 0 }));
        let [zero, p1, p2, one] = [0.0, 0.02, 0.1, 1.0].map(ratio);
        assert_eq!(p, [zero, zero, p1, p1, p2, p2, one]);
    }

    #[test]
    fn a_flow_is_spared_after_a_loss_for_as_many_packets_as_its_threshold() {
        let bred = bred(|_| {});
        // l1 = 2, l2 = 4: p1 from the third packet on, p2 from the fifth on, no exemption at W_m = 12.
        for (qlen, gap, p) in [(3, 2, 0.0), (3, 3, 0.02), (5, 4, 0.0), (5, 5, 0.1), (12, 0, 1.0)] {
            assert_eq!(bred.p(Flow { qlen, gap }), ratio(p), "{qlen} held, {gap} since the last loss");
        }
    }

    #[test]
    fn a_flow_holds_no_more_than_the_maximum_and_is_forgotten_with_its_last_packet() {
        let mut queue =
            Buffer::new(Fifo::new(), bred(|params| (params.p1, params.p2) = (ratio(0.0), ratio(1e-9))));
        let mut log = Log::default();
        for id in 0..14 {
            queue.enqueue(Time::ZERO, packet(id, 3, 500), &mut log);
        }
        // The limit is 125 kB, the flow's maximum 12 packets.
        let dropped: Vec<_> = log.dropped.iter().map(|&(_, id, reason)| (id, reason)).collect();
        assert_eq!(dropped, [(12, DropReason::Policy), (13, DropReason::Policy)]);
        let flow = |queue: &Buffer<Fifo<SimplePacket>, Bred>| queue.policy().flows[3];
        assert_eq!((flow(&queue).qlen, flow(&queue).gap), (12, 0));
        queue.dequeue(Time::ZERO, &mut log);
        queue.enqueue(Time::ZERO, packet(14, 3, 500), &mut log);
        assert_eq!((flow(&queue).qlen, flow(&queue).gap), (12, 1));
        while queue.dequeue(Time::ZERO, &mut log).is_some() {}
        assert_eq!((flow(&queue).qlen, flow(&queue).gap), (0, 0));
    }

    #[test]
    fn arrivals_are_dropped_as_often_as_the_staircase_says() {
        for (qlen, p) in [(2, 0.02), (4, 0.1)] {
            let mut bred = bred(|params| params.gap = false);
            let drops = (0..20_000).filter(|_| {
                *bred.flow(FlowId(0)) = Flow { qlen, gap: 0 };
                bred.admit(Time::ZERO, &mut packet(0, 0, 500), Backlog::EMPTY)
                    == Admission::Drop(DropReason::Early)
            });
            let share = drops.count() as f64 / 20_000.0;
            let band = 4.0 * (p * (1.0 - p) / 20_000.0_f64).sqrt();
            assert!((share - p).abs() < band, "{qlen} held: {share} against {p} ± {band}");
        }
    }
}
