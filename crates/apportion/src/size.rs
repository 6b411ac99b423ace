//! What simulations take, and what is too much to be run without being asked for.

use apportion_scenario::{Estimate, model};

/// Time from which on a run is refused, s. Chosen: a day, longer than any example or paper takes.
pub(crate) const MAX_SECONDS: f64 = 86_400.0;
/// Memory from which on a run is refused, bytes. Chosen: half of a small machine's.
const MAX_MEMORY: f64 = 2e9;

/// What `seeds` replications of each of these take: the time of all, and the memory of `jobs` that run at once (0: one for
/// each core).
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

/// Whether that is too much.
pub(crate) fn is_too_large(estimate: &Estimate) -> bool {
    estimate.seconds() > MAX_SECONDS || estimate.memory > MAX_MEMORY
}
