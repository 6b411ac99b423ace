//! The fair share of a link: the rate per unit of weight at which drops of all excess just fill the link.
//!
//! Stoica, Shenker, Zhang, "Core-stateless fair queueing", SIGCOMM 1998, figure 3 (CSFQ); Pelsser,
//! De Cnodder, "Improvements to core stateless fair queueing", PfHSN 2002, figures 2 (CSFQ again) and 3
//! (MCSFQ). Names are those of 2002; in 1998 FS is α, AR is A, FR is F and temp_FS is tmp_α.
//!
//! A congested link scales FS by C / FR after each window of K_c. An uncongested one takes the largest label
//! of the window; MCSFQ differs from CSFQ only in that FS then never falls. One number distinguishes them:
//! the `decay` of FS per uncongested window, 1 for CSFQ and 0 for MCSFQ.
//!
//! This is the law of the papers. With a `target_delay`, the default, the queue decides whether the link is
//! congested (`by_delay.rs`), and CSFQ and MCSFQ are the same. The rest of this page describes the papers'
//! law.
//!
//! Readings, where the papers leave room or contradict each other; each is a parameter:
//! - FR averages every arrival, an early drop as 0 bits ([`AcceptedRate::Arrivals`], the code of 1998), so
//!   that it falls when all packets are dropped. The figures of 2002 update it on accepted packets only.
//! - The label noted is the one with which a packet arrived. The figures of 2002 relabel first.
//! - A packet's own label counts when an uncongested window ends. Otherwise a lone packet would end a window
//!   without labels, FS would become 0, and the packet's retransmissions would have the same fate.
//! - A queue at or below the threshold ([`BelowThreshold`]): in the code of 1998 the share of an uncongested
//!   link becomes unknown again; in 2002 (footnote 3) an uncongested link stays uncongested.
//! - With guaranteed packets, FS divides the rest of the link (`aggregate_guarantee`): X = C - G. Figure 7 of
//!   2002 taken literally divides C by all arrivals. The estimate of G is in a thesis that could not be
//!   found; here it is an exponential average like the others, and X is at least C / 100. Shares are found
//!   sooner if K_α is well below K_c. With K_α = K_c they are found later than with figure 7 when load rises:
//!   G lags behind while FS is scaled.
//!
//! Two traps of the papers remain, in the readings that have them. A share that is unknown notes the largest
//! label since it became unknown, including an old peak, unless `onset` is set. With CSFQ in the reading of
//! 2002, an uncongested window of guaranteed packets only leaves [`FairShare::Nothing`], which a congested
//! link keeps.
//!
//! Corrections: a window ends when K_c has passed; the figures end a congested window only after more than
//! K_c. FR is at least C / 1000 in the division, FS at most X for the smallest weight below 1. A buffer
//! overflow takes `overflow_decrease` of FS, at most 30 times in a period of congestion.
//!
//! Cost: O(1) per packet, one exponential (two where FR averages accepted packets only); no state per flow.

mod by_delay;
mod departures;
mod params;

pub(crate) use params::refuse_unused;
pub use params::{AcceptedRate, BelowThreshold, FairShareParams, NotedLabel};

use self::by_delay::ByDelay;
use self::departures::Departures;
use super::exponential::Exponentials;
use crate::label::Format;
use crate::limit::Limit;
use crate::mark::rate_label::RateLabel;
use crate::queue::Backlog;
use crate::units::{Bytes, Rate, Span, Time, Weight, float, larger};

/// The maximum number of overflows in a period of congestion that lower FS, as in the code of 1998.
const DECREASES: u32 = 30;

/// The fair share for a weight of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FairShare {
    /// Not yet estimated: every packet passes.
    Unknown,
    /// Only guaranteed packets pass.
    Nothing,
    /// This many bits a second, above 0.
    Rate(f64),
}

impl FairShare {
    /// The share of `rate` bits a second.
    #[must_use]
    #[inline]
    pub fn of(rate: f64) -> Self {
        if rate > 0.0 { Self::Rate(rate) } else { Self::Nothing }
    }

    /// The rate in bits a second, if it is known.
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
    #[inline]
    pub fn scaled(self, factor: f64) -> Self {
        self.rate().map_or(Self::Unknown, |rate| Self::of(rate * factor))
    }

    /// The drop probability that limits a packet's flow to this share.
    #[must_use]
    #[inline]
    pub fn drop_probability(self, label: RateLabel) -> f64 {
        match (self, label) {
            (Self::Unknown, _) | (_, RateLabel::Guaranteed) => 0.0,
            (Self::Nothing, RateLabel::Excess(_)) => 1.0,
            // Stoica98 figure 3, Pelsser02 eq. (2): max(0, 1 - FS / label).
            (Self::Rate(share), RateLabel::Excess(rate)) if share < rate => 1.0 - share / rate,
            (Self::Rate(_), RateLabel::Excess(_)) => 0.0,
        }
    }

    /// The label of a packet that passes: downstream its flow has no more than the share.
    #[must_use]
    #[inline]
    pub fn relabel(self, label: RateLabel, format: Format) -> RateLabel {
        match (self, label) {
            (Self::Rate(share), RateLabel::Excess(rate)) if rate > share => RateLabel::excess(share, format),
            _ => label,
        }
    }
}

/// The queue of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    /// The backlog in bytes.
    pub bytes: Bytes,
    /// The backlog in the unit of the buffer: packets or bytes.
    pub queued: u64,
    /// The size of the buffer, in the same unit.
    pub limit: u64,
}

impl Fill {
    /// `backlog` in a buffer of `limit`.
    #[must_use]
    #[inline]
    pub fn of(backlog: Backlog, limit: Limit) -> Self {
        let (queued, limit) = limit.measure(backlog);
        Self { bytes: backlog.bytes, queued, limit }
    }

    /// The filled fraction of the buffer.
    #[must_use]
    #[inline]
    pub fn filled(self) -> f64 {
        float(self.queued) / float(self.limit)
    }
}

/// An arriving packet and the decision on it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The size of the packet.
    pub size: Bytes,
    /// The label with which the packet arrived.
    pub label: RateLabel,
    /// Whether the packet is dropped for its label. A packet that the full buffer refuses is not: FR measures
    /// what FS lets through.
    pub dropped: bool,
    /// Whether the queue is at or below the threshold, for the law of the papers.
    pub calm: bool,
    /// The result of [`FairShareEstimator::part_at`] for the queue that the packet finds.
    pub part: f64,
}

/// The estimate of the fair share, with the paper's names. Rates are in bits a second.
#[derive(Clone, Debug)]
pub struct FairShareEstimator {
    params: FairShareParams,
    /// C, the capacity to divide: set, or measured with the law by queueing delay (`departures.rs`).
    c: f64,
    /// K_c, or longer for a slow link.
    k_c: Span,
    /// The upper bound of FS for a weight of 1, if C is a part of a link.
    whole: Option<f64>,
    /// The smallest weight so far, if below 1.
    smallest_weight: f64,
    /// FS, the fair share.
    fs: FairShare,
    /// temp_FS, the largest label of the present window; 0 without labels.
    temp_fs: f64,
    /// The largest label of the previous window.
    before: f64,
    /// AR, FR and G.
    rates: Exponentials<3>,
    /// FR with [`AcceptedRate::Accepted`].
    accepted: Option<Exponentials<1>>,
    congested: bool,
    start_time: Time,
    /// The law by queueing delay, if it applies.
    by_delay: Option<ByDelay>,
    /// The departures that measure C, with that law.
    departures: Departures,
    /// The number of times that the link became congested. If it grows faster than windows pass, FS never
    /// changes.
    periods: u64,
    /// The decreases left in this period of congestion.
    decreases: u32,
    /// Time of the last arrival.
    last: Time,
}

impl FairShareEstimator {
    /// An estimator for a link of rate `c`, at time zero.
    #[must_use]
    pub fn new(params: &FairShareParams, c: Rate) -> Self {
        let accepted = || Exponentials::new(params.k_alpha, [0.0], Time::ZERO);
        let mut new = Self {
            c: c.as_bit() as f64,
            k_c: params.k_c,
            whole: None,
            smallest_weight: 1.0,
            fs: params.initial.map_or(FairShare::Unknown, |rate| FairShare::of(rate.as_bit() as f64)),
            temp_fs: 0.0,
            before: 0.0,
            rates: Exponentials::new(params.k_alpha, [0.0; 3], Time::ZERO),
            accepted: (params.accepted_rate == AcceptedRate::Accepted).then(accepted),
            // The code of 1998 starts congested, with the share unknown.
            congested: params.initial.is_none(),
            by_delay: ByDelay::new(params.target_delay),
            departures: Departures::default(),
            start_time: Time::ZERO,
            periods: 0,
            decreases: DECREASES,
            last: Time::ZERO,
            params: params.clone(),
        };
        new.set_link_rate(c);
        new
    }

    /// FS.
    #[must_use]
    pub const fn fair_share(&self) -> FairShare {
        self.fs
    }

    /// Whether arrivals exceed the capacity to divide, as of the last arrival.
    #[must_use]
    pub const fn is_congested(&self) -> bool {
        self.congested
    }

    /// AR, as of the last arrival.
    #[cfg(test)]
    pub(crate) fn arrival_rate(&self) -> f64 {
        self.rates.last_rates()[0]
    }

    /// FR, as of the last arrival.
    #[must_use]
    pub fn accepted_rate(&self) -> f64 {
        let [_, fr, _] = self.rates.last_rates();
        self.accepted.as_ref().map_or(fr, |accepted| accepted.last_rates()[0])
    }

    /// The capacity for excess traffic: C, minus the guaranteed traffic if that is estimated.
    #[must_use]
    #[inline]
    pub fn available(&self) -> f64 {
        let [_, _, g] = self.rates.last_rates();
        if self.params.aggregate_guarantee { larger(self.c - g, self.c * 0.01) } else { self.c }
    }

    /// G, as of the last arrival.
    #[must_use]
    #[inline]
    pub fn guaranteed_rate(&self) -> f64 {
        let [_, _, g] = self.rates.last_rates();
        g
    }

    /// Whether guaranteed packets use more than a thousandth of the link.
    #[must_use]
    #[inline]
    pub fn has_guarantees(&self) -> bool {
        self.guaranteed_rate() > self.c * 0.001
    }

    /// Sets the rate of the link.
    pub fn set_link_rate(&mut self, rate: Rate) {
        self.c = rate.as_bit() as f64;
        self.departures = Departures::default();
        self.fit_window();
    }

    /// Measures C when a packet of `size` leaves, or when the link finds none; `is_backlogged` if others wait
    /// then. No effect with the law of the papers, which divides the set rate.
    #[inline]
    pub fn departed(&mut self, now: Time, size: Option<Bytes>, is_backlogged: bool) {
        let Some(law) = &self.by_delay else { return };
        let c = self.departures.rate(now, size, is_backlogged, [self.c, law.target()]);
        self.scale_to(c);
        self.c = c;
    }

    /// Sets the capacity to divide, in bits a second, as part of a link with capacity `whole`.
    ///
    /// If arrivals exceed it, FS and FR are scaled with C at once, as if C had had this value for long:
    /// accepted traffic is a fraction of C, so there is no need to wait for FR.
    #[inline]
    pub fn set_part(&mut self, c: f64, whole: f64) {
        self.scale_to(c);
        (self.c, self.whole) = (c, Some(whole));
    }

    /// Scales FS and FR for a capacity of `c`.
    #[inline]
    fn scale_to(&mut self, c: f64) {
        if c != self.c && self.congested && self.c > 0.0 && c > 0.0 {
            let factor = c / self.c;
            self.fs = self.fs.scaled(factor);
            self.rates.scale([1.0, factor, 1.0]);
        }
    }

    /// Notes a flow's weight: FS may exceed C for weights below 1.
    pub fn note_weight(&mut self, weight: Weight) {
        self.smallest_weight = self.smallest_weight.min(weight.get());
    }

    /// estimate_FS of the papers, called for every arrival.
    #[inline(always)]
    pub fn update(&mut self, now: Time, arrival: Arrival) {
        self.average(now, &arrival);
        self.last = now;
        let label = match (arrival.label, self.params.noted_label) {
            (RateLabel::Guaranteed, _) => 0.0,
            // Pelsser02 figure 1: a dropped packet is not relabelled, and so it can raise FS.
            (RateLabel::Excess(rate), NotedLabel::Relabelled) if !arrival.dropped => {
                self.fs.rate().map_or(rate, |fs| rate.min(fs))
            }
            (RateLabel::Excess(rate), _) => rate,
        };
        if self.by_delay.is_some() {
            self.follow_delay(now, label, arrival.part);
        } else {
            self.follow_arrivals(now, label, arrival.calm);
        }
    }

    /// Whether the law by queueing delay applies, which does not use the calm threshold.
    #[must_use]
    #[inline]
    pub const fn is_by_delay(&self) -> bool {
        self.by_delay.is_some()
    }

    /// Applies the law of the papers.
    fn follow_arrivals(&mut self, now: Time, label: f64, calm: bool) {
        if self.fs == FairShare::Unknown {
            self.temp_fs = self.temp_fs.max(label);
            if calm {
                if self.is_over(now) && self.params.onset {
                    self.forget_window(now);
                }
                return;
            }
            self.become_known(now);
        }
        let over = self.is_over(now);
        match (self.is_overloaded(calm), self.congested) {
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
                    self.end_uncongested_window(now, calm);
                }
            }
        }
    }

    #[inline(always)]
    fn average(&mut self, now: Time, arrival: &Arrival) {
        let bits = float(arrival.size.bits());
        let guaranteed = matches!(arrival.label, RateLabel::Guaranteed);
        let excess = !self.params.aggregate_guarantee || !guaranteed;
        let counted = |counts: bool| if counts { bits } else { 0.0 };
        let accepted = counted(excess && !arrival.dropped);
        self.rates.update(now, [counted(excess), accepted, counted(guaranteed)]);
        if let Some(average) = self.accepted.as_mut().filter(|_| !arrival.dropped) {
            average.update(now, [accepted]);
        }
    }

    /// Whether the window has ended.
    fn is_over(&self, now: Time) -> bool {
        now >= self.start_time + self.k_c
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
            // A share above every noted rate is forgotten.
            let largest = self.temp_fs.max(self.before);
            let seen = self.fs.rate().filter(|fs| largest > 0.0 && largest < *fs).map(|_| largest);
            self.fs = seen.map_or(self.fs, FairShare::of);
            self.fit();
        }
    }

    /// Sets an unknown share to the largest noted label, or to half the link.
    fn become_known(&mut self, now: Time) {
        let largest = core::mem::take(&mut self.temp_fs);
        let largest = if self.params.onset { largest.max(self.before) } else { largest };
        self.fs = self.share_or_unknown(if largest > 0.0 { largest } else { self.c / 2.0 });
        if self.params.onset {
            self.start_time = now;
            self.fit();
        }
    }

    /// Scales FS at once, rather than at the end of a window, if accepted traffic exceeds the capacity.
    fn fit(&mut self) {
        let (x, fr) = (self.available(), self.accepted_rate());
        if let FairShare::Rate(fs) = self.fs
            && fr > x
        {
            self.fs = self.share_or_unknown(fs * x / fr);
        }
    }

    /// Drops old labels: only those of this window and the last count for a share that becomes known.
    fn forget_window(&mut self, now: Time) {
        self.before = core::mem::take(&mut self.temp_fs);
        self.start_time = now;
    }

    /// Ends a congested window.
    fn scale(&mut self, now: Time) {
        let x = self.available();
        let most = self.whole.unwrap_or(x) / self.smallest_weight;
        let fr = self.accepted_rate().max(self.c / 1_000.0);
        // Stoica98 figure 3, Pelsser02 eq. (3): FS = FS C / FR.
        self.fs = match self.fs {
            FairShare::Rate(fs) => self.share_or_unknown((fs * x / fr).min(most)),
            other => other,
        };
        self.start_time = now;
    }

    /// Ends an uncongested window.
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

    /// On a link of rate zero no packet passes, and no share is known.
    fn share_or_unknown(&self, rate: f64) -> FairShare {
        if rate > 0.0 { FairShare::Rate(rate) } else { FairShare::Unknown }
    }

    /// Lowers FS after a buffer overflow.
    pub fn overflow(&mut self) {
        if self.decreases > 0 {
            self.decreases -= 1;
            self.fs = self.share_in_use().scaled(1.0 - self.params.overflow_decrease.get());
        }
    }

    /// Reports its present values.
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
mod tests;
