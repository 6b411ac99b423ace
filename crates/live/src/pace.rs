//! What lets a transmitter send: a rate, or the delivery opportunities of a recorded link.
//!
//! A recorded link follows mahimahi's packet-delivery traces (Netravali et al., USENIX ATC 2015, section 4.2;
//! mm-link(1)): each line is a time in milliseconds, when one packet of 1504 bytes could be delivered. Several
//! packets that fit share an opportunity, a longer one takes several, and an unused one is lost. The
//! trace repeats, with the last line as its period.

use std::sync::Arc;

use apportion_core::transmission::Transmission;
use apportion_core::units::{Bytes, Rate, Span, Time};

/// Of one delivery opportunity: an Ethernet frame of full size, as the tool counts it.
pub(crate) const OPPORTUNITY: Bytes = Bytes::new(1_504);
/// Maximum of lines of a trace. Chosen: an hour at 10 Gbit/s has 3 billion; a day at 1 Mbit/s 7 million.
const MAX_LINES: usize = 10_000_000;

/// When packets can be sent.
#[derive(Clone, Debug)]
pub enum Pace {
    /// One after another, at a rate; none at zero.
    Rate(Transmission),
    /// At the instants of a trace.
    Trace(Trace),
}

impl Pace {
    /// A rate.
    #[must_use]
    pub const fn rate(rate: Rate) -> Self {
        Self::Rate(Transmission::new(rate))
    }

    /// Its rate, the mean one of a trace.
    #[must_use]
    pub fn mean(&self) -> Rate {
        match self {
            Self::Rate(transmission) => transmission.rate(),
            Self::Trace(trace) => trace.mean(),
        }
    }

    /// When a packet of `size` that is handed over at `now` has been sent; none at rate zero. A packet is
    /// handed over when the one before has been sent, or later.
    pub fn send(&mut self, now: Time, size: Bytes) -> Option<Time> {
        match self {
            Self::Rate(transmission) if transmission.rate() == Rate::ZERO => None,
            Self::Rate(transmission) => Some(now + transmission.time(size)),
            Self::Trace(trace) => Some(trace.send(now, size)),
        }
    }
}

/// Why a trace cannot be used: the place, and what to do.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {message}")]
pub struct TraceError {
    line: usize,
    message: String,
}

/// Delivery opportunities, repeated.
#[derive(Clone, Debug)]
pub struct Trace {
    /// From the start of a round, ascending; the last is the period.
    times: Arc<[Span]>,
    /// The round and the place in it of the next opportunity.
    round: u64,
    at: usize,
    /// What is left of the opportunity before it, which came at `current`.
    left: Bytes,
    current: Time,
}

impl Trace {
    /// Reads a trace: one number of milliseconds a line, not falling; the last one above zero.
    ///
    /// # Errors
    /// The first line that is not so.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let fail = |line: usize, message: String| Err(TraceError { line, message });
        let mut times: Vec<Span> = Vec::new();
        for (line, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() {
                continue;
            }
            // 2^40 ms are 35 years, and in nanoseconds below 2^60.
            let Some(ms) = text.parse::<u64>().ok().filter(|ms| *ms < 1 << 40) else {
                return fail(
                    line,
                    format!("`{text}` is not a time in milliseconds; write whole numbers such as 12"),
                );
            };
            let time = Span::from_millis(ms);
            if times.last().is_some_and(|last| time < *last) {
                return fail(line, format!("{ms} ms comes after a later time; sort the lines"));
            }
            if times.len() == MAX_LINES {
                return fail(line, format!("there are more than {MAX_LINES} lines; cut the trace"));
            }
            times.push(time);
        }
        match times.last() {
            None => fail(1, "there is no line; write one time in milliseconds a line".to_owned()),
            Some(&Span::ZERO) => fail(
                times.len(),
                "the trace ends at 0 ms, and would never come to an end; end it with its length".to_owned(),
            ),
            Some(_) => {
                Ok(Self { times: times.into(), round: 0, at: 0, left: Bytes::ZERO, current: Time::ZERO })
            }
        }
    }

    fn period(&self) -> Span {
        self.times[self.times.len() - 1]
    }

    /// What it could deliver, over its length.
    #[must_use]
    pub fn mean(&self) -> Rate {
        let bits = OPPORTUNITY.bits() as f64 * self.times.len() as f64;
        Rate::from_bit((bits / self.period().as_secs_f64()) as u64)
    }

    /// Its opportunities from the start, for ever.
    pub fn instants(&self) -> impl Iterator<Item = Time> + use<> {
        let trace = self.clone();
        (0..).flat_map(move |round| {
            let trace = trace.clone();
            (0..trace.times.len()).map(move |at| trace.time(round, at))
        })
    }

    /// When the opportunity at `at` of `round` comes.
    fn time(&self, round: u64, at: usize) -> Time {
        let start = u128::from(round) * u128::from(self.period().as_nanos());
        Time::from_nanos(u64::try_from(start).unwrap_or(u64::MAX)) + self.times[at]
    }

    /// When a packet of `size` has been sent that is handed over at `now`.
    fn send(&mut self, now: Time, size: Bytes) -> Time {
        if self.current < now {
            // What was left then is lost, and so are unused opportunities.
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

    /// Goes on to the first opportunity at `now` or later, if the next one is earlier.
    fn seek(&mut self, now: Time) {
        if self.time(self.round, self.at) >= now {
            return;
        }
        let round = now.as_nanos() / self.period().as_nanos();
        let into = Span::from_nanos(now.as_nanos() % self.period().as_nanos());
        let at = self.times.partition_point(|time| *time < into);
        // The last opportunity of a round lies at the start of the next.
        let is_end = into == Span::ZERO && round > 0;
        (self.round, self.at) = if is_end {
            let last = self.times.partition_point(|time| *time < self.period());
            (round - 1, last)
        } else {
            (round, at)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::from_millis(ms)
    }

    #[test]
    fn packets_share_an_opportunity_or_take_several() {
        let mut trace = Trace::parse("10\n20\n30\n40\n").unwrap();
        // 2 x 752 bytes fill the first; 1505 bytes need one byte of the third.
        assert_eq!(trace.send(ms(0), Bytes::new(752)), ms(10));
        assert_eq!(trace.send(ms(10), Bytes::new(752)), ms(10));
        assert_eq!(trace.send(ms(10), Bytes::new(1_505)), ms(30));
        assert_eq!(trace.send(ms(30), Bytes::new(1_503)), ms(30));
        assert_eq!(trace.send(ms(30), Bytes::new(1)), ms(40));
    }

    #[test]
    fn an_unused_opportunity_is_lost_and_the_trace_repeats() {
        let mut trace = Trace::parse("5\n5\n8\n").unwrap();
        assert_eq!(trace.send(ms(0), Bytes::new(100)), ms(5));
        // 1404 bytes were left at 5 ms, and there was a second opportunity then.
        assert_eq!(trace.send(ms(6), Bytes::new(100)), ms(8));
        // The next round: 8 + 5, twice, and its end at 16.
        let mut full = || trace.send(ms(9), Bytes::new(1_504));
        assert_eq!((full(), full(), full()), (ms(13), ms(13), ms(16)));
        // A long silence, up to the instant of the last opportunity of round 124.
        assert_eq!(trace.send(ms(1_000), Bytes::new(1_504)), ms(1_000));
        assert_eq!(trace.send(ms(1_000), Bytes::new(1_504)), ms(1_005));
        assert_eq!(trace.send(ms(1_007), Bytes::new(1_504)), ms(1_008));
    }

    #[test]
    fn the_mean_is_what_a_round_can_deliver() {
        // 3 x 1504 x 8 bits in 8 ms.
        assert_eq!(Trace::parse("5\n5\n8\n").unwrap().mean(), Rate::from_bit(4_512_000));
    }

    #[test]
    fn what_is_no_trace_is_refused_with_its_line() {
        let error = |text| Trace::parse(text).unwrap_err().to_string();
        assert_eq!(
            error("1\n\nx\n"),
            "line 3: `x` is not a time in milliseconds; write whole numbers such as 12"
        );
        assert!(error("-1").starts_with("line 1: `-1` is not a time"));
        assert!(error("2\n1").starts_with("line 2: 1 ms comes after a later time"));
        assert!(error("").contains("there is no line"));
        assert!(error("0\n0\n").contains("ends at 0 ms"));
    }
}
