//! Value labels: each packet carries the value of its part of its flow's rate.
//!
//! Nádas, Turányi, Rácz, GLOBECOM 2016; Laki, Gombos, Nádas, Turányi, ANRW 2017. After the published sources: the
//! papers' texts were not at hand. If a node drops the packets whose value is below v, the flow is to keep the rate
//! at which its [TVF](super::tvf) has the value v. A draw achieves it: with R the rate of the flow, a packet carries
//! V(u), u uniform in \[0, R\]. Packets that pass are again uniform, so no router writes a label anew.
//!
//! Readings:
//! - Draws are stratified: R has eight parts, a packet draws from the part that has carried the fewest bytes, and of
//!   equal ones from the one that is furthest from those drawn last. Independent draws make the threshold of a short
//!   queue vary, and a flow that sends just its share loses then. Parts have equal bytes, so no choice of packet sizes
//!   moves bytes to high values.
//! - R is that of [`rate_label`](super::rate_label), per weight; u is drawn up to R as it is with the packet. The
//!   published token marker never finds the rate of flows below 1 Mb/s, and values Poisson arrivals 8 %, bursts
//!   20 % too low; a marker with a bucket for each of 150 rates is 2 to 5 % too low.
//! - A flow that sends less than a packet in `k`, irregularly, is valued too low: of 100 kb/s in full packets at random
//!   times, 0.7 passes where 0.9 should.
//! - Two timescales (MTS-TVF: Nádas, Varga, Gombos, Fejes, Laki, ANRW 2019; US 11695703), if `burst_factor`, alpha, is above 1: V applies
//!   to u up to the mean M over `history`, and to M + (u - M) / alpha beyond. The published program has any number of
//!   timescales and windows in place of exponential means.
//! - A packet within a guarantee has the highest value.
//! - Values are per bit: with mixed sizes packets are dropped by their value alone.
//!
//! Cost: O(1) per packet, one exponential (two with `burst_factor`) and a draw; 72 bytes per flow at the edge, 32 more with
//! `burst_factor`. Parameters: [`ENTRY`].

use alloc::vec::Vec;

use super::marker::{Marker, MarkerSetup};
use super::rate_label::{Marking, RateLabel, RateLabelParams, RateLabels};
use super::tvf::Tvf;
use crate::estimate::exponential::{Averages, TimeConstant};
use crate::label::{Format, Label};
use crate::packet::{FlowId, LabelKind, Packet};
use crate::param::{Entry, EntryArgs, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Span, Time, Weight, float};

/// The value marker in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "value",
    role: Role::Marker,
    summary: "Per packet value: each packet carries the value of a random part of its flow's rate.",
    reference: "Nádas, Turányi, Rácz 2016",
    cost: "O(1) per packet, state at the ends of flows only",
    params: ValueParams::PARAMS,
    traits: Traits::NONE,
};

params! {
    /// Parameters of values.
    pub struct ValueParams {
        /// Throughput-value function per weight, rates and values; if not set 1e15 b/s divided by the rate.
        tvf: Option<Tvf> = Param::unset("Nádas, Turányi, Rácz 2016").symbol("V"),
        /// Time constant of the rate of a flow, at the edge.
        k: Span = Param::of("100ms", "as CSFQ; the published program: 40 ms").symbol("K"),
        /// How many times less a rate beyond its mean over `history` counts; at least 1.
        burst_factor: f64 = Param::of("1", "Nádas, Turányi, Rácz 2016: one timescale").symbol("alpha"),
        /// Long timescale, for `burst_factor`.
        history: Span = Param::of("10s", "chosen"),
    }
    check: Self::check
}

impl ValueParams {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        let idle = "without burst_factor there is one timescale; leave it out, or write burst_factor = 4";
        args.refuse_idle(&[("history", self.burst_factor == 1.0, idle)])?;
        require(self.k > Span::ZERO, "k", "it must be above zero; write for example \"100ms\"")?;
        require(self.history > Span::ZERO, "history", "it must be above zero; write for example \"10s\"")?;
        require(self.burst_factor >= 1.0, "burst_factor", "it must be at least 1; write for example 4")
    }
}

/// The rate of a flow over a long time, for `burst_factor`.
#[derive(Clone, Debug)]
struct History {
    k: TimeConstant,
    alpha: f64,
    /// By flow.
    means: Vec<Averages<1>>,
}

impl History {
    fn new(params: &ValueParams) -> Self {
        Self { k: TimeConstant::new(params.history), alpha: params.burst_factor, means: Vec::new() }
    }

    /// The rate in b/s for which the function gives the value of the bit at `rate`, both for a weight of 1, of a packet of
    /// `flow` with this weight.
    #[inline]
    fn counted(&mut self, now: Time, flow: FlowId, size: Bytes, weight: f64, rate: f64) -> f64 {
        if self.alpha == 1.0 {
            return rate;
        }
        let slot = flow.slot();
        if slot >= self.means.len() {
            self.means.resize(slot + 1, Averages::new([0.0], Time::ZERO));
        }
        self.means[slot].update(self.k, now, [float(size.bits())]);
        let mean = self.means[slot].last_rates()[0] / weight;
        if rate > mean { mean + (rate - mean) / self.alpha } else { rate }
    }
}

/// Parts of a rate. Chosen: a flow whose rate is a few times its share passes whole parts.
const PARTS: usize = 8;

/// The draws of a flow: by part of its rate, the bytes that it carried beyond the part with the fewest.
#[derive(Clone, Copy, Debug)]
struct Draws([u32; PARTS]);

impl Draws {
    /// The order of parts that carried the same: each is far from those before it.
    const ORDER: [usize; PARTS] = [0, 4, 2, 6, 1, 5, 3, 7];

    /// The part of its rate, from 0 to 1, for a packet; `random` is from 0 to 1.
    #[inline]
    fn draw(&mut self, size: Bytes, random: f64) -> f64 {
        let mut place = 0;
        for next in 1..PARTS {
            if self.0[next] < self.0[place] {
                place = next;
            }
        }
        self.0[place] = self.0[place].saturating_add(size.get() as u32);
        let least = self.0.iter().copied().fold(u32::MAX, u32::min);
        self.0.iter_mut().for_each(|bytes| *bytes -= least);
        (Self::ORDER[place] as f64 + random) / PARTS as f64
    }
}

/// The values of the flows that enter at an edge.
#[derive(Clone, Debug)]
pub struct ValueLabels {
    tvf: Tvf,
    rates: RateLabels,
    history: History,
    /// By flow.
    draws: Vec<Draws>,
    /// Windows before which a flow has no rate.
    k: f64,
    random: Stream,
}

impl ValueLabels {
    /// An edge without flows.
    #[must_use]
    pub fn new(params: &ValueParams, random: Stream) -> Self {
        let rates = RateLabelParams {
            k: params.k,
            credit: Span::ZERO,
            bits: Label::BITS,
            marking: Marking::Debt,
            bucket: None,
            catch_up: 2.0,
        };
        // By token buckets, rates draw nothing.
        let rates = RateLabels::new(&rates, random.clone());
        let tvf = params.tvf.unwrap_or(Tvf::FAIR);
        Self {
            tvf,
            rates,
            history: History::new(params),
            draws: Vec::new(),
            k: params.k.as_secs_f64(),
            random,
        }
    }

    /// The value of a packet of `flow` that arrives now.
    #[inline]
    pub fn label(&mut self, now: Time, flow: FlowId, size: Bytes) -> Label {
        match self.rates.label_or(now, flow, size, size.bits() as f64 / self.k) {
            RateLabel::Guaranteed => Label::new(Format::WIDEST.max()),
            RateLabel::Excess(rate) => {
                let slot = flow.slot();
                if slot >= self.draws.len() {
                    self.draws.resize(slot + 1, Draws([0; PARTS]));
                }
                let u = self.draws[slot].draw(size, self.random.uniform());
                let weight = self.rates.weight(flow);
                // 1 - u is above 0.
                let counted = self.history.counted(now, flow, size, weight, rate * (1.0 - u));
                Label::new(self.tvf.value(counted))
            }
        }
    }

    /// Sets the weight of `flow` from its next packet on.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        self.rates.set_weight(flow, weight);
    }

    /// Sets the guarantee of `flow` from its next packet on, with its round-trip time; none if it is zero.
    pub fn set_guarantee(&mut self, flow: FlowId, guarantee: Rate, rtt: Span) {
        self.rates.set_guarantee(flow, guarantee, rtt);
    }
}

/// The marker's state: an edge of one flow.
#[derive(Clone, Debug)]
pub struct ValueMarker(ValueLabels);

impl ValueMarker {
    /// A marker of one flow.
    #[must_use]
    pub fn new(params: &ValueParams, setup: MarkerSetup) -> Self {
        Self(ValueLabels::new(params, setup.random))
    }
}

impl<P: Packet> Marker<P> for ValueMarker {
    fn mark(&mut self, now: Time, packet: &mut P) {
        packet.set_label(LabelKind::Value, self.0.label(now, FlowId(0), packet.size()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The part of its rate that a flow of `kbit` keeps where values below that of `part` of it are dropped.
    fn kept(kbit: u64, part: f64, random: bool) -> f64 {
        let params = ValueParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        let mut labels = ValueLabels::new(&params, Stream::new(7, "value"));
        let mut jitter = Stream::new(8, "gaps");
        let threshold = Tvf::FAIR.value(part * kbit as f64 * 1e3);
        let mean = 1_500.0 * 8.0 / (kbit as f64 * 1e3);
        let (mut now, mut passed, mut all) = (0.0, 0.0, 0.0);
        while all < 18_000.0 {
            now += if random { jitter.exponential(mean) } else { mean };
            let label = labels.label(Time::from_nanos((now * 1e9) as u64), FlowId(0), Bytes::new(1_500));
            // Ten times `k`.
            if now > 1.0 {
                all += 1.0;
                passed += f64::from(u8::from(label.value() >= threshold));
            }
        }
        passed / all
    }

    #[test]
    fn of_any_packets_of_a_flow_as_many_as_should_are_below_a_part() {
        let mut random = Stream::new(9, "draws");
        for part in [0.1, 0.3, 0.5, 0.9] {
            let (mut draws, mut below, mut all) = (Draws([0; PARTS]), 0.0, 0.0);
            for n in 0..4_000_u64 {
                // A sender that knew its values would send its large packets with the high ones.
                let size = if draws.0[0] == 0 { 1_500 } else { 100 + n % 7 };
                let u = draws.draw(Bytes::new(size), random.uniform());
                all += size as f64;
                below += if u < part { size as f64 } else { 0.0 };
                // One of eight parts is in doubt, and each may be a packet ahead.
                let doubt = 0.03 * all + 1_500.0 * PARTS as f64;
                assert!((below - part * all).abs() <= doubt, "{n}: {below} of {all}");
            }
        }
        // With equal sizes, independent draws would have a standard deviation of 1.4 of 8.
        let (mut draws, mut below) = (Draws([0; PARTS]), [0; 100]);
        for n in 0..800 {
            below[n / 8] += usize::from(draws.draw(Bytes::new(1_000), random.uniform()) < 0.5);
        }
        assert_eq!(below, [4; 100]);
    }

    #[test]
    fn what_exceeds_the_mean_of_long_counts_less() {
        let mut params = ValueParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.burst_factor = 4.0;
        let mut history = History::new(&params);
        let size = Bytes::new(1_250);
        let mut at = |ms: u64, rate: f64| history.counted(Time::from_millis(ms), FlowId(0), size, 2.0, rate);
        assert!((at(1, 4e6) / 1e6 - 1.0).abs() < 0.01, "no history: a quarter");
        for ms in 2..100_000 {
            at(ms, 0.0);
        }
        // 10 Mb/s of weight 2 for 100 s.
        assert_eq!(at(100_000, 4e6), 4e6);
        assert!((at(100_001, 9e6) / 1e6 - 6.0).abs() < 0.01, "5 and a quarter of 4");
    }

    #[test]
    fn what_is_worth_more_than_a_rate_has_that_rate() {
        // 18,000 draws: 4 sigma of a half are 1.5 %. Poisson arrivals make the rate itself vary.
        for kbit in [100, 1_000, 10_000, 1_000_000] {
            for part in [0.1, 0.5, 0.9] {
                let (regular, poisson) = (kept(kbit, part, false), kept(kbit, part, true));
                assert!((regular - part).abs() < 0.015, "{kbit} kb/s, {part}: {regular}");
                assert!(kbit < 1_000 || (poisson - part).abs() < 0.06, "{kbit} kb/s, {part}: {poisson}");
            }
        }
    }
}
