//! DualPI2: two queues with coupled controllers, a shallow one for senders that respond to each mark in
//! proportion (L4S), and a classic one with the square of the probability.
//!
//! De Schepper, Briscoe, White, RFC 9332: the pseudo-code of appendix A.1 with the edge cases of A.2 and, as A.2 recommends, weighted
//! round robin between the two queues.
//!
//! Readings, where the RFC leaves room:
//! - There is no timer: the next call first runs the updates that were due, each with the delays at its time,
//!   and at most [`MAX_UPDATES_PER_CALL`] of them; further updates are skipped.
//! - The ramp marks a packet of the L queue only if another waits behind it there (`Th_len` of one packet).
//! - The round robin counts bytes while both queues hold packets, as A.1 says of the Linux implementation,
//!   and L is first again when the link is idle.
//! - A flow that sends both kinds has packets in both queues, and they may overtake each other: the
//!   identifier belongs to the packet (section 2.3), not to the flow.
//!
//! Deviations:
//! - The last packet of both queues is sent where the RFC drops it: the link must not become idle.
//! - In overload `recur` gets p_CL as a probability, at most 1. Both calls share a count, and an excess above
//!   1 would turn marks into drops.
//! - At most [`MAX_DROPS_PER_DEQUEUE`] drops in one call, so that a call has a bound; then a packet is sent.
//!
//! Cost: O(1) per packet plus the drops and the updates; no state per flow. Parameters: [`ENTRY`].

use alloc::collections::VecDeque;

use super::discipline::Discipline;
use crate::aqm::l4s::Ramp;
use crate::aqm::per_queue::MAX_DROPS_PER_DEQUEUE;
use crate::aqm::pie::MAX_UPDATES_PER_CALL;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, LIMIT, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::schedule::Queued;
use crate::units::{Rate, Ratio, Span, Time};

/// DualPI2 in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "dualpi2",
    role: Role::System,
    summary: "Two coupled queues: shallow for L4S senders, ECT(1), and classic for all others.",
    reference: "RFC 9332",
    cost: "O(1) per packet, no state per flow",
    params: DualPi2Params::PARAMS,
    traits: Traits {
        limits: "It does not divide among flows: a flood of ECT(1) leaves the others 0.03 of their due, and \
            DCTCP, whose ECT(0) selects the classic queue, gets up to 4.2 times its due. Below 12 Mb/s two \
            Prague flows get unequal shares.",
        ..Traits::NONE
    },
};

/// The sum of the weights of the two queues. Chosen: 2^20, so that a packet's size times it is far below 2^63.
const WEIGHTS: u32 = 1 << 20;

params! {
    /// Parameters of [`DualPi2`].
    pub struct DualPi2Params {
        limit: Option<BufferSize> = LIMIT,
        /// Classic queueing delay that is aimed at.
        target: Span = Param::of("15ms", "RFC 9332 A.1").symbol("target"),
        /// Worst round trip expected, which gives the controller's period and its gains.
        rtt_max: Span = Param::of("100ms", "RFC 9332 A.1").symbol("RTT_max"),
        /// Coupling: L4S packets are marked with this many times the base probability.
        k: f64 = Param::of("2", "RFC 9332 A.1").symbol("k"),
        /// Queueing delay of an L4S packet from which it may be marked.
        min_th: Span = Param::of("800us", "RFC 9332 A.1").symbol("minTh"),
        /// By how much more delay the marking probability rises to 1; 0 is a step.
        range: Span = Param::of("400us", "RFC 9332 A.1").symbol("range"),
        /// Part of the link that the classic queue has at least while both queues hold packets.
        classic_weight: Ratio = Param::of("6.25%", "RFC 9332 A.2: 1/16"),
    }
    check: |params: &Self, _| params.check()
}

impl DualPi2Params {
    fn check(&self) -> Result<(), ParamError> {
        require(self.target > Span::ZERO, "target", "it must be above zero; write for example \"15ms\"")?;
        let message = "it must be above zero; write for example \"100ms\"";
        require(self.rtt_max >= Span::from_nanos(3), "rtt_max", message)?;
        require(self.k > 0.0, "k", "it must be above zero; write for example 2")?;
        let message = "it must be above 0 and below 100 %; write for example \"6.25%\"";
        let classic = self.classic_weight.get();
        require(classic > 0.0 && classic < 1.0, "classic_weight", message)
    }
}

/// Constants derived from the parameters.
#[derive(Clone, Copy, Debug)]
struct Constants {
    tupdate: Span,
    /// Integral gain, in Hz.
    alpha: f64,
    /// Proportional gain, in Hz.
    beta: f64,
    p_cmax: f64,
    /// The credit that a byte of the L queue earns for the C queue, and that a byte of the C queue costs.
    weights: (i64, i64),
}

impl Constants {
    // RFC 9332 appendix A.1, `dualpi2_params_init`
    fn of(params: &DualPi2Params) -> Self {
        let tupdate = params.target.min(params.rtt_max.div(3));
        let rtt_max = params.rtt_max.as_secs_f64();
        Self {
            tupdate,
            alpha: 0.1 * tupdate.as_secs_f64() / (rtt_max * rtt_max),
            beta: 0.3 / rtt_max,
            p_cmax: (1.0 / (params.k * params.k)).min(1.0),
            weights: weights(params.classic_weight),
        }
    }
}

/// The weights of C and L in whole numbers.
fn weights(classic: Ratio) -> (i64, i64) {
    let c = ((classic.get() * f64::from(WEIGHTS)) as i64).clamp(1, i64::from(WEIGHTS) - 1);
    (c, i64::from(WEIGHTS) - c)
}

/// One of the two queues.
#[derive(Clone, Debug)]
struct Lane<P> {
    queue: VecDeque<Queued<P>>,
    /// The sum of `recur`: a signal is due when it exceeds 1.
    count: f64,
}

impl<P> Lane<P> {
    const fn new() -> Self {
        Self { queue: VecDeque::new(), count: 0.0 }
    }

    // RFC 9332 appendix A.1, `recur`
    fn recur(&mut self, likelihood: f64) -> bool {
        self.count += likelihood;
        let is_due = self.count > 1.0;
        if is_due {
            self.count -= 1.0;
        }
        is_due
    }

    /// The sojourn time of the head.
    fn time(&self, now: Time) -> Span {
        self.queue.front().map_or(Span::ZERO, |head| now.since(head.arrived))
    }
}

/// The two queues and the controller, with the names of RFC 9332 appendix A.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    params: DualPi2Params,
    constants: Constants,
    limit: LinkLimit,
    lq: Lane<P>,
    cq: Lane<P>,
    backlog: Backlog,
    /// The credit of the C queue, in bytes times [`WEIGHTS`].
    credit: i64,
    /// The base probability, p'.
    p: f64,
    prevq: Span,
    next_update: Option<Time>,
}

/// The fate of a packet that was taken from its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Send,
    Mark,
    Drop,
}

impl<P: Packet> DualPi2<P> {
    /// Two empty queues.
    #[must_use]
    pub fn new(params: &DualPi2Params, link_rate: Rate) -> Self {
        Self {
            constants: Constants::of(params),
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            lq: Lane::new(),
            cq: Lane::new(),
            backlog: Backlog::EMPTY,
            credit: 0,
            p: 0.0,
            prevq: Span::ZERO,
            next_update: None,
        }
    }

    /// Whether the L queue is served next (RFC 9332 appendix A.2: weighted round robin).
    fn is_l_next(&self) -> bool {
        !self.lq.queue.is_empty() && (self.cq.queue.is_empty() || self.credit <= 0)
    }

    fn pop(&mut self) -> Option<(Queued<P>, bool)> {
        let is_l = self.is_l_next();
        let contends = !self.lq.queue.is_empty() && !self.cq.queue.is_empty();
        let lane = if is_l { &mut self.lq } else { &mut self.cq };
        let queued = lane.queue.pop_front()?;
        self.backlog.remove(&queued.packet);
        let (earned, taken) = self.constants.weights;
        let size = queued.packet.size().get() as i64;
        if self.backlog.is_empty() {
            self.credit = 0;
        } else if contends {
            self.credit += if is_l { size * earned } else { -size * taken };
        }
        Some((queued, is_l))
    }

    /// Runs the updates that were due until `now`. Cold: needed once in a period, not for each packet.
    #[cold]
    #[inline(never)]
    fn update(&mut self, now: Time) {
        let tupdate = self.constants.tupdate;
        let mut due = self.next_update.unwrap_or(now + tupdate);
        for _ in 0..MAX_UPDATES_PER_CALL {
            // An empty queue at p' = 0 does not change.
            let is_settled = self.backlog.is_empty() && self.p == 0.0 && self.prevq == Span::ZERO;
            if due > now || is_settled {
                break;
            }
            self.dualpi2_update(due);
            due += tupdate;
        }
        if due <= now {
            due += tupdate * (now.since(due).as_nanos() / tupdate.as_nanos() + 1);
        }
        self.next_update = Some(due);
    }

    // RFC 9332 appendix A.2, `dualpi2_update`
    fn dualpi2_update(&mut self, now: Time) {
        let curq = self.cq.time(now).max(self.lq.time(now));
        let [curq_s, prevq_s, target] = [curq, self.prevq, self.params.target].map(Span::as_secs_f64);
        let Constants { alpha, beta, .. } = self.constants;
        self.p = (self.p + alpha * (curq_s - target) + beta * (curq_s - prevq_s)).clamp(0.0, 1.0);
        self.prevq = curq;
    }

    /// The fate of an L packet that has waited for `sojourn` (RFC 9332 appendix A.2, `dualpi2_dequeue`).
    fn of_l(&mut self, sojourn: Span) -> Fate {
        let (p_c, p_cl) = (self.p * self.p, self.params.k * self.p);
        if p_cl < 1.0 {
            // The L queue's own ramp, `laqm`.
            let DualPi2Params { min_th, range, .. } = self.params;
            let ramp = Ramp { min_th, range };
            let native = if self.lq.queue.is_empty() { 0.0 } else { ramp.at(sojourn) };
            return if self.lq.recur(p_cl.max(native)) { Fate::Mark } else { Fate::Send };
        }
        // Overload: drops as in the C queue, and marks on all that remain.
        if self.lq.recur(p_c) {
            return Fate::Drop;
        }
        // At most 1: an excess that a mark does not use up would add to the drops.
        if self.lq.recur(p_cl.min(1.0)) { Fate::Mark } else { Fate::Send }
    }

    /// The fate of a C packet (RFC 9332 appendix A.2, `dualpi2_dequeue`).
    fn of_c(&mut self, packet: &P) -> Fate {
        let p_c = self.p * self.p;
        if !self.cq.recur(p_c) {
            return Fate::Send;
        }
        let drops = !packet.ecn().is_capable() || p_c >= self.constants.p_cmax;
        if drops { Fate::Drop } else { Fate::Mark }
    }
}

impl<P: Packet> Queue<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        if self.next_update.is_none_or(|due| due <= now) {
            self.update(now);
        }
        if !self.limit.get().admits(&packet, self.backlog) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        self.backlog.add(&packet);
        let lane = if packet.ecn().is_l4s() { &mut self.lq } else { &mut self.cq };
        lane.queue.push_back(Queued { packet, arrived: now });
    }

    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        if self.next_update.is_some_and(|due| due <= now) {
            self.update(now);
        }
        let mut drops = 0;
        loop {
            let (mut queued, is_l) = self.pop()?;
            let sojourn = queued.sojourn(now);
            let fate = if is_l { self.of_l(sojourn) } else { self.of_c(&queued.packet) };
            match fate {
                Fate::Drop if drops < MAX_DROPS_PER_DEQUEUE && !self.backlog.is_empty() => {
                    drops += 1;
                    sink.dropped(now, queued.packet, DropReason::Early);
                    continue;
                }
                Fate::Mark => {
                    queued.packet.set_ce();
                    sink.marked(now, &queued.packet);
                }
                Fate::Send | Fate::Drop => {}
            }
            return Some(queued.packet);
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for DualPi2<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.pop().map(|(queued, _)| queued.packet)
    }

    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let is_meant = |queued: &Queued<P>| queued.packet.flow().slot() == flow.slot();
        let take =
            |lane: &mut Lane<P>| lane.queue.iter().position(is_meant).and_then(|at| lane.queue.remove(at));
        let queued = take(&mut self.lq).or_else(|| take(&mut self.cq))?;
        self.backlog.remove(&queued.packet);
        Some(queued.packet)
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

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("drop_prob", self.p * self.p);
    }

    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, SimplePacket};
    use crate::param::EntryArgs;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    fn dualpi2() -> DualPi2<SimplePacket> {
        let mut params = DualPi2Params::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(100_000)).into());
        DualPi2::new(&params, Rate::from_mbit(10))
    }

    fn of(id: u32, ecn: Ecn) -> SimplePacket {
        SimplePacket { ecn, ..packet(id, u32::from(ecn == Ecn::Ect1), 1_000) }
    }

    /// Holds p' at `p` for 2,000 packets of this kind. Returns the numbers of marked and dropped packets.
    fn signals(p: f64, ecn: Ecn) -> (usize, usize) {
        let mut queue = dualpi2();
        let mut log = Log::default();
        for id in 0..2_001 {
            queue.enqueue(Time::ZERO, of(id, ecn), &mut log);
        }
        queue.p = p;
        while queue.backlog().packets.get() > 1 {
            queue.dequeue(Time::ZERO, &mut log);
        }
        (log.marked.len(), log.dropped.len())
    }

    fn about(found: usize, expected: f64) -> bool {
        (found as f64 - expected).abs() <= 2.0
    }

    #[test]
    fn the_constants_are_those_of_the_appendix() {
        let constants = dualpi2().constants;
        // min(15, 100/3) = 15 ms; 0.1 × 0.015 / 0.1² = 0.15 Hz; 0.3 / 0.1 = 3 Hz; 1 / 2².
        assert_eq!(constants.tupdate, Span::from_millis(15));
        assert!((constants.alpha - 0.15).abs() < 1e-12 && (constants.beta - 3.0).abs() < 1e-12);
        assert_eq!(constants.p_cmax, 0.25);
    }

    #[test]
    fn an_update_is_the_appendix_s_equation_and_idle_periods_decay() {
        let mut queue = dualpi2();
        queue.enqueue(Time::from_millis(5), of(0, Ecn::NotEct), &mut Log::default());
        (queue.p, queue.prevq) = (0.2, Span::from_millis(20));
        // The head has waited 25 ms: 0.15 (0.025 - 0.015) + 3 (0.025 - 0.020) = 0.0015 + .015.
        queue.dualpi2_update(Time::from_millis(30));
        assert!((queue.p - 0.2165).abs() < 1e-12, "{}", queue.p);
        queue.dequeue(Time::from_millis(30), &mut Log::default());
        (queue.p, queue.prevq) = (0.2, Span::ZERO);
        queue.next_update = Some(Time::from_millis(45));
        // 45, 60, 75 ms: -0.15 × 0.015 = -0.00225 each.
        queue.update(Time::from_millis(80));
        assert!((queue.p - (0.2 - 3.0 * 0.00225)).abs() < 1e-12, "{}", queue.p);
        queue.update(Time::from_secs(86_400));
        assert_eq!(queue.p, 0.0);
    }

    #[test]
    fn classic_packets_get_the_square_and_l4s_packets_twice_the_base() {
        // p' = 0.1: 0.01 of 2,000 classic, 0.2 of 2,000 L4S.
        let (marked, dropped) = signals(0.1, Ecn::NotEct);
        assert!(marked == 0 && about(dropped, 20.0), "{marked} {dropped}");
        let (marked, dropped) = signals(0.1, Ecn::Ect0);
        assert!(dropped == 0 && about(marked, 20.0), "{marked} {dropped}");
        let (marked, dropped) = signals(0.1, Ecn::Ect1);
        assert!(dropped == 0 && about(marked, 400.0), "{marked} {dropped}");
        assert_eq!([Ecn::NotEct, Ecn::Ect0, Ecn::Ect1].map(|ecn| signals(0.0, ecn)), [(0, 0); 3]);
    }

    #[test]
    fn overload_drops_what_is_capable_too() {
        // p' = 0.6: p_C = 0.36 is above 0.25, and k p' above 1. L4S packets that are not dropped are marked.
        let (marked, dropped) = signals(0.6, Ecn::Ect0);
        assert!(marked == 0 && about(dropped, 720.0), "{marked} {dropped}");
        let (marked, dropped) = signals(0.6, Ecn::Ect1);
        assert!(about(dropped, 720.0) && marked + dropped >= 1_990, "{marked} {dropped}");
    }

    #[test]
    fn the_last_l4s_packet_is_not_marked_by_the_ramp() {
        let mut queue = dualpi2();
        let mut log = Log::default();
        for id in 0..5 {
            queue.enqueue(Time::ZERO, of(id, Ecn::Ect1), &mut log);
        }
        for us in [500, 799, 1_200, 1_500, 2_000] {
            queue.dequeue(Time::ZERO + Span::from_micros(us), &mut log);
        }
        // The first packet above the ramp raises the count to 1, which is not above 1; the second is marked.
        let ids: std::vec::Vec<u32> = log.marked.iter().map(|&(_, id)| id).collect();
        assert_eq!(ids, [3]);
    }

    /// The departures, among the next `departures`, that are of the C queue while both queues hold packets.
    fn classic_turns(queue: &mut DualPi2<SimplePacket>, departures: u32) -> std::vec::Vec<u32> {
        let mut log = Log::default();
        for id in 0..departures {
            queue.enqueue(Time::ZERO, of(id, Ecn::NotEct), &mut log);
            queue.enqueue(Time::ZERO, of(id, Ecn::Ect1), &mut log);
        }
        let flows = (0..departures).map(|_| queue.dequeue(Time::ZERO, &mut log).unwrap().flow.0);
        flows.enumerate().filter(|&(_, flow)| flow == 0).map(|(at, _)| at as u32).collect()
    }

    #[test]
    fn the_classic_queue_has_a_sixteenth_of_the_turns() {
        assert_eq!(classic_turns(&mut dualpi2(), 64), [1, 17, 33, 49]);
        let mut half = dualpi2();
        half.constants.weights = weights(Ratio::new(0.5).unwrap());
        assert_eq!(classic_turns(&mut half, 6), [1, 3, 5]);
    }

    #[test]
    fn an_l4s_packet_that_comes_alone_waits_for_no_more_than_one_classic_packet() {
        let mut queue = dualpi2();
        let mut log = Log::default();
        for id in 0..400 {
            queue.enqueue(Time::ZERO, of(id, Ecn::NotEct), &mut log);
        }
        for id in 1_000..1_100 {
            queue.enqueue(Time::ZERO, of(id, Ecn::Ect1), &mut log);
            let sent: std::vec::Vec<u32> =
                (0..2).map(|_| queue.dequeue(Time::ZERO, &mut log).unwrap().id).collect();
            assert!(sent.contains(&id), "{id}: {sent:?}");
        }
    }

    #[test]
    fn a_standing_classic_queue_is_brought_down_and_l4s_packets_hardly_wait() {
        // A link of a packet per millisecond: 0.9 classic packets a millisecond and, each fifth, an L4S
        // packet, whose wait counts once the controller has settled. Until then the classic queue exceeds the
        // shift and shares the delay.
        let run = |gain: f64| {
            let mut queue = dualpi2();
            queue.constants.alpha *= gain;
            queue.constants.beta *= gain;
            let mut log = Log::default();
            let (mut longest, mut id) = (Span::ZERO, 0);
            for ms in 0..3_000u64 {
                let now = Time::from_millis(ms);
                if ms % 10 != 9 {
                    queue.enqueue(now, of(id, Ecn::NotEct), &mut log);
                }
                if ms % 5 == 0 {
                    queue.enqueue(now, of(100_000 + ms as u32, Ecn::Ect1), &mut log);
                }
                id += 1;
                let sent = queue.dequeue(now, &mut log);
                if let Some(sent) = sent.filter(|sent| sent.flow.0 == 1 && ms >= 1_000) {
                    longest = longest.max(now.since(Time::from_millis(u64::from(sent.id) - 100_000)));
                }
            }
            (queue.backlog().packets.get(), longest)
        };
        let ((on, l_on), (off, _)) = (run(1.0), run(0.0));
        assert!(on < 60 && off > 250, "{on} {off}");
        assert!(l_on <= Span::from_millis(2), "{l_on:?}");
    }
}
