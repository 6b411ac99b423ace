//! Constant bit rate: writes of one size, evenly spaced, or with each gap varied at random.
//!
//! The first write is at the start, and without jitter write `k` is ⌊k · write / rate⌋ nanoseconds later,
//! exactly.
//!
//! Jitter varies each gap by up to ± `jitter` of itself, so that deviations add up and the phase wanders:
//! after n writes it has a standard deviation of jitter · gap · √(n/3). Varying each write about its even
//! instant instead would keep the count exact, but two sources of the same rate would keep their order for
//! ever, and a tail-drop queue would always drop the packets of the same one. The random component has to
//! prevent such phase effects (Floyd and Jacobson, "On Traffic Phase Effects in Packet-Switched Gateways",
//! 1991). The mean gap is that of the even spacing, so the rate keeps its mean; the number of writes in n
//! gaps has a standard deviation of jitter · √(n/3).
//!
//! Cost: O(1) a write, one draw if there is jitter.

use apportion_core::random::Stream;
use apportion_core::units::{Rate, Time};
use apportion_scenario::model;

use super::timing::{Carry, Cursor, Spacing, Write};

/// Evenly spaced writes.
#[derive(Clone, Debug)]
pub struct Cbr {
    spacing: Spacing,
    jitter: f64,
    carry: Carry,
    cursor: Cursor,
    stream: Stream,
}

impl Cbr {
    pub(super) fn new(params: model::Cbr, cursor: Cursor, stream: Stream) -> Self {
        let spacing = Spacing::new(params.packet, params.rate);
        Self { spacing, jitter: params.jitter.get(), carry: Carry::default(), cursor, stream }
    }

    pub(super) fn next_write(&mut self) -> Option<Write> {
        let mut gap = self.spacing.gap()?;
        if self.jitter > 0.0 {
            let factor = 1.0 + self.jitter * (2.0 * self.stream.uniform() - 1.0);
            gap = self.carry.whole(gap.as_nanos() as f64 * factor);
        }
        Some(Write { at: self.cursor.step(gap)?, size: self.spacing.size })
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.spacing.set_rate(rate);
        self.cursor.changed(now);
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::{Bytes, Ratio, Span};
    use apportion_scenario::model::Source;

    use super::super::testing::{generator, millis};
    use super::*;

    fn cbr(rate: Rate, jitter: f64) -> Source {
        Source::Cbr(model::Cbr { rate, packet: Bytes::new(1_000), jitter: Ratio::clamped(jitter) })
    }

    #[test]
    fn the_count_is_exact_where_the_gap_is_no_whole_number_of_nanoseconds() {
        // 1000 B at 7 Mb/s: 1,142,857.142857... ns. In 1000 s exactly 7·10^6 · 1000 / 8000 = 875,000 writes,
        // the last one a gap before the end: ⌊874,999 · 8·10^9 / 7·10^3⌋ ns. Gaps cut to whole nanoseconds
        // would put it 125 µs earlier and one more write behind it.
        let writes: Vec<Write> = generator(&cbr(Rate::from_mbit(7), 0.0), 1_000, 1).collect();
        assert_eq!(writes.len(), 875_000);
        assert_eq!(writes[1].at, Time::from_nanos(1_142_857));
        assert_eq!(writes[7].at, Time::from_millis(8));
        assert_eq!(writes[874_999].at, Time::from_nanos(999_998_857_142));
    }

    #[test]
    fn the_first_write_is_at_the_start_and_none_at_the_stop() {
        // 8 ms apart: 0, 8 ... 992 ms, and 1000 ms is the stop.
        let times = millis(generator(&cbr(Rate::from_mbit(1), 0.0), 1, 1));
        assert_eq!((times.len(), times[0], times[124]), (125, 0.0, 992.0));
    }

    #[test]
    fn jitter_varies_each_gap_by_no_more_than_its_share() {
        // Gaps of 8 ms ± 25 %, uniform: between 6 and 10 ms; some of 999 are within 0.1 ms of either end.
        let times = millis(generator(&cbr(Rate::from_mbit(1), 0.25), 8, 1));
        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
        let least = gaps.iter().copied().fold(f64::MAX, f64::min);
        let greatest = gaps.iter().copied().fold(0.0, f64::max);
        assert!(least > 5.99 && least < 6.1, "{least}");
        assert!(greatest < 10.01 && greatest > 9.9, "{greatest}");
    }

    #[test]
    fn jitter_keeps_the_mean_rate_and_lets_the_phase_wander() {
        // n = 125,000 gaps in 1000 s. The count has σ = j · √(n/3) = 0.5 · 204 = 102; a 4σ band.
        let n = 125_000.0_f64;
        let sigma = 0.5 * (n / 3.0).sqrt();
        let counts: Vec<f64> = (0..20)
            .map(|seed| generator(&cbr(Rate::from_mbit(1), 0.5), 1_000, seed).count() as f64)
            .collect();
        assert!(counts.iter().all(|c| (c - n).abs() < 4.0 * sigma), "{counts:?}");
        // If each write varied about its even instant, all counts would be within 1 of n.
        let spread = (counts.iter().map(|c| (c - n).powi(2)).sum::<f64>() / 20.0).sqrt();
        // A standard deviation from 20 samples is itself within 1 ± 4/√40 = 0.37 ... 1.63 of σ.
        assert!(spread > 0.37 * sigma && spread < 1.63 * sigma, "{spread} against {sigma}");
    }

    #[test]
    fn a_new_rate_takes_effect_on_the_gap_after_the_pending_write() {
        let mut cbr = generator(&cbr(Rate::from_mbit(1), 0.0), 1, 1);
        assert_eq!(millis(cbr.by_ref().take(2)), [0.0, 8.0]);
        // The write at 8 ms is pending at 3 ms; from it on, 1000 B at 4 Mb/s are 2 ms apart.
        cbr.set_rate(Time::from_millis(3), Rate::from_mbit(4));
        assert_eq!(millis(cbr.by_ref().take(2)), [10.0, 12.0]);
        cbr.set_rate(Time::from_millis(12), Rate::ZERO);
        assert_eq!(cbr.next(), None);
        // Silent until 50 ms, where it continues.
        cbr.set_rate(Time::from_millis(50), Rate::from_mbit(1));
        assert_eq!(millis(cbr.by_ref().take(2)), [50.0, 58.0]);
        // Silent for less than a gap: the gap is kept.
        cbr.set_rate(Time::from_millis(59), Rate::ZERO);
        cbr.set_rate(Time::from_millis(60), Rate::from_mbit(1));
        assert_eq!(millis(cbr.take(1)), [66.0]);
    }

    #[test]
    fn empty_writes_and_rate_zero_write_nothing() {
        let empty =
            Source::Cbr(model::Cbr { rate: Rate::from_mbit(1), packet: Bytes::ZERO, jitter: Ratio::ZERO });
        assert_eq!(generator(&empty, 1, 1).next(), None);
        assert_eq!(generator(&cbr(Rate::ZERO, 0.5), 1, 1).next(), None);
        assert_eq!(Span::ZERO, Carry::default().whole(-1.0));
    }
}
