//! The random delay of packets on a wire in addition to its constant delay; see [`Jitter`].
//!
//! Cost: one random number a packet if uniform, some two logarithms and cosines if normal.

use apportion_core::random::Stream;
use apportion_core::units::Span;
use apportion_scenario::model::{Jitter, JitterDistribution};

/// Draws the random delays.
#[derive(Clone, Debug)]
pub struct WireJitter {
    jitter: Jitter,
    stream: Stream,
}

impl WireJitter {
    /// Delays drawn from `stream`.
    #[must_use]
    pub const fn new(jitter: Jitter, stream: Stream) -> Self {
        Self { jitter, stream }
    }

    /// Whether packets may overtake others.
    #[must_use]
    pub const fn reorders(&self) -> bool {
        self.jitter.reorder
    }

    /// The random delay of the next packet.
    pub fn draw(&mut self) -> Span {
        let max = self.jitter.max.as_nanos();
        Span::from_nanos(match self.jitter.distribution {
            JitterDistribution::Uniform => self.stream.below(max.saturating_add(1)),
            JitterDistribution::Normal => loop {
                // Terminates: 99.7 % of the draws are inside.
                let z = self.stream.normal();
                if z.abs() <= 3.0 {
                    break ((z + 3.0) / 6.0 * max as f64) as u64;
                }
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation, minimum and maximum, relative to the maximum.
    fn drawn(distribution: JitterDistribution) -> [f64; 4] {
        let max = Span::from_millis(6);
        let jitter = Jitter { max, distribution, reorder: false };
        let mut wire = WireJitter::new(jitter, Stream::new(5, "jitter"));
        let times: Vec<f64> =
            (0..100_000).map(|_| wire.draw().as_nanos() as f64 / max.as_nanos() as f64).collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e5;
        [
            mean,
            variance.sqrt(),
            times.iter().copied().fold(1.0, f64::min),
            times.iter().copied().fold(0.0, f64::max),
        ]
    }

    #[test]
    fn times_have_the_moments_of_their_distribution() {
        // A uniform distribution has 1 / √12. A normal one cut at three standard deviations has 0.9866 of its
        // own.
        for (distribution, sd) in
            [(JitterDistribution::Uniform, 0.288_7), (JitterDistribution::Normal, 0.9866 / 6.0)]
        {
            let [mean, found, least, longest] = drawn(distribution);
            assert!((mean - 0.5).abs() < 4.0 * sd / 1e5_f64.sqrt(), "{mean}");
            assert!((found - sd).abs() < 0.01 * sd, "{found}, not {sd}");
            assert!((0.0..0.1).contains(&least) && (0.9..=1.0).contains(&longest), "{least} {longest}");
        }
    }
}
