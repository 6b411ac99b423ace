//! TRED, ticket-based RED: RED whose drop probability falls with the tickets on a packet.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002, section II-C. A
//! packet with as many tickets as the link expects is dropped as in RED; one with half as many eight times as
//! often. TCP flows with drops send less, mark more tickets on each packet, and settle where all packets
//! carry the same number: flows share in proportion to the tickets issued to them.
//!
//! Readings, where the paper leaves room:
//! - "p as in RED" has a count that spaces drops. The factor multiplies p before the count (`stage`): after
//!   it, or without a count, shares are wrong and links with few flows idle. The paper does not say.
//! - MinTkt is the minimum of tickets in a sliding window of two halves of `min_tkt_window`; before the first
//!   packet it is unknown, and the filter admits everything. "InTkt < K × MinTkt" is strict.
//! - Before the first packet passes the filter ExpectTkt is unknown, and the factor 1.
//! - RED's other readings hold at each `stage`: the first arrival above `min_th` joins, and so does one that
//!   finds fewer than two packets.
//! - p × factor above 1 is 1, long before the average reaches `max_th`: all packets of a flow far above its
//!   share are dropped.
//! - With `preset = "paper"`, ExpectTkt is the mean, n is 3, packets count alike whatever their size, and the
//!   extensions below are off.
//! - Packets without tickets (acknowledgements, other protocols) are judged by plain RED and not counted.
//! - `queue limit`: the paper's MaxThresh of 55 needs a limit above it.
//!
//! Beyond the paper:
//! - `expect`: a flood lowers the mean of tickets, and MinTkt, so that all other flows look rich. ExpectTkt
//!   is the value at which `sum of min(rate, tickets / ExpectTkt)` over the flows equals the accepted rate:
//!   each packet counts as min(1, InTkt / ExpectTkt) of one. Flows below their share count in full, floods
//!   with their share. MinTkt is the lower bound, since no drop shows that all flows carry more.
//! - `keep`: p is at most 1 - keep × InTkt / ExpectTkt, so a flood is reduced to its share but not shut out.
//!   This also allows a larger n, which divides the link more exactly.
//! - `gentle`: from `max_th` to twice `max_th` tickets still decide. RED's hard edge drops all packets there,
//!   which costs flows that cross several links most. p_b rises to 1, and the bound on p rises with the
//!   average: p is at most 1 - keep × InTkt / (ExpectTkt × max(1, avg / MaxThresh)). Packets with twice the
//!   expected tickets are thus dropped last. Only a full buffer drops whatever the tickets.
//! - `relabel`: a packet that survives a drop probability p stands for 1 / (1 - p) arrivals, and carries
//!   their tickets; the flow's tickets survive the drops, and the next link and the exchange see the tickets
//!   issued.
//! - `per`: tickets are compared per byte, so that packets of any size divide a link by bits.
//!
//! - `limit`, `min_th`, `max_th`, `w_q`: RED needs a queue between its thresholds that outlasts the windows
//!   of TCP, and an average that outlasts its round trips. 55 packets are a quarter of a second at the
//!   paper's 1 Mb/s, and 3 ms at 200 Mb/s: there single bursts cross the whole curve, tickets have little
//!   effect, and the link idles after each burst. Unless one of the four is set, the buffer is 100 ms of a
//!   link faster than 13 Mb/s, the thresholds are the same fractions of it as in the paper, and the average
//!   extends over proportionally more packets. Only the unit of queues changes.
//!
//! - `adaptive`: on such links `max_p` moves (Floyd, Gummadi, Shenker, "Adaptive RED", 2001, figure 1; the
//!   paper's future work). TCP with a window of W needs p of some 1/W². With the paper's `max_p` a window of
//!   1000 packets keeps the average at `min_th`, too short a queue to outlast a reduction, and the link idles
//!   while others exceed their share. The lower bound of `max_p` falls with the square of the link's size. An
//!   overflow restores the configured `max_p`, or pulses after a pause would find a small one.
//!
//! Off unless set: `min_tkt_rank` above 1 keeps single packets with stray tags from setting MinTkt.
//!
//! `l4s`, off unless set, marks ECT(1) packets where others are dropped (`l4s.rs`), by the tickets on each:
//!
//! ```text
//! p_C = min(p_b (ExpectTkt / InTkt)^n, 1 - keep InTkt / ExpectTkt),   p_L = 2 sqrt(p_C)
//! ```
//!
//! with p_b from the average queue. There is no count here: scalable senders average marks themselves, and
//! the count spaces the drops of the others as if there were no L4S packets. A marked packet has not survived
//! a drop probability, and keeps its tickets. Both kinds settle where their tickets give them the probability
//! that they need: with windows of W, p_C is 1/W² for a scalable sender and some 3/W² for CUBIC. With equal
//! tickets it gets (1/3)^(1/n) of CUBIC's rate, 0.83 with n = 6.
//!
//! Cost: O(1) per packet, one power after an idle period; no state per flow. Parameters: [`ENTRY`].

pub mod params;

use super::average::AverageQueue;
use super::detection::DetectionParams;
use super::drop_curve::{DropCurve, DropSpacing, Zone};
use super::l4s::{self, Signal};
use super::{Admission, BufferPolicy};
use crate::estimate::RateEstimator;
use crate::estimate::least_labels::LeastLabels;
use crate::estimate::tsw::Tsw;
use crate::label::Label;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::mark::ticket_policer::read;
use crate::packet::{LabelKind, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, Packets, Rate, Ratio, Span, Time};

pub use params::{ENTRY, Expect, Per, Stage, Target, TredParams};

/// TRED's state, with the paper's names.
#[derive(Clone, Debug)]
pub struct Tred {
    params: TredParams,
    detection: DetectionParams,
    /// The present size of the buffer.
    limit: Limit,
    /// Whether the size has been set and no longer follows the link.
    limit_is_set: bool,
    /// The ratio of the sizes of this link to the paper's.
    scale: f64,
    random: Stream,
    avg_q_len: AverageQueue,
    spacing: DropSpacing,
    min_tkt: LeastLabels,
    expect_tkt_rate: Tsw,
    expect_pkt_rate: Tsw,
    max_p: MovingMaxP,
    stats: TredStats,
}

/// The packets and tickets counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TredStats {
    /// Packets with tickets that arrived.
    pub packets: u64,
    /// Tickets on them.
    pub tickets: f64,
    /// Packets with tickets that did not count for ExpectTkt.
    pub filtered: u64,
}

impl Tred {
    /// TRED for a link of `link_rate`, with an average of 0 and no knowledge of tickets.
    #[must_use]
    pub fn new(params: &TredParams, link_rate: Rate, random: Stream) -> Self {
        let detection = params.detection();
        let mut tred = Self {
            limit: params.limit().at(link_rate),
            limit_is_set: false,
            scale: 1.0,
            avg_q_len: detection.average(params.mean_pktsize, link_rate),
            spacing: detection.spacing(),
            detection,
            min_tkt: LeastLabels::new(params.min_tkt_window, params.min_tkt_rank),
            expect_tkt_rate: Tsw::new(params.window, 0.0, Time::ZERO),
            expect_pkt_rate: Tsw::new(params.window, 0.0, Time::ZERO),
            max_p: MovingMaxP::new(),
            params: params.clone(),
            random,
            stats: TredStats::default(),
        };
        tred.follow(link_rate);
        tred
    }

    /// Sets the sizes for a link of `rate`.
    fn follow(&mut self, rate: Rate) {
        self.scale = match self.params.follows_link() {
            true => (LinkLimit::bytes_of(rate).get() as f64 / PAPER_BUFFER.get() as f64).max(1.0),
            false => 1.0,
        };
        self.limit = match self.params.limit() {
            _ if self.limit_is_set => self.limit,
            BufferSize::Fixed(Limit::Packets(limit)) => {
                Limit::Packets(Packets::new((limit.get() as f64 * self.scale) as u64))
            }
            BufferSize::Time(_) if rate == Rate::ZERO => self.limit,
            limit => limit.at(rate),
        };
        let curve = self.detection.curve();
        // Normal operation ends above MinThresh, where RED's ends at it.
        let (min_th, max_th) = ((self.scale * curve.min_th).next_up(), self.scale * curve.max_th);
        self.spacing.set_curve(DropCurve { min_th, max_th, ..curve });
        self.avg_q_len.set_weight(Ratio::clamped(self.detection.w_q.get() / self.scale));
        self.avg_q_len.set_link_rate(rate);
    }

    /// The packets and tickets counted so far.
    #[must_use]
    pub const fn stats(&self) -> &TredStats {
        &self.stats
    }

    /// ExpectTkt, per packet or per 64 KiB; none until a packet has counted.
    #[must_use]
    pub fn expect_tkt(&self) -> Option<f64> {
        // Both averages have one window and the same arrivals: the decay since then cancels out.
        let packets = self.expect_pkt_rate.latest();
        (packets > 0.0).then(|| self.expect_tkt_rate.latest() / packets)
    }

    /// The tickets of an arriving packet, with the expected number.
    fn arrival(&mut self, now: Time, size: Bytes, label: Label) -> Tickets {
        let in_tkt = read(label);
        self.stats.packets += 1;
        self.stats.tickets += in_tkt;
        let per_byte = self.params.per == Per::Byte;
        let size = if per_byte { size.get() as f64 / UNIT } else { 1.0 };
        let worth = in_tkt / size;
        let least = if per_byte { Label::new(worth) } else { label };
        let min_tkt = self.min_tkt.update(now, least).map(read);
        let expected = match self.params.expect == Expect::Share {
            // Any ExpectTkt below all tags divides the link alike: MinTkt is known to be right.
            true => self.expect_tkt().into_iter().chain(min_tkt).reduce(f64::max),
            false => self.mean(now, worth, size, min_tkt),
        };
        Tickets { in_tkt, size, lack: expected.map_or(1.0, |expected| expected / worth) }
    }

    /// The mean of tickets on packets, with one more of `worth` and `size`, and without rich flows.
    fn mean(&mut self, now: Time, worth: f64, size: f64, min_tkt: Option<f64>) -> Option<f64> {
        let normal = self.params.k == 0.0 || min_tkt.is_none_or(|min_tkt| worth < self.params.k * min_tkt);
        if normal {
            self.expect_tkt_rate.update(now, worth * size);
            self.expect_pkt_rate.update(now, size);
        } else {
            self.stats.filtered += 1;
        }
        self.expect_tkt()
    }

    /// Moves ExpectTkt until flows at their share and flows below it make up the accepted rate: a packet with
    /// fewer tickets counts as a part of one.
    fn settle(&mut self, now: Time, tickets: &Tickets, accepted: bool) {
        if self.params.expect == Expect::Share {
            // The rates are of min(InTkt, ExpectTkt) and of accepted packets, so their ratio is ExpectTkt
            // where the flows' min(rate, due) add up to the accepted rate.
            self.expect_tkt_rate.update(now, tickets.in_tkt * tickets.lack.min(1.0));
            self.expect_pkt_rate.update(now, if accepted { tickets.size } else { 0.0 });
        }
    }

    /// Whether `max_p` moves.
    fn is_adaptive(&self) -> bool {
        self.params.adaptive.unwrap_or(self.scale > 1.0)
    }

    /// (ExpectTkt / InTkt)^n.
    fn factor(&self, lack: f64) -> f64 {
        if !self.params.factor {
            return 1.0;
        }
        power(lack, self.params.n)
    }

    /// The verdict on a packet whose tickets are ExpectTkt / `lack`. The probability of `Zone::Curve` is
    /// final.
    fn judge(&mut self, backlog: Backlog, lack: f64, is_l4s: bool) -> Zone {
        let step = if is_l4s { 0.0 } else { 1.0 };
        let avg = self.avg_q_len.get();
        let zone = self.spacing.arrival(avg, backlog.packets, step);
        let Zone::Curve(p_b) = zone else { return zone };
        let at_most = 1.0 - (self.params.keep.get() / (lack * self.spacing.beyond(avg))).min(1.0);
        // Most packets of flows within their share: the power is not needed.
        if at_most <= 0.0 {
            return Zone::Curve(0.0);
        }
        let (p_b, factor) = (p_b * self.max_p.relative, self.factor(lack));
        let p = match self.params.stage {
            _ if is_l4s => p_b * factor,
            Stage::Before => self.spacing.spread((p_b * factor).min(1.0)),
            Stage::After => self.spacing.spread(p_b) * factor,
            Stage::None => p_b * factor,
        };
        Zone::Curve(p.min(at_most))
    }

    /// Signals congestion with probability `p`.
    fn signal(&mut self, p: f64, is_l4s: bool) -> Signal {
        match is_l4s {
            true => l4s::signal(p, &mut self.random),
            false if self.random.chance(p) => Signal::Dropped,
            false => Signal::Spared,
        }
    }
}

/// The paper's buffer of 110 packets, all of full size.
const PAPER_BUFFER: Bytes = Bytes::new(110 * 1_500);

/// The unit of comparison of tickets in bytes, unless they are compared per packet: the largest packet, so
/// that one ticket on any packet is at least one per unit.
const UNIT: f64 = 65_536.0;

/// The tickets of an arriving packet.
struct Tickets {
    /// The tickets on the packet.
    in_tkt: f64,
    /// The packets or units that the tickets stand for.
    size: f64,
    /// ExpectTkt / InTkt; 1 while it is unknown.
    lack: f64,
}

/// x^n, with multiplications for the paper's n.
fn power(x: f64, n: f64) -> f64 {
    if n == 3.0 { x * x * x } else { libm::pow(x, n) }
}

impl<P: Packet> BufferPolicy<P> for Tred {
    // Section II-C.1, "upon each packet arrival". InTktRate is the exchange's, which needs it.
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.avg_q_len.update(now, self.detection.min_th.measure(backlog));
        if self.is_adaptive() {
            self.max_p.adapt(now, self.avg_q_len.get(), self.scale, &self.detection, self.params.target);
        }
        let label = packet.label(LabelKind::Tickets);
        let tickets = label.map(|label| self.arrival(now, packet.size(), label));
        let is_l4s = self.params.l4s && packet.ecn().is_l4s();
        let lack = tickets.as_ref().map_or(1.0, |tickets| tickets.lack);
        let (p, signal) = match self.judge(backlog, lack, is_l4s) {
            Zone::Free => (0.0, Signal::Spared),
            Zone::Forced => (0.0, Signal::Dropped),
            Zone::Curve(p) => (p, self.signal(p, is_l4s)),
        };
        let reason = match signal {
            _ if !self.limit.admits(packet, backlog) => Some(DropReason::Overflow),
            // Where the curve drops, its probability is above zero.
            Signal::Dropped => Some(if p > 0.0 { DropReason::Early } else { DropReason::Forced }),
            Signal::Marked | Signal::Spared => None,
        };
        if reason == Some(DropReason::Overflow) && self.is_adaptive() {
            self.max_p.restore();
        }
        if let Some(tickets) = tickets {
            self.settle(now, &tickets, reason.is_none());
            // Whether the packet could have been dropped.
            let spared = p > 0.0 && (!is_l4s || l4s::is_overload(p));
            if reason.is_none() && spared && self.params.relabel {
                packet.set_label(LabelKind::Tickets, Label::new(tickets.in_tkt / (1.0 - p)));
            }
        }
        match (reason, signal) {
            (Some(reason), _) => {
                if !is_l4s {
                    self.spacing.dropped();
                }
                Admission::Drop(reason)
            }
            (None, Signal::Marked) => Admission::Mark,
            (None, _) => Admission::Accept,
        }
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
        if self.is_adaptive() {
            show("max_p", self.max_p.relative * self.params.max_p.get());
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit)
    }

    fn set_limit(&mut self, limit: Limit) {
        (self.limit, self.limit_is_set) = (limit, true);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.follow(rate);
    }
}

/// `max_p` of adaptive RED, relative to the configured one.
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

    /// Ends a phase in which few packets competed: with a small max_p the next pulse fills the buffer before
    /// the average rises.
    const fn restore(&mut self) {
        self.relative = self.relative.max(1.0);
    }

    /// Floyd et al. 2001, figure 1: moves the average towards the middle fifth between the thresholds, which
    /// are `scale` times as large as configured.
    fn adapt(&mut self, now: Time, avg: f64, scale: f64, detection: &DetectionParams, target: Target) {
        let configured = detection.max_p.get();
        if now < self.next || configured == 0.0 {
            return;
        }
        self.next = now + Self::INTERVAL;
        let max_p = configured * self.relative;
        let min_th = detection.min_th.level();
        // Floyd et al. 2001, section 5: max_th is three times min_th.
        let max_th = match target {
            Target::Low => detection.max_th.level().min(3.0 * min_th),
            Target::Middle => detection.max_th.level(),
        };
        let (avg, range) = (avg / scale, max_th - min_th);
        // The loss rate of TCP falls with the square of its window, which grows with the link.
        let least = Self::MIN / (scale * scale);
        let moved = if avg > min_th + 0.6 * range && max_p <= Self::MAX {
            max_p + (max_p / 4.0).min(0.01)
        } else if avg < min_th + 0.4 * range && max_p >= least {
            max_p * 0.9
        } else {
            max_p
        };
        self.relative = moved / configured;
    }
}

#[cfg(test)]
mod tests;
