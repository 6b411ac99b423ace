//! The times of writes, shared by all generators.

use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::model::Shape;

/// One write of an application to its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// Time at which the application writes.
    pub at: Time,
    /// The size; above zero.
    pub size: Bytes,
}

/// The position of a generator in time.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    /// The last write that was handed out.
    pub(super) last: Option<Time>,
    /// The start, or the time of the source's last change.
    pub(super) not_before: Time,
    pub(super) stop: Time,
}

impl Cursor {
    pub(super) fn new(start: Time, stop: Time) -> Self {
        Self { last: None, not_before: start, stop }
    }

    /// The time of a write `gap` after the last one, or of the first one. At the stop `None`, without a
    /// change.
    pub(super) fn step(&mut self, gap: Span) -> Option<Time> {
        let at = self.last.map_or(self.not_before, |last| (last + gap).max(self.not_before));
        self.go_to(at)
    }

    /// Moves to a write at `at`. At the stop `None`, without a change.
    pub(super) fn go_to(&mut self, at: Time) -> Option<Time> {
        if at >= self.stop {
            return None;
        }
        self.last = Some(at);
        Some(at)
    }

    pub(super) fn changed(&mut self, now: Time) {
        self.not_before = self.not_before.max(now);
    }
}

/// Even spacing of writes of one size at a rate. Write `k` is at ⌊k · size / rate⌋ nanoseconds exactly.
#[derive(Clone, Debug)]
pub(super) struct Spacing {
    pub(super) size: Bytes,
    rate: u64,
    /// size · 8 · 10^9 = whole · rate + rest.
    whole: Span,
    rest: u64,
    /// The remainder of earlier gaps, in nanoseconds over `rate`; below `rate`.
    carry: u64,
    /// Whether the next gap is the one before the first write, which is zero.
    first: bool,
}

impl Spacing {
    pub(super) fn new(size: Bytes, rate: Rate) -> Self {
        let mut spacing = Self { size, rate: 0, whole: Span::ZERO, rest: 0, carry: 0, first: true };
        spacing.set_rate(rate);
        spacing
    }

    pub(super) fn set_rate(&mut self, rate: Rate) {
        // size < 2^64, so the product is below 2^97.
        let bit_nanos = u128::from(self.size.get()) * 8 * 1_000_000_000;
        let bits = u128::from(rate.as_bit().max(1));
        self.rate = rate.as_bit();
        self.whole = Span::from_nanos(u64::try_from(bit_nanos / bits).unwrap_or(u64::MAX));
        // Below `rate`, which fits.
        self.rest = (bit_nanos % bits) as u64;
        self.carry = 0;
    }

    /// The next gap; `None` if the rate is zero, or a write is empty.
    pub(super) fn gap(&mut self) -> Option<Span> {
        if self.rate == 0 || self.size == Bytes::ZERO {
            return None;
        }
        if std::mem::take(&mut self.first) {
            return Some(Span::ZERO);
        }
        if self.carry < self.rate - self.rest {
            self.carry += self.rest;
            return Some(self.whole);
        }
        self.carry -= self.rate - self.rest;
        Some(Span::from_nanos(self.whole.as_nanos().saturating_add(1)))
    }
}

/// Rounds fractional nanoseconds down and carries the remainder to the next call.
#[derive(Clone, Debug, Default)]
pub(super) struct Carry(f64);

impl Carry {
    pub(super) fn whole(&mut self, nanos: f64) -> Span {
        let sum = nanos + self.0;
        let whole = sum.floor();
        self.0 = sum - whole;
        Span::from_nanos(whole as u64)
    }
}

/// One draw from a distribution with the given mean. Every shape takes one number from the stream, so that a
/// change of shape shifts no other draw.
pub(super) fn draw(shape: Shape, mean: f64, stream: &mut Stream) -> f64 {
    match shape {
        Shape::Constant => {
            stream.uniform();
            mean
        }
        Shape::Exponential => stream.exponential(mean),
        Shape::Pareto(shape) => stream.pareto(shape, mean),
    }
}
