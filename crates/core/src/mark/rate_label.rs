//! Rate labels: the edge estimates the rate of each flow and writes it, divided by the flow's weight, on each
//! packet that no guarantee covers.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, eq. (3), and its weighted form;
//! guarantees after Pelsser, De Cnodder, "Improvements to core stateless fair queueing", PfHSN 2002, figure
//! 7. Labels are in bits of wire size a second.
//!
//! Readings, where the papers leave room:
//! - Packets that arrive at the same time have no gap between them: they carry the present estimate and count
//!   with the next gap. An infinitely fast access link thus does not look infinitely fast.
//! - The first gap of a flow is the time since the start of the run, so the labels of its first packets are
//!   small, as in the authors' code. Before any time has passed there is no estimate.
//! - A label is at least 1: 0 is reserved for packets that a guarantee covers.
//! - The 2002 paper only names [`Marking::Deterministic`]: a token bucket for each flow that fills at its
//!   guaranteed rate and starts full. Its depth, unless set: two full packets plus the guarantee times the
//!   round-trip time without queueing.
//!
//! Beyond the papers, and the default: [`Marking::Debt`]. TCP that halves its window when it exceeds its
//! guarantee gets less than the guarantee on average. A second, deep bucket holds the deficit of Reno after a
//! loss. A packet that only this bucket covers is labelled 1, so that no fair share drops it, but is not
//! guaranteed: half of the `reserve` of the buffer is closed to such packets, so that they do not push out
//! guaranteed packets of other flows. A flow may thus send more than its guarantee until its mean reaches it,
//! at up to `catch_up` times the guarantee, which a third bucket enforces. After a loss, the queued part of a
//! window may arrive at once, so the third bucket is deeper than the first by the guarantee times 250 ms.
//! Over a long time no more than the guarantee is covered. The edge keeps the debt; the core only reads
//! labels.
//!
//! Beyond the papers, and the default: `credit`. The window of TCP varies from 2/3 to 4/3 of its mean, over
//! seconds. A label with the rate of the last 100 ms exceeds the share at each peak, so the flow reaches its
//! share only at its peaks. Therefore a label is the smaller of r_i and its mean over `credit`, and at least
//! r_i / 1.5: a flow that sends more than that is no TCP. A flood is labelled with two thirds of its rate
//! until its mean has risen to that. Of a flow with a guarantee g_i, this holds for the rate of the packets that
//! neither its guarantee nor its debt covers: the label is the mean of that rate, and at least r_i / 1.5 - g_i.
//!
//! This is not a marker of one flow at its source: a router labels every packet that arrives without a label.
//!
//! Cost: O(1) per packet, one exponential (two for excess packets of a flow with a guarantee); 40 bytes per flow
//! that has been labelled, 8 per weight, 128 per guarantee.

use alloc::vec::Vec;

use crate::estimate::exponential::{Averages, TimeConstant};
use crate::label::{Format, Label};
use crate::packet::{FlowId, LabelKind, Packet};
use crate::param::{EntryArgs, Param, ParamError, require};
use crate::random::Stream;
use crate::schedule::Turn;
use crate::units::{Bytes, Rate, Span, Time, Weight, float, larger};
use crate::{choice, params};

/// The largest packet on most links: Ethernet's.
const FULL_PACKET: Bytes = Bytes::new(1_500);
/// The depth of a bucket beyond the guarantee times the round-trip time. Chosen: one packet can wait for
/// another.
const TWO_PACKETS: Bytes = Bytes::new(2 * FULL_PACKET.get());

/// The factor by which a flow may exceed its mean for a while and be labelled with the mean. Chosen: windows
/// of Reno reach 4/3 of their mean.
const BURST: f64 = 1.5;
/// The queueing delay that is added to a round-trip time, on any link. Chosen: 40 packets before 2 Mb/s take
/// 240 ms.
const QUEUEING: Span = Span::from_millis(250);
/// The longest debt. Chosen: the deficit of Reno with 30 Mb/s over 300 ms; a flow that exceeds its guarantee
/// for longer is not a burst.
const LONGEST_DEBT: Span = Span::from_secs(30);

/// The meaning of a packet's rate label. A packet without a label has not passed an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLabel {
    /// A guarantee covers the packet: no fair share applies. Written as 0.
    Guaranteed,
    /// Traffic of this many bits a second for a weight of 1; at least 1.
    Excess(f64),
}

impl RateLabel {
    /// The meaning of a label.
    #[must_use]
    #[inline]
    pub fn read(label: Label) -> Self {
        if label == Label::ZERO { Self::Guaranteed } else { Self::Excess(label.value()) }
    }

    /// The label nearest to `rate` bits a second in `format`. A rate below 1 is written as 1, because 0 has
    /// another meaning.
    #[must_use]
    #[inline]
    pub fn excess(rate: f64, format: Format) -> Self {
        Self::Excess(format.round(larger(rate, 1.0)))
    }

    /// Writes the label on `packet`, unless it has the same label already.
    #[inline]
    pub fn write<P: Packet>(self, packet: &mut P) {
        let label = self.label();
        if packet.label(LabelKind::Rate) != Some(label) {
            packet.set_label(LabelKind::Rate, label);
        }
    }

    /// The label as written.
    #[must_use]
    #[inline]
    pub fn label(self) -> Label {
        match self {
            Self::Guaranteed => Label::ZERO,
            Self::Excess(rate) => Label::new(rate),
        }
    }
}

choice! {
    /// The method that finds the packets within a guarantee.
    pub enum Marking {
        /// Random, so that the guaranteed packets have the guaranteed rate.
        Probabilistic = "probabilistic",
        /// A token bucket.
        Deterministic = "deterministic",
        /// A token bucket, and another for the deficit of TCP after a loss, at up to `catch_up` times the
        /// guarantee.
        Debt = "debt",
    }
}

params! {
    /// Parameters of [`RateLabels`].
    pub struct RateLabelParams {
        /// Time constant of the rate of a flow, at the edge.
        k: Span = Param::of("100ms", "1998 paper, simulations").symbol("K"),
        /// Time over which labels are averaged, so that a short burst does not count; 0s: none.
        credit: Span = Param::of("5s", "chosen: some cycles of TCP's window").in_paper("0s"),
        /// Width of a label, 8 to 17, of which 5 are its exponent; 8 bits hold up to 16 Gbit for a weight of 1, 17 bits up to 8.8 Tbit.
        bits: u32 = Param::of("17", "Stoica, Zhang 1999, section 5.2"),
        /// How the edge finds the packets that a guarantee covers: by chance, by a token bucket, or by two, one of which pays later.
        marking: Marking = Param::of("debt", "2002 paper, figure 7; debt: chosen, so that one TCP connection has its guarantee")
            .in_paper("probabilistic"),
        /// Depth of the token bucket; 3000 bytes and what the guarantee brings in a round-trip time if not set.
        bucket: Option<Bytes> = Param::unset("chosen; the paper gives none"),
        /// How many times its guarantee a flow that catches up may have; at least 1.
        catch_up: f64 = Param::of("2", "chosen: windows of Reno grow to 4/3 of their mean, and further after a timeout"),
    }
    check: Self::check
}

impl RateLabelParams {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        let slow = "a flow that catches up sends at least its guarantee; write at least 1";
        require(self.catch_up >= 1.0, "catch_up", slow)?;
        let none =
            "marking by chance has no bucket; write marking = \"debt\" or \"deterministic\", or leave it out";
        require(self.bucket.is_none() || self.marking != Marking::Probabilistic, "bucket", none)?;
        let deep = "a bucket that holds no full packet covers none; write for example \"3000B\"";
        require(self.bucket.is_none_or(|bucket| bucket >= FULL_PACKET), "bucket", deep)?;
        require(self.k > Span::ZERO, "k", "it must be above zero; write for example \"100ms\"")?;
        let width = "a label has 8 to 17 bits: 5 for the exponent and at least 3 for the mantissa";
        require((8..=17).contains(&self.bits), "bits", width)?;
        let no_debt = "it has no effect: only marking = \"debt\" lets a flow catch up";
        args.refuse_idle(&[("catch_up", self.marking != Marking::Debt, no_debt)])
    }

    /// The format to which labels are rounded.
    #[must_use]
    pub const fn format(&self) -> Format {
        Format::Floating { mantissa: self.bits - 5, exponent: 5 }
    }
}

/// The state of a flow's guarantee, in one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Contract {
    /// ER_i, the rate of the packets beyond the guarantee.
    er: Averages<1>,
    /// The mean of ER_i over `credit`.
    mean: f64,
    /// g_i, in bits a second; 0: no guarantee.
    g: f64,
    /// Tokens that are guaranteed.
    now: Bucket,
    /// Tokens owed from the past, with [`Marking::Debt`].
    owed: Bucket,
    /// Limits how fast debt is paid back, with [`Marking::Debt`].
    peak: Bucket,
    /// The time of the last fill. None before the first packet: time before it is not credited.
    filled_at: Option<Time>,
}

/// The bucket that covers a packet.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Cover {
    Guarantee,
    Debt,
    Nothing,
}

/// A token bucket, in bits.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    depth: f64,
    tokens: f64,
}

/// The rates of the flows that enter at this edge.
#[derive(Clone, Debug)]
pub struct RateLabels {
    params: RateLabelParams,
    k: TimeConstant,
    /// Time constant of the means, in seconds; 0: no means.
    credit: f64,
    /// w_i, by flow. Flows beyond the end have weight 1.
    weights: Vec<Weight>,
    /// Guarantees by flow. Flows beyond the end have none.
    contracts: Vec<Contract>,
    /// r_i, by flow; AR_i in the 2002 paper.
    rates: Vec<Averages<1>>,
    /// Means of r_i over `credit`, by flow; empty without credit.
    means: Vec<f64>,
    random: Stream,
}

impl RateLabels {
    /// An edge without flows. `random` drives probabilistic marking.
    #[must_use]
    pub fn new(params: &RateLabelParams, random: Stream) -> Self {
        Self {
            k: TimeConstant::new(params.k),
            credit: params.credit.as_secs_f64(),
            params: params.clone(),
            weights: Vec::new(),
            contracts: Vec::new(),
            rates: Vec::new(),
            means: Vec::new(),
            random,
        }
    }

    /// The label of a packet of `flow`. `None` while no time has passed and a rate is thus undefined.
    pub fn label(&mut self, now: Time, flow: FlowId, size: Bytes) -> Option<RateLabel> {
        let slot = flow.slot();
        if slot >= self.rates.len() {
            self.rates.resize(slot + 1, Averages::new([0.0], Time::ZERO));
        }
        let bits = [float(size.bits())];
        let average = &mut self.rates[slot];
        let gap = average.gap(now);
        average.update(self.k, now, bits);
        let [mut rate] = average.last_rates();
        let mut least = rate / BURST;
        let credit = self.credit;
        if credit > 0.0 && slot >= self.means.len() {
            self.means.resize(slot + 1, 0.0);
        }
        let mut mean = self.means.get_mut(slot).map_or(rate, |mean| follow(mean, credit, gap, size));
        if let Some(contract) = self.contracts.get_mut(slot).filter(|contract| contract.g > 0.0) {
            let cover = contract.covers(now, rate, size, &self.params, &mut self.random);
            if cover == Cover::Guarantee {
                return Some(RateLabel::Guaranteed);
            }
            if cover == Cover::Debt {
                return Some(RateLabel::Excess(1.0));
            }
            // Pelsser02 figure 7: p.label = estimate_rate(ER_i, p).
            let gap = contract.er.gap(now);
            contract.er.update(self.k, now, bits);
            [rate] = contract.er.last_rates();
            mean = if credit > 0.0 { follow(&mut contract.mean, credit, gap, size) } else { rate };
            least -= contract.g;
        }
        if mean < rate {
            rate = larger(mean, least);
        }
        let weight = self.weight(flow);
        // Stoica98, weighted CSFQ: label = r_i / w_i.
        (rate > 0.0).then(|| RateLabel::excess(rate / weight, self.params.format()))
    }

    /// r_i over the rate that is labelled, for a flow without a guarantee: 1 to [`BURST`].
    #[inline]
    pub(crate) fn burst(&self, flow: FlowId) -> f64 {
        let (rate, mean) = (self.rates.get(flow.slot()), self.means.get(flow.slot()));
        rate.zip(mean)
            .map_or(1.0, |(rate, mean)| (rate.last_rates()[0] / larger(*mean, 1.0)).clamp(1.0, BURST))
    }

    /// The label of a packet of `flow`; `unknown` bits a second while its rate is unknown.
    pub fn label_or(&mut self, now: Time, flow: FlowId, size: Bytes, unknown: f64) -> RateLabel {
        let label = self.label(now, flow, size);
        label.unwrap_or_else(|| RateLabel::excess(unknown, self.params.format()))
    }

    /// The turn of a packet of `flow`, which may send w FS + g: weighted by this over FS, times `scale`.
    #[inline]
    pub(crate) fn turn(&self, flow: FlowId, scale: f64, fair: f64) -> Turn {
        let g = self.contracts.get(flow.slot()).map_or(0.0, |contract| contract.g);
        let weight = scale * (self.weight(flow) + g / larger(fair, 1.0));
        Weight::new(larger(weight, 1e-6)).map_or(Turn::Flow, Turn::Weighted)
    }

    /// w_i, the weight of `flow`.
    #[inline]
    pub(crate) fn weight(&self, flow: FlowId) -> f64 {
        self.weights.get(flow.slot()).map_or(1.0, |weight| weight.get())
    }

    /// Sets the weight of `flow` from its next packet on.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        if flow.slot() >= self.weights.len() {
            self.weights.resize(flow.slot() + 1, Weight::ONE);
        }
        self.weights[flow.slot()] = weight;
    }

    /// Sets the guarantee of `flow` from its next packet on, with its round-trip time; no guarantee if `g` is
    /// zero. The estimate of its excess stays: without a previous guarantee, all that it sent is excess.
    pub fn set_guarantee(&mut self, flow: FlowId, g: Rate, rtt: Span) {
        if flow.slot() >= self.contracts.len() {
            self.contracts.resize(flow.slot() + 1, Contract::NONE);
        }
        // Whole bytes, of any number.
        let burst = 8.0 * (TWO_PACKETS.get() as f64 + g.bytes_in(rtt).get() as f64);
        let set = self.params.bucket.map_or(burst, |bucket| bucket.get() as f64 * 8.0);
        let owed = set + behind(g, rtt);
        // A window may arrive at once, including the part that waited in queues.
        let peak = set + bits_in(g, QUEUEING);
        let contract = &mut self.contracts[flow.slot()];
        if contract.g == 0.0 {
            let er = self.rates.get(flow.slot()).cloned().unwrap_or(Contract::NONE.er);
            let mean = self.means.get(flow.slot()).copied().unwrap_or(0.0);
            *contract = Contract { er, mean, ..Contract::NONE };
            // Buckets start full, but without debt.
            (contract.now.tokens, contract.owed.tokens, contract.peak.tokens) = (set, set, set);
        }
        contract.now.resize(set);
        contract.owed.resize(owed);
        contract.peak.resize(peak);
        contract.g = g.as_bit() as f64;
    }

    /// The number of flows with state.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.rates.len().max(self.weights.len()).max(self.contracts.len())
    }
}

/// Updates the mean of a rate over `credit` seconds with a packet that arrives `gap` after the last.
#[inline]
fn follow(mean: &mut f64, credit: f64, gap: Span, size: Bytes) -> f64 {
    // Backward Euler for credit · dmean/dt = -mean, plus arrivals: no exponential, and stable for any gap.
    *mean /= 1.0 + float(gap.as_nanos()) / 1e9 / credit;
    *mean += float(size.bits()) / credit;
    *mean
}

/// The bits by which Reno falls behind a mean of `g` until its window is back at the mean, at most
/// [`LONGEST_DEBT`].
///
/// Windows vary from 2/3 to 4/3 of their mean W. With delayed acknowledgements they grow by half a segment in
/// a round-trip time, so that 2 W/3 round trips pass below W, each W/6 short of it on average: W^2/9
/// segments.
fn behind(g: Rate, rtt: Span) -> f64 {
    let window = bits_in(g, rtt) + bits_in(g, QUEUEING);
    (window * window / (9.0 * FULL_PACKET.bits() as f64)).min(bits_in(g, LONGEST_DEBT))
}

/// The bits that pass in `span` at the rate `g`. `span` may have any length.
fn bits_in(g: Rate, span: Span) -> f64 {
    g.as_bit() as f64 * span.as_secs_f64()
}

impl Bucket {
    const EMPTY: Self = Self { depth: 0.0, tokens: 0.0 };

    fn fill(&mut self, bits: f64) {
        self.tokens = (self.tokens + bits).min(self.depth);
    }

    fn resize(&mut self, depth: f64) {
        *self = Self { depth, tokens: self.tokens.min(depth) };
    }
}

impl Contract {
    const NONE: Self = Self {
        er: Averages::new([0.0], Time::ZERO),
        mean: 0.0,
        g: 0.0,
        now: Bucket::EMPTY,
        owed: Bucket::EMPTY,
        peak: Bucket::EMPTY,
        filled_at: None,
    };

    /// The bucket that covers a packet of a flow that arrives at `rate`.
    fn covers(
        &mut self,
        now: Time,
        rate: f64,
        size: Bytes,
        params: &RateLabelParams,
        random: &mut Stream,
    ) -> Cover {
        if params.marking == Marking::Probabilistic {
            // Pelsser02 figure 7: P_out = max(0, 1 - guar_rate / AR).
            let out = random.chance((1.0 - self.g / rate.max(self.g)).max(0.0));
            return if out { Cover::Nothing } else { Cover::Guarantee };
        }
        let gap = self.filled_at.replace(now).map_or(Span::ZERO, |last| now.since(last));
        let brought = self.g * gap.as_secs_f64();
        let bits = size.bits() as f64;
        self.now.fill(brought);
        let guaranteed = bits <= self.now.tokens;
        if guaranteed {
            self.now.tokens -= bits;
        }
        let mut paid = false;
        if params.marking == Marking::Debt {
            self.owed.fill(brought);
            self.peak.fill(brought * params.catch_up);
            paid = !guaranteed && bits <= self.owed.tokens.min(self.peak.tokens);
            if guaranteed || paid {
                // Below zero at most by the depth of the guarantee's bucket: every covered packet counts.
                self.owed.tokens -= bits;
                self.peak.tokens -= bits;
            }
        }
        match (guaranteed, paid) {
            (true, _) => Cover::Guarantee,
            (false, true) => Cover::Debt,
            (false, false) => Cover::Nothing,
        }
    }
}

#[cfg(test)]
mod tests;
