//! Value labels: each packet carries the value of its part of its flow's rate.
//!
//! Nádas, Turányi, Rácz, GLOBECOM 2016; Laki, Gombos, Nádas, Turányi, ANRW 2017. After the published sources: the
//! papers' texts were not at hand. If a node drops the packets whose value is below v, the flow is to keep the rate
//! at which its [TVF](super::tvf) has the value v. A draw achieves it: with R the rate of the flow, a packet carries
//! V(u), u uniform in \[0, R\]. Packets that pass are again uniform, so no router writes a label anew.
//!
//! Readings:
//! - R is that of [`rate_label`](super::rate_label), per weight; u is drawn up to R as it is with the packet. The
//!   published token marker never finds the rate of flows below 1 Mb/s, and values Poisson arrivals 8 %, bursts
//!   20 % too low; a marker with a bucket for each of 150 rates is 2 to 5 % too low.
//! - A flow that sends less than a packet in `k`, irregularly, is valued too low: of 100 kb/s in full packets at random
//!   times, 0.7 passes where 0.9 should.
//! - A packet within a guarantee has the highest value.
//! - Values are per bit: with mixed sizes packets are dropped by their value alone.
//!
//! Cost: O(1) per packet, one exponential and a draw; 40 bytes per flow at the edge. Parameters: [`ENTRY`].

use super::marker::{Marker, MarkerSetup};
use super::rate_label::{Marking, RateLabel, RateLabelParams, RateLabels};
use super::tvf::Tvf;
use crate::label::{Format, Label};
use crate::packet::{FlowId, LabelKind, Packet};
use crate::param::{Entry, EntryArgs, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Span, Time, Weight};

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
        /// Throughput-value function per weight: rates and values; if not set 1e15 divided by the rate in b/s, for fair shares.
        tvf: Option<Tvf> = Param::unset("Nádas, Turányi, Rácz 2016").symbol("V"),
        /// Time constant of the rate of a flow, at the edge.
        k: Span = Param::of("100ms", "as CSFQ; the published program: 40 ms").symbol("K"),
    }
    check: Self::check
}

impl ValueParams {
    fn check(&self, _args: &EntryArgs<'_>) -> Result<(), ParamError> {
        require(self.k > Span::ZERO, "k", "it must be above zero; write for example \"100ms\"")
    }
}

/// The values of the flows that enter at an edge.
#[derive(Clone, Debug)]
pub struct ValueLabels {
    tvf: Tvf,
    rates: RateLabels,
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
        Self { tvf: params.tvf.unwrap_or(Tvf::FAIR), rates, k: params.k.as_secs_f64(), random }
    }

    /// The value of a packet of `flow` that arrives now.
    #[inline]
    pub fn label(&mut self, now: Time, flow: FlowId, size: Bytes) -> Label {
        match self.rates.label_or(now, flow, size, size.bits() as f64 / self.k) {
            RateLabel::Guaranteed => Label::new(Format::WIDEST.max()),
            // 1 - u is above 0.
            RateLabel::Excess(rate) => Label::new(self.tvf.value(rate * (1.0 - self.random.uniform()))),
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
