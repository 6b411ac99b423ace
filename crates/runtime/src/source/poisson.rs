//! Writes of one size at the instants of a Poisson process: gaps are exponential and independent.
//!
//! The first write comes an exponential gap after the start. The process has no memory, so after a silence it
//! continues as if it had just started. Cost: O(1) and one draw a write.

use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Rate, Time};
use apportion_scenario::model;

use super::timing::{Carry, Cursor, Write};

/// Writes at the instants of a Poisson process.
#[derive(Clone, Debug)]
pub struct Poisson {
    write: Bytes,
    /// The mean gap in nanoseconds; `None` if there are no writes.
    mean_gap: Option<f64>,
    carry: Carry,
    cursor: Cursor,
    stream: Stream,
}

impl Poisson {
    pub(super) fn new(params: model::Poisson, cursor: Cursor, stream: Stream) -> Self {
        let model::Poisson { rate, packet: write } = params;
        Self { write, mean_gap: mean_gap(write, rate), carry: Carry::default(), cursor, stream }
    }

    pub(super) fn next_write(&mut self) -> Option<Write> {
        let gap = self.carry.whole(self.stream.exponential(self.mean_gap?));
        let from = self.cursor.last.unwrap_or(Time::ZERO).max(self.cursor.not_before);
        Some(Write { at: self.cursor.go_to(from + gap)?, size: self.write })
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.mean_gap = mean_gap(self.write, rate);
        self.cursor.changed(now);
    }
}

fn mean_gap(write: Bytes, rate: Rate) -> Option<f64> {
    let some = rate > Rate::ZERO && write > Bytes::ZERO;
    some.then(|| write.get() as f64 * 8e9 / rate.as_bit() as f64)
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Span;
    use apportion_scenario::model::Source;

    use super::super::testing::{generator, millis};
    use super::*;

    fn poisson(rate: Rate) -> Source {
        Source::Poisson(model::Poisson { rate, packet: Bytes::new(1_000) })
    }

    #[test]
    fn counts_have_the_mean_and_the_variance_of_a_poisson_process() {
        // 1 Mb/s of 1000 B: 125 a second. Counts in each of 2000 seconds: mean 125, variance 125.
        const N: usize = 2_000;
        let mut counts = vec![0.0_f64; N];
        for write in generator(&poisson(Rate::from_mbit(1)), N as u64, 1) {
            counts[(write.at.as_nanos() / 1_000_000_000) as usize] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / N as f64;
        assert!((mean - 125.0).abs() < 4.0 * (125.0 / N as f64).sqrt(), "{mean}");
        let variance = counts.iter().map(|c| (c - mean).powi(2)).sum::<f64>() / N as f64;
        // The variance of N nearly normal samples has a relative standard error of √(2/N) = 3.2 %.
        assert!((variance / 125.0 - 1.0).abs() < 4.0 * (2.0 / N as f64).sqrt(), "{variance}");
    }

    #[test]
    fn gaps_are_exponential() {
        let times = millis(generator(&poisson(Rate::from_mbit(1)), 800, 1));
        let n = times.len() as f64;
        // A share of 1/e of exponential gaps with mean 8 ms is above 8 ms, and 1/e² above 16 ms.
        for (bound, share) in [(8.0, (-1.0_f64).exp()), (16.0, (-2.0_f64).exp())] {
            let above = times.windows(2).filter(|w| w[1] - w[0] > bound).count() as f64 / n;
            assert!((above - share).abs() < 4.0 * (share * (1.0 - share) / n).sqrt(), "{above} for {share}");
        }
    }

    #[test]
    fn the_mean_rate_holds_where_gaps_are_shorter_than_a_nanosecond() {
        // 1000 B at 16 Tb/s: 0.5 ns. Gaps rounded one by one would be too short by 1 - 1/(2 sinh 1 · 0.5) =
        // 15 %.
        let write = poisson(Rate::from_mbit(16_000_000));
        let last = generator(&write, 1, 1).nth(999_999).unwrap().at;
        // 10^6 gaps of 0.5 ns: 500 µs, σ = 0.5 µs.
        assert!(last.since(Time::ZERO).as_nanos().abs_diff(500_000) < 2_000, "{last}");
    }

    #[test]
    fn a_new_rate_changes_the_mean() {
        let mut generator = generator(&poisson(Rate::from_mbit(1)), 1_000, 1);
        while generator.next().is_some_and(|w| w.at < Time::from_secs(500)) {}
        generator.set_rate(Time::from_secs(500), Rate::from_mbit(4));
        // 500 s at 500 a second: 250,000, σ = 500.
        let count = generator.count();
        assert!(count.abs_diff(250_000) < 2_000, "{count}");
        assert_eq!(mean_gap(Bytes::new(1), Rate::ZERO), None);
        assert_eq!(
            Span::from_nanos(8),
            Carry::default().whole(mean_gap(Bytes::new(1), Rate::from_mbit(1_000)).unwrap())
        );
    }
}
