//! Steps of the papers' estimate of the fair share against Newton's method, which FADE is known to modify.
//!
//! Li, Borrego, Li, "Achieving per-flow fair rate allocation within Diffserv", ISCC 2000 (FADE). The text could not be
//! had; its abstract names a modified quasi-Newton method. What passes is F(α), the sum of min(rate, α): concave, with
//! a slope that is the number of flows above α. CSFQ takes the slope to be F/α. Newton's method takes the true slope, a
//! secant the one between the last two windows. A model of windows without packets: F is measured by the exponential
//! average of CSFQ, so that a share is judged by traffic that older shares let through.

use apportion_core::random::Stream;

/// The slope of F that a step assumes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Slope {
    /// F/α.
    Csfq,
    /// The number of flows above α, averaged as F is.
    Newton,
    /// The difference between two windows, at most F/α and at least a fiftieth of that.
    Secant,
}

fn accepted(rates: &[f64], share: f64) -> f64 {
    rates.iter().map(|rate| rate.min(share)).sum()
}

/// The share at which `rates` just fill a link of 1.
fn fair(rates: &[f64]) -> f64 {
    let (mut low, mut high) = (0.0, rates.iter().copied().fold(0.0, f64::max));
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if accepted(rates, middle) < 1.0 { low = middle } else { high = middle }
    }
    high
}

/// The windows after a step of the load until the share stays within 10 % of the fair one; 100 if it does not.
fn windows(before: &[f64], after: &[f64], slope: Slope, per_average: f64) -> usize {
    let kept = libm::exp(-per_average);
    let count = |share: f64| after.iter().filter(|rate| **rate > share).count() as f64;
    let mut share = fair(before);
    let (mut f, mut n) = (accepted(before, share).min(1.0), count(share).max(1.0));
    let (due, mut last, mut late) = (fair(after), None, 0);
    for window in 1..=100 {
        f = (1.0 - kept) * accepted(after, share) + kept * f;
        n = (1.0 - kept) * count(share) + kept * n;
        let chord = f / share;
        let step = match (slope, last) {
            (Slope::Csfq, _) | (Slope::Secant, None) => chord,
            (Slope::Newton, _) => n.clamp(chord / 50.0, chord),
            (Slope::Secant, Some((share_before, f_before))) => {
                let slope: f64 = (f - f_before) / (share - share_before);
                if slope.is_finite() { slope.clamp(chord / 50.0, chord) } else { chord }
            }
        };
        last = Some((share, f));
        share = (share + (1.0 - f) / step).clamp(share / 2.0, 2.0 * share).min(1.0);
        if (share / due - 1.0).abs() > 0.1 {
            late = window;
        }
    }
    late
}

/// The load of a link in its own rate, divided among 2 to 300 flows: equally, by rank, log-normally, or one against all.
fn load(random: &mut Stream, load: f64) -> Vec<f64> {
    let n = [2, 5, 10, 32, 100, 300][random.below(6) as usize];
    let kind = random.below(4);
    let mut rates: Vec<f64> = (0..n)
        .map(|i| match kind {
            0 => 1.0,
            1 => f64::from(i + 1),
            2 => libm::exp(1.5 * random.normal()),
            _ => {
                if i == 0 {
                    f64::from(n)
                } else {
                    0.1
                }
            }
        })
        .collect();
    let sum: f64 = rates.iter().sum();
    rates.iter_mut().for_each(|rate| *rate *= load / sum);
    rates
}

/// Median and 95th percentile of [`windows`] over 400 steps.
fn convergence(slope: Slope, per_average: f64) -> [usize; 2] {
    let mut random = Stream::new(1, "loads");
    let mut all: Vec<usize> = (0..400)
        .map(|_| {
            let low = 0.9 + 2.0 * random.uniform();
            let before = load(&mut random, low);
            let high = 1.2 + 5.0 * random.uniform();
            windows(&before, &load(&mut random, high), slope, per_average)
        })
        .collect();
    all.sort_unstable();
    [all[200], all[380]]
}

/// The average of F, not the step, limits how soon a share is found: the true slope gains nothing, and a slope between
/// two windows, which the average distorts, does not converge.
#[test]
fn a_step_by_the_slope_finds_the_share_no_sooner() {
    for (per_average, expected) in [(1.0, [[5, 10], [5, 10], [100, 100]]), (3.0, [[2, 7], [2, 7], [2, 8]])] {
        let found = [Slope::Csfq, Slope::Newton, Slope::Secant].map(|slope| convergence(slope, per_average));
        assert_eq!(found, expected, "K_c is {per_average} K_alpha");
    }
}
