//! Two levels of weighted max-min on one link, by halving intervals.

/// Shares of flows (customer, weight, demand) of a link, where customers have `weights`.
#[must_use]
pub fn hierarchical(capacity: f64, weights: &[f64], flows: &[(usize, f64, f64)]) -> Vec<f64> {
    let wants = |n: usize| flows.iter().filter(|flow| flow.0 == n).map(|flow| flow.2).sum::<f64>();
    let customers: Vec<(f64, f64)> = weights.iter().enumerate().map(|(n, &w)| (w, wants(n))).collect();
    let top = level(capacity, &customers);
    let share = |&(n, weight, demand): &(usize, f64, f64)| {
        let members: Vec<_> = flows.iter().filter(|flow| flow.0 == n).map(|flow| (flow.1, flow.2)).collect();
        let part = (customers[n].0 * top).min(customers[n].1);
        (weight * level(part, &members)).min(demand)
    };
    flows.iter().map(share).collect()
}

/// The s at which min(demand, weight s) over all (weight, demand) add up to `capacity`, or a large one.
fn level(capacity: f64, claims: &[(f64, f64)]) -> f64 {
    let (mut low, mut high) = (0.0, 1e9);
    for _ in 0..100 {
        let s = (low + high) / 2.0;
        let sum: f64 = claims.iter().map(|&(weight, demand)| demand.min(weight * s)).sum();
        if sum > capacity { high = s } else { low = s }
    }
    low
}
