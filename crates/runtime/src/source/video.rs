//! Video: one write a frame, at the frame's display time.
//!
//! Frame `k` is displayed k / fps after the start, and written in one piece. Sizes come from a trace, which
//! is repeated, or from a synthetic MPEG-1 stream:
//!
//! - groups of pictures IBBPBBPBBPBB; I, P and B frames are lognormal with means 5 : 3 : 1 and coefficients
//!   of variation 0.4, 0.6 and 0.5 (chosen: of the kind that Rose measured in MPEG-1 streams, "Statistical
//!   properties of MPEG video traffic and their impact on traffic modeling in ATM systems", 1995);
//! - times a factor that is constant in a scene: lognormal with mean 1, an autoregressive process of order 1
//!   in its logarithm. A scene ends after each frame with the same probability, so lengths are geometric,
//!   with a mean of 8 s;
//! - scaled so that the long-run mean is the given rate. A minute has some seven scenes, so its own mean
//!   differs.
//!
//! | here | unit | value | from |
//! |---|---|---|---|
//! | `SCENE` | s | 8 | chosen: the mean length of a scene |
//! | `SCENE_COV` | - | 0.3 | chosen: the largest frame of a minute is then 5 to 10 times the mean frame |
//! | `SCENE_CORRELATION` | - | 0.5 | chosen: neighbours are alike, scenes a minute apart are not |
//! | `PEAK` | mean frames | 10 | chosen: the upper end of that; larger frames are cut to it |
//!
//! The cut takes less than 0.1 % off the mean. Rose's streams reach 9 to 13 in half an hour.
//!
//! An adaptive video shrinks its frames when a queue reports that it cannot carry them, so that their mean is
//! at most `ROOM` of the granted rate, and by at least the missing share, but not below `least`. They grow
//! again by `STEP` of their full size every `PAUSE`, once the video is notified that the overload is over, or
//! gets no notification for `PATIENCE`.
//!
//! | here | unit | value | from |
//! |---|---|---|---|
//! | `ROOM` | - | 0.9 | chosen: room for headers, and for what waits to drain |
//! | `STEP` | - | 0.1 | chosen: what a viewer hardly sees |
//! | `PAUSE` | s | 1 | chosen: a queue reacts to one step before the next one |
//! | `PATIENCE` | s | 3 | chosen: far longer than RAMP's interval between notifications, in case the queue is gone |
//!
//! A change of rate scales frames and leaves their times; during a silence frames are skipped, not kept.
//! Empty frames of a trace are not written. Cost: O(1) and three draws a frame.

use std::sync::Arc;

use apportion_core::queue::Overload;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::model::{self, Frames};

use super::timing::{Cursor, Write};

const PATTERN: &[u8; 12] = b"IBBPBBPBBPBB";
const SCENE: f64 = 8.0;
const SCENE_COV: f64 = 0.3;
const SCENE_CORRELATION: f64 = 0.5;
const PEAK: f64 = 10.0;
const ROOM: f64 = 0.9;
const STEP: f64 = 0.1;
const PAUSE: Span = Span::from_secs(1);
const PATIENCE: Span = Span::from_secs(3);

/// Frames at their display times.
#[derive(Clone, Debug)]
pub struct Video {
    fps: f64,
    start: Time,
    /// The number of the next frame.
    frame: u64,
    sizes: Sizes,
    /// Mean rate of `sizes` in bits per second; zero if there are no frames.
    mean: f64,
    /// The factor of sizes; zero in a silence.
    scale: f64,
    /// The quality of an adaptive video.
    quality: Option<Quality>,
    cursor: Cursor,
}

/// The size to which frames shrink.
#[derive(Clone, Debug)]
struct Quality {
    least: f64,
    /// The share at the last notification.
    share: f64,
    /// Time at which it grows next.
    grows_from: Time,
}

impl Quality {
    fn at(&self, now: Time) -> f64 {
        let steps = now.since(self.grows_from).as_nanos() / PAUSE.as_nanos();
        (self.share + STEP * steps as f64).min(1.0)
    }
}

#[derive(Clone, Debug)]
enum Sizes {
    /// Sizes in bytes.
    Trace(Arc<[Bytes]>),
    /// Sizes relative to the mean frame.
    Gop(Gop),
}

impl Video {
    pub(super) fn new(params: &model::Video, cursor: Cursor, stream: Stream) -> Self {
        let model::Video { fps, ref frames, least } = *params;
        // An invalid frame rate produces no frames.
        let fps = if fps > 0.0 && fps.is_finite() { fps } else { 0.0 };
        let (sizes, mean, rate) = match frames {
            Frames::Trace(trace) => {
                let bits: u128 = trace.iter().map(|size| u128::from(size.get()) * 8).sum();
                let mean = bits as f64 / trace.len().max(1) as f64 * fps;
                (Sizes::Trace(trace.clone()), mean, mean)
            }
            // A mean frame counts as a byte.
            Frames::Gop { mean } => (Sizes::Gop(Gop::new(fps, stream)), 8.0 * fps, mean.as_bit() as f64),
        };
        let scale = if mean > 0.0 { rate / mean } else { 0.0 };
        let quality = least.map(|least| Quality { least: least.get(), share: 1.0, grows_from: Time::ZERO });
        Self { fps, start: cursor.not_before, frame: 0, sizes, mean, scale, quality, cursor }
    }

    pub(super) fn next_write(&mut self) -> Option<Write> {
        // Ends at the stop: each round advances by a frame.
        while self.scale > 0.0 {
            let at = self.cursor.go_to(self.display_time(self.frame))?;
            let size = match &mut self.sizes {
                Sizes::Trace(trace) => trace[(self.frame % trace.len() as u64) as usize].get() as f64,
                Sizes::Gop(gop) => gop.next(self.frame),
            };
            self.frame += 1;
            if size > 0.0 {
                let quality = self.quality.as_ref().map_or(1.0, |quality| quality.at(at));
                let size = Bytes::new((size * self.scale * quality).round() as u64).max(Bytes::new(1));
                return Some(Write { at, size });
            }
        }
        None
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.scale = if self.mean > 0.0 { rate.as_bit() as f64 / self.mean } else { 0.0 };
        // Skips frames from before now. The product may be off by one.
        self.frame = self.frame.max((now.since(self.start).as_secs_f64() * self.fps) as u64);
        if self.scale > 0.0 && self.display_time(self.frame) < now {
            self.frame += 1;
        }
    }

    pub(super) fn on_overload(&mut self, now: Time, overload: &Overload) {
        let &Overload { wanted, granted, is_over, .. } = overload;
        let full = self.mean * self.scale;
        let Some(quality) = self.quality.as_mut().filter(|_| full > 0.0) else { return };
        let present = quality.at(now);
        let granted = granted.as_bit() as f64;
        // A scene may be far above the overall mean, so both bounds apply.
        let fits = (ROOM * granted / full).min(present * granted / wanted.as_bit().max(1) as f64);
        quality.share = if is_over { present } else { fits.clamp(quality.least, 1.0).min(present) };
        quality.grows_from = if is_over { now } else { now + PATIENCE };
    }

    fn display_time(&self, frame: u64) -> Time {
        self.start + Span::from_secs_f64(frame as f64 / self.fps)
    }
}

/// The synthetic stream.
#[derive(Clone, Debug)]
struct Gop {
    /// The probability that a scene ends after a frame.
    end: f64,
    /// The state of the autoregressive process: mean 0 and variance 1.
    state: f64,
    /// The factor of frames in this scene.
    factor: f64,
    stream: Stream,
}

impl Gop {
    fn new(fps: f64, mut stream: Stream) -> Self {
        let state = stream.normal();
        Self { end: 1.0 / (SCENE * fps), state, factor: lognormal(SCENE_COV, state), stream }
    }

    /// The size of frame number `frame`, relative to the mean frame.
    fn next(&mut self, frame: u64) -> f64 {
        let (mean, cov) = match PATTERN[(frame % PATTERN.len() as u64) as usize] {
            b'I' => (5.0, 0.4),
            b'P' => (3.0, 0.6),
            _ => (1.0, 0.5),
        };
        // (1 · 5 + 3 · 3 + 8 · 1) / 12.
        let mean_of_all = 22.0 / 12.0;
        let relative = mean / mean_of_all * self.factor * lognormal(cov, self.stream.normal());
        if self.stream.chance(self.end) {
            let fresh = libm::sqrt(1.0 - SCENE_CORRELATION * SCENE_CORRELATION) * self.stream.normal();
            self.state = SCENE_CORRELATION * self.state + fresh;
            self.factor = lognormal(SCENE_COV, self.state);
        }
        relative.min(PEAK)
    }
}

/// A lognormal value with mean 1 and this coefficient of variation, from a standard normal one.
fn lognormal(cov: f64, normal: f64) -> f64 {
    let variance = libm::log(1.0 + cov * cov);
    libm::exp(libm::sqrt(variance) * normal - variance / 2.0)
}

#[cfg(test)]
mod tests {
    use apportion_core::packet::FlowId;
    use apportion_core::units::Ratio;
    use apportion_scenario::model::Source;

    use super::super::testing::{generator, millis};
    use super::*;

    const HOUR: u64 = 3_600;

    fn gop(fps: f64) -> Source {
        Source::Video(model::Video { fps, frames: Frames::Gop { mean: Rate::from_kbit(1_200) }, least: None })
    }

    fn sizes(fps: f64, stop: u64) -> Vec<f64> {
        generator(&gop(fps), stop, 1).map(|w| w.size.get() as f64).collect()
    }

    fn mean_and_cov(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
        let n = values.clone().count() as f64;
        let mean = values.clone().sum::<f64>() / n;
        (mean, (values.map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt() / mean)
    }

    #[test]
    fn the_long_run_mean_is_the_rate_asked_for() {
        for fps in [25.0, 30.0] {
            let all = sizes(fps, 100 * HOUR);
            assert_eq!(all.len() as f64, 360_000.0 * fps);
            let rate = all.iter().sum::<f64>() * 8.0 / 360_000.0;
            // 45,000 scenes: the mean of their factors, weighted with geometric lengths (which doubles the
            // variance) and correlated (times (1 + 0.5)/(1 - 0.5)), has σ = 0.3 · √(2 · 3 / 45,000) = 0.35 %.
            // Frames add 0.02 %.
            let sigma = SCENE_COV * (2.0 * 3.0 / 45_000.0_f64).sqrt();
            println!("{rate} {}", 4.0 * sigma);
            assert!((rate / 1_200_000.0 - 1.0).abs() < 4.0 * sigma + 0.001, "{rate} at {fps} fps");
        }
    }

    #[test]
    fn frames_have_their_ratio_and_their_variation() {
        let all = sizes(25.0, 20 * HOUR);
        let of = |kind: u8| {
            let chosen =
                all.iter().enumerate().filter(move |(k, _)| PATTERN[k % 12] == kind).map(|(_, &v)| v);
            mean_and_cov(chosen)
        };
        let [(i, i_cov), (p, p_cov), (b, b_cov)] = [of(b'I'), of(b'P'), of(b'B')];
        // The factor of a scene is the same for all kinds and cancels.
        assert!((i / b - 5.0).abs() < 0.05, "I : B = {}", i / b);
        assert!((p / b - 3.0).abs() < 0.03, "P : B = {}", p / b);
        // With the factor s: (1 + cov²)(1 + s²) - 1. I: 1.16 · 1.09 - 1 = 0.2644; P: 1.36 · 1.09 - 1 =
        // 0.4824; B: 1.25 · 1.09 - 1 = 0.3625.
        for (cov, square) in [(i_cov, 0.2644_f64), (p_cov, 0.4824), (b_cov, 0.3625)] {
            assert!((cov / square.sqrt() - 1.0).abs() < 0.04, "{cov} for {}", square.sqrt());
        }
    }

    #[test]
    fn the_largest_frame_is_five_to_ten_times_the_mean() {
        let all = sizes(25.0, 20 * HOUR);
        let peak = |frames: &[f64]| {
            frames.iter().copied().fold(0.0, f64::max) / (frames.iter().sum::<f64>() / frames.len() as f64)
        };
        // Relative to the mean of the whole, no frame is above 10; without the cut some are near 20.
        assert!(peak(&all) > 9.9 && peak(&all) < 10.2, "{}", peak(&all));
        // Few frames are cut, so the distribution is not dominated by the cut.
        let cut = all.iter().filter(|&&v| v >= 60_000.0).count() as f64 / all.len() as f64;
        assert!(cut > 0.0 && cut < 1e-3, "{cut}");
        // Relative to the mean of their own minute nearly all peaks are in the band; a quiet minute with one
        // loud scene is not.
        let minutes: Vec<f64> = all.chunks(1_500).map(peak).collect();
        let (mean, _) = mean_and_cov(minutes.iter().copied());
        assert!((5.0..=10.0).contains(&mean), "{mean}");
        let inside = minutes.iter().filter(|&p| (5.0..=10.0).contains(p)).count() as f64;
        assert!(inside > 0.8 * minutes.len() as f64, "{inside} of {}", minutes.len());
    }

    #[test]
    fn scenes_last_eight_seconds_in_the_mean_and_neighbours_are_alike() {
        let mut gop = Gop::new(25.0, Stream::new(1, "gop"));
        let mut factors = vec![gop.factor];
        let mut frames = 0.0;
        for frame in 0..(20 * HOUR * 25) {
            gop.next(frame);
            frames += 1.0;
            if gop.factor != factors[factors.len() - 1] {
                factors.push(gop.factor);
            }
        }
        let n = factors.len() as f64;
        // Geometric with mean 200 frames: σ of the mean of n is 200/√n.
        assert!((frames / n - 200.0).abs() < 4.0 * 200.0 / n.sqrt(), "{}", frames / n);
        // Logarithms: the correlation of neighbours is 0.5, with a standard error of about √(1 - 0.25)/√n.
        let logs: Vec<f64> = factors.iter().map(|f| f.ln()).collect();
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / n;
        let covariance = logs.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / n;
        let correlation = covariance / variance;
        assert!((correlation - 0.5).abs() < 4.0 * (0.75 / n).sqrt(), "{correlation}");
        assert!((variance / libm::log(1.09) - 1.0).abs() < 0.1, "{variance}");
    }

    #[test]
    fn frames_are_at_their_display_times_and_a_trace_repeats() {
        let trace = Frames::Trace(Arc::new([Bytes::new(9), Bytes::ZERO, Bytes::new(4)]));
        let writes: Vec<Write> =
            generator(&Source::Video(model::Video { fps: 30.0, frames: trace, least: None }), 1, 1).collect();
        // Every third of 30 frames is empty.
        assert_eq!(writes.len(), 20);
        let write = |ns, size| Write { at: Time::from_nanos(ns), size: Bytes::new(size) };
        // Frames 0, 2, 3 and 29: k / 30 s, rounded to the nearest nanosecond.
        assert_eq!(writes[..3], [write(0, 9), write(66_666_667, 4), write(100_000_000, 9)]);
        assert_eq!(writes[19], write(966_666_667, 4));
    }

    #[test]
    fn a_rate_scales_frames_and_a_silence_skips_them() {
        // 1000 B and 3000 B at 25 fps: 400 kb/s. At 200 kb/s: 500 B and 1500 B.
        let trace = Frames::Trace(Arc::new([Bytes::new(1_000), Bytes::new(3_000)]));
        let mut video =
            generator(&Source::Video(model::Video { fps: 25.0, frames: trace, least: None }), 10, 1);
        video.set_rate(Time::ZERO, Rate::from_kbit(200));
        let sizes = |writes: &[Write]| writes.iter().map(|w| w.size.get()).collect::<Vec<_>>();
        let first: Vec<Write> = video.by_ref().take(2).collect();
        assert_eq!(sizes(&first), [500, 1_500]);
        video.set_rate(Time::from_millis(50), Rate::ZERO);
        assert_eq!(video.next(), None);
        // 250 ms lies between frames 6 (240 ms) and 7 (280 ms), which is of the larger kind.
        video.set_rate(Time::from_millis(250), Rate::from_kbit(400));
        let then: Vec<Write> = video.by_ref().take(2).collect();
        assert_eq!(sizes(&then), [3_000, 1_000]);
        assert_eq!(millis(then.into_iter()), [280.0, 320.0]);
        // A change at the exact time of a frame keeps the frame.
        video.set_rate(Time::from_millis(360), Rate::from_kbit(400));
        assert_eq!(millis(video.take(1)), [360.0]);
    }

    #[test]
    fn an_adaptive_video_shrinks_to_what_is_granted_and_grows_step_by_step() {
        // 4000 B at 25 fps: 800 kb/s.
        let frames = Frames::Trace(Arc::new([Bytes::new(4_000)]));
        let source = |least| Source::Video(model::Video { fps: 25.0, frames: frames.clone(), least });
        let mut video = generator(&source(Some(Ratio::clamped(0.2))), 20, 1);
        let at = |seconds: u64, video: &mut super::super::Generator| {
            video.find(|write| write.at >= Time::from_secs(seconds)).unwrap().size.get()
        };
        assert_eq!(at(1, &mut video), 4_000);
        let notice = |seconds: u64, wanted, granted, is_over| {
            let [wanted, granted] = [wanted, granted].map(Rate::from_kbit);
            (Time::from_secs(seconds), Overload { flow: FlowId(0), wanted, granted, is_over })
        };
        let notify = |(at, overload): (Time, Overload), video: &mut super::super::Generator| {
            video.on_overload(at, &overload);
        };
        // 400 kb/s: 0.9 of half.
        notify(notice(1, 800, 400, false), &mut video);
        assert_eq!(at(2, &mut video), 1_800);
        // A tenth of the requirement is missing, though more is granted: 0.9 of 1800 B.
        notify(notice(2, 1_000, 900, false), &mut video);
        assert_eq!(at(3, &mut video), 1_620);
        // 50 kb/s would be 225 B, below the least.
        notify(notice(3, 400, 50, false), &mut video);
        assert_eq!(at(4, &mut video), 800);
        // The overload is over at 5 s: 10 % more each second, up to the full size.
        notify(notice(5, 300, 300, true), &mut video);
        assert_eq!([5, 6, 8, 13, 15].map(|s| at(s, &mut video)), [800, 1_200, 2_000, 4_000, 4_000]);
        // Without a notification for 3 s it grows too.
        notify(notice(15, 800, 400, false), &mut video);
        assert_eq!([17, 19].map(|s| at(s, &mut video)), [1_800, 2_200]);
        // Other sources do not react.
        let mut video = generator(&source(None), 20, 1);
        notify(notice(0, 800, 400, false), &mut video);
        assert_eq!(at(1, &mut video), 4_000);
    }

    #[test]
    fn a_stream_that_begins_silent_can_be_given_a_rate() {
        let silent =
            Source::Video(model::Video { fps: 25.0, frames: Frames::Gop { mean: Rate::ZERO }, least: None });
        let mut video = generator(&silent, 10 * HOUR, 1);
        assert_eq!(video.next(), None);
        video.set_rate(Time::ZERO, Rate::from_kbit(1_200));
        let all: Vec<Write> = video.collect();
        assert_eq!(all, generator(&gop(25.0), 10 * HOUR, 1).collect::<Vec<_>>());
    }

    #[test]
    fn frame_rates_and_traces_that_are_none_show_nothing() {
        for fps in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(generator(&gop(fps), 1, 1).next(), None);
        }
        for trace in [vec![], vec![Bytes::ZERO; 3]] {
            let frames = Frames::Trace(trace.into());
            let mut video = generator(&Source::Video(model::Video { fps: 25.0, frames, least: None }), 1, 1);
            assert_eq!(video.next(), None);
            video.set_rate(Time::ZERO, Rate::from_mbit(1));
            assert_eq!(video.next(), None);
        }
    }
}
