//! The cost of simulations, and the limits above which a run must be forced.

use apportion_scenario::{Estimate, model};

/// The CPU time above which a run is refused, in seconds. Chosen: a day, longer than any example or paper
/// takes.
pub(crate) const MAX_SECONDS: f64 = 86_400.0;
/// The memory above which a run is refused, in bytes. Chosen: half of a small machine's memory.
const MAX_MEMORY: f64 = 2e9;

/// Estimates the cost of `seeds` replications of each scenario: the time of all, and the memory of `jobs`
/// concurrent ones (0: one for each core).
pub(crate) fn estimate<'a>(
    scenarios: impl Iterator<Item = &'a model::Scenario>,
    seeds: u64,
    jobs: usize,
) -> Estimate {
    let threads = match jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    let (mut sum, mut largest, mut count) = (Estimate::default(), 0_f64, 0.0);
    for scenario in scenarios {
        let of_one = scenario.estimate();
        sum.hops += seeds as f64 * of_one.hops;
        sum.far += seeds as f64 * of_one.far;
        sum.writes += seeds as f64 * of_one.writes;
        largest = largest.max(of_one.memory);
        count += seeds as f64;
    }
    sum.memory = largest * f64::min(count, threads as f64);
    sum
}

/// Whether a run of this cost is refused.
pub(crate) fn is_too_large(estimate: &Estimate) -> bool {
    estimate.seconds() > MAX_SECONDS || estimate.memory > MAX_MEMORY
}
