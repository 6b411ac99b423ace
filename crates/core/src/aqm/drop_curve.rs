//! RED's decision: a probability that grows with the average queue, and drops spaced evenly by a count.
//!
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993,
//! section 4 and figure 2; `wait` and `gentle` are later additions by Floyd, as described for ns-2. This is
//! not a policy but the part that RED and its relatives share.
//!
//! Readings, where the paper leaves room:
//! - The first arrival after the average has risen above `min_th` is never dropped; it starts the count at 1.
//! - There are no early drops while at most one packet waits.
//!
//! Cost: O(1).

use alloc::format;

use crate::limit::{BufferSize, Limit, Threshold};
use crate::param::{ParamError, require};
use crate::queue::DropReason;
use crate::random::Stream;
use crate::units::{MeanPackets, Packets, Ratio};

/// The probability as a function of the average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DropCurve {
    /// The average below which nothing is dropped.
    pub(crate) min_th: f64,
    /// The average from which on everything is dropped; twice this value if `gentle`.
    pub(crate) max_th: f64,
    /// Probability at `max_th`.
    pub(crate) max_p: Ratio,
    /// Whether the probability rises from `max_p` to 1 between `max_th` and twice `max_th`.
    pub(crate) gentle: bool,
}

impl DropCurve {
    /// The probability before spacing. `avg` must lie between `min_th` and the [ceiling](Self::ceiling).
    pub(crate) fn p_b(&self, avg: f64) -> f64 {
        let max_p = self.max_p.get();
        if avg >= self.max_th {
            // Gentle: from max_p to 1 over max_th to 2 max_th.
            return max_p + (1.0 - max_p) * (avg - self.max_th) / self.max_th;
        }
        // 1993 paper, eq. (2).
        max_p * (avg - self.min_th) / (self.max_th - self.min_th)
    }

    /// The average from which on everything is dropped.
    pub(crate) fn ceiling(&self) -> f64 {
        if self.gentle { 2.0 * self.max_th } else { self.max_th }
    }
}

/// The decision about an arrival by the average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Zone {
    /// The packet joins the queue.
    Free,
    /// The packet is dropped with a probability that follows p_b: [`DropSpacing::spread`] of it, or p_b
    /// itself for random drops.
    Curve(f64),
    /// The packet is dropped.
    Forced,
}

/// A drop curve and the count of arrivals since the last drop, which spaces drops.
#[derive(Clone, Debug)]
pub(crate) struct DropSpacing {
    curve: DropCurve,
    wait: bool,
    /// Arrivals since the last drop or since the average came above `min_th`, in packets or in mean packets.
    count: f64,
    /// Whether the average was already above `min_th` at the previous arrival.
    above: bool,
}

impl DropSpacing {
    /// A count of zero. `wait` spaces drops as in [`spread`].
    pub(crate) const fn new(curve: DropCurve, wait: bool) -> Self {
        Self { curve, wait, count: 0.0, above: false }
    }

    /// Replaces the curve.
    pub(crate) const fn set_curve(&mut self, curve: DropCurve) {
        self.curve = curve;
    }

    /// Counts an arrival worth `step` that finds `queued` packets, and returns the decision for the average
    /// `avg`.
    pub(crate) fn arrival(&mut self, avg: f64, queued: Packets, step: f64) -> Zone {
        self.count += step;
        if avg < self.curve.min_th || queued <= Packets::new(1) {
            self.above = false;
            return Zone::Free;
        }
        if avg >= self.curve.ceiling() {
            return Zone::Forced;
        }
        if !self.above {
            self.above = true;
            self.count = step;
            return Zone::Free;
        }
        Zone::Curve(self.curve.p_b(avg))
    }

    /// The whole of RED for an arrival worth `step`: the reason for its drop, if any.
    pub(crate) fn early(
        &mut self,
        avg: f64,
        queued: Packets,
        step: f64,
        random: &mut Stream,
    ) -> Option<DropReason> {
        match self.arrival(avg, queued, step) {
            Zone::Free => None,
            Zone::Forced => Some(DropReason::Forced),
            Zone::Curve(p_b) => random.chance(self.spread(p_b) * step).then_some(DropReason::Early),
        }
    }

    /// The average `avg` as a multiple of `max_th`; 1 below it.
    pub(crate) const fn beyond(&self, avg: f64) -> f64 {
        (avg / self.curve.max_th).max(1.0)
    }

    /// The probability `p` for the arrival just counted, spaced by the count.
    pub(crate) fn spread(&self, p: f64) -> f64 {
        spread(p, self.count, self.wait)
    }

    /// Restarts the count after a drop or mark, whatever the reason.
    pub(crate) const fn dropped(&mut self) {
        self.count = 0.0;
    }
}

/// The probability after `count` arrivals without a drop: drops are spaced evenly rather than at random.
pub(crate) fn spread(p_b: f64, count: f64, wait: bool) -> f64 {
    let expected = count * p_b;
    match wait {
        true if expected < 1.0 => 0.0,
        true if expected < 2.0 => p_b / (2.0 - expected),
        // 1993 paper, section 4: p_a = p_b / (1 - count p_b).
        false if expected < 1.0 => p_b / (1.0 - expected),
        _ => 1.0,
    }
}

/// Refuses a lower and an upper threshold, with their names, that contradict each other or a fixed `limit`.
pub(crate) fn check_thresholds(
    (min_name, min_th): (&str, Threshold),
    (max_name, max_th): (&str, Threshold),
    limit: Option<BufferSize>,
) -> Result<(), ParamError> {
    let same_unit = matches!(min_th, Threshold::Packets(_)) == matches!(max_th, Threshold::Packets(_));
    require(
        same_unit,
        max_name,
        &format!("`{min_name}` and `{max_name}` must both be in packets or both in bytes"),
    )?;
    require(
        min_th.level() < max_th.level(),
        max_name,
        &format!("{max_th} must be above `{min_name}`, which is {min_th}"),
    )?;
    let Some(limit) = limit.and_then(BufferSize::fixed) else { return Ok(()) };
    let reachable = match (max_th, limit) {
        (Threshold::Packets(max_th), Limit::Packets(limit)) => max_th <= MeanPackets::new(limit.get()),
        (Threshold::Bytes(max_th), Limit::Bytes(limit)) => max_th <= limit,
        _ => true,
    };
    require(
        reachable,
        max_name,
        &format!("{max_th} can never be reached with a `limit` of {limit}: raise the limit"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(gentle: bool) -> DropCurve {
        DropCurve { min_th: 5.0, max_th: 15.0, max_p: Ratio::clamped(0.1), gentle }
    }

    #[test]
    fn drops_are_spaced_as_each_mode_says() {
        // p_b = 0.1. wait: 0 below count 10, at 15 0.1/(2 - 1.5), from 20 certain.
        assert_eq!([9.0, 15.0, 20.0].map(|count| spread(0.1, count, true)), [0.0, 0.2, 1.0]);
        // Paper: at 0 plain, at 5 0.1/(1 - 0.5), from 10 certain.
        assert_eq!([0.0, 5.0, 10.0].map(|count| spread(0.1, count, false)), [0.1, 0.2, 1.0]);
    }

    #[test]
    fn the_ramp_goes_from_min_to_max_and_gently_on_to_twice_max() {
        // 0.1·(10 - 5)/(15 - 5) = 0.05; at 15 0.1; at 22.5 0.1 + 0.9·7.5/15 = 0.55.
        assert_eq!([5.0, 10.0, 15.0, 22.5].map(|avg| curve(true).p_b(avg)), [0.0, 0.05, 0.1, 0.55]);
        assert_eq!([true, false].map(|gentle| curve(gentle).ceiling()), [30.0, 15.0]);
    }

    #[test]
    fn the_first_arrival_above_the_minimum_starts_the_count() {
        let mut spacing = DropSpacing::new(curve(false), false);
        let mut arrival = |avg, queued| spacing.arrival(avg, Packets::new(queued), 1.0);
        let zones =
            [(4.0, 9), (10.0, 9), (10.0, 9), (15.0, 9), (10.0, 1), (10.0, 9)].map(|(a, q)| arrival(a, q));
        let free = Zone::Free;
        // Below, first above, ramp, forced, queue too short, and first above again.
        assert_eq!(zones, [free, free, Zone::Curve(0.05), Zone::Forced, free, free]);
        // The last one restarted the count at 1: 0.05/(1 - 1·0.05).
        assert_eq!(spacing.spread(0.05), 0.05 / 0.95);
        spacing.dropped();
        assert_eq!(spacing.spread(0.05), 0.05);
    }
}
