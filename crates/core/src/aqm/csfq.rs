//! CSFQ and MCSFQ, core-stateless fair queueing: a packet is dropped with a probability that follows the
//! excess of its flow over the fair share, read from a label that the edge wrote on the packet.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing: achieving approximately fair bandwidth allocations
//! in high speed networks", SIGCOMM 1998: the pseudo-code of figure 3, weighted. Pelsser, De Cnodder,
//! "Improvements to core stateless fair queueing", PfHSN 2002: MCSFQ (figures 1 and 3) and guarantees (figure
//! 7). Labels are rates for a weight of 1, so only the edge knows weights and guarantees.
//!
//! Both entries are one algorithm; with `preset = "paper"` they differ in parameters, otherwise they are the
//! same. [`fair_share`] describes the estimate of the fair share and the readings of both papers;
//! [`rate_label`](crate::mark::rate_label) describes labels.
//!
//! Readings, where the papers leave room:
//! - A packet without a rate label is labelled here: the first router on a path is its edge. A packet with a
//!   label is core traffic and costs no state of its flow. `role` makes a router an edge that trusts no
//!   incoming label, or a core that labels nothing; an `egress` removes the label.
//! - A core drops a packet without a label by policy: the packet passed no edge.
//! - The last `reserve` of the buffer is for guaranteed packets. The paper of 2002 has one buffer for all,
//!   whose overflow then hits conforming flows too (0.2 % of their packets at twice the load).
//! - Before any time has passed a flow has no rate. Its packet is labelled with half of the accepted rate.
//! - A packet that passes is counted and then relabelled with the share, as in figure 3 of 1998. Figures 1
//!   and 7 of 2002 relabel it first.
//!
//! Beyond the papers, by default: the share follows the queueing delay (`target_delay`), labels are means
//! (`credit`), guarantees are paid later (`marking = "debt"`), and the buffer follows the rate of the link.
//!
//! Beyond the papers, off unless set, and for their estimate only: `decay` between 0 and 1, `onset` and
//! `avoidance` are the three ideas that the paper of 2002 names as further work in section 5.
//!
//! Packets of scalable senders (`l4s`, by the ECN field of each packet) are marked for the excess instead of dropped (`l4s.rs`), and wait
//! in a queue of their own that is served first (`l4s_lane.rs`): with label r and share α,
//!
//! ```text
//! p_C = max(0, 1 - α/r),   p_L = 2 sqrt(p_C)
//! ```
//!
//! A sender that takes the share over a round trip of W packets needs a mark probability of 2/W, which it
//! gets at r = α / (1 - 1/W²): 0.25 % above α with 20 packets. Its share is thus that of TCP, whose drop
//! probability of some 3/W² reduces r to r (1 - p_C) = α. From r = 4/3 α on p_C drops its packets too. A
//! marked packet keeps its label, since its flow sends no less; the queue from the excess lowers α.
//!
//! Also by default (`by_flow`), packets that are labelled here take [turns by flow](crate::schedule::turns): an edge has
//! state of its flows anyway, and a call need not wait for a download. Packets that were labelled upstream keep
//! their order of arrival. With `role = "core"`, or after `kind = "fifo"`, all packets do.
//!
//! Cost: O(1) per packet, one exponential (two at the edge, three under a guarantee), and O(log flows) for turns; no state per flow in
//! the core, 40 bytes at the edge and 87 for turns. Parameters: [`CSFQ`], [`MCSFQ`].

use alloc::boxed::Box;

use super::l4s::{L4S, Signal};
use super::l4s_lane::{self, Decision, Lane, Parts};
use super::reserve::{RESERVE, Reserve};
use super::{Admission, BufferPolicy};
use crate::estimate::fair_share::{self, Arrival, FairShare, FairShareEstimator, FairShareParams};
use crate::flow_setting::FlowSetting;
use crate::label::Format;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::mark::rate_label::{Marking, RateLabel, RateLabelParams, RateLabels};
use crate::packet::{FlowId, LabelKind, Packet};
use crate::param::{Entry, Heeds, Inside, LIMIT, Param, Role, Shares, Traits, replace};
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler, Turn};
use crate::units::{Rate, Ratio, Span, Time};
use crate::{choice, params};

/// CSFQ in the catalogue.
pub const CSFQ: Entry = Entry {
    name: "csfq",
    role: Role::Policy,
    summary: "Core-stateless fair queueing: drops what exceeds the fair share, by a rate label in the packet.",
    reference: "Stoica, Shenker, Zhang 1998",
    cost: "O(1) per packet, no state per flow in the core; at the edge O(log flows), 127 bytes per flow, 128 more per guarantee",
    params: CsfqParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight, Heeds::Guarantee],
        writes: Some(LabelKind::Rate),
        reads: Some(LabelKind::Rate),
        inside: Inside::Queue,
        shares: Shares::Approximate,
        limits: "Rates of flows are estimated. TCP gets 0.85 to 0.97 of its due over two to eight congested hops, \
            and a single TCP flow leaves an eighth of the link idle. A guarantee of less than a packet in `k` is not kept. Behind `isolate`, a slow flow beside \
            a flood of its own host loses up to 45 % of its packets. An ECT(1) flow that ignores \
            marks keeps up to 4/3 of its share.",
        ..Traits::NONE
    },
};

/// MCSFQ in the catalogue.
pub const MCSFQ: Entry = Entry {
    name: "mcsfq",
    summary: "CSFQ whose fair share does not fall without congestion, which helps bursty TCP; with guarantees.",
    reference: "Pelsser, De Cnodder 2002",
    params: &replace::<{ CsfqParams::PARAMS.len() }>(
        CsfqParams::PARAMS,
        &[
            ("limit", LIMIT_OF_1998.in_paper("64kB")),
            ("threshold", Param::of("0.5", "2002 paper, section 3.3")),
            ("below_threshold", Param::of("uncongested", "2002 paper, footnote 3")),
            ("decay", Param::of("0", "2002 paper, figure 3: temp_FS starts at FS")),
        ],
    ),
    ..CSFQ
};

/// Size of the buffer.
pub(super) const LIMIT_OF_1998: Param =
    Param::unset("chosen; 64 kB of 1 kB packets in the 1998 paper").in_paper("64p").or(&LIMIT);
/// Queue level, as a part of the buffer, up to which an uncongested link has no share.
pub(super) const THRESHOLD_OF_1998: Param = Param::of("0.25", "1998 paper, simulations: 16 of 64 kB")
    .doc("Part of the buffer up to which a link without congestion is not taken to be congested.");
/// The router's role: see [`RouterRole`].
pub(super) const ROLE: Param = Param::of("any", "chosen: the first router on a path is its edge")
    .doc("Which packets are labelled here: those without a label, all (edge), or none (core).");
/// Whether labels are removed.
pub(super) const EGRESS: Param = Param::of("false", "chosen")
    .doc("Whether packets leave without their label, as the last router of a domain sends them.");
/// Whether what is labelled here takes turns by flow.
pub(super) const BY_FLOW: Param = Param::of("true", "chosen: an edge has state of flows").in_paper("false")
    .doc("Whether packets that are labelled here take turns by flow, as with `stfq`; those labelled upstream keep their order of arrival.");
/// L4S marks, unless the law of the papers applies.
pub(super) const L4S_BY_PACKET: Param =
    Param::of("true", "chosen: RFC 9331; the papers drop").or(&L4S).in_paper("false");
/// The parameters of the edge: rates first, then labels and guarantees.
pub(super) const EDGE: (&[Param], &[Param]) = RateLabelParams::PARAMS.split_at(2);
/// The parameters of the estimate: times first, then the readings of the papers.
pub(super) const SHARE: (&[Param], &[Param]) = FairShareParams::PARAMS.split_at(3);

choice! {
    /// Which packets a router labels.
    pub enum RouterRole {
        /// Packets without a label.
        Any = "any",
        /// All packets: incoming labels are not trusted.
        Edge = "edge",
        /// No packets: a packet without a label is dropped.
        Core = "core",
    }
}

impl RouterRole {
    /// How `packet`, as it arrived, joins: with its flow if it is labelled here.
    #[inline]
    pub(super) fn turn<P: Packet>(self, packet: &P) -> Turn {
        match self {
            Self::Edge => Turn::Flow,
            Self::Any if packet.label(LabelKind::Rate).is_none() => Turn::Flow,
            Self::Any | Self::Core => Turn::Arrival,
        }
    }

    /// The label that a packet carries or gets from `edge`; none if it cannot have one. An unknown rate is
    /// taken to be half of the accepted rate.
    pub(super) fn label<P: Packet>(
        self,
        now: Time,
        packet: &P,
        edge: &mut RateLabels,
        accepted: &FairShareEstimator,
    ) -> Option<RateLabel> {
        let carried = packet.label(LabelKind::Rate).map(RateLabel::read);
        match (self, carried) {
            (Self::Core, carried) => carried,
            (Self::Any, Some(carried)) => Some(carried),
            (Self::Any, None) | (Self::Edge, _) => {
                Some(edge.label_or(now, packet.flow(), packet.size(), accepted.accepted_rate() / 2.0))
            }
        }
    }
}

params! {
    /// Parameters of [`Csfq`].
    pub struct CsfqParams {
        limit: Option<BufferSize> = LIMIT_OF_1998,
        threshold: Ratio = THRESHOLD_OF_1998,
        ..EDGE.0,
        ..SHARE.0,
        role: RouterRole = ROLE,
        egress: bool = EGRESS,
        by_flow: bool = BY_FLOW,
        ..EDGE.1,
        reserve: Ratio = RESERVE,
        ..SHARE.1,
        /// By how much a full buffer lowers the fair share; in proportion between the threshold and the limit.
        avoidance: Ratio = Param::of("0", "2002 paper, section 5, as further work"),
        l4s: bool = L4S_BY_PACKET,
        /// Settings for rates and labels at the edge.
        edge: RateLabelParams => RateLabelParams::from_args,
        /// Settings for the estimate of the fair share.
        fair_share: FairShareParams => FairShareParams::from_args,
    }
    check: |params: &Self, args| {
        let target_delay = params.fair_share.target_delay;
        Reserve::check(params.threshold, params.reserve, target_delay)?;
        fair_share::refuse_unused(args, target_delay)
    }
}

impl CsfqParams {
    /// Whether packets take [turns](crate::schedule::turns) if no other scheduler is chosen.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.by_flow && self.role != RouterRole::Core
    }

    /// Whether L4S packets are marked; the law of the papers drops them like others.
    #[must_use]
    pub fn marks_l4s(&self) -> bool {
        self.l4s && self.fair_share.target_delay > Span::ZERO
    }
}

/// The state of a CSFQ queue: the estimate for its link, and the flows that it labels.
#[derive(Clone, Debug)]
pub struct Csfq {
    limit: LinkLimit,
    threshold: Ratio,
    role: RouterRole,
    egress: bool,
    reserve: Reserve,
    /// None if the parameter is zero.
    avoidance: Option<Ratio>,
    l4s: bool,
    lane: Lane,
    format: Format,
    /// Boxed, so that a core has no memory for it.
    edge: Box<RateLabels>,
    share: FairShareEstimator,
    random: Stream,
    /// How the last packet joins.
    turn: Turn,
}

impl Csfq {
    /// CSFQ for a link of `link_rate`. One stream decides about drops, the other marks guarantees.
    #[must_use]
    pub fn new(params: &CsfqParams, link_rate: Rate, random: Stream, marking: Stream) -> Self {
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            threshold: params.threshold,
            role: params.role,
            egress: params.egress,
            reserve: Reserve { part: params.reserve, pays_debts: params.edge.marking == Marking::Debt },
            avoidance: Some(params.avoidance).filter(|&avoidance| avoidance > Ratio::ZERO),
            l4s: params.marks_l4s(),
            lane: Lane::new(),
            format: params.edge.format(),
            edge: Box::new(RateLabels::new(&params.edge, marking)),
            share: FairShareEstimator::new(&params.fair_share, link_rate),
            random,
            turn: Turn::Arrival,
        }
    }

    /// The same, with the round-trip times of flows; zero if unknown.
    #[must_use]
    pub fn with_rtts(mut self, rtts: &[Span]) -> Self {
        self.share.set_rtts(rtts);
        self
    }

    /// The fair share of a weight of 1.
    #[must_use]
    pub const fn fair_share(&self) -> FairShare {
        self.share.fair_share()
    }

    /// Whether the room beyond `backlog` is reserved for guaranteed packets and `label` is not one of them.
    #[inline]
    fn is_reserved(&self, label: RateLabel, backlog: Backlog) -> bool {
        self.share.has_guarantees() && self.reserve.is_closed(label, self.limit.get().filled_by(backlog))
    }

    /// Whether the queue is at or below the threshold; used by the papers' law only.
    #[inline]
    fn is_calm(&self, backlog: Backlog) -> bool {
        !self.share.is_by_delay() && self.limit.get().is_filled_up_to(backlog, self.threshold)
    }

    /// The fair share that applies while the buffer holds `backlog`.
    #[inline]
    fn share_at(&self, part: f64, backlog: Backlog, calm: bool) -> FairShare {
        let share = self.share.share_at(part);
        match self.avoidance {
            Some(avoidance) if !calm => share.scaled(self.avoided(avoidance, backlog)),
            _ => share,
        }
    }

    /// The fraction of the fair share that remains above the threshold.
    fn avoided(&self, avoidance: Ratio, backlog: Backlog) -> f64 {
        let above = (self.limit.get().filled_by(backlog) - self.threshold.get()).max(0.0)
            / (1.0 - self.threshold.get()).max(f64::EPSILON);
        1.0 - avoidance.get() * above.min(1.0)
    }
}

impl<P: Packet> BufferPolicy<P> for Csfq {
    // Never inlined, so that its intermediate values stay in registers.
    #[inline(never)]
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.turn = self.role.turn(packet);
        let Some(label) = self.role.label(now, packet, &mut self.edge, &self.share) else {
            return Admission::Drop(DropReason::Policy);
        };
        let calm = self.is_calm(backlog);
        let marks = self.l4s && packet.ecn().is_l4s();
        let Parts { own, link: part, first } = self.lane.parts(&self.share, marks, backlog, self.limit.get());
        let share = self.share_at(own, backlog, calm);
        let Decision { signal, keeps_label } = l4s_lane::decide(share, label, first, marks, &mut self.random);
        let dropped = signal == Signal::Dropped;
        self.share.update(now, Arrival { size: packet.size(), label, dropped, calm, part });
        self.lane.arrived(now, packet.size(), marks, !dropped);
        if dropped {
            return Admission::Drop(DropReason::Early);
        }
        if !self.limit.get().admits(packet, backlog) || self.is_reserved(label, backlog) {
            self.share.overflow();
            return Admission::Drop(DropReason::Overflow);
        }
        if self.turn == Turn::Flow && label == RateLabel::Guaranteed {
            self.turn = Turn::First;
        } else if self.turn == Turn::Flow {
            let fair = self.share.fair_share().rate().unwrap_or(self.share.link());
            self.turn = self.edge.turn(packet.flow(), 1.0, fair);
        }
        if self.egress {
            packet.clear_label(LabelKind::Rate);
        } else if keeps_label {
            label.write(packet);
        } else {
            self.share_at(own, backlog, calm).relabel(label, self.format).write(packet);
        }
        if signal == Signal::Marked { Admission::Mark } else { Admission::Accept }
    }

    #[inline]
    fn turn(&self) -> Turn {
        self.turn
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now);
        let size = queued.as_ref().map(|queued| queued.packet.size());
        self.share.departed(now, size, !scheduler.backlog().is_empty());
        self.lane.holds(scheduler.l4s_backlog());
        queued
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.share.statistics(show);
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.share.set_link_rate(rate);
        self.limit.set_link_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let labels = self.role != RouterRole::Core;
        match setting {
            FlowSetting::Weight(weight) => {
                self.share.note_weight(weight);
                if labels {
                    self.edge.set_weight(flow, weight);
                }
                true
            }
            FlowSetting::Guarantee(guarantee, rtt) if labels => {
                self.edge.set_guarantee(flow, guarantee, rtt);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Label;
    use crate::packet::{Ecn, SimplePacket};
    use crate::param::EntryArgs;
    use crate::testing::packet;
    use crate::units::Weight;
    use crate::units::{Bytes, Packets};
    use std::vec::Vec;

    /// CSFQ as in the papers, for 8 Mb/s: a packet of 1000 B takes a millisecond. The buffer holds 64
    /// packets.
    fn csfq(entry: &'static Entry, change: impl FnOnce(&mut CsfqParams)) -> Csfq {
        let mut params = CsfqParams::from_args(&EntryArgs::of_paper(entry)).unwrap();
        change(&mut params);
        Csfq::new(&params, Rate::from_mbit(8), Stream::new(1, "csfq"), Stream::new(1, "csfq.marking"))
    }

    /// A fair share that a label represents exactly: 2^20 bits a second.
    const SHARE: f64 = 1_048_576.0;

    /// CSFQ with that share, until K_c has passed.
    fn with_share(change: impl FnOnce(&mut CsfqParams)) -> Csfq {
        csfq(&MCSFQ, |params| {
            params.fair_share.initial = Some(Rate::from_bit(SHARE as u64));
            params.limit = Some(Limit::Packets(Packets::new(64)).into());
            change(params);
        })
    }

    fn labelled(label: f64) -> SimplePacket {
        let mut packet = packet(0, 0, 1_000);
        packet.set_label(LabelKind::Rate, Label::new(label));
        packet
    }

    fn queued(packets: u64) -> Backlog {
        Backlog { packets: Packets::new(packets), bytes: Bytes::new(1_000 * packets) }
    }

    /// The early drops among 10,000 simultaneous packets with `label` that find `packets` in the queue.
    fn early(csfq: &mut Csfq, label: f64, packets: u64) -> usize {
        let early = Admission::Drop(DropReason::Early);
        let mut verdict = || csfq.admit(Time::ZERO, &mut labelled(label), queued(packets));
        (0..10_000).filter(|_| verdict() == early).count()
    }

    #[test]
    fn the_excess_over_the_share_is_dropped() {
        // 1 - 1/4 of 10000 trials, 4 sigma = 4 sqrt(0.75·0.25·10000) = 173. Time stands still, and so do the
        // averages and the share.
        let drops = early(&mut with_share(|_| ()), 4.0 * SHARE, 20);
        assert!(drops.abs_diff(7_500) < 173, "{drops}");
        let within = [SHARE, 0.5 * SHARE, 0.0].map(|label| early(&mut with_share(|_| ()), label, 20));
        assert_eq!(within, [0, 0, 0], "within the share, or covered by a guarantee");
        assert_eq!(
            early(&mut csfq(&CSFQ, |_| ()), 1e12, 10),
            0,
            "an unknown share is not a share of nothing"
        );
        assert_eq!(early(&mut csfq(&MCSFQ, |_| ()), 1e12, 10), 0);
    }

    /// The numbers of marked and dropped packets among 10,000 with `label` and `ecn`, and the labels of the
    /// others.
    fn signalled(ecn: Ecn, label: f64) -> (usize, usize, Vec<f64>) {
        let mut csfq = with_share(|params| {
            (params.l4s, params.fair_share.target_delay) = (true, Span::from_millis(20));
        });
        let (mut marked, mut dropped, mut labels) = (0, 0, Vec::new());
        for _ in 0..10_000 {
            let mut packet = SimplePacket { ecn, ..labelled(label) };
            match csfq.admit(Time::ZERO, &mut packet, queued(20)) {
                Admission::Drop(_) => dropped += 1,
                verdict => {
                    marked += usize::from(verdict == Admission::Mark);
                    labels.push(packet.label(LabelKind::Rate).unwrap().value());
                }
            }
        }
        labels.dedup();
        (marked, dropped, labels)
    }

    #[test]
    fn the_excess_of_l4s_is_marked_by_twice_the_root_and_dropped_from_a_third_above_the_share_on() {
        let near = |count: usize, p: f64| {
            let band = 4.0 * (p * (1.0 - p) * 10_000.0).sqrt();
            assert!((count as f64 - 1e4 * p).abs() <= band, "{count} against {}", 1e4 * p);
        };
        // At 16/15 of the share p_C is 1/16, and p_L 2/4. A marked packet keeps its label.
        let label = SHARE * 16.0 / 15.0;
        let (marked, dropped, labels) = signalled(Ecn::Ect1, label);
        near(marked, 0.5);
        assert_eq!((dropped, labels.len()), (0, 1));
        assert!((labels[0] / label - 1.0).abs() < 1e-4, "{labels:?}");
        // At twice the share p_C is 1/2: an overload, in which L4S packets are dropped too.
        let (marked, dropped, labels) = signalled(Ecn::Ect1, 2.0 * SHARE);
        near(dropped, 0.5);
        assert_eq!((marked + dropped, labels), (10_000, [SHARE].to_vec()));
        // ECT(0) packets are dropped as without L4S, and within the share nothing happens.
        for ecn in [Ecn::Ect0, Ecn::NotEct] {
            let (marked, dropped, labels) = signalled(ecn, label);
            near(dropped, 0.0625);
            assert_eq!((marked, labels), (0, [SHARE].to_vec()));
        }
        assert_eq!(signalled(Ecn::Ect1, SHARE).0, 0);
    }

    #[test]
    fn a_packet_leaves_with_no_more_than_the_share() {
        let mut csfq = with_share(|_| ());
        let mut arrive = |label| {
            let mut packet = labelled(label);
            // One in four is accepted.
            while csfq.admit(Time::ZERO, &mut packet, queued(20)) != Admission::Accept {}
            packet.label(LabelKind::Rate).unwrap().value()
        };
        let left = [4.0 * SHARE, SHARE / 2.0, 0.0].map(&mut arrive);
        assert_eq!(left, [SHARE, SHARE / 2.0, 0.0]);
    }

    #[test]
    fn a_packet_leaves_with_the_share_after_it_was_counted() {
        // K_c has passed without congestion: the packet ends the window and raises the share to its own
        // label. If it were relabelled first, it would leave with the old share, which is 4/5 of the label.
        let mut csfq = with_share(|_| ());
        let mut packet = labelled(1.25 * SHARE);
        assert_eq!(csfq.admit(Time::from_millis(100), &mut packet, queued(20)), Admission::Accept);
        assert_eq!(packet.label(LabelKind::Rate).unwrap().value(), 1.25 * SHARE);
    }

    #[test]
    fn a_narrow_label_holds_the_share_roughly() {
        // Three bits after the leading one: 10^6 lies between 15·2^16 = 983040 and 2^20, nearer to the
        // former.
        let mut csfq = with_share(|params| {
            params.fair_share.initial = Some(Rate::from_mbit(1));
            params.edge.bits = 8;
        });
        let mut packet = labelled(1.01e6);
        csfq.admit(Time::ZERO, &mut packet, queued(20));
        assert_eq!(packet.label(LabelKind::Rate).unwrap().value(), 983_040.0);
    }

    #[test]
    fn roles_say_who_labels_and_who_takes_labels_off() {
        let label_after = |role, egress, mut packet: SimplePacket| {
            let mut csfq = csfq(&MCSFQ, |params| {
                params.role = role;
                params.egress = egress;
            });
            let verdict = csfq.admit(Time::from_secs(1), &mut packet, queued(0));
            (verdict, packet.label(LabelKind::Rate).map(Label::value), csfq.edge.flows())
        };
        // 8000 bits in the first second, and a label that claims a guarantee without having one.
        let (fresh, claimed) = (packet(0, 0, 1_000), labelled(0.0));
        let rate = Label::new(8_000.0 * (1.0 - (-10.0_f64).exp())).value();
        use Admission::Accept;
        use RouterRole::{Any, Core, Edge};
        assert_eq!(label_after(Any, false, fresh), (Accept, Some(rate), 1));
        assert_eq!(label_after(Any, false, claimed), (Accept, Some(0.0), 0));
        assert_eq!(label_after(Edge, false, claimed), (Accept, Some(rate), 1), "an edge trusts no label");
        assert_eq!(label_after(Core, false, claimed), (Accept, Some(0.0), 0));
        assert_eq!(label_after(Core, false, fresh), (Admission::Drop(DropReason::Policy), None, 0));
        assert_eq!(label_after(Core, true, claimed), (Accept, None, 0));
        assert_eq!(label_after(Any, true, fresh), (Accept, None, 1));
    }

    #[test]
    fn only_the_edge_knows_flows() {
        let new = |role| {
            let mut csfq = csfq(&CSFQ, |params| params.role = role);
            let weight = Weight::new(2.0).unwrap();
            BufferPolicy::<SimplePacket>::set_flow(&mut csfq, FlowId(7), FlowSetting::Weight(weight));
            BufferPolicy::<SimplePacket>::set_flow(
                &mut csfq,
                FlowId(9),
                FlowSetting::Guarantee(Rate::from_mbit(1), Span::ZERO),
            );
            csfq
        };
        let (mut edge, mut core) = (new(RouterRole::Any), new(RouterRole::Core));
        for i in 1..=1_000 {
            let mut fresh = packet(i, i % 50, 1_000);
            edge.admit(Time::from_millis(u64::from(i)), &mut fresh, queued(1));
            assert!(fresh.label(LabelKind::Rate).is_some());
            core.admit(Time::from_millis(u64::from(i)), &mut fresh, queued(1));
        }
        assert_eq!((edge.edge.flows(), core.edge.flows()), (50, 0));
    }

    #[test]
    fn a_label_on_acknowledgements_is_not_one_of_this_packet() {
        let mut csfq = csfq(&CSFQ, |_| ());
        let mut packet = packet(0, 0, 1_000);
        packet.set_label(LabelKind::AckTickets, Label::new(7.0));
        csfq.admit(Time::from_secs(1), &mut packet, queued(0));
        assert_eq!((packet.label(LabelKind::AckTickets), csfq.edge.flows()), (Some(Label::new(7.0)), 1));
    }

    #[test]
    fn avoidance_lowers_the_share_as_the_buffer_fills() {
        // At a full buffer half of the share remains, halfway above the threshold of 32 of 64 packets three
        // quarters. A label of the share is then dropped with 1 - 1/2 and 1 - 3/4; 4 sigma = 4
        // sqrt(0.25·10000) = 200.
        let half = |params: &mut CsfqParams| {
            params.avoidance = Ratio::clamped(0.5);
            params.fair_share.overflow_decrease = Ratio::ZERO;
        };
        let drops = [32, 48, 64].map(|packets| early(&mut with_share(half), SHARE, packets));
        assert_eq!(drops[0], 0);
        assert!(drops[1].abs_diff(2_500) < 200 && drops[2].abs_diff(5_000) < 200, "{drops:?}");
        assert_eq!(early(&mut with_share(|_| ()), SHARE, 63), 0, "none unless asked for");
    }

    #[test]
    fn the_last_of_the_buffer_is_for_guaranteed_packets() {
        // 10 % of 64 packets: closed from 58 on, once a guaranteed packet has arrived and time has passed.
        let verdicts = |guaranteed: bool, reserve: f64| {
            let mut csfq = with_share(|params| params.reserve = Ratio::clamped(reserve));
            let first = labelled(if guaranteed { 0.0 } else { 1e3 });
            csfq.admit(Time::from_millis(1), &mut { first }, queued(0));
            [(1e3, 57), (1e3, 58), (0.0, 63)].map(|(label, packets)| {
                csfq.admit(Time::from_millis(1), &mut labelled(label), queued(packets)) == Admission::Accept
            })
        };
        assert_eq!(verdicts(true, 0.1), [true, false, true]);
        assert_eq!((verdicts(false, 0.1), verdicts(true, 0.0)), ([true; 3], [true; 3]));
    }

    #[test]
    fn a_full_buffer_drops_and_lowers_the_share() {
        let mut csfq = with_share(|_| ());
        let verdict = csfq.admit(Time::ZERO, &mut labelled(0.0), queued(64));
        assert_eq!(verdict, Admission::Drop(DropReason::Overflow), "also what a guarantee covers");
        assert_eq!(csfq.fair_share(), FairShare::Rate(0.99 * SHARE));
        let mut shown = Vec::new();
        BufferPolicy::<SimplePacket>::statistics(&csfq, &mut |name, _| shown.push(name));
        assert_eq!(shown, ["alpha", "arrival_rate", "accepted_rate", "guaranteed_rate", "congested_periods"]);
    }
}
