//! Means with intervals, fairness, and distributions merged over replications.

use std::fmt;

use apportion_core::units::Span;
use apportion_runtime::outcome::Distribution;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// A mean over replications with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the 95 % interval; `None` with a single sample.
    pub ci95: Option<f64>,
    /// Number of samples: one per seed.
    #[serde(rename = "seeds")]
    pub n: usize,
}

impl Estimate {
    /// The estimate from `samples`, one per replication; `None` without samples.
    ///
    /// The interval follows Student's t distribution: t(0.975, n - 1) · s / √n with the sample deviation s.
    #[must_use]
    pub fn of(samples: &[f64]) -> Option<Self> {
        let n = samples.len();
        let mean = mean(samples)?;
        let ci95 = (n > 1).then(|| {
            let freedom = (n - 1) as f64;
            let squares: f64 = samples.iter().map(|x| (x - mean).powi(2)).sum();
            let t = StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |t| t.inverse_cdf(0.975));
            t * (squares / freedom / n as f64).sqrt()
        });
        Some(Self { mean, ci95, n })
    }

    /// Whether the two 95 % intervals have a point in common; `None` if one of them is unknown.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> Option<bool> {
        Some((self.mean - other.mean).abs() <= self.ci95? + other.ci95?)
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ci95 {
            // The precision follows the interval: at most one decimal more than the mean would have.
            // Intervals below a part in 10^9 are rounding errors.
            Some(half) if half > 1e-9 * self.mean.abs() => {
                let own = [1.0, 0.1, 0.01, 0.001].iter().position(|&unit| half >= unit).unwrap_or(4);
                let least = decimals(self.mean.abs().max(half));
                let decimals = own.clamp(least, least + 1);
                // An interval that would be printed as ± 0.000 is left out.
                if half * 10_f64.powi(decimals as i32) < 0.5 {
                    return f.write_str(&number(self.mean));
                }
                write!(f, "{:.decimals$} ± {:.decimals$}", self.mean, half)
            }
            // Counts are printed as whole numbers.
            _ if self.mean.fract() == 0.0 => write!(f, "{:.0}", self.mean),
            _ => f.write_str(&number(self.mean)),
        }
    }
}

/// `x` as text: three significant digits, but all digits before the point and at most four after it.
#[must_use]
pub fn number(x: f64) -> String {
    // A value that rounds up to a power of ten has a digit less after the point: 0.9996 is 1.00, like 1.
    let unit = 10_f64.powi(decimals(x.abs()) as i32);
    format!("{:.*}", decimals((x.abs() * unit).round() / unit), x)
}

/// Decimals that show three significant digits of `magnitude`.
fn decimals(magnitude: f64) -> usize {
    match magnitude {
        m if m >= 100.0 || m == 0.0 => 0,
        m if m >= 10.0 => 1,
        m if m >= 1.0 => 2,
        m if m >= 0.1 => 3,
        _ => 4,
    }
}

/// The arithmetic mean; `None` without samples.
#[must_use]
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Jain's index (Σx)² / (n Σx²): 1 if all values are equal, 1/n if all but one are zero; `None` if all are
/// zero.
///
/// R. Jain, D. Chiu, W. Hawe, "A Quantitative Measure of Fairness", DEC-TR-301, 1984.
#[must_use]
pub fn jain(shares: &[f64]) -> Option<f64> {
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| shares.iter().sum::<f64>().powi(2) / (shares.len() as f64 * squares))
}

/// R² of the throughputs of flows against their entitlements, `points`: 1 - Σ(throughput - entitlement)² /
/// Σ(entitlement - mean entitlement)², the part of the spread of entitlements that throughputs show. 1 if all
/// flows get their entitlements, 0 if all get the same with the same total, negative if they get those of
/// others. `None` if all entitlements are equal: there is no spread.
///
/// It is relative to the spread of entitlements, as in Nash and Sutcliffe 1970, and not of throughputs:
/// otherwise it would be unbounded where throughputs are nearly equal, and undefined for a discipline that
/// ignores the differences.
#[must_use]
pub fn r2_of_entitlements(points: &[(f64, f64)]) -> Option<f64> {
    let spreads = points.iter().any(|(due, _)| (due - points[0].0).abs() > 1e-6 * points[0].0);
    let mean = mean(&points.iter().map(|(due, _)| *due).collect::<Vec<_>>())?;
    let residual: f64 = points.iter().map(|(due, got)| (got - due).powi(2)).sum();
    let total: f64 = points.iter().map(|(due, _)| (due - mean).powi(2)).sum();
    (spreads && total > 0.0).then(|| 1.0 - residual / total)
}

/// The population standard deviation √(Σ(x - mean)² / n); `None` without samples.
#[must_use]
pub fn sigma(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples)?;
    Some((samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / samples.len() as f64).sqrt())
}

/// The smallest of ascending `samples` with at least `share` of them at or below it; `None` without samples.
#[must_use]
pub fn nearest_rank(samples: &[f64], share: f64) -> Option<f64> {
    let rank = (share * samples.len() as f64).ceil().max(1.0) as usize;
    samples.get(rank - 1).copied()
}

/// The distribution of all samples of `parts` together.
///
/// Count, mean, minimum and maximum are exact. Between its quantiles each part is interpolated linearly.
#[must_use]
pub fn merge(parts: &[&Distribution]) -> Distribution {
    let parts: Vec<_> = parts.iter().filter(|d| d.count > 0 && !d.quantiles.is_empty()).collect();
    if let [only] = parts.as_slice() {
        return (**only).clone();
    }
    let count: u64 = parts.iter().map(|d| d.count).sum();
    if count == 0 {
        return Distribution::default();
    }
    let weight = |d: &Distribution| d.count as f64 / count as f64;
    let mean = Span::from_secs_f64(parts.iter().map(|d| weight(d) * d.mean.as_secs_f64()).sum());

    // The mixture's cumulative distribution is linear between the values that any part lists.
    let mut values: Vec<Span> = parts.iter().flat_map(|d| d.quantiles.iter().map(|&(_, v)| v)).collect();
    values.sort_unstable();
    values.dedup();
    let step = |value| {
        let mut step = Step { value, below: 0.0, within: 0.0 };
        for d in &parts {
            let (below, within) = share_at(d, value);
            step.below += weight(d) * below;
            step.within += weight(d) * within;
        }
        step
    };
    let quantiles = Distribution::CURVE.iter().map(|&share| (share, invert(&values, step, share))).collect();
    Distribution { count, mean, quantiles }
}

/// A value with the share of samples below it and the share of samples not above it.
struct Step {
    value: Span,
    below: f64,
    within: f64,
}

/// The shares of samples of `d` below `value` and not above it. They differ where `d` has an atom.
fn share_at(d: &Distribution, value: Span) -> (f64, f64) {
    let from = d.quantiles.partition_point(|&(_, v)| v < value);
    let to = d.quantiles.partition_point(|&(_, v)| v <= value);
    match (&d.quantiles[from..to], from.checked_sub(1).map(|below| d.quantiles[below]), d.quantiles.get(to)) {
        // The minimum and the maximum are samples, so shares begin at 0 there and end at 1.
        ([first, .., last], ..) => (first.0, last.0),
        ([only], ..) => (only.0, only.0),
        ([], Some((s0, v0)), Some(&(s1, v1))) => {
            let part = value.saturating_sub(v0).as_secs_f64() / v1.saturating_sub(v0).as_secs_f64();
            let share = s0 + (s1 - s0) * part;
            (share, share)
        }
        ([], None, _) => (0.0, 0.0),
        ([], Some(_), None) => (1.0, 1.0),
    }
}

/// The smallest value with at least `share` of the samples at or below it. `values` are ascending; `step`
/// reads all parts, so the search is a bisection.
fn invert(values: &[Span], step: impl Fn(Span) -> Step, share: f64) -> Span {
    // Sums of weights differ from whole shares by rounding only.
    const ROUNDING: f64 = 1e-12;
    let at = values.partition_point(|&value| step(value).within < share - ROUNDING);
    let Some(&value) = values.get(at) else {
        return values.last().copied().unwrap_or(Span::ZERO);
    };
    let here = step(value);
    if at == 0 || here.below <= share {
        return value;
    }
    let before = step(values[at - 1]);
    let part = ((share - before.within) / (here.below - before.within)).clamp(0.0, 1.0);
    let width = here.value.saturating_sub(before.value).as_secs_f64();
    before.value + Span::from_secs_f64(width * part)
}

/// Indices and entitlements of the flows that Jain's index is over.
pub(crate) fn judged(
    entitlements: impl Iterator<Item = Option<f64>> + Clone,
) -> impl Iterator<Item = (usize, Option<f64>)> {
    let positive = entitlements.map(|e| e.filter(|&e| e > 0.0));
    let any = positive.clone().any(|e| e.is_some());
    positive.enumerate().filter(move |(_, e)| e.is_some() || !any)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-3
    }

    #[test]
    fn the_interval_is_students() {
        // Samples 1..5: mean 3, s = √2.5 = 1.5811, t(0.975, 4) = 2.7764 (printed tables): 2.7764 · 1.5811/√5
        // = 1.9632.
        let e = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!(close(e.mean, 3.0) && close(e.ci95.unwrap(), 1.9632) && e.n == 5);
        // Two samples: t(0.975, 1) = 12.706, s/√2 = 1: the interval is 12.706 wide on each side.
        assert!(close(Estimate::of(&[0.0, 2.0]).unwrap().ci95.unwrap(), 12.706));
        assert_eq!(Estimate::of(&[4.0]).unwrap().ci95, None);
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn intervals_overlap_when_they_touch() {
        let e = |mean, half| Estimate { mean, ci95: half, n: 2 };
        assert_eq!(e(1.0, Some(0.5)).overlaps(&e(2.0, Some(0.5))), Some(true));
        assert_eq!(e(1.0, Some(0.4)).overlaps(&e(2.0, Some(0.5))), Some(false));
        assert_eq!(e(1.0, None).overlaps(&e(2.0, Some(0.5))), None);
    }

    #[test]
    fn jain_of_equal_shares_is_one_and_of_a_monopoly_one_nth() {
        assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
        assert_eq!(jain(&[5.0, 0.0, 0.0, 0.0]), Some(0.25));
        // (1+2+3)² / (3 · (1+4+9)) = 36/42.
        assert!(close(jain(&[1.0, 2.0, 3.0]).unwrap(), 36.0 / 42.0));
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn r2_is_of_the_line_where_all_get_what_they_are_due() {
        // Entitlements 1 and 3, throughputs 1 and 2: residual 1, total 2 · 1.
        assert_eq!(r2_of_entitlements(&[(1.0, 1.0), (3.0, 2.0)]), Some(0.5));
        // Throughputs that are equal, or nearly so, show nothing of the spread; the reverse order is worse.
        assert_eq!(r2_of_entitlements(&[(1.0, 2.0), (3.0, 2.0)]), Some(0.0));
        assert!(r2_of_entitlements(&[(1.0, 2.0), (3.0, 2.0 + 1e-9)]).unwrap().abs() < 1e-8);
        assert_eq!(r2_of_entitlements(&[(1.0, 3.0), (3.0, 1.0)]), Some(-3.0));
        assert_eq!(r2_of_entitlements(&[(1.0, 1.0), (3.0, 3.0)]), Some(1.0));
        assert_eq!(r2_of_entitlements(&[(2.0, 1.0), (2.0, 3.0)]), None);
        assert_eq!(r2_of_entitlements(&[]), None);
    }

    #[test]
    fn sigma_divides_by_n() {
        // Mean 5; squares 9+1+1+1+0+0+4+16 = 32; √(32/8) = 2.
        assert_eq!(sigma(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), Some(2.0));
    }

    #[test]
    fn nearest_ranks_are_samples() {
        // The median of five samples is the third, ⌈0.95 · 5⌉ = 5 the fifth.
        let at = |share| nearest_rank(&[1.0, 2.0, 3.0, 4.0, 9.0], share);
        assert_eq!((at(0.0), at(0.5), at(0.95), at(1.0)), (Some(1.0), Some(3.0), Some(9.0), Some(9.0)));
        assert_eq!(nearest_rank(&[], 0.5), None);
    }

    fn uniform(count: u64, low: u64, high: u64) -> Distribution {
        let at = |s: f64| Span::from_millis(low) + Span::from_secs_f64(s * (high - low) as f64 / 1e3);
        Distribution {
            count,
            mean: Span::from_millis(low.midpoint(high)),
            quantiles: Distribution::SHARES.iter().map(|&s| (s, at(s))).collect(),
        }
    }

    #[test]
    fn merging_weighs_by_count() {
        // 100 samples uniform on 0..10 ms and 300 on 20..40 ms. A quarter lies at or below 10 ms. The median
        // is where (0.5 - 0.25)/0.75 = 1/3 of the second part lies: 20 + 20/3 = 26.667 ms. Mean (5 + 3·30)/4
        // = 23.75 ms.
        let merged = merge(&[&uniform(100, 0, 10), &uniform(300, 20, 40)]);
        let ms = |share: f64| merged.quantile(share).unwrap().as_secs_f64() * 1e3;
        assert_eq!(merged.count, 400);
        assert!(close(merged.mean.as_secs_f64() * 1e3, 23.75));
        assert!(
            close(ms(0.0), 0.0) && close(ms(0.25), 10.0) && close(ms(0.5), 26.667) && close(ms(1.0), 40.0)
        );
    }

    #[test]
    fn merging_keeps_atoms() {
        // Half of all samples are zero: with 100 zeros and 100 uniform on 10..20 ms, p25 is 0 and p75 15 ms.
        let zeros = Distribution {
            count: 100,
            mean: Span::ZERO,
            quantiles: Distribution::SHARES.iter().map(|&s| (s, Span::ZERO)).collect(),
        };
        let merged = merge(&[&zeros, &uniform(100, 10, 20), &Distribution::default()]);
        assert_eq!(merged.quantile(0.25), Some(Span::ZERO));
        assert!(close(merged.quantile(0.75).unwrap().as_secs_f64() * 1e3, 15.0));
    }

    #[test]
    fn numbers_show_three_digits() {
        let shown = [1234.5, 123.4, 12.34, 1.234, 0.1234, 0.01234, 0.0].map(number);
        assert_eq!(shown, ["1234", "123", "12.3", "1.23", "0.123", "0.0123", "0"]);
        assert_eq!([0.9996, 1.0, 9.996, 99.96].map(number), ["1.00", "1.00", "10.0", "100"]);
    }

    #[test]
    fn intervals_are_shown_with_a_digit_of_their_own() {
        let show = |mean, ci95| Estimate { mean, ci95, n: 3 }.to_string();
        assert_eq!(show(7.832, Some(0.079)), "7.83 ± 0.08");
        assert_eq!(show(10.02, Some(0.031)), "10.02 ± 0.03");
        assert_eq!(show(9122.4, Some(2.1)), "9122 ± 2");
        assert_eq!(show(0.9871, Some(0.0004)), "0.9871 ± 0.0004");
        assert_eq!(show(12.0, Some(0.0)), "12");
        assert_eq!(show(0.99996, Some(0.00001)), "1.00");
        assert_eq!(show(45.0, None), "45");
    }
}
