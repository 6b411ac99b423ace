//! Figure 5 of the paper with its two errors as switches.

use alloc::vec::Vec;

/// Divides `buffer`, the fair bandwidth, over the demands `lambda`: among `among` flows at first, minus the
/// satisfied ones, each subtracted once, or with `recount` again in every round. With all flows in `among`
/// and `recount` this is the figure as printed.
///
/// Each round satisfies a flow or is the last, so there are at most n + 1 rounds.
pub(super) fn max_min_estimate(
    buffer: f64,
    lambda: &[f64],
    among: usize,
    recount: bool,
    delta: &mut Vec<f64>,
) {
    delta.clear();
    delta.resize(lambda.len(), 0.0);
    let (mut buffer, mut count) = (buffer, 0);
    for _ in 0..=lambda.len() {
        let allocation = buffer / among.saturating_sub(count).max(1) as f64;
        let mut rest = 0.0;
        for (delta, &lambda) in delta.iter_mut().zip(lambda) {
            let satisfied = lambda == *delta;
            if !satisfied {
                *delta += allocation;
            }
            if lambda <= *delta {
                rest += *delta - lambda;
                *delta = lambda;
                count += usize::from(recount || !satisfied);
            }
        }
        if rest <= 0.0 || count >= lambda.len() {
            return;
        }
        buffer = rest;
    }
}
