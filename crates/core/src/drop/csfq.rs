//! CSFQ, core-stateless fair queueing: a packet is dropped with the probability by which its flow exceeds the
//! fair share, read from a label that the edge wrote on it.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing: achieving approximately fair bandwidth allocations
//! in high speed networks", SIGCOMM 1998: the pseudo-code of figure 3, weighted. Labels are rates for a
//! weight of 1, so only the edge knows weights.
//!
//! Readings, where the paper leaves room; most are those of the authors' own code:
//! - A packet without a rate label is labelled here: the first router on a path is its edge. A packet with one
//!   is core traffic and costs no state of its flow.
//! - α is unknown at first and after a lull, rather than 0, and then nothing is dropped. While the queue is
//!   at most at the threshold the largest label is noted; above, α becomes that label, or C/2 without one.
//! - F is averaged at each arrival, an early drop counting as 0 bits, so that F falls when all is dropped. A
//!   packet that the full buffer refuses counts as accepted: F says what α lets through.
//! - A packet's own label counts when a window of an uncongested link ends. Otherwise a lone packet ends one
//!   that has seen nothing, and α becomes 0 for good.
//! - The label noted is the one that came, not the one that left.
//! - At the end of such a window α is unknown again if the queue is at most at the threshold.
//! - α is at most C, or C / w for the smallest weight w below 1.
//! - α loses 1 % with each overflow, at most 30 times in a period of congestion; the paper says by at most a
//!   quarter.
//! - A label of 0 is never dropped early.
//!
//! Cost: O(1) per packet, three exponentials (four at the edge); no state per flow in the core, 48 bytes at
//! the edge. Parameters: [`ENTRY`].

use super::tail::LIMIT;
use super::{BufferPolicy, Limit, Verdict};
use crate::catalog::{Args, Entry, Kind, Param, ParamError, Role, require};
use crate::estimate::RateEstimator;
use crate::estimate::exponential::{Exponential, First};
use crate::label::Label;
use crate::mark::rate_label::RateLabels;
use crate::packet::{FlowId, LabelKind, Packet};
use crate::queue::{Backlog, DropReason};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Ratio, Span, Time, Weight};

/// CSFQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "csfq",
    role: Role::Policy,
    summary: "Core-stateless fair queueing: drops what exceeds the fair share, by a rate in the packet.",
    reference: "Stoica, Shenker, Zhang 1998",
    cost: "O(1) per packet, no state per flow in the core, 48 bytes per flow at the edge",
    params: &[
        Param { default: Some("64p"), source: "1998 paper, simulations: 64 kB of 1 kB packets", ..LIMIT },
        Param {
            name: "threshold",
            symbol: "–",
            kind: Kind::Ratio,
            default: Some("0.25"),
            source: "1998 paper, simulations: 16 of 64 kB",
            doc: "Part of the buffer up to which the fair share may stay unknown.",
        },
        span("k", "K", "Time constant of the rate of a flow, at the edge."),
        span("k_alpha", "K_α", "Time constant of the rates that arrive and are accepted."),
        span("k_c", "K_c", "Window after which the fair share is estimated anew."),
    ],
};

const fn span(name: &'static str, symbol: &'static str, doc: &'static str) -> Param {
    let source = "1998 paper, simulations";
    Param { name, symbol, kind: Kind::Span, default: Some("100ms"), source, doc }
}

/// What α is multiplied by at an overflow: the paper's small fixed percentage, 1 % in its simulations.
const DECREASE: f64 = 0.99;
/// How often in a period of congestion, as the authors' code counts.
const DECREASES: u32 = 30;

/// Parameters of [`Csfq`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue entry is their only description")]
pub struct CsfqParams {
    pub limit: Limit,
    pub threshold: Ratio,
    pub k: Span,
    pub k_alpha: Span,
    pub k_c: Span,
}

impl CsfqParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn from_args(args: &Args) -> Result<Self, ParamError> {
        let args = args.of(&ENTRY);
        let params = Self {
            limit: args.limit("limit"),
            threshold: args.ratio("threshold"),
            k: args.span("k"),
            k_alpha: args.span("k_alpha"),
            k_c: args.span("k_c"),
        };
        for (key, span) in [("k", params.k), ("k_alpha", params.k_alpha), ("k_c", params.k_c)] {
            require(span > Span::ZERO, key, "an average takes time; write for example \"100ms\"")?;
        }
        Ok(params)
    }
}

/// CSFQ's state, with the paper's names. Rates are in bits a second.
#[derive(Clone, Debug)]
pub struct Csfq {
    limit: Limit,
    threshold: Ratio,
    k_c: Span,
    edge: RateLabels,
    random: Stream,
    /// C.
    c: f64,
    /// α, the fair share of a weight of 1; above 0.
    alpha: Option<f64>,
    /// tmp_α, the largest label of the present window.
    tmp_alpha: Option<f64>,
    /// A, of all that arrives.
    a: Exponential,
    /// F, of what α lets through.
    f: Exponential,
    congested: bool,
    /// Times that it became congested. Where this grows faster than windows pass, α stands still.
    periods: u64,
    start_time: Time,
    /// Decreases of α left in this period of congestion.
    decreases: u32,
    /// Time of the last arrival.
    last: Time,
}

impl Csfq {
    /// CSFQ in front of a link of `link_rate`.
    #[must_use]
    pub fn new(params: &CsfqParams, link_rate: Rate, random: Stream) -> Self {
        let rate = Exponential::new(params.k_alpha, 0.0, Time::ZERO, First::SinceStart);
        Self {
            limit: params.limit,
            threshold: params.threshold,
            k_c: params.k_c,
            edge: RateLabels::new(params.k),
            random,
            c: link_rate.as_bit() as f64,
            alpha: None,
            tmp_alpha: None,
            a: rate.clone(),
            f: rate,
            congested: true,
            periods: 0,
            start_time: Time::ZERO,
            decreases: DECREASES,
            last: Time::ZERO,
        }
    }

    /// The fair share of a weight of 1, in bits a second, if it is known.
    #[must_use]
    pub const fn alpha(&self) -> Option<f64> {
        self.alpha
    }

    /// The label that a packet came with, else the one that the edge gives it.
    fn label<P: Packet>(&mut self, now: Time, packet: &P) -> Label {
        packet.label(LabelKind::Rate).unwrap_or_else(|| {
            let label = self.edge.label(now, packet.flow(), packet.size());
            Label::new(label.unwrap_or_else(|| (self.f.rate(now) / 2.0).max(1.0)))
        })
    }

    /// The probability of an early drop.
    fn prob(&self, label: f64) -> f64 {
        match self.alpha {
            // Stoica98 figure 3: prob = max(0, 1 - α / label).
            Some(alpha) if label > alpha => 1.0 - alpha / label,
            _ => 0.0,
        }
    }

    /// estimate_α of figure 3, for a packet that arrives and is `dropped` early or not.
    fn estimate_alpha(&mut self, now: Time, size: Bytes, label: f64, dropped: bool, calm: bool) {
        let bits = size.bits() as f64;
        self.a.update(now, bits);
        self.f.update(now, if dropped { 0.0 } else { bits });
        self.last = now;
        if self.alpha.is_none() {
            self.note(label);
            if calm {
                return;
            }
            self.alpha = self.tmp_alpha.take().or(Some(self.c / 2.0)).filter(|alpha| *alpha > 0.0);
        }
        let over = now >= self.start_time + self.k_c;
        match (self.a.rate(now) >= self.c, self.congested) {
            (true, false) => {
                self.congested = true;
                self.periods += 1;
                self.start_time = now;
                self.decreases = DECREASES;
            }
            (true, true) if over => {
                // Stoica98 figure 3: α = α C / F.
                let most = self.c / self.edge.smallest_weight();
                let next = |alpha: f64| (alpha * self.c / self.f.rate(now)).min(most);
                // A link that stands still lets nothing through, and says nothing of shares.
                self.alpha = self.alpha.map(next).filter(|alpha| *alpha > 0.0);
                self.start_time = now;
            }
            (false, true) => {
                self.congested = false;
                self.start_time = now;
                self.tmp_alpha = None;
            }
            (false, false) => {
                self.note(label);
                if over {
                    self.alpha = self.tmp_alpha.take().filter(|_| !calm);
                    self.start_time = now;
                }
            }
            (true, true) => {}
        }
    }

    fn note(&mut self, label: f64) {
        // Nothing can be told from a label of 0.
        if label > 0.0 {
            self.tmp_alpha = Some(self.tmp_alpha.map_or(label, |noted| noted.max(label)));
        }
    }

    /// Whether the queue is at most at the threshold.
    fn is_calm(&self, backlog: Backlog) -> bool {
        let (queued, limit) = match self.limit {
            Limit::Packets(limit) => (backlog.packets.get(), limit.get()),
            Limit::Bytes(limit) => (backlog.bytes.get(), limit.get()),
        };
        queued as f64 <= self.threshold.get() * limit as f64
    }

    fn overflow(&mut self) {
        if self.decreases > 0 {
            self.decreases -= 1;
            self.alpha = self.alpha.map(|alpha| alpha * DECREASE);
        }
    }
}

impl<P: Packet> BufferPolicy<P> for Csfq {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Verdict {
        let label = self.label(now, packet).value();
        let prob = self.prob(label);
        let dropped = self.random.chance(prob);
        let calm = self.is_calm(backlog);
        self.estimate_alpha(now, packet.size(), label, dropped, calm);
        if dropped {
            return Verdict::Drop(DropReason::Early);
        }
        if !self.limit.admits(packet, backlog) {
            self.overflow();
            return Verdict::Drop(DropReason::Overflow);
        }
        let relabelled = self.alpha.map_or(label, |alpha| label.min(alpha.max(1.0)));
        packet.set_label(LabelKind::Rate, Label::new(relabelled));
        Verdict::Accept
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(alpha) = self.alpha {
            show("alpha", alpha);
        }
        show("arrival_rate", self.a.rate(self.last));
        show("accepted_rate", self.f.rate(self.last));
        show("congested_periods", self.periods as f64);
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.c = rate.as_bit() as f64;
    }

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        self.edge.set_weight(flow, weight);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPacket, packet};
    use crate::units::Packets;
    use std::vec::Vec;

    const C: f64 = 8e6;

    /// In front of 8 Mb/s: a packet of 1000 B takes a millisecond.
    fn csfq() -> Csfq {
        let params = CsfqParams::from_args(&Args::default()).unwrap();
        Csfq::new(&params, Rate::from_mbit(8), Stream::new(1, "csfq"))
    }

    /// Averages of `a` and `f` since time 0, and this share.
    fn standing(congested: bool, alpha: Option<f64>, a: f64, f: f64) -> Csfq {
        let average = |rate| Exponential::new(Span::from_millis(100), rate, Time::ZERO, First::SinceStart);
        Csfq { congested, alpha, a: average(a), f: average(f), ..csfq() }
    }

    fn labelled(label: f64) -> TestPacket {
        let mut packet = packet(0, 0, 1_000);
        packet.set_label(LabelKind::Rate, Label::new(label));
        packet
    }

    fn queued(packets: u64) -> Backlog {
        Backlog { packets: Packets::new(packets), bytes: Bytes::new(1_000 * packets) }
    }

    /// The verdict at `us` microseconds on a packet with `label` that finds `packets`, and its new label.
    fn arrive(csfq: &mut Csfq, us: u64, label: f64, packets: u64) -> (Verdict, f64) {
        let mut packet = labelled(label);
        let verdict = csfq.admit(Time::from_nanos(1_000 * us), &mut packet, queued(packets));
        (verdict, packet.label(LabelKind::Rate).unwrap().value())
    }

    #[test]
    fn the_excess_over_the_share_is_dropped() {
        let csfq = standing(true, Some(1e6), 0.0, 0.0);
        // 1 - 1/4, and nothing for what is within the share or covered by a guarantee.
        assert_eq!([4e6, 1e6, 0.5e6, 0.0].map(|label| csfq.prob(label)), [0.75, 0.0, 0.0, 0.0]);
        assert_eq!(self::csfq().prob(1e12), 0.0, "an unknown share is not a share of nothing");
        // In practice: 10000 trials at 0.75, 4 sigma = 4 sqrt(0.75·0.25·10000) = 173. The time does not move,
        // so neither do the averages and the share.
        let mut csfq = csfq;
        let early = Verdict::Drop(DropReason::Early);
        let drops = (0..10_000).filter(|_| arrive(&mut csfq, 0, 4e6, 20).0 == early).count();
        assert!(drops.abs_diff(7_500) < 173, "{drops}");
    }

    #[test]
    fn a_congested_link_scales_its_share_by_what_was_accepted() {
        // K_α = 100 ms, 8000 bit after 0.5 ms: w = 1 - e^-0.005 = 0.00498752. A = 16e6 stays; accepted,
        // F = 12e6 + w·4e6 = 12019950, so α = 2e6·8e6/12019950 = 1331120.
        let mut csfq = Csfq { k_c: Span::from_nanos(500_000), ..standing(true, Some(2e6), 16e6, 12e6) };
        let (verdict, label) = arrive(&mut csfq, 500, 1.5e6, 20);
        assert_eq!(verdict, Verdict::Accept);
        assert!((csfq.alpha.unwrap() - 1_331_120.0).abs() < 1.0, "{csfq:?}");
        // The label that leaves is the new share, to half of 2^-13.
        assert!((label / 1_331_120.0 - 1.0).abs() < 1.3e-4, "{label}");
        // Not before K_c has passed: the window starts at 0.5 ms.
        let alpha = csfq.alpha;
        arrive(&mut csfq, 900, 1.0, 20);
        assert_eq!(csfq.alpha, alpha);
        // Dropped: F = (1 - w)·12e6 = 11940150, α = 2e6·8e6/11940150 = 1340017.
        let mut csfq = Csfq { k_c: Span::from_nanos(500_000), ..standing(true, Some(2e6), 16e6, 12e6) };
        csfq.estimate_alpha(Time::from_nanos(500_000), Bytes::new(1_000), 9e6, true, false);
        assert!((csfq.alpha.unwrap() - 1_340_017.0).abs() < 1.0, "{csfq:?}");
    }

    #[test]
    fn a_share_never_exceeds_the_link_for_the_smallest_weight() {
        for (weight, most) in [(None, C), (Some(4.0), C), (Some(0.5), 2.0 * C)] {
            // With hardly anything accepted, C / F is large.
            let mut csfq = standing(true, Some(7e6), 16e6, 1e3);
            if let Some(weight) = weight {
                BufferPolicy::<TestPacket>::set_weight(&mut csfq, FlowId(1), Weight::new(weight).unwrap());
            }
            csfq.k_c = Span::ZERO;
            csfq.estimate_alpha(Time::from_nanos(1), Bytes::new(1_000), 1.0, true, false);
            assert_eq!(csfq.alpha, Some(most));
        }
    }

    #[test]
    fn an_uncongested_link_takes_the_largest_label_of_a_window() {
        let mut csfq = standing(true, Some(3e6), 1e6, 1e6);
        // The end of congestion starts a window, of which the first packet is not part.
        arrive(&mut csfq, 1_000, 2.5e6, 20);
        assert_eq!((csfq.congested, csfq.tmp_alpha, csfq.alpha), (false, None, Some(3e6)));
        for (ms, label) in [(31, 1e6), (61, 2e6), (91, 1.5e6)] {
            arrive(&mut csfq, 1_000 * ms, label, 20);
        }
        assert_eq!(csfq.alpha, Some(3e6), "until K_c has passed");
        arrive(&mut csfq, 101_000, 0.5e6, 20);
        assert_eq!(csfq.alpha, Some(Label::new(2e6).value()));
        // A lone packet in a window counts for itself, or the share would be nothing.
        arrive(&mut csfq, 201_000, 0.7e6, 20);
        assert_eq!(csfq.alpha, Some(Label::new(0.7e6).value()));
        // With a short queue the share is unknown again; 16 of 64 packets are still short.
        arrive(&mut csfq, 301_000, 0.7e6, 16);
        assert_eq!(csfq.alpha, None);
    }

    #[test]
    fn an_unknown_share_becomes_the_largest_label_when_the_queue_grows() {
        let mut csfq = csfq();
        for (us, label, packets) in [(1, 3e6, 0), (2, 5e6, 16), (3, 1e6, 16)] {
            assert_eq!(arrive(&mut csfq, us, label, packets).1, Label::new(label).value());
            assert_eq!(csfq.alpha, None);
        }
        arrive(&mut csfq, 4, 2e6, 17);
        assert_eq!(csfq.alpha, Some(Label::new(5e6).value()));
        // Half the link if no label said anything.
        let mut csfq = self::csfq();
        arrive(&mut csfq, 1, 0.0, 17);
        assert_eq!(csfq.alpha, Some(C / 2.0));
    }

    #[test]
    fn an_overflow_takes_one_percent_thirty_times_in_a_period() {
        let mut csfq = standing(true, Some(4e6), 16e6, 8e6);
        let overflow = Verdict::Drop(DropReason::Overflow);
        for i in 1..=40 {
            assert_eq!(arrive(&mut csfq, 0, 1.0, 64).0, overflow);
            let expected = 4e6 * 0.99_f64.powi(i.min(30));
            assert!((csfq.alpha.unwrap() / expected - 1.0).abs() < 1e-12, "after {i}");
        }
        // A new period has thirty of its own.
        csfq.congested = false;
        arrive(&mut csfq, 0, 1.0, 64);
        assert_eq!((csfq.decreases, csfq.periods), (29, 1));
    }

    #[test]
    fn only_the_edge_knows_flows() {
        let (mut edge, mut core) = (csfq(), csfq());
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
        let mut csfq = csfq();
        let mut packet = packet(0, 0, 1_000);
        packet.set_label(LabelKind::AckTickets, Label::new(7.0));
        csfq.admit(Time::from_secs(1), &mut packet, queued(0));
        assert_eq!((packet.label(LabelKind::AckTickets), csfq.edge.flows()), (Some(Label::new(7.0)), 1));
    }

    #[test]
    fn load_that_crosses_the_link_rate_faster_than_windows_is_counted() {
        // 16 packets at twice the link's rate, then as long nothing: A crosses C each time, every crossing
        // starts a window anew, and the share stands still. The counter says why.
        let mut csfq = standing(false, Some(1e6), C, C);
        let mut us = 0;
        for _ in 0..100 {
            for _ in 0..50 {
                us += 500;
                csfq.estimate_alpha(Time::from_nanos(1_000 * us), Bytes::new(1_000), 2e6, false, false);
            }
            us += 25_000;
        }
        let mut shown = Vec::new();
        BufferPolicy::<TestPacket>::statistics(&csfq, &mut |name, value| shown.push((name, value)));
        assert_eq!(
            shown.iter().map(|shown| shown.0).collect::<Vec<_>>(),
            ["alpha", "arrival_rate", "accepted_rate", "congested_periods"]
        );
        // 100 waves of 50 ms in 5 s, which is 50 windows.
        assert!((95.0..=100.0).contains(&shown[3].1), "{shown:?}");
        assert_eq!(shown[0].1, 1e6);
    }

    #[test]
    fn a_link_that_stood_still_starts_again_with_an_unknown_share() {
        let mut csfq = standing(true, Some(1e6), 16e6, 8e6);
        BufferPolicy::<TestPacket>::set_link_rate(&mut csfq, Rate::ZERO);
        csfq.k_c = Span::ZERO;
        arrive(&mut csfq, 500, 1e6, 20);
        assert_eq!(csfq.alpha, None);
    }
}
