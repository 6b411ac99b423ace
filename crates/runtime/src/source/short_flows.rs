//! A Poisson process of short connections: the start and the file size of each.
//!
//! Arrivals do not wait for earlier files to finish. Every file has at least one byte. Times and sizes take
//! one draw each with any distribution of sizes, so the same seed has the same arrivals with every
//! distribution. A scenario with more than [`MAX_ARRIVALS`] expected arrivals is refused when it is checked.

use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Time};
use apportion_scenario::model::{MAX_ARRIVALS, Sizes};

use super::timing::{Carry, draw};

/// Maximum of arrivals. The mean is at most [`MAX_ARRIVALS`]; a hundredth of it is ten standard deviations,
/// so a checked scenario is never cut short.
const GUARD: usize = MAX_ARRIVALS as usize / 100 * 101;

/// The start and the file size of each connection, from `start` until before `stop`.
pub fn arrivals(
    per_second: f64,
    sizes: &Sizes,
    start: Time,
    stop: Time,
    mut stream: Stream,
) -> impl Iterator<Item = (Time, Bytes)> {
    let some = per_second > 0.0 && per_second.is_finite();
    let (mut at, mut carry) = (start, Carry::default());
    std::iter::from_fn(move || {
        at += carry.whole(stream.exponential(1e9 / per_second));
        let size = draw_size(sizes, &mut stream);
        (some && at < stop).then_some((at, size))
    })
    .take(GUARD)
    .fuse()
}

/// The size of a file: at least one byte, from one number of the stream.
pub(super) fn draw_size(sizes: &Sizes, stream: &mut Stream) -> Bytes {
    let size = match sizes {
        Sizes::Shaped { mean, shape } => draw(*shape, mean.get() as f64, stream),
        _ => sizes.quantile(stream.uniform()),
    };
    Bytes::new((size.round() as u64).max(1))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use apportion_scenario::model::{Cdf, Shape};

    use super::*;

    fn collect(per_second: f64, mean: u64, shape: Shape, stop: u64) -> Vec<(Time, Bytes)> {
        collect_of(per_second, &Sizes::Shaped { mean: Bytes::new(mean), shape }, stop)
    }

    fn collect_of(per_second: f64, sizes: &Sizes, stop: u64) -> Vec<(Time, Bytes)> {
        let stream = Stream::new(1, "short");
        let (start, stop) = (Time::from_secs(10), Time::from_secs(10 + stop));
        arrivals(per_second, sizes, start, stop, stream).collect()
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

    /// Distributions, with the shares below some of their sizes, from their definitions.
    fn distributions() -> Vec<(Sizes, Vec<(f64, f64)>)> {
        let (kb, mb) = (Bytes::new(1_000), Bytes::new(1_000_000));
        let pareto = |x: f64| (1.0 - (1e3 / x).powf(1.2)) / (1.0 - 1e-3_f64.powf(1.2));
        let cdf = Cdf::parse("200 0.3\n1000 0.5\n9000 0.9\n100000 1").unwrap();
        vec![
            (
                Sizes::BoundedPareto { alpha: 1.2, least: kb, most: mb },
                [1.5e3, 3e3, 1e4, 1e5].map(|x| (x, pareto(x))).to_vec(),
            ),
            // One, and two standard deviations.
            (
                Sizes::Lognormal { median: mb, sigma: 2.0, least: Bytes::ZERO, most: None },
                vec![(1e6 * (-2_f64).exp(), 0.158_655), (1e6, 0.5), (1e6 * 4_f64.exp(), 0.977_250)],
            ),
            // Between the median and a standard deviation above: half of 0.341345 is reached at 0.441 of it.
            (
                Sizes::Lognormal { median: mb, sigma: 1.0, least: mb, most: Some(Bytes::new(2_718_282)) },
                vec![(1e6 * 0.440_999_f64.exp(), 0.5)],
            ),
            // 900, in the range from 1000 to 9000 that holds 40 %, is at 0.3 + 0.2 · 700/800.
            (
                Sizes::Empirical(Arc::new(cdf)),
                vec![(200.0, 0.3), (900.0, 0.475), (5_000.0, 0.7), (54_500.0, 0.95)],
            ),
        ]
    }

    #[test]
    fn sizes_have_the_distribution_that_was_asked_for() {
        for (sizes, shares) in distributions() {
            let all = collect_of(20.0, &sizes, 5_000);
            let n = all.len() as f64;
            // Chi-square over the cells between these sizes; 21.6 is exceeded with a probability of 0.0002 and 4 degrees of freedom.
            let (mut square, mut below, mut share_below) = (0.0, 0.0, 0.0);
            for (size, share) in shares.into_iter().chain([(f64::INFINITY, 1.0)]) {
                let count = all.iter().filter(|(_, drawn)| drawn.get() as f64 <= size).count() as f64;
                let expected = n * (share - share_below);
                square += (count - below - expected).powi(2) / expected;
                (below, share_below) = (count, share);
            }
            assert!(square < 21.6, "{square} of {sizes:?}");
        }
    }

    #[test]
    fn sizes_of_a_distribution_have_its_mean() {
        for (sizes, _) in distributions() {
            let all = collect_of(20.0, &sizes, 5_000);
            let sizes_drawn: Vec<f64> = all.iter().map(|(_, size)| size.get() as f64).collect();
            let n = sizes_drawn.len() as f64;
            let mean = sizes_drawn.iter().sum::<f64>() / n;
            let sigma = (sizes_drawn.iter().map(|size| (size - mean).powi(2)).sum::<f64>() / n).sqrt();
            assert!(
                (mean - sizes.mean()).abs() < 4.0 * sigma / n.sqrt(),
                "{mean} {} {sizes:?}",
                sizes.mean()
            );
        }
    }

    #[test]
    fn no_distribution_moves_the_arrivals_and_the_same_seed_has_the_same_sizes() {
        let of_constant: Vec<Time> =
            collect(20.0, 12_000, Shape::Constant, 50).into_iter().map(|one| one.0).collect();
        for (sizes, _) in distributions() {
            let all = collect_of(20.0, &sizes, 50);
            assert_eq!(all, collect_of(20.0, &sizes, 50));
            assert_eq!(all.into_iter().map(|one| one.0).collect::<Vec<_>>(), of_constant);
        }
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
