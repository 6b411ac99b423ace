//! TSW3CM, time sliding window three colour marker: colours the part of a flow's rate that exceeds a profile,
//! each packet at random.
//!
//! Fang, Seddigh, Nandy, "A time sliding window three colour marker (TSWTCM)", RFC 2859, 2000. The RFC calls
//! the two rates committed and peak *target* rate, CTR and PTR; they are `cir` and `pir` here, as in the
//! other markers of its family (RFC 2697, RFC 2698).
//!
//! Readings, where the RFC leaves room:
//! - Rates count bits on the wire, headers included.
//! - The estimate starts at the committed rate when the flow starts; the first packet counts.
//! - One number is drawn for each packet, whatever the rate.
//!
//! Cost: O(1) per packet; 72 bytes per flow, at the edge only. Parameters: [`ENTRY`].

use alloc::format;

use super::marker::{Marker, MarkerSetup};
use crate::estimate::RateEstimator;
use crate::estimate::tsw::Tsw;
use crate::packet::{Colour, Packet};
use crate::param::{Entry, EntryArgs, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::random::Stream;
use crate::units::{Rate, Span, Time};

/// TSW3CM in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tsw3cm",
    role: Role::Marker,
    summary: "Time sliding window marker: green within a rate, yellow up to a second one, red beyond.",
    reference: "RFC 2859",
    cost: "O(1) per packet, state at the ends of flows only",
    params: Tsw3cmParams::PARAMS,
    traits: Traits::NONE,
};

params! {
    /// Parameters of [`Tsw3cm`], also of [TSW2CM](super::tsw2cm), which has `cir` for both rates.
    pub struct Tsw3cmParams {
        /// Rate up to which packets are green.
        cir: Rate = Param::required().symbol("CTR") => |args| set(args, "cir"),
        /// Rate beyond which packets are red; at least `cir`.
        pir: Rate = Param::required().symbol("PTR") => |args: &EntryArgs<'_>| set(args, if args.has("pir") { "pir" } else { "cir" }),
        /// Window of the estimate of the flow's rate.
        window: Span = Param::of("1s", "ns-2's diffserv module; the RFC leaves it open").symbol("AVG_INTERVAL"),
    }
    check: |params: &Self, _| params.check()
}

impl Tsw3cmParams {
    fn check(&self) -> Result<(), ParamError> {
        let Self { cir, pir, window } = *self;
        require(pir >= cir, "pir", &format!("{pir} is below `cir`, which is {cir}"))?;
        require(window > Span::ZERO, "window", "it must be above zero; write for example \"1s\"")
    }
}

/// The rate `key`, which has no default.
fn set(args: &EntryArgs<'_>, key: &str) -> Result<Rate, ParamError> {
    let missing = || ParamError::new(key, "it must be set; write for example \"1Mbit\"");
    args.rate_if_set(key).ok_or_else(missing)
}

/// The marker's state, with the RFC's names. Rates are in bits a second.
#[derive(Clone, Debug)]
pub struct Tsw3cm {
    ctr: f64,
    ptr: f64,
    avg_rate: Tsw,
    random: Stream,
}

impl Tsw3cm {
    /// A marker of one flow.
    #[must_use]
    pub fn new(params: &Tsw3cmParams, setup: MarkerSetup) -> Self {
        let ctr = params.cir.as_bit() as f64;
        Self {
            ctr,
            ptr: params.pir.as_bit() as f64,
            avg_rate: Tsw::new(params.window, ctr, setup.start),
            random: setup.random,
        }
    }

    /// The colour at `avg_rate` of a packet with the random draw `u`.
    fn colour(&self, avg_rate: f64, u: f64) -> Colour {
        // RFC 2859: P1 = (avg-rate - PTR) / avg-rate and P2 = (PTR - CTR) / avg-rate, or (avg-rate - CTR) /
        // avg-rate below PTR. Both are parts of the rate, cut at the two targets.
        let beyond = |target: f64| (avg_rate - target).max(0.0);
        match u * avg_rate {
            cut if cut < beyond(self.ptr) => Colour::Red,
            cut if cut < beyond(self.ctr) => Colour::Yellow,
            _ => Colour::Green,
        }
    }
}

impl<P: Packet> Marker<P> for Tsw3cm {
    fn mark(&mut self, now: Time, packet: &mut P) {
        self.avg_rate.update(now, packet.size().bits() as f64);
        let u = self.random.uniform();
        packet.set_colour(self.colour(self.avg_rate.rate(now), u));
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::testing::packet;

    pub(in super::super) fn marker(cir: u64, pir: u64) -> Tsw3cm {
        let (cir, pir) = (Rate::from_kbit(cir), Rate::from_kbit(pir));
        let setup = MarkerSetup {
            tickets: None,
            acknowledged: false,
            start: Time::ZERO,
            random: Stream::new(1, "mark"),
        };
        Tsw3cm::new(&Tsw3cmParams { cir, pir, window: Span::from_secs(1) }, setup)
    }

    /// The green, yellow and red packets among `n` of 1000 B every 2 ms, which are 4 Mb/s, once the estimate
    /// has settled.
    pub(in super::super) fn count(marker: &mut Tsw3cm, n: u64) -> [u64; 3] {
        let mut counts = [0; 3];
        for i in 1..=10_000 + n {
            let mut packet = packet(0, 0, 1_000);
            marker.mark(Time::from_millis(2 * i), &mut packet);
            if i > 10_000 {
                counts[packet.colour as usize - Colour::Green as usize] += 1;
            }
        }
        counts
    }

    #[test]
    fn colours_are_the_parts_of_the_rate_between_the_targets() {
        let marker = marker(1_000, 2_000);
        let at = |rate: f64| [0.0, 0.24, 0.26, 0.49, 0.51, 0.74, 0.76, 0.99].map(|u| marker.colour(rate, u));
        let (g, y, r) = (Colour::Green, Colour::Yellow, Colour::Red);
        // 4 Mb/s: P1 = 2/4, P2 = 1/4.
        assert_eq!(at(4e6), [r, r, r, r, y, y, g, g]);
        // 2 Mb/s: yellow (2 - 1)/2; 4/3: (4/3 - 1)/(4/3) = 1/4.
        assert_eq!(at(2e6), [y, y, y, y, g, g, g, g]);
        assert_eq!(at(4e6 / 3.0), [y, y, g, g, g, g, g, g]);
        assert_eq!(at(1e6), [g; 8]);
        assert_eq!(at(0.0), [g; 8]);
    }

    #[test]
    fn a_flow_of_four_times_its_rate_is_coloured_in_proportion() {
        // 20000 trials, 4 sigma: 4 sqrt(p (1 - p) 20000).
        let counts = count(&mut marker(1_000, 2_000), 20_000);
        for (count, p) in counts.into_iter().zip([0.25_f64, 0.25, 0.5]) {
            let (expected, band) = (20_000.0 * p, 4.0 * (20_000.0 * p * (1.0 - p)).sqrt());
            assert!((count as f64 - expected).abs() < band, "{counts:?}: {expected} ± {band}");
        }
    }

    #[test]
    fn a_flow_within_its_rate_is_green_from_the_first_packet() {
        // 4 Mb/s of 4 Mb/s. The estimate is (4e6·1 + 8000)/(1 + 0.002) = 4e6: it never leaves the target.
        assert_eq!(count(&mut marker(4_001, 5_000), 1_000), [1_000, 0, 0]);
        let mut marker = marker(4_000, 5_000);
        let mut first = packet(0, 0, 1_000);
        marker.mark(Time::from_millis(2), &mut first);
        assert_eq!((first.colour, marker.avg_rate.rate(Time::from_millis(2))), (Colour::Green, 4e6));
    }
}
