//! SF-FC: the division of the fair bandwidth, as printed and as intended.
//!
//! Tamura, Tobe, Tokuda, "SF-FC: a neighbor-state based flow control with soft fairness", NOSSDAV 2000,
//! figure 5. Not stated in the figure: `rest` starts at 0 in each call, all δ and `count` at 0.

use std::vec::Vec;

/// `max_min_estimate` of figure 5 for demands `lambda` of non-adaptive flows next to `na` adaptive ones, line by
/// line. It divides by all flows (`na + nn - count`), and counts a satisfied flow again in every call.
#[must_use]
pub fn max_min_estimate(buffer: f64, lambda: &[f64], na: usize) -> Vec<f64> {
    let mut delta = std::vec![0.0; lambda.len()];
    estimate(buffer, 0, lambda, na, &mut delta);
    delta
}

fn estimate(buffer: f64, mut count: usize, lambda: &[f64], na: usize, delta: &mut [f64]) {
    let nn = lambda.len();
    // In the figure the divisor may become 0; no caller reaches this, because count < nn.
    let allocation = buffer / (na + nn - count) as f64;
    let mut rest = 0.0;
    for i in 0..nn {
        if lambda[i] != delta[i] {
            delta[i] += allocation;
        }
        if lambda[i] <= delta[i] {
            rest += delta[i] - lambda[i];
            delta[i] = lambda[i];
            count += 1;
        }
    }
    if rest > 0.0 && count < nn {
        estimate(rest, count, lambda, na, delta);
    }
}

/// The level up to which all demands are filled, by bisection.
#[must_use]
pub fn water_filling(amount: f64, demands: &[f64]) -> Vec<f64> {
    let filled = |level: f64| demands.iter().map(|demand| demand.min(level)).sum::<f64>();
    let (mut low, mut high) = (0.0, demands.iter().fold(0.0, |most: f64, &demand| most.max(demand)));
    if filled(high) > amount {
        for _ in 0..200 {
            let middle = (low + high) / 2.0;
            if filled(middle) > amount { high = middle } else { low = middle }
        }
    }
    demands.iter().map(|demand| demand.min(high)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(shares: &[f64], expected: &[f64]) {
        let near = shares.iter().zip(expected).all(|(share, due)| (share - due).abs() < 1e-9);
        assert!(near && shares.len() == expected.len(), "{shares:?}, not {expected:?}");
    }

    #[test]
    fn the_figure_as_printed_gives_out_too_little_or_too_much() {
        // 2.6 each; 0.6 leaves 2.0 for two: 1.0 more each. 2.7 leaves 0.9, but then three are counted as
        // satisfied, the first one twice, and the division stops: 6.9 of 7.8.
        close(&max_min_estimate(7.8, &[0.6, 2.7, 4.7], 0), &[0.6, 2.7, 3.6]);
        let shares = max_min_estimate(8.2, &[0.3, 0.8, 1.4, 1.9, 2.5, 4.8], 0);
        assert!((shares.iter().sum::<f64>() - 8.7).abs() < 0.05, "{shares:?}");
    }

    #[test]
    fn the_divisor_of_the_figure_gives_a_part_of_the_non_adaptive_part() {
        // The part of 5 of 10 flows is 5; divided by 10 it is 0.5 each, half of the due rate.
        close(&max_min_estimate(5.0, &[2.0, 4.0, 6.0, 8.0, 10.0], 5), &[0.5; 5]);
    }

    #[test]
    fn water_filling_meets_small_demands_and_divides_the_rest() {
        close(&water_filling(7.8, &[0.6, 2.7, 4.7]), &[0.6, 2.7, 4.5]);
        close(&water_filling(20.0, &[0.6, 2.7, 4.7]), &[0.6, 2.7, 4.7]);
    }
}
