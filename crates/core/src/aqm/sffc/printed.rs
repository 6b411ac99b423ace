//! Figure 5 of the paper with its two slips as switches.

use alloc::vec::Vec;

/// Divides `buffer`, the fair bandwidth, over the demands `lambda`: `among` flows at first, and of those that
/// are satisfied each once, or with `recount` in every round, fewer. With all flows in `among` and `recount`
/// it is the figure as printed.
///
/// Each round satisfies a flow or is the last, so there are at most n + 1 of them.
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
