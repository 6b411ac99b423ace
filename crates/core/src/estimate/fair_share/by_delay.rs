//! The fair share from the queueing delay: it falls only while packets wait longer than a target.
//!
//! Beyond the papers, and the default. The papers call a link congested while arrivals exceed C, so the share
//! follows the noise of the arrival rate. With TCP, whose mean rate is C, the share is the largest label in
//! one window and too small in the next, and the buffer stands full. Here the queue, the excess of past
//! arrivals over C, decides.
//!
//! - C is measured from departures (`departures.rs`). When it changes while more arrives than fits, FS and FR
//!   are scaled with it at once.
//! - d, the backlog over C, may reach a target. The fraction f = 1 - (d - target) / [`DRAIN`] of the link, at
//!   least 1/2, is divided, so that the rest drains the queue to the target within that time. In a buffer
//!   that is small for the target, half of the buffer is the target: f is at most 1.5 minus the filled
//!   fraction of the buffer.
//! - Each K_c, φ = f X / FR scales FS, by 1/2 to 2; at or below the target by at least 1. If φ is between 2/3
//!   and 3/2 its fourth root is used: so near to 1 it is mostly noise, and for a flow over many hops the
//!   smallest of their noisy shares would count.
//! - On a fast link the target, [`DRAIN`], K_c and K_α are shorter by one factor: the target is at most the time of
//!   [`FAST`], or half of the mean round-trip time if that is longer. TCP over a short path never fills 20 ms of a fast link: BBR
//!   keeps about a round trip, and the share of a flood would never fall.
//! - If round-trip times are known, the target is at most half of their mean plus the time of [`SMALL_WINDOW`] at the fair share,
//!   for the same reason at any rate of the link. In that queue a flow of the smallest weight keeps a window in which TCP
//!   recovers from a loss without a timeout, so many flows have a longer target. In HCSFQ FS of the root is that of
//!   customers, and the smallest fair share of their flows counts.
//! - An overflow takes `overflow_decrease` of min(FS, L), up to 30 times in a window.
//! - FS rises to at most twice the largest label L of this window and the last, and falls from L at most: a
//!   share above all labels limits no flow.
//! - Until the next window, f min(FS, L) applies to packets that arrive above the target.
//! - For a part of a link (HCSFQ) no share applies while arrivals are below that part: the queue belongs to
//!   the whole link, and others have filled it. FS would need several windows to rise above the labels again.
//!
//! At or below the target FS never falls, like the share of MCSFQ on an uncongested link (Pelsser02 figure
//! 3), and between windows K_c matters only through L. The factor f is the queue control of ERICA:
//! Kalyanaraman, Jain, Fahmy, Goyal, Vandalore, "The ERICA switch algorithm for ABR traffic management in ATM
//! networks", IEEE/ACM ToN 2000.

use super::{DECREASES, FairShare, FairShareEstimator, Fill};
use crate::units::{Bytes, Rate, Span, Time, float, larger};

/// The time in which the queue returns to its target on links that are not fast. Chosen: longer than the round-trip times of most flows.
/// If it is shorter, a flow is dropped again before its answer to the first drop has arrived.
const DRAIN: Span = Span::from_millis(500);
/// The minimum target, in bytes: two full packets of Ethernet.
const LEAST: Bytes = Bytes::new(2 * 1_500);
/// The transmission time of these bytes is the minimum of K_c and K_α: in windows of 40 packets, FR differs
/// from the offered rate by ± 16 %.
const WINDOW: Bytes = Bytes::new(40 * 1_500);
/// The longest window, also for a link of rate zero.
const LONGEST_WINDOW: Span = Span::from_secs(1);
/// The maximum factor by which FS changes in a window.
const STEP: f64 = 2.0;
/// The factor up to which φ is taken as noise. Chosen: three times the ± 16 % of 40 packets.
const NOISE: f64 = 1.5;

/// A link is fast if it sends these bytes in less than the target. Chosen: 20 ms at 96 Mb/s.
const FAST: Bytes = Bytes::new(240_000);

/// The window of a flow that fits the target. RFC 5681: three packets after a lost one show the loss.
const SMALL_WINDOW: Bytes = Bytes::new(4 * 1_500);

/// State of the law; none per flow.
#[derive(Clone, Debug)]
pub(super) struct ByDelay {
    /// The target delay, in seconds.
    target: f64,
    /// The time in which the queue returns to it, in seconds.
    drain: f64,
    /// Half of the mean round-trip time that is known, in seconds; 0 if none is.
    half_rtt: f64,
    /// The smallest fair share of customers' flows in the present window, in bits a second; infinite for a link without
    /// customers.
    flows: f64,
    /// The largest label of the present window; 0 without labels.
    largest: f64,
    /// The largest label of the previous window.
    before: f64,
}

impl ByDelay {
    /// The law with this target; none if the target is zero, and the law of the papers applies.
    pub(super) fn new(target: Span) -> Option<Self> {
        let law = Self {
            target: target.as_secs_f64(),
            drain: DRAIN.as_secs_f64(),
            half_rtt: 0.0,
            flows: f64::INFINITY,
            largest: 0.0,
            before: 0.0,
        };
        (target > Span::ZERO).then_some(law)
    }

    /// The target delay, in seconds.
    #[inline]
    pub(super) const fn target(&self) -> f64 {
        self.target
    }

    /// The target at a link of `c` bits a second, in bits.
    #[inline]
    fn target_bits(&self, c: f64) -> f64 {
        larger(c * self.target, LEAST.bits() as f64)
    }

    /// f, for a backlog at a link of `c` bits a second.
    #[inline]
    fn part(&self, queue: Fill, c: f64) -> f64 {
        let target = self.target_bits(c);
        let above = float(queue.bytes.get()) * 8.0 - target;
        if above <= 0.0 && queue.queued <= queue.limit / 2 {
            return 1.0;
        }
        let by_delay = if above > 0.0 { 1.0 - above / (c * self.drain) } else { 1.0 };
        by_delay.min(1.5 - queue.filled()).clamp(0.5, 1.0)
    }

    /// L, if a packet with a label has arrived.
    fn seen(&self) -> Option<f64> {
        let seen = larger(self.largest, self.before);
        (seen > 0.0).then_some(seen)
    }
}

impl FairShareEstimator {
    /// The fraction f of the link that is divided when a packet finds this queue; 1 with the law of the
    /// papers.
    #[must_use]
    #[inline]
    pub fn part_at(&self, queue: Fill) -> f64 {
        self.by_delay.as_ref().map_or(1.0, |law| law.part(queue, self.link()))
    }

    /// The fraction of a burst that may pass when a packet finds `bytes` in the queue: 1 at an empty one, 0 from twice the target
    /// on; 0 with the law of the papers.
    #[must_use]
    #[inline]
    pub(crate) fn room_at(&self, bytes: Bytes) -> f64 {
        let target = self.by_delay.as_ref().map_or(0.0, |law| law.target_bits(self.link()));
        larger(1.0 - float(bytes.bits()) / (2.0 * larger(target, 1.0)), 0.0)
    }

    /// The fair share of a flow with the smallest weight; none while FS is unknown.
    #[inline]
    pub(crate) fn least_rate(&self) -> Option<f64> {
        self.fs.rate().map(|fs| fs * self.smallest_weight)
    }

    /// Notes that the fair share of some flow of a customer is `rate`.
    #[inline]
    pub(crate) fn note_flows(&mut self, rate: f64) {
        if let Some(law) = self.by_delay.as_mut().filter(|law| rate < law.flows) {
            law.flows = rate;
        }
    }

    /// The share that applies if this fraction is divided: none while arrivals are below the part of a link.
    #[must_use]
    #[inline]
    pub fn share_at(&self, part: f64) -> FairShare {
        if self.is_below_part() {
            return FairShare::Unknown;
        }
        if part < 1.0 && self.congested { self.share_in_use().scaled(part) } else { self.fs }
    }

    /// Whether arrivals are below the part of a link.
    #[inline]
    fn is_below_part(&self) -> bool {
        let [ar, _, _] = self.rates.last_rates();
        self.by_delay.is_some() && self.whole.is_some() && ar < self.available()
    }

    /// FS, or the largest label if it is smaller: a share above all labels limits no flow.
    pub(super) fn share_in_use(&self) -> FairShare {
        match (self.fs, self.by_delay.as_ref().and_then(ByDelay::seen)) {
            (FairShare::Rate(fs), Some(seen)) if seen < fs => FairShare::Rate(seen),
            (fs, _) => fs,
        }
    }

    /// The rate at which the queue drains: the whole link's, also for a part.
    #[must_use]
    #[inline]
    pub fn link(&self) -> f64 {
        self.whole.unwrap_or(self.c)
    }

    /// Updates the law with every arrival: its label, or 0 if a guarantee covers it.
    #[inline]
    pub(super) fn follow_delay(&mut self, now: Time, label: f64, part: f64) {
        let is_over = self.is_over(now);
        let Some(law) = self.by_delay.as_mut() else { return };
        // A label of 1 marks a debt: it is not a rate.
        if label > 1.0 {
            law.largest = larger(label, law.largest);
        }
        // A customer divides its part, which the root has already reduced.
        let x = if self.whole.is_some() { self.available() } else { part * self.available() };
        let [ar, _, _] = self.rates.last_rates();
        let was = core::mem::replace(&mut self.congested, ar >= x);
        self.periods += u64::from(self.congested && !was);
        if is_over {
            self.end_window_by_delay(now, x, part);
        }
    }

    /// Sets the round-trip times of flows; zero if unknown.
    pub(crate) fn set_rtts(&mut self, rtts: &[Span]) {
        let known = || rtts.iter().filter(|rtt| **rtt > Span::ZERO);
        let sum: f64 = known().map(|rtt| rtt.as_secs_f64()).sum();
        if let Some(law) = &mut self.by_delay {
            law.half_rtt = sum / (2 * known().count().max(1)) as f64;
            self.fit_window();
        }
    }

    /// Sets K_c, K_α and the target for the present C.
    pub(super) fn fit_window(&mut self) {
        let (link, most) = (self.link(), self.params.target_delay.as_secs_f64());
        // An unknown share limits no flow: one may have the link.
        let own = self.least_rate().unwrap_or(link);
        let Some(law) = &mut self.by_delay else { return };
        law.target = (FAST.bits() as f64 / larger(link, 1.0)).max(law.half_rtt).min(most);
        let flows = core::mem::replace(&mut law.flows, f64::INFINITY);
        let rate = if flows < f64::INFINITY { flows } else { own };
        if law.half_rtt > 0.0 {
            law.target = law.target.min(law.half_rtt + SMALL_WINDOW.bits() as f64 / larger(rate, 1.0));
        }
        let scale = law.target / most;
        law.drain = DRAIN.as_secs_f64() * scale;
        let least = Rate::from_bit(self.c as u64).time_for(WINDOW).min(LONGEST_WINDOW);
        let window = |span: Span| Span::from_secs_f64(span.as_secs_f64() * scale).max(least);
        self.k_c = window(self.params.k_c);
        self.rates.set_time_constant(window(self.params.k_alpha));
    }

    #[cold]
    fn end_window_by_delay(&mut self, now: Time, x: f64, part: f64) {
        self.start_time = now;
        self.fit_window();
        // Not C - G: in HCSFQ, FS must pass the guarantees of a customer, to give its other flows what no other customer uses.
        let most = self.link() / self.smallest_weight;
        let phi = x / self.accepted_rate().max(self.c / 1_000.0);
        let phi = phi.clamp(1.0 / STEP, STEP);
        let is_noise = (1.0 / NOISE..NOISE).contains(&phi);
        let factor = if is_noise { libm::sqrt(libm::sqrt(phi)) } else { phi };
        let factor = if part < 1.0 { factor } else { factor.max(1.0) };
        self.decreases = DECREASES;
        let Some(law) = self.by_delay.as_mut() else { return };
        let seen = law.seen();
        law.before = core::mem::take(&mut law.largest);
        let fs = match (self.fs, seen) {
            (FairShare::Rate(fs), Some(seen)) if factor < 1.0 => fs.min(seen) * factor,
            (FairShare::Rate(fs), Some(seen)) => (fs * factor).min(fs.max(STEP * seen)),
            (FairShare::Unknown | FairShare::Nothing, Some(seen)) if factor < 1.0 => seen * factor,
            _ => return,
        };
        self.fs = self.share_or_unknown(fs.min(most));
    }
}

#[cfg(test)]
mod tests;
