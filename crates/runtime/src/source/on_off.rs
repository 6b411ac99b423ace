//! On-off traffic: CBR during on periods, silence during off periods, their lengths random.
//!
//! It begins with an on period, and with a write. Gaps are counted in on time: a gap that the end of an on
//! period interrupts is finished in the next one. The long-run mean is therefore rate · on / (on + off)
//! exactly, even if on periods hold few writes or less than one; rounding each burst to whole writes would
//! bias it. With Pareto periods of shape below 2, the sum of many such sources is self-similar (Willinger,
//! Taqqu, Sherman, Wilson 1997); their variance is infinite, and means over any practical run scatter widely.
//!
//! The periods do not depend on the rate: a change of rate, or a silence, does not move them.
//!
//! Cost: O(1) a write, and two draws a cycle.

use apportion_core::random::Stream;
use apportion_core::units::{Rate, Span, Time};
use apportion_scenario::model::{self, DurationDistribution};

use super::timing::{Cursor, Spacing, Write, draw};

/// A CBR source with on and off periods.
#[derive(Clone, Debug)]
pub struct OnOff {
    spacing: Spacing,
    periods: Periods,
    cursor: Cursor,
}

/// A point in the sequence of on periods.
#[derive(Clone, Debug)]
struct Periods {
    on: DurationDistribution,
    off: DurationDistribution,
    stream: Stream,
    /// The position, within an on period.
    at: Time,
    /// The end of that on period, which is not part of it.
    until: Time,
}

impl OnOff {
    pub(super) fn new(params: model::OnOff, cursor: Cursor, stream: Stream) -> Self {
        let model::OnOff { rate, packet, on, off } = params;
        let start = cursor.not_before;
        let mut periods = Periods { on, off, stream, at: start, until: start };
        periods.until = start + periods.on_period();
        Self { spacing: Spacing::new(packet, rate), periods, cursor }
    }

    pub(super) fn next_write(&mut self) -> Option<Write> {
        let gap = self.spacing.gap()?;
        // Looks ahead on a copy: if the stop comes first, the periods must not move, for a faster rate.
        let mut periods = self.periods.clone();
        periods.pass(gap, self.cursor.stop);
        periods.wait(self.cursor.not_before);
        let at = self.cursor.go_to(periods.at)?;
        self.periods = periods;
        Some(Write { at, size: self.spacing.size })
    }

    /// Begin and end of the on periods from the present one until `end`.
    pub(super) fn on_periods(&self, end: Time) -> Vec<(Time, Time)> {
        let mut periods = self.periods.clone();
        let mut all = Vec::new();
        while periods.at < end {
            all.push((periods.at, periods.until.min(end)));
            periods.next_period();
        }
        all
    }

    pub(super) fn set_rate(&mut self, now: Time, rate: Rate) {
        self.spacing.set_rate(rate);
        self.cursor.changed(now);
    }
}

impl Periods {
    /// Advances by `gap` of on time, or until `stop`, which ends the loop: each round advances by at least a
    /// nanosecond.
    fn pass(&mut self, mut gap: Span, stop: Time) {
        while self.at < stop && gap >= self.until.since(self.at) {
            gap -= self.until.since(self.at);
            self.next_period();
        }
        self.at += gap;
    }

    /// Advances to `time`, and on to the next on period if that is in an off period.
    fn wait(&mut self, time: Time) {
        while self.until <= time {
            self.next_period();
        }
        self.at = self.at.max(time);
    }

    fn next_period(&mut self) {
        let off = draw(self.off.shape, self.off.mean.as_secs_f64(), &mut self.stream);
        self.at = self.until + Span::from_secs_f64(off);
        self.until = self.at + self.on_period();
    }

    fn on_period(&mut self) -> Span {
        let on = draw(self.on.shape, self.on.mean.as_secs_f64(), &mut self.stream);
        Span::from_secs_f64(on).max(Span::from_nanos(1))
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Bytes;
    use apportion_scenario::model::{Shape, Source};

    use super::super::testing::{generator, millis};
    use super::*;

    /// 1 Mb/s of 1000 B: 8 ms apart.
    fn on_off(on: (u64, Shape), off: (u64, Shape)) -> Source {
        let law = |(millis, shape)| DurationDistribution { mean: Span::from_millis(millis), shape };
        let (rate, packet) = (Rate::from_mbit(1), Bytes::new(1_000));
        Source::OnOff(model::OnOff { rate, packet, on: law(on), off: law(off) })
    }

    /// Checks the number of writes in 20,000 s against its 4σ band, given the variances of the periods in
    /// units of their means squared.
    fn check_mean(on: (u64, Shape), off: (u64, Shape), (on_var, off_var): (f64, f64)) {
        const STOP: u64 = 20_000;
        let (m_on, m_off) = (on.0 as f64 / 1e3, off.0 as f64 / 1e3);
        let cycle = m_on + m_off;
        // The on time of an alternating renewal process in T has mean T · on/cycle and, for long T, variance
        // T (σ_on² off² + σ_off² on²) / cycle³ (Cox, Renewal Theory, 1962, section 7.4).
        let variance = STOP as f64 * (on_var + off_var) * m_on * m_on * m_off * m_off / cycle.powi(3);
        let mean = STOP as f64 * m_on / cycle * 125.0;
        // One write more at the start, and an incomplete cycle at either end.
        let band = 4.0 * variance.sqrt() * 125.0 + 2.0 * cycle * 125.0;
        let count = generator(&on_off(on, off), STOP, 1).count() as f64;
        assert!((count - mean).abs() < band, "{count} outside {mean} ± {band}");
        assert!(band < 0.05 * mean, "the band must be narrow enough to mean something: {band} of {mean}");
    }

    #[test]
    fn the_long_run_mean_is_rate_times_the_share_of_on_time() {
        use Shape::{Constant, Exponential, Pareto};
        check_mean((500, Exponential), (500, Exponential), (1.0, 1.0));
        check_mean((200, Constant), (600, Exponential), (0.0, 1.0));
        // Pareto with shape a and mean m has variance m² / (a (a - 2)): a third of m² for a = 3.
        check_mean((500, Pareto(3.0)), (300, Pareto(3.0)), (1.0 / 3.0, 1.0 / 3.0));
        // On periods shorter than a gap: most hold no write, and the mean is still right.
        check_mean((3, Exponential), (9, Exponential), (1.0, 1.0));
    }

    #[test]
    fn constant_periods_write_at_instants_worked_out_by_hand() {
        // On for 20 ms, off for 30 ms. On time 0, 8, 16 is in the first period; 24 is 4 into the second,
        // which begins at 50; then 12 into it; 40 is the end of the second and so the beginning of the third,
        // at 100.
        let source = on_off((20, Shape::Constant), (30, Shape::Constant));
        assert_eq!(millis(generator(&source, 1, 1).take(7)), [0.0, 8.0, 16.0, 54.0, 62.0, 100.0, 108.0]);
    }

    #[test]
    fn a_silence_leaves_the_periods_where_they_are() {
        let source = on_off((20, Shape::Constant), (30, Shape::Constant));
        let mut on_off = generator(&source, 1, 1);
        assert_eq!(millis(on_off.by_ref().take(2)), [0.0, 8.0]);
        on_off.set_rate(Time::from_millis(8), Rate::ZERO);
        assert_eq!(on_off.next(), None);
        // 130 ms is in the off period from 120 to 150 ms. Then 500 kb/s: 16 ms apart; on time 16 more is at
        // 166, and 4 ms are left of that period: 12 ms into the next, at 212.
        on_off.set_rate(Time::from_millis(130), Rate::from_kbit(500));
        assert_eq!(millis(on_off.take(3)), [150.0, 166.0, 212.0]);
    }

    #[test]
    fn heavy_tails_have_heavy_tails() {
        // Off periods of shape 1.5 and mean 300 ms have scale 100 ms: P(> 10 s) = 100^-1.5 = 0.1 %. In 20,000
        // s there are some 25,000 cycles and some 25 such gaps; exponential ones would have e^-33.
        let source = on_off((500, Shape::Constant), (300, Shape::Pareto(1.5)));
        let times = millis(generator(&source, 20_000, 1));
        let long = times.windows(2).filter(|w| w[1] - w[0] > 10_000.0).count();
        assert!((5..=45).contains(&long), "{long}");
    }
}
