//! Rate labels: the edge estimates the rate of each flow and writes it, divided by the flow's weight, on each
//! packet that no guarantee covers.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, eq. (3), and its weighted form;
//! guarantees after Pelsser, De Cnodder, "Improvements to core stateless fair queueing", PfHSN 2002, figure 7.
//! Labels are in bits of wire size a second.
//!
//! Readings, where the papers leave room:
//! - Packets that arrive at one instant have no gap between them: they carry the rate as it stood and count
//!   with the next gap. An infinitely fast access link thus does not look infinitely fast.
//! - The first gap of a flow is the time since the start of the run, so its first packets carry little, as in
//!   the authors' code. Before any time has passed there is no estimate.
//! - A label is at least 1: 0 is reserved for packets that a guarantee covers.
//! - [`Marking::Deterministic`] is only named in 2002: a token bucket for each flow that fills at its guaranteed
//!   rate and starts full. Its depth: two full packets and what the guarantee brings in a round-trip time
//!   without queueing, unless set.
//!
//! Not a marker of one flow at its source: a router labels whatever packet comes to it without a label.
//!
//! Cost: O(1) per packet, one exponential (two for excess packets of a flow with a guarantee); 32 bytes per flow
//! that has been labelled, 8 per weight, 64 per guarantee.

use alloc::vec::Vec;

use crate::estimate::exponential::{Averages, TimeConstant};
use crate::label::{Format, Label};
use crate::mutant::Mutant;
use crate::packet::{FlowId, LabelKind, Packet};
use crate::param::{EntryArgs, Kind, Paper, Param, ParamError, require};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Span, Time, Weight};

/// The largest packet on most links: Ethernet's.
const FULL_PACKET: Bytes = Bytes::new(1_500);
/// The depth of a bucket in addition to what a round-trip time brings. Chosen: so that one packet can wait for another.
const TWO_PACKETS: Bytes = Bytes::new(2 * FULL_PACKET.get());

/// K.
pub(crate) const K: Param = Param::new(
    "k",
    "K",
    Kind::Span,
    "100ms",
    "1998 paper, simulations",
    "Time constant of the rate of a flow, at the edge.",
);
/// See [`Marking`].
pub(crate) const MARKING: Param = Param::new(
    "marking",
    "–",
    Kind::Choice(&["probabilistic", "deterministic"]),
    "probabilistic",
    "2002 paper, figure 7",
    "How the edge finds the packets that a guarantee covers: by chance, or by a token bucket.",
);
/// Depth of the token bucket.
pub(crate) const BUCKET: Param = Param {
    name: "bucket",
    symbol: "–",
    kind: Kind::Bytes,
    default: None,
    paper: Paper::AsDefault,
    source: "chosen; the paper gives none",
    doc: "Depth of the token bucket; 3000 bytes and what the guarantee brings in a round-trip time if not set.",
};
/// Width of a label.
pub(crate) const BITS: Param = Param::new(
    "bits",
    "–",
    Kind::Count,
    "17",
    "Stoica, Zhang 1999, section 5.2",
    "Width of a label, 8 to 17, of which 5 are its exponent; 8 bits hold up to 16 Gbit for a weight of 1, 17 \
     bits up to 8.8 Tbit.",
);

/// What a packet's rate label says. A packet without a label says nothing: it has not passed an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateLabel {
    /// A guarantee covers it: no share applies. Written as 0.
    Guaranteed,
    /// It belongs to traffic of this many bits a second for a weight of 1; at least 1.
    Excess(f64),
}

impl RateLabel {
    /// What is written on a packet.
    #[must_use]
    pub fn read(label: Label) -> Self {
        if label == Label::ZERO { Self::Guaranteed } else { Self::Excess(label.value()) }
    }

    /// The label nearest to `rate` bits a second that `format` holds; a rate below 1 is written as 1, because
    /// 0 says something else.
    #[must_use]
    pub fn excess(rate: f64, format: Format) -> Self {
        Self::Excess(format.round(rate.max(1.0)))
    }

    /// Writes it on `packet`, unless it stands there already.
    pub fn write<P: Packet>(self, packet: &mut P) {
        if packet.label(LabelKind::Rate).map(Self::read) != Some(self) {
            packet.set_label(LabelKind::Rate, self.label());
        }
    }

    /// As it is written.
    #[must_use]
    pub fn label(self) -> Label {
        match self {
            Self::Guaranteed => Label::ZERO,
            Self::Excess(rate) => Label::new(rate),
        }
    }
}

/// How packets are found to be within their guarantee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marking {
    /// By chance, so that the guaranteed packets have the guaranteed rate.
    Probabilistic,
    /// By a token bucket.
    Deterministic,
}

/// Parameters of [`RateLabels`].
#[derive(Clone, Debug, PartialEq)]
pub struct RateLabelParams {
    /// K.
    pub k: Span,
    /// How guarantees are marked.
    pub marking: Marking,
    /// Depth of the token bucket; none: as the flow's round-trip time asks for.
    pub bucket: Option<Bytes>,
    /// Of a label, 8 to 17.
    pub bits: u32,
}

impl RateLabelParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let bucket = args.bytes_if_set("bucket");
        let marking = match args.choice("marking") {
            "probabilistic" => Marking::Probabilistic,
            _ => Marking::Deterministic,
        };
        let none = "marking by chance has no bucket; write marking = \"deterministic\", or leave it out";
        require(bucket.is_none() || marking == Marking::Deterministic, "bucket", none)?;
        let deep = "a bucket that holds no full packet covers none; write for example \"3000B\"";
        require(bucket.is_none_or(|bucket| bucket >= FULL_PACKET), "bucket", deep)?;
        Ok(Self { marking, bucket, ..Self::without_guarantees(args)? })
    }

    /// From the catalogue's values, for routers that guarantee nothing.
    ///
    /// # Errors
    /// When they make no sense.
    pub(crate) fn without_guarantees(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let (k, bits) = (args.span("k"), args.count("bits"));
        require(k > Span::ZERO, "k", "it must be above zero; write for example \"100ms\"")?;
        let width = "a label has 8 to 17 bits: 5 for the exponent and at least 3 for the mantissa";
        require((8..=17).contains(&bits), "bits", width)?;
        Ok(Self { k, marking: Marking::Probabilistic, bucket: None, bits: bits as u32 })
    }

    /// What labels are rounded to.
    #[must_use]
    pub const fn format(&self) -> Format {
        Format::Floating { mantissa: self.bits - 5, exponent: 5 }
    }
}

/// What a flow is guaranteed, in a line of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Contract {
    /// ER_i, of the packets beyond the guarantee.
    er: Averages<1>,
    /// g_i, in bits a second; 0: nothing is guaranteed.
    g: f64,
    /// Of the bucket, in bits.
    depth: f64,
    tokens: f64,
    filled_at: Time,
}

/// The rates of the flows that enter here.
#[derive(Clone, Debug)]
pub struct RateLabels {
    params: RateLabelParams,
    k: TimeConstant,
    /// w_i, by flow. Flows beyond have weight 1.
    weights: Vec<Weight>,
    /// By flow. Flows beyond have none.
    contracts: Vec<Contract>,
    /// r_i, by flow; AR_i in 2002.
    rates: Vec<Averages<1>>,
    random: Stream,
}

impl RateLabels {
    /// No flow yet. `random` marks by chance.
    #[must_use]
    pub fn new(params: &RateLabelParams, random: Stream) -> Self {
        Self {
            k: TimeConstant::new(Mutant::CsfqDoubleK.pick(params.k, params.k * 2)),
            params: params.clone(),
            weights: Vec::new(),
            contracts: Vec::new(),
            rates: Vec::new(),
            random,
        }
    }

    /// The label of a packet of `flow`. `None` if no time has passed in which anything could have arrived.
    pub fn label(&mut self, now: Time, flow: FlowId, size: Bytes) -> Option<RateLabel> {
        let slot = flow.slot();
        if slot >= self.rates.len() {
            self.rates.resize(slot + 1, Averages::new([0.0], Time::ZERO));
        }
        let bits = [size.bits() as f64];
        let average = &mut self.rates[slot];
        average.update(self.k, now, bits);
        let [mut rate] = average.last_rates();
        if let Some(contract) = self.contracts.get_mut(slot).filter(|contract| contract.g > 0.0) {
            let covered = contract.covers(now, rate, size, self.params.marking, &mut self.random);
            if Mutant::CsfqUnmarked.pick(covered, !covered) {
                return Some(RateLabel::Guaranteed);
            }
            // Pelsser02 figure 7: p.label = estimate_rate(ER_i, p).
            contract.er.update(self.k, now, bits);
            rate = Mutant::CsfqTotalLabel.pick(contract.er.last_rates()[0], rate);
        }
        let weight = self.weights.get(slot).map_or(1.0, |weight| weight.get());
        let weight = Mutant::CsfqNoWeights.pick(weight, 1.0);
        // Stoica98, weighted CSFQ: label = r_i / w_i.
        (rate > 0.0).then(|| RateLabel::excess(rate / weight, self.params.format()))
    }

    /// The label of a packet of `flow`, which is for `unknown` bits a second while its rate is not known.
    pub fn label_or(&mut self, now: Time, flow: FlowId, size: Bytes, unknown: f64) -> RateLabel {
        let label = self.label(now, flow, size);
        label.unwrap_or_else(|| RateLabel::excess(unknown, self.params.format()))
    }

    /// The weight of `flow` from its next packet on.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        if flow.slot() >= self.weights.len() {
            self.weights.resize(flow.slot() + 1, Weight::ONE);
        }
        self.weights[flow.slot()] = weight;
    }

    /// What `flow` is guaranteed from its next packet on, with its round-trip time; none if `g` is zero. What is
    /// known of its excess stays: until now all that it sent, if it had no guarantee.
    pub fn set_guarantee(&mut self, flow: FlowId, g: Rate, rtt: Span) {
        if flow.slot() >= self.contracts.len() {
            self.contracts.resize(flow.slot() + 1, Contract::NONE);
        }
        let depth = self.params.bucket.unwrap_or_else(|| TWO_PACKETS + g.bytes_in(rtt));
        let g = Mutant::CsfqHalfGuarantee.pick(g.as_bit() as f64, g.as_bit() as f64 / 2.0);
        let depth = depth.bits() as f64;
        let contract = &mut self.contracts[flow.slot()];
        if contract.g > 0.0 {
            contract.tokens = contract.tokens.min(depth);
        } else {
            let er = self.rates.get(flow.slot()).cloned().unwrap_or(Contract::NONE.er);
            *contract = Contract { er, tokens: depth, ..Contract::NONE };
        }
        (contract.g, contract.depth) = (g, depth);
    }

    /// Flows for which anything is kept.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.rates.len().max(self.weights.len()).max(self.contracts.len())
    }
}

impl Contract {
    const NONE: Self =
        Self { er: Averages::new([0.0], Time::ZERO), g: 0.0, depth: 0.0, tokens: 0.0, filled_at: Time::ZERO };

    /// Whether the guarantee covers a packet of a flow that arrives at `rate`.
    fn covers(&mut self, now: Time, rate: f64, size: Bytes, marking: Marking, random: &mut Stream) -> bool {
        match marking {
            // Pelsser02 figure 7: P_out = max(0, 1 - guar_rate / AR).
            Marking::Probabilistic => !random.chance((1.0 - self.g / rate.max(self.g)).max(0.0)),
            Marking::Deterministic => {
                let elapsed = now.since(self.filled_at).as_secs_f64();
                self.filled_at = now;
                self.tokens = (self.tokens + self.g * elapsed).min(self.depth);
                let bits = size.bits() as f64;
                let conforms = bits <= self.tokens;
                if conforms {
                    self.tokens -= bits;
                }
                conforms
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::vec::Vec;

    const SIZE: Bytes = Bytes::new(1_000);

    fn marked(marking: Marking) -> RateLabels {
        RateLabels::new(&RateLabelParams { marking, ..labels_params() }, Stream::new(1, "marking"))
    }

    fn labels() -> RateLabels {
        marked(Marking::Probabilistic)
    }

    /// The rate of a label that is not covered by a guarantee.
    fn excess(label: Option<RateLabel>) -> f64 {
        match label {
            Some(RateLabel::Excess(rate)) => rate,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_constant_rate_is_read_within_two_percent() {
        let mut labels = labels();
        for i in 1..=1_000 {
            let label = excess(labels.label(Time::from_millis(4 * i), FlowId(3), SIZE));
            // 8000 bit every 4 ms are 2 Mb/s. After 0.4 s the start weighs e^-4 = 1.8 %.
            assert!(i < 100 || (label / 2e6 - 1.0).abs() < 0.02, "{label} at packet {i}");
        }
        assert_eq!(labels.flows(), 4, "numbers are dense: one estimate for each up to the largest");
    }

    #[test]
    fn packets_at_one_instant_read_as_their_mean_rate() {
        let mut labels = labels();
        let mut read = Vec::new();
        for i in 1..=500 {
            for _ in 0..5 {
                read.extend(labels.label(Time::from_millis(20 * i), FlowId(0), SIZE));
            }
        }
        // Five packets of 8000 bit every 20 ms are 2 Mb/s, from a link that takes no time for them.
        for &label in &read[500..] {
            let label = excess(Some(label));
            assert!((label / 2e6 - 1.0).abs() < 0.05, "{label}");
        }
    }

    #[test]
    fn the_first_packet_has_a_small_label_and_none_at_the_very_start() {
        assert_eq!(labels().label(Time::ZERO, FlowId(0), SIZE), None);
        // (1 - e^-100) 8000 / 10 s = 800.
        let label = excess(labels().label(Time::from_secs(10), FlowId(0), SIZE));
        assert!((label - 800.0).abs() < 1e-9, "{label}");
        // 0.8 would be written as 0, which says that a guarantee covers it.
        let label = labels().label(Time::from_secs(10_000), FlowId(0), SIZE);
        assert_eq!(label, Some(RateLabel::Excess(1.0)));
        assert_eq!(
            (RateLabel::Excess(1.0).label().value(), RateLabel::Guaranteed.label()),
            (1.0, Label::ZERO)
        );
    }

    #[test]
    fn a_label_is_the_rate_for_a_weight_of_one() {
        let mut labels = labels();
        labels.set_weight(FlowId(2), Weight::new(4.0).unwrap());
        labels.set_weight(FlowId(0), Weight::new(0.5).unwrap());
        let read = [0, 1, 2, 3].map(|flow| excess(labels.label(Time::from_secs(1), FlowId(flow), SIZE)));
        // 8000 (1 - e^-10) = 7999.64, to half of 2^-12.
        for (label, rate) in read.into_iter().zip([15_999.27, 7_999.64, 1_999.91, 7_999.64]) {
            assert!((label / rate - 1.0).abs() < 1.3e-4, "{read:?}");
        }
    }

    #[test]
    fn narrow_labels_are_off_by_a_sixteenth_at_most() {
        let params = RateLabelParams { bits: 8, ..labels_params() };
        let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
        for i in 1..=500 {
            let label = excess(labels.label(Time::from_millis(4 * i), FlowId(0), SIZE));
            assert!(i < 100 || (label / 2e6 - 1.0).abs() < 0.0625 + 0.02, "{label}");
        }
    }

    fn labels_params() -> RateLabelParams {
        RateLabelParams { k: Span::from_millis(100), marking: Marking::Probabilistic, bucket: None, bits: 17 }
    }

    #[test]
    fn either_marking_covers_the_guaranteed_rate_and_labels_the_excess() {
        for marking in [Marking::Probabilistic, Marking::Deterministic] {
            let mut labels = marked(marking);
            labels.set_guarantee(FlowId(0), Rate::from_kbit(500), Span::from_millis(100));
            let (mut covered, mut sum, mut beyond) = (0, 0.0, 0);
            for i in 1..=25_000 {
                match labels.label(Time::from_millis(4 * i), FlowId(0), SIZE) {
                    Some(RateLabel::Guaranteed) => covered += 1,
                    label if i > 1_000 => (sum, beyond) = (sum + excess(label), beyond + 1),
                    _ => (),
                }
            }
            // 2 Mb/s, a quarter of it guaranteed: of 25000 packets 6250, and by chance 4 sigma =
            // 4 sqrt(0.25·0.75·25000) = 274. The first packets, of a rate still unknown, are covered.
            assert!(f64::from(covered - 6_250).abs() < 274.0 + 30.0, "{marking:?} covers {covered}");
            // The excess is 1.5 Mb/s; its gaps vary, and a mean over K of 25 packets is biased by some of 1/25.
            let mean = sum / f64::from(beyond);
            assert!((mean / 1.5e6 - 1.0).abs() < 0.06, "{marking:?} labels {mean}");
        }
    }

    #[test]
    fn a_flow_within_its_guarantee_is_covered_entirely() {
        for marking in [Marking::Probabilistic, Marking::Deterministic] {
            let mut labels = marked(marking);
            labels.set_guarantee(FlowId(0), Rate::from_kbit(2_040), Span::ZERO);
            let mut covered = |i: u64| labels.label(Time::from_millis(4 * i), FlowId(0), SIZE);
            assert!((1..=10_000).all(|i| covered(i) == Some(RateLabel::Guaranteed)), "{marking:?}");
        }
    }

    #[test]
    fn a_bucket_covers_a_burst_as_deep_as_it_is() {
        let covered = |bucket, rtt| {
            let params = RateLabelParams { marking: Marking::Deterministic, bucket, ..labels_params() };
            let mut labels = RateLabels::new(&params, Stream::new(1, "marking"));
            labels.set_guarantee(FlowId(0), Rate::from_kbit(800), rtt);
            let label = |_| labels.label(Time::from_secs(1), FlowId(0), SIZE);
            (0..50).map(label).filter(|label| *label == Some(RateLabel::Guaranteed)).count()
        };
        // Two packets of 1500 B hold three of 1000 B; 100 ms at 800 kb/s bring 10000 B more.
        assert_eq!(covered(None, Span::ZERO), 3);
        assert_eq!(covered(None, Span::from_millis(100)), 13);
        assert_eq!(covered(Some(Bytes::new(7_000)), Span::from_millis(100)), 7);
    }

    #[test]
    fn a_guarantee_that_is_taken_back_covers_nothing() {
        let mut labels = labels();
        labels.set_guarantee(FlowId(0), Rate::from_mbit(1_000), Span::ZERO);
        let at = |labels: &mut RateLabels, s| labels.label(Time::from_secs(s), FlowId(0), SIZE);
        assert_eq!(at(&mut labels, 1), Some(RateLabel::Guaranteed));
        labels.set_guarantee(FlowId(0), Rate::ZERO, Span::ZERO);
        assert!(excess(at(&mut labels, 2)) > 0.0);
    }

    #[test]
    fn a_guarantee_that_changes_forgets_nothing_of_the_excess() {
        for marking in [Marking::Probabilistic, Marking::Deterministic] {
            let mut labels = marked(marking);
            let mut clock = 0;
            // 2 Mb/s for ten seconds: the mean excess that its labels show, of the first of them too.
            let mut excesses = |labels: &mut RateLabels| {
                let mut read = Vec::new();
                for _ in 0..2_500 {
                    clock += 4;
                    let label = labels.label(Time::from_millis(clock), FlowId(0), SIZE);
                    if let Some(RateLabel::Excess(rate)) = label {
                        read.push(rate);
                    }
                }
                (read[0], read.iter().sum::<f64>() / read.len() as f64)
            };
            excesses(&mut labels);
            // Until now all of the 2 Mb/s was excess, then 1.5, then 1. A label that had to start at zero would
            // be some 8000 bits over the seconds since the start.
            labels.set_guarantee(FlowId(0), Rate::from_kbit(500), Span::ZERO);
            let (first, mean) = excesses(&mut labels);
            assert!(first > 1.5e6 && (mean / 1.5e6 - 1.0).abs() < 0.1, "{marking:?} {first} {mean}");
            labels.set_guarantee(FlowId(0), Rate::from_mbit(1), Span::ZERO);
            let (first, mean) = excesses(&mut labels);
            assert!(first > 0.8e6 && (mean / 1e6 - 1.0).abs() < 0.1, "{marking:?} {first} {mean}");
        }
    }
}
