//! TRED, ticket-based RED: RED whose drop probability falls with the tickets on a packet.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, section II-C. A packet
//! with as many tickets as the link expects is dropped as RED would; one with half as many eight times as
//! often. TCP flows that are dropped send less, mark more tickets on each packet, and settle where all carry
//! the same: in proportion to what they were issued.
//!
//! Readings, where the paper leaves room:
//! - "p as in RED" has a count that spaces drops. The factor multiplies p before the count (`stage`): after it,
//!   or with no count at all, shares are off and links with few flows idle. The paper does not say.
//! - MinTkt is the least tickets in a sliding window of two halves of `min_tkt_window`; it is unknown, and the
//!   filter admits everything, before the first packet. "InTkt < K × MinTkt" is strict.
//! - ExpectTkt is unknown, and the factor 1, before the first packet passes the filter.
//! - RED's other readings hold at each `stage`: the first arrival above `min_th` joins, and so does one that finds
//!   fewer than two packets.
//! - p × factor above 1 is 1, long before the average reaches `max_th`: all packets of a flow that takes far too
//!   much are dropped.
//! - Packets without tickets (acknowledgements, other protocols) are judged by plain RED and counted nowhere.
//! - `queue limit`: the paper's MaxThresh of 55 needs a limit above it.
//!
//! Beyond the paper, off unless set: `min_tkt_rank` above 1 keeps single packets with stray tags from setting
//! MinTkt; `adaptive` moves `max_p` (Floyd, Gummadi, Shenker, "Adaptive RED", 2001, figure 1; the paper's future
//! work).
//!
//! Cost: O(1) per packet, one power after an idle period; no state per flow. Parameters: [`ENTRY`].

use super::average::AverageQueue;
use super::detection::{self, DetectionParams};
use super::drop_curve::{DropCurve, DropSpacing, Zone};
use super::{Admission, BufferPolicy};
use crate::estimate::RateEstimator;
use crate::estimate::least_labels::{LeastLabels, MAX_RANKS};
use crate::estimate::tsw::Tsw;
use crate::label::Label;
use crate::limit::Limit;
use crate::mark::ticket_policer::{WINDOW, read};
use crate::mutant::Mutant;
use crate::packet::{LabelKind, Packet};
use crate::param::LIMIT;
use crate::param::{Entry, EntryArgs, Kind, Paper, Param, ParamError, Role, require};
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Rate, Span, Time};

const PAPER: &str = "the paper, section III";

/// TRED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tred",
    role: Role::Policy,
    summary: "Ticket-based RED: drops more of flows whose packets carry fewer tickets than the link expects.",
    reference: "Zhang et al. 2002, section II-C",
    cost: "O(1) per packet, no state per flow",
    params: &[
        Param {
            default: Some("110p"),
            source: "chosen: twice max_th, so that the average can reach it",
            ..LIMIT
        },
        Param { symbol: "MinThresh", source: PAPER, ..detection::MIN_TH },
        Param { symbol: "MaxThresh", default: Some("55p"), source: PAPER, ..detection::MAX_TH },
        Param { symbol: "MaxP", default: Some("0.2"), source: PAPER, ..detection::MAX_P },
        detection::W_Q,
        Param { source: "the paper: all packets are dropped from MaxThresh on", ..detection::GENTLE },
        detection::WAIT,
        detection::MEAN_PKTSIZE,
        WINDOW,
        Param {
            name: "factor",
            symbol: "–",
            kind: Kind::Switch,
            default: Some("true"),
            paper: Paper::AsDefault,
            source: "the paper, section II-C.1",
            doc: "Whether tickets count; false: plain RED.",
        },
        Param {
            name: "n",
            symbol: "n",
            kind: Kind::Number,
            default: Some("3"),
            paper: Paper::AsDefault,
            source: "the paper, section II-C.1",
            doc: "Exponent of ExpectTkt / InTkt.",
        },
        Param {
            name: "stage",
            symbol: "–",
            kind: Kind::Choice(&["before", "after", "none"]),
            default: Some("before"),
            paper: Paper::AsDefault,
            source: "chosen: the only one that shows the paper's Tables I and II",
            doc: "Whether the factor multiplies p before the count that spaces drops, after it, or there is no count.",
        },
        Param {
            name: "k",
            symbol: "K",
            kind: Kind::Number,
            default: Some("2"),
            paper: Paper::AsDefault,
            source: "the paper, section II-C.1",
            doc: "Packets with K × MinTkt or more belong to rich flows and do not count for ExpectTkt; 0: all count.",
        },
        Param {
            name: "min_tkt_window",
            symbol: "\"some interval\"",
            kind: Kind::Span,
            default: Some("1s"),
            paper: Paper::AsDefault,
            source: "chosen: a hundred packets at 1 Mbit/s; 0.1 s to 5 s make no visible difference",
            doc: "Window of MinTkt.",
        },
        Param {
            name: "min_tkt_rank",
            symbol: "–",
            kind: Kind::Count,
            default: Some("1"),
            paper: Paper::AsDefault,
            source: "the paper: the least",
            doc: "MinTkt is the smallest number of tickets in the window, or that of this rank, up to 4: ignores outliers.",
        },
        Param {
            name: "adaptive",
            symbol: "–",
            kind: Kind::Switch,
            default: Some("false"),
            paper: Paper::AsDefault,
            source: "the paper; true: Floyd, Gummadi, Shenker 2001",
            doc: "Let max_p move so that the average stays around the middle of its thresholds.",
        },
    ],
};

/// Where the factor comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before the count that spaces drops.
    Before,
    /// After it.
    After,
    /// There is no count: each packet is judged by itself.
    None,
}

/// Parameters of [`Tred`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct TredParams {
    /// Size of the buffer, in packets or bytes, without the packet in transmission. Default 110 packets.
    pub limit: Limit,
    /// RED's average queue and drop curve. Defaults: see [`DetectionParams`].
    pub detection: DetectionParams,
    /// Window of the average number of tickets on a packet. Default 5 s.
    pub window: Span,
    /// Whether tickets count; false: plain RED. Default true.
    pub factor: bool,
    /// n: exponent of ExpectTkt / InTkt, 0 to 16. Default 3.
    pub n: f64,
    /// Where the factor multiplies the drop probability: before the count that spaces drops, after it, or
    /// without one. Default before.
    pub stage: Stage,
    /// K: packets with K × MinTkt tickets or more do not count for ExpectTkt; above 1, or 0: all count.
    /// Default 2.
    pub k: f64,
    /// Window of MinTkt. Default 1 s.
    pub min_tkt_window: Span,
    /// Rank among the least tickets of the window that MinTkt is, 1 to 4. Default 1.
    pub min_tkt_rank: usize,
    /// Whether max_p adapts so that the average stays around the middle of its thresholds. Default false.
    pub adaptive: bool,
}

impl TredParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let rank = args.count("min_tkt_rank");
        require((1..=MAX_RANKS as u64).contains(&rank), "min_tkt_rank", "write a rank from 1 to 4")?;
        let limit = args.limit("limit");
        let params = Self {
            limit,
            detection: DetectionParams::from_args(args, limit)?,
            window: args.span("window"),
            factor: args.switch("factor"),
            n: args.number("n"),
            stage: match args.choice("stage") {
                "after" => Stage::After,
                "none" => Stage::None,
                _ => Stage::Before,
            },
            k: args.number("k"),
            min_tkt_window: args.span("min_tkt_window"),
            min_tkt_rank: rank as usize,
            adaptive: args.switch("adaptive"),
        };
        let (n, k) = (params.n, params.k);
        require((0.0..=16.0).contains(&n), "n", "an exponent lies between 0 and 16; the paper has 3")?;
        let above_one = "K is above 1, or no packet counts; 0 counts all; the paper has 2";
        require(k == 0.0 || k > 1.0, "k", above_one)?;
        Ok(params)
    }
}

/// TRED's state, with the paper's names.
#[derive(Clone, Debug)]
pub struct Tred {
    pub(crate) params: TredParams,
    random: Stream,
    avg_q_len: AverageQueue,
    spacing: DropSpacing,
    min_tkt: LeastLabels,
    expect_tkt_rate: Tsw,
    expect_pkt_rate: Tsw,
    max_p: MovingMaxP,
    stats: TredStats,
}

/// What TRED has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TredStats {
    /// Packets with tickets that arrived.
    pub packets: u64,
    /// Tickets on them.
    pub tickets: f64,
    /// Those of the packets that did not count for ExpectTkt.
    pub filtered: u64,
}

impl Tred {
    /// TRED in front of a link of `link_rate`, with an average of 0 and nothing known of tickets.
    #[must_use]
    pub fn new(params: &TredParams, link_rate: Rate, random: Stream) -> Self {
        let curve = params.detection.curve();
        // Normal operation ends above MinThresh, where RED's ends at it.
        let curve = DropCurve { min_th: curve.min_th.next_up(), ..curve };
        Self {
            avg_q_len: params.detection.average(link_rate),
            spacing: DropSpacing::new(curve, params.detection.wait),
            min_tkt: LeastLabels::new(
                Mutant::PpsOldMinimum.pick(params.min_tkt_window, Span::from_secs(1_000_000)),
                params.min_tkt_rank,
            ),
            expect_tkt_rate: Tsw::new(params.window, 0.0, Time::ZERO),
            expect_pkt_rate: Tsw::new(params.window, 0.0, Time::ZERO),
            max_p: MovingMaxP::new(),
            params: params.clone(),
            random,
            stats: TredStats::default(),
        }
    }

    /// What it has seen.
    #[must_use]
    pub const fn stats(&self) -> &TredStats {
        &self.stats
    }

    /// ExpectTkt; none before a packet passed the filter.
    #[must_use]
    pub fn expect_tkt(&self) -> Option<f64> {
        // The two averages have one window and the same arrivals: what decays between cancels out.
        let packets = self.expect_pkt_rate.latest();
        (packets > 0.0).then(|| self.expect_tkt_rate.latest() / packets)
    }

    /// Takes the tickets of an arriving packet into account, and gives (ExpectTkt / InTkt)^n.
    fn factor(&mut self, now: Time, label: Label) -> f64 {
        let in_tkt = read(label);
        self.stats.packets += 1;
        self.stats.tickets += in_tkt;
        let min_tkt = self.min_tkt.update(now, label).map(read);
        let all_count = self.params.k == 0.0 || Mutant::PpsNoFilter.is_on();
        let normal = all_count || min_tkt.is_none_or(|min_tkt| in_tkt < self.params.k * min_tkt);
        if normal {
            self.expect_tkt_rate.update(now, in_tkt);
            self.expect_pkt_rate.update(now, 1.0);
        } else {
            self.stats.filtered += 1;
        }
        match self.expect_tkt() {
            Some(expect_tkt) if Mutant::PpsNoFactor.pick(self.params.factor, false) => {
                let ratio = Mutant::PpsInverse.pick(expect_tkt / in_tkt, in_tkt / expect_tkt);
                power(ratio, Mutant::PpsLinear.pick(self.params.n, 1.0))
            }
            _ => 1.0,
        }
    }

    fn judge(&mut self, backlog: Backlog, factor: f64) -> Option<DropReason> {
        let avg =
            Mutant::PpsInstantQueue.pick(self.avg_q_len.get(), self.params.detection.min_th.measure(backlog));
        let p_b = match self.spacing.arrival(avg, backlog.packets, 1.0) {
            Zone::Free => return None,
            Zone::Forced => return Some(DropReason::Forced),
            Zone::Curve(p_b) => p_b * self.max_p.relative,
        };
        let p = match self.params.stage {
            Stage::Before => self.spacing.spread((p_b * factor).min(1.0)),
            Stage::After => self.spacing.spread(p_b) * factor,
            Stage::None => p_b * factor,
        };
        self.random.chance(p.min(1.0)).then_some(DropReason::Early)
    }
}

/// x^n, without a power for the paper's n.
fn power(x: f64, n: f64) -> f64 {
    if n == 3.0 { x * x * x } else { libm::pow(x, n) }
}

impl<P: Packet> BufferPolicy<P> for Tred {
    // Section II-C.1, "upon each packet arrival". InTktRate is the exchange's, which needs it.
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.avg_q_len.update(now, self.params.detection.min_th.measure(backlog));
        if self.params.adaptive {
            self.max_p.adapt(now, self.avg_q_len.get(), &self.params);
        }
        let factor = packet.label(LabelKind::Tickets).map_or(1.0, |label| self.factor(now, label));
        let early = self.judge(backlog, factor);
        let full = !self.params.limit.admits(packet, backlog);
        let reason = if full { Some(DropReason::Overflow) } else { early };
        let Some(reason) = reason else { return Admission::Accept };
        self.spacing.dropped();
        Admission::Drop(reason)
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        self.avg_q_len.pop(now, scheduler)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let TredStats { packets, tickets, filtered } = self.stats;
        show("avg", self.avg_q_len.get());
        if packets > 0 {
            show("tickets_per_packet", tickets / packets as f64);
            show("filtered", filtered as f64 / packets as f64);
        }
        if self.params.adaptive {
            show("max_p", self.max_p.relative * self.params.detection.max_p.get());
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.params.limit = limit;
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.avg_q_len.set_link_rate(rate);
    }
}

/// `max_p` as adaptive RED moves it, relative to the configured one.
#[derive(Clone, Debug)]
struct MovingMaxP {
    relative: f64,
    next: Time,
}

impl MovingMaxP {
    const INTERVAL: Span = Span::from_millis(500);
    const MIN: f64 = 0.01;
    const MAX: f64 = 0.5;

    const fn new() -> Self {
        Self { relative: 1.0, next: Time::ZERO }
    }

    /// Floyd et al. 2001, figure 1: towards an average in the middle fifth between the thresholds.
    fn adapt(&mut self, now: Time, avg: f64, params: &TredParams) {
        let configured = params.detection.max_p.get();
        if now < self.next || configured == 0.0 {
            return;
        }
        self.next = now + Self::INTERVAL;
        let max_p = configured * self.relative;
        let min_th = params.detection.min_th.level();
        let range = params.detection.max_th.level() - min_th;
        let moved = if avg > min_th + 0.6 * range && max_p <= Self::MAX {
            max_p + (max_p / 4.0).min(0.01)
        } else if avg < min_th + 0.4 * range && max_p >= Self::MIN {
            max_p * 0.9
        } else {
            max_p
        };
        self.relative = moved / configured;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::system::catalog::Selection;
    use crate::testing::packet;
    use crate::units::Bytes;
    use crate::units::Packets;

    fn tred(pairs: &[(&str, &str)]) -> Tred {
        let mut selection = Selection::of(Role::Policy, "tred").unwrap();
        // An average that is the queue itself.
        for (key, value) in [("w_q", "1")].iter().chain(pairs) {
            selection.set(key, value).unwrap();
        }
        let params = TredParams::from_args(&selection.args.of(&ENTRY)).unwrap();
        Tred::new(&params, Rate::from_mbit(1), Stream::new(1, "tred"))
    }

    fn tagged(tickets: f64) -> SimplePacket {
        let mut packet = packet(0, 0, 500);
        packet.set_label(LabelKind::Tickets, Label::new(tickets));
        packet
    }

    fn admit(tred: &mut Tred, at: Time, mut packet: SimplePacket, queued: u64) -> Admission {
        let backlog = Backlog { packets: Packets::new(queued), bytes: Bytes::new(500 * queued) };
        tred.admit(at, &mut packet, backlog)
    }

    /// Shows it `count` packets of each of these tags, 10 ms apart, with an empty queue; the time after.
    fn show(tred: &mut Tred, from: Time, tags: &[f64], count: u64) -> Time {
        let mut now = from;
        for i in 0..count {
            now += Span::from_millis(10);
            admit(tred, now, tagged(tags[i as usize % tags.len()]), 0);
        }
        now
    }

    /// The share of `tag` that is dropped with an average of 30 when each is judged by itself: p_b = 0.2 · 25/50
    /// = 0.1.
    fn dropped(tag: Option<f64>, factor: &str) -> f64 {
        let mut tred = tred(&[("stage", "none"), ("factor", factor), ("window", "500s")]);
        let now = show(&mut tred, Time::ZERO, &[40.0], 100);
        let drops = (0..10_000).filter(|_| {
            let packet = tag.map_or_else(|| packet(0, 0, 500), tagged);
            admit(&mut tred, now, packet, 30) != Admission::Accept
        });
        drops.count() as f64 / 10_000.0
    }

    #[test]
    fn half_the_tickets_are_dropped_eight_times_as_often() {
        // ExpectTkt is 40 and a window of 500 s keeps it there while 10,000 packets of 56 or less are shown,
        // of which those of 80 and more are filtered. 4 standard deviations of 10,000 draws.
        for (tag, p) in [(80.0, 0.1 / 8.0), (120.0, 0.1 / 27.0)] {
            let band = 4.0 * (p * (1.0 - p) / 10_000.0_f64).sqrt();
            assert!(
                (dropped(Some(tag), "true") - p).abs() < band,
                "{tag}: {} for {p}",
                dropped(Some(tag), "true")
            );
        }
        let band = 4.0 * (0.1 * 0.9 / 10_000.0_f64).sqrt();
        assert!((dropped(Some(40.0), "true") - 0.1).abs() < band);
        // Without the factor, and without tickets, it is RED.
        assert!((dropped(Some(120.0), "false") - 0.1).abs() < band);
        assert!((dropped(None, "true") - 0.1).abs() < band);
    }

    #[test]
    fn a_flow_with_a_tenth_of_the_tickets_gets_nothing_through() {
        // (40/16)³ = 15.6, times 0.1 is above 1. Few packets, so that ExpectTkt stays near 40.
        let mut tred = tred(&[("stage", "none"), ("k", "0"), ("window", "500s")]);
        let now = show(&mut tred, Time::ZERO, &[40.0], 1_000);
        admit(&mut tred, now, tagged(40.0), 30);
        assert!(
            (0..5).all(|_| admit(&mut tred, now, tagged(16.0), 30) == Admission::Drop(DropReason::Early))
        );
    }

    #[test]
    fn the_factor_comes_before_the_count_after_it_or_there_is_no_count() {
        // p_b = 0.1 at an average of 30, tags of half of what is expected: p_b × 8 = 0.8. The first arrival above
        // min_th starts the count at 1; the second has count 2.
        //  before: 2 × 0.8 = 1.6, so p = 0.8/(2 - 1.6) = 2, certain
        //  after: 2 × 0.1 < 1, so p = 0 × 8 = 0
        //  none: 0.8
        let share = |stage: &str| {
            let drops = (0..1_000).filter(|&i| {
                let mut tred = tred(&[("stage", stage), ("k", "0"), ("window", "5000s")]);
                tred.random = Stream::new(i, "tred");
                let now = show(&mut tred, Time::ZERO, &[40.0], 100);
                admit(&mut tred, now, tagged(40.0), 30);
                admit(&mut tred, now, tagged(20.2), 30) != Admission::Accept
            });
            drops.count() as f64 / 1_000.0
        };
        assert_eq!((share("before"), share("after")), (1.0, 0.0));
        // ExpectTkt is 40 - 20/102, so the factor is 7.7 and p 0.77; σ = √(0.77·0.23/1000) = 0.013.
        assert!((share("none") - 0.77).abs() < 0.055, "{}", share("none"));
    }

    #[test]
    fn from_max_thresh_on_all_are_dropped_and_up_to_min_thresh_none() {
        let mut tred = tred(&[]);
        let verdicts = [54, 55, 109, 110, 4, 5]
            .map(|queued| admit(&mut tred, Time::from_secs(1), tagged(255.0), queued));
        let (accept, drop) = (Admission::Accept, Admission::Drop);
        let (forced, overflow) = (drop(DropReason::Forced), drop(DropReason::Overflow));
        assert_eq!(verdicts, [accept, forced, forced, overflow, accept, accept]);
    }

    #[test]
    fn at_min_thresh_exactly_it_operates_normally() {
        // Tags of 1 where 40 are expected: p_b = 0.2 · 1/50 at an average of 6, times 40³ is above 1. The count
        // starts with the first arrival above 5, which joins; the next is dropped for certain.
        let mut tred = tred(&[("k", "0"), ("window", "500s")]);
        let now = show(&mut tred, Time::ZERO, &[40.0], 1_000);
        let verdicts = [5, 5, 6, 6].map(|queued| admit(&mut tred, now, tagged(1.0), queued));
        let accept = Admission::Accept;
        assert_eq!(verdicts, [accept, accept, accept, Admission::Drop(DropReason::Early)]);
    }

    #[test]
    fn rich_flows_do_not_raise_what_is_expected_but_those_below_k_do() {
        // Paper, Fig. 1 with B at 0.16 Mbit/s: B carries 1.75 times what A and C do: counted. Fig. 7: 6 times:
        // filtered. Two in three packets carry 40 tickets.
        for (rich, expected, filtered) in [(70.0, 50.0, 0.0), (240.0, 40.0, 1.0 / 3.0)] {
            let mut tred = tred(&[]);
            show(&mut tred, Time::ZERO, &[40.0, 40.0, rich], 6_000);
            let expect_tkt = tred.expect_tkt().unwrap();
            assert!((expect_tkt / expected - 1.0).abs() < 0.01, "{expect_tkt} for {rich}");
            let share = tred.stats().filtered as f64 / tred.stats().packets as f64;
            assert!((share - filtered).abs() < 0.01, "{share} for {rich}");
        }
        let unfiltered = &mut tred(&[("k", "0")]);
        show(unfiltered, Time::ZERO, &[40.0, 40.0, 240.0], 6_000);
        assert!((unfiltered.expect_tkt().unwrap() / (320.0 / 3.0) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_stray_packet_with_one_ticket_is_forgotten_within_two_intervals() {
        let mut tred = tred(&[]);
        let now = show(&mut tred, Time::ZERO, &[40.0], 1_000);
        let now = show(&mut tred, now, &[1.0], 1);
        let now = show(&mut tred, now, &[40.0], 20);
        // All but the stray are filtered now; ExpectTkt has (40·500 + 1)/501 tickets, and stays there.
        assert!(tred.stats().filtered >= 20);
        let now = show(&mut tred, now, &[40.0], 200);
        let before = tred.stats().filtered;
        show(&mut tred, now, &[40.0], 100);
        assert_eq!(tred.stats().filtered, before, "the filter still turns away normal packets");
        assert!((tred.expect_tkt().unwrap() / 40.0 - 1.0).abs() < 0.2);
    }

    #[test]
    fn a_higher_rank_does_not_notice_single_strays() {
        for (rank, filtered) in [("1", true), ("3", false)] {
            let mut tred = tred(&[("min_tkt_rank", rank)]);
            let mut now = show(&mut tred, Time::ZERO, &[40.0], 200);
            let before = tred.stats().filtered;
            for stray in [1.0, 2.0] {
                now = show(&mut tred, now, &[stray], 1);
                now = show(&mut tred, now, &[40.0], 10);
            }
            assert_eq!(tred.stats().filtered > before, filtered, "rank {rank}");
        }
    }

    #[test]
    fn before_the_first_ticket_nothing_is_known_and_a_tag_of_zero_is_one() {
        let mut tred = tred(&[]);
        assert_eq!(tred.expect_tkt(), None);
        admit(&mut tred, Time::from_secs(1), packet(0, 0, 40), 0);
        assert_eq!(tred.expect_tkt(), None, "untagged packets count nowhere");
        admit(&mut tred, Time::from_secs(1), tagged(0.0), 0);
        assert_eq!(tred.expect_tkt(), Some(1.0));
    }

    #[test]
    fn adaptive_max_p_moves_towards_the_middle_of_the_thresholds() {
        // Target 25 to 35. Every half second: from 0.2 up by 0.01, or down to nine tenths.
        for (queued, max_p) in [(30, 0.2), (50, 0.22), (10, 0.2 * 0.81)] {
            let mut tred = tred(&[("adaptive", "true")]);
            for ms in [0, 400, 600] {
                admit(&mut tred, Time::from_millis(ms), tagged(40.0), queued);
            }
            let got = tred.max_p.relative * 0.2;
            assert!((got - max_p).abs() < 1e-12, "{got} at {queued}");
        }
    }

    #[test]
    fn it_has_no_state_per_flow() {
        // No memory of its own, and a size that packets of 100,000 flows could not fit into.
        assert!(size_of::<Tred>() < 1_024 && !core::mem::needs_drop::<Tred>());
    }
}
