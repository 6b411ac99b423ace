//! Writes of applications over time: one generator for each kind of source.
//!
//! A generator is an iterator over [`Write`]s. A backend takes the next one when the last one's time has
//! come, so at most one write is pending. The contract:
//!
//! - Writes come in order of time, at or after the start and before the stop, and none is empty.
//! - [`Generator::set_rate`] takes effect on the next gap: a pending write stays. Rate zero silences the
//!   source.
//! - `None` means "no write before the stop at the present rate", and stays until the rate is set. A source
//!   that was silent or too slow can continue after `set_rate`, so a backend without a pending write tries
//!   again after each change. The source then continues as soon as its new gap allows, and never makes up for
//!   the silence.
//! - No rate drifts: the fraction of a nanosecond in a gap is carried into the next gap.
//!
//! | file | source | times | sizes |
//! |---|---|---|---|
//! | [`cbr`] | constant rate | even, or each gap varied by ± jitter | constant |
//! | [`poisson`] | Poisson process | exponential gaps | constant |
//! | [`on_off`] | CBR in on periods | on and off periods of any distribution | constant |
//! | [`video`] | frames | even | from a trace, or a synthetic group of pictures |
//! | [`replay`] | a capture | as captured | as captured |
//! | [`web`] | pages of users | after a page is complete and the user has read it | of any distribution |
//! | [`short_flows`] | files of short connections | exponential gaps | of any distribution |
//!
//! Greedy sources and files need no generator: TCP has all their bytes at the start.

pub mod cbr;
pub mod on_off;
pub mod poisson;
pub mod replay;
pub mod short_flows;
mod timing;
pub mod video;
pub mod web;

use apportion_core::queue::Overload;
use apportion_core::random::Stream;
use apportion_core::units::{Rate, Time};
use apportion_scenario::model::Source;

use cbr::Cbr;
use on_off::OnOff;
use poisson::Poisson;
use replay::Replay;
use timing::Cursor;
pub use timing::Write;
use video::Video;

/// The writes of a flow, one after another.
#[derive(Clone, Debug)]
pub struct Generator {
    kind: Kind,
    /// Whether it returned `None` and was not changed since: a second call must not draw again.
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
    /// The generator of `source` between `start` and `stop`. `None` for greedy sources and files, which TCP
    /// has at the start; for short flows, whose [`arrivals`](short_flows::arrivals) are connections, not
    /// writes; and for [`web`] pages, which depend on arrivals.
    #[must_use]
    pub fn new(source: &Source, start: Time, stop: Time, stream: Stream) -> Option<Self> {
        let cursor = Cursor::new(start, stop);
        let kind = match *source {
            Source::Greedy | Source::File { .. } | Source::ShortFlows { .. } | Source::Web(_) => return None,
            // These react to delay and loss, see `media`.
            Source::Dash(_) | Source::Voice { .. } | Source::Call(_) => return None,
            Source::Cbr(params) => Kind::Cbr(Cbr::new(params, cursor, stream)),
            Source::Poisson(params) => Kind::Poisson(Poisson::new(params, cursor, stream)),
            Source::OnOff(params) => Kind::OnOff(OnOff::new(params, cursor, stream)),
            Source::Video(ref params) => Kind::Video(Video::new(params, cursor, stream)),
            Source::Replay { ref packets } => Kind::Replay(Replay::new(packets.clone(), cursor)),
        };
        Some(Self { kind, ended: false })
    }

    /// The on periods of an on-off source from now until `end`, which do not depend on the rate. None for
    /// other sources.
    #[must_use]
    pub fn on_periods(&self, end: Time) -> Vec<(Time, Time)> {
        match &self.kind {
            Kind::OnOff(on_off) => on_off.on_periods(end),
            _ => Vec::new(),
        }
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

    /// Handles a notification of a queue at `now` that the flow gets less than its requirement, or that this
    /// is over. Only an adaptive [`Video`] reacts.
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

#[cfg(test)]
mod testing {
    //! Helpers of the tests of all kinds.

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

    use apportion_core::units::{Bytes, Ratio, Span};
    use apportion_scenario::model::{self, DurationDistribution, File, Frames, Shape, ShortFlows, Sizes};
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::testing::generator;
    use super::timing::Spacing;
    use super::*;

    /// One source of each kind that has a generator, at about 1 Mb/s.
    fn all() -> Vec<Source> {
        let (rate, packet) = (Rate::from_mbit(1), Bytes::new(1_000));
        let law = |shape| DurationDistribution { mean: Span::from_millis(200), shape };
        vec![
            Source::Cbr(model::Cbr { rate, packet, jitter: Ratio::ZERO }),
            Source::Cbr(model::Cbr { rate, packet, jitter: Ratio::ONE }),
            Source::Poisson(model::Poisson { rate, packet }),
            Source::OnOff(model::OnOff {
                rate,
                packet,
                on: law(Shape::Exponential),
                off: law(Shape::Pareto(1.5)),
            }),
            Source::Video(model::Video { fps: 25.0, frames: Frames::Gop { mean: rate }, least: None }),
            Source::Video(model::Video {
                fps: 25.0,
                frames: Frames::Trace(Arc::new([Bytes::new(5_000), Bytes::ZERO])),
                least: None,
            }),
            Source::Replay { packets: (0..5_000).map(|k| (Span::from_millis(8) * k, packet)).collect() },
        ]
    }

    #[test]
    fn greedy_sources_files_and_short_flows_have_no_generator() {
        let sizes = Sizes::Shaped { mean: Bytes::new(1), shape: Shape::Constant };
        let short = Source::ShortFlows(ShortFlows { per_second: 1.0, sizes });
        for source in [Source::Greedy, Source::File(File { size: Bytes::new(1) }), short] {
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
                    | Source::Video(model::Video { frames: Frames::Trace(_), .. })
                    | Source::Cbr(model::Cbr { jitter: Ratio::ZERO, .. })
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
            // scene), not the megabyte of nine silent seconds.
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
        // With gaps up to twice the mean, every second call would find another write before the stop.
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
        #![proptest_config(cases(256))]

        /// Even at rates and sizes that no scenario should have, nothing panics, and the contract holds.
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
