//! What applications write, and when: one generator for each kind of source.
//!
//! A generator is an iterator over [`Write`]s. A world asks for the next one when the last one's time has
//! come, so one write is pending at most. The contract:
//!
//! - Writes come in order of time, at or after the start and before the stop, and none is empty.
//! - [`Generator::set_rate`] takes effect on the next gap: a write that was already handed out stands. Rate
//!   zero silences the source.
//! - `None` means "nothing before the stop at the present rate", and stays until the rate is set. A source
//!   that was silent or too slow can go on after `set_rate`, so a world with nothing pending asks again after
//!   each change; the source then goes on as soon as its new gap allows, and never makes up for the silence.
//! - No rate drifts: what a gap has below a nanosecond goes into the next gap.
//!
//! | file | source | times | sizes |
//! |---|---|---|---|
//! | [`cbr`] | constant rate | even, or each gap varied by ± jitter | constant |
//! | [`poisson`] | Poisson process | exponential gaps | constant |
//! | [`on_off`] | CBR in on periods | on and off periods of any law | constant |
//! | [`video`] | frames | even | from a trace, or a synthetic group of pictures |
//! | [`replay`] | a capture | as captured | as captured |
//! | [`short_flows`] | files of short connections | exponential gaps | of any law |
//!
//! Greedy sources and files need no generator: TCP has all their bytes at the start.

pub mod cbr;
pub mod on_off;
pub mod poisson;
pub mod replay;
pub mod short_flows;
pub mod video;

use apportion_core::queue::Overload;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::model::{LawShape, Source};

use cbr::Cbr;
use on_off::OnOff;
use poisson::Poisson;
use replay::Replay;
use video::Video;

/// One write of an application to its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write {
    /// When.
    pub at: Time,
    /// How much; never nothing.
    pub size: Bytes,
}

/// What a flow has to send, one write after another.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: Kind,
    /// Whether it said `None` and was not changed since: a second question must not be a second draw.
    ended: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    Cbr(Cbr),
    Poisson(Poisson),
    OnOff(OnOff),
    Video(Video),
    Replay(Replay),
}

impl Generator {
    /// The generator of `source` between `start` and `stop`; `None` for greedy sources and files, which TCP
    /// has at the start, and for short flows, whose [`arrivals`](short_flows::arrivals) are connections and
    /// not writes.
    #[must_use]
    pub fn new(source: &Source, start: Time, stop: Time, stream: Stream) -> Option<Self> {
        let cursor = Cursor::new(start, stop);
        let kind = match *source {
            Source::Greedy | Source::File { .. } | Source::ShortFlows { .. } => return None,
            Source::Cbr { rate, write, jitter } => Kind::Cbr(Cbr::new(rate, write, jitter, cursor, stream)),
            Source::Poisson { rate, write } => Kind::Poisson(Poisson::new(rate, write, cursor, stream)),
            Source::OnOff { rate, write, on, off } => {
                Kind::OnOff(OnOff::new(rate, write, on, off, cursor, stream))
            }
            Source::Video { fps, ref frames, least } => {
                Kind::Video(Video::new(fps, frames, least, cursor, stream))
            }
            Source::Replay { ref packets } => Kind::Replay(Replay::new(packets.clone(), cursor)),
        };
        Some(Self { kind, ended: false })
    }

    /// Changes the rate at `now`: of the bytes written, in on periods for [`OnOff`], mean otherwise.
    pub fn set_rate(&mut self, now: Time, rate: Rate) {
        self.ended = false;
        match &mut self.kind {
            Kind::Cbr(cbr) => cbr.set_rate(now, rate),
            Kind::Poisson(poisson) => poisson.set_rate(now, rate),
            Kind::OnOff(on_off) => on_off.set_rate(now, rate),
            Kind::Video(video) => video.set_rate(now, rate),
            Kind::Replay(replay) => replay.set_rate(now, rate),
        }
    }

    /// A queue notifies the source at `now` that the flow has less than it needs, or that this is over. Only an
    /// adaptive [`Video`] reacts.
    pub fn on_overload(&mut self, now: Time, overload: &Overload) {
        if let Kind::Video(video) = &mut self.kind {
            video.on_overload(now, overload);
        }
    }
}

impl Iterator for Generator {
    type Item = Write;

    fn next(&mut self) -> Option<Write> {
        if self.ended {
            return None;
        }
        let write = match &mut self.kind {
            Kind::Cbr(cbr) => cbr.next_write(),
            Kind::Poisson(poisson) => poisson.next_write(),
            Kind::OnOff(on_off) => on_off.next_write(),
            Kind::Video(video) => video.next_write(),
            Kind::Replay(replay) => replay.next_write(),
        };
        self.ended = write.is_none();
        write
    }
}

/// Where a generator stands.
#[derive(Clone, Debug)]
struct Cursor {
    /// The last write that was handed out.
    last: Option<Time>,
    /// The start, or when the source was last changed.
    not_before: Time,
    stop: Time,
}

impl Cursor {
    fn new(start: Time, stop: Time) -> Self {
        Self { last: None, not_before: start, stop }
    }

    /// The time of a write `gap` after the last one, or of the first one. At the stop `None`, and nothing
    /// moves.
    fn step(&mut self, gap: Span) -> Option<Time> {
        let at = self.last.map_or(self.not_before, |last| (last + gap).max(self.not_before));
        self.go_to(at)
    }

    /// Moves to a write at `at`. At the stop `None`, and nothing moves.
    fn go_to(&mut self, at: Time) -> Option<Time> {
        if at >= self.stop {
            return None;
        }
        self.last = Some(at);
        Some(at)
    }

    fn changed(&mut self, now: Time) {
        self.not_before = self.not_before.max(now);
    }
}

/// Even spacing of writes of one size at a rate. Write `k` is at ⌊k · size / rate⌋ nanoseconds exactly.
#[derive(Clone, Debug)]
struct Spacing {
    size: Bytes,
    rate: u64,
    /// size · 8 · 10^9 = whole · rate + rest.
    whole: Span,
    rest: u64,
    /// What is left over of earlier gaps, in nanoseconds over `rate`; below `rate`.
    carry: u64,
    /// Whether the next gap is the one before the first write, which is nothing.
    first: bool,
}

impl Spacing {
    fn new(size: Bytes, rate: Rate) -> Self {
        let mut spacing = Self { size, rate: 0, whole: Span::ZERO, rest: 0, carry: 0, first: true };
        spacing.set_rate(rate);
        spacing
    }

    fn set_rate(&mut self, rate: Rate) {
        // size < 2^64, so the product is below 2^97.
        let bit_nanos = u128::from(self.size.get()) * 8 * 1_000_000_000;
        let bits = u128::from(rate.as_bit().max(1));
        self.rate = rate.as_bit();
        self.whole = Span::from_nanos(u64::try_from(bit_nanos / bits).unwrap_or(u64::MAX));
        // Below `rate`, which fits.
        self.rest = (bit_nanos % bits) as u64;
        self.carry = 0;
    }

    /// The next gap; `None` if there is none: the rate is zero, or a write is empty.
    fn gap(&mut self) -> Option<Span> {
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

/// Whole nanoseconds out of fractional ones: what is left over goes into the next.
#[derive(Clone, Debug, Default)]
struct Carry(f64);

impl Carry {
    fn whole(&mut self, nanos: f64) -> Span {
        let sum = nanos + self.0;
        let whole = sum.floor();
        self.0 = sum - whole;
        Span::from_nanos(whole as u64)
    }
}

/// One draw from a distribution with the given mean. Every shape takes one number from the stream, so that a
/// change of shape shifts no other draw.
fn draw(shape: LawShape, mean: f64, stream: &mut Stream) -> f64 {
    match shape {
        LawShape::Constant => {
            stream.uniform();
            mean
        }
        LawShape::Exponential => stream.exponential(mean),
        LawShape::Pareto(shape) => stream.pareto(shape, mean),
    }
}

#[cfg(test)]
mod testing {
    //! Shared by the tests of all kinds.

    use super::*;

    /// A generator from time zero to `stop` seconds.
    pub fn generator(source: &Source, stop: u64, seed: u64) -> Generator {
        Generator::new(source, Time::ZERO, Time::from_secs(stop), Stream::new(seed, "source")).unwrap()
    }

    /// The times of all writes, in milliseconds.
    pub fn millis(writes: impl Iterator<Item = Write>) -> Vec<f64> {
        writes.map(|w| w.at.as_nanos() as f64 / 1e6).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apportion_core::units::Ratio;
    use apportion_scenario::model::{Frames, Law};
    use proptest::prelude::*;

    use super::testing::generator;
    use super::*;

    /// One source of each kind that has a generator, at about 1 Mb/s.
    fn all() -> Vec<Source> {
        let (rate, write) = (Rate::from_mbit(1), Bytes::new(1_000));
        let law = |shape| Law { mean: Span::from_millis(200), shape };
        vec![
            Source::Cbr { rate, write, jitter: Ratio::ZERO },
            Source::Cbr { rate, write, jitter: Ratio::ONE },
            Source::Poisson { rate, write },
            Source::OnOff { rate, write, on: law(LawShape::Exponential), off: law(LawShape::Pareto(1.5)) },
            Source::Video { fps: 25.0, frames: Frames::Gop { mean: rate }, least: None },
            Source::Video {
                fps: 25.0,
                frames: Frames::Trace(Arc::new([Bytes::new(5_000), Bytes::ZERO])),
                least: None,
            },
            Source::Replay { packets: (0..5_000).map(|k| (Span::from_millis(8) * k, write)).collect() },
        ]
    }

    #[test]
    fn greedy_sources_files_and_short_flows_have_no_generator() {
        let short =
            Source::ShortFlows { per_second: 1.0, mean_size: Bytes::new(1), sizes: LawShape::Constant };
        for source in [Source::Greedy, Source::File { size: Bytes::new(1) }, short] {
            let stream = Stream::new(1, "source");
            assert!(Generator::new(&source, Time::ZERO, Time::from_secs(1), stream).is_none());
        }
    }

    #[test]
    fn the_same_seed_writes_the_same_and_another_seed_does_not() {
        for source in all() {
            let writes = |seed| generator(&source, 10, seed).collect::<Vec<_>>();
            assert_eq!(writes(1), writes(1), "{source:?}");
            let random = !matches!(
                source,
                Source::Replay { .. }
                    | Source::Video { frames: Frames::Trace(_), .. }
                    | Source::Cbr { jitter: Ratio::ZERO, .. }
            );
            assert_eq!(writes(1) != writes(2), random, "{source:?}");
        }
    }

    #[test]
    fn rate_zero_silences_and_a_new_rate_goes_on_at_once_without_making_up() {
        for source in all() {
            let mut generator = generator(&source, 40, 1);
            while generator.next().unwrap().at < Time::from_secs(1) {}
            generator.set_rate(Time::from_secs(1), Rate::ZERO);
            assert_eq!(generator.next(), None, "{source:?}");
            assert_eq!(generator.next(), None, "{source:?}");
            // A second change while silent, to nothing.
            generator.set_rate(Time::from_secs(5), Rate::ZERO);
            assert_eq!(generator.next(), None, "{source:?}");
            generator.set_rate(Time::from_secs(10), Rate::from_mbit(1));
            let first = generator.next().unwrap();
            assert!(
                first.at >= Time::from_secs(10) && first.at < Time::from_secs(14),
                "{source:?} {first:?}"
            );
            // In the second after the first write come some 125 kB (at most 2.7 times as many, in a loud
            // scene), and not the megabyte of nine silent seconds.
            let soon = generator.take_while(|w| w.at < first.at + Span::from_secs(1));
            let bytes = soon.map(|w| w.size).sum::<Bytes>() + first.size;
            assert!(bytes > Bytes::new(10_000) && bytes < Bytes::new(400_000), "{source:?} {bytes}");
        }
    }

    #[test]
    fn a_source_that_was_too_slow_for_the_run_goes_on_when_it_is_faster() {
        // At 1 bit/s the next write of 1000 B would be after 8000 s.
        for source in all() {
            let mut generator = generator(&source, 40, 1);
            generator.set_rate(Time::ZERO, Rate::from_bit(1));
            while generator.next().is_some() {}
            generator.set_rate(Time::from_secs(20), Rate::from_mbit(1));
            let ended = matches!(source, Source::Video { .. });
            assert_eq!(generator.next().is_none(), ended, "{source:?}");
        }
    }

    #[test]
    fn asking_again_after_the_end_draws_no_further_write() {
        // With gaps up to twice the mean every second question would find another write before the stop.
        for source in all() {
            let mut generator = generator(&source, 10, 1);
            while generator.next().is_some() {}
            assert!((0..20).all(|_| generator.next().is_none()), "{source:?}");
        }
    }

    #[test]
    fn spacing_carries_what_is_below_a_nanosecond() {
        // 1 B at 3 bit/s: 8/3 s = 2,666,666,666.67 ns; ends of gaps at ⌊k · 8/3 · 10^9⌋.
        let mut spacing = Spacing::new(Bytes::new(1), Rate::from_bit(3));
        let gaps: Vec<u64> = (0..5).map(|_| spacing.gap().unwrap().as_nanos()).collect();
        assert_eq!(gaps, [0, 2_666_666_666, 2_666_666_667, 2_666_666_667, 2_666_666_666]);
        // 8 bit at 16 Gb/s is half a nanosecond.
        let mut spacing = Spacing::new(Bytes::new(1), Rate::from_bit(16_000_000_000));
        let gaps: Vec<u64> = (0..5).map(|_| spacing.gap().unwrap().as_nanos()).collect();
        assert_eq!(gaps, [0, 0, 1, 0, 1]);
    }

    proptest! {
        /// Also at rates and sizes that no scenario should have: nothing panics, and the contract holds.
        #[test]
        fn writes_are_in_order_before_the_stop_and_never_empty(
            kind in 0usize..7,
            changes in prop::collection::vec((0u64..2_000_000_000, 0u32..65), 0..6),
            seed: u64,
        ) {
            let start = Time::from_millis(500);
            let stop = Time::from_secs(3);
            let stream = Stream::new(seed, "source");
            let mut generator = Generator::new(&all()[kind], start, stop, stream).unwrap();
            let (mut now, mut last) = (Time::ZERO, start);
            for (step, shift) in changes {
                now += Span::from_nanos(step);
                generator.set_rate(now, Rate::from_bit(u64::MAX.checked_shr(shift).unwrap_or(0)));
                for write in generator.by_ref().take(200).take_while(|w| w.at <= now) {
                    prop_assert!(write.at >= last && write.at < stop && write.size > Bytes::ZERO);
                    last = write.at;
                }
            }
        }
    }
}
