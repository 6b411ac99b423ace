//! A Poisson process of short connections: when each starts, and how long its file is.
//!
//! Arrivals do not wait for earlier files to finish. Every file has at least one byte. Times and sizes take
//! one draw each, whatever the distribution of sizes, so the same seed with another one has the same arrivals. A
//! scenario in which more than [`MAX_ARRIVALS`] are expected is refused when it is checked.

use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Time};
use apportion_scenario::model::{MAX_ARRIVALS, Shape};

use super::timing::{Carry, draw};

/// The mean is at most [`MAX_ARRIVALS`]; a hundredth of it is ten standard deviations, so a checked scenario
/// is never cut short.
const GUARD: usize = MAX_ARRIVALS as usize / 100 * 101;

/// The start and the file size of each connection, from `start` until before `stop`.
pub fn arrivals(
    per_second: f64,
    mean_size: Bytes,
    sizes: Shape,
    start: Time,
    stop: Time,
    mut stream: Stream,
) -> impl Iterator<Item = (Time, Bytes)> {
    let some = per_second > 0.0 && per_second.is_finite();
    let (mut at, mut carry) = (start, Carry::default());
    std::iter::from_fn(move || {
        at += carry.whole(stream.exponential(1e9 / per_second));
        let size = draw(sizes, mean_size.get() as f64, &mut stream).round() as u64;
        (some && at < stop).then(|| (at, Bytes::new(size.max(1))))
    })
    .take(GUARD)
    .fuse()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(per_second: f64, mean: u64, sizes: Shape, stop: u64) -> Vec<(Time, Bytes)> {
        let stream = Stream::new(1, "short");
        let (start, stop) = (Time::from_secs(10), Time::from_secs(10 + stop));
        arrivals(per_second, Bytes::new(mean), sizes, start, stop, stream).collect()
    }

    #[test]
    fn arrivals_are_poisson_and_sizes_have_their_mean() {
        // 20 a second for 5000 s: 100,000, σ = 316.
        // Variance of sizes: exponential m²; Pareto of shape 3, m²/3.
        let shapes = [(Shape::Exponential, 1.0_f64), (Shape::Pareto(3.0), 1.0 / 3.0), (Shape::Constant, 0.0)];
        for (shape, variance) in shapes {
            let all = collect(20.0, 12_000, shape, 5_000);
            let n = all.len() as f64;
            assert!((n - 100_000.0).abs() < 4.0 * 316.3, "{n}");
            let mean = all.iter().map(|&(_, size)| size.get() as f64).sum::<f64>() / n;
            let band = 4.0 * 12_000.0 * (variance / n).sqrt() + 1e-6;
            assert!((mean - 12_000.0).abs() < band, "{mean} ± {band}");
            assert!(all.is_sorted_by_key(|&(at, _)| at));
            assert!(all[0].0 > Time::from_secs(10) && all[all.len() - 1].0 < Time::from_secs(5_010));
            // Exponential gaps of mean 50 ms: a share of 1/e is longer.
            let above =
                all.windows(2).filter(|w| w[1].0.since(w[0].0).as_secs_f64() > 0.05).count() as f64 / n;
            let share = (-1.0_f64).exp();
            assert!((above - share).abs() < 4.0 * (share * (1.0 - share) / n).sqrt(), "{above}");
        }
    }

    #[test]
    fn another_distribution_of_sizes_does_not_move_the_arrivals() {
        let times =
            |shape| collect(20.0, 12_000, shape, 50).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(times(Shape::Constant), times(Shape::Exponential));
        assert_eq!(times(Shape::Constant), times(Shape::Pareto(1.2)));
    }

    #[test]
    fn every_file_has_a_byte() {
        // Exponential with mean 1 B: 39 % would round to nothing.
        assert!(collect(20.0, 1, Shape::Exponential, 50).iter().all(|&(_, size)| size >= Bytes::new(1)));
    }

    #[test]
    fn a_rate_that_is_none_makes_no_arrivals_and_a_wild_one_ends() {
        for none in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(collect(none, 1_000, Shape::Constant, 50), []);
        }
        assert_eq!(collect(1e12, 1_000, Shape::Constant, 50).len(), GUARD);
    }
}
