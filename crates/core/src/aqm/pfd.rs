//! PFD, probabilistic fair drop: above a threshold of the buffer, an arrival makes the flow that holds most
//! of it, relative to the flow's own threshold, lose its front packet with a fixed probability; above the
//! limit with certainty.
//!
//! Srinivasan, Vaidyanathan, Baras, "Fair resource allocation in hybrid network gateways with per-flow
//! queueing", section 4 and figure 3; thresholds by round-trip time, "buffer dimensioning": section 5.3.
//!
//! Readings, where the paper leaves room or errs (thresholds: [`occupancy`](super::occupancy)):
//! - Figure 3 subtracts a pushed-out packet from q_size but not from q_i, which would make one flow look
//!   longest forever. Here both are reduced.
//! - The arrival joins first and may itself be the victim, so the buffer never holds more than B afterwards.
//! - In bytes one victim may not make enough room: victims are dropped until q_size <= B. The early drop is
//!   one packet.
//! - Thresholds follow the weights of flows, as LQD's do. Figure 3 has equal thresholds; `preset = "paper"`
//!   and `thresholds = "equal"` keep them.
//! - With equal thresholds the largest q_i/b_i is the longest queue; PFD is then LQD with early drops, and
//!   with p = 0 or thresh = 1 it is LQD.
//! - The text says "the drop probability for a queue is proportional to its normalized buffer occupancy",
//!   which figure 3 does not do: `victim = "proportional"` does.
//! - LQD's rule, the largest q_i - b_i, is `victim = "difference"`: with thresholds by round-trip time
//!   q_i/b_i protects a long flow more than its threshold says.
//! - A packet larger than the whole buffer is dropped as overflow; otherwise it would empty the buffer in
//!   vain.
//!
//! Beyond the paper: round-trip times of floods do not count ([`dimensioning`](super::dimensioning)). If
//! `thresh` is not set, early drops begin at `TIME` of the link's rate, at 4 full packets on links that
//! need longer for them, and at `EACH` packets of each of n active flows, but at most at `SHARE` of the
//! buffer:
//!
//! ```text
//! thresh B = min(max(20 ms C, 6000 B, 2 n packets), 0.65 B)
//! ```
//!
//! The victim is then the flow with the largest q_i/b_i where two packets of each flow do not count. A flow of
//! weight 1 beside one of 100 holds a packet or none: with its only packet in q_i it would exceed its b_i
//! most, be the victim of nearly all drops, and TCP would time out. Where all flows hold two packets or fewer, q_i/b_i
//! decides. With equal thresholds this changes no victim. In a FIFO, each flow holds two packets more than its part of the rest.
//!
//! A share of a large buffer is a long delay. C is the rate that the discipline knows: on a link whose rate
//! varies the last one that the backend has set, which counts for the buffer too.
//!
//! The paper does not give p and thresh; `auto` adapts them (`pfd_auto.rs`). `l4s` marks L4S packets instead
//! of dropping them early, by their own delay (`pfd_l4s.rs`).
//!
//! Cost: O(1) per packet of a flow that is not among the longest, O(log flows) per packet of one that is; at
//! most 55 bytes per flow, 71 if it is configured, 88 more with thresholds by round-trip time; with
//! `victim = "proportional"` 74 and 90. Parameters: [`ENTRY`].

use super::dimensioning::{Dimensioning, RTT_OF, RttOf, refuse_idle_rtt_of};
use super::l4s::L4S;
use super::occupancy::{Choice, Occupancy, THRESHOLDS, Thresholds, Ties};
use super::pfd_auto::Controller;
use super::pfd_l4s::Marks;
use super::push_out::{Departure, PushOut, Rule};
use crate::limit::{BufferSize, LinkLimit};
use crate::packet::{Ecn, FlowId};
use crate::param::{Entry, Heeds, Inside, LIMIT, Param, Role, Shares, Traits};
use crate::queue::{Backlog, DropReason};
use crate::random::Stream;
use crate::schedule;
use crate::units::{Bytes, Rate, Ratio, Span, Time};
use crate::{choice, params};

/// PFD in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "pfd",
    role: Role::Policy,
    summary: "Probabilistic fair drop: longest queue drop that begins at random before the buffer is full.",
    reference: "Srinivasan, Vaidyanathan, Baras",
    cost: "O(log flows) per packet, mostly O(1), at most 71 bytes per flow, 90 if drawn in proportion; 88 more with thresholds by \
           round-trip time",
    params: PfdParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight, Heeds::Rtt],
        inside: Inside::Part,
        shares: Shares::Kept,
        limits: "In a FIFO it divides the buffer, not the link: put it behind a scheduler. A flow whose weight \
            gives it less than a packet of the buffer loses packets within its share: raise `limit`. One CUBIC \
            flow over 300 ms uses 0.66 of 50 Mb/s, and 0.79 with `thresh = 0.65`. \
            `thresholds = \"rtt\"` trusts the round-trip times that it is given: a flood with a long one keeps \
            more of the buffer, for 9 s. With `l4s` use `stfq` or `wf2q_plus`: behind `drr` or `rr` Prague \
            gets 1.4 of 8 Mb/s.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Pfd`].
    pub struct PfdParams {
        limit: Option<BufferSize> = LIMIT,
        /// Probability of an early drop for an arrival above `thresh`.
        p: Ratio = Param::of("0.1", "chosen: holds the delay near `thresh`; in the paper low, 0.02 shows most of its claims")
            .symbol("p")
            .in_paper("0.02"),
        /// Share of the buffer above which packets are dropped early; if not set 20 ms of the link, at least 6 kB and two packets
        /// of each active flow, at most 0.65 of the buffer.
        thresh: Option<Ratio> = Param::unset("chosen: a share of a large buffer is a long delay; in the paper conservative, as `p`")
            .symbol("thresh")
            .in_paper("0.65"),
        thresholds: Thresholds = THRESHOLDS.in_paper("equal"),
        rtt_of: RttOf = RTT_OF,
        /// Which flow loses a packet: the largest q_i/b_i, the largest q_i - b_i, or at random by q_i/b_i. In a FIFO that divides the
        /// buffer and not the link: the flow that sends most has next to nothing.
        victim: Choice = Param::of("ratio", "figure 3").symbol("argmax n_i").one_of(&["ratio", "difference", "proportional"]),
        /// Which packet of the victim: the one that would be served next, or the last.
        end: End = Param::of("front", "figure 3"),
        /// Let p and thresh follow the buffer and the traffic, from these values on.
        auto: bool = Param::of("false", "figure 3"),
        l4s: bool = L4S,
    }
    check: |params: &Self, args| refuse_idle_rtt_of(params.thresholds, args)
}

/// The waiting time at the rate of the link above which packets are dropped early. Chosen: short enough for
/// calls, several packets of each flow on links of 10 Mb/s and more.
const TIME: Span = Span::from_millis(20);
/// The lower bound: 4 full packets. TCP notices a loss at once only if three packets follow the lost one.
const LEAST: Bytes = Bytes::new(6_000);
/// The lower bound for each active flow, in packets, and the number that does not count against a flow. Chosen:
/// with one, an early drop empties the queue of a flow with a small window, which then loses its turn.
const EACH: u64 = 2;
/// The upper bound, as a share of the buffer: the value for the paper's small buffers.
const SHARE: f64 = 0.65;

choice! {
    /// The packet of the victim that is dropped.
    pub enum End {
        /// The packet that would be served next: its loss is noticed first.
        Front = "front",
        /// The last packet.
        Tail = "tail",
    }
}

/// Probabilistic fair drop.
pub type Pfd = PushOut<Early>;

/// The rule of PFD: a random drop before the buffer is full, and a certain drop when it is.
#[derive(Clone, Debug)]
pub struct Early {
    p: Ratio,
    /// The threshold that was set, or that the controller has chosen.
    thresh: Option<Ratio>,
    /// The threshold without one.
    by_time: LinkLimit,
    end: schedule::End,
    /// Whether an arrival has joined for which no early drop has been considered yet.
    arrived: bool,
    early_drops: u64,
    overflows: u64,
    controller: Option<Controller>,
    /// None if L4S packets are dropped like all others.
    marks: Option<Marks>,
    random: Stream,
}

impl Pfd {
    /// PFD for a link of `link_rate`. `rtts` are the round-trip times by flow; zero, or beyond its end:
    /// unknown.
    #[must_use]
    pub fn new(params: &PfdParams, link_rate: Rate, rtts: &[Span], random: Stream) -> Self {
        let early = Early {
            p: params.p,
            thresh: params.thresh,
            by_time: LinkLimit::of_time(None, link_rate, TIME, LEAST),
            end: match params.end {
                End::Front => schedule::End::Head,
                End::Tail => schedule::End::Tail,
            },
            arrived: false,
            early_drops: 0,
            overflows: 0,
            controller: params.auto.then(|| Controller::new(link_rate, rtts)),
            marks: params.l4s.then(Marks::default),
            random: random.clone(),
        };
        let dimensioning = Dimensioning::new(params.thresholds, params.rtt_of, rtts);
        let limit = LinkLimit::new(params.limit, link_rate);
        let spared = if params.thresh.is_none() { EACH } else { 0 };
        let occupancy = Occupancy::new(limit.get(), params.thresholds, params.victim, rtts).sparing(spared);
        Self::with(limit, occupancy.with_ties(Ties::Random, random), dimensioning, early)
    }
}

impl Early {
    /// q_size > thresh B, tested as q_size/B > thresh: the quotient is rounded as a configured thresh was.
    fn is_above(&self, occupancy: &Occupancy) -> bool {
        let held = occupancy.held();
        occupancy.fill() > self.thresh.map_or(SHARE, Ratio::get)
            || self.thresh.is_none()
                && self.by_time.get().is_exceeded_by(held)
                && held.packets.get() > EACH * occupancy.active()
    }

    /// Adapts p and thresh to the traffic, with `auto`.
    fn adjust(&mut self, now: Time, occupancy: &Occupancy) {
        let is_above = self.controller.is_some() && self.is_above(occupancy);
        let Some(controller) = &mut self.controller else { return };
        let marks = self.marks.as_ref().map_or(0, Marks::count);
        let drops = (self.early_drops + marks, self.overflows);
        if let Some((p, thresh)) = controller.adjust(now, occupancy, is_above, drops, self.p) {
            (self.p, self.thresh) = (p, Some(thresh));
        }
    }
}

impl Rule for Early {
    #[inline]
    fn arrived(&mut self, flow: FlowId, ecn: Ecn) {
        self.arrived = true;
        if let Some(marks) = &mut self.marks {
            marks.arrived(flow, ecn.is_l4s());
        }
    }

    // Figure 3
    fn reason(&mut self, now: Time, occupancy: &Occupancy, is_exceeded: bool) -> Option<DropReason> {
        self.adjust(now, occupancy);
        let arrived = core::mem::take(&mut self.arrived);
        if is_exceeded {
            self.overflows += 1;
            return Some(DropReason::PushOut);
        }
        if !arrived || !self.is_above(occupancy) {
            return None;
        }
        if let Some(marks) = &mut self.marks {
            return marks.is_due(self.p.get(), &mut self.random).then_some(DropReason::Early);
        }
        let is_early = self.random.chance(self.p.get());
        self.early_drops += u64::from(is_early);
        is_early.then_some(DropReason::Early)
    }

    #[inline]
    fn spares(&mut self, reason: DropReason, flow: FlowId, held: Backlog) -> bool {
        let Some(marks) = self.marks.as_mut().filter(|_| reason == DropReason::Early) else { return false };
        let is_dropped = marks.is_dropped(self.p.get(), flow, held);
        self.early_drops += u64::from(is_dropped);
        !is_dropped
    }

    #[inline]
    fn may_mark(&self) -> bool {
        self.marks.is_some()
    }

    fn marks(&mut self, leaving: Departure) -> bool {
        self.marks.as_mut().is_some_and(|marks| marks.marks(leaving, &mut self.random))
    }

    fn uniform(&mut self) -> f64 {
        self.random.uniform()
    }

    fn end(&self) -> schedule::End {
        self.end
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("early_drops", self.early_drops as f64);
        show("overflows", self.overflows as f64);
        if let Some(marks) = &self.marks {
            show("early_marks", marks.count() as f64);
        }
        if self.controller.is_some() {
            show("p", self.p.get());
            show("thresh", self.thresh.map_or(SHARE, Ratio::get));
        }
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.by_time.set_link_rate(rate);
        if let Some(controller) = &mut self.controller {
            controller.set_link_rate(rate);
        }
    }

    fn set_mean_rtt(&mut self, rtt: Span) {
        if let Some(controller) = &mut self.controller {
            controller.set_rtt(rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::BufferPolicy;
    use crate::buffer::Buffer;
    use crate::flow_setting::FlowSetting;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::schedule::start_time_fq::StartTimeFq;
    use crate::testing::{Log, packet};
    use crate::units::Weight;

    type Pair = Buffer<Fifo<SimplePacket>, Pfd>;

    fn pfd(limit: &str, rtts: &[Span], change: impl FnOnce(&mut PfdParams)) -> Pair {
        let mut params = PfdParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = limit.parse().ok();
        change(&mut params);
        Buffer::new(Fifo::new(), Pfd::new(&params, Rate::from_mbit(4), rtts, Stream::new(1, "pfd")))
    }

    /// Sends packets of 100 bytes of these flows, numbered from 1. Returns the flows of the drops, and their
    /// reasons.
    fn send(queue: &mut Pair, flows: &[u32]) -> Vec<(u32, DropReason)> {
        let mut log = Log::default();
        for (id, &flow) in (1..).zip(flows) {
            queue.enqueue(Time::ZERO, packet(id, flow, 100), &mut log);
        }
        log.dropped.iter().map(|&(_, id, reason)| (id, reason)).collect()
    }

    const FLOWS: [u32; 6] = [1, 0, 1, 0, 1, 2];

    #[test]
    fn the_longest_queue_loses_its_front_early_above_thresh_and_for_certain_beyond_the_limit() {
        // thresh B = 5: the sixth packet is above. Flow 1 holds three and loses its first.
        let early = |change: fn(&mut PfdParams)| {
            let mut queue = pfd("10p", &[], |params| {
                (params.p, params.thresh) = (Ratio::ONE, Some(Ratio::clamped(0.5)));
                change(params);
            });
            send(&mut queue, &FLOWS)
        };
        assert_eq!(early(|_| {}), [(1, DropReason::Early)]);
        assert_eq!(early(|params| params.end = End::Tail), [(5, DropReason::Early)]);
        assert_eq!(early(|params| params.p = Ratio::ZERO), []);
        assert_eq!(early(|params| params.thresh = Some(Ratio::clamped(0.6))), []);
        // With a limit of 5 the sixth is too many, and p does not matter.
        let mut queue = pfd("5p", &[], |params| params.p = Ratio::ZERO);
        assert_eq!(send(&mut queue, &FLOWS), [(1, DropReason::PushOut)]);
    }

    #[test]
    fn as_many_go_as_an_arrival_in_bytes_needs_and_one_that_never_fits_goes_alone() {
        let mut queue = pfd("500B", &[], |params| params.p = Ratio::ONE);
        let mut log = Log::default();
        // Above 325 B the fourth packet causes an early drop, of the first: flow 0 holds 300 B. Then 300 B
        // more make 600.
        for (id, flow, size) in [(1, 0, 100), (2, 0, 100), (3, 0, 100), (4, 1, 100), (5, 2, 250)] {
            queue.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
        }
        // 200 + 100 + 250 B are 50 B too many: the longest queue is the arrival's own.
        queue.enqueue(Time::ZERO, packet(6, 3, 501), &mut log);
        let dropped: Vec<_> = log.dropped.iter().map(|&(_, id, reason)| (id, reason)).collect();
        let reasons = [(1, DropReason::Early), (5, DropReason::PushOut), (6, DropReason::Overflow)];
        assert_eq!(dropped, reasons);
        // Flows 0 and 1 hold 200 and 100 B. 450 B of flow 0 are 250 too many: packets 2, 3 and 7 of flow 0
        // are dropped, as long as it is the longest.
        let mut log = Log::default();
        queue.enqueue(Time::ZERO, packet(7, 0, 450), &mut log);
        assert_eq!(log.dropped.iter().map(|dropped| dropped.1).collect::<Vec<_>>(), [2, 3, 7]);
        assert_eq!(queue.backlog().bytes.get(), 100);
    }

    #[test]
    fn long_round_trips_are_allowed_more_by_the_ratio_than_by_the_difference() {
        // Flows 0 and 1 have 20 and 80 ms, so 2 and 8 of 10 packets. Flow 0 holds 3, flow 1 8: 3/2 > 8/8 and
        // 3 - 2 > 8 - 8. With 9 for flow 1 and 2 for flow 0, 2/2 < 9/8 and 2 - 2 < 9 - 8.
        let rtts = [20, 80].map(Span::from_millis);
        let victim = |of_0: usize, of_1: usize, victim| {
            let mut queue = pfd("10p", &rtts, |params| {
                (params.p, params.thresh) = (Ratio::ZERO, Some(Ratio::ONE));
                (params.thresholds, params.victim) = (Thresholds::Rtt, victim);
            });
            let flows: Vec<u32> =
                [1].into_iter().chain([0].repeat(of_0)).chain([1].repeat(of_1 - 1)).collect();
            send(&mut queue, &flows)[0].0
        };
        for rule in [Choice::Ratio, Choice::Difference] {
            assert_eq!([victim(3, 8, rule), victim(2, 9, rule)], [2, 1], "{rule:?}");
        }
        // The rules differ: b = 1, 2 and 7 and q = 2, 0 and 9: 2/1 > 9/7, but 2 - 1 < 9 - 7.
        let rtts = [10, 20, 70].map(Span::from_millis);
        let by = |rule| {
            let mut queue = pfd("10p", &rtts, |params| {
                (params.p, params.thresh) = (Ratio::ZERO, Some(Ratio::ONE));
                (params.thresholds, params.victim) = (Thresholds::Rtt, rule);
            });
            send(&mut queue, &[2, 0, 0, 2, 2, 2, 2, 2, 2, 2, 2])[0].0
        };
        assert_eq!([by(Choice::Ratio), by(Choice::Difference)], [2, 1]);
    }

    #[test]
    fn a_flood_over_a_long_round_trip_has_the_threshold_of_the_shortest() {
        // By round-trip times flow 0 gets 1 packet of 21 and flow 1, which sends twice the link rate, 20.
        let rtts = [10, 200].map(Span::from_millis);
        let victim = |rtt_of: RttOf, are_learned: bool| {
            let mut queue = pfd("21p", if are_learned { &[] } else { &rtts }, |params| {
                (params.p, params.thresholds, params.rtt_of) = (Ratio::ZERO, Thresholds::Rtt, rtt_of);
            });
            for (flow, rtt) in (0..).map(FlowId).zip(rtts).filter(|_| are_learned) {
                assert!(BufferPolicy::<SimplePacket>::set_flow(
                    queue.policy_mut(),
                    flow,
                    FlowSetting::Rtt(rtt)
                ));
            }
            let mut log = Log::default();
            for ms in 0..10_000 {
                let now = Time::from_millis(ms);
                let flows: &[u32] = if ms % 10 == 0 { &[0, 1, 1] } else { &[1, 1] };
                flows.iter().for_each(|&flow| queue.enqueue(now, packet(0, flow, 100), &mut log));
                queue.dequeue(now, &mut log);
            }
            let end = Time::from_secs(10);
            while queue.dequeue(end, &mut log).is_some() {}
            log.dropped.clear();
            for flow in [0, 0, 0].into_iter().chain([1; 19]) {
                queue.enqueue(end, packet(flow, flow, 100), &mut log);
            }
            log.dropped.iter().map(|dropped| dropped.1).collect::<Vec<_>>()
        };
        // 3/1 > 19/20, but 3/10.5 < 19/10.5.
        for are_learned in [false, true] {
            assert_eq!(victim(RttOf::All, are_learned), [0]);
            assert_eq!(victim(RttOf::Friendly, are_learned), [1]);
        }
    }

    #[test]
    fn early_drops_and_victims_drawn_by_occupancy_come_as_often_as_they_should() {
        // Flows 0, 1 and 2 hold 5, 3 and 2 packets of 10, above thresh = 0.95 of 10.
        let (mut early, mut of_flow) = (0.0, [0.0; 3]);
        let mut random = Stream::new(1, "pfd");
        for _ in 0..20_000 {
            let mut queue = pfd("10p", &[], |params| {
                (params.p, params.thresh) = (Ratio::clamped(0.3), Some(Ratio::clamped(0.95)));
                params.victim = Choice::Proportional;
            });
            queue.policy_mut().rule.random = random.clone();
            let dropped = send(&mut queue, &[0, 1, 2, 0, 0, 0, 0, 1, 1, 2]);
            random.uniform();
            for (id, _) in dropped {
                early += 1.0;
                of_flow[id as usize - 1] += 1.0;
            }
        }
        let check = |share: f64, p: f64, n: f64| {
            let band = 4.0 * (p * (1.0 - p) / n).sqrt();
            assert!((share - p).abs() < band, "{share} against {p} ± {band}");
        };
        check(early / 20_000.0, 0.3, 20_000.0);
        for (count, p) in of_flow.into_iter().zip([0.5, 0.3, 0.2]) {
            check(count / early, p, early);
        }
    }

    #[test]
    fn it_says_how_often_it_was_early_and_how_often_late() {
        let mut queue = pfd("5p", &[], |params| params.p = Ratio::ONE);
        send(&mut queue, &[0, 0, 0, 0]); // 0.65·5 = 3.25: the fourth is above.
        BufferPolicy::<SimplePacket>::set_limit(queue.policy_mut(), "2p".parse().unwrap());
        send(&mut queue, &[1]);
        let mut shown = Vec::new();
        BufferPolicy::<SimplePacket>::statistics(queue.policy(), &mut |name, value| {
            shown.push((name, value));
        });
        // 3 + 1 packets are 2 too many. Flows 0 and 1 keep one each.
        assert_eq!(shown, [("active_flows", 2.0), ("early_drops", 1.0), ("overflows", 2.0)]);
    }

    #[test]
    fn early_drops_begin_at_20_ms_of_the_link() {
        // The number of packets of 1000 B that join before the first early drop.
        let first_of = |flows, limit, rate: Rate, thresh| {
            let mut queue = pfd(limit, &[], |params| (params.p, params.thresh) = (Ratio::ONE, thresh));
            BufferPolicy::<SimplePacket>::set_link_rate(queue.policy_mut(), rate);
            let mut log = Log::default();
            let is_early = |log: &Log| log.dropped.iter().any(|dropped| dropped.2 == DropReason::Early);
            (0..9_999).find(|&id| {
                queue.enqueue(Time::ZERO, packet(id, id % flows, 1_000), &mut log);
                is_early(&log)
            })
        };
        let first = |limit, rate, thresh| first_of(3, limit, rate, thresh);
        let mbit = Rate::from_mbit;
        // 20 ms of 8 Mb/s are 20 kB, whatever the unit of the limit; of 0.8 Mb/s less than 6 kB.
        for limit in ["100p", "100kB", "100ms", "1000p"] {
            assert_eq!(first(limit, mbit(8), None), Some(20), "{limit}");
        }
        assert_eq!(first("1000p", mbit(80), None), Some(200));
        assert_eq!(first("1000p", Rate::from_kbit(800), None), Some(6));
        assert_eq!(first("1000p", Rate::ZERO, None), Some(6));
        // At most 0.65 of the buffer.
        assert_eq!(first("20p", mbit(80), None), Some(13));
        // At least two packets of each active flow.
        assert_eq!(first_of(40, "1000p", mbit(8), None), Some(80));
        assert_eq!(first_of(40, "100p", mbit(8), None), Some(65));
        // A share that is set is all that counts.
        assert_eq!(first("100p", mbit(8), Some(Ratio::clamped(0.5))), Some(50));
        assert_eq!(first("100p", mbit(8), Some(Ratio::ONE)), None);
    }

    #[test]
    fn two_packets_of_a_flow_do_not_count_unless_thresh_is_set() {
        // Flow 0 has a weight of 1 and holds `few` packets, flow 1 has 100 and holds 18. The next is above.
        let victim = |few: u32, limit, p, thresh| {
            let mut queue = pfd(limit, &[], |params| (params.p, params.thresh) = (p, thresh));
            for (flow, weight) in [(0, 1.0), (1, 100.0)] {
                let weight = FlowSetting::Weight(Weight::new(weight).unwrap());
                BufferPolicy::<SimplePacket>::set_flow(queue.policy_mut(), FlowId(flow), weight);
            }
            BufferPolicy::<SimplePacket>::set_link_rate(queue.policy_mut(), Rate::from_kbit(800));
            let mut log = Log::default();
            for id in 0..few + 18 {
                queue.enqueue(Time::ZERO, packet(id, u32::from(id >= few), 320), &mut log);
            }
            log.dropped.first().map(|&(_, id, _)| u32::from(id >= few))
        };
        let half = Some(Ratio::clamped(0.5));
        for (few, of_default, of_share) in [(1, 1, 0), (2, 1, 0), (3, 0, 0)] {
            // 6 kB are 18 packets of 320 B.
            assert_eq!(victim(few, "100p", Ratio::ONE, None), Some(of_default), "{few}");
            assert_eq!(victim(few, "36p", Ratio::ONE, half), Some(of_share), "{few}");
            // A full buffer.
            assert_eq!(victim(few, "18p", Ratio::ZERO, None), Some(of_default), "{few}");
            assert_eq!(victim(few, "18p", Ratio::ZERO, half), Some(of_share), "{few}");
        }
    }

    #[test]
    fn p_follows_the_overflows_if_it_may() {
        let p_after = |auto| {
            let mut queue = pfd("5p", &[], |params| params.auto = auto);
            let mut log = Log::default();
            for ms in 0..=500 {
                queue.enqueue(Time::from_millis(ms), packet(0, 0, 100), &mut log);
            }
            (queue.policy().rule.p.get(), queue.policy().rule.thresh.map(Ratio::get))
        };
        // Nearly all of the drops were forced: 0.1 + 0.01. One flow needs three packets of five.
        assert_eq!(p_after(true), (0.11, Some(0.5)));
        assert_eq!(p_after(false), (0.1, None));
    }

    #[test]
    fn thresh_follows_the_round_trip_times_and_the_rate_of_the_link() {
        let thresh = |rtts: &[Span], rate: Option<Rate>| {
            let mut queue = pfd("200p", rtts, |params| params.auto = true);
            if let Some(rate) = rate {
                BufferPolicy::<SimplePacket>::set_link_rate(queue.policy_mut(), rate);
            }
            let mut log = Log::default();
            for (ms, flow) in (0..10).map(|flow| (0, flow)).chain([(500, 0)]) {
                queue.enqueue(Time::from_millis(ms), packet(0, flow, 500), &mut log);
            }
            queue.policy().rule.thresh.unwrap().get()
        };
        // Three rounds of ten flows are 30 packets of 200. At 4 Mbit/s 20 ms hold 20 packets of 500 B, at 8
        // 40.
        let rtts = [10, 0, 30].map(Span::from_millis);
        for (rtts, rate, expected) in
            [(&[][..], None, 0.85), (&rtts, None, 0.75), (&rtts, Some(Rate::from_mbit(8)), 0.65)]
        {
            let thresh = thresh(rtts, rate);
            assert!((thresh - expected).abs() < 1e-12, "{rate:?}: {thresh} against {expected}");
        }
    }

    #[test]
    fn a_flow_of_start_time_fq_and_pfd_takes_at_most_200_bytes_however_many_there_are() {
        // Records of 32 and 16 bytes, for up to twice as many flows, and two tournaments of at most 23 bytes:
        // 142. Weights are 8 more, again for up to twice as many.
        let most = 2 * (32 + 16) + 2 * 23;
        for weights in [0, 8] {
            let mut params = PfdParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
            params.limit = "1000000p".parse().ok();
            (params.thresh, params.thresholds) = (Some(Ratio::ZERO), Thresholds::Weights);
            let pfd = Pfd::new(&params, Rate::from_mbit(4), &[], Stream::new(1, "pfd"));
            let mut queue = Buffer::new(StartTimeFq::new(Weight::ONE), pfd);
            let mut log = Log::default();
            for flow in 0..70_000 {
                if weights > 0 {
                    let weight = Weight::new(f64::from(1 + flow % 3)).unwrap();
                    BufferPolicy::<SimplePacket>::set_flow(
                        queue.policy_mut(),
                        FlowId(flow),
                        FlowSetting::Weight(weight),
                    );
                }
                // Each drop updates the order of the longest queues.
                queue.policy_mut().rule.p = if flow % 97 == 0 { Ratio::ONE } else { Ratio::ZERO };
                queue.enqueue(Time::ZERO, packet(flow, flow, 100), &mut log);
                let bytes = queue.scheduler_mut().bytes() + queue.policy().occupancy.bytes();
                let each = bytes / (flow as usize + 1);
                assert!(flow < 500 || each <= most + 2 * weights, "{each} bytes for each of {flow} flows");
            }
        }
        assert!(most + 2 * 8 <= 200);
    }
}
