//! The fair share of a link: the rate per unit of weight at which dropping what exceeds it just fills the link.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, figure 3 (CSFQ); Pelsser, De Cnodder,
//! "Improvements to core stateless fair queueing", PfHSN 2002, figures 2 (CSFQ again) and 3 (MCSFQ). Names are
//! those of 2002; in 1998 FS is α, AR is A, FR is F and temp_FS is tmp_α.
//!
//! A congested link scales FS by C / FR after each window of K_c. An uncongested one takes the largest label of
//! the window; MCSFQ differs from CSFQ only in that FS then never falls. One number says which: the `decay` of
//! FS per uncongested window, 1 for CSFQ and 0 for MCSFQ.
//!
//! Readings, where the papers leave room or contradict each other; each is a parameter:
//! - FR averages every arrival, an early drop as 0 bits ([`AcceptedRate::Arrivals`], the code of 1998), so that it
//!   falls when all is dropped. The figures of 2002 update it on accepted packets only.
//! - The label noted is the one that a packet came with. The figures of 2002 relabel first.
//! - A packet's own label counts when an uncongested window ends. Otherwise a lone packet in a window ends one
//!   that saw nothing, FS becomes 0, and the packet's retransmissions do the same again.
//! - What a queue at or below the threshold means ([`BelowThreshold`]): in the code of 1998 the share of an uncongested
//!   link is unknown again; in 2002 (footnote 3) an uncongested link stays so.
//! - With guaranteed packets, FS divides what they leave (`aggregate_guarantee`): X = C - G. Figure 7 of 2002
//!   taken literally divides C by all that arrives. The estimate of G is in a thesis that could not be found;
//!   here it is an exponential average like the others, and X is at least C / 100.
//!
//! Fixed: FR is at least C / 1000 in the division, FS at most X for the smallest weight below 1. A buffer
//! overflow takes `overflow_decrease` of FS, at most 30 times in a period of congestion.
//!
//! Cost: O(1) per packet, one exponential (two where FR averages accepted packets only); no state per flow.

use super::exponential::{Exponentials, First};
use crate::catalog::{EntryArgs, Kind, Param, ParamError, require};
use crate::label::Format;
use crate::mark::rate_label::RateLabel;
use crate::units::{Bytes, Rate, Ratio, Span, Time, Weight};

/// K_α, and the window that follows it.
pub(crate) const K_ALPHA: Param = Param::new(
    "k_alpha",
    "K_α",
    Kind::Span,
    "100ms",
    "1998 paper, simulations",
    "Time constant of the rates that arrive and are accepted.",
);
/// K_c.
pub(crate) const K_C: Param = Param {
    name: "k_c",
    symbol: "K_c",
    doc: "Window after which the fair share is estimated anew.",
    ..K_ALPHA
};
/// FS at the start.
pub(crate) const INITIAL: Param = Param {
    name: "initial",
    symbol: "FS",
    kind: Kind::Rate,
    default: None,
    source: "1998 code; the 2002 paper starts at 1 bit/s, which drops the first window",
    doc: "Fair share at the start; unknown if not set, and then nothing is dropped until the queue grows.",
};
/// See [`BelowThreshold`].
pub(crate) const BELOW_THRESHOLD: Param = Param {
    name: "below_threshold",
    symbol: "–",
    kind: Kind::Choice(&["unknown", "uncongested"]),
    default: Some("unknown"),
    source: "1998 code",
    doc: "What a queue up to the threshold means without congestion: the share is unknown, or it stays so.",
};
/// How much of FS an uncongested window takes.
pub(crate) const DECAY: Param = Param {
    name: "decay",
    symbol: "–",
    kind: Kind::Ratio,
    default: Some("1"),
    source: "1998 paper, figure 3: the share is the largest label of the window",
    doc: "Part of the fair share that an uncongested window takes, down to the largest label seen.",
};
/// See [`AcceptedRate`].
pub(crate) const ACCEPTED_RATE: Param = Param {
    name: "accepted_rate",
    symbol: "FR",
    kind: Kind::Choice(&["arrivals", "accepted"]),
    default: Some("arrivals"),
    source: "1998 code; figures 2 and 3 of 2002 say accepted",
    doc: "When the accepted rate is averaged: at every arrival, or when a packet is accepted.",
};
/// Which label is noted.
pub(crate) const NOTED_LABEL: Param = Param {
    name: "noted_label",
    symbol: "–",
    kind: Kind::Choice(&["original", "relabelled"]),
    default: Some("original"),
    source: "1998 code; figure 1 of 2002 says relabelled",
    doc: "Whose maximum an uncongested window takes: labels as they came, or as they leave.",
};
/// Whether the packet that ends a window is part of it.
pub(crate) const OWN_LABEL: Param = Param::new(
    "own_label",
    "–",
    Kind::Switch,
    "true",
    "1998 code; figures 2 and 3 of 2002 say false",
    "Whether the packet that ends an uncongested window counts for it.",
);
/// Whether G is estimated.
pub(crate) const AGGREGATE_GUARANTEE: Param = Param::new(
    "aggregate_guarantee",
    "G",
    Kind::Switch,
    "true",
    "2002 paper, section 4; figure 7 by itself says false",
    "Whether what guaranteed packets use is estimated and set aside before the rest is divided.",
);
/// What an overflow takes.
pub(crate) const OVERFLOW_DECREASE: Param = Param::new(
    "overflow_decrease",
    "–",
    Kind::Ratio,
    "1%",
    "1998 paper, simulations",
    "Part of the fair share that each overflow of the buffer takes, up to 30 times in a period of congestion.",
);
/// What the onset of congestion does.
pub(crate) const ONSET: Param = Param::new(
    "onset",
    "–",
    Kind::Switch,
    "false",
    "2002 paper, section 5, as further work",
    "Whether the onset of congestion lowers the fair share at once: to what was seen, and to what fits.",
);

/// How often in a period of congestion an overflow lowers FS, as the code of 1998 counts.
const DECREASES: u32 = 30;

/// The fair share for a weight of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FairShare {
    /// Nobody knows yet: all is let through.
    Unknown,
    /// Nothing but guaranteed packets is let through.
    Nothing,
    /// This many bits a second, above 0.
    Rate(f64),
}

impl FairShare {
    /// The share of `rate` bits a second.
    #[must_use]
    pub fn of(rate: f64) -> Self {
        if rate > 0.0 { Self::Rate(rate) } else { Self::Nothing }
    }

    /// Its rate in bits a second, if it is known.
    #[must_use]
    pub const fn rate(self) -> Option<f64> {
        match self {
            Self::Unknown => None,
            Self::Nothing => Some(0.0),
            Self::Rate(rate) => Some(rate),
        }
    }

    /// This share times `factor`.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        self.rate().map_or(Self::Unknown, |rate| Self::of(rate * factor))
    }

    /// The probability with which a packet is dropped so that its flow keeps to this share.
    #[must_use]
    pub fn drop_probability(self, label: RateLabel) -> f64 {
        match (self, label) {
            (Self::Unknown, _) | (_, RateLabel::Guaranteed) => 0.0,
            (Self::Nothing, RateLabel::Excess(_)) => 1.0,
            // Stoica98 figure 3, Pelsser02 eq. (2): max(0, 1 - FS / label).
            (Self::Rate(share), RateLabel::Excess(rate)) => (1.0 - share / rate).max(0.0),
        }
    }

    /// The label of a packet that was let through: its flow has no more than the share from here on.
    #[must_use]
    pub fn relabel(self, label: RateLabel, format: Format) -> RateLabel {
        match (self, label) {
            (Self::Rate(share), RateLabel::Excess(rate)) if rate > share => RateLabel::excess(share, format),
            _ => label,
        }
    }
}

/// What a queue at or below the threshold means for an uncongested link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowThreshold {
    /// Its share is unknown.
    Unknown,
    /// It stays uncongested whatever arrives.
    Uncongested,
}

/// What FR averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedRate {
    /// Every arrival, an early drop as 0 bits.
    Arrivals,
    /// Accepted packets only.
    Accepted,
}

/// Which label an uncongested window notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedLabel {
    /// As the packet came.
    Original,
    /// At most the fair share, as the packet leaves.
    Relabelled,
}

/// Parameters of a [`FairShareEstimator`].
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue is their only description")]
pub struct FairShareParams {
    pub k_alpha: Span,
    pub k_c: Span,
    pub initial: Option<Rate>,
    pub below_threshold: BelowThreshold,
    pub accepted_rate: AcceptedRate,
    pub noted_label: NotedLabel,
    pub own_label: bool,
    pub aggregate_guarantee: bool,
    pub overflow_decrease: Ratio,
    pub decay: Ratio,
    pub onset: bool,
}

impl FairShareParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        Ok(Self {
            initial: args.rate_if_set("initial"),
            below_threshold: match args.choice("below_threshold") {
                "unknown" => BelowThreshold::Unknown,
                _ => BelowThreshold::Uncongested,
            },
            accepted_rate: match args.choice("accepted_rate") {
                "arrivals" => AcceptedRate::Arrivals,
                _ => AcceptedRate::Accepted,
            },
            noted_label: match args.choice("noted_label") {
                "original" => NotedLabel::Original,
                _ => NotedLabel::Relabelled,
            },
            own_label: args.switch("own_label"),
            aggregate_guarantee: args.switch("aggregate_guarantee"),
            overflow_decrease: args.ratio("overflow_decrease"),
            decay: args.ratio("decay"),
            onset: args.switch("onset"),
            ..Self::of_1998(args)?
        })
    }

    /// The readings of 1998, with time constants from the catalogue's values.
    ///
    /// # Errors
    /// When a time constant is zero.
    pub(crate) fn of_1998(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let (k_alpha, k_c) = (args.span("k_alpha"), args.span("k_c"));
        for (key, span) in [("k_alpha", k_alpha), ("k_c", k_c)] {
            require(span > Span::ZERO, key, "an average takes time; write for example \"100ms\"")?;
        }
        Ok(Self {
            k_alpha,
            k_c,
            initial: None,
            below_threshold: BelowThreshold::Unknown,
            accepted_rate: AcceptedRate::Arrivals,
            noted_label: NotedLabel::Original,
            own_label: true,
            aggregate_guarantee: false,
            overflow_decrease: Ratio::clamped(0.01),
            decay: Ratio::ONE,
            onset: false,
        })
    }
}

/// A packet that arrives at a link, and what was decided.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// Its size.
    pub size: Bytes,
    /// The label it came with.
    pub label: RateLabel,
    /// Whether it is dropped for its label. A packet that the full buffer refuses is not: FR says what FS lets
    /// through.
    pub dropped: bool,
    /// Whether the queue is at or below the threshold.
    pub calm: bool,
}

/// The estimate of the fair share, with the paper's names. Rates are in bits a second.
#[derive(Clone, Debug)]
pub struct FairShareEstimator {
    params: FairShareParams,
    /// C.
    c: f64,
    /// What C can be at most, and so FS for a weight of 1: the rate of the link.
    most: f64,
    /// The smallest weight that there was, if below 1.
    smallest_weight: f64,
    /// FS.
    fs: FairShare,
    /// temp_FS, the largest label of the present window; 0 if there was none.
    temp_fs: f64,
    /// The largest label of the window before.
    before: f64,
    /// AR, FR and G.
    rates: Exponentials<3>,
    /// FR under [`AcceptedRate::Accepted`].
    accepted: Option<Exponentials<1>>,
    congested: bool,
    start_time: Time,
    /// Times that the link became congested. Where this grows faster than windows pass, FS stands still.
    periods: u64,
    /// Decreases left in this period of congestion.
    decreases: u32,
    /// Time of the last arrival.
    last: Time,
}

impl FairShareEstimator {
    /// In front of a link of `c`, at time zero.
    #[must_use]
    pub fn new(params: &FairShareParams, c: Rate) -> Self {
        let accepted = || Exponentials::new(params.k_alpha, [0.0], Time::ZERO, First::SinceStart);
        Self {
            c: c.as_bit() as f64,
            most: c.as_bit() as f64,
            smallest_weight: 1.0,
            fs: params.initial.map_or(FairShare::Unknown, |rate| FairShare::of(rate.as_bit() as f64)),
            temp_fs: 0.0,
            before: 0.0,
            rates: Exponentials::new(params.k_alpha, [0.0; 3], Time::ZERO, First::SinceStart),
            accepted: (params.accepted_rate == AcceptedRate::Accepted).then(accepted),
            // The code of 1998 starts congested, with the share unknown.
            congested: params.initial.is_none(),
            start_time: Time::ZERO,
            periods: 0,
            decreases: DECREASES,
            last: Time::ZERO,
            params: params.clone(),
        }
    }

    /// FS.
    #[must_use]
    pub const fn fair_share(&self) -> FairShare {
        self.fs
    }

    /// Whether more arrives than there is to divide, as of the last arrival.
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.congested
    }

    /// FR, as of the last arrival.
    #[must_use]
    pub fn accepted_rate(&self) -> f64 {
        let [_, fr, _] = self.rates.last_rates();
        self.accepted.as_ref().map_or(fr, |accepted| accepted.last_rates()[0])
    }

    /// What excess traffic can have: C, or what guaranteed traffic leaves of it.
    #[must_use]
    pub fn available(&self) -> f64 {
        let [_, _, g] = self.rates.last_rates();
        if self.params.aggregate_guarantee { (self.c - g).max(self.c / 100.0) } else { self.c }
    }

    /// The rate of the link from now on.
    pub fn set_link_rate(&mut self, rate: Rate) {
        self.c = rate.as_bit() as f64;
        self.most = self.c;
    }

    /// What there is to divide from now on, in bits a second, as part of a link that carries `most`.
    ///
    /// If more than that arrives, FS and FR follow C at once, as if C had long been so: what passes is a part of
    /// C, and FR need not be waited for.
    pub fn set_part(&mut self, c: f64, most: f64) {
        if self.congested && self.c > 0.0 && c > 0.0 {
            let factor = c / self.c;
            self.fs = self.fs.scaled(factor);
            self.rates.scale([1.0, factor, 1.0]);
        }
        (self.c, self.most) = (c, most);
    }

    /// There is a flow of this weight: FS may exceed C for weights below 1.
    pub fn note_weight(&mut self, weight: Weight) {
        self.smallest_weight = self.smallest_weight.min(weight.get());
    }

    /// estimate_FS of the papers, for every arrival.
    pub fn update(&mut self, now: Time, arrival: Arrival) {
        self.average(now, &arrival);
        self.last = now;
        let label = match (arrival.label, self.params.noted_label) {
            (RateLabel::Guaranteed, _) => 0.0,
            (RateLabel::Excess(rate), NotedLabel::Original) => rate,
            (RateLabel::Excess(rate), NotedLabel::Relabelled) => {
                self.fs.rate().map_or(rate, |fs| rate.min(fs))
            }
        };
        if self.fs == FairShare::Unknown {
            self.temp_fs = self.temp_fs.max(label);
            if arrival.calm {
                return;
            }
            let largest = core::mem::take(&mut self.temp_fs);
            self.fs = self.share_or_unknown(if largest > 0.0 { largest } else { self.c / 2.0 });
        }
        let over = now >= self.start_time + self.params.k_c;
        match (self.is_overloaded(arrival.calm), self.congested) {
            (true, false) => self.become_congested(now),
            (true, true) if over => self.scale(now),
            (true, true) => {}
            (false, true) => {
                self.congested = false;
                self.start_time = now;
                self.temp_fs = 0.0;
            }
            (false, false) => {
                if !over || self.params.own_label {
                    self.temp_fs = self.temp_fs.max(label);
                }
                if over {
                    self.end_uncongested_window(now, arrival.calm);
                }
            }
        }
    }

    fn average(&mut self, now: Time, arrival: &Arrival) {
        let bits = arrival.size.bits() as f64;
        let excess = !self.params.aggregate_guarantee || arrival.label != RateLabel::Guaranteed;
        let counted = |counts: bool| if counts { bits } else { 0.0 };
        let accepted = counted(excess && !arrival.dropped);
        self.rates.update(now, [counted(excess), accepted, counted(arrival.label == RateLabel::Guaranteed)]);
        if let Some(average) = self.accepted.as_mut().filter(|_| excess && !arrival.dropped) {
            average.update(now, [bits]);
        }
    }

    /// Whether the link counts as congested.
    fn is_overloaded(&self, calm: bool) -> bool {
        let [ar, _, _] = self.rates.last_rates();
        let held = self.params.below_threshold == BelowThreshold::Uncongested && calm && !self.congested;
        ar >= self.available() && !held
    }

    fn become_congested(&mut self, now: Time) {
        self.congested = true;
        self.periods += 1;
        self.start_time = now;
        self.decreases = DECREASES;
        if self.params.onset {
            // What nobody sends is forgotten, and what is let through too much is not waited for.
            let largest = self.temp_fs.max(self.before);
            let seen = self.fs.rate().filter(|fs| largest > 0.0 && largest < *fs).map(|_| largest);
            self.fs = seen.map_or(self.fs, FairShare::of);
            let over = self.accepted_rate() / self.available();
            self.fs = if over > 1.0 { self.fs.scaled(1.0 / over) } else { self.fs };
        }
    }

    /// The end of a congested window.
    fn scale(&mut self, now: Time) {
        let x = self.available();
        let most = x.max(self.most) / self.smallest_weight;
        let fr = self.accepted_rate().max(self.c / 1_000.0);
        // Stoica98 figure 3, Pelsser02 eq. (3): FS = FS C / FR.
        self.fs = match self.fs {
            FairShare::Rate(fs) => self.share_or_unknown((fs * x / fr).min(most)),
            other => other,
        };
        self.start_time = now;
    }

    /// The end of an uncongested window.
    fn end_uncongested_window(&mut self, now: Time, calm: bool) {
        let kept = 1.0 - self.params.decay.get();
        let largest = core::mem::take(&mut self.temp_fs);
        let share = self.fs.rate().map_or(largest, |fs| largest.max(fs * kept));
        self.fs = match self.params.below_threshold {
            BelowThreshold::Unknown if calm => FairShare::Unknown,
            BelowThreshold::Unknown => self.share_or_unknown(share),
            BelowThreshold::Uncongested => FairShare::of(share),
        };
        self.before = largest;
        self.start_time = now;
    }

    /// A link that stands still lets nothing through, and says nothing of shares.
    fn share_or_unknown(&self, rate: f64) -> FairShare {
        if rate > 0.0 { FairShare::Rate(rate) } else { FairShare::Unknown }
    }

    /// The buffer was full.
    pub fn overflow(&mut self) {
        if self.decreases > 0 {
            self.decreases -= 1;
            self.fs = self.fs.scaled(1.0 - self.params.overflow_decrease.get());
        }
    }

    /// Shows what it stands at.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        if let Some(rate) = self.fs.rate() {
            show("alpha", rate);
        }
        let [ar, fr, g] = self.rates.rates(self.last);
        show("arrival_rate", ar);
        show("accepted_rate", self.accepted.as_ref().map_or(fr, |accepted| accepted.last_rates()[0]));
        show("guaranteed_rate", g);
        show("congested_periods", self.periods as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Args;
    use crate::drop::csfq::{CSFQ, MCSFQ};

    const C: f64 = 8e6;
    const SIZE: Bytes = Bytes::new(1_000);

    fn csfq() -> FairShareParams {
        FairShareParams::from_args(&Args::default().of(&CSFQ)).unwrap()
    }

    fn mcsfq() -> FairShareParams {
        FairShareParams::from_args(&Args::default().of(&MCSFQ)).unwrap()
    }

    /// With these averages and this share since time zero, in front of 8 Mb/s.
    fn standing(
        params: &FairShareParams,
        congested: bool,
        fs: FairShare,
        rates: [f64; 3],
    ) -> FairShareEstimator {
        let rates = Exponentials::new(params.k_alpha, rates, Time::ZERO, First::SinceStart);
        let new = FairShareEstimator::new(params, Rate::from_mbit(8));
        FairShareEstimator { congested, fs, rates, ..new }
    }

    fn busy(label: f64, dropped: bool) -> Arrival {
        let label = if label > 0.0 { RateLabel::Excess(label) } else { RateLabel::Guaranteed };
        Arrival { size: SIZE, label, dropped, calm: false }
    }

    /// Updates with accepted packets at these microseconds.
    fn arrive(estimator: &mut FairShareEstimator, arrivals: &[(u64, f64)]) -> FairShare {
        for &(us, label) in arrivals {
            estimator.update(Time::from_nanos(1_000 * us), busy(label, false));
        }
        estimator.fs
    }

    fn rate(share: FairShare) -> f64 {
        share.rate().unwrap()
    }

    #[test]
    fn unknown_nothing_and_guaranteed_are_three_things() {
        use FairShare::{Nothing, Rate, Unknown};
        let excess = RateLabel::Excess(4e6);
        assert_eq!(
            [Unknown, Nothing, Rate(1e6)].map(|share| share.drop_probability(excess)),
            [0.0, 1.0, 0.75]
        );
        let guaranteed = RateLabel::Guaranteed;
        assert_eq!([Unknown, Nothing, Rate(1e6)].map(|share| share.drop_probability(guaranteed)), [0.0; 3]);
        assert_eq!(Rate(1e6).drop_probability(RateLabel::Excess(0.5e6)), 0.0);
        assert_eq!(
            (FairShare::of(0.0), Unknown.scaled(0.5), Rate(2.0).scaled(0.5)),
            (Nothing, Unknown, Rate(1.0))
        );
    }

    #[test]
    fn a_congested_link_scales_its_share_by_what_was_accepted() {
        // K_α = 100 ms, 8000 bit after 0.5 ms: w = 1 - e^-0.005 = 0.00498752. AR = 16e6 stays; accepted,
        // FR = 12e6 + w·4e6 = 12019950, so FS = 2e6·8e6/12019950 = 1331120.
        let params = FairShareParams { k_c: Span::from_micros(500), ..csfq() };
        let fresh = || standing(&params, true, FairShare::Rate(2e6), [16e6, 12e6, 0.0]);
        let mut estimator = fresh();
        let share = arrive(&mut estimator, &[(500, 1.5e6)]);
        assert!((rate(share) - 1_331_120.0).abs() < 1.0, "{share:?}");
        // Not before K_c has passed: the window starts at 0.5 ms.
        assert_eq!(arrive(&mut estimator, &[(900, 1.0)]), share);
        // Dropped: FR = (1 - w)·12e6 = 11940150, FS = 2e6·8e6/11940150 = 1340017; where FR averages accepted
        // packets only it stays at 12e6: 1333333.
        for (accepted, expected) in
            [(AcceptedRate::Arrivals, 1_340_017.0), (AcceptedRate::Accepted, 1_333_333.0)]
        {
            let mut estimator = fresh();
            if accepted == AcceptedRate::Accepted {
                let average = Exponentials::new(params.k_alpha, [12e6], Time::ZERO, First::SinceStart);
                estimator.accepted = Some(average);
            }
            estimator.update(Time::from_nanos(500_000), busy(9e6, true));
            assert!((rate(estimator.fs) - expected).abs() < 1.0, "{estimator:?}");
        }
    }

    #[test]
    fn a_share_never_exceeds_the_link_for_the_smallest_weight() {
        for (weight, most) in [(1.0, C), (4.0, C), (0.5, 2.0 * C)] {
            // With hardly anything accepted, C / FR is large; FR is taken as C / 1000 at least.
            let params = FairShareParams { k_c: Span::from_nanos(1), ..csfq() };
            let mut estimator = standing(&params, true, FairShare::Rate(7e6), [16e6, 1e3, 0.0]);
            estimator.note_weight(Weight::new(weight).unwrap());
            estimator.update(Time::from_nanos(1), busy(1.0, true));
            assert_eq!(estimator.fs, FairShare::Rate(most));
        }
    }

    #[test]
    fn the_share_of_a_part_follows_the_part_and_is_bounded_by_the_link() {
        // Half of C for a flow that is held to FS = 8e6 of it: 4e6, and of 6e6 that passed 3e6 would have.
        let congested = |congested, fs| standing(&csfq(), congested, FairShare::Rate(fs), [16e6, 6e6, 0.0]);
        let mut estimator = congested(true, C);
        estimator.set_part(C / 2.0, C);
        assert_eq!((estimator.fs, estimator.accepted_rate()), (FairShare::Rate(4e6), 3e6));
        assert_eq!(estimator.rates.last_rates()[0], 16e6, "what arrives is what it is");
        // After K_c: w = 1 - e^-1 = 0.632121, one packet of 8000 bits in 100 ms, F = w·80e3 + (1 - w)·3e6 =
        // 1154209 and FS = 4e6·4e6/1154209 = 13.9e6: bounded by the link, not by the part.
        assert_eq!(
            arrive(&mut estimator, &[(100_000, 1e6)]),
            FairShare::Rate(4e6),
            "uncongested: AR is below C"
        );
        let mut estimator = congested(true, C);
        estimator.rates =
            Exponentials::new(Span::from_millis(100), [99e6, 6e6, 0.0], Time::ZERO, First::SinceStart);
        estimator.set_part(C / 2.0, C);
        assert_eq!(arrive(&mut estimator, &[(100_000, 1e6)]), FairShare::Rate(C));
        // Who is not held back keeps its share, and no part of nothing is a share of nothing.
        let mut calm = congested(false, 2e6);
        calm.set_part(C / 2.0, C);
        assert_eq!((calm.fs, calm.accepted_rate()), (FairShare::Rate(2e6), 6e6));
        let mut stopped = congested(true, 2e6);
        [0.0, C].map(|c| stopped.set_part(c, C));
        assert_eq!(stopped.fs, FairShare::Rate(2e6));
    }

    #[test]
    fn csfq_takes_the_largest_label_of_a_window_and_mcsfq_never_less_than_it_had() {
        let windows = |params: FairShareParams| {
            let mut estimator = standing(&params, true, FairShare::Rate(3e6), [1e6, 1e6, 0.0]);
            // The end of congestion starts a window, of which the first packet is not part.
            arrive(&mut estimator, &[(1_000, 2.5e6)]);
            assert!(!estimator.congested);
            let before = arrive(&mut estimator, &[(31_000, 1e6), (61_000, 2e6), (91_000, 1.5e6)]);
            assert_eq!(before, FairShare::Rate(3e6), "until K_c has passed");
            // A lone packet in a window counts for itself. A larger label raises both.
            [(101_000, 0.5e6), (201_000, 0.7e6), (301_000, 4e6)].map(|at| rate(arrive(&mut estimator, &[at])))
        };
        assert_eq!(windows(csfq()), [2e6, 0.7e6, 4e6]);
        assert_eq!(windows(mcsfq()), [3e6, 3e6, 4e6]);
        // Half of it each window, as the extension says: 1.5 against 2; 1 against 0.7; 4.
        assert_eq!(windows(FairShareParams { decay: Ratio::clamped(0.5), ..mcsfq() }), [2e6, 1e6, 4e6]);
    }

    #[test]
    fn a_window_that_saw_only_its_own_end_is_no_deadlock() {
        let lone = |own_label| {
            let params =
                FairShareParams { own_label, below_threshold: BelowThreshold::Uncongested, ..csfq() };
            let mut estimator = standing(&params, false, FairShare::Rate(3e6), [0.0; 3]);
            arrive(&mut estimator, &[(1_000_000, 0.7e6), (2_000_000, 0.7e6)])
        };
        assert_eq!((lone(true), lone(false)), (FairShare::Rate(0.7e6), FairShare::Nothing));
    }

    #[test]
    fn a_label_is_noted_as_it_came_or_as_it_left() {
        let noted = |noted_label| {
            let params =
                FairShareParams { noted_label, below_threshold: BelowThreshold::Uncongested, ..csfq() };
            let mut estimator = standing(&params, false, FairShare::Rate(1e6), [0.0; 3]);
            arrive(&mut estimator, &[(1_000, 5e6), (200_000, 0.5e6)])
        };
        assert_eq!(
            (noted(NotedLabel::Original), noted(NotedLabel::Relabelled)),
            (FairShare::Rate(5e6), FairShare::Rate(1e6))
        );
    }

    #[test]
    fn guaranteed_traffic_alone_takes_the_share_only_from_csfq() {
        // CSFQ's window sees no excess label: nothing is allowed until one comes, and its own window ends.
        let after = |params: FairShareParams| {
            let params = FairShareParams { below_threshold: BelowThreshold::Uncongested, ..params };
            let mut estimator = standing(&params, false, FairShare::Rate(1e6), [0.0; 3]);
            let idle = arrive(&mut estimator, &[(1_000, 0.0), (200_000, 0.0)]);
            (idle, arrive(&mut estimator, &[(201_000, 2e6), (301_000, 0.0)]))
        };
        assert_eq!(after(csfq()), (FairShare::Nothing, FairShare::Rate(2e6)));
        assert_eq!(after(mcsfq()), (FairShare::Rate(1e6), FairShare::Rate(2e6)));
        // In the reading of 1998 no share is an unknown share.
        let mut estimator = standing(&csfq(), false, FairShare::Rate(1e6), [0.0; 3]);
        assert_eq!(arrive(&mut estimator, &[(1_000, 0.0), (200_000, 0.0)]), FairShare::Unknown);
    }

    #[test]
    fn what_is_guaranteed_is_set_aside() {
        // G = 2e6: 6 Mb/s for excess packets. 5e6 of them are no congestion, 7e6 are.
        let overloaded = |aggregate_guarantee, ar| {
            let params = FairShareParams { aggregate_guarantee, ..mcsfq() };
            let estimator = standing(&params, false, FairShare::Rate(1e6), [ar, ar, 2e6]);
            (estimator.is_overloaded(false), estimator.available())
        };
        assert_eq!([5e6, 7e6].map(|ar| overloaded(true, ar)), [(false, 6e6), (true, 6e6)]);
        assert_eq!(overloaded(false, 7e6), (false, 8e6));
        // More than the link: a hundredth is kept for excess.
        assert_eq!(standing(&mcsfq(), false, FairShare::Unknown, [0.0, 0.0, 9e6]).available(), 8e4);
        // A guaranteed packet counts in G, and in AR and FR as 0: w = 1 - e^-0.1 = 0.0951626 after 10 ms.
        let mut estimator = standing(&mcsfq(), false, FairShare::Rate(1e6), [1e6, 1e6, 1e6]);
        estimator.update(Time::from_millis(10), busy(0.0, false));
        let [ar, fr, g] = estimator.rates.last_rates();
        assert!((ar - 904_837.4).abs() < 0.1 && fr == ar && (g - 980_967.5).abs() < 0.1, "{ar} {fr} {g}");
    }

    #[test]
    fn a_short_queue_keeps_a_share_unknown_or_a_link_uncongested() {
        let calm = |label| Arrival { calm: true, ..busy(label, false) };
        // 1998: unknown until the queue grows, then the largest label so far, or half the link.
        let mut estimator = FairShareEstimator::new(&csfq(), Rate::from_mbit(8));
        for (us, label) in [(1, 3e6), (2, 5e6), (3, 1e6)] {
            estimator.update(Time::from_nanos(1_000 * us), calm(label));
            assert_eq!(estimator.fs, FairShare::Unknown);
        }
        assert_eq!(arrive(&mut estimator, &[(4, 2e6)]), FairShare::Rate(5e6));
        let mut estimator = FairShareEstimator::new(&csfq(), Rate::from_mbit(8));
        assert_eq!(arrive(&mut estimator, &[(1, 0.0)]), FairShare::Rate(C / 2.0));
        // 2002: no congestion begins, whatever arrives; one that has begun goes on.
        for (congested, expected) in [(false, false), (true, true)] {
            let mut estimator = standing(&mcsfq(), congested, FairShare::Rate(1e6), [16e6, 16e6, 0.0]);
            estimator.update(Time::from_nanos(1_000), calm(2e6));
            assert_eq!(estimator.congested, expected);
        }
    }

    #[test]
    fn an_overflow_takes_one_percent_thirty_times_in_a_period() {
        let mut estimator = standing(&csfq(), true, FairShare::Rate(4e6), [16e6, 8e6, 0.0]);
        for i in 1..=40 {
            estimator.overflow();
            let expected = 4e6 * 0.99_f64.powi(i.min(30));
            assert!((rate(estimator.fs) / expected - 1.0).abs() < 1e-12, "after {i}");
        }
        // A new period has thirty of its own.
        estimator.congested = false;
        arrive(&mut estimator, &[(0, 1.0)]);
        assert_eq!((estimator.decreases, estimator.periods), (30, 1));
    }

    #[test]
    fn the_onset_of_congestion_forgets_a_stale_share() {
        // A share of 8e6 from long ago; in the last window nobody sent more than 2e6, and 12e6 of 8e6 come.
        let onset = |onset| {
            let params = FairShareParams { onset, ..mcsfq() };
            let mut estimator = standing(&params, false, FairShare::Rate(8e6), [12e6, 12e6, 0.0]);
            estimator.before = 2e6;
            arrive(&mut estimator, &[(0, 1e6)])
        };
        // 2e6·8/12.
        assert!((rate(onset(true)) - 2e6 / 1.5).abs() < 1.0);
        assert_eq!(onset(false), FairShare::Rate(8e6));
    }

    #[test]
    fn load_that_crosses_the_link_rate_faster_than_windows_is_counted() {
        // 50 packets at twice the link's rate, then as long nothing: AR crosses C each time, every crossing
        // starts a window anew, and the share stands still. The counter says why.
        let mut estimator = standing(&csfq(), false, FairShare::Rate(1e6), [C, C, 0.0]);
        let mut us = 0;
        for _ in 0..100 {
            for _ in 0..50 {
                us += 500;
                arrive(&mut estimator, &[(us, 2e6)]);
            }
            us += 25_000;
        }
        // 100 waves of 50 ms in 5 s, which is 50 windows.
        assert!((95..=100).contains(&estimator.periods), "{estimator:?}");
        assert_eq!(estimator.fs, FairShare::Rate(1e6));
    }

    #[test]
    fn a_link_that_stood_still_starts_again_with_an_unknown_share() {
        let params = FairShareParams { k_c: Span::from_nanos(1), ..csfq() };
        let mut estimator = standing(&params, true, FairShare::Rate(1e6), [16e6, 8e6, 0.0]);
        estimator.set_link_rate(Rate::ZERO);
        assert_eq!(arrive(&mut estimator, &[(500, 1e6)]), FairShare::Unknown);
    }
}
