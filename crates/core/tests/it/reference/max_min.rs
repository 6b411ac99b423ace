//! Progressive filling: raise the level to the nearest event, freeze, start again.

/// Shares of flows `(links, weight, guarantee, demand)`, whose guarantees fit.
#[must_use]
pub fn max_min(capacities: &[f64], flows: &[(Vec<usize>, f64, f64, f64)]) -> Vec<f64> {
    let mut shares: Vec<f64> = flows.iter().map(|(_, _, g, demand)| g.min(*demand)).collect();
    let mut frozen: Vec<bool> =
        flows.iter().zip(&shares).map(|(flow, x)| flow.1 == 0.0 || *x >= flow.3).collect();
    while frozen.contains(&false) {
        let free = |link: usize| {
            let used: f64 =
                flows.iter().zip(&shares).filter(|(f, _)| f.0.contains(&link)).map(|(_, x)| x).sum();
            capacities[link] - used
        };
        let weight = |link: usize| -> f64 {
            let crossing = flows.iter().zip(&frozen).filter(|(f, frozen)| f.0.contains(&link) && !**frozen);
            crossing.map(|(f, _)| f.1).sum()
        };
        let mut step = f64::INFINITY;
        for link in 0..capacities.len() {
            if weight(link) > 0.0 {
                step = step.min(free(link).max(0.0) / weight(link));
            }
        }
        for (flow, x) in
            flows.iter().zip(&shares).zip(&frozen).filter(|(_, frozen)| !**frozen).map(|(a, _)| a)
        {
            step = step.min((flow.3 - x) / flow.1);
        }
        for (i, flow) in flows.iter().enumerate() {
            if !frozen[i] {
                shares[i] += flow.1 * step;
            }
        }
        let full: Vec<bool> = (0..capacities.len())
            .map(|link| {
                let used: f64 =
                    flows.iter().zip(&shares).filter(|(f, _)| f.0.contains(&link)).map(|(_, x)| x).sum();
                used >= capacities[link] - 1e-9
            })
            .collect();
        for (i, flow) in flows.iter().enumerate() {
            if flow.0.iter().any(|&link| full[link]) || shares[i] >= flow.3 - 1e-9 {
                frozen[i] = true;
            }
        }
    }
    shares
}
