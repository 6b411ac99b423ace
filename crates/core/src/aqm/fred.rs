//! FRED, flow random early drop: RED that drops by the backlog of a flow, and remembers unresponsive flows.
//!
//! Lin, Morris, "Dynamics of random early detection", SIGCOMM 1997, the pseudo-code of FRED. A flow may
//! always hold `min_q` packets, or the average per flow if that is more, before RED's ramp applies to it. It
//! may never hold `max_q` = `min_th`; a flow that tried to more than once (a strike) is limited to the
//! average.
//!
//! Readings, where the outline of the algorithm in later literature leaves room:
//! - Idle time is the link's, as in RED (`average.rs`), rather than from the last departure; the arrival that
//!   ends it is an observation too.
//! - Departures update the average with the remaining queue.
//! - Every arrival between the thresholds is counted, including arrivals of flows that may not be dropped; a
//!   drop of a flow that holds too much does not restart the count.
//! - `many_flows`: while the average is above `max_th`, two packets a flow are admitted; the plain form
//!   admits none. The paper says max_q = 2 there; with the drop of all arrivals that would have no effect.
//! - The limit applies last: a packet that passes everything else and finds no room is lost as overflow.
//! - The paper's min_th is the smaller of a quarter of the buffer and the packets of a round trip; here it is
//!   a parameter.
//!
//! Cost: O(1) per packet, 8 bytes per flow; the state of a flow is erased with its last packet. Parameters:
//! [`ENTRY`].

use alloc::vec::Vec;

use super::average::AverageQueue;
use super::detection::{MEAN_PKTSIZE, W_Q, check_average};
use super::drop_curve::{DropCurve, check_thresholds, spread};
use super::{Admission, BufferPolicy};
use crate::limit::{BufferSize, Limit, LinkLimit, Threshold};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, GoesBy, Inside, LIMIT, Param, ParamError, Role, Shares, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, MeanPackets, Packets, Rate, Ratio, Time};

/// FRED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "fred",
    role: Role::Policy,
    summary: "Flow random early drop: RED with per-flow counts; drops more of unresponsive flows.",
    reference: "Lin, Morris 1997",
    cost: "O(1) per packet, 8 bytes per flow",
    params: FredParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        shares: Shares::Approximate,
        goes_by: Some(GoesBy::Allowance),
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Fred`].
    pub struct FredParams {
        limit: Option<BufferSize> = LIMIT,
        /// Average below which RED drops nothing; also max_q, the most that a flow may hold.
        min_th: MeanPackets = Param::of("12p", "1997 paper: a quarter of the buffer").symbol("min_th"),
        /// Average from which everything is dropped.
        max_th: MeanPackets = Param::of("24p", "1997 paper: twice `min_th`").symbol("max_th"),
        /// Probability at `max_th`.
        max_p: Ratio = Param::of("0.02", "1997 paper").symbol("max_p"),
        w_q: Ratio = W_Q,
        /// What a flow may hold before it can be dropped at random.
        min_q: Packets = Param::of("2p", "1997 paper, for small buffers; 4p for large ones").symbol("min_q"),
        /// Admit two packets a flow when the average is above `max_th`.
        many_flows: bool = Param::of("false", "chosen: the paper's plain form"),
        mean_pktsize: Bytes = MEAN_PKTSIZE,
    }
    check: |params: &Self, _| params.check()
}

impl FredParams {
    fn check(&self) -> Result<(), ParamError> {
        let [min_th, max_th] = [self.min_th, self.max_th].map(Threshold::Packets);
        check_thresholds(("min_th", min_th), ("max_th", max_th), self.limit)?;
        check_average(self.w_q, self.mean_pktsize)
    }
}

/// The state of a flow with packets in the buffer.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// Packets in the buffer.
    qlen: u32,
    /// The number of times that it would have held too much.
    strike: u32,
}

/// FRED's state, with the paper's names.
#[derive(Clone, Debug)]
pub struct Fred {
    params: FredParams,
    limit: LinkLimit,
    curve: DropCurve,
    average: AverageQueue,
    /// Arrivals between the thresholds since the last random drop; -1 without congestion.
    count: f64,
    flows: Vec<Flow>,
    /// Flows with packets in the buffer.
    n_active: u32,
    random: Stream,
}

impl Fred {
    /// FRED for a link of `link_rate`, with an average of 0.
    #[must_use]
    pub fn new(params: &FredParams, link_rate: Rate, random: Stream) -> Self {
        let [min_th, max_th] = [params.min_th, params.max_th].map(MeanPackets::get);
        Self {
            curve: DropCurve { min_th, max_th, max_p: params.max_p, gentle: false },
            average: AverageQueue::new(params.w_q, params.mean_pktsize, link_rate),
            count: -1.0,
            flows: Vec::new(),
            n_active: 0,
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            random,
        }
    }

    /// avgcq: the average queue of a flow, at least one packet.
    fn avgcq(&self) -> f64 {
        (self.average.get() / f64::from(self.n_active.max(1))).max(1.0)
    }

    fn flow(&mut self, flow: FlowId) -> &mut Flow {
        if flow.slot() >= self.flows.len() {
            self.flows.resize(flow.slot() + 1, Flow::default());
        }
        &mut self.flows[flow.slot()]
    }

    /// Notes that a packet of `flow` left the buffer.
    fn left(&mut self, flow: FlowId) {
        let flow = self.flow(flow);
        flow.qlen -= 1;
        if flow.qlen == 0 {
            *flow = Flow::default();
            self.n_active -= 1;
        }
    }

    /// The reason why a packet of `flow` is dropped, if it is.
    fn judge(&mut self, flow: FlowId) -> Option<DropReason> {
        let (avg, avgcq, DropCurve { min_th, max_th, .. }) = (self.average.get(), self.avgcq(), self.curve);
        let many_flows = self.params.many_flows;
        let congested = avg >= max_th;
        let max_q = if many_flows && congested { 2.0 } else { min_th };
        let flow = self.flow(flow);
        let qlen = f64::from(flow.qlen);
        // Unresponsive flows.
        if qlen >= max_q || (congested && qlen > 2.0 * avgcq) || (qlen >= avgcq && flow.strike > 1) {
            flow.strike = flow.strike.saturating_add(1);
            return Some(DropReason::Policy);
        }
        if congested {
            self.count = 0.0;
            return (!many_flows).then_some(DropReason::Forced);
        }
        if avg < min_th {
            self.count = -1.0;
            return None;
        }
        self.count += 1.0;
        // Only robust flows are dropped at random.
        if qlen < avgcq.max(self.params.min_q.get() as f64) {
            return None;
        }
        let p_a = spread(self.curve.p_b(avg), self.count, false);
        if !self.random.chance(p_a) {
            return None;
        }
        self.count = 0.0;
        Some(DropReason::Early)
    }
}

impl<P: Packet> BufferPolicy<P> for Fred {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.average.update(now, backlog.packets.get() as f64);
        if let Some(reason) = self.judge(packet.flow()) {
            return Admission::Drop(reason);
        }
        if !self.limit.get().admits(packet, backlog) {
            return Admission::Drop(DropReason::Overflow);
        }
        let flow = self.flow(packet.flow());
        flow.qlen += 1;
        self.n_active += u32::from(flow.qlen == 1);
        Admission::Accept
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = self.average.pop(now, scheduler)?;
        self.average.sample(scheduler.backlog().packets.get() as f64);
        self.left(queued.packet.flow());
        Some(queued)
    }

    fn taken_out(&mut self, packet: &P) {
        self.left(packet.flow());
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("avg", self.average.get());
        show("active_flows", f64::from(self.n_active));
        show("avgcq", self.avgcq());
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.average.set_link_rate(rate);
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

    fn params() -> FredParams {
        // The average equals the queue.
        FredParams { w_q: Ratio::ONE, ..FredParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap() }
    }

    fn fred(params: &FredParams) -> Fred {
        Fred::new(params, Rate::from_mbit(4), Stream::new(1, "fred"))
    }

    type Filled = Buffer<Fifo<SimplePacket>, Fred>;

    /// A buffer that got packets of 500 bytes of these flows at once, with the flows and reasons of the
    /// drops.
    fn filled(params: &FredParams, flows: &[u32]) -> (Filled, Vec<(u32, DropReason)>) {
        let mut queue = Buffer::new(Fifo::new(), fred(params));
        let mut log = Log::default();
        for (id, &flow) in (0..).zip(flows) {
            queue.enqueue(Time::ZERO, packet(id, flow, 500), &mut log);
        }
        (queue, log.dropped.into_iter().map(|(_, id, reason)| (id, reason)).collect())
    }

    #[test]
    fn no_flow_holds_more_than_max_q_and_strikes_are_kept_until_its_last_packet_leaves() {
        // Fourteen packets of flow 0: two are above max_q = 12, two strikes.
        let (mut queue, dropped) = filled(&params(), &[0; 14]);
        assert_eq!(dropped, [(12, DropReason::Policy), (13, DropReason::Policy)]);
        assert_eq!(queue.policy().flows[0].strike, 2);
        let mut log = Log::default();
        // Flow 1 joins and six packets leave: q = 13 - 6 = 7, avgcq = 7/2 = 3.5; flow 0 still holds 6.
        queue.enqueue(Time::ZERO, packet(14, 1, 500), &mut log);
        for _ in 0..6 {
            queue.dequeue(Time::ZERO, &mut log);
        }
        queue.enqueue(Time::ZERO, packet(15, 0, 500), &mut log);
        assert_eq!(log.dropped, [(Time::ZERO, 15, DropReason::Policy)]);
        assert_eq!(queue.policy().flows[0].strike, 3);
        while queue.dequeue(Time::ZERO, &mut log).is_some() {}
        assert_eq!((queue.policy().flows[0].strike, queue.policy().n_active), (0, 0));
    }

    #[test]
    fn fragile_flows_are_spared_on_the_ramp_and_robust_ones_are_not() {
        // Certain drops on the ramp: max_p = 1, w_q = 1, so p_b = (18 - 12)/(24 - 12) = 0.5 at 18 packets;
        // spread with count 1 it is 0.5/(1 - 0.5) = 1.
        let params = FredParams { max_p: Ratio::ONE, min_q: Packets::new(4), ..params() };
        let mut fred = fred(&params);
        fred.average.update(Time::ZERO, 18.0);
        // Six active flows: avgcq = 3, and min_q = 4 applies.
        fred.n_active = 6;
        fred.flows = [3, 4].map(|qlen| Flow { qlen, strike: 0 }).to_vec();
        assert_eq!(fred.judge(FlowId(0)), None);
        assert_eq!(fred.count, 0.0, "spared arrivals are counted");
        assert_eq!(fred.judge(FlowId(1)), Some(DropReason::Early));
        assert_eq!(fred.count, 0.0, "a random drop restarts the count");
        // Two active flows: avgcq = 9, and four packets are few.
        fred.n_active = 2;
        assert_eq!(fred.judge(FlowId(1)), None);
    }

    #[test]
    fn above_the_maximum_everything_is_dropped_or_two_packets_a_flow_are_admitted() {
        for (many_flows, expected) in [
            (false, [Some(DropReason::Forced), Some(DropReason::Forced), Some(DropReason::Policy)]),
            (true, [None, Some(DropReason::Policy), Some(DropReason::Policy)]),
        ] {
            let mut fred = fred(&FredParams { many_flows, ..params() });
            // Twenty active flows, avgcq = 24/20 = 1.2; flow 2 holds more than twice that.
            fred.average.update(Time::ZERO, 24.0);
            fred.n_active = 20;
            fred.flows = [1, 2, 3].map(|qlen| Flow { qlen, strike: 0 }).to_vec();
            let verdicts = [0, 1, 2].map(|flow| fred.judge(FlowId(flow)));
            assert_eq!(verdicts, expected, "many_flows {many_flows}");
        }
    }

    #[test]
    fn departures_move_the_average_too() {
        let params = FredParams { w_q: Ratio::clamped(0.5), ..params() };
        let (mut queue, _) = filled(&params, &[0, 1, 2, 3]);
        // Arrivals saw 0, 1, 2, 3: 0, 0.5, 1.25, 2.125. The departure leaves 3: 0.5·2.125 + 0.5·3.
        queue.dequeue(Time::ZERO, &mut Log::default());
        assert_eq!(queue.policy().average.get(), 2.5625);
        // Three flows are left: avgcq = max(1, 2.5625/3).
        let mut shown = Vec::new();
        BufferPolicy::<SimplePacket>::statistics(queue.policy(), &mut |name, value| {
            shown.push((name, value));
        });
        assert_eq!(shown, [("avg", 2.5625), ("active_flows", 3.0), ("avgcq", 1.0)]);
    }

    #[test]
    fn robust_flows_are_dropped_as_often_as_the_ramp_says() {
        // At 18 packets p_b = 0.02·0.5 = 0.01; each packet is the first after a drop: 0.01/(1 - 0.01).
        let mut fred = fred(&params());
        fred.average.update(Time::ZERO, 18.0);
        (fred.n_active, fred.flows) = (9, [Flow { qlen: 5, strike: 0 }].to_vec());
        let drops = (0..40_000).filter(|_| {
            fred.count = 0.0;
            fred.judge(FlowId(0)) == Some(DropReason::Early)
        });
        let (p, share) = (0.01 / 0.99, drops.count() as f64 / 40_000.0);
        let band = 4.0 * (p * (1.0 - p) / 40_000.0_f64).sqrt();
        assert!((share - p).abs() < band, "{share} against {p} ± {band}");
    }

    #[test]
    fn a_packet_that_finds_no_room_is_no_strike() {
        let params = FredParams { limit: Some(Limit::Packets(Packets::new(2)).into()), ..params() };
        let (queue, dropped) = filled(&params, &[0, 1, 0]);
        assert_eq!(dropped, [(2, DropReason::Overflow)]);
        assert_eq!(queue.policy().flows[0].strike, 0);
    }
}
