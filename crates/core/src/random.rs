//! Randomness as an argument: named streams that do not disturb each other.
//!
//! A stream is derived from the seed of the run and the name of the component that draws from it, by a hash
//! in this module. To add or rename a component therefore never shifts another's draws, and no release of a
//! library changes a result.

use core::fmt::{self, Write as _};

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// One component's stream of random draws.
#[derive(Clone, Debug)]
pub struct Stream(Xoshiro256PlusPlus);

impl Stream {
    /// The stream of the component called `name` in the run with `seed`.
    #[must_use]
    pub fn new(seed: u64, name: &str) -> Self {
        Self::from_hash(seed, fnv1a(name))
    }

    /// Creates a stream as [`new`](Self::new) does, for a name that consists of parts, without an allocated
    /// string.
    #[must_use]
    pub fn named(seed: u64, name: fmt::Arguments<'_>) -> Self {
        let mut hash = Fnv1a::new();
        // The hash accepts every write.
        let _ = hash.write_fmt(name);
        Self::from_hash(seed, hash.0)
    }

    fn from_hash(seed: u64, hash: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ mix(hash))))
    }

    /// A number in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number in `0..n`. `n` must not be zero.
    ///
    /// Multiplication without the rejection step (Lemire 2019): for n < 2^32 the bias is below 2^-32.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// True with probability `p`. Draws one number whatever `p` is, so that a change of `p` shifts no later
    /// draw.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// Exponentially distributed with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - u lies in (0, 1], so the logarithm is finite.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Pareto distributed with the given shape and mean. The mean exists for `shape > 1`.
    pub fn pareto(&mut self, shape: f64, mean: f64) -> f64 {
        let scale = mean * (shape - 1.0) / shape;
        scale / libm::pow(1.0 - self.uniform(), 1.0 / shape)
    }

    /// Normally distributed with mean 0 and variance 1 (Box and Muller 1958; the second value is not kept, so
    /// the number of draws per call is fixed).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(2.0 * core::f64::consts::PI * self.uniform())
    }
}

/// FNV-1a over the bytes of a name, 64 bits.
#[must_use]
pub fn fnv1a(name: &str) -> u64 {
    let mut hash = Fnv1a::new();
    hash.add(name);
    hash.0
}

/// A hash of text that comes in parts.
struct Fnv1a(u64);

impl Fnv1a {
    const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, text: &str) {
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        self.0 = text.bytes().fold(self.0, step);
    }
}

impl fmt::Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text);
        Ok(())
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood 2014): spreads every input bit over the word.
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws whose mean must lie within four standard errors of `mean`.
    fn check_mean(mean: f64, variance: f64, mut draw: impl FnMut(&mut Stream) -> f64) {
        const N: u32 = 40_000;
        let mut stream = Stream::new(1, "check");
        let sum: f64 = (0..N).map(|_| draw(&mut stream)).sum();
        let band = 4.0 * (variance / f64::from(N)).sqrt();
        assert!(
            (sum / f64::from(N) - mean).abs() < band,
            "mean {} outside {mean} ± {band}",
            sum / f64::from(N)
        );
    }

    #[test]
    fn distributions_have_their_means() {
        check_mean(0.5, 1.0 / 12.0, Stream::uniform);
        check_mean(4.5, 8.25, |s| s.below(10) as f64);
        check_mean(0.3, 0.21, |s| f64::from(u8::from(s.chance(0.3))));
        check_mean(2.0, 4.0, |s| s.exponential(2.0));
        check_mean(0.0, 1.0, Stream::normal);
        // Shape 3, mean 3: scale 2, variance 4·3/(2²·1) = 3.
        check_mean(3.0, 3.0, |s| s.pareto(3.0, 3.0));
    }

    #[test]
    fn a_name_may_come_in_parts() {
        let draw = |mut stream: Stream| stream.0.next_u64();
        assert_eq!(
            draw(Stream::named(3, format_args!("flow.{}.{}", "a", 17))),
            draw(Stream::new(3, "flow.a.17"))
        );
    }

    #[test]
    fn streams_differ_by_name_and_by_seed_and_repeat() {
        let draw = |seed, name| Stream::new(seed, name).0.next_u64();
        assert_eq!(draw(7, "link.a"), draw(7, "link.a"));
        assert_ne!(draw(7, "link.a"), draw(7, "link.b"));
        assert_ne!(draw(7, "link.a"), draw(8, "link.a"));
    }

    #[test]
    fn the_first_draws_never_change() {
        // Golden: a change here moves every result ever published with a seed.
        let mut stream = Stream::new(1, "golden");
        let draws: [u64; 3] = core::array::from_fn(|_| stream.below(1_000_000));
        assert_eq!(draws, GOLDEN);
    }
    const GOLDEN: [u64; 3] = [498_507, 694_959, 968_702];
}
