//! Two levels of weighted max-min on one link with guarantees, by bisection.

/// Shares of flows (customer, weight, guarantee, demand) of a link, where customers have `weights`, and
/// guarantees fit.
#[must_use]
pub fn hierarchical(capacity: f64, weights: &[f64], flows: &[(usize, f64, f64, f64)]) -> Vec<f64> {
    let of = |n: usize| flows.iter().filter(move |flow| flow.0 == n);
    let part = |n: usize, s: f64| -> f64 {
        let wanted: f64 = of(n).map(|flow| flow.3).sum();
        let guaranteed: f64 = of(n).map(|flow| flow.2.min(flow.3)).sum();
        wanted.min(guaranteed.max(weights[n] * s))
    };
    let top = level(capacity, |s| (0..weights.len()).map(|n| part(n, s)).sum());
    let own =
        |&(_, weight, guarantee, demand): &(usize, f64, f64, f64), s: f64| demand.min(guarantee + weight * s);
    let share = |flow: &(usize, f64, f64, f64)| {
        own(flow, level(part(flow.0, top), |s| of(flow.0).map(|flow| own(flow, s)).sum()))
    };
    flows.iter().map(share).collect()
}

/// The s at which `sum`, which grows with s, is `capacity`, or a large one.
fn level(capacity: f64, sum: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let s = (low + high) / 2.0;
        if sum(s) > capacity { high = s } else { low = s }
    }
    low
}
