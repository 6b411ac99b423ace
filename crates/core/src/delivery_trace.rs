//! The delivery opportunities of a recorded link.
//!
//! mahimahi's packet-delivery traces (Netravali et al., USENIX ATC 2015, section 4.2; mm-link(1)): each time
//! is an opportunity to deliver one packet of 1504 bytes. Several packets that fit share an opportunity, a
//! longer packet takes several, and an unused opportunity is lost. The trace repeats; mahimahi's period is
//! the last time.
//!
//! Cost: O(1) for packets one after another; O(log times) after a pause.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::units::{Bytes, Rate, Span, Time};

/// The size of one delivery opportunity: an Ethernet frame of full size, as in mahimahi.
pub const OPPORTUNITY: Bytes = Bytes::new(1_504);

/// Delivery opportunities, repeated.
#[derive(Clone, Debug, PartialEq)]
pub struct DeliveryTrace {
    /// The times of opportunities from the start of a round, ascending.
    times: Arc<[Span]>,
    /// The length of a round: the last time or more.
    period: Span,
    /// The round of the next opportunity, and its place in that round.
    round: u64,
    at: usize,
    /// The unused bytes of the previous opportunity, which came at `current`.
    left: Bytes,
    current: Time,
}

impl DeliveryTrace {
    /// A trace with opportunities at `times` from the start of each round; the last time is the period.
    /// `None` if `times` is empty or does not ascend, or if its last time is zero.
    #[must_use]
    pub fn new(times: Vec<Span>) -> Option<Self> {
        let period = *times.last()?;
        Self::with_period(times, period)
    }

    /// Creates a trace as [`new`](Self::new) does, with rounds of length `period`. `None` also if `period` is
    /// shorter than the last time.
    #[must_use]
    pub fn with_period(times: Vec<Span>, period: Span) -> Option<Self> {
        let is_usable =
            times.is_sorted() && times.last().is_some_and(|last| *last <= period) && period > Span::ZERO;
        is_usable.then(|| Self {
            times: times.into(),
            period,
            round: 0,
            at: 0,
            left: Bytes::ZERO,
            current: Time::ZERO,
        })
    }

    /// The mean rate of the opportunities over a round.
    #[must_use]
    pub fn mean(&self) -> Rate {
        let bits = OPPORTUNITY.bits() as f64 * self.times.len() as f64;
        Rate::from_bit((bits / self.period.as_secs_f64()) as u64)
    }

    /// The median rate of the opportunities. The rate at a time is the bytes of its opportunities over the
    /// span since the time before. Pauses, which lower the mean, do not count.
    #[must_use]
    pub fn median_rate(&self) -> Rate {
        let rounds = |round| (0..self.times.len()).map(move |at| self.time(round, at));
        let times: Vec<Time> = rounds(0).chain(rounds(1)).collect();
        let at_once: Vec<&[Time]> = times.chunk_by(|one, next| one == next).collect();
        let rate = |pair: &[&[Time]]| {
            let bits = OPPORTUNITY.bits() as f64 * pair[1].len() as f64;
            Rate::from_bit((bits / pair[1][0].since(pair[0][0]).as_secs_f64()) as u64)
        };
        let mut rates: Vec<Rate> = at_once.windows(2).map(rate).collect();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied().unwrap_or_else(|| self.mean())
    }

    /// The bytes of all opportunities from the start until `now`, inclusive. Cost: O(log times).
    #[must_use]
    pub fn bytes_until(&self, now: Time) -> Bytes {
        let (now, period) = (now.as_nanos(), self.period.as_nanos());
        let into = Span::from_nanos(now % period);
        let of_round = self.times.partition_point(|time| *time <= into) as u64;
        Bytes::new((now / period * self.times.len() as u64 + of_round).saturating_mul(OPPORTUNITY.get()))
    }

    /// The mean rate of the opportunities after `from` and until `to`; zero if the span is empty.
    #[must_use]
    pub fn mean_between(&self, from: Time, to: Time) -> Rate {
        let bytes = self.bytes_until(to).saturating_sub(self.bytes_until(from));
        let bits = u128::from(bytes.bits()) * 1_000_000_000;
        let rate = bits.checked_div(u128::from(to.since(from).as_nanos())).unwrap_or(0);
        Rate::from_bit(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// The times of the opportunities from the start, without end.
    pub fn instants(&self) -> impl Iterator<Item = Time> + use<> {
        let trace = self.clone();
        (0..).flat_map(move |round| {
            let trace = trace.clone();
            (0..trace.times.len()).map(move |at| trace.time(round, at))
        })
    }

    /// The time of the opportunity at place `at` of `round`.
    fn time(&self, round: u64, at: usize) -> Time {
        let start = u128::from(round) * u128::from(self.period.as_nanos());
        Time::from_nanos(u64::try_from(start).unwrap_or(u64::MAX)) + self.times[at]
    }

    /// The time at which the transmission of a packet of `size` ends that is handed over at `now`. A packet
    /// must not be handed over before the previous transmission ends.
    pub fn send(&mut self, now: Time, size: Bytes) -> Time {
        if self.current < now {
            // The rest of this opportunity is lost, and so are unused opportunities.
            self.left = Bytes::ZERO;
            self.seek(now);
        }
        let mut rest = size;
        while rest > self.left {
            rest -= self.left;
            self.current = self.time(self.round, self.at);
            self.left = OPPORTUNITY;
            self.step();
        }
        self.left -= rest;
        self.current
    }

    fn step(&mut self) {
        self.at += 1;
        if self.at == self.times.len() {
            (self.round, self.at) = (self.round + 1, 0);
        }
    }

    /// Goes on to the first opportunity at or after `now`, if the next one is earlier.
    fn seek(&mut self, now: Time) {
        if self.time(self.round, self.at) >= now {
            return;
        }
        let round = now.as_nanos() / self.period.as_nanos();
        let into = Span::from_nanos(now.as_nanos() % self.period.as_nanos());
        // The end of a round is the start of the next; opportunities of both may fall on it.
        let is_end = into == Span::ZERO && round > 0;
        let (round, into) = if is_end { (round - 1, self.period) } else { (round, into) };
        let at = self.times.partition_point(|time| *time < into);
        (self.round, self.at) = if at < self.times.len() { (round, at) } else { (round + 1, 0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    fn trace<const N: usize>(times: [u64; N]) -> DeliveryTrace {
        DeliveryTrace::new(times.map(Span::from_millis).to_vec()).unwrap()
    }

    #[test]
    fn packets_share_an_opportunity_or_take_several() {
        let mut trace = trace([10, 20, 30, 40]);
        // 2 x 752 bytes fill the first; 1505 bytes need one byte of the third.
        assert_eq!(trace.send(ms(0), Bytes::new(752)), ms(10));
        assert_eq!(trace.send(ms(10), Bytes::new(752)), ms(10));
        assert_eq!(trace.send(ms(10), Bytes::new(1_505)), ms(30));
        assert_eq!(trace.send(ms(30), Bytes::new(1_503)), ms(30));
        assert_eq!(trace.send(ms(30), Bytes::new(1)), ms(40));
    }

    #[test]
    fn an_unused_opportunity_is_lost_and_the_trace_repeats() {
        let mut trace = trace([5, 5, 8]);
        assert_eq!(trace.send(ms(0), Bytes::new(100)), ms(5));
        // 1404 bytes were left at 5 ms, and there was a second opportunity then.
        assert_eq!(trace.send(ms(6), Bytes::new(100)), ms(8));
        // The next round: two opportunities at 8 + 5, and its end at 16.
        let mut full = || trace.send(ms(9), Bytes::new(1_504));
        assert_eq!((full(), full(), full()), (ms(13), ms(13), ms(16)));
        // A long silence, up to the instant of the last opportunity of round 124.
        assert_eq!(trace.send(ms(1_000), Bytes::new(1_504)), ms(1_000));
        assert_eq!(trace.send(ms(1_000), Bytes::new(1_504)), ms(1_005));
        assert_eq!(trace.send(ms(1_007), Bytes::new(1_504)), ms(1_008));
    }

    #[test]
    fn a_round_may_go_on_behind_the_last_opportunity() {
        let times = [4, 6].map(Span::from_millis).to_vec();
        assert_eq!(DeliveryTrace::with_period(times.clone(), Span::from_millis(5)), None);
        let mut trace = DeliveryTrace::with_period(times, Span::from_millis(10)).unwrap();
        assert_eq!(trace.mean(), Rate::from_bit(2_406_400));
        let mut sent = |now| trace.send(ms(now), Bytes::new(1_504));
        assert_eq!(
            [sent(0), sent(4), sent(6)].map(Time::as_nanos),
            [ms(4), ms(6), ms(14)].map(Time::as_nanos)
        );
        // After a pause: behind the last opportunity of a round, at its end, and between two.
        assert_eq!(
            [sent(57), sent(80), sent(95)].map(Time::as_nanos),
            [ms(64), ms(84), ms(96)].map(Time::as_nanos)
        );
        assert_eq!(trace.bytes_until(ms(100)).get(), 20 * OPPORTUNITY.get());
    }

    #[test]
    fn the_mean_is_what_a_round_can_deliver() {
        // 3 x 1504 x 8 bits in 8 ms.
        assert_eq!(trace([5, 5, 8]).mean(), Rate::from_bit(4_512_000));
    }

    #[test]
    fn the_median_rate_is_that_between_pauses() {
        // 1.2 Mb/s for 40 ms, nothing for 960 ms, 1.2 Mb/s again.
        assert_eq!(trace([10, 20, 30, 40, 1_000]).median_rate(), Rate::from_bit(1_203_200));
        // One opportunity each 5 ms, and two at once.
        assert_eq!(trace([5]).median_rate(), trace([5]).mean());
        assert_eq!(trace([5, 5]).median_rate(), trace([5, 5]).mean());
        assert_eq!(trace([0, 8]).median_rate(), trace([0, 8]).mean());
    }

    #[test]
    fn what_it_delivers_counts_the_opportunities_until_a_time() {
        let recorded = trace([5, 5, 8]);
        let opportunities = |at| recorded.bytes_until(at).get() / OPPORTUNITY.get();
        let just_before = |at: u64| Time::from_nanos(ms(at).as_nanos() - 1);
        assert_eq!([ms(0), just_before(5), ms(5), ms(7), ms(8)].map(opportunities), [0, 0, 2, 2, 3]);
        // The second round, and two and a half.
        assert_eq!([just_before(13), ms(13), ms(16), ms(20), ms(21)].map(opportunities), [3, 5, 6, 6, 8]);
        // `send` finds the same opportunities.
        let mut instants = recorded.instants();
        assert!((1..100).all(|n| instants.next().is_some_and(|at| opportunities(at) >= n)));
        // A time of zero is also the end of the round before.
        let at_start = trace([0, 8]);
        assert_eq!(
            [ms(0), ms(7), ms(8)].map(|at| at_start.bytes_until(at).get() / OPPORTUNITY.get()),
            [1, 1, 3]
        );
        // 2 x 1504 x 8 bits in 4 ms; 6 in 16.
        assert_eq!(recorded.mean_between(ms(4), ms(8)), Rate::from_bit(9_024_000));
        assert_eq!(recorded.mean_between(ms(5), ms(21)), Rate::from_bit(4_512_000));
        assert_eq!(recorded.mean_between(ms(5), ms(5)), Rate::ZERO);
    }

    #[test]
    fn times_that_are_no_trace_are_refused() {
        for times in [&[][..], &[2, 1], &[0, 0]] {
            assert!(DeliveryTrace::new(times.iter().copied().map(Span::from_millis).collect()).is_none());
        }
    }
}
